"""The Rust core. Import these names from `azpy`, not from here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NoReturn, Protocol, TypedDict, Unpack, final, overload, type_check_only

import numpy as np
from numpy.typing import NDArray

from azpy.pending import Pending

__all__ = [
    "CHANCE",
    "FAST_SEARCH",
    "MIXED_NETWORKS",
    "MOST_PIPELINES",
    "MOST_THREADS",
    "OPPONENT",
    "OPTIONS",
    "PLAYED",
    "PLAYED_SMOOTHING",
    "SEARCHED",
    "TERMINAL",
    "CoreError",
    "Engine",
    "EngineGame",
    "EvaluatorError",
    "Facts",
    "GameError",
    "GameReader",
    "GameRecord",
    "Look",
    "ReplayBuffer",
    "RolloutEvaluator",
    "Search",
    "SearchResult",
    "SelfPlay",
    "State",
    "UniformEvaluator",
    "Variations",
    "VectorSearch",
    "Walk",
    "WrittenGame",
    "__version__",
    "list_games",
    "make_game",
    "parse_state",
    "random_playouts",
    "stays_here",
    "why_unused",
]

__version__: str
MOST_THREADS: int  # that an object may be told to have
MOST_PIPELINES: int
OPTIONS: dict[str, dict[str, Any]]  # the options of search and of self-play by name
CHANCE: int
TERMINAL: int
SEARCHED: int  # flags of a ply in a GameRecord: a sample to learn from, searched in full
MIXED_NETWORKS: int  # the network was exchanged during the search
FAST_SEARCH: int  # no sample: a fast search, of which only the value is kept
PLAYED: int  # of an imported game: a sample of which only the action is known
PLAYED_SMOOTHING: float  # of its policy target, over the legal actions
OPPONENT: int  # no sample: searched by the opponent, an earlier network; only the value is kept

class CoreError(RuntimeError):
    """A bug in azpy itself (a panic in the core, turned into an exception)."""

class EvaluatorError(ValueError):
    """An evaluator's reply that cannot be used: NaN, a wrong shape or dtype, a value outside [-1, 1]."""

class GameError(ValueError):
    """A game that breaks its contract: no legal action at a player's turn, more plies than `max_plies`, ..."""

@type_check_only
class Evaluator(Protocol):
    def evaluate_batch(
        self, observations: NDArray[np.float32], /
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...

@type_check_only
class GameLike(Protocol):
    """What `azpy.Game` declares."""

    @property
    def num_actions(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...
    @property
    def max_plies(self) -> int: ...

def list_games() -> dict[str, dict[str, int | float | str]]: ...
def make_game(name: str, **params: int | float | str) -> State: ...
def parse_state(game: str | State | GameLike, text: str, *, plies: int | None = None) -> State: ...
def random_playouts(game: str | State | GameLike, games: int, seed: int = 0) -> int: ...
def stays_here(it: object, /) -> NoReturn: ...
def why_unused(name: str, rule: str, actions: str | None, other: str | None, off: str | None) -> str | None: ...

@final
class Facts:
    @property
    def turn(self) -> int: ...
    @property
    def actions(self) -> list[int]: ...
    @property
    def chances(self) -> list[float]: ...
    @property
    def playable(self) -> list[int]: ...
    @property
    def observation(self) -> NDArray[np.float32] | None: ...
    @property
    def outcome(self) -> float | None: ...
    @property
    def key(self) -> int: ...
    def differences(self, other: Facts) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Look:
    @property
    def facts(self) -> Facts: ...
    @property
    def followers(self) -> list[tuple[int, int]]: ...
    @property
    def ends(self) -> dict[int, float]: ...
    @property
    def shared_name(self) -> tuple[str, int] | None: ...

@final
class Walk:
    def __new__(cls, start: State | GameLike, /) -> Walk: ...
    def restart(self) -> None: ...
    def play(self, action: int) -> bool: ...
    def facts(self) -> Facts: ...
    def look(self, *, from_start: bool = True) -> Look: ...
    @property
    def symmetries(self) -> list[int]: ...
    @property
    def game_object(self) -> Any: ...

@final
class State:
    def __new__(cls, game: State | GameLike, /) -> State: ...
    @property
    def game(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def params(self) -> dict[str, int | float | str]: ...
    @property
    def side_names(self) -> tuple[str, str] | None: ...
    @property
    def can_rotate(self) -> bool: ...
    @property
    def game_object(self) -> Any: ...
    @property
    def turn(self) -> int: ...
    @property
    def is_terminal(self) -> bool: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...
    @property
    def max_plies(self) -> int: ...
    @property
    def plane_divisors(self) -> list[int] | None: ...
    @property
    def most_legal_actions(self) -> int: ...
    @property
    def action_cells(self) -> list[int] | None: ...
    @property
    def num_symmetries(self) -> int: ...
    def legal_actions(self) -> list[int]: ...
    def chance_outcomes(self) -> list[tuple[int, float]]: ...
    def play(self, action: int) -> None: ...
    def _play(self, action: int) -> None: ...
    def clone(self) -> State: ...
    def outcome(self) -> float: ...
    def observation(self) -> NDArray[np.float32]: ...
    def key(self) -> int: ...
    def action_name(self, action: int) -> str: ...
    def short_name(self, action: int) -> str: ...
    def render(self, color: bool | None = None) -> str: ...
    def to_svg(self) -> str: ...
    def touches(self, action: int) -> list[tuple[str, tuple[float, float, float, float]]]: ...
    def board(self) -> dict[str, str]: ...
    def _repr_svg_(self) -> str: ...
    def to_text(self) -> str: ...
    def fen(self) -> str: ...
    def without_past(self, player: int | None = None) -> State: ...
    def parse_actions(self, text: str) -> list[int]: ...
    def format_actions(self, actions: Sequence[int]) -> str: ...
    def read_variations(self, text: str, *, max_moves: int = 100_000, max_depth: int = 1_000) -> Variations: ...
    def write_variations(
        self,
        moves: Sequence[tuple[int, str]],
        tags: dict[str, str] | None = None,
        *,
        max_moves: int = 100_000,
        max_depth: int = 1_000,
    ) -> str: ...
    def symmetric_action(self, symmetry: int, action: int) -> int: ...
    def symmetric_observation(self, symmetry: int, observation: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def __copy__(self) -> State: ...
    def __deepcopy__(self, memo: Any, /) -> State: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Variations:
    @property
    def start(self) -> State: ...
    @property
    def moves(self) -> list[tuple[int, str, str]]: ...
    @property
    def tags(self) -> dict[str, str]: ...
    @property
    def left_out(self) -> list[str]: ...

@final
class UniformEvaluator:
    def __new__(cls) -> UniformEvaluator: ...
    def __reduce__(self) -> tuple[Any, tuple[()]]: ...

@final
class RolloutEvaluator:
    def __new__(cls, seed: int = 0) -> RolloutEvaluator: ...
    def __reduce__(self) -> tuple[Any, tuple[int]]: ...

@final
class SearchResult:
    @property
    def actions(self) -> NDArray[np.int64]: ...
    @property
    def visits(self) -> NDArray[np.int64]: ...
    @property
    def priors(self) -> NDArray[np.float32]: ...
    @property
    def q(self) -> NDArray[np.float32]: ...
    @property
    def value(self) -> float: ...
    @property
    def proofs(self) -> NDArray[np.int64]: ...
    @property
    def proof(self) -> int | None: ...
    @property
    def target(self) -> NDArray[np.float32]: ...
    @property
    def stop(self) -> str: ...
    @property
    def action(self) -> int | None: ...
    @property
    def principal_variation(self) -> list[int]: ...
    @property
    def standard_errors(self) -> NDArray[np.float32]: ...
    def principal_variations(self, count: int = 3, length: int | None = None) -> list[tuple[list[int], int, float]]: ...
    def to_dot(self, max_nodes: int = 60, depth: int | None = None) -> str: ...
    def to_svg(self, max_nodes: int = 60, depth: int | None = None) -> str: ...
    def _repr_svg_(self) -> str | None: ...
    @property
    def stats(self) -> dict[str, int]: ...
    def policy(self, temperature: float = 1.0) -> NDArray[np.float32]: ...

@type_check_only
class SearchOptions(TypedDict, total=False):
    """How to search; see `Search`."""

    eval_batch: int
    virtual_loss: float
    max_collisions: int | None
    in_flight_share: float | None
    c_puct: float
    c_puct_base: float | None
    c_puct_stdev: float
    fpu: str | float
    root_noise: float | tuple[float | None, float] | None
    noise_shaped: bool
    root_temperature: float
    forced_visits: float
    gumbel_actions: int
    gumbel_scale: float
    value_scale: float
    maxvisit_init: float
    gumbel_rescale: bool
    lcb: float | None
    solver: bool
    lookahead: int
    early_stop: bool
    evaluations: int | None
    max_memory_mb: float | None

@type_check_only
class SelfPlayOptions(SearchOptions, total=False):
    """How games are played; see `SelfPlay`."""

    simulations: int
    full_search_share: float
    fast_simulations: int | None
    temperature: float
    temperature_plies: int
    temperature_final: float
    temperature_halflife: float | None
    opening_plies: int
    opening_policy_plies: int
    resign_below: float
    resign_plies: int
    resign_control: float
    tree_reuse: bool
    max_plies: int | None

@final
class Search:
    def __new__(
        cls,
        evaluator: Any,
        *,
        simulations: int | None = None,
        cache_positions: int = 0,
        seed: int = 0,
        **options: Unpack[SearchOptions],
    ) -> Search: ...
    def run(
        self,
        state: State | GameLike | None = None,
        simulations: int | None = None,
        *,
        seconds: float | None = None,
        actions: Sequence[int] | None = None,
        gumbel: Sequence[float] | NDArray[np.float64] | None = None,
    ) -> SearchResult: ...
    def advance(self, action: int) -> None: ...
    def _think(self, seconds: float) -> str: ...

@final
class VectorSearch:
    def __new__(
        cls,
        states: Sequence[State | GameLike],
        evaluator: Any,
        *,
        networks: Sequence[int] | None = None,
        cache_positions: int = 0,
        seed: int = 0,
        threads: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> VectorSearch: ...
    def __len__(self) -> int: ...
    def run(self, simulations: int, *, seconds: float | None = None) -> None: ...
    def results(self) -> list[SearchResult]: ...
    def action_probabilities(self, temperature: float = 1.0) -> NDArray[np.float32]: ...
    def select_actions(self, temperature: float = 1.0) -> NDArray[np.int64]: ...
    def root_values(self) -> NDArray[np.float32]: ...
    def states(self) -> list[State]: ...
    def advance(self, actions: Sequence[int] | NDArray[np.int64]) -> None: ...
    def replace(self, index: int, state: State | GameLike) -> None: ...
    @property
    def stats(self) -> dict[str, int]: ...

@final
class Engine:
    def __new__(
        cls,
        models: Any,
        *,
        simulations: int | None = None,
        max_batch: int = 256,
        max_requests: int = 1024,
        total_memory_mb: int | None = None,
        cache_positions: int = 200_000,
        threads: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> Engine: ...
    @property
    def models(self) -> list[str]: ...
    def load(self, name: str, evaluator: Any) -> None: ...
    def submit(
        self,
        state: State | GameLike,
        simulations: int | None = None,
        *,
        seconds: float | None = None,
        seed: int = 0,
        model: str | None = None,
        priority: str = "play",
        actions: Sequence[int] | None = None,
        on_report: Callable[[SearchResult], object] | None = None,
        report_every: float | None = None,
        standard_errors: bool = False,
        lines: int | None = None,
    ) -> Pending: ...
    def game(self, state: State | GameLike, *, model: str | None = None, seed: int = 0) -> EngineGame: ...
    def close(self, *, cancel: bool = False, seconds: float | None = None) -> None: ...
    def __enter__(self) -> Engine: ...
    def __exit__(self, kind: type[BaseException] | None, *args: object) -> None: ...
    @property
    def stats(self) -> dict[str, float]: ...

@final
class EngineGame:
    def search(
        self,
        simulations: int | None = None,
        *,
        seconds: float | None = None,
        priority: str = "play",
        actions: Sequence[int] | None = None,
        on_report: Callable[[SearchResult], object] | None = None,
        report_every: float | None = None,
        standard_errors: bool = False,
        lines: int | None = None,
    ) -> Pending: ...
    def ponder(self) -> Pending: ...
    def play(self, action: int) -> None: ...
    def undo(self) -> None: ...
    @property
    def state(self) -> State: ...
    @property
    def num_played(self) -> int: ...

@final
class GameRecord:
    """One finished game of T plies (chance outcomes included); K = sum of legal actions over its samples."""

    @property
    def game(self) -> str: ...
    @property
    def game_id(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def outcome(self) -> float: ...
    @property
    def capped(self) -> bool: ...
    @property
    def resigned(self) -> bool: ...
    @property
    def control(self) -> bool: ...
    @property
    def resign_ply(self) -> int | None: ...
    @property
    def false_resignation(self) -> bool: ...
    @property
    def imported(self) -> bool: ...
    @property
    def simulations(self) -> int | None: ...
    @property
    def positions(self) -> int: ...  # the samples, which training draws
    @property
    def actions(self) -> NDArray[np.int32]: ...  # [T]
    @property
    def players(self) -> NDArray[np.int8]: ...  # [T] 0, 1; -1 at a chance outcome
    @property
    def flags(self) -> NDArray[np.uint8]: ...  # [T] SEARCHED, ...; 0 for chance and opening plies
    @property
    def root_values(self) -> NDArray[np.float32]: ...  # [T] for the player to move; 0 where not searched
    @property
    def networks(self) -> NDArray[np.uint64]: ...  # [T] network id that searched it, 0 = none
    @property
    def offsets(self) -> NDArray[np.int64]: ...  # [T + 1] into the four below; an empty range where it is no sample
    @property
    def legal(self) -> NDArray[np.int32]: ...  # [K]
    @property
    def visits(self) -> NDArray[np.uint32]: ...  # [K]
    @property
    def priors(self) -> NDArray[np.float32]: ...  # [K] without noise
    @property
    def targets(self) -> NDArray[np.float32]: ...  # [K] what a network learns; sums to 1 a ply
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    @staticmethod
    def of_actions(
        start: State, actions: Sequence[int], outcome: float, *, game_id: int = 0, seed: int = 0
    ) -> GameRecord: ...
    def as_imported(self, *, game_id: int, seed: int) -> GameRecord: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> GameRecord: ...

@final
class WrittenGame:
    @property
    def line(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def tags(self) -> dict[str, str]: ...
    @property
    def result(self) -> str | None: ...
    @property
    def actions(self) -> list[int] | None: ...
    @property
    def before(self) -> list[int]: ...
    @property
    def unfit(self) -> str | None: ...
    @property
    def why(self) -> str | None: ...
    @property
    def outcome(self) -> float | None: ...

@final
class GameReader:
    def __new__(cls, game: str | State | GameLike, text: str) -> GameReader: ...
    def __iter__(self) -> Iterator[WrittenGame]: ...
    def __next__(self) -> WrittenGame: ...

@final
class ReplayBuffer:
    def __new__(
        cls, game: str | State | GameLike, *, max_positions: int = 1_000_000, merge: bool = False
    ) -> ReplayBuffer: ...
    def add(self, record: GameRecord) -> None: ...
    def extend(self, records: Iterable[GameRecord]) -> None: ...
    def resize(self, max_positions: int) -> None: ...
    @property
    def num_games(self) -> int: ...
    @property
    def num_positions(self) -> int: ...
    @overload
    def sample(
        self,
        rows: int,
        *,
        seed: int,
        root_value_weight: float = 0.0,
        symmetries: bool = True,
        surprise_weight: float = 0.0,
        value_lambda: float = 1.0,
        imported_value_weight: None = None,
        details: Literal[False] = False,
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], NDArray[np.float32]]:
        """observations [B, C, H, W], legal [B, A], policy targets [B, A], value targets [B] (player to move)."""
    @overload
    def sample(
        self,
        rows: int,
        *,
        seed: int,
        root_value_weight: float = 0.0,
        symmetries: bool = True,
        surprise_weight: float = 0.0,
        value_lambda: float = 1.0,
        imported_value_weight: float,
        details: Literal[False] = False,
    ) -> tuple[
        NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]
    ]: ...  # and weights [B] of the value targets
    @overload
    def sample(
        self,
        rows: int,
        *,
        seed: int,
        root_value_weight: float = 0.0,
        symmetries: bool = True,
        surprise_weight: float = 0.0,
        value_lambda: float = 1.0,
        imported_value_weight: float | None = None,
        details: Literal[True],
    ) -> tuple[Any, ...]: ...  # the same, and a dict: game_ids, plies, symmetries [B] and states (B States)

@final
class SelfPlay:
    def __new__(
        cls,
        game: str | State | GameLike,
        evaluator: Any,
        *,
        slots: int = 256,
        pipelines: int = 2,
        cache_positions: int = 200_000,
        threads: int | None = None,
        seed: int = 0,
        first_game: int = 0,
        games: int | None = None,
        opponents: Sequence[Any] = ...,
        opponent_share: float = 0.0,
        stagger: int = 0,
        **options: Unpack[SelfPlayOptions],
    ) -> SelfPlay: ...
    def __iter__(self) -> Iterator[GameRecord]: ...
    def __next__(self) -> GameRecord: ...
    def admit(self, first: int, n: int) -> None: ...
    def take_finished(self, most: int | None = None, *, seconds: float = 0.0) -> list[GameRecord]: ...
    def swap(self, evaluator: Any) -> None: ...
    def set_opponents(self, opponents: Sequence[Any]) -> None: ...
    def set_resign_below(self, below: float) -> None: ...
    def set_simulations(self, n: int) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def go_on(self, games: Sequence[GameRecord]) -> None: ...
    @property
    def unfinished(self) -> list[GameRecord]: ...
    def close(self) -> None: ...
    def __enter__(self) -> SelfPlay: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def stats(self) -> dict[str, float]:
        """Totals since the start: games, positions (samples of finished games), searches, fast_searches,
        opponent_games, resigned, controls (control games in which a player would have resigned), false_resignations,
        simulations, evaluations, cache_hits, terminals, collisions, batches, rows, rows_capacity (what the batches
        could have held), shared (leaves that took the row of an equal one)."""
    @property
    def pipeline_stats(self) -> list[dict[str, float]]:
        """For each pipeline, since the start: rounds, seconds_growing, seconds_evaluating, seconds_waiting (for
        finished games to be taken), seconds_idle (without a game to play), seconds_paused."""
    @property
    def in_play(self) -> tuple[int, int]:
        """Games in play, and plies of the longest of them, both after each pipeline's last round."""
