"""The settings of a training run: one frozen record, refused as a whole if one setting is wrong.

Field, command-line flag and key in config.toml have one name. `ABOUT` describes each setting: `az-train --help-all`,
the checks and the comments in config.toml come from it. The options of search and of self-play are rows of the core's
table `azpy._core.OPTIONS`; the other settings are below.
"""

import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from typing import Any

from azpy import _core
from azpy.devices import Device, check_precision, devices_of, no_gpu
from azpy.errors import SettingsError, did_you_mean
from azpy.game import players_of
from azpy.settings.about import GROUPS as GROUPS
from azpy.settings.about import About as About
from azpy.system import usable_cores

_MATCH_SIMULATIONS = 100  # at least, by default
CPU_BATCH = 64  # rows at which ONNX Runtime's CPU provider is at full speed
# In Connect Four on an H100 self-play answered 136,000 rows/s with 128 slots and 725,000 with 1,024 (November 2026).
_MOST_CUDA_SLOTS = 2048
MOST_WORKERS = 256
MOST_LEAVES = 8  # of one tree at a time; docs/explanation/search.md has the strength that more cost


def _setting(
    group: Any, text: str, default: Any = MISSING, low: float = -math.inf, high: float = math.inf, **facts: Any
) -> Any:
    return field(default=default, metadata={"about": About(text, group, low=low, high=high, **facts)})


def _like(option: str, default: Any, source: str) -> Any:
    """A setting of matches that may be what an option of the search may be."""
    about = _OPTIONS[option]
    needs = about.needs and f"match_{about.needs}"
    about = replace(
        about, help=f"{option} in matches", group="matches", source=source, rule="", needs=needs, same_games=True
    )
    return field(default=default, metadata={"about": about})


def _option(name: str) -> Any:
    """A setting that is an option of the core's table."""
    return field(default=_core.OPTIONS[name]["in_self_play"], metadata={"about": _OPTIONS[name]})


def _about(name: str, row: Mapping[str, Any]) -> About:
    facts = {key: value for key, value in row.items() if key not in ("default", "in_self_play")}
    auto = name == "eval_batch"
    text = "most leaves of one tree per network call; auto fills batches" if auto else row["help"]
    return About(**facts | {"help": text, "auto": auto})


_OPTIONS = {name: _about(name, row) for name, row in _core.OPTIONS.items()}
_run, _learning = partial(_setting, "run"), partial(_setting, "learning")
_play, _layout = partial(_setting, "self-play"), partial(_setting, "self-play", same_games=True)
_matches = partial(_setting, "matches", same_games=True)
_SHARE: dict[str, Any] = {"unit": "share", "low": 0, "high": 1}
_ABOVE_0: dict[str, Any] = {"low": 0, "above": True}
_PRECISIONS = ("fp32", "int8", "auto", "fp16", "bf16")


@dataclass(frozen=True)
class Settings:
    """A training run. Without `iterations`, `minutes` and `total_evaluations` it goes on until it is interrupted.

    `az-train --help-all` describes each setting.

    Raises:
        SettingsError: a value of the wrong type or out of range, or two settings that contradict each other.
    """

    game: str = _run("game to train; list them with --list-games", fixed="its games and weights are of that game")
    network: str = _run(
        "BLOCKSxCHANNELS, optionally with +pool, +conv or +wdl; or module:function",
        "5x64",
        fixed="its weights are of that shape",
    )
    iterations: int | None = _run("iterations of the whole run", None, 1, unit="iterations")
    minutes: float | None = _run(
        "minutes of the whole run, including earlier sessions", None, unit="minutes", **_ABOVE_0
    )
    total_evaluations: int | None = _run(
        "end after the iteration that reaches this many evaluations", None, 1, unit="evaluations"
    )
    seed: int = _run(
        "seed of weights, games and batches", 0, 0, 2**63 - 1, fixed="games are told apart by seed and number"
    )
    deterministic: bool = _run(
        "make runs with equal seeds identical, bit for bit", False, fixed="it changes how all games are played"
    )
    init: str | None = _run(
        "start from the weights of a run, checkpoint or file", None, fixed="its first network is the one of that run"
    )
    tensorboard: bool = _run("also write metrics for TensorBoard into the run folder", False, same_games=True)
    device: str = _run("cpu, cuda[:N], tensorrt[:N], webgpu, openvino, or auto: a GPU if faster", "cpu")
    devices: str | None = _run("GPUs to play on, such as 0,1; the first also trains", None)
    precision: str = _run(
        "precision of the network in self-play; auto depends on the device", "auto", words=_PRECISIONS
    )

    slots: int = _layout("games in play at once, over all pipelines", 128, 1, 2**20, unit="games")
    pipelines: int = _layout(
        "self-play threads per device; auto: one per core, measured on GPUs",
        2,
        1,
        _core.MOST_PIPELINES,
        unit="threads",
        auto=True,
    )
    threads: int | None = _layout(
        "threads that grow trees; none: one per core or pipeline", None, 1, _core.MOST_THREADS, unit="threads"
    )
    workers: int | str = _layout(
        "worker processes; or ray, or folder:PATH for az-worker; 0: this process",
        0,
        0,
        MOST_WORKERS,
        unit="processes",
        words=("ray", "folder:TEXT"),
    )
    cache_positions: int = _layout(
        "network answers to cache; 0 turns the cache off", 200_000, 0, 2**28, unit="positions"
    )
    games_per_iteration: int = _play("self-play games per iteration", 256, 1, unit="games")
    networks_per_iteration: int = _play(
        "hidden information: networks per iteration; the last one's games are stored", 1, 1, unit="networks"
    )
    ranked_reward: float = _play(
        "single-player games: win by beating this share of recent scores",
        0.0,
        source="R2, Laterre et al. 2018, 0.75 there",
        without=("score_to_beat",),
        fixed="its value means other numbers",
        **_SHARE,
    )

    learning_rate: float = _learning("peak learning rate", 2e-3, **_ABOVE_0)
    weight_decay: float = _learning("weight decay of the optimizer", 1e-4, 0)
    optimizer: str = _learning(
        "adamw, adam (no momentum), muon, sgd, or module:function that makes one",
        "adamw",
        fixed="its state is that of another optimizer",
    )
    freeze: str | None = _learning("patterns of weights that are not trained, such as trunk.*,value.*", None)
    value_smoothing: float = _learning(
        "label smoothing of the value of a +wdl network", 0.0, 0, 0.3, fixed="its value means other numbers"
    )
    decisive_weight: float = _learning("weight of won and lost positions in the value loss", 1.0, **_ABOVE_0)
    batch_size: int = _learning("positions per training batch", 256, 1, 65_536, unit="positions")
    passes: float = _learning("times that each new position is trained on, on average", 4.0, unit="times", **_ABOVE_0)
    root_value_weight: float = _learning("weight of the search's root value in the value target", 0.25, **_SHARE)
    training_precision: str = _learning(
        "precision of gradients; auto: bf16 where the device supports it", "auto", words=("fp32", "bf16", "auto")
    )
    window_min: int = _learning("positions kept before old ones are dropped", 20_000, 1, unit="positions")
    window_share: float = _learning(
        "share of all positions kept, once that exceeds window_min", 0.5, above=True, **_SHARE
    )
    window_max: int = _learning("most positions kept", 1_000_000, 1, unit="positions")
    symmetries: bool = _learning("train on random symmetries of each position, where the game has them", True)
    supervised_passes: float = _learning(
        "with --supervised: passes over imported positions before self-play",
        10.0,
        unit="times",
        same_games=True,
        **_ABOVE_0,
    )
    # The positions of a game share one outcome, and a network learns outcomes by heart before it knows the moves.
    supervised_value_weight: float = _learning(
        "with --supervised: weight of imported positions in the value loss",
        0.01,
        high=1,
        source="AlphaGo Zero's supervised network, Silver et al. 2017",
        **_ABOVE_0,
    )
    supervised_held_out: float = _learning(
        "with --supervised: share of imported games to measure on only", 0.05, same_games=True, **_SHARE
    )
    supervised_min_rating: int | None = _learning(
        "with --supervised: skip games with lower or unknown ratings", None, 0, 100_000, unit="points", same_games=True
    )
    supervised_min_seconds: int = _learning(
        "with --supervised: skip games with less time for 40 moves",
        180,
        0,
        2**31,
        unit="seconds",
        source="Lichess's bound of bullet games",
        same_games=True,
    )
    schedule: str = _learning(
        "learning-rate schedule; linear-tail decays in the second half",
        "linear-tail",
        words=("linear-tail", "linear", "constant"),
    )

    match_every: int | None = _matches(
        "iterations between two matches; none: after each third", None, 1, 2**32 - 1, unit="iterations"
    )
    match_games: int = _matches("games per match of --match-every", 40, 2, unit="games", even=True)
    final_match_games: int = _matches("games of the last match against each opponent", 100, 2, unit="games", even=True)
    match_simulations: int | None = _matches(
        "simulations per move in matches; none: as self-play, at least 100", None, 1, 2**32 - 1, unit="simulations"
    )
    match_c_puct: float = _like("c_puct", 1.2, "scores 0.583 against 2.5 in Othello, and 0.514 in Connect Four")
    match_fpu: float | str = _like("fpu", 0.25, "Leela Chess Zero; measured in Connect Four: 0.93, and 0.88 with zero")
    match_lcb: float | None = _like("lcb", 2.0, "Leela Zero; measured in Connect Four: 0.87, and 0.80 with none")
    match_solver: bool = _like("solver", True, "Winands, Björnsson and Saito 2008")
    match_lookahead: int = _like("lookahead", 0, "Baier and Winands 2015")
    match_opening_plies: int = _matches("random plies before each pair of match games", 4, 0, unit="plies")

    # The core's table says what these are; a test holds their types against it.
    eval_batch: int = _option("eval_batch")
    c_puct: float = _option("c_puct")
    c_puct_base: float | None = _option("c_puct_base")
    fpu: float | str = _option("fpu")
    virtual_loss: float = _option("virtual_loss")
    in_flight_share: float | None = _option("in_flight_share")
    root_noise: float | None = _option("root_noise")
    root_temperature: float = _option("root_temperature")
    gumbel_actions: int = _option("gumbel_actions")
    gumbel_scale: float = _option("gumbel_scale")
    value_scale: float = _option("value_scale")
    maxvisit_init: float = _option("maxvisit_init")
    gumbel_rescale: bool = _option("gumbel_rescale")
    lcb: float | None = _option("lcb")
    solver: bool = _option("solver")
    lookahead: int = _option("lookahead")
    score_to_beat: float | None = _option("score_to_beat")
    early_stop: bool = _option("early_stop")
    evaluations: int | None = _option("evaluations")
    max_memory_mb: float | None = _option("max_memory_mb")
    simulations: int = _option("simulations")
    full_search_share: float = _option("full_search_share")
    fast_simulations: int | None = _option("fast_simulations")
    temperature: float = _option("temperature")
    temperature_plies: int = _option("temperature_plies")
    temperature_final: float = _option("temperature_final")
    opening_plies: int = _option("opening_plies")
    resign_at: float = _option("resign_at")
    tree_reuse: bool = _option("tree_reuse")
    payoff_scale: float = _option("payoff_scale")
    max_plies: int | None = _option("max_plies")

    def __post_init__(self) -> None:
        """Check each setting, and those that depend on each other."""
        for name, about in ABOUT.items():
            about = replace(about, auto=False) if about.auto else about
            object.__setattr__(self, name, about.checked(name, getattr(self, name)))
        for name, why in unused(vars(self)).items():
            raise SettingsError(f"{name} {why}")
        devices = self.all_devices
        kind = devices[0].kind
        if self.slots < self.all_pipelines:
            raise SettingsError(f"slots must be at least the {self.all_pipelines} pipelines, got {self.slots}")
        if self.workers and kind == "tensorrt":
            raise SettingsError(
                "workers play on the CPU or on CUDA, not with TensorRT, whose engines belong to one process"
            )
        if self.workers and self.precision == "fp16" and is_own(self.network):
            raise SettingsError(
                f"workers play network {self.network} by ONNX Runtime, which has no fp16 on CUDA: give precision auto "
                "or fp32, or workers 0"
            )
        if self.deterministic and self.minutes is not None:
            raise SettingsError("a deterministic run cannot stop by the clock: give iterations instead of minutes")
        if self.deterministic and self.total_evaluations is not None:
            text = "deterministic runs cannot depend on total_evaluations, which depend on the cache: give iterations"
            raise SettingsError(text)
        if self.deterministic and kind != "cpu":
            raise SettingsError(f"a deterministic run needs device cpu, got {self.device!r}")
        if self.deterministic and self.training_precision == "bf16":
            got = f"got training_precision {self.training_precision!r}"
            raise SettingsError(
                f"a deterministic run trains in fp32, which gives equal results on more machines: {got}"
            )
        if self.batch_size == 1 and "+conv" in self.network:
            raise SettingsError("batch_size must be at least 2 for a +conv network, which normalises over the batch")
        if self.precision == "int8" and kind != "cpu":
            raise SettingsError(f"precision int8 needs device cpu, got {self.device!r}")
        if self.precision == "bf16" and isinstance(self.workers, str):
            raise SettingsError(
                f"workers {self.workers} may be on machines without bf16: give precision auto or fp32, got bf16"
            )
        for device in (choice for each in devices for choice in each.choices):
            if self.precision not in {"int8", "auto"}:
                check_precision(device, self.precision, ("int8", "auto") if device.kind == "cpu" else ())

    def search_options(self) -> dict[str, Any]:
        """The options of search and of self-play, as `SelfPlay` takes them."""
        return {name: getattr(self, name) for name in _core.OPTIONS}

    @property
    def all_devices(self) -> tuple[Device, ...]:
        """Where the network plays."""
        return devices_of(self.device, self.devices)

    @property
    def training_device(self) -> str:
        """Where the network is trained, as torch calls it."""
        first = self.all_devices[0].without_tensorrt
        # Whatever GPU torch has stands for that of WebGPU.
        return "cpu" if first.on_cpu else "auto" if first.kind == "webgpu" else str(first)

    @property
    def all_pipelines(self) -> int:
        """Those of all devices."""
        return self.pipelines * len(self.all_devices)

    @property
    def simulations_in_matches(self) -> int:
        """A move: few simulations that are enough to learn from say little about strength."""
        return self.match_simulations or max(self.simulations, _MATCH_SIMULATIONS)

    @property
    def device_batch(self) -> int:
        """Rows of a full batch: leaves of one tree times slots of one pipeline."""
        return self.eval_batch * -(-self.slots // self.all_pipelines)


def network_form(spec: str) -> re.Match[str]:
    """The parts of the name of one of azpy's networks: blocks, channels, and what follows.

    Raises:
        SettingsError: another form.
    """
    match = re.fullmatch(r"(\d{1,3})x(\d{1,4})(\+pool)?(\+conv)?(\+wdl)?", spec)
    if match is None or int(match[2]) == 0:
        raise SettingsError(
            f"network {spec!r} is not of the form BLOCKSxCHANNELS, such as 5x64, or 5x64+pool+conv+wdl with any of "
            "+pool, +conv and +wdl after it in this order"
        )
    return match


def is_own(spec: str) -> bool:
    """Whether a network or an optimizer is a function of the user's, `module:function`: making it runs code."""
    return ":" in spec


def function_flags(settings: Mapping[str, Any]) -> list[str]:
    """The flags for the functions of the user's, which each command line names anew."""
    named = {name: str(settings.get(name, "")) for name in ("network", "optimizer")}
    return [word for name, spec in named.items() if is_own(spec) for word in (f"--{name}", spec)]


def match_search(settings: Settings, game: Any) -> dict[str, Any]:
    """How a model searches where it plays to win: options of `Search`.

    Args:
        settings: of the run, or the game's `usual_settings`.
        game: a position of the game. The solver, which is on by default, goes where it can prove nothing.

    Raises:
        SettingsError: `match_lookahead`, which is off by default, in such a game.
    """
    found = {name: getattr(settings, f"match_{name}") for name in ("c_puct", "fpu", "lcb", "solver", "lookahead")}
    if why := unfit(game, {"solver": True}):
        if found["lookahead"]:
            raise SettingsError(f"match_lookahead {found['lookahead']}: {why}")
        found["solver"] = False
    return found


def unfit(game: Any, search: Mapping[str, Any]) -> str:
    """Return why a search of a game cannot have these options of `Search`, or an empty text if it can."""
    of_game = f"{game.game} has {players_of(game)}"
    if search.get("solver") and not (game.zero_sum or game.num_players == 1):
        games = "games of one player, or of two with a zero sum"
        return f"solver and lookahead are for {games}, but {of_game}: leave them out"
    if search.get("solver") and getattr(game, "hides", False):
        return f"solver and lookahead read the true position, which {game.game} hides: leave them out"
    if search.get("resign_at", 1.0) < 1.0 and (not game.zero_sum or getattr(game, "hides", False)):
        what = f"{of_game} or no zero sum" if not game.zero_sum else f"{game.game} hides something"
        return f"resign_at is for games of two players with a zero sum who see everything, but {what}: leave it at 1"
    if search.get("score_to_beat") is not None and game.num_players != 1:
        return f"score_to_beat is for games of one player, but {of_game}: leave it out"
    return ""


def refuse_beside_hidden(settings: Settings, game: Any) -> None:
    """Refuse settings that have no effect on a game that hides something, or that are for such games alone.

    Args:
        settings: of a run.
        game: a position of its game.

    Raises:
        SettingsError: such a setting, with the reason.
    """
    if not game.hides:
        if settings.networks_per_iteration > 1:
            raise SettingsError(
                f"networks_per_iteration {settings.networks_per_iteration} is for games that hide something: "
                f"{game.game} stores the games of each network"
            )
        return
    idle = [name for name, about in ABOUT.items() if about.group in ("search", "matches") and not about.auto]
    changed = [name for name in (*idle, *_BESIDE_HIDDEN) if getattr(settings, name) != default_of(name)]
    if given := [name for name in changed if name != "payoff_scale"]:
        raise SettingsError(
            f"{', '.join(given)}: no effect on {game.game}, which hides something: it is learned without search, from "
            "each network's own games, and its exploitability stands in for matches; leave it out"
        )


# Of self-play and learning, what has no effect where nothing is searched and the newest games alone are learned from.
_BESIDE_HIDDEN = (
    *("simulations", "full_search_share", "fast_simulations", "temperature", "temperature_plies", "temperature_final"),
    *("opening_plies", "resign_at", "tree_reuse", "max_plies", "ranked_reward", "batch_size", "passes"),
    *("window_min", "window_share", "window_max"),
)


def _declared() -> dict[str, About]:
    """The settings in the order of their groups, with the types that the fields of `Settings` have."""
    found, hints = {}, typing.get_type_hints(Settings)
    for entry in sorted(fields(Settings), key=lambda entry: GROUPS.index(entry.metadata["about"].group)):
        kind, *rest = typing.get_args(hints[entry.name]) or (hints[entry.name],)
        found[entry.name] = replace(entry.metadata["about"], kind=kind, optional=type(None) in rest)
    return found


ABOUT = _declared()
FIXED_SETTINGS = {name: about.fixed for name, about in ABOUT.items() if about.fixed}
SAME_GAMES_SETTINGS = tuple(name for name, about in ABOUT.items() if about.same_games)


def checked(name: str, value: Any, *, typed: bool = False) -> Any:
    """The value as `Settings` holds it, or `auto` for a setting that takes it; see `About.checked`.

    Raises:
        SettingsError: no such setting, or a value of another type or range.
    """
    if name not in ABOUT:
        raise SettingsError(f"{name}: unknown setting{did_you_mean(name, ABOUT)}")
    return ABOUT[name].checked(name, value, typed=typed)


def default_of(name: str) -> Any:
    """The default of a setting: `auto` if the setting takes it; None for none."""
    return "auto" if ABOUT[name].auto else getattr(Settings, name, None)


def unused(settings: Mapping[str, Any], default: Callable[[str], Any] = default_of) -> dict[str, str]:
    """The settings without effect that differ from their default, and why each has none.

    These are PUCT's with `gumbel_actions`, Gumbel's without, those that another setting rules out, and those that need
    a switch that is off.
    """

    def is_set(name: str) -> bool:
        return name in ABOUT and settings.get(name, default(name)) != default(name)

    actions = str(settings.get("gumbel_actions") or "") or None
    found = dict[str, str | None]()
    for name in filter(is_set, settings):
        about = ABOUT[name]
        is_off = about.needs and not settings.get(about.needs, default(about.needs))
        other, off = next(filter(is_set, about.without), None), about.needs if is_off else None
        found[name] = _core.why_unused(name, about.rule, actions, other, off)
    return {name: why for name, why in found.items() if why is not None}


def identity(settings: Mapping[str, Any], run_id: str | None = None) -> dict[str, Any]:
    """The facts that identify a run, by name: its settings that cannot change, and its id."""
    facts = {name: settings[name] for name in FIXED_SETTINGS if settings.get(name) is not None}
    return facts if run_id is None else facts | {"run_id": run_id}


def combine(*layers: Mapping[str, Any]) -> Settings:
    """The settings of these layers together: a later layer wins; a missing number is `auto` if the setting takes it.

    Raises:
        SettingsError: see `Settings`; or there is no game.
    """
    chosen: dict[str, Any] = {name: value for layer in layers for name, value in layer.items()}
    if "game" not in chosen:
        raise SettingsError(
            "no game: give its name, such as connect_four (az-train --list-games), or a --config file that has one"
        )
    given = (checked(name, chosen.get(name, getattr(Settings, name))) for name in ("device", "devices"))
    devices = devices_of(*given)
    groups = len(devices)
    if "slots" not in chosen and all(device.kind == "cuda" for device in devices):
        wanted = checked("games_per_iteration", chosen.get("games_per_iteration", Settings.games_per_iteration))
        chosen["slots"] = min(max(Settings.slots, wanted), _MOST_CUDA_SLOTS)
    if chosen.setdefault("pipelines", "auto") == "auto":
        slots = checked("slots", chosen.get("slots", Settings.slots))
        chosen["pipelines"] = auto_pipelines(slots // groups, devices[0])
    if chosen.setdefault("eval_batch", "auto") == "auto":
        # It decides the visits: in a deterministic run it must not depend on settings of speed.
        fixed = chosen.get("deterministic") is True
        layout, groups = ({}, 1) if fixed else (chosen, groups)
        slots, pipelines = (checked(name, layout.get(name, getattr(Settings, name))) for name in ("slots", "pipelines"))
        chosen["eval_batch"] = auto_eval_batch(slots, pipelines * groups)
    return Settings(**{name: checked(name, value) for name, value in chosen.items()})


def auto_pipelines(slots: int, device: Device) -> int:
    """One a core if the network runs on the CPU, where each pipeline keeps a core busy; else 2 that take turns."""
    on_cpu = device.on_cpu or (device.kind == "auto" and no_gpu() is not None)
    wanted = max(2, usable_cores()) if on_cpu else 2
    return max(1, min(wanted, slots, _core.MOST_PIPELINES))


def auto_eval_batch(slots: int, pipelines: int) -> int:
    """The fewest leaves of one tree that fill the device's batch, at most `MOST_LEAVES`."""
    return min(max(1, math.ceil(CPU_BATCH * pipelines / max(slots, 1))), MOST_LEAVES)
