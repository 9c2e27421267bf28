"""Levels in words: what a ladder says, how it is measured and stored, and who plays by it."""

import dataclasses
import itertools
import json
import math
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_programs import STAND_IN

import azpy
from azpy import _core
from azpy.cli.calibrate import _report
from azpy.cli.match import main
from azpy.errors import warn_once
from azpy.games.names import make_game
from azpy.matches.arena import SearchPlayer
from azpy.matches.levels import LEVELS, Ladder, Level, Step, alone, ladder_of, plain_ladder
from azpy.matches.openings import Book, Opening
from azpy.matches.players import parse_player
from azpy.serving.models import Player, PlayerEngine, chosen, open_engine, open_player
from models import make_model
from oracles import after
from talks import Asker, talk_to

GAME = "tic_tac_toe"
NO_NUMBERS: list[Any] = ["x", [], 10**400, float("inf")]


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a checkpoint, as far as a match reads it."""
    from azpy.runs.folder import RunFolder

    path = tmp_path_factory.mktemp("runs") / "run"
    with RunFolder(path, {"game": GAME, "match_opening_plies": 1}) as run:
        run.save_checkpoint(7, model={}, optimizer={}, state={}, onnx=make_model(weight=0.5))
    return path


@pytest.fixture
def run(made_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_run, tmp_path / "run"))


def step(simulations: int, temperature: float, elo: float | None) -> dict[str, Any]:
    ends = {"low": None, "high": None}
    return {"simulations": simulations, "temperature": temperature, "pairs": [0, 0, 1, 0, 0], "elo": elo, **ends}


def ladder_file(*steps: Any, **facts: Any) -> str:
    return json.dumps({"network": "00ff", "iteration": 7, "steps": steps} | facts)


def store(run: Path, *steps: dict[str, Any], **facts: Any) -> None:
    (run / "ladder.json").write_text(ladder_file(*steps, **facts))


class Known:
    """A network whose prior and value are always the same."""

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        return np.tile(np.arange(9, dtype=np.float32) / 2, (rows, 1)), np.zeros(rows, np.float32)


def known(**changes: Any) -> Player:
    """A player of `Known` with a ladder in which each level has other simulations."""
    ladder = Ladder((Level(1, 3.0, 0.0), Level(1, 0.0, 200.0), Level(64, 0.0, 600.0)), "00ff", 7)
    served = dataclasses.replace(open_player("uniform:20", GAME, 20), evaluator=Known(), ladder=ladder)
    return dataclasses.replace(served, **changes)


# The ladder -----------------------------------------------------------------------------------------------------------


def test_levels_have_equal_steps_of_elo() -> None:
    ladder = known().ladder
    assert list(ladder.levels) == list(LEVELS)
    assert [level.elo for level in ladder.levels.values()] == pytest.approx([0, 100, 200, 300, 400, 500, 600])
    assert [level.simulations for level in ladder.levels.values()] == [1, 1, 1, 3, 8, 23, 64]
    assert [level.temperature for level in ladder.levels.values()] == [3.0, 1.5, 0, 0, 0, 0, 0]
    assert (ladder.at(-50), ladder.at(9_999)) == (ladder.levels["beginner"], ladder.levels["full strength"])


def test_a_step_that_adds_no_strength_is_left_out(run: Path) -> None:
    store(run, step(1, 2.0, 0.0), step(1, 0.0, 150.0), step(4, 0.0, 140.0), step(16, 0.0, 400.0))
    ladder = ladder_of(run, 800, True)
    assert [(one.simulations, one.elo) for one in ladder.steps] == [(1, 0.0), (4, 140.0), (16, 400.0)]
    store(run, step(1, 2.0, 0.0), step(1, 0.0, 140.0), step(4, 0.0, 140.0), step(16, 0.0, 400.0))
    assert [one.simulations for one in ladder_of(run, 800, True).steps] == [1, 4, 16], "of equal ones the last"
    store(run, step(1, 2.0, 0.0), step(1, 0.0, -30.0), step(4, 0.0, 170.0))
    assert [one.elo for one in ladder_of(run, 800, True).steps] == [0.0, 200.0]
    store(run, step(4, 0.0, 0.0))
    assert {one.simulations for one in ladder_of(run, 800, True).levels.values()} == {4}


@pytest.mark.parametrize(
    ("given", "played", "elo"), [(800, 64, 300), (64, 64, 300), (16, 16, 200), (8, 8, 150), (1, 1, 0)]
)
def test_full_strength_is_the_simulations_that_are_given(run: Path, given: int, played: int, elo: float) -> None:
    """Those of a stored ladder were taken instead, whatever --simulations said."""
    store(run, step(1, 2.0, 0.0), step(4, 0.0, 100.0), step(16, 0.0, 200.0), step(64, 0.0, 300.0))
    top = open_player(str(run), None, given).ladder.levels["full strength"]
    assert top.simulations == played
    assert top.elo == pytest.approx(elo)
    assert parse_player(f"{run}@{given}?level=full strength").simulations == played
    assert ladder_of(run, given, True).levels["beginner"].elo == 0
    store(run, step(4, 0.0, 0.0), step(16, 0.0, 200.0))
    assert ladder_of(run, 2, True).levels["full strength"].simulations == 2


def test_without_a_ladder_levels_go_by_simulations(run: Path) -> None:
    plain = ladder_of(run, 800, True)
    assert plain == plain_ladder(800, True)
    assert "not calibrated" in plain.about("00ff")
    counts = [level.simulations for level in plain.levels.values()]
    warmths = [level.temperature for level in plain.levels.values()]
    assert (counts, warmths) == (sorted(counts), sorted(warmths, reverse=True))
    assert (counts[0], counts[-1], warmths[-1]) == (1, 800, 0)
    # Without a network the prior is even: its temperature would change nothing.
    assert {step.temperature for step in plain_ladder(800, False).steps} == {0}
    store(run, step(1, 2.0, 0.0), step(4, 0.0, None))
    assert ladder_of(run, 800, True) == plain


def test_a_ladder_says_which_network_was_measured(run: Path) -> None:
    store(run, step(1, 2.0, 0.0), step(4, 0.0, 90.0))
    assert ladder_of(run, 800, True).about("00ff") == "These levels were calibrated with this network."
    assert "of iteration 7" in ladder_of(run, 800, True).about("0abc")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"steps": []}',
        ladder_file(step(0, 0.0, 0.0)),
        ladder_file(step(1, 11.0, 0.0)),
        ladder_file(step(800, 0.0, 0), step(1, 0.0, 1), step(800, 0.0, 2)),
        *(
            ladder_file(step(1, 0.0, 0.0) | {name: value})
            for name in ("temperature", "elo", "low", "high")
            for value in NO_NUMBERS
        ),
        *(ladder_file(step(1, 0.0, 0.0) | {"pairs": pairs}) for pairs in ([10**400] * 5, [1], [0, 0, -1, 0, 0])),
        ladder_file(step(1, 0.0, 0.0) | {"more": 1}),
        ladder_file(step(1, 0.0, 0.0), network=None),
        *(
            ladder_file(step(1, 0.0, 0.0), anchor={"player": "x", "elo": 1500, "pairs": [[0] * 5]} | {name: value})
            for name, value in (
                *(("player", 7), ("elo", None), ("elo", "x"), ("pairs", []), ("pairs", [[1]]), ("above", "x")),
                ("more", 1),
            )
        ),
    ],
)
def test_a_damaged_ladder_is_refused(run: Path, content: str, one_line: Callable[..., str]) -> None:
    (run / "ladder.json").write_text(content)
    said = one_line(main, [f"{run}?level=casual", "random"], f"az-match: {run}/ladder.json is damaged: ")
    assert "delete it" in said


# Who plays ------------------------------------------------------------------------------------------------------------


def test_one_simulation_softens_the_prior_of_the_network() -> None:
    [result] = searched(1)
    expected = np.exp(np.arange(9) / 2) ** (1 / 2)
    np.testing.assert_allclose(result._softened(2.0), expected / expected.sum(), rtol=1e-5)
    assert searched(50)[0]._softened(2.0) == pytest.approx(searched(50)[0].policy(2.0))
    # The player of a match draws with these probabilities.
    states = [make_game(GAME)] * 4_000
    drawn = np.bincount(SearchPlayer(Known(), 1, 2.0).select_actions(states, 5), minlength=9) / len(states)
    np.testing.assert_allclose(drawn, expected / expected.sum(), atol=0.03)
    assert list(SearchPlayer(Known(), 1, 0.0).select_actions(states[:3], 5)) == [8, 8, 8]


@pytest.mark.parametrize("simulations", [1, 50])
@pytest.mark.parametrize("temperature", [1e-320, 1e-3, 0.01])
def test_a_small_temperature_draws_the_best_action(simulations: int, temperature: float) -> None:
    """No power of a prior or of a share of the visits vanishes or overflows, even of 361 equal ones."""
    states = [make_game(GAME)] * 20
    assert set(SearchPlayer(Known(), simulations, temperature).select_actions(states, 5)) == {8}
    [result] = searched(simulations)
    assert chosen(known(seed=1), states[0], result, temperature) == 8
    go = make_game("go")
    even = _core.VectorSearch([go], _core.UniformEvaluator())
    even.run(simulations)
    policy = even.results()[0]._softened(temperature)
    assert policy.sum() == pytest.approx(1)
    assert np.count_nonzero(policy) == (go.num_actions if simulations == 1 else simulations)


@pytest.mark.parametrize("simulations", [1, 4])
def test_the_weakest_level_takes_a_win_in_one(simulations: int) -> None:
    state = azpy.parse_state(GAME, "b2 a1 c1 a2")
    [winning] = [action for action in state.legal_actions() if after(state, action).is_terminal]
    looking = SearchPlayer(Known(), simulations, 10.0, solver=True, lookahead=1)
    assert {int(action) for action in looking.select_actions([state] * 40, 5)} == {winning}
    blind = SearchPlayer(Known(), simulations, 10.0)
    assert len({*map(int, blind.select_actions([state] * 40, 5))}) > 1
    result = azpy.Search(Known(), simulations=simulations, solver=True, lookahead=1).run(state)
    assert {chosen(known(), state, result, 10.0) for _ in range(40)} == {winning}
    # A win in more plies is not seen at once.
    deeper = azpy.Search(Known(), simulations=1, solver=True, lookahead=5).run(azpy.parse_state(GAME, "b2 b1"))
    assert deeper.proof is not None
    assert deeper.proof > 1
    assert len({chosen(known(), azpy.parse_state(GAME, "b2 b1"), deeper, 10.0) for _ in range(40)}) > 1


def searched(simulations: int) -> list[_core.SearchResult]:
    search = _core.VectorSearch([make_game(GAME)], Known())
    search.run(simulations)
    return search.results()


def test_a_seed_fixes_what_is_drawn_at_a_position() -> None:
    [result] = searched(1)
    state, other = make_game(GAME), after(make_game(GAME), 4)

    def drawn(seed: int | None, state: azpy.State = state) -> list[int]:
        return [chosen(known(seed=seed), state, result, 3.0) for _ in range(12)]

    assert all(len(set(drawn(seed))) == 1 for seed in range(5))
    assert len({drawn(seed)[0] for seed in range(20)}) > 3
    assert any(drawn(seed) != drawn(seed, other) for seed in range(20))
    assert len(set(drawn(None))) > 1


def test_a_player_s_query_can_name_a_level(run: Path) -> None:
    store(run, step(1, 2.0, 0.0), step(64, 0.0, 600.0))
    spec = parse_player(f"{run}?level=Full-Strength")
    assert (spec.simulations, spec.temperature) == (64, None)
    spec = parse_player(f"{run}?level=beginner&c_puct=2")
    assert (spec.simulations, spec.temperature, spec.search) == (1, 2.0, {"c_puct": 2.0})
    with pytest.warns(azpy.errors.SettingsWarning, match="not calibrated"):
        assert parse_player("mcts:40?level=full strength").simulations == 40


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("uniform?level=easy", "level: expected beginner, novice, "),
        ("uniform?level=novice&simulations=9", "level and simulations exclude each other"),
        ("uniform?level=novice&temperature=1", "level and temperature exclude each other"),
    ],
)
def test_wrong_levels_are_refused(player: str, said: str, one_line: Callable[..., str]) -> None:
    assert said in one_line(main, [player, "random", "--game", GAME], "az-match: player ")


def test_uci_elo_limits_the_strength() -> None:
    engine = talk_to({"player": known()}, "ugi")

    def found(*said: str) -> str:
        """The last information on a search, without its time."""
        engine.say(*said)
        line = engine.hear("info depth")
        engine.hear("bestmove")
        return re.sub(" nps .* pv ", " pv ", line)

    engine.say("ugi", "setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 400")
    assert engine.hear("option name UCI_Elo") == "option name UCI_Elo type spin default 600 min 0 max 4000"
    assert engine.hear("info string") == "info string These levels were calibrated with the network of iteration 7."
    assert " nodes 8 " in found("go")
    assert " nodes 8 " in found("go movetime 60000")
    assert " nodes 5 " in found("go nodes 5")
    assert found("setoption name UCI_Elo value 600", "go") == found("go"), "each search has a tree of its own"
    strongest, beyond = found("go"), "info string UCI_Elo: {} is beyond this player's 600, so it plays at full strength"
    for elo, used in ((3000, 3000), (5000, 4000)):
        engine.say(f"setoption name UCI_Elo value {elo}")
        assert engine.hear("info string UCI_Elo") == beyond.format(used)
        assert found("go") == strongest
    for name in ("Simulations", "Temperature"):
        engine.say(f"setoption name {name} value 7")
        assert engine.hear("info string") == f"info string {name} has no effect while UCI_LimitStrength is true"
        engine.say(f"setoption name {name} value 0")
    assert " nodes 99 " in found("setoption name UCI_LimitStrength value false", "go nodes 99")
    engine.say("setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 0")
    moves = set()
    for _ in range(30):
        engine.say("go")
        moves.add(engine.hear("bestmove").split()[1])
    engine.close()
    assert len(moves) > 3


def test_a_query_has_a_level() -> None:
    served = known(seed=1)
    engine = open_engine(served, threads=1)
    asker = Asker({"main": PlayerEngine(served, engine)})

    def ask(**fields: Any) -> Any:
        asker.ask(id="1", game="g", **fields)
        asker.wait()
        return asker.said.pop()

    for _ in range(2):  # each search has a tree of its own
        answer = ask(level="strong")
        assert "warnings" not in answer
        assert (answer["rootInfo"]["visits"], answer["rootInfo"]["reused"]) == (8, 0)
    assert len({ask(level="beginner")["move"] for _ in range(5)}) == 1, "the player has a seed"
    assert len({ask(level="beginner", moves=[move])["move"] for move in ("a1", "b1", "c1", "a2", "b2", "c3")}) > 1
    assert ask(level="expert", seconds=60)["rootInfo"]["visits"] == 23
    [model] = ask(action="query_models")["models"]
    assert [level["name"] for level in model["levels"]] == list(LEVELS)
    assert model["levels"][3] == {"name": "intermediate", "simulations": 3, "temperature": 0.0, "elo": 300}
    engine.close()


# Measuring ------------------------------------------------------------------------------------------------------------


def measured(run: Path, *arguments: str) -> Any:
    code = main(["--calibrate", f"{run}@4", "--json", *arguments])
    return code, json.loads((run / "ladder.json").read_text())


def test_a_calibration_in_two_sittings_is_that_of_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, taken, take = Path(shutil.copytree(run, tmp_path / "other")), list[int](), Book.__getitem__

    def noted(book: Book, number: int) -> Opening:
        taken.append(number)
        return take(book, number)

    monkeypatch.setattr(Book, "__getitem__", noted)
    measured(run, "--games", "10")
    _, two = measured(run, "--games", "20")
    assert sorted(taken) == sorted([*range(10)] * 4), "each step has each opening once"
    code, one = measured(other, "--games", "20")
    assert code == 0
    assert two == one
    ways = [(step["simulations"], step["temperature"]) for step in one["steps"]]
    assert ways == [(1, 4), (1, 2), (1, 1), (1, 0), (4, 0)]
    assert [sum(step["pairs"]) for step in one["steps"]] == [0, 10, 10, 10, 10]
    assert one["iteration"] == 7
    assert ladder_of(run, 800, True).network == one["network"]
    assert open_player(str(run), None, 20).network == one["network"]
    # Another full strength keeps the games of the steps below.
    code = main(["--calibrate", f"{run}@16", "--json", "--games", "20"])
    longer = json.loads((run / "ladder.json").read_text())
    assert [step["simulations"] for step in longer["steps"]] == [1, 1, 1, 1, 4, 16]
    assert [step["pairs"] for step in longer["steps"]][:5] == [step["pairs"] for step in one["steps"]]
    # Other openings are other games: nothing of before counts.
    _, anew = measured(run, "--games", "12", "--opening-plies", "2")
    assert [sum(step["pairs"]) for step in anew["steps"]] == [0, 6, 6, 6, 6]


@pytest.fixture
def anchor(tmp_path: Path) -> str:
    """A program that plays the last legal action."""
    (tmp_path / "known.py").write_text(STAND_IN)
    return f"ugi:{shlex.join([sys.executable, str(tmp_path / 'known.py'), 'ugi', GAME, 'last', str(tmp_path)])}"


def test_a_known_player_sets_the_scale(run: Path, anchor: str) -> None:
    _, plain = measured(run, "--games", "10")
    code, found = measured(run, "--games", "10", "--anchor", f"{anchor}?UCI_Elo=1500")
    known_elo = found["anchor"]
    assert (code, known_elo["player"], known_elo["elo"]) == (0, f"{anchor}?UCI_Elo=1500", 1500)
    assert sum(map(sum, known_elo["pairs"])) == 5
    assert [each["pairs"] for each in found["steps"]] == [each["pairs"] for each in plain["steps"]]
    ladder = ladder_of(run, 800, True)
    assert ladder.steps[-1].elo == pytest.approx(1500 + found["steps"][-1]["elo"] - known_elo["above"])
    assert ladder.levels["beginner"].elo == ladder.steps[0].elo == ladder.at(-9_999).elo
    assert ladder.about(ladder.network).endswith(f" Their Elo counts from that of {anchor}?UCI_Elo=1500.")
    engine, top = talk_to({"player": open_player(str(run), None, 800)}, "ugi"), math.ceil(ladder.steps[-1].elo)
    engine.say("ugi")
    assert engine.hear("option name UCI_Elo").startswith(f"option name UCI_Elo type spin default {top} ")
    engine.close()
    # An anchor that won all its games may have any strength.
    store(run, *found["steps"], anchor=known_elo | {"high": None}, network=found["network"])
    assert (ladder_of(run, 800, True).anchor, ladder_of(run, 800, True).steps[0].elo) == (None, 0)
    (run / "ladder.json").write_text(json.dumps(found))
    # More games of the steps leave those of the anchor as they are, and another Elo begins them anew.
    _, more = measured(run, "--games", "20")
    assert more["anchor"]["pairs"] == known_elo["pairs"]
    assert [sum(each["pairs"]) for each in more["steps"]] == [0, 10, 10, 10, 10]
    _, other = measured(run, "--games", "20", "--anchor", anchor, "--anchor-elo", "900", "--minutes", "1e-9")
    assert other["anchor"]["pairs"] == known_elo["pairs"], "no game was played, so nothing was stored"
    _, other = measured(run, "--games", "20", "--anchor", anchor, "--anchor-elo", "900")
    assert (other["anchor"]["elo"], sum(map(sum, other["anchor"]["pairs"]))) == (900, 10)
    assert other["steps"][1]["pairs"] == more["steps"][1]["pairs"]


def test_simulations_do_not_limit_a_program(run: Path, anchor: str, capsys: pytest.CaptureFixture[str]) -> None:
    warn_once.cache_clear()
    given = ["--anchor", anchor, "--anchor-elo", "5", "--simulations", "9", "--minutes", "1e-9"]
    assert main(["--calibrate", f"{run}@4", "--games", "2", *given]) == 0
    assert "az-match: --simulations has no effect: " in capsys.readouterr().err


def test_games_of_an_anchor_that_misbehaves_do_not_count(run: Path, anchor: str, one_line: Callable[..., str]) -> None:
    wrong = anchor.replace(" last ", " illegal ")
    arguments = ["--calibrate", f"{run}@4", "--games", "2", "--anchor", wrong, "--anchor-elo", "5"]
    said = one_line(main, arguments, "az-match: ugi:")
    assert "plays '99', which is not legal" in said
    assert "these games do not count" in said
    stored = json.loads((run / "ladder.json").read_text())["anchor"]
    assert (sum(map(sum, stored["pairs"])), stored["above"]) == (0, None)
    assert ladder_of(run, 800, True).anchor is None


def test_a_calibration_says_where_levels_begin(run: Path, printed: Any) -> None:
    steps = step(1, 4.0, 0.0), step(1, 2.0, -35.0), step(1, 0.0, 80.0), step(4, 0.0, 205.0)
    store(run, *steps)
    lines = _report([Step(**each) for each in steps], None, ladder_of(run, 4, True), "00ff", True)
    words = "levels start at the weakest step, the network alone, temperature 2: "
    at = lines.index(f"{words}it has -35 Elo in the table above and 0 Elo in the table below")
    assert re.fullmatch(r"the network alone, temperature 2 +-35 .*", lines[2])
    assert [re.split(" {2,}", lines[at + row])[:2] for row in (2, 8)] == [["beginner", "0"], ["full strength", "240"]]
    # After a clean sweep one end of the interval is infinite, and the other one counts.
    ends = [(None, -120.0), (35.0, None), (None, None), (10.0, 20.0)]
    swept = [Step(**each | {"low": low, "high": high}) for each, (low, high) in zip(steps, ends, strict=True)]
    rows = _report(swept, None, ladder_of(run, 4, True), "00ff", True)[1:5]
    assert [re.split(" {2,}", row)[2] for row in rows] == ["-inf to -120", "35 to +inf", "-inf to +inf", "10 to 20"]
    # Another network than that of the ladder, and no game of it yet.
    said = printed(main, ["--calibrate", f"{run}@4", "--minutes", "1e-9"])
    assert "some steps have no games yet, so the levels are not used" in said


def test_two_calibrations_of_a_run_do_not_overlap(run: Path, one_line: Callable[..., str]) -> None:
    """Each wrote the games that it knew, and the others' were lost."""
    with alone(run):
        one_line(main, ["--calibrate", f"{run}@4"], f"az-match: another az-match --calibrate is measuring {run}: wait")
    assert measured(run, "--games", "10")[0] == 0


def test_time_and_ctrl_c_end_a_calibration_between_groups(
    run: Path, monkeypatch: pytest.MonkeyPatch, printed: Any
) -> None:
    clock = [0.0]
    monkeypatch.setattr("azpy.cli.calibrate.time.monotonic", lambda: clock[0])
    select, calls = SearchPlayer.select_actions, [0]

    def late(player: SearchPlayer, states: Any, seed: int) -> Any:
        calls[0] += 1
        if calls[0] == 20:
            clock[0] = 601.0
        if calls[0] == 40:
            signal.raise_signal(signal.SIGINT)
        return select(player, states, seed)

    monkeypatch.setattr(SearchPlayer, "select_actions", late)
    said = printed(main, ["--calibrate", f"{run}@4"])
    assert "run the same command again" in said
    assert "the levels are not used" in said
    before = json.loads((run / "ladder.json").read_text())
    assert 0 < sum(sum(step["pairs"]) for step in before["steps"]) < 20
    clock[0] = 0.0
    assert main(["--calibrate", f"{run}@4"]) == 130
    after = json.loads((run / "ladder.json").read_text())
    assert all(sum(step["pairs"]) % 5 == 0 for step in after["steps"])
    for found in (before, after):  # the steps take turns
        played = [sum(step["pairs"]) for step in found["steps"][1:]]
        assert max(played) - min(played) <= 5
    assert "not calibrated" in ladder_of(run, 800, True).about(None) or after["steps"][1]["elo"] is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--calibrate", "mcts:5"], "--calibrate takes a run folder"),
        (["--calibrate", "{run}?c_puct=2"], "--calibrate takes a run folder"),
        (["--calibrate", "{run}/checkpoints/000007"], "--calibrate takes a run folder"),
        (["--calibrate", "{run}", "random"], "--calibrate takes one run folder, got 2 players"),
        (["--calibrate", "{run}", "--elo0", "5"], "--elo0 does not belong to --calibrate"),
        (["--calibrate", "{run}", "--simulations", "100"], "give RUN@N for N at full strength"),
        (["--calibrate", "{run}", "--minutes", "0"], "--minutes must be more than 0"),
        (["{run}", "random", "--minutes", "1"], "--minutes belongs to --calibrate"),
        (["{run}", "random", "--anchor", "random"], "--anchor belongs to --calibrate"),
        (["--calibrate", "{run}", "--anchor-elo", "5"], "--anchor-elo belongs to --anchor"),
        (["--calibrate", "{run}", "--anchor", "random"], "how strong is random? give --anchor-elo N, or UCI_Elo=N"),
        (["--calibrate", "{run}", "--anchor", "nobody", "--anchor-elo", "5"], "player 'nobody' is unknown"),
    ],
)
def test_bad_calibrations_are_refused(run: Path, arguments: list[str], said: str, one_line: Callable[..., str]) -> None:
    assert said in one_line(main, [argument.format(run=run) for argument in arguments], "az-match: ")
    assert not (run / "ladder.json").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not calibrated")
def test_levels_of_connect_four_rise() -> None:
    levels = ("beginner", "casual", "strong", "full strength")
    for weak, strong in itertools.pairwise(levels):
        a, b = (f"mcts:800?level={word}" for word in (strong, weak))
        assert azpy.match(a, b, game="connect_four", games=40).interval[0] > 0.5
