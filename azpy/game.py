"""The base class of games written in Python.

The contract is that of the games in Rust, searched by the same core: slower, but with the same visits. A game knows
nothing of search or networks.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Game(ABC):
    """Base class of games in Python: one position of a game for one to six players.

    A game has turns in any order, and may have dice. The object is the position: `play` changes it in place and `clone`
    copies it. Searches, self-play and buffers take the object, or an `azpy.State` of it, which has
    the methods of a game in Rust.

    Set the first three attributes on the class, or on the instance if they depend on a board size. They must not change
    during a game. An exception in a method reaches the caller unchanged. If a game breaks this contract (no legal
    action at a player's turn, more plies than `max_plies`), azpy raises `azpy.GameError`.

    A game can also have these methods:

    - `view_key(player) -> str | bytes | int` says that the game hides something, and identifies what the player knows
      here, with all that it saw and did before; an int is in [0, 2**128). `encode` and `legal_actions` are then what
      the player to move knows, and `key` stays the number of the true position. azpy does not search such a game.
    - `render_view(player) -> str` is what a person on this side sees of a game that hides something (default: the text
      of `view_key`).
    - `result_text() -> str` says at the end who won and how: "Red wins by 12 points".
    - `to_svg() -> str` returns the position as an SVG document.
    - `touches(action) -> list` returns what a person clicks, in order, to play a legal action. Without `to_svg`, these
      are cells (row * W + column) of a board of H x W cells, which azpy draws. With `to_svg`, each is
      (place, (x, y, width, height)): a name, and a rectangle in the units of the picture's viewBox.

    Attributes:
        num_actions: the size A of the policy; actions are 0 to A - 1.
        obs_shape: the shape (C, H, W) of an observation; flat features are (F, 1, 1).
        max_plies: an upper bound on the plies of a game, chance outcomes counted.
        num_players: the number of players, 1 to 6 (default 2).
        zero_sum: for two players, whether one loses what the other wins (default True). If False, `outcome` returns
            two numbers in [-1, 1], which are equal where the players cooperate.
        side_names: what people call the players within a sentence, player 0 first, such as ("red", "blue", "green").
            None (default): "player 0", "player 1" and so on.
        rules: the rules in a sentence, which the board shows (default: none).
        payoff_unit: what an outcome of 1 is worth, and in what, such as (2, "chips"): exploitability is in this unit.
        game: the game's name in records of games (default: the name of the class).
        action_cells: the cell of the planes (row * W + column) of each group of actions, if actions come in equal
            groups: action group * n + i, with i below n, means the same in each group. Networks then have one small
            policy head for all cells. None (default): actions do not come in such groups.
        policy_planes: the place of each action in planes of actions [N, H, W] (plane * H * W + row * W + column), if an
            action of one plane means the same in each cell; None for an action without a cell, such as a pass. One
            network (`--network 4x48+conv`) can then play on boards of several sizes, if observations mean the same on
            each. None (default): what follows from `action_cells`.

    Example:
        Take one or two counters from a heap. Taking the last one wins.

        >>> import numpy as np
        >>> import azpy
        >>> class Countdown(azpy.Game):
        ...     num_actions, obs_shape, max_plies = 2, (1, 1, 1), 20
        ...
        ...     def __init__(self, heap=20, player=0):
        ...         self.heap, self.player = heap, player
        ...
        ...     def turn(self):
        ...         return self.player if self.heap else azpy.TERMINAL
        ...
        ...     def legal_actions(self):
        ...         return [0, 1] if self.heap > 1 else [0]
        ...
        ...     def play(self, action):
        ...         self.heap -= action + 1
        ...         self.player = 1 - self.player
        ...
        ...     def clone(self):
        ...         return Countdown(self.heap, self.player)
        ...
        ...     def outcome(self):
        ...         return 1.0 if self.player == 1 else -1.0
        ...
        ...     def encode(self):
        ...         return np.full((1, 1, 1), self.heap / 20, np.float32)
        ...
        ...     def key(self):
        ...         return 2 * self.heap + self.player
        >>> result = azpy.Search(azpy.UniformEvaluator(), simulations=400).run(Countdown(5))
        >>> result.action  # leave three
        1
    """

    num_actions: int
    obs_shape: tuple[int, int, int]
    max_plies: int
    num_players: int = 2
    zero_sum: bool = True
    side_names: Sequence[str] | None = None
    rules: str = ""
    game: str
    action_cells: Sequence[int] | None = None
    policy_planes: Sequence[int | None] | None = None

    @abstractmethod
    def turn(self) -> int:
        """Return whose turn it is: a player from 0 on, `azpy.CHANCE`, or `azpy.TERMINAL` when the game is over."""

    @abstractmethod
    def legal_actions(self) -> list[int]:
        """Return the legal actions, ascending and never empty. azpy calls this at a player's turn only."""

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return (outcome, probability) for each result of a roll, ascending; the probabilities sum to 1.

        azpy calls this at `azpy.CHANCE` only.
        """
        return []

    @abstractmethod
    def play(self, action: int) -> None:
        """Play a legal action, or take a chance outcome, in place.

        Searches play only what `legal_actions` or `chance_outcomes` returned. If `play` checks its action, add a method
        `play_legal` that does not: searches call it instead.
        """

    @abstractmethod
    def clone(self) -> Self:
        """Return an independent copy: playing on it leaves this position as it is."""

    @abstractmethod
    def outcome(self) -> float | Sequence[float]:
        """Return the result, in [-1, 1] and not as a bool. azpy calls this at `azpy.TERMINAL` only.

        Returns:
            With two players and a zero sum, a number for player 0: 1 is a win, -1 a loss. With one player, its score.
            Else a list of one number a player, player 0 first.
        """

    @abstractmethod
    def encode(self) -> NDArray[np.float32]:
        """Return the observation, float32 [C, H, W], from the view of the player to move.

        azpy calls this at a player's turn only.
        """

    @abstractmethod
    def key(self) -> int:
        """Return the position's number, in [0, 2**128).

        Equal keys must mean equal `encode`, equal `legal_actions` and an equal future.
        """

    def action_name(self, action: int) -> str:
        """Return what a person calls the action, or the chance outcome, here. `azpy.parse_state` reads these names."""
        return str(action)

    def __str__(self) -> str:
        return f"{type(self).__name__}(key={self.key()})"


def value_width(game: Any) -> int:
    """How many numbers a network says of a position's value: one a player, or one in all.

    It is one with one player, and with two who share a zero sum: that of the player to move.

    Args:
        game: an `azpy.Game`, an `azpy.State`, or the shapes of a game. Without `num_players` there are two players.
    """
    players = int(getattr(game, "num_players", 2))
    return 1 if players == 1 or (players == 2 and getattr(game, "zero_sum", True)) else players


def players_of(game: Any) -> str:
    """A game's players in words: "1 player", "3 players", "2 players without a zero sum"."""
    if game.num_players == 1:
        return "1 player"
    return f"{game.num_players} players{' without a zero sum' if game.num_players == 2 and not game.zero_sum else ''}"
