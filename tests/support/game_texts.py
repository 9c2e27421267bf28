"""Games of chess and Go as files have them."""

import itertools

import azpy

CHESS, GO = azpy.make_game("chess"), azpy.make_game("go(size=5)")


def sgf_game(moves: str, result: str = "B+R", extra: str = "", size: int = 5) -> str:
    """A game whose moves are pairs of letters, passes "--"."""
    points = (moves[i : i + 2] for i in range(0, len(moves), 2))
    line = "".join(f";{colour}[{'' if p == '--' else p}]" for p, colour in zip(points, itertools.cycle("BW")))
    re = f"RE[{result}]" if result else ""
    return f"(;GM[1]FF[4]SZ[{size}]KM[7.5]{re}{extra}{line})"


LINE = "ccbbddbdabbaeaebdbec"  # ten moves


def selfplay(games: int = 6) -> list[azpy.GameRecord]:
    with azpy.SelfPlay(GO, azpy.UniformEvaluator(), slots=4, simulations=4, games=games, seed=1) as play:
        return sorted(play, key=lambda record: record.game_id)
