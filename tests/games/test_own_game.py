"""The pages on games of one's own: they print the example, and do what they say: check, train and play."""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hexapawn import Hexapawn

import azpy
from azpy.errors import SettingsError
from many_players import Toss, Trio
from oracles import Solver, after
from running import az, ended
from starts import Starts

REPOSITORY = Path(__file__).parents[2]
START, EXAMPLE = REPOSITORY / "docs/start", REPOSITORY / "azpy/checks/template"
PAGE = START / "own_game.md"

Start: Any = Hexapawn  # the example has no types

TINY = [
    *("--network", "1x8", "--simulations", "8", "--slots", "8", "--eval-batch", "2", "--iterations", "1"),
    *("--games-per-iteration", "10", "--match-games", "2", "--final-match-games", "2", "--match-opening-plies", "1"),
]


def blocks(language: str, page: Path = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(folder: Path, module: str, *arguments: str) -> str:
    done = ended(az(module, *arguments), cwd=folder, patience=300)
    assert done.code == 0, done.errors
    return done.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's program, as its reader saves it."""
    (tmp_path / "hexapawn.py").write_text(blocks("python")[0], encoding="utf-8")
    return tmp_path


def test_the_pages_print_the_example() -> None:
    program, search, click = blocks("python")
    assert program == (EXAMPLE / "hexapawn.py").read_text(encoding="utf-8")
    (line,) = blocks("rust", START / "own_game_rust.md")
    assert line in (EXAMPLE / "src" / "lib.rs").read_text(encoding="utf-8")
    names = {"azpy": azpy, "Hexapawn": Start}
    assert printed(search, names) in search
    printed(click, names)
    (touched,) = re.findall(r"^print\(state.touches.*?# (.*)$", click, re.MULTILINE)
    state = azpy.State(Start())
    assert repr(state.touches(state.legal_actions()[0])) == touched


def printed(program: str, names: dict[str, Any]) -> str:
    """What the program prints, as a comment behind its last line shows it."""
    said = list[str]()
    exec(compile(program, "page", "exec"), names | {"print": lambda *words: said.extend(map(str, words))})
    return f"# {' '.join(said)}\n"


def test_the_games_of_each_kind_keep_what_a_game_must_keep(tmp_path: Path) -> None:
    dice, three, puzzle, proof = blocks("python", START / "more_games.md")
    (tmp_path / "gamble.py").write_text(f"{dice}\n\n{three}", encoding="utf-8")
    (tmp_path / "puzzle.py").write_text(puzzle, encoding="utf-8")
    for game in ("gamble:Gamble", "gamble:Trio", "puzzle:Snake"):
        said = run(tmp_path, "check-game", game, "--games", "20", "--seconds", "10")
        assert "Warning" not in said
    names = dict[str, Any]()
    exec(compile(puzzle, "page", "exec"), names)
    proven = printed(proof, names)
    assert proven in proof
    assert proven == f"# proven {longest(names['Snake']())}\n"


def longest(snake: Any) -> int:
    """Cells of the longest snake that a position leads to, by plain recursion."""
    return max([len(snake.cells), *(longest(after(snake, action)) for action in snake.legal_actions())])


def test_the_page_shows_the_output_of_the_check(folder: Path) -> None:
    assert "135 distinct positions; 163 lines of play from the start: the whole game" in PAGE.read_text()
    said = run(folder, "check-game", "hexapawn:Hexapawn", "--games", "20")
    assert "135 distinct positions; 163 lines of play from the start: the whole game" in said
    assert "Warning" not in said


def test_a_new_game_passes_its_check_and_its_tests(tmp_path: Path) -> None:
    said = run(tmp_path, "check-game", "--new", "my_game", "--rust")
    assert "az-check-game my_game:MyGame\n" in said
    files = {path.relative_to(tmp_path / "my_game").as_posix() for path in (tmp_path / "my_game").rglob("*.*")}
    assert files == {"my_game.py", "test_my_game.py", "Cargo.toml", "pyproject.toml", "src/lib.rs"}
    assert not [path for path in (tmp_path / "my_game").rglob("*.*") if "hexapawn" in path.read_text().lower()]
    crates = tomllib.loads((tmp_path / "my_game/Cargo.toml").read_text())["dependencies"]
    here = Path(azpy.__file__).parents[1] / "rust"
    for crate in ("core", "own"):
        found = crates[f"azpy-{crate}"]
        assert found["path"] == str(here / crate) if here.is_dir() else found["tag"] == f"v{azpy.__version__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_game.py"]
    done = ended(command, cwd=tmp_path / "my_game")
    assert done.code == 0, done.out
    again = ended(az("check-game", "--new", "my_game"), cwd=tmp_path)
    assert (again.code, again.errors) == (2, "az-check-game: my_game exists: give a new folder\n")


def test_the_page_shows_what_a_mistake_looks_like(folder: Path) -> None:
    path = folder / "hexapawn.py"
    path.write_text(path.read_text().replace("np.zeros((2, 9), np.float32)", "np.zeros((2, 9))"))
    done = ended(az("check-game", "hexapawn:Hexapawn"), cwd=folder)
    assert done.code == 1
    shown = done.out.split("\n\n")[0]
    assert "\n".join(f"    {line}" for line in shown.splitlines()) in PAGE.read_text()


def test_three_rounds_correct_the_wrong_game_of_the_page(folder: Path) -> None:
    rounds = re.findall(
        r"^\| `(\S+)` (?:at the start|after (\d) pl).*? \| `(.*)` becomes `(.*)` \|$", PAGE.read_text(), re.M
    )
    path = folder / "hexapawn.py"
    for _, _, wrong, right in rounds:
        path.write_text(path.read_text().replace(right, wrong))
    for rule, plies, wrong, right in rounds:
        done = ended(az("check-game", "hexapawn:Hexapawn", "--json"), cwd=folder)
        (finding,) = json.loads(done.out)["findings"]
        assert (done.code, finding["rule"], len(finding["lines"][0]["actions"])) == (1, rule, int(plies or 0))
        path.write_text(path.read_text().replace(wrong, right))
    assert len(rounds) == 3
    assert ended(az("check-game", "hexapawn:Hexapawn", "--json"), cwd=folder).code == 0


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
