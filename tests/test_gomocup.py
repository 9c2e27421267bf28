"""az-engine speaks Gomocup's protocol: a manager of its own plays Gomoku with it, and knows the rules by itself."""

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.engine import main
from azpy.errors import SettingsError
from azpy.serving.gomocup import Gomocup
from azpy.serving.lines import LONGEST_LINE
from azpy.serving.models import Served, open_player
from azpy.serving.request import Search
from azpy.serving.track import Track
from talks import PATIENCE, Talk

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


def talk_with(served: Served) -> GomocupTalk:
    return GomocupTalk(lambda conversation: Gomocup({"player": served}, conversation).run())


@pytest.fixture
def served() -> Served:
    return open_player("uniform:60", f"gomoku(size={SIZE})", 100)


@pytest.fixture
def brain(served: Served) -> Iterator[GomocupTalk]:
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
                assert brain.ask(f"TURN {x},{y}") == "ERROR the game is over: no move is left to find"
                assert brain.ask(f"TURN {x},{y}").startswith("ERROR the game is over before the stone at")
            else:
                manager.put(brain.move(f"TURN {x},{y}"))
        ends.add(manager.has_row())
    assert True in ends


def board(stones: list[Cell], own_first: bool) -> list[str]:
    """The lines of BOARD for stones in the order in which they were put."""
    whose = "12" if own_first else "21"
    return ["BOARD", *(f"{x},{y},{whose[index % 2]}" for index, (x, y) in enumerate(stones)), "DONE"]


def test_a_board_is_the_position_that_turns_lead_to(brain: GomocupTalk, served: Served) -> None:
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


def test_a_move_that_wins_is_found_where_x_is_the_column(brain: GomocupTalk) -> None:
    # Four own stones in the row y = 1, open on the right alone.
    stones = [(1, 1), (0, 1), (2, 1), (0, 6), (3, 1), (6, 6), (4, 1), (3, 6)]
    assert brain.ask(*board(stones, own_first=True)) == "5,1"
    assert brain.ask("TURN 6,0") == "ERROR the game is over before the stone at 6,0"
    assert brain.ask("TAKEBACK 5,1") == "OK"
    assert brain.ask("TURN 6,1") in {f"{x},{y}" for x in range(SIZE) for y in range(SIZE)}


def test_stones_are_taken_back_one_by_one(brain: GomocupTalk) -> None:
    manager = Manager(SIZE)
    manager.put(brain.move("BEGIN"))
    manager.put((6, 6))
    manager.put(brain.move("TURN 6,6"))
    first, second = manager.moves[0], manager.moves[2]
    assert brain.ask("TAKEBACK 6,6") == f"ERROR 6,6 cannot be taken back: the last stone is at {second[0]},{second[1]}"
    for x, y in reversed(manager.moves):
        assert brain.ask(f"TAKEBACK {x},{y}") == "OK"
    assert brain.ask("TAKEBACK 0,0") == "ERROR 0,0 cannot be taken back: the board is empty"
    assert brain.move("BEGIN") == first, "the same search as before"


BAD = [
    ("START", "ERROR expected the size of the board, got ''"),
    ("START 15", f"ERROR unsupported size 15: this player plays on {SIZE} x {SIZE}"),
    ("START x", "ERROR expected the size of the board"),
    ("START 7 7", "ERROR expected the size of the board"),
    ("START -7", "ERROR expected the size of the board"),
    ("START \u0667", "ERROR expected the size of the board"),
    (f"START {'7' * 5000}", "ERROR expected the size of the board"),
    ("RECTSTART 7,8", "ERROR unsupported size 7,8"),
    ("TURN", "ERROR expected x,y from 0,0 to 6,6, got ''"),
    ("TURN 7,0", "ERROR expected x,y from 0,0 to 6,6, got '7,0'"),
    ("TURN -1,0", "ERROR expected x,y"),
    ("TURN 1;2", "ERROR expected x,y"),
    ("TURN 1,2,3", "ERROR expected x,y"),
    ("TURN 3,3", "ERROR there is a stone at 3,3 already"),
    ("BEGIN", "ERROR BEGIN needs an empty board, and it has 2 stones: RESTART it"),
    ("TAKEBACK x", "ERROR expected x,y"),
    ("BOARD\n0,0,1\nDONE", "ERROR BOARD: 1 own stones and 0 of the opponent, expected as many, or one more of"),
    ("BOARD\n0,0,2\n1,1,2\nDONE", "ERROR BOARD: 0 own stones and 2 of the opponent"),
    ("BOARD\n0,0,3\nDONE", "ERROR BOARD: expected x,y,1 or x,y,2, got '0,0,3'"),
    ("BOARD\n0,0\nDONE", "ERROR BOARD: expected x,y,1 or x,y,2, got '0,0'"),
    ("BOARD\n0,9,1\n0,0,2\nDONE", "ERROR expected x,y from 0,0 to 6,6, got '0,9'"),
    ("BOARD\n0,0,1\n0,0,2\nDONE", "ERROR there is a stone at 0,0 already"),
    ("BOARD\nBOARD\nDONE", "ERROR BOARD: expected x,y,1 or x,y,2, got 'BOARD'"),
    ("BOARD\n0,0,2\nTURN 3,3", "ERROR there is a stone at 3,3 already"),
    ("DONE", "UNKNOWN DONE"),
    ("SWAP2BOARD", "UNKNOWN SWAP2BOARD"),
    ("PLAY 1,1", "UNKNOWN PLAY 1,1"),
    ("0,0,1", "UNKNOWN 0,0,1"),
]


def test_a_command_that_fails_changes_nothing(brain: GomocupTalk) -> None:
    for line, problem in BAD:
        assert brain.ask("RESTART") == "OK"
        first = brain.move("BOARD", "3,3,2", "DONE")
        last = f"ERROR 3,3 cannot be taken back: the last stone is at {first[0]},{first[1]}"
        assert brain.ask(*line.split("\n")).startswith(problem), line
        assert brain.ask("TAKEBACK 3,3") == last, line
        assert brain.ask(f"TAKEBACK {first[0]},{first[1]}") == "OK"
        assert brain.ask("TAKEBACK 3,3") == "OK"
        brain.move("begin")


def test_a_board_with_a_row_of_five_is_over(brain: GomocupTalk) -> None:
    row = [(x, 0) for x in range(5)]
    stones = [cell for pair in zip(row, [(x, 3) for x in range(5)], strict=True) for cell in pair][:-1]
    assert brain.ask(*board(stones, own_first=False)) == "ERROR the game is over: no move is left to find"
    assert brain.ask(*board([*stones, (6, 6)], own_first=True)).startswith("ERROR the game is over")


def test_rules_that_azpy_does_not_have_are_refused_until_they_are_taken_back(brain: GomocupTalk) -> None:
    names = {1: "exactly five", 2: "a continuous game", 4: "renju", 8: "caro", 5: "exactly five, renju", 16: "unknown"}
    for rule, name in names.items():
        problem = f"rule {rule} ({name}) is not played here: azpy plays rule 0, freestyle"
        assert brain.ask(f"INFO rule {rule}") == f"MESSAGE {problem}"
        for lines in (["START 7"], ["RESTART"], ["BEGIN"], ["TURN 0,0"], ["BOARD", "DONE"]):
            assert brain.ask(*lines) == f"ERROR {problem}"
    assert brain.ask("INFO speed 9") == "MESSAGE INFO speed has no effect"
    brain.say("INFO game_type 1", "INFO folder x", "INFO evaluate 1,1")
    assert brain.ask("INFO rule x") == "MESSAGE INFO rule: expected a whole number, got 'x'"
    assert brain.ask("INFO rule 0", "START 7") == "OK"
    brain.move("BEGIN")


def test_six_in_a_row_win_as_rule_0_says(brain: GomocupTalk) -> None:
    # Two and three stones with a gap: the stone in between makes six.
    stones = [(0, 1), (0, 5), (1, 1), (2, 5), (3, 1), (4, 5), (4, 1), (6, 5), (5, 1), (6, 6)]
    assert brain.ask(*board(stones, own_first=True)) == "2,1"
    assert brain.ask("TURN 0,0").startswith("ERROR the game is over")


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
def test_a_move_has_the_seconds_that_info_leaves(told: list[str], expected: float | None, served: Served) -> None:
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


def test_a_new_game_forgets_what_was_left_of_the_time_before(served: Served) -> None:
    gomocup = Gomocup({"player": served}, None)  # type: ignore[arg-type]  # nothing is said
    for line in ("INFO timeout_match 100000", "INFO time_left 1000"):
        gomocup._answer(line)
    before = gomocup._seconds()
    assert gomocup._answer("RESTART") == "OK"
    assert before == 0.001
    assert gomocup._seconds() == pytest.approx((100 - 25 * 0.05) / 25)


@pytest.fixture
def opened(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The MB of trees of each engine that was opened."""
    found = list[int]()

    def open_engine(_: Served, **options: Any) -> azpy.Engine:
        found.append(options["total_memory_mb"])
        return azpy.Engine(served.evaluator, **served.options)

    monkeypatch.setattr("azpy.serving.request.open_engine", open_engine)
    return found


def test_the_engine_is_open_before_the_clock_of_a_move_runs(brain: GomocupTalk, opened: list[int]) -> None:
    for line in (f"START {SIZE}", "RESTART"):
        assert brain.ask(line) == "OK"
        assert opened == [1024]
    brain.say("INFO max_memory 83886080", "INFO max_memory 83886080")
    assert brain.ask("ABOUT").startswith("name=")
    assert opened == [1024, 80]
    brain.move("BEGIN")
    assert opened == [1024, 80]


def test_a_search_descends_for_no_lines_of_play_unless_they_are_asked_for(served: Served) -> None:
    engine = azpy.Engine(served.evaluator, **served.options)
    asked: list[dict[str, Any]] = [{}, {"lines": None}]
    found = [Search(Track(engine), served.start, [], None, False, simulations=9, **more).answer() for more in asked]
    assert [len(answer.result.principal_variations()) for answer in found] == [0, 3]
    engine.close()


def test_an_engine_that_does_not_open_is_said_in_each_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> azpy.Engine:
        raise RuntimeError("no device")

    brain = talk_with(served)
    brain.move("BEGIN")
    monkeypatch.setattr("azpy.serving.request.open_engine", refused)
    assert brain.ask("INFO max_memory 83886080") == "MESSAGE no device"
    for line in ("RESTART", "TURN 6,6"):
        assert brain.ask(line) == "ERROR no device"
    brain.close()


def test_another_game_begins_with_another_tree(served: Served) -> None:
    gomocup = Gomocup({"player": served}, None)  # type: ignore[arg-type]  # nothing is said
    for line in ("TURN 3,3", "RESTART"):
        gomocup._answer(line)
    assert gomocup._opened().follow(served.start, [24]).search(1).result().visits.sum() == 1
    gomocup._close()


def test_a_command_in_place_of_done_ends_a_board(brain: GomocupTalk) -> None:
    assert brain.ask("BOARD", "0,0,2", "ABOUT").startswith("name=")
    for line in ("1,1,1", "DONE"):
        assert brain.ask(line) == f"UNKNOWN {line}"


def test_no_more_lines_of_a_board_are_kept_than_it_has_cells(served: Served) -> None:
    gomocup = Gomocup({"player": served}, None)  # type: ignore[arg-type]  # nothing is said
    for line in ("BOARD", *["0,0,1"] * 200):
        assert gomocup._answer(line) == ""
    assert len(gomocup._board or []) == SIZE**2 + 1


def test_a_stone_that_ends_the_game_is_on_the_board(brain: GomocupTalk) -> None:
    # The opponent has four in the row y = 0; the engine's stone may block one end only.
    stones = [(1, 0), (1, 3), (2, 0), (2, 5), (3, 0), (6, 6), (4, 0)]
    x, y = brain.move(*board(stones, own_first=False))
    last = "5,0" if (x, y) == (0, 0) else "0,0"
    assert brain.ask(f"TURN {last}") == "ERROR the game is over: no move is left to find"
    assert brain.ask(f"TAKEBACK {x},{y}") == f"ERROR {x},{y} cannot be taken back: the last stone is at {last}"
    assert brain.ask(f"TAKEBACK {last}") == "OK"
    assert brain.ask(f"TAKEBACK {x},{y}") == "OK"


def test_trees_keep_to_the_memory_that_info_gives(brain: GomocupTalk, opened: list[int]) -> None:
    for memory in (83886080, 83886080, 0, 1, 1 << 50):
        brain.say(f"INFO max_memory {memory}")
        assert brain.ask("RESTART") == "OK"
        brain.move("BEGIN")
    assert opened == [80, 1024, 1, 1024]


def test_a_network_that_fails_costs_its_command_alone(served: Served) -> None:
    class Faulty:
        fails = True

        def evaluate_batch(self, observations: np.ndarray[Any, Any]) -> Any:
            if self.fails:
                raise RuntimeError("out of memory\nand more")
            return np.zeros((len(observations), SIZE * SIZE), np.float32), np.zeros(len(observations), np.float32)

    faulty = Faulty()
    brain = talk_with(dataclasses.replace(served, evaluator=faulty))
    assert brain.ask("TURN 3,3") == "ERROR out of memory and more"
    faulty.fails = False
    assert brain.move("TURN 3,3") != (3, 3), "the stone was not there"
    brain.close()


def test_only_one_player_of_five_in_a_row(one_line: Any) -> None:
    def refused(*names: str) -> str:
        with pytest.raises(SettingsError) as caught:
            Gomocup({name: open_player("uniform:1", name, 1) for name in names}, None)  # type: ignore[arg-type]
        return str(caught.value)

    assert refused("gomoku(size=9,k=4)").startswith(
        "gomocup is for five in a row, and gomoku(size=9,k=4) plays gomoku("
    )
    assert refused("gomoku", "gomoku(size=9)") == "--model: gomocup cannot ask for another player than gomoku"
    said = one_line(main, ["uniform:1", "--game", "hex(size=5)", "--protocol", "gomocup"], "az-engine: ")
    assert "gomocup is for gomoku, and uniform:1 plays hex(size=5" in said


@pytest.mark.parametrize("ending", ["END", "end", None])
def test_the_end_ends_it(ending: str | None, served: Served) -> None:
    brain = talk_with(served)
    brain.say("BOARD", "0,0,1")
    if ending is not None:
        brain.say(ending)
        brain.thread.join(PATIENCE)
        assert not brain.thread.is_alive()
    brain.close()
    assert not brain.heard


def test_a_move_under_way_is_answered_though_the_input_ends(served: Served) -> None:
    for ending in (["END"], []):
        brain = talk_with(served)
        brain.say("BEGIN", *ending)
        brain.close()
        assert [cell_of(line) for line in brain.heard] == [(0, 0)], "the move that the whole search finds"


def test_long_and_odd_lines_are_answered(brain: GomocupTalk) -> None:
    assert brain.ask("x" * (2 * LONGEST_LINE)) == f"UNKNOWN {'x' * 60}"
    brain.say(*["", "\t", "\x07"], "\tTURN\t3 , 3 ")
    assert cell_of(brain.hear("")) != (3, 3)
    brain.say("BOARD", *["0,0,1"] * 100_000)
    assert brain.ask("DONE").startswith("ERROR BOARD: ")
