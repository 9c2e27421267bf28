"""Assemble the pages of the site (`assemble FOLDER`), and check the links of the built site (`check FOLDER`)."""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
LINK = re.compile(r'(\]\(|(?:href|src)=")(?!https?:|#)([^)#"\s]+)')


def assemble(folder: Path) -> None:
    """Copy the pages, and the files that they link to, to the places that their links name.

    docs/index.md becomes the first page of the site, and README.md the page overview.
    """
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    (folder / "README.md").rename(folder / "overview.md")
    first = (folder / "docs/index.md").rename(folder / "index.md")
    first.write_text(LINK.sub(r"\1docs/\2", first.read_text("utf-8")), "utf-8")
    for page in folder.rglob("*.md"):
        text = page.read_text("utf-8")
        page.write_text(re.sub(r"(\]\([./]*)README\.md", r"\1overview.md", text), "utf-8")
        for _, link in LINK.findall(text):
            copy = (page.parent / link).resolve()
            source = ROOT / copy.relative_to(folder.resolve())
            if source.is_file() and source.suffix != ".md" and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)


class _Page(HTMLParser):
    """The links of a page, the addresses that it loads by itself, and the anchors that others can link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                (self.links if tag == "a" else self.loads).append(value)


def lost(folder: Path) -> list[str]:
    """Return a line for each link of a built site that leads nowhere, and each request to another host."""
    pages = {page: _Page(page.read_text("utf-8")) for page in folder.resolve().rglob("*.html")}
    found = []
    for page, parsed in pages.items():
        for link in parsed.links + parsed.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in parsed.loads and parts.scheme != "data":
                    found.append(f"{page.relative_to(folder.resolve())}: {link} is on another host")
                continue
            path = unquote(parts.path)
            there = folder.resolve() / path.lstrip("/") if path.startswith("/") else page.parent / path
            there = page if not path else there.resolve()
            there = there / "index.html" if there.is_dir() else there
            anchors = pages[there].anchors if there in pages else {""}
            if not there.is_file() or unquote(parts.fragment) not in anchors:
                found.append(f"{page.relative_to(folder.resolve())}: {link} leads nowhere")
    return found


if __name__ == "__main__":
    command, place = sys.argv[1], Path(sys.argv[2])
    if command == "assemble":
        assemble(place)
    else:
        sys.exit("\n".join(lost(place)) or None)
