"""Sessions of ONNX Runtime, on exactly the device that was asked for.

ONNX Runtime falls back to the CPU silently. This module forbids that, and checks which node runs where.
"""

import importlib
import os
import threading
from functools import cache
from types import FunctionType
from typing import Any

from azpy.devices import Device, driver_problem, misplaced, reinstall, remedy
from azpy.errors import EXTRAS, DeviceError, MissingPackageError, ModelError, pip_install
from azpy.evaluators.protocol import first_line

# Making a session is not thread-safe, and lets go of the GIL meanwhile (seen in 1.31, November 2026). The thread that
# holds the lock may also free a session.
_SESSION_LOCK = threading.RLock()


def import_onnxruntime(device: Device) -> Any:
    """The module onnxruntime.

    Raises:
        MissingPackageError: it is not installed, does not load or is damaged; the text says what to install for the
            device.
    """
    try:
        import onnxruntime
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime":
            raise MissingPackageError(f"onnxruntime is not installed: {pip_install(*device.extras)}") from error
        raise MissingPackageError(f"onnxruntime does not load: {first_line(error)}; {reinstall(device)}") from error
    if not hasattr(onnxruntime, "InferenceSession"):  # what is left when one of two packages in one folder is removed
        raise MissingPackageError(f"onnxruntime is damaged: {reinstall(device)}")
    return onnxruntime


def _session_options(ort: Any, threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions; nothing is printed beside them
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning starves the search's threads
    # Weights in a second file would be looked for in the current folder, and two models with other weights could have
    # one network_id: they are looked for where nothing can be.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", f"{os.devnull}/none")
    return options


def open_on_cpu(ort: Any, data: bytes, threads: int, name: str) -> Any:
    """A session on the CPU.

    Raises:
        ModelError: `data` is no model that ONNX Runtime takes.
    """
    with _SESSION_LOCK:
        try:
            return ort.InferenceSession(data, _session_options(ort, threads), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base class
            if "External data path" in str(error):
                raise ModelError(
                    f"{name} keeps its weights in a separate file, expected one file: torch.onnx.export(..., "
                    "external_data=False) writes one"
                ) from error
            raise ModelError(f"{name} is not a usable ONNX model: {first_line(error)}") from error


def open_on_device(ort: Any, data: bytes, device: Device, providers: list[tuple[str, dict[str, str]]]) -> Any:
    """A session on exactly this device, another than the CPU, with `providers` as `provider_options` gives them.

    ONNX Runtime falls back to the CPU in silence, whatever its list of available providers says. So the session is
    asked which node went where. (`session.disable_cpu_ep_fallback` would also refuse a model for which a GPU provider
    leaves the arithmetic of shapes to the CPU on purpose.)

    Raises:
        DeviceError: the provider does not load, or does not take the model; or ONNX Runtime is too old to say so.
        MissingPackageError: this onnxruntime has no such provider.
    """
    ort.set_default_logger_severity(4)  # 1.31 warns of each session on CUDA, beside what the session itself logs
    options = _session_options(ort, 1)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    given: dict[str, Any] = {"enable_fallback": 0}  # nor does the Python side fall back, neither now nor in a run
    missing = ""
    if device.plugin:
        options.add_provider_for_devices([_plugin_device(ort, device)], providers[0][1])
    else:
        missing = _preload(ort)
        if device.provider not in ort.get_available_providers():
            if driver := driver_problem(device.index):  # no package helps where there is no driver
                raise DeviceError(f"{device.title} cannot be used: {driver}")
            absent = missing or "ONNX Runtime does not offer it"
            raise MissingPackageError(f"{device.title} cannot be used: {absent}; {remedy(device)}")
        given["providers"] = providers
    with _SESSION_LOCK:
        try:
            session = ort.InferenceSession(data, options, **given)
            fell_back = device.provider not in session.get_providers()
            why = None if fell_back else misplaced(nodes_by_provider(session), device)
        except Exception as error:  # onnxruntime's exceptions have no common base class
            fell_back, why = False, first_line(error)
    if fell_back:
        why = f"{missing or 'ONNX Runtime fell back to another provider'}; {remedy(device)}"
    if why:
        driver = None if device.plugin else driver_problem(device.index)
        raise DeviceError(f"{device.title} cannot be used: {driver or why}")
    return _OneAtATime(session) if device.kind == "webgpu" else session


class _OneAtATime:
    """A session of WebGPU. Two that run, open or end at once give wrong numbers or a crash (0.4.0, November 2026)."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, names: list[str], feed: dict[str, Any]) -> Any:
        with _SESSION_LOCK:
            return self._session.run(names, feed)

    def __del__(self) -> None:
        with _SESSION_LOCK:
            del self._session


def _plugin_device(ort: Any, device: Device) -> Any:
    """What ONNX Runtime calls the first device of its kind that a plugin finds."""
    try:
        with _SESSION_LOCK:
            _register(ort, device)
    except ModuleNotFoundError as error:
        absent = f"{EXTRAS[device.kind][0]} is not installed"
        raise MissingPackageError(f"{device.title} cannot be used: {absent}: {pip_install(device.kind)}") from error
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise DeviceError(f"{device.title} cannot be used: {first_line(error)}; {remedy(device)}") from error
    found = [each for each in ort.get_ep_devices() if each.ep_name == device.provider]
    if device.on_cpu:  # OpenVINO lists Intel's GPUs too
        found = [each for each in found if each.device.type == ort.OrtHardwareDeviceType.CPU]
    if not found:
        what = "no Intel CPU" if device.on_cpu else "no GPU with a driver"
        raise DeviceError(f"{device.title} cannot be used: {EXTRAS[device.kind][0]} finds {what} here")
    return found[0]


@cache
def _register(ort: Any, device: Device) -> None:
    """Load a plugin's library, once in a process."""
    plugin = importlib.import_module(device.plugin)
    ort.register_execution_provider_library(device.provider, plugin.get_library_path())


def nodes_by_provider(session: Any) -> dict[str, list[str]]:
    """Operators that each provider was given."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        raise DeviceError("this ONNX Runtime does not report where its nodes run: install a newer version")
    nodes: dict[str, list[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        nodes.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    return nodes


@cache
def _preload(ort: Any) -> str:
    """Load CUDA's libraries from where pip put them, once; return a line about the first missing one, or nothing."""
    said, preload = list[str](), ort.preload_dlls
    # A copy of the function that has its own `print`: redirecting stdout would redirect other threads too.
    names = preload.__globals__ | {"print": lambda *parts, **_: said.append(" ".join(map(str, parts)))}
    FunctionType(preload.__code__, names, None, preload.__defaults__, preload.__closure__)()
    return next((line for text in said for line in text.splitlines() if line.startswith("Failed")), "")
