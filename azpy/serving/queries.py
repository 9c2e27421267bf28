"""The queries of one client: positions to search, and what the searches found.

The transport is not known here: `Analyst.take` gets a message, and `say` is called with replies. The core reads, keeps
the games, has the players' engines search, and answers: `azpy._core.Session`, and below it the crate `rust/serve`.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from azpy import _core
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model, Served


class Reply(NamedTuple):
    """What a client is told, and what its transport must know of it.

    Attributes:
        line: JSON.
        status: of a POST that it answers: 200; 400 for what is wrong; 503 if too many searches are open.
        search: the query's id and the turn that it is about; None for no search.
        is_report: whether this search goes on.
    """

    line: str
    status: int = 200
    search: tuple[str, int] | None = None
    is_report: bool = False

    @staticmethod
    def refusal(said: str) -> "Reply":
        """The answer to what is no message."""
        return Reply(json.dumps({"error": said}), 400)

    @staticmethod
    def later(identity: str, said: str) -> "Reply":
        """The answer to a message that is not taken now."""
        return Reply(json.dumps({"id": identity, "retryAfter": 1, "error": said}), 503)


class Analyst:
    """Answers the queries of one client.

    Args:
        models: players with their engines; other clients may use them too. The first one answers for a query that names
            none.
        say: gets each answer. It may be called in any thread, and several at once; searches of all clients wait for it.
        limits: of this client.
        renews: whether the action `renew` is there: a player's newest checkpoint is loaded.
        answered: is told how many seconds each answered search took, from its query to its answer.
        told: is called once all that there is was said.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        say: Callable[[Reply], object],
        limits: Limits = NO_LIMITS,
        renews: bool = False,
        answered: Callable[[float], object] = lambda _: None,
        told: Callable[[], object] = lambda: None,
    ) -> None:
        self._say = say
        seed = secrets.randbits(64)  # of the draws of players without a seed
        # `say` alone goes to the session: a session that held this object could never be freed.
        self._session = _core.Session(
            dict(models), lambda *reply: say(Reply(*reply)), limits, renews, told, answered, seed
        )

    def take(self, message: _core.Message) -> None:
        """Take a query or an action. Each answer, and each error, is said. The action `renew` takes seconds."""
        self._session.take(message)

    @property
    def is_busy(self) -> bool:
        """Whether searches go on. A search ends after its answer was said."""
        return self._session.is_busy

    def wait(self) -> None:
        """Returns when every query was answered."""
        self._session.wait()

    def close(self) -> None:
        """Cancels the searches that go on, and drops the trees. Nothing is said any more."""
        self._session.close()


def about(name: str, served: Served, limits: Limits) -> dict[str, Any]:
    """What clients are told of a player: its name for them, what it plays, and what may be asked of it."""
    notation = _core.notation_of(served.start.game)
    return {
        "name": name,
        "internalName": served.name,
        "game": served.start.game,
        "format": None if notation is None else notation.name,
        **({} if served.start.zero_sum else {"numPlayers": served.start.num_players}),
        "sideNames": served.start.side_names,
        "canRotate": served.start.can_rotate and served.start.num_players > 1,
        "network": served.network,
        "simulations": min(served.simulations, limits.simulations),
        "levels": [
            {"name": name, "simulations": level.simulations, "temperature": level.temperature}
            | ({} if served.ladder.network is None else {"elo": round(level.elo)})
            for name, level in served.ladder.levels.items()
        ],
        "ladder": served.ladder.about(served.network),
        "limits": {"simulations": limits.simulations, "seconds": limits.seconds},
    }
