"""Gomocup's protocol beside azpy's game of gomoku. transcripts/gomocup.txt has conversations."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import azpy
from azpy.serving.gomocup import Gomocup
from azpy.serving.models import Player, open_player
from azpy.serving.request import Search
from talks import Talk

SIZE = 7


class GomocupTalk(Talk):
    """A conversation that asks one command after the other."""

    def ask(self, *lines: str) -> str:
        """The next line after these commands."""
        self.say(*lines)
        return self.next()


def cell(action: int) -> str:
    """x, the column, and y, the row from the top."""
    return f"{action % SIZE},{action // SIZE}"


def action_of(answer: str) -> int:
    assert re.fullmatch(r"\d,\d", answer), answer
    return int(answer[0]) + SIZE * int(answer[2])


def talk_with(served: Player) -> GomocupTalk:
    return GomocupTalk(lambda conversation: Gomocup({"player": served}, conversation).run())


@pytest.fixture
def served() -> Player:
    return open_player("uniform:60", f"gomoku(size={SIZE})", 100)


@pytest.fixture
def brain(served: Player) -> Iterator[GomocupTalk]:
    talk = talk_with(served)
    yield talk
    talk.close()


def test_whole_games_are_played_by_the_rules(brain: GomocupTalk, served: Player) -> None:
    rng, outcomes = random.Random(1), set[float]()
    assert brain.ask("ABOUT").startswith('name="azpy", version="')
    for game in range(6):
        state = served.start.clone()
        assert brain.ask(f"START {SIZE}" if game % 2 else "RESTART") == "OK"
        if game % 2:
            state.play(action_of(brain.ask("BEGIN")))
        while actions := state.legal_actions():
            action = rng.choice(actions)
            state.play(action)
            if state.is_terminal:
                assert brain.ask(f"TURN {cell(action)}") == "ERROR the game is over: send RESTART or START"
                assert brain.ask(f"TURN {cell(action)}").startswith("ERROR the game is over before the stone at")
            else:
                state.play(action_of(brain.ask(f"TURN {cell(action)}")))  # refuses what is not legal
        outcomes.add(state.outcome())
    assert outcomes - {0.0}


def test_a_board_is_the_position_that_turns_lead_to(brain: GomocupTalk, served: Player) -> None:
    rng = random.Random(2)
    for _ in range(8):
        state, stones, count = served.start.clone(), list[str](), rng.randrange(9)
        for number in range(count):  # 1 is a stone of the player to move in the end
            stones.append(f"{cell(action := rng.choice(state.legal_actions()))},{1 + (count - number) % 2}")
            state.play(action)
        answers = set[str]()
        for lines in (stones, rng.sample(stones, count), ["", *stones]):
            assert brain.ask("RESTART") == "OK"
            answers.add(brain.ask("BOARD", *lines, "DONE"))
        # The same position, of the same simulations, has the same move as in azpy.
        with azpy.Engine(served.evaluator, **served.options) as engine:
            best = engine.submit(state, simulations=served.simulations).result().action
        assert best is not None
        assert answers == {cell(best)}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], None),
        (["timeout_turn 1000"], 0.95),
        (["timeout_turn 0"], 0.001),
        (["timeout_match 0"], None),
        (["timeout_match 100000"], (100 - 25 * 0.05) / 25),
        (["timeout_match 100000", "time_left 50000"], (50 - 25 * 0.05) / 25),
        (["timeout_match 100000", "time_left 50000", "timeout_turn 1000"], 0.95),
        (["timeout_match 100000", "time_left 500", "timeout_turn 1000"], 0.001),
        (["time_left 2147483647", "timeout_turn 30000", "timeout_match 0"], 29.95),
        (["timeout_turn x", "TIMEOUT_TURN 1000", "timeout_turn 1.5", "evaluate 1,1", "", "folder x y"], 0.95),
        ([f"timeout_turn {'9' * 400}", "timeout_match 100000"], (100 - 25 * 0.05) / 25),
        (["timeout_match -1", "timeout_turn -5"], 0.001),
    ],
)
def test_a_move_has_the_seconds_that_info_leaves(
    told: list[str], expected: float | None, brain: GomocupTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, seconds = list[float | None](), Gomocup._seconds

    def noted(gomocup: Gomocup) -> float:
        asked.append(seconds(gomocup))
        return 0.001

    monkeypatch.setattr(Gomocup, "_seconds", noted)
    brain.say(*(f"INFO {each}" for each in told))
    brain.say("BEGIN", "ABOUT")
    brain.hear("name=")
    assert asked == [expected if expected is None else pytest.approx(expected)]


def test_a_new_game_forgets_the_time_and_tree_of_the_last(served: Player) -> None:
    gomocup = Gomocup({"player": served}, None)  # type: ignore[arg-type]  # nothing is said
    for line in ("INFO timeout_match 100000", "INFO time_left 1000", "TURN 3,3"):
        gomocup._answer(line)
    before = gomocup._seconds()
    assert gomocup._answer("RESTART") == "OK"
    assert before == 0.001
    assert gomocup._seconds() == pytest.approx((100 - 25 * 0.05) / 25)
    assert gomocup._follow(served.start, [24]).search(1).result().visits.sum() == 1, "nor has it the tree"
    gomocup._close()


def test_a_search_finds_lines_of_play_only_where_asked(served: Player) -> None:
    engine = azpy.Engine(served.evaluator, **served.options)
    asked: list[dict[str, Any]] = [{}, {"lines": None}]
    start = served.start
    found = [Search(start, engine.game(start).search, None, simulations=9, **more).answer() for more in asked]
    assert [len(answer.result.principal_variations()) for answer in found] == [0, 3]
    engine.close()


def test_a_failed_engine_is_reported_in_each_answer(served: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> azpy.Engine:
        raise RuntimeError("no device")

    brain = talk_with(served)
    assert brain.ask("BEGIN") == "0,0"
    monkeypatch.setattr("azpy.serving.request.open_engine", refused)
    assert brain.ask("INFO max_memory 83886080") == "MESSAGE no device"
    for line in ("RESTART", "TURN 6,6"):
        assert brain.ask(line) == "ERROR no device"
    brain.close()


def test_no_more_lines_of_a_board_are_kept_than_it_has_cells(served: Player) -> None:
    gomocup = Gomocup({"player": served}, None)  # type: ignore[arg-type]  # nothing is said
    for line in ("BOARD", *["0,0,1"] * 200):
        assert gomocup._answer(line) == ""
    assert len(gomocup._board or []) == SIZE**2 + 1


def test_the_engine_opens_before_a_clock_with_the_memory_of_info(
    brain: GomocupTalk, served: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[int]()

    def open_engine(_: Player, **options: Any) -> azpy.Engine:
        opened.append(options["total_memory_mb"])
        return azpy.Engine(served.evaluator, **served.options)

    monkeypatch.setattr("azpy.serving.request.open_engine", open_engine)
    assert brain.ask("START 7") == "OK"
    assert opened == [1024]
    for memory, megabytes in ((83886080, 80), (83886080, 80), (0, 1024), (1, 1), (1 << 50, 1024)):
        assert brain.ask(f"INFO max_memory {memory}", "ABOUT").startswith("name=")
        assert opened[-1] == megabytes
        assert brain.ask("RESTART", "BEGIN") == "OK"
        assert brain.next() == "0,0"
    assert opened == [1024, 80, 1024, 1, 1024]
