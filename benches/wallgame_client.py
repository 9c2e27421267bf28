"""Does the Wall Game's official client play whole games with az-engine? A stand-in for its server finds out.

    python benches/wallgame_client.py CLIENT [--bun bun] [--games 200] [--at-once 8] [--simulations 20] [--seed 0]

CLIENT is the folder `official-custom-bot-client` of the public program, nmamano/wallgame, with that program's `shared`
beside it. The client runs in Bun. It starts az-engine and attaches itself to the stand-in, on the loopback.

The stand-in sends what the public server sends (custom-bot protocol, version 3): at the start of a game
`start_game_session` and `evaluate_position`; after each turn of either side `apply_move` and `evaluate_position`; after
the last turn `end_game_session` alone. The bot's turn is `bestMove` of the last answer. A take-back ends the session,
starts it anew by the same id, and replays the game; sometimes an evaluation is out at that moment. The other player
plays random legal turns, short ones and empty ones too.

With `--drops` the connection is cut. The client comes back, but has forgotten its sessions: it answers the server's
`end_game_session` itself, and the engine refuses to start a session that it holds. Such games are counted as lost.

azpy's rules say which turns are legal and when a game is over. A game is standard, classic or freestyle, on a board of
5 to 12 columns and 5 to 10 rows. Some begin with walls, with player 2, or in the middle of a turn.

The exit code is 1 if an answer is wrong, not legal or later than the server's 10 s, if a game or a session does not
end, if the client complains, or if a process is left over.
"""

import argparse
import asyncio
import collections
import contextlib
import copy
import itertools
import json
import os
import random
import re
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

import azpy
from azpy.errors import RequestError
from azpy.serving.wall_game import NO_ACTION, apply_move, move_text, state_of

BOT = "azpy"
SECONDS = 10.0  # the server's patience with an answer
BYTES = 64 << 10  # of a message, either way
SIZES = [(5, 5), (6, 6), (7, 5), (5, 8), (8, 8), (9, 7), (12, 10)]  # columns, rows
ANSWERS = {
    "start_game_session": "game_session_started",
    "evaluate_position": "evaluate_response",
    "apply_move": "move_applied",
    "end_game_session": "game_session_ended",
}
ENGINE = [sys.executable, "-c", "import sys; from azpy.cli.engine import main; sys.exit(main())"]


class BotError(Exception):
    """What the public server would not bear of a bot."""


class DroppedError(Exception):
    """The connection is gone."""


def new_config(rng: random.Random) -> dict[str, Any]:
    """The start of a game as the server sends it. Half of them are set up by hand."""
    variant = rng.choice(["standard", "standard", "classic", "classic", "freestyle"])
    width, height = rng.choice(SIZES)
    left, right = [height - 1, 0], [height - 1, width - 1]
    goal, goals = ("home", (right, left)) if variant == "classic" else ("mouse", (left, right))
    setup: dict[str, Any] = {
        "pawns": {"p1": {"cat": [0, 0], goal: goals[0]}, "p2": {"cat": [0, width - 1], goal: goals[1]}},
        "walls": [],
    }
    config: dict[str, Any] = {"variant": variant, "boardWidth": width, "boardHeight": height, "initialState": setup}
    if rng.random() < 0.5:
        return config
    setup["turn"] = {"playerId": rng.choice([1, 2]), "actionsTaken": []}
    for _ in range(rng.randrange(2 * max(width, height))):
        config = with_action(config, "wall", rng)[0]
    if rng.random() < 0.5:
        config, action = with_action(config, rng.choice(["cat", "wall"]), rng)
        config["initialState"]["turn"]["actionsTaken"] = [action] if action else []
    return config


def with_action(config: dict[str, Any], kind: str, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The config after a random action of a kind, and the action as `actionsTaken` holds it; or None if none goes."""
    state = state_of(config)
    names = [state.action_name(action) for action in state.legal_actions()]
    names = [name for name in names if (name[0] in ">^" if kind == "wall" else name[0] == "C")]
    for name in rng.sample(names, len(names)):
        after = copy.deepcopy(config)
        setup, cell = after["initialState"], [config["boardHeight"] - int(name[2:]), ord(name[1]) - ord("a")]
        player = setup["turn"]["playerId"]
        action = {"type": kind, "target": cell}
        if kind == "wall":
            action["wallOrientation"] = "vertical" if name[0] == ">" else "horizontal"
            setup["walls"].append({"cell": cell, "orientation": action["wallOrientation"], "playerId": player})
        else:
            cat = setup["pawns"][f"p{player}"]
            action["source"], cat["cat"] = cat["cat"], cell
        with contextlib.suppress(RequestError):  # the cat stands on its goal
            state_of(after)
            return after, action
    return config, None


def random_turn(state: azpy.State, rng: random.Random) -> str:
    """A legal turn in standard notation: mostly a full one, at times of one action or of none."""
    actions, after, wanted = list[int](), state.clone(), rng.choices([0, 1, 2], [1, 2, 30])[0]
    while len(actions) < wanted and not after.is_terminal and after.turn == state.turn and after.legal_actions():
        actions.append(rng.choice(after.legal_actions()))
        after.play(actions[-1])
    return move_text(state, actions)


def is_whole(state: azpy.State, text: str) -> bool:
    """Whether no action is missing: a turn has as many as it can, unless it ends the game."""
    if apply_move(state, text).is_terminal:
        return True
    after = state.clone()
    for action in state.parse_actions(text) if text != NO_ACTION else []:
        after.play(action)
    return after.turn != state.turn or not after.legal_actions()


class Server:
    """The stand-in: one client, many games."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.wrong, self.counts = given, list[str](), collections.Counter[str]()
        self.took: dict[str, list[float]] = {kind: [] for kind in ANSWERS}
        self.client: ServerConnection | None = None
        self.attached, self.plies, self.under_way = asyncio.Event(), list[int](), 0
        self.waiting: dict[tuple[str, str], asyncio.Future[dict[str, Any]]] = {}

    async def listen(self, client: ServerConnection) -> None:
        """One connection of a client, from its attach to its end."""
        try:
            async for text in client:
                if len(text) > BYTES:
                    self.wrong.append(f"a message of {len(text)} bytes or characters")
                message = json.loads(text)
                if text == '{"type":"ping"}':
                    self.counts["pings"] += 1
                    await client.send('{"type":"pong"}')
                elif message["type"] == "attach":
                    await self.attach(client, message)
                else:
                    self.hear(message)
        except ConnectionClosed:
            pass
        finally:
            self.attached.clear()
            for waits in self.waiting.values():
                if not waits.done():
                    waits.set_exception(DroppedError())
            self.waiting.clear()

    def hear(self, answer: dict[str, Any]) -> None:
        waits = self.waiting.pop((answer["type"], answer["bgsId"]), None)
        if waits is not None and not waits.done():
            waits.set_result(answer)
        elif self.attached.is_set():
            self.wrong.append(f"nothing waited for {answer}")

    async def attach(self, client: ServerConnection, message: dict[str, Any]) -> None:
        version, path = message["protocolVersion"], client.request.path if client.request else ""
        if (version, path) != (3, "/ws/custom-bot"):
            raise SystemExit(f"the client speaks another protocol: version {version}, at {path}")
        if [bot["botId"] for bot in message["bots"]] != [BOT]:
            raise SystemExit("the client does not offer the bot: its engine did not start")
        answer = {"type": "attached", "protocolVersion": 3, "serverTime": int(1000 * time.time())}
        limits = {"maxMessageBytes": BYTES, "minClientMessageIntervalMs": 200}
        await client.send(json.dumps({**answer, "server": {"name": "stand-in", "version": "1"}, "limits": limits}))
        self.client = client
        self.attached.set()

    async def ask(self, kind: str, game: str, **fields: Any) -> dict[str, Any]:
        """An answer of the client. It must come in time, and say that all is well."""
        if not self.attached.is_set():
            raise DroppedError
        assert self.client is not None
        begin, waits = time.perf_counter(), asyncio.get_running_loop().create_future()
        self.waiting[ANSWERS[kind], game] = waits
        try:
            await self.client.send(json.dumps({"type": kind, "bgsId": game, **fields}))
            answer: dict[str, Any] = await asyncio.wait_for(waits, SECONDS)
        except ConnectionClosed:
            raise DroppedError from None
        except TimeoutError:
            raise BotError(f"no answer to {kind} in {SECONDS:.0f} s") from None
        self.took[kind].append(time.perf_counter() - begin)
        if answer["success"] is not True or answer["error"] != "":
            raise BotError(f"{kind} failed: {answer}")
        return answer

    async def evaluate(self, game: str, state: azpy.State, ply: int) -> str:
        """The bot's turn in a position."""
        answer = await self.ask("evaluate_position", game, expectedPly=ply)
        move, value = answer["bestMove"], answer["evaluation"]
        if answer["ply"] != ply or not -1 <= value <= 1:
            raise BotError(f"at ply {ply}: {answer}")
        try:
            apply_move(state, move)
        except RequestError as error:
            raise BotError(f"not legal at {state.to_text()}: {error}") from None
        if not is_whole(state, move):
            raise BotError(f"an action is missing from {move} at {state.to_text()}")
        return str(move)

    async def begin(self, game: str, config: dict[str, Any], moves: list[str]) -> tuple[azpy.State, str]:
        """Starts a session and replays a game. Returns the position, and the bot's turn in it."""
        await self.ask("start_game_session", game, botId=BOT, config=config)
        state = state_of(config)
        best = await self.evaluate(game, state, 0)
        for ply, move in enumerate(moves):
            state, best = await self.apply(game, state, ply, move)
        return state, best

    async def apply(self, game: str, state: azpy.State, ply: int, move: str) -> tuple[azpy.State, str]:
        answer = await self.ask("apply_move", game, expectedPly=ply, move=move)
        if answer["ply"] != ply + 1:
            raise BotError(f"after ply {ply}: {answer}")
        state = apply_move(state, move)
        return state, await self.evaluate(game, state, ply + 1)

    async def end(self, game: str) -> None:
        await self.ask("end_game_session", game)

    async def play(self, number: int) -> None:
        """A game, from its start to its end. The bot is player 1 in every other one."""
        await self.attached.wait()
        rng = random.Random(f"{self.given.seed} {number}")
        name, config, moves = f"game-{number}", new_config(rng), list[str]()
        dropped, after = False, None
        while after is None:
            try:
                after = await self.finish(name, config, moves, number % 2, rng)
            except DroppedError:
                # Once the client is back, the server ends the session, whatever the answer, and replays the game.
                await self.attached.wait()
                dropped = True
                with contextlib.suppress(BotError, DroppedError):
                    await self.end(name)
            except BotError as error:
                if not dropped or "already exists" not in str(error):
                    raise
                # The client forgot the session with the connection. So it did not end the session, and the engine
                # holds it still: the server resigns for the bot.
                self.counts["games lost with the connection"] += 1
                return
        setup = config["initialState"]
        turn = setup.get("turn", {"playerId": 1, "actionsTaken": []})
        self.plies.append(len(moves))
        self.counts["games"] += 1
        self.counts[config["variant"]] += 1
        self.counts["player 2 began"] += turn["playerId"] == 2
        self.counts["begun in the middle of a turn"] += bool(turn["actionsTaken"])
        self.counts["begun with walls"] += bool(setup["walls"])
        self.counts["won by the bot"] += after.outcome() == 1 - 2 * (number % 2)
        if self.given.verbose:
            print(f"game {number}: {len(moves)} plies", file=sys.stderr, flush=True)

    async def finish(
        self, game: str, config: dict[str, Any], moves: list[str], bot: int, rng: random.Random
    ) -> azpy.State:
        """Plays a game to its end. `bot` is the bot's side, `moves` gets the turns. Returns the last position."""
        state, best = await self.begin(game, config, moves)
        back = rng.randrange(2, 12) if rng.random() < 0.2 else 0
        while True:
            moves.append(best if state.turn == bot else random_turn(state, rng))
            after = apply_move(state, moves[-1])
            if after.is_terminal:
                with contextlib.suppress(DroppedError):
                    await self.end(game)
                return after
            if len(moves) == self.given.most_plies:
                raise BotError(f"not over after {len(moves)} plies")
            state, best = await self.apply(game, state, len(moves) - 1, moves[-1])
            if len(moves) == back:
                if rng.random() < 0.5:
                    # A second take-back while the first one's evaluation is out.
                    await asyncio.gather(self.evaluate(game, state, len(moves)), self.end(game))
                    self.counts["ends while an evaluation was out"] += 1
                else:
                    await self.end(game)
                del moves[rng.randrange(len(moves)) :]
                state, best = await self.begin(game, config, moves)
                self.counts["take-backs"], back = self.counts["take-backs"] + 1, 0

    async def play_all(self) -> None:
        numbers = itertools.count()

        async def plays() -> None:
            while len(self.plies) + self.under_way < self.given.games and len(self.wrong) < 20:
                number = next(numbers)
                self.under_way += 1
                try:
                    await self.play(number)
                except BotError as error:
                    self.wrong.append(f"game {number}: {error}")
                finally:
                    self.under_way -= 1

        async def drops() -> None:
            for part in range(1, self.given.drops + 1):
                while len(self.plies) < part * self.given.games // (self.given.drops + 1):
                    await asyncio.sleep(0.01)
                await self.attached.wait()
                assert self.client is not None
                self.attached.clear()
                await self.client.close()

        dropping = asyncio.create_task(drops())
        await asyncio.gather(*(plays() for _ in range(self.given.at_once)))
        dropping.cancel()


def client_config(given: argparse.Namespace, port: int) -> dict[str, Any]:
    """The file that the client reads: where the server is, which bot it offers, and how its engine starts."""
    board = {
        "boardWidth": {"min": 5, "max": 12},
        "boardHeight": {"min": 5, "max": 10},
        "recommended": [{"boardWidth": 8, "boardHeight": 8}],
    }
    variants = dict.fromkeys(("standard", "classic", "freestyle"), board)
    engine = [*ENGINE, f"uniform:{given.simulations}", "--game", "wall_game", "--protocol", "wallgame"]
    return {
        "server": f"http://127.0.0.1:{port}",
        "bots": [{"botId": BOT, "name": "azpy", "username": None, "variants": variants}],
        "engineCommands": {BOT: shlex.join(engine)},
    }


async def run(given: argparse.Namespace, folder: Path) -> Server:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    server, log = Server(given), folder / "client.log"
    async with serve(server.listen, "127.0.0.1", 0, max_size=None) as door:
        path = folder / "bots.json"
        path.write_text(json.dumps(client_config(given, door.sockets[0].getsockname()[1])))
        with log.open("wb") as out:
            client = await asyncio.create_subprocess_exec(
                given.bun,
                "run",
                str(Path(given.client) / "src/index.ts"),
                *("--client-id", "stand-in", "--config", str(path)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "WALLGAME_HEARTBEAT_FILE": str(folder / "heartbeat")},
            )
        try:
            async with asyncio.timeout(given.seconds):
                await server.attached.wait()
                await server.play_all()
        except TimeoutError:
            server.wrong.append("the time is up")
        finally:
            await stop(client, server)
    lines = [line for line in log.read_text().splitlines() if re.search(r"\[(WARN|ERROR)\]|engine:|^error", line)]
    if given.drops:  # an answer to a connection that is gone, an end of a session that was forgotten with it
        lines = [line for line in lines if not re.search(r"Cannot (send|end session)", line)]
    server.wrong += [f"the client says: {line}" for line in lines[:20]]
    return server


async def stop(client: asyncio.subprocess.Process, server: Server) -> None:
    """Ends the client as its service does; it ends its engine."""
    with contextlib.suppress(ProcessLookupError):
        client.send_signal(signal.SIGTERM)
    code = await client.wait()
    if code != 0:
        server.wrong.append(f"the client ended with {code}")
    for _ in range(100):
        try:
            os.killpg(client.pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.1)
    os.killpg(client.pid, signal.SIGKILL)
    server.wrong.append("the engine goes on after the client's end")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("client", help="the folder official-custom-bot-client")
    parser.add_argument("--bun", default="bun")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=8, help="games at the same time")
    parser.add_argument("--simulations", type=int, default=20)
    parser.add_argument("--drops", type=int, default=0, help="times that the connection is cut")
    parser.add_argument("--most-plies", type=int, default=1000, help="turns of a game; a longer one counts as wrong")
    parser.add_argument("--seconds", type=float, default=1800.0, help="for all games")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="a line a game")
    given = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        server = asyncio.run(run(given, Path(folder)))
    print(f"{server.counts.pop('games', 0)} games of {given.games} in {time.perf_counter() - begin:.0f} s")
    for what, count in sorted(server.counts.items()):
        print(f"  {what}: {count}")
    if server.plies:
        print(f"  plies of a game: median {np.median(server.plies):.0f}, most {max(server.plies)}")
    for kind, times in server.took.items():
        if times:
            p50, p99 = np.percentile(times, (50, 99))
            print(f"  {kind}: {len(times)}; p50 {1e3 * p50:.1f}, p99 {1e3 * p99:.1f}, most {1e3 * max(times):.1f} ms")
    print(f"  wrong: {len(server.wrong)}")
    for what in server.wrong[:20]:
        print(f"    {what}")
    raise SystemExit(bool(server.wrong))


if __name__ == "__main__":
    main()
