"""The optimizer Muon (Jordan and others, 2024), for the convolutions of a board's network."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_MOMENTUM = 0.95
_SCALE = 0.2  # makes an update as large as AdamW's, so both take one learning rate (Liu and others, 2025)
_STEPS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)  # the Newton-Schulz iteration of Jordan and others


class Muon(torch.optim.Optimizer):
    """Muon for weights [O, I, H, W] of more than one cell; AdamW for all others.

    Muon reads a weight as a matrix [O, I * H * W]. It makes the singular values of each update nearly equal, so that
    directions with small gradients are learned too. `torch.optim.Muon` takes matrices alone.

    Args:
        named: parameters by name.
        rate: the learning rate of both.
        decay: the weight decay of both, decoupled from the gradient.
    """

    def __init__(self, named: list[tuple[str, nn.Parameter]], rate: float, decay: float) -> None:
        kernels = [each for _, each in named if _is_kernel(each)]
        rest = [each for _, each in named if not _is_kernel(each)]
        groups = [{"params": each} for each in (kernels, rest) if each]
        super().__init__(groups, {"lr": rate, "weight_decay": decay})
        self._adamw = torch.optim.AdamW(rest, rate, weight_decay=decay, fused=True) if rest else None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take a step with the gradients that the parameters have."""
        group, learned = self.param_groups[0], dict[torch.Size, list[tuple[nn.Parameter, Tensor]]]()
        for kernel in group["params"]:
            if _is_kernel(kernel) and kernel.grad is not None:
                learned.setdefault(kernel.shape, []).append((kernel, kernel.grad))
        for kernels in learned.values():
            updates = _orthogonal(torch.stack([self._momentum(*each) for each in kernels]).flatten(2))
            size = _SCALE * max(updates.shape[1:]) ** 0.5
            for (kernel, _), update in zip(kernels, updates, strict=True):
                kernel.mul_(1 - group["lr"] * group["weight_decay"])
                kernel.add_(update.reshape(kernel.shape), alpha=-group["lr"] * size)
        if self._adamw is not None:
            self._adamw.state = self.state  # another one after `load_state_dict`
            for mine in self._adamw.param_groups:
                mine["lr"] = self.param_groups[-1]["lr"]
            self._adamw.step()

    def _momentum(self, kernel: nn.Parameter, gradient: Tensor) -> Tensor:
        """Nesterov's momentum of a kernel, with its newest gradient."""
        state = self.state[kernel]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(kernel)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1 - _MOMENTUM)
        return gradient.lerp(momentum, _MOMENTUM)


def _is_kernel(parameter: Tensor) -> bool:
    return parameter.ndim == 4 and parameter[0, 0].numel() > 1


def _orthogonal(matrices: Tensor) -> Tensor:
    """Matrices [N, R, C] with the same singular vectors, and with singular values near 1."""
    a, b, c = _QUINTIC
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
