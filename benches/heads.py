"""Whether further heads help: fits to the stored games of a run, with heads that only train.

    python benches/heads.py RUN [--only NAME ...] [--steps 800] [--seeds 5] [--iterations 35-57] [--held-out 58-61]
        [--rows 16384] [--threads 1]

RUN is a run folder. Each seed fits an untrained network to the same games: first without these heads, and then with
each NAME, a head or several, such as "ownership+score". Without --only, each head of the game has its turn. All fits of
a seed begin with the same weights and draw the same batches. The policy and the value are measured.

soft: a second policy head learns the policy target to the power of 1/4, in which rarely visited actions count for more.
reply: a second policy head learns the policy target of the next ply, over all actions. It learns nothing from a row
whose next ply was not searched in full.
ownership: a 1x1 convolution learns whose each cell is at the end, seen by the player to move. Nobody's cell counts as
half. The loss is the mean over the cells.
score: a linear layer learns the difference of the cells at the end over the number of cells, without komi, from the
trunk's channels as means over the board.
wdl: the value head has the classes loss, draw and win. An outcome has softened shares of them. The root's value q
counts as a win by (1 + q) / 2 and as a loss by the rest. So the target has the mean that the plain one has.

ownership and score are for Go and Othello. They learn nothing from games that were resigned or capped. Rows without a
target count as 0 in the mean over a batch.

A step is a `Learner`'s in fp32, with the run's settings. The learning rate falls along a cosine. Rows are drawn evenly:
`surprise_weight`, `value_lambda` and `merge_positions` have no effect. The columns are those of benches/frozen.py, with
the standard error of the difference to the plain network.
"""

import argparse
import copy
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import get_ema_multi_avg_fn, update_bn

sys.path.insert(0, str(Path(__file__).parent))
import azpy
from azpy.games.lines import replayed
from azpy.learning.learner import _AVERAGE_DECAY, _GRADIENT_NORM, _STATISTICS_ROWS, _WARM_UP_STEPS, seed_of
from azpy.learning.losses import policy_loss
from azpy.learning.network import _VALUE_HIDDEN, Network
from azpy.machine import keep_freed_memory
from azpy.runs.exports import Games, to_npz
from azpy.runs.reader import StoredRun
from azpy.settings.run import Settings
from frozen import settings_of, span, table
from heldout import measured, rows_of

_BATCH = 1024
# KataGo has these powers and weights, and Sayuri those of soft, reply and ownership too. Their heads of the score learn
# points: the weight of ours is our choice.
_SOFT_POWER = 0.25
_WEIGHTS = {"soft": 8.0, "reply": 0.15, "ownership": 1.5, "score": 0.5}
# lc0's value head has these classes, (loss, draw, win). The shares and the weight of decisive games are our choice.
_LOSS, _DRAW, _WIN = np.array([[0.85, 0.10, 0.05], [0.15, 0.70, 0.15], [0.05, 0.10, 0.85]], np.float32)
_DECISIVE = 3.0  # a draw has weight 1
_SPAN = 0.8  # the win's share less the loss's where the game is won


def kind(start: azpy.State) -> str:
    """A game's name without parameters."""
    return start.game.partition("(")[0]


def owners(position: azpy.State) -> NDArray[np.int8]:
    """Whose each cell [H * W] is: 1 for player 0, -1 for player 1, 0 for nobody. In Go, by Tromp and Taylor's rules."""
    drawn = [cell for cell in position.render(color=False) if cell in ".xo"]
    board, reached = np.array(drawn).reshape(position.obs_shape[1:]), list[NDArray[np.int8]]()
    for stone in "xo":
        area, before = board == stone, 0
        while kind(position) == "go" and area.sum() > before:
            before, wide = area.sum(), np.pad(area, 1)
            near = wide[:-2, 1:-1] | wide[2:, 1:-1] | wide[1:-1, :-2] | wide[1:-1, 2:]
            area = area | (near & (board == "."))
        reached.append(area.flatten().astype(np.int8))
    return reached[0] - reached[1]


def targets_of(start: azpy.State, games: Games, found: dict[str, Any], root_share: float) -> dict[str, NDArray[Any]]:
    """What networks learn from the rows of `to_npz`: `owner` is for the player to move, as in `owners`."""
    policies, outcomes, searched = (found[name] for name in ("policy_targets", "value_targets", "root_values"))
    replies, ids, plies = np.zeros_like(policies), found["game_id"], found["ply"]
    before = np.flatnonzero((ids[1:] == ids[:-1]) & (plies[1:] == plies[:-1] + 1))
    replies[before] = policies[before + 1]
    cells = math.prod(start.obs_shape[1:]) if kind(start) in ("go", "othello") else 0
    owner, ended = np.zeros((len(ids), cells), np.int8), np.zeros(len(ids), np.float32)
    for _, record in games if cells else ():
        *_, last = replayed(start, record.actions.tolist())
        if last.is_terminal:  # neither resigned nor capped
            rows = np.flatnonzero(ids == record.game_id)
            owner[rows], ended[rows] = (1 - 2 * record.players[plies[rows], None]) * owners(last), 1
    z, q = outcomes[:, None], searched[:, None]
    exact = np.maximum(z, 0) * _WIN + np.maximum(-z, 0) * _LOSS + (1 - np.abs(z)) * _DRAW
    classes = (1 - root_share) * exact + root_share * ((1 + q) * _WIN + (1 - q) * _LOSS) / 2
    value, weight = (1 - root_share) * outcomes + root_share * searched, np.where(outcomes, _DECISIVE, 1)
    rest = {"value": value, "classes": classes, "weight": weight.astype(np.float32), "owner": owner, "ended": ended}
    return {"legal": found["legal"], "policy": policies, "reply": replies} | rest


class Rows:
    """The searched positions of games, and their targets."""

    def __init__(self, run: StoredRun, iterations: Sequence[int], settings: Settings) -> None:
        start, parts, symmetries = run.start, [], range(run.start.num_symmetries if settings.symmetries else 1)
        whole = set(start.plane_divisors or ()) == {1}  # then bytes hold the planes in a quarter of the memory
        with tempfile.TemporaryDirectory() as folder:
            for iteration in iterations:
                games = list(run.games([iteration]))
                to_npz(f"{folder}/rows.npz", start, games)
                with np.load(f"{folder}/rows.npz") as file:
                    found = dict(file)
                planes = found["observations"].astype(np.uint8 if whole else np.float32)
                parts.append({"planes": planes} | targets_of(start, games, found, settings.root_value_weight))
        self.arrays = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
        # Where each symmetry takes a row's numbers from, [S, n].
        numbers = np.arange(math.prod(start.obs_shape), dtype=np.float32).reshape(start.obs_shape)
        planes = np.array([start.symmetric_observation(each, numbers).flatten() for each in symmetries], np.int64)
        moved = [[start.symmetric_action(each, action) for action in range(start.num_actions)] for each in symmetries]
        actions = np.argsort(moved, axis=1)
        cells = planes[:, : self.arrays["owner"].shape[1]]  # the first plane remains the first
        self._sources = {"planes": planes, "legal": actions, "policy": actions, "reply": actions, "owner": cells}

    def sample(self, count: int, *, seed: int) -> dict[str, Tensor]:
        """Draws rows, each under a symmetry of its own."""
        rng = np.random.default_rng(seed)
        drawn = rng.integers(len(self.arrays["value"]), size=count)
        symmetries = rng.integers(len(self._sources["legal"]), size=count)
        batch = {name: array[drawn] for name, array in self.arrays.items()}
        for name, places in self._sources.items():
            flat = np.take_along_axis(batch[name].reshape(count, -1), places[symmetries], axis=1)
            batch[name] = flat.reshape(batch[name].shape)
        batch |= {name: batch[name].astype(np.float32) for name in ("planes", "owner")}
        return {name: torch.from_numpy(array) for name, array in batch.items()}


class Trained(nn.Module):
    """A network with heads that only train."""

    def __init__(self, start: azpy.State, settings: Settings, heads: Sequence[str]) -> None:
        super().__init__()
        self.network: Any = Network.of(start, settings.network)
        width = int(re.split("[x+]", settings.network)[1])
        makers: dict[str, Callable[[], nn.Module]] = {
            "soft": lambda: copy.deepcopy(self.network.policy),
            "reply": lambda: copy.deepcopy(self.network.policy),
            "ownership": lambda: nn.Sequential(nn.Conv2d(width, 1, 1), nn.Flatten()),
            "score": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1), nn.Flatten(0)),
        }
        self.heads = nn.ModuleDict({name: make() for name, make in makers.items() if name in heads})
        if "wdl" in heads:
            last = self.network.value[-1] = nn.Linear(_VALUE_HIDDEN, 3)
            with torch.no_grad():  # begins near even classes, as the plain head begins near 0
                last.weight.mul_(0.1)
                last.bias.zero_()

    def loss(self, batch: dict[str, Tensor]) -> Tensor:
        """The loss of a batch of `Rows`."""
        legal, policy, owner = batch["legal"], batch["policy"], batch["owner"]
        features = self.network.trunk(batch["planes"].contiguous(memory_format=torch.channels_last))
        logits, worth = self.network.policy(features), self.network.value(features)
        loss = policy_loss(logits, legal, policy)
        if worth.shape[1] == 1:
            loss = loss + functional.mse_loss(values_of(worth), batch["value"])
        else:
            each = functional.cross_entropy(worth, batch["classes"], reduction="none")
            loss = loss + (batch["weight"] * each).sum() / batch["weight"].sum()
        for name, head in self.heads.items():
            found = head(features)
            if name == "soft":
                flat = policy**_SOFT_POWER
                each = policy_loss(found, legal, flat / flat.sum(1, keepdim=True))
            elif name == "reply":  # a row without a reply has a target of zeros
                each = functional.cross_entropy(found, batch["reply"], reduction="none")
            elif name == "ownership":
                cells = functional.binary_cross_entropy_with_logits(found, (owner + 1) / 2, reduction="none")
                each = cells.mean(1) * batch["ended"]
            else:
                each = functional.huber_loss(found, owner.mean(1), reduction="none") * batch["ended"]
            loss = loss + _WEIGHTS[name] * each.mean()
        return loss


def values_of(worth: Tensor) -> Tensor:
    """Values [B] of what a value head answers, [B, 1] or the classes' logits [B, 3]."""
    if worth.shape[1] == 1:
        return torch.tanh(worth).squeeze(1)
    shares = torch.softmax(worth, 1)
    return ((shares[:, 2] - shares[:, 0]) / _SPAN).clamp(-1, 1)


def fit(start: azpy.State, settings: Settings, heads: Sequence[str], rows: Any, steps: int) -> Any:
    """The network with averaged weights, after steps and with batch norm's statistics as `Learner` has them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        trained: Any = Trained(start, settings, heads)  # torch's releases type `to` differently
    trained.to(memory_format=torch.channels_last)
    running = copy.deepcopy(trained.network).eval()
    states = [network.state_dict().values() for network in (running, trained.network)]
    averaged = [[tensor for tensor in state if tensor.is_floating_point()] for state in states]
    average: Any = get_ema_multi_avg_fn  # torch gives it no types
    rate, decay = settings.learning_rate, settings.weight_decay
    optimizer = torch.optim.AdamW(trained.parameters(), lr=rate, weight_decay=decay, fused=True)
    for step in range(steps):
        falling = 0.525 + 0.475 * math.cos(math.pi * step / steps)
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / _WARM_UP_STEPS) * falling
        optimizer.zero_grad()
        trained.loss(rows.sample(settings.batch_size, seed=seed_of(settings.seed, step))).backward()
        nn.utils.clip_grad_norm_(trained.parameters(), _GRADIENT_NORM)
        optimizer.step()
        average(min(_AVERAGE_DECAY, (2 + step) / (11 + step)))(*averaged, step + 1)
    parts = range(-(-_STATISTICS_ROWS // settings.batch_size))
    drawn = (rows.sample(settings.batch_size, seed=seed_of(settings.seed, steps, part + 1)) for part in parts)
    update_bn((batch["planes"].contiguous(memory_format=torch.channels_last) for batch in drawn), running)
    return running


def figures(network: Any, held_out: Sequence[NDArray[Any]]) -> dict[str, float]:
    """The figures of a network on rows that it did not learn from."""
    observations, legal, policies, outcomes = held_out
    logits, values = list[Tensor](), list[Tensor]()
    with torch.no_grad():
        for first in range(0, len(legal), _BATCH):
            features = network.trunk(torch.from_numpy(observations[first : first + _BATCH]))
            logits.append(network.policy(features))
            values.append(values_of(network.value(features)))
    return measured(torch.cat(logits).numpy(), torch.cat(values).numpy(), legal, policies, outcomes)


def main() -> None:
    """Fits, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=span, metavar="FIRST-LAST")
    parser.add_argument("--held-out", type=span, metavar="FIRST-LAST")
    parser.add_argument("--rows", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    run = StoredRun(given.run)
    known = ["soft", "reply", *(["ownership", "score"] if kind(run.start) in ("go", "othello") else []), "wdl"]
    names = given.only or known
    if unknown := {head for name in names for head in name.split("+")} - set(known):
        parser.error(f"{run.settings.game} has no {', '.join(sorted(unknown))}: its heads are {', '.join(known)}")
    sealed = run.sealed_iterations()
    *held_out, _ = rows_of(run, given.held_out or sealed[-4:], given.rows)
    rows = Rows(run, given.iterations or sealed[:-4], run.settings)
    fit(run.start, run.settings, names, rows, 1)  # the first step of a process costs most of a second more
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ("plain", *names)}
    for seed in range(given.seeds):
        for name, done in found.items():
            begin = time.process_time()
            network = fit(run.start, settings_of(run, "", seed), name.split("+"), rows, given.steps)
            done.append({"cpu": time.process_time() - begin} | figures(network, held_out))
        print(f"after {seed + 1} seeds, {given.steps} steps:", *table(found), sep="\n", flush=True)


if __name__ == "__main__":
    main()
