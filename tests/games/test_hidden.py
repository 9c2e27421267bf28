"""Games that hide something are those of OpenSpiel: rules, features, views and exploitability."""

import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy import _core
from oracles import Hashed, after

pyspiel = pytest.importorskip("pyspiel")
exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
policies = pytest.importorskip("open_spiel.python.policy")

GAMES = ["kuhn_poker", "leduc_poker", "liars_dice"]


def logits_of(evaluator: Hashed, row: NDArray[np.float32]) -> Any:
    """Those of a policy that is another one for each observation."""
    return evaluator.evaluate_batch(row[None])[0][0]


def games(name: str, count: int) -> Iterator[tuple[azpy.State, Any]]:
    """Positions of random games, as azpy and as OpenSpiel have them."""
    for seed in range(count):
        rng = random.Random(seed)
        ours, theirs = azpy.make_game(name), pyspiel.load_game(name).new_initial_state()
        yield ours, theirs
        while not ours.is_terminal:
            outcomes = [action for action, _ in ours.chance_outcomes()]
            action = rng.choice(ours.legal_actions() or outcomes)
            ours.play(action)
            theirs.apply_action(action)
            yield ours, theirs


@pytest.mark.parametrize("name", GAMES)
def test_rules_features_and_views_are_those_of_openspiel(name: str) -> None:
    views: dict[tuple[int, int], str] = {}
    strings: dict[tuple[int, str], int] = {}
    unit, _ = azpy.make_game(name).payoff_unit
    for ours, theirs in games(name, 300):
        assert ours.is_terminal == theirs.is_terminal()
        if ours.is_terminal:
            assert ours.outcome() * unit == pytest.approx(theirs.returns()[0])
            continue
        if ours.turn == azpy.CHANCE:
            assert theirs.is_chance_node()
            assert dict(ours.chance_outcomes()) == pytest.approx(dict(theirs.chance_outcomes()))
            continue
        player = theirs.current_player()
        assert (ours.turn, ours.legal_actions()) == (player, theirs.legal_actions())
        seen, expected = ours.observation().ravel().tolist(), theirs.information_state_tensor(player)
        assert (
            seen == expected[: len(seen)]
        )  # OpenSpiel's Liar's dice also has a place for the doubt that ends the game
        view, text = _core.Walk(ours).facts().views[player], theirs.information_state_string(player)
        assert views.setdefault((player, view), text) == text
        assert strings.setdefault((player, text), view) == view


@pytest.mark.parametrize("name", GAMES)
def test_exploitability_is_that_of_openspiel(name: str) -> None:
    game = pyspiel.load_game(name)
    if name == "liars_dice":  # all of it takes OpenSpiel minutes
        ours = azpy.exploitability(azpy.UniformEvaluator(), name)
        assert ours == pytest.approx(0.7807443, abs=1e-6)
        return
    evaluator = Hashed(game.num_distinct_actions())
    table = policies.TabularPolicy(game)
    for state in table.states:
        row = np.array(state.information_state_tensor(state.current_player()), np.float32)
        legal = state.legal_actions()
        logits = logits_of(evaluator, row[: np.prod(azpy.make_game(name).obs_shape)])[legal]
        shares = np.exp(logits - logits.max())
        table.policy_for_key(state.information_state_string())[:] = 0
        table.policy_for_key(state.information_state_string())[legal] = shares / shares.sum()
    expected = exploitability.exploitability(game, table)
    assert azpy.exploitability(evaluator, name) == pytest.approx(expected, abs=1e-5)


def test_games_without_an_exploitability_are_refused_in_a_line() -> None:
    uniform = azpy.UniformEvaluator()
    with pytest.raises(ValueError, match="this game hides nothing"):
        azpy.exploitability(uniform, "tic_tac_toe")
    with pytest.raises(ValueError, match="the game has more than 9456 positions"):
        _core.Exploitability("leduc_poker", most=9456)


def test_a_game_without_an_observation_tensor_is_opened() -> None:
    battleship = "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2)"
    state = azpy.make_game(f"open_spiel:{battleship}")
    assert state.hides
    assert len({after(state, place).render_view(1) for place in state.legal_actions()}) == 1


class Guess(azpy.Game):
    """Player 0 gets one of three cards and says it, or lies; player 1 guesses the card."""

    num_actions, obs_shape, max_plies, payoff_unit = 3, (1, 1, 7), 3, (2.0, "marbles")

    def __init__(self, line: tuple[int, ...] = (), view: str = "text") -> None:
        self.line, self.view = line, view

    def turn(self) -> int:
        return (azpy.CHANCE, 0, 1, azpy.TERMINAL)[len(self.line)]

    def legal_actions(self) -> list[int]:
        return [0, 1, 2]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(card, 1 / 3) for card in range(3)]

    def play(self, action: int) -> None:
        self.line += (action,)

    def clone(self) -> "Guess":
        return type(self)(self.line, self.view)

    def outcome(self) -> float:
        return -1.0 if self.line[2] == self.line[0] else 0.5

    def encode(self) -> NDArray[np.float32]:
        row = np.zeros(7, np.float32)
        row[self.line[self.turn()]] = 1
        row[3 + self.turn()] = 1
        return row.reshape(self.obs_shape)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.line)))

    def view_key(self, player: int) -> Any:
        seen = repr(self.line[player:][:1]), len(self.line)
        return {"text": str(seen), "bytes": str(seen).encode(), "list": [1], "number": hash(seen) % 2**64}[self.view]


class Alike(Guess):
    """No player knows anything, so the views of both are equal; only the observations say whose turn it is."""

    def view_key(self, player: int) -> str:
        return ""

    def clone(self) -> "Alike":
        return Alike(self.line)


def test_equal_views_of_two_players_are_two_questions() -> None:
    noise = Hashed(3, network_id=5)
    search = azpy.Search(noise, cache_positions=64, simulations=1)
    for line in ((0,), (0, 0)):
        state = azpy.State(Alike(line))
        shares = np.exp(logits_of(noise, state.observation()))
        assert search.run(state).priors == pytest.approx(shares / shares.sum(), abs=1e-6)


@pytest.mark.parametrize("view", ["text", "bytes", "number"])
def test_a_game_in_python_may_hide_something(view: str) -> None:
    game = Guess(view=view)
    whole = _core.Exploitability(game)
    assert (whole.positions, whole.views, azpy.State(game).payoff_unit) == (1 + 3 + 9 + 27, 6, (2.0, "marbles"))
    # Nothing helps player 0 against equal guesses, and player 1 cannot know more of an equal lie.
    assert whole.of(azpy.UniformEvaluator()) == pytest.approx(0.0, abs=1e-6)
    records, hashed = [], Hashed(3, network_id=5)
    for slots, cache in ((5, 1000), (1, 0)):
        with azpy.SelfPlay(game, hashed, games=20, slots=slots, pipelines=1, seed=2, cache_positions=cache) as played:
            records.append([pickle.dumps(record) for record in sorted(played, key=lambda record: record.game_id)])
    assert records[0] == records[1]
    assert len(set(records[0])) == 20


def test_a_bad_view_key_is_an_error_that_says_what_was_expected() -> None:
    with pytest.raises(azpy.GameError, match=r"Guess.view_key\(\) gave \[1\], expected str, bytes or a whole number"):
        azpy.Search(azpy.UniformEvaluator()).run(Guess((1,), "list"))


def test_a_person_sees_the_text_of_a_view_or_what_the_game_says() -> None:
    class Told(Guess):
        def render_view(self, player: int) -> str:
            return f"you have {self.line[player]}"

    assert azpy.State(Told((2, 1))).render_view(0) == "you have 2"
    assert azpy.State(Told((2,))).render_view(1) == "(render_view cannot be shown)"  # the error may say too much
    for view in ("text", "number", "bytes"):
        game = Guess((2, 1), view)
        assert azpy.State(game).render_view(1) == str(game.view_key(1))
    assert azpy.make_game("tic_tac_toe").render_view(0) == str(azpy.make_game("tic_tac_toe"))


class Late(Guess):
    """A game that says only after the deal that it hides something."""

    def view_key(self, player: int) -> Any:
        return super().view_key(player) if self.line else None


def test_a_search_that_meets_a_view_later_grows_no_tree() -> None:
    search = azpy.VectorSearch([Late()], Hashed(3))
    search.advance([1])
    search.run(50)
    assert search.results()[0].visits.tolist() == [0, 0, 0]


def told(state: azpy.State) -> list[list[float]]:
    """What each door tells about a position."""
    evaluator = Hashed(3, network_id=5)
    several = azpy.VectorSearch([state, state], evaluator)
    several.run(20)
    results = [
        azpy.Search(evaluator, simulations=200).run(state),
        azpy.Search(evaluator, simulations=20, gumbel_actions=3).run(state),
        *several.results(),
    ]
    with azpy.Engine(evaluator, simulations=100) as engine:
        results += [engine.submit(state).result(), engine.game(state).search().result()]
    return [[one.action or 0, one.value, *one.priors, *one.target, *one.q, *one.visits] for one in results]


def test_no_door_tells_what_the_player_to_move_does_not_know() -> None:
    # The same card of one's own and the same bets, with each card of the opponent.
    cards = ("Js", "Jh", "Qh", "Ks", "Kh")
    answers = [told(azpy.parse_state("leduc_poker", f"Qs {card} check raise")) for card in cards]
    assert all(answer == answers[0] for answer in answers)
    assert told(azpy.parse_state("leduc_poker", "Ks Js check raise")) != answers[0]


def test_options_that_read_the_true_position_are_refused() -> None:
    state = azpy.parse_state("kuhn_poker", "J K")
    with pytest.raises(ValueError, match="leave solver and lookahead out"):
        azpy.Search(azpy.UniformEvaluator(), solver=True).run(state)
