"""OpenSpiel's games are played, searched and trained as OpenSpiel has them; what azpy cannot play is refused."""

import os
import pickle
import random
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli import match, train
from azpy.errors import MissingPackageError, SettingsError
from azpy.games.lines import replayed
from azpy.games.names import make_game
from azpy.games.openspiel import open_spiel
from oracles import after
from training_runs import settings_from

pyspiel = pytest.importorskip("pyspiel")

# Boards and hills, passes, several turns in a row (dots_and_boxes, mancala), dice, a loss for who wins (misere).
GAMES = [
    "tic_tac_toe",
    "misere(game=tic_tac_toe())",
    "connect_four",
    "breakthrough(rows=5,columns=4)",
    "quoridor(board_size=5)",
    "dots_and_boxes",
    "mancala",
    "oware",
    "othello",
    "nim",
    "pig(winscore=20)",
    "backgammon(scoring_type=full_scoring)",
    "einstein_wurfelt_nicht",
    "hex(board_size=5)",
    "go(board_size=5)",
    "chess",
    "ultimate_tic_tac_toe",
    # Of one player and of several.
    "2048",
    "pig(players=3,winscore=20)",
    "chinese_checkers(players=3)",
]


def moves(game: azpy.State) -> list[int]:
    return [a for a, _ in game.chance_outcomes()] if game.turn == azpy.CHANCE else game.legal_actions()


def compare(game: azpy.State, theirs: Any) -> None:
    """All that can be asked of a position, against OpenSpiel's own state."""
    assert str(game) == str(theirs)
    turn = azpy.TERMINAL if theirs.is_terminal() else max(theirs.current_player(), azpy.CHANCE)
    assert game.turn == turn
    if turn == azpy.TERMINAL:
        scale = theirs.get_game().max_utility()
        if not game.zero_sum:
            scale = max(abs(scale), abs(theirs.get_game().min_utility()))
        assert game.outcomes() == pytest.approx([own / scale for own in theirs.returns()])
        assert all(-1 <= own <= 1 for own in game.outcomes())
        assert game.outcome() == (game.outcomes()[0] if game.zero_sum or game.num_players == 1 else game.outcomes())
    elif turn == azpy.CHANCE:
        assert game.chance_outcomes() == [(a, float(np.float32(p))) for a, p in sorted(theirs.chance_outcomes())]
    else:
        assert game.legal_actions() == theirs.legal_actions()
        planes = game.observation()
        assert planes.dtype == np.float32
        assert planes.shape == game.obs_shape
        turns = 1 if game.num_players < 3 else game.num_players
        np.testing.assert_array_equal(planes[:-turns].ravel(), np.array(theirs.observation_tensor(turn), np.float32))
        assert (planes[-1] == turn).all() if turns == 1 else (planes[-turns:].argmax(0) == turn).all()
        names = [game.action_name(action) for action in game.legal_actions()]
        assert names == [theirs.action_to_string(turn, action).strip() for action in theirs.legal_actions()]


@pytest.mark.parametrize("name", GAMES)
def test_random_games_are_openspiels_ply_by_ply(name: str) -> None:
    start, seen, rng = open_spiel(name), dict[int, list[int]](), random.Random(5)
    assert start.num_actions == start.game_object.state.get_game().num_distinct_actions()
    for _ in range(3):
        game, theirs = start.clone(), pyspiel.load_game(name).new_initial_state()
        for _ in range(start.max_plies + 1):
            compare(game, theirs)
            # One key for one line of play.
            assert seen.setdefault(game.key(), theirs.history()) == theirs.history()
            if game.turn == azpy.TERMINAL:
                break
            action = rng.choice(moves(game))
            kept = game.clone()
            game.play(action)
            assert kept.key() != game.key()
            assert str(kept) == str(theirs)
            theirs.apply_action(action)
        assert game.turn == azpy.TERMINAL
    assert start.key() == open_spiel(name).key()
    assert start.game_object.state.is_initial_state()


@pytest.mark.slow
def test_every_game_of_openspiel_is_played_or_refused() -> None:
    played, refused = [], []
    for kind in pyspiel.registered_games():
        try:
            start = open_spiel(kind.short_name)
        except SettingsError as error:
            refused.append(str(error))
            continue
        played.append(kind.short_name)
        rng = random.Random(1)
        for _ in range(3):
            game = start.clone()
            while game.turn != azpy.TERMINAL:
                game.play(rng.choice(moves(game)))
            assert all(-1 <= own <= 1 for own in game.outcomes())
        while start.turn == azpy.CHANCE:
            start.play(moves(start)[0])
        assert start.hides or azpy.Search(azpy.UniformEvaluator(), simulations=20).run(start).visits.sum() == 20
    print(len(played), "games played:", *played)
    assert len(played) > 30
    assert all("\n" not in text and len(text) < 700 for text in refused)


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("dark_chess", "hidden information, but no information state tensor and string; azpy plays"),
        ("bridge_uncontested_bidding", "has chance without listed outcomes"),
        ("pig(players=7)", "has 7 players; azpy plays games of one to 6 players"),
        ("go(board_size=1000)", "OpenSpiel cannot start the game "),
        ("nfg_game", "OpenSpiel cannot load the game 'nfg_game': "),
        ("quoridr", "OpenSpiel does not have the game 'quoridr'; did you mean quoridor?"),
        ("quoridor(board=5)", "OpenSpiel cannot load the game 'quoridor(board=5)': "),
        ("quoridor(board_size=5", "OpenSpiel cannot load the game 'quoridor(board_size=5': "),
        ("", "OpenSpiel does not have the game ''"),
    ],
)
def test_unsupported_games_are_refused_with_every_reason(name: str, reasons: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_spiel(name)
    assert reasons in str(caught.value)
    with pytest.raises(SettingsError) as again:
        make_game(f"open_spiel:{name}")
    assert str(again.value) == f"game 'open_spiel:{name}': {caught.value}"
    assert "\n" not in str(again.value)


@pytest.mark.parametrize(
    "game", ["efg_game(filename={})", "nfg_game(filename={})", "misere(game=efg_game(filename={}))", "x(words_root={})"]
)
def test_a_game_that_names_a_file_is_made_only_where_it_is_typed(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = f"open_spiel:{game.format('pipe')}"
    Path("run").mkdir()
    Path("run/config.toml").write_text(f'game = "{spec}"\n')
    os.mkfifo("pipe")  # who opens it waits for ever
    reason = f"az-train: run's game is {spec}, and training would open the files that it names: give GAME {spec} on "
    one_line(train.main, ["--out", "run"], f"{reason}the command line if you trust it\n")
    with pytest.raises(SettingsError, match="reading the run would open the files that it names"):
        _ = azpy.load_run("run").start
    assert settings_from([spec, "--out", "run"])[0].game == spec


def test_without_openspiel_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)  # importing it fails
    azpy.games.openspiel._load.cache_clear()
    with pytest.raises(MissingPackageError, match="open_spiel is not installed: pip install open_spiel"):
        make_game("open_spiel:tic_tac_toe")


def test_a_loaded_openspiel_game_is_accepted() -> None:
    game = open_spiel(pyspiel.load_game("tic_tac_toe"))
    assert game.game == "open_spiel:tic_tac_toe()"
    assert game.key() == open_spiel("tic_tac_toe").key()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("connect_four", "connect_four"), ("hex(board_size=4)", "hex(size=4)"), ("othello", "othello")],
)
def test_visits_are_those_of_the_same_game_in_rust(theirs: str, ours: str) -> None:
    rng = random.Random(7)
    for _ in range(4):
        game, state = open_spiel(theirs), azpy.make_game(ours)
        for _ in range(rng.randint(0, 6)):
            action = rng.choice(state.legal_actions())
            game.play(action)
            state.play(action)
            if state.is_terminal:
                break
        results = [azpy.Search(azpy.UniformEvaluator(), simulations=500, eval_batch=1).run(p) for p in (game, state)]
        assert results[0].actions.tolist() == results[1].actions.tolist()
        assert results[0].visits.tolist() == results[1].visits.tolist()


@pytest.mark.parametrize("name", GAMES)
def test_searches_count_and_stored_games_can_be_learned_from(name: str) -> None:
    start = open_spiel(name)
    rng = np.random.default_rng(3)
    position = start.clone()
    while position.turn == azpy.CHANCE:
        position.play(moves(position)[0])
    result = azpy.Search(azpy.UniformEvaluator(), simulations=60, eval_batch=4).run(position)
    assert result.visits.sum() == 60
    assert result.actions.tolist() == position.legal_actions()
    # Short games in full; of long ones the rules are the same.
    if start.max_plies > 300:
        return
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, simulations=6, games=2) as games:
        records = list(games)
    buffer = azpy.ReplayBuffer(start)
    for record in records:
        assert record.game == start.game
        *_, end = replayed(start, record.actions.tolist())
        assert end.turn == azpy.TERMINAL
        assert end.outcome() == pytest.approx(record.outcome)
        buffer.add(record)
    observations, *_ = buffer.sample(4, seed=int(rng.integers(1000)))
    assert observations.shape == (4, *start.obs_shape)
    other = azpy.ReplayBuffer(open_spiel("nim(pile_sizes=3;4)"))
    with pytest.raises(ValueError, match="a game of open_spiel:"):
        other.add(records[0])


def test_a_game_that_openspiel_does_not_end_in_time_is_a_draw() -> None:
    game = open_spiel("breakthrough(rows=5,columns=4)").game_object
    game.max_plies = 4
    for _ in range(4):
        assert game.turn() in (0, 1)
        game.play(game.legal_actions()[0])
    assert (game.turn(), game.outcome()) == (azpy.TERMINAL, 0.0)


def test_a_run_trains_goes_on_and_is_matched(tmp_path: Path, capsys: pytest.CaptureFixture[str], printed: Any) -> None:
    spec, run = "open_spiel:tic_tac_toe", str(tmp_path / "run")
    tiny = ["--network", "1x8", "--simulations", "4", "--eval-batch", "2", "--slots", "4", "--games-per-iteration", "6"]
    tiny += ["--batch-size", "16", "--passes", "1", "--match-every", "1000", "--match-games", "2"]
    tiny += ["--final-match-games", "2", "--match-opening-plies", "1", "--deterministic"]
    assert train.main([spec, *tiny, "--iterations", "1", "--out", run]) == 0
    assert tomllib.loads((tmp_path / "run/config.toml").read_text())["game"] == spec
    # The same run from what is stored of it.
    assert train.main(["--config", f"{run}/config.toml", "--iterations", "2", "--out", run]) == 0
    assert (tmp_path / "run/checkpoints/000002/model.onnx").exists()
    assert "Elo" in printed(match.main, [run, "random", "--games", "4"])
    assert match.main(["random", "uniform:10", "--game", "open_spiel:quoridor(board_size=3)", "--games", "4"]) == 0
    assert train.main(["open_spiel:dark_chess", "--out", str(tmp_path / "other")]) == 2
    assert "hidden information" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_games_that_hide_something_are_those_of_azpy(name: str) -> None:
    theirs, ours = open_spiel(name), azpy.make_game(name)
    assert (theirs.hides, theirs.payoff_unit[0]) == (True, ours.payoff_unit[0])
    uniform = azpy.UniformEvaluator()
    assert azpy.exploitability(uniform, theirs) == pytest.approx(azpy.exploitability(uniform, ours), abs=1e-6)
    rng = random.Random(3)
    for _ in range(50):
        theirs, ours = open_spiel(name), azpy.make_game(name)
        while not ours.is_terminal:
            action = rng.choice(moves(ours))
            assert moves(theirs) == moves(ours)
            kept, key = theirs.clone(), theirs.key()
            theirs.play(action)
            ours.play(action)
            assert kept.key() == key != theirs.key()  # what OpenSpiel answers is shared, and the position is not
        assert theirs.outcome() == pytest.approx(ours.outcome())


def test_simultaneous_moves_become_hidden_turns() -> None:
    start = open_spiel("goofspiel(num_cards=3,imp_info=True,points_order=descending)")
    assert (start.hides, start.turn) == (True, 0)
    one, other = after(start, 0), after(start, 2)
    assert one.turn == other.turn == 1
    assert (one.observation() == other.observation()).all()
    views = [game.game_object.view_key(1) for game in (one, other)]
    assert views[0] == views[1]
    assert one.game_object.view_key(0) != other.game_object.view_key(0)
    again = pickle.loads(pickle.dumps(one))
    assert (again.key(), again.turn) == (one.key(), one.turn)
    rps = azpy.exploitability(azpy.UniformEvaluator(), open_spiel("matrix_rps"))
    assert rps == pytest.approx(0.0, abs=1e-6)
