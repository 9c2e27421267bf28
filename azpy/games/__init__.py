"""Games by name, lines of play, and OpenSpiel's games."""

from azpy.games.openspiel import open_spiel

__all__ = ["open_spiel"]
