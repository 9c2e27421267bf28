"""Gomocup's protocol beside a manager that knows the rules by itself. transcripts/gomocup.txt has conversations."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

import azpy
from azpy.serving.gomocup import Gomocup
from azpy.serving.models import Player, open_player
from azpy.serving.request import Search
from talks import Talk

SIZE = 7
Cell = tuple[int, int]  # x, the column, and y, the row from the top


class Manager:
    """The board of a tournament: where the stones are, in the order in which they were put."""

    def __init__(self, size: int) -> None:
        self.size, self.moves = size, list[Cell]()

    def free(self) -> list[Cell]:
        return [(x, y) for x in range(self.size) for y in range(self.size) if (x, y) not in self.moves]

    def put(self, cell: Cell) -> None:
        assert cell in self.free(), f"{cell} is no empty cell of {self.moves}"
        assert not self.has_row(), "the game is over"
        self.moves.append(cell)

    def has_row(self) -> bool:
        """Whether the last to move has five in a row or more."""
        own = set(self.moves[-1::-2])
        return any(
            all((x + step * dx, y + step * dy) in own for step in range(5))
            for x, y in own
            for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1))
        )

    def is_over(self) -> bool:
        return self.has_row() or not self.free()


class GomocupTalk(Talk):
    """A conversation that asks one command after the other."""

    def ask(self, *lines: str) -> str:
        """The next line after these commands."""
        self.say(*lines)
        return self.hear("")

    def move(self, *lines: str) -> Cell:
        return cell_of(self.ask(*lines))


def cell_of(answer: str) -> Cell:
    x, comma, y = answer.partition(",")
    assert comma
    assert (x + y).isdecimal(), answer
    return int(x), int(y)


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


def test_whole_games_are_played_by_the_managers_rules(brain: GomocupTalk) -> None:
    rng, ends = random.Random(1), set[bool]()
    assert brain.ask("ABOUT").startswith('name="azpy", version="')
    for game in range(6):
        manager = Manager(SIZE)
        assert brain.ask(f"START {SIZE}" if game % 2 else "RESTART") == "OK"
        if game % 2:
            manager.put(brain.move("BEGIN"))
        while not manager.is_over():
            x, y = rng.choice(manager.free())
            manager.put((x, y))
            if manager.is_over():
                assert brain.ask(f"TURN {x},{y}") == "ERROR the game is over: send RESTART or START"
                assert brain.ask(f"TURN {x},{y}").startswith("ERROR the game is over before the stone at")
            else:
                manager.put(brain.move(f"TURN {x},{y}"))
        ends.add(manager.has_row())
    assert True in ends


def board(stones: list[Cell], own_first: bool) -> list[str]:
    """The lines of BOARD for stones in the order in which they were put."""
    whose = "12" if own_first else "21"
    return ["BOARD", *(f"{x},{y},{whose[index % 2]}" for index, (x, y) in enumerate(stones)), "DONE"]


def test_a_board_is_the_position_that_turns_lead_to(brain: GomocupTalk, served: Player) -> None:
    rng = random.Random(2)
    for _ in range(8):
        manager = Manager(SIZE)
        for _ in range(rng.randrange(9)):
            manager.put(rng.choice(manager.free()))
        lines = board(manager.moves, own_first=len(manager.moves) % 2 == 0)
        shuffled = [lines[0], *rng.sample(lines[1:-1], len(lines) - 2), lines[-1]]
        answers = set[str]()
        for each in (lines, shuffled, ["BOARD", "", *lines[1:]]):
            assert brain.ask("RESTART") == "OK"
            answers.add(brain.ask(*each))
        # The same position, of the same simulations, has the same move as in azpy.
        state = served.start.clone()
        for x, y in manager.moves:
            state.play(y * SIZE + x)
        with azpy.Engine(served.evaluator, **served.options) as engine:
            action = engine.submit(state, simulations=served.simulations).result().action
        assert action is not None
        assert answers == {f"{action % SIZE},{action // SIZE}"}


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
def test_a_move_has_the_seconds_that_info_leaves(told: list[str], expected: float | None, served: Player) -> None:
    asked = list[float | None]()

    class Watched(Gomocup):
        def _seconds(self) -> float | None:
            asked.append(super()._seconds())
            return 0.001

    brain = GomocupTalk(lambda conversation: Watched({"player": served}, conversation).run())
    brain.say(*(f"INFO {each}" for each in told))
    brain.say("BEGIN", "ABOUT")
    brain.hear("name=")
    brain.close()
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


@pytest.fixture
def opened(served: Player, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The MB of trees of each engine that was opened."""
    found = list[int]()

    def open_engine(_: Player, **options: Any) -> azpy.Engine:
        found.append(options["total_memory_mb"])
        return azpy.Engine(served.evaluator, **served.options)

    monkeypatch.setattr("azpy.serving.request.open_engine", open_engine)
    return found


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
    brain.move("BEGIN")
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


def test_the_engine_opens_before_a_clock_with_the_memory_of_info(brain: GomocupTalk, opened: list[int]) -> None:
    assert brain.ask("START 7") == "OK"
    assert opened == [1024]
    for memory, megabytes in ((83886080, 80), (83886080, 80), (0, 1024), (1, 1), (1 << 50, 1024)):
        brain.say(f"INFO max_memory {memory}", "ABOUT")
        brain.hear("name=")
        assert opened[-1] == megabytes
        assert brain.ask("RESTART") == "OK"
        brain.move("BEGIN")
    assert opened == [1024, 80, 1024, 1, 1024]
