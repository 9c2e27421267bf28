"""The user's own networks, optimizers and weights.

A network is a function of the user, which a setting names as `module:function`; so is an optimizer. Whoever calls has
made sure that the user typed the name (`azpy.games.names.refuse_untyped`): the module is imported.
"""

import pickle
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from azpy.errors import ModelError, SettingsError, one_line, raised
from azpy.game import value_width
from azpy.games.names import imported
from azpy.learning.muon import Muon
from azpy.learning.network import Network
from azpy.settings.run import is_own

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": lambda parameters, rate, decay: torch.optim.AdamW(parameters, rate, weight_decay=decay, fused=True),
    # Without momentum, as mirror descent needs it: a step follows the newest games alone.
    "adam": lambda parameters, rate, decay: torch.optim.AdamW(
        parameters, rate, (0.0, 0.999), 1e-5, weight_decay=decay, fused=True
    ),
    "muon": Muon,
    "sgd": lambda parameters, rate, decay: torch.optim.SGD(
        parameters, rate, momentum=0.9, weight_decay=decay, nesterov=True
    ),
}
_CHECKED_ROWS = 3
_STATE = ("state_dict", "model_state_dict", "model")  # under which name checkpoints of others hold the weights
_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module"}  # before the names of weights
_SAVE = "save the weights with torch.save(network.state_dict(), 'weights.pt')"
_MOST_NAMED = 3


def network_of(game: Any, spec: str) -> nn.Module:
    """An untrained network for a game: azpy's own, or what the user's function makes of `obs_shape` and `num_actions`.

    A module of the user's maps observations [B, C, H, W] to `(logits [B, A], values [B] or [B, 1])`, or to these and a
    dict of further outputs by name, whose losses its `loss(name, output, batch)` gives (`batch`: see `Rows`). In place
    of values in [-1, 1] it may give raw logits [B, 3] of a win, a draw and a loss. In a game of P players without a
    zero sum its values are [B, P] in [-1, 1], the player to move first. It gets the attributes `obs_shape` and
    `num_actions` if it has none.

    Raises:
        SettingsError: the function cannot be imported or called, or its module does not fit the game.
    """
    if not is_own(spec):
        return Network.of(game, spec)
    made = _called("network", spec, tuple(map(int, game.obs_shape)), int(game.num_actions))
    try:
        return checked(made, game)
    except ModelError as error:
        raise SettingsError(f"network {spec!r}: {error}") from error


def checked(given: Any, game: Any) -> nn.Module:
    """Return a module of the user's in evaluation mode, after a look at what it answers.

    Raises:
        ModelError: the module does not fit the game.
    """
    if not isinstance(given, nn.Module) or isinstance(given, torch.jit.ScriptModule):
        raise ModelError(f"got a {type(given).__name__}, expected a torch.nn.Module that is not TorchScript")
    if any(map(_is_compiled, given.modules())):
        raise ModelError("torch cannot export what torch.compile made: give the module without torch.compile")
    module: nn.Module = given
    name, shape, actions = type(module).__name__, tuple(map(int, game.obs_shape)), int(game.num_actions)
    for key, value in (("obs_shape", shape), ("num_actions", actions)):
        if not hasattr(module, key):
            setattr(module, key, value)
    parameters = dict(module.named_parameters())
    for weight, tensor in module.state_dict().items():
        # Buffers may have any numbers that numpy has.
        if tensor.dtype == torch.bfloat16 or (weight in parameters and tensor.dtype != torch.float32):
            raise ModelError(f"{weight} is {tensor.dtype}, expected torch.float32: call .float() on the module")
    try:
        with torch.no_grad():
            found = module.eval()(torch.ones(_CHECKED_ROWS, *shape))
            why = _misfit(found, actions, value_width(game))
    except Exception as error:  # of the user's own code, or of answers that are no tensors
        raise ModelError(f"{name} cannot be run: {raised(error)}") from error
    if why:
        raise ModelError(f"{name} {why}")
    width: Any = value_width(game)  # of any type: torch's modules declare their attributes as tensors
    module.num_values = width
    module.three_classes = width == 1 and found[1].ndim == 2 and found[1].shape[1] == 3
    if len(found) == 3 and found[2] and not callable(getattr(module, "loss", None)):
        raise ModelError(f"{name} has heads ({', '.join(found[2])}) but no method loss(name, output, batch): add one")
    return module


def _is_compiled(part: nn.Module) -> bool:
    """Whether torch.compile made a module, or its method `forward`."""
    forward: Any = part.forward
    # torch.compiler.disable sets the first attribute too.
    compiled = hasattr(forward, "_torchdynamo_orig_callable") and not hasattr(forward, "_torchdynamo_disable")
    return compiled or hasattr(part, "_orig_mod") or bool(part._compiled_call_impl)


def _misfit(found: Any, actions: int, num_values: int) -> str:
    """What is wrong with an answer to a few rows, if anything."""
    if not isinstance(found, tuple | list) or len(found) not in (2, 3):
        return f"returns a {type(found).__name__}, expected (logits, values) or (logits, values, heads)"
    logits, values, *heads = found
    expected = [_CHECKED_ROWS, actions]
    if list(logits.shape) != expected:
        return f"gives logits {list(logits.shape)} for {_CHECKED_ROWS} rows, expected {expected}"
    columns = [1] if values.ndim == 1 else list(values.shape[1:])
    if len(values) != _CHECKED_ROWS or columns not in ([[1], [3]] if num_values == 1 else [[num_values]]):
        each = [_CHECKED_ROWS] if num_values == 1 else [_CHECKED_ROWS, num_values]
        return f"gives values {list(values.shape)} for {_CHECKED_ROWS} rows, expected {each}"
    if not (logits.isfinite().all() and values.isfinite().all()):
        return "gives NaN or infinity"
    if columns == [num_values] and values.abs().max() > 1:
        return f"gives the value {values.abs().max():.3g}, expected -1 to 1: end with torch.tanh"
    if heads and not isinstance(heads[0], dict):
        return f"gives heads in a {type(heads[0]).__name__}, expected a dict by name"
    return ""


def optimizer_of(
    spec: str, parameters: list[tuple[str, nn.Parameter]], rate: float, decay: float
) -> torch.optim.Optimizer:
    """Return the optimizer of a run: a known one, or what the user's function makes of (parameters, rate, decay).

    Raises:
        SettingsError: no such optimizer; or the function cannot be imported or called, or gives no optimizer of these
            parameters.
    """
    if not is_own(spec):
        if spec not in _OPTIMIZERS:
            raise SettingsError(f"optimizer must be {', '.join(_OPTIMIZERS)} or module:function, got {spec!r}")
        return _OPTIMIZERS[spec](parameters, rate, decay)
    made = _called("optimizer", spec, parameters, rate, decay)
    if not isinstance(made, torch.optim.Optimizer):
        raise SettingsError(f"optimizer {spec!r} gives a {type(made).__name__}, expected a torch.optim.Optimizer")
    held = {id(parameter) for group in made.param_groups for parameter in group["params"]}
    missing = [name for name, parameter in parameters if id(parameter) not in held]
    if missing or len(held) > len(parameters):
        what = f"lacks {', '.join(missing[:_MOST_NAMED])}" if missing else "has parameters that are not the network's"
        raise SettingsError(
            f"optimizer {spec!r} {what}, expected the {len(parameters)} parameters passed to it (--freeze leaves "
            "some untrained)"
        )
    if not all("lr" in group for group in made.param_groups):
        raise SettingsError(f"optimizer {spec!r} has a group without 'lr', which the learning-rate schedule needs")
    return made


def _called(what: str, spec: str, *arguments: Any) -> Any:
    function = imported(what, spec)
    try:
        return function(*arguments)
    except Exception as error:  # the user's function can raise anything
        raise SettingsError(f"{what} {spec!r} cannot be made: {raised(error)}") from error


def outputs(network: nn.Module, observations: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Logits [B, A], values [B] or raw logits of three classes [B, 3], and the outputs of further heads by name.

    Values are [B, P] where the network's `num_values` is above 1.
    """
    logits, values, *heads = network(observations)
    # torch's trace would warn of a condition on the shape.
    three_classes = getattr(network, "three_classes", values.ndim == 2 and values.shape[1] == 3)
    wide = int(getattr(network, "num_values", 1)) > 1 or three_classes
    return logits, values if wide else values.reshape(-1), heads[0] if heads else {}


def answers(network: nn.Module, observations: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, A] and values [B], or [B, P] of several players: what plays."""
    logits, values, _ = outputs(network, observations)
    if values.ndim == 1 or int(getattr(network, "num_values", 1)) > 1:
        return logits, values
    win, _, loss = class_values(network)
    shares = values.softmax(1)  # do not make a tensor of the numbers: a CUDA graph cannot record the copy
    return logits, (shares[:, 0] * win + shares[:, 2] * loss).clamp(-1.0, 1.0)


def class_values(network: nn.Module) -> tuple[float, float, float]:
    """What each class counts in the value: so much that a softened sure win, draw or loss gives 1, 0 or -1."""
    win = 1 / (1 - 4 / 3 * float(getattr(network, "value_smoothing", 0.0)))
    return win, 0.0, -win


def weights_in(path: Path) -> dict[str, NDArray[Any]]:
    """Return the weights in a .safetensors, .pt, .pth, .pth.tar or .onnx file, by name. Nothing in it is run.

    Raises:
        SettingsError: another kind of file, or one that holds no weights by name.
    """
    try:
        match path.suffix:
            case ".safetensors":
                from safetensors.torch import load

                found = load(path.read_bytes())
            case ".pt" | ".pth" | ".tar":  # others write .pth.tar
                found = _saved_by_torch(path)
            case ".onnx":
                import onnx

                return weights_of_onnx(onnx.load(path))  # and what lies in files beside it
            case suffix:
                raise SettingsError(
                    f"{path} ends in {suffix!r}, expected .safetensors, .pt, .pth, .pth.tar or .onnx, or a run folder"
                )
        return {
            name: (tensor.float() if tensor.is_floating_point() else tensor).detach().numpy()
            for name, tensor in found.items()
        }
    except SettingsError:
        raise
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or one_line(error)}") from error
    except Exception as error:  # the packages' exceptions have no common base class
        raise SettingsError(f"{path} cannot be read as weights: {one_line(error)}; {_SAVE}") from error


def _saved_by_torch(path: Path) -> dict[str, Tensor]:
    """Return the state dict in a file, or in the checkpoint that the file holds.

    Raises:
        SettingsError: the file holds something else; the text says what, and what to save instead.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's error advises running the file's code
        with path.open("rb") as file:
            is_torchs = file.read(1) in (b"P", b"\x80")  # of a zip archive, of a pickle
        is_whole = isinstance(error, pickle.UnpicklingError) or "TorchScript" in str(error)
        if not is_torchs or is_whole:
            what = "holds a whole module or other Python objects" if is_torchs else "is not a file of torch.save"
            raise SettingsError(f"{path} {what}, expected weights by name: {_SAVE}") from error
        raise
    for _ in _STATE:  # look one level deep only: a file may contain itself
        names = _STATE if isinstance(found, Mapping) else ()
        found = next((found[name] for name in names if isinstance(found.get(name), Mapping)), found)
    if not isinstance(found, Mapping):
        raise SettingsError(f"{path} holds a {type(found).__name__}, expected weights by name: {_SAVE}")
    others = [f"{name!r} ({type(each).__name__})" for name, each in found.items() if not isinstance(each, Tensor)]
    if others:
        raise SettingsError(f"{path} has no tensor under {', '.join(others[:_MOST_NAMED])}: {_SAVE}")
    if numbers := [name for name in found if not isinstance(name, str)]:
        raise SettingsError(f"{path} has a weight under {numbers[0]!r}, expected names in text: {_SAVE}")
    return dict(found)


def weights_of_onnx(model: Any) -> dict[str, NDArray[Any]]:
    """Return the weights that an `onnx.ModelProto` holds itself, by name.

    Raises:
        ModelError: some are in another file, for which onnx would look in the working folder.
    """
    import onnx

    found = dict[str, NDArray[Any]]()
    for weight in model.graph.initializer:
        if onnx.external_data_helper.uses_external_data(weight):
            raise ModelError(
                f"the model keeps {weight.name} in a separate file, expected one file: torch.onnx.export(..., "
                "external_data=False) writes one"
            )
        array = onnx.numpy_helper.to_array(weight)
        is_float = "FLOAT" in onnx.TensorProto.DataType.Name(weight.data_type)  # numpy does not have bfloat16
        found[weight.name] = array.astype(np.float32) if is_float else array
    return found


def unwrapped(arrays: Mapping[str, NDArray[Any]], names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the weights by a network's `names`, without what torch's wrappers put before all of them.

    These are DataParallel, DistributedDataParallel, AveragedModel, torch.compile and FSDP.
    """
    found = {name: array for name, array in arrays.items() if name != "n_averaged" or name in names}
    # A network may have a part of such a name itself.
    while not found.keys() >= {*names} and len(heads := {name.partition(".")[0] for name in found}) == 1:
        if not heads <= _WRAPPERS:
            break
        found = {name.partition(".")[2]: array for name, array in found.items()}
    return found
