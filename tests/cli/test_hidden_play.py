"""az-play in the terminal and az-match, in games that hide something."""

import contextlib
import io
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy import _core
from azpy.cli import engine, match, play, serve
from azpy.errors import SettingsWarning, warn_once
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
        assert play.main(["random", "--side", side, "--terminal"]) == 0
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
        for move in (screens[-1][3] or "").replace(",", "").split():
            if state.turn == side:
                known[_core.Walk(state).facts().views[side]].add(screens.pop(0)[0])
            state.play(state.parse_actions(move)[0])
            ended += state.is_terminal and str(state) == screens[0][1]
    assert ended > 250
    assert all(len(texts) == 1 for texts in known.values()), known


def test_the_terminal_refuses_to_look_deeper(typed: Typed, one_line: Any) -> None:
    said = typed("kuhn_poker", "\ufeffhint", "undo", "save a.json", "bet", "bet", "switch all", "switch second")
    assert said.startswith("even; you play Player 0; type help for the commands\n\nplayer 0: ")
    assert all(f"kuhn_poker hides something, so there is no {word} (" in said for word in ("hint", "undo", "save"))
    alone = "give one side, because kuhn_poker hides something: first, second, player 0, player 1; got "
    assert "move: the game is over: deal another one" in said
    assert f"{alone}'all'" in said
    assert "you play Player 1" in said
    assert f"{alone}'first,second'" in one_line(
        play.main, ["random", "--side", "first,second", "--terminal"], "az-play: "
    )


def test_a_view_that_is_missing_shows_nothing(typed: Typed) -> None:
    said = typed("planted_games:NoViewAfterABet", *["0", "new"] * 30)
    assert "has no view_key here, so nothing is shown" in said
    assert all("played: " in shown or "[" not in shown for shown in said.split("type help for the commands"))


def test_pairs_of_a_match_have_equal_deals_from_both_seats() -> None:
    start = azpy.make_game("leduc_poker")
    players: list[Any] = [SearchPlayer(azpy.UniformEvaluator(), 1), RandomPlayer()]
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
    assert re.search(r"^\d+ distinct games from 6 distinct deals$", said, re.MULTILINE), said
    assert "simulations" not in said
    assert match.main([*given[:-1], "20", "--opening-plies", "2"]) == 0
    assert "distinct openings of 2 random plies\n" in capsys.readouterr().out
    for query in ("?temperature=0.5", "@40", "?simulations=3", "?c_puct=2"):
        refused = one_line(match.main, [f"{model}{query}", *given[1:]], "az-match: ")
        assert "its players draw from their policies and do not search: leave out" in refused


def test_a_match_of_open_spiel_tells_what_a_win_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspiel")
    assert match.main(["random", "random", "--game", "open_spiel:kuhn_poker", "--games", "60"]) == 0
    assert "a game; a win of this game is worth up to 2\n" in capsys.readouterr().out


def test_what_a_search_would_do_is_refused_at_each_door(tmp_path: Path, one_line: Any) -> None:
    model, book = tmp_path / "kuhn.onnx", tmp_path / "lines.txt"
    model.write_bytes(make_model(shape=("batch", 11, 1, 1), actions=2))
    book.write_text("J K bet\n")
    given = [str(model), "--game", "kuhn_poker"]
    whole = "kuhn_poker hides something from its players, and a protocol or a level would search its true position"
    refused: list[tuple[Any, str, list[str], str]] = [
        (play.main, "az-play", ["--temperature", "1"], "--temperature and --seed: no effect on kuhn_poker"),
        (serve.main, "az-serve", ["--seed", "1"], "--temperature and --seed: no effect on kuhn_poker"),
        (engine.main, "az-engine", ["--protocol", "gtp"], whole),
        (engine.main, "az-engine", ["--protocol", "ugi"], whole),
        (match.main, "az-match", ["random", "--book", str(book)], "--book: kuhn_poker hides something"),
        (match.main, "az-match", ["uci:cat"], "other programs cannot play kuhn_poker"),
        (match.main, "az-match", ["mcts:100"], "kuhn_poker hides something, so a search plays at random"),
    ]
    for main, name, flags, why in refused:
        said = one_line(main, [given[0], *flags, *given[1:]], f"{name}: ")
        assert why in said, said
    for player in ("random", "mcts:100", "gtp:cat"):
        said = one_line(play.main, [player, *given[1:]], "az-play: ")
        assert f"{player} has no network to draw moves of kuhn_poker from: give a run or a model file" in said


def test_simulations_warn_where_something_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (play, serve):
        monkeypatch.setattr(command, "open_model", lambda *_, **__: hiding("kuhn_poker"))
    monkeypatch.setattr(play, "_board", lambda *_: 0)
    given = ["uniform", "--simulations", "50"]
    with contextlib.ExitStack() as stack:
        for begin in (lambda: play._play([*given, "--no-browser"]), lambda: serve._site(serve._settings(given), stack)):
            warn_once.cache_clear()
            with pytest.warns(SettingsWarning, match="--simulations has no effect"):
                begin()
