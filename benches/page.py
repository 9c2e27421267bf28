"""Measures a page without a server in Chromium: bytes, and the time from its navigation to the first move.

    az-export RUN --web folder && python benches/page.py folder

Each visit begins with an empty cache, and again with what the visit before left in it. The host compresses texts, as
static hosts do. Needs selenium, and Debian's packages chromium and chromium-driver.
"""

import argparse
import gzip
import statistics
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

HEAD = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module">'
BOT = f"""{HEAD}
import {{ Player }} from "./player/azpy.js";
const player = await Player.load();
await player.choose([], {{ level: player.levels[1] }});
document.title = performance.now();
</script>"""
BOARD = f"""{HEAD}
import "./player/azpy.js";
const boards = [...document.querySelectorAll("azpy-board")];
const isOpen = (one) => one.shadowRoot.lastChild.contentDocument?.getElementById("board")?.dataset.state === "open";
const look = () => (boards.every(isOpen) ? (document.title = performance.now()) : requestAnimationFrame(look));
look();
</script>"""
TAG = '<azpy-board src="player/"></azpy-board>'
DONE = "const [done] = arguments; const look = () => document.title ? done() : setTimeout(look, 50); look();"
PAGES = {"a bot's first move": BOT, "a board to touch": BOARD + TAG, "two boards": BOARD + 2 * TAG}
TEXTS = {".html", ".js", ".css", ".json", ".svg", ".webmanifest"}


class Host(SimpleHTTPRequestHandler):
    """A static host that compresses texts, answers what a browser has by 304, and counts what it sends."""

    protocol_version = "HTTP/1.1"

    def __init__(self, sent: Callable[[int, int], None], *arguments: Any, **options: Any) -> None:
        self.sent = sent
        super().__init__(*arguments, **options)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        data = path.read_bytes() if path.is_file() else b""
        tag = f'"{hash(data)}"'
        is_kept = self.headers.get("if-none-match") == tag
        is_text = path.suffix in TEXTS or path.name == "about"
        data = b"" if is_kept else gzip.compress(data, mtime=0) if is_text else data
        self.send_response(304 if is_kept else 200 if path.is_file() else 404)
        self.send_header("content-type", self.guess_type(str(path)))
        self.send_header("cache-control", "max-age=600")  # as GitHub's pages
        self.send_header("etag", tag)
        if is_text:
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.sent(1, len(data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=7)
    given = parser.parse_args()
    counted: list[int] = [0, 0]

    def sent(requests: int, size: int) -> None:
        counted[0], counted[1] = counted[0] + requests, counted[1] + size

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as site:
        Path(site, "player").symlink_to(given.folder.resolve())
        host = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, sent, directory=site))
        threading.Thread(target=host.serve_forever, daemon=True).start()
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        for name, page in PAGES.items():
            Path(site, "page.html").write_text(page)
            found: dict[str, list[tuple[float, int, int]]] = {"first visit": [], "again": []}
            for _ in range(given.times):
                driver.execute_cdp_cmd("Network.clearBrowserCache", {})
                for visit, rows in found.items():
                    counted[:] = 0, 0
                    driver.get(f"http://127.0.0.1:{host.server_port}/page.html?{visit}")
                    driver.execute_async_script(DONE)
                    rows.append((float(driver.title), *counted))
                    driver.get("about:blank")
            for visit, rows in found.items():
                time, requests, size = map(statistics.median, zip(*rows, strict=True))
                print(f"{name}, {visit}: {time:.0f} ms, {requests:.0f} requests, {size / 1000:.0f} kB")
        driver.quit()
        host.shutdown()


if __name__ == "__main__":
    main()
