"""Two tables: deaths of workers and heads, and workers that send what they must not. Nothing is lost or counts twice.

    pytest -m slow -s tests/test_deaths.py

prints them. A trial of the first table is a deterministic run in which something is killed once; then its games and
weights have the hashes of an undisturbed run. A trial of the second one is a head with a few games, one bad worker, and
good ones that play what the head gives them. AZPY_DEATHS sets the number of trials of a kind.
"""

import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import struct
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azpy.fleet.folder import MOST_OF_A_RESULT, FolderFleet, _Worker
from azpy.fleet.local import LocalFleet
from azpy.fleet.place import Pulse, seal
from azpy.fleet.ray import RayFleet

import azpy
from azpy.fleet import child, folder, local
from azpy.fleet.examine import MOST_BYTES
from azpy.fleet.fleet import Lineup, PlayingNetwork
from azpy.fleet.table import IdTable
from azpy.fleet.wire import MOST_OF_A_HEAD, MOST_OF_A_WORKER, Unpacker, pack
from azpy.games.names import make_position
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.training.trainer import Trainer
from starts import Starts, command
from test_fleet import settings
from test_folder import Head, az_workers, kill_one_that_plays
from test_ray import NODE, a_cluster, actors_here, ray_environment  # noqa: F401 - one of them is a fixture

pytestmark = pytest.mark.slow

TRIALS = int(os.environ.get("AZPY_DEATHS", "20"))
ITERATIONS, GAMES = 2, 24  # of a run
SMALL = {"iterations": ITERATIONS, "games_per_iteration": GAMES}


DEATHS = "death", "trials", "killed", "equal", "lost", "twice", "seconds"  # equal: both hashes; the games lost, twice
BAD = "bad worker", "trials", "refused", "counted", "lost", "twice"  # refused or dropped; its games that counted

Tables = dict[tuple[str, ...], defaultdict[str, Counter[str]]]


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    """Rows of the two tables, printed at the end."""
    found: Tables = {DEATHS: defaultdict(Counter), BAD: defaultdict(Counter)}
    yield found
    for columns, rows in found.items():
        print("\n\n" + " | ".join(columns))
        for kind, sums in rows.items():
            print(" | ".join([kind, *(str(sums[name]) for name in columns[1:])]))


# Deaths

Facts = tuple[str, str, list[int]]  # the hashes of games and weights, and the ids


def facts_of(path: Path) -> Facts:
    with RunFolder(path, {}) as run:
        assert run.sealed.iterations() == list(range(1, ITERATIONS + 1))
        games = [game.game_id for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
        return str(run.games_hash()), str(run.weights_hash(ITERATIONS)), games


def trained(path: Path, workers: int | str = 0) -> Facts:
    with Trainer(settings(workers=workers, **SMALL), path) as trainer:
        assert list(trainer.run())
    return facts_of(path)


def arguments_of(path: Path, workers: str) -> list[str]:
    return [*command("tic_tac_toe", path, ITERATIONS), "--games-per-iteration", str(GAMES), "--workers", workers]


@dataclass
class Trial:
    """What a trial has; `number` varies the moment of the death."""

    path: Path
    number: int
    patch: pytest.MonkeyPatch
    starts: Starts
    cluster: Any
    killed: int = 0

    def seen(self, kind: type, kill: Callable[[Any], object]) -> None:
        """Has `kill` called after each `take` from some moment on, until it returns something true."""
        take, left = kind.take, self.number * 5 % 17  # type: ignore[attr-defined]

        def taken(fleet: Any, most: int) -> Any:
            nonlocal left
            found, left = take(fleet, min(most, 3)), left - 1
            if left < 0 and not self.killed and kill(fleet):
                self.killed += 1
            return found

        self.patch.setattr(kind, "take", taken)

    def killed_head(self, kind: type, method: str, count: int, workers: str, after: bool = True) -> Facts:
        """A start whose head kills itself in a call of its fleet, and a second start that completes the run."""
        before = (
            f"import os\nfrom {kind.__module__} import {kind.__name__} as Fleet\nreal, left = Fleet.{method}, {count}\n"
            "def dies(self, *given):\n    global left\n    left -= 1\n"
            f"    found = real(self, *given) if left or {after} else None\n"
            "    if left == 0 and found == []:\n        left = 1\n"  # nothing came: it dies in the next call
            f"    if left == 0:\n        os.kill(os.getpid(), {signal.SIGKILL})\n    return found\n"
            f"Fleet.{method} = dies\n"
            "take = Fleet.take\nFleet.take = lambda self, most: take(self, min(most, 3))\n"
        )
        arguments = arguments_of(self.path / "run", workers)
        end = self.starts.run(*arguments, before=before)
        assert end.code == -signal.SIGKILL, end
        self.killed += 1
        self.starts.finish(*arguments)
        return facts_of(self.path / "run")


def worker_plays(trial: Trial) -> Facts:
    def kill(fleet: LocalFleet) -> bool:
        found = next((one for one in fleet._workers if fleet._table.held(one.name)), None)
        if found is not None:
            found.process.kill()
        return found is not None

    trial.seen(LocalFleet, kill)
    return trained(trial.path / "run", 2)


CUT = """
import os, signal, sys
from azpy.cli import child
talk, sent = child.talk, 0
def cut(connection):
    inbox, send = talk(connection)
    def half(data):
        global sent
        sent += b'"said": "games"' in data
        if sent == {nth} and not os.path.exists({flag!r}):
            open({flag!r}, "w").close()
            connection.sendall(data[: len(data) * {part} // 10])
            os.kill(os.getpid(), signal.SIGKILL)
        send(data)
    return inbox, half
child.talk = cut
child.main(sys.argv[1], int(sys.argv[2]))
"""


def worker_sends(trial: Trial) -> Facts:
    """A part of a message comes, and no more."""
    flag, nth, part = trial.path / "cut", 1 + trial.number % 4, trial.number % 10
    code = CUT.format(flag=str(flag), nth=nth, part=part)
    trial.patch.setattr(child, "_COMMAND", (sys.executable, "-P", "-c", code))
    found = trained(trial.path / "run", 2)
    trial.killed += flag.exists()
    return found


def head_plays(trial: Trial) -> Facts:
    return trial.killed_head(LocalFleet, "take", 1 + trial.number * 3 % 20, "2")


def head_changes(trial: Trial) -> Facts:
    """Before or after the workers are told of the first or second network."""
    return trial.killed_head(LocalFleet, "play", 1 + trial.number // 2 % 2, "2", after=trial.number % 2 == 0)


def folder_worker(trial: Trial) -> Facts:
    place = trial.path / "place"
    trial.patch.setattr(folder, "_SILENT_SECONDS", 3.0)
    trial.patch.setattr(folder, "_WAIT", 0.02)
    with az_workers(place, 2) as processes:
        trial.seen(FolderFleet, lambda fleet: kill_one_that_plays(fleet, place, processes))
        return trained(trial.path / "run", f"folder:{place}")


def folder_head(trial: Trial) -> Facts:
    place = trial.path / "place"
    with az_workers(place, 2):
        return trial.killed_head(FolderFleet, "take", 1 + trial.number * 3 % 40, f"folder:{place}")


def busy_on_ray(fleet: RayFleet) -> Any:
    return next((one for one in fleet._workers if one.answered and fleet._table.held(one.name)), None)


def ray_actor(trial: Trial) -> Facts:
    def kill(fleet: RayFleet) -> bool:
        if busy_on_ray(fleet) is not None:
            os.kill(random.choice(actors_here()), signal.SIGKILL)
            return True
        return False

    trial.seen(RayFleet, kill)
    return trained(trial.path / "run", "ray")


def ray_node(trial: Trial) -> Facts:
    def lose(fleet: RayFleet) -> bool:
        if (worker := busy_on_ray(fleet)) is None:
            return False
        node = next(one for one in trial.cluster.worker_nodes if one.node_id == worker.place.node)
        trial.cluster.remove_node(node, allow_graceful=False)
        return True

    trial.seen(RayFleet, lose)
    try:
        return trained(trial.path / "run", "ray")
    finally:
        while len(trial.cluster.worker_nodes) < 2:
            trial.cluster.add_node(**NODE)


KINDS: dict[str, Callable[[Trial], Facts]] = {
    "worker, while it plays": worker_plays,
    "worker, while it sends": worker_sends,
    "head, in an iteration": head_plays,
    "head, at a change of network": head_changes,
    "worker at a folder": folder_worker,
    "head of a folder": folder_head,
    "Ray's actor": ray_actor,
    "Ray's node": ray_node,
}


@pytest.fixture(scope="module")
def undisturbed(starts: Starts, tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, Facts]:
    """The facts of a run in this process, and of one that a command starts: their settings differ."""
    path = tmp_path_factory.mktemp("undisturbed")
    starts.finish(*arguments_of(path / "started", "0"))
    return trained(path / "here"), facts_of(path / "started")


@pytest.fixture(scope="module")
def nodes(ray_environment: None) -> Iterator[Any]:  # noqa: F811
    """A cluster of Ray with two nodes that play."""
    pytest.importorskip("ray")
    with a_cluster() as found:
        for _ in range(2):
            found.add_node(**NODE)
        yield found


@pytest.mark.parametrize(("kind", "number"), list(itertools.product(KINDS, range(TRIALS))))
def test_a_death_changes_no_game(
    kind: str, number: int, starts: Starts, tmp_path: Path, tables: Tables, request: pytest.FixtureRequest
) -> None:
    right = request.getfixturevalue("undisturbed")["head" in kind]
    cluster = request.getfixturevalue("nodes") if "Ray" in kind else None
    sums, begin = tables[DEATHS][kind], time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
        patch.setattr("azpy.fleet.ray._LOOK_SECONDS", 0.1)
        trial = Trial(tmp_path, number, patch, starts, cluster)
        games, weights, ids = KINDS[kind](trial)
    found = Counter(
        trials=1,
        killed=trial.killed,
        equal=(games, weights) == right[:2],
        lost=len(set(right[2]) - set(ids)),
        twice=len(ids) - len(set(ids)),
    )
    sums.update(found)
    sums["seconds"] += round(time.monotonic() - begin)
    assert found == Counter(trials=1, killed=1, equal=1, lost=0, twice=0)
    shutil.rmtree(tmp_path)


# Bad workers

MANY = 10 * TRIALS
IDS = 10

Games = list[azpy.GameRecord]


def played(**options: Any) -> Games:
    chosen = {"slots": 2, "simulations": 8, "games": IDS, "seed": 0} | options
    with azpy.SelfPlay(chosen.pop("game", "tic_tac_toe"), azpy.UniformEvaluator(), **chosen) as play:
        return sorted(play, key=lambda game: game.game_id)


@dataclass(frozen=True)
class Stock:
    """Games to send: right ones, and some of other runs."""

    right: Games
    foreign: Games
    unasked: Games  # by the run's rules, with ids that the head gives to nobody

    def illegal(self, rng: random.Random) -> azpy.GameRecord:
        """A game in which a player moves to a cell that is taken."""
        while True:
            record = rng.choice(self.right)
            data, ply = bytearray(record.to_bytes()), rng.randrange(1, len(record))
            place = data.index(record.actions[ply].tobytes() + record.players[ply].tobytes())
            data[place : place + 4] = record.actions[rng.randrange(ply)].tobytes()
            found = azpy.GameRecord.from_bytes(bytes(data))
            if len(set(found.actions.tolist())) < len(found):  # else the bytes were those of a policy
                return found


@pytest.fixture(scope="module")
def stock() -> Stock:
    foreign = [*played(seed=1), *played(game="connect_four"), *played(simulations=2, seed=7)]
    unasked = [*played(first_game=2**63 - 2, games=1), *played(first_game=IDS + 20)]
    return Stock(played(), foreign, unasked)


def flipped(data: bytes, rng: random.Random) -> bytes:
    """With another bit somewhere, or cut."""
    at = rng.randrange(len(data))
    return data[:at] if rng.random() < 0.2 else data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


class AtWire:
    """A head whose worker processes are this test."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ends: list[tuple[socket.socket, Unpacker]] = []
        patch.setattr(local, "Child", self._child)
        self.table = IdTable(deterministic=True)
        self.table.ask(range(IDS))
        self.table.lease("one that died", IDS)
        self.table.release("one that died")
        chosen = settings(workers=2, historical_share=0.0)
        self.fleet = LocalFleet(chosen, make_position("tic_tac_toe"), self.table)
        self.fleet.play(Lineup(PlayingNetwork([azpy.UniformEvaluator()])))
        self.accepted = list[int]()

    def _child(self, _: str) -> Any:
        mine, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.ends.append((theirs, Unpacker(MOST_OF_A_HEAD)))

        class Child:
            socket, process = mine, None

            def end(self, _: float) -> str:
                mine.close()
                return "it is gone"

        return Child()

    def take(self) -> None:
        self.accepted += [game.game_id for game in self.fleet.take(100)]

    def say(self, worker: int, message: dict[str, Any], body: bytes = b"") -> None:
        data, connection = pack(message, body), self.ends[worker][0]
        while data:
            try:
                data = data[connection.send(data) :]
            except BlockingIOError:  # the head has to read first
                self.take()

    def begin(self, worker: int, version: str = azpy.__version__, answers: object = (None,)) -> None:
        self.say(worker, {"said": "ready", "version": version})
        self.say(worker, {"said": "playing", "lineup": 1, "row_exact": True, "answers": answers})
        self.take()

    def send(self, worker: int, frame: bytes) -> None:
        self.say(worker, {"said": "games", "stats": {}, "pipelines": {}}, frame)
        self.take()

    def given(self, worker: int) -> list[int]:
        """The ids that a worker was told to play."""
        connection, unpacker = self.ends[worker]
        with contextlib.suppress(BlockingIOError):
            messages = list(unpacker.feed(connection.recv(1 << 20)))
            parts = [part for message, _ in messages for part in message.get("ids", ())]
            return [game for first, count in parts for game in range(first, first + count)]
        return []

    def finish(self, games: Games, first: int) -> None:
        """The workers from this one on play what they are given."""
        for worker in range(1, len(self.ends)):
            self.begin(worker)
        for _ in range(IDS):
            for worker in range(first, len(self.ends)):
                if ids := self.given(worker):
                    self.send(worker, storage.frame(*(games[game] for game in ids)))
        self.fleet.close()
        for connection, _ in self.ends:
            connection.close()

    @property
    def refused(self) -> int:
        return len(self.fleet.notices)


def bad_at_wire(kind: str, at: AtWire, stock: Stock, rng: random.Random) -> None:
    if kind in ("wrong version", "wrong bits"):
        version = f"99.{rng.randrange(99)}.0" if kind == "wrong version" else azpy.__version__
        at.begin(0, version, (None,) if kind == "wrong version" else [f"{rng.random()}"])
        return
    at.begin(0)
    game = rng.choice(stock.right)
    match kind:
        case "corrupt":
            at.send(0, flipped(storage.frame(game), rng))
        case "illegal":
            at.send(0, storage.frame(stock.illegal(rng)))
        case "foreign":
            at.send(0, storage.frame(rng.choice(stock.foreign)))
        case "not leased":
            at.send(0, storage.frame(rng.choice(stock.unasked)))
        case "oversized" if rng.random() < 0.5:  # one game
            at.send(0, storage.frame(_Long(rng)))  # type: ignore[arg-type]
        case "oversized":
            at.ends[0][0].sendall(struct.pack("<II", 2, rng.randrange(MOST_OF_A_WORKER + 1, 1 << 32)))
            at.take()
        case "late":
            at.send(0, storage.frame(game))
            at.table.seal(at.accepted)
            at.send(0, storage.frame(game))


class _Long:
    """A game that is too long."""

    def __init__(self, rng: random.Random) -> None:
        self._size = MOST_BYTES + rng.randrange(1, 1000)

    def to_bytes(self) -> bytes:
        return bytes(self._size)


def bad_at_folder(kind: str, at: Head, stock: Stock, rng: random.Random) -> list[int]:
    game, data = rng.choice(stock.right), b""
    match kind:
        case "wrong version":
            return at.send(0, [game], run=f"{rng.getrandbits(256):064x}")
        case "wrong bits":
            return at.send(0, [game], answers=[f"{rng.random()}"])
        case "corrupt":
            data = flipped(seal(pack(at.facts, storage.frame(game))), rng)
        case "illegal":
            return at.send(0, [stock.illegal(rng)])
        case "foreign":
            return at.send(0, [rng.choice(stock.foreign)])
        case "not leased":
            return at.send(0, [rng.choice(stock.unasked)])
        case "oversized" if rng.random() < 0.5:
            return at.send(0, [_Long(rng)])  # type: ignore[list-item]
        case "oversized":
            data = bytes(MOST_OF_A_RESULT + 1)
        case "late":
            accepted = at.send(0, [game])
            at.table.seal(accepted)
            return accepted + at.send(1, [game])
    return at.sent(0, data)


KINDS_OF_BAD = ("wrong version", "wrong bits", "corrupt", "illegal", "foreign", "not leased", "oversized", "late")


@pytest.mark.parametrize(("way", "kind"), list(itertools.product(("wire", "folder"), KINDS_OF_BAD)))
def test_nothing_of_a_bad_worker_counts(way: str, kind: str, stock: Stock, tmp_path: Path, tables: Tables) -> None:
    sums, trials = tables[BAD][f"{kind}, {way}"], TRIALS if kind == "oversized" else MANY
    for number in range(trials):
        rng = random.Random(f"{way} {kind} {number}")
        late = kind == "late"
        if way == "wire":
            with pytest.MonkeyPatch.context() as patch:
                at = AtWire(patch)
                bad_at_wire(kind, at, stock, rng)
                sums["counted"] += len(at.accepted) - late
                sums["refused"] += at.refused if not late else at.table.dropped.total()
                at.finish(stock.right, first=0 if late else 1)
            accepted = at.accepted
        else:
            head = Head(tmp_path / f"{number}")
            key = "0123456789abcdef"
            head.fleet._workers[key] = _Worker(key, "worker 1", Pulse(), is_here=True, slots=8)
            head.fleet.take(1)
            for name in head.fleet._there.names("open"):
                head.fleet._there.claim(name, key)
            head.fleet.take(1)
            assert head.table.held("worker 1")
            accepted = bad_at_folder(kind, head, stock, rng)
            sums["counted"] += len(accepted) - late
            sums["refused"] += len(head.fleet.notices) if not late else head.table.dropped.total()
            if not late:  # others get its games
                assert head.table.held("worker 1") == 0
            accepted += head.send(0, stock.right, key="c" * 16)
            head.fleet.close()
            shutil.rmtree(tmp_path / f"{number}")
        sums["lost"] += len(set(range(IDS)) - set(accepted))
        sums["twice"] += len(accepted) - len(set(accepted))
        sums["trials"] += 1
    assert sums == Counter(trials=trials, refused=trials, counted=0, lost=0, twice=0)
