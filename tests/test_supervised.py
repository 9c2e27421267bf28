"""Games of files: what is read is what python-chess and sgfmill read, and training begins from it."""

import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import numpy as np
import pytest
from sgfmill import sgf, sgf_moves

import azpy
from azpy._core import PLAYED, PLAYED_SMOOTHING, GameReader
from azpy.cli import train
from azpy.errors import RunError
from azpy.fleet.examine import Examiner, RefusedError
from azpy.games.lines import replayed
from azpy.learning.learner import Learner
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.runs.imports import Filters, import_games, is_held_out, learned_from
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.settings import Settings
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Matched
from azpy.training.fitting import learner_of
from azpy.training.learner_process import _bytes, _Pupil
from azpy.training.trainer import Trainer
from azpy.training.window import Window

CHESS, GO = azpy.make_game("chess"), azpy.make_game("go(size=5)")


def pgn_game(rng: random.Random, plies: int, **tags: str) -> str:
    """A random game as python-chess writes it, with comments and a variation."""
    game, board = chess.pgn.Game(), chess.Board()
    node: Any = game
    for _ in range(plies):
        moves = list(board.legal_moves)
        if board.is_game_over(claim_draw=True) or not moves:
            break
        move = rng.choice(moves)
        if rng.random() < 0.1 and len(moves) > 1:
            node.add_variation(rng.choice([other for other in moves if other != move]), comment="aside")
            node = node.add_main_variation(move)
        else:
            node = node.add_main_variation(move)
        node.comment = "[%clk 0:01:00]" if rng.random() < 0.3 else ""
        board.push(move)
    result = board.result(claim_draw=True)
    game.headers["Result"] = result if result != "*" else rng.choice(["1-0", "0-1", "1/2-1/2"])
    game.headers.update(tags)
    return f"{game}\n\n"


def sgf_game(moves: str, result: str = "B+R", extra: str = "", size: int = 5) -> str:
    """A game whose moves are pairs of letters, passes "--"."""
    points = (moves[i : i + 2] for i in range(0, len(moves), 2))
    line = "".join(f";{colour}[{'' if p == '--' else p}]" for p, colour in zip(points, itertools.cycle("BW")))
    re = f"RE[{result}]" if result else ""
    return f"(;GM[1]FF[4]SZ[{size}]KM[7.5]{re}{extra}{line})"


LINE = "ccbbddbdabbaeaebdbec"  # ten moves


def test_moves_and_results_of_pgn_are_those_of_python_chess() -> None:
    rng = random.Random(1)
    text = "".join(pgn_game(rng, rng.randrange(8, 120)) for _ in range(60))
    stream, compared = io.StringIO(text), 0
    for read in GameReader(CHESS, text):
        other = chess.pgn.read_game(stream)
        assert other is not None
        assert read.tags == dict(other.headers)
        assert read.result == other.headers["Result"]
        assert read.actions is not None, read.why
        names = [state.action_name(a) for a, state in zip(read.actions, replayed(CHESS, read.actions), strict=False)]
        assert names == [move.uci() for move in other.mainline_moves()]
        outcome = other.end().board().outcome(claim_draw=True)
        if outcome is not None and read.outcome is not None:
            assert read.outcome == {True: 1.0, False: -1.0, None: 0.0}[outcome.winner]
        compared += 1
    assert compared == 60
    assert chess.pgn.read_game(stream) is None


def test_moves_and_results_of_sgf_are_those_of_sgfmill() -> None:
    rng = random.Random(2)
    texts = []
    for _ in range(40):
        state = GO.clone()
        while not state.is_terminal and rng.random() > 0.02:
            state.play(rng.choice(state.legal_actions()))
        result = "B+R" if not state.is_terminal else ""
        texts.append(state.to_text().replace("SZ[", f"RE[{result}]SZ[" if result else "SZ[", 1))
    read = list(GameReader(GO, "\n".join(texts)))
    assert len(read) == len(texts)
    for game, text in zip(read, texts, strict=True):
        other = sgf.Sgf_game.from_string(text)
        _, plays = sgf_moves.get_setup_and_moves(other)
        points = [25 if point is None else (4 - point[0]) * 5 + point[1] for _, point in plays]
        assert game.actions == points
        winner = {"b": 1.0, "w": -1.0}[other.get_winner()]
        assert game.outcome in (None, winner)


def expected_reason(game: chess.pgn.Game, seen: set[str]) -> str | None:
    """Why a game is left out, as python-chess sees it."""
    tags, board = game.headers, game.board()
    if tags.get("Variant", "Standard") != "Standard":
        return "variant"
    if board.fen() != chess.STARTING_FEN:
        return "start"
    if game.errors:
        return "action"
    moves = list(game.mainline_moves())
    for move in moves:
        if board.is_game_over(claim_draw=False) or board.is_repetition(3) or board.halfmove_clock >= 100:
            return "after end"
        board.push(move)
    if tags["Result"] == "*":
        return "result"
    if "time" in tags.get("Termination", ""):
        return "forfeit"
    outcome = board.outcome(claim_draw=False)
    if outcome is not None and outcome.result() != tags["Result"]:
        return "contradiction"
    if outcome is None and len(moves) < 10:
        return "short"
    if min(int(tags.get("WhiteElo", 0)), int(tags.get("BlackElo", 0))) < 2000:
        return "rating"
    if (
        "TimeControl" in tags
        and sum(int(x) * y for x, y in zip(tags["TimeControl"].split("+"), (1, 40), strict=True)) < 180
    ):
        return "time"
    key = " ".join(move.uci() for move in moves)
    if key in seen:
        return "duplicate"
    seen.add(key)
    return None


def test_pgn_games_are_left_out_for_the_reasons_that_python_chess_sees(tmp_path: Path) -> None:
    rng, rated = random.Random(3), {"WhiteElo": "2100", "BlackElo": "2200"}
    games = [pgn_game(rng, 30, **rated) for _ in range(12)]
    games += [games[0], games[3]]
    games += [
        pgn_game(rng, 30, **rated).replace("[White ", '[Variant "Atomic"]\n[White ', 1),
        pgn_game(rng, 5, **rated),
        pgn_game(rng, 30),
    ]
    games += [pgn_game(rng, 30, **rated, Result="*"), pgn_game(rng, 30, **rated, Termination="time forfeit")]
    games += [pgn_game(rng, 30, **rated, TimeControl=control) for control in ("60+0", "120+1", "120+2", "600+0")]
    games += [pgn_game(rng, 30, WhiteElo="2500", BlackElo="1999")]
    games += ['[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]\n[Result "1-0"]\n\n1. Rh8+ 1-0\n\n']
    games += ['[Result "1-0"]\n\n1. e4 e5 2. Ke3 1-0\n\n', '[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 3. e4 0-1\n\n']
    games += ['[Result "1-0"]\n\n1. f3 e5 2. g4 Qh4# 1-0\n\n']
    games += ['[WhiteElo "2100"]\n[BlackElo "2100"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n']
    rng.shuffle(games)
    text = "".join(games)
    path = tmp_path / "games.pgn"
    path.write_text(text)
    expected, seen, moves, stream = Counter[str](), set[str](), [], io.StringIO(text)
    while (game := chess.pgn.read_game(stream)) is not None:
        if (why := expected_reason(game, seen)) is not None:
            expected[why] += 1
        else:
            moves.append([move.uci() for move in game.mainline_moves()])
    # python-chess takes a move after mate for an illegal one.
    expected["action"], expected["after end"] = expected["action"] - 1, expected["after end"] + 1
    found = import_games([str(path)], CHESS, 7, Filters(2000, 180))
    assert found.left_out == expected
    assert found.found == len(games) == sum(expected.values()) + len(found.records)
    for number, (record, names) in enumerate(zip(found.records, moves, strict=True)):
        actions = record.actions.tolist()
        assert names == [s.action_name(a) for a, s in zip(actions, replayed(CHESS, actions), strict=False)]
        assert (record.game_id, record.seed, record.imported) == (number, 7, True)
        assert (record.flags == PLAYED).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (sgf_game(LINE), None),
        (sgf_game(LINE, "W+12.5"), None),
        (sgf_game(LINE, "Draw"), None),
        (sgf_game(LINE, "Void"), "result"),
        (sgf_game(LINE, ""), "result"),
        (sgf_game(LINE, "B+T"), "forfeit"),
        (sgf_game(LINE, "W+Forfeit"), "forfeit"),
        (sgf_game(LINE, size=9), "size"),
        (sgf_game(LINE).replace("7.5", "6.5"), "komi"),
        (sgf_game(LINE, extra="HA[2]AB[aa][ee]"), "start"),
        (sgf_game(LINE).replace(";B[cc]", ""), "start"),
        (sgf_game("cccc"), "action"),
        (sgf_game("----cc"), "after end"),
        (sgf_game("cc----", "B+17.5"), None),
        (sgf_game("cc----", "W+R"), "contradiction"),
        (sgf_game("ccbb"), "short"),
        (sgf_game(LINE, extra="TM[60]"), "time"),
        (sgf_game(LINE, extra="TM[60]OT[5x30 byo-yomi]"), None),
    ],
)
def test_sgf_games_are_left_out_for_their_reason(tmp_path: Path, text: str, reason: str | None) -> None:
    path = tmp_path / "one.sgf"
    path.write_text(sgf_game("aabbccddeeaebdcbdaca") + text)
    found = import_games([str(path)], GO, 0, Filters(None, 180))
    assert dict(found.left_out) == ({} if reason is None else {reason: 1})
    assert len(found.records) == 2 - (reason is not None)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.sgf", b"", "holds no game"),
        ("a.sgf", sgf_game(LINE)[:-9].encode(), "cannot be read as SGF: the game in line 1"),
        ("a.sgf", sgf_game(LINE).replace("GM[1]", "GM[2]").encode(), "GM[2] is another game"),
        ("a.sgf", bytes(range(256)) * 8, "is no text"),
        ("a.sgf", b"(" * 1_000_000, "the game ends before its last )"),
        ("a.sgf", b"x" * 5_000_000, "is no SGF"),
        ("a.pgn", b'[Result "1-0"]\n\n1. e4 1-0\n', "which are read from SGF: leave it out"),
        ("a.npz", b"PK\x03\x04 and no more", "is damaged"),
        ("a.npz", None, "cannot be read"),
    ],
)
def test_a_bad_file_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    code = train.main(["go(size=5)", "--out", str(tmp_path / "run"), "--supervised", str(path)])
    out = capsys.readouterr().err
    assert code == 2
    assert said in out
    assert str(path) in out
    assert out.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_cut_pgn_is_refused() -> None:
    with pytest.raises(ValueError, match="line 3: the last game has no result"):
        list(GameReader(CHESS, "1. e4 e5 1-0\n\n1. d4 d5 2. c4 1/2-"))


def test_rows_are_the_moves_and_the_outcome() -> None:
    actions = next(iter(GameReader(GO, sgf_game(LINE)))).actions
    assert actions is not None
    record = azpy.GameRecord.of_actions(GO, actions, 1.0)
    buffer = azpy.ReplayBuffer(GO)
    buffer.add(record)
    expected = {}
    for ply, (action, state) in enumerate(zip(actions, replayed(GO, actions), strict=False)):
        legal = np.isin(np.arange(26), state.legal_actions())
        policy = np.where(legal, PLAYED_SMOOTHING / legal.sum(), 0.0)
        policy[action] += 1 - PLAYED_SMOOTHING
        expected[state.observation().tobytes()] = (legal, policy, 1.0 if ply % 2 == 0 else -1.0)
    options: dict[str, Any] = {"root_value_weight": 0.5, "value_lambda": 0.5, "imported_value_weight": 0.25}
    *rows, weights = buffer.sample(200, seed=3, symmetries=False, **options)
    for observation, legal, policy, value in zip(*rows, strict=True):
        legal_then, policy_then, value_then = expected[observation.tobytes()]
        assert (legal == legal_then).all()
        assert np.allclose(policy, policy_then, atol=1e-7)
        assert value == value_then
    assert (weights == 0.25).all()
    assert len({row.tobytes() for row in rows[0]}) == len(actions)


def selfplay(games: int = 6) -> list[azpy.GameRecord]:
    with azpy.SelfPlay(GO, azpy.UniformEvaluator(), slots=4, simulations=4, games=games, seed=1) as play:
        return sorted(play, key=lambda record: record.game_id)


@pytest.mark.parametrize("merge", [False, True])
def test_only_imported_games_have_a_smaller_weight(merge: bool) -> None:
    games = selfplay(2)
    buffer = azpy.ReplayBuffer(GO, merge=merge)
    buffer.extend([games[0], games[1].as_imported(game_id=9, seed=0)])
    own, other = set[bytes](), set[bytes]()
    for game, found in zip(games, (own, other), strict=True):
        for action, state in zip(game.actions.tolist(), replayed(GO, game.actions.tolist()), strict=False):
            del action
            found.add(state.observation().tobytes())
    plain = buffer.sample(300, seed=5, symmetries=False)
    *rows, weights = buffer.sample(300, seed=5, symmetries=False, imported_value_weight=0.125)
    assert all((one == two).all() for one, two in zip(plain[:3], rows[:3], strict=True))
    for observation, weight in zip(rows[0], weights, strict=True):
        of_both = observation.tobytes() in own and observation.tobytes() in other
        if not of_both:
            assert weight == (1.0 if observation.tobytes() in own else 0.125)
        elif merge:
            assert weight == pytest.approx((1 + 0.125) / 2)


def test_imported_games_are_gone_once_self_play_has_filled_the_window() -> None:
    games = selfplay(6)
    positions = sum(game.positions for game in games)
    window = Window(Settings("go(size=5)", window_min=positions, window_share=1.0), GO)
    window.add([game.as_imported(game_id=index, seed=0) for index, game in enumerate(games)])
    shares = []
    for _ in range(4):
        *_, weights = window.buffer.sample(2_000, seed=0, imported_value_weight=0.01)
        shares.append(float((weights < 1).mean()))
        window.add(games[:3])
    assert shares[0] == 1
    assert 0.3 < shares[1] < 0.7
    assert shares[2:] == [0, 0]


def test_records_keep_that_they_are_imported() -> None:
    record = azpy.GameRecord.of_actions(GO, [12, 25, 25], 1.0, game_id=3, seed=4)
    back = azpy.GameRecord.from_bytes(record.to_bytes())
    assert (back.imported, back.outcome, back.positions, back.actions.tolist()) == (True, 1.0, 3, [12, 25, 25])
    with pytest.raises(ValueError, match="its outcome is said to be -1, the rules say 1"):
        azpy.GameRecord.of_actions(GO, [12, 25, 25], -1.0)
    with pytest.raises(ValueError, match="is no outcome"):
        azpy.GameRecord.of_actions(GO, [12], float("nan"))
    own = selfplay(1)[0]
    assert not own.imported
    again = own.as_imported(game_id=8, seed=2)
    assert again.imported
    assert (again.targets == own.targets).all()
    assert (again.flags == own.flags).all()


def test_a_worker_cannot_hand_in_an_imported_game() -> None:
    settings = Settings(game="go(size=5)")
    with pytest.raises(RefusedError, match="said to be imported"):
        Examiner(settings, GO).look_at(azpy.GameRecord.of_actions(GO, [12], 1.0))


def test_a_share_of_the_games_is_held_out_by_their_moves_alone() -> None:
    rng = np.random.default_rng(0)
    games = [azpy.GameRecord.of_actions(GO, (2 * rng.permutation(13)[:6]).tolist(), 1.0) for _ in range(400)]
    held = [is_held_out(game, 0.25) for game in games]
    assert 60 < sum(held) < 140
    others = [azpy.GameRecord.of_actions(GO, game.actions.tolist(), -1.0, game_id=5) for game in games]
    assert held == [is_held_out(game, 0.25) for game in others]
    assert not any(is_held_out(game, 0.0) for game in games)
    assert all(is_held_out(game, 1.0) for game in games)


FLAGS = ["--network", "1x8", "--iterations", "1", "--games-per-iteration", "4", "--simulations", "4", "--deterministic"]
FLAGS += ["--supervised-passes", "2", "--batch-size", "16", "--match-games", "2", "--final-match-games", "2"]
FLAGS += ["--match-simulations", "2", "--slots", "4", "--supervised-held-out", "0.3", "--window-min", "60"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with SGF games and a sealed file."""
    folder, rng = tmp_path / "files", random.Random(4)
    folder.mkdir()
    for number in range(12):
        points = rng.sample([a + b for a in "abcde" for b in "abcde"], 12)
        (folder / f"{number:02}.sgf").write_text(sgf_game("".join(points), rng.choice(["B+R", "W+R"])))
    with RunFolder(tmp_path / "other", {"game": "go(size=5)"}) as run:
        run.sealed.write(1, selfplay())
    (tmp_path / "other/games/000001.npz").rename(folder / "sealed.npz")
    return folder


def trained(files: Path, out: Path, *more: str) -> str:
    command = [sys.executable, "-m", "azpy.cli.train", "go(size=5)", *FLAGS, "--out", str(out)]
    done = subprocess.run([*command, "--supervised", str(files), *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(out: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def hashes(text: str) -> str:
    return next(line for line in text.splitlines() if "equal for equal runs" in line)


@pytest.mark.slow
def test_training_begins_with_the_games_and_goes_on_after_a_kill(tmp_path: Path, files: Path) -> None:
    whole = trained(files, tmp_path / "whole")
    assert "games in 13 files" in whole
    assert "move match" in whole
    (row,) = rows_of(tmp_path / "whole", "imported")
    assert row["found"] == row["games"] + row["held_out"] + sum(row["left_out"].values()) == 18
    measured = rows_of(tmp_path / "whole", "supervised")
    assert 1 <= len(measured) <= 10
    assert all(0 <= row["move_match"] <= 1 and row["held_out_policy_loss"] > 0 for row in measured)
    run = StoredRun(tmp_path / "whole")
    games = list(run.games([0]))
    assert [record.game_id for _, record in games] == list(range(row["games"] + row["held_out"]))
    assert next(run.games([1]))[1].game_id == len(games)
    assert run.checkpoints() == [0, 1]
    # Killed before the fit ended, and after its checkpoint: the same command gives the same run.
    for name, kept in (("early", False), ("late", True)):
        copy = tmp_path / name
        subprocess.run(["/bin/cp", "-r", str(tmp_path / "whole"), str(copy)], check=True)
        for gone in [copy / "checkpoints/000001", *([] if kept else [copy / "checkpoints/000000"])]:
            for file in gone.iterdir():
                file.unlink()
            gone.rmdir()
        (copy / "games/000001.npz").unlink()
        again = trained(files, copy)
        assert hashes(again) == hashes(whole)
        assert ("move match" in again) is not kept
        assert len(rows_of(copy, "supervised")) == len(measured)
        assert len(rows_of(copy, "imported")) == 1


@pytest.mark.slow
def test_the_learner_s_process_learns_from_imported_games_whatever_dies(tmp_path: Path, files: Path) -> None:
    more = ["--learner-lag", "1", "--iterations", "3"]
    whole = trained(files, tmp_path / "whole", *more)
    assert "move match" in whole
    assert [row["steps"] > 0 for row in rows_of(tmp_path / "whole", "iteration")] == [False, True, True]
    for kept in (0, 1, 2):  # as if it was killed after this checkpoint
        copy = shutil.copytree(tmp_path / "whole", tmp_path / str(kept))
        for lost in range(kept + 1, 4):
            shutil.rmtree(copy / f"checkpoints/{lost:06d}")
            (copy / f"games/{lost:06d}.npz").unlink()
        assert hashes(trained(files, copy, *more)) == hashes(whole)


def begun(files: Path, out: Path, **changes: Any) -> list[Event]:
    options: dict[str, Any] = {"network": "1x8", "iterations": 1, "games_per_iteration": 4, "simulations": 4}
    options |= {"deterministic": True, "supervised_passes": 2.0, "batch_size": 16, "match_games": 2, "slots": 4}
    options |= {"final_match_games": 2, "match_simulations": 2, "match_every": 1, "supervised_held_out": 0.3}
    with Trainer(Settings("go(size=5)", **(options | changes)), out, [str(files)]) as trainer:
        return list(trainer.run())


def test_the_fit_begins_with_the_network_of_init_beside_play_too(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "first")
    found = []
    for name, changes in (("none", {}), ("turns", {"learner_lag": 0}), ("beside", {"learner_lag": 1})):
        begun(files, tmp_path / name, **({"init": str(tmp_path / "first")} | changes if changes else {}))
        found.append(read_checkpoint(tmp_path / name / "checkpoints/000000").model)
    none, turns, beside = found
    assert all(np.array_equal(turns[name], beside[name]) for name in turns)
    assert any(not np.array_equal(turns[name], none[name]) for name in turns)


def test_the_last_measurement_of_the_fit_is_of_the_saved_network(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run", supervised_passes=20.0, learning_rate=0.05)
    run, saved = StoredRun(tmp_path / "run"), read_checkpoint(tmp_path / "run/checkpoints/000000")
    measured = rows_of(tmp_path / "run", "supervised")
    assert len({row["steps"] for row in measured}) == len(measured) == 10
    unknown = azpy.ReplayBuffer(run.start, max_positions=10_000)
    unknown.extend(record for _, record in run.games([0]) if is_held_out(record, 0.3))
    learner = Learner(run.start, run.settings.network)
    learner.load(saved.model, saved.optimizer)
    found = learner.measure(unknown.sample(unknown.num_positions, seed=0, symmetries=False))
    assert measured[-1]["held_out_policy_loss"] == pytest.approx(found["policy_loss"], rel=1e-5)
    assert measured[-1]["held_out_value_loss"] == pytest.approx(found["value_loss"], rel=1e-5)


def test_a_fit_that_takes_all_the_time_is_measured_and_meets_the_opponents(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    monkeypatch.setattr(Budget, "may_fit", lambda self: asked.append(1) or len(asked) < 3)  # type: ignore[func-returns-value]
    monkeypatch.setattr(Budget, "is_over", lambda self, iteration: bool(asked))
    events = begun(files, tmp_path / "run", supervised_passes=50.0)
    assert len([event for event in events if isinstance(event, Matched)]) == 4
    assert isinstance(events[-1], Finished)
    assert events[-1].has_model
    assert "Last matches" in (tmp_path / "run/report.html").read_text()
    (last,) = rows_of(tmp_path / "run", "supervised")
    assert last["steps"] == 3
    assert last["move_match"] >= 0


def test_the_fit_before_self_play_does_not_count_as_time_of_the_first_iteration(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iterate, spent = Trainer._iterate, []

    def noted(self: Trainer, iteration: int) -> Any:
        spent.append(self._time.seconds["fitting"])
        return iterate(self, iteration)

    monkeypatch.setattr(Trainer, "_iterate", noted)
    begun(files, tmp_path / "run")
    assert spent == [0.0]


def test_a_run_goes_on_without_the_files_and_knows_them(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run")
    settings = StoredRun(tmp_path / "run").settings
    for given in ([], [f"{files}/"], [str(files)]):
        with Trainer(settings, tmp_path / "run", given) as trainer:
            assert trainer.flags == ["--supervised", str(files)]
            list(trainer.run())
    command = (tmp_path / "run/config.toml").read_text().splitlines()
    assert any("az-train" in line and f"--supervised {files}" in line for line in command)


def test_what_imported_games_were_chosen_by_cannot_change(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run")
    for name, value in (("held_out", 0.1), ("passes", 3.0), ("min_rating", 1500), ("min_seconds", 0)):
        with pytest.raises(RunError, match=f"supervised_{name} .*games are imported and learned from once"):
            begun(files, tmp_path / "run", **{f"supervised_{name}": value})


def test_the_window_has_the_games_that_are_learned_from(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run")
    run = StoredRun(tmp_path / "run")
    games = [record for _, record in run.games([0])]
    known = [record for record in games if not is_held_out(record, 0.3)]
    assert 0 < len(known) < len(games)
    added, filled = Window(run.settings, run.start), Window(run.settings, run.start)
    added.add(games)
    filled.refill(0, [0], lambda _: games)
    assert added.buffer.num_games == filled.buffer.num_games == len(known)
    own = [record for _, record in run.games([1])]  # games of self-play, whatever their moves
    added.add(own)
    assert added.buffer.num_games == len(known) + len(own)


def test_games_that_are_all_held_out_are_refused_before_a_folder_is_made(tmp_path: Path, files: Path) -> None:
    with pytest.raises(RunError, match=r"all [0-9]+ imported games are held out: give more files, or less than 1 as"):
        begun(files, tmp_path / "run", supervised_held_out=1.0)
    assert not (tmp_path / "run").exists()


def test_a_file_that_a_run_writes_at_the_moment_is_not_read(files: Path) -> None:
    whole = import_games([str(files)], GO, 0, Filters())
    (files / ".tmp-000002.npz").write_bytes(b"PK\x03\x04 and no more")
    assert import_games([str(files)], GO, 0, Filters()).found == whole.found


def test_outcomes_of_imported_games_count_little_in_every_fit(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, weights = Learner.fit, []

    def noted(self: Learner, batches: Any, steps: int, **options: Any) -> Any:
        weights.append(options.get("imported_value_weight"))
        return fit(self, batches, steps, **options)

    monkeypatch.setattr(Learner, "fit", noted)
    begun(files, tmp_path / "run")
    assert weights == [0.01, 0.01], "before self-play, and in the iteration"


def test_the_learner_s_process_gives_outcomes_of_imported_games_their_weight(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(files, tmp_path / "run")
    run, fit, found = StoredRun(tmp_path / "run"), Learner.fit, list[tuple[int, float | None]]()

    def noted(self: Learner, batches: azpy.ReplayBuffer, steps: int, **options: Any) -> Any:
        found.append((batches.num_games, options.get("imported_value_weight")))
        return fit(self, batches, steps, **options)

    monkeypatch.setattr(Learner, "fit", noted)
    games = {iteration: [record for _, record in run.games([iteration])] for iteration in (0, 1)}
    known = len(learned_from(games[0], 0.3))
    assert known < len(games[0])
    for iterations, expected in (([0, 1], (known + len(games[1]), 0.01)), ([1], (len(games[1]), None))):
        task = {"games": str(tmp_path / "run/games"), "settings": vars(run.settings), "opponents": 0, "iteration": 2}
        task |= {"budget": Budget(run.settings, 0).state(), "steps": 1, "taken": 0, "iterations": iterations}
        seen = sum(record.positions for record in games[1])
        _Pupil(lambda data: None).fit(task | {"seen": seen}, _bytes(learner_of(run.settings, run.start)))
        assert found.pop() == expected


def test_an_import_that_is_killed_is_done_again(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(self: storage.SealedGames, iteration: int, records: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage.SealedGames, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            begun(files, tmp_path / "run")
    assert len(rows_of(tmp_path / "run", "imported")) == 1
    plain = shutil.copytree(tmp_path / "run", tmp_path / "plain")
    begun(files, tmp_path / "run")
    assert len(rows_of(tmp_path / "run", "imported")) == 1
    assert (tmp_path / "run/games/000000.npz").exists()
    with Trainer(StoredRun(plain).settings, plain) as trainer:  # without the files
        list(trainer.run())
        assert not trainer.flags
    assert not rows_of(plain, "imported")


@pytest.mark.parametrize("gone", ["metrics.jsonl", "games/000000.npz"])
def test_a_run_that_lost_a_file_still_knows_that_it_began_with_imported_games(
    tmp_path: Path, files: Path, gone: str
) -> None:
    begun(files, tmp_path / "run")
    (tmp_path / "run" / gone).unlink()
    for _ in range(2):
        begun(files, tmp_path / "run")
        with pytest.raises(RunError, match=f"began with --supervised {files}: give the same"):
            begun(tmp_path, tmp_path / "run")
    with Trainer(StoredRun(tmp_path / "run").settings, tmp_path / "run") as trainer:
        assert trainer.flags == ["--supervised", str(files)]


def test_settings_of_imports_are_no_part_of_a_run_s_games(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run")
    config = tmp_path / "run/config.toml"
    edited = config.read_text().replace("supervised_passes = 2.0", "supervised_passes = 3.0")
    assert edited != config.read_text()
    config.write_text(edited)
    assert len(list(StoredRun(tmp_path / "run").games([1]))) == 4


def test_a_run_without_imported_games_takes_their_settings_as_any_others(tmp_path: Path) -> None:
    settings = {"network": "1x8", "iterations": 1, "games_per_iteration": 4, "simulations": 4, "match_games": 2}
    settings |= {"final_match_games": 2, "match_simulations": 2, "batch_size": 16}
    for passes in (2.0, 3.0):
        given = Settings("tic_tac_toe", **settings, deterministic=True, supervised_passes=passes)
        with Trainer(given, tmp_path / "run") as trainer:
            *_, last = trainer.run()
        assert isinstance(last, Finished)
        assert last.repeatable


def test_a_run_that_began_otherwise_is_refused(tmp_path: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = ["go(size=5)", *FLAGS, "--out", str(tmp_path / "plain")]
    assert train.main(plain) == 0
    assert train.main([*plain, "--supervised", str(files)]) == 2
    assert "began without --supervised" in capsys.readouterr().err


def test_rows_for_training_are_no_games(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, observations=np.zeros((1, 2)), legal=np.zeros(1))
    with pytest.raises(RunError, match=r"holds rows for training, as az-export --npz writes, and no sealed games"):
        import_games([str(path)], GO, 0, Filters())


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path, games = tmp_path / "games.npz", selfplay()
    with RunFolder(tmp_path / "run", {"game": "go(size=5)"}) as run:
        run.sealed.write(1, games)
        sealed = run.sealed.path(1)
    with np.load(sealed) as arrays:
        whole = dict(arrays)
    size = sum(array.nbytes + 128 for array in whole.values())  # 128: a header
    assert [game.to_bytes() for game in storage.sealed_in(sealed, size)] == [game.to_bytes() for game in games]
    zeros = np.zeros(1 << 26, np.uint8)
    np.savez_compressed(path, **whole | {"more": zeros})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(RunError, match=r"unpacks to 67,1[0-9,]+ bytes, expected 1,048,576 at most: split it"):
        storage.sealed_in(path, 1 << 20)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("payload.npy", header.getvalue())
    with pytest.raises(RunError, match=r"unpacks to 1,099,511,627,776 bytes, expected 2,147,483,648 at most"):
        import_games([str(path)], GO, 0, Filters())


def test_games_that_overlap_in_a_file_are_refused(tmp_path: Path) -> None:
    path, (data, *_) = tmp_path / "games.npz", [game.to_bytes() for game in selfplay()]
    for offsets in ([0, len(data), 0, len(data)], [0, 0, len(data) + 1], [1, len(data)], []):
        np.savez(path, payload=np.frombuffer(data, np.uint8), offsets=np.array(offsets, np.int64))
        with pytest.raises(RunError, match="is damaged"):
            import_games([str(path)], GO, 0, Filters())
