"""Games by name, lines of play, and the games of OpenSpiel."""

from azpy.games.openspiel import open_spiel

__all__ = ["open_spiel"]
