"""Settings for a game that has no preset, from what its games cost on this machine: measured in about two seconds.

Random games tell how long a game is, and how many actions there are. Self-play with a network that takes no time tells
what rules and trees cost, and untrained networks tell what each size costs to play and to train. From these figures
`suited` chooses settings with which games end early, and many iterations fit into the run.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from azpy._core import SelfPlay, State
from azpy.devices import Device, no_gpu
from azpy.errors import SettingsError
from azpy.evaluators.choice import half_precision, open_generation
from azpy.evaluators.protocol import rate
from azpy.games.lines import at_random, random_games
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.learning.own import network_of
from azpy.playing.benchmarks import Zeros, play_for
from azpy.playing.selfplay import open_self_play
from azpy.settings.presets import beside
from azpy.settings.run import Settings, auto_eval_batch, default_of
from azpy.system import usable_cores
from azpy.training.rehearsal import game_without_network

_GAMES, _SECONDS, _MOST_PLIES = 16, 0.5, 10_000  # of random play, at most; the plies of one game
_RULES_SECONDS, _SLOTS = 0.3, 16
_NETWORK_SECONDS, _ROWS = 0.1, 64
# Pipelines of a GPU: the fewest, how often one a core is halved between, seconds of each, and games without an end.
_FEWEST, _HALVINGS, _PIPELINES_SECONDS, _MANY = 2, 3, 1.0, 2**40
_STEPS, _STEPS_SECONDS, _BATCH = 4, 0.3, 128  # gradient steps of each network, their time, and the rows of each
_ENOUGH_SECONDS = 2.0  # no larger network is tried after so many
_BOARDS, _FLAT = ("2x32", "3x32", "4x32", "4x48", "5x64"), ("2x64", "3x128", "3x256")
_LARGE_BOARD = 60  # cells: from there on a network sees the whole board only with pooling
_DETERMINISTIC = 10_000.0  # simulations a second, as if measured: another machine must choose the same
# Of a run. All are our choice.
_ENDLESS = 60.0  # minutes of a run without an end
_ITERATIONS, _LONGEST = 20, 15.0  # iterations of a run, and seconds of an iteration at most
_PLAY, _FIT = 0.55, 0.35  # shares of an iteration
_A_PARAMETER = 10  # positions a run shall have for each parameter of its network
_LADDER = ((16, 32), (8, 16), (4, 8))  # Gumbel's actions and simulations; the next where too few games would end
_LEAST_GAMES, _MOST_GAMES, _MOST_SLOTS = 16, 512, 128
_MATCH, _MATCH_GAMES, _MATCH_SIMULATIONS = 0.025, 20, 100  # share of the run, games and simulations of a last match
# Of a game that hides something. A step follows all games of one network, and no older ones.
_PAYOFFS = 2000  # of random games, whose standard deviation is the unit of a step
_HIDDEN_STEPS = 2000  # of a run, if its time permits: with fewer steps, more games a step make a weaker player
_FEWEST_HIDDEN, _MOST_HIDDEN = 64, 1024  # games of a step, powers of 2
_HIDDEN_SECONDS = 1.0  # of self-play: once to fill the memory of rules in Python, and once to measure
_HIDDEN: dict[str, Any] = {
    "games_per_iteration": _MOST_HIDDEN,
    "learning_rate": 3e-3,
    "weight_decay": 0.0,
    "optimizer": "adam",
    "schedule": "linear",
    "root_value_weight": 1.0,
    "precision": "fp32",
}


@dataclass(frozen=True)
class Costs:
    """What a game costs here."""

    plies: float  # of a random game, without rolls
    actions: float  # legal ones, on average
    most: int  # of the legal actions
    simulations: float  # a second, over all cores, if the network took no time
    rows: Mapping[str, float]  # a second that all cores answer, by the network's spec, in ascending order of sizes
    learned: Mapping[str, float]  # positions a second in gradient steps, of each of these networks
    parameters: Mapping[str, int]  # of each of these networks

    def speed(self, network: str) -> float:
        """Simulations a second with a network of this spec."""
        return 1.0 / (1.0 / self.simulations + 1.0 / self.rows[network])


def sized(settings: Settings, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Settings for a run of a game without a preset, and a line that says what was measured.

    Raises:
        GameError: the game breaks a rule of games.
    """
    if settings.init is not None:  # the network that it begins with may be of any size
        given = {"network": settings.network, **given}
    if (start := make_game(settings.game)).hides:
        return hidden(start, settings, given)
    costs = costs_of(start, settings, given.get("network"))
    found = suited(costs, given, settings.all_pipelines)
    if all(device.kind == "cuda" for device in settings.all_devices):
        found.pop("slots", None)  # as many as games an iteration: see `combine`
    if settings.deterministic:  # it decides the visits, and must not depend on cores
        found.pop("eval_batch", None)
    said = f"a random game has {costs.plies:.0f} plies of {costs.actions:.0f} actions"
    if not settings.deterministic:
        network = str({**found, **given}["network"])
        speed = float(f"{costs.speed(network):.2g}")
        said += f"; {network} reaches about {speed:,g} simulations/s here"
    return found, said


def hidden(start: State, settings: Settings, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Settings for a game that hides something, and a line on it.

    They are the same for each game, but for the scale of payoffs and for the games of a step: a run of `minutes` has
    fewer where games are slow. docs/lab.md has the runs that they come from.
    """
    seconds = math.inf if settings.deterministic else _SECONDS
    rng, end, payoffs = np.random.default_rng(0), time.perf_counter() + seconds, list[float]()
    while len(payoffs) < _PAYOFFS and (time.perf_counter() < end or len(payoffs) < _GAMES):
        position = start.clone()
        for _ in at_random(position, rng, min(settings.max_plies or _MOST_PLIES, start.max_plies)):
            pass
        payoffs += [float(own) for own in position.outcomes()] if position.is_terminal else [0.0] * start.num_players
    scale = float(f"{np.std(payoffs) or 1.0:.2g}")
    found: dict[str, Any] = {"network": "2x128" if start.obs_shape[1:] == (1, 1) else "2x32"}
    # Where rules are slow, a few networks already take seconds.
    found |= {"networks_per_iteration": 16 if start.game_object is None else 4, **_HIDDEN, "payoff_scale": scale}
    said = f"{settings.game} hides something, so it is trained by mirror descent, without search"
    if settings.minutes is not None and "games_per_iteration" not in given:
        slots = max(settings.slots, settings.pipelines)
        layout: dict[str, Any] = {"pipelines": settings.pipelines, "eval_batch": 1, "payoff_scale": scale}
        with SelfPlay(start, Zeros(start, slots), slots=slots, **layout) as play:
            play_for(play, _HIDDEN_SECONDS)  # rules in Python fill their memory
            speed = play_for(play, _HIDDEN_SECONDS)["games_per_second"]
        games = max(1.0, _PLAY * 60.0 * settings.minutes * speed / _HIDDEN_STEPS)
        found["games_per_iteration"] = min(max(2 ** int(math.log2(games)), _FEWEST_HIDDEN), _MOST_HIDDEN)
        if speed >= 1:
            said += f"; without a network it plays about {_rounded(speed):,} games/s here"
    return {name: value for name, value in found.items() if name not in given}, said


def placed(settings: Settings) -> tuple[str, str]:
    """The device on which "auto" has a run's network play here, and a line on it."""
    if why := no_gpu():
        return "cpu", f"device auto chose the CPU: {why}"
    start = make_game(settings.game)
    model = to_onnx(network_of(start, settings.network))
    evaluator = open_generation(model, Device("auto"), settings, game=start, batch=settings.device_batch)
    return evaluator.device, "; ".join((f"device auto chose {evaluator.device}", *evaluator.notes))


def piped(with_pipelines: Callable[[int], Settings]) -> tuple[int, str]:
    """The pipelines with which self-play of a run's network is fastest on its GPUs here, and a line on it.

    Between 2, which share the threads that grow trees, and one a core, which have a thread each: by self-play with each
    number for some seconds. The network has random weights. `with_pipelines` gives the settings with so many a device.
    """
    fewest = with_pipelines(_FEWEST)
    devices, start = fewest.all_devices, make_game(fewest.game)
    most = min(usable_cores(), fewest.slots) // len(devices)
    numbers = sorted({_FEWEST, *(most >> shift for shift in range(_HALVINGS) if most >> shift > _FEWEST)})
    if len(numbers) == 1:
        return _FEWEST, ""
    model, precision = to_onnx(network_of(start, fewest.network)), half_precision(fewest, devices)
    found = dict[int, float]()
    for number in numbers:
        settings = with_pipelines(number)
        options: dict[str, Any] = {"game": start, "precision": precision, "batch": settings.device_batch}
        evaluators = [open_generation(model, device, settings, **options) for device in devices]
        with open_self_play(settings, start, evaluators) as play:
            play.admit(0, _MANY)
            play_for(play, _PIPELINES_SECONDS / 2)  # searches begin alike
            found[number] = play_for(play, _PIPELINES_SECONDS)["evaluations_per_second"]
    best = max(found, key=found.__getitem__)
    said = ", ".join(f"{number} play {rows:,.0f} rows/s" for number, rows in found.items())
    return best, f"pipelines auto chose {best}: {said}"


def costs_of(start: State, settings: Settings, network: str | None = None) -> Costs:
    """Measure what a game costs, with the device and pipelines of the settings; no time in a deterministic run.

    `network` is the only candidate; None: there are several.

    Raises:
        GameError: the game breaks a rule of games.
    """
    seconds = math.inf if settings.deterministic else _SECONDS
    games = random_games(start, _GAMES, settings.max_plies or _MOST_PLIES, seconds)
    legal = [count for game in games for count in game if count]
    if not legal:
        text = f"no player moves in random games of {settings.game}: az-check-game checks a game of your own"
        raise SettingsError(text)
    plies, actions, most = len(legal) / len(games), sum(legal) / len(legal), max(legal)
    specs = (network,) if network is not None else _candidates(start)
    if settings.deterministic:
        specs = specs[-1:] if network is not None else specs[1:2]
        parameters = {spec: _parameters(network_of(start, spec)) for spec in specs}
        free = dict.fromkeys(specs, math.inf)
        return Costs(plies, actions, most, _DETERMINISTIC, free, dict.fromkeys(specs, _DETERMINISTIC), parameters)
    begin = time.perf_counter()
    slots = max(_SLOTS, settings.pipelines)
    layout: dict[str, Any] = {"slots": slots, "pipelines": settings.pipelines, "simulations": 16, "eval_batch": 1}
    layout |= {"max_plies": settings.max_plies, "cache_positions": 0}
    with SelfPlay(start, Zeros(start, slots), **layout) as play:
        simulations = max(1.0, play_for(play, _RULES_SECONDS)["simulations_per_second"])
        if play.stats["games"] and not play.stats["searches"]:  # such as a clone that shares the position
            text = f"the games of {settings.game} end before their first search: az-check-game finds the mistake"
            raise SettingsError(text)
    device, devices = settings.all_devices[0].without_tensorrt, len(settings.all_devices)
    rows, learned, parameters = {}, {}, {}
    for spec in specs:
        learner = Learner(start, spec, device=settings.training_device, precision=settings.training_precision)
        parameters[spec] = _parameters(learner.network)
        own = replace(settings, network=spec, value_smoothing=0.0)
        first = open_generation(to_onnx(learner.averaged), device, own, game=start, batch=_ROWS)
        calls = [each.evaluate_batch for each in (first, *(first.fork() for _ in range(settings.pipelines - 1)))]
        rows[spec] = devices * rate(calls, _ROWS, start.obs_shape, _NETWORK_SECONDS)
        learned[spec] = _learned(learner, start)
        if time.perf_counter() - begin > _ENOUGH_SECONDS:
            break
    return Costs(plies, actions, most, simulations, rows, learned, parameters)


def _learned(learner: Learner, start: State) -> float:
    """Positions a second in gradient steps; the first steps do not count."""
    batch = game_without_network(start).sample(_BATCH, seed=0)  # a user's loss may rely on valid targets
    batches = SimpleNamespace(sample=lambda rows, **options: batch)
    times = list[float]()
    with contextlib.closing(learner.fit(batches, 1 + _STEPS, batch_size=_BATCH)) as steps:
        for _ in steps:
            times.append(time.perf_counter())
            if times[-1] - times[0] > _STEPS_SECONDS:
                break
    return (len(times) - 1) * _BATCH / (times[-1] - times[0])


def _candidates(start: State) -> tuple[str, ...]:
    """Networks for the game's observations, the smallest first."""
    _, height, width = start.obs_shape
    if height * width == 1:
        return _FLAT
    return tuple(f"{spec}+pool" for spec in _BOARDS) if height * width >= _LARGE_BOARD else _BOARDS


def _parameters(network: Any) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def suited(costs: Costs, given: Mapping[str, Any], pipelines: int) -> dict[str, Any]:
    """Settings that suit a game of these costs; those that are given stay, and decide on the others.

    A run without `minutes` is sized for an hour.
    """
    seconds = 60.0 * (given.get("minutes") or _ENDLESS)
    iteration = min(_LONGEST, seconds / _ITERATIONS)
    few = min(costs.most, 8)
    ladder: Sequence[tuple[int, int]] = [(few, 16), (min(few, 4), 8)] if costs.actions <= 8 else _LADDER
    if "gumbel_actions" not in beside({"gumbel_actions": 1}, given):
        ladder = [(0, given.get("simulations", default_of("simulations")))]
    elif "simulations" in given:
        ladder = [(ladder[0][0], given["simulations"])]

    def network_for(simulations: int) -> str:
        """The largest network for which the run has enough positions; else the smallest."""
        positions = {spec: _PLAY * seconds * costs.speed(spec) / simulations for spec in costs.rows}
        enough = [spec for spec, count in positions.items() if count >= _A_PARAMETER * costs.parameters[spec]]
        return enough[-1] if enough else next(iter(positions))

    def games_of(simulations: int) -> float:
        """Games that an iteration has time for."""
        return _PLAY * iteration * costs.speed(network_for(simulations)) / (costs.plies * simulations)

    actions, simulations = next((pair for pair in ladder if games_of(pair[1]) >= _LEAST_GAMES), ladder[-1])
    network = network_for(simulations)
    games = min(max(games_of(simulations), 4), _MOST_GAMES)
    games = given.get("games_per_iteration", _rounded(games))
    positions = games * costs.plies
    slots = given.get("slots", max(pipelines, min(_MOST_SLOTS, max(games, 8))))
    passes = _FIT * iteration * costs.learned[network] / positions
    in_match = _MATCH * seconds * costs.speed(network) / (_MATCH_GAMES * costs.plies)
    found = {
        "network": network,
        "gumbel_actions": actions,
        "simulations": simulations,
        "games_per_iteration": games,
        "slots": slots,
        "eval_batch": min(auto_eval_batch(slots, pipelines), max(1, simulations // 8)),
        "opening_plies": min(6, int(costs.plies) // 8),
        "match_opening_plies": min(4, int(costs.plies) // 6),
        "match_simulations": max(simulations, min(_MATCH_SIMULATIONS, round(in_match))),
        "passes": float(min(8, max(2, round(passes)))),
        "batch_size": _BATCH,
        "window_min": _rounded(min(max(4 * positions, 2000), 20_000)),
    }
    return beside({name: value for name, value in found.items() if name not in given}, given)


def _rounded(number: float) -> int:
    """Round to two digits."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return round(number / unit) * unit
