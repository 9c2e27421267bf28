"""The matches of a run: its newest network against players that show whether it learns."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from azpy.games.names import must_be_typed
from azpy.learning.export import to_onnx
from azpy.matches.arena import Player, RandomPlayer, SearchPlayer, mcts, play_match
from azpy.matches.openings import Book
from azpy.settings.run import match_search
from azpy.settings.toml import path_argument
from azpy.training.events import Event, Matched, Noticed
from azpy.training.fitting import learner_of
from azpy.training.generations import Generations
from azpy.training.loop import Loop

_SHORT_GAMES = 8  # of a short match against each opponent: nearly as fast as one game, since they share batches
_UNTRAINED = "untrained"  # the network that the run's seed gives, without a gradient step
_LAST_ONLY = ("random", _UNTRAINED)
OPPONENTS: dict[str, Callable[[], Player] | None] = {  # the weakest first; the run itself makes the untrained player
    "random": RandomPlayer,
    _UNTRAINED: None,
    "mcts-100": lambda: mcts(100),
    "mcts-1000": lambda: mcts(1000),
}


def play_matches(loop: Loop, generations: Generations, cores: int, *, last: bool) -> Iterator[Event]:
    """Play the newest network against each opponent it has not met yet, on the same openings; then write the report.

    A short match, which the user did not order with `match_every`, is only against plain search. The networks play on
    `cores` threads; `last` marks the last match of the run.
    """
    with loop.time.stage("matches"):
        rows = [row for row in loop.folder.metrics() if row["kind"] == "match" and row["iteration"] == loop.iteration]
        # The last match is played after one on the way, too.
        met = {row["opponent"] for row in rows if not (last and row.get("match") == "on the way")}
        short = not last and loop.settings.match_every is None
        if due := [name for name in OPPONENTS if name not in met and not (short and name in _LAST_ONLY)]:
            yield from _meet(loop, generations, cores, due, last, short)
        loop.write_report()


def _meet(
    loop: Loop, generations: Generations, cores: int, due: Sequence[str], last: bool, short: bool
) -> Iterator[Event]:
    settings, folder, budget, start = loop.settings, loop.folder, loop.budget, loop.start
    begin, played, to_beat = budget.elapsed(), 0, loop.ranked.score_to_beat
    games = budget.final_match_games() if last else _SHORT_GAMES if short else settings.match_games
    # As az-match and servers take it from the run: that of the iteration which led to this network.
    if iterations := [row for row in folder.metrics() if row["kind"] == "iteration"]:
        to_beat = iterations[-1].get("score_to_beat")
    search = match_search(settings, start) | {"score_to_beat": to_beat}

    def player(model: bytes) -> SearchPlayer:
        evaluator = generations.evaluator_for_matches(model, cores)
        return SearchPlayer(evaluator, settings.simulations_in_matches, **search)

    newest, unmet = player(generations.model), list[str]()
    book = Book(start, settings.match_opening_plies, settings.seed)
    for index, opponent in enumerate(due):
        if (make := OPPONENTS[opponent]) is not None:
            other = make()
        else:
            other = player(to_onnx(learner_of(settings, start, here=False).averaged))
        # A short match has time for few games, so whichever opponent needs more of it takes it.
        until = time.monotonic() + budget.match_seconds(begin, last=last) / (1 if short else len(due) - index)
        result = play_match(book, newest, other, games, settings.seed, partial(_seconds_until, until))
        if result is None:
            unmet.append(opponent)
            continue
        played += result.games
        row = {"kind": "match", "iteration": loop.iteration, "opponent": opponent} | result.figures()
        row |= {"simulations": settings.simulations_in_matches, "seconds": budget.elapsed()}
        loop.note(row if last else row | {"match": "on the way"})
        yield Matched(loop.iteration, opponent, result)
    if unmet and last:
        command = shlex.join(["az-match", path_argument(folder.path), unmet[-1].replace("-", ":")])
        typed = f" --game {shlex.quote(settings.game)}" if must_be_typed(settings.game) else ""
        round_of = {1: "a game", 2: "two games"}.get(seats := start.num_players, f"{seats} games")
        yield Noticed(f"no time was left for {round_of} against {', '.join(unmet)}; later: {command}{typed}")
    all_met = len(due) == len(OPPONENTS)
    budget.note_match(budget.elapsed() - begin, max(1.0, played / len(due)) if all_met else 0.0)


def _seconds_until(moment: float) -> float:
    return moment - time.monotonic()
