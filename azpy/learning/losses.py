"""The losses of a batch, and their gradients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from azpy.errors import ModelError, raised
from azpy.learning.network import Network
from azpy.learning.own import outputs

_FLOOR = 8.0  # in logits: what is hardly ever played stays where it can be learned again
_MIRROR_VALUE = 0.5  # weight of the value's loss beside that of `mirror_loss`


@dataclass(frozen=True)
class Rows:
    """The data for further heads of a user's network: a part of a batch, on the device of the network.

    `observations` [B, C, H, W] float32, `legal` [B, A] bool, `policy` [B, A] float32, which sums to 1 a row, and
    `value` [B] float32 in [-1, 1] for the player to move, or [B, P], one a player, the player to move first.
    """

    observations: Tensor
    legal: Tensor
    policy: Tensor
    value: Tensor


def gradient(
    network: nn.Module, batch: Sequence[Tensor], rows: int, bf16: bool, magnet: float | None = None
) -> tuple[float, float, float, dict[str, float]]:
    """Set a network's gradients to those of a batch's share of the mean losses over `rows`.

    A batch is observations [B, C, H, W], legal actions [B, A], policy targets [B, A], value targets [B] or [B, P]; and
    weights [B] of the value targets if these do not all count alike. With a `magnet` the policy's loss is that of
    `mirror_loss`, and the value's counts half.

    Returns:
        The batch's share of the means over `rows`: of the policy's loss, of the value's loss times its weight, of the
        weight, and of the losses of further heads.
    """
    observations, legal, policy, value, *weights = batch
    share = len(observations) / rows
    network.zero_grad()
    with torch.autocast(observations.device.type, torch.bfloat16, enabled=bf16):  # of this thread alone
        logits, values, heads = outputs(network, observations.contiguous(memory_format=memory_format(network)))
    if magnet is None:
        policy_part = policy_loss(logits.float(), legal, policy) * share
    else:
        policy_part = mirror_loss(logits.float(), legal, policy, magnet) * share
    weight: Tensor | float = weights[0].mean() * share if weights else share
    classes = bool(network.three_classes)
    if weights or classes:
        smoothing = float(getattr(network, "value_smoothing", 0.0))
        losses = _class_losses(values.float(), value, smoothing) if classes else (values.float() - value) ** 2
        losses = losses.mean(1) if losses.ndim == 2 else losses  # of the players' numbers
        value_part = (weights[0] * losses if weights else losses).mean() * share
    else:  # in one call: split calls would round gradients differently and change the bits of resumed runs
        value_part = nn.functional.mse_loss(values.float(), value) * share
    total, parts = policy_part + value_part * (1.0 if magnet is None else _MIRROR_VALUE), dict[str, float]()
    for name, output in heads.items():
        loss = _head_loss(network, name, output.float(), Rows(observations, legal, policy, value)) * share
        total, parts[name] = total + loss, loss.item()
    torch.autograd.backward(total)
    return policy_part.item(), value_part.item(), float(weight), parts


def _head_loss(network: Any, name: str, output: Tensor, rows: Rows) -> Tensor:
    """Return the loss of a further head, as the network's own `loss` gives it.

    Raises:
        ModelError: it fails, or gives no number that the head can be trained by.
    """
    try:
        loss = network.loss(name, output, rows)  # `network_of` looked for it
    except Exception as error:  # of the user's own code
        raise ModelError(f"the loss of head {name!r} fails: {raised(error)}") from error
    what = type(loss).__name__
    if isinstance(loss, Tensor):
        what = "detached" if output.requires_grad and not loss.requires_grad else ""
        what = what if loss.numel() == 1 else f"a tensor {list(loss.shape)}"
    if what:
        raise ModelError(f"the loss of head {name!r} is {what}, expected a tensor of one number with a gradient")
    return loss.reshape(())  # type: ignore[no-any-return]


def policy_loss(logits: Tensor, legal: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy over the legal actions; illegal actions' logits get exactly no gradient.

    Takes raw logits [B, A], legal [B, A] bool, and target [B, A], which sums to 1 a row and is 0 where illegal.
    """
    # Finite, as 0 * -inf is NaN, and so low that exp gives exactly 0.
    masked = logits.masked_fill(~legal, -1e9)
    return -(target * torch.log_softmax(masked, dim=1)).sum(dim=1).mean()


def mirror_loss(logits: Tensor, legal: Tensor, target: Tensor, magnet: float) -> Tensor:
    """Return the mean squared distance of the logits from those of a step of magnetic mirror descent.

    Logits count from their mean over the legal actions. The step's are log `target` / (1 + `magnet`), for a target
    proportional to exp(log policy + payoff): the magnet pulls towards equal shares (Sokota et al. 2022, step size 1).
    Logits are followed at most `_FLOOR` below the best. Takes what `policy_loss` takes.
    """
    wanted = (target.log() / (1.0 + magnet)).masked_fill(~legal, -torch.inf)
    wanted = (wanted - wanted.amax(1, keepdim=True)).clamp(min=-_FLOOR)
    return ((_centred(logits, legal) - _centred(wanted, legal)) ** 2).sum(1).mean()


def _centred(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the logits [B, A] less their mean over the legal actions of a row; 0 where illegal."""
    logits = logits.masked_fill(~legal, 0.0)
    return (logits - logits.sum(1, keepdim=True) / legal.sum(1, keepdim=True)).masked_fill(~legal, 0.0)


def _class_losses(logits: Tensor, value: Tensor, smoothing: float) -> Tensor:
    """Return the cross-entropies [B] of the logits [B, 3] of win, draw and loss.

    A target [B] between two results is shared by them: 0.75 is a win by three quarters, and a draw by one. `smoothing`
    softens the targets, see `Learner`.
    """
    classes = torch.stack((value.clamp(min=0), 1 - value.abs(), (-value).clamp(min=0)), 1)
    s = smoothing
    softened = classes.new_tensor(
        [[1 - s, 2 / 3 * s, s / 3], [s, 1 - 2 * s, s], [s / 3, 2 / 3 * s, 1 - s]]  # of a win, a draw and a loss
    )
    return -(classes @ softened * torch.log_softmax(logits, 1)).sum(1)


def memory_format(network: nn.Module) -> torch.memory_format:
    """Return how a network's convolutions are fastest; a module of the user's may rely on the usual order."""
    return torch.channels_last if isinstance(network, Network) else torch.contiguous_format
