"""What does the network door cost, and does the server bear a crowd? Latency and load of `az-serve`.

    python benches/server.py [latency load] [--game connect_four] [--simulations 200] [--rounds 300] [--seconds 60]

A small untrained network on the CPU answers. Everything stays on the loopback.

latency   One client asks for so many simulations of random early positions: by `Engine.submit` in this process, by
          POST /query, and by a WebSocket, in turns. The server shares this process and the engine, so the medians
          differ by the door alone.
load      `az-serve` is a process of its own, the clients are another. `--idle` WebSockets say nothing. `--games` others
          play: each keeps a named game and asks for each move `--think` seconds after the last answer, at the mean. At
          `--think 0` all games search all the time, and the delays show whether each gets its share. A game's moves are
          unequal work: it keeps its tree, wins are proved, and the cache knows early positions. With `--equal` each
          client asks for fresh random positions in place of a game's, and answers cut short by a proof do not count.
          Memory of the server a minute, p50 and p99 of the answers, and what went wrong.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_now

import azpy
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.serving.models import open_model
from azpy.web.app import Site
from azpy.web.server import Server, listening

COMMAND = [sys.executable, "-c", "from azpy.cli.serve import main; raise SystemExit(main())"]


def model_file(folder: str, game: str) -> Path:
    path = Path(folder) / "model.onnx"
    path.write_bytes(to_onnx(Network.of(azpy.make_game(game), "2x32")))
    return path


def opening(rng: random.Random, game: str) -> list[str]:
    """Moves to a random early position."""
    state, moves = azpy.make_game(game), list[str]()
    for _ in range(rng.randrange(6)):
        action = rng.choice(state.legal_actions())
        moves.append(state.action_name(action))
        state.play(action)
        if state.is_terminal:
            return opening(rng, game)  # two passes end a game of Go
    return moves


def latency(given: argparse.Namespace, path: Path) -> None:
    model = open_model(str(path), given.game, given.simulations, cache_positions=0)
    server, place = Server(Site({"main": model})), listening("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    address = f"127.0.0.1:{place.getsockname()[1]}"
    times: dict[str, list[float]] = {"engine": [], "post": [], "websocket": []}
    with httpx.Client() as client, connect_now(f"ws://{address}/ws", compression=None) as web:

        def ask(way: str, moves: list[str]) -> None:
            query = {"id": "1", "moves": moves, "simulations": given.simulations}
            if way == "engine":
                state = azpy.make_game(given.game)
                for action in state.parse_actions(" ".join(moves)):
                    state.play(action)
                visits = int(model.engine.submit(state, given.simulations).result().visits.sum())
            elif way == "post":
                visits = client.post(f"http://{address}/query", json=query).json()["rootInfo"]["visits"]
            else:
                web.send(json.dumps(query))
                visits = json.loads(web.recv())["rootInfo"]["visits"]
            assert 0 < visits <= given.simulations  # fewer where the search proves a win

        rng = random.Random(1)
        for turn in range(given.rounds):
            moves = opening(rng, given.game)
            for way in random.Random(turn).sample(sorted(times), 3):
                begin = time.perf_counter()
                ask(way, moves)
                times[way].append(1e3 * (time.perf_counter() - begin))
    server.should_exit = True
    thread.join()
    usual = statistics.median(times["engine"])
    print(f"latency: {given.rounds} searches of {given.simulations} simulations; {usual:.2f} ms by Engine.submit")
    for way in ("post", "websocket"):
        more = statistics.median(b - a for a, b in zip(times["engine"], times[way], strict=True))
        median = statistics.median(times[way])
        print(f"  {way}: {median:.2f} ms, {median - usual:+.2f} ms at the median (pair by pair {more:+.2f} ms)")


def memory_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Crowd:
    """The clients, and what they saw."""

    def __init__(self, address: str, given: argparse.Namespace) -> None:
        self.address, self.given = address, given
        self.took, self.late, self.wrong = list[float](), list[float](), list[str]()
        self.games, self.settled, self.until = 0, False, asyncio.Event()

    async def idle(self) -> None:
        try:
            async with connect(f"ws://{self.address}/ws", compression=None) as web:
                await self.until.wait()
                await web.ping()
        except Exception as error:
            self.wrong.append(f"idle: {error!r}")

    async def lags(self) -> None:
        """How late this process itself is: a busy machine delays clients too."""
        while not self.until.is_set():
            begin = time.perf_counter()
            await asyncio.sleep(0.01)
            if self.settled:
                self.late.append(time.perf_counter() - begin - 0.01)

    async def plays(self, number: int) -> None:
        rng = random.Random(number)
        try:
            async with connect(f"ws://{self.address}/ws", compression=None) as web:
                moves: list[str] = []
                await asyncio.sleep(self.given.think * rng.random())
                while not self.until.is_set():
                    query = {"id": "1", "game": "mine", "moves": moves, "simulations": self.given.simulations}
                    if self.given.equal:
                        query |= {"game": None, "moves": opening(rng, self.given.game)}
                    begin = time.perf_counter()
                    await web.send(json.dumps(query))
                    answer = json.loads(await web.recv())
                    is_cut = answer.get("rootInfo", {}).get("stop", "proven") == "proven"
                    if self.settled and not (self.given.equal and is_cut):
                        self.took.append(time.perf_counter() - begin)
                    if "error" in answer:
                        self.wrong.append(answer["error"])
                    if "move" in answer:
                        # Not always the best one: games differ.
                        known = [one["move"] for one in answer["moveInfos"]]
                        moves.append(rng.choice(known) if known and rng.random() < 0.3 else answer["move"])
                    else:
                        moves, self.games = [], self.games + 1
                    await asyncio.sleep(self.given.think * (0.5 + rng.random()))
        except Exception as error:
            self.wrong.append(f"game: {error!r}")


async def crowd(given: argparse.Namespace, address: str, pid: int) -> tuple[Crowd, list[tuple[float, float]]]:
    found = Crowd(address, given)
    tasks = [asyncio.create_task(found.lags())]
    for number in range(given.idle + given.games):
        tasks.append(asyncio.create_task(found.idle() if number < given.idle else found.plays(number)))
        if number % 50 == 49:
            await asyncio.sleep(0.05)
    await asyncio.sleep(given.settle)
    found.settled, begin, sizes = True, time.perf_counter(), list[tuple[float, float]]()
    while (now := time.perf_counter() - begin) < given.seconds:
        sizes.append((now, memory_mb(pid)))
        await asyncio.sleep(min(5.0, given.seconds / 12))
    found.until.set()
    await asyncio.gather(*tasks)
    return found, sizes


def load(given: argparse.Namespace, path: Path) -> None:
    with tempfile.TemporaryFile() as log:
        arguments = [*COMMAND, str(path), "--game", given.game, "--port", "0", "--drain-seconds", "2"]
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip().removeprefix("http://").rstrip("/")
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            found, sizes = asyncio.run(crowd(given, address, server.pid))
        finally:
            server.terminate()
            server.wait(30)
    times, megabytes = np.array(sizes).T
    p50, p99 = np.percentile(found.took, (50, 99))
    slope = 60 * np.polyfit(times, megabytes, 1)[0]
    print(
        f"load: {given.game}, {given.idle} idle WebSockets, {given.games} games, {len(found.took)} moves of "
        f"{given.simulations} simulations in {given.seconds:.0f} s, {found.games} games ended"
    )
    minutes = [f"{megabytes[np.argmin(abs(times - at))]:.1f}" for at in np.arange(0, times[-1] + 1, 60)]
    print(f"  memory: {slope:+.2f} MB a minute; at each minute {' '.join(minutes)}, at the end {megabytes[-1]:.1f} MB")
    print(f"  answers: p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms, p99/p50 {p99 / p50:.2f}")
    print(f"  the clients' own process is late by {1e3 * np.percentile(found.late, 99):.1f} ms at p99")
    print(f"  errors: {len(found.wrong)} {found.wrong[:3]}")


def main() -> None:
    parts = {part.__name__: part for part in (latency, load)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all by default")
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=10.0, help="seconds before the load is measured")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--think", type=float, default=1.0, help="seconds that a player thinks, at the mean")
    parser.add_argument("--equal", action="store_true", help="the load's requests are equal work")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = model_file(folder, given.game)
        for name in given.parts or parts:
            parts[name](given, path)


if __name__ == "__main__":
    main()
