"""What a training run is told: one frozen record, refused as a whole if a part cannot be.

Field, command-line flag and key in config.toml share one name. Knows nothing of how a run is carried out.
"""

import math
from dataclasses import dataclass

from azpy.errors import SettingsError

__all__ = ["FIXED_SETTINGS", "SAME_GAMES_SETTINGS", "Settings", "auto_eval_batch"]

# What a run cannot change when it goes on, and why. Everything else may change, and is said when it does.
FIXED_SETTINGS = {
    "game": "its games and weights are of that game",
    "network": "its weights are of that shape",
    "seed": "games are told apart by seed and number",
    "deterministic": "it would be neither the one kind of run nor the other",
}
# What changes neither games nor weights of a deterministic run.
SAME_GAMES_SETTINGS = (
    *("slots", "pipelines", "threads", "cache_positions"),
    *("match_every", "match_games", "final_match_games", "match_opening_plies"),
)
_CPU_BATCH = 64  # rows at which ONNX Runtime's CPU provider is at full speed
_RANGES: dict[str, tuple[float, float]] = {  # the least and the most a setting can be
    "eval_batch": (1, 65_536),
    "simulations": (1, 2**32 - 1),
    "slots": (1, math.inf),
    "pipelines": (1, math.inf),
    "threads": (1, 1024),
    "cache_positions": (0, 2**28),
    "games_per_iteration": (1, math.inf),
    "iterations": (1, math.inf),
    "minutes": (0, math.inf),
    "seed": (0, 2**63 - 1),
    "c_puct": (0, math.inf),
    "root_noise": (0, 1),
    "temperature_plies": (0, math.inf),
    "opening_plies": (0, math.inf),
    "match_opening_plies": (0, math.inf),
    "learning_rate": (0, math.inf),
    "weight_decay": (0, math.inf),
    "batch_size": (1, math.inf),
    "passes": (0, math.inf),
    "root_value_weight": (0, 1),
    "window_min": (1, math.inf),
    "window_share": (0, 1),
    "window_max": (1, math.inf),
    "match_every": (1, math.inf),
}
_POSITIVE = ("minutes", "learning_rate", "passes", "window_share")  # 0 itself is refused


@dataclass(frozen=True)
class Settings:
    """A training run. Without `iterations` and `minutes` it goes on until it is interrupted.

    Attributes:
        game: a spec, see `positions.make_position`.
        network: see `Network`.
        eval_batch: leaves of one tree in a call of the network.
        simulations: a move, in self-play and in matches.
        slots: games in play, over all pipelines.
        pipelines: threads of self-play; while one waits for the network, the others' trees grow.
        threads: that grow the trees; one a core if not given.
        cache_positions: answers of the network to keep; 0 for none.
        games_per_iteration: games between two generations.
        iterations: of the whole run.
        minutes: of the whole run, resumed parts included.
        seed: fixes weights, games and batches.
        deterministic: an iteration is a fixed range of games, all played by one model, and one thread takes the
            gradient steps; refuses `minutes`.
        c_puct: weight of the prior.
        root_noise: share of Dirichlet noise in the root's prior, in self-play.
        temperature_plies: plies at the start of a game whose action is drawn by visits.
        opening_plies: upper limit of random plies before a self-play game.
        match_opening_plies: random plies before each pair of match games.
        learning_rate: peak of AdamW's, see `Budget.rate`.
        weight_decay: AdamW's.
        batch_size: rows of a training batch.
        passes: how often a new position is drawn for training, on average.
        root_value_weight: share of the root's value in the value target.
        window_min: positions kept before old ones are let go.
        window_share: share of all positions kept once that is more.
        window_max: positions kept at most.
        match_every: iterations between two matches.
        match_games: games a match, of one opponent.
        final_match_games: games of the last match, of one opponent.
    """

    game: str
    network: str = "5x64"
    eval_batch: int = 8
    simulations: int = 100
    slots: int = 128
    pipelines: int = 2
    threads: int | None = None
    cache_positions: int = 200_000
    games_per_iteration: int = 256
    iterations: int | None = None
    minutes: float | None = None
    seed: int = 0
    deterministic: bool = False
    c_puct: float = 1.5
    root_noise: float = 0.25
    temperature_plies: int = 30
    opening_plies: int = 0
    match_opening_plies: int = 4
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    batch_size: int = 256
    passes: float = 4.0
    root_value_weight: float = 0.25
    window_min: int = 20_000
    window_share: float = 0.5
    window_max: int = 1_000_000
    match_every: int = 5
    match_games: int = 40
    final_match_games: int = 200

    def __post_init__(self) -> None:
        """Refuses what cannot be run."""
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise SettingsError(f"{name} must be a finite number, got {value}")
            if value < low:
                raise SettingsError(f"{name} must be at least {low}, got {value}")
            if value > high:
                raise SettingsError(f"{name} must be at most {high}, got {value}")
            if name in _POSITIVE and value <= 0:
                raise SettingsError(f"{name} must be more than 0, got {value}")
        if self.slots < self.pipelines:
            raise SettingsError(f"slots must be at least the {self.pipelines} pipelines, got {self.slots}")
        if self.deterministic and self.minutes is not None:
            raise SettingsError("deterministic runs cannot depend on the clock: give iterations, not minutes")
        for name in ("match_games", "final_match_games"):
            if getattr(self, name) < 2 or getattr(self, name) % 2:
                raise SettingsError(f"{name} must be an even number, got {getattr(self, name)}")

    @property
    def device_batch(self) -> int:
        """Rows of a full batch: leaves of one tree times slots of one pipeline."""
        return self.eval_batch * -(-self.slots // self.pipelines)


def auto_eval_batch(slots: int, pipelines: int) -> int:
    """The fewest leaves of one tree that fill the device's batch."""
    return max(1, math.ceil(_CPU_BATCH * pipelines / max(slots, 1)))
