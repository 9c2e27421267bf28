"""How far the answers of a faster model are from those of the model it was made of, and how far they may be.

Every model but the float32 one has to pass this before it plays: int8 on the CPU, fp16 on CUDA and TensorRT, bf16 by
OpenVINO.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.evaluators.protocol import Evaluator

_DRIFT_ROWS = 512  # the share of equal first actions has a standard error of 1 % at the limit


@dataclass(frozen=True)
class Drift:
    """How far a faster model's answers are from those of the exact model, over some positions."""

    policy: float  # mean KL(exact || faster) over the legal actions, in nats
    value: float  # root mean square of the differences between the values
    agreement: float  # share of the positions where both like the same action best

    # A multiple of the drift of trained networks (November 2026).
    MOST_POLICY = 0.01
    MOST_VALUE = 0.05
    LEAST_AGREEMENT = 0.93

    def __str__(self) -> str:
        values = f"values by {self.value:.2g}, best actions agree in {self.agreement:.1%}"
        return f"policies differ by {self.policy:.2g} nats, {values}"

    @property
    def too_far(self) -> str:
        """The figures beyond their limits, in words, or ""."""
        found = list[str]()
        if not self.policy <= self.MOST_POLICY:
            found.append(f"policies differ by {self.policy:.2g} nats, at most {self.MOST_POLICY:g} is allowed")
        if not self.value <= self.MOST_VALUE:
            found.append(f"values differ by {self.value:.2g}, at most {self.MOST_VALUE:g} is allowed")
        if not self.agreement >= self.LEAST_AGREEMENT:
            found.append(f"best actions agree in {self.agreement:.2%}, expected at least {self.LEAST_AGREEMENT:.2%}")
        return "; ".join(found)


def drift(exact: Evaluator, faster: Evaluator, observations: NDArray[np.float32], legal: NDArray[np.bool_]) -> Drift:
    """How far the faster model is from the exact one, the float32 model that it was made from.

    The observations [B, C, H, W] float32 are drawn apart from those that an int8 model was calibrated on, and `legal`
    [B, A] has at least one action a row.
    """
    (logits, values), (its_logits, its_values) = (each.evaluate_batch(observations) for each in (exact, faster))
    log_priors, its_log_priors = _log_softmax(logits, legal), _log_softmax(its_logits, legal)
    gaps = np.subtract(log_priors, its_log_priors, where=legal, out=np.zeros_like(log_priors))
    return Drift(
        policy=float((np.exp(log_priors) * gaps).sum(1).mean()),
        value=float(np.sqrt(np.mean((values.astype(np.float64) - its_values) ** 2))),
        agreement=float(np.mean(log_priors.argmax(1) == its_log_priors.argmax(1))),
    )


def _log_softmax(logits: NDArray[np.float32], legal: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Over the legal actions; the others are -inf."""
    masked = np.where(legal, logits.astype(np.float64), -np.inf)
    masked -= masked.max(1, keepdims=True)
    return np.asarray(masked - np.log(np.exp(masked).sum(1, keepdims=True)))


def rows_to_compare(buffer: _core.ReplayBuffer, seed: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Positions of games for `drift`: observations [B, C, H, W] and legal actions [B, A], others for each seed.

    No draw of `calibration` has such a seed.
    """
    observations, legal, *_ = buffer.sample(_DRIFT_ROWS, seed=2 * seed + 1)
    return observations, legal
