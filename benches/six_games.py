"""Six games in Python that no preset of azpy was tuned for, without names and pictures: see docs/own_game.md.

    cd benches
    az-check-game six_games:Ur
    python first_minutes.py six_games:Ur six_games:DotsAndBoxes3 --minutes 2,5

Ur, DotsAndBoxes3, DotsAndBoxes5, Oware, Kalah and FiveInARow15 are the classes. They are plain: speed is not their aim.
"""

import copy
import functools
import random

import numpy as np

import azpy


def sign(number):
    return float((number > 0) - (number < 0))


class Ur(azpy.Game):
    """The Royal Game of Ur: race seven pieces along a path of 14 squares, of which both players share 5 to 12.

    Four two-sided dice give 0 to 4 steps. A piece that lands on a rosette (4, 8, 14) moves its player again, and the
    rosette on 8 is safe. A player who cannot move loses the turn. A game of 1,000 plies is a draw.
    """

    num_actions, obs_shape, max_plies = 15, (36, 1, 1), 1000  # an action is the square that a piece leaves
    rosettes = (4, 8, 14)

    def __init__(self):
        # Pieces of each player by square: 0 has those that wait, 15 those that are home.
        self.pieces = [[7] + 15 * [0], [7] + 15 * [0]]
        self.player, self.roll, self.plies = 0, None, 0

    def turn(self):
        if self.pieces[0][15] == 7 or self.pieces[1][15] == 7 or self.plies == self.max_plies:
            return azpy.TERMINAL
        return azpy.CHANCE if self.roll is None else self.player

    def legal_actions(self):
        mine, theirs = self.pieces[self.player], self.pieces[1 - self.player]
        found = []
        for square in range(16 - self.roll if self.roll else 0):
            to = square + self.roll
            if mine[square] and (to == 15 or (not mine[to] and not (to == 8 and theirs[8]))):
                found.append(square)
        return found

    def chance_outcomes(self):
        return [(0, 1 / 16), (1, 4 / 16), (2, 6 / 16), (3, 4 / 16), (4, 1 / 16)]

    def play(self, action):
        self.plies += 1
        if self.roll is None:
            self.roll = action
            if not self.legal_actions():
                self.player, self.roll = 1 - self.player, None
            return
        mine, theirs = self.pieces[self.player], self.pieces[1 - self.player]
        to = action + self.roll
        mine[action] -= 1
        mine[to] += 1
        if 5 <= to <= 12 and theirs[to]:
            theirs[to] = 0
            theirs[0] += 1
        if to not in self.rosettes:
            self.player = 1 - self.player
        self.roll = None

    def clone(self):
        other = copy.copy(self)
        other.pieces = [pieces[:] for pieces in self.pieces]
        return other

    def outcome(self):
        return float(self.pieces[0][15] == 7) - float(self.pieces[1][15] == 7)

    def encode(self):
        view = np.zeros(36, np.float32)
        view[:16] = self.pieces[self.player]
        view[16:32] = self.pieces[1 - self.player]
        view[[0, 15, 16, 31]] /= 7
        view[31 + self.roll] = 1  # no player moves after a roll of 0
        return view.reshape(36, 1, 1)

    def key(self):
        key = self.plies << 4 | self.player << 3 | (7 if self.roll is None else self.roll)
        for pieces in self.pieces:
            for count in pieces:
                key = key << 3 | count
        return key


@functools.cache
def lines_and_boxes(rows, columns):
    """The cell of each line on a grid of dots, lines and boxes; each box as a set of lines; each line's boxes."""
    width = 2 * columns + 1
    cells = [row * width + column for row in range(2 * rows + 1) for column in range(width) if (row + column) % 2]
    number = {cell: line for line, cell in enumerate(cells)}
    boxes = {}
    for row in range(1, 2 * rows, 2):
        for column in range(1, width, 2):
            box = row * width + column
            boxes[box] = sum(1 << number[box + step] for step in (-width, -1, 1, width))
    beside = [[mask for mask in boxes.values() if mask >> line & 1] for line in range(len(cells))]
    return cells, boxes, beside


class DotsAndBoxes(azpy.Game):
    """Draw a line between two dots; who closes a box owns it and moves again. The player with more boxes wins."""

    def __init__(self, rows=3, columns=3):
        self.cells, self.boxes, self.beside = lines_and_boxes(rows, columns)
        self.action_cells, self.num_actions = self.cells, len(self.cells)
        self.obs_shape, self.max_plies = (3, 2 * rows + 1, 2 * columns + 1), len(self.cells)
        self.lines, self.lead, self.player = 0, 0, 0  # lead: boxes more than the other player, for the player to move

    def turn(self):
        return azpy.TERMINAL if self.lines + 1 == 1 << self.num_actions else self.player

    def legal_actions(self):
        return [line for line in range(self.num_actions) if not self.lines >> line & 1]

    def play(self, action):
        self.lines |= 1 << action
        closed = sum(self.lines & box == box for box in self.beside[action])
        if closed:
            self.lead += closed
        else:
            self.lead, self.player = -self.lead, 1 - self.player

    def clone(self):
        return copy.copy(self)

    def outcome(self):
        return sign(self.lead if self.player == 0 else -self.lead)

    def encode(self):
        planes = np.zeros(self.obs_shape, np.float32)  # lines, closed boxes, lead
        flat = planes.reshape(3, -1)
        flat[0, [cell for line, cell in enumerate(self.cells) if self.lines >> line & 1]] = 1
        flat[1, [cell for cell, box in self.boxes.items() if self.lines & box == box]] = 1
        flat[2] = self.lead / len(self.boxes)
        return planes

    def key(self):
        return (self.lines << 8 | self.lead + 128) << 1 | self.player


class DotsAndBoxes3(DotsAndBoxes):
    """Dots and Boxes with 3 x 3 boxes: 24 lines."""


class DotsAndBoxes5(DotsAndBoxes):
    """Dots and Boxes with 5 x 5 boxes: 60 lines."""

    def __init__(self):
        super().__init__(5, 5)


class Sowing(azpy.Game):
    """What Oware and Kalah share.

    `pits` is the board as the player to move sees it: pits 0 to 5 and the store 6 are that player's, then come the
    opponent's pits 7 to 12 and the store 13. Seeds go up.
    """

    num_actions, obs_shape = 6, (62, 1, 1)

    def clone(self):
        other = copy.copy(self)
        other.pits = self.pits[:]
        return other

    def outcome(self):
        lead = sum(self.pits[:7]) - sum(self.pits[7:])  # seeds that are left belong to their side
        return sign(lead if self.player == 0 else -lead)

    def encode(self):
        sides = np.array(self.pits, np.float32).reshape(2, 7)
        pits = sides[:, :6]
        flags = [pits == 0, pits == 1, pits == 2, pits == np.arange(6, 0, -1)]  # the last: they just reach the store
        return np.concatenate([sides / 12, *flags], axis=1, dtype=np.float32).reshape(62, 1, 1)

    def key(self):
        key = self.player
        for seeds in self.pits:
            key = key << 7 | seeds
        return key


class Oware(Sowing):
    """Four seeds a pit. The last seed takes what it makes two or three on the other side, and so on backwards.

    A move that would take all seeds of the other side takes none. If the opponent has no seeds, the move must feed.
    Who has 25 seeds has won. A game also ends where no move can feed, and after 300 plies, as positions can come again.
    """

    max_plies = 300
    ring = (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12)

    def __init__(self):
        self.pits, self.player, self.plies = 2 * [4, 4, 4, 4, 4, 4, 0], 0, 0

    def turn(self):
        over = max(self.pits[6], self.pits[13]) > 24 or self.plies == self.max_plies or not self.legal_actions()
        return azpy.TERMINAL if over else self.player

    def legal_actions(self):
        fed = any(self.pits[7:13])
        return [pit for pit in range(6) if self.pits[pit] >= (1 if fed else 6 - pit)]

    def play(self, action):
        pits, at = self.pits[:], action
        seeds, pits[action] = pits[action], 0
        while seeds:
            at = (at + 1) % 12
            if at != action:  # the pit that was sown stays empty
                pits[self.ring[at]] += 1
                seeds -= 1
        after = pits[:]
        while at > 5 and after[self.ring[at]] in (2, 3):
            after[6] += after[self.ring[at]]
            after[self.ring[at]] = 0
            at -= 1
        pits = after if any(after[7:13]) else pits
        self.pits, self.player, self.plies = pits[7:] + pits[:7], 1 - self.player, self.plies + 1

    def key(self):
        return self.plies << 100 | super().key()


class Kalah(Sowing):
    """Six seeds a pit, and the last seed in the own store moves again.

    The last seed in an empty pit of its own side takes itself and the seeds opposite, if there are any. When one side
    is empty, the game ends.
    """

    max_plies = 500  # far more than any game has; a position cannot come again, because seeds only go ahead

    def __init__(self):
        self.pits, self.player = 2 * [6, 6, 6, 6, 6, 6, 0], 0

    def turn(self):
        return self.player if any(self.pits[:6]) and any(self.pits[7:13]) else azpy.TERMINAL

    def legal_actions(self):
        return [pit for pit in range(6) if self.pits[pit]]

    def play(self, action):
        pits, at = self.pits, action
        seeds, pits[action] = pits[action], 0
        for _ in range(seeds):
            at = (at + 1) % 13  # never into the opponent's store
            pits[at] += 1
        if at < 6 and pits[at] == 1 and pits[12 - at]:
            pits[6] += 1 + pits[12 - at]
            pits[at] = pits[12 - at] = 0
        if at != 6:
            self.pits, self.player = pits[7:] + pits[:7], 1 - self.player


# A position of FiveInARow15 has more than 128 bits, so its key joins one random number a stone (Zobrist, 1970).
numbers = random.Random(15)
STONES = [[numbers.getrandbits(128) for _ in range(225)] for _ in range(2)]


class FiveInARow15(azpy.Game):
    """Five or more stones in a row win, on 15 x 15 cells."""

    num_actions, obs_shape, max_plies, action_cells = 225, (2, 15, 15), 225, range(225)

    def __init__(self):
        self.cells, self.stones, self.plies, self.won = 225 * [-1], 0, 0, False  # the owner of each cell, -1: empty

    def turn(self):
        return azpy.TERMINAL if self.won or self.plies == 225 else self.plies % 2

    def legal_actions(self):
        return [cell for cell, owner in enumerate(self.cells) if owner < 0]

    def play(self, action):
        player = self.plies % 2
        self.cells[action] = player
        self.stones ^= STONES[player][action]
        self.plies += 1
        ways = ((0, 1), (1, 0), (1, 1), (1, -1))
        self.won = any(self.run(action, *way) + self.run(action, -way[0], -way[1]) >= 4 for way in ways)

    def run(self, cell, down, right):
        """How many stones of the cell's owner follow it in a direction."""
        length, player, (row, column) = 0, self.cells[cell], divmod(cell, 15)
        while True:
            row, column = row + down, column + right
            if not (0 <= row < 15 and 0 <= column < 15 and self.cells[15 * row + column] == player):
                return length
            length += 1

    def clone(self):
        other = copy.copy(self)
        other.cells = self.cells[:]
        return other

    def outcome(self):
        return (1.0 if self.plies % 2 else -1.0) if self.won else 0.0

    def encode(self):
        cells, player = np.array(self.cells), self.plies % 2
        return np.stack([cells == player, cells == 1 - player]).astype(np.float32).reshape(2, 15, 15)

    def key(self):
        return self.stones
