"""An onnxruntime with GPUs that are not there: it records what it is told and fails as the real one does.

It answers row by row with sums of the row, in numpy, so that padding and chunks can be checked to the bit.
"""

import sys
import time
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from azpy.devices import KINDS
from azpy.evaluators.sessions import open_on_cpu

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
ACTIONS = 9


@dataclass
class Machine:
    """What is installed, what works, and what was asked for."""

    available: tuple[str, ...] = (TENSORRT, CUDA, CPU)
    loading: tuple[str, ...] = (TENSORRT, CUDA)  # providers that load
    nodes: dict[str, list[str]] = field(default_factory=dict)  # operators by provider; all on the first if empty
    tells_nodes: bool = True
    preload_says: str = ""
    open_error: str = ""  # raised by every session on a GPU
    installed: tuple[str, ...] = ("onnxruntime-gpu",)
    batches: list[int] = field(default_factory=list)  # rows of each batch on a GPU
    sessions: list["Session"] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @property
    def gpu_sessions(self) -> list["Session"]:
        return [session for session in self.sessions if session.asked[0][0] != CPU]


def answer(observations: Any) -> tuple[Any, Any]:
    """Logits [B, 9] and values [B] of a batch."""
    sums = observations.reshape(len(observations), 18).sum(axis=1, dtype=np.float32)
    return sums[:, None] + np.arange(ACTIONS, dtype=np.float32), np.tanh(sums)


class SessionOptions:
    def __init__(self) -> None:
        self.config: dict[str, str] = {}
        self.intra_op_num_threads = self.inter_op_num_threads = self.log_severity_level = 0

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.config[key] = value


@dataclass
class Value:
    name: str
    shape: list[Any]
    type: str = "tensor(float)"


class Session:
    def __init__(
        self, machine: Machine, data: bytes, options: SessionOptions, providers: list[Any], enable_fallback: int = 1
    ) -> None:
        self.machine, self.options = machine, options
        self.asked = [(name, {}) if isinstance(name, str) else name for name in providers]
        self.falls_back = bool(enable_fallback)
        machine.sessions.append(self)
        if data == b"broken":
            raise RuntimeError("not a protobuf\nsecond line")
        names = [name for name, _ in self.asked]
        if names == [CPU]:
            self.providers = [CPU]
            return
        if machine.open_error:
            raise RuntimeError(machine.open_error)
        self.providers = [name for name in names if name in machine.loading] + [CPU]

    def get_inputs(self) -> list[Value]:
        return [Value("observations", ["batch", 2, 3, 3])]

    def get_outputs(self) -> list[Value]:
        return [Value("logits", ["batch", ACTIONS]), Value("values", ["batch"])]

    def get_providers(self) -> list[str]:
        return self.providers

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        assert names == ["logits", "values"]
        if self.providers != [CPU]:
            time.sleep(1e-5)  # other threads run meanwhile, as they do beside a GPU
            self.machine.batches.append(len(feed["observations"]))
        return list(answer(feed["observations"]))


class TellingSession(Session):
    """Of an onnxruntime that can say which node went where."""

    def get_provider_graph_assignment_info(self) -> list[Any]:
        assert self.options.config.get("session.record_ep_graph_assignment_info") == "1"
        nodes = self.machine.nodes or {self.providers[0]: ["Conv", "Relu"]}
        return [
            types.SimpleNamespace(
                ep_name=name, get_nodes=lambda ops=ops: [types.SimpleNamespace(op_type=op) for op in ops]
            )
            for name, ops in nodes.items()
        ]


def install(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Machine:
    """Puts the fake in onnxruntime's place, on a machine with a driver and GPU unless a test says otherwise."""
    machine = Machine(**changes)
    module: Any = types.ModuleType("onnxruntime")
    module.__version__, module.__file__ = "1.31.1", "/nowhere/onnxruntime/__init__.py"
    module.SessionOptions, module.set_default_logger_severity = SessionOptions, lambda level: None
    module.get_available_providers = lambda: list(machine.available)
    kind = TellingSession if machine.tells_nodes else Session

    def open_session(data: bytes, options: SessionOptions, **arguments: Any) -> Session:
        machine.calls.append("session")
        return kind(machine, data, options, **arguments)

    def preload() -> None:
        machine.calls.append("preload")
        print(machine.preload_says, end="")

    module.InferenceSession, module.preload_dlls = open_session, preload
    monkeypatch.setitem(sys.modules, "onnxruntime", module)
    for plugin in (about.plugin for about in KINDS.values() if about.plugin):
        monkeypatch.setitem(sys.modules, plugin, None)
    monkeypatch.setattr("azpy.devices.installed_version", dict.fromkeys(machine.installed, "1.31.1").get)
    monkeypatch.setattr("azpy.evaluators.sessions.driver_problem", lambda index=0: None)
    return machine


def gpu_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, list[Any]]]:
    """Makes a GPU of the CPU for `OnnxEvaluator`, with the real ONNX Runtime: all but the devices is what a GPU gets.

    Returns:
        Model and providers of each session that is opened on a GPU from now on.
    """
    opened: list[tuple[bytes, list[Any]]] = []

    def open_session(ort: Any, data: bytes, device: Any, providers: list[Any]) -> Any:
        opened.append((data, providers))
        return open_on_cpu(ort, data, 1, "the model")

    monkeypatch.setattr("azpy.evaluators.onnx.open_on_gpu", open_session)
    return opened
