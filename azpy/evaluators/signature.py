"""Names and shapes of a model's input and outputs, and how its policy is read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.errors import ModelError, SettingsError

# Names that need not be given, in lower case; that of a policy is also its kind.
_INPUTS, _POLICIES, _VALUES = ("observations", "states"), ("logits", "priors"), ("values",)
_MOST_PLAYERS = 6
# A prior below the smallest normal float32 counts as that: the logarithm of 0 is no number.
_LEAST_PRIOR = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Signature:
    """A model's input and outputs."""

    input: str  # name of the observations [B, C, H, W]
    policy: str  # name of the policy [B, A]
    value: str  # name of the values [B] or [B, 1]; of several players without a zero sum [B, P]
    kind: str  # what the policy holds: "logits", or "priors" that sum to 1 over all actions
    obs_shape: tuple[int, int, int]  # (C, H, W)
    num_actions: int  # A
    num_values: int  # of a row: 1, or P
    batch: int | None  # B, if the model takes no other


def read_signature(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    model: str,
    named: Mapping[str, str | None] | None = None,
    policy_kind: str | None = None,
) -> Signature:
    """Finds a model's input, policy and value, and checks them.

    Args:
        inputs: of the model, as ONNX Runtime declares them.
        outputs: of the model; others than policy and value are ignored.
        model: its name, for errors.
        named: names of "input", "policy" and "value". The usual ones, in any case of letters: observations or States;
            logits, else Priors; values.
        policy_kind: "logits" or "priors"; if not given, the policy's name tells it.

    Raises:
        ModelError: a name is missing, or a shape or type is wrong.
        SettingsError: no such kind.
    """
    if policy_kind is not None and policy_kind not in _POLICIES:
        raise SettingsError(f"policy_kind must be logits or priors, got {policy_kind!r}")
    taken, given = {item.name: item for item in inputs}, {item.name: item for item in outputs}
    asked = {key: name for key, name in (named or {}).items() if name is not None}
    observations = _find(taken, asked.get("input"), _INPUTS)
    policies, values = _find(given, asked.get("policy"), _POLICIES), _find(given, asked.get("value"), _VALUES)
    if observations is None or policies is None or values is None or len(taken) > 1:
        wanted = {"input": "observations", "policy": "logits", "value": "values"} | asked
        raise ModelError(
            f"{model} maps {list(taken)} to {list(given)}, expected {[wanted['input']]} to "
            f"{[wanted['policy'], wanted['value']]}; other names can be given: input=..., policy=..., value=..."
        )
    kind = policy_kind or policies.name.lower()
    if kind not in _POLICIES:
        raise SettingsError(f"policy_kind must say whether {policies.name!r} of {model} holds logits or priors")
    for item, ranks in ((observations, (4,)), (policies, (2,)), (values, (1, 2))):
        if item.type != "tensor(float)":
            raise ModelError(f"{model}: {item.name} is {item.type}, expected tensor(float)")
        if len(item.shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            raise ModelError(f"{model}: {item.name} has shape {item.shape}, expected {expected} dimensions")
    num_values = values.shape[1] if len(values.shape) == 2 else 1
    if num_values not in range(1, _MOST_PLAYERS + 1):
        raise ModelError(f"{model}: {values.name} has shape {values.shape}, expected one value a row, or one a player")
    batches = [item.shape[0] if isinstance(item.shape[0], int) else None for item in (observations, policies, values)]
    batch = batches[0]
    if any(other not in (batch, None) for other in batches) or (batch is not None and batch < 1):
        raise ModelError(
            f"{model}: input, policy and values have batches of {batches}, expected the same, or free ones"
        )
    sizes = [*observations.shape[1:], policies.shape[1]]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ModelError(
            f"{model}: only the batch may be free, got {observations.name} [B, {sizes[:3]}], "
            f"{policies.name} {sizes[3:]}"
        )
    return Signature(observations.name, policies.name, values.name, kind, tuple(sizes[:3]), sizes[3], num_values, batch)


def _find(declared: dict[str, Any], wanted: str | None, usual: Iterable[str]) -> Any:
    """What has the name that was asked for, else the first of the usual names; None if nothing has it."""
    if wanted is not None:
        return declared.get(wanted)
    found = {name.lower(): item for name, item in declared.items()}
    return next((found[name] for name in usual if name in found), None)


def logits_of_priors(priors: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """Logits whose softmax over any set of actions is their priors divided by the sum of these.

    A prior of 0 counts as the smallest normal float32, 1.2e-38: next to any other it is 0 again, and where all of a set
    are 0 the softmax is even.

    Args:
        priors: [B, A] float32, at least 0.
        what: where they come from, for errors.

    Returns:
        [B, A] float32, all finite; NaN stays NaN.

    Raises:
        ModelError: a prior below 0.

    Example:
        >>> priors = np.array([[0.5, 0.25, 0.0, 0.25]], np.float32)
        >>> weights = np.exp(logits_of_priors(priors, "a model"))[0, 1:]  # the first action is not legal
        >>> (weights / weights.sum()).round(3).tolist()
        [0.5, 0.0, 0.5]
    """
    if (priors < 0).any():
        raise ModelError(
            f'{what} has a prior of {priors.min():g}, expected at least 0: logits need policy_kind="logits"'
        )
    return np.log(np.maximum(priors, _LEAST_PRIOR))
