"""azpy's games as models for DeepMind's mctx, in double precision."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import azpy
from oracles import Answers, Position, after, turn_of

# muzero_policy breaks ties by noise of up to 1e-7. Scores this many times larger leave it without effect.
SCALE = 1e7


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """JAX with its 64-bit types; for one block, because other tests in this process use JAX without them.

    For all threads, unlike `jax.enable_x64`: JAX calls `pure_callback` in a thread of its own.
    """
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def model(positions: list[Position], answers: Answers) -> tuple[Any, Callable[..., Any], Any]:
    """What mctx needs to search from `positions` [B]: root, recurrent function and illegal actions [B, A].

    Illegal actions have a logit of -1e30; finished games absorb; `embedding["sum"]` is the sum of a node's priors,
    which in float32 is not quite 1.
    """
    import jax
    import mctx

    jnp = jax.numpy
    rows, num_actions = len(positions), positions[0].num_actions
    known = list(positions)  # positions by number: what mctx carries along
    numbers = dict[tuple[int, int], int]()

    def describe(position: Position) -> tuple[NDArray[np.float64], float, float]:
        """Logits, the sum of the priors, and the value for the player to move."""
        logits = np.full(num_actions, -1e30)
        if turn_of(position) == azpy.TERMINAL:
            return logits * 0, 1.0, 0.0
        priors, value = answers(position)
        logits[list(priors)] = np.log(np.fromiter(priors.values(), np.float64))
        return logits, sum(priors.values()), value

    def step(number: int, action: int) -> int:
        if (number, action) not in numbers:
            parent = known[number]
            if turn_of(parent) == azpy.TERMINAL or action not in parent.legal_actions():
                return number  # finished games absorb
            numbers[number, action] = len(known)
            known.append(after(parent, action))
        return numbers[number, action]

    def host(parents: NDArray[np.int64], actions: NDArray[np.int64]) -> tuple[Any, ...]:
        children = [step(n, a) for n, a in zip(np.asarray(parents).tolist(), np.asarray(actions).tolist(), strict=True)]
        rewards, discounts = np.zeros(rows), np.zeros(rows)
        for row, (parent, child) in enumerate(zip(np.asarray(parents).tolist(), children, strict=True)):
            if turn_of(known[child]) != azpy.TERMINAL:
                discounts[row] = -1
            elif child != parent:
                outcome = known[child].outcome()
                rewards[row] = outcome if turn_of(known[parent]) == 0 else -outcome
        logits, sums, values = map(np.array, zip(*(describe(known[child]) for child in children), strict=True))
        return np.array(children), rewards, discounts, logits, sums, values

    shape = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float64)
    shapes = (jax.ShapeDtypeStruct((rows,), jnp.int64), *map(shape, [(rows,), (rows,), (rows, num_actions)]))

    def recurrent(_: Any, __: Any, action: Any, embedding: Any) -> Any:
        children, rewards, discounts, logits, sums, values = jax.pure_callback(
            host, (*shapes, shape((rows,)), shape((rows,))), embedding["number"], action
        )
        output = mctx.RecurrentFnOutput(reward=rewards, discount=discounts, prior_logits=logits, value=values)
        return output, {"number": children, "sum": sums}

    logits, sums, values = map(np.array, zip(*map(describe, positions), strict=True))
    embedding = {"number": jnp.arange(rows), "sum": jnp.asarray(sums)}
    root = mctx.RootFnOutput(prior_logits=jnp.asarray(logits), value=jnp.asarray(values), embedding=embedding)
    return root, recurrent, jnp.asarray(logits < -1e20)


def searched(policy: str, positions: list[Position], answers: Answers, simulations: int, **options: Any) -> Any:
    """What mctx's policy of this name finds from these positions."""
    import jax
    import mctx

    root, recurrent, illegal = model(positions, answers)
    search = functools.partial(
        getattr(mctx, policy),
        params=(),
        rng_key=jax.random.PRNGKey(0),
        recurrent_fn=recurrent,
        num_simulations=simulations,
        **options,
    )
    return jax.jit(search)(root=root, invalid_actions=illegal)


@double_precision()
def muzero_visits(positions: list[Position], answers: Answers, simulations: int) -> NDArray[np.int64]:
    """[B, A] visits of mctx's muzero_policy with c_puct 1.5 and an unvisited Q of 0."""
    from jax import numpy as jnp

    def raw_q(tree: Any, node: Any) -> Any:
        # mctx softmaxes what it is given: its priors sum to 1. Dividing Q by the sum of ours as well multiplies all
        # scores of a node by one number.
        q = jnp.where(tree.children_visits[node] > 0, tree.qvalues(node), 0.0) / tree.embeddings["sum"][node]
        return jnp.where(tree.children_prior_logits[node] > -1e20, SCALE * q, -1e9 * SCALE)

    options: dict[str, Any] = {"dirichlet_fraction": 0.0, "pb_c_init": 1.5 * SCALE, "pb_c_base": 1e12}
    output = searched("muzero_policy", positions, answers, simulations, qtransform=raw_q, **options)
    return np.asarray(output.search_tree.summary().visit_counts).astype(np.int64)


@double_precision()
def gumbel_search(
    positions: list[Position],
    answers: Answers,
    simulations: int,
    considered: int,
    draws: NDArray[np.float64],
    **transform: float | bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Visits [B, A], actions [B] and improved policies [B, A] of mctx, with Gumbel `draws` [B, A].

    `transform` is what `mctx.qtransform_completed_by_mix_value` takes.
    """
    import jax
    import mctx

    qtransform = functools.partial(mctx.qtransform_completed_by_mix_value, **transform)
    options: dict[str, Any] = {"max_num_considered_actions": considered, "qtransform": qtransform}
    with patch.object(jax.random, "gumbel", lambda *_, **__: jax.numpy.asarray(draws)):
        output = searched("gumbel_muzero_policy", positions, answers, simulations, **options)
    visits = np.asarray(output.search_tree.summary().visit_counts).astype(np.int64)
    return visits, np.asarray(output.action).astype(np.int64), np.asarray(output.action_weights)
