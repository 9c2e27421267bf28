"""Everything at once, for long: memory, threads and open files of a training run and of its server stay flat."""

import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from running import az
from served import process
from talks import PATIENCE

MINUTES = float(os.environ.get("AZPY_SOAK_MINUTES", "10"))
SMALL = [
    *("--network", "1x8", "--simulations", "16", "--slots", "16", "--games-per-iteration", "64", "--passes", "1"),
    *("--window-min", "500", "--window-max", "2000", "--match-every", "4", "--match-games", "4"),
    *("--final-match-games", "2"),
]
MOST_MORE = (24, 2, 4)  # MB, threads and files that the last third may have above the second one


@contextmanager
def training(path: Path, minutes: float) -> Iterator[subprocess.Popen[str]]:
    """az-train in a process of its own; it has made its first checkpoint."""
    command = az("train", "connect_four", *SMALL, "--minutes", str(minutes))
    with (path / "said").open("w") as said:
        run = subprocess.Popen([*command, "--out", str(path / "run")], text=True, stdout=said, stderr=subprocess.STDOUT)
    try:
        while not list((path / "run/checkpoints").glob("0*/manifest.json")):
            assert run.poll() is None, (path / "said").read_text()
            time.sleep(0.2)
        yield run
    finally:
        run.kill()
        run.wait()


def used(pid: int) -> tuple[int, int, int]:
    """Resident megabytes, threads and open files of a process."""
    lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return int(lines["VmRSS"].split()[0]) // 1024, int(lines["Threads"]), len([*Path(f"/proc/{pid}/fd").iterdir()])


def ask_much(address: str, rng: random.Random) -> int:
    """A client that comes, plays two games with trees, stops a search, asks nonsense, and goes; returns its answers."""
    answers = 0
    with connect(f"ws://{address}/ws", max_size=None) as socket:
        for game in ("a", "b"):
            moves = list[str]()
            while len(moves) < 12:
                query = {"id": "q", "game": game, "moves": moves, "simulations": rng.choice((1, 30, 200))}
                socket.send(json.dumps(query))
                answer = json.loads(socket.recv(PATIENCE))
                assert "error" not in answer, answer
                answers += 1
                if answer["rootInfo"]["stop"] == "game over":
                    break
                moves.append(answer["move"])
        socket.send(json.dumps({"id": "long", "simulations": 1_000_000}))
        socket.send(json.dumps({"id": "end", "action": "terminate", "terminateId": "long"}))
        assert {json.loads(socket.recv(PATIENCE))["id"] for _ in range(2)} == {"long", "end"}
        socket.send("{" * rng.randrange(1, 5000))
        assert "error" in json.loads(socket.recv(PATIENCE))
        if rng.random() < 0.5:  # leaves a search behind
            socket.send(json.dumps({"id": "left", "simulations": 1_000_000}))
    with httpx.Client() as client:
        for path in ("/", "/health", "/metrics"):
            assert client.get(f"http://{address}{path}").status_code == 200
        assert client.post(f"http://{address}/query", json={"id": "1", "simulations": 20}).status_code == 200
    return answers + 4


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_memory_threads_and_files_stay_flat(tmp_path: Path) -> None:
    rows, answers, rng = list[tuple[int, ...]](), 0, random.Random(0)
    begin, log = time.monotonic(), (tmp_path / "log").open("w")
    with log, training(tmp_path, MINUTES + 1) as run, process(str(tmp_path / "run"), stderr=log) as (address, server):
        print("\nminute | az-train: MB threads files iteration | az-serve: MB threads files answers")
        for minute in itertools.count(1):
            while time.monotonic() - begin < 60 * minute and run.poll() is None:
                answers += ask_much(address, rng)
                time.sleep(0.5)
            if run.poll() is not None or minute > MINUTES:
                break
            server.send_signal(signal.SIGHUP)  # it loads the newest checkpoint
            done = (tmp_path / "run/metrics.jsonl").read_text().count('"kind": "iteration"')
            rows.append((*used(run.pid), done, *used(server.pid), answers))
            print(minute, "|", *rows[-1][:4], "|", *rows[-1][4:], flush=True)
    third = max(1, len(rows) // 3)
    for name, first in (("az-train", 0), ("az-serve", 4)):
        for place, more in enumerate(MOST_MORE, start=first):
            second, last = (max(row[place] for row in part) for part in (rows[third : 2 * third], rows[2 * third :]))
            assert last <= second + more, (name, place, rows)
