"""What a person sees of a finished search is what happened in it, and only while that is still there."""

import doctest
import gc
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.reports.tree_picture import Node
from oracles import Batch, Countdown, DiceCountdown, Hashed, after, game_starts, turn_of

STATE = azpy.make_game("connect_four")
DICE = after(azpy.make_game("pig"), 0, 3)
SVG = "{http://www.w3.org/2000/svg}"


def searched(simulations: int = 300, **settings: Any) -> tuple[azpy.Search, azpy.SearchResult]:
    search = azpy.Search(Hashed(7), simulations=simulations, **settings)
    return search, search.run(STATE)


# Numbers.


def test_variations_can_be_fewer_and_shorter() -> None:
    _, result = searched()
    found = result.principal_variations(99)
    assert len(found) == (result.visits > 0).sum() > 3
    assert found[0][0] == result.principal_variation
    assert result.principal_variations() == found[:3]
    assert result.principal_variations(2, length=1) == [(line[:1], n, q) for line, n, q in found[:2]]
    assert result.principal_variations(0) == []


# How long a result can be looked at.

LOOKS: dict[str, Callable[[azpy.SearchResult], object]] = {
    "standard_errors": lambda result: result.standard_errors,
    "principal_variations": lambda result: result.principal_variations(),
    "to_svg": lambda result: result.to_svg(),
}
every_look = pytest.mark.parametrize("look", LOOKS)
CHANGES: dict[str, Callable[[azpy.Search], object]] = {
    "run": lambda search: search.run(),
    "run of 0 simulations": lambda search: search.run(simulations=0),
    "run of the same state": lambda search: search.run(STATE),
    "advance": lambda search: search.advance(3),
}


@every_look
@pytest.mark.parametrize("change", CHANGES)
def test_a_tree_that_has_changed_is_not_shown_as_the_old_one(look: str, change: str) -> None:
    search, result = searched()
    LOOKS[look](result)
    CHANGES[change](search)
    with pytest.raises(ValueError, match=f"{look} reads the search's tree.*call it earlier"):
        LOOKS[look](result)
    assert result._repr_svg_() is None
    assert result.visits.sum() == 300  # what it holds itself stays


@every_look
def test_a_failed_call_keeps_a_result_readable(look: str) -> None:
    search, result = searched()
    with pytest.raises(ValueError, match="illegal"):
        search.advance(7)
    # Another game has a tree of its own.
    search.run(azpy.make_game("connect_four", width=7, height=5))
    LOOKS[look](result)


@every_look
def test_a_result_can_be_looked_at_when_its_search_is_gone(look: str) -> None:
    search, result = searched()
    shown = repr(LOOKS[look](result))
    del search
    gc.collect()
    assert repr(LOOKS[look](result)) == shown


def test_each_tree_of_many_changes_for_itself() -> None:
    search = azpy.VectorSearch([STATE, after(STATE, 1), STATE], Hashed(7), threads=1)
    search.run(200)
    results = search.results()
    alone = azpy.Search(Hashed(7), simulations=200).run(after(STATE, 1))
    assert results[1].to_svg() == alone.to_svg()
    np.testing.assert_array_equal(results[1].standard_errors, alone.standard_errors)
    search.replace(0, STATE)
    search.advance([-1, -1, 2])
    for result in (results[0], results[2]):
        with pytest.raises(ValueError, match="to_svg"):
            result.to_svg()
    assert results[1].principal_variations() == alone.principal_variations()
    search.run(10)
    with pytest.raises(ValueError, match="to_svg"):
        results[1].to_svg()


def test_a_search_that_is_running_cannot_be_looked_at() -> None:
    _, other = searched()

    class Looks(Hashed):
        result: azpy.SearchResult | None = None
        looked = 0

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            if self.result is not None:
                for look in LOOKS.values():
                    with pytest.raises(RuntimeError, match="already running"):
                        look(self.result)
                    look(other)
                assert self.result._repr_svg_() is None
                self.looked += 1
            return super().evaluate_batch(observations)

    evaluator = Looks(7)
    search = azpy.Search(evaluator, simulations=20)
    evaluator.result = search.run(STATE)
    search.run(STATE)
    assert evaluator.looked > 1


# Pictures.


def nodes_of(svg: str) -> list[ET.Element]:
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "node"]


def texts(svg: str, kind: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text") if text.get("class") == kind]


@pytest.mark.parametrize("name", game_starts())
def test_a_picture_has_the_nodes_asked_for_and_links_nothing(name: str) -> None:
    start = game_starts()[name]
    result = azpy.Search(Hashed(start.num_actions), simulations=300).run(start)
    for max_nodes in (1, 10, 200):
        svg = result.to_svg(max_nodes)
        assert len(nodes_of(svg)) <= max_nodes
        assert len(nodes_of(svg)) == max_nodes or not texts(svg, "more")
        assert not re.search(r"<(script|style|image|use|foreignObject)|href|url\(|@import|font-face", svg)
        assert svg.count("http") == 1  # the name of the format
        nodes = shown(result, max_nodes)
        drawn = Counter(tuple(text.text for text in node.iter(f"{SVG}text")) for node in nodes_of(svg))
        assert drawn == Counter(node.lines() for node in nodes)
        assert Counter(texts(svg, "more")) == Counter(f"+{node.left_out} more" for node in nodes if node.left_out)


def shown(result: azpy.SearchResult, *given: Any) -> list[Node]:
    """The nodes of its picture, each after its parent."""
    with patch("azpy.reports.tree_picture.to_svg", lambda title, nodes: [Node(**node) for node in nodes]):
        return cast("list[Node]", result.to_svg(*given))


@pytest.mark.parametrize("start", [STATE, DICE], ids=["connect_four", "pig"])
def test_a_picture_tells_the_numbers_of_the_search(start: azpy.State) -> None:
    result = azpy.Search(Hashed(start.num_actions), simulations=400).run(start)
    nodes, player = shown(result, 10_000), start.turn
    assert nodes[0].lines() == (f"N {401}", f"Q {result.value:+.3f} for {player}")
    known = zip(result.actions, result.visits, result.priors, result.q, strict=True)
    assert {node.name: node.lines() for node in nodes if node.parent == 0} == {
        start.action_name(action): (f"N {visits}, P {prior:.3f}", f"Q {q:+.3f} for {player}")
        for action, visits, prior, q in known
        if visits
    }
    # Every visited node is there: an evaluation each, a finished game, or a roll.
    below = Counter[int | None]()
    for node in nodes:
        below[node.parent] += node.visits
    for index, node in enumerate(nodes):
        if node.turn != azpy.TERMINAL:
            assert node.visits == below[index] + (node.turn != azpy.CHANCE)
    rolls = sum(node.turn == azpy.CHANCE for node in nodes)
    assert (rolls > 0) == (start is DICE)
    rects = [rect for node in nodes_of(result.to_svg(10_000)) for rect in node.iter(f"{SVG}rect")]
    assert sum("stroke-dasharray" in rect.attrib for rect in rects) == rolls


def test_names_are_those_of_where_the_action_is_taken() -> None:
    # In Pig the same number is a roll's face or an action.
    result = azpy.Search(azpy.UniformEvaluator(), simulations=600).run(DICE)
    nodes, named = shown(result, 200), {True: set[str](), False: set[str]()}
    for node in nodes:
        if node.parent is not None:
            named[nodes[node.parent].turn == azpy.CHANCE].add(node.name)
    assert named == {True: set("123456"), False: {"roll", "hold"}}


def test_finished_games_and_the_principal_variation_stand_out() -> None:
    start = after(azpy.make_game("tic_tac_toe"), 0, 3, 1, 4)  # x wins at once
    result = azpy.Search(Hashed(9), simulations=300).run(start)
    nodes = shown(result, 60)
    best = [node for node in nodes if node.on_principal_variation and node.parent is not None]
    position, names = start.clone(), list[str]()
    for action in result.principal_variation:
        names.append(position.action_name(action))
        position.play(action)
    assert [node.name for node in best] == names == ["c3"]
    assert turn_of(position) == best[0].turn == azpy.TERMINAL
    assert best[0].lines()[1] == "Q +1.000 for 0"
    svg = result.to_svg()
    strokes = Counter(path.get("stroke") for path in ET.fromstring(svg).iter(f"{SVG}path"))
    assert min(strokes.values()) == 2  # the one edge, and the legend's
    width = float(ET.fromstring(svg).attrib["width"])
    rects = [rect for node in nodes_of(svg) for rect in node.iter(f"{SVG}rect")]
    assert all(float(rect.attrib["x"]) + float(rect.attrib["width"]) < width for rect in rects)
    doubled = [node for node in nodes_of(svg) if len(list(node.iter(f"{SVG}rect"))) == 2]
    assert len(doubled) == sum(node.turn == azpy.TERMINAL for node in nodes) > 0


def test_depth_cuts_the_tree() -> None:
    _, result = searched(500)
    assert result._repr_svg_() == result.to_svg(), "a notebook shows the picture"
    assert len(nodes_of(result.to_svg(depth=0))) == 1
    svg = result.to_svg(10_000, depth=1)
    assert len(nodes_of(svg)) == 8
    nodes = shown(result, 10_000, 2)
    assert {node.depth for node in nodes} == {0, 1, 2}
    more = [int(text[1:-5]) for text in texts(svg, "more")]
    assert sum(more) == sum(node.depth == 2 for node in nodes)


@pytest.mark.parametrize("max_nodes", [10, 60, 200])
def test_no_node_covers_another(max_nodes: int) -> None:
    for start in (STATE, DICE, DiceCountdown(15, roll=2)):
        svg = azpy.Search(azpy.RolloutEvaluator(1), simulations=2000).run(start).to_svg(max_nodes)
        picture = ET.fromstring(svg)
        wide, high = float(picture.attrib["width"]), float(picture.attrib["height"])
        boxes = []
        for node in nodes_of(svg):
            rect = next(node.iter(f"{SVG}rect"))
            x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 80  # below the legend
            assert x + width < wide
            assert y + height < high
            boxes.append((x, y, x + width, y + height))
        assert len(boxes) == max_nodes
        for text in picture.iter(f"{SVG}text"):
            if text.get("class"):  # beside the nodes
                assert float(text.attrib["x"]) + 6 * len(text.text or "") < wide
        for index, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[:index]:
                assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top


class Named(Countdown):
    """Actions with names that mean something to a format, or that cannot be had at all."""

    names: tuple[Any, ...] = ('a "<b>" & \\N\n\x00', "a name that goes on and on, much longer than there is room for")

    def action_name(self, action: int) -> str:
        name = self.names[action]
        if isinstance(name, Exception):
            raise name
        return name  # type: ignore[no-any-return]


def test_any_name_can_be_drawn() -> None:
    result = azpy.Search(azpy.UniformEvaluator(), simulations=50).run(Named(9))
    svg = result.to_svg()
    assert set(texts(svg, "action")) == {'a "<b>" & \\N', "a name that goes …"}
    assert "much longer than there is room for" in svg  # where the mouse points


@pytest.mark.parametrize("name", [KeyError("no name"), None, 7, "\ud800"], ids=repr)
def test_an_action_without_a_name_is_a_number(name: object) -> None:
    game = type("Nameless", (Named,), {"names": (name, "second")})(9)
    search = azpy.Search(azpy.UniformEvaluator(), simulations=50)
    result = search.run(game)
    assert set(texts(result.to_svg(), "action")) == {"0", "second"}
    assert search.run().visits.sum() > 50


def test_a_game_that_fails_while_it_is_drawn_says_so() -> None:
    class Fails(Countdown):
        failing = False

        def play(self, action: int) -> None:
            if self.failing:
                raise OSError("not now")
            super().play(action)

    search = azpy.Search(azpy.UniformEvaluator(), simulations=50)
    result = search.run(Fails(9))
    Fails.failing = True
    with pytest.raises(OSError, match="not now"):
        result.to_svg()
    Fails.failing = False
    assert len(nodes_of(result.to_svg(10))) == 10
    assert search.run().visits.sum() > 50


def test_roots_without_visits_are_drawn_as_what_they_are() -> None:
    assert "Q +1.000 for 0" in azpy.Search(azpy.UniformEvaluator()).run(Countdown(0)).to_svg()
    evaluated = azpy.Search(Hashed(7), simulations=0).run(STATE)
    assert f"Q {evaluated.value:+.3f} for 0" in evaluated.to_svg()
    assert evaluated.principal_variations() == []
    before_a_roll = azpy.VectorSearch([DICE], azpy.UniformEvaluator())
    before_a_roll.run(100)
    before_a_roll.advance([0])
    (result,) = before_a_roll.results()
    assert (result.standard_errors.size, result.principal_variations()) == (0, [])
    nodes = shown(result)
    assert nodes[0].turn == azpy.CHANCE
    assert {node.name for node in nodes if node.parent == 0} <= set("123456")


@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("to_svg", (0,), "max_nodes must be at least 1, got 0"),
        ("to_svg", (10_001,), "max_nodes must be at most 10000, got 10001"),
        ("to_svg", (60, -1), "depth must be at least 0, got -1"),
        ("principal_variations", (-1,), "count must be at least 0, got -1"),
        ("principal_variations", (3, 0), "length must be at least 1, got 0"),
    ],
)
def test_arguments_out_of_range_are_refused_by_name(method: str, arguments: tuple[int, ...], said: str) -> None:
    _, result = searched(10)
    with pytest.raises(ValueError, match=said):
        getattr(result, method)(*arguments)


def test_the_example_of_a_result_runs() -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(azpy.SearchResult, "SearchResult", module=False, globs={})
    failed, attempted = doctest.DocTestRunner().run(example)
    assert failed == 0
    assert attempted > 5
