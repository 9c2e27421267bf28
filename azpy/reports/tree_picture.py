"""A search's tree as a picture: SVG that needs nothing else.

`SearchResult.to_svg` calls this module with the nodes to show: a parent comes before its children, and siblings come in
their order in the picture.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from azpy._core import CHANCE, TERMINAL
from azpy.errors import printable

# Pixels.
_WIDTH, _HEIGHT = 124, 32  # of a node
_ROW = 38  # from one row to the next
_BEND = 24  # what an edge takes to turn down and on, before its name
_MARGIN = 16
_HEAD = 112  # down to the middle of the first row, below the legend
_CHARACTER = 6.3  # how wide one is at most, nearly: there is no font to ask
_LONGEST_NAME = 18  # characters of an action's name

_INK, _LINE, _BEST = "#111827", "#94a3b8", "#c2410c"
_PLAYERS = ("#dbeafe", "#ffedd5", "#dcfce7", "#fce7f3", "#fef9c3", "#ede9fe")
_FILL = dict(enumerate(_PLAYERS)) | {CHANCE: "#ffffff", TERMINAL: "#e5e7eb"}
_TURN = {player: f"player {player} to move" for player in range(len(_PLAYERS))}
_TURN |= {CHANCE: "roll", TERMINAL: "game over"}
_MEANING = (
    "N visits, P prior (after a roll the probability), Q mean value for the player named: who chose the action,",
    "player 0 after a roll, the player to move at the root. Actions without visits are not drawn.",
)


@dataclass(frozen=True)
class Node:
    """A node to show."""

    parent: int | None  # the index of its parent; None for the root
    depth: int  # plies below the root, rolls counted
    name: str  # of the action or the outcome that leads here; empty at the root
    turn: int  # a player, `azpy.CHANCE` or `azpy.TERMINAL`
    view: int  # the player for whom `q` is
    visits: int  # finished simulations through here
    q: float  # mean value, in [-1, 1]
    prior: float  # of the action, or the outcome's probability
    on_principal_variation: bool  # whether it leads here
    left_out: int  # visited children that are not shown

    def lines(self) -> tuple[str, str]:
        """The text in the node."""
        prior = "" if self.parent is None else f", P {self.prior:.3f}"
        return f"N {self.visits}{prior}", f"Q {self.q:+.3f} for {self.view}"

    def hint(self) -> str:
        """One line with all of it, the name in full."""
        name = "root" if self.parent is None else f"{_printable(self.name)}, P {self.prior:.6f}"
        return f"{name}, N {self.visits}, Q {self.q:+.6f} for player {self.view}; {_TURN[self.turn]}"


def to_svg(title: str, nodes: Sequence[Mapping[str, Any]]) -> str:
    """The picture of a game's name and the fields of each `Node`, the root first; the tree grows to the right."""
    shown = [Node(**node) for node in nodes]
    # "+n more" takes a row like a last child.
    marks = [index for index, node in enumerate(shown) if node.left_out]
    rows = _rows([*(node.parent for node in shown), *marks])
    full = [_printable(node.name) for node in shown]
    names = [name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…" for name in full]
    column = _WIDTH + _BEND + 12 + _CHARACTER * max(map(len, names))
    left = [_MARGIN + column * node.depth for node in shown]
    middle = [_HEAD + _ROW * row for row in rows]

    lines, boxes = list[str](), list[str]()
    head, right = _legend(title, shown)
    right = max(right, max(left) + _WIDTH)
    for index, node in enumerate(shown):
        if node.parent is not None:
            start = left[node.parent] + _WIDTH
            lines.append(_edge(start, middle[node.parent], left[index], middle[index], node.on_principal_variation))
            lines.append(_text(start + _BEND + 3, middle[index] - 4, names[index], 'class="action"'))
        boxes.append(_box(node, left[index], middle[index]))
    for index, at in zip(marks, middle[len(shown) :], strict=True):
        start, more = left[index] + _WIDTH, f"+{shown[index].left_out} more"
        lines.append(_edge(start, middle[index], start + _BEND, at, best=False, dashed=True))
        lines.append(_text(start + _BEND + 3, at + 4, more, 'class="more" fill="#475569"'))
        right = max(right, start + _BEND + 3 + _CHARACTER * len(more))

    width, height = right + _MARGIN, max(middle) + _HEIGHT / 2 + _MARGIN
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11" fill="{_INK}" '
        f'role="img" aria-label="{html.escape(_headline(title, shown))}">'
    )
    return "\n".join([frame, '<rect width="100%" height="100%" fill="#ffffff"/>', *head, *lines, *boxes, "</svg>", ""])


def _rows(parents: Sequence[int | None]) -> list[int]:
    """The row of every node: a parent is level with its first child, and each leaf has a row of its own.

    Args:
        parents: the index of each node's parent, which comes before the node; None for the root.
    """
    children: list[list[int]] = [[] for _ in parents]
    for index, parent in enumerate(parents):
        if parent is not None:
            children[parent].append(index)
    rows, leaves, ahead = [0] * len(parents), 0, [0]
    while ahead:
        index = ahead.pop()
        rows[index] = leaves
        ahead += reversed(children[index])
        leaves += not children[index]
    return rows


def _box(node: Node, left: float, middle: float) -> str:
    """A node: rounded at a player's turn, a dashed pill before a roll, a double frame at a finished game."""
    shape = _shape(node.turn, left, middle - _HEIGHT / 2, _WIDTH, _HEIGHT, node.on_principal_variation)
    texts = [_text(left + _WIDTH / 2, middle + below, line) for below, line in zip((-3, 11), node.lines(), strict=True)]
    title = f"<title>{html.escape(node.hint())}</title>"
    return f'<g class="node" text-anchor="middle">{title}{shape}{"".join(texts)}</g>'


def _stroke(best: bool) -> str:
    return f'stroke="{_BEST}" stroke-width="2.5"' if best else f'stroke="{_LINE}"'


def _shape(turn: int, x: float, y: float, width: float, height: float, best: bool) -> str:
    at = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{_FILL[turn]}" {_stroke(best)}'
    if turn == CHANCE:
        return f'<rect {at} rx="{height / 2:g}" stroke-dasharray="4 2"/>'
    if turn == TERMINAL:
        inner = f'x="{x + 3:g}" y="{y + 3:g}" width="{width - 6:g}" height="{height - 6:g}"'
        return f'<rect {at}/><rect {inner} fill="none" stroke="{_LINE}"/>'
    return f'<rect {at} rx="{height / 6:g}"/>'


def _edge(x: float, y: float, to_x: float, to_y: float, best: bool, dashed: bool = False) -> str:
    """From a parent's right side down a trunk, which all its edges share, and on below the action's name."""
    trunk, bend = x + _BEND / 2, _BEND / 3
    down = f"H{trunk - bend:g}q{bend:g} 0 {bend:g} {bend:g}V{to_y - bend:g}q0 {bend:g} {bend:g} {bend:g}"
    dashes = ' stroke-dasharray="3 3"' if dashed else ""
    return f'<path d="M{x:g} {y:g}{down if to_y > y else ""}H{to_x:g}" fill="none" {_stroke(best)}{dashes}/>'


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{html.escape(text)}</text>'


def _legend(title: str, shown: Sequence[Node]) -> tuple[list[str], float]:
    """The title and the meaning of the signs, and their right end."""
    headline = _headline(title, shown)
    parts = [_text(_MARGIN, 24, headline, 'font-size="14" font-weight="bold"')]
    x = float(_MARGIN)
    for turn, meaning in _TURN.items():
        if any(node.turn == turn for node in shown):
            parts.append(_shape(turn, x, 36, 22, 14, best=False))
            parts.append(_text(x + 28, 47, meaning))
            x += 28 + _CHARACTER * len(meaning) + 16
    if any(node.on_principal_variation for node in shown):
        parts.append(f'<path d="M{x:g} 43h22" {_stroke(best=True)}/>')
        parts.append(_text(x + 28, 47, "principal variation"))
        x += 28 + _CHARACTER * len("principal variation")
    parts += [_text(_MARGIN, y, line) for y, line in zip((66, 80), _MEANING, strict=True)]
    widest = max(8 * len(headline), *(_CHARACTER * len(line) for line in _MEANING))
    return parts, max(x, _MARGIN + widest)


def _headline(title: str, shown: Sequence[Node]) -> str:
    return f"{_printable(title)}: {_TURN[shown[0].turn]}"


def _printable(text: str) -> str:
    """Without what no picture can hold, such as control characters."""
    return printable(text, " ").strip()
