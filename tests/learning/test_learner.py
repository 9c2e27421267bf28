"""Fitting: the losses push where they should and nowhere else, and training goes on exactly where it was saved."""

import copy
import platform
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, SettingsError
from azpy.learning.learner import Learner
from azpy.learning.losses import policy_loss
from azpy.learning.muon import Muon
from azpy.learning.network import to_arrays
from azpy.settings import Settings
from azpy.training.budget import Budget
from azpy.training.fitting import fit as iteration_steps
from azpy.training.fitting import sampling_of
from running import program

Batch = tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], NDArray[np.float32]]


GAME = SimpleNamespace(obs_shape=(2, 3, 3), num_actions=9)
FLAT = SimpleNamespace(obs_shape=(18, 1, 1), num_actions=9)  # the same as flat features: its networks are MLPs


class Planted:
    """Batches whose right answer is known: play the cell where plane 0 is highest; the value is plane 1's corner."""

    def __init__(self, game: Any = GAME) -> None:
        self._obs_shape = game.obs_shape

    def sample(self, rows: int, *, seed: int, **_: Any) -> Batch:
        rng = np.random.default_rng(seed)
        observations = rng.random((rows, 2, 3, 3), dtype=np.float32)
        legal = rng.random((rows, 9)) < 0.7
        legal[np.arange(rows), rng.integers(9, size=rows)] = True
        best = np.where(legal, observations[:, 0].reshape(rows, 9), -1).argmax(1)
        policy = np.eye(9, dtype=np.float32)[best]
        value = np.sign(observations[:, 1, 0, 0] - 0.5).astype(np.float32)
        return observations.reshape(rows, *self._obs_shape), legal, policy, value


def learner(seed: int = 0, spec: str = "1x16", precision: str = "fp32") -> Learner:
    return Learner(GAME, spec, learning_rate=5e-3, seed=seed, precision=precision)


def fit(trainee: Learner, steps: int) -> list[float]:
    losses = trainee.fit(Planted(), steps, batch_size=64, root_value_weight=0.0)
    return [loss.policy + loss.value for loss in losses]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets how many threads torch has, for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def slow_steps(trainee: Learner, game: Any, steps: int, rows: int, parts: int) -> None:
    """Gradient steps as `fit` takes them, one part of the batch after another, in one thread."""
    network = trainee.network.train()
    copies = [network, *(copy.deepcopy(network) for _ in range(parts - 1))]
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3, weight_decay=1e-4, fused=True)
    for step in range(steps):
        seed = int(np.random.SeedSequence([0, step]).generate_state(1, np.uint64)[0])
        batch = [torch.from_numpy(array) for array in Planted(game).sample(rows, seed=seed)]
        optimizer.param_groups[0]["lr"] = 5e-3 * (step + 1) / 50
        for part, each in enumerate(copies):
            mine = slice(rows * part // parts, rows * (part + 1) // parts)
            for parameter, newest in zip(each.parameters(), network.parameters(), strict=True):
                parameter.data.copy_(newest.data)
            observations, legal, policy, value = (tensor[mine] for tensor in batch)
            logits, values = each(observations.contiguous(memory_format=torch.channels_last))
            loss = policy_loss(logits, legal, policy) + torch.nn.functional.mse_loss(values, value)
            each.zero_grad()
            torch.autograd.backward(loss * (len(value) / rows))
        for parameter, *others in zip(*(each.parameters() for each in copies), strict=True):
            assert parameter.grad is not None
            for other in others:
                assert other.grad is not None
                parameter.grad += other.grad
        torch.nn.utils.clip_grad_norm_(network.parameters(), 4.0)
        optimizer.step()


@pytest.mark.parametrize(
    ("threads_of_torch", "rows", "parts", "game"),
    [(1, 192, 1, GAME), (2, 127, 1, GAME), (2, 129, 2, GAME), (3, 192, 3, GAME), (7, 192, 3, FLAT)],
)
def test_threads_that_share_a_step_learn_what_one_thread_does(
    threads: Callable[[int], None], threads_of_torch: int, rows: int, parts: int, game: Any
) -> None:
    threads(threads_of_torch)
    trainee, twin = (Learner(game, "1x16", learning_rate=5e-3) for _ in range(2))
    list(trainee.fit(Planted(game), 6, batch_size=rows, root_value_weight=0.0))
    assert torch.get_num_threads() == threads_of_torch
    threads(threads_of_torch // parts)
    slow_steps(twin, game, 6, rows, parts)
    mine, other = to_arrays(trainee.network), to_arrays(twin.network)
    assert all((mine[name] == other[name]).all() for name in mine)


def test_fit_raises_an_error_in_one_part_of_a_step(
    threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(2)

    def broken(logits: torch.Tensor, legal: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")
        return policy_loss(logits, legal, target)

    monkeypatch.setattr("azpy.learning.losses.policy_loss", broken)
    with pytest.raises(MemoryError, match="no room"):
        list(learner().fit(Planted(), 2, batch_size=128, root_value_weight=0.0))
    assert torch.get_num_threads() == 2


def test_bf16_learns_the_same_with_weights_and_losses_in_float32(
    threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(2)  # autocast holds for the thread that asks for it alone
    in_bf16 = list[bool]()

    def seen(_module: Any, _given: Any, output: torch.Tensor) -> None:
        in_bf16.append(output.dtype == torch.bfloat16)

    losses = {}
    monkeypatch.setattr("azpy.learning.learner.cpu_flags", lambda: {"avx512_bf16"})  # torch computes it without, too
    for precision in ("fp32", "bf16"):
        trainee = learner(precision=precision)
        stem = next(module for module in trainee.network.modules() if isinstance(module, torch.nn.Conv2d))
        stem.register_forward_hook(seen)  # of each thread's copy too
        in_bf16.clear()
        fitted = list(trainee.fit(Planted(), 30, batch_size=128, root_value_weight=0.0))
        assert len(in_bf16) == 60
        assert set(in_bf16) == {precision == "bf16"}
        assert trainee.precision == precision
        arrays = [*trainee.model_arrays().values(), *trainee.optimizer_arrays().values()]
        assert {array.dtype for array in arrays} <= {np.dtype(np.float32), np.dtype(np.int64)}
        losses[precision] = np.mean([loss.policy + loss.value for loss in fitted[-20:]])
    assert losses["bf16"] != losses["fp32"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.1)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_a_step_frees_stays_for_the_next_one() -> None:
    code = """
import resource, numpy as np
from azpy.system import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**21) for _ in range(6)]  # 16 MiB each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(), faults()
before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""
    before, after = map(int, program(code).out.split())
    assert before > 100  # without the call each round takes its memory from the system
    assert after < before / 10


def test_bf16_needs_support_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for flags, there in [({"avx2", "avx512f"}, False), ({"avx512_bf16"}, True), ({"amx_bf16"}, True), ({"bf16"}, True)]:
        monkeypatch.setattr("azpy.learning.learner.cpu_flags", lambda flags=flags: flags)
        assert learner(precision="auto").precision == ("bf16" if there else "fp32")
        if not there:
            with pytest.raises(DeviceError, match="this CPU does not support bf16"):
                learner(precision="bf16")
    with pytest.raises(SettingsError, match="must be fp32, bf16 or auto, got 'fp16'"):
        learner(precision="fp16")


@pytest.mark.parametrize("scale", [1.0, 1e4, -1e4])
def test_illegal_actions_get_exactly_no_gradient(scale: float) -> None:
    _, legal, target, _ = Planted().sample(32, seed=0)
    logits = torch.randn(32, 9, generator=torch.Generator().manual_seed(0))
    logits[~torch.from_numpy(legal)] += scale
    logits.requires_grad_()
    loss = policy_loss(logits, torch.from_numpy(legal), torch.from_numpy(target))
    torch.autograd.backward(loss)
    assert logits.grad is not None
    gradient = logits.grad.numpy()
    assert np.isfinite(float(loss.detach()))
    assert (gradient[~legal] == 0).all()
    several = legal.sum(1) > 1
    assert (gradient[legal & several[:, None]] != 0).all()


def test_the_policy_loss_is_the_cross_entropy_over_legal_actions() -> None:
    logits = torch.tensor([[1.0, 2.0, 5.0]])
    legal, target = torch.tensor([[True, True, False]]), torch.tensor([[0.25, 0.75, 0.0]])
    priors = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    assert float(policy_loss(logits, legal, target)) == pytest.approx(
        -(0.25 * np.log(priors[0]) + 0.75 * np.log(priors[1]))
    )


def test_fitting_learns_and_the_averaged_weights_learn_with_it() -> None:
    trainee = learner()
    losses = fit(trainee, 250)
    assert np.mean(losses[-20:]) < 0.4 * np.mean(losses[:5])
    observations, legal, policy, value = Planted().sample(500, seed=10**6)
    with torch.no_grad():
        logits, values = trainee.averaged(torch.from_numpy(observations))
    chosen = np.where(legal, logits.numpy(), -np.inf).argmax(1)
    assert (chosen == policy.argmax(1)).mean() > 0.8
    assert (np.sign(values.numpy()) == value).mean() > 0.9


def test_an_optimizer_s_state_that_lacks_a_part_is_refused() -> None:
    mine = learner()
    optimizer = mine.optimizer_arrays()
    del optimizer["steps"]
    with pytest.raises(ModelError, match="optimizer does not fit this network"):
        mine.load(mine.model_arrays(), optimizer)


def test_batches_are_drawn_as_asked() -> None:
    class Noting(Planted):
        asked: Any = None

        def sample(self, rows: int, *, seed: int, **asked: Any) -> Batch:
            self.asked = asked
            return super().sample(rows, seed=seed)

    batches = Noting()
    asked: dict[str, Any] = {"symmetries": False, "root_value_weight": 0.125}
    list(learner().fit(batches, 2, batch_size=8, **asked))
    assert batches.asked == asked


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_auto_is_the_cpu() -> None:
    assert Learner(GAME, "1x16", device="auto").device == torch.device("cpu")


def test_a_step_keeps_the_share_decay_of_the_averaged_weights() -> None:
    trainee = learner()
    expected = {name: array for name, array in trainee.model_arrays().items() if array.dtype == np.float32}
    for step, _ in enumerate(trainee.fit(Planted(), 4, batch_size=64, root_value_weight=0.0), start=1):
        decay, newest = (1 + step) / (10 + step), to_arrays(trainee.network)
        expected = {name: decay * array + (1 - decay) * newest[name] for name, array in expected.items()}
    found = trainee.model_arrays()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-7, err_msg=name)


def test_averaged_batch_norm_has_statistics_of_its_own_weights() -> None:
    trainee = Learner(GAME, "2x16", learning_rate=0.05)  # so high that the weights move far around their mean
    fit(trainee, 60)
    before = trainee.model_arrays()
    trainee.set_statistics(Planted(), batch_size=64, root_value_weight=0.0)
    after = trainee.model_arrays()
    assert all(np.array_equal(after[name], before[name]) for name in dict(trainee.network.named_parameters()))
    assert not trainee.averaged.training
    rows = torch.from_numpy(Planted().sample(4096, seed=1)[0])
    with torch.no_grad():
        found = trainee.averaged(rows)
        expected = copy.deepcopy(trainee.averaged).train()(rows)  # with the statistics of these rows
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine - theirs).abs().mean() < 0.05 * theirs.std()


def test_iterations_end_with_statistics_of_the_average() -> None:
    trainee, batches = learner(), cast(Any, Planted())
    settings = Settings(game="tic_tac_toe", network="1x16", iterations=1, batch_size=64)
    start = SimpleNamespace(hides=False)
    context = cast(Any, SimpleNamespace(settings=settings, start=start, budget=Budget(settings, opponents=0)))
    list(iteration_steps(context, trainee, batches, 1, 30))
    found = trainee.model_arrays()
    trainee.set_statistics(batches, **sampling_of(settings))
    assert all(np.array_equal(array, found[name]) for name, array in trainee.model_arrays().items())


def test_networks_without_batch_norm_draw_no_rows() -> None:
    trainee = Learner(FLAT, "1x16")
    before = trainee.model_arrays()
    trainee.set_statistics(None, batch_size=64)
    assert all(np.array_equal(array, before[name]) for name, array in trainee.model_arrays().items())


@pytest.mark.parametrize(("threads_of_torch", "parts"), [(1, 1), (2, 2)])
def test_rows_count_in_the_value_loss_by_their_weight(
    threads: Callable[[int], None], threads_of_torch: int, parts: int
) -> None:
    threads(threads_of_torch)
    trainee = learner()
    twin, rows, cut = copy.deepcopy(trainee.network).train(), 128, 128 // parts
    batch = (*Planted().sample(rows, seed=0), np.where(np.arange(rows) % 3 > 0, 0.01, 1.0).astype(np.float32))
    total, weighted = torch.zeros(()), 0.0
    for begin in range(0, rows, cut):  # batch norm's statistics come from each part
        observations, legal, policy, value, weight = (torch.from_numpy(array[begin : begin + cut]) for array in batch)
        logits, values = twin(observations)
        errors = weight * (values - value) ** 2
        total = total + policy_loss(logits, legal, policy) / parts + errors.sum() / rows
        weighted += errors.sum().item()
    torch.autograd.backward(total)
    torch.nn.utils.clip_grad_norm_(twin.parameters(), 4.0)
    (loss,) = trainee.fit(SimpleNamespace(sample=lambda *_, **__: batch), 1, batch_size=rows)
    assert loss.value == pytest.approx(weighted / batch[4].sum(), rel=1e-5)
    for parameter, other in zip(trainee.network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad, rtol=2e-4, atol=2e-5)


def test_frozen_weights_stay_and_the_others_learn() -> None:
    trainee = Learner(GAME, "1x16", freeze="trunk.*, value.*")
    before = to_arrays(trainee.network)
    fit(trainee, 3)
    resumed = Learner(GAME, "1x16", freeze="trunk.*, value.*")
    resumed.load(trainee.model_arrays(), trainee.optimizer_arrays())
    for name, parameter in resumed.network.named_parameters():
        same = np.array_equal(before[name], parameter.detach().numpy())
        assert same == name.startswith(("trunk.", "value.")), name
    assert fit(resumed, 2) == fit(trainee, 2)


@pytest.mark.parametrize(
    ("freeze", "text"),
    [("body.*", "matches no parameter; the network has trunk.0.0.weight"), ("*", "leaves nothing to train")],
)
def test_a_freeze_pattern_without_a_match_is_refused(freeze: str, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Learner(GAME, "1x16", freeze=freeze)


@pytest.mark.parametrize(
    ("optimizer", "rate"), [("adamw", 5e-3), ("sgd", 0.05), ("muon", 0.05), ("own_parts:slow", 0.05)]
)
def test_training_learns_and_goes_on_exactly_where_it_was_saved(optimizer: str, rate: float) -> None:
    straight, resumed = (Learner(GAME, "1x16", learning_rate=rate, optimizer=optimizer) for _ in range(2))
    losses = fit(straight, 40)
    resumed.load(*copy.deepcopy((straight.model_arrays(), straight.optimizer_arrays())))
    after = fit(straight, 40)
    assert np.mean(after[-10:]) < np.mean(losses[:10]) - 0.1
    assert fit(resumed, 40) == after
    for arrays in (Learner.model_arrays, Learner.optimizer_arrays):
        mine, other = arrays(straight), arrays(resumed)
        assert all(np.array_equal(mine[name], other[name]) for name in mine)


def test_muon_steps_have_nearly_equal_singular_values() -> None:
    torch.manual_seed(0)
    shapes = ((8, 4, 3, 3), (8, 4, 3, 3), (24, 2, 3, 3), (8, 4, 1, 1), (8,))
    weights = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    Muon([(f"w{index}", weight) for index, weight in enumerate(weights)], 0.1, 0.5).step()
    for weight, old in zip(weights[:3], before[:3], strict=True):
        update = ((old * (1 - 0.1 * 0.5) - weight.detach()) / 0.1).flatten(1)
        assert weight.grad is not None
        u, _, v = torch.linalg.svd(weight.grad.flatten(1), full_matrices=False)
        values = torch.diagonal(u.T @ update @ v.T) / (0.2 * max(update.shape) ** 0.5)
        assert 0.6 < values.min() <= values.max() < 1.3
        assert torch.linalg.matrix_norm(update - u @ torch.diag(torch.diagonal(u.T @ update @ v.T)) @ v) < 1e-3
    for weight, old in zip(weights[3:], before[3:], strict=True):  # AdamW's first step: the rate, whatever the gradient
        torch.testing.assert_close((old * (1 - 0.1 * 0.5) - weight.detach()).abs(), torch.full_like(old, 0.1))


def test_a_value_of_three_classes_learns_softened_targets() -> None:
    trainee = Learner(GAME, "1x16+wdl", learning_rate=5e-3, value_smoothing=0.15)
    losses = fit(trainee, 150)
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.2
    observations, *_, values = Planted().sample(256, seed=1)
    with torch.no_grad():
        shares = trainee.averaged.eval()(torch.from_numpy(observations))[1].softmax(1).numpy()
    for result, target in ((1.0, [0.85, 0.10, 0.05]), (-1.0, [0.05, 0.10, 0.85])):
        assert np.abs(shares[values == result].mean(0) - target).max() < 0.1
    means = trainee.class_shares(observations)
    np.testing.assert_allclose(means, shares.mean(0), atol=1e-5)


@pytest.mark.parametrize("spec", ["1x16", "1x16+wdl"])
def test_decisive_positions_count_as_often_as_asked(spec: str) -> None:
    """As if each decisive row were there three times."""

    class Mixed(Planted):
        times = 1

        def sample(self, rows: int, *, seed: int, **_: Any) -> Batch:
            observations, legal, policy, value = super().sample(48, seed=seed)
            value[:24] = 0.0
            repeats = np.where(value == 0, 1, self.times)
            return tuple(np.repeat(each, repeats, axis=0) for each in (observations, legal, policy, value))  # type: ignore[return-value]

    weighted, repeated = Mixed(FLAT), Mixed(FLAT)
    repeated.times = 3
    found = []
    for batches, weight in ((weighted, 3.0), (repeated, 1.0)):
        trainee = Learner(FLAT, spec, learning_rate=5e-3, decisive_weight=weight)
        trainee.network.eval()
        found.append(next(trainee.fit(batches, 1, batch_size=48)).value)
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_softened_targets_need_three_classes() -> None:
    with pytest.raises(
        SettingsError, match=r"value_smoothing needs a win/draw/loss value, such as --network 5x64\+wdl"
    ):
        Learner(GAME, "1x16", value_smoothing=0.1)
