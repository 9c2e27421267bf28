"""The head of a fleet and what workers say to it: nothing is believed, and each game counts once."""

import math
import queue
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from test_fleet import settings

import azpy
from azpy.errors import RunError
from azpy.fleet import worker
from azpy.fleet.channels import Backend, Channel, Message
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import Lineup, digest_of_lineup, digest_of_run
from azpy.fleet.head import Head
from azpy.fleet.table import ENDLESS
from azpy.fleet.wire import Unpacker, pack
from azpy.fleet.worker import Worker
from azpy.games.names import make_game
from azpy.runs.games import frame, unframe
from azpy.settings import Settings
from models import make_model
from running import program


def games_of(game: str = "tic_tac_toe", **options: Any) -> list[azpy.GameRecord]:
    """Games 0 to 3 of the run of these tests, or others."""
    chosen = {"slots": 2, "simulations": 8, "games": 4, "seed": 0} | options
    with azpy.SelfPlay(game, azpy.UniformEvaluator(), **chosen) as play:
        return sorted(play, key=lambda record: record.game_id)


def test_only_games_of_the_run_are_accepted() -> None:
    examiner = Examiner(settings(), make_game("tic_tac_toe"))
    examiner.play(Lineup([azpy.UniformEvaluator()]))
    right = games_of(games=3, simulations=2)
    whole = frame(*right)
    assert [game.to_bytes() for game in examiner.games_in(whole)] == [game.to_bytes() for game in right]
    for game in right:
        examiner.look_at(game)
    for at in range(0, len(whole), 7):
        with pytest.raises(RefusedError, match="cannot be read"):
            examiner.games_in(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(RefusedError, match="cannot be read"):
            examiner.games_in(whole[:at])
    for wrong, text in (
        (games_of(seed=1)[0], "has seed 1, expected 0"),
        (games_of("connect_four")[0], r"has game 'connect_four.*', expected 'tic_tac_toe"),
    ):
        with pytest.raises(RefusedError, match=text):
            examiner.look_at(wrong)


def test_games_against_rules_or_of_other_networks_are_refused(tmp_path: Path) -> None:
    model = azpy.OnnxEvaluator(make_model(weight=0.5))
    start = make_game("tic_tac_toe")
    with azpy.SelfPlay(start, model, slots=2, simulations=2, games=1) as play:
        record = next(play)
    examiner = Examiner(settings(deterministic=False), start)
    examiner.play(Lineup([azpy.UniformEvaluator()]))
    with pytest.raises(RefusedError, match=f"was played by network {model.network_id:#018x}, which this run"):
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
        with pytest.raises(RefusedError, match=f"was played by network {model.network_id ^ 1:#018x}, which this run"):
            examiner.look_at(azpy.GameRecord.from_bytes(data))
    changed = bytearray(record.to_bytes())
    place = changed.index(record.actions[1].tobytes() + record.players[1].tobytes())
    changed[place : place + 4] = record.actions[0].tobytes()  # where the first player already is
    with pytest.raises(RefusedError, match=f"game {record.game_id} breaks the rules: .*ply 1"):
        examiner.look_at(azpy.GameRecord.from_bytes(bytes(changed)))
    exact = Examiner(settings(), start)
    exact.play(Lineup([model], b""))
    exact.play(Lineup([azpy.UniformEvaluator()]))
    with pytest.raises(RefusedError, match="which this run does not use"):
        exact.look_at(record)  # of a deterministic run's iteration before


def test_a_game_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.fleet.examine.MOST_BYTES", 100)
    with pytest.raises(RefusedError, match=r"a game has [0-9]+ bytes, expected at most 100"):
        Examiner(settings(), make_game("tic_tac_toe")).games_in(frame(*games_of()))


def test_messages_of_games_keep_to_the_head_s_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    games = games_of() * 5
    longest = max(len(game.to_bytes()) for game in games)
    monkeypatch.setattr(worker, "MOST_OF_A_PART", 2 * longest)
    inbox, said = queue.SimpleQueue[tuple[dict[str, Any], bytes]](), list[list[bytes]]()
    inbox.put(({"do": "begin", "settings": asdict(settings()), "version": azpy.__version__}, b""))
    lineup = {"network": None, "precision": "fp32", "score_to_beat": None}
    inbox.put(({"do": "play", "lineup": 1, **lineup}, b""))
    inbox.put(({"do": "games", "ids": [[0, 20]]}, b""))

    def send(message: Mapping[str, Any], body: bytes) -> None:
        if body:
            said.append(unframe(body))
        if sum(map(len, said)) == 20:
            inbox.put(({"do": "stop"}, b""))

    assert Worker(inbox, send).run()
    assert all(sum(map(len, part)) <= 2 * longest for part in said)
    assert len(said) < 20
    monkeypatch.setattr(worker, "MOST_BYTES", longest - 1)
    with pytest.raises(RunError, match=r"has [0-9]+ bytes, expected [0-9]+ at most: workers cannot send it"):
        list(worker._in_parts(games))


class Told(Channel):
    """A line to a worker that hears messages, and says what the test has it say."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.messages, self.says, self.let_go = list[dict[str, Any]](), list[tuple[dict[str, Any], bytes]](), 0

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        self.messages.append(dict(message))

    def poll(self) -> Iterator[Message]:
        while self.says:
            yield Message(*self.says.pop(0), self._let_go)

    def _let_go(self) -> None:
        self.let_go += 1

    def close(self, why: str = "") -> str:
        self.weight = 0.0
        return "it is gone"


class Telling(Backend):
    """Workers that come when the test has them come."""

    def __init__(self) -> None:
        super().__init__()
        self.come, self.now = list[Channel](), 1000.0
        self.left: Told | None = None  # has messages of workers that this head does not know

    def play(self, *_: Any) -> None:
        pass

    def look(self, seconds: float) -> list[Channel]:
        come, self.come, self.now = self.come, [], self.now + seconds
        return come

    def leftover(self) -> Iterator[Message]:
        return iter(()) if self.left is None else self.left.poll()

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
        self.line.says.append((self.facts | facts, frame(*games) if games else b""))
        return self.take(most)

    def passes(self, seconds: float) -> None:
        """So much time passes, in which the head looks."""
        until = self.backend.now + seconds
        while self.backend.now < until:
            self.backend.now = min(until, self.backend.now + 4.0)
            self.take()

    @property
    def given(self) -> list[int]:
        """The ids that the worker was told to play."""
        parts = [part for message in self.line.messages for part in message.get("ids", ())]
        return [game for first, count in parts for game in range(first, first + count)]


def test_a_worker_gets_many_ids_at_once_and_never_runs_short() -> None:
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


def test_games_taken_but_not_written_are_there_at_an_interrupt() -> None:
    alone = Alone()
    alone.says()
    assert alone.says(games_of(), most=1) == [0]
    assert [game.game_id for game in alone.head.finish()] == [0, 1, 2, 3]


def test_a_message_is_acknowledged_once_its_games_are_written() -> None:
    """The caller has written a game down when it asks for the next one: not before."""
    alone, games, kept = Alone(), games_of(), list[int]()
    alone.says()
    alone.line.says.append((alone.facts, frame(*games[:2])))
    alone.line.says.append((alone.facts, frame(*games[2:])))
    taken = []
    for _ in range(5):
        taken += alone.take(1)
        kept.append(alone.line.let_go)
    assert taken == [0, 1, 2, 3]
    assert kept == [1, 1, 2, 2, 3]  # the first message has no games


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        *(({"lineup": lineup}, "it reports lineup") for lineup in (math.inf, 10**30, 2, 0, -1, 1.0, True, "1")),
        *(({"slots": slots}, "games at once") for slots in (0, -1, 2**40, True, "8", None)),
        *(({"stats": {"rows": rows}}, "totals") for rows in (10**400, -1, True)),
        ({"stats": []}, "totals"),
        ({"stats": {str(number): 1 for number in range(65)}}, "totals"),
        ({"run": "other"}, "it plays a different run"),
        ({"row_exact": False}, "its network's output for a position depends on the rest of the batch"),
        ({"answers": "other"}, "its network computes different results"),
        ({"said": "games", "plays": 1, "lineup": None}, "it reports lineup"),
    ],
)
def test_a_worker_with_impossible_reports_is_ended(facts: dict[str, Any], text: str) -> None:
    alone = Alone()
    assert alone.says(games_of(), **facts) == []
    assert alone.head.members == []
    assert text in alone.head.notices[0]


def test_names_of_totals_do_not_add_up() -> None:
    alone = Alone()
    for first in range(0, 640, 64):
        alone.says(stats={str(first + number): 1 for number in range(64)})
    assert len(alone.head.stats) == 64


def test_a_game_that_no_head_gave_away_does_not_count() -> None:
    for game in (ENDLESS - 1, 15):
        alone = Alone(deterministic=False)
        alone.says()
        alone.head.ask([range(10, 20)], [])
        assert alone.says(games_of(games=1, first_game=game)) == []
        assert f"game {game} was not given to any worker" in alone.head.notices[0]


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_an_earlier_head_gave_away_counts_once(deterministic: bool) -> None:
    alone, left = Alone(deterministic=deterministic), Told(settings())
    alone.backend.left = left
    alone.head.ask([range(10, 20)], [])
    for facts, games in (
        ({}, games_of()[:2]),
        ({}, games_of()[:2]),  # once more
        ({"run": "other"}, games_of()[2:]),
        ({}, games_of(games=1, first_game=ENDLESS - 1)),
        ({}, games_of(games=1, first_game=15)),  # this head has given it to nobody
        ({"lineup": 77}, games_of()[2:]),  # lineups have other numbers there
    ):
        left.says.append((alone.facts | facts, frame(*games)))
    assert alone.take() == [0, 1, 15, 2, 3]
    assert alone.head.notices == []
    assert left.let_go == 0
    alone.take()
    assert left.let_go == 6


def test_no_game_is_given_out_before_old_messages_are_read() -> None:
    alone, left = Alone(slots=2), Told(settings())
    alone.says()
    for game in alone.given:  # the worker has room for more
        alone.head.table.accept("worker 1", game, b"")
    first = alone.given[-1] + 1
    alone.backend.left = left
    left.says += [(alone.facts, frame(game)) for game in games_of(first_game=first)]
    alone.head._exchange(0.0)  # as `play` does
    assert [game for _ in range(4) for game in alone.take(1)] == list(range(first, first + 4))
    alone.take()
    assert alone.given == [*range(first), *range(first + 4, 10)][: len(alone.given)]
    assert len(alone.given) > first


def test_a_late_game_is_compared_with_the_one_in_the_journal() -> None:
    alone, games = Alone(), games_of(games=6)
    alone.head.ask([range(20, 30)], games_of(games=2, first_game=15))
    alone.says()
    assert alone.says([*games_of(games=1, first_game=15), *games]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RunError, match="game 16 came twice with different bytes"):
        alone.says(games_of(games=1, first_game=16, opening_plies=3))


@pytest.mark.parametrize("deterministic", [True, False])
def test_only_a_free_run_takes_networks_of_an_earlier_head(deterministic: bool) -> None:
    model = azpy.OnnxEvaluator(make_model(weight=0.5))
    with azpy.SelfPlay("tic_tac_toe", model, slots=2, simulations=8, games=3) as play:
        known, *left = play
    alone, line = Alone(deterministic=deterministic), Told(settings())
    alone.backend.left = line
    for done in ([], [known]):
        alone.head.ask([], done)
        line.says.append((alone.facts, frame(*left)))
        found = alone.take()
    assert found == ([] if deterministic else [game.game_id for game in left])


def test_copies_of_games_of_an_earlier_iteration_do_not_count() -> None:
    alone = Alone()
    alone.says()
    alone.head.play(Lineup([azpy.UniformEvaluator()], score_to_beat=-0.5))
    assert alone.says(games_of()) == []  # it has not heard of the new lineup
    assert alone.head.notices == []
    assert alone.head.table.num_open == 10


def test_a_worker_that_finishes_nothing_loses_its_games() -> None:
    alone = Alone(1000)
    alone.says()
    alone.passes(1000)  # nobody knows yet how long a game takes
    assert alone.says(games_of()) == [0, 1, 2, 3]
    alone.head.pause()
    alone.backend.now += 10**6  # a fit is longer than a lease
    alone.head.play(Lineup([azpy.UniformEvaluator()]))
    alone.head.ask([range(1000, 1100)], [])
    alone.says(lineup=2, plays=alone.head._plays)
    assert alone.head.notices == []
    lease = alone.head.table.lease_seconds()
    assert lease >= 4 * 1000
    alone.backend.now += 10**6  # the machine is paused, its worker too
    alone.take()
    assert alone.head.notices == []
    alone.passes(lease + 1)
    assert alone.head.notices == [
        f"worker 1 ended: it did not finish a game in {lease:.0f} seconds; its games go to other workers"
    ]


def test_a_worker_that_never_answers_is_ended() -> None:
    alone = Alone()
    for _ in range(2):  # a new lineup gives it no more time
        assert alone.head.notices == []
        alone.head.play(Lineup([azpy.UniformEvaluator()]))
        alone.passes(160)
    ends = "worker 1 ended: it did not open its network in 300 seconds; its games go to other workers"
    assert alone.head.notices == [ends]
    assert alone.head.table.num_open == 10  # it was given none


def test_workers_are_kept_while_the_head_reads_nothing() -> None:
    alone = Alone(1000, slots=2)
    alone.says()
    alone.head.table.lease("worker 1", 20)
    alone.passes(10.0)
    alone.says(games_of()[:1])
    alone.says(games_of(games=5, first_game=1), most=1)  # the head has enough for a while
    alone.line.says.append((alone.facts, frame(*games_of(games=1, first_game=6))))
    alone.backend.now += 10**6  # and it is away
    while alone.take(1):
        assert alone.head.notices == []


def test_totals_of_dead_workers_stay_right_and_few_are_kept() -> None:
    backend = Telling()
    run = settings(deterministic=False)
    found = Head(run, make_game("tic_tac_toe"), backend)
    found.play(Lineup([azpy.UniformEvaluator()]))
    facts = {"said": "games", "lineup": 1, "slots": 1, "run": found._run}
    for number in range(1000):
        backend.come.append(line := Told(run))
        line.says.append((facts | {"stats": {"rows": number, "games": 1}, "pipelines": {"rounds": 2}}, b""))
        found.take(1)
        line.alive = number == 500
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
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "it is not a JSON object"),
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
def test_a_child_ends_without_error_only_if_its_parent_is_gone(read: str, sent: str, code: int) -> None:
    done = program(TALK.replace("{read}", read).replace("{sent}", sent))
    assert (done.code, "Traceback" in done.errors) == (code, bool(code))


def test_runs_and_lineups_are_told_apart_by_what_changes_games() -> None:
    """A worker of a run with another seed played on until its first game was examined."""
    run = settings()
    for changes in ({"seed": 1}, {"game": "connect_four"}, {"deterministic": False}, {"simulations": 3}):
        assert digest_of_run(replace(run, **changes)) != digest_of_run(run)
    assert digest_of_run(replace(run, slots=7, workers=3, learning_rate=0.5)) == digest_of_run(run)
    facts = {"network": None, "precision": "fp32", "score_to_beat": None}
    for name, value in {"network": "0" * 64, "precision": "fp16", "score_to_beat": 0.5}.items():
        assert digest_of_lineup(facts | {name: value}) != digest_of_lineup(facts)
    assert digest_of_lineup(facts | {"lineup": 2, "answers": "other"}) == digest_of_lineup(facts)
