"""The playing part of a worker, whichever way its messages come: networks, self-play, and the ids that it has."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from azpy import _core
from azpy.errors import RunError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet.examine import MOST_BYTES
from azpy.fleet.fleet import answers_of
from azpy.fleet.wire import MOST_OF_A_PART
from azpy.games.names import make_position
from azpy.playing.selfplay import open_self_play
from azpy.settings import Settings

__all__ = ["MOST_GAMES", "Player", "in_parts"]

MOST_GAMES = 64  # that are taken at once

Network = Mapping[str, str | None]  # `sha256` and `precision`, as `Desk.lineup` names a network


class Player:
    """Plays the ids that it is given.

    Args:
        settings: of this worker's part of the run.
        model_of: the file of the network with this SHA-256.

    Attributes:
        in_hand: games that were admitted and that `finished` has not returned.
        paused: whether self-play holds.

    Raises:
        GameError: no such game.
    """

    def __init__(self, settings: Settings, model_of: Callable[[str], bytes]) -> None:
        self.in_hand, self.paused = 0, False
        self.start = make_position(settings.game)
        self._settings, self._model_of = settings, model_of
        self._evaluators: dict[tuple[str | None, str | None], Any] = {}  # of this lineup
        self._self_play: _core.SelfPlay | None = None
        self._past = Counter[str](), Counter[str]()  # totals of the self-play of lineups before

    def play(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Begins with a lineup; in a deterministic run the games of the lineup before are let go.

        Args:
            message: of the head, see `Desk.message`.

        Returns:
            What the head checks: `row_exact`, and `answers`: a digest of each network's, see `answers_of`.
        """
        lineup: list[Network] = [message["network"], *message["opponents"]]
        resign_below, simulations = message["resign_below"], message["simulations"]
        self._evaluators = {(one["sha256"], one["precision"]): self._evaluator(one) for one in lineup}
        first, *others = ([self._evaluators[one["sha256"], one["precision"]]] for one in lineup)
        if self._self_play is not None and self._settings.deterministic:
            self.close()
        if self._self_play is None:
            self._self_play = open_self_play(
                self._settings, self.start, first, 0, 0, resign_below=resign_below, opponents=others
            )
        else:
            self._self_play.swap(first)
            self._self_play.set_opponents(others)
            self._self_play.set_resign_below(resign_below)
        if simulations is not None:
            self._self_play.set_simulations(simulations)
        self.resume()
        exact = all(getattr(evaluator, "row_exact", True) for evaluator in self._evaluators.values())
        return {"row_exact": exact, "answers": [answers_of(evaluator) for evaluator in self._evaluators.values()]}

    def _evaluator(self, network: Network) -> Any:
        sha256, precision = network["sha256"], network["precision"]
        if sha256 is None:
            return _core.UniformEvaluator()
        if (sha256, precision) in self._evaluators:
            return self._evaluators[sha256, precision]
        settings = self._settings
        options: dict[str, Any] = {"game": self.start, "precision": precision, "batch": settings.device_batch}
        return OnnxEvaluator(self._model_of(sha256), settings.device, **options)

    def admit(self, ids: Iterable[Sequence[int]]) -> None:
        """Plays ids: ranges, each as its first id and how many."""
        if self._self_play is None:
            raise RuntimeError("there is no lineup yet")
        for first, count in ids:
            self._self_play.admit(first, count)
            self.in_hand += count

    @property
    def busy(self) -> bool:
        """Whether games are in play."""
        return self._self_play is not None and self.in_hand > 0 and not self.paused

    def finished(self, seconds: float) -> list[_core.GameRecord]:
        """Finished games, `MOST_GAMES` at most; waits so long for the first one."""
        games = [] if self._self_play is None else self._self_play.take_finished(MOST_GAMES, seconds=seconds)
        self.in_hand -= len(games)
        return games

    def totals(self) -> dict[str, Counter[str]]:
        """`stats`, and `pipelines` of all pipelines together, since the player began."""
        now = Counter[str](), Counter[str]()
        if self._self_play is not None:
            now = Counter(self._self_play.stats), sum(map(Counter, self._self_play.pipeline_stats), Counter())
        stats, pipelines = (past + new for past, new in zip(self._past, now, strict=True))
        return {"stats": stats, "pipelines": pipelines}

    def pause(self) -> None:
        """Holds self-play. Totals do not count a round under way, so they are whole afterwards."""
        if self._self_play is not None:
            self._self_play.pause()
            self.paused = True

    def resume(self) -> None:
        """Ends a pause."""
        if self._self_play is not None:
            self._self_play.resume()
            self.paused = False

    def close(self) -> None:
        """Ends self-play, and lets its games go."""
        if self._self_play is not None:
            self._self_play.pause()
            self._past = tuple(self.totals().values())  # type: ignore[assignment]
            self._self_play.close()
            self._self_play, self.in_hand = None, 0


def in_parts(games: Iterable[_core.GameRecord]) -> Iterator[list[_core.GameRecord]]:
    """Finished games in parts that the head takes as one message each.

    Raises:
        RunError: the head takes no game that is so long.
    """
    part, size = list[_core.GameRecord](), 0
    for game in games:
        length = len(game.to_bytes())
        if length > MOST_BYTES:
            raise RunError(
                f"game {game.game_id} has {length:,} bytes, expected {MOST_BYTES:,} at most: no worker can send it; "
                "play such games with --workers 0"
            )
        if part and size + length > MOST_OF_A_PART:
            yield part
            part, size = [], 0
        part.append(game)
        size += length
    if part:
        yield part
