"""Games of other programs, as files to learn from (`az-train --supervised`): SGF for Go, PGN for chess.

    python benches/gather.py go games A B [--games 400] [--opening-plies 2] [--slots 2] [--seed 0]

A and B are players as az-match names them. FOLDER gets one file a game. Each opening is played twice, with the seats
exchanged. If A and B play alike, both games are the same: give GNU Go's levels 1 and 2, not 1 and 1. A game in which a
program misbehaves is left out, and so is the other one of its opening.
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path

from azpy import State
from azpy._core import Notation, notation_of
from azpy.games.lines import replayed
from azpy.games.names import make_position
from azpy.games.notations import line_of
from azpy.matches.arena import play_pairs
from azpy.matches.openings import Book
from azpy.matches.players import load_players, parse_player
from azpy.matches.programs import Transcripts


def written(start: State, notation: Notation, actions: tuple[int, ...], outcome: float, names: tuple[str, str]) -> str:
    """A game; one of Go that the rules do not end was given up, or lost by a fault."""
    tags = dict(zip(notation.players, names, strict=True))
    *_, last = replayed(start, actions)
    if notation.name == "pgn":
        tags["Result"] = {1.0: "1-0", -1.0: "0-1"}.get(outcome, "1/2-1/2")
    elif not last.is_terminal:
        tags["RE"] = "B+R" if outcome > 0 else "W+R"
    return start.write_variations(line_of(start, actions), tags)


def main() -> None:
    """Plays and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("players", nargs=2, metavar="PLAYER")
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--opening-plies", type=int, default=2)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start, notation = make_position(given.game), notation_of(given.game)
    if notation is None:
        parser.error(f"there is no notation of whole games of {given.game}")
    a, b = load_players([parse_player(text) for text in given.players], start, 100, None, "cpu", Transcripts())
    names = (str(a), str(b))
    given.folder.mkdir(parents=True, exist_ok=True)
    number = 0
    book = Book(lambda: make_position(given.game), given.opening_plies, given.seed)
    with closing(play_pairs(book, a.player, b.player, given.games // 2, given.seed, given.slots)) as pairs:
        for pair in pairs:
            for seat, (outcome, actions) in enumerate(zip(pair.outcomes, pair.actions, strict=True)):
                if not any(pair.faults):  # what a program got wrong is no game to learn from
                    first, seats = (outcome, names) if seat == 0 else (-outcome, names[::-1])
                    text = written(start, notation, actions, first, seats)
                    (given.folder / f"{number:06}.{notation.name}").write_text(text, encoding="utf-8")
                number += 1
            print(f"{number} games", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
