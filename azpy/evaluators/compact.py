"""How batches travel to a device and back in less memory: planes as bytes, logits of the legal actions alone.

Both are added to a model's graph: bytes become floats before its first node, and the logits of the actions of a batch
are picked after its last node. The answers are the same to the bit on the CPU (tested); this was not tested on a GPU.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.protocol import GameShape, first_line
from azpy.evaluators.signature import Signature

__all__ = ["ACTIONS", "BYTES", "LEGAL", "Compact", "compact_of", "with_compact"]

# The input in place of the observations, the input of the legal actions, and the output of their logits.
BYTES, ACTIONS, LEGAL = "azpy_bytes", "azpy_actions", "azpy_legal"
# Legal actions are gathered if they are at most this part of the policy.
_WORTH = 4


@dataclass(frozen=True)
class Compact:
    """How a batch of B rows travels.

    Attributes:
        obs_shape: (C, H, W) of the game's observations.
        divisors: of the C planes, if they travel as bytes (`State.plane_divisors`).
        legal_width: L, the number of legal actions [B, L] that go with a row, padded; None if all logits come back.
    """

    obs_shape: tuple[int, int, int]
    divisors: tuple[int, ...] | None = None
    legal_width: int | None = None

    @property
    def wide(self) -> list[int]:
        """Planes whose numbers take two bytes; the high bytes are in planes behind all others."""
        return [plane for plane, divisor in enumerate(self.divisors or ()) if divisor > 0xFF]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C', H, W) of an observation that travels."""
        planes, height, width = self.obs_shape
        return planes + len(self.wide), height, width

    @property
    def dtype(self) -> type[np.uint8] | type[np.float32]:
        """Of an observation that travels."""
        return np.float32 if self.divisors is None else np.uint8

    def __str__(self) -> str:
        parts = [] if self.divisors is None else ["planes as bytes"]
        parts += [] if self.legal_width is None else [f"logits of at most {self.legal_width} legal actions"]
        return ", ".join(parts)

    def packed(self, observations: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Observations [B, C, H, W] as bytes [B, C', H, W].

        Raises:
            ModelError: observations with numbers that no plane of the game holds.
        """
        divisors = np.array(self.divisors, np.float32)[:, None, None]
        whole = np.rint(observations * divisors)
        least, most = whole.min((0, 2, 3), initial=0), whole.max((0, 2, 3), initial=0)
        fits = (least >= 0) & (most <= np.where(divisors[:, 0, 0] > 0xFF, 0xFFFF, 0xFF))
        if not fits.all() or not np.array_equal(whole / divisors, observations):
            raise ModelError(
                "observations hold numbers that planes of the game cannot have, as bytes: give compact=False"
            )
        numbers = whole.astype(np.uint16)
        packed = np.empty((len(observations), *self.shape), np.uint8)
        packed[:, : len(divisors)] = numbers & 0xFF
        packed[:, len(divisors) :] = numbers[:, self.wide] >> 8
        return packed


def compact_of(game: GameShape | None, signature: Signature, compact: bool | None) -> Compact:
    """How batches of a game travel.

    Args:
        game: tells whether its planes are bytes and how many actions are legal at most, if it is known.
        signature: of the model.
        compact: True: as compact as possible; None: if it is worth it; False: floats, and all logits.
    """
    if game is None or compact is False:
        return Compact(signature.obs_shape)
    divisors = getattr(game, "plane_divisors", None)  # games in Python have neither attribute
    if divisors is not None and (len(divisors) != signature.obs_shape[0] or 0 in divisors):
        divisors = None  # a search does not send bytes then, either
    most = min(getattr(game, "most_legal_actions", signature.num_actions), signature.num_actions)
    worth = compact or _WORTH * most <= signature.num_actions
    return Compact(signature.obs_shape, None if divisors is None else tuple(divisors), most if worth else None)


def with_compact(model: bytes, signature: Signature, compact: Compact) -> bytes:
    """The model with compact batches; it keeps its outputs.

    If planes are bytes, its input is `BYTES` [B, C', H, W] uint8. If legal actions go with a batch, it also takes
    `ACTIONS` [B, L] int32, each in [0, A), and also gives their policy `LEGAL` [B, L] float32.

    Raises:
        ModelError: the model's ONNX opset is below 11.
        MissingPackageError: the package onnx is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError("planes as bytes need onnx: pip install onnx") from error
    try:
        proto = onnx.load_from_string(model)
        opset = next(each.version for each in proto.opset_import if each.domain in {"", "ai.onnx"})
        if opset < 11:
            raise ModelError(f"ONNX opset {opset}, expected at least 11")
        if compact.divisors is not None:
            _take_bytes(proto.graph, signature, compact, onnx)
        if compact.legal_width is not None:
            _pick_legal(proto.graph, signature, compact.legal_width, onnx)
        data: bytes = proto.SerializeToString(deterministic=True)
    except Exception as error:  # onnx's exceptions share no base
        raise ModelError(f"the model cannot take {compact}: {first_line(error)}") from error
    return data


def _take_bytes(graph: Any, signature: Signature, compact: Compact, onnx: Any) -> None:
    """Adds nodes for observations = (low + 256 * high) / divisor."""
    planes, wide = len(compact.divisors or ()), compact.wide
    nodes: list[Any] = []

    def constant(array: NDArray[Any]) -> str:
        name = f"{BYTES}_constant{len(graph.initializer)}"
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def node(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{BYTES}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    plain = all(divisor == 1 for divisor in compact.divisors or ())
    whole = node("Cast", BYTES, to=onnx.TensorProto.FLOAT, output=signature.input if plain else "")
    if wide:
        high, weight = np.zeros(planes, np.int64), np.zeros((planes, 1, 1), np.float32)
        high[wide], weight[wide] = np.arange(planes, planes + len(wide)), 256
        low = node("Gather", whole, constant(np.arange(planes)), axis=1)
        whole = node("Add", low, node("Mul", node("Gather", whole, constant(high), axis=1), constant(weight)))
    if not plain:
        divisors = np.array(compact.divisors, np.float32).reshape(1, planes, 1, 1)
        node("Div", whole, constant(divisors), output=signature.input)
    taken = next(each for each in graph.input if each.name == signature.input)
    taken.name = BYTES
    tensor = taken.type.tensor_type
    tensor.elem_type = onnx.TensorProto.UINT8
    tensor.shape.dim[1].dim_value = compact.shape[0]
    for each in reversed(nodes):
        graph.node.insert(0, each)


def _pick_legal(graph: Any, signature: Signature, width: int, onnx: Any) -> None:
    """Adds an input of actions, and an output of their policy."""
    policy = next(each for each in graph.output if each.name == signature.policy)
    batch = policy.type.tensor_type.shape.dim[0]
    for values, name, kind in ((graph.input, ACTIONS, "INT32"), (graph.output, LEGAL, "FLOAT")):
        values.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DataType.Value(kind), [1, width]))
        values[-1].type.tensor_type.shape.dim[0].CopyFrom(batch)
    graph.node.append(onnx.helper.make_node("GatherElements", [signature.policy, ACTIONS], [LEGAL], axis=1))
