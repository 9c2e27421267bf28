"""Games of other programs: any game of OpenSpiel that azpy can search, or learn where something is hidden.

OpenSpiel is loaded when one of its games is asked for. Knows nothing of search, networks or files.
"""

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy._core import CHANCE, TERMINAL, State
from azpy.errors import MissingPackageError, SettingsError, did_you_mean, one_line, pip_install
from azpy.game import Game

PREFIX = "open_spiel:"  # before a game's name in a spec
MAX_PLAYERS = 6


def open_spiel(game: Any) -> State:
    """Return the start of an OpenSpiel game.

    Args:
        game: the name with its parameters, such as "quoridor(board_size=5)", or a `pyspiel.Game`.

    Returns:
        A `State`, whose `game_object` is an `OpenSpielGame`. For commands, the game is
        "open_spiel:quoridor(board_size=5)".

    Raises:
        SettingsError: the game does not exist, or azpy cannot play it; the message lists every reason.
        MissingPackageError: OpenSpiel is not installed.

    Example:
        >>> game = open_spiel("tic_tac_toe")
        >>> game.num_actions, game.obs_shape, game.max_plies
        (9, (4, 3, 3), 9)
    """
    rules = _load(game) if isinstance(game, str) else _Rules.of(game)
    try:
        made = HiddenGame if rules.hides else OpenSpielGame
        return State(made(rules, rules.source.new_initial_state()))
    except Exception as error:  # some games look at their parameters only here
        raise SettingsError(f"OpenSpiel cannot start the game {rules.name!r}: {one_line(error, 300)}") from error


@functools.cache  # some games print warnings whenever they are loaded
def _load(game: str) -> "_Rules":
    pyspiel = _pyspiel()
    name, bracket, parameters = (part.strip() for part in game.partition("("))
    if name not in (known := pyspiel.registered_names()):
        raise SettingsError(f"OpenSpiel does not have the game {name!r}{did_you_mean(name, known)}")
    try:
        source = pyspiel.load_game(name + bracket + parameters)
    except Exception as error:  # whatever C++ throws is about the name
        raise SettingsError(f"OpenSpiel cannot load the game {game!r}: {one_line(error, 300)}") from error
    return _Rules.of(source)


def _pyspiel() -> Any:
    try:
        import pyspiel
    except ImportError as error:
        raise MissingPackageError(f"open_spiel is not installed: {pip_install('openspiel')}") from error
    return pyspiel


@dataclass(frozen=True)
class _Rules:
    """What is the same at all positions of a game."""

    source: Any  # the pyspiel.Game
    name: str
    num_players: int
    zero_sum: bool  # of two players
    num_actions: int
    max_plies: int
    scale: float  # the utility that is an outcome of 1
    shape: tuple[int, int, int]  # [C, H, W] of OpenSpiel's tensor; none of its games has the channels last
    hides: bool  # something from a player: the tensor is that of the information state

    @classmethod
    def of(cls, game: Any) -> Self:
        """The facts of a game, or why azpy cannot play it."""
        pyspiel = _pyspiel()
        kind, dynamics = game.get_type(), pyspiel.GameType.Dynamics
        if kind.dynamics == dynamics.SIMULTANEOUS:  # one moves after the other, who does not see it
            game = pyspiel.convert_to_turn_based(game)
            kind = game.get_type()
        name, players = str(game), game.num_players()
        pays = pyspiel.GameType.Utility
        hides = kind.information != pyspiel.GameType.Information.PERFECT_INFORMATION
        has_views = kind.provides_information_state_tensor and kind.provides_information_state_string
        found = {
            f"{players} players": players > MAX_PLAYERS,
            "a mean field": kind.dynamics != dynamics.SEQUENTIAL,
            "chance without listed outcomes": kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC,
            "no observation tensor": not hides and not kind.provides_observation_tensor,
            "hidden information, but no information state tensor and string": hides and not has_views,
        }
        if reasons := [reason for reason, is_so in found.items() if is_so]:
            raise SettingsError(
                f"OpenSpiel's {name} has {', '.join(reasons)}; azpy plays games of one to {MAX_PLAYERS} players with "
                "listed chance outcomes, and an observation tensor or, where something is hidden, an information state"
            )
        # Some games that hide something have no observation tensor, and fail when its shape is asked for.
        flat = (math.prod(game.information_state_tensor_shape()),) if hides else ()
        sizes = flat or tuple(game.observation_tensor_shape())
        max_plies = game.max_game_length() + game.max_chance_nodes_in_history()
        zero_sum = players == 2 and kind.utility == pays.ZERO_SUM
        # Of two players with a zero sum the most that can be got is the scale, so that a draw is 0.
        most = game.max_utility()
        scale = most if zero_sum else max(abs(most), abs(game.min_utility()))
        shape = sizes if len(sizes) == 3 else (math.prod(sizes), 1, 1)
        return cls(game, name, players, zero_sum, game.num_distinct_actions(), max_plies, scale, shape, hides)

    @property
    def obs_shape(self) -> tuple[int, int, int]:
        """[C, H, W] with the planes of who is to move: one of two players, else one a player."""
        channels, height, width = self.shape
        return channels + (1 if self.num_players <= 2 else self.num_players), height, width


class OpenSpielGame(Game):
    """A position of an OpenSpiel game; `open_spiel` makes the start.

    - Observations are OpenSpiel's own for the player to move, [C, H, W] where its tensor has three dimensions and flat
      otherwise, and one plane more that is 1 where player 1 is to move: many tensors do not say whose turn it is. With
      more than two players there is such a plane for each, 1 where that player is to move.
    - The outcome is what player 0 gets, or each player where they are not two with a zero sum, as a part of the most
      that can be won or lost. A game that goes on for longer than OpenSpiel says it can is a draw.
    - The key is a hash of the line of play. OpenSpiel says of no two states that their futures are the same (they may
      look alike and differ in repetitions or clocks), so a position that is reached in two ways is two positions, to
      the cache as well.

    Attributes:
        game: what records call the game, as in "open_spiel:quoridor(board_size=5)".
        state: the `pyspiel.State`.
    """

    def __init__(self, rules: _Rules, state: Any) -> None:
        self._rules = rules
        self.state = state
        self.game = PREFIX + rules.name
        self.num_actions, self.obs_shape, self.max_plies = rules.num_actions, rules.obs_shape, rules.max_plies
        self.num_players, self.zero_sum = rules.num_players, rules.zero_sum

    def turn(self) -> int:
        """Whose turn it is: a player, from 0 on, `azpy.CHANCE`, or `azpy.TERMINAL`."""
        if self.state.is_terminal() or self.state.move_number() >= self.max_plies:
            return TERMINAL
        return CHANCE if self.state.is_chance_node() else int(self.state.current_player())

    def legal_actions(self) -> list[int]:
        """The legal actions, ascending."""
        return list(self.state.legal_actions())

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """(outcome, probability), ascending."""
        return sorted(self.state.chance_outcomes())

    def play(self, action: int) -> None:
        """Plays a legal action, or takes a chance outcome, in place. Many games of OpenSpiel crash at others."""
        self.state.apply_action(action)

    def clone(self) -> Self:
        """An independent copy."""
        return type(self)(self._rules, self.state.clone())

    def outcome(self) -> float | list[float]:
        """The result for player 0, or of each player where they are not two with a zero sum; in [-1, 1]."""
        ended = self.state.is_terminal()
        each = [own / self._rules.scale for own in self.state.returns()] if ended else [0.0] * self.num_players
        return each[0] if self.zero_sum else each

    def encode(self) -> NDArray[np.float32]:
        """OpenSpiel's observation for the player to move, and who that is; float32 of `obs_shape`."""
        player, rules = self.state.current_player(), self._rules
        seen = np.array(self._tensor(player), np.float32).reshape(rules.shape)
        planes = np.zeros(self.obs_shape, np.float32)
        planes[: len(seen)] = seen
        if rules.num_players == 2:
            planes[-1] = player
        elif rules.num_players > 2:
            planes[len(seen) + player] = 1.0
        return planes

    def _tensor(self, player: int) -> Any:
        return self.state.observation_tensor(player)

    def key(self) -> int:
        """A hash of the game and the line of play."""
        line = f"{self._rules.name}\n{self.state.history_str()}"
        return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=16).digest(), "big")

    def action_name(self, action: int) -> str:
        """What OpenSpiel calls the action."""
        return str(self.state.action_to_string(self.state.current_player(), action))

    def __str__(self) -> str:
        return str(self.state)


class HiddenGame(OpenSpielGame):
    """A position of an OpenSpiel game that hides something from a player.

    Observations are the information state of the player to move, as flat features. Where players act at the same time,
    one moves after the other, who does not see it.

    Attributes:
        payoff_unit: what an outcome of 1 is in OpenSpiel's returns.
    """

    def __init__(self, rules: _Rules, state: Any) -> None:
        super().__init__(rules, state)
        self.payoff_unit = rules.scale, ""

    def _tensor(self, player: int) -> Any:
        return self.state.information_state_tensor(player)

    def view_key(self, player: int) -> str:
        """What the player knows, with all it saw and did: OpenSpiel's information state."""
        return f"{player}\n{self.state.information_state_string(player)}"

    def render_view(self, player: int) -> str:
        """OpenSpiel's information state: what a person sees."""
        return str(self.state.information_state_string(player))
