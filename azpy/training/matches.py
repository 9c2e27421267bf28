"""The matches of a run: its newest network against players that show whether it learns."""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from azpy.games.names import must_be_typed
from azpy.learning.export import to_onnx
from azpy.matches.arena import Player, RandomPlayer, SearchPlayer, mcts, play_match
from azpy.matches.openings import Book
from azpy.reports.report import make_report
from azpy.settings.toml import path_argument
from azpy.training.events import Event, Matched, Noticed
from azpy.training.fitting import learner_of
from azpy.training.generations import Generations
from azpy.training.loop import Context

_UNTRAINED = "untrained"  # the network that the run's seed gives, without a gradient step
OPPONENTS: dict[str, Callable[[], Player] | None] = {  # the weakest first; the run itself makes the untrained player
    "random": RandomPlayer,
    _UNTRAINED: None,
    "mcts-100": lambda: mcts(100),
    "mcts-1000": lambda: mcts(1000),
}


class Matches:
    """The matches of one run, between its newest network in `generations` and each opponent.

    Args:
        context: of the run.
        generations: its networks.
        search: of the network, see `match_search`.
        cores: threads of the networks that play.
    """

    def __init__(self, context: Context, generations: Generations, search: Mapping[str, Any], cores: int) -> None:
        self._context, self._generations, self._search, self._cores = context, generations, search, cores

    def play(self, iteration: int, to_beat: float | None, *, last: bool) -> Iterator[Event]:
        """The newest network against each opponent it has not met yet, on the same openings; then writes the report.

        Args:
            iteration: the newest.
            to_beat: the score to beat, if no iteration has a row of metrics.
            last: whether it is the last match of the run.
        """
        settings, run = self._context.settings, self._context.run
        with self._context.time.stage("matches"):
            rows = [row for row in run.metrics() if row["kind"] == "match" and row["iteration"] == iteration]
            # The last match is played after one on the way, too. Older versions do not tell them apart.
            met = {row["opponent"] for row in rows if not (last and row.get("match") == "on the way")}
            if due := [name for name in OPPONENTS if name not in met]:
                yield from self._meet(due, iteration, to_beat, last)
        sealed, title = run.sealed.iterations(), f"{settings.game}: {run.path.name}"
        games = run.sealed.read(sealed[-1]) if sealed else []
        run.replace("report.html", make_report(title, asdict(settings), run.metrics(), games, self._context.start))

    def _meet(self, due: Sequence[str], iteration: int, to_beat: float | None, last: bool) -> Iterator[Event]:
        context = self._context
        settings, run, budget, start = context.settings, context.run, context.budget, context.start
        begin, played = budget.elapsed(), 0
        games = budget.final_match_games() if last else settings.match_games
        # As az-match and servers take it from the run: that of the iteration which led to this network.
        if iterations := [row for row in run.metrics() if row["kind"] == "iteration"]:
            to_beat = iterations[-1].get("score_to_beat")

        def player(model: bytes) -> SearchPlayer:
            evaluator = self._generations.evaluator_for_matches(model, self._cores)
            return SearchPlayer(
                evaluator, settings.simulations_in_matches, **{**self._search, "score_to_beat": to_beat}
            )

        newest, unmet = player(self._generations.model), list[str]()
        book = Book(start, settings.match_opening_plies, settings.seed)
        for index, opponent in enumerate(due):
            if (make := OPPONENTS[opponent]) is not None:
                other = make()
            else:
                other = player(to_onnx(learner_of(settings, start, here=False).averaged))
            share = budget.match_seconds(begin, last=last) / (len(due) - index)
            until = time.monotonic() + share

            def seconds_left(until: float = until) -> float:
                return until - time.monotonic()

            result = play_match(book, newest, other, games, settings.seed, seconds_left)
            if result is None:
                unmet.append(opponent)
                continue
            played += result.games
            row = {"kind": "match", "iteration": iteration, "opponent": opponent} | result.figures()
            row |= {"simulations": settings.simulations_in_matches, "seconds": budget.elapsed()}
            context.note(row if last else row | {"match": "on the way"})
            yield Matched(iteration, opponent, result)
        if unmet and last:
            command = shlex.join(["az-match", path_argument(run.path), unmet[-1].replace("-", ":")])
            typed = f" --game {shlex.quote(settings.game)}" if must_be_typed(settings.game) else ""
            round_of = {1: "a game", 2: "two games"}.get(seats := start.num_players, f"{seats} games")
            yield Noticed(f"no time was left for {round_of} against {', '.join(unmet)}; later: {command}{typed}")
        if len(due) == len(OPPONENTS):
            budget.note_match(budget.elapsed() - begin, max(1.0, played / len(due)))
