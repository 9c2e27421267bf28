"""Wrong games, made by one edit each of five small right ones: az-check-game finds them and says where to mend them."""

import json
from pathlib import Path

import pytest

import small_games
from azpy.checks.check_game import check_game
from azpy.cli.check_game import main

SOURCE = Path(small_games.__file__).read_text()
GAMES = {"T": "TicTacToe", "C": "ConnectThree", "N": "Nim", "R": "Race", "P": "Poker"}
# What the edits take away.
WON = "{0: 1.0, 1: -1.0, None: 0.0}"
PAID = f"{WON}[self.winner()]"
STAKE = "stake if self.winner() == 0 else -stake"
COPIED = "copy.board, copy.player = list(self.board), self.player"
TOLD = "repr((self.board, self.player))"
INT = "int.from_bytes(hashlib.blake2b(told, digest_size=16).digest())"
THEIRS = "self.side(1 - self.player)"
ARRAY, SHAPED = "np.array(sides, np.float32)", ".reshape(self.obs_shape)"
FREE, FALL = "cell for cell in range(9) if", "column for column in range(3) if"
ACTIONS, EVEN = "list(range(self.num_actions))", "[(0, 0.5), (1, 0.5)]"
CARD = "deals[self.board[0]][player] if self.board else ''"
# The games, the rules of which one is found broken, what the finding names, the text, and what a person wrote instead.
EDITS = [
    # outcome
    ("N", "perspective", "outcome", PAID, "{self.player: 1.0, 1 - self.player: -1.0}[self.winner()]"),
    ("TCR", "one-sided", "outcome", WON, "{self.player: 1.0, 1 - self.player: -1.0, None: 0.0}"),
    ("TCR", "one-sided", "outcome", WON, "{1 - self.player: 1.0, self.player: -1.0, None: 0.0}"),
    ("TCR", "one-sided", "outcome", WON, "{0: 1.0, 1: 0.0, None: 0.5}"),
    ("N", "hidden", "outcome", WON, "{0: 1.0, 1: 0.0}"),
    ("P", "one-sided", "outcome", STAKE, "stake if self.winner() == 0 else 0.0"),
    ("TCR", "outcome", "outcome", PAID, "{0: 1.0, 1: -1.0}.get(self.winner())"),
    ("TCNR", "outcome", "outcome", WON, "{0: 10.0, 1: -10.0, None: 0.0}"),
    ("TCNR", "outcome", "outcome", PAID, "self.winner() == 0"),
    ("TCNR", "one-score", "outcome", PAID, "0.0"),
    ("P", "one-score", "outcome", STAKE, "0.0"),
    # turn
    ("TCNRP", "one-player", "turn", "        self.player = 1 - self.player\n", ""),
    ("TCNRP", "turn", "turn", "else self.player", "else 1 + self.player"),
    ("TCNRP", "turn", "turn", "return azpy.TERMINAL if", "return None if"),
    ("TC", "legal-none", "turn", " or None not in self.board", ""),
    ("N", "legal-none", "turn", "return not any(self.board)", "return False"),
    ("R", "length", "turn", " or self.board[3] == 8", ""),
    ("R", "length", "turn", "self.winner() is not None or self.board[3] == 8", "self.board[3] == 9"),
    ("P", "length", "turn", ", [0, 1, 1])", ")"),
    # play
    ("T", "one-sided", "outcome", "self.board[action] = self.player", "self.board[action] = 0"),
    ("C", "one-sided", "outcome", "self.board[lowest] = self.player", "self.board[lowest] = 0"),
    ("R", "one-sided", "outcome", "self.board[self.player] +=", "self.board[0] +="),
    ("TCNP", "replay", "play", "self.put(action)\n", "self.put(np.random.choice(self.legal_actions()))\n"),
    ("R", "replay", "play", "[0, self.board[3] + 1]", "[np.random.randint(2), self.board[3] + 1]"),
    # clone
    ("TCNRP", "clone", "clone", "list(self.board), self.player", "self.board, self.player"),
    ("TCNRP", "clone", "clone", COPIED, "copy.board = list(self.board)"),
    ("TCNRP", "clone", "clone", "copy = type(self)()", "copy = self"),
    # key
    ("N", "key", "key", TOLD, "repr(self.board)"),
    ("NR", "key", "key", TOLD, "repr((self.board[1:], self.player))"),
    ("N", "key", "key", TOLD, "repr((self.board[:-1], self.player))"),
    ("RP", "repeat", "key", TOLD, "repr((self.board[:-1], self.player))"),
    ("TCNRP", "key", "key", TOLD, "repr((sorted(map(str, self.board)), self.player))"),
    ("TCNRP", "key-range process", "key", INT, "hash(told)"),
    ("TCNRP", "clone", "key", INT, "id(self)"),
    # encode
    ("TC", "one-view", "encode", f"self.side(self.player), {THEIRS}", "self.side(0), self.side(1)"),
    ("TCNRP", "encode-type", "encode", ARRAY, "np.array(sides)"),
    ("TCNRP", "encode-type", "encode", SHAPED, ""),
    ("TCNRP", "encode-type", "encode", f"{ARRAY}{SHAPED}", "sides"),
    ("TCR", "hidden", "encode", THEIRS, "self.side(self.player)"),
    ("N", "hidden", "encode", "return self.board\n", "return [*self.board[:2], 0]\n"),
    ("R", "hidden", "encode", "self.board[player], self.board[2]", "self.board[player], 0"),
    ("P", "look", "encode", "if player == self.player else -1", "if False else -1"),
    ("P", "view", "encode", "if player == self.player else -1", "if player != self.player else -1"),
    ("P", "view", "encode", " if player == self.player else -1", ""),
    ("TCNRP", "replay asking", "encode", "        sides =", "        self.board.sort(key=str)\n        sides ="),
    ("TC", "encode-finite", "encode", "owner == player for", "np.nan if owner is None else owner == player for"),
    # legal_actions
    ("T", "repeat", "legal_actions", f"[{FREE} self.board[cell] is None]", "list(range(9))"),
    ("C", "exception", "play() raised ValueError", f"[{FALL} self.board[column] is None]", "[0, 1, 2]"),
    ("N", "length", "legal_actions", "for more in range(self.board[heap])", "for more in range(3)"),
    ("T", "legal-order", "legal_actions", FREE, "cell for cell in (4, 0, 2, 6, 8, 1, 3, 5, 7) if"),
    ("C", "legal-order", "legal_actions", FALL, "column for column in (1, 0, 2) if"),
    ("RP", "legal-order", "legal_actions", ACTIONS, "[1, 0]"),
    ("RP", "legal-type", "legal_actions", ACTIONS, "np.arange(2)"),
    ("T", "legal-type", "legal_actions", f"[{FREE}", "[self.board[cell] is None for cell in range(9) if True or"),
    ("T", "legal-range", "legal_actions", FREE, "cell + 1 for cell in range(9) if"),
    ("RP", "legal-range", "legal_actions", ACTIONS, "[1, 2]"),
    ("T", "legal-none", "legal_actions", FREE, "cell for cell in range(8) if"),
    ("C", "legal-none", "legal_actions", FALL, "column for column in range(2) if"),
    # attributes
    ("TN", "legal-range", "num_actions", "max_plies = 9,", "max_plies = 8,"),
    ("TC", "length", "max_plies", "(2, 3, 3), 9", "(2, 3, 3), 8"),
    ("R", "length", "max_plies", "(2, 3, 1), 16", "(2, 3, 1), 8"),
    ("TC", "attributes", "obs_shape", "(2, 3, 3), 9", "(18,), 9"),
    # chance_outcomes
    ("R", "chance-sum", "chance_outcomes", EVEN, "[(0, 0.5), (1, 0.4)]"),
    ("R", "chance-type", "chance_outcomes", EVEN, "[0, 1]"),
    ("P", "chance-sum", "chance_outcomes", "1 / 6", "1"),
    # view_key
    ("P", "view", "view_key", f"{{self.{CARD}}}", ""),
    ("P", "view recall", "view_key", f"{CARD}}} {{self.board[1:]}}", f"{CARD}}} {{self.board[-1:]}}"),
    ("P", "exception", "view_key", " if self.board else ''", ""),
    ("P", "look", "view_key", CARD, "deals[self.board[0]] if self.board else ''"),
    ("P", "hidden", "view_key", "def view_key", "def views_key"),
    # any
    ("TC", "exception", "turn() raised NameError", "if {player} in rows", "if {playr} in rows"),
    ("TC", "exception", "turn() raised IndexError", "(2, 4, 6))", "(2, 4, 9))"),
]
CASES = [(edit, game) for edit in EDITS for game in edit[0]]


def test_the_five_games_are_right_and_the_wrong_ones_a_hundred() -> None:
    for game in GAMES.values():
        report = check_game(f"small_games:{game}", games=60, seconds=5)
        assert (report.failure, report.warnings) == (None, [])
        assert report.games
        assert report.elsewhere
    assert len(CASES) >= 100


@pytest.mark.parametrize(
    ("edit", "game"),
    [pytest.param(*case, marks=() if case[0][0][-1] == case[1] else pytest.mark.slow) for case in CASES],
    ids=[f"{edit[2]}-{game}" for edit, game in CASES],
)
def test_a_wrong_game_is_found_and_the_advice_names_its_place(
    edit: tuple[str, str, str, str, str],
    game: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, rules, place, right, wrong = edit
    assert right in SOURCE
    name = f"wrong_{EDITS.index(edit)}_{game}"
    (tmp_path / f"{name}.py").write_text(SOURCE.replace(right, wrong))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("azpy.checks.check_game._MOST_LINES", 1500)
    code = main([f"{name}:{GAMES[game]}", "--json", "--games", "60", "--seconds", "60"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    (finding,) = (one for one in findings if one["rule"] in rules.split(" "))
    assert code == (finding["kind"] == "fault")
    assert place in f"{finding['got']} {finding['expected']} {finding['advice']}"
