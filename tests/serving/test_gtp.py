"""GTP beside the game's own rules, with networks that fail. transcripts/gtp*.txt has conversations."""

import io
import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.errors import SettingsWarning, warn_once
from azpy.matches.levels import Ladder, Level
from azpy.serving.gtp import Gtp
from azpy.serving.lines import Conversation
from azpy.serving.models import open_player
from talks import GtpTalk, talk_with


@pytest.fixture
def gtp(request: pytest.FixtureRequest) -> Iterator[GtpTalk]:
    """A conversation about a game, 7 x 7 Go if a test names none."""
    with talk_with(player=getattr(request, "param", "go(size=7)")) as talk:
        yield talk


def test_a_file_whose_end_may_never_come_is_not_read(gtp: GtpTalk, tmp_path: Path) -> None:
    (tmp_path / "long.sgf").write_bytes(b" " * (1 << 21))
    os.mkfifo(tmp_path / "pipe")
    for name in ("long.sgf", "pipe", "a\0b"):
        assert gtp.ask(f"loadsgf {tmp_path}/{name}").startswith("? cannot load file: "), name


@pytest.mark.parametrize("gtp", ["othello"], indirect=True)
def test_passes_of_othello_are_implied_and_may_be_told(gtp: GtpTalk) -> None:
    rng, passes, state = random.Random(2), 0, azpy.make_game("othello")
    while not state.is_terminal:
        action = rng.choice(state.legal_actions())
        name, color = state.action_name(action), "bw"[state.turn]
        state.play(action)
        if name == "pass":
            passes += 1
            board = gtp.ask("showboard")
            assert gtp.ask(f"reg_genmove {color}") == "= pass"
            assert gtp.ask(f"play {color} pass") == "="
            assert gtp.ask("showboard") == board
            continue
        assert gtp.ask("final_score") == "? cannot score"
        assert gtp.ask(f"play {color} {name}") == "="
    assert passes
    assert gtp.ask("final_score") == "= B+6"
    assert gtp.ask("showboard").startswith("= Game ended")
    for color in "bw":
        assert gtp.ask(f"genmove {color}") == "= pass"
        assert gtp.ask(f"play {color} pass") == "="


def test_the_temperature_of_moves_is_that_of_the_level() -> None:
    ladder = Ladder((Level(1, 3.0, 0.0), Level(64, 0.0, 600.0)), "00ff", 7)
    served = replace(open_player("uniform:20", "go(size=5)", 100), ladder=ladder)
    with talk_with(player=served) as gtp:
        for level, temperature in (("none", 0), ("beginner", 3), ("casual", 2)):
            assert gtp.ask(f"kata-set-param level {level}") == "="
            assert gtp.ask("kata-get-param chosenMoveTemperature") == f"= {temperature}"


def test_a_player_of_another_game_does_not_go_on_with_this_one() -> None:
    others = {"small": "go(size=5)", "simple": "go(size=7,superko=0)", "cells": "othello"}
    with talk_with(first="go(size=7)", second="go(size=7,komi=0.5)", **others) as talk:
        assert talk.ask("play b D4") == "="
        for name in others:
            said = talk.ask(f"kata-set-param model {name}")
            assert re.match(f"[?] model: {name} plays .*, not the current game", said)
        assert talk.ask("kata-set-param model second") == "="
        assert talk.ask("final_score") == "= B+41.5", "the game and its komi stay"


def test_the_first_move_of_an_analysis_is_the_one_that_is_played() -> None:
    less_visited = 0
    with talk_with(player=open_player("mcts:20?lcb=2", "othello", 100)) as gtp:
        for color in "bw" * 6:
            said = gtp.ask(f"kata-genmove_analyze {color}")
            order = re.findall(r"info move (\S+) visits (\d+) .*?order (\d+)", said.splitlines()[-2])
            visits = [int(count) for _, count, _ in order]
            assert said.endswith(f"play {order[0][0]}")
            assert [int(place) for *_, place in order] == list(range(len(order)))
            assert len({vertex for vertex, *_ in order}) == len(order)
            assert visits[1:] == sorted(visits[1:], reverse=True)
            less_visited += visits[0] < max(visits)
    assert less_visited


def test_a_generated_move_is_reported_at_its_interval(gtp: GtpTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    monkeypatch.setattr(Gtp, "_search", lambda *_, **options: asked.append(options["report_every"]))
    gtp.ask("kata-genmove_analyze b interval 25")
    gtp.ask("lz-genmove_analyze b 300")
    assert asked == [0.25, 3.0]


@pytest.mark.parametrize("option", ["ownership true", "pvVisits true", "allow b C3 5", "avoid w C3 5"])
def test_options_without_effect_in_an_analysis_warn(option: str) -> None:
    warn_once.cache_clear()
    said = f"kata-analyze {option}\nkata-analyze {option}\nquit\n".encode()
    with pytest.warns(SettingsWarning, match="no effect|only to the first move of an analysis") as warned:
        Gtp({"player": open_player("uniform:9", "go(size=7)", 9)}, Conversation(io.BytesIO(said), io.StringIO())).run()
    assert len([one for one in warned if one.category is SettingsWarning]) == 1


def test_a_search_that_visits_nothing_gives_a_move(gtp: GtpTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.gtp.Times.seconds", lambda *_: 1e-9)
    gtp.say("7 lz-genmove_analyze b 5", "8 name")
    answer = [gtp.next() for _ in range(3)]
    assert answer[0] == "=7"
    assert answer[1].startswith("play ")
    assert answer[2] == ""
    gtp.hear("=8")


def test_trees_and_undo_keep_to_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.request.TREES_MB", 4)
    thought, think = list[tuple[Gtp, str]](), Gtp._think

    def noted(self: Gtp, *given: Any, **options: Any) -> Any:
        answer = think(self, *given, **options)
        thought.append((self, answer.result.stop))
        return answer

    monkeypatch.setattr(Gtp, "_think", noted)
    with talk_with(player=open_player("uniform:10000000", "go(size=7)", 100)) as gtp:
        assert gtp.ask("genmove b").startswith("= ")
        ((protocol, stop),) = thought
        assert stop == "memory"
        gtp.say("clear_board", *["play b pass"] * 1100, *["undo"] * 1000, "undo", "5 name")
        gtp.hear("=5")
        assert not protocol._board._past
