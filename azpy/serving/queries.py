"""The queries of one client: positions to search, and what the searches found.

The transport is not known here: `Session.take` gets a message, and `say` is called with responses. The core reads them,
keeps the games, has the players' engines search, and answers: `azpy._core.Session`, and below it `rust/serve`.
"""

import copyreg
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from azpy import _core
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Player, PlayerEngine


class Response(NamedTuple):
    """A response to a client, with the metadata its transport needs.

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
    def refusal(said: str) -> "Response":
        """Return the response to what is not a message."""
        return Response(json.dumps({"error": said}), 400)

    @staticmethod
    def later(identity: str, said: str) -> "Response":
        """Return the response to a message that is not taken now."""
        return Response(json.dumps({"id": identity, "retryAfter": 1, "error": said}), 503)


class Session(_core.Session):
    """The messages of one client, and the responses to them.

    Args:
        models: players with their engines; other clients may use them too. The first one answers for a query that names
            none.
        say: is called with each response, in any thread, and in several at once. Searches of all clients wait for it.
            It must not hold the session, which would never be freed.
        limits: of this client.
        renews: whether the action `renew` is there: a player's newest checkpoint is loaded, which takes seconds.
        answered: is called with the seconds that each answered search took, from its query to its answer.
        told: is called once there are no more responses for now.
    """

    def __new__(  # noqa: D102  the class says what it takes
        cls,
        models: Mapping[str, PlayerEngine],
        say: Callable[[Response], object],
        limits: Limits = NO_LIMITS,
        renews: bool = False,
        answered: Callable[[float], object] = lambda _: None,
        told: Callable[[], object] = lambda: None,
    ) -> Self:
        seed = secrets.randbits(64)  # of the draws of players without a seed
        return super().__new__(
            cls, dict(models), lambda *response: say(Response(*response)), limits, renews, answered, told, seed
        )


copyreg.pickle(Session, _core.stays_here)


def about(name: str, player: Player, limits: Limits) -> dict[str, Any]:
    """Describe a player to clients: its name for them, what it plays, and what it can be asked for."""
    notation = _core.notation_of(player.start.game)
    levels = {} if player.start.hides else player.ladder.levels  # without a search there is one strength
    return {
        "name": name,
        "internalName": player.name,
        "game": player.start.game,
        "format": None if notation is None else notation.name,
        **({} if player.start.zero_sum else {"numPlayers": player.start.num_players}),
        "rules": player.start.rules,
        "sideNames": player.start.side_names,
        "canRotate": player.start.can_rotate and player.start.num_players > 1,
        **({"hides": True} if player.start.hides else {}),
        "network": player.network,
        "simulations": min(player.simulations, limits.simulations),
        "levels": [
            {"name": name, "simulations": level.simulations, "temperature": level.temperature}
            | ({} if player.ladder.network is None else {"elo": round(level.elo)})
            for name, level in levels.items()
        ],
        "ladder": player.ladder.about(player.network) if levels else "",
        "limits": {"simulations": limits.simulations, "seconds": limits.seconds},
    }
