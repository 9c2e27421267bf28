"""What a training run is told: one frozen record, refused as a whole if a part cannot be.

Field, command-line flag and key in config.toml share one name. What people read of a setting and what it may be stand
in its field, as an `About`, and nowhere else: `az-train --help`, the checks and the comments in config.toml come from
there. Knows nothing of how a run is carried out.
"""

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from azpy.devices import PRECISIONS, name_devices, parse_devices
from azpy.errors import SettingsError, did_you_mean
from azpy.machine import MOST_PIPELINES, MOST_THREADS, usable_cores
from azpy.settings.about import GROUPS, About

__all__ = [
    "ABOUT",
    "CPU_BATCH",
    "FIXED_SETTINGS",
    "GROUPS",
    "KIND",
    "MOST_LEAVES",
    "SAME_GAMES_SETTINGS",
    "About",
    "Settings",
    "auto_eval_batch",
    "auto_pipelines",
    "checked",
    "combine",
    "default_of",
    "identity",
    "is_auto",
    "match_search",
    "parse",
]

_MATCH_SIMULATIONS = 100  # at least, where nobody says
CPU_BATCH = 64  # rows at which ONNX Runtime's CPU provider is at full speed
_MOST_FACTOR = 1_000_000  # the core searches with no greater one
MOST_LEAVES = 8  # of one tree at a time; what more cost in strength is in docs/search.md
_ZERO, _KATAGO = "AlphaGo Zero, Silver et al. 2017", "KataGo, Wu 2019"


@dataclass(frozen=True)
class Settings:
    """A training run. Without `iterations`, `minutes` and `total_evaluations` it goes on until it is interrupted.

    `ABOUT` says of each setting what it is; `az-train --help` prints that.

    Raises:
        SettingsError: a value of the wrong type or out of range, or two that contradict each other.
    """

    game: Annotated[
        str, About("what is played; see `az-train --list-games`", "run", fixed="its games and weights are of that game")
    ]
    network: Annotated[
        str,
        About(
            "blocks x channels of the residual net, or layers x width for flat features",
            "run",
            fixed="its weights are of that shape",
        ),
    ] = "5x64"
    iterations: Annotated[int | None, About("length of the whole run", "run", unit="iterations", low=1)] = None
    minutes: Annotated[
        float | None,
        About(
            "length of the whole run, resumed parts included; one that was killed counts up to its last line in "
            "metrics.jsonl",
            "run",
            unit="minutes",
            low=0,
            above=True,
        ),
    ] = None
    total_evaluations: Annotated[
        int | None,
        About(
            "length of the whole run, by what self-play asked of the network: the same work on any machine; the "
            "iteration in which they are reached is the last",
            "run",
            unit="evaluations",
            low=1,
        ),
    ] = None
    seed: Annotated[
        int,
        About(
            "fixes weights, games and batches",
            "run",
            low=0,
            high=2**63 - 1,
            fixed="games are told apart by seed and number",
        ),
    ] = 0
    deterministic: Annotated[
        bool,
        About(
            "the same seed gives the same run, bit for bit: an iteration is a fixed range of games, all played by "
            "one model, and one thread takes the gradient steps; refuses minutes",
            "run",
            fixed="it would be neither the one kind of run nor the other",
        ),
    ] = False
    tensorboard: Annotated[
        bool,
        About(
            "also writes the metrics for TensorBoard, into the folder tensorboard of the run", "run", same_games=True
        ),
    ] = False

    device: Annotated[
        str,
        About(
            "where the network plays and is trained: cpu, cuda, cuda:N, tensorrt, tensorrt:N (trained by torch on "
            "CUDA), or auto for the best that loads",
            "run",
        ),
    ] = "cpu"
    devices: Annotated[
        str | None,
        About(
            "numbers of several GPUs, such as 0,1: each has pipelines of its own, the first also trains and plays "
            "matches",
            "run",
        ),
    ] = None
    precision: Annotated[
        str,
        About(
            "in what the network plays, each generation only if that passes a check against fp32: on the CPU int8, or "
            "auto, which is int8 if it is faster here, but fp32 in deterministic runs; on a GPU fp16, bf16, or tf32 "
            "(CUDA)",
            "run",
            words=("fp32", "int8", "auto", "fp16", "bf16", "tf32"),
        ),
    ] = "fp32"

    simulations: Annotated[
        int,
        About("simulations a move", "search", unit="simulations", low=1, high=2**32 - 1),
    ] = 100
    eval_batch: Annotated[
        int,
        About(
            "leaves of one tree in a call of the network; auto: the fewest that fill the device's batch, up to 8 (in "
            "a deterministic run, that of the default slots and pipelines)",
            "search",
            unit="leaves",
            low=1,
            high=65_536,
            auto=True,
        ),
    ] = 8
    c_puct: Annotated[float, About("weight of the prior against the value", "search", low=0, high=_MOST_FACTOR)] = 1.5
    fpu: Annotated[
        float | str,
        About(
            "in self-play, value of an action not yet visited: its parent's, less this times the square root of the "
            "priors visited; or zero, or parent for the parent's",
            "search",
            low=0,
            words=("zero", "parent"),
        ),
    ] = "zero"
    virtual_loss: Annotated[
        float,
        About(
            "lost games that a leaf in flight counts as; of use with eval_batch above 1",
            "search",
            low=0,
            high=_MOST_FACTOR,
        ),
    ] = 1.0
    c_puct_stdev: Annotated[
        float,
        About(
            "how much c_puct grows with the spread of the values below a position",
            "search",
            source="KataGo's variance-scaled cPUCT, 0.85 there",
            low=0,
            high=1,
        ),
    ] = 0.0
    gumbel_actions: Annotated[
        int,
        About(
            "in self-play, actions that Gumbel's sequential halving begins with, in place of PUCT and noise; 0: PUCT",
            "search",
            unit="actions",
            source="Danihelka et al. 2022, 16 there",
            low=0,
            high=65_535,
        ),
    ] = 0
    solver: Annotated[
        bool,
        About(
            "in self-play, proven wins, draws and losses are carried up the tree and not searched again",
            "search",
            source="Winands, Björnsson and Saito 2008",
        ),
    ] = False

    slots: Annotated[
        int, About("games in play, over all pipelines", "self-play", unit="games", low=1, high=2**20, same_games=True)
    ] = 128
    pipelines: Annotated[
        int,
        About(
            "threads of self-play, on each of the devices; while one waits for the network, the others' trees grow; "
            "auto: 2, or one a core with device cpu",
            "self-play",
            unit="threads",
            low=1,
            high=MOST_PIPELINES,
            auto=True,
            same_games=True,
        ),
    ] = 2
    threads: Annotated[
        int | None,
        About(
            "threads that grow the trees; if not given, one a core, or each pipeline its own where the network runs on "
            "the same cores and each has a pipeline",
            "self-play",
            unit="threads",
            low=1,
            high=MOST_THREADS,
            same_games=True,
        ),
    ] = None
    cache_positions: Annotated[
        int,
        About(
            "answers of the network to keep; 0 for none",
            "self-play",
            unit="positions",
            low=0,
            high=2**28,
            same_games=True,
        ),
    ] = 200_000
    games_per_iteration: Annotated[
        int, About("self-play games between two generations", "self-play", unit="games", low=1)
    ] = 256
    root_noise: Annotated[
        float,
        About("weight of Dirichlet noise in the root's prior", "self-play", unit="share", source=_ZERO, low=0, high=1),
    ] = 0.25
    noise_shaped: Annotated[
        bool, About("half of the noise goes to actions whose prior stands out", "self-play", source=_KATAGO)
    ] = False
    root_temperature: Annotated[
        float,
        About(
            "the root's priors are raised to 1 / this, before the noise",
            "self-play",
            source="KataGo, 1.1 to 1.25 there",
            low=0,
            above=True,
        ),
    ] = 1.0
    forced_visits: Annotated[
        float,
        About(
            "k: a visited action of the root gets sqrt(k prior n) of n visits at least, and what only that brought is "
            "not learned; 0 forces none",
            "self-play",
            source="KataGo, Wu 2019, 2 there",
            low=0,
            high=_MOST_FACTOR,
        ),
    ] = 0.0
    temperature_plies: Annotated[
        int,
        About(
            "plies at the start of a game whose action is drawn by visits",
            "self-play",
            unit="plies",
            source=_ZERO,
            low=0,
        ),
    ] = 30
    opening_plies: Annotated[
        int, About("random plies before a game, drawn from 0 up to this", "self-play", unit="plies", low=0)
    ] = 0
    resign_below: Annotated[
        float,
        About(
            "a player resigns when root and best action are worth less than this; -1: nobody resigns",
            "self-play",
            unit="value",
            low=-1,
            high=0,
        ),
    ] = -1.0
    resign_plies: Annotated[
        int,
        About(
            "own searches in a row that must say so",
            "self-play",
            unit="searches",
            source="KataGo's resignConsecTurns",
            low=1,
            high=2**32 - 1,
        ),
    ] = 3
    resign_control: Annotated[
        float,
        About(
            "share of games played to the end all the same, to see which resignations would be wrong",
            "self-play",
            unit="share",
            source=_ZERO,
            low=0,
            high=1,
        ),
    ] = 0.1
    evaluations: Annotated[
        int | None,
        About(
            "evaluations of a self-play search at most, answers of the cache included",
            "self-play",
            unit="evaluations",
            low=2,
            high=2**32 - 1,
        ),
    ] = None
    opening_policy_plies: Annotated[
        int,
        About(
            "plies drawn from the raw policy after the random ones, drawn from 0 up to this",
            "self-play",
            unit="plies",
            source=_KATAGO,
            low=0,
        ),
    ] = 0
    temperature_halflife: Annotated[
        float | None,
        About(
            "plies in which the temperature halves, in place of temperature_plies",
            "self-play",
            unit="plies",
            source=_KATAGO,
            low=0,
            above=True,
        ),
    ] = None
    full_search_share: Annotated[
        float,
        About(
            "probability that a move gets a full search and is learned from; the others get a fast one without noise",
            "self-play",
            unit="share",
            source=_KATAGO,
            low=0,
            high=1,
            above=True,
        ),
    ] = 1.0
    fast_simulations: Annotated[
        int | None,
        About(
            "simulations of a fast search; if not given, a quarter of simulations",
            "self-play",
            unit="simulations",
            low=1,
            high=2**32 - 1,
        ),
    ] = None
    historical_share: Annotated[
        float,
        About(
            "share of games in which one player is the network of an earlier checkpoint, from which nothing is learned",
            "self-play",
            unit="share",
            low=0,
            high=1,
        ),
    ] = 0.0

    learning_rate: Annotated[
        float,
        About("AdamW's, at its peak", "learning", low=0, above=True),
    ] = 2e-3
    weight_decay: Annotated[float, About("AdamW's", "learning", low=0)] = 1e-4
    batch_size: Annotated[
        int, About("positions of a training batch", "learning", unit="positions", low=1, high=65_536)
    ] = 256
    passes: Annotated[
        float,
        About(
            "how often a new position is drawn for training, on average", "learning", unit="times", low=0, above=True
        ),
    ] = 4.0
    root_value_weight: Annotated[
        float,
        About(
            "weight of the search's root value in the value target; the rest is the outcome",
            "learning",
            unit="share",
            low=0,
            high=1,
        ),
    ] = 0.25
    window_min: Annotated[
        int, About("positions kept before old ones are let go", "learning", unit="positions", low=1)
    ] = 20_000
    window_share: Annotated[
        float,
        About("share of all positions kept, once that is more", "learning", unit="share", low=0, high=1, above=True),
    ] = 0.5
    window_max: Annotated[int, About("positions kept at most", "learning", unit="positions", low=1)] = 1_000_000
    symmetries: Annotated[
        bool, About("turns and mirrors training rows at random, where the game has symmetries", "learning")
    ] = True
    surprise_weight: Annotated[
        float,
        About(
            "share of a game's training rows drawn by how far policy targets are from the priors; the rest are uniform",
            "learning",
            unit="share",
            source="KataGo's policy surprise weighting, 0.5 there",
            low=0,
            high=1,
        ),
    ] = 0.0
    schedule: Annotated[
        str,
        About(
            "of the learning rate: linear-tail is full for half of the run, then falls in a line to a twentieth",
            "learning",
            words=("linear-tail", "cosine", "constant"),
        ),
    ] = "linear-tail"
    window_growth: Annotated[
        float | None,
        About(
            "exponent of the window's growth past window_min; none: window_share alone",
            "learning",
            source=_KATAGO,
            low=0,
            high=1,
            above=True,
        ),
    ] = None

    match_every: Annotated[
        int,
        About("distance of two matches", "matches", unit="iterations", low=1, high=2**32 - 1, same_games=True),
    ] = 5
    match_games: Annotated[
        int, About("games of a match against each opponent", "matches", unit="games", low=2, even=True, same_games=True)
    ] = 40
    final_match_games: Annotated[
        int,
        About(
            "games of the last match against each opponent", "matches", unit="games", low=2, even=True, same_games=True
        ),
    ] = 100
    match_simulations: Annotated[
        int | None,
        About(
            "simulations a move in matches; if not given, those of self-play, but 100 at least",
            "matches",
            unit="simulations",
            low=1,
            high=2**32 - 1,
            same_games=True,
        ),
    ] = None
    match_c_puct: Annotated[
        float,
        About(
            "c_puct in matches",
            "matches",
            source="measured in Connect Four over 400 games: 0.89, and 0.87 with 1.5",
            low=0,
            high=_MOST_FACTOR,
            same_games=True,
        ),
    ] = 2.5
    match_fpu: Annotated[
        float | str,
        About(
            "fpu where the player plays to win, in matches",
            "matches",
            source="Leela Chess Zero; measured in Connect Four over 800 games: 0.93, and 0.88 with zero",
            low=0,
            words=("zero", "parent"),
            same_games=True,
        ),
    ] = 0.25
    match_lcb: Annotated[
        float,
        About(
            "in matches the action with the highest value less so many standard errors is played; 0: the most visited",
            "matches",
            unit="standard errors",
            source="Leela Zero; measured in Connect Four over 400 games: 0.87, and 0.80 with 0",
            low=0,
            high=_MOST_FACTOR,
            same_games=True,
        ),
    ] = 2.0
    match_solver: Annotated[
        bool,
        About("solver in matches", "matches", source="Winands, Björnsson and Saito 2008", same_games=True),
    ] = True
    match_opening_plies: Annotated[
        int, About("random plies before each pair of match games", "matches", unit="plies", low=0, same_games=True)
    ] = 4

    def __post_init__(self) -> None:
        """Refuses what cannot be run."""
        for field in fields(self):
            object.__setattr__(self, field.name, checked(field.name, getattr(self, field.name)))
        name_devices(self.device, self.devices)
        if self.slots < self.all_pipelines:
            raise SettingsError(f"slots must be at least the {self.all_pipelines} pipelines, got {self.slots}")
        if self.deterministic and self.minutes is not None:
            raise SettingsError("deterministic runs cannot depend on the clock: give iterations, not minutes")
        if self.deterministic and self.total_evaluations is not None:
            raise SettingsError(
                "deterministic runs cannot depend on total_evaluations, which depend on the cache: give iterations"
            )
        if self.deterministic and self.device != "cpu":
            raise SettingsError(f"deterministic runs play on the CPU, got device {self.device!r}")
        if self.precision == "int8" and self.device != "cpu":
            raise SettingsError(f"precision int8 is for the CPU, got device {self.device!r}")
        for device in (device for name in self.device_names for device in parse_devices(name)):
            has = [*PRECISIONS[device.kind], *(["int8", "auto"] if device.kind == "cpu" else [])]
            if self.precision not in {*has, "int8", "auto"}:
                where = [kind for kind, precisions in PRECISIONS.items() if self.precision in precisions]
                raise SettingsError(
                    f"precision {self.precision} needs device {' or '.join(where)}, got {self.device}: "
                    f"{device.title} has {', '.join(has)}"
                )

    @property
    def device_names(self) -> tuple[str, ...]:
        """Where the network plays."""
        return name_devices(self.device, self.devices)

    @property
    def training_device(self) -> str:
        """Where the network is trained, as torch calls it."""
        return self.device_names[0].replace("tensorrt", "cuda")

    @property
    def all_pipelines(self) -> int:
        """Those of all devices."""
        return self.pipelines * len(self.device_names)

    @property
    def simulations_in_matches(self) -> int:
        """A move: few simulations that are enough to learn from say little about strength."""
        return self.match_simulations or max(self.simulations, _MATCH_SIMULATIONS)

    @property
    def device_batch(self) -> int:
        """Rows of a full batch: leaves of one tree times slots of one pipeline."""
        return self.eval_batch * -(-self.slots // self.all_pipelines)


def match_search(settings: Settings | type[Settings]) -> dict[str, Any]:
    """How a model searches where it plays to win: options of `Search`."""
    return {
        "c_puct": settings.match_c_puct,
        "fpu": settings.match_fpu,
        "lcb": settings.match_lcb or None,
        "solver": settings.match_solver,
    }


def _declared() -> tuple[dict[str, About], dict[str, type], set[str]]:
    """What the fields of `Settings` say: about, type without None and words, and which may be None."""
    about, kinds, optional = {}, {}, set()
    for name, hint in typing.get_type_hints(Settings, include_extras=True).items():
        declared, about[name] = typing.get_args(hint)
        kinds[name], *rest = typing.get_args(declared) or (declared,)
        if type(None) in rest:
            optional.add(name)
    return about, kinds, optional


ABOUT, KIND, _OPTIONAL = _declared()
FIXED_SETTINGS = {name: about.fixed for name, about in ABOUT.items() if about.fixed}
SAME_GAMES_SETTINGS = tuple(name for name, about in ABOUT.items() if about.same_games)


def checked(name: str, value: Any) -> Any:
    """The value as `Settings` holds it: a whole number given for a number becomes one.

    Raises:
        SettingsError: no such setting, or a value of another type or out of range.
    """
    if name not in ABOUT:
        raise SettingsError(f"{name}: no such setting{did_you_mean(name, ABOUT)}")
    return ABOUT[name].checked(name, value, KIND[name], name in _OPTIONAL)


def parse(name: str, text: str) -> Any:
    """The value that a command line gives as text; `none` takes back one that a file gives.

    Raises:
        SettingsError: text that is no value of this setting.
    """
    return text if is_auto(name, text) else ABOUT[name].parsed(name, text, KIND[name], name in _OPTIONAL)


def default_of(name: str) -> Any:
    """What stands where nobody gives the setting: `auto` where there is one; None for none."""
    return "auto" if ABOUT[name].auto else getattr(Settings, name, None)


def identity(settings: Mapping[str, Any], run_id: str | None = None) -> dict[str, Any]:
    """What tells a run from others for as long as it lives, by name: its settings that cannot change, and its id."""
    facts = {name: settings[name] for name in FIXED_SETTINGS if settings.get(name) is not None}
    return facts if run_id is None else facts | {"run_id": run_id}


def is_auto(name: str, value: Any) -> bool:
    """True for the word `auto`, given for a setting that takes it."""
    return name in ABOUT and ABOUT[name].auto and value == "auto"


def combine(*layers: Mapping[str, Any]) -> Settings:
    """The settings that these give together: the last that has a name wins; `auto` stands where none gives a number.

    Raises:
        SettingsError: see `Settings`; or there is no game.
    """
    chosen: dict[str, Any] = {name: value for layer in layers for name, value in layer.items()}
    if "game" not in chosen:
        raise SettingsError("no game: give its name, or a file with one as --config")
    groups = len((checked("devices", chosen.get("devices")) or "").split(","))
    if is_auto("pipelines", chosen.setdefault("pipelines", "auto")):
        slots = checked("slots", chosen.get("slots", Settings.slots))
        chosen["pipelines"] = auto_pipelines(slots // groups, chosen.get("device", Settings.device))
    if is_auto("eval_batch", chosen.setdefault("eval_batch", "auto")):
        # It decides the visits: in a deterministic run it must not depend on what may change the speed alone.
        fixed = chosen.get("deterministic") is True
        layout, groups = ({}, 1) if fixed else (chosen, groups)
        slots, pipelines = (checked(name, layout.get(name, getattr(Settings, name))) for name in ("slots", "pipelines"))
        chosen["eval_batch"] = auto_eval_batch(slots, pipelines * groups)
    return Settings(**{name: checked(name, value) for name, value in chosen.items()})


def auto_pipelines(slots: int, device: str) -> int:
    """One a core where the network runs on the CPU, as each one's network runs on one core; else 2 that take turns."""
    wanted = max(2, usable_cores()) if device == "cpu" else 2
    return max(1, min(wanted, slots, MOST_PIPELINES))


def auto_eval_batch(slots: int, pipelines: int) -> int:
    """The fewest leaves of one tree that fill the device's batch; no more than cost little strength."""
    return min(max(1, math.ceil(CPU_BATCH * pipelines / max(slots, 1))), MOST_LEAVES)
