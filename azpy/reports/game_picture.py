"""A game as a picture that one steps through: HTML that needs no server, no kernel and nothing from another host."""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from azpy._core import FAST_SEARCH, SEARCHED, GameRecord, State
from azpy.errors import SettingsError
from azpy.game import Game
from azpy.games.game_files import read_game
from azpy.games.lines import replayed
from azpy.games.names import make_game
from azpy.games.notations import result_of, side_name
from azpy.runs.exports import end_of

if TYPE_CHECKING:
    from azpy.runs.reader import StoredRun

_MARK = '<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#c2410c" stroke-width="2.5" rx="3"/>'
_WIDTH = 440  # of the picture at most, in pixels

# Shows what stands at the slider. A page that was saved runs no other script.
_SHOW = """
const box = this.closest("figure"), game = (box.game ??= JSON.parse(box.dataset.game)), at = Number(this.value);
const picture = box.querySelector("img"), buttons = box.querySelectorAll("button");
picture.src = "data:image/svg+xml," + encodeURIComponent(game.pictures[at].map((part) => game.parts[part]).join(""));
picture.alt = box.querySelector("output").textContent = game.said[at];
buttons.forEach((button, place) => { button.disabled = at === (place < 2 ? 0 : game.said.length - 1); });
"""
_STEP = "const slider = this.closest('figure').querySelector('input'); slider.value = {}; slider.oninput();"
_BUTTONS = (  # what each shows, says, and where it leads
    ("|&#9664;", "first position", "0"),
    ("&#9664;", "back", "Number(slider.value) - 1"),
    ("&#9654;", "forward", "Number(slider.value) + 1"),
    ("&#9654;|", "last position", "slider.max"),
)


@dataclass(frozen=True)
class Replay:
    """A game that a notebook shows as a picture with buttons and a slider, from its first position to its last.

    It goes on working in a notebook that was saved, and in a page that `to_html` fills. Where scripts do not run it is
    the picture of the last position.

    Attributes:
        title: who played, and the result, as far as they are known.
        pictures: SVG of each position.
        texts: what is said of each position: its number, the move that led there, what the search thought.
    """

    title: str
    pictures: tuple[str, ...]
    texts: tuple[str, ...]

    def to_html(self) -> str:
        """The game as a part of an HTML page, in ASCII alone; for a browser it is a page as it is."""
        # Positions share nearly all of their parts.
        split = [re.split("(?=<)", picture) for picture in self.pictures]
        parts = dict.fromkeys(part for picture in split for part in picture)
        number = {part: place for place, part in enumerate(parts)}
        shown = [[number[part] for part in picture] for picture in split]
        game = json.dumps({"parts": [*parts], "pictures": shown, "said": self.texts}, separators=(",", ":"))
        last = len(self.texts) - 1
        buttons = "".join(
            f'<button type="button" aria-label="{name}" onclick="{html.escape(_STEP.format(to))}"'
            f"{' disabled' if place > 1 or not last else ''}>{sign}</button>"
            for place, (sign, name, to) in enumerate(_BUTTONS)
        )
        said = html.escape(self.texts[last])
        page = (
            f'<figure data-game="{html.escape(game)}" style="max-width:{_WIDTH}px;margin:0">'
            f"<figcaption>{html.escape(self.title)}</figcaption>"
            f'<img alt="{said}" src="data:image/svg+xml,{quote(self.pictures[last])}" style="width:100%">'
            f'<div style="display:flex;gap:4px">{buttons}<input type="range" min="0" max="{last}" value="{last}" '
            f'aria-label="position" style="flex:1" oninput="{html.escape(_SHOW)}"></div>'
            f"<output>{said}</output></figure>"
        )
        return page.encode("ascii", "xmlcharrefreplace").decode()

    def _repr_html_(self) -> str:
        return self.to_html()


def replay(
    game: "str | State | Game | type[Game] | StoredRun", played: "GameRecord | Sequence[int] | str | int"
) -> Replay:
    """Show a game position by position. A notebook shows it with buttons and a slider.

    Args:
        game: where the game begins: a game's name, a `State` or an `azpy.Game`; or a run (`azpy.load_run`).
        played: the game: a `GameRecord`; a list of actions, dice included; a text of PGN, SGF or the board's JSON, or
            names of actions; or, for a run, the number of one of its games.

    Returns:
        A `Replay`, whose `to_html()` returns a part of an HTML page.

    Raises:
        ValueError: the rules do not allow an action, or the text cannot be read.
        RunError: the run does not have this game.
        SettingsError: the game does not exist, the record is of another game, or `played` is a number without a run.

    Example:
        >>> import azpy
        >>> game = azpy.replay("tic_tac_toe", "b2 a1 c3")
        >>> game.texts[1]
        '1 of 3: X b2. O to move'
        >>> game.to_html().startswith("<figure")
        True
    """
    from azpy.runs.reader import StoredRun

    title = list[str]()
    if isinstance(game, StoredRun):
        start = game.start
        if isinstance(played, int):
            title.append(f"game {played} of {game.path}")
            _, played = game.find_game(played)
    else:
        start = make_game(game) if isinstance(game, str) else State(game() if isinstance(game, type) else game)
    if isinstance(played, int):
        raise SettingsError(f"game {played} is in no run: pass azpy.load_run(folder) instead of the game's name")
    if isinstance(played, str):
        read = read_game(start, played)
        start, actions = read.start, [*read.actions]
        title += [f"{side_name(start, side)}: {name}" for side, name in enumerate(read.players) if name]
        title += [read.result] if read.result else []
        return _replay(start, actions, title)
    if not isinstance(played, GameRecord):
        return _replay(start, [int(action) for action in played], title)
    if played.game != start.game:
        raise SettingsError(f"a record of {played.game}, expected one of {start.game}")
    actions = played.actions.tolist()
    *_, last = replayed(start, actions)
    title.append(result_of(last, played.outcome, end_of(played)))
    return _replay(start, actions, title, played)


def _thought(position: State, record: GameRecord, ply: int) -> str:
    """What the search said of a position, and of its best actions beside the network's prior."""
    if not record.flags[ply] & (SEARCHED | FAST_SEARCH):
        return ""
    ours = slice(*record.offsets[ply : ply + 2])
    choices = sorted(zip(-record.targets[ours], record.priors[ours], record.legal[ours].tolist(), strict=True))
    named = [f"{position.short_name(action)} {-share:.0%} (network {prior:.0%})" for share, prior, action in choices]
    value = f"; the search gives {record.root_values[ply]:+.2f} for {side_name(position, int(record.players[ply]))}"
    return value + (f" and prefers {', '.join(named[:3])}" if named else "")


def _replay(start: State, actions: Sequence[int], title: Sequence[str], record: GameRecord | None = None) -> Replay:
    pictures, texts = list[str](), list[str]()
    came, marks = "", ""
    for ply, position in enumerate(replayed(start, actions)):
        picture = position.to_svg()
        head, tail = picture.rsplit("</svg>", 1) if marks and "</svg>" in picture else (picture, None)
        pictures.append(picture if tail is None else f"{head}{marks}</svg>{tail}")
        end = position.result_text() if position.is_terminal else ""
        turn = f"{side_name(position, position.turn)} to move" if position.turn >= 0 else "Chance follows"
        thought = _thought(position, record, ply) if record is not None and ply < len(actions) else ""
        texts.append(f"{ply} of {len(actions)}{came}. {end or turn}{thought}")
        if ply < len(actions):
            action, mover = actions[ply], position.turn
            came = f": {side_name(position, mover) if mover >= 0 else 'chance'} {position.short_name(action)}"
            touches = position.touches(action) if mover >= 0 else []
            marks = "".join(_MARK.format(*rect) for _, rect in touches)
    return Replay("; ".join(title), tuple(pictures), tuple(texts))
