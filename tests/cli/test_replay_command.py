"""az-replay: a stored game is shown as it was played, and its searches repeat bit for bit or it says where not."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.export import main as export
from azpy.cli.match import main as match
from azpy.cli.replay import main
from azpy.errors import ModelError
from azpy.playing.replay_check import repeat_game
from azpy.playing.selfplay import repeat
from azpy.runs.folder import RunFolder
from azpy.runs.games import SealedGames
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Saved
from models import make_model
from sound_games import HEAP
from training_runs import collect
from training_runs import run as train

Replay = Callable[..., str]
SMALL: dict[str, Any] = {"simulations": 16, "slots": 6, "eval_batch": 2, "games_per_iteration": 12, "opening_plies": 2}
OUTCOME_BYTE = 4 + 4 + len("tic_tac_toe") + 8 + 8 + 3 + 4  # of a record's bytes


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which models are exchanged while games go on."""
    path: Path = tmp_path_factory.mktemp("runs") / "trained"
    # More games than may wait to be fetched: the newer models play too.
    train(path, **(SMALL | {"network": "1x8", "games_per_iteration": 100, "simulations": 8}))
    return path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("runs") / "collected"
    return collect(path, "tic_tac_toe").path


def games(path: Path) -> Iterator[azpy.GameRecord]:
    run = StoredRun(path)
    return (record for _, record in run.games(run.sealed_iterations()))


def networks_of(record: azpy.GameRecord) -> set[int]:
    return {int(network) for network in record.networks if network}


def exchanged_at_once(record: azpy.GameRecord) -> bool:
    """Whether the first search already had two networks."""
    return bool(record.flags[np.flatnonzero(record.flags & 1)[0]] & 2)


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Replay:
    """Runs az-replay, which ends with this code; gives what it printed, of a refusal that on stderr."""

    def replay(*arguments: object, code: int = 0) -> str:
        assert main([*map(str, arguments)]) == code
        said = capsys.readouterr()
        return said.err if code == 2 else said.out

    return replay


def test_games_with_their_model_repeat_bit_for_bit(trained: Path) -> None:
    run = StoredRun(trained)
    assert run.checkpoints() == [1, 2, 3]
    repeated, models = 0, set[str]()
    for record in list(games(trained))[::6]:
        if exchanged_at_once(record):
            continue
        comparison = repeat_game(run, record)
        assert comparison.difference is None
        assert comparison.whole == (len(networks_of(record)) < 2 and not (record.flags & 2).any())
        assert comparison.plies > 0
        repeated += 1
        models.add(comparison.model)
    assert repeated > 40
    assert {"no network: even priors and value 0", "the model of checkpoint 1", "the model of checkpoint 2"} == models


def test_resigned_games_repeat(tmp_path: Path, replay: Replay) -> None:
    changes = {"network": "1x8", "iterations": 2, "games_per_iteration": 30, "resign_at": 0.01}
    train(tmp_path, game="connect_four(width=5,height=4)", **(SMALL | changes))
    resigned = [record for record in games(tmp_path) if record.resigned and not exchanged_at_once(record)]
    assert len(resigned) > 5
    for record in resigned:
        assert repeat_game(StoredRun(tmp_path), record).difference is None
    assert "resigned" in replay(tmp_path, resigned[0].game_id)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(row["resigned"] > 0 for row in rows if row["kind"] == "iteration" and row["iteration"] == 2)


REPEATED = ["tic_tac_toe", "connect_four(width=5,height=4)", "hex(size=4,swap=1)", "othello(size=4)", "pig", "dice_nim"]


@pytest.mark.parametrize("game", [*REPEATED, "heap_game:Heap"])
def test_games_of_every_kind_repeat_to_the_same_bytes(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: Replay
) -> None:
    (tmp_path / "heap_game.py").write_text(HEAP)
    monkeypatch.syspath_prepend(tmp_path)
    run = collect(tmp_path / "run", game, games_per_iteration=5)
    run = StoredRun(run.path, game)
    records = list(games(run.path))
    assert len(records) == 5
    for record in records:
        assert repeat_game(run, record).difference is None
        again = repeat(run.settings, run.start, azpy.UniformEvaluator(), record)
        assert again.to_bytes() == record.to_bytes()
        said = replay(run.path, record.game_id, "--game", game)
        assert said.count(", chance:\n") == np.count_nonzero(record.players == -1)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run folder whose game is a Python class; that module is not imported yet."""
    (tmp_path / "heap_game.py").write_text(HEAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = collect(Path("run"), "heap_game:Heap", games_per_iteration=2, deterministic=True)
    with RunFolder("run", vars(run.settings)) as folder:
        model = make_model(shape=("batch", 1, 1, 1), actions=2)
        folder.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=model)
    monkeypatch.delitem(sys.modules, "heap_game")
    return "run"


READING = {
    "az-replay": (main, ["run", "0"]),
    "az-export": (export, ["run", "--jsonl", "x"]),
    "az-match": (match, ["run", "random", "--games", "2", "--simulations", "2"]),
}


@pytest.mark.parametrize("command", READING)
@pytest.mark.usefixtures("stranger")
def test_a_module_that_only_a_run_folder_names_is_not_imported(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, arguments = READING[command]
    assert run(arguments) == 2
    said = capsys.readouterr().err
    doing = "the match" if command == "az-match" else "reading the run"
    asked = f"{doing} would import module heap_game: give --game heap_game:Heap"
    assert said.startswith(f"{command}: run's game is the Python class heap_game:Heap, and {asked}")
    assert said.count("\n") == 1
    assert "heap_game" not in sys.modules
    assert run([*arguments, "--game", "heap_game:Heap"]) == 0
    assert "heap_game" in sys.modules


@pytest.mark.usefixtures("stranger")
def test_a_game_other_than_the_run_s_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("az-replay", "az-export"):
        run, arguments = READING[command]
        assert run([*arguments, "--game", "other:Game"]) == 2
        assert "run's game is 'heap_game:Heap', got 'other:Game': give the run's game" in capsys.readouterr().err
    assert "heap_game" not in sys.modules


def test_a_game_with_two_networks_is_repeated_up_to_the_exchange(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(make_model(weight=0.5))
    old = azpy.OnnxEvaluator(model).network_id
    (tmp_path / "old.onnx").write_bytes(model.read_bytes())
    settings = Settings("tic_tac_toe", iterations=2, **(SMALL | {"games_per_iteration": 100}))
    with Collector(settings, tmp_path / "run", model) as collector:
        for event in collector.run():
            if isinstance(event, Saved) and event.iteration == 1:
                model.write_bytes(make_model(weight=1.5))
    run = StoredRun(tmp_path / "run")
    mixed = [record for record in games(run.path) if old in networks_of(record) and len(networks_of(record)) == 2]
    assert mixed
    for record in filter(exchanged_at_once, games(run.path)):
        with pytest.raises(ModelError, match="the network changed during its first search"):
            repeat_game(run, record)
    for record in mixed:
        first_new = next(ply for ply in range(len(record)) if record.networks[ply] not in (0, old))
        comparison = repeat_game(run, record, tmp_path / "old.onnx")
        assert (comparison.difference, comparison.whole, comparison.plies) == (None, False, first_new)


def test_a_difference_is_named_with_its_ply_and_field(collected: Path, tmp_path: Path, replay: Replay) -> None:
    copy = Path(shutil.copytree(collected, tmp_path / "run"))
    config = copy / "config.toml"
    game = next(record.game_id for record in games(copy) if record.flags[0] & 1)
    assert "the same, bit for bit: " in replay(copy, game, "--check")
    config.write_text(config.read_text().replace("simulations = 16", "simulations = 17"))
    assert "first difference: ply 0: visits were [" in replay(copy, game, "--check", code=1)
    check = json.loads(replay(copy, game, "--check", "--json", code=1))["check"]
    assert check["difference"].startswith("ply 0: visits were [")


@pytest.mark.parametrize("field", ["priors", "root_values", "actions"])
def test_one_bit_is_a_difference(field: str, collected: Path, tmp_path: Path) -> None:
    run = StoredRun(collected)
    record = next(games(collected))
    data = bytearray(record.to_bytes())
    ply = int(np.flatnonzero(record.flags & 1)[0])
    head, values = OUTCOME_BYTE + 4 + 8, len(data) - 4 * len(record)
    place = {"priors": values - 4, "root_values": values + 4 * ply, "actions": head + 14 * ply}
    data[place[field]] ^= 1
    changed = azpy.GameRecord.from_bytes(bytes(data))
    assert getattr(changed, field).tobytes() != getattr(record, field).tobytes()
    assert (repeat_game(run, changed).difference or "").split()[2] == field


def test_a_missing_model_is_named_and_can_be_given(run: Path, tmp_path: Path, replay: Replay) -> None:
    stored = StoredRun(run)
    whole = [(record, networks_of(record)) for record in games(run)]
    of_one = azpy.OnnxEvaluator(run / "checkpoints/000001/model.onnx").network_id
    game = next(record.game_id for record, networks in whole if networks == {of_one} and not (record.flags & 2).any())
    kept = Path(shutil.copy(run / "checkpoints/000001/model.onnx", tmp_path / "kept.onnx"))
    shutil.rmtree(run / "checkpoints/000001")
    said = replay(run, game, "--check", code=2)
    assert f"network {of_one:#018x}, no longer exists: {run} has checkpoints 2, 3;" in said
    assert said.count("\n") == 1
    assert "the same, bit for bit" in replay(run, game, "--check", "--model", kept)
    other = run / "checkpoints/000002/model.onnx"
    assert f"the game was played by {of_one:#018x}" in replay(run, game, "--check", "--model", other, code=2)
    assert stored.checkpoints() == [2, 3]


def test_several_games_are_checked_one_after_another(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (record.game_id for record in list(games(run))[:3])
    assert (two, three) == (one + 1, one + 2)
    assert main([str(run), f"{one}-{two}", str(three), "--check", "--json"]) == 0
    checked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["game_id"] for each in checked] == [one, two, three]
    assert all(each["check"]["difference"] is None for each in checked)
    other = str(run / "checkpoints/000003/model.onnx")
    assert main([str(run), f"{one}-{two}", "--check", "--model", other]) == 2
    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.out.splitlines()] == [
        f"game {number} cannot be checked" for number in (one, two)
    ]
    assert said.err == "az-replay: 2 of 2 games could not be checked\n"


def test_a_shown_game_matches_its_record_and_the_rules(collected: Path, replay: Replay) -> None:
    for record in games(collected):
        found = json.loads(replay(collected, record.game_id, "--json"))
        state = azpy.make_game("tic_tac_toe")
        assert (found["iteration"], found["outcome"], len(found["plies"])) == (1, record.outcome, len(record))
        assert found["rules"] == "the same outcome"
        for ply, row in enumerate(found["plies"]):
            own = slice(record.offsets[ply], record.offsets[ply + 1])
            assert row["board"] == str(state)
            assert row["name"] == state.action_name(record.actions[ply])
            assert row["player"] == record.players[ply] == state.turn
            assert row["searched"] == bool(record.flags[ply] & 1)
            if row["searched"]:
                assert row["root_value"] == record.root_values[ply]
                assert [action["action"] for action in row["search"]] == state.legal_actions()
                assert [action["visits"] for action in row["search"]] == record.visits[own].tolist()
                assert [action["prior"] for action in row["search"]] == record.priors[own].tolist()
            state.play(int(record.actions[ply]))
        assert found["last_board"] == str(state)
        assert (state.outcome(), state.result_text()) == (found["outcome"], found["result"])


def test_the_text_shows_boards_thoughts_and_the_action_played(collected: Path, replay: Replay) -> None:
    record = next(record for record in games(collected) if not record.flags[0] & 1)
    text = replay(collected, record.game_id)
    assert "opening, not searched: played " in text
    assert text.count("  played\n") == np.count_nonzero(record.flags & 1)
    assert text.count(" to move:\n") == len(record)
    assert "as the rules say" in text
    legend = "prior: the network's policy; visits: of the search; target: the share that a network learns"
    assert text.splitlines()[1] == legend
    last = len(record) - 1
    assert f"ply {last}, player {record.players[last]} to move:" in text


def test_a_run_in_use_is_read_and_left_as_it_is(tmp_path: Path, replay: Replay) -> None:
    path = tmp_path / "run"
    settings = Settings("tic_tac_toe", **SMALL)
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), games=3, simulations=16) as play:
        records = list(play)
    with RunFolder(path, vars(settings)) as folder:
        for record in records:
            folder.append(record)
        with (path / "games/journal.bin").open("ab") as journal:
            journal.write(b"\x99" * 7)  # a game that is being written
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        for record in records:
            found = json.loads(replay(path, record.game_id, "--json"))
            assert found["iteration"] is None
            assert [row["action"] for row in found["plies"]] == record.actions.tolist()
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_an_outcome_against_the_rules_is_reported(collected: Path, tmp_path: Path, replay: Replay) -> None:
    run = Path(shutil.copytree(collected, tmp_path / "run"))
    sealed = run / "games/000001.npz"
    records = list(games(run))
    lost = next(index for index, record in enumerate(records) if record.outcome == 1)
    data = bytearray(records[lost].to_bytes())
    data[OUTCOME_BYTE + 3] ^= 0x80  # the sign
    records[lost] = azpy.GameRecord.from_bytes(bytes(data))
    SealedGames(sealed.parent, {}).write(1, records)
    for said in (replay(run, records[lost].game_id), replay(run, records[lost].game_id, "--check", code=2)):
        assert "outcome is marked as -1, but by the rules it is 1" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["contradicts", "0"], "contradicts/config.toml: slots must be at least the 256 pipelines, got 8"),
        (["nowhere", "0"], "nowhere does not exist"),
        (["run", "999"], "run has no game 999: it has "),
        (["run", "first"], "expected the number of a game, or a range such as 20-29, got 'first'"),
        (["run", "3-1"], "expected the number of a game, or a range such as 20-29, got '3-1'"),
        (["run", "990-999999999999999999"], "run has no game 990: it has "),
        (["run", "0", "--model", "x"], "--model goes with --check"),
        (["broken", "0"], "broken/config.toml is not valid TOML"),
        (["cut", "0"], "games/000001.npz is damaged"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], text: str, collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run", "broken", "cut"):
        shutil.copytree(collected, name)
    Path("broken/config.toml").write_text("game = ")
    Path("contradicts").mkdir()
    Path("contradicts/config.toml").write_text('game = "pig"\nslots = 8\npipelines = 256\n')
    os.truncate("cut/games/000001.npz", 200)
    assert text in one_line(main, arguments, "az-replay: ")
