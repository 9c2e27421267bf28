"""az-match's files: openings that a user gives (--book), and the games that were played (--save)."""

import errno
import fcntl
import io
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.match import main
from azpy.errors import RunError, SettingsError
from azpy.games.names import make_game
from azpy.matches.arena import Answer, Board, Follower, RandomPlayer, play_rounds
from azpy.matches.openings import Book, Opening, read_book
from azpy.matches.results import Fault, MatchResult
from azpy.matches.saved import SavedGames
from azpy.runs import storage
from running import az
from talks import COMMAND

GAME = "tic_tac_toe"
CHESS, GO = "chess(max_plies=40)", "go(size=5,komi=0.5)"
FEN = "4k3/8/8/8/8/8/4P3/4K2R w K - 0 1"
PGN = f"""[Event "a line"]

1. e4 (1. d4 d5) e5 {{a remark}} 2. Nf3 *

[Event "a position"]
[SetUp "1"]
[FEN "{FEN}"]

1. O-O (1. e4 Kd7) Kd7 1/2-1/2
"""
SGF = """(;FF[4]GM[1]SZ[5];B[cc];W[bb](;B[dd])(;B[aa]))
(;SZ[5];B[bb])(;SZ[5];B[bb];W[cc])
(;FF[4]GM[1]SZ[5]AB[bb][cc]AW[dd]PL[W];W[ee];B[aa])
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def book(name: str, text: str, game: str = GAME, plies: int | None = None) -> list[Opening]:
    path = Path(name)
    path.write_bytes(text.encode("latin-1"))
    return openings_of(path, game, 0, plies)


def openings_of(path: Path, game: str, seed: int = 0, plies: int | None = None) -> list[Opening]:
    found = read_book(path, make_game(game), seed, plies)
    return [found[number] for number in range(len(found))]


def names(opening: Opening) -> list[str]:
    state, found = opening.start.clone(), []
    for action in opening.actions:
        found.append(state.action_name(action))
        state.play(action)
    assert state.key() == opening.position.key()
    return found


def games(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def replayed(game: dict[str, Any]) -> azpy.State:
    """The end of a saved game, move by move through the game's own names."""
    kind, position = game["game"], game["position"]
    state = make_game(kind) if position is None else azpy.parse_state(kind, position)
    for name in game["opening"] + game["moves"]:
        [action] = state.parse_actions(name)
        state.play(action)
    return state


# Books


def test_openings_of_pgn_are_main_lines_from_any_position() -> None:
    import chess.pgn

    openings = book("book.PGN", PGN, CHESS)
    assert len(openings) == 2
    text = io.StringIO(PGN)
    for opening in openings:
        game = chess.pgn.read_game(text)
        assert game is not None
        assert names(opening) == [move.uci() for move in game.mainline_moves()]
        assert opening.start.to_text() == game.board().fen()


def test_openings_of_epd_are_positions_with_any_operations() -> None:
    import chess

    lines = [
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -",
        'r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - bm Bb5; id "Spanish; or not";',
        "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
    ]
    openings = book("book.epd", "\r\n".join(lines), CHESS)
    for opening, line in zip(openings, lines, strict=True):
        board = chess.Board()
        board.set_epd(line) if "3 3" not in line else board.set_fen(line)
        assert (opening.position.to_text(), opening.actions) == (board.fen(en_passant="legal"), ())


def test_openings_of_sgf_are_the_main_lines_of_all_its_games() -> None:
    openings = book("book.sgf", SGF, GO)
    assert [names(opening) for opening in openings] == [["C3", "B4", "D2"], ["B4"], ["B4", "C3"], ["E1", "A5"]]
    assert [opening.start.key() == make_game(GO).key() for opening in openings] == [True] * 3 + [False]
    assert openings[3].start.turn == 1


@pytest.mark.parametrize(
    ("game", "text", "expected"),
    [
        (GAME, "# mine\n\nb2 a3\r\n  b2  \n", [["b2", "a3"], ["b2"]]),
        (CHESS, "e2e4 e7e5\n1. d4 d5\n", [["e2e4", "e7e5"], ["d2d4", "d7d5"]]),
        ("othello", "d3 c5 d6\n", [["d3", "c5", "d6"]]),
        ("hex(size=3)", "\ufeffa1 c3".encode().decode("latin-1"), [["a1", "c3"]]),
    ],
)
def test_openings_of_any_game_are_lines_of_play(game: str, text: str, expected: list[list[str]]) -> None:
    openings = book("book.txt", text, game)
    assert [names(opening) for opening in openings] == expected


def test_dice_that_are_due_after_a_line_are_rolled_by_the_seed() -> None:
    Path("book").write_text("2-1 8/7 6/4\n")
    first, *rest = (openings_of(Path("book"), "backgammon", seed)[0] for seed in (1, 1, 2, 3, 4, 5, 6, 7))
    assert first.actions == rest[0].actions
    assert len({opening.actions for opening in rest}) > 1
    assert all(names(opening)[:3] == ["2-1", "8/7", "6/4"] and opening.position.turn in (0, 1) for opening in rest)


def test_fewer_plies_of_each_line_and_equal_openings_once() -> None:
    Path("book").write_text("b2 a3 c3\nb2 a3 c1\na3 b2\nb2 a3\n")
    found = read_book(Path("book"), make_game(GAME), 0, plies=2)
    assert ([names(found[n]) for n in range(len(found))], found.left_out) == ([["b2", "a3"], ["a3", "b2"]], 2)
    assert [names(opening) for opening in book("book", "b2 a3\n", plies=0)] == [[]]


@pytest.mark.parametrize(
    ("name", "text", "game", "problem"),
    [
        ("b.txt", "b2\n\nb2 z9\nb2 b2\n", GAME, r'b.txt: line 3: action 2 is "z9".*; line 4: action 2 is "b2"'),
        ("b.txt", "x\n" * 5, GAME, r"line 1: .*; line 2: .*; line 3: .*; and 2 more: correct it"),
        ("b.txt", "a3 b2 b3 a2 c3\n", GAME, "line 1: the game is over at the end of this opening"),
        ("b.txt", "\n# nothing\n", GAME, "b.txt holds no opening"),
        ("b.epd", "e2e4\n", CHESS, "line 1: expected a position in EPD or FEN, got 'e2e4'"),
        ("b.epd", f"{FEN}\n8/8/8/8/8/8/8/8 w - -\n", CHESS, "line 2: White has 0 kings"),
        ("b.epd", f"{FEN}\n", GAME, "b.epd holds no openings of tic_tac_toe: put lines of play"),
        ("b.sgf", SGF, "othello", "b.sgf holds no openings of othello: put lines of play"),
        ("b.sgf", "(;SZ[5];B[cc])\n(;SZ[9];B[cc])\n", GO, "line 2: the game is of size 9, expected 5"),
        ("b.sgf", "(;SZ[5];B[cc]", GO, "b.sgf: .*line 1"),
        ("b.pgn", PGN.replace("Nf3", "Nf4"), CHESS, 'line 1: action 3 is "Nf4"'),
        ("b.pgn", PGN.replace("O-O (", "Qd8 ("), CHESS, 'line 5: .*"Qd8"'),
        ("b.txt", "b2\0", GAME, "b.txt is not a text file: unpack it"),
    ],
)
def test_bad_lines_are_named_by_their_numbers(name: str, text: str, game: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        book(name, text, game)


def test_games_of_a_book_are_read_however_lines_end() -> None:
    first, second = "(;SZ[5]AB[bb];W[ee])", "(;SZ[5]AW[dd]PL[B];B[aa](;W[bb])(;W[cc]))"
    openings = book("b.sgf", first + second + "\n", GO)
    assert [names(opening) for opening in openings] == [["E1"], ["A5", "B4"]]
    for end in ("\r", "\r\n"):
        openings = book("b.pgn", PGN.replace("\n", end), CHESS)
        assert [names(opening) for opening in openings] == [["e2e4", "e7e5", "g1f3"], ["e1g1", "e8d7"]]
    with pytest.raises(SettingsError, match=r'line 5: .*"Qd8"'):
        book("b.pgn", PGN.replace("O-O (", "Qd8 (").replace("\n", "\r"), CHESS)


@pytest.mark.parametrize(
    ("name", "game", "text", "most"),
    [
        ("b.pgn", "chess", "1. e4 e5 2. Ke3 Nc6 1-0\n", 2),
        ("b.pgn", "chess", "1. e4 e5 2. -- Nc6 1-0\n", 2),
        ("b.pgn", "chess", "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 1/2-1/2\n", 7),
        ("b.sgf", GO, "(;SZ[5];B[bb];W[bb];B[cc])", 1),
        ("b.sgf", GO, "(;SZ[5];B[bb];W[];B[];W[cc])", 2),
    ],
)
def test_faults_after_the_used_plies_are_ignored(name: str, game: str, text: str, most: int) -> None:
    for plies in range(most + 1):
        [opening] = book(name, text, game, plies)
        assert len(names(opening)) == plies
    for wanted in (most + 1, None):
        with pytest.raises(SettingsError, match="line 1: "):
            book(name, text, game, wanted)


def test_dice_are_no_plies_of_an_opening() -> None:
    Path("book").write_text("2-1 8/7 6/4 5-3 8/3 6/3\n")
    lines = [names(openings_of(Path("book"), "backgammon", 0, plies)[0]) for plies in range(5)]
    rolled = [line[-1] for line in lines]
    assert lines[:4] == [["2-1"], ["2-1", "8/7"], ["2-1", "8/7", "6/4", "5-3"], ["2-1", "8/7", "6/4", "5-3", "8/3"]]
    assert lines[4] == ["2-1", "8/7", "6/4", "5-3", "8/3", "6/3", rolled[4]]


def test_a_book_must_be_a_regular_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=r"none\.txt cannot be read: No such file"):
        openings_of(Path("none.txt"), GAME)
    os.mkfifo("pipe.txt")
    with pytest.raises(RunError, match=r"pipe.txt is not a regular file"):
        openings_of(Path("pipe.txt"), GAME)
    monkeypatch.setattr("azpy.matches.openings._MOST_BYTES", 3)
    with pytest.raises(RunError, match=r"b\.txt has 4 bytes, expected 3 at most"):
        book("b.txt", "b2a3")


@pytest.mark.parametrize(
    ("wanted", "expected"), [((), [0, 1, 2]), (("--games", "4"), [0, 1]), (("--games", "8"), [0, 1, 2, 0])]
)
def test_each_opening_of_a_book_is_played_from_both_seats(
    wanted: tuple[str, ...], expected: list[int], printed: Any
) -> None:
    lines = ["b2", "a3 b2", "a3 c3"]
    Path("mine.txt").write_text("\n".join([lines[0], lines[1], "b2", lines[2]]))
    command = ["uniform:20", "uniform:5", "--game", GAME, "--book", "mine.txt", "--save", "g.jsonl"]
    shown = printed(main, [*command, *wanted])
    played = sorted(games("g.jsonl"), key=lambda game: int(game["number"]))
    assert [" ".join(game["opening"]) for game in played] == [lines[n] for n in expected for _ in range(2)]
    assert [game["players"][game["number"] % 2] for game in played] == ["uniform (20 simulations)"] * len(played)
    # A match that needs fewer openings does not look at the rest.
    assert ("mine.txt: skipped 1 openings that lead to earlier positions" in shown) == (len(expected) != 2)
    assert f"from {len(set(expected))} distinct openings of mine.txt" in shown
    repeats = "1 of 4 pairs repeat an earlier one, so the intervals are too narrow: give fewer"
    assert (repeats in shown) == (len(expected) == 4)
    facts = json.loads(printed(main, ["random", "random", "--game", GAME, "--book", "mine.txt", "--json", *wanted]))
    assert (facts["book"], facts["opening_plies"], facts["games"]) == ("mine.txt", None, 2 * len(expected))


def test_deals_that_repeat_by_chance_are_no_warning(printed: Any) -> None:
    command = ["random", "random", "--game", "kuhn_poker", "--games", "80"]
    assert json.loads(printed(main, [*command, "--json"]))["repeated_pairs"] > 0
    assert "repeat" not in printed(main, command)


def test_equal_moves_from_other_positions_are_other_games() -> None:
    Path("b.epd").write_text(f"{FEN}\n{FEN.replace('4P3', 'P7')}\n")
    found = read_book(Path("b.epd"), make_game("chess(max_plies=2)"), 0)
    pairs = list(play_rounds(found, (Lowest(), Lowest()), 2, 0))
    assert pairs[0].actions == pairs[1].actions
    result = MatchResult(tuple(pairs))
    assert (result.distinct, result.repeated) == (2, 0)


class Lowest:
    """Moves the king on e1, or the one on e8, to the left."""

    def select_actions(self, states: Sequence[azpy.State], seed: int) -> list[int]:
        return [state.parse_actions("Kd1" if state.turn == 0 else "Kd8")[0] for state in states]


@pytest.mark.parametrize(
    ("protocol", "game", "name", "text"),
    [("uci", CHESS, "b.pgn", PGN), ("ugi", CHESS, "b.pgn", PGN), ("gtp", GO, "b.sgf", SGF), ("ugi", GO, "b.sgf", SGF)],
)
def test_another_program_plays_on_from_lines_and_positions(
    protocol: str, game: str, name: str, text: str, printed: Any
) -> None:
    """A program that saw another position would sooner or later play what is not legal here."""
    Path(name).write_text(text)
    engine = shlex.join([*COMMAND, "uniform:4", "--game", game, "--protocol", protocol])
    command = [f"{protocol}:{engine}?timeout=60", "random", "--game", game, "--book", name]
    assert "by rule" not in printed(main, [*command, "--slots", "2", "--save", "g.jsonl", "--transcripts", "said"])
    assert not Path("said").exists()
    played = games("g.jsonl")
    assert {game["position"] is None for game in played} == {True, False}
    assert all(replayed(game).is_terminal for game in played)


# Saved games


def test_saved_games_of_chess_are_pgn_that_other_programs_read() -> None:
    import chess.pgn

    Path("b.pgn").write_text(PGN)
    command = ["random", "uniform:2", "--game", CHESS, "--book", "b.pgn", "--save"]
    assert main([*command, "games.pgn"]) == 0
    assert main([*command, "games.jsonl"]) == 0
    with Path("games.pgn").open() as file:
        read = list(iter(lambda: chess.pgn.read_game(file), None))
    assert [game.errors for game in read] == [[]] * 4
    for game, ours in zip(read, games("games.jsonl"), strict=True):
        assert [move.uci() for move in game.mainline_moves()] == ours["opening"] + ours["moves"]
        assert [game.headers["White"], game.headers["Black"]] == ours["players"]
        assert game.headers["Result"] == {1.0: "1-0", 0.0: "1/2-1/2", -1.0: "0-1"}[ours["outcome"]]
        assert game.end().comment == ours["result"]
        assert game.headers["Round"] == f"{ours['number'] // 2 + 1}.{ours['number'] % 2 + 1}"
        today = f"{datetime.now().astimezone():%Y.%m.%d}"
        facts = [game.headers[name] for name in ("Date", "TimeControl", "Termination")]
        assert facts == [today, "-", "normal"]
        assert game.headers.get("FEN") == ours["position"]
    # azpy reads them too, as a book.
    assert len(openings_of(Path("games.pgn"), "chess", 0, 2)) == 2


def test_saved_games_of_go_are_sgf_that_other_programs_read() -> None:
    from sgfmill import sgf

    Path("b.sgf").write_text(SGF)
    command = ["random", "uniform:2", "--game", GO, "--book", "b.sgf", "--save"]
    assert main([*command, "games.sgf"]) == 0
    assert main([*command, "games.jsonl"]) == 0
    texts = Path("games.sgf").read_text().strip().split("\n\n")
    for text, ours in zip(texts, games("games.jsonl"), strict=True):
        game = sgf.Sgf_game.from_string(text)
        root = game.get_root()
        assert [root.get("PB"), root.get("PW")] == ours["players"]
        assert root.has_setup_stones() == (ours["position"] is not None)
        assert len(game.get_main_sequence()) - 1 == len(ours["opening"] + ours["moves"])
        assert root.get("RE")[0] == ("B" if ours["outcome"] > 0 else "W")


@pytest.mark.parametrize("game", [GAME, "pig", "dice_nim", "backgammon", "wall_game", "hex(size=3,swap=1)"])
def test_games_of_every_kind_are_saved_as_json_lines(game: str, printed: Any) -> None:
    command = ["random", "random", "--game", game, "--games", "6", "--save", "g.jsonl", "--json", "--seed", "7"]
    facts, played = json.loads(printed(main, command)), games("g.jsonl")
    assert sorted(one["number"] for one in played) == list(range(6))
    for one in played:
        end = replayed(one)
        assert end.is_terminal
        assert (one["outcome"], one["result"]) == (end.outcome(), end.result_text())
        assert (one["seed"], one["ended"], one["faults"]) == (7, "rules", [[], []])
    outcomes = [one["outcome"] * (-1) ** one["number"] for one in played]
    assert facts["outcome"] == pytest.approx(sum(outcomes) / 6)


FORMS = (("g.pgn", "chess", "e2e4"), ("g.sgf", GO, "C3"), ("g.jsonl", "chess", "e2e4"))


def over(game: str, moves: str, loser: int | None, fault: Fault | None, swapped: int = 0) -> Board:
    """A game of players A and B after these moves."""
    start = make_game(game)
    board = Board(swapped, Opening(start.clone(), (), start), (swapped, 1 - swapped), 0)
    for action in start.parse_actions(moves):
        board.answer(action)
    if loser is not None:
        assert board.mover == loser
        board.answer(fault)
    return board


@pytest.mark.parametrize(
    ("fault", "ended", "infractions", "sgf"),
    [(None, "resigned", 0, "RE[B+R]"), (Fault("is late", True), "fault", 2, "RE[B+F]")],
)
def test_a_forfeit_is_named_in_the_saved_game(fault: Fault | None, ended: str, infractions: int, sgf: str) -> None:
    for name, game, moves in FORMS:
        with SavedGames(Path(name), make_game(game), 3) as saved:
            saved.write([over(game, moves, 1, fault), over(game, moves, 0, fault, swapped=1)], "a", "b")
    text = Path("g.pgn").read_text()
    found = text.count('[Termination "rules infraction"]'), text.count("Termination"), text.count('[Result "1-0"]')
    assert found == (infractions, 2, 2)
    assert Path("g.sgf").read_text().count(sgf) == 2
    first, second = games("g.jsonl")
    assert (first["players"], second["players"]) == (["a", "b"], ["b", "a"])
    assert [(one["ended"], one["outcome"]) for one in (first, second)] == [(ended, 1.0)] * 2
    assert first["result"] == f"White wins by {'forfeit' if fault else 'resignation'}"
    assert [one["faults"] for one in (first, second)] == [[[], ["is late"]] if fault else [[], []]] * 2


def test_unprintable_names_are_saved() -> None:
    import chess.pgn

    name = 'a "player" \\ \udcff\n[Event "?"] ]'
    for path, game, moves in FORMS:
        with SavedGames(Path(path), make_game(game), 0) as saved:
            saved.write([over(game, moves, 1, None)], name, "b")
    read = chess.pgn.read_game(io.StringIO(Path("g.pgn").read_text()))
    assert read is not None
    assert read.headers["White"].replace('\\"', '"').replace("\\\\", "\\") == 'a "player" \\ ??[Event "?"] ]'
    assert games("g.jsonl")[0]["players"][0] == name
    of_go = list(azpy._core.GameReader(make_game(GO), Path("g.sgf").read_text()))
    assert [one.tags["PB"] for one in of_go] == ['a "player" \\ ??[Event "?"] ]']


def test_finished_games_are_saved_before_their_pair_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C comes while the first pair is in play and other games are over."""
    calls = 0
    select = RandomPlayer.select_actions

    def interrupted(self: RandomPlayer, states: Sequence[azpy.State], seed: int) -> list[int]:
        nonlocal calls
        calls += 1
        if calls > 12:
            raise KeyboardInterrupt
        return select(self, states, seed)

    monkeypatch.setattr(RandomPlayer, "select_actions", interrupted)
    Path("b.txt").write_text("\na3\na3 b2 b3 a1")  # short games come last
    command = ["random", "random", "--game", GAME, "--book", "b.txt", "--games", "400", "--save", "g.jsonl", "--json"]
    assert main(command) == 130
    facts, saved = json.loads(capsys.readouterr().out), games("g.jsonl")
    assert all(replayed(game).is_terminal for game in saved)
    assert facts["games"] < len(saved) < 400
    assert len({game["number"] for game in saved}) == len(saved)


def test_games_are_saved_though_a_player_is_interrupted() -> None:
    class Leaves(Follower):
        def follow(self, games: Sequence[Board]) -> Sequence[Answer]:
            return [game.state.legal_actions()[0] for game in games]

        def leave(self, game: Board) -> Fault | None:
            raise KeyboardInterrupt

        def close(self) -> None:
            pass

    heard: list[Board] = []
    book = Book(make_game(GAME), 1, 0)
    with pytest.raises(KeyboardInterrupt):
        list(play_rounds(book, (Leaves(), RandomPlayer()), 4, 0, ended=heard.extend))
    assert heard
    assert all(board.state.is_terminal for board in heard)


def test_a_killed_match_leaves_whole_games() -> None:
    given = ["random", "mcts:2", "--game", GAME, "--save", "g.jsonl", "--games"]
    command = az("match", *given, "9999998")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not (path := Path("g.jsonl")).exists() or path.stat().st_size < 100_000:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    before = path.read_bytes()
    whole = before[: before.rindex(b"\n") + 1]
    path.write_bytes(before + b'{"game": "tic')  # as a power cut tears it
    assert all(replayed(game).is_terminal for game in map(json.loads, whole.splitlines()[:200]))
    assert main([*given, "2"]) == 0
    after = path.read_bytes()
    assert after.startswith(before)
    assert {json.loads(line)["number"] for line in after.splitlines()[-2:]} == {0, 1}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_match_goes_on_though_its_games_cannot_be_saved(
    form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], printed: Any
) -> None:
    real, calls = storage.append, 0

    def full(file: Any, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, data)

    Path("b.txt").write_text("\na3\na3 b2 b3 a1\n")  # games of many lengths: they are not all over at once
    command = ["random", "random", "--game", GAME, "--book", "b.txt", "--games", "40", "--slots", "4", *form]
    expected = printed(main, command)
    monkeypatch.setattr(storage, "append", full)
    assert main([*command, "--save", "g.jsonl"]) == 2
    output = capsys.readouterr()
    assert calls == 3
    assert 0 < len(games("g.jsonl")) < 40
    why = "--save: no space left on the device of g.jsonl"
    assert output.err.startswith(f"az-match: {why}")
    assert output.err.count("\n") == 1
    assert (why in output.out) == (not form)
    assert output.out.endswith(expected.splitlines()[-1] + "\n")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--save", "g.pgn"], "games of tic_tac_toe are saved to a file that ends in .jsonl, got g.pgn"),
        (["--game", "chess", "--save", "g.sgf"], "ends in .jsonl or .pgn, got g.sgf"),
        (["--save", "none/g.jsonl"], "none/g.jsonl cannot be used: No such file or directory"),
        (["--save", "folder.jsonl"], "folder.jsonl cannot be used: not a regular file"),
        (["--save", "pipe.jsonl"], "pipe.jsonl cannot be used: not a regular file"),
        (["--save", "locked.jsonl"], "locked.jsonl is in use by another process: give another file"),
        (["--book", "none.txt"], "none.txt cannot be read: No such file or directory"),
        (["--book", "b.txt", "--opening-plies", "-1"], "opening-plies must be at least 0, got -1"),
        (["--book", "b.txt", "--games", "3"], "games must be an even number, got 3"),
        (["--book", "bad.txt"], 'bad.txt: line 2: action 1 is "z9"'),
    ],
)
def test_bad_files_are_one_line_and_exit_code_2(options: list[str], problem: str, one_line: Any) -> None:
    Path("b.txt").write_text("b2\n")
    Path("bad.txt").write_text("# mine\nz9\n")
    Path("folder.jsonl").mkdir()
    os.mkfifo("pipe.jsonl")
    with Path("locked.jsonl").open("wb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert problem in one_line(main, ["random", "mcts:2", "--game", GAME, "--games", "2", *options], "az-match: ")
    assert not Path("games").exists()


# Infinite intervals


def test_an_interval_that_two_games_leave_open_is_infinite(printed: Any) -> None:
    command = ["uniform:20", "uniform:20", "--game", GAME, "--games", "2"]
    assert "score of A: 0.500 [0.000, 1.000], Elo +0 [-inf, +inf]" in printed(main, command)
    facts = json.loads(printed(main, [*command, "--json"]))
    assert (facts["low"], facts["high"], facts["elo_low"], facts["elo_high"]) == (0.0, 1.0, None, None)
