"""Which points of a board of Go are worth a stone while dead stones are taken off.

azpy's rules have no dead stones: every stone on the board counts. What is left to do is known exactly where it is
unconditional life, as Benson defined it (Information Sciences 10, 1976): such stones cannot be taken, even if their
player passes all the time. Points are cells: row * size + column from the top left.
"""

from collections.abc import Iterable, Iterator, Set

__all__ = ["chains", "unsettled"]

_Cells = frozenset[int]


def chains(cells: Set[int], size: int) -> list[_Cells]:
    """The connected parts of a set of cells, in the order of their first cells."""
    found, rest = list[_Cells](), set(cells)
    for cell in sorted(cells):
        if cell not in rest:
            continue
        part, waiting = {cell}, [cell]
        while waiting:
            new = {other for other in _beside(waiting.pop(), size) if other in rest} - part
            part |= new
            waiting += new
        rest -= part
        found.append(frozenset(part))
    return found


def unsettled(own: Set[int], other: Set[int], size: int) -> set[int]:
    """Where a player may still take stones of the other one; nothing where these are all unconditionally alive.

    Left out are the player's eyes, regions of the player's alive chains without a stone of the other one, and regions
    of the other one's alive chains.
    """
    theirs, their_regions = _alive(other, own, size)
    if other <= theirs:
        return set()
    _, regions = _alive(own, other, size)
    settled = [region for region in regions if not region & other]
    empty = set(range(size * size)) - own - other
    empty -= set[int]().union(*settled, *their_regions)
    return {cell for cell in empty if not own >= set(_beside(cell, size))}


def _alive(own: Set[int], other: Set[int], size: int) -> tuple[set[int], list[_Cells]]:
    """Stones that are unconditionally alive, and the regions that keep them so."""
    living = chains(own, size)
    regions = chains(set(range(size * size)) - own, size)
    around = {chain: _border(chain, size) for chain in living}
    while True:
        vital = {
            chain: [region for region in regions if region & around[chain] and region - other <= around[chain]]
            for chain in living
        }
        left = [chain for chain in living if len(vital[chain]) >= 2]
        alive = set[int]().union(*left)
        kept = [region for region in regions if _border(region, size) <= alive]
        if len(left) == len(living) and len(kept) == len(regions):
            keepers = {region for chain in left for region in vital[chain]}
            return alive, [region for region in kept if region in keepers]
        living, regions = left, kept


def _border(cells: Iterable[int], size: int) -> set[int]:
    """The cells beside a part, without the part itself."""
    inside = set(cells)
    return {beside for cell in inside for beside in _beside(cell, size)} - inside


def _beside(cell: int, size: int) -> Iterator[int]:
    row, column = divmod(cell, size)
    if row > 0:
        yield cell - size
    if row < size - 1:
        yield cell + size
    if column > 0:
        yield cell - 1
    if column < size - 1:
        yield cell + 1
