"""Games of other programs, as files to learn from (`az-train --supervised`): SGF for Go, PGN for chess.

    python benches/gather.py go games A B [--games 400] [--opening-plies 2] [--slots 2] [--seed 0]

A and B are players as az-match names them. FOLDER gets one file a game. Each opening is played twice, with the seats
exchanged. A game in which a program misbehaves is left out, and so is the other one of its opening.
"""

import argparse
import sys
from contextlib import closing
from pathlib import Path

from azpy.games.lines import replayed
from azpy.games.names import make_position
from azpy.matches.arena import play_pairs
from azpy.matches.openings import Book
from azpy.matches.players import load_players, parse_player
from azpy.matches.programs import Transcripts


def sgf(game: str, actions: tuple[int, ...], outcome: float, names: tuple[str, str]) -> str:
    """A game of Go; a game that the rules do not end was given up, or lost by a fault."""
    *_, last = replayed(make_position(game), actions)
    about = f"PB[{names[0]}]PW[{names[1]}]"
    if not last.is_terminal:
        about += f"RE[{'B' if outcome > 0 else 'W'}+R]"
    return last.to_text().replace("SZ[", f"{about}SZ[", 1)


def pgn(game: str, actions: tuple[int, ...], outcome: float, names: tuple[str, str]) -> str:
    """A game of chess."""
    words = [
        state.short_name(action) for action, state in zip(actions, replayed(make_position(game), actions), strict=False)
    ]
    result = {1.0: "1-0", -1.0: "0-1"}.get(outcome, "1/2-1/2")
    head = f'[White "{names[0]}"]\n[Black "{names[1]}"]\n[Result "{result}"]\n'
    return f"{head}\n{' '.join([*words, result])}\n\n"


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
    write, suffix = {"go": (sgf, "sgf"), "chess": (pgn, "pgn")}[given.game.partition("(")[0]]
    start = make_position(given.game)
    a, b = load_players([parse_player(text) for text in given.players], start, 100, None, "cpu", Transcripts())
    names = (str(a).replace("]", ")"), str(b).replace("]", ")"))
    given.folder.mkdir(parents=True, exist_ok=True)
    number = 0
    book = Book(lambda: make_position(given.game), given.opening_plies, given.seed)
    with closing(play_pairs(book, a.player, b.player, given.games // 2, given.seed, given.slots)) as pairs:
        for pair in pairs:
            for seat, (outcome, actions) in enumerate(zip(pair.outcomes, pair.actions, strict=True)):
                if not any(pair.faults):  # what a program got wrong is no game to learn from
                    first, seats = (outcome, names) if seat == 0 else (-outcome, names[::-1])
                    text = write(given.game, actions, first, seats)
                    (given.folder / f"{number:06}.{suffix}").write_text(text, encoding="utf-8")
                number += 1
            print(f"{number} games", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
