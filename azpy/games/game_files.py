"""Files of one game: PGN of chess, SGF of Go, and of every game the JSON that the board's page saves and loads."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azpy._core import State, Variations, notation_of
from azpy.games.lines import replayed
from azpy.games.notations import line_of, result_of, tags_of, tags_of_players, tags_of_today, written

JSON = ".json"


@dataclass(frozen=True)
class ReadGame:
    """A game that was read."""

    start: State  # where it begins
    actions: Sequence[int]  # of its main line, dice included
    tags: Mapping[str, str] = field(default_factory=dict)  # of the game as a whole, by the names of its notation
    players: tuple[str | None, ...] = ()  # player 0 first, as far as the text names them
    result: str | None = None  # as the text says it
    left_out: tuple[str, ...] = ()  # variations, notes, and moves that cannot be played, each in words


def main_line(start: State, moves: Iterable[tuple[int, str]]) -> list[int]:
    """The actions of the main line of a game with variations.

    Args:
        start: where it begins.
        moves: each as (index of the move before it or -1, name); the main line comes first.

    Raises:
        ValueError: a move that the rules do not allow.
    """
    position, actions = start.clone(), list[int]()
    for index, (before, name) in enumerate(moves):
        if before != index - 1:  # the main line is over
            break
        played = position.parse_actions(name)
        if len(played) != 1:
            raise ValueError(f"move {index} is {name!r:.60}, expected the name of one action")
        position.play(played[0])
        actions += played
    return actions


def read_game(rules: State, text: str) -> ReadGame:
    """The main line of a game: PGN, SGF, JSON of the board's page, names of actions, or a position.

    Args:
        rules: the start of a game of these rules. A text that does not say where it begins begins here.
        text: of one game.

    Raises:
        ValueError: a text that cannot be read, or another game; says where.
    """
    if text.lstrip().startswith("{"):
        return _read_json(rules, text)
    read: Variations = rules.read_variations(text)
    actions = main_line(read.start, [(before, name) for before, name, _ in read.moves])
    tags, notation = dict(read.tags), notation_of(rules.game)
    players = () if notation is None else tuple(_known(tags.get(seat)) for seat in notation.players)
    result = None if notation is None else _known(tags.get(notation.result))
    left_out = _left_out(len(read.moves) - len(actions), len(read.notes)) + tuple(read.left_out)
    return ReadGame(read.start, actions, tags, players, result, left_out)


def _read_json(rules: State, text: str) -> ReadGame:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the text starts like JSON but is not valid: {error}") from None
    nodes = record.get("nodes")
    try:
        moves = [(int(node[0]), str(node[1])) for node in nodes]
        players = tuple(None if name is None else str(name) for name in record.get("players") or ())
    except (TypeError, ValueError, LookupError):
        expected = "expected its nodes, each with an index and a name"
        raise ValueError(f"this JSON is not a saved game: {expected}") from None
    game = record.get("game", rules.game)
    if game != rules.game:
        raise ValueError(f"the text is a game of {game!r:.80}, expected {rules.game}")
    position, result = record.get("position"), record.get("result")
    start = rules if position is None else rules.read_variations(str(position)).start
    actions = main_line(start, moves)
    left_out = _left_out(len(moves) - len(actions), sum(len(node) > 4 for node in nodes))
    if len(players) not in (0, rules.num_players):
        raise ValueError(f"players: expected {rules.num_players} names, got {len(players)}")
    return ReadGame(start, actions, {}, players, None if result is None else str(result), left_out)


def _left_out(moves: int, notes: int) -> tuple[str, ...]:
    counts = {"moves of variations": moves, "positions with comments or marks": notes}
    return tuple(f"{name}: {count}" for name, count in counts.items() if count)


def _known(value: str | None) -> str | None:
    return None if value in (None, "", "?", "*") else value


def ending_of(game: str, name: str) -> str:
    """How the name of a file ends in which a game is saved: .json, .pgn or .sgf.

    Raises:
        ValueError: another end; says which there are.
    """
    notation = notation_of(game)
    ends = ([] if notation is None else [f".{notation.name}"]) + [JSON]
    found = next((end for end in ends if name.lower().endswith(end)), None)
    if found is None:
        raise ValueError(f"a game of {game} is saved to a file that ends in {' or '.join(ends)}, got {name!r}")
    return found


def game_text(
    ending: str,
    rules: State,
    start: State,
    actions: Sequence[int],
    players: Sequence[str],
    tags: Mapping[str, str],
    end: tuple[Any, str] | None,
) -> str:
    """A game as text, in the form that `ending_of` gives for its file.

    Args:
        ending: .json, .pgn or .sgf.
        rules: the start of a game of these rules.
        start: where the game begins.
        actions: of the game, dice included.
        players: their names.
        tags: of PGN or SGF, which count before those that follow from the other arguments.
        end: the outcome as `State.outcome` gives it, and how the game ended as for `tags_of`; None if it goes on.

    Raises:
        ValueError: a start that the form cannot hold.
    """
    *_, last = replayed(start, actions)
    said = None if end is None else result_of(last, *end)
    notation = notation_of(rules.game)
    if ending == JSON or notation is None:
        return _json_text(rules, start, actions, players, said)
    own = tags_of_players(notation, players)
    if not tags:  # the game was not loaded
        own |= tags_of_today(notation)
    if end is None or said is None:
        return start.write_variations(line_of(start, actions), own | dict(tags))
    own |= tags_of(notation, "az-play", "1", *end)
    return written(notation, start, actions, own | dict(tags), said)


def _json_text(rules: State, start: State, actions: Sequence[int], players: Sequence[str], result: str | None) -> str:
    nodes = list[list[Any]]()
    for ply, (action, position) in enumerate(zip(actions, replayed(start, actions), strict=False)):
        mover = position.turn if position.turn >= 0 else None
        nodes.append([ply - 1, position.action_name(action), position.short_name(action), mover])
    is_usual = start.key() == rules.key()
    record = {"game": rules.game, "position": None if is_usual else start.to_text(), "nodes": nodes}
    return json.dumps(record | {"players": players, "result": result}, ensure_ascii=False) + "\n"
