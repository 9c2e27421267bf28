"""Kill -9 at any moment, files that may not grow: the same command goes on, and nothing finished is lost."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

import azpy
from azpy.games.names import make_game
from azpy.runs.folder import RunFolder
from starts import GAMES, Starts, command


def check_game(record: azpy.GameRecord) -> None:
    """Plays a stored game again by the rules."""
    state = make_game(record.game)
    for action, player in zip(record.actions.tolist(), record.players.tolist(), strict=True):
        assert state.turn == (azpy.CHANCE if player < 0 else player)
        legal = [outcome for outcome, _ in state.chance_outcomes()] if player < 0 else state.legal_actions()
        assert action in legal
        state.play(action)
    assert state.turn == azpy.TERMINAL
    assert state.outcome() == record.outcome


def check_run(path: Path, iterations: int, deterministic: bool = True) -> tuple[str, str]:
    """Everything is there once, whole and true; returns the hashes of games and weights."""
    with RunFolder(path, {}) as run:
        assert run.journal == []
        assert run.sealed.iterations() == list(range(1, iterations + 1))
        records = [record for iteration in run.sealed.iterations() for record in run.sealed.read(iteration)]
        ids = [record.game_id for record in records]
        assert len(ids) == len(set(ids)) == 6 * iterations
        assert not deterministic or ids == list(range(6 * iterations))
        for record in records:
            check_game(record)
        newest = [i for i in range(1, iterations + 1) if i > iterations - 3 or i % 10 == 0]
        assert run.checkpoints() == newest
        for iteration in newest:
            assert run.load_checkpoint(iteration).state["iteration"] == iteration
        rows = Counter((row["kind"], row["iteration"], row.get("opponent")) for row in run.metrics())
        assert set(rows.values()) == {1}
        played = [iteration for kind, iteration, _ in rows if kind == "iteration"]
        assert played == list(range(1, iterations + 1))
        opponents = {opponent for kind, iteration, opponent in rows if kind == "match" and iteration == iterations}
        assert opponents == {"random", "untrained", "mcts-100", "mcts-1000"}
        temporary = list(path.rglob(".tmp-*"))
        assert temporary == []
        return run.games_hash(), run.weights_hash(iterations)


def killed_again_and_again(starts: Starts, arguments: list[str], kills: int, seed: int, span: float) -> None:
    """Kills a run at random moments, at most so many times, then lets it complete.

    The first kill comes within `span` seconds.
    """
    path, rng = Path(arguments[-1]), random.Random(seed)
    for _ in range(kills):
        before = progress(path)
        end = starts.run(*arguments, kill_after=rng.uniform(0, span))
        if end.code == 0:
            break
        assert end.code == -9, end.errors
        # Long enough that some starts get on, short enough that most do not get far.
        span *= 1.15 if progress(path) == before else 0.8
    starts.finish(*arguments)


def progress(path: Path) -> int:
    return len(list((path / "games").glob("*.npz"))) if (path / "games").exists() else 0


@pytest.mark.parametrize(
    ("game", "deterministic", "kills"),
    [
        (GAMES[0], True, 6),
        (GAMES[1], False, 6),
        *(pytest.param(game, is_exact, 16, marks=pytest.mark.slow) for game in GAMES for is_exact in (True, False)),
    ],
)
def test_a_run_killed_at_random_moments_completes(
    starts: Starts, tmp_path: Path, game: str, deterministic: bool, kills: int
) -> None:
    iterations = kills - 2
    straight = starts.finish(*command(game, tmp_path / "straight", iterations))
    arguments = command(game, tmp_path / "run", iterations, deterministic)
    killed_again_and_again(starts, arguments, kills, 0, straight.seconds / (kills // 3))
    hashes = check_run(tmp_path / "run", iterations, deterministic=deterministic)
    assert not deterministic or hashes == check_run(tmp_path / "straight", iterations)


def killed_at_step(starts: Starts, tmp_path: Path, step: int) -> bool:
    """Kills the fifth iteration at a step of writing files; false if it has no such step."""
    path = tmp_path / f"at-{step}"
    shutil.copytree(tmp_path / "four", path)
    end = starts.run(*command(GAMES[0], path, 5), kill_at=step)
    if end.code == 0:
        return False
    assert end.code == -9, end.errors
    starts.finish(*command(GAMES[0], path, 5))
    assert check_run(path, 5) == check_run(tmp_path / "straight", 5)
    shutil.rmtree(path)
    return True


@pytest.fixture
def four(starts: Starts, tmp_path: Path) -> Path:
    """A run of five iterations, and what it was before the fifth."""
    starts.finish(*command(GAMES[0], tmp_path / "straight", 5))
    before = shutil.copytree(tmp_path / "straight", tmp_path / "four")
    shutil.rmtree(before / "checkpoints/000005")
    shutil.copytree(before / "checkpoints/000003", before / "checkpoints/000002")  # the fifth deletes it
    (before / "games/000005.npz").unlink()
    return tmp_path


def test_a_kill_at_a_step_of_writing_files_loses_nothing(starts: Starts, four: Path) -> None:
    for step in range(3, 90, 17):
        killed_at_step(starts, four, step)


@pytest.mark.slow
def test_a_kill_at_every_step_of_writing_files_loses_nothing(starts: Starts, four: Path) -> None:
    step = 1
    while killed_at_step(starts, four, step):
        step += 1
    print(f"\n{step - 1} steps of writing files in an iteration: killed at each")
    assert step > 60


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_changed_settings_are_written_down_once(starts: Starts, four: Path, every: int) -> None:
    changes = ["--learning-rate", "0.001", "--slots", "5"]
    for step in (*range(1, 14, every), None):
        path = shutil.copytree(four / "four", four / f"changed-{step}")
        arguments = [*command(GAMES[0], path, 5, deterministic=True), *changes]
        if step is not None:
            assert starts.run(*arguments, kill_at=step).code == -9
        starts.finish(*arguments)
        check_run(path, 5)
        with RunFolder(path, {}) as run:
            rows = [row for row in run.metrics() if row["kind"] == "settings"]
        assert [(row["iteration"], row["changed"]) for row in rows] == [
            (4, {"slots": [4, 5], "learning_rate": [0.002, 0.001]})
        ]
    end = starts.run(*command(GAMES[1], path, 5), *changes, "--seed", "1")
    assert end.code == 2
    assert "game 'tic_tac_toe', now 'pig(target=15)' (its games and weights are of that game)" in end.errors
    assert "seed 0, now 1 (games are told apart by seed and number): choose another folder" in end.errors
    assert end.errors.count("\n") == 1


def whole_files(path: Path) -> dict[str, bytes]:
    """What was saved before: all that a run writes once."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.glob("*/0*/**/*") if file.is_file()} | {
        str(file.relative_to(path)): file.read_bytes() for file in path.glob("games/*.npz")
    }


def test_files_that_may_not_grow_are_one_line_and_it_goes_on(starts: Starts, tmp_path: Path) -> None:
    starts.finish(*command(GAMES[0], tmp_path / "straight", 5))
    path, failed = tmp_path / "run", list[str]()
    # In the way of: config.toml, the journal, the model, the optimizer.
    for largest_file in (500, 3_000, 30_000, 100_000):
        before = whole_files(path)
        end = starts.run(*command(GAMES[0], path, 5), largest_file=largest_file)
        assert (end.code, end.errors.count("\n")) == (2, 1), end.errors
        assert end.errors.startswith("az-train: ")
        assert "File too large" in end.errors
        assert before.items() <= whole_files(path).items()
        failed.append(f"{progress(path)} sealed, {len(list(path.glob('checkpoints/0*')))} saved")
    assert failed == ["0 sealed, 0 saved", "0 sealed, 0 saved", "1 sealed, 0 saved", "1 sealed, 0 saved"]
    starts.finish(*command(GAMES[0], path, 5))
    assert check_run(path, 5) == check_run(tmp_path / "straight", 5)
