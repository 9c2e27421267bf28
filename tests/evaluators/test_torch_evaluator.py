"""TorchEvaluator: says what the module and the exported model say, and refuses what it cannot do."""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import azpy
from azpy.errors import DeviceError, ModelError, RunError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import FusedTrunk, TorchEvaluator, _folded, _fused, evaluator_of_model
from azpy.learning.export import to_onnx
from azpy.learning.network import Network, to_arrays
from azpy.learning.own import network_of
from azpy.runs.folder import RunFolder
from azpy.settings import Settings
from networks import trained
from running import at_once

GAME = azpy.make_game("connect_four")
BUCKETS = (4, 16)


def network(seed: int = 0, spec: str = "2x16", game: azpy.State = GAME) -> Network:
    """A network with opinions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return trained(Network.of(game, spec), seed).eval()


def rows(count: int, game: azpy.State = GAME) -> Any:
    return np.random.default_rng(0).integers(0, 2, (count, *game.obs_shape)).astype(np.float32)


class Plain(nn.Module):
    """Knows no game, and gives values as a column."""

    def __init__(self, actions: int = 7) -> None:
        super().__init__()
        self.policy = nn.Linear(84, actions)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        flat = observations.flatten(1)
        return self.policy(flat), torch.tanh(flat.mean(1, keepdim=True))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_torch_matches_the_module_and_onnx_runtime(memory_format: Any) -> None:
    module: Any = network()
    module = module.to(memory_format=memory_format)
    evaluator = TorchEvaluator(module, game=GAME)
    logits, values = evaluator.evaluate_batch(rows(33))
    with torch.no_grad():
        expected_logits, expected_values = module(torch.from_numpy(rows(33)))
    np.testing.assert_allclose(logits, expected_logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(values, expected_values.numpy(), atol=1e-5)
    other_logits, other_values = OnnxEvaluator(to_onnx(module)).evaluate_batch(rows(33))
    np.testing.assert_allclose(logits, other_logits, atol=1e-4)
    np.testing.assert_allclose(values, other_values, atol=1e-5)
    assert np.abs(logits).max() > 0.5  # it does have opinions
    assert logits.dtype == values.dtype == np.float32
    assert logits.shape == (33, 7)
    assert values.shape == (33,)


def test_bf16_is_near_fp32() -> None:
    module = network()
    logits, values = TorchEvaluator(module, precision="bf16").evaluate_batch(rows(64))
    exact_logits, exact_values = TorchEvaluator(module).evaluate_batch(rows(64))
    assert logits.dtype == values.dtype == np.float32
    scale = np.abs(exact_logits).max()
    assert 0 < np.abs(logits - exact_logits).max() < 0.05 * scale  # 8 bits of mantissa, some layers deep
    assert np.abs(values - exact_values).max() < 0.05
    assert next(module.parameters()).dtype == torch.float32


def test_later_training_does_not_change_the_evaluator() -> None:
    module = network()
    evaluator = TorchEvaluator(module)
    before = evaluator.evaluate_batch(rows(3))[0]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    module.train()
    np.testing.assert_array_equal(evaluator.evaluate_batch(rows(3))[0], before)
    assert TorchEvaluator(module).network_id != evaluator.network_id


def test_network_id_tells_weights_and_structure_apart() -> None:
    same, again, other = (TorchEvaluator(network(seed)).network_id for seed in (0, 0, 1))
    assert same == again != other
    changed: Any = network()
    changed.trunk[0][1].running_mean += 0.5  # a statistic, not a parameter
    assert TorchEvaluator(changed).network_id != same
    assert TorchEvaluator(network(), precision="bf16").fork().network_id == same


@pytest.mark.parametrize("buckets", [(), BUCKETS])
def test_forks_and_threads_get_their_own_answers(buckets: tuple[int, ...]) -> None:
    module, wrong = network(), list[float]()
    expected = TorchEvaluator(module).evaluate_batch(rows(60))[0]
    evaluator = TorchEvaluator(module, buckets=buckets)

    def work(mine: TorchEvaluator, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            begin, count = rng.integers(0, 40), rng.integers(1, 20)
            logits, _ = mine.evaluate_batch(rows(60)[begin : begin + count])
            wrong.append(float(np.abs(logits - expected[begin : begin + count]).max()))

    users = enumerate((evaluator, evaluator.fork(), evaluator))
    at_once(*(partial(work, mine, number) for number, mine in users))
    assert len(wrong) == 120
    assert max(wrong) < 1e-4


@pytest.mark.parametrize("game", ["connect_four", "chess", "pig"])
def test_fixed_batch_sizes_give_the_same_answers(game: str) -> None:
    start = azpy.make_game(game)
    module = network(game=start)
    plain, fixed = TorchEvaluator(module), TorchEvaluator(module, buckets=BUCKETS)
    observations = rows(37, start)
    for mine in (fixed, fixed.fork()):
        for count in (37, 1, 5, 16, 20):
            for found, expected in zip(
                mine.evaluate_batch(observations[:count]), plain.evaluate_batch(observations[:count]), strict=True
            ):
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected, atol=1e-4)
    logits, values = fixed.evaluate_batch(observations[:0])
    assert (logits.shape, values.shape) == ((0, plain.num_actions), (0,))


def test_it_is_pickled_and_forked_with_memory_of_its_own() -> None:
    fixed = TorchEvaluator(network(), buckets=BUCKETS)
    again = pickle.loads(pickle.dumps(fixed))
    assert again.network_id == fixed.network_id
    for mine in (again, fixed.fork()):
        assert mine._slot is not fixed._slot
        np.testing.assert_array_equal(mine.evaluate_batch(rows(30))[0], fixed.evaluate_batch(rows(30))[0])
    assert TorchEvaluator(network()).fork()._slot is None


@pytest.mark.parametrize("buckets", [(0, 8), (8, 8), (32, 8)])
def test_buckets_must_ascend(buckets: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="buckets must be ascending"):
        TorchEvaluator(network(), buckets=buckets)


def test_folding_keeps_the_module_s_answers() -> None:
    module = network(spec="3x16+pool")
    with torch.no_grad():
        expected = module(torch.from_numpy(rows(50)))
    evaluator = TorchEvaluator(module)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in evaluator._forward._module.modules())
    assert any(isinstance(part, nn.BatchNorm2d) for part in module.modules())
    for found, other in zip(evaluator.evaluate_batch(rows(50)), expected, strict=True):
        np.testing.assert_allclose(found, other.numpy(), atol=1e-4)


def test_folding_that_would_change_answers_is_left() -> None:
    class Between(nn.Module):
        """Uses the layers of a Sequential one by one."""

        def __init__(self) -> None:
            super().__init__()
            self.pair = nn.Sequential(nn.Conv2d(2, 7, 3), nn.BatchNorm2d(7, affine=True))
            norm: Any = self.pair[1]
            norm.running_var.fill_(9.0)
            norm.running_mean.fill_(1.0)

        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            last = self.pair[1](self.pair[0](observations).abs())
            return last.reshape(len(last), 7, -1).mean(2), last.view(len(last), -1)[:, :1].tanh()

    module = Between().eval()
    with torch.no_grad():
        expected = module(torch.from_numpy(rows(10)))[0].numpy()
    evaluator = TorchEvaluator(module, game=GAME)
    np.testing.assert_allclose(evaluator.evaluate_batch(rows(10))[0], expected, atol=1e-6)


def test_an_answer_is_not_changed_by_the_next_batch() -> None:
    class Buffered(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.answers = torch.zeros(64, 7)  # written anew in each batch

        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            answers = self.answers[: len(observations)]
            answers.copy_(observations[:, 0, 0])
            return answers, torch.tanh(observations[:, 0, 0, :1])

    evaluator = TorchEvaluator(Buffered(), game=GAME)
    logits, _ = evaluator.evaluate_batch(rows(3))
    evaluator.evaluate_batch(1 - rows(3))
    np.testing.assert_array_equal(logits, rows(3)[:, 0, 0])


def test_a_module_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingsError, match="Plain has no obs_shape and num_actions: give game="):
        TorchEvaluator(Plain())
    with pytest.raises(ModelError, match=r"does not fit the game: it takes observations \[2, 6, 7\]"):
        TorchEvaluator(network(), game=azpy.make_game("tic_tac_toe"))
    with pytest.raises(ModelError, match=r"answers 2 rows with logits \[2, 9\]"):
        TorchEvaluator(Plain(actions=9), game=GAME)
    with pytest.raises(ModelError, match="Linear cannot be run: "):
        TorchEvaluator(nn.Linear(84, 7), game=GAME)
    broken: Any = network()
    with torch.no_grad():
        broken.trunk[0][0].weight.fill_(float("nan"))
        broken.trunk[0][0].bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN"):
        TorchEvaluator(broken)


def test_unavailable_devices_and_precisions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="no fast fp16 on the CPU"):
        TorchEvaluator(network(), precision="fp16")
    with pytest.raises(SettingsError, match="precision must be fp32, fp16 or bf16, got 'half'"):
        TorchEvaluator(network(), precision="half")
    for device in ("cuda:", "cpu:0", "auto"):
        with pytest.raises(SettingsError, match="device must be cpu, cuda, cuda:N or mps"):
            TorchEvaluator(network(), device)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="torch finds no Apple GPU"):
        TorchEvaluator(network(), "mps")
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(DeviceError, match="this torch is built for the CPU"):
        TorchEvaluator(network(), "cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="torch finds no GPU"):
        TorchEvaluator(network(), "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(DeviceError, match="GPU 1 does not exist: torch finds 1, numbered from 0"):
        TorchEvaluator(network(), "cuda:1")


# Checkpoints


def checkpoint(path: Path, module: Network) -> Path:
    with RunFolder(path, {"game": "connect_four", "network": module.spec}) as run:
        return run.save_checkpoint(
            1, model=to_arrays(module), optimizer={"steps": np.array(0)}, state={}, onnx=to_onnx(module)
        )


def test_a_checkpoint_is_loaded_by_its_folder(tmp_path: Path) -> None:
    module = network()
    folder = checkpoint(tmp_path / "run", module)
    evaluator = TorchEvaluator(folder, game=GAME)
    np.testing.assert_array_equal(
        evaluator.evaluate_batch(rows(9))[0], TorchEvaluator(module).evaluate_batch(rows(9))[0]
    )
    assert evaluator.network_id == TorchEvaluator(module).network_id
    assert str(folder) in repr(evaluator)
    for game in (None, "connect_four"):
        assert TorchEvaluator(tmp_path / "run", game=game).network_id == evaluator.network_id


def test_a_path_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a run folder or a checkpoint folder"):
        TorchEvaluator(tmp_path / "nowhere")
    (tmp_path / "a/b").mkdir(parents=True)
    with pytest.raises(RunError, match="is neither a run folder nor a checkpoint"):
        TorchEvaluator(tmp_path / "a/b")
    folder = checkpoint(tmp_path / "run", network())
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"model.safetensors": "0"}))
    with pytest.raises(RunError, match=r"model\.safetensors differs"):
        TorchEvaluator(folder)
    (tmp_path / "run/config.toml").write_text('game = "connect_four"\nnetwork = 3\n')
    with pytest.raises(RunError, match=r"config\.toml: network must be"):
        TorchEvaluator(folder)


def test_any_module_is_exported_and_compared(tmp_path: Path) -> None:
    module = Plain().train()
    azpy.export_onnx(module, "connect_four", tmp_path / "model.onnx")
    assert module.training
    exported = azpy.OnnxEvaluator(tmp_path / "model.onnx", game=GAME).evaluate_batch(rows(5))
    for one, other in zip(exported, TorchEvaluator(module, game=GAME).evaluate_batch(rows(5)), strict=True):
        assert np.abs(one - other).max() < 1e-5
    weights = {weight.name for weight in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert weights == {"policy.weight", "policy.bias"}


def test_a_module_that_cannot_be_exported_leaves_no_file(tmp_path: Path) -> None:
    class Fixed(Plain):
        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return super().forward(observations.reshape(len(observations), 84))

    class Moody(Plain):
        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, values = super().forward(observations)
            return logits if float(logits.sum().detach()) == 0 else -logits, values

    class Loud(Plain):
        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, values = super().forward(observations)
            return logits, 3 * values

    for module, text in (
        (Fixed(), r"len\(x\) and int\(...\) become constants; write x.shape\[0\]"),
        (Plain(actions=9), r"Plain gives logits \[3, 9\] for 3 rows, expected \[3, 7\]"),
        (Loud(), r"expected -1 to 1: end with torch.tanh"),
        (nn.Linear(84, 7), "Linear cannot be run"),
        (Plain().double(), r"policy.weight is torch.float64, expected torch.float32: call .float\(\)"),
    ):
        with pytest.raises(ModelError, match=text):
            azpy.export_onnx(module, GAME, tmp_path / "model.onnx")
    moody = Moody()
    nn.init.zeros_(moody.policy.bias)  # so that the row of zeros that is traced gives zeros
    with pytest.raises(ModelError, match="the exported model differs from the network"):
        azpy.export_onnx(moody, GAME, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("spec", ["3x16", "4x16+pool"])
def test_the_fused_trunk_computes_what_the_trunk_computes(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    """On the CPU, with what cuDNN's fused convolutions are said to compute; test_gpu.py runs theirs."""

    def convolved(x: Any, weight: Any, bias: Any, *place: Any) -> Any:
        return torch.relu(torch.conv2d(x, weight, bias, *place))

    def added(x: Any, weight: Any, skip: Any, share: float, bias: Any, *place: Any) -> Any:
        return torch.relu(torch.conv2d(x, weight, bias, *place) + share * skip)

    monkeypatch.setattr(torch, "cudnn_convolution_relu", convolved)
    monkeypatch.setattr(torch, "cudnn_convolution_add_relu", added)
    folded: Any = _folded(network(spec=spec), GAME.obs_shape, 1)
    fused = _fused(folded.trunk, GAME.obs_shape[1:])
    assert isinstance(fused, FusedTrunk)
    x = torch.from_numpy(rows(9))
    with torch.no_grad():
        torch.testing.assert_close(fused(x), folded.trunk(x))
    monkeypatch.setattr(torch, "cudnn_convolution_relu", Mock(side_effect=RuntimeError("no such kernel")))
    assert _fused(folded.trunk, GAME.obs_shape[1:]) is folded.trunk


@pytest.mark.parametrize("spec", ["2x16", "2x16+pool+wdl", f"{__name__}:own_network"])
def test_torch_plays_a_run_s_model_under_the_same_id(spec: str) -> None:
    settings = Settings("connect_four", network=spec, value_smoothing=0.1 if spec.endswith("+wdl") else 0.0)
    module: Any = network(spec=spec) if ":" not in spec else network_of(GAME, spec)
    module.value_smoothing = settings.value_smoothing
    model = to_onnx(module)
    mine = evaluator_of_model(model, settings, "cpu", game=GAME, precision="fp32", batch=100)
    exact = OnnxEvaluator(model, game=GAME)
    assert mine.network_id == exact.network_id
    assert mine.description.endswith("batches of 8, 32, 104 rows")
    for one, other in zip(mine.evaluate_batch(rows(40)), exact.evaluate_batch(rows(40)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


class Headed(Plain):
    """Has a head more, and a layer that shares its weights."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions)
        self.again, self.head = nn.Linear(84, actions), nn.Linear(84, 2)
        self.again.weight = self.policy.weight

    def forward(self, observations: torch.Tensor) -> Any:
        logits, values = super().forward(observations)
        flat = observations.flatten(1)
        return logits + self.again(flat), values, {"stones": self.head(flat)}

    def loss(self, name: str, output: torch.Tensor, batch: Any) -> torch.Tensor:
        return output.square().mean()


def own_network(obs_shape: tuple[int, int, int], num_actions: int) -> nn.Module:
    return Headed(num_actions)
