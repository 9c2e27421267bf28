"""`az-match A B`: which of two players is stronger, and by how much; `az-match RUN --round-robin`: a run's Elo curve.

A player is a run folder (its newest checkpoint), a checkpoint folder, a model.onnx file, random, mcts:N (plain Monte
Carlo tree search with N simulations a move), uniform:N (search without a network) or another program (see below);
PATH@N searches with N simulations.

A player that searches takes settings of its own after a "?", with "&" between them. Quote them for the shell:

    az-match "runs/a?c_puct=1" "runs/a?c_puct=2&simulations=200"
    az-match "runs/a@200?solver=false" "mcts:1000?c_puct=1"

The keys are options of the search:
{keys}.
@N and :N come before the "?" and mean simulations=N: give one of them. With gumbel_actions, gumbel_scale is 0 unless
given. A player's own settings go before --simulations and --c-puct.

Another program is its protocol and its command line, which no shell reads: gtp: for Go and Othello, uci: for chess,
ugi: for any game.

    az-match runs/go "gtp:gnugo --mode gtp --level 10 --chinese-rules --positional-superko --capture-all-dead"
    az-match runs/chess "uci:stockfish?UCI_Elo=1500&movetime=0.1"
    az-match runs/othello "gtp:gtp-rhino --level=3"
    az-match runs/hex "ugi:./mine --threads 1?nodes=1000"

After the last "?" come nodes (a move), movetime (seconds a move), timeout (seconds for an answer, beside movetime),
start_timeout (seconds until the program is ready) and the program's own options, which GTP has not. A program of UCI or
UGI without nodes and movetime gets --simulations as nodes. Each game has a process of its own. Our rules decide: a
program that ends, is late, or plays what is not legal loses the game. The result names the program and the file that
holds what was said, and the match goes on with a fresh process.

Games are played as pairs: the same opening from both seats, with the same dice. Score, Elo and their 95 %
intervals are computed from the pairs (the pentanomial model: azpy/matches/ratings.py names
the formulas and their sources). Ctrl-C prints the result so far.
"""

import argparse
import json
import math
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

from azpy.cli.common import Parser, command, not_empty
from azpy.cli.progress import Screen
from azpy.devices import parse_devices
from azpy.errors import SettingsError
from azpy.games.names import make_position, refuse_untyped
from azpy.machine import usable_cores
from azpy.matches.arena import MATCH_SLOTS, Fault, Follower, MatchResult, Pair, play_pairs
from azpy.matches.openings import Book, draw_at_random, draw_from
from azpy.matches.players import Entrant, Spec, checkpoints_of, load_players, parse_player, settings_of
from azpy.matches.programs import MOST_SLOTS, Transcripts
from azpy.matches.query import SEARCH_KEYS
from azpy.matches.ratings import PAIR_SCORES, Sprt, bradley_terry
from azpy.runs import storage
from azpy.settings.run import Settings, checked

_KEYS = textwrap.fill(", ".join(SEARCH_KEYS), 118)
_MATCH_GAMES, _PAIRING_GAMES = 200, 40
_LIVE_SECONDS = 0.25  # how often a terminal shows the score so far
_MOST_FAULTS = 3  # kinds of fault a player that a result names; the JSON has more
_MOST_JSON_FAULTS = 20


def _match(arguments: Sequence[str]) -> int:
    parser = Parser("az-match", (__doc__ or "").format(keys=_KEYS))
    add = parser.add_argument
    add("players", nargs="+", type=not_empty, metavar="PLAYER", help="two players, or a run folder (see above)")
    text = "NAME, 'NAME(key=1,key=2)', module:Class or open_spiel:NAME (default: that of the run folder named)"
    add("--game", type=not_empty, help=text)
    text = f"an even number (default {_MATCH_GAMES}; {_PAIRING_GAMES} a pairing in a round robin)"
    add("--games", type=int, help=text)
    add("--simulations", type=int, default=100, help="a move, for players that do not say (default 100)")
    add("--c-puct", type=float, help="weight of the prior of every model (default: match_c_puct of its run)")
    text = "where models run: cpu, cuda, cuda:N, tensorrt, tensorrt:N, or auto for the best that loads (default cpu)"
    add("--device", default="cpu", help=text)
    text = f"games in play at a time (default {MATCH_SLOTS}; two a core where another program plays)"
    add("--slots", type=int, help=text)
    text = "where programs that misbehave leave what was said (default: a new folder for temporary files)"
    add("--transcripts", type=Path, metavar="FOLDER", help=text)
    add("--opening-plies", type=int, help="actions before each pair of games (default: the run's, else 4)")
    add("--openings", choices=("random", "policy"), default="random", help="drawn by chance, or by a model's policy")
    add("--seed", type=int, default=0, help="fixes openings, dice and players (default 0)")
    add("--elo0", type=float, help="stop once it is clear whether A is ELO0 or ELO1 stronger; needs --elo1 (SPRT)")
    add("--elo1", type=float, help="the other end of the SPRT")
    add("--alpha", type=float, help="how often the SPRT may say ELO1 where ELO0 is true (default 0.05)")
    add("--beta", type=float, help="how often the SPRT may say ELO0 where ELO1 is true (default 0.05)")
    text = "the checkpoints of one run against each other and the other players"
    add("--round-robin", action="store_true", help=text)
    add("--checkpoints", type=int, help="take this many of the run's checkpoints, evenly (default: all)")
    add("--json", action="store_true", help="print the result as JSON, and nothing else")
    given = parser.parse_args(arguments)
    return _round_robin(given) if given.round_robin else _one_match(given)


class _Table:
    """The game, the openings and the players that all matches of a command share."""

    def __init__(self, given: argparse.Namespace, specs: Sequence[Spec], games: int) -> None:
        self.games = given.games if given.games is not None else games
        if self.games < 2 or self.games % 2:
            raise SettingsError(f"games must be an even number, got {self.games}: each opening is played twice")
        run = settings_of(specs)
        self.game: str = given.game or (run.game if run is not None else "")
        if not self.game:
            raise SettingsError("which game? no player is from a run folder that would say: give --game")
        run_folder = next((spec.run for spec in specs if spec.run is not None), None)
        refuse_untyped(self.game, given.game, run_folder, "the match", "--game {}")
        c_puct = None if given.c_puct is None else checked("c_puct", given.c_puct)
        plies = (run or Settings).match_opening_plies if given.opening_plies is None else given.opening_plies
        start = make_position(self.game)
        if parse_devices(given.device)[0].kind != "cpu" and all(spec.model is None for spec in specs):
            raise SettingsError(f"device {given.device}: no player has a model that could run there")
        if given.slots is not None and not 2 <= given.slots <= MOST_SLOTS:
            raise SettingsError(f"slots must be from 2 to {MOST_SLOTS}, got {given.slots}")
        self._slots: int | None = given.slots
        transcripts = Transcripts(given.transcripts)
        self.entrants = load_players(specs, start, given.simulations, c_puct, given.device, transcripts)
        self.networks = [entrant.network for entrant in self.entrants if entrant.network is not None]
        self.seed, self.openings = checked("seed", given.seed), given.openings
        if given.openings == "policy" and not self.networks:
            raise SettingsError("openings by policy need a player with a model: use --openings random")
        draw = draw_from(self.networks[0]) if given.openings == "policy" else draw_at_random
        self.book = Book(lambda: make_position(self.game), plies, self.seed, draw)

    def facts(self, pairs: int) -> dict[str, Any]:
        """The facts that readers need to play a result of so many pairs again."""
        facts = {"game": self.game, "opening_plies": self.book.plies, "openings": self.openings, "seed": self.seed}
        facts["device"] = self.networks[0].device if self.networks else None
        # The book holds more openings than pairs if a match was stopped early.
        return facts | {"distinct_openings": min(len(self.book), pairs)}

    def slots(self, *players: Entrant) -> int:
        """Games in play at a time. Programs take turns with their opponents, so half of the games think."""
        if self._slots is not None:
            return self._slots
        programs = any(isinstance(one.player, Follower) for one in players)
        return min(2 * usable_cores(), MOST_SLOTS) if programs else MATCH_SLOTS

    def begin(self, said: str, display: Screen) -> None:
        """Prints the first lines; they say where models run unless it is the CPU."""
        lines = [f"{self.game}: {said}"]
        for network in self.networks[:1]:
            if network.device != "cpu" or network.notes:
                lines += [f"models run on: {network.description}", *network.notes]
        display.line("\n".join(lines))


def _one_match(given: argparse.Namespace) -> int:
    if len(given.players) != 2:
        raise SettingsError(f"a match has two players, got {len(given.players)} (or give --round-robin)")
    if given.checkpoints is not None:
        raise SettingsError("--checkpoints belongs to --round-robin")
    sprt = _sprt(given)
    table = _Table(given, [parse_player(text) for text in given.players], _MATCH_GAMES)
    a, b = table.entrants
    with Screen(given.json) as display:
        table.begin(f"A is {a}, B is {b}", display)
        pairs, stopped = _play(table, a, b, sprt, display)
    result = MatchResult.of(pairs) if pairs else None
    if given.json:
        report = _facts_of(result, sprt) if result else {"games": 0}
        facts = {"a": str(a), "b": str(b)} | table.facts(len(pairs)) | report | {"interrupted": stopped}
        print(json.dumps(facts), flush=True)
    else:
        print("\n".join(_report(result, table, sprt, stopped)), flush=True)
    return 130 if stopped else 0


def _sprt(given: argparse.Namespace) -> Sprt | None:
    numbers = {name: value for name in ("elo0", "elo1", "alpha", "beta") if (value := getattr(given, name)) is not None}
    if not numbers:
        return None
    if not {"elo0", "elo1"} <= numbers.keys():
        raise SettingsError(
            "--elo0, --elo1, --alpha and --beta belong to a sequential test, which needs both --elo0 and --elo1"
        )
    if given.round_robin:
        raise SettingsError("a round robin has no sequential test: --elo0 and --elo1 are for two players")
    return Sprt(**numbers)


def _play(
    table: _Table, a: Entrant, b: Entrant, sprt: Sprt | None, display: Screen, prefix: str = ""
) -> tuple[list[Pair], bool]:
    """The played pairs, and whether Ctrl-C ended the match."""
    pairs: list[Pair] = []
    counts = [0] * len(PAIR_SCORES)
    told: set[int] = set()
    slots = table.slots(a, b)
    try:
        with closing(play_pairs(table.book, a.player, b.player, table.games // 2, table.seed, slots)) as played:
            for pair in played:
                pairs.append(pair)
                for index, (player, faults) in enumerate(zip((a, b), pair.faults, strict=True)):
                    if faults and index not in told:  # the first one at once; the result has the others
                        told.add(index)
                        display.line(_fault_line(player.name, faults[:1]))
                _show(display, prefix, pairs, table.games // 2, sprt)
                counts[PAIR_SCORES.index(pair.score)] += 1
                if sprt is not None and sprt.accepts(counts):
                    break
    except KeyboardInterrupt:
        return pairs, True
    return pairs, False


def _report(result: MatchResult | None, table: _Table, sprt: Sprt | None, stopped: bool) -> list[str]:
    if result is None:
        return ["stopped before the first pair of games was over"]
    pairs, (low, high) = result.games // 2, result.interval
    openings, plies = table.facts(pairs)["distinct_openings"], table.book.plies
    lines = ["stopped; the result so far:"] if stopped else []
    lines += [
        f"score of A: {result.score:.3f} [{low:.3f}, {high:.3f}], Elo {_elo_text(result)} "
        "(95 % intervals, from the pairs)",
        f"{result.games} games: won {result.wins}, drew {result.draws}, lost {result.losses}; "
        f"as seat 0 {_seat(result.first)}, as seat 1 {_seat(result.second)}",
        *_outcome(result),
        f"pairs in which A scored 0, 1/2, 1, 3/2, 2 points: {', '.join(map(str, result.pairs))}",
        f"{result.distinct} distinct games from {openings} distinct opening{'s' * (openings != 1)} "
        f"of {plies} {table.openings} {'ply' if plies == 1 else 'plies'}",
    ]
    lines += _repeated(result.repeated, pairs)
    lines += [_fault_line(side, faults) for side, faults in zip("AB", result.faults, strict=True) if faults]
    if sprt is None:
        return lines
    zero, one = _stronger(sprt.elo0), _stronger(sprt.elo1)
    said = {
        "H1": f"accepts H1: A is {one} rather than {zero}",
        "H0": f"accepts H0: A is {zero} rather than {one}",
        None: f"is undecided whether A is {zero} or {one}: play more games",
    }[sprt.accepts(result.pairs)]
    figures = "log likelihood ratio {:.2f}, bounds {:.2f} and {:.2f}".format(sprt.llr(result.pairs), *sprt.bounds)
    return [*lines, f"SPRT {said} ({figures})"]


def _outcome(result: MatchResult) -> list[str]:
    if not result.has_grades:
        return []
    interval = result.outcome_interval
    text = "" if interval is None else " [{:+.3f}, {:+.3f}]".format(*interval)
    return [f"outcome of A: {result.outcome:+.3f}{text} a game; a win of this game is worth up to 1"]


def _repeated(repeated: int, pairs: int) -> list[str]:
    if not repeated:
        return []
    text = f"{repeated} of {pairs} pairs repeat an earlier one, action for action: intervals are narrower than they "
    return [text + "should be; --opening-plies with a larger number gives more openings"]


def _fault_line(who: str, faults: Sequence[Fault]) -> str:
    """What a program did wrong, the most frequent things first."""
    games = sum(fault.forfeit for fault in faults)
    lost = f"lost {games} game{'s' * (games != 1)} by rule" if games else "lost no game by rule"
    kinds = Counter(fault.text for fault in faults).most_common()
    texts = [f"{count} times: {text}" if count > 1 else text for text, count in kinds[:_MOST_FAULTS]]
    texts += [f"{len(kinds) - _MOST_FAULTS} more kinds"] * (len(kinds) > _MOST_FAULTS)
    transcript = next((fault.transcript for fault in faults if fault.transcript), None)
    return f"{who} {lost}: it {'; it '.join(texts)}" + (f" (transcript {transcript})" if transcript else "")


def _stronger(difference: float) -> str:
    if difference == 0:
        return "as strong as B"
    return f"{abs(difference):g} Elo {'stronger' if difference > 0 else 'weaker'} than B"


def _facts_of(result: MatchResult, sprt: Sprt | None = None) -> dict[str, Any]:
    """A result for JSON; an infinite end of the Elo interval is null."""
    names = ("games", "wins", "draws", "losses", "score", "elo", "pairs")
    facts: dict[str, Any] = {name: getattr(result, name) for name in names}
    facts["low"], facts["high"] = result.interval
    facts["elo_low"], facts["elo_high"] = (value if math.isfinite(value) else None for value in result.elo_interval)
    facts["outcome"] = result.outcome
    facts["outcome_low"], facts["outcome_high"] = result.outcome_interval or (None, None)
    facts |= {"as_seat_0": result.first, "as_seat_1": result.second}
    facts |= {"distinct_games": result.distinct, "repeated_pairs": result.repeated, "forfeits": result.forfeits}
    facts["faults"] = [[asdict(fault) for fault in faults[:_MOST_JSON_FAULTS]] for faults in result.faults]
    if sprt is not None:
        found = {"llr": sprt.llr(result.pairs), "bounds": sprt.bounds, "accepted": sprt.accepts(result.pairs)}
        facts["sprt"] = asdict(sprt) | found
    return facts


def _round_robin(given: argparse.Namespace) -> int:
    _sprt(given)
    if given.checkpoints is not None and given.checkpoints < 2:
        raise SettingsError(f"checkpoints must be at least 2, got {given.checkpoints}")
    runs = [text for text in given.players if (Path(text) / "config.toml").is_file()]
    if len(runs) != 1:
        raise SettingsError(
            f"a round robin is that of one run folder, got {len(runs)} (give it without @ and ?; others may join)"
        )
    specs: list[Spec] = []
    for text in given.players:
        specs += checkpoints_of(Path(text), given.checkpoints) if text in runs else [parse_player(text)]
    if len(specs) < 2:
        raise SettingsError(f"a round robin has at least two players, {runs[0]} has one checkpoint so far")
    table = _Table(given, specs, _PAIRING_GAMES)
    names = [str(entrant) for entrant in table.entrants]
    results: list[tuple[int, int, MatchResult]] = []
    # Neighbours first: after Ctrl-C the matches so far connect all players that have played.
    order = sorted(combinations(range(len(names)), 2), key=lambda pairing: (pairing[1] - pairing[0], pairing))
    with Screen(given.json) as display:
        table.begin(f"{len(names)} players, {len(order)} pairings of {table.games} games", display)
        for number, (i, j) in enumerate(order, start=1):
            prefix = f"[{number}/{len(order)}] {names[i]} against {names[j]}"
            pairs, stopped = _play(table, table.entrants[i], table.entrants[j], None, display, prefix)
            if stopped:
                break
            results.append((i, j, MatchResult.of(pairs)))
            display.line(f"{prefix}: {results[-1][2]}")
            for index, faults in zip((i, j), results[-1][2].faults, strict=True):
                if faults:
                    display.line(_fault_line(names[index], faults))
    curve = _curve(table, specs, results)
    repeated = _repeated(sum(result.repeated for *_, result in results), len(results) * table.games // 2)
    text = "\n".join([*_ratings_table(curve["ratings"]), *repeated])
    print(json.dumps(curve | {"interrupted": stopped}) if given.json else text, flush=True)
    ending = "stopped: these are the ratings so far, and elo.json was not written"
    if not stopped:
        path = Path(runs[0]) / "elo.json"
        with storage.disk_errors(path):
            storage.write_atomically(path, (json.dumps(curve, indent=1) + "\n").encode())
        ending = f"Elo curve in {path}"
    print("" if given.json else f"{ending}\n", end="", flush=True)
    return 130 if stopped else 0


def _curve(table: _Table, specs: Sequence[Spec], results: Sequence[tuple[int, int, MatchResult]]) -> dict[str, Any]:
    """The content of elo.json."""
    names = [str(entrant) for entrant in table.entrants]
    met = 1 + max((j for _, j, _ in results), default=0)
    ratings = bradley_terry(met, [(i, j, result.pairs) for i, j, result in results])
    rows = []
    for index, rating in enumerate(ratings):
        own = [r.score if i == index else 1 - r.score for i, j, r in results if index in (i, j)]
        folder = (specs[index].model or Path()).parent.name
        iteration = int(folder) if re.fullmatch("[0-9]+", folder) else None
        score = {"score": sum(own) / len(own) if own else None, "games": len(own) * table.games}
        rows.append({"player": names[index], "iteration": iteration} | asdict(rating) | score)
    matches = [{"a": names[i], "b": names[j]} | _facts_of(result) for i, j, result in results]
    return table.facts(table.games // 2) | {"ratings": rows, "matches": matches}


def _ratings_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    width = max(len(row["player"]) for row in rows)
    lines = [f"{'player':{width}}  {'Elo':>6}  {'95 % interval':>16}  {'score':>6}  {'games':>6}"]
    for row in rows:
        interval = "the zero" if row is rows[0] else f"{row['low']:+.0f} to {row['high']:+.0f}"
        score = "" if row["score"] is None else f"{row['score']:.3f}"
        lines.append(f"{row['player']:{width}}  {row['elo']:>+6.0f}  {interval:>16}  {score:>6}  {row['games']:>6}")
    return lines


def _elo_text(result: MatchResult) -> str:
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(result.elo, *result.elo_interval)


def _seat(counts: Sequence[int]) -> str:
    return f"{(counts[0] + counts[1] / 2) / max(sum(counts), 1):.3f} (+{counts[0]} ={counts[1]} -{counts[2]})"


def _show(display: Screen, prefix: str, pairs: Sequence[Pair], of: int, sprt: Sprt | None) -> None:
    """Shows the score so far, if it is time to."""
    if not display.is_due(_LIVE_SECONDS):
        return
    result = MatchResult.of(pairs)
    figures = [f"{result.games}/{2 * of} games"]
    if sprt is not None:  # first: a narrow terminal has no room for all figures
        low, high = sprt.bounds
        figures.append(f"LLR {sprt.llr(result.pairs):.2f} ({low:.2f} to {high:.2f})")
    display.progress(prefix, [*figures, str(result), f"Elo {_elo_text(result)}"], len(pairs) / of)


main = command("az-match", _match)

if __name__ == "__main__":
    sys.exit(main())
