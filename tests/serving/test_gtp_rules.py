"""Stones that cannot be taken, against every line of play, and cleanup over GTP. transcripts/gtp_rules.txt has more."""

import random
from collections.abc import Set

import pytest

from azpy.serving.gtp import Gtp
from azpy.serving.gtp_boards import _alive, chains, unsettled
from talks import GtpTalk, talk_with


def set_up(gtp: GtpTalk, *rows: str) -> None:
    """Puts the stones of a drawing on the board: x is Black, o is White; the top row first."""
    assert gtp.ask("clear_board") == "="
    for line, row in enumerate(rows):
        for column, cell in enumerate(row.split()):
            if cell != ".":
                vertex = f"{'ABCDEFGHJ'[column]}{len(rows) - line}"
                assert gtp.ask(f"play {'b' if cell == 'x' else 'w'} {vertex}") == "=", vertex


@pytest.mark.parametrize(("value", "answer"), [(-0.9, "= pass"), (0.9, "= E6")])
def test_cleanup_loses_no_game_that_is_won(value: float, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        """What a search says of White's last eye, as of a seki."""

        result: object

        @staticmethod
        def _chosen(*_: object) -> int:
            return 11  # E6

    def think(*_: object, **given: object) -> object:
        assert given["actions"] == [11, 12], "the points of White's eye alone"
        return Found

    Found.result = Found
    monkeypatch.setattr(Found, "value", value, raising=False)
    with talk_with(player="go(size=7)") as gtp:
        inside = ("x . x o o o o", "x x x o . . o", "x . x o o o o")
        set_up(gtp, *inside, "x x x x x x x", "x . x x x . x", "x x x x x x x", "x x x x x x x")
        assert gtp.ask("final_score").startswith("= B+")
        monkeypatch.setattr(Gtp, "_think", think)
        assert gtp.ask("kgs-genmove_cleanup b") == answer


def beside(cell: int, size: int) -> set[int]:
    row, column = divmod(cell, size)
    near = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
    return {r * size + c for r, c in near if 0 <= r < size and 0 <= c < size}


def chain_of(cell: int, cells: Set[int], size: int) -> set[int]:
    chain = {cell}
    while True:
        more = {other for one in chain for other in beside(one, size) if other in cells} - chain
        if not more:
            return chain
        chain |= more


def is_free(chain: Set[int], taken: Set[int], size: int) -> bool:
    return any(other not in taken for one in chain for other in beside(one, size))


def can_take(chain: frozenset[int], own: frozenset[int], other: frozenset[int], size: int) -> bool:
    """Whether `other` can take this chain of `own` if `own` always passes: every line of play is tried."""
    seen, waiting = {(own, other)}, [(own, other)]
    while waiting:
        mine, theirs = waiting.pop()
        for cell in set(range(size * size)) - mine - theirs:
            after = theirs | {cell}
            left = frozenset(one for one in mine if is_free(chain_of(one, mine, size), mine | after, size))
            if not chain <= left:
                return True
            if is_free(chain_of(cell, after, size), left | after, size) and (left, after) not in seen:  # no suicide
                seen.add((left, after))
                waiting.append((left, after))
    return False


def random_board(rng: random.Random, size: int) -> tuple[frozenset[int], frozenset[int]]:
    """Stones that have liberties, many of the first player."""
    share = rng.choice([0.5, 0.7])
    drawn = [rng.random() for _ in range(size * size)]
    own = {cell for cell, one in enumerate(drawn) if one < share}
    other = {cell for cell, one in enumerate(drawn) if share <= one < share + 0.15}
    for mine, theirs in ((other, own), (own, other)):
        for cell in sorted(mine):
            if cell in mine and not is_free(chain_of(cell, mine, size), own | other, size):
                mine -= chain_of(cell, mine, size)
        assert not mine & theirs
    return frozenset(own), frozenset(other)


def test_living_stones_cannot_be_captured_by_any_line() -> None:
    """A chain is alive if and only if it cannot be taken though its player always passes."""
    rng, alive, dead, mixed = random.Random(1), 0, 0, 0
    while alive < 20 or dead < 50 or mixed < 5:
        size = rng.choice([3, 4])
        own, other = random_board(rng, size)
        if not own or len(own) + len(other) < size * size - 7:
            continue
        points, (living, _) = unsettled(other, own, size), _alive(own, other, size)
        found = [(chain <= living, can_take(chain, own, other, size)) for chain in chains(own, size)]
        assert all(lives != taken for lives, taken in found), (own, other, size)
        mixed += len(set(found)) > 1
        if own <= living:
            alive += 1
            assert not points, (own, other, size)
        else:
            dead += 1
            # No eye of the one who takes, and no stone. Where all points are eyes or settled, none is left.
            assert points.isdisjoint(own | other)
            assert not any(beside(cell, size) <= other for cell in points)
