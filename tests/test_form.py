"""Planes as bytes and logits of the legal actions alone: the same answers and searches to the bit, only smaller."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy import EvaluatorError
from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.compact import Compact, compact_of
from azpy.evaluators.onnx import OnnxEvaluator
from fake_onnxruntime import gpu_on_the_cpu
from models import probe_model
from test_onnx import make_priors_model

GAMES = [
    "connect_four",
    "chess",
    "chess(encoding=az18)",
    "backgammon",
    "wall_game(width=5,height=4)",
    "wall_game(width=20,height=13)",
    "go(size=5)",
    "hex(size=5,swap=1)",
    "breakthrough(width=5,height=5)",
    "pig",
]


def positions(game: str, count: int, seed: int = 0) -> list[azpy.State]:
    """Players' turns of random games."""
    rng, found, state = np.random.default_rng(seed), list[azpy.State](), azpy.make_game(game)
    while len(found) < count:
        if state.is_terminal:
            state = azpy.make_game(game)
        actions = state.legal_actions() or [outcome for outcome, _ in state.chance_outcomes()]
        if state.turn >= 0:
            found.append(state.clone())
        state.play(int(rng.choice(actions)))
    return found


def model_of(game: str) -> bytes:
    state = azpy.make_game(game)
    return probe_model(state.obs_shape, state.num_actions, layers=2, channels=8)


def as_floats(packed: NDArray[np.uint8], divisors: list[int]) -> NDArray[np.float32]:
    """What bytes stand for, one plane after another."""
    planes, high = [], len(divisors)
    for plane, divisor in enumerate(divisors):
        numbers = packed[:, plane].astype(np.float32)
        if divisor > 255:
            numbers += np.float32(256) * packed[:, high].astype(np.float32)
            high += 1
        planes.append(numbers / np.float32(divisor))
    assert high == packed.shape[1]
    return np.stack(planes, axis=1)


def searched(evaluator: Any, states: list[azpy.State], simulations: int, **options: Any) -> list[azpy.SearchResult]:
    search = azpy.VectorSearch(states, evaluator, **options)
    search.run(simulations)
    return search.results()


class Spy:
    """Takes bytes and, of at most `legal_width` actions, the legal ones; answers at random, by the position alone."""

    def __init__(self, game: str, legal_width: int | None = None) -> None:
        state = azpy.make_game(game)
        self.divisors, self.actions = state.plane_divisors, state.num_actions
        self.legal_width = legal_width
        self.form = Compact(state.obs_shape, tuple(self.divisors or ()) or None)
        self.calls: list[str] = []
        self.seen: list[NDArray[Any]] = []
        self.legal: list[NDArray[np.int32]] = []

    def input_buffer(self, rows: int) -> NDArray[Any]:
        self.memory = np.full((rows, *self.form.shape), 9, self.form.dtype)
        return self.memory

    def evaluate_batch(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert observations is self.memory  # what was lent, not another array that looks at it
        self.calls.append("all")
        self.seen.append(observations.copy())
        return self._answer(observations)

    def evaluate_legal(
        self, observations: NDArray[Any], actions: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert observations is self.memory
        self.calls.append("legal")
        self.seen.append(observations.copy())
        self.legal.append(actions.copy())
        logits, values = self._answer(observations)
        return np.take_along_axis(logits, actions.astype(np.int64), 1), values

    def _answer(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        seeds = [hash(row.tobytes()) % 2**32 for row in observations]
        answers = [np.random.default_rng(seed).random(self.actions + 1, np.float32) for seed in seeds]
        return np.array([answer[1:] for answer in answers]), np.array([answer[0] for answer in answers])


# What a search hands over


@pytest.mark.parametrize("game", [game for game in GAMES if game != "pig"])
def test_a_search_fills_bytes_that_stand_for_its_floats(game: str) -> None:
    for state in positions(game, 3, seed=1):
        spy = Spy(game)
        azpy.Search(spy, simulations=1).run(state)
        assert spy.divisors is not None
        assert spy.seen[0].dtype == np.uint8
        np.testing.assert_array_equal(as_floats(spy.seen[0], spy.divisors)[0], state.observation())


def test_many_threads_fill_bytes_too() -> None:
    states = positions("backgammon", 200)
    alone, together = Spy("backgammon"), Spy("backgammon")
    one = searched(alone, states, 20, threads=1)
    two = searched(together, states, 20, threads=2)
    assert max(len(seen) for seen in together.seen) > 100
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.visits, second.visits)


def test_a_search_hands_over_the_legal_actions_padded() -> None:
    for state in positions("chess", 5, seed=2):
        spy = Spy("chess", legal_width=218)
        azpy.Search(spy, simulations=1).run(state)
        expected = np.zeros(218, np.int32)
        expected[: len(state.legal_actions())] = state.legal_actions()
        np.testing.assert_array_equal(spy.legal[0][0], expected)
        assert set(spy.calls) == {"legal"}


def test_rows_with_more_legal_actions_than_fit_are_answered_whole() -> None:
    spy = Spy("connect_four", legal_width=6)
    states = [state for state in positions("connect_four", 300) if len(state.legal_actions()) in (6, 7)]
    for state in states:
        spy.calls.clear()
        result = azpy.Search(spy, simulations=1).run(state)
        assert spy.calls[0] == ("legal" if len(state.legal_actions()) == 6 else "all")
        np.testing.assert_array_equal(result.priors, azpy.Search(Spy("connect_four"), simulations=1).run(state).priors)
    assert {len(state.legal_actions()) for state in states} == {6, 7}


class Wrong(Spy):
    def __init__(self, game: str, **what: Any) -> None:
        super().__init__(game, legal_width=218)
        self.what = what

    def input_buffer(self, rows: int) -> Any:
        return self.what["buffer"](rows) if "buffer" in self.what else super().input_buffer(rows)

    def evaluate_legal(self, observations: NDArray[Any], actions: NDArray[np.int32]) -> Any:
        if "reply" in self.what:
            return self.what["reply"]
        return super().evaluate_legal(observations, actions)


@pytest.mark.parametrize(
    ("game", "what", "text"),
    [
        ("chess", {"reply": (np.zeros((1, 217), np.float32), np.zeros(1, np.float32))}, "got shape [1, 217], expected"),
        ("chess", {"reply": None}, "evaluate_legal must return a tuple (logits, values), got NoneType"),
        (
            "chess",
            {"buffer": lambda rows: np.zeros((rows, 119, 8, 8), np.uint8)},
            "float32 array of shape [1, 119, 8, 8], or uint8 array of shape [1, 120, 8, 8]",
        ),
        (
            "pig",
            {"buffer": lambda rows: np.zeros((rows, 5, 1, 1), np.uint8)},
            "input_buffer(1) must give a C-contiguous float32 array of shape [1, 5, 1, 1]",
        ),
    ],
)
def test_what_does_not_fit_is_a_named_error(game: str, what: dict[str, Any], text: str) -> None:
    state = positions(game, 1)[0]
    with pytest.raises(EvaluatorError) as caught:
        azpy.Search(Wrong(game, **what), simulations=3).run(state)
    assert text in str(caught.value)


@pytest.mark.parametrize("width", [0, -1, "many", 2.5])
def test_a_width_must_be_a_whole_number(width: Any) -> None:
    spy = Spy("chess")
    spy.legal_width = width
    with pytest.raises(ValueError, match="legal_width must be None or a whole number above 0"):
        azpy.Search(spy)


def test_a_width_needs_its_method() -> None:
    class Bare:
        legal_width = 9

        def evaluate_batch(self, observations: Any) -> Any:
            raise AssertionError

    with pytest.raises(ValueError, match="of an evaluator with evaluate_legal"):
        azpy.Search(Bare())


# What a model makes of it


@pytest.mark.parametrize("game", GAMES)
def test_answers_are_the_same_to_the_bit(game: str) -> None:
    states = positions(game, 40)
    observations = np.array([state.observation() for state in states])
    model = model_of(game)
    plain, compact = OnnxEvaluator(model, game=states[0]), OnnxEvaluator(model, game=states[0], compact=True)
    assert compact.network_id == plain.network_id
    logits, values = plain.evaluate_batch(observations)
    again, values_again = compact.evaluate_batch(observations)
    np.testing.assert_array_equal(again, logits)
    np.testing.assert_array_equal(values_again, values)
    memory = compact.input_buffer(40)
    if game == "pig":
        assert memory is None
        observed: Any = observations
    else:
        assert memory is not None
        observed = compact._compact.packed(observations)
        divisors = states[0].plane_divisors
        assert divisors is not None
        np.testing.assert_array_equal(as_floats(observed, divisors), observations)
    assert compact.legal_width == states[0].most_legal_actions
    actions = np.zeros((40, compact.legal_width or 0), np.int32)
    for row, state in zip(actions, states, strict=True):
        row[: len(state.legal_actions())] = state.legal_actions()
    picked, values_again = compact.evaluate_legal(observed, actions)
    np.testing.assert_array_equal(picked, np.take_along_axis(logits, actions.astype(np.int64), 1))
    np.testing.assert_array_equal(values_again, values)


def test_numbers_that_take_two_bytes_do_so_to_the_bit() -> None:
    state = azpy.parse_state("chess", "4k3/8/8/8/8/8/8/R3K2R w KQ - 12 140")
    observations = state.observation()[None]
    assert observations[0, 113, 0, 0] == np.float32(278 / 512)
    spy = Spy("chess")
    azpy.Search(spy, simulations=1).run(state)
    np.testing.assert_array_equal(as_floats(spy.seen[0], spy.divisors or []), observations)
    model = model_of("chess")
    plain, compact = OnnxEvaluator(model, game=state), OnnxEvaluator(model, game=state, compact=True)
    np.testing.assert_array_equal(compact._compact.packed(observations), spy.seen[0])
    np.testing.assert_array_equal(compact.evaluate_batch(observations)[0], plain.evaluate_batch(observations)[0])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("game", ["chess", "connect_four", "backgammon"])
def test_searches_are_the_same_visit_for_visit(game: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_on_the_cpu(monkeypatch)
    states = positions(game, 6, seed=3)
    model = model_of(game)
    plain = OnnxEvaluator(model, game=states[0])
    compact = OnnxEvaluator(model, device, game=states[0], compact=True, buckets=(4, 16))
    assert compact.legal_width is not None
    expected = searched(plain, states, 200, eval_batch=4)
    found = searched(compact, states, 200, eval_batch=4)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.visits, other.visits)
        np.testing.assert_array_equal(one.q, other.q)


def test_self_play_is_the_same_with_compact_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_on_the_cpu(monkeypatch)
    game = azpy.make_game("breakthrough(width=4,height=5)")
    model = probe_model(game.obs_shape, game.num_actions, layers=2, channels=8)
    options: dict[str, Any] = {"slots": 8, "pipelines": 2, "simulations": 12, "games": 16, "eval_batch": 2}

    def played(evaluator: OnnxEvaluator) -> list[bytes]:
        with azpy.SelfPlay(game, evaluator, **options) as games:
            return [record.to_bytes() for record in sorted(games, key=lambda record: record.game_id)]

    cuda = OnnxEvaluator(model, "cuda", game=game, compact=True, buckets=(2, 8))
    assert played(cuda) == played(OnnxEvaluator(model, game=game))


@pytest.mark.parametrize("compact", [None, True, False])
def test_memory_on_a_gpu_is_compact(compact: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = gpu_on_the_cpu(monkeypatch)
    states = positions("chess", 37)
    observations = np.array([state.observation() for state in states])
    model = model_of("chess")
    plain = OnnxEvaluator(model).evaluate_batch(observations)
    evaluator = OnnxEvaluator(model, "cuda", game=states[0], compact=compact, buckets=(4, 16))
    assert (opened[0][0] == model) == (compact is False)
    assert evaluator.notes == ()
    said = ", planes as bytes, logits of at most 218 legal actions"
    assert evaluator.description == "CUDA, GPU 0, fp32, batches of 4, 16 rows" + ("" if compact is False else said)
    for mine in (evaluator, evaluator.fork()):
        for count in (37, 1, 5, 16, 0, 20):
            logits, values = mine.evaluate_batch(observations[:count])
            np.testing.assert_array_equal(logits, plain[0][:count])
            np.testing.assert_array_equal(values, plain[1][:count])
            if compact is not False:
                actions = np.random.default_rng(count).integers(0, 4672, (count, 218)).astype(np.int32)
                picked, values = mine.evaluate_legal(observations[:count], actions)
                np.testing.assert_array_equal(picked, np.take_along_axis(plain[0][:count], actions.astype(np.int64), 1))
                np.testing.assert_array_equal(values, plain[1][:count])


def test_a_graph_of_its_own_has_an_engine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same model, inputs and shapes; what the planes are divided by differs."""
    opened = gpu_on_the_cpu(monkeypatch)
    games = [azpy.make_game(f"chess(max_plies={plies})") for plies in (300, 512)]
    assert games[0].plane_divisors != games[1].plane_divisors
    for compact in (True, False):
        for game in games:
            OnnxEvaluator(model_of("chess"), "tensorrt", game=game, compact=compact, cache_dir=tmp_path)
    prefixes = [providers[0][1]["trt_engine_cache_prefix"] for _, providers in opened]
    assert prefixes[2] == prefixes[3]
    assert len(set(prefixes)) == 3


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_priors_and_a_fixed_batch_have_compact_batches_too(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_on_the_cpu(monkeypatch)
    game = azpy.make_game("tic_tac_toe")
    model = make_priors_model(batch=4)
    plain = OnnxEvaluator(model, game=game)
    compact = OnnxEvaluator(model, device, game=game, compact=True)
    assert compact.legal_width == 9
    expected = azpy.Search(plain, simulations=300, eval_batch=6).run(game).visits
    np.testing.assert_array_equal(azpy.Search(compact, simulations=300, eval_batch=6).run(game).visits, expected)


# What is worth it


def test_what_is_not_worth_it_is_not_done() -> None:
    signature = OnnxEvaluator(model_of("connect_four")).signature
    game = azpy.make_game("connect_four")
    assert compact_of(game, signature, None) == Compact((2, 6, 7), (1, 1))  # of 7 actions 7 are legal
    assert compact_of(game, signature, True) == Compact((2, 6, 7), (1, 1), 7)
    assert compact_of(game, signature, False) == compact_of(None, signature, None) == Compact((2, 6, 7))
    chess = OnnxEvaluator(model_of("chess")).signature
    assert compact_of(azpy.make_game("chess"), chess, None).legal_width == 218
    evaluator = OnnxEvaluator(model_of("connect_four"), game=game)  # on the CPU it gains nothing
    assert (evaluator.input_buffer(4), evaluator.legal_width) == (None, None)


@pytest.mark.parametrize("divisors", [[1], [1, 0], [1, 1, 1], []])
def test_nonsense_of_planes_is_not_believed(divisors: list[int]) -> None:
    class Shape:
        obs_shape, num_actions, plane_divisors = (2, 6, 7), 7, divisors

    assert compact_of(Shape(), OnnxEvaluator(model_of("connect_four")).signature, True) == Compact((2, 6, 7), None, 7)


def test_a_game_in_python_says_nothing_of_its_planes() -> None:
    class Shape:
        obs_shape, num_actions = (2, 6, 7), 7

    evaluator = OnnxEvaluator(model_of("connect_four"), game=Shape(), compact=True)
    assert evaluator.input_buffer(4) is None
    assert evaluator.legal_width == 7


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_subclass_with_its_own_answers_is_asked_for_all(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_on_the_cpu(monkeypatch)
    asked: list[type] = []

    class Even(OnnxEvaluator):
        def evaluate_batch(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            asked.append(observations.dtype.type)
            logits, values = super().evaluate_batch(observations)
            return 0 * logits, values

    game = azpy.make_game("chess")
    evaluator = Even(model_of("chess"), device, game=game, compact=True)
    assert evaluator.legal_width is None
    priors = azpy.Search(evaluator, simulations=16, eval_batch=4).run(game).priors
    assert np.ptp(priors) < 1e-6
    assert set(asked) == {np.float32}


def test_numbers_that_no_plane_has_are_refused() -> None:
    game = azpy.make_game("chess")
    evaluator = OnnxEvaluator(model_of("chess"), game=game, compact=True)
    for number in (0.5, -1.0, 256.0, np.nan, np.inf):
        row = np.zeros((1, 119, 8, 8), np.float32)
        row[0, 3, 2, 1] = number
        with pytest.raises(ModelError, match="numbers that planes of the game cannot have"):
            evaluator.evaluate_batch(row)
    with pytest.raises(ModelError, match=r"takes observations float32 \[B, 119, 8, 8\], got float32 \[1, 2, 8, 8\]"):
        evaluator.evaluate_batch(np.zeros((1, 2, 8, 8), np.float32))
    with pytest.raises(ModelError, match=r"takes observations float32 \[B, 119, 8, 8\], got float64 \[1, 119, 8, 8\]"):
        evaluator.evaluate_batch(game.observation()[None].astype(np.float64))
    with pytest.raises(ModelError, match=r"takes actions int32 \[1, 218\], got int32 \[1, 9\]"):
        evaluator.evaluate_legal(row, np.zeros((1, 9), np.int32))


def test_without_onnx_batches_travel_as_before_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    game, model = azpy.make_game("connect_four"), model_of("connect_four")
    gpu_on_the_cpu(monkeypatch)
    monkeypatch.setitem(sys.modules, "onnx", None)
    evaluator = OnnxEvaluator(model, "cuda", game=game)
    assert evaluator.notes == ("batches travel as float32: planes as bytes need onnx: pip install onnx",)
    assert "bytes" not in evaluator.description
    with pytest.raises(MissingPackageError, match="planes as bytes need onnx"):
        OnnxEvaluator(model, "cuda", game=game, compact=True)
