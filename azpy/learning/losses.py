"""Losses of the policy and of a value of three classes, and what a further head may learn from."""

from dataclasses import dataclass

from azpy.errors import missing_to_train

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise missing_to_train("torch") from error

__all__ = ["Rows", "class_losses", "policy_loss"]


@dataclass(frozen=True)
class Rows:
    """What a further head of a user's network may learn from: a part of a batch, on the device of the network.

    `observations` [B, C, H, W] float32, `legal` [B, A] bool, `policy` [B, A] float32, which sums to 1 a row, and
    `value` [B] float32 in [-1, 1] for the player to move.
    """

    observations: Tensor
    legal: Tensor
    policy: Tensor
    value: Tensor


def policy_loss(logits: Tensor, legal: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy over the legal actions; illegal actions' logits get exactly no gradient.

    Takes raw logits [B, A], legal [B, A] bool, and target [B, A], which sums to 1 a row and is 0 where illegal.
    """
    # Finite, as 0 * -inf is NaN, and so low that exp gives exactly 0.
    masked = logits.masked_fill(~legal, -1e9)
    return -(target * torch.log_softmax(masked, dim=1)).sum(dim=1).mean()


def class_losses(logits: Tensor, value: Tensor, smoothing: float) -> Tensor:
    """Cross-entropies [B] of the logits [B, 3] of win, draw and loss.

    A target [B] between two results is shared by them: 0.75 is a win by three quarters, and a draw by one. `smoothing`
    softens the targets, see `Learner`.
    """
    classes = torch.stack((value.clamp(min=0), 1 - value.abs(), (-value).clamp(min=0)), 1)
    s = smoothing
    softened = classes.new_tensor(
        [[1 - s, 2 / 3 * s, s / 3], [s, 1 - 2 * s, s], [s / 3, 2 / 3 * s, 1 - s]]  # of a win, a draw and a loss
    )
    return -(classes @ softened * torch.log_softmax(logits, 1)).sum(1)
