"""The rules and the end of a game of Go over GTP: rules as KataGo names them, the status of stones, cleanup."""

import json
import random
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

from azpy.serving.gtp import Gtp
from azpy.serving.gtp_boards import _alive, chains, unsettled
from talks import GtpTalk
from test_gtp import talk_with

OURS = {"hasButton": False, "ko": "POSITIONAL", "scoring": "AREA", "suicide": False, "tax": "NONE"}
OURS |= {"friendlyPassOk": False, "whiteHandicapBonus": "0"}


@pytest.fixture
def gtp() -> Iterator[GtpTalk]:
    with talk_with(player="go(size=7)") as talk:
        yield talk


def set_up(gtp: GtpTalk, *rows: str) -> None:
    """Puts the stones of a drawing on the board: x is Black, o is White; the top row first."""
    assert gtp.ask("clear_board") == "="
    for line, row in enumerate(rows):
        for column, cell in enumerate(row.split()):
            if cell != ".":
                vertex = f"{'ABCDEFGHJ'[column]}{len(rows) - line}"
                assert gtp.ask(f"play {'b' if cell == 'x' else 'w'} {vertex}") == "=", vertex


def stones(gtp: GtpTalk) -> list[str]:
    """The rows of the board, without numbers."""
    return [" ".join(line.split()[1:]) for line in gtp.ask("showboard").splitlines()[2:]]


# Rules ----------------------------------------------------------------------------------------------------------------


def test_the_rules_are_said_and_the_same_rules_can_be_set(gtp: GtpTalk) -> None:
    assert json.loads(gtp.ask("kata-get-rules").removeprefix("= ")) == OURS
    assert gtp.ask(f"kata-set-rules {json.dumps(OURS)}") == "="
    for rule, value in OURS.items():
        said = value if isinstance(value, str) else str(value).lower()
        assert gtp.ask(f"kata-set-rule {rule} {said}") == "=", rule
        assert gtp.ask(f'kata-set-rules {{"{rule}": {json.dumps(value)}}}') == "=", rule
    assert json.loads(gtp.ask("kata-get-rules").removeprefix("= ")) == OURS
    for name in ("chinese-kgs", "Chinese_OGS", "chinese ogs"):
        assert gtp.ask(f"kata-set-rules {name}") == "=", name
    with talk_with(player="go(size=5,superko=0)") as simple:
        assert json.loads(simple.ask("kata-get-rules").removeprefix("= ")) == {**OURS, "ko": "SIMPLE"}
        assert simple.ask("kata-set-rules chinese") == "="
        assert simple.ask("kata-set-rules chinese-kgs") == "? rule ko: azpy plays SIMPLE here, not POSITIONAL"


def test_other_rules_are_refused_and_change_nothing(gtp: GtpTalk) -> None:
    names = ("tromp-taylor", "japanese", "korean", "stone-scoring", "aga", "bga", "new-zealand", "aga-button")
    refused = dict.fromkeys((*names, "ancient", "", "[]", "7"), "azpy plays {") | {
        "chinese": "rule ko: azpy plays POSITIONAL here, not SIMPLE",
        '{"ko":"POSITIONAL","scoring":"TERRITORY","whiteHandicapBonus":"N"}': "rule scoring: azpy plays AREA here",
        '{"ko":1e400}': "rule ko: azpy plays POSITIONAL here, not Infinity",
        '{"ko":"TRIPLE"}': "rule ko: azpy plays POSITIONAL here, not TRIPLE",
        '{"komi":7}': "unknown rule 'komi': expected ko, scoring",
    }
    for words, problem in refused.items():
        assert gtp.ask(f"kata-set-rules {words}").startswith(f"? {problem}"), words
    for words in ("", "ko", "ko SIMPLE now"):
        assert gtp.ask(f"kata-set-rule {words}").startswith("? syntax error"), words
    assert gtp.ask("kata-set-rule suicide maybe") == "? rule suicide: azpy plays false here, not maybe"
    assert json.loads(gtp.ask("kata-get-rules").removeprefix("= ")) == OURS


def test_a_bonus_that_no_score_has_is_refused_before_and_after_every_handicap(gtp: GtpTalk, tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]SZ[7]HA[2]AB[cc][ee]AW[ff]PL[W])")
    ways = (["clear_board"], ["fixed_handicap 2"], ["play b C3", "play b E5"], [f"loadsgf {path}"])
    for lines in ways:
        for bonus in ("N", "N-1"):
            assert gtp.ask("clear_board") == "="
            refusal = f"? rule whiteHandicapBonus: azpy plays 0 here, not {bonus}"
            assert gtp.ask(f"kata-set-rule whiteHandicapBonus {bonus}") == refusal
            for line in lines:
                assert gtp.ask(line).startswith("="), line
            assert gtp.ask(f'kata-set-rules {{"whiteHandicapBonus":"{bonus}"}}') == refusal
            assert json.loads(gtp.ask("kata-get-rules").removeprefix("= ")) == OURS
            assert gtp.ask("kata-set-rules chinese-kgs") == "=", "a name is taken without its bonus"
            assert gtp.ask("clear_board") == "="
            assert gtp.ask("fixed_handicap 2") == "= C3 E5"


# The end --------------------------------------------------------------------------------------------------------------


def test_every_stone_is_alive_in_its_chain(gtp: GtpTalk) -> None:
    set_up(gtp, *[". . . . . . ."] * 5, "x x . . . o .", ". x . o . . .")
    assert gtp.ask("final_status_list alive").splitlines() == ["= A2 B2 B1", "F2", "D1"]
    assert gtp.ask("final_status_list dead") == gtp.ask("final_status_list seki") == "="
    for words in ("", "alive dead", "black_territory", "ALIVE"):
        assert gtp.ask(f"final_status_list {words}") == "? syntax error: expected alive, dead or seki"


LIVING = (
    "x . x . x . x",
    "x x x x x x x",
    ". . . . . . .",
    "x x x x x x x",
    "o o o o o x x",
    ". o . o o x .",
    "o o o o o x .",
)


def test_cleanup_passes_where_nothing_can_be_taken_and_not_before(gtp: GtpTalk) -> None:
    set_up(gtp, *LIVING)
    before = stones(gtp)
    assert gtp.ask("kgs-genmove_cleanup b") == "= pass", "White has two eyes"
    assert stones(gtp) == before
    assert gtp.ask("undo") == "=", "the pass is a move"
    # A dead stone within Black's area: Black has won by far, and takes it off though.
    set_up(gtp, *LIVING[:2], ". . . o . . .", *LIVING[3:])
    assert gtp.ask("final_score") == "= B+3.5"
    assert gtp.ask("play w pass") == "="
    assert gtp.ask("genmove b") == "= pass", "two passes win"
    moves = list[str]()
    while not moves or moves[-1] != "= pass":
        moves.append(gtp.ask("kgs-genmove_cleanup b"))
        assert gtp.ask("play w pass") == "="
        assert len(moves) < 20
    assert moves[:-1], "Black played on"
    assert "D5" not in gtp.ask("final_status_list alive").split()
    assert gtp.ask("final_score") == "= B+11.5"
    assert stones(gtp)[0] == LIVING[0], "no eye was filled"
    for words in ("", "b w", "x"):
        assert gtp.ask(f"kgs-genmove_cleanup {words}").startswith("? syntax error")


@pytest.mark.parametrize(("value", "answer"), [(-0.9, "= pass"), (0.9, "= E6")])
def test_cleanup_loses_no_game_that_is_won(value: float, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        """What a search says of White's last eye, as of a seki."""

        action = 11  # E6
        result: object

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


# Unconditional life ---------------------------------------------------------------------------------------------------


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


def test_stones_that_cannot_be_taken_are_those_that_no_line_of_play_takes() -> None:
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
