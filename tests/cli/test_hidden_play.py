"""az-play in the terminal and az-match, in games that hide something."""

import io
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy import _core
from azpy.cli import match, play
from azpy.matches.arena import RandomPlayer, SearchPlayer, play_rounds
from azpy.matches.openings import Book
from models import make_model
from served import hiding

Typed = Callable[..., str]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Types lines into az-play; gives what it said."""

    def typed(game: str, *lines: str, side: str = "first") -> str:
        monkeypatch.setattr(play, "open_model", lambda *_, **__: hiding(game))
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, "quit", ""])))
        assert play.main(["even", "--side", side, "--terminal"]) == 0
        return capsys.readouterr().out

    return typed


@pytest.mark.parametrize("side", [0, 1])
def test_a_screen_follows_from_what_the_person_knows(typed: Typed, side: int) -> None:
    rng, known = random.Random(2), defaultdict[int, set[str]](set)
    lines = list[str]()
    for _ in range(300):
        lines += [*rng.choices(["call", "check", "raise", "fold"], k=12), "hint", "text", "new"]
    said = typed("leduc_poker", *lines, side=("first", "second")[side])
    games = said.split("type help for the commands\n")[1:]
    screen = re.compile(r"(?:> )*\n(player 0: .*)\n\n(.* to move: .*|played: (.*)\n.*)\n")
    ended = 0
    for shown in games:
        screens = list(screen.finditer(shown))
        # The other lines answer what was typed and is refused.
        assert {line[:2] for line in screen.sub("", shown).splitlines()} <= {"> "}
        state = azpy.make_game("leduc_poker")
        for move in (screens[-1][3] or "").split():
            if state.turn == side:
                known[_core.Walk(state).facts().views[side]].add(screens.pop(0)[0])
            state.play(state.parse_actions(move)[0])
            ended += state.is_terminal and str(state) == screens[0][1]
    assert ended > 250
    assert all(len(texts) == 1 for texts in known.values()), known


def test_the_terminal_saves_what_is_over_and_refuses_to_look_deeper(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "game.json"
    said = typed("kuhn_poker", f"save {file}", "hint", "level 5", "undo", "moves", "bet", "bet", f"save {file}", "bet")
    assert said.startswith("even; you play Player 0; type help for the commands\n\nplayer 0: ")
    assert "the record of a game names what it hides: save it once it is over" in said
    refused = "hint, undo, resign, level, dice, text and load are not there in kuhn_poker, which hides something"
    assert said.count(refused) == 3
    assert "check bet" in said
    assert said.count("move: the game is over: deal another one") >= 1
    record = json.loads(file.read_text())
    assert (record["players"], len(record["nodes"])) == (["person", "even"], 4)
    assert f"{file} is there already" in typed("kuhn_poker", "bet", f"save {file}")
    assert "you play Player 1" in typed("kuhn_poker", "switch")
    assert "one person plays kuhn_poker" in typed("kuhn_poker", "switch both")


def test_two_people_at_one_screen_are_refused(one_line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "open_model", lambda *_, **__: hiding("kuhn_poker"))
    said = one_line(play.main, ["even", "--side", "both", "--terminal"], "az-play: ")
    assert "one person plays kuhn_poker, because others at this screen would see the same cards" in said


def test_a_game_in_python_shows_its_view_key_or_its_own_text(typed: Typed) -> None:
    said = typed("test_hidden_play:Cards", "0")
    (own,) = set(re.findall(r"your card is (\d)", said))
    assert f"\nyour card is {own}\n" in said
    state = azpy.State(Cards((1, 2)))
    assert [state.render_view(player) for player in (0, 1)] == ["your card is 1", "your card is 2"]
    bare = azpy.State(Bare((1, 2)))
    assert [bare.render_view(player) for player in (0, 1)] == ["(1,) 2", "(2,) 2"]
    assert azpy.make_game("tic_tac_toe").render_view(0) == str(azpy.make_game("tic_tac_toe"))


class Bare(azpy.Game):
    """Both get a card of four, and the first one says whether its own is the higher one."""

    num_actions, obs_shape, max_plies = 4, (4, 1, 1), 3

    def __init__(self, line: tuple[int, ...] = ()) -> None:
        self.line = line

    def turn(self) -> int:
        return (azpy.CHANCE, azpy.CHANCE, 0, azpy.TERMINAL)[len(self.line)]

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(card, 1 / (4 - len(self.line))) for card in range(4) if card not in self.line]

    def play(self, action: int) -> None:
        self.line += (action,)

    def clone(self) -> Any:
        return type(self)(self.line)

    def outcome(self) -> float:
        return 1.0 if (self.line[0] > self.line[1]) == bool(self.line[2]) else -1.0

    def encode(self) -> Any:
        return np.eye(4, dtype=np.float32)[self.line[0]].reshape(4, 1, 1)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.line)))

    def view_key(self, player: int) -> str:
        return f"{self.line[player : player + 1]} {len(self.line)}"


class Cards(Bare):
    """The same with a text for people."""

    def render_view(self, player: int) -> str:
        return f"your card is {self.line[player]}"


def test_pairs_of_a_match_have_equal_deals_from_both_seats() -> None:
    start = azpy.make_game("leduc_poker")
    players = [SearchPlayer(azpy.UniformEvaluator(), 1), RandomPlayer()]
    shared = different = 0
    for one in play_rounds(Book(start, 0, 3), players, 200, 5):
        games = one.actions
        assert games[0][:2] == games[1][:2]
        third = []
        for actions in games:
            state = start.clone()
            for index, action in enumerate(actions):
                if state.turn == azpy.CHANCE and index > 1:
                    third.append(action)
                state.play(action)
        shared += len(third) == 2
        assert len({*third}) <= 1
        different += games[0][2:] != games[1][2:]
    assert shared > 30
    assert different > 150  # players draw each move anew


def test_a_match_tells_what_a_game_is_worth(tmp_path: Path, capsys: pytest.CaptureFixture[str], one_line: Any) -> None:
    model = tmp_path / "kuhn.onnx"
    model.write_bytes(make_model(shape=("batch", 11, 1, 1), actions=2))
    given = [str(model), "random", "--game", "kuhn_poker", "--games", "200"]
    assert match.main(given) == 0
    said = capsys.readouterr().out
    assert re.search(r"^outcome of A: [+-]\d\.\d+ \[[^]]*\] chips a game$", said, re.MULTILINE), said
    assert "repeat an earlier one" not in said
    for query in ("?temperature=0.5", "@40", "?simulations=3", "?c_puct=2"):
        refused = one_line(match.main, [f"{model}{query}", *given[1:]], "az-match: ")
        assert "its players draw from their policies and do not search: leave out" in refused
