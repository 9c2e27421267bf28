"""A game as a picture to step through, for notebooks."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import azpy
from azpy.errors import RunError, SettingsError
from azpy.games.lines import replayed
from azpy.reports.game_picture import Replay
from oracles import Countdown
from training_runs import collect


def data_of(game: Replay) -> dict[str, Any]:
    found = re.search('data-game="([^"]*)"', game._repr_html_())
    assert found is not None
    data: dict[str, Any] = json.loads(html.unescape(found[1]))
    return data


@pytest.mark.parametrize("game", ["chess", "backgammon", "go(size=5)", "wall_game", "pig"])
def test_each_picture_shows_the_move_that_led_there(game: str) -> None:
    start, actions = azpy.make_game(game), list[int]()
    state = start.clone()
    while not state.is_terminal and len(actions) < 20:
        actions.append((state.legal_actions() or [outcome for outcome, _ in state.chance_outcomes()])[-1])
        state.play(actions[-1])
    shown = azpy.replay(start, actions)
    data = data_of(shown)
    pictures = ["".join(data["parts"][part] for part in picture) for picture in data["pictures"]]
    assert len(pictures) == len(data["said"]) == len(actions) + 1
    before: azpy.State | None = None
    for ply, position in enumerate(replayed(start, actions)):
        touches = before.touches(actions[ply - 1]) if before is not None else []
        assert pictures[ply].count('stroke="#c2410c" stroke-width="2.5"') == len(touches)
        plain = re.sub('<rect [^>]*stroke="#c2410c" stroke-width="2.5" rx="3"/>', "", pictures[ply])
        assert plain == position.to_svg()
        if before is not None:
            assert f" {before.short_name(actions[ply - 1])}. " in data["said"][ply]
        before = position.clone()
    still = re.search('<img alt="([^"]*)" src="data:image/svg\\+xml,([^"]*)"', shown.to_html())
    assert still is not None
    assert (html.unescape(still[1]), unquote(html.unescape(still[2]))) == (data["said"][-1], pictures[-1])


def test_a_game_of_text_a_record_and_a_game_of_a_run_are_shown(tmp_path: Path) -> None:
    text = '[White "<b>Ann"]\n[Black "Zoë"]\n[Result "1-0"]\n\n1. e4 (1. d4) e5 1-0'
    told = azpy.replay("chess", text)
    assert told.texts == ("0 of 2. White to move", "1 of 2: White e4. Black to move", "2 of 2: Black e5. White to move")
    assert "<figcaption>White: &lt;b&gt;Ann; Black: Zo&#235;; 1-0</figcaption>" in told.to_html()
    assert told.to_html().isascii()
    run = collect(tmp_path / "run", "tic_tac_toe", iterations=1)
    _, record = next(iter(run.games([1])))
    of_run, of_record = azpy.replay(run, record.game_id), azpy.replay("tic_tac_toe", record)
    assert of_run.texts == of_record.texts
    assert of_run.title == f"game {record.game_id} of {run.path}; {of_record.title}"
    assert of_record.texts[-1].endswith(of_record.title)  # the result
    searched = [text for text in of_record.texts if "the search gives" in text]
    assert f"; the search gives {record.root_values[0]:+.2f} for X" in searched[0]
    assert azpy.replay(Countdown(3), [0, 1]).texts[1].startswith("1 of 2: Player 0 ")


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    run = collect(tmp_path / "run", "tic_tac_toe", iterations=1)
    with pytest.raises(RunError, match="has no game 999"):
        azpy.replay(run, 999)
    with pytest.raises(SettingsError, match="game 3 is in no run"):
        azpy.replay("tic_tac_toe", 3)
    with pytest.raises(SettingsError, match="a record of tic_tac_toe, expected one of connect_four"):
        azpy.replay("connect_four", next(iter(run.games([1])))[1])
    with pytest.raises(ValueError, match="legal"):
        azpy.replay("tic_tac_toe", [0, 0])
    with pytest.raises(ValueError, match="among the legal ones"):
        azpy.replay("tic_tac_toe", "a1 a1")


RIM = 'stroke="#1f2937" stroke-width="4"'


@pytest.mark.parametrize(
    ("game", "actions", "mark", "count"),
    [
        ("tic_tac_toe", [0, 3, 1, 4, 2], "#fde68a", 3),
        ("connect_four", [0, 1, 0, 1, 0, 1, 0], RIM, 4),
        ("gomoku(size=7)", [0, 7, 1, 8, 2, 9, 3, 10, 4], 'r="7"', 5),
        ("hex(size=3,swap=0)", [0, 1, 3, 4, 6], RIM, 3),
    ],
)
def test_the_stones_that_won_are_marked(game: str, actions: list[int], mark: str, count: int) -> None:
    state = azpy.make_game(game)
    for action in actions:
        assert not state.is_terminal
        before = state.to_svg().count(mark)
        state.play(action)
    assert state.is_terminal
    assert state.to_svg().count(mark) - before == count
