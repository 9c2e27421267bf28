"""Worker processes: the same games and weights as without them, whatever dies, and nobody is left behind."""

import itertools
import math
import os
import queue
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.errors import RunError, SettingsError
from azpy.fleet import head as fleet_head
from azpy.fleet import worker
from azpy.fleet.channels import Backend, Channel, Message, pipe
from azpy.fleet.channels.pipe import Pipes, settings_of_worker
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import Lineup
from azpy.fleet.head import Head
from azpy.fleet.table import ENDLESS
from azpy.fleet.wire import Unpacker, pack
from azpy.fleet.worker import Worker
from azpy.games.names import make_game
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Event, Finished, Noticed, Played
from azpy.training.trainer import Trainer
from starts import Starts, command
from test_onnx import make_model

PLAY = {"simulations": 8, "slots": 8, "eval_batch": 2, "games_per_iteration": 30, "opening_plies": 2}
LEARN = {"network": "1x8", "iterations": 4, "batch_size": 16, "passes": 1.0, "match_every": 1000}
SMALL: dict[str, Any] = PLAY | LEARN | {"resign_below": -0.8, "deterministic": True}
SMALL["final_match_games"] = 2
SOON = 120.0  # seconds that no step takes


@pytest.fixture(autouse=True)
def every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event for every few games, so that tests see the middle of each iteration, however late this process comes."""
    take = Head.take
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    monkeypatch.setattr(
        Head, "take", lambda self, most: take(self, min(most, 3) if isinstance(self._backend, Pipes) else most)
    )


def settings(**changes: Any) -> Settings:
    return Settings(**({"game": "tic_tac_toe"} | SMALL | changes))


def train(path: Path, look: Callable[[Head, Event], None] = lambda *_: None, **changes: Any) -> list[Event]:
    """Trains; `look` sees each event when it comes."""
    found = list[Event]()
    with Trainer(settings(**changes), path) as trainer:
        for event in trainer.run():
            found.append(event)
            if isinstance(trainer._fleet, Head):
                look(trainer._fleet, event)
    return found


def hashes(events: list[Event]) -> tuple[str | None, str | None]:
    assert isinstance(events[-1], Finished)
    assert events[-1].games_hash
    assert events[-1].weights_hash
    return events[-1].games_hash, events[-1].weights_hash


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noticed)]


def process_of(fleet: Head, index: int) -> subprocess.Popen[bytes]:
    """The process of one of a head's workers on this machine."""
    line = fleet.members[index].line
    assert isinstance(line, pipe.Pipe)
    return line.process


def middle(event: Event, iteration: int) -> bool:
    return isinstance(event, Played) and event.iteration == iteration and event.games < SMALL["games_per_iteration"]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | None, str | None]:
    """The hashes of the run that this process plays alone."""
    path = tmp_path_factory.mktemp("straight")
    found = hashes(train(path))
    with RunFolder(path, {}) as run:
        games = [game for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
    assert len({game.networks.max() for game in games}) == 4
    return found


@pytest.mark.parametrize("workers", [1, 4])
def test_any_number_of_workers_gives_the_same_games_and_weights(
    workers: int, straight: tuple[str, str], tmp_path: Path
) -> None:
    events = train(tmp_path, workers=workers)
    assert hashes(events) == straight
    assert notices(events) == []


def test_a_worker_that_is_killed_in_every_iteration_changes_no_game(straight: tuple[str, str], tmp_path: Path) -> None:
    killed = list[int]()

    def kill(fleet: Head, event: Event) -> None:
        if middle(event, len(killed) + 1):
            process = process_of(fleet, len(killed) % 2)
            process.kill()
            killed.append(process.pid)

    events = train(tmp_path, kill, workers=2)
    assert hashes(events) == straight
    assert len(killed) == 4
    told = notices(events)
    assert all("ended: killed by SIGKILL; its games are open again" in text for text in told)
    assert 3 <= len(told) <= 4  # the other worker may have had the last iteration's games


def test_a_worker_that_is_stopped_holds_up_nothing(straight: tuple[str, str], tmp_path: Path) -> None:
    stopped = list[subprocess.Popen[bytes]]()

    def stop(fleet: Head, event: Event) -> None:
        if middle(event, 1) and not stopped:
            stopped.append(process_of(fleet, 1))
            stopped[0].send_signal(signal.SIGSTOP)
        if middle(event, 4) and stopped[0].poll() is None:
            stopped[0].send_signal(signal.SIGCONT)  # it sends what nobody needs any more

    assert hashes(train(tmp_path, stop, workers=2)) == straight
    assert stopped[0].poll() is not None


def test_the_only_worker_is_replaced_once_its_lease_has_lapsed(
    straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, stopped, take = [0.0], list[int](), Head.take

    def clock() -> float:
        return time.monotonic() + ahead[0]

    def taken(self: Head, most: int) -> list[azpy.GameRecord]:
        found = take(self, most)
        if stopped and not found and not ahead[0]:
            ahead[0] = 10_000.0  # nothing more comes from it
        return found

    def stop(fleet: Head, event: Event) -> None:
        if middle(event, 2) and not stopped:
            stopped.append(process_of(fleet, 0).pid)
            os.kill(stopped[0], signal.SIGSTOP)

    monkeypatch.setattr(Head, "take", taken)
    monkeypatch.setattr("azpy.training.loop.open_fleet", lambda run, start: Head(run, start, Pipes(run), clock))
    events = train(tmp_path, stop, workers=1)
    assert hashes(events) == straight
    assert len(notices(events)) == 1
    assert "worker 1 ended: it finished no game in" in notices(events)[0]


def test_a_run_goes_on_with_another_number_of_workers(straight: tuple[str, str], tmp_path: Path) -> None:
    for workers in (2, 0, 1):
        with Trainer(settings(workers=workers), tmp_path) as trainer:
            for event in trainer.run():
                if isinstance(event, Played) and event.games > 5 and workers < 2:
                    break
                if middle(event, 3):
                    break
    assert hashes(train(tmp_path)) == straight


def test_a_head_that_is_killed_goes_on_with_the_same_games(starts: Starts, tmp_path: Path) -> None:
    arguments = command("tic_tac_toe", tmp_path / "run", 4)
    arguments += ["--games-per-iteration", "60", "--workers", "2"]
    for when in ("iteration 1", "iteration 2"):
        end = starts.run(*arguments, kill_when=when)
        assert end.code in (-9, 0)
    starts.finish(*arguments)
    alone = command("tic_tac_toe", tmp_path / "alone", 4)
    starts.finish(*alone, "--games-per-iteration", "60")
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as run:
            found.append((run.games_hash(), run.weights_hash(4)))
    assert found[0] == found[1]


def test_a_free_run_has_each_game_once_and_names_every_network(tmp_path: Path) -> None:
    killed = list[int]()

    def kill(fleet: Head, event: Event) -> None:
        if middle(event, 2) and not killed:
            killed.append(1)
            process_of(fleet, 0).kill()

    events = train(tmp_path, kill, workers=2, deterministic=False)
    run = StoredRun(tmp_path)
    games = list(run.games(run.sealed_iterations()))
    assert len({game.game_id for _, game in games}) == len(games) == 4 * 30
    assert len(notices(events)) == 1
    networks = [azpy.OnnxEvaluator(run.model(iteration)).network_id for iteration in (2, 3, 4)]
    seen = {int(network) for _, game in games for network in game.networks} - {0}
    assert 2 <= len(seen) <= 4
    assert networks[2] not in seen  # it came after the last game
    rows = [row for row in RunFolder(tmp_path, {}).metrics() if row["kind"] == "iteration"]
    assert all(row["evaluations"] > 0 for row in rows)


def test_a_collection_is_the_same_with_workers(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(make_model(weight=0.5))
    found = []
    for workers, chosen in itertools.product((0, 2), (None, model)):
        path = tmp_path / f"{workers} {chosen is None}"
        with Collector(settings(iterations=2, workers=workers), path, chosen) as collector:
            assert isinstance(list(collector.run())[-1], Finished)
        with RunFolder(path, {}) as run:
            found.append(run.games_hash())
    assert found[:2] == found[2:]
    assert found[0] != found[1]


def test_a_worker_that_cannot_start_ends_the_run_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, text in (
        ("import sys; sys.exit(3)", "the last one: exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "the last one: killed by SIGKILL"),
        ("import os, sys; os.write(int(sys.argv[2]), b'12345678'); input()", "the last one: a message of 875770417"),
    ):
        monkeypatch.setattr(pipe, "_COMMAND", (sys.executable, "-c", code))
        with pytest.raises(RunError, match=f"3 workers ended and no game was finished; {text}"):
            train(tmp_path, workers=2)


def test_a_worker_that_never_answers_is_replaced_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(pipe, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(1000)"))
    run = settings(workers=1)
    fleet = Head(run, make_game("tic_tac_toe"), Pipes(run), clock=lambda: now)
    fleet.ask([range(10)], [])
    try:
        for _ in range(2):  # a new lineup gives it no more time
            fleet.play(Lineup([azpy.UniformEvaluator()]))
            assert fleet.notices == []
            for _ in range(40):
                now += 4
                assert fleet.take(1) == []
        assert fleet.notices == ["worker 1 ended: it did not open its network in 300 seconds; its games are open again"]
        assert fleet.table.num_open == 10  # it was given none
        fleet.take(1)
        assert [worker.name for worker in fleet.workers if worker.alive] == ["worker 2"]
    finally:
        fleet.close()


def test_a_games_own_error_in_a_worker_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks.py").write_text(
        "import os\nfrom sound_games import Nim\n\n\nclass Breaks(Nim):\n    def play(self, action):\n"
        f"        if os.getpid() != {os.getpid()}:\n            raise ArithmeticError('on purpose')\n"
        "        super().play(action)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    chosen = settings(game="breaks:Breaks", workers=1)
    with pytest.raises(RunError, match=r"the last one: .*on purpose"), Collector(chosen, tmp_path / "run") as collector:
        list(collector.run())


def test_a_deterministic_run_refuses_a_worker_whose_network_answers_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_head, "answers_of", lambda evaluator: "other")
    with pytest.raises(RunError, match="the last one: its network gives other bits than the network here"):
        train(tmp_path, workers=1)


# Those who end with the head


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended
            continue
        if parent == pid:
            found.append(int(entry.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.fixture
def head(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A collection with two workers that play, and their process ids."""
    arguments = ["tic_tac_toe", "--collect-only", "--workers", "2", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [sys.executable, "-m", "azpy.cli", "train", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "self-play" in line or "iteration 1" in line:
                break
        workers = children(process.pid)
        assert len(workers) == 2
        yield process, workers
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"])
def test_no_worker_outlives_its_head(head: tuple[subprocess.Popen[str], list[int]], name: str, tmp_path: Path) -> None:
    process, workers = head
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip("ignored here, as under nohup")
    if name == "SIGTERM":  # as SLURM and systemd do: workers stay until the head has their games
        for worker in workers:
            os.kill(worker, signal.SIGTERM)
            ignored = Path(f"/proc/{worker}/status").read_text().partition("SigIgn:")[2].split()[0]
            assert int(ignored, 16) >> signal.SIGTERM - 1 & 1
    process.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=SOON)
    wait_until(lambda: not any(map(is_alive, workers)))
    if name in ("SIGINT", "SIGTERM"):
        assert process.returncode == 128 + getattr(signal, name)
        assert "ended: killed" not in output
        assert "stopped; every finished game is saved" in output
        assert "Traceback" not in output
    with RunFolder(tmp_path / "run", {}) as run:  # it is whole, and nobody holds it
        assert run.journal or run.sealed.iterations()


# What is refused


def frames_of(game: str, **options: Any) -> list[azpy.GameRecord]:
    with azpy.SelfPlay(game, azpy.UniformEvaluator(), slots=2, simulations=2, games=3, **options) as play:
        return list(play)


def test_only_games_of_the_run_are_believed() -> None:
    examiner = Examiner(settings(), make_game("tic_tac_toe"))
    examiner.play(Lineup([azpy.UniformEvaluator()]))
    right = frames_of("tic_tac_toe")
    frame = storage.frame(*right)
    assert [game.to_bytes() for game in examiner.games_in(frame)] == [game.to_bytes() for game in right]
    for game in right:
        examiner.look_at(game)
    for at in range(0, len(frame), 7):
        with pytest.raises(RefusedError, match="cannot be read"):
            examiner.games_in(frame[:at] + bytes([frame[at] ^ 4]) + frame[at + 1 :])
        with pytest.raises(RefusedError, match="cannot be read"):
            examiner.games_in(frame[:at])
    for wrong, text in (
        (frames_of("tic_tac_toe", seed=1)[0], "is of seed 1, expected 0"),
        (frames_of("connect_four")[0], r"is of game 'connect_four.*', expected 'tic_tac_toe"),
    ):
        with pytest.raises(RefusedError, match=text):
            examiner.look_at(wrong)


def test_a_game_that_breaks_the_rules_or_is_of_another_network_is_refused(tmp_path: Path) -> None:
    model = azpy.OnnxEvaluator(make_model(weight=0.5))
    start = make_game("tic_tac_toe")
    with azpy.SelfPlay(start, model, slots=2, simulations=2, games=1) as play:
        record = next(play)
    examiner = Examiner(settings(deterministic=False), start)
    examiner.play(Lineup([azpy.UniformEvaluator()]))
    with pytest.raises(RefusedError, match=f"names the network {model.network_id:#018x}, which does not play"):
        examiner.look_at(record)
    examiner.play(Lineup([model], b""))
    examiner.look_at(record)
    examiner.play(Lineup([azpy.UniformEvaluator()]))
    examiner.look_at(record)  # it was under way at the change
    known = model.network_id.to_bytes(8, "little")
    before, *pieces = record.to_bytes().split(known)
    assert len(pieces) == len(record)
    for ply in range(len(record)):  # one ply alone is of another network
        named = [bytes([known[0] ^ 1]) + known[1:] if at == ply else known for at in range(len(record))]
        data = before + b"".join(one + piece for one, piece in zip(named, pieces, strict=True))
        with pytest.raises(RefusedError, match=f"names the network {model.network_id ^ 1:#018x}, which does not play"):
            examiner.look_at(azpy.GameRecord.from_bytes(data))
    changed = bytearray(record.to_bytes())
    place = changed.index(record.actions[1].tobytes() + record.players[1].tobytes())
    changed[place : place + 4] = record.actions[0].tobytes()  # where the first player already is
    with pytest.raises(RefusedError, match=f"game {record.game_id} breaks the rules: .*ply 1"):
        examiner.look_at(azpy.GameRecord.from_bytes(bytes(changed)))
    exact = Examiner(settings(), start)
    exact.play(Lineup([model], b""))
    exact.play(Lineup([azpy.UniformEvaluator()]))
    with pytest.raises(RefusedError, match="which does not play"):
        exact.look_at(record)  # of a deterministic run's iteration before


def test_a_game_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.fleet.examine.MOST_BYTES", 100)
    with pytest.raises(RefusedError, match=r"one has [0-9]+ bytes, expected 100 at most"):
        Examiner(settings(), make_game("tic_tac_toe")).games_in(storage.frame(*frames_of("tic_tac_toe")))


def test_finished_games_are_sent_in_parts_that_the_head_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    games = frames_of("tic_tac_toe") * 5
    sizes = [len(game.to_bytes()) for game in games]
    monkeypatch.setattr(worker, "MOST_OF_A_PART", 2 * max(sizes))
    parts = list(worker._in_parts(games))
    assert [game for part in parts for game in part] == games
    assert all(sum(len(game.to_bytes()) for game in part) <= 2 * max(sizes) for part in parts)
    assert len(parts) < len(games)
    monkeypatch.setattr(worker, "MOST_BYTES", max(sizes) - 1)
    with pytest.raises(RunError, match=r"has [0-9]+ bytes, expected [0-9]+ at most: no worker can send it"):
        list(worker._in_parts(games))


def test_a_worker_sends_no_message_that_the_head_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_OF_A_PART", 1)
    inbox, said = queue.SimpleQueue[tuple[dict[str, Any], bytes]](), list[bytes]()
    alone = {"network": None, "precision": "fp32"}
    run = asdict(settings())
    inbox.put(({"do": "begin", "settings": run, "version": azpy.__version__}, b""))
    search = {"resign_below": -1.0, "simulations": None, "score_to_beat": None}
    inbox.put(({"do": "play", "lineup": 1, **alone, **search}, b""))
    inbox.put(({"do": "games", "ids": [[0, 20]]}, b""))

    def send(message: Mapping[str, Any], body: bytes) -> None:
        if body:
            said.append(body)
        if len(said) == 20:
            inbox.put(({"do": "stop"}, b""))

    assert Worker(inbox, send).run()
    assert [len(storage.unframe(frame)) for frame in said] == [1] * 20


class Told(Channel):
    """A line to a worker that hears messages, and says what the test has it say."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.messages, self.says, self.let_go = list[dict[str, Any]](), list[tuple[dict[str, Any], bytes]](), 0

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        self.messages.append(dict(message))

    def poll(self) -> Iterator[Message]:
        while self.says:
            yield Message(*self.says.pop(0), self._let_go)

    def _let_go(self) -> None:
        self.let_go += 1

    def close(self, why: str = "") -> str:
        return "it is gone"


class Telling(Backend):
    """Workers that come when the test has them come."""

    def __init__(self) -> None:
        super().__init__()
        self.come, self.now = list[Channel](), 1000.0

    def play(self, *_: Any) -> None:
        pass

    def look(self, seconds: float) -> list[Channel]:
        come, self.come, self.now = self.come, [], self.now + seconds
        return come

    def close(self, *, ended: bool) -> None:
        pass


class AtHead:
    """A head that has told its workers what to play; the test is the workers."""

    def __init__(self, run: Settings, backend: Backend, clock: Callable[[], float], ids: int = 10) -> None:
        self.head = Head(run, make_game("tic_tac_toe"), backend, clock)
        self.head.ask([range(ids)], [])
        self.head.play(Lineup([azpy.UniformEvaluator()]))
        self.facts: dict[str, Any] = {"said": "games", "lineup": 1, "slots": run.slots, "stats": {}, "pipelines": {}}
        self.facts |= {"run": self.head._run, "plays": self.head._plays, "row_exact": True, "answers": None}

    def take(self, most: int = 100) -> list[int]:
        """The games that the head gives to its caller."""
        return [game.game_id for game in self.head.take(most)]


class Alone(AtHead):
    """A head with one worker, on a clock that the test moves."""

    def __init__(self, ids: int = 10, **changes: Any) -> None:
        run, self.backend = settings(**changes), Telling()
        self.line = Told(run)
        self.backend.come.append(self.line)
        super().__init__(run, self.backend, lambda: self.backend.now, ids)

    def says(self, games: Sequence[azpy.GameRecord] = (), most: int = 100, **facts: Any) -> list[int]:
        """The worker sends a message; returns the games that the head gives to its caller."""
        self.line.says.append((self.facts | facts, storage.frame(*games) if games else b""))
        return self.take(most)

    def passes(self, seconds: float) -> None:
        """So much time, in which the head looks."""
        for _ in range(int(seconds / 4) + 1):
            self.backend.now += 4.0
            self.take()

    @property
    def given(self) -> list[int]:
        """The ids that the worker was told to play."""
        parts = [part for message in self.line.messages for part in message.get("ids", ())]
        return [game for first, count in parts for game in range(first, first + count)]


def games_of(**options: Any) -> list[azpy.GameRecord]:
    """Games 0 to 3 of the run of these tests, or others."""
    chosen = {"slots": 2, "simulations": 8, "games": 4, "seed": 0} | options
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), **chosen) as play:
        return sorted(play, key=lambda game: game.game_id)


def test_a_worker_gets_many_ids_in_one_message_and_is_never_short_of_them() -> None:
    alone, slots = Alone(1000, slots=128), 128
    alone.says()
    alone.line.messages.clear()
    for game in range(640):
        alone.take()
        assert alone.head.table.held("worker 1") > slots
        alone.head.table.accept("worker 1", game, b"")
    assert all(message["do"] == "games" for message in alone.line.messages)
    assert len(alone.line.messages) <= 640 / 32 + 1


def test_few_ids_are_shared_out() -> None:
    alone = Alone(10, slots=8)
    other = Told(alone.line.settings)
    alone.backend.come.append(other)
    other.says.append((alone.facts, b""))
    alone.says()
    assert [alone.head.table.held(f"worker {number}") for number in (1, 2)] == [5, 5]


def test_games_that_were_taken_and_not_written_down_are_there_at_an_interrupt() -> None:
    alone = Alone()
    alone.says()
    assert alone.says(games_of(), most=1) == [0]
    assert [game.game_id for game in alone.head.finish()] == [0, 1, 2, 3]


def test_a_message_is_acknowledged_once_the_last_of_its_games_is_written_down() -> None:
    """The caller has written a game down when it asks for the next one: not before."""
    alone, games, kept = Alone(), games_of(), list[int]()
    alone.says()
    alone.line.says.append((alone.facts, storage.frame(*games[:2])))
    alone.line.says.append((alone.facts, storage.frame(*games[2:])))
    taken = []
    for _ in range(5):
        taken += alone.take(1)
        kept.append(alone.line.let_go)
    assert taken == [0, 1, 2, 3]
    assert kept == [1, 1, 2, 2, 3]  # the first message has no games


BAD_TOTALS: list[Any] = [{"rows": 10**400}, {"rows": -1}, {"rows": True}, []]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        *(
            ({"lineup": lineup}, "it says that it plays lineup")
            for lineup in (math.inf, 10**30, 2, 0, -1, 1.0, True, "1")
        ),
        *(({"slots": slots}, "it says that it plays") for slots in (0, -1, 2**40, True, "8", None)),
        *(({"stats": stats}, "totals") for stats in BAD_TOTALS),
        ({"stats": {str(number): 1 for number in range(65)}}, "totals"),
        ({"run": "other"}, "it plays another run"),
        ({"row_exact": False}, "its network's answer to a position depends on what else is in its batch"),
        ({"answers": "other"}, "its network gives other bits"),
        ({"said": "games", "plays": 1, "lineup": None}, "it says that it plays lineup"),
    ],
)
def test_a_worker_that_says_what_none_can_say_is_ended(facts: dict[str, Any], text: str) -> None:
    alone = Alone()
    assert alone.says(games_of(), **facts) == []
    assert alone.head.members == []
    assert text in alone.head.notices[0]


def test_names_of_totals_do_not_add_up() -> None:
    alone = Alone()
    for first in range(0, 640, 64):
        alone.says(stats={str(first + number): 1 for number in range(64)})
    assert len(alone.head.stats) == 64


def test_a_result_counts_only_if_a_head_gave_the_game_to_a_worker() -> None:
    for game in (ENDLESS - 1, 15):
        alone = Alone(deterministic=False)
        alone.says()
        alone.head.ask([range(10, 20)], [])
        assert alone.says(games_of(games=1, first_game=game)) == []
        assert f"game {game} was not given to any worker" in alone.head.notices[0]


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_an_earlier_head_gave_away_counts_once(deterministic: bool) -> None:
    alone, left = Alone(deterministic=deterministic), Told(settings())
    alone.backend.leftover = [left]
    alone.head.ask([range(10, 20)], [])
    for facts, games in (
        ({}, games_of()[:2]),
        ({}, games_of()[:2]),  # once more
        ({"run": "other"}, games_of()[2:]),
        ({}, games_of(games=1, first_game=ENDLESS - 1)),
        ({}, games_of(games=1, first_game=15)),  # this head has given it to nobody
        ({"lineup": 77}, games_of()[2:]),  # lineups have other numbers there
    ):
        left.says.append((alone.facts | facts, storage.frame(*games)))
    assert alone.take() == [0, 1, 15, 2, 3]
    assert alone.head.notices == []
    assert left.let_go == 0
    alone.take()
    assert left.let_go == 6


def test_nothing_is_given_out_before_what_is_left_is_read() -> None:
    alone, left = Alone(slots=2), Told(settings())
    alone.says()
    for game in alone.given:  # the worker has room for more
        alone.head.table.accept("worker 1", game, b"")
    first = alone.given[-1] + 1
    alone.backend.leftover = [left]
    left.says += [(alone.facts, storage.frame(game)) for game in games_of(first_game=first)]
    alone.head._exchange(0.0)  # as `play` does
    assert [game for _ in range(4) for game in alone.take(1)] == list(range(first, first + 4))
    alone.take()
    assert alone.given == [*range(first), *range(first + 4, 10)][: len(alone.given)]
    assert len(alone.given) > first


def test_games_of_the_journal_are_compared_with_those_that_come_for_them_later() -> None:
    alone, games = Alone(), games_of(games=6)
    alone.head.ask([range(20, 30)], games_of(games=2, first_game=15))
    alone.says()
    assert alone.says([*games_of(games=1, first_game=15), *games]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RunError, match="game 16 came twice with different bytes"):
        alone.says(games_of(games=1, first_game=16, opening_plies=3))


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_game_may_name_the_networks_of_a_head_before_only_in_a_free_run(deterministic: bool) -> None:
    model = azpy.OnnxEvaluator(make_model(weight=0.5))
    with azpy.SelfPlay("tic_tac_toe", model, slots=2, simulations=8, games=3) as play:
        known, *left = play
    alone, line = Alone(deterministic=deterministic), Told(settings())
    alone.backend.leftover = [line]
    for done in ([], [known]):
        alone.head.ask([], done)
        line.says.append((alone.facts, storage.frame(*left)))
        found = alone.take()
    assert found == ([] if deterministic else [game.game_id for game in left])


def test_copies_of_games_of_an_iteration_before_do_not_count() -> None:
    alone = Alone()
    alone.says()
    alone.head.play(Lineup([azpy.UniformEvaluator()], resign_below=-0.5))
    assert alone.says(games_of()) == []  # it has not heard of the new lineup
    assert alone.head.notices == []
    assert alone.head.table.num_open == 10


def test_a_worker_that_finishes_nothing_lets_its_games_go() -> None:
    alone = Alone(1000)
    alone.says()
    alone.passes(1000)  # nobody knows yet how long a game takes
    assert alone.says(games_of()) == [0, 1, 2, 3]
    alone.head.pause()
    alone.backend.now += 10**6
    alone.head.play(Lineup([azpy.UniformEvaluator()]))  # a fit was longer than a lease
    alone.head.ask([range(1000, 1100)], [])
    alone.says(lineup=2, plays=alone.head._plays)
    assert alone.head.notices == []
    lease = alone.head.table.lease_seconds()
    assert lease >= 4 * 1000
    alone.backend.now += 10**6  # nobody looks
    alone.take()
    assert alone.head.notices == []
    alone.passes(lease + 1)
    assert alone.head.notices == [
        f"worker 1 ended: it finished no game in {lease:.0f} seconds; its games are open again"
    ]


def test_totals_of_dead_workers_stay_right_and_few_of_them_are_kept() -> None:
    backend = Telling()
    run = settings(deterministic=False)
    found = Head(run, make_game("tic_tac_toe"), backend)
    found.play(Lineup([azpy.UniformEvaluator()]))
    facts = {"said": "games", "lineup": 1, "slots": 1, "run": found._run}
    for number in range(1000):
        backend.come.append(line := Told(run))
        line.says.append((facts | {"stats": {"rows": number, "games": 1}, "pipelines": {"rounds": 2}}, b""))
        found.take(1)
        line.alive, line.weight = number == 500, 0.0
    found.take(1)
    assert found.stats == {"rows": sum(range(1000)), "games": 1000}
    assert found.pipeline_stats == [{"rounds": 2000}]
    names = [one.name for one in found.workers]
    assert len(names) < 300
    assert {"worker 501", "worker 1000"} <= set(names)


def test_messages_come_whole_in_pieces_of_any_size() -> None:
    sent: list[tuple[dict[str, Any], bytes]] = [({"do": "a"}, b""), ({"n": [1, 2]}, bytes(range(256)) * 9), ({}, b"x")]
    stream = b"".join(pack(*each) for each in sent)
    for size in (1, 2, 7, 300, len(stream)):
        unpacker = Unpacker(4096)
        pieces = [stream[begin : begin + size] for begin in range(0, len(stream), size)]
        assert [message for piece in pieces for message in unpacker.feed(piece)] == sent
    for wrong, text in (
        (pack({}, bytes(4097)), "a message of 2 and 4097 bytes, expected 4194304 and 4096 at most"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "it is no JSON object"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{]", "Expecting property name"),
        (struct.pack("<II", 10**5, 0) + b"[" * 10**5, "nested too deeply"),
    ):
        with pytest.raises(ValueError, match=text):
            list(Unpacker(4096).feed(wrong))


TALK = """
import errno, socket, sys, threading
from azpy.fleet.channels.pipe import talk

class Line:
    def recv(self, size):
        return self.answer(READ)
    def sendall(self, data):
        return self.answer(SENT)
    def answer(self, what):
        if isinstance(what, BaseException):
            raise what
        if what is None:
            threading.Event().wait()
        return what

READ, SENT = {read}, {sent}
_, send = talk(Line())
send({}, b"games")
threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("read", "sent", "code"),
    [
        ("b''", "b''", 0),  # the parent has closed its end
        ("ConnectionResetError()", "b''", 0),
        ("None", "BrokenPipeError()", 0),
        ("b'[]' * 100", "b''", 1),  # nonsense
        ("OSError(errno.EIO, 'Input/output error')", "b''", 1),
        ("MemoryError()", "b''", 1),
        ("None", "OSError(errno.ENOBUFS, 'No buffer space available')", 1),
        ("None", "MemoryError()", 1),
    ],
)
def test_only_a_parent_that_is_gone_ends_a_child_without_an_error(read: str, sent: str, code: int) -> None:
    program = TALK.replace("{read}", read).replace("{sent}", sent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, bool(code))


# Settings


def test_workers_share_what_a_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "usable_cores", lambda: 8)
    run = settings(slots=128, pipelines=8, workers=4, cache_positions=1000, deterministic=False)
    mine = settings_of_worker(run, ["cpu"], 3)
    assert (mine.slots, mine.pipelines, mine.threads, mine.cache_positions, mine.workers) == (32, 2, 1, 250, 0)
    run = settings(slots=7, pipelines=2, workers=4, threads=8, deterministic=False)
    mine = settings_of_worker(run, ["cuda:0", "cuda:1"], 3)
    assert (mine.slots, mine.pipelines, mine.threads, mine.device) == (2, 1, 2, "cuda:1")
    assert mine.search_options() == run.search_options()


def test_workers_that_cannot_be_are_refused() -> None:
    for changes, text in (
        ({"workers": -1}, "workers must be at least 0"),
        ({"workers": 2, "device": "tensorrt", "deterministic": False}, "workers play on the CPU or on CUDA"),
    ):
        with pytest.raises(SettingsError, match=text):
            settings(**changes)
