"""az-match as a user meets it, and the players it is told."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.match import main
from azpy.devices import Device
from azpy.errors import DeviceError, RunError, SettingsError, SettingsWarning, warn_once
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.games.names import make_game
from azpy.matches.arena import RandomPlayer, SearchPlayer, play_rounds
from azpy.matches.openings import Book
from azpy.matches.players import Entrant, _combined, checkpoints_of, load_players, parse_player, warn_of_unused
from azpy.matches.results import MatchResult, told
from models import make_model
from oracles import Hashed, after, pairs_of
from running import az
from sound_games import Nim

BOARD = "connect_four(width=5,height=4)"


def model(seed: int, game: str = BOARD) -> bytes:
    """A linear model that fits a game; other seeds, other weights."""
    position = make_game(game)
    return make_model(shape=("batch", *position.obs_shape), actions=position.num_actions, weight=0.2 + 0.1 * seed)


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with four checkpoints, as far as a match reads it."""
    from azpy.runs.folder import RunFolder

    path = tmp_path_factory.mktemp("runs") / "c4"
    settings: dict[str, Any] = {"game": BOARD, "match_c_puct": 2.0, "match_opening_plies": 3}
    with RunFolder(path, settings) as run:
        for iteration in (1, 2, 3, 10):
            run.save_checkpoint(iteration, model={}, optimizer={}, state={}, onnx=model(iteration))
    return path


@pytest.fixture
def run(made_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    shutil.copytree(made_run, tmp_path / "c4")
    monkeypatch.chdir(tmp_path)
    return "c4"


def load(text: str, simulations: int) -> Entrant:
    [entrant] = load_players([parse_player(text)], make_game(BOARD), simulations)
    return entrant


def book(plies: int = 3, seed: int = 1, game: str = BOARD) -> Book:
    return Book(make_game(game), plies, seed)


# Playing


def test_slots_change_no_game_of_players_without_chance() -> None:
    players = SearchPlayer(Hashed(5), 20), SearchPlayer(Hashed(5, salt=1), 20)
    all_at_once = list(play_rounds(book(), players, 9, seed=3))
    assert list(play_rounds(book(), players, 9, seed=3, slots=4)) == all_at_once
    assert list(play_rounds(book(), players, 9, seed=3, slots=1)) == all_at_once


def test_a_player_scores_half_against_itself_in_every_pair() -> None:
    player = SearchPlayer(azpy.UniformEvaluator(), 40)
    pairs = list(play_rounds(book(), (player, player), 10, seed=1))
    assert [pair.score for pair in pairs] == [0.5] * 10
    assert all(first == second for first, second in (pair.actions for pair in pairs))
    result = MatchResult(tuple(pairs))
    assert (result.counts, result.distinct, result.repeated) == ((0, 0, 10, 0, 0), 10, 0)


def test_a_mean_is_told_with_its_interval_if_that_is_known() -> None:
    assert (told(0.5, (0.25, 0.75), ".3f"), told(-0.5, None)) == ("0.500 [0.250, 0.750]", "-0.500")
    assert told(12.4, (-3.2, float("inf")), "+.0f") == "+12 [-3, +inf]"


def test_outcomes_count_what_a_win_is_worth_and_scores_do_not() -> None:
    """A wins a gammon and loses a plain game; then A loses by rule and draws."""
    result = pairs_of((2 / 3, -1 / 3), (-1.0, 0.0))
    assert (result.wins, result.draws, result.losses, result.score) == (1, 1, 2, 0.375)
    outcome, interval = result.outcome_of(0)
    assert outcome == pytest.approx(-1 / 6)
    low, high = interval or (0.0, 0.0)
    assert -1 <= low < outcome < high <= 1
    assert result.has_grades
    assert not pairs_of((1.0, -1.0), (0.0, 0.0)).has_grades


def test_outcomes_are_those_of_player_a_in_both_seats() -> None:
    games = Book(make_game("backgammon"), 0, 3)
    pairs = list(play_rounds(games, (RandomPlayer(), RandomPlayer()), 6, seed=3))
    for pair in pairs:
        for actions, (outcome, _), sign in zip(pair.actions, pair.outcomes, (1, -1), strict=True):
            assert outcome == sign * after(games.start, *actions).outcome()
    assert MatchResult(tuple(pairs)).has_grades


# Openings


def test_openings_are_distinct_as_far_as_the_game_allows() -> None:
    openings = book(plies=2, game="tic_tac_toe")
    keys = [openings[number].position.key() for number in range(200)]
    assert len(openings) == len(set(keys)) == 72  # 9 x 8, no two alike
    assert len(set(keys[:72])) == 72
    assert keys[72:144] == keys[:72]
    assert openings[5] is openings[5]


def test_a_book_is_fixed_by_its_seed() -> None:
    def actions(seed: int) -> list[tuple[int, ...]]:
        return [opening.actions for opening in map(book(seed=seed).__getitem__, range(20))]

    assert actions(1) == actions(1) != actions(2)


# Players


def test_player_specs_are_parsed(run: str) -> None:
    assert (parse_player("mcts:1000").kind, parse_player("mcts:1000").simulations) == ("mcts", 1000)
    assert parse_player("uniform").simulations is None
    newest = parse_player(run)
    assert newest.model == Path("c4/checkpoints/000010/model.onnx")
    for text in ("c4/checkpoints/000002", "c4/checkpoints/000002/model.onnx", "c4/checkpoints/000002@7"):
        spec = parse_player(text)
        assert spec.model == Path("c4/checkpoints/000002/model.onnx")
        assert spec.run is not None
        assert spec.run.resolve() == Path("c4").resolve()
    assert parse_player("c4@7").simulations == 7
    Path("odd@7").write_bytes(model(1))
    assert (parse_player("odd@7").model, parse_player("odd@7").simulations) == (Path("odd@7"), None)
    entrant = load("c4@7", 100)
    assert str(entrant) == "c4/checkpoints/000010 (7 simulations)"
    assert str(load("random", 100)) == "random"


def plays(text: str, seed: int = 1) -> list[int]:
    player = load(text, 60).player
    assert isinstance(player, SearchPlayer)
    return [*player.select_actions([book()[number].position for number in range(30)], seed)]


def test_a_model_searches_with_the_c_puct_of_its_run(run: str) -> None:
    """A weight of 0.01 plays what the run's weight of 2 does not."""
    assert plays(run) == plays(f"{run}?c_puct=2") != plays(f"{run}?c_puct=0.01")


def test_a_model_without_a_run_plays_by_the_preset_of_its_game(run: str) -> None:
    Path("free.onnx").write_bytes(Path("c4/checkpoints/000010/model.onnx").read_bytes())
    assert load("free.onnx", 60).search == load(f"{run}?c_puct=1.2&lookahead=4", 60).search
    assert plays("free.onnx") == plays(f"{run}?c_puct=1.2&lookahead=4")


def test_an_evaluator_plays_by_the_preset_of_a_game_of_azpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game in Python may have the name of one of azpy's."""
    looks, select_actions = list[int](), SearchPlayer.select_actions

    def selected(self: SearchPlayer, states: Any, seed: int) -> Any:
        looks.append(self.options["lookahead"])
        return select_actions(self, states, seed)

    monkeypatch.setattr(SearchPlayer, "select_actions", selected)
    monkeypatch.setattr(Nim, "game", "othello", raising=False)
    for game, looks_so_far in (("connect_four", {4}), (Nim, {4, 0})):
        azpy.match(azpy.UniformEvaluator(), "random", game=game, games=2, simulations=4)
        assert {*looks} == looks_so_far


def test_a_player_takes_search_settings_of_its_own(run: str) -> None:
    assert plays("c4@5?solver=false") == plays("c4?simulations=5&solver=false") != plays("c4?solver=false")
    assert plays("mcts:60?c_puct=0.01") != plays("mcts:60")
    assert plays("uniform:400?c_puct=9") != plays("uniform:400")
    assert plays("c4?gumbel_actions=2") == plays("c4?gumbel_actions=2", seed=2) != plays("c4")  # no Gumbel noise
    named = "c4/checkpoints/000010?c_puct=0.01&solver=false (7 simulations)"
    assert str(load("c4?c_puct=0.01&simulations=7&solver=false", 60)) == named
    assert str(load("mcts:9?fpu=parent", 60)) == "mcts?fpu=parent (9 simulations)"


def test_own_settings_drop_idle_settings_of_the_run(run: str) -> None:
    found = load("c4?lookahead=4", 60).player
    assert isinstance(found, SearchPlayer)
    assert (found.options["lookahead"], found.options["solver"]) == (4, True)
    of_run = {"solver": True, "lookahead": 4, "lcb": 2.0}
    assert _combined(of_run, {"solver": False}, "") == {"solver": False, "lcb": 2.0}
    gumbel = _combined(of_run, {"gumbel_actions": 4}, "")
    assert gumbel == {"solver": True, "lookahead": 4, "gumbel_actions": 4, "gumbel_scale": 0.0}


def test_a_path_with_a_question_mark_is_a_path(run: str) -> None:
    Path("is it?c_puct=1").write_bytes(model(1))
    assert parse_player("is it?c_puct=1").model == Path("is it?c_puct=1")
    spec = parse_player("is it?c_puct=1?c_puct=2")
    assert (spec.model, spec.search) == (Path("is it?c_puct=1"), {"c_puct": 2.0})


def test_players_of_one_model_share_its_evaluator(run: str) -> None:
    texts = ["c4?c_puct=1", "./c4/checkpoints/000010@7", "c4/checkpoints/000001", "random"]
    one, same, other, none = load_players([parse_player(text) for text in texts], make_game(BOARD), 5)
    assert one.network is same.network is not None
    assert other.network is not one.network
    assert none.network is None


def test_checkpoints_are_chosen_evenly(run: str) -> None:
    def numbers(most: int | None) -> list[str]:
        return [spec.model.parent.name for spec in checkpoints_of(Path(run), most) if spec.model is not None]

    assert numbers(None) == numbers(4) == numbers(9) == ["000001", "000002", "000003", "000010"]
    assert numbers(2) == ["000001", "000010"]
    assert len(set(numbers(3))) == 3
    Path("c4/checkpoints/.tmp-000011").mkdir()
    assert numbers(2) == ["000001", "000010"]


def test_a_damaged_checkpoint_does_not_play(run: str) -> None:
    path = Path("c4/checkpoints/000010/model.onnx")
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    with pytest.raises(RunError, match=r"000010 is damaged: model\.onnx differs from manifest\.json"):
        load(run, 10)


# The command


def test_a_match_prints_what_a_user_needs(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([run, "c4/checkpoints/000001@5", "--games", "20", "--simulations", "10"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    first, *rest = output.out.splitlines()
    assert first == f"{BOARD}: A is c4/checkpoints/000010 (10 simulations), B is c4/checkpoints/000001 (5 simulations)"
    texts = "score of A: 0.", "], Elo ", "95 % intervals, from the pairs", "20 games: won ", "as seat 0 ", "as seat 1 "
    for text in texts:
        assert any(text in line for line in rest), text
    assert "distinct games from 10 distinct openings of 3 random plies" in output.out


def test_a_device_is_used_or_refused_and_told(
    run: str, monkeypatch: pytest.MonkeyPatch, printed: Any, one_line: Any
) -> None:
    asked = []

    def opened(path: Path, device: Device, **options: Any) -> OnnxEvaluator:
        asked.append(device)
        if device.index == 1:
            raise DeviceError("CUDA cannot be used: GPU 1 does not exist")
        evaluator = OnnxEvaluator(path, **options)
        evaluator.device, evaluator.description = "cuda:0", "CUDA, GPU 0"
        return evaluator

    monkeypatch.setattr("azpy.evaluators.choice.OnnxEvaluator", opened)
    command = ["c4", "c4@3", "--games", "2", "--simulations", "2"]
    lines = printed(main, [*command, "--device", "cuda"]).splitlines()
    assert lines[1] == "c4/checkpoints/000010 searches with c_puct 2, fpu 0.25, lcb 2, solver on"
    assert lines[2] == "models run on: CUDA, GPU 0"
    assert asked == [Device("cuda")]
    one_line(main, [*command, "--device", "cuda:1"], "az-match: CUDA cannot be used: GPU 1 does not exist\n")


def test_json_is_all_that_is_printed_and_agrees_with_itself(run: str, printed: Any) -> None:
    command = [run, "random", "--games", "20", "--simulations", "10", "--opening-plies", "2", "--json"]
    text = printed(main, command)
    report = json.loads(text)
    assert report["wins"] + report["draws"] + report["losses"] == report["games"] == 2 * sum(report["pairs"]) == 20
    assert report["low"] <= report["score"] <= report["high"]
    assert report["distinct_openings"] == 10
    assert report["search"] == {report["a"]: {"c_puct": 2.0, "fpu": 0.25, "lcb": 2.0, "solver": True}}
    assert not report["interrupted"]
    assert printed(main, command) == text  # the same command, the same match


def test_a_game_whose_wins_differ_in_worth_has_a_mean_outcome(printed: Any) -> None:
    command = ["random", "mcts:2", "--games", "10", "--game"]
    said = printed(main, [*command, "backgammon"])
    [line] = re.findall(r"^outcome of A: ([+-]\d\.\d{3}) \[.*\] a game; .* up to 1$", said, re.MULTILINE)
    report = json.loads(printed(main, [*command, "backgammon", "--json"]))
    assert f"{report['outcome']:+.3f}" == line
    assert report["outcome_low"] <= report["outcome"] <= report["outcome_high"]
    assert "outcome" not in printed(main, [*command, "tic_tac_toe"])


def test_a_sequential_test_stops_early_and_says_so(run: str, printed: Any) -> None:
    command = ["mcts:100", "random", "--game", BOARD, "--games", "2000", "--elo0", "0", "--elo1", "100"]
    report = json.loads(printed(main, [*command, "--json"]))
    assert report["games"] < 200
    assert report["distinct_openings"] == report["games"] // 2  # not those of pairs that were begun and thrown away
    assert report["sprt"]["accepted"] == "H1"
    assert report["sprt"]["llr"] >= report["sprt"]["bounds"][1]
    said = printed(main, ["random", "mcts:100", *command[2:]])
    assert "SPRT accepts H0: A is as strong as B rather than 100 Elo stronger than B" in said
    said = printed(main, [*command[:4], "--games", "4", "--elo0", "-5", "--elo1", "5"])
    assert "undecided whether A is 5 Elo weaker than B or 5 Elo stronger than B" in said


def test_a_round_robin_gives_the_run_s_elo_curve(run: str, printed: Any) -> None:
    command = [run, "--round-robin", "--checkpoints", "3", "--games", "6", "--simulations", "4"]
    lines = printed(main, command).splitlines()
    assert lines[0] == f"{BOARD}: 3 players, 3 pairings of 6 games"
    assert lines[-1] == "Elo curve in c4/elo.json"
    curve = json.loads(Path("c4/elo.json").read_text())
    assert [row["iteration"] for row in curve["ratings"]] == [1, 3, 10]
    assert curve["ratings"][0]["elo"] == 0
    assert all(row["games"] == 12 for row in curve["ratings"])
    assert len(curve["matches"]) == 3
    table = lines[lines.index(next(line for line in lines if line.startswith("player"))) + 1 :]
    for row, line in zip(curve["ratings"], table[:3], strict=True):
        assert row["player"] in line
        assert f"{row['elo']:+.0f}" in line
    assert list(Path("c4").glob(".tmp*")) == []


def test_a_tournament_has_any_players_a_table_and_ratings(run: str, printed: Any) -> None:
    shutil.copytree(run, "other")
    players = [run, "other@2", "random", "mcts?level=3&temperature=0.5"]
    command = [*players, "--round-robin", "--games", "4", "--simulations", "4"]
    lines = printed(main, ["other", *command]).splitlines()
    assert lines[0] == f"{BOARD}: 5 players, 10 pairings of 4 games"
    assert not Path("other/elo.json").exists()
    first = next(number for number, line in enumerate(lines) if line.startswith("score against"))
    scores = [line[len(line) - 35 :] for line in lines[first + 1 : first + 6]]
    grid = [[row[7 * column : 7 * column + 7].strip() for column in range(5)] for row in scores]
    found = json.loads(printed(main, ["other", *command, "--json"]))
    names = [row["player"] for row in found["ratings"]]
    others = ["other/checkpoints/000010 (2 simulations)", "random", "mcts?temperature=0.5 (3 simulations)"]
    assert names[2:] == others
    assert all(row["low"] is None or row["low"] <= row["elo"] for row in found["ratings"])
    assert len(found["matches"]) == 10
    for match in found["matches"]:
        i, j = names.index(match["a"]), names.index(match["b"])
        assert (grid[i][j], grid[j][i]) == (f"{match['score']:.3f}", f"{1 - match['score']:.3f}")
    assert [grid[n][n] for n in range(5)] == [""] * 5


def test_temperature_plays_by_the_visits() -> None:
    states = [make_game("tic_tac_toe") for _ in range(300)]
    search = azpy.VectorSearch(states[:1], azpy.UniformEvaluator(), eval_batch=1)
    search.run(200)
    (visits,) = [result.visits for result in search.results()]
    for temperature in (0.0, 1.0):
        player = SearchPlayer(azpy.UniformEvaluator(), 200, temperature=temperature)
        counts = np.bincount(np.asarray(player.select_actions(states, seed=1)), minlength=9)
        share = visits / visits.sum() if temperature else np.eye(9)[visits.argmax()]
        assert np.abs(counts / 300 - share).max() < 0.1


def test_a_match_from_python_is_that_of_the_command(run: str, printed: Any) -> None:
    told = json.loads(printed(main, [run, "random", "--games", "6", "--simulations", "4", "--json"]))
    for a in (run, azpy.load_run(run), Path(run)):
        result = azpy.match(a, "random", games=6, simulations=4)
        assert [result.wins, result.draws, result.losses] == [told["wins"], told["draws"], told["losses"]]
    assert repr(result).startswith(f"{result.score:.3f} [")
    own = azpy.match(azpy.UniformEvaluator(), RandomPlayer(), game=BOARD, games=2, simulations=4)
    assert own.games == 2
    cases: list[tuple[tuple[str, str], dict[str, Any], str]] = [
        (("random", "mcts:5"), {}, "which game.*give game='GAME'"),
        ((run, "random"), {"games": 3}, "games must be an even number, got 3"),
        (("nobody", "random"), {}, "player 'nobody' is unknown"),
    ]
    for players, options, why in cases:
        with pytest.raises(SettingsError, match=why):
            azpy.match(*players, **options)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nobody", "random", "--game", BOARD], "player 'nobody' is unknown: expected a run or checkpoint folder"),
        (["conect_four", "random"], "player 'conect_four' is unknown; did you mean connect_four?"),
        (
            ["chess", "random"],
            "player 'chess' is a game, and azpy does not bring a trained player for it: train one wi",
        ),
        (["runs/chess", "random"], "player 'runs/chess' does not exist: train it first with az-train chess"),
        (["mcts:0", "random", "--game", BOARD], "player 'mcts:0': the number of simulations must be at least 1, got 0"),
        (
            ["random", "mcts@5", "--game", BOARD],
            "'mcts@5': @N works only with models, and mcts is not a model: write mcts:5",
        ),
        (["c4", "c4/checkpoints/000099"], "does not exist: a run keeps its newest three checkpoints"),
        (["mcts:5", "random"], "give --game"),
        (["c4", "random", "--game", "tic_tac_toe"], "does not fit the game: it takes observations [2, 4, 5]"),
        (["c4", "other", "--games", "4"], f"c4 plays {BOARD} and other plays tic_tac_toe"),
        (["text.onnx", "random", "--game", BOARD], "text.onnx is not a usable ONNX model"),
        (["c4", "random", "--games", "7"], "games must be an even number, got 7"),
        (["c4", "random", "--opening-plies", "-1"], "--opening-plies must be at least 0, got -1"),
        (["c4"], "a match has two players, got 1"),
        (["c4", "random", "--elo0", "0"], "needs both --elo0 and --elo1"),
        (["c4", "random", "--checkpoints", "3"], "--checkpoints belongs to --round-robin"),
        (["random", "--round-robin"], "a round robin has at least two players, got 1"),
        (["c4", "c4", "--round-robin", "--checkpoints", "3"], "--checkpoints takes one run folder"),
        (["c4", "--round-robin", "--elo0", "0", "--elo1", "5"], "do not work with --round-robin"),
        (["c4?c_pukt=1", "random"], "c_pukt: not a setting of a player's search; did you mean c_puct?"),
        (["c4?games=1", "random"], "games: not a setting of a player's search; expected one of simulations, level, te"),
        (["c4?solver", "random"], "player 'c4?solver': expected key=value, got 'solver'"),
        (["c4?fpu=0&fpu=1", "random"], "fpu is given twice"),
        (["c4@9?simulations=9", "random"], "simulations are given twice: 9 before the ?"),
        (["c4?gumbel_actions=4&lcb=1", "random"], "lcb does not go with gumbel_actions"),
        (["c4?early_stop=true", "random"], "'c4/checkpoints/000010?early_stop=true': early_stop does not go with lcb"),
        (["c4?lookahead=2&solver=false", "random"], "lookahead needs solver: give both, or leave lookahead out"),
        (["random?c_puct=1", "c4"], "random does not search, so it takes no settings"),
        (["c4?c_puct=1", "--round-robin", "--checkpoints", "2"], "without @ and ?, got 0"),
        (["c4", "random", "--device", "gpu"], "tensorrt:N, webgpu, openvino, azpy or auto, got 'gpu'"),
        (
            ["mcts:5", "random", "--game", BOARD, "--device", "cuda"],
            "device cuda:0: no player of this match has a network",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], text: str, run: str, one_line: Any) -> None:
    Path("text.onnx").write_text("no model")
    configs = {"broken": "game = ", "other": 'game = "tic_tac_toe"'}
    for name, config in configs.items():
        Path(name, "checkpoints").mkdir(parents=True)
        Path(name, "config.toml").write_text(config)
    for name in ("broken", "other"):
        shutil.copytree("c4/checkpoints/000001", f"{name}/checkpoints/000001")
    assert text in one_line(main, arguments, "az-match: ")


@pytest.mark.parametrize(
    ("players", "typed", "said"),
    [
        (["mcts:2", "random"], {"simulations": 100}, "--simulations has no effect"),
        (["random", "gtp:cat"], {"simulations": 100}, "--simulations has no effect"),
        (["random", "uci:cat?movetime=1"], {"simulations": 100}, "--simulations has no effect"),
        (["random", "uci:cat"], {"simulations": 100}, None),
        (["uniform?temperature=1", "mcts?temperature=0"], {"temperature": 0.5}, "--temperature has no effect"),
        (["mcts", "random"], {"transcripts": Path("t")}, "--transcripts has no effect: no player is another program"),
        (["mcts:2", "mcts"], {"simulations": 100, "temperature": 0.5, "transcripts": None}, None),
    ],
)
def test_a_flag_that_no_player_uses_warns(players: list[str], typed: dict[str, Any], said: str | None) -> None:
    warn_once.cache_clear()
    specs = [parse_player(player) for player in players]
    with contextlib.nullcontext() if said is None else pytest.warns(SettingsWarning, match=said):
        warn_of_unused(specs, typed)


def test_az_match_warns_of_flags_that_do_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    warn_once.cache_clear()
    flags = ["--simulations", "100", "--transcripts", "t"]
    assert main(["random", "random", "--game", "tic_tac_toe", "--games", "2", *flags]) == 0
    said = [line.partition(" has no effect: ")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["az-match: --simulations", "az-match: --transcripts"]


def test_a_terminal_shows_the_score_live_and_after_ctrl_c(tmp_path: Path) -> None:
    command = az("match", "mcts:2", "random", "--game", "tic_tac_toe")
    command += ["--games", "9999998", "--elo0", "0", "--elo1", "0.001"]
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "200", "TERM": "xterm"}
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as process:
        os.close(theirs)
        shown = ""
        while not re.search(r"/9999998 games, LLR -?\d.*, 0\.\d+ \[.*Elo", shown):
            shown += os.read(ours, 4096).decode()
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal is closed at the other end
            while more := os.read(ours, 4096).decode():
                shown += more
        assert process.wait() == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    os.close(ours)
    assert "stopped; the result so far:\r\nscore of A: " in shown
    assert "SPRT " in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_before_the_first_pair_is_over_say_so(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("azpy.cli.match.play_rounds", lambda *_, **__: signal.raise_signal(number))
    assert main(["mcts:5", "random", "--game", BOARD]) == 128 + number
    assert capsys.readouterr().out.splitlines()[1:] == ["stopped before the first pair of games was over"]
    assert main(["mcts:5", "random", "--game", BOARD, "--json"]) == 128 + number
    assert json.loads(capsys.readouterr().out)["interrupted"]


@pytest.mark.parametrize("whole", [0, 2])
def test_ctrl_c_in_a_round_robin_leaves_the_curve_as_it_was(
    whole: int, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played = 0

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal played
        played += 1
        if played > whole:
            raise KeyboardInterrupt
        return play_rounds(*arguments, **options)

    Path("c4/elo.json").write_text("old")
    monkeypatch.setattr("azpy.cli.match.play_rounds", interrupted)
    assert main([run, "--round-robin", "--games", "2", "--simulations", "2"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("stopped")
    rated = [line.split()[0] for line in lines[-2 - whole : -1]]
    assert rated == [f"c4/checkpoints/00000{number}" for number in range(1, whole + 2)]
    assert Path("c4/elo.json").read_text() == "old"
