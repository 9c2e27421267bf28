"""The torch network, its export to ONNX, and the check that both say the same.

A network maps `observations` [B, C, H, W] float32 to raw `logits` [B, A] and `values` [B] in (-1, 1) for the player
to move. Boards get a residual convolutional net, flat features an MLP. Knows nothing of ONNX Runtime (an evaluator
to compare with is handed in), search or files.
"""

import copy
import logging
import operator
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, SettingsError, missing_to_train

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise missing_to_train("torch") from error

__all__ = ["Network", "check_parity", "load_arrays", "parity", "to_arrays", "to_onnx", "torch_device"]

# A head's convolution: ONNX Runtime's blocked kernels work on 16 channels at a time, fewer would cost as much.
_HEAD_CHANNELS = 16
_VALUE_HIDDEN = 64
_OPSET = 20
PARITY_TOLERANCE = 1e-4


class _Evaluator(Protocol):
    def evaluate_batch(
        self, observations: NDArray[np.float32], /
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...


class _GameShape(Protocol):
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...
    @property
    def num_actions(self) -> int: ...


class _Residual(nn.Module):
    """Two 3x3 convolutions around a skip."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = _conv(channels, channels, 3)
        self.second = _conv(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Network(nn.Module):
    """Policy and value of a position.

    Args:
        obs_shape: (C, H, W); H * W > 1 makes a residual net, (F, 1, 1) an MLP.
        num_actions: A.
        spec: "BLOCKSxCHANNELS" of the residual net, or "LAYERSxWIDTH" of the MLP.
        action_cells: as `State.action_cells`; the policy head is then two 1x1 convolutions, as in AlphaZero, and not a
            matrix from all cells to all actions.

    Raises:
        SettingsError: a spec of another form, or cells that do not fit.

    Example:
        >>> network = Network((3, 6, 7), 7, "2x32")
        >>> logits, values = network(torch.zeros(4, 3, 6, 7))
        >>> list(logits.shape), list(values.shape)
        ([4, 7], [4])
    """

    def __init__(
        self,
        obs_shape: tuple[int, int, int],
        num_actions: int,
        spec: str = "5x64",
        action_cells: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        depth, width = parse_spec(spec)
        self.obs_shape = (int(obs_shape[0]), int(obs_shape[1]), int(obs_shape[2]))
        self.num_actions = int(num_actions)
        self.spec = spec
        try:
            self.action_cells = None if action_cells is None else tuple(operator.index(cell) for cell in action_cells)
        except TypeError as error:
            raise SettingsError(f"action_cells must be whole numbers, got {action_cells!r}") from error
        planes, height, columns = self.obs_shape
        cells = height * columns
        if self.action_cells is not None:
            fits = self.action_cells and cells > 1 and all(0 <= cell < cells for cell in self.action_cells)
            if not fits or self.num_actions % len(self.action_cells):
                raise SettingsError(
                    f"action_cells must be equal groups of the {self.num_actions} actions, each with one of "
                    f"{height} x {columns} cells, got {len(self.action_cells)}: {list(self.action_cells)}"
                )
        if cells > 1:
            blocks = [_Residual(width) for _ in range(depth)]
            self.trunk = nn.Sequential(_conv(planes, width, 3), nn.ReLU(), *blocks)
            if self.action_cells is None:
                last: nn.Module = nn.Linear(_HEAD_CHANNELS * cells, self.num_actions)
                self.policy = nn.Sequential(*_head(width, cells), last)
            else:
                last = nn.Conv2d(width, self.num_actions // len(self.action_cells), 1)
                self.policy = nn.Sequential(_conv(width, width, 1), nn.ReLU(), last, _ByCell(self.action_cells))
            self.value = nn.Sequential(*_head(width, cells), *_value_tail(_HEAD_CHANNELS * cells))
        else:
            layers: list[nn.Module] = [_Flatten(planes)]
            for index in range(depth):
                layers += [nn.Linear(width if index else planes, width), nn.ReLU()]
            self.trunk = nn.Sequential(*layers)
            last = nn.Linear(width if depth else planes, self.num_actions)
            self.policy = nn.Sequential(last)
            self.value = nn.Sequential(*_value_tail(width if depth else planes))
        self._start_near_zero(last)

    @classmethod
    def of(cls, game: "_GameShape", spec: str) -> Self:
        """An untrained network for a game.

        Args:
            game: any position of it, with `action_cells` or without.
            spec: as above.
        """
        return cls(game.obs_shape, game.num_actions, spec, getattr(game, "action_cells", None))

    @property
    def is_convolutional(self) -> bool:
        """Whether this is a residual net, not an MLP."""
        return self.obs_shape[1] * self.obs_shape[2] > 1

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Maps observations [B, C, H, W] to raw logits [B, A] and values [B] in (-1, 1) for the player to move."""
        if tuple(observations.shape[1:]) != self.obs_shape:
            expected = ", ".join(map(str, self.obs_shape))
            raise ModelError(f"the network takes observations [B, {expected}], got {list(observations.shape)}")
        features = self.trunk(observations)
        return self.policy(features), torch.tanh(self.value(features)).squeeze(1)

    def _start_near_zero(self, policy: nn.Module) -> None:
        """An untrained net says nearly nothing: blocks start as the identity, priors even, values near 0."""
        for module in self.modules():
            if isinstance(module, _Residual):
                _scale(module.second[1], 0.0)
        for layer in (policy, self.value[-1]):
            _scale(layer, 0.1)


def torch_device(text: str) -> torch.device:
    """The device that "cpu", "cuda" or "cuda:1" names: used or refused.

    Raises:
        SettingsError: another word.
        DeviceError: torch cannot use it.
    """
    kind, colon, index = text.partition(":")
    if kind not in {"cpu", "cuda"} or (colon and not (kind == "cuda" and index.isascii() and index.isdigit())):
        raise SettingsError(f"device must be cpu, cuda or cuda:N, got {text!r}")
    if kind == "cpu":
        return torch.device("cpu")
    if torch.version.cuda is None:
        raise DeviceError("this torch is built for the CPU: install one for CUDA, see https://pytorch.org")
    if not torch.cuda.is_available():
        raise DeviceError("torch finds no GPU: check the driver with nvidia-smi")
    if int(index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"there is no GPU {index}: torch counts {torch.cuda.device_count()}, from 0")
    return torch.device("cuda", int(index or 0))


def parse_spec(spec: str) -> tuple[int, int]:
    """("5x64") -> (5, 64): blocks and channels, or layers and width."""
    match = re.fullmatch(r"(\d{1,3})x(\d{1,4})", spec)
    if match is None or int(match[2]) == 0:
        raise SettingsError(f"network {spec!r} is not of the form BLOCKSxCHANNELS, such as 5x64")
    return int(match[1]), int(match[2])


def _conv(inputs: int, outputs: int, size: int) -> nn.Sequential:
    # The convolution keeps its bias although batch norm makes it redundant: without one, the exported graph computes
    # a bias of zeros from the batch and ONNX Runtime cannot fold batch norm away (half the speed, November 2026).
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2), nn.BatchNorm2d(outputs))


def _scale(module: nn.Module, factor: float) -> None:
    """Multiplies a layer's weight by `factor` and sets its bias to 0."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.mul_(factor if name == "weight" else 0.0)


class _Flatten(nn.Module):
    """Planes as one row of a size that is known when the graph is exported.

    `nn.Flatten` is exported as arithmetic on the batch's shape, which a GPU's provider would leave to the CPU.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self._features = features

    def forward(self, x: Tensor) -> Tensor:
        return x.contiguous().view(-1, self._features)


class _ByCell(nn.Module):
    """Planes of logits [B, n, H, W] as [B, A]: all actions of the first group's cell, then those of the next."""

    _cells: Tensor

    def __init__(self, cells: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("_cells", torch.tensor(cells), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        count, height, width = x.shape[1:]
        by_cell = x.permute(0, 2, 3, 1).contiguous().view(-1, height * width, count)
        # Not by_cell[:, cells]: ONNX Runtime's kernel for that reads memory of the host when a CUDA graph replays it.
        return torch.index_select(by_cell, 1, self._cells).view(-1, len(self._cells) * count)

    def extra_repr(self) -> str:
        return f"cells={self._cells.tolist()}"  # what tells two networks apart looks at this


def _head(channels: int, cells: int) -> list[nn.Module]:
    return [_conv(channels, _HEAD_CHANNELS, 1), nn.ReLU(), _Flatten(_HEAD_CHANNELS * cells)]


def _value_tail(features: int) -> list[nn.Module]:
    return [nn.Linear(features, _VALUE_HIDDEN), nn.ReLU(), nn.Linear(_VALUE_HIDDEN, 1)]


def to_arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Copies of all weights and statistics, by state_dict name."""
    return {name: tensor.detach().cpu().contiguous().numpy().copy() for name, tensor in network.state_dict().items()}


def load_arrays(network: nn.Module, arrays: dict[str, NDArray[Any]]) -> None:
    """Loads what `to_arrays` gave.

    Raises:
        ModelError: names or shapes of another network.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(array.shape) for name, array in arrays.items()}
    for name in [*expected, *found]:
        if expected.get(name) != found.get(name):
            raise ModelError(
                f"the saved weights are of another network: {name} is {found.get(name, 'missing')}, "
                f"expected {expected.get(name, 'none')}"
            )
    network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})


# Exporting takes seconds, refilling an exported graph with new weights milliseconds: one graph a shape and process.
_templates: dict[tuple[tuple[int, int, int], int, str, tuple[int, ...] | None], Any] = {}
# ONNX Runtime's blocked kernels take channels by 8 or 16. Other numbers of planes go a slower way, which shows where
# there are many (chess's 119: a fifth of the time of a 5x64 net, November 2026); few cost more when they are padded.
_BLOCK = 16
_STEM = "trunk.0.0.weight"


def to_onnx(network: Network) -> bytes:
    """The network as an ONNX model: `observations` -> `logits`, `values`, with a free batch.

    The first call of a process for a shape exports the graph; later calls put the weights into it by name.

    Raises:
        ModelError: the exported graph does not hold every weight under its own name.
    """
    key = (network.obs_shape, network.num_actions, network.spec, network.action_cells)
    if key not in _templates:
        _templates[key] = _export(network)
    template = _templates[key]
    weights = {name: array for name, array in to_arrays(network).items() if not name.endswith("num_batches_tracked")}
    slots = {initializer.name: initializer for initializer in template.graph.initializer}
    if padding := _stem_padding(network.obs_shape):
        weights[_STEM] = np.pad(weights[_STEM], ((0, 0), (0, padding), (0, 0), (0, 0)))
    for name, array in weights.items():
        slot = slots.get(name)
        if slot is None or tuple(slot.dims) != array.shape or array.dtype != np.float32:
            raise ModelError(f"the exported graph has no float32 initializer {name} of shape {list(array.shape)}")
        slot.ClearField("float_data")
        slot.raw_data = array.tobytes()
    data: bytes = template.SerializeToString(deterministic=True)
    return data


def _export(network: Network) -> Any:
    """A ModelProto with the graph of `network`; `optimize=False` keeps the names of the state_dict."""
    example = torch.zeros(2, *network.obs_shape)
    plain = copy.deepcopy(network).eval()
    for tensor in [*plain.parameters(), *plain.buffers()]:
        # As learners keep weights, channels last, the graph has copies: it must not depend on who exports first.
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    try:
        with _quiet():
            program = torch.onnx.export(
                plain,
                (example,),
                input_names=["observations"],
                output_names=["logits", "values"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                opset_version=_OPSET,
                dynamo=True,
                optimize=False,
                verbose=False,
            )
    except ImportError as error:
        raise missing_to_train(str(error.name)) from error
    if program is None:
        raise ModelError("torch exported no graph")
    proto = program.model_proto
    # Notes on where each node came from: they name files of this machine and mean nothing to a reader of the model.
    graph = proto.graph
    for item in [*graph.node, *graph.input, *graph.output, *graph.initializer, *graph.value_info, graph, proto]:
        del item.metadata_props[:]
    del graph.value_info[:]
    if padding := _stem_padding(network.obs_shape):
        _pad_stem(graph, padding)
    return proto


def _stem_padding(obs_shape: tuple[int, int, int]) -> int:
    """How many planes of zeros to add, where that is a small part."""
    planes, height, columns = obs_shape
    padding = -planes % _BLOCK
    return padding if height * columns > 1 and 8 * padding <= planes else 0


def _pad_stem(graph: Any, padding: int) -> None:
    """Has the first convolution take planes of zeros too; its weight is to be as wide."""
    from onnx import helper, numpy_helper

    stem = next(node for node in graph.node if _STEM in node.input)
    next(one for one in graph.initializer if one.name == _STEM).dims[1] += padding
    sizes = numpy_helper.from_array(np.array([0, 0, 0, 0, 0, padding, 0, 0], np.int64))
    # No initializer: quantization moves those out of the graph, where the inference of shapes does not see them.
    graph.node.insert(0, helper.make_node("Pad", [stem.input[0], "padding"], ["padded"]))
    graph.node.insert(0, helper.make_node("Constant", [], ["padding"], value=sizes))
    stem.input[0] = "padded"


@contextmanager
def _quiet() -> Iterator[None]:
    """No log lines and warnings from the exporter: they are about torch, not about the network."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def parity(network: nn.Module, evaluator: _Evaluator, observations: NDArray[np.float32]) -> float:
    """Largest difference between what torch and the evaluator say.

    Logits are compared relative to the largest of them (or 1, if all are smaller), values as they are.

    Args:
        network: compared in evaluation mode, in float32.
        evaluator: usually the exported model.
        observations: [B, C, H, W] float32.
    """
    was_training = network.training
    network.eval()
    with torch.no_grad():
        logits, values = (part.float().numpy() for part in network(torch.from_numpy(observations.copy())))
    network.train(was_training)
    other_logits, other_values = evaluator.evaluate_batch(observations)
    scale = max(1.0, float(np.abs(logits).max(initial=0.0)))
    # NaN on either side is the largest difference there is.
    differences = [np.abs(logits - other_logits).max() / scale, np.abs(values - other_values).max()]
    return float(np.nan_to_num(np.max(differences), nan=np.inf))


def check_parity(
    network: nn.Module,
    evaluator: _Evaluator,
    observations: NDArray[np.float32],
    tolerance: float = PARITY_TOLERANCE,
) -> float:
    """`parity`, refused above `tolerance`.

    Raises:
        ModelError: the evaluator does not play what the network says.
    """
    difference = parity(network, evaluator, observations)
    if not difference <= tolerance:
        raise ModelError(
            f"the exported model differs from the network by {difference:.2g}, expected at most {tolerance:.2g}"
        )
    return difference
