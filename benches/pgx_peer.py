"""A peer to compare self-play with: pgx and mctx, one jitted scan of Gumbel searches over many games, on one core.

    python benches/pgx_peer.py GAME BLOCKSxCHANNELS SIMULATIONS GAMES CORE

For each line on stdin, a number of seconds, it plays moves of all games for so long at least, and answers with a line
of JSON: evaluations, simulations and seconds. `benches/selfplay.py` runs it as processes of their own, one a core. The
network is azpy's residual network of the same size in plain JAX, with its batch normalization folded into the
convolutions; weights are random.
"""

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    game, network, simulations, games, core = sys.argv[1], sys.argv[2], *(int(text) for text in sys.argv[3:6])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})  # before JAX counts the cores
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import mctx
    import pgx
    from pgx.experimental import auto_reset

    blocks, channels = (int(part) for part in network.split("x"))
    env: Any = pgx.make(game)
    shape = tuple(env.observation_shape)

    def random(key: Any, *size: int) -> Any:
        fan_in = 1
        for dimension in size[:-1]:
            fan_in *= dimension
        return jax.random.normal(key, size) * (2 / fan_in) ** 0.5

    keys = iter(jax.random.split(jax.random.PRNGKey(0), 2 * blocks + 8))
    squares = shape[0] * shape[1]
    weights = {
        "stem": random(next(keys), 3, 3, shape[2], channels),
        "blocks": [[random(next(keys), 3, 3, channels, channels) for _ in range(2)] for _ in range(blocks)],
        "policy": random(next(keys), 1, 1, channels, 2),
        "logits": random(next(keys), 2 * squares, env.num_actions),
        "value": random(next(keys), 1, 1, channels, 1),
        "hidden": random(next(keys), squares, 64),
        "out": random(next(keys), 64, 1),
    }

    def convolve(planes: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(planes, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def evaluate(weights: Any, observations: Any) -> tuple[Any, Any]:
        planes = jax.nn.relu(convolve(observations.astype(jnp.float32), weights["stem"]))
        for first, second in weights["blocks"]:
            planes = jax.nn.relu(planes + convolve(jax.nn.relu(convolve(planes, first)), second))
        rows = len(observations)
        policy = jax.nn.relu(convolve(planes, weights["policy"])).reshape(rows, -1) @ weights["logits"]
        value = jax.nn.relu(convolve(planes, weights["value"])).reshape(rows, -1)
        return policy, jnp.tanh(jax.nn.relu(value @ weights["hidden"]) @ weights["out"])[:, 0]

    def recurrent(weights: Any, key: Any, actions: Any, states: Any) -> Any:
        mover = states.current_player
        states = jax.vmap(env.step)(states, actions)
        logits, values = evaluate(weights, states.observation)
        logits = jnp.where(states.legal_action_mask, logits, jnp.finfo(logits.dtype).min)
        over = states.terminated
        found = mctx.RecurrentFnOutput(
            reward=states.rewards[jnp.arange(games), mover],
            discount=jnp.where(over, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(over, 0.0, values),
        )
        return found, states

    @jax.jit
    def play(weights: Any, states: Any, key: Any) -> Any:
        def step(states: Any, key: Any) -> Any:
            search, deal = jax.random.split(key)
            logits, values = evaluate(weights, states.observation)
            found = mctx.gumbel_muzero_policy(
                params=weights,
                rng_key=search,
                root=mctx.RootFnOutput(prior_logits=logits, value=values, embedding=states),
                recurrent_fn=recurrent,
                num_simulations=simulations,
                invalid_actions=~states.legal_action_mask,
                qtransform=mctx.qtransform_completed_by_mix_value,
            )
            states = jax.vmap(auto_reset(env.step, env.init))(states, found.action, jax.random.split(deal, games))
            return states, states.terminated.sum()

        return step(states, key)

    key = jax.random.PRNGKey(core)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(key, games))
    jax.block_until_ready(play(weights, states, key))
    print("ready", flush=True)
    for line in sys.stdin:
        begin, spent, plays = time.perf_counter(), 0.0, 0
        while spent < float(line):
            key, now = jax.random.split(key)
            states, _ended = play(weights, states, now)
            jax.block_until_ready(states)
            spent, plays = time.perf_counter() - begin, plays + games
        found = {"evaluations": plays * (simulations + 1), "simulations": plays * simulations, "seconds": spent}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
