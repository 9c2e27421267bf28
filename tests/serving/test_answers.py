"""A table of messages and answers, `data/answers.json`: a server gives these answers, and so does a page without one.

`rust/serve/tests/all/stepping.rs` holds the page's side to the same table. "*" in an answer stands for whatever depends
on time. `python tests/serving/test_answers.py` writes the answers anew, as the server gives them: read what changed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azpy._core import Message
from azpy.serving.limits import Limits
from azpy.serving.models import PlayerEngine, open_engine, open_player
from azpy.serving.queries import Response, Session

TABLE = Path(__file__).parents[1] / "data/answers.json"
table: dict[str, Any] = json.loads(TABLE.read_text())


def answers(talk: dict[str, Any]) -> Iterator[list[Any]]:
    """What a server says to each turn of a talk: several messages at once, and their answers by id and turn."""
    served = open_player(f"uniform:{table['simulations']}", talk["game"], 1, temperature=talk.get("temperature", 0.0))
    assert [[name, level.simulations] for name, level in served.ladder.levels.items()] == table["levels"]
    assert served.options == table["options"]
    limits = Limits(**table["limits"] | talk.get("limits", {}))
    said = list[dict[str, Any]]()
    with open_engine(served) as engine:
        session = Session(
            {"main": PlayerEngine(served, engine)}, lambda reply: said.append(json.loads(reply.line)), limits
        )
        for turn in talk["turns"]:
            for message in turn["ask"]:
                try:
                    session.take(Message(message if isinstance(message, str) else json.dumps(message)))
                except ValueError as error:  # as the doors do
                    said.append(json.loads(Response.refusal(str(error)).line))
            session.wait()
            yield sorted(said, key=lambda line: (line.get("id", ""), line.get("turnNumber", -1)))
            said.clear()


def fits(expected: Any, said: Any) -> bool:
    if isinstance(expected, dict) and isinstance(said, dict):
        return expected.keys() == said.keys() and all(fits(expected[name], said[name]) for name in expected)
    return expected in ("*", said)


@pytest.mark.parametrize("talk", table["talks"], ids=lambda talk: talk["what"])
def test_a_server_gives_the_answers_of_the_table(talk: dict[str, Any]) -> None:
    for turn, said in zip(talk["turns"], answers(talk), strict=True):
        assert len(said) == len(turn["say"]), said
        for expected, line in zip(turn["say"], said, strict=True):
            assert fits(expected, line), f"{line}, expected {expected}"


def _timeless(line: dict[str, Any]) -> dict[str, Any]:
    """An answer with "*" for what depends on time, or on azpy's version."""
    if line.get("rootInfo", {}).get("stop") == "stopped":
        root = dict.fromkeys(line["rootInfo"], "*") | {"stop": "stopped"}
        line |= {"move": "*", "moveInfos": "*", "rootInfo": root}
    return line | ({"version": "*"} if "version" in line else {})


def _write() -> None:
    blocks, end = [], ",\n"
    for talk in table["talks"]:
        lines = []
        for turn, said in zip(talk["turns"], answers(talk), strict=True):
            ask, say = (f"{end}      ".join(map(json.dumps, part)) for part in (turn["ask"], map(_timeless, said)))
            lines.append(f'    {{"ask": [{ask}], "say": [\n      {say}]}}')
        del talk["turns"]
        blocks.append(f'  {json.dumps(talk)[:-1]}, "turns": [\n{end.join(lines)}]}}')
    head = json.dumps({name: value for name, value in table.items() if name != "talks"})
    TABLE.write_text(f'{head[:-1]}, "talks": [\n{end.join(blocks)}]}}\n')


if __name__ == "__main__":
    _write()
