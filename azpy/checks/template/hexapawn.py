import numpy as np

import azpy


class Hexapawn(azpy.Game):
    """Three pawns a side on 3 x 3 cells (Martin Gardner, 1962).

    A pawn steps ahead onto a free cell, or takes the one diagonally ahead. A player who gets a pawn across wins, and so
    does a player who leaves the other without a move.
    """

    num_actions, obs_shape, max_plies = 27, (2, 3, 3), 12  # six pawns, two steps each

    def __init__(self, mine=(6, 7, 8), theirs=(0, 1, 2), player=0):
        # As the player to move sees the board: cell 3 * row + column, row 0 is the far one.
        self.mine, self.theirs, self.player = frozenset(mine), frozenset(theirs), player

    def moves(self):
        """Action -> where the pawn goes; the action is 3 * cell + 0, 1 or 2: ahead to the left, ahead, to the right."""
        found = {}
        for cell in self.mine:
            for way in range(3):
                column, to = cell % 3 + way - 1, cell - 3 + way - 1
                if 0 <= column < 3 and to not in self.mine and (to in self.theirs) == (way != 1):
                    found[3 * cell + way] = to
        return found

    def turn(self):
        crossed = self.theirs & {6, 7, 8}
        return self.player if self.moves() and not crossed else azpy.TERMINAL

    def legal_actions(self):
        return sorted(self.moves())

    def play(self, action):
        moved = self.mine - {action // 3} | {self.moves()[action]}
        # The board is turned round for the other player.
        self.mine, self.theirs = {8 - cell for cell in self.theirs - moved}, {8 - cell for cell in moved}
        self.player = 1 - self.player

    def clone(self):
        return type(self)(self.mine, self.theirs, self.player)

    def outcome(self):
        return 1.0 if self.player == 1 else -1.0  # for player 0: the player to move has lost

    def encode(self):
        planes = np.zeros((2, 9), np.float32)  # mine, theirs
        planes[0, list(self.mine)] = 1
        planes[1, list(self.theirs)] = 1
        return planes.reshape(2, 3, 3)

    def key(self):
        return self.player << 18 | sum(1 << cell for cell in self.mine) << 9 | sum(1 << cell for cell in self.theirs)

    # For people; a game needs none of these.

    def touches(self, action):
        # Where the pawn stands and where it goes, on the board that player 0 sees.
        return [8 - cell if self.player else cell for cell in (action // 3, self.moves()[action])]

    def action_name(self, action):
        start, end = ("abc"[cell % 3] + "321"[cell // 3] for cell in self.touches(action))
        return f"{start}{'-' if action % 3 == 1 else 'x'}{end}"

    def __str__(self):
        glyphs = dict.fromkeys(self.mine, "xo"[self.player]) | dict.fromkeys(self.theirs, "ox"[self.player])
        cells = [glyphs.get(8 - cell if self.player else cell, ".") for cell in range(9)]
        return "\n".join(f"{3 - row} {' '.join(cells[3 * row : 3 * row + 3])}" for row in range(3)) + "\n  a b c"
