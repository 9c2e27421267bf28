"""The players that azpy brings along."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.match import main
from azpy.errors import RunError, SettingsError, SettingsWarning
from azpy.evaluators.net import NetEvaluator
from azpy.games.names import make_game
from azpy.matches.players import load_players, parse_player
from azpy.runs.reader import names_in_box
from azpy.serving.models import open_model, open_player
from oracles import after


@pytest.mark.parametrize("name", names_in_box())
def test_each_shipped_player_is_found_by_its_name(name: str) -> None:
    spec = parse_player(f"{name}@40")
    start = make_game(name)
    (entrant,) = load_players([spec], start, 100)
    assert (entrant.name, entrant.simulations) == (name, 40)
    assert isinstance(entrant.network, NetEvaluator)
    run = azpy.load_run(name)
    assert (run.settings.game, run.evaluator.network_id) == (name, entrant.network.network_id)
    assert run.matches() == []
    result = azpy.match(name, "random", games=2, simulations=4)
    assert (result.wins, result.losses) == (2, 0)


def test_a_folder_of_the_same_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(parse_player("tic_tac_toe").run or "", "connect_four")
    (entrant,) = load_players([parse_player("connect_four")], make_game("tic_tac_toe"), 10)
    assert entrant.name.startswith("connect_four/checkpoints/")


def test_a_folder_does_not_replace_a_player_while_it_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = open_model("tic_tac_toe", None, 9)
    before = model.player.name
    shutil.copytree(parse_player("hex").run or "", "tic_tac_toe")
    assert not model.renew()
    assert model.player.name == before
    model.close()


def test_go_plays_on_other_boards() -> None:
    start = make_game("go(size=7)")
    (entrant,) = load_players([parse_player("go")], start, 10)
    assert entrant.network is not None
    logits, values = entrant.network.evaluate_batch(np.asarray(start.observation())[None])
    assert (logits.shape, values.shape) == ((1, 50), (1,))


def test_a_checkpoint_of_one_is_a_player_too() -> None:
    spec = parse_player("tic_tac_toe")
    assert spec.model is not None
    assert parse_player(str(spec.model.parent)).model == spec.model
    with pytest.raises(RunError, match=r"player tic_tac_toe comes without model\.onnx: train a run"):
        azpy.load_run("tic_tac_toe").model(int(spec.model.parent.name))


@pytest.mark.parametrize("words", [["--device", "tensorrt"], ["--device", "webgpu"], ["--game", "othello"]])
def test_bad_uses_of_a_shipped_player_are_refused(words: list[str], one_line: Any) -> None:
    one_line(main, ["go", "random", "--games", "2", *words], "az-match: ")


def test_a_run_of_that_name_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/go").mkdir(parents=True)
    for opened in (parse_player, azpy.load_run):
        with pytest.warns(SettingsWarning, match="go is a player that comes with azpy; your run is runs/go"):
            opened("go")


@pytest.mark.parametrize("name", names_in_box())
def test_the_levels_of_a_shipped_player_are_measured(name: str) -> None:
    player = open_player(name, None, 200)
    assert player.ladder.about(player.network) == "These levels were calibrated with this network."
    levels = [*player.ladder.levels.values()]
    assert [level.elo for level in levels] == sorted({level.elo for level in levels})
    assert levels[-1].elo > 100
    ways = [(level.simulations, -level.temperature) for level in levels]
    assert ways == sorted(ways), "a stronger level has more simulations or is less warm"


@pytest.mark.parametrize("simulations", [50, 200])
@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("f5 d6 c5 f4 e7 c6 b6 f6 d3 c3 b3 c2 g3 f3 c1 e6 e3", "d2 g5"),
        ("f5 d6 c5 f4 d3 e3 f3 g5 h5 b4 c7 e7 b6", "g3 h2 pass a3 pass f8"),
    ],
)
def test_the_player_of_othello_keeps_a_disc(line: str, lost: str, simulations: int) -> None:
    """It lost all discs, because the network's priors of the moves that take them are too small to be tried."""
    assert azpy.parse_state("othello", f"{line} {lost}").is_terminal
    state = azpy.parse_state("othello", line)
    (entrant,) = load_players([parse_player("othello")], state, simulations)
    player: Any = entrant.player
    assert state.action_name(int(player.select_actions([state], 0)[0])) != lost.split()[0]


def test_a_name_without_a_player_is_refused() -> None:
    assert names_in_box() == ["connect_four", "go", "hex", "othello", "tic_tac_toe"]
    with pytest.raises(SettingsError, match="connect_four, go, hex, othello, tic_tac_toe"):
        parse_player("checkers")


def test_the_player_of_tic_tac_toe_never_loses() -> None:
    (entrant,) = load_players([parse_player("tic_tac_toe@100")], make_game("tic_tac_toe"), 100)
    player: Any = entrant.player
    least: dict[tuple[str, int], float] = {}

    def worst(state: azpy.State, seat: int) -> float:
        """What the player of this seat gets in the worst line of play."""
        if state.is_terminal:
            return state.outcomes()[seat]
        at = state.to_text(), seat
        if at not in least:
            own = state.turn == seat
            actions = player.select_actions([state], 0) if own else state.legal_actions()
            least[at] = min(worst(after(state, int(action)), seat) for action in actions)
        return least[at]

    assert [worst(make_game("tic_tac_toe"), seat) for seat in (0, 1)] == [0, 0]
