"""On a machine with an NVIDIA GPU: `pytest -m gpu`. What cannot run there fails and says why; nothing is skipped.

It takes the extras tensorrt (which brings CUDA's provider too) and train, and a torch for CUDA.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import azpy
from azpy.devices import BUCKETS, Device, misplaced
from azpy.errors import DeviceError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.learning.network import Network
from models import probe_model
from running import at_once

pytestmark = pytest.mark.gpu

GAME = azpy.make_game("connect_four")
TF32 = 5e-3  # how far numbers of 10 bits may be
MODEL = probe_model(GAME.obs_shape, GAME.num_actions, layers=10, channels=64)


def rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(0, 2, (count, *GAME.obs_shape)).astype(np.float32)


def difference(one: Any, other: Any, count: int = 300, seed: int = 0) -> tuple[float, float]:
    """Largest difference of the logits, relative to the largest logit, and of the values."""
    (logits, values), (other_logits, other_values) = (part.evaluate_batch(rows(count, seed)) for part in (one, other))
    scale = np.abs(logits).max()
    return float(np.abs(logits - other_logits).max() / scale), float(np.abs(values - other_values).max())


@pytest.fixture(scope="module")
def cpu() -> OnnxEvaluator:
    return OnnxEvaluator(MODEL, game=GAME)


@pytest.fixture(scope="module")
def cuda() -> OnnxEvaluator:
    return OnnxEvaluator(MODEL, "cuda", game=GAME)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 511, 512, 513, 2048, 2500])
def test_cuda_matches_the_cpu(count: int, cpu: OnnxEvaluator, cuda: OnnxEvaluator) -> None:
    logits, values = cuda.evaluate_batch(rows(count))
    assert (logits.shape, values.shape) == ((count, 7), (count,))
    if count:
        policy, value = difference(cpu, cuda, count)
        assert policy < TF32
        assert value < TF32


def test_the_device_is_reported(cuda: OnnxEvaluator) -> None:
    assert cuda.device == "cuda:0"
    assert cuda.description == "CUDA, GPU 0, fp32, batches of 8, 32, 128, 256, 512 rows"
    auto = OnnxEvaluator(MODEL, "auto")
    assert "rows/s of this network, the CPU" in auto.notes[0]
    with pytest.raises(DeviceError, match="GPU 99 does not exist"):
        OnnxEvaluator(MODEL, "cuda:99")


def test_a_row_has_the_same_bits_however_full_its_bucket_is(cuda: OnnxEvaluator) -> None:
    for bucket in BUCKETS:
        logits, values = cuda.evaluate_batch(rows(bucket))
        for count in {1, bucket // 2 + 1, bucket - 1} - {0}:
            if min(size for size in BUCKETS if size >= count) == bucket:
                fewer_logits, fewer_values = cuda.evaluate_batch(rows(bucket)[:count])
                np.testing.assert_array_equal(fewer_logits, logits[:count])
                np.testing.assert_array_equal(fewer_values, values[:count])


def test_forks_answer_at_the_same_time(cpu: OnnxEvaluator) -> None:
    evaluator = OnnxEvaluator(MODEL, "cuda")
    forks = [evaluator, evaluator.fork(), evaluator.fork()]
    worst: list[float] = []

    def work(fork: OnnxEvaluator, seed: int) -> None:
        for count in np.random.default_rng(seed).integers(1, 600, 60).tolist():
            worst.extend(difference(cpu, fork, count, seed))

    at_once(*(partial(work, fork, seed) for seed, fork in enumerate(forks)))
    assert len(worst) == 360
    assert max(worst) < TF32


def test_the_exported_network_runs_on_cuda_whole() -> None:
    from azpy.devices import provider_options
    from azpy.evaluators.sessions import import_onnxruntime, nodes_by_provider, open_on_device

    for game, spec in (("connect_four", "5x64"), ("pig", "2x64")):
        state = azpy.make_game(game)
        model = to_onnx(Network(state.obs_shape, state.num_actions, spec))
        device = Device("cuda")
        ort = import_onnxruntime(device)
        options = provider_options(device, 1, {"observations": state.obs_shape}, BUCKETS, Path())
        nodes = nodes_by_provider(open_on_device(ort, model, device, options))
        assert misplaced(nodes, device) is None
        assert "CPUExecutionProvider" not in nodes


def test_a_model_that_computes_with_its_shape_runs_on_cuda() -> None:
    weights = np.random.default_rng(0).normal(size=(84, 7)).astype(np.float32)
    nodes = [
        helper.make_node("Shape", ["observations"], ["size"], start=0, end=1),
        helper.make_node("Concat", ["size", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["observations", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        helper.make_node("ReduceMean", ["flat", "axis"], ["values"], keepdims=0),
    ]
    constants = {"rest": np.array([84]), "axis": np.array([1]), "weights": weights}
    graph = helper.make_graph(
        nodes,
        "shaped",
        [helper.make_tensor_value_info("observations", onnx.TensorProto.FLOAT, ["batch", *GAME.obs_shape])],
        [
            helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 7]),
            helper.make_tensor_value_info("values", onnx.TensorProto.FLOAT, ["batch"]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()
    assert max(difference(OnnxEvaluator(model), OnnxEvaluator(model, "cuda"))) < TF32


def test_tensorrt_matches_the_cpu(tmp_path: Path, cpu: OnnxEvaluator) -> None:
    tensorrt = OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path)
    assert max(difference(cpu, tensorrt)) < 2e-2  # TensorRT may use TF32
    half = OnnxEvaluator(MODEL, "tensorrt", precision="fp16", cache_dir=tmp_path)
    assert max(difference(cpu, half)) < 2e-2
    assert tensorrt.device == "tensorrt:0"
    engines = list(tmp_path.glob(f"*{cpu.network_id:016x}*.engine"))
    assert engines
    other_model = probe_model(GAME.obs_shape, GAME.num_actions, layers=10, channels=64, seed=1)
    other = OnnxEvaluator(other_model, "tensorrt", cache_dir=tmp_path)
    assert max(difference(OnnxEvaluator(other_model), other)) < 2e-2  # its own engine, not the first network's
    assert max(difference(cpu, other)) > 0.1
    again = OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path)
    assert max(difference(tensorrt, again)) < 1e-6
    assert list(tmp_path.glob(f"*{cpu.network_id:016x}*.engine")) == engines


@pytest.mark.parametrize(("precision", "bound"), [("fp32", 5e-3), ("fp16", 2e-2), ("bf16", 1e-1)])
@pytest.mark.parametrize("count", [1, 8, 9, 300, 512, 700])
def test_torch_on_cuda_is_near_torch_on_the_cpu(precision: str, bound: float, count: int) -> None:
    network = strong_network()
    exact = TorchEvaluator(network)
    evaluator = TorchEvaluator(network, "cuda", precision=precision)
    for mine in (evaluator, evaluator.fork()):
        assert max(difference(exact, mine, count)) < bound
    assert evaluator.device == "cuda:0"


def strong_network(spec: str = "5x64", seed: int = 0) -> Network:
    """A network with opinions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = Network(GAME.obs_shape, GAME.num_actions, spec)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.05)
    return made


def test_self_play_on_torch() -> None:
    evaluator = TorchEvaluator(strong_network("2x16"), "cuda", precision="fp16")
    fresh = TorchEvaluator(strong_network("2x16", seed=1), "cuda", precision="fp16")
    options: dict[str, Any] = {"slots": 96, "pipelines": 3, "simulations": 16, "eval_batch": 4, "games": 2_000}
    with azpy.SelfPlay("connect_four", evaluator, **options) as games:
        records = [next(games) for _ in range(20)]
        games.swap(fresh)
        records += games
    assert sorted(record.game_id for record in records) == list(range(2_000))
    used = {int(network_id) for record in records for network_id in record.networks}
    assert used == {evaluator.network_id, fresh.network_id}


def test_fitting_on_the_gpu_matches_the_cpu_and_resumes() -> None:
    def batch(rows: int, *, seed: int, **_: Any) -> tuple[NDArray[Any], ...]:
        rng = np.random.default_rng(seed)
        policy = rng.random((rows, GAME.num_actions), dtype=np.float32)
        return (
            rng.integers(0, 2, (rows, *GAME.obs_shape)).astype(np.float32),
            np.ones((rows, GAME.num_actions), np.bool_),
            policy / policy.sum(1, keepdims=True),
            rng.choice([-1.0, 1.0], rows).astype(np.float32),
        )

    class Drawn:
        sample = staticmethod(batch)

    def fitted(device: str, steps: int, saved: Learner | None = None) -> tuple[Learner, list[float]]:
        learner = Learner(GAME, "3x32", device=device)
        if saved is not None:
            learner.load(saved.model_arrays(), saved.optimizer_arrays())
        batches: Any = Drawn()
        losses = learner.fit(batches, steps, batch_size=128, root_value_weight=0.0)
        return learner, [loss.policy + loss.value for loss in losses]

    (on_cpu, slow), (on_gpu, fast) = fitted("cpu", 20), fitted("cuda", 20)
    assert on_gpu.device == torch.device("cuda", 0)
    assert fast == pytest.approx(slow, rel=2e-2)  # TF32 convolutions
    assert next(on_gpu.averaged.parameters()).device == torch.device("cpu")
    resumed, further = fitted("cuda", 5, saved=on_gpu)
    assert resumed.steps == 25
    on_the_cpu, also = fitted("cpu", 5, saved=on_gpu)
    assert further == pytest.approx(also, rel=2e-2)
    assert on_the_cpu.steps == 25
    assert on_cpu.steps == 20


@pytest.mark.parametrize(("game", "spec"), [("connect_four", "6x64+pool+wdl"), ("go(size=9)", "3x32+pool+conv")])
def test_fused_convolutions_match_unfused_ones(game: str, spec: str) -> None:
    """In fp32, where nothing but the order of sums and TF32 tells them apart."""
    from azpy.evaluators.torch import FusedTrunk

    start = azpy.make_game(game)
    network = Network.of(start, spec)
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(part.weight, 0.5, 0.1)
            torch.nn.init.normal_(part.bias, std=0.1)
    on_gpu, exact = TorchEvaluator(network, "cuda", game=start), TorchEvaluator(network, game=start)
    assert any(isinstance(part, FusedTrunk) for part in on_gpu._forward._module.modules())
    planes = np.random.default_rng(0).integers(0, 2, (300, *start.obs_shape)).astype(np.float32)
    for mine, other in zip(on_gpu.evaluate_batch(planes), exact.evaluate_batch(planes), strict=True):
        assert np.abs(mine - other).max() < 5e-3 * max(1.0, np.abs(other).max())


def test_a_run_plays_in_fp16_by_torch(tmp_path: Path) -> None:
    from azpy.evaluators.onnx import network_id
    from azpy.runs.reader import StoredRun, read_checkpoint
    from azpy.settings import Settings
    from azpy.training.trainer import Trainer

    settings = Settings(
        "connect_four", device="cuda", network="3x32", simulations=16, games_per_iteration=64,
        iterations=2, match_every=100, final_match_games=2,
    )  # fmt: skip
    with Trainer(settings, tmp_path) as trainer:
        list(trainer.run())
        assert all(isinstance(each, TorchEvaluator) for each in trainer._generations.ready.evaluators)
    first = network_id(read_checkpoint(tmp_path / "checkpoints/000001").onnx, "fp16")
    assert first in {network for _, game in StoredRun(tmp_path).games([2]) for network in game.networks.tolist()}
