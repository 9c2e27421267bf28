"""The torch network: a residual net for boards, an MLP for flat features."""

import itertools
import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from azpy.errors import DeviceError, ModelError, SettingsError
from azpy.game import value_width
from azpy.settings.run import network_form

_HEAD_CHANNELS = 16  # ONNX Runtime's blocked kernels work on 16 channels at a time: fewer cost as much
_VALUE_CHANNELS = 32  # of a value head that pools
_SIDE, _SIDES = 14.0, 10.0  # KataGo's: what a board's side is measured from, and in
_OWN_PLANES = 3  # that a network of any size adds to the game's
_AREA = 64.0  # cells, in which planes are read that a game divides by its board's area
_VALUE_HIDDEN = 64
_CONSTANTS = (".cells", ".order", "class_values", "plane_factors")  # of a model in ONNX, no weights
_MOST_NAMED = 6  # weights that an error names


class Pool(nn.Module):
    """What the whole board has, for each channel: global pooling (Wu 2019, KataGo).

    16 channels for each 48 are pooled to their means and their maxima. At first the answer is 0.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        pooled = 16 * max(1, channels // 48)
        self.taken = _conv(channels, pooled, 3)
        self.mean, self.most = nn.Linear(pooled, channels), nn.Linear(pooled, channels)
        _scale(self.mean, 0.0)
        _scale(self.most, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, channels, H, W] to [B, channels, 1, 1]."""
        x = torch.relu(self.taken(x))
        pooled: Tensor = self.mean(x.mean((2, 3))) + self.most(x.amax((2, 3)))
        return pooled[:, :, None, None]


class Residual(nn.Module):
    """Two 3x3 convolutions around a skip; with `pooled`, the first one's channels get what the whole board has."""

    def __init__(self, channels: int, *, pooled: bool = False) -> None:
        super().__init__()
        self.first = _conv(channels, channels, 3)
        self.second = _conv(channels, channels, 3)
        self.pool = Pool(channels) if pooled else None

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, channels, H, W] to the same shape."""
        y = self.first(x) if self.pool is None else self.first(x) + self.pool(x)
        return torch.relu(x + self.second(torch.relu(y)))


class ByCell(nn.Module):
    """Orders planes of logits [B, n, H, W] as [B, A]: the n actions of the first group's cell, then those of the next.

    `cells` holds each group's cell, `planes` is n and `area` is H * W.
    """

    _index: Tensor

    def __init__(self, cells: Sequence[int], planes: int, area: int) -> None:
        super().__init__()
        self.cells, self.planes, self.area = cells, planes, area
        index = torch.arange(planes) * area + torch.tensor(cells)[:, None]
        self.register_buffer("_index", index.flatten(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, n, H, W] to [B, A]."""
        return x.flatten(1).index_select(1, self._index)

    def extra_repr(self) -> str:
        """Name the cells: `TorchEvaluator` hashes the repr to tell networks apart."""
        return f"cells={list(self.cells)}"


class Pooled(nn.Module):
    """Means over the board, maxima, and the means times how long the board's side is (Wu 2019, KataGo).

    A sum of points is a mean times the area: the third kind lets the head learn it for each size. Batch norm comes
    before the product, as its statistics at one size would take the side out again.
    """

    def __init__(self, channels: int, height: int, columns: int) -> None:
        super().__init__()
        self.factor = (math.sqrt(height * columns) - _SIDE) / _SIDES
        self.norm = nn.BatchNorm1d(2 * channels)  # means vary little beside what they are on average

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, channels, H, W] to [B, 3 channels]."""
        normed = self.norm(torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1))
        return torch.cat([normed, normed[:, : x.shape[1]] * self.factor], dim=1)


class ConvPolicy(nn.Module):
    """A policy head without weights that depend on the board: 1x1 convolutions to planes of actions.

    What is pooled over the board is added to the channels before the last convolution, and gives the logits of actions
    without a cell (Wu 2019, KataGo). `places` are `State.policy_planes`.
    """

    _index: Tensor

    def __init__(self, width: int, height: int, columns: int, places: Sequence[int | None]) -> None:
        super().__init__()
        area, free = height * columns, sum(place is None for place in places)
        self.planes = 1 + max(place for place in places if place is not None) // area
        self.first = _conv(width, width, 1)
        self.taken = nn.Sequential(_conv(width, _HEAD_CHANNELS, 1), nn.ReLU(), Pooled(_HEAD_CHANNELS, height, columns))
        self.spread = nn.Linear(3 * _HEAD_CHANNELS, width)
        self.last = nn.Conv2d(width, self.planes, 1)
        self.free = nn.Linear(3 * _HEAD_CHANNELS, free) if free else None
        beyond = itertools.count(self.planes * area)
        self.order = [next(beyond) if place is None else place for place in places]
        self.register_buffer("_index", torch.tensor(self.order), persistent=False)
        _scale(self.spread, 0.0)
        for layer in filter(None, (self.last, self.free)):
            _scale(layer, 0.1)

    @property
    def is_ordered(self) -> bool:
        """Whether the actions are the cells of the planes, one after the other, and then those without a cell."""
        return self.order == list(range(len(self.order)))

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, channels, H, W] to [B, A]."""
        pooled = self.taken(x)
        logits: Tensor = self.last(torch.relu(self.first(x) + self.spread(pooled)[:, :, None, None])).flatten(1)
        if self.free is not None:
            logits = torch.cat([logits, self.free(pooled)], dim=1)
        return logits if self.is_ordered else logits.index_select(1, self._index)


class Network(nn.Module):
    """Policy and value of a position.

    Args:
        obs_shape: (C, H, W); H * W > 1 makes a residual net, (F, 1, 1) an MLP.
        num_actions: A.
        spec: "BLOCKSxCHANNELS" of the residual net, or "LAYERSxWIDTH" of the MLP. With "+pool" behind it, the second
            block of a residual net and every third one after it has a `Pool`. With "+conv", no weight of a residual net
            depends on the board's size: its heads are convolutions and pooling. With "+wdl" at the end, the value has
            three classes: win, draw and loss.
        action_cells: as `State.action_cells`. The policy head then is two 1x1 convolutions, as in AlphaZero, in place
            of a matrix from all cells to all actions.
        policy_planes: as `State.policy_planes`, for "+conv".
        plane_divisors: as `State.plane_divisors`. With "+conv" a plane that is divided by the board's area is read in
            units of 64 cells, so that its numbers mean the same on each board.
        num_values: numbers of a position's value: one, that of the player to move; or one a player, the player to move
            first (see `azpy.game.value_width`).

    Raises:
        SettingsError: the spec has another form, the cells do not fit, or "+conv" and a game without policy planes.
    """

    plane_factors: Tensor

    def __init__(
        self,
        obs_shape: tuple[int, int, int],
        num_actions: int,
        spec: str,
        action_cells: Sequence[int] | None = None,
        policy_planes: Sequence[int | None] | None = None,
        plane_divisors: Sequence[int] | None = None,
        num_values: int = 1,
    ) -> None:
        super().__init__()
        match = network_form(spec)
        depth, width, pools, self.has_any_size = int(match[1]), int(match[2]), bool(match[3]), bool(match[4])
        self.obs_shape = (int(obs_shape[0]), int(obs_shape[1]), int(obs_shape[2]))
        self.num_actions = int(num_actions)
        self.spec, self.three_classes, self.num_values = spec, match[5] is not None, num_values
        if self.three_classes and num_values > 1:
            raise SettingsError(
                f"network {spec!r}: win, draw and loss are for zero-sum games of two players, but this game has "
                f"{num_values} players: leave out +wdl"
            )
        self.value_smoothing = 0.0  # of the targets that it learned from
        try:
            self.action_cells = None if action_cells is None else tuple(operator.index(cell) for cell in action_cells)
        except TypeError as error:
            raise SettingsError(f"action_cells must be whole numbers, got {action_cells!r}") from error
        planes, height, columns = self.obs_shape
        area = height * columns
        if self.action_cells is not None:
            fits = self.action_cells and area > 1 and all(0 <= cell < area for cell in self.action_cells)
            if not fits or self.num_actions % len(self.action_cells):
                raise SettingsError(
                    f"action_cells must be equal groups of the {self.num_actions} actions, each with one of "
                    f"{height} x {columns} cells, got {len(self.action_cells)}: {list(self.action_cells)}"
                )
        self.policy_planes, self.plane_divisors = policy_planes, plane_divisors
        if self.has_any_size:
            self._read_planes()
        last: nn.Module | None = None
        self.policy: nn.Module
        if self.is_convolutional:
            if pools and depth < 2:
                raise SettingsError(f"network {spec!r} needs at least two blocks to use +pool")
            # The order of making fixes a seed's initial weights.
            blocks = [Residual(width, pooled=pools and block % 3 == 1) for block in range(depth)]
            self.trunk = nn.Sequential(_conv(planes + self.own_planes, width, 3), nn.ReLU(), *blocks)
            if self.has_any_size:
                self.policy = ConvPolicy(width, height, columns, policy_planes or ())
            elif self.action_cells is None:
                last = nn.Linear(_HEAD_CHANNELS * area, self.num_actions)
                self.policy = nn.Sequential(*_head(width), last)
            else:
                last = nn.Conv2d(width, self.num_actions // len(self.action_cells), 1)
                ordered = ByCell(self.action_cells, last.out_channels, area)
                self.policy = nn.Sequential(_conv(width, width, 1), nn.ReLU(), last, ordered)
            value, features = _head(width), _HEAD_CHANNELS * area
            if self.has_any_size:
                value = [_conv(width, _VALUE_CHANNELS, 1), nn.ReLU(), Pooled(_VALUE_CHANNELS, height, columns)]
                features = 3 * _VALUE_CHANNELS
        else:
            if pools:
                raise SettingsError(
                    f"network {spec!r} cannot pool, because the game's features are flat: leave out +pool"
                )
            value, features = [], planes
            self.trunk = nn.Sequential(nn.Flatten())
            for _ in range(depth):
                self.trunk.extend([nn.Linear(features, width), nn.ReLU()])
                features = width
            last = nn.Linear(features, self.num_actions)
            self.policy = nn.Sequential(last)
        hidden, classes = nn.Linear(features, _VALUE_HIDDEN), 3 if self.three_classes else num_values
        self.value = nn.Sequential(*value, hidden, nn.ReLU(), nn.Linear(_VALUE_HIDDEN, classes))
        # Blocks start as the identity, priors even and values near 0.
        for module in self.modules():
            if isinstance(module, Residual):
                _scale(module.second[1], 0.0)
        for layer in filter(None, (last, self.value[-1])):
            _scale(layer, 0.1)

    def extra_repr(self) -> str:
        """Name the board of "+conv": `TorchEvaluator` hashes the repr to tell networks apart."""
        return f"{self.obs_shape}, {self.policy_planes}, {self.plane_divisors}" if self.has_any_size else ""

    @classmethod
    def of(cls, game: Any, spec: str) -> Self:
        """Make an untrained network for a game: any position of it, with `action_cells` or without."""
        facts = {name: getattr(game, name, None) for name in ("action_cells", "policy_planes", "plane_divisors")}
        return cls(game.obs_shape, game.num_actions, spec, **facts, num_values=value_width(game))

    def _read_planes(self) -> None:
        """Look at what the game says of its planes, and note how they are scaled."""
        planes, height, columns = self.obs_shape
        area = height * columns
        places = [place for place in self.policy_planes or () if place is not None]
        if area == 1 or not places:
            raise SettingsError(
                f"network {self.spec!r} needs a board and actions on its cells, but this game does not define "
                "policy_planes and action_cells: leave out +conv"
            )
        if len(self.policy_planes or ()) != self.num_actions or len({*places}) != len(places) or min(places) < 0:
            raise SettingsError(
                f"policy_planes must give each of the {self.num_actions} actions its own place (from 0), or None, "
                f"got {list(self.policy_planes or ())}"
            )
        factors = torch.ones(planes + _OWN_PLANES, height, columns)
        for plane, divisor in enumerate(self.plane_divisors or ()):
            factors[plane] = area / _AREA if divisor == area else 1.0
        factors[-2], factors[-1] = _nearness(height)[:, None], _nearness(columns)
        self.register_buffer("plane_factors", factors, persistent=False)

    def _seen(self, observations: Tensor) -> Tensor:
        """The planes by their factors and those of the network's own: ones, and how near the edges are.

        A dense head knows each cell. Convolutions know none: without these planes an empty cell is as what is beyond
        the edge.
        """
        return nn.functional.pad(observations, (0, 0, 0, 0, 0, _OWN_PLANES), value=1.0) * self.plane_factors

    def like(self, spec: str) -> "Network":
        """An untrained network of another spec for the same game."""
        facts = self.action_cells, self.policy_planes, self.plane_divisors
        return Network(self.obs_shape, self.num_actions, spec, *facts, num_values=self.num_values)

    @property
    def own_planes(self) -> int:
        """How many planes the network adds to those of the game."""
        return _OWN_PLANES if self.has_any_size else 0

    @property
    def is_convolutional(self) -> bool:
        """Whether this is a residual net, not an MLP."""
        return self.obs_shape[1] * self.obs_shape[2] > 1

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Map observations [B, C, H, W] to raw logits [B, A] and values [B] in (-1, 1) for the player to move.

        With three classes: in place of the values raw logits [B, 3] of a win, a draw and a loss. Where the value has a
        number for each player: values [B, P], the player to move first.
        """
        if tuple(observations.shape[1:]) != self.obs_shape:
            expected = ", ".join(map(str, self.obs_shape))
            raise ModelError(f"the network takes observations [B, {expected}], got {list(observations.shape)}")
        features = self.trunk(self._seen(observations) if self.has_any_size else observations)
        value = self.value(features)
        if self.three_classes:
            return self.policy(features), value
        value = torch.tanh(value)
        return self.policy(features), value if self.num_values > 1 else value.squeeze(1)


def torch_device(text: str) -> torch.device:
    """Return the device named "cpu", "cuda", "cuda:1" or "mps".

    Raises:
        SettingsError: another word.
        DeviceError: torch cannot use the device.
    """
    match = re.fullmatch(r"cpu|mps|cuda(?::(\d+))?", text, re.ASCII)
    if match is None:
        raise SettingsError(f"device must be cpu, cuda, cuda:N or mps, got {text!r}")
    if text == "mps" and not torch.backends.mps.is_available():
        raise DeviceError("torch finds no Apple GPU (mps) on this machine")
    if text in ("cpu", "mps"):
        return torch.device(text)
    if torch.version.cuda is None:
        raise DeviceError("this torch is built for the CPU: install one for CUDA, see https://pytorch.org")
    if not torch.cuda.is_available():
        raise DeviceError("torch finds no GPU: check the driver with nvidia-smi")
    index = int(match[1] or 0)
    if index >= torch.cuda.device_count():
        raise DeviceError(f"GPU {index} does not exist: torch finds {torch.cuda.device_count()}, numbered from 0")
    return torch.device("cuda", index)


def _conv(inputs: int, outputs: int, size: int) -> nn.Sequential:
    # Batch norm makes the bias redundant. It stays because saved weights hold it.
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2), nn.BatchNorm2d(outputs))


def _head(channels: int) -> list[nn.Module]:
    return [_conv(channels, _HEAD_CHANNELS, 1), nn.ReLU(), nn.Flatten()]


def _nearness(length: int) -> Tensor:
    """1 / (1 + d) along a side, d cells from the nearer end: the same near the ends of each length."""
    along = torch.arange(length)
    return 1.0 / (1 + torch.minimum(along, along.flip(0)))


def _scale(module: nn.Module, factor: float) -> None:
    """Multiply a layer's weight by `factor` and set its bias to 0."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.mul_(factor if name == "weight" else 0.0)


def grown(old: Network, new: Network) -> dict[str, Tensor]:
    """The weights of a network of more blocks, channels or pooling that answers as the old one does.

    What the old network has is copied. Its parts take nothing from new channels, and new blocks are the identity. New
    channels have the weights that `new` has now, so they can learn.

    Raises:
        ModelError: `new` has fewer blocks or channels, or another kind of value.
    """
    cannot = f"a network {new.spec} cannot start from the weights of a network {old.spec}"
    if old.three_classes != new.three_classes:
        raise ModelError(f"{cannot}: only one of them has a win/draw/loss value (+wdl)")
    if old.has_any_size != new.has_any_size:
        raise ModelError(f"{cannot}: only one of them has heads for any board size (+conv)")
    before, after, weights = old.state_dict(), new.state_dict(), dict[str, Tensor]()
    shapes = [(known.shape, after[name].shape) for name, known in before.items() if name in after]
    if before.keys() - after.keys() or any(was > now for pair in shapes for was, now in zip(*pair, strict=True)):
        raise ModelError(f"{cannot}: the new network has fewer blocks or channels, or lacks +pool")
    for name, fresh in after.items():
        weights[name] = fresh.clone()
        if name not in before:
            if not new.is_convolutional:  # a further layer of an MLP
                weights[name] = torch.eye(*fresh.shape) if fresh.ndim == 2 else torch.zeros_like(fresh)
            continue
        known = before[name]
        if fresh.ndim > 1:
            weights[name][: known.shape[0]] = 0.0
        weights[name][tuple(slice(length) for length in known.shape)] = known
    return weights


def spec_of(arrays: Mapping[str, NDArray[Any]], num_values: int = 1) -> str:
    """The spec of the network that has these weights, and so many numbers of a value.

    Raises:
        ModelError: they are of no network of ours.
    """
    blocks = sum(re.fullmatch(r"trunk\.\d+\.first\.0\.weight", name) is not None for name in arrays)
    layers = [array for name, array in arrays.items() if re.fullmatch(r"trunk\.\d+\.weight", name) and array.ndim]
    named = ((re.fullmatch(r"value\.(\d+)\.weight", name), array) for name, array in arrays.items())
    heads = {int(match[1]): array for match, array in named if match is not None and array.ndim == 2}
    # A file gives its arrays in any order.
    classes = "+wdl" if heads and len(heads[max(heads)]) == 3 and num_values == 1 else ""
    if "trunk.0.0.weight" in arrays and arrays["trunk.0.0.weight"].ndim:
        pool = "+pool" if any(".pool." in name for name in arrays) else ""
        size = "+conv" if "policy.last.weight" in arrays else ""
        return f"{blocks}x{len(arrays['trunk.0.0.weight'])}{pool}{size}{classes}"
    if layers:
        return f"{len(layers)}x{len(layers[0])}{classes}"
    raise ModelError(f"these weights do not belong to a network of azpy; found {', '.join(list(arrays)[:5]) or 'none'}")


def to_arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Copy all weights and statistics, by state_dict name."""
    return {name: tensor.detach().cpu().contiguous().numpy().copy() for name, tensor in network.state_dict().items()}


def weights_from(network: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The state of a network with the arrays of the same names and shapes.

    Whole numbers, such as the counters of batch norm, may be missing: an ONNX file has none.

    Raises:
        ModelError: weights are missing, left over or of another shape or kind; it lists them.
    """
    state, wrong = dict(network.state_dict()), list[str]()
    for name in dict.fromkeys([*state, *arrays]):
        mine, array = state.get(name), arrays.get(name)
        got = "missing" if array is None else str(tuple(array.shape))
        expected = "none" if mine is None else str(tuple(mine.shape))
        if mine is not None and array is None and not mine.is_floating_point():
            continue
        if mine is not None and array is not None and (array.dtype.kind == "f") != mine.is_floating_point():
            # A copy would lose the imaginary part of a complex number, and the scale of a quantized one.
            got, expected = f"{array.dtype} {got}", f"{str(mine.dtype).removeprefix('torch.')} {expected}"
        if got != expected:
            wrong.append(f"{name} is {got}, expected {expected}")
    if wrong:
        more = f"; and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise ModelError(f"the weights do not fit this network: {'; '.join(wrong[:_MOST_NAMED])}{more}")
    return state | {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def weights_of_model(network: Network, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays without the empty planes and the constants that a model has besides (`export.to_onnx`)."""
    arrays = {name: array for name, array in arrays.items() if not name.endswith(_CONSTANTS)}
    stem, planes = arrays.get("trunk.0.0.weight"), network.obs_shape[0] + network.own_planes
    if stem is None or stem.ndim != 4 or stem[:, planes:].any():
        return arrays
    return arrays | {"trunk.0.0.weight": stem[:, :planes]}


def load_arrays(network: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Load what `to_arrays` returned, with the errors of `weights_from`."""
    network.load_state_dict(weights_from(network, arrays))
