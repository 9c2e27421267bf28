"""A run's games in forms that other programs read: npz of training arrays, JSON lines, PGN, SGF.

Everything is made from the stored records by playing them again, so planes have their true history. Files are written
as `storage.output` does: whole or not at all, or straight into a device or a pipe. A `RunError` says why one cannot be
written.
"""

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import FAST_SEARCH, MIXED_NETWORKS, PLAYED, SEARCHED, GameRecord, State, notation_of
from azpy.errors import RunError
from azpy.game import value_width
from azpy.games.lines import replayed
from azpy.games.notations import result_of, tags_of, written
from azpy.runs import storage

Games = Sequence[tuple[int, GameRecord]]  # (iteration, game)
Told = Mapping[int, Mapping[str, str]]  # tags by game id
NOTHING: Told = {}


def to_npz(path: str | os.PathLike[str], start: State, games: Games) -> int:
    """Write one row for each searched position, in the order of the games. Memory holds one game's rows.

    A position of an imported game has a row only if its search was stored.

    The arrays: `observations` float32 [N, C, H, W] and `legal` bool [N, A]; `policy_targets` float32 [N, A], the
    network's target, 0 where illegal; `value_targets` float32 [N], the outcome for the player to move, or 1 or -1 where
    the game had a score to beat; `root_values` float32 [N], the search's value for the player to move; `game_id` int64
    [N] and `ply` int32 [N]. In a game of several players without a zero sum, `value_targets` and `root_values` are
    [N, P], the player to move first.

    Returns:
        N.
    """

    def searched(record: GameRecord) -> NDArray[np.int64]:
        return np.flatnonzero(record.flags & SEARCHED)

    def observations(record: GameRecord) -> NDArray[np.float32]:
        plies, positions = set(searched(record).tolist()), enumerate(replayed(start, record.actions.tolist()))
        return np.array([position.observation() for ply, position in positions if ply in plies], np.float32)

    def over_actions(record: GameRecord, values: Any) -> NDArray[np.float32]:
        plies = searched(record)
        table = np.zeros((len(plies), start.num_actions), np.float32)
        table[np.repeat(np.arange(len(plies)), np.diff(record.offsets)[plies]), record.legal] = values
        return table

    width = value_width(start)
    value_shape = () if width == 1 else (width,)

    def in_turn_order(record: GameRecord, each: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers of the players [T, P], of the searched plies with the player to move first."""
        plies = searched(record)
        seats = (record.players[plies, None] + np.arange(width)) % record.num_players
        rows: NDArray[np.float32] = each[plies[:, None], seats].reshape(-1, *value_shape)
        return rows

    def rewards(record: GameRecord) -> NDArray[np.float32]:
        return np.broadcast_to(np.array(record.rewards, np.float32), (len(record), record.num_players))

    rows, actions = sum(len(searched(record)) for _, record in games), (start.num_actions,)
    columns: dict[str, tuple[str, tuple[int, ...], Callable[[GameRecord], NDArray[Any]]]] = {
        # name -> dtype, shape of a row, the rows of a game
        "observations": ("<f4", tuple(start.obs_shape), observations),
        "legal": ("|b1", actions, lambda record: over_actions(record, 1)),
        "policy_targets": ("<f4", actions, lambda record: over_actions(record, record.targets)),
        "value_targets": ("<f4", value_shape, lambda record: in_turn_order(record, rewards(record))),
        "root_values": ("<f4", value_shape, lambda record: in_turn_order(record, record.player_values)),
        "game_id": ("<i8", (), lambda record: np.full(len(searched(record)), record.game_id)),
        "ply": ("<i4", (), searched),
    }
    with storage.output(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, (dtype, shape, rows_of) in columns.items():
            header = {"descr": dtype, "fortran_order": False, "shape": (rows, *shape)}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for _, record in games:
                    member.write(np.ascontiguousarray(rows_of(record), dtype).tobytes())
    return rows


def to_jsonl(path: str | os.PathLike[str], start: State, games: Games) -> int:
    """Write one JSON object a line and game, see `game_as_dict`; return the number of games."""
    with storage.output(path) as file:
        for iteration, record in games:
            text = json.dumps(game_as_dict(start, record) | {"iteration": iteration}, allow_nan=False)
            file.write(f"{text}\n".encode())
    return len(games)


def game_as_dict(start: State, record: GameRecord) -> dict[str, Any]:
    """A game as plain values: all of its record, with the names of actions.

    `outcome` is for player 0, or one number a player where two do not share a zero sum, and `result` says it in words;
    if `resigned`, the player to move after the last ply gave up. `score_to_beat` is that of one player, else None. Each
    ply has `player` (-1: dice), `action`, its `name` and its `short` name, `searched` (a sample, searched in full),
    `fast` (not learned from) and `elsewhere` (a move of an imported game, without a search). A searched ply also has
    `network` (hexadecimal), `mixed_networks` (exchanged during the search) and `root_value` for the player to move;
    where two players do not share a zero sum it has `root_values` too, one a player, player 0 first. A sample has its
    `search`: the legal actions with `action`, `name`, `prior` (without noise), `visits` and `target` (the network's
    target).
    """
    plies = []
    flags, networks, offsets = record.flags, record.networks, record.offsets
    legal, found = record.legal.tolist(), zip(record.priors, record.visits, record.targets, strict=True)
    search = [{"prior": float(p), "visits": int(n), "target": float(t)} for p, n, t in found]
    actions, players, root_values = record.actions.tolist(), record.players.tolist(), record.root_values.tolist()
    each = [] if start.zero_sum else record.player_values.tolist()
    positions = replayed(start, actions)
    for ply, position in zip(range(len(record)), positions, strict=False):
        kinds = {"searched": SEARCHED, "fast": FAST_SEARCH}
        kind = {name: bool(flags[ply] & flag) for name, flag in kinds.items()}
        action = actions[ply]
        row = {"ply": ply, "player": players[ply], "action": action}
        row |= {"name": position.action_name(action), "short": position.short_name(action)}
        row |= kind | {"elsewhere": bool(flags[ply] & PLAYED)}
        if any(kind.values()):
            row |= {"network": f"{int(networks[ply]):#018x}", "mixed_networks": bool(flags[ply] & MIXED_NETWORKS)}
            row |= {"root_value": root_values[ply]}
            row |= {} if start.zero_sum else {"root_values": each[ply]}
        if kind["searched"]:
            own = range(offsets[ply], offsets[ply + 1])
            row["search"] = [{"action": legal[k], "name": position.action_name(legal[k])} | search[k] for k in own]
        plies.append(row)
    last = next(positions)
    about = {"game": record.game, "game_id": record.game_id, "seed": record.seed}
    about |= {"outcome": record.outcome, "capped": record.capped, "resigned": record.resigned, "length": len(record)}
    about |= {"result": result_of(last, record.outcome, end_of(record))}
    about |= {"imported": record.imported, "score_to_beat": record.score_to_beat}
    return about | {"plies": plies}


def to_pgn(path: str | os.PathLike[str], start: State, games: Games, event: str, told: Told = NOTHING) -> int:
    """Write games of chess as PGN, moves in SAN, and return their number.

    Args:
        path: of the file.
        start: of the games.
        games: to write.
        event: the tag Event, unless `told` has one.
        told: tags of imported games, by game id.
    """
    with storage.output(path) as file:
        for iteration, record in games:
            file.write(f"{_written(start, iteration, record, event, told)}\n".encode())
    return len(games)


def to_sgf(folder: str | os.PathLike[str], start: State, games: Games, event: str, told: Told = NOTHING) -> int:
    """Write games of Go as SGF, a file each (`000017.sgf` is game 17), and return their number.

    Player 0 is Black. The folder is made if it is missing. The other arguments are those of `to_pgn`, with EV as event.
    """
    target = Path(folder)
    with storage.disk_errors(target):
        target.mkdir(parents=True, exist_ok=True)
    for iteration, record in games:
        with storage.output(target / f"{record.game_id:06}.sgf") as file:
            file.write(_written(start, iteration, record, event, told).encode())
    return len(games)


def _written(start: State, iteration: int, record: GameRecord, event: str, told: Told) -> str:
    if (notation := notation_of(start.game)) is None:  # az-export looks before
        raise RunError(f"{start.game} does not have a game notation that other programs read")
    players = {seat: _network_name(record, player) for player, seat in enumerate(notation.players)}
    end = end_of(record)
    tags = tags_of(notation, event, f"{iteration}.{record.game_id}", record.outcome, end)
    if notation.name == "pgn" and not record.imported:
        tags["TimeControl"] = "-"
    *_, last = replayed(start, record.actions.tolist())
    tags |= players | dict(told.get(record.game_id, {}) if record.imported else {})
    return written(notation, start, record.actions, tags, result_of(last, record.outcome, end))


def end_of(record: GameRecord) -> str:
    """How a game ended, as `tags_of` and `result_of` take it."""
    return "resigned" if record.resigned else "capped" if record.capped else "rules"


def _network_name(record: GameRecord, player: int) -> str:
    searched = record.flags & (SEARCHED | FAST_SEARCH) != 0
    networks = set(record.networks[(record.players == player) & searched].tolist())
    return " ".join(f"network {network:#018x}" for network in sorted(networks)) or "?"
