"""Networks that look trained, and rows for them."""

import numpy as np
import torch
from numpy.typing import NDArray

from azpy.learning.network import Network


def trained(network: Network, seed: int = 0) -> Network:
    """Weights and statistics as training leaves them: none is zero, no batch norm is the identity."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        kept = network.state_dict()
        for name, buffer in network.named_buffers():
            if buffer.is_floating_point() and name in kept:
                buffer.add_(torch.rand(buffer.shape, generator=generator))
    return network


def rows(shape: tuple[int, int, int], count: int = 64) -> NDArray[np.float32]:
    return np.random.default_rng(0).random((count, *shape), dtype=np.float32)
