"""azpy's own code for its networks: torch's numbers, the search's bits, and what is said without ONNX Runtime."""

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from numpy.typing import NDArray

import azpy
from azpy import _core
from azpy.cli.match import main
from azpy.devices import Device
from azpy.errors import MissingPackageError, ModelError, SettingsError, SettingsWarning
from azpy.evaluators.choice import open_network
from azpy.evaluators.net import NetEvaluator, shape_of
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.learning.export import check_parity, to_onnx
from azpy.learning.network import Network, to_arrays
from azpy.runs.folder import RunFolder
from azpy.settings.presets import PRESETS

SPECS = ["2x16+wdl", "2x20+pool", "3x96+pool+conv", "1x24+conv+wdl", "0x8"]


def fitted(network: Network) -> Network:
    """Weights as large as training leaves them, and none is zero."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            fan = parameter[0].numel() if parameter.ndim > 1 else 16
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * fan**-0.5)
        kept = network.state_dict()
        for name, buffer in network.named_buffers():
            if buffer.is_floating_point() and name in kept:
                buffer.add_(torch.rand(buffer.shape, generator=generator))
    return network.eval()


def own(game: Any, module: Network) -> _core.Net:
    said = shape_of(game, module.spec, module.value_smoothing)
    return _core.Net(json.dumps(said), safetensors.numpy.save(to_arrays(module)))


def says_the_same(game: Any, module: Network) -> None:
    rows = np.random.default_rng(0).random((3, *game.obs_shape), dtype=np.float32)
    check_parity(module, SimpleNamespace(evaluate_batch=own(game, module).evaluate), rows, 1e-5)


@pytest.mark.parametrize("game", PRESETS)
def test_own_code_matches_torch_for_each_preset(game: str) -> None:
    start = azpy.make_game(game)
    says_the_same(start, fitted(Network.of(start, PRESETS[game]["network"])))


@pytest.mark.parametrize("spec", SPECS)
def test_own_code_matches_torch_for_all_kinds_of_network(spec: str) -> None:
    for game in ("go(size=5)", "breakthrough(width=5,height=6)", "hex(size=4)"):
        start = azpy.make_game(game)
        module = fitted(Network.of(start, spec))
        module.value_smoothing = 0.05 if module.three_classes else 0.0
        says_the_same(start, module)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of Connect Four with a checkpoint of a network of its own."""
    monkeypatch.chdir(tmp_path)
    save(Path("c4"), fitted(Network.of(azpy.make_game("connect_four"), "2x16")))
    return Path("c4")


def save(path: Path, module: Network, **settings: Any) -> None:
    with RunFolder(path, {"game": "connect_four", "network": module.spec, **settings}) as folder:
        folder.save_checkpoint(1, model=to_arrays(module), optimizer={}, state={}, onnx=to_onnx(module))


@pytest.fixture
def without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


def test_a_run_is_opened_by_its_folder(run: Path) -> None:
    evaluator, model = NetEvaluator(run), OnnxEvaluator(run)
    rows = np.random.default_rng(1).random((9, *evaluator.obs_shape), dtype=np.float32)
    for mine, its in zip(evaluator.evaluate_batch(rows), model.evaluate_batch(rows), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-5)
    assert evaluator.row_exact
    assert evaluator.network_id == NetEvaluator(run / "checkpoints/000001").network_id != model.network_id
    again = pickle.loads(pickle.dumps(evaluator))
    assert (again.network_id, again._azpy_net is not None) == (evaluator.network_id, True)
    assert evaluator.fork() is evaluator


class Asked(NetEvaluator):
    """Answers in Python: a subclass may answer otherwise."""

    batches = 0

    def _evaluate(self, observations: NDArray[np.float32]) -> Any:
        self.batches += 1
        return super()._evaluate(observations)


class Even:
    """Holds an evaluator, as many do, and answers otherwise."""

    def __init__(self, net: NetEvaluator) -> None:
        self.net = net._azpy_net
        self.batches = 0

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
        self.batches += 1
        return np.zeros((len(observations), 7), np.float32), np.zeros(len(observations), np.float32)


def test_a_subclass_of_net_evaluator_gets_its_calls(run: Path) -> None:
    even = Even(NetEvaluator(run))
    azpy.Search(even, simulations=20).run(azpy.make_game("connect_four"))
    assert even.batches > 0


def test_searches_in_rust_find_what_searches_in_python_find(run: Path) -> None:
    start = azpy.make_game("connect_four")
    in_rust, in_python = NetEvaluator(run), Asked(run)
    found = [azpy.Search(one, simulations=300, eval_batch=8).run(start) for one in (in_rust, in_python)]
    assert in_python.batches > 30
    assert found[0].visits.tolist() == found[1].visits.tolist()
    assert found[0].value == found[1].value
    with azpy.Engine(in_rust, simulations=300, eval_batch=8) as engine:
        assert engine.submit(start).result(60).visits.tolist() == found[0].visits.tolist()
    options: dict[str, Any] = {"games": 6, "slots": 4, "simulations": 8, "pipelines": 2, "seed": 1}
    games = [[record.to_bytes() for record in azpy.SelfPlay(start, one, **options)] for one in (in_rust, in_python)]
    assert sorted(games[0]) == sorted(games[1])


def test_a_network_for_another_game_is_refused_before_it_answers(run: Path) -> None:
    with pytest.raises(ModelError, match="does not fit the game"):
        NetEvaluator(run, game="othello")
    with pytest.raises(azpy.EvaluatorError, match="the network does not fit the game"):
        azpy.Search(NetEvaluator(run), simulations=9).run(azpy.make_game("othello"))


def test_without_onnxruntime_a_run_plays_and_one_line_says_so(
    run: Path, without_onnxruntime: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(SettingsWarning, match="onnxruntime is not installed: azpy's own code computes the network"):
        evaluator = azpy.load_run(run).evaluator
    assert isinstance(evaluator, NetEvaluator)
    assert main([str(run), "uniform:4", "--games", "2", "--simulations", "4"]) == 0
    output = capsys.readouterr()
    assert output.err.count("onnxruntime is not installed") == 1
    assert "Error" not in output.err
    shutil.copy(run / "checkpoints/000001/model.onnx", "model.onnx")
    with pytest.raises(MissingPackageError, match="is a model file: pip install onnxruntime"):
        open_network("model.onnx", game=azpy.make_game("connect_four"))
    with pytest.raises(MissingPackageError, match="onnxruntime is not installed"):
        open_network(run, Device("cuda"), game=azpy.make_game("connect_four"))


def test_device_azpy_can_be_chosen(run: Path, printed: Any, one_line: Callable[..., str]) -> None:
    command = [str(run), f"{run}/checkpoints/000001/model.onnx@2", "--games", "2", "--simulations", "4"]
    assert "models run on: CPU, fp32, azpy's own code" in printed(main, [*command, "--device", "azpy"])
    with pytest.raises(SettingsError, match=r"azpy\.NetEvaluator"):
        OnnxEvaluator(run, "azpy")
    with pytest.raises(SettingsError, match="auto to train, got"):
        azpy.train("connect_four", device="azpy", out=str(run / "other"))
    one_line(main, [*command, "--device", "azpy:1"], "az-match: device must be cpu, ")


def test_device_azpy_refuses_other_networks_by_name(tmp_path: Path, run: Path) -> None:
    module = Network.of(azpy.make_game("connect_four"), "1x8")
    with RunFolder(tmp_path / "own", {"game": "connect_four", "network": "my_nets:make"}) as folder:
        folder.save_checkpoint(1, model=to_arrays(module), optimizer={}, state={}, onnx=b"")
    with pytest.raises(ModelError, match="my_nets:make is a torch module"):
        NetEvaluator(tmp_path / "own")
    with pytest.raises(ModelError, match="is not a run folder or a checkpoint folder"):
        NetEvaluator(tmp_path / "nowhere")
    (run / "checkpoints/000001/model.safetensors").write_bytes(b"1234")
    with pytest.raises(ModelError, match=r"model c4 cannot be read: .*model\.safetensors differs"):
        NetEvaluator(run)


def refusal(run: Path) -> str:
    with pytest.raises(ModelError) as raised:
        _ = azpy.load_run(run).evaluator
    return str(raised.value)


@pytest.mark.parametrize("damaged", ["", "manifest.json"])
def test_a_damaged_run_is_the_same_error_without_onnxruntime(
    run: Path, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    if damaged:
        (run / "checkpoints/000001" / damaged).write_text("{")
    else:
        shutil.rmtree(run / "checkpoints/000001")
    said = refusal(run)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert refusal(run) == said


def test_a_network_of_any_size_plays_on_another_board(tmp_path: Path) -> None:
    start, other = azpy.make_game("go(size=5)"), azpy.make_game("go(size=7)")
    module = fitted(Network.of(start, "2x16+pool+conv"))
    save(tmp_path / "go", module, game="go(size=5)")
    evaluator, larger = NetEvaluator(tmp_path / "go", game=other), Network.of(other, module.spec)
    larger.load_state_dict(module.state_dict())
    rows = np.random.default_rng(0).random((2, *other.obs_shape), dtype=np.float32)
    check_parity(larger.eval(), evaluator, rows, 1e-5)
