"""Play a match between two players: score, Elo and 95 % intervals.

az-match runs/connect_four mcts:1000
az-match runs/a "runs/b@200?temperature=0.5" random --round-robin
az-match runs/connect_four --calibrate
"""

import argparse
import json
import re
from collections.abc import Sequence
from contextlib import closing, nullcontext
from functools import partial
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from azpy.cli.calibrate import CALIBRATION_GAMES, MINUTES, SIMULATIONS, calibrate
from azpy.cli.common import GAME, Parser, add_device, add_number, add_setting, command, not_empty
from azpy.cli.match_text import (
    facts_of,
    fault_line,
    figures,
    means_table,
    options_text,
    rating_facts,
    ratings_table,
    repeated_rounds,
    report,
    scores_table,
)
from azpy.cli.progress import Screen
from azpy.errors import RunError, SettingsError
from azpy.game import players_of
from azpy.games.names import make_game
from azpy.matches.arena import MATCH_SLOTS, Board, games_of, play_rounds
from azpy.matches.openings import Book, read_book
from azpy.matches.players import (
    Entrant,
    Spec,
    checkpoints_of,
    game_of,
    load_players,
    parse_player,
    settings_of,
    slots_for,
    warn_of_unused,
)
from azpy.matches.programs import MOST_SLOTS, Transcripts
from azpy.matches.ratings import PAIR_SCORES, Sprt, bradley_terry
from azpy.matches.results import MatchResult, Round
from azpy.matches.saved import SavedGames
from azpy.runs import storage
from azpy.settings.run import Settings

_MATCH_GAMES, _PAIRING_GAMES = 200, 40
_LIVE_SECONDS = 0.25  # how often a terminal shows the score so far


def _match(arguments: Sequence[str]) -> int:
    parser = Parser("az-match", __doc__, "docs/guides/measuring.md")
    text = "run, checkpoint, model file, mcts:N, uniform:N, random, bundled player, or a program"
    parser.add_argument("players", nargs="+", type=not_empty, metavar="PLAYER", help=text)
    add, rare = parser.section("Match")
    add("--game", type=not_empty, metavar="GAME", help=f"{GAME} (default: the run's)")
    counts = f"{_PAIRING_GAMES} per pairing, {CALIBRATION_GAMES} per level, all of --book"
    add_number(add, "--games", f"games per match (default: {_MATCH_GAMES}; {counts})", low=1)
    add_setting(add, "simulations", f"simulations per move, for players without a number (default: {SIMULATIONS})")
    add_device(add)
    add_number(rare, "--elo0", "stop once A is clearly X or --elo1 Elo stronger (SPRT)", kind=float)
    add_number(rare, "--elo1", "upper bound of the test; must be above --elo0", kind=float)
    add_setting(rare, "seed", "seed of openings, dice and players", 0)
    text = f"games in play at once (default: {MATCH_SLOTS}; with programs two per core)"
    add_number(rare, "--slots", text, low=2, high=MOST_SLOTS)
    text = "folder for transcripts of programs that misbehave (default: a temporary folder)"
    rare("--transcripts", type=Path, metavar="FOLDER", help=text)
    add("--json", action="store_true", help="print only the result, as JSON")
    add, rare = parser.section("Openings and games")
    add_number(add, "--opening-plies", "opening plies of each pair of games (default: the run's, else 4)", low=0)
    add("--book", type=Path, metavar="FILE", help="play openings from a .pgn, .epd, .sgf or text file")
    add("--save", type=Path, metavar="FILE", help="append the games to a .pgn, .sgf or .jsonl file")
    add, rare = parser.section("Tournaments")
    add("--round-robin", action="store_true", help="let every player meet every other")
    add_number(add, "--checkpoints", "use only N checkpoints of the run (default: all)", low=2)
    add, rare = parser.section("Levels")
    add("--calibrate", action="store_true", help="measure and store the levels of one run")
    add_number(add, "--minutes", f"longest time of --calibrate (default: {MINUTES:g})", kind=float, low=0, above=True)
    text = "player of known Elo that sets the scale of the levels"
    add("--anchor", type=not_empty, metavar="PLAYER", help=text)
    add_number(rare, "--anchor-elo", "Elo of --anchor (default: its UCI_Elo)", kind=float, low=-10_000, high=10_000)
    given = parser.parse_args(arguments)
    if given.anchor_elo is not None and given.anchor is None:
        raise SettingsError("--anchor-elo belongs to --anchor")
    if given.calibrate:
        return calibrate(given)
    for name in ("minutes", "anchor"):
        if getattr(given, name) is not None:
            raise SettingsError(f"--{name} belongs to --calibrate")
    return _round_robin(given) if given.round_robin else _one_match(given)


class _Table:
    """The game, the openings and the players that all pairings of a command share."""

    def __init__(self, given: argparse.Namespace, specs: Sequence[Spec], games: int) -> None:
        self.game, self.seed = game_of(specs, given.game, "--game {}"), given.seed
        self.start = start = make_game(self.game)
        if given.device.kind != "cpu" and all(spec.model is None for spec in specs):
            raise SettingsError(f"device {given.device}: no player of this match has a network")
        warn_of_unused(specs, vars(given), searches=not start.hides)
        simulations, transcripts = vars(given).get("simulations", SIMULATIONS), Transcripts(given.transcripts)
        self.entrants = load_players(specs, start, simulations, given.device, transcripts)
        self.networks = [entrant.network for entrant in self.entrants if entrant.network is not None]
        self._slots: int | None = given.slots
        self.games = games_of(start, given.games, games)
        if start.hides and given.book is not None:
            raise SettingsError(
                f"--book: {start.game} hides something, so each pair gets a deal by chance: leave it out"
            )
        if given.book is not None:
            most = None if given.games is None else self.rounds
            self.book = read_book(given.book, start, self.seed, given.opening_plies, most)
            if given.games is None:
                self.games = start.num_players * len(self.book)
        else:
            plies = given.opening_plies
            # Where something is hidden, random plies are most of a short game, and the deals vary games enough.
            usual = 0 if start.hides else (settings_of(specs) or Settings).match_opening_plies
            plies = usual if plies is None else plies
            self.book = Book(start, plies, self.seed)
        timed = any(spec.program is not None and spec.program.movetime is not None for spec in specs)
        self.saved = None if given.save is None else SavedGames(given.save, start, self.seed, timed=timed)
        self.unsaved: RunError | None = None  # why games are not saved any more

    @property
    def rounds(self) -> int:
        """Of a match."""
        return self.games // self.start.num_players

    @property
    def unit(self) -> str:
        """What a round is called."""
        return "pair" if self.start.num_players == 2 else "round"

    def begin(self, said: str, display: Screen) -> None:
        """Prints the first lines; they say where models run unless it is the CPU."""
        display.line(f"{self.game}: {said}")
        alike = dict[str, list[str]]()  # players by the options of their search
        for entrant in self.entrants:
            alike.setdefault(options_text(entrant.search), []).append(entrant.name)
        for options, names in alike.items():
            if options:
                who = f"{len(names)} players search" if len({*names}) > 1 else f"{names[0]} searches"
                display.line(f"{who} with {options}")
        for network in self.networks[:1]:
            if network.device != "cpu" or network.notes:
                display.line("\n".join([f"models run on: {network.description}", *network.notes]))
        if self.book.left_out:
            display.line(f"{self.book.file}: skipped {self.book.left_out} openings that lead to earlier positions")

    def play(
        self, entrants: Sequence[Entrant], display: Screen, prefix: str = "", sprt: Sprt | None = None
    ) -> tuple[MatchResult | None, bool]:
        """The result, None before the first round is over, and whether Ctrl-C ended the match."""
        rounds, counts = list[Round](), [0] * len(PAIR_SCORES)
        players = [entrant.player for entrant in entrants]
        slots = slots_for(*players) if self._slots is None else self._slots
        ended = partial(self._save, names=[str(entrant) for entrant in entrants], display=display)
        told, stopped = set[int](), False
        try:
            with closing(play_rounds(self.book, players, self.rounds, self.seed, slots, ended=ended)) as played:
                for one in played:
                    rounds.append(one)
                    for index, (player, faults) in enumerate(zip(entrants, one.faults, strict=True)):
                        if faults and index not in told:  # the first one at once; the result has the others
                            told.add(index)
                            display.line(fault_line(player.name, faults[:1]))
                    if display.is_due(_LIVE_SECONDS):
                        found = figures(self._result(rounds), self.games, sprt)
                        display.progress(prefix, found, len(rounds) / self.rounds)
                    if sprt is not None:
                        counts[PAIR_SCORES.index(one.score)] += 1
                        if sprt.accepts(counts):
                            break
        except KeyboardInterrupt:
            stopped = True
        return self._result(rounds) if rounds else None, stopped

    def _result(self, rounds: Sequence[Round]) -> MatchResult:
        return MatchResult(tuple(rounds), self.start.zero_sum)

    def _save(self, boards: Sequence[Board], names: Sequence[str], display: Screen) -> None:
        """Saves games, if they are to be saved; once that fails, the match goes on without."""
        if self.saved is None or self.unsaved is not None:
            return
        try:
            self.saved.write(boards, *names)
        except RunError as error:
            self.unsaved = RunError(f"--save: {error} (the result counts all games; the file lacks the last ones)")
            display.line(f"--save: {error}; the match continues without saving")

    def facts(self, rounds: int) -> dict[str, Any]:
        """The facts that readers need to play a result of so many rounds again."""
        facts = {"game": self.game, "opening_plies": self.book.plies, "seed": self.seed}
        facts["book"] = None if self.book.file is None else str(self.book.file)
        facts["device"] = self.networks[0].device if self.networks else None
        if self.start.hides:
            facts |= {"hides": True, "payoff_unit": [*self.start.payoff_unit]}
        facts["search"] = {str(entrant): entrant.search for entrant in self.entrants if entrant.search}
        # The book holds more openings than rounds if a match was stopped early.
        return facts | {"distinct_openings": min(len(self.book), rounds)}

    def end(self, *, stopped: bool) -> int:
        """The exit code, once the result is shown.

        Raises:
            RunError: games could not be saved.
        """
        if self.unsaved is not None:
            raise self.unsaved
        return 130 if stopped else 0


def _one_match(given: argparse.Namespace) -> int:
    if len(given.players) != 2:
        raise SettingsError(f"a match has two players, got {len(given.players)} (--round-robin takes more)")
    if given.checkpoints is not None:
        raise SettingsError("--checkpoints belongs to --round-robin")
    sprt = _sprt(given)
    table = _Table(given, [parse_player(text) for text in given.players], _MATCH_GAMES)
    if sprt is not None and table.start.num_players != 2:
        has = f"{table.start.game} has {players_of(table.start)}"
        raise SettingsError(f"--elo0 and --elo1 test pairs of games between two players, and {has}: leave them out")
    a, b = table.entrants
    with table.saved or nullcontext(), Screen(given.json) as display:
        table.begin(f"A is {a}, B is {b}", display)
        result, stopped = table.play(table.entrants, display, sprt=sprt)
    facts = table.facts(0 if result is None else len(result.rounds))
    found = facts_of(result, sprt) if result else {"games": 0}
    found = {"a": str(a), "b": str(b)} | facts | found | {"interrupted": stopped}
    print(json.dumps(found) if given.json else "\n".join(report(result, facts, table.unit, sprt, stopped)), flush=True)
    return table.end(stopped=stopped)


def _sprt(given: argparse.Namespace) -> Sprt | None:
    if given.elo0 is None and given.elo1 is None:
        return None
    if given.elo0 is None or given.elo1 is None:
        raise SettingsError("a sequential test needs both --elo0 and --elo1")
    if given.round_robin:
        raise SettingsError("--elo0 and --elo1 test two players and do not work with --round-robin")
    return Sprt(given.elo0, given.elo1)


def _round_robin(given: argparse.Namespace) -> int:
    _sprt(given)
    runs = [text for text in given.players if (Path(text) / "config.toml").is_file()]
    run = runs[0] if len(runs) == 1 else None  # all its checkpoints play
    if given.checkpoints is not None and run is None:
        raise SettingsError(f"--checkpoints takes one run folder without @ and ?, got {len(runs)}")
    specs: list[Spec] = []
    for text in given.players:
        specs += checkpoints_of(Path(text), given.checkpoints) if text == run else [parse_player(text)]
    if len(specs) < 2:
        got = f"{given.players[0]} has one checkpoint so far" if run else f"got {len(specs)}"
        raise SettingsError(f"a round robin has at least two players, {got}")
    table = _Table(given, specs, _PAIRING_GAMES)
    with table.saved or nullcontext(), Screen(given.json) as display:
        curve, lines, stopped = (_alone if table.start.num_players == 1 else _each_against_each)(table, specs, display)
    if stopped:
        lines.append(f"stopped: these are the ratings so far{', and elo.json was not written' if run else ''}")
    print(json.dumps(curve | {"interrupted": stopped}) if given.json else "\n".join(lines), flush=True)
    if run is not None and not stopped:
        path = Path(run) / "elo.json"
        with storage.disk_errors(path):
            storage.write_atomically(path, (json.dumps(curve, indent=1) + "\n").encode())
        if not given.json:
            print(f"{'Elo curve' if table.start.num_players > 1 else 'mean scores'} in {path}", flush=True)
    return table.end(stopped=stopped)


def _each_against_each(table: _Table, specs: Sequence[Spec], display: Screen) -> tuple[dict[str, Any], list[str], bool]:
    """The content of elo.json, the lines of the tables, and whether Ctrl-C ended the pairings."""
    names = [str(entrant) for entrant in table.entrants]
    results: list[tuple[int, int, MatchResult]] = []
    # Among copies a player scores otherwise than alone: with more than two players each pairing has both ways.
    pairings = (combinations if table.start.num_players == 2 else permutations)(range(len(names)), 2)
    # Neighbours first: after Ctrl-C the matches so far connect all players that have played.
    order = sorted(pairings, key=lambda pairing: (abs(pairing[1] - pairing[0]), pairing))
    table.begin(f"{len(names)} players, {len(order)} pairings of {table.games} games", display)
    for number, (i, j) in enumerate(order, start=1):
        prefix = f"[{number}/{len(order)}] {names[i]} against {names[j]}"
        result, stopped = table.play([table.entrants[i], table.entrants[j]], display, prefix)
        if stopped or result is None:
            break
        results.append((i, j, result))
        display.line(f"{prefix}: {result}")
        for index, faults in zip((i, j), result.faults, strict=True):
            if faults:
                display.line(fault_line(names[index], faults))
    curve = _curve(table, specs, results)
    lines = [*scores_table(names, results), *ratings_table(curve["ratings"])]
    repeated, facts = sum(result.repeated for *_, result in results), table.facts(table.rounds)
    return curve, lines + repeated_rounds(repeated, len(results) * table.rounds, facts, table.unit), stopped


def _curve(table: _Table, specs: Sequence[Spec], results: Sequence[tuple[int, int, MatchResult]]) -> dict[str, Any]:
    """The content of elo.json."""
    names = [str(entrant) for entrant in table.entrants]
    met = 1 + max((max(i, j) for i, j, _ in results), default=0)
    copies = table.start.num_players - 1
    ratings = bradley_terry(met, [(i, j, result.counts) for i, j, result in results], copies)
    rows = []
    for index, rating in enumerate(ratings):
        mine = [(i, r) for i, j, r in results if i == index or (copies == 1 and j == index)]
        own = [r.score if i == index else 1 - r.score for i, r in mine]
        score = {"score": sum(own) / len(own) if own else None, "games": len(own) * table.games}
        rows.append({"player": names[index], "iteration": _iteration(specs[index])} | rating_facts(rating) | score)
    matches = [{"a": names[i], "b": names[j]} | facts_of(result) for i, j, result in results]
    return table.facts(table.rounds) | {"ratings": rows, "matches": matches}


def _alone(table: _Table, specs: Sequence[Spec], display: Screen) -> tuple[dict[str, Any], list[str], bool]:
    """The same for a game of one player: all play the same games, and mean scores take the place of ratings."""
    table.begin(f"{len(specs)} players, {table.games} games each, with the same openings and dice", display)
    result, stopped = table.play(table.entrants, display)
    if result is None:
        return table.facts(0) | {"ratings": []}, [], stopped
    rows, facts = list[dict[str, Any]](), table.facts(len(result.rounds))
    for index, (entrant, spec) in enumerate(zip(table.entrants, specs, strict=True)):
        score, interval = result.outcome_of(index)
        low, high = interval or (None, None)
        rows.append({"player": str(entrant), "iteration": _iteration(spec), "score": score, "low": low, "high": high})
    lines = [*means_table(rows), *repeated_rounds(result.repeated, len(result.rounds), facts, table.unit)]
    return facts | {"games": result.games, "ratings": rows}, lines, stopped


def _iteration(spec: Spec) -> int | None:
    """Of a player that is a checkpoint of a run."""
    folder = (spec.model or Path()).parent.name
    return int(folder) if re.fullmatch("[0-9]+", folder) else None


main = command("az-match", _match)
