"""How far the answers of a faster model are from those of the model it was made of, and how far they may be.

Whatever is not the float32 model passes this before it plays: an int8 twin on the CPU, half precision or TF32 on a GPU.
Knows nothing of how a model was made, or of what it runs on.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from azpy import _core

__all__ = ["Drift", "drift", "held_out"]

_DRIFT_ROWS = 2048


class _Evaluator(Protocol):
    def evaluate_batch(
        self, observations: NDArray[np.float32], /
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...


@dataclass(frozen=True)
class Drift:
    """How far a model's answers are from those of another, over some positions.

    Attributes:
        policy: mean KL(theirs || its) over the legal actions, in nats.
        value: root mean square of the differences between the values.
        agreement: share of the positions where both like the same action best.
    """

    policy: float
    value: float
    agreement: float

    # Some times what trained networks show: benches/int8.py.
    MOST_POLICY = 0.01
    MOST_VALUE = 0.05
    LEAST_AGREEMENT = 0.93

    def __str__(self) -> str:
        values = f"values by {self.value:.2g}, best actions agree in {self.agreement:.1%}"
        return f"policies differ by {self.policy:.2g} nats, {values}"

    @property
    def too_far(self) -> str:
        """What is beyond its limit, in words; nothing if all is well."""
        beyond = []
        if not self.policy <= self.MOST_POLICY:
            beyond.append(f"policies differ by {self.policy:.2g} nats, at most {self.MOST_POLICY:g} is allowed")
        if not self.value <= self.MOST_VALUE:
            beyond.append(f"values differ by {self.value:.2g}, at most {self.MOST_VALUE:g} is allowed")
        if not self.agreement >= self.LEAST_AGREEMENT:
            beyond.append(
                f"best actions agree in {self.agreement:.0%}, at least {self.LEAST_AGREEMENT:.0%} is asked for"
            )
        return "; ".join(beyond)


def drift(model: _Evaluator, twin: _Evaluator, observations: NDArray[np.float32], legal: NDArray[np.bool_]) -> Drift:
    """How far `twin` is from `model`.

    Args:
        model: the one that is right.
        twin: the other.
        observations: [B, C, H, W] float32; other positions than those a twin was calibrated on.
        legal: [B, A], at least one action a row.
    """
    (logits, values), (twin_logits, twin_values) = (each.evaluate_batch(observations) for each in (model, twin))
    log_priors, twin_log_priors = _log_softmax(logits, legal), _log_softmax(twin_logits, legal)
    gaps = np.subtract(log_priors, twin_log_priors, where=legal, out=np.zeros_like(log_priors))
    return Drift(
        policy=float((np.exp(log_priors) * gaps).sum(1).mean()),
        value=float(np.sqrt(np.mean((values.astype(np.float64) - twin_values) ** 2))),
        agreement=float(np.mean(log_priors.argmax(1) == twin_log_priors.argmax(1))),
    )


def _log_softmax(logits: NDArray[np.float32], legal: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Over the legal actions; the others are -inf."""
    masked = np.where(legal, logits.astype(np.float64), -np.inf)
    masked -= masked.max(1, keepdims=True)
    return np.asarray(masked - np.log(np.exp(masked).sum(1, keepdims=True)))


def held_out(buffer: _core.ReplayBuffer, seed: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Positions of games for `drift`: observations [B, C, H, W] and legal actions [B, A], others for each seed."""
    observations, legal, *_ = buffer.sample(_DRIFT_ROWS, seed=2 * seed + 1)
    return observations, legal
