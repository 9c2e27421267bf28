"""docs/start/own_game.md: what it prints is the example, and does what it says: checked, trained, played."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hexapawn import Hexapawn

import azpy
from azpy.errors import SettingsError
from many_players import Toss, Trio
from oracles import Solver
from running import az, ended
from starts import Starts

REPOSITORY = Path(__file__).parents[2]
PAGE, EXAMPLE = REPOSITORY / "docs/start/own_game.md", REPOSITORY / "examples" / "hexapawn"

Start: Any = Hexapawn  # the example has no types

TINY = [
    *("--network", "1x8", "--simulations", "8", "--slots", "8", "--eval-batch", "2", "--iterations", "1"),
    *("--games-per-iteration", "10", "--match-games", "2", "--final-match-games", "2", "--match-opening-plies", "1"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(folder: Path, module: str, *arguments: str) -> str:
    done = ended(az(module, *arguments), cwd=folder, patience=300)
    assert done.code == 0, done.errors
    return done.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's program, as its reader saves it."""
    (tmp_path / "hexapawn.py").write_text(blocks("python")[0], encoding="utf-8")
    return tmp_path


def test_the_page_prints_the_example() -> None:
    program, snake, proof, search, click = blocks("python")
    assert program == (EXAMPLE / "hexapawn.py").read_text(encoding="utf-8")
    (line,) = blocks("rust")
    assert line in (EXAMPLE / "src" / "lib.rs").read_text(encoding="utf-8")
    names = {"azpy": azpy, "np": np, "Hexapawn": Start}
    exec(compile(snake, PAGE.name, "exec"), names)
    printed: list[Any] = []
    exec(compile(proof, PAGE.name, "exec"), names | {"print": lambda *said: printed.extend(said)})
    assert f"# {printed[0]} {printed[1]}\n" in proof
    assert printed[1] == longest(names["Snake"]())
    exec(compile(search, PAGE.name, "exec"), names)
    exec(compile(click, PAGE.name, "exec"), names)
    (touched,) = re.findall(r"^print\(state.touches.*?# (.*)$", click, re.MULTILINE)
    state = azpy.State(Start())
    assert repr(state.touches(state.legal_actions()[0])) == touched


def longest(snake: Any) -> int:
    """Cells of the longest snake that a position leads to, by plain recursion."""
    found = [len(snake.cells)]
    for action in snake.legal_actions():
        after = snake.clone()
        after.play(action)
        found.append(longest(after))
    return max(found)


def test_the_page_says_what_the_check_says(folder: Path) -> None:
    assert "135 distinct positions; 163 lines of play from the start, all there are" in PAGE.read_text()
    said = run(folder, "check-game", "hexapawn:Hexapawn", "--games", "20")
    assert "135 distinct positions; 163 lines of play from the start, all there are" in said
    assert "Warning" not in said


def test_the_page_shows_what_a_mistake_looks_like(folder: Path) -> None:
    path = folder / "hexapawn.py"
    path.write_text(path.read_text().replace("np.zeros((2, 9), np.float32)", "np.zeros((2, 9))"))
    done = ended(az("check-game", "hexapawn:Hexapawn"), cwd=folder)
    assert done.code == 1
    shown = done.out.split("\n\n")[0]
    assert "\n".join(f"    {line}" for line in shown.splitlines()) in PAGE.read_text()


def test_the_example_is_trained_and_played(starts: Starts, folder: Path) -> None:
    pytest.importorskip("torch")
    done = starts.finish("hexapawn:Hexapawn", *TINY, "--deterministic", folder=folder)
    assert "done: 1 iteration " in done.output
    path, game = "runs/hexapawn-Hexapawn", ["--game", "hexapawn:Hexapawn"]
    assert "Elo" in run(folder, "match", path, "mcts:20", "--games", "4", "--opening-plies", "2", *game)
    assert "ply 0, player 0 to move" in run(folder, "replay", path, "3", *game)


def test_a_run_is_opened_with_its_game_s_name_or_class(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('game = "many_players:Trio"\n')
    for game in ("many_players:Trio", Trio):
        assert azpy.load_run(tmp_path, game=game).start.num_players == 3
    with pytest.raises(SettingsError, match=r"got 'many_players:Toss': give the run's game"):
        azpy.load_run(tmp_path, game=Toss)
    wrong: Any = Trio()
    with pytest.raises(SettingsError, match=r"expected a game's name or a class that derives from azpy.Game, got <"):
        azpy.load_run(tmp_path, game=wrong)


def test_the_second_player_wins_hexapawn_as_gardner_says() -> None:
    assert Solver().value(Start()) == -1
    result = azpy.Search(azpy.UniformEvaluator(), simulations=2000, solver=True).run(Start())
    assert result.value == -1
