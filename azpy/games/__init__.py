"""Games of others: OpenSpiel's, as an `azpy.Game`."""

from azpy.games.openspiel import open_spiel

__all__ = ["open_spiel"]
