"""Planning with Gumbel: mctx visit for visit, and a slow twin where mctx does not go, dice and double turns."""

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import azpy
from mctx_games import gumbel_search
from oracles import (
    Answers,
    Hashed,
    Node,
    Position,
    Puct,
    Wrapped,
    all_positions,
    game_starts,
    random_positions,
    replayed,
    turn_of,
)

# Simulations and considered actions; each pair gets roots of its own.
PAIRS = [(2, 2), (7, 4), (16, 16), (32, 5), (100, 8), (200, 16)]


def roots(game: str, part: int, size: int) -> list[Position]:
    start = azpy.make_game(game)
    if game == "tic_tac_toe":
        everything = [p for _, p in all_positions(start).values() if not p.is_terminal]
        random.Random(5).shuffle(everything)
    else:
        everything = [p for _, p in random_positions(start, size * len(PAIRS), seed=21, longest=34)]
    found = everything[part * size : (part + 1) * size]
    assert len(found) == size
    return found


# Options of a search, and what mctx calls them.
SCALES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"gumbel_rescale": False, "value_scale": 1.0}, {"rescale_values": False, "value_scale": 1.0}),
    ({"value_scale": 0.3, "maxvisit_init": 20.0}, {"value_scale": 0.3, "maxvisit_init": 20.0}),
]


# JAX compiles for seconds: one pair here, the others and other scales in the slow suite. The twin below has
# these scales too.
@pytest.mark.parametrize(
    ("game", "size", "pair", "scale"),
    [
        pytest.param(game, size, pair, ({}, {}), marks=() if (game, index) == ("connect_four", 1) else pytest.mark.slow)
        for index, pair in enumerate(PAIRS)
        for game, size in (("tic_tac_toe", 60), ("connect_four", 40))
    ]
    + [pytest.param("tic_tac_toe", 40, (32, 5), scale, marks=pytest.mark.slow) for scale in SCALES],
    ids=str,
)
def test_visits_actions_and_policies_equal_those_of_mctx(
    game: str, size: int, pair: tuple[int, int], scale: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    pytest.importorskip("mctx")
    options, transform = scale
    simulations, considered = pair
    positions = roots(game, PAIRS.index(pair), size)
    evaluator = Hashed(positions[0].num_actions, salt=3)
    draws = np.random.default_rng(simulations).gumbel(size=(size, positions[0].num_actions))
    visits, actions, policies = gumbel_search(
        positions, Answers(evaluator), simulations, considered, draws, **transform
    )
    search = azpy.Search(evaluator, simulations=simulations, eval_batch=1, gumbel_actions=considered, **options)
    for row, position in enumerate(positions):
        legal = position.legal_actions()
        result = search.run(position, gumbel=draws[row, legal])
        assert result.visits.tolist() == visits[row, legal].tolist(), str(position)
        assert result.action == actions[row], str(position)
        np.testing.assert_allclose(result.target, policies[row, legal], atol=2e-6)


@dataclass(kw_only=True)
class GumbelTwin(Puct):
    """The paper's algorithm, written for reading: every list of turns written out."""

    considered: int
    draws: list[float]
    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    gumbel_rescale: bool = True
    first: int | None = None  # the root's action in the next simulation

    def tree(self, position: Position, simulations: int) -> Node:
        root = Node(position)
        self.simulate(root)
        considered = min(self.considered, len(root.priors))
        for turn in self.turns(considered, simulations):
            logits = self.improved_logits(root)
            scores = {
                action: draw + logits[action]
                for draw, action in zip(self.draws, root.priors, strict=True)
                if root.visits_of(action) == turn
            }
            self.first = max(scores, key=scores.__getitem__)
            self.simulate(root)
        return root

    @staticmethod
    def turns(considered: int, simulations: int) -> list[int]:
        if considered <= 1:
            return list(range(simulations))
        phases = math.ceil(math.log2(considered))
        visits, left, turns = [0] * considered, considered, list[int]()
        while len(turns) < simulations:
            for _ in range(max(1, simulations // (phases * left))):
                turns += visits[:left]
                visits[:left] = [n + 1 for n in visits[:left]]
            left = max(2, left // 2)
        return turns[:simulations]

    def improved_logits(self, node: Node) -> dict[int, float]:
        sign = 1 if turn_of(node.position) == 0 else -1
        tried = {a: sign * c.total / c.visits for a, c in node.children.items() if c.visits}
        n = sum(c.visits for c in node.children.values())
        mass = sum(node.priors[a] for a in tried)
        mean = sum(node.priors[a] / mass * q for a, q in tried.items())
        mixed = (sign * node.own + n * mean) / (1 + n)
        completed = [tried.get(a, mixed) for a in range(node.position.num_actions)]
        low, high = (min(completed), max(completed)) if self.gumbel_rescale else (0.0, 1.0)
        most = max((c.visits for c in node.children.values()), default=0)
        scale = self.value_scale * (self.maxvisit_init + most) / max(high - low, 1e-8)
        return {a: math.log(prior) + scale * (completed[a] - low) for a, prior in node.priors.items()}

    def select(self, node: Node, sign: int) -> int:
        if self.first is not None:
            first, self.first = self.first, None
            return first
        logits = self.improved_logits(node)
        highest = max(logits.values())
        weights = {a: math.exp(logit - highest) for a, logit in logits.items()}
        total, n = sum(weights.values()), sum(c.visits for c in node.children.values())
        lag = {a: weight / total - node.visits_of(a) / (1 + n) for a, weight in weights.items()}
        return max(lag, key=lag.__getitem__)


@pytest.mark.parametrize("game", sorted(game_starts()))
def test_visits_equal_a_slow_twin_in_any_order_of_turns(game: str) -> None:
    start = game_starts()[game]
    evaluator: Any = Hashed(start.num_actions, salt=9)
    answers = Answers(evaluator)
    for seed, (_, position) in enumerate(random_positions(start, 3, seed=2, longest=12)):
        wrapped = Wrapped(position)
        cases = [(5, 16, {}), (40, 3, SCALES[0][0]), (40, 8, SCALES[1][0]), (150, 4, {})]
        for simulations, considered, options in cases:
            draws = np.random.default_rng(seed).gumbel(size=len(position.legal_actions())).tolist()
            wrapped.rolls.clear()
            search = azpy.Search(
                evaluator, simulations=simulations, eval_batch=1, gumbel_actions=considered, seed=seed, **options
            )
            result = search.run(wrapped, gumbel=draws)
            roll = replayed(wrapped.rolls)
            twin = GumbelTwin(answers, roll=roll, considered=considered, draws=draws, **options)
            root = twin.tree(position, simulations)
            found = [root.visits_of(action) for action in position.legal_actions()]
            assert result.visits.tolist() == found, f"{position}, {simulations}"
            logits = np.array(list(twin.improved_logits(root).values()))
            policy = np.exp(logits - logits.max())
            np.testing.assert_allclose(result.target, policy / policy.sum(), atol=2e-6)


def test_draws_are_the_seeds_and_none_at_scale_0() -> None:
    state = azpy.make_game("connect_four")

    def action(seed: int, scale: float) -> int | None:
        search = azpy.Search(Hashed(7), simulations=4, eval_batch=1, gumbel_actions=4, gumbel_scale=scale, seed=seed)
        return search.run(state).action

    assert [action(seed, 1.0) for seed in range(20)] == [action(seed, 1.0) for seed in range(20)]
    assert len({action(seed, 1.0) for seed in range(20)}) > 1
    assert len({action(seed, 0.0) for seed in range(20)}) == 1
