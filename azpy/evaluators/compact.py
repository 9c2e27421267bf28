"""How batches travel to a device and back in less memory: planes as bytes, logits of the legal actions alone.

Both are put into the graph of a model: bytes become the floats that they stand for before its first node, and the
logits of the actions that came with the batch are picked after its last. The answers are the same to the bit on the CPU
(tested), and expected to be on CUDA; of TensorRT, which fuses what it finds, it is not known. Knows nothing of ONNX
Runtime.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.protocol import first_line
from azpy.evaluators.signature import Signature

__all__ = ["ACTIONS", "BYTES", "LEGAL", "Form", "form_of", "with_form"]

# Names of the input that replaces the observations, of that of the legal actions, and of their logits.
BYTES, ACTIONS, LEGAL = "azpy_bytes", "azpy_actions", "azpy_legal"
# Fewer legal actions than this part of the policy are worth their gathering.
_WORTH = 4


@dataclass(frozen=True)
class Form:
    """What travels for a batch of B rows.

    Attributes:
        obs_shape: (C, H, W) of the game's observations.
        divisors: of the C planes, where these travel as bytes (`State.plane_divisors`), else None.
        legal_width: L, how many legal actions [B, L] go with a row, padded; None where all logits come back.
    """

    obs_shape: tuple[int, int, int]
    divisors: tuple[int, ...] | None = None
    legal_width: int | None = None

    @property
    def wide(self) -> list[int]:
        """Planes whose whole numbers take two bytes: the high ones are in planes of their own, behind all others."""
        return [plane for plane, divisor in enumerate(self.divisors or ()) if divisor > 0xFF]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C', H, W) of an observation as it travels."""
        planes, height, width = self.obs_shape
        return planes + len(self.wide), height, width

    @property
    def dtype(self) -> type[np.uint8] | type[np.float32]:
        """Of an observation as it travels."""
        return np.float32 if self.divisors is None else np.uint8

    def __str__(self) -> str:
        parts = [] if self.divisors is None else ["planes as bytes"]
        parts += [] if self.legal_width is None else [f"logits of at most {self.legal_width} legal actions"]
        return ", ".join(parts)

    def packed(self, observations: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Observations [B, C, H, W] as bytes [B, C', H, W].

        Raises:
            ModelError: observations of another dtype, or with numbers that no plane of the game holds.
        """
        if observations.dtype != np.float32:
            raise ModelError(f"observations must be float32, got {observations.dtype}")
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

    def random(self, rows: int, seed: int) -> NDArray[np.float32]:
        """Observations [B, C, H, W] of numbers that planes may have."""
        rng = np.random.default_rng(seed)
        if self.divisors is None:
            return rng.random((rows, *self.obs_shape), np.float32)
        divisors = np.array(self.divisors, np.float32)[:, None, None]
        numbers: NDArray[np.float32] = np.rint(rng.random((rows, *self.obs_shape), np.float32) * divisors)
        return numbers / divisors


class _Game(Protocol):
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...
    @property
    def num_actions(self) -> int: ...


def form_of(game: _Game | None, signature: Signature, compact: bool | None) -> Form:
    """What is worth sending for a game.

    Args:
        game: what says whether its planes are bytes and how many actions are legal at most; None: not known.
        signature: of the model.
        compact: True: whatever is possible; None: what is worth it; False: floats, and all logits.
    """
    if game is None or compact is False:
        return Form(signature.obs_shape)
    divisors = getattr(game, "plane_divisors", None)  # games in Python say neither
    if divisors is not None and (len(divisors) != signature.obs_shape[0] or 0 in divisors):
        divisors = None  # nonsense, with which a search takes no bytes either
    most = min(getattr(game, "most_legal_actions", signature.num_actions), signature.num_actions)
    worth = compact or _WORTH * most <= signature.num_actions
    return Form(signature.obs_shape, None if divisors is None else tuple(divisors), most if worth else None)


def with_form(model: bytes, signature: Signature, form: Form) -> bytes:
    """The model that takes and gives what `form` says, beside what it gave before.

    The input is then `BYTES` [B, C', H, W] uint8, if planes are bytes; `ACTIONS` [B, L] int32, each in [0, A), comes
    with it for a further output `LEGAL` [B, L] float32: the policy of these actions.

    Raises:
        ModelError: the model is older than what this takes (ONNX opset 11).
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
        if form.divisors is not None:
            _take_bytes(proto.graph, signature, form, onnx)
        if form.legal_width is not None:
            _pick_legal(proto.graph, signature, form.legal_width, onnx)
        data: bytes = proto.SerializeToString(deterministic=True)
    except Exception as error:  # onnx's exceptions share no base
        raise ModelError(f"the model cannot take {form}: {first_line(error)}") from error
    return data


def _take_bytes(graph: Any, signature: Signature, form: Form, onnx: Any) -> None:
    """Makes the observations of bytes: (low + 256 * high) / divisor."""
    planes, wide = len(form.divisors or ()), form.wide
    nodes: list[Any] = []

    def constant(array: NDArray[Any]) -> str:
        name = f"{BYTES}_constant{len(graph.initializer)}"
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    def node(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{BYTES}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def part(begin: int, end: int) -> str:
        return node("Slice", floats, *(constant(np.array([number])) for number in (begin, end, 1)))

    plain = all(divisor == 1 for divisor in form.divisors or ())
    floats = node("Cast", BYTES, to=onnx.TensorProto.FLOAT, output=signature.input if plain else "")
    whole = floats
    if wide:
        parts, begin = [], 0
        high = constant(np.array(256, np.float32))
        for number, plane in enumerate(wide):
            if plane > begin:
                parts.append(part(begin, plane))
            raised = node("Mul", part(planes + number, planes + number + 1), high)
            parts.append(node("Add", part(plane, plane + 1), raised))
            begin = plane + 1
        if begin < planes:
            parts.append(part(begin, planes))
        whole = node("Concat", *parts, axis=1)
    if not plain:
        divisors = np.array(form.divisors, np.float32).reshape(1, planes, 1, 1)
        node("Div", whole, constant(divisors), output=signature.input)
    taken = next(each for each in graph.input if each.name == signature.input)
    taken.name = BYTES
    tensor = taken.type.tensor_type
    tensor.elem_type = onnx.TensorProto.UINT8
    tensor.shape.dim[1].dim_value = form.shape[0]
    _put_first(graph, nodes)


def _put_first(graph: Any, nodes: list[Any]) -> None:
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])


def _pick_legal(graph: Any, signature: Signature, width: int, onnx: Any) -> None:
    """A further output: the policy of the actions of a further input."""
    policy = next(each for each in graph.output if each.name == signature.policy)
    batch = policy.type.tensor_type.shape.dim[0]
    for values, name, kind in ((graph.input, ACTIONS, "INT32"), (graph.output, LEGAL, "FLOAT")):
        values.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DataType.Value(kind), [1, width]))
        values[-1].type.tensor_type.shape.dim[0].CopyFrom(batch)
    graph.node.append(onnx.helper.make_node("GatherElements", [signature.policy, ACTIONS], [LEGAL], axis=1))
