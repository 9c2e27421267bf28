"""Two tables: deaths of workers and heads, and workers that send what they must not. Nothing is lost or counts twice.

    pytest -m slow -s tests/test_deaths.py

prints them. A trial of the first table is a run in which something is killed once, by each channel, deterministic and
free: a deterministic run has the hashes of an undisturbed one, a free run each game once. A trial of the second one is
a head with a few games, one bad worker, and a good one that plays what the head gives it. AZPY_DEATHS sets the number
of trials of a kind.
"""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.fleet.channels import folder, pipe
from azpy.fleet.channels.files import with_checksum
from azpy.fleet.channels.pipe import Pipes
from azpy.fleet.examine import MOST_BYTES
from azpy.fleet.head import Head
from azpy.fleet.wire import MOST_OF_A_HEAD, MOST_OF_A_WORKER, Unpacker, pack
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.training.trainer import Trainer
from starts import Starts, command
from test_fleet import AtHead, settings
from test_folder import KEY, AtFolder, az_workers
from test_ray import NODE, a_cluster, actors_here, ray_environment  # noqa: F401 - one of them is a fixture

pytestmark = pytest.mark.slow

TRIALS = int(os.environ.get("AZPY_DEATHS", "4"))
ITERATIONS, GAMES = 2, 24  # of a run

DEATHS = "death", "trials", "killed", "right", "lost", "twice", "seconds"  # right: both hashes, or the number of games
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


def trained(path: Path, workers: int | str, deterministic: bool) -> Facts:
    chosen: dict[str, Any] = {"iterations": ITERATIONS, "games_per_iteration": GAMES}
    chosen |= {"deterministic": deterministic, "historical_share": 0.3 * deterministic, "workers": workers}
    with Trainer(settings(**chosen), path) as trainer:
        assert list(trainer.run())
    return facts_of(path)


@dataclass
class Trial:
    """What a trial has; `number` varies the moment of the death."""

    path: Path
    number: int
    deterministic: bool
    patch: pytest.MonkeyPatch
    starts: Starts
    cluster: Any
    killed: int = 0

    @contextlib.contextmanager
    def workers(self, channel: str) -> Iterator[int | str]:
        """Workers by a channel: the setting that has them play."""
        place = self.path / "place"
        with az_workers(place, 2) if channel == "folder" else contextlib.nullcontext():
            yield 2 if channel == "pipe" else "ray" if channel == "ray" else f"folder:{place}"

    def seen(self, kill: Callable[[Head], object]) -> None:
        """Has `kill` called after each `take` from some moment on, until it returns something true."""
        take, left = Head.take, self.number * 5 % 17

        def taken(fleet: Head, most: int) -> Any:
            nonlocal left
            found, left = take(fleet, min(most, 3)), left - 1
            if left < 0 and not self.killed and kill(fleet):
                self.killed += 1
            return found

        self.patch.setattr(Head, "take", taken)


def kill_one(head: Head) -> bool:
    """Kills a worker that has games in play; False if there is none just now."""
    busy = [worker.line for worker in head.members if head.table.held(worker.name)]
    for line in busy[:1]:
        if isinstance(line, pipe.Pipe):
            line.process.kill()
        elif isinstance(line, folder.FolderLine):
            said = (Path(line._folder._path) / "workers" / line.key).read_bytes()
            os.kill(json.loads(said)["pid"], signal.SIGKILL)
        else:
            os.kill(random.choice(actors_here()), signal.SIGKILL)
    return bool(busy)


def worker_plays(trial: Trial, channel: str) -> Facts:
    trial.seen(kill_one)
    with trial.workers(channel) as workers:
        return trained(trial.path / "run", workers, trial.deterministic)


CUT = """
import os, signal, sys
from azpy.cli import child
from azpy.fleet.wire import pack
talk, sent = child.talk, 0
def cut(connection):
    inbox, send = talk(connection)
    def half(message, body):
        global sent
        sent += bool(body)
        if body and sent == {nth} and not os.path.exists({flag!r}):
            open({flag!r}, "w").close()
            data = pack(message, body)
            connection.sendall(data[: len(data) * {part} // 10])
            os.kill(os.getpid(), signal.SIGKILL)
        send(message, body)
    return inbox, half
child.talk = cut
child.main(sys.argv[1], int(sys.argv[2]))
"""


def worker_sends(trial: Trial, _: str) -> Facts:
    """A part of a message comes, and no more."""
    flag, nth, part = trial.path / "cut", 1 + trial.number % 4, trial.number % 10
    code = CUT.format(flag=str(flag), nth=nth, part=part)
    trial.patch.setattr(pipe, "_COMMAND", (sys.executable, "-P", "-c", code))
    found = trained(trial.path / "run", 2, trial.deterministic)
    trial.killed += flag.exists()
    return found


def head_in(method: str, trial: Trial, channel: str) -> Facts:
    """A start whose head kills itself in a call of its fleet, and a second start that completes the run."""
    count, after = (
        (1 + trial.number * 3 % 20, True) if method == "take" else (1 + trial.number // 2 % 2, trial.number % 2)
    )
    before = (
        f"import os\nfrom azpy.fleet.head import Head as Fleet\nreal, left = Fleet.{method}, {count}\n"
        "def dies(self, *given):\n    global left\n    left -= 1\n"
        f"    found = real(self, *given) if left or {after} else None\n"
        "    if left == 0 and found == []:\n        left = 1\n"  # nothing came: it dies in the next call
        f"    if left == 0:\n        os.kill(os.getpid(), {signal.SIGKILL})\n    return found\n"
        f"Fleet.{method} = dies\n"
        "take = Fleet.take\nFleet.take = lambda self, most: take(self, min(most, 3))\n"
    )
    arguments = command("tic_tac_toe", trial.path / "run", ITERATIONS, trial.deterministic)
    arguments += ["--games-per-iteration", str(GAMES)]
    with trial.workers(channel) as workers:
        end = trial.starts.run(*arguments, "--workers", str(workers), before=before)
        assert end.code == -signal.SIGKILL, end
        trial.killed += 1
        trial.starts.finish(*arguments, "--workers", str(workers))
    return facts_of(trial.path / "run")


def node(trial: Trial, _: str) -> Facts:
    def lose(head: Head) -> bool:
        busy = [one.line for one in head.members if not one.line.waits and head.table.held(one.name)]
        for line in busy[:1]:
            lost = next(one for one in trial.cluster.worker_nodes if one.node_id == line.place.node)  # type: ignore[attr-defined]
            trial.cluster.remove_node(lost, allow_graceful=False)
        return bool(busy)

    trial.seen(lose)
    try:
        return trained(trial.path / "run", "ray", trial.deterministic)
    finally:
        while len(trial.cluster.worker_nodes) < 2:
            trial.cluster.add_node(**NODE)


KINDS: dict[tuple[str, str], Callable[[Trial, str], Facts]] = {
    **{("worker, while it plays", channel): worker_plays for channel in ("pipe", "folder", "ray")},
    ("worker, while it sends", "pipe"): worker_sends,
    **{
        (f"head, in {method}", channel): partial(head_in, method)
        for method, channel in itertools.product(("take", "play"), ("pipe", "folder", "ray"))
    },
    ("node", "ray"): node,
}


@pytest.fixture(scope="module")
def undisturbed(starts: Starts, tmp_path_factory: pytest.TempPathFactory) -> tuple[Facts, Facts]:
    """The facts of a run in this process, and of one that a command starts: their settings differ."""
    path = tmp_path_factory.mktemp("undisturbed")
    starts.finish(*command("tic_tac_toe", path / "started", ITERATIONS), "--games-per-iteration", str(GAMES))
    return trained(path / "here", 0, True), facts_of(path / "started")


@pytest.fixture(scope="module")
def nodes(ray_environment: None) -> Iterator[Any]:  # noqa: F811
    """A cluster of Ray with two nodes that play."""
    pytest.importorskip("ray")
    with a_cluster() as found:
        for _ in range(2):
            found.add_node(**NODE)
        yield found


@pytest.mark.parametrize("number", range(TRIALS))
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("kind", "channel"), list(KINDS))
def test_a_death_loses_no_game(
    kind: str,
    channel: str,
    deterministic: bool,
    number: int,
    starts: Starts,
    tmp_path: Path,
    tables: Tables,
    request: pytest.FixtureRequest,
) -> None:
    right = request.getfixturevalue("undisturbed")["head" in kind]
    cluster = request.getfixturevalue("nodes") if channel == "ray" else None
    row = f"{kind}, {channel}, {'deterministic' if deterministic else 'free'}"
    sums, begin = tables[DEATHS][row], time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
        patch.setattr("azpy.fleet.channels.ray._LOOK_SECONDS", 0.1)
        patch.setattr(folder, "_SILENT_SECONDS", 3.0)
        patch.setattr(folder, "_WAIT", 0.02)
        trial = Trial(tmp_path, number, deterministic, patch, starts, cluster)
        games, weights, ids = KINDS[kind, channel](trial, channel)
    same = (games, weights) == right[:2] if deterministic else len(ids) == ITERATIONS * GAMES
    lost = len(set(right[2]) - set(ids)) if deterministic else ITERATIONS * GAMES - len(ids)
    found = Counter(trials=1, killed=trial.killed, right=same, lost=lost, twice=len(ids) - len(set(ids)))
    sums.update(found)
    sums["seconds"] += round(time.monotonic() - begin)
    assert found == Counter(trials=1, killed=1, right=1, lost=0, twice=0)
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


class AtPipe(AtHead):
    """A head whose worker processes are this test."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ends: list[tuple[socket.socket, Unpacker]] = []
        patch.setattr(pipe, "Child", self._child)
        chosen = settings(workers=2, historical_share=0.0)
        super().__init__(chosen, Pipes(chosen), time.monotonic, IDS)
        self.head.table.lease("one that died", IDS)
        self.head.table.release("one that died")

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

    def sent(self, data: bytes, worker: int) -> list[int]:
        """A worker sends bytes; returns the games that the head gives to its caller."""
        connection, found = self.ends[worker][0], list[int]()
        while data:
            try:
                data = data[connection.send(data) :]
            except BlockingIOError:  # the head has to read first
                found += self.take()
            except OSError:  # it has closed the line
                break
        return found + self.take() + self.take()

    def send(self, games: Games, worker: int, **facts: Any) -> list[int]:
        return self.sent(pack(self.facts | facts, storage.frame(*games) if games else b""), worker)

    def close(self) -> None:
        self.head.close()
        for connection, _ in self.ends:
            connection.close()


class _Long:
    """A game that is too long."""

    def __init__(self, rng: random.Random) -> None:
        self._size = MOST_BYTES + rng.randrange(1, 1000)

    def to_bytes(self) -> bytes:
        return bytes(self._size)


KINDS_OF_BAD = ("wrong rules", "wrong bits", "corrupt", "illegal", "foreign", "not leased", "oversized")


@pytest.mark.parametrize(("channel", "kind"), list(itertools.product(("pipe", "folder"), KINDS_OF_BAD)))
def test_nothing_of_a_bad_worker_counts(channel: str, kind: str, stock: Stock, tmp_path: Path, tables: Tables) -> None:
    sums, trials = tables[BAD][f"{kind}, {channel}"], TRIALS if kind == "oversized" else MANY
    for number in range(trials):
        rng = random.Random(f"{channel} {kind} {number}")
        with pytest.MonkeyPatch.context() as patch:
            at: Any = AtPipe(patch) if channel == "pipe" else AtFolder(tmp_path / f"{number}")
            bad, good = (0, 1) if channel == "pipe" else (KEY, "c" * 16)
            if channel == "folder":
                at.comes(bad)
            at.send([], bad)
            assert at.head.table.held("worker 1")
            game = rng.choice(stock.right)
            whole = pack(at.facts, storage.frame(game))
            match kind:
                case "wrong rules":
                    counted = at.send([game], bad, run=f"{rng.getrandbits(256):064x}")
                case "wrong bits":
                    counted = at.send([game], bad, answers=[f"{rng.random()}"])
                case "corrupt" if channel == "pipe":
                    counted = at.sent(pack(at.facts, flipped(storage.frame(game), rng)), bad)
                case "corrupt":
                    counted = at.sent(flipped(with_checksum(whole), rng), bad)
                case "illegal":
                    counted = at.send([stock.illegal(rng)], bad)
                case "foreign":
                    counted = at.send([rng.choice(stock.foreign)], bad)
                case "not leased":
                    counted = at.send([rng.choice(stock.unasked)], bad)
                case "oversized" if rng.random() < 0.5:
                    counted = at.send([_Long(rng)], bad)
                case "oversized":
                    size = rng.randrange(MOST_OF_A_WORKER + 1, 1 << 27)
                    counted = at.sent(pack(at.facts, bytes(size))[:100] if channel == "pipe" else bytes(size), bad)
            sums["counted"] += len(counted)
            sums["refused"] += len(at.head.notices)
            assert at.head.table.held("worker 1") == 0  # others get its games
            if channel == "folder":
                at.comes(good)
            accepted = at.send([], good) + at.send(stock.right, good)
            at.head.close()
            if channel == "pipe":
                at.close()
            else:
                shutil.rmtree(tmp_path / f"{number}")
        sums["lost"] += len(set(range(IDS)) - set(accepted))
        sums["twice"] += len(accepted) - len(set(accepted))
        sums["trials"] += 1
    assert sums == Counter(trials=trials, refused=trials, counted=0, lost=0, twice=0)
