"""Go is the game that OpenSpiel and sgfmill play; a search sees all that the rules ask."""

import itertools
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.cli.export import main
from azpy.runs import exports
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.collector import Collector
from go_games import cells_of, ko_opening, random_game
from oracles import Batch, Hashed, after


def names(state: azpy.State) -> set[str]:
    return {state.action_name(action) for action in state.legal_actions()[:-1]}


def compare_with_openspiel(size: int, seeds: range, kos: bool = False) -> tuple[int, int]:
    """Compares actions, boards and outcomes ply by ply, up to where a board comes back, which ends the game there;
    returns how many positions, and how many games ended that way."""
    pyspiel = pytest.importorskip("pyspiel")
    start, game = azpy.make_game("go", size=size, superko=0), pyspiel.load_game(f"go(board_size={size},komi=7.5)")
    count = repeated = 0
    for seed in seeds:
        theirs, boards = game.new_initial_state(), set[str]()
        for state, action in random_game(start, seed, kos):
            count += 1
            board = str(state)
            if theirs.is_terminal() and not state.is_terminal:
                assert board in boards
                repeated += 1
                break
            boards.add(board)
            assert theirs.is_terminal() == state.is_terminal
            if state.is_terminal:
                came_back = theirs.returns()[0] == 0
                assert came_back or theirs.returns()[0] == state.outcome()
                break
            player = state.turn
            legal = {theirs.action_to_string(player, a).split()[1].upper(): a for a in theirs.legal_actions()}
            assert theirs.current_player() == player
            assert legal.keys() == names(state) | {"PASS"}
            planes = np.array(theirs.observation_tensor(0), np.float32).reshape(4, size, size)[:, ::-1]
            own, other = state.observation()[:2]
            np.testing.assert_array_equal(planes[:2], (own, other) if player == 0 else (other, own))
            theirs.apply_action(legal[state.action_name(action).upper()])
    return count, repeated


@pytest.mark.parametrize("times", [1, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [5, 9, 13, 19])
def test_actions_boards_and_outcomes_are_openspiels(size: int, times: int) -> None:
    positions, _ = compare_with_openspiel(size, range(times * (20 if size == 5 else 2)))
    assert positions > 150
    assert size != 9 or compare_with_openspiel(9, range(6 * times), kos=True)[1] > 0


def score_of(text: str) -> float:
    """For Black, from an SGF's result."""
    match = re.search(r"RE\[(?:0|([BW])\+([\d.]+))\]", text)
    assert match is not None, text
    return float(match[2] or 0) * (-1 if match[1] == "W" else 1)


def sgfmill_of(text: str) -> tuple[Any, Any, list[tuple[str, Any]]]:
    """A game as sgfmill reads it: the game, the board after all its moves, the moves."""
    pytest.importorskip("sgfmill")
    from sgfmill import sgf, sgf_moves

    game = sgf.Sgf_game.from_bytes(text.encode())
    board, moves = sgf_moves.get_setup_and_moves(game)
    for colour, move in moves:
        if move is not None:
            board.play(*move, colour)
    return game, board, moves


def assert_same_stones(board: Any, state: azpy.State) -> None:
    glyphs = {"b": "x", "w": "o", None: "."}
    lines = range(board.side)
    assert cells_of(state) == [glyphs[board.get(row, column)] for row in reversed(lines) for column in lines]


@pytest.mark.parametrize(("size", "games"), [(5, 60), (7, 20), (9, 10), (13, 3), (19, 2)])
def test_scores_are_those_of_sgfmill_and_it_reads_what_is_written(size: int, games: int) -> None:
    scores = set[float]()
    for seed, komi in zip(range(games), itertools.cycle([7.5, 0, -0.5, 6]), strict=False):
        start = azpy.make_game("go", size=size, komi=komi)
        *_, (last, _) = random_game(start, seed)
        text = last.to_text()
        game, board, moves = sgfmill_of(text)
        assert (game.get_size(), game.get_komi()) == (size, komi)
        assert_same_stones(board, last)
        score = board.area_score() - komi
        assert score_of(text) == score
        assert last.outcome() == np.sign(score)
        read = azpy.parse_state(start, text)
        assert (read.key(), str(read), read.turn) == (last.key(), str(last), azpy.TERMINAL)
        assert len(moves) <= start.max_plies
        scores.add(score)
    assert len(scores) > 1


def test_what_sgfmill_writes_is_read() -> None:
    pytest.importorskip("sgfmill")
    from sgfmill import sgf

    start = azpy.make_game("go", size=9, komi=6.5)
    for seed in range(20):
        rng, game = random.Random(seed), sgf.Sgf_game(9)
        game.get_root().set("KM", 6.5)
        if seed % 2:
            stones = [divmod(cell, 9) for cell in rng.sample(range(0, 81, 2), 5)]
            game.get_root().set_setup_stones(stones, [])
        state = azpy.parse_state(start, game.serialise().decode())
        assert state.turn == seed % 2  # White follows a handicap
        for ply in range(12):
            action = 81 if ply % 5 == 4 else rng.choice(state.legal_actions()[:-1])
            move = None if action == 81 else (8 - action // 9, action % 9)
            game.get_last_node().new_child().set_move("bw"[state.turn], move)
            game.get_last_node().set("C", "some ] text \\ and (;more)")
            game.get_main_sequence()[-2].new_child().set_move("bw"[state.turn], None)  # a variation
            state.play(action)
        text = game.serialise().decode()
        read = azpy.parse_state(start, text)
        assert (read.key(), str(read)) == (state.key(), str(state))
        assert_same_stones(sgfmill_of(text)[1], read)


def fighting_position() -> azpy.State:
    """Six kos, of which either player has taken two."""
    state = azpy.make_game("go")
    for action in (*ko_opening(), 11, 16, 38, 43):
        state.play(action)
    return state


@pytest.mark.parametrize("spec", ["go(size=5)", "go(size=5,superko=0)", "kos"])
def test_a_cache_changes_no_visit(spec: str) -> None:
    state = fighting_position() if spec == "kos" else azpy.make_game(spec)
    results = [
        azpy.Search(Hashed(state.num_actions), simulations=3000, cache_positions=size).run(state)
        for size in (0, 100_000)
    ]
    assert results[0].visits.tolist() == results[1].visits.tolist()
    assert results[0].q.tolist() == results[1].q.tolist()


def test_leaves_show_the_true_history() -> None:
    class Keeps(Hashed):
        seen: list[NDArray[np.float32]]

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            self.seen += [row.copy() for row in observations]
            return super().evaluate_batch(observations)

    root = after(azpy.make_game("go", size=5), 0, 6, 12, 25, 7, 3, 11, 24, 20, 2)
    evaluator = Keeps(26)
    evaluator.seen = []
    azpy.Search(evaluator, simulations=60).run(root)
    lines = [(), *((a,) for a in root.legal_actions())]
    lines += [(a, b) for (a,) in lines[1:] for b in after(root, a).legal_actions()]
    states = [after(root, *line) for line in lines]
    known = {state.observation().tobytes() for state in states if not state.is_terminal}
    found = [row.tobytes() in known for row in evaluator.seen]
    assert sum(found) > 40
    assert len({row.tobytes() for row in evaluator.seen}) == len(evaluator.seen)


def test_a_picture_shows_the_board_with_coordinates() -> None:
    state = azpy.parse_state("go", "C3 G7 E5 pass J1")
    svg = ET.fromstring(state.to_svg())
    circles = [circle for circle in svg.iter("{http://www.w3.org/2000/svg}circle") if circle.get("r") == "14"]
    assert len(circles) == 4
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(set(texts), key=str) == sorted([*"ABCDEFGHJ", *"123456789"])
    colored = state.render(color=True)
    assert (colored.count("\x1b[1;31m"), colored.count("\x1b[1;34m")) == (3, 1)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two iterations of four games of Go."""
    path: Path = tmp_path_factory.mktemp("runs") / "run ] \\"
    settings = Settings("go(size=5)", simulations=8, slots=4, games_per_iteration=4, iterations=2)
    with Collector(settings, path) as collector:
        list(collector.run())
    return path


def test_an_export_to_sgf_is_read_by_sgfmill(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a folder/sgf"
    assert main([str(collected), "--sgf", str(target)]) == 0
    assert f"8 games in {target}" in capsys.readouterr().out
    run = StoredRun(collected)
    games = list(run.games(run.sealed_iterations()))
    assert {path.name for path in target.iterdir()} == {f"{record.game_id:06}.sgf" for _, record in games}
    for iteration, record in games:
        text = (target / f"{record.game_id:06}.sgf").read_text()
        game, board, moves = sgfmill_of(text)
        root = game.get_root()
        assert len(moves) == len(record)
        last = after(run.start, *record.actions.tolist())
        assert_same_stones(board, last)
        assert azpy.parse_state("go(size=5)", text).key() == last.key()
        assert (root.get("EV"), root.get("RO")) == (str(run.path), f"{iteration}.{record.game_id}")
        winner = {1.0: "b", -1.0: "w", 0.0: None}[record.outcome]
        assert game.get_winner() == winner
        assert root.get("RE") == f"{str(winner).upper()}+R" if record.resigned else score_of(text) == last_score(board)


def last_score(board: Any) -> float:
    return float(board.area_score()) - 7.5


def test_results_without_a_score_are_written_too(collected: Path, tmp_path: Path) -> None:
    class Record:
        """A game that was given up, or cut short, as far as `to_sgf` looks."""

        def __init__(self, record: azpy.GameRecord, **changed: Any) -> None:
            self._record, self._changed = record, changed

        def __getattr__(self, name: str) -> Any:
            return self._changed[name] if name in self._changed else getattr(self._record, name)

    run = StoredRun(collected)
    iteration, record = next(run.games([1]))
    few = {"actions": record.actions[:3], "players": record.players[:3], "networks": record.networks[:3]}
    for number, (changed, result) in enumerate([
        ({"resigned": True, "outcome": 1.0}, "B+R"),
        ({"resigned": True, "outcome": -1.0}, "W+R"),
        ({"capped": True, "outcome": 0.0}, "Void"),
    ]):  # fmt: skip
        shown: Any = Record(record, game_id=number, flags=record.flags[:3], **few, **changed)
        assert exports.to_sgf(tmp_path, run.start, [(iteration, shown)], "an event") == 1
        text = (tmp_path / f"{number:06}.sgf").read_text()
        assert f"RE[{result}]" in text
        assert text.count("RE[") == 1


@pytest.mark.parametrize("size", [5, 11, 19])
def test_a_name_is_the_action_that_has_it(size: int) -> None:
    state, _ = next(itertools.islice(random_game(azpy.make_game("go", size=size), 3), 20, None))
    legal = {state.action_name(action): action for action in state.legal_actions()}
    odd = ["a1", "A01", "A+1", "A0", "A", "I5", "T20", "Z9", "pas", "\u0661", "\u00c51"]
    names = [state.action_name(action) for action in range(state.num_actions)]
    assert 0 < len(legal) < len(names)
    for name in [*names, *odd]:
        if name in legal:
            assert state.parse_actions(f" {name} ") == [legal[name]]
        else:
            with pytest.raises(ValueError, match="is not among the legal ones"):
                state.parse_actions(name)
    over = azpy.parse_state(azpy.make_game("go", size=size), "pass pass")
    with pytest.raises(ValueError, match="the game is over before it"):
        over.parse_actions("pass")
