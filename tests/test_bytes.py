"""Planes as bytes, and TorchEvaluator's batches of fixed sizes: the same answers and searches, only smaller."""

import pickle
import threading
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from azpy import EvaluatorError
from azpy.errors import ModelError, SettingsError
from azpy.evaluators.torch import TorchEvaluator
from azpy.learning.network import Network

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
]
BUCKETS = (4, 16)


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


def observations_of(states: list[azpy.State]) -> NDArray[np.float32]:
    return np.array([state.observation() for state in states])


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


class Spy:
    """Takes bytes, and answers at random by the position alone."""

    def __init__(self, game: str, divisors: list[int] | None = None) -> None:
        state = azpy.make_game(game)
        self.plane_divisors = divisors or state.plane_divisors or []
        planes, *board = state.obs_shape
        self.row = (planes + sum(divisor > 255 for divisor in self.plane_divisors), *board)
        self.actions = state.num_actions
        self.seen: list[NDArray[Any]] = []

    def input_buffer(self, rows: int) -> NDArray[Any]:
        self.memory = np.full((rows, *self.row), 9, np.uint8)
        return self.memory

    def evaluate_batch(self, observations: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert observations is self.memory  # what was lent, not another array that looks at it
        self.seen.append(observations.copy())
        seeds = [hash(row.tobytes()) % 2**32 for row in observations]
        answers = [np.random.default_rng(seed).random(self.actions + 1, np.float32) for seed in seeds]
        return np.array([answer[1:] for answer in answers]), np.array([answer[0] for answer in answers])


def searched(evaluator: Any, states: list[azpy.State], simulations: int, **options: Any) -> list[azpy.SearchResult]:
    search = azpy.VectorSearch(states, evaluator, **options)
    search.run(simulations)
    return search.results()


# What a search hands over


@pytest.mark.parametrize("game", GAMES)
def test_a_search_fills_bytes_that_stand_for_its_floats(game: str) -> None:
    for state in positions(game, 3, seed=1):
        spy = Spy(game)
        azpy.Search(spy, simulations=1).run(state)
        assert spy.seen[0].dtype == np.uint8
        np.testing.assert_array_equal(as_floats(spy.seen[0], spy.plane_divisors)[0], state.observation())


def test_numbers_that_take_two_bytes_do_so_to_the_bit() -> None:
    state = azpy.parse_state("chess", "4k3/8/8/8/8/8/8/R3K2R w KQ - 12 140")
    assert state.observation()[113, 0, 0] == np.float32(278 / 512)
    spy = Spy("chess")
    azpy.Search(spy, simulations=1).run(state)
    np.testing.assert_array_equal(as_floats(spy.seen[0], spy.plane_divisors)[0], state.observation())


def test_many_threads_fill_bytes_too() -> None:
    states = positions("backgammon", 200)
    alone, together = Spy("backgammon"), Spy("backgammon")
    one = searched(alone, states, 20, threads=1)
    two = searched(together, states, 20, threads=2)
    assert max(len(seen) for seen in together.seen) > 100
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.visits, second.visits)


@pytest.mark.parametrize(
    ("game", "rows", "divisors", "text"),
    [
        ("chess", (119, 8, 8), None, "float32 array of shape [1, 119, 8, 8], or uint8 array of shape [1, 120, 8, 8]"),
        ("pig", (5, 1, 1), None, "input_buffer(1) must give a C-contiguous float32 array of shape [1, 5, 1, 1]"),
        ("chess", None, [1] * 119, "its plane_divisors are not those of this game"),
    ],
)
def test_memory_that_does_not_fit_is_a_named_error(game: str, rows: Any, divisors: Any, text: str) -> None:
    spy = Spy(game, divisors)
    spy.row = rows or spy.row
    with pytest.raises(EvaluatorError) as caught:
        azpy.Search(spy, simulations=3).run(positions(game, 1)[0])
    assert text in str(caught.value)


# What TorchEvaluator makes of it


def network(game: str, spec: str = "2x16") -> Network:
    """A network with opinions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = Network.of(azpy.make_game(game), spec)
        for name, tensor in made.state_dict().items():
            if tensor.is_floating_point():
                torch.nn.init.uniform_(tensor, 0.5, 1.5) if "running_var" in name else torch.nn.init.normal_(
                    tensor, std=0.2
                )
    return made.eval()


def both(game: str, spec: str = "2x16") -> tuple[TorchEvaluator, TorchEvaluator]:
    """The plain evaluator, and the one that works as on CUDA."""
    module = network(game, spec)
    return TorchEvaluator(module), TorchEvaluator(module, game=azpy.make_game(game), buckets=BUCKETS)


@pytest.mark.parametrize("game", [*GAMES, "pig"])
def test_batches_of_fixed_sizes_say_the_same(game: str) -> None:
    plain, fixed = both(game)
    assert fixed.plane_divisors == azpy.make_game(game).plane_divisors
    observations = observations_of(positions(game, 37))
    for mine in (fixed, fixed.fork()):
        for count in (37, 1, 5, 16, 20):
            for found, expected in zip(
                mine.evaluate_batch(observations[:count]), plain.evaluate_batch(observations[:count]), strict=True
            ):
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected, atol=1e-4)
    logits, values = fixed.evaluate_batch(observations[:0])
    assert (logits.shape, values.shape) == ((0, plain.num_actions), (0,))


@pytest.mark.parametrize("game", ["chess", "backgammon"])
def test_bytes_of_a_search_are_those_of_its_floats(game: str) -> None:
    _, fixed = both(game)
    for state in positions(game, 5, seed=3):
        spy = Spy(game)
        azpy.Search(spy, simulations=1).run(state)
        found = fixed.evaluate_batch(spy.seen[0])
        for one, other in zip(found, fixed.evaluate_batch(state.observation()[None]), strict=True):
            np.testing.assert_array_equal(one, other)


class Planes(torch.nn.Module):
    """Answers with the last cell of each plane, and with the sum of a plane."""

    def __init__(self, plane: int, actions: int) -> None:
        super().__init__()
        self.plane, self.actions = plane, actions

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = torch.nn.functional.pad(observations[:, :, -1, -1], (0, self.actions - observations.shape[1]))
        return logits, observations[:, self.plane, 0, :1]


def test_bytes_become_the_very_floats_that_they_stand_for() -> None:
    """Two bytes and divisors that are no power of two: `n / 100` and `n * (1 / 100)` round differently."""
    state = azpy.parse_state("chess", "4k3/8/8/8/8/8/8/R3K2R w KQ - 33 140")
    spy, observation = Spy("chess"), state.observation()
    azpy.Search(spy, simulations=1).run(state)
    wide = [plane for plane, divisor in enumerate(spy.plane_divisors) if divisor > 255]
    assert observation[wide].max() * 512 > 255
    module = Planes(wide[0], state.num_actions)
    fixed = TorchEvaluator(module, game=state, buckets=BUCKETS)
    for given in (spy.seen[0], observation[None]):
        logits, values = fixed.evaluate_batch(given)
        np.testing.assert_array_equal(logits[0, : len(observation)], observation[:, -1, -1])
        assert values[0] == observation[wide[0], 0, 0] > 0.5


def test_folding_that_would_change_answers_is_left() -> None:
    class Between(torch.nn.Module):
        """Uses the layers of a Sequential one by one."""

        def __init__(self) -> None:
            super().__init__()
            self.pair = torch.nn.Sequential(torch.nn.Conv2d(2, 7, 3), torch.nn.BatchNorm2d(7, affine=True))
            norm: Any = self.pair[1]
            norm.running_var.fill_(9.0)
            norm.running_mean.fill_(1.0)

        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            last = self.pair[1](self.pair[0](observations).abs())
            return last.reshape(len(last), 7, -1).mean(2), last.view(len(last), -1)[:, :1].tanh()

    module = Between().eval()
    observations = observations_of(positions("connect_four", 10))
    with torch.no_grad():
        expected = module(torch.from_numpy(observations))[0].numpy()
    evaluator = TorchEvaluator(module, game=azpy.make_game("connect_four"))
    np.testing.assert_allclose(evaluator.evaluate_batch(observations)[0], expected, atol=1e-6)


def test_it_is_pickled_and_forked_with_memory_of_its_own() -> None:
    plain, fixed = both("connect_four")
    again = pickle.loads(pickle.dumps(fixed))
    observations = observations_of(positions("connect_four", 30))
    assert again.network_id == fixed.network_id
    for mine in (again, fixed.fork()):
        assert mine._slot is not fixed._slot
        np.testing.assert_array_equal(mine.evaluate_batch(observations)[0], fixed.evaluate_batch(observations)[0])
    assert plain.fork()._slot is None


@pytest.mark.parametrize("buckets", [(0, 8), (8, 8), (32, 8)])
def test_buckets_must_ascend(buckets: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="buckets must be ascending"):
        TorchEvaluator(network("connect_four"), buckets=buckets)


def test_folding_keeps_the_module_s_answers() -> None:
    module = network("connect_four", "3x16+pool")
    observations = observations_of(positions("connect_four", 50))
    with torch.no_grad():
        expected = module(torch.from_numpy(observations))
    evaluator = TorchEvaluator(module)
    assert not any(isinstance(part, torch.nn.BatchNorm2d) for part in evaluator._forward._module.modules())
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in module.modules())
    for found, other in zip(evaluator.evaluate_batch(observations), expected, strict=True):
        np.testing.assert_allclose(found, other.numpy(), atol=1e-4)


def test_forks_and_threads_get_their_own_answers() -> None:
    plain, fixed = both("connect_four")
    observations = observations_of(positions("connect_four", 60))
    expected, wrong = plain.evaluate_batch(observations)[0], list[float]()

    def work(mine: TorchEvaluator, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            begin, count = rng.integers(0, 40), rng.integers(1, 20)
            logits, _ = mine.evaluate_batch(observations[begin : begin + count])
            wrong.append(float(np.abs(logits - expected[begin : begin + count]).max()))

    threads = [threading.Thread(target=work, args=(mine, n)) for n, mine in enumerate((fixed, fixed.fork(), fixed))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 120
    assert max(wrong) < 1e-4


def test_searches_and_self_play_are_the_same() -> None:
    plain, fixed = both("connect_four")
    states = positions("connect_four", 6, seed=3)
    for one, other in zip(searched(plain, states, 100), searched(fixed, states, 100), strict=True):
        np.testing.assert_array_equal(one.visits, other.visits)
    options: dict[str, Any] = {"slots": 8, "pipelines": 2, "simulations": 12, "games": 12, "eval_batch": 2}
    with azpy.SelfPlay("connect_four", fixed, **options) as games:
        assert sorted(record.game_id for record in games) == list(range(12))


def test_numbers_that_no_plane_has_are_refused() -> None:
    _, fixed = both("chess")
    for number in (0.5, -1.0, 256.0, np.nan, np.inf):
        row = np.zeros((1, 119, 8, 8), np.float32)
        row[0, 3, 2, 1] = number
        with pytest.raises(ModelError, match="numbers that the game's planes cannot have"):
            fixed.evaluate_batch(row)
    for wrong in (np.zeros((1, 119, 8, 8), np.uint8), np.zeros((1, 119, 8, 8), np.float64)):
        with pytest.raises(ModelError, match=r"takes observations float32 \[B, 119, 8, 8\], got "):
            fixed.evaluate_batch(wrong)


def test_another_variant_s_bytes_are_refused() -> None:
    fixed = TorchEvaluator(network("chess", "1x16"), game="chess", buckets=BUCKETS)
    other = azpy.make_game("chess(max_plies=300)")
    assert other.plane_divisors != fixed.plane_divisors
    with pytest.raises(EvaluatorError, match="its plane_divisors are not those of this game"):
        azpy.Search(fixed, simulations=2).run(other)
