"""The table of ids: each game counts exactly once, whatever is lost, late, twice, or dies."""

import math
import random
from itertools import pairwise

import pytest

from azpy.errors import RunError
from azpy.fleet.table import AHEAD, ENDLESS, LEAST_LEASE, IdTable
from oracles import Clock


def ids(ranges: list[range]) -> list[int]:
    return [game for part in ranges for game in part]


def twice(found: IdTable, worker: str, most: int) -> list[int]:
    return ids(found.lease_twice({worker: most}).get(worker, []))


def accept(found: IdTable, worker: str, game: int, digest: bytes, *, before: bool = False) -> bool:
    """As the head does: what was never leased is refused."""
    known = found.is_done(game) or found.was_leased(game, before=before)
    return known and found.accept(worker, game, digest)


def table(clock: Clock | None = None, deterministic: bool = True) -> IdTable:
    return IdTable(deterministic=deterministic, clock=clock or Clock())


def test_open_ids_go_out_once_and_lost_ones_first() -> None:
    found = table()
    found.ask([range(3, 8), range(20, 23)], {})
    assert ids(found.lease("a", 2)) == [3, 4]
    assert found.lease("b", 5) == [range(5, 8), range(20, 22)]
    assert found.accept("a", 4, b"4")
    assert found.held("a") == 1
    found.release("a")
    assert found.held("a") == 0
    assert ids(found.lease("b", 9)) == [3, 22]
    assert found.num_open == 0
    assert found.lease("c", 9) == []
    assert found.held("b") == 7


def test_a_second_result_is_compared_with_the_first() -> None:
    for deterministic in (True, False):
        found = table(deterministic=deterministic)
        found.ask([range(2)], {9: b"nine"})
        found.lease("a", 2)
        assert found.accept("a", 0, b"zero")
        assert not found.accept("b", 0, b"zero")
        assert not found.accept("b", 9, b"nine")
        for _ in range(2):  # also right after the iteration was sealed
            if deterministic:
                with pytest.raises(RunError, match="game 0 came twice with different bytes, the second time from b"):
                    found.accept("b", 0, b"ZERO")
            else:
                assert not found.accept("b", 0, b"ZERO")
            found.seal([0, 9])
        found.seal([1])
        assert not found.accept("b", 0, b"anything")


def test_a_late_result_counts_while_its_id_is_open() -> None:
    found = table()
    found.ask([range(10)], {})
    found.lease("a", 3)
    found.release("a")
    assert found.accept("a", 1, b"1")  # open again
    assert ids(found.lease("b", 1)) == [0]
    assert found.accept("a", 0, b"0")  # leased to another by now, who goes on playing it
    assert found.held("b") == 1
    assert not found.accept("b", 0, b"0")
    assert found.held("b") == 0
    assert accept(found, "a", 7, b"7", before=True)  # leased by a head that died
    assert ids(found.lease("b", 99)) == [2, 3, 4, 5, 6, 8, 9]
    assert not accept(found, "a", 10, b"10")  # never asked for


def test_only_leased_ids_count() -> None:
    found = table(deterministic=False)
    found.ask([range(5, ENDLESS)], {})
    assert ids(found.lease("a", 2)) == [5, 6]
    for game in (7, ENDLESS - 1, ENDLESS, 2**64 - 1):
        assert not accept(found, "a", game, b"made up")
    for game in (5 + AHEAD, ENDLESS - 1, ENDLESS):  # no head before can have leased these
        assert not accept(found, "a", game, b"made up", before=True)
    assert accept(found, "a", 4 + AHEAD, b"far", before=True)
    found.release("a")
    assert found.accept("a", 6, b"6")
    assert ids(found.lease("b", 3)) == [5, 7, 8]


def test_a_lease_lasts_four_of_the_slowest_recent_games() -> None:
    clock = Clock()
    found = table(clock)
    found.ask([range(1000)], {})
    found.lease("a", 700)
    assert found.lease_seconds() == math.inf  # nobody knows yet how long a game takes
    clock.now += 2.0
    found.accept("a", 0, b"")
    assert found.lease_seconds() == LEAST_LEASE == 60
    clock.now += 58.5
    found.accept("a", 1, b"")  # took 60.5 seconds
    assert found.lease_seconds() == 4 * 60.5
    found.lease("b", 300)
    for game in range(700, 1000):  # took no time
        found.accept("b", game, b"")
    assert found.lease_seconds() == LEAST_LEASE


def test_ids_leased_longest_go_out_twice_at_the_end() -> None:
    clock = Clock()
    found = table(clock)
    found.ask([range(6)], {})
    found.lease("a", 3)
    clock.now += 5
    found.lease("b", 2)
    assert twice(found, "c", 9) == []  # one is open
    found.lease("c", 1)
    assert twice(found, "c", 9) == []  # nobody knows how long a game takes
    clock.now += 5
    found.accept("c", 5, b"5")  # a game takes 5 seconds
    assert twice(found, "c", 2) == [0, 1]
    clock.now += 1
    assert twice(found, "c", 9) == [2, 3, 4]
    assert twice(found, "d", 9) == []  # never three times
    assert twice(found, "b", 9) == []
    assert found.accept("c", 0, b"0")
    assert found.held("a") == 3  # it still plays 0
    found.release("a")  # and c has 1 and 2
    assert found.num_open == 0
    found.release("c")
    assert ids(found.lease("e", 9)) == [1, 2]


def bytes_of(game: int, version: int, deterministic: bool) -> bytes:
    return f"{game}".encode() if deterministic else f"{game}/{version}".encode()


STEPS = ("join", "lease", "lease", "play", "play", "play", "twice", "die", "late", "head")


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 40))])
def test_each_game_is_written_once_in_any_order_of_events(seed: int, deterministic: bool) -> None:
    """A model of workers and wires that lose, delay and repeat results, and of heads and workers that die.

    The journal is a dictionary. A head that dies forgets all but the journal and the sealed ids. In some runs no head
    dies, and in some nothing is sent again: both would heal a table that loses ids.
    """
    heads_die, all_is_lost = seed % 2 == 0, seed % 3 == 0
    rng, clock = random.Random(f"{seed} {deterministic}"), Clock()
    journal, sealed, late = dict[int, bytes](), dict[int, bytes](), list[tuple[str, int, bytes]]()
    held, leased = dict[str, set[int]](), set[int]()  # what each worker plays; what this head has leased
    workers, iterations, size = 0, 4, 12
    found = IdTable(deterministic=deterministic, clock=clock)

    def restarted(begin: int) -> IdTable:
        leased.clear()
        new = IdTable(deterministic=deterministic, clock=clock)
        if deterministic:  # the gaps of one range of ids
            for game in range(begin, begin + size):
                if game not in journal:
                    new.ask([range(game, game + 1)], {})
        else:  # all that are not there
            for before, after in pairwise([-1, *sorted({*journal, *sealed}), ENDLESS]):
                new.ask([range(before + 1, after)], {})
        new.ask([], journal)
        return new

    def receive(worker: str, game: int, data: bytes) -> None:
        nonlocal found
        held.get(worker, set()).discard(game)
        if accept(found, worker, game, data, before=game not in leased):
            assert game not in journal
            assert game not in sealed
            if heads_die and rng.random() < 0.05:  # before the game is on the disk, so nobody was told that it is
                late.append((worker, game, data))
                found = restarted(begin)
            else:
                journal[game] = data

    for iteration in range(iterations):
        begin = iteration * size
        if iteration == 0:
            found = restarted(begin)
        elif deterministic:
            found.ask([range(begin, begin + size)], {})
        for step in range(4000):
            if len(journal) >= size:
                break
            clock.now += rng.choice((0.1, 1.0, 1.0, 5.0, 100.0 if rng.random() < 0.1 else 0.0))
            worker = rng.choice(list(held)) if held else ""
            match rng.choice(STEPS):
                case "join" if len(held) < 4:
                    workers += 1
                    held[f"w{workers}"] = set()
                case "lease" if worker:
                    given = ids(found.lease(worker, rng.randrange(6)))
                    assert not set(given) & (set(journal) | set(sealed))
                    assert len(given) == len(set(given))
                    held[worker].update(given)
                    leased.update(given)
                case "twice" if worker:
                    given = twice(found, worker, rng.randrange(6))
                    assert not set(given) & (set(journal) | set(sealed))
                    held[worker].update(given)
                case "play" if worker and held[worker]:
                    game = rng.choice(sorted(held[worker]))
                    result = worker, game, bytes_of(game, step, deterministic)
                    if rng.random() < 0.8:
                        receive(*result)
                    else:
                        held[worker].discard(game)  # the worker believes that it was sent
                    if not all_is_lost and rng.random() < 0.3:
                        late.append(result)  # it is under way for a while, or for ever
                case "die" if worker and rng.random() < 0.3:
                    found.release(worker)
                    del held[worker]
                case "late" if late:
                    receive(*(late.pop(rng.randrange(len(late))) if rng.random() < 0.7 else rng.choice(late)))
                case "head" if heads_die and rng.random() < 0.1:
                    found = restarted(begin)
        assert len(journal) >= size, "the iteration never ended"
        assert not deterministic or sorted(journal) == list(range(begin, begin + size))
        sealed |= journal
        found.seal(list(journal))
        journal.clear()
