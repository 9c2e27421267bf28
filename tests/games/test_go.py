"""Scores of Go are those of sgfmill, and a search sees all that the rules ask.

rust/games/tests/all/go.rs compares whole games with a plain reading of the rules.
"""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.cli.export import main
from azpy.games.notations import tags_of, tags_of_today
from azpy.runs.reader import StoredRun
from go_games import cells_of, ko_opening, random_game
from oracles import Batch, Hashed, after
from training_runs import collect


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
def test_scores_and_written_games_are_those_of_sgfmill(size: int, games: int) -> None:
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


def fighting_position() -> azpy.State:
    """Six kos, of which either player has taken two."""
    state: azpy.State = after(azpy.make_game("go"), *ko_opening(), 11, 16, 38, 43)
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


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two iterations of four games of Go."""
    return collect(tmp_path_factory.mktemp("runs") / "run ] \\", "go(size=5)", 2, games_per_iteration=4).path


def test_an_export_to_sgf_is_read_by_sgfmill(collected: Path, tmp_path: Path, printed: Any) -> None:
    target = tmp_path / "a folder/sgf"
    assert f"8 games to {target}" in printed(main, [str(collected), "--sgf", str(target)])
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
        score = board.area_score() - 7.5
        assert root.get("RE") == f"{str(winner).upper()}+R" if record.resigned else score_of(text) == score


@pytest.mark.parametrize(
    ("outcome", "end", "result"), [(1.0, "resigned", "B+R"), (-1.0, "resigned", "W+R"), (0.0, "capped", "Void")]
)
def test_a_result_without_a_score_is_written_too(outcome: float, end: str, result: str) -> None:
    notation = azpy._core.notation_of("go")
    assert notation is not None
    assert tags_of(notation, "an event", "1", outcome, end) == {"EV": "an event", "RO": "1", "RE": result}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", tags_of_today(notation)["DT"])
