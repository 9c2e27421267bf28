"""Networks, losses and optimizers of the user's: azpy takes what torch can do, and says first what it cannot take."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import azpy
import own_parts
from azpy.errors import DeviceError, ModelError, SettingsError, SettingsWarning
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.learning.own import network_of
from azpy.playing.replay_check import repeat_game
from azpy.runs.reader import read_checkpoint
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Saved
from azpy.training.rehearsal import game_without_network, rehearse
from azpy.training.sizing import costs_of
from azpy.training.trainer import Trainer
from many_players import Knapsack
from training_runs import opened_rows, run, run_until, same_weights, settings

START: Any = azpy.make_game("tic_tac_toe")
SHAPE = 2, 3, 3
OWN = {"network": "own_parts:make", "optimizer": "own_parts:slow", "deterministic": True}


def test_own_network_and_optimizer_resume_bit_for_bit(tmp_path: Path) -> None:
    run(tmp_path / "straight", **OWN, iterations=2)
    run_until(tmp_path / "resumed", 1, **OWN, iterations=2)
    run(tmp_path / "resumed", **OWN, iterations=2)
    assert same_weights(tmp_path / "straight", tmp_path / "resumed", 2)
    rows = [json.loads(line) for line in (tmp_path / "straight/metrics.jsonl").read_text().splitlines()]
    losses = [row["head_stones_loss"] for row in rows if row["kind"] == "iteration"]
    assert all(0 < loss < 1 for loss in losses)
    assert all(row["parity"] < 1e-4 for row in rows if row["kind"] == "iteration")


def test_a_network_of_the_user_s_plays_in_int8(tmp_path: Path) -> None:
    run(tmp_path / "run", network="own_parts:make", precision="int8", iterations=2)
    first, second = (read_checkpoint(tmp_path / f"run/checkpoints/{number:06d}") for number in (1, 2))
    assert not np.array_equal(first.model["policy.weight"], second.model["policy.weight"])
    assert first.int8 is not None


def test_runs_of_own_networks_play_without_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "run", **OWN, iterations=1)
    monkeypatch.setattr("azpy.learning.own._called", lambda *_: pytest.fail("imported"))
    stored = azpy.load_run(tmp_path / "run")
    assert azpy.Search(stored.evaluator, simulations=8).run(stored.start).visits.sum() == 8
    first = next(record for _, record in stored.games([1]))
    assert repeat_game(stored, first).difference is None  # by checkpoint 0
    with pytest.raises(SettingsError, match=r"made by own_parts:make, which is not imported here"):
        azpy.TorchEvaluator(tmp_path / "run")


def test_tracing_an_own_network_gives_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    to_onnx(network_of(START, "own_parts:make"))
    assert not [warned.filename for warned in recwarn if warned.category.__name__ == "TracerWarning"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"spec": "own_parts:wrong"}, r"Tiny gives logits \[3, 10\] for 3 rows, expected \[3, 9\]"),
        ({"spec": "own_parts:nothing"}, "network 'own_parts:nothing': module own_parts does not have 'nothing'"),
        ({"spec": "own_parts:save"}, "network 'own_parts:save' cannot be made: AttributeError: 'tuple' object has no"),
        ({"spec": "builtins:print"}, "got a NoneType, expected a torch.nn.Module"),
        ({"optimizer": "lion"}, "optimizer must be adamw, adam, muon, sgd or module:function, got 'lion'"),
        ({"optimizer": "builtins:print"}, "gives a NoneType, expected a torch.optim.Optimizer"),
        ({"spec": "own_parts:script"}, "got a RecursiveScriptModule, expected a torch.nn.Module that is not TorchScr"),
        (
            {"spec": "own_parts:half"},
            r"body\.1\.running_mean is torch\.bfloat16, expected torch\.float32: call \.float",
        ),
        ({"optimizer": "own_parts:of_another"}, "'own_parts:of_another' lacks trunk.0.0.weight, .*the 26 parameters"),
        ({"optimizer": "own_parts:of_some"}, r"'own_parts:of_some' lacks value\.5\.weight, value\.5\.bias, expected"),
        ({"optimizer": "own_parts:of_more"}, "'own_parts:of_more' has parameters that are not the network's, expected"),
        ({"optimizer": "own_parts:without_rate"}, "'own_parts:without_rate' has a group without 'lr'"),
    ],
)
def test_own_parts_that_do_not_fit_are_refused(change: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Learner(START, **({"spec": "1x16"} | change))  # type: ignore[arg-type]


def test_large_gradients_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    norms = list[float]()

    def step(self: own_parts.Noting, closure: Any = None) -> None:
        parts = [each.grad.square().sum() for group in self.param_groups for each in group["params"]]
        norms.append(float(sum(parts)) ** 0.5)

    monkeypatch.setattr(own_parts.Noting, "step", step)
    learner, rows = Learner(START, "own_parts:make", optimizer="own_parts:noting"), game_without_network(START)
    for factor in (1e6, 1e-6):
        monkeypatch.setattr(own_parts.Tiny, "loss", lambda _, __, output, ___, by=factor: by * output.square().mean())
        list(learner.fit(rows, 1, batch_size=8))
    assert norms[0] == pytest.approx(4.0, rel=1e-3)
    assert norms[1] < 4.0


@pytest.mark.parametrize("schedule", ["linear-tail", "constant"])
def test_each_step_has_the_rate_of_the_schedule(schedule: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "optimizer": "own_parts:noting",
        "schedule": schedule,
        "iterations": 4,
        "batch_size": 8,
    }
    changes |= {"deterministic": True, "learning_rate": 0.5, "network": "1x4", "games_per_iteration": 12, "passes": 3.0}
    found = list[list[float]]()
    for until in (1, 3, 4):  # stopped twice
        with Trainer(settings(**changes), tmp_path) as trainer:
            own_parts.RATES.clear()  # those of the rehearsal
            for event in trainer.run():
                if isinstance(event, Saved) and event.iteration == until:
                    break
        found += own_parts.RATES
    steps = [row["steps"] for row in opened_rows(tmp_path) if row["kind"] == "iteration"]
    assert min(steps) > 20
    assert len(steps) == 4
    expected = list[list[float]]()
    for iteration, count in enumerate(steps):
        for step in range(count):
            done = (iteration + step / count) / 4
            falling = {
                "linear-tail": max(0.05, min(1.0, 2.0 * (1.0 - done))),
                "constant": 1.0,
            }
            rate = 0.5 * min(1.0, (len(expected) + 1) / 50) * falling[schedule]
            expected.append([2 * rate, rate])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("norm", ["plain", "eps", "bare", "two", "function"])
def test_rms_norm_is_exported(norm: str, tmp_path: Path) -> None:
    network = own_parts.Normed(SHAPE, 9, own_parts.RMS_NORMS[norm]())
    azpy.export_onnx(network, START, tmp_path / "model.onnx")  # which compares the two
    rows = np.random.default_rng(0).normal(size=(5, *SHAPE)).astype(np.float32)
    expected, _ = network(torch.from_numpy(rows))
    got, _ = azpy.OnnxEvaluator(tmp_path / "model.onnx", game=START).evaluate_batch(rows)
    np.testing.assert_allclose(got, expected.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("how", ["whole", "in_place", "part", "forward"])
def test_a_compiled_network_is_refused(how: str) -> None:
    spec = f"own_parts:compiled_{how}"
    with pytest.raises(SettingsError, match=f"network '{spec}': .* give the module without torch.compile"):
        network_of(START, spec)


def test_a_failed_export_leaves_no_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for change, text in (
        (
            {"network": "own_parts:unwritable"},
            "'own_parts:unwritable': torch cannot write this network as ONNX: .*rot90",
        ),
        ({"network": "own_parts:untrainable"}, "'own_parts:untrainable' cannot take a training step: RuntimeError: el"),
        ({"network": "own_parts:unloadable"}, "'own_parts:unloadable': model is not a usable ONNX model"),
        (
            {"optimizer": "own_parts:closing"},
            r"'own_parts:closing' cannot take a training step: TypeError: LBFGS\.step",
        ),
        (
            {"optimizer": "own_parts:listing"},
            "'own_parts:listing' keeps seen, a list: a checkpoint holds tensors and nu",
        ),
    ):
        with pytest.raises((SettingsError, ModelError), match=text):
            Trainer(settings(**change), tmp_path / "run")
    assert capfd.readouterr().out == ""
    assert not torch._C._jit_is_onnx_log_enabled()  # torch's C++ prints graphs too, not each time
    assert not (tmp_path / "run").exists()


DEEP = """
import own_parts, torch
def fail(*given):
    raise RuntimeError("deep down")
class Fails(own_parts.Tiny):
    def forward(self, observations):
        return fail() if self.when() else super().forward(observations)
class Runs(Fails):
    def when(self):
        return True
class Traces(Fails):
    def when(self):
        return torch.jit.is_tracing()
class Trains(Fails):
    def when(self):
        return self.training
class InLoss(own_parts.Tiny):
    loss = fail
class Steps(own_parts.Noting):
    step = fail
def steps(parameters, rate, decay):
    return Steps([each for _, each in parameters], rate)
"""


@pytest.mark.parametrize("spec", ["fail", "Runs", "Traces", "Trains", "InLoss", "steps"])
def test_an_error_in_code_of_the_user_s_has_its_place(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep.py").write_text(DEEP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "deep", raising=False)
    given: dict[str, Any] = {"optimizer" if spec == "steps" else "network": f"deep:{spec}"}
    with pytest.raises(SettingsError, match=r": RuntimeError: deep down \(deep\.py, line 4\)$"):
        rehearse(Settings("tic_tac_toe", **given), START)
    with pytest.raises(SettingsError, match=r"network 'nowhere:make': no module nowhere: Python looks in"):
        network_of(START, "nowhere:make")


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (lambda name, *_: {"other": 1}[name], "fails: KeyError: 'stones'"),
        (
            lambda name, output, _: output.mean().detach(),
            "is detached, expected a tensor of one number with a gradient",
        ),
        (lambda name, output, _: float(output.mean()), "is float, expected a tensor of one number with a gradient"),
        (lambda name, output, _: output, r"is a tensor \[2, 1\], expected a tensor of one number"),
    ],
)
def test_the_loss_of_a_head_that_trains_nothing_is_named(loss: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_parts.Tiny, "loss", lambda self, *given: loss(*given))
    with pytest.raises(
        SettingsError, match=f"network 'own_parts:make' cannot take a training step: the loss of head 'stones' {text}"
    ):
        rehearse(Settings("tic_tac_toe", network="own_parts:make"), START)


def test_the_rehearsal_has_positions_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(self: Any, name: str, output: torch.Tensor, batch: Any) -> torch.Tensor:
        mine, theirs = batch.observations.sum((2, 3)).T
        assert ((theirs - mine == 0) | (theirs - mine == 1)).all()
        assert torch.equal(batch.legal, batch.observations.sum(1).flatten(1) == 0)
        assert ((batch.policy > 0) <= batch.legal).all()
        return output.square().mean()

    monkeypatch.setattr(own_parts.Tiny, "loss", loss)
    rehearse(Settings("tic_tac_toe", network="own_parts:make"), START)
    costs_of(START, Settings("tic_tac_toe", network="own_parts:make"), "own_parts:make")


def test_the_rehearsal_is_on_the_training_device() -> None:
    given: dict[str, Any] = {"network": "own_parts:make", "optimizer": "own_parts:capturable"}
    with pytest.raises(SettingsError, match="'own_parts:capturable' cannot take a training step"):
        rehearse(Settings("tic_tac_toe", **given), START)
    with nullcontext() if torch.cuda.is_available() else pytest.raises(DeviceError):
        rehearse(Settings("tic_tac_toe", **given, device="cuda"), START)


def test_a_frozen_head_needs_no_gradient() -> None:
    rehearse(Settings("tic_tac_toe", network="own_parts:make", freeze="stones*,body*"), START)


def test_weights_that_no_loss_depends_on_are_named() -> None:
    with pytest.warns(
        SettingsWarning, match=r"no loss depends on value\.weight, value\.bias, so network 'own_parts:deaf'"
    ):
        rehearse(Settings("tic_tac_toe", network="own_parts:deaf"), START)


def test_code_that_workers_cannot_import_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made_in_memory")
    made.__dict__.update(Bag=Knapsack, make=own_parts.make, slow=own_parts.slow)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr("__main__.Bag", Knapsack, raising=False)
    for change, name in (
        ({"game": "__main__:Bag", "workers": 2}, "game '__main__:Bag'"),
        ({"game": "made_in_memory:Bag", "workers": 2}, "game 'made_in_memory:Bag'"),
    ):
        needs = list(change)[-1]
        for kind in (Trainer, Collector):
            with pytest.raises(SettingsError, match=f"^{name} cannot be imported by other processes, as {needs} "):
                kind(settings(**change), tmp_path / "run")
        assert not (tmp_path / "run").exists()
    Trainer(settings(network="made_in_memory:make", workers=1), tmp_path / "workers").close()  # they play a model
