"""The learner's process: its steps are those that one process would take in turn, whatever is killed."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.errors import RunError
from azpy.fleet.channels import pipe
from azpy.fleet.wire import pack
from azpy.games.names import make_game
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.runs.storage import SealedGames
from azpy.settings import Settings
from azpy.training import learner_process
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Fitted, Noticed, Played
from azpy.training.fitting import Window, fit, learner_of
from azpy.training.learner_process import LearnerProcess, _bytes, _Pupil
from azpy.training.trainer import Trainer
from starts import Starts, command

SMALL: dict[str, Any] = {"game": "tic_tac_toe", "simulations": 8, "slots": 8, "eval_batch": 2, "network": "1x8"}
SMALL |= {"games_per_iteration": 12, "iterations": 3, "batch_size": 16, "match_every": 1000, "final_match_games": 2}
SMALL |= {"resign_below": -0.8, "deterministic": True, "learner_lag": 1}
SMALL |= {"window_min": 100}  # old games go
SOON = 120.0  # seconds that no step takes


class InTurn:
    """Takes the steps in the trainer's own process, before the games are played."""

    seconds = 0.0

    def __init__(self, folder: Path, settings: Settings, learner: Any, opponents: int) -> None:
        self._folder, self._learner = folder, learner

    def begin(self, iteration: int, steps: int, window: Window, iterations: list[int], budget: Budget) -> None:
        run = StoredRun(self._folder)
        games = Window(run.settings, run.start)
        for sealed in iterations:  # all, however many the window holds
            games.add([record for _, record in run.games([sealed])])
        assert games.buffer.num_positions == window.buffer.num_positions
        *_, self._last = fit(self._learner, games.buffer, run.settings, budget, iteration, steps)

    def finish(self) -> Iterator[Fitted]:
        yield self._last

    def close(self) -> None:
        pass


def train(path: Path, look: Callable[[Trainer, Event], None] = lambda *_: None, **changes: Any) -> list[Event]:
    """Trains; `look` sees each event when it comes."""
    found = list[Event]()
    with Trainer(Settings(**(SMALL | changes)), path) as trainer:
        for event in trainer.run():
            found.append(event)
            look(trainer, event)
    return found


def hashes(events: list[Event]) -> tuple[str | None, str | None]:
    assert isinstance(events[-1], Finished)
    assert events[-1].games_hash
    return events[-1].games_hash, events[-1].weights_hash


def pid_of(trainer: Trainer) -> int:
    assert trainer._beside is not None
    assert trainer._beside._child is not None
    return trainer._beside._child.process.pid


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | None, str | None]:
    """The hashes of a run in which games and steps take turns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("azpy.training.trainer.LearnerProcess", InTurn)
        path = tmp_path_factory.mktemp("straight")
        found = hashes(train(path))
    steps = [row["steps"] for row in RunFolder(path, {}).metrics() if row["kind"] == "iteration"]
    assert steps[0] == 0
    assert all(steps[1:])
    return found


def test_the_process_takes_the_steps_that_one_process_takes_in_turn(straight: tuple[str, str], tmp_path: Path) -> None:
    assert hashes(train(tmp_path / "lag")) == straight
    assert hashes(train(tmp_path / "none", learner_lag=0)) != straight
    networks = {game.networks.max() for _, game in StoredRun(tmp_path / "lag").games(range(1, 4))}
    assert len(networks) == 2  # the untrained network plays two iterations


def test_a_long_fit_says_little_while_nobody_reads(tmp_path: Path) -> None:
    train(tmp_path, learner_lag=0, iterations=1)
    run, said = StoredRun(tmp_path), list[dict[str, Any]]()
    trainee = learner_of(run.settings, run.start)
    task = {"games": str(tmp_path / "games"), "settings": vars(run.settings), "taken": 0, "steps": 777, "iteration": 2}
    task |= {"seen": 200, "iterations": [1], "opponents": 0, "budget": Budget(run.settings, 0).state()}
    pupil = _Pupil(lambda message, _: said.append(dict(message)))
    pupil.fit(task, _bytes(trainee))
    assert [message["said"] for message in said] == ["step"] * 100 + ["fitted"]
    assert (said[0]["taken"], said[-1]["taken"]) == (8, 777)


def test_a_process_that_is_killed_and_an_edit_of_config_toml_change_nothing(
    straight: tuple[str, str], tmp_path: Path
) -> None:
    killed = list[int]()

    def kill(trainer: Trainer, event: Event) -> None:
        (tmp_path / "config.toml").write_text("batch_size = ")
        for iteration, kind in ((2, Played), (3, Fitted)):  # while it works, and when it is waited for
            if isinstance(event, kind) and event.iteration == iteration and iteration not in killed:
                os.kill(pid_of(trainer), signal.SIGKILL)
                killed.append(iteration)

    assert hashes(train(tmp_path, kill)) == straight
    assert killed == [2, 3]


@pytest.mark.slow
def test_a_run_that_is_left_in_every_iteration_goes_on_with_the_same_games(
    straight: tuple[str, str], tmp_path: Path
) -> None:
    for iteration in (1, 2, 3):
        with Trainer(Settings(**SMALL), tmp_path) as trainer:
            for event in trainer.run():
                if isinstance(event, Played) and event.iteration == iteration:
                    child = None if trainer._beside is None or iteration == 1 else pid_of(trainer)
                    break
        if child is not None:
            with pytest.raises(ProcessLookupError):
                os.kill(child, 0)
    assert hashes(train(tmp_path)) == straight


@pytest.mark.slow
def test_a_trainer_that_is_killed_leaves_no_process_and_goes_on(starts: Starts, tmp_path: Path) -> None:
    arguments = [*command("tic_tac_toe", tmp_path / "run", 4), "--learner-lag", "1"]
    mark = f"import os; os.environ['MARK'] = {str(tmp_path)!r}"  # tells its processes from those of others
    assert starts.run(*arguments, kill_when="iteration 3", before=mark).code in (-9, 0)
    starts.finish(*arguments)
    alone = [*command("tic_tac_toe", tmp_path / "alone", 4), "--learner-lag", "1"]
    starts.finish(*alone)
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as run:
            found.append((run.games_hash(), run.weights_hash(3)))
    assert found[0] == found[1]
    until = time.monotonic() + SOON
    while left := [one for one in Path("/proc").glob("[0-9]*/environ") if bytes(tmp_path) in content(one)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended
        return b""


@pytest.mark.slow
def test_a_process_that_hangs_is_replaced(
    straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_process, "_SILENT_SECONDS", 20.0)  # torch is loaded in less
    stopped = list[int]()

    def stop(trainer: Trainer, event: Event) -> None:
        if isinstance(event, Played) and event.iteration == 3 and not stopped:
            os.kill(pid_of(trainer), signal.SIGSTOP)
            stopped.append(1)

    events = train(tmp_path, stop)
    assert hashes(events) == straight
    assert [event.text for event in events if isinstance(event, Noticed)] == [
        "the learner's process ended (no sign of life for 20 seconds): another one does its steps again"
    ]


def test_a_process_that_cannot_fit_ends_the_run_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(trainer: Trainer, event: Event) -> None:
        for sealed in (tmp_path / "games").glob("*.npz"):
            os.truncate(sealed, 200)

    with pytest.raises(RunError, match=r"the learner's process ended: .*000001.npz is damaged"):
        train(tmp_path, spoil)


def test_a_process_that_always_dies_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "_COMMAND", ("/bin/false",))
    with pytest.raises(RunError, match="died 3 times, the last one by exit code 1: memory"):
        train(tmp_path)
    rows = [row for row in RunFolder(tmp_path, {}).metrics() if row["kind"] == "iteration"]
    assert len(rows) == 1


@pytest.mark.parametrize("asked", [[1, 2, 3, 4], [1, 2, 4], [1, 4], [3, 4], [4]])
def test_the_process_learns_from_every_iteration_though_some_had_no_steps(asked: list[int], tmp_path: Path) -> None:
    settings, sealed = Settings(**SMALL | {"window_min": 10_000}), SealedGames(tmp_path, {})
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=8, games=40) as play:
        games = sorted(play, key=lambda game: game.game_id)
    for iteration in range(1, 5):
        sealed.write(iteration, games[10 * iteration - 10 : 10 * iteration])
    pupil = _Pupil(lambda *_: None)
    for newest in asked:
        there = list(range(1, newest + 1))
        seen = sum(game.positions for game in games[: 10 * newest])
        window = pupil._games(settings, {"games": str(tmp_path), "seen": seen, "iterations": there})
        assert (window.buffer.num_positions, window.seen) == (seen, seen)


def test_a_process_that_takes_in_games_or_steps_shows_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, learner_lag=0, iterations=3)
    run, said = StoredRun(tmp_path), list[str]()
    seen = sum(game.positions for _, game in run.games([1, 2, 3]))
    task = {"games": str(tmp_path / "games"), "settings": vars(run.settings), "taken": 0, "steps": 400, "iteration": 4}
    task |= {"seen": seen, "iterations": [1, 2, 3], "opponents": 0, "budget": Budget(run.settings, 0).state()}
    read, add = SealedGames.read, Window.add

    def noted(self: Any, *given: Any, real: Any, what: str) -> Any:
        said.append(what)
        return real(self, *given)

    monkeypatch.setattr(SealedGames, "read", partialmethod(noted, real=read, what="read"))
    monkeypatch.setattr(Window, "add", partialmethod(noted, real=add, what="add"))
    monkeypatch.setattr(learner_process, "_ALIVE_SECONDS", 0.0)
    mine, theirs = socket.socketpair()
    mine.setblocking(False)

    def send(message: Any, body: bytes) -> None:
        said.append(message["said"])
        if not body:
            mine.sendall(pack(message))  # BlockingIOError: it would stand still, as nobody reads

    with mine, theirs:
        pupil = _Pupil(send, partial(pipe.has_room, mine))
        pupil.fit(task, _bytes(learner_of(run.settings, run.start)))
    taken_in = said[: said.index("step")]
    assert taken_in.count("read") == taken_in.count("add") >= 2
    assert "".join(taken_in).replace("readalive", "").replace("addalive", "") == ""
    *steps, last = said[len(taken_in) :]
    assert (set(steps), last) == ({"step"}, "fitted")
    assert len(steps) < 400  # the rest would have to wait


@pytest.mark.parametrize("hangs", [0, 1, 2, 3])
def test_signs_of_life_are_no_deaths_and_a_hang_is_named(hangs: int, tmp_path: Path) -> None:
    settings = Settings(**SMALL)
    fitted = {"said": "fitted", "seconds": 1.0, "iteration": 2, "taken": 3, "steps": 3}
    fitted |= {"policy_loss": 1.0, "value_loss": 1.0, "heads": {}}
    learner, left = learner_of(settings, make_game(settings.game)), [hangs]

    class Scripted:
        """A process that says a lot before it hangs, and at last does its task."""

        def __init__(self) -> None:
            self.socket, self._said = self, iter([pack({"said": "alive"})] * 9)

        def recv(self, _: int) -> bytes:
            if data := next(self._said, b""):
                return data
            if left[0]:
                left[0] -= 1
                raise TimeoutError
            return pack(fitted, _bytes(learner))

        def end(self, *_: float) -> str:
            return "killed by SIGKILL"

    beside = LearnerProcess(tmp_path, settings, learner, 0)
    beside._ask = Scripted  # type: ignore[assignment,method-assign]
    if hangs == 3:
        with pytest.raises(RunError, match="died 3 times, the last one by no sign of life for 600 seconds: memory"):
            list(beside.finish())
        return
    *notices, last = beside.finish()
    assert isinstance(last, Fitted)
    assert [isinstance(each, Noticed) and "(no sign of life for 600 seconds)" in each.text for each in notices] == (
        [True] * hangs
    )


def test_the_process_takes_no_steps_with_other_weights_than_the_trainer_has(tmp_path: Path) -> None:
    settings, pupil = Settings(**SMALL), _Pupil(lambda *_: None)
    task = {"settings": asdict(settings), "taken": 1}
    weights = _bytes(learner_of(settings, make_game(settings.game)))  # after no step
    for body in (b"", weights, b""):
        with pytest.raises(RunError, match="has no weights after 1 steps"):
            pupil.fit(task, body)
