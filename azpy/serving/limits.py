"""What one client, and all of them, may ask for."""

from dataclasses import dataclass

MOST_SEARCHES = 4_096  # of all clients at once, for each player


@dataclass(frozen=True)
class Limits:
    """Bounds of what clients ask for; beyond each there is a refusal that names it.

    Attributes:
        simulations: of a search.
        seconds: of a search. A search without an end ends there.
        moves: of a query.
        turns: of a query, to be analyzed.
        searches: of one client at once.
        games: of one client, with a kept tree. The game not asked for longest loses its tree.
        nodes: moves of a game with variations that is read or written.
        depth: variations in each other of such a game; 1 is a variation of the main line.
        text_bytes: of such a game's text.
    """

    simulations: int = 2**32 - 1
    seconds: float = 1e6
    moves: int = 4_000
    turns: int = 1_000
    searches: int = 1 << 20
    games: int = 256
    nodes: int = 10_000
    depth: int = 64
    text_bytes: int = 1 << 19


NO_LIMITS = Limits()
"""For a program that this process serves alone."""

CLIENT_LIMITS = Limits(10_000_000, seconds=60.0, searches=1_100, games=16)
"""For a client of a server that many share, where its owner says nothing else."""
