"""Random games of Go, some of them full of kos."""

import random
from collections.abc import Iterator

import azpy

PASS_SHARE = 0.02

# A board of six kos, three for either player to take, and the two cells of each.
KOS = (".xo...ox." + "xo.o.ox.x" + ".xo...ox.") * 3
PAIRS = [(27 * band + cell, 27 * band + cell + 1) for band in range(3) for cell in (10, 15)]
PARTNER = {cell: partner for one, other in PAIRS for cell, partner in ((one, other), (other, one))}


def ko_opening() -> list[int]:
    """The actions that lead to `KOS` from the empty board."""
    black, white = ([cell for cell, stone in enumerate(KOS) if stone == own] for own in "xo")
    return [cell for pair in zip(black, white, strict=True) for cell in pair]


def cells_of(state: azpy.State) -> list[str]:
    return [cell for line in str(state).splitlines()[1:] for cell in line.split()[1:]]


def random_game(start: azpy.State, seed: int, kos: bool = False) -> Iterator[tuple[azpy.State, int]]:
    """Positions and the actions played there; with `kos`, mostly kos that are taken and taken back."""
    rng, state = random.Random(seed), start.clone()
    opening = ko_opening() if kos else []
    while not state.is_terminal:
        stones = state.legal_actions()[:-1]
        cells, other = cells_of(state), "ox"[state.turn]
        fights = [action for action in stones if kos and action in PARTNER and cells[PARTNER[action]] == other]
        if opening:
            action = opening.pop(0)
        elif not stones or rng.random() < PASS_SHARE:
            action = state.num_actions - 1
        else:
            action = rng.choice(fights if fights and rng.random() < 0.98 else stones)
        yield state, action
        state.play(action)
    yield state, -1
