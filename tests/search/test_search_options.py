"""What a person meets of a search's options: limits of time, memory and need, proofs, and names that are refused."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy import _core
from azpy.cli.bench import _parser as bench_parser
from azpy.errors import SettingsError
from azpy.matches.query import parse_search
from azpy.serving.limits import NO_LIMITS
from azpy.settings import Settings
from many_players import Knapsack
from oracles import Hashed, after, another
from training_runs import settings_from

UNIFORM = azpy.UniformEvaluator()


def connect_four(*actions: int) -> azpy.State:
    state: azpy.State = after(azpy.make_game("connect_four"), *actions)
    return state


def test_a_time_limit_ends_the_search_and_it_says_so() -> None:
    search = azpy.Search(UNIFORM)
    result = search.run(connect_four(), seconds=0.01)  # without a limit it would never end
    assert result.stop == "seconds"
    more = search.run(simulations=3)
    assert (more.stop, more.visits.sum()) == ("simulations", result.visits.sum() + 3)
    many = azpy.VectorSearch([connect_four(column) for column in range(7)], UNIFORM)
    many.run(2**32 - 1, seconds=0.01)
    assert {result.stop for result in many.results()} == {"seconds"}


def test_no_time_at_all_still_evaluates_the_root() -> None:
    evaluator = Hashed(7)
    result = azpy.Search(evaluator, eval_batch=1).run(connect_four(), seconds=0.0)
    assert evaluator.batches == [1]
    assert (result.visits.sum(), result.action, result.stop) == (0, int(result.priors.argmax()), "seconds")


def by_search(*given: Any, seconds: float | None = 3600, **options: Any) -> azpy.SearchResult:
    return azpy.Search(UNIFORM, **options).run(connect_four(), *given, seconds=seconds)


def by_engine(*given: Any, seconds: float | None = 3600, **options: Any) -> azpy.SearchResult:
    with azpy.Engine(UNIFORM, **options) as engine:
        return engine.submit(connect_four(), *given, seconds=seconds).result()


@pytest.mark.parametrize("find", [by_search, by_engine])
def test_simulations_and_a_time_limit_both_hold(find: Any) -> None:
    for actions in (0, 4):
        for given, simulations in (((), 10), ((20,), 20)):
            result = find(*given, simulations=10, gumbel_actions=actions)
            assert (result.stop, result.visits.sum()) == ("simulations", simulations)
    assert find(seconds=None).visits.sum() == 800
    endless = find(evaluations=2000)
    assert (endless.stop, endless.visits.sum() > 800) == ("evaluations", True)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_bad_time_limit_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be at least 0"):
        azpy.Search(UNIFORM).run(connect_four(), seconds=seconds)


def test_gumbel_must_know_how_long_it_has() -> None:
    search = azpy.Search(UNIFORM, gumbel_actions=4)
    with pytest.raises(ValueError, match="give simulations together with seconds"):
        search.run(connect_four(), seconds=1.0)
    assert search.run(connect_four(), 20, seconds=60.0).visits.sum() == 20


def test_a_proven_win_ends_the_search() -> None:
    # Three in a row on the floor, open on both sides: whoever moves next is too late.
    state = connect_four(2, 2, 3, 3, 4)
    result = azpy.Search(UNIFORM, simulations=100_000, solver=True).run(state)
    assert (result.stop, result.value, result.proof) == ("proven", -1.0, 2)
    assert len(result.principal_variation) == 2
    won = azpy.Search(UNIFORM, simulations=100_000, solver=True).run(after(state, 0))
    assert (won.value, won.proof) == (1.0, 1)
    assert won.action in {1, 5}
    assert won.proofs[won.actions == won.action].tolist() == [0]
    assert won.principal_variation == [won.action]


def test_a_memory_budget_holds_while_the_root_moves() -> None:
    search = azpy.Search(azpy.RolloutEvaluator(1), simulations=5_000, max_memory_mb=0.25)
    result = search.run(connect_four())
    for _ in range(4):
        assert result.visits.sum() >= 5_000
        assert result.stats["unexpanded"] > 0
        assert 0.95 * 0.25 * 2**20 < result.stats["memory_bytes"] <= 0.25 * 2**20, "the bound is what memory is"
        assert result.action is not None
        search.advance(result.action)
        result = search.run()
    free = azpy.Search(azpy.RolloutEvaluator(1), simulations=5_000).run(connect_four())
    assert free.stats["unexpanded"] == 0
    assert free.stats["memory_bytes"] > 0.25 * 2**20


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"cpuct": 1.0}, TypeError, "did you mean 'c_puct'|did you mean \"c_puct\""),
        ({"banana": 1.0}, TypeError, "unexpected keyword argument"),
        ({"c_puct": "much"}, TypeError, "c_puct must be a number, got 'much'"),
        ({"solver": 3.5}, TypeError, "solver must be true or false, got 3.5"),
        ({"eval_batch": 0}, ValueError, "eval_batch must be at least 1, got 0"),
        ({"eval_batch": 3.0}, TypeError, "eval_batch must be a whole number, got 3.0"),
        ({"lcb": 0}, ValueError, "lcb must be more than 0, got 0"),
        ({"early_stop": True, "lcb": 1.0}, ValueError, "early_stop does not go with lcb: leave one of them out"),
        ({"early_stop": True, "solver": True}, ValueError, "early_stop does not go with solver: leave one of them out"),
        ({"lookahead": 2}, ValueError, "lookahead needs solver: give both, or leave lookahead out"),
        ({"lookahead": 7, "solver": True}, ValueError, "lookahead must be at most 6, got 7"),
        ({"gumbel_actions": 1.5}, TypeError, "gumbel_actions must be a whole number, got 1.5"),
        ({"c_puct_base": -1.0}, ValueError, "c_puct_base must be more than 0, got -1.0$"),
        ({"root_noise": (-1.0, 0.5)}, ValueError, "the alpha of root_noise must be a number > 0, got -1$"),
        ({"gumbel_actions": 4, "value_scale": -1.0}, ValueError, "value_scale must be at least 0, got -1"),
        ({"lcb": float("nan")}, ValueError, "lcb must be a finite number, got nan"),
        ({"root_temperature": 0.0}, ValueError, "root_temperature must be more than 0, got 0"),
        ({"in_flight_share": 0.0}, ValueError, "in_flight_share must be more than 0"),
        ({"max_memory_mb": 0.0}, ValueError, "max_memory_mb must be more than 0, got 0"),
        ({"max_memory_mb": "none"}, TypeError, "max_memory_mb must be a number or None, got 'none'"),
        ({"c_puct": 2**128}, ValueError, f"c_puct must be at most 1000000, got {2**128}"),
        ({"c_puct": -1}, ValueError, "c_puct must be at least 0, got -1$"),
        ({"fpu": "prent"}, ValueError, "fpu must be zero or parent or a number, got 'prent'"),
        ({"fpu": -0.5}, ValueError, "fpu must be at least 0, got -0.5"),
        ({"fpu": float("inf")}, ValueError, "fpu must be at most 100, got"),
        (
            {"gumbel_actions": 4, "gumbel_scale": 1e300},
            ValueError,
            "gumbel_scale must be at most 1000000, got 1e[+]300$",
        ),
    ],
    ids=str,
)
def test_bad_options_are_refused_by_name(options: dict[str, Any], error: type[Exception], said: str) -> None:
    for make in (azpy.Search, lambda evaluator, **given: azpy.VectorSearch([connect_four()], evaluator, **given)):
        with pytest.raises(error, match=said):
            make(UNIFORM, **options)
    with pytest.raises(error, match=said):
        azpy.SelfPlay("connect_four", UNIFORM, **options)


def test_with_the_largest_factors_targets_are_shares() -> None:
    gumbel: dict[str, Any] = dict.fromkeys(("gumbel_scale", "value_scale", "maxvisit_init"), 1e6)
    puct: dict[str, Any] = dict.fromkeys(("c_puct", "virtual_loss", "lcb"), 1e6)
    for options in ({"gumbel_actions": 4, **gumbel}, puct):
        result = azpy.Search(Hashed(7), simulations=200, **options).run(connect_four(3, 3))
        assert result.target.sum() == pytest.approx(1.0, abs=1e-5)
        assert np.isfinite(result.q).all()


def searched() -> azpy.Search:
    search = azpy.Search(UNIFORM, simulations=4)
    search.run(connect_four())
    return search


def played() -> azpy.GameRecord:
    return next(azpy.SelfPlay("pig(target=5)", UNIFORM, simulations=2, slots=2, pipelines=1, games=1))


# Of one player.
ALONE: dict[str, Any] = {
    "VectorSearch": lambda **given: azpy.VectorSearch([Knapsack()], UNIFORM, **given),
    "SelfPlay": lambda **given: azpy.SelfPlay(Knapsack(), UNIFORM, games=0, **given),
}
MAKERS: dict[str, Any] = {
    "RolloutEvaluator": azpy.RolloutEvaluator,
    "Search": lambda **given: azpy.Search(UNIFORM, **given),
    "Search.run": lambda **given: azpy.Search(UNIFORM).run(connect_four(), **given),
    "Search.advance": lambda **given: searched().advance(**given),
    "SearchResult.principal_variations": lambda **given: searched().run().principal_variations(**given),
    "SearchResult._chosen": lambda **given: searched().run()._chosen(1.0, key=0, **given),
    "Session": lambda **given: _core.Session({}, print, NO_LIMITS, False, print, print, **given),
    "SearchResult.to_svg": lambda **given: searched().run().to_svg(**given),
    "VectorSearch": lambda **given: azpy.VectorSearch([connect_four()], UNIFORM, **given),
    "VectorSearch.run": lambda **given: azpy.VectorSearch([connect_four()], UNIFORM).run(**given),
    "VectorSearch.replace": lambda index: azpy.VectorSearch([connect_four()], UNIFORM).replace(index, connect_four()),
    "Engine": lambda **given: azpy.Engine(UNIFORM, **given),
    "Engine.submit": lambda **given: azpy.Engine(UNIFORM).submit(connect_four(), **given),
    "Engine.game": lambda **given: azpy.Engine(UNIFORM).game(connect_four(), **given),
    "EngineGame.play": lambda **given: azpy.Engine(UNIFORM).game(connect_four()).play(**given),
    "EngineGame.search": lambda **given: azpy.Engine(UNIFORM).game(connect_four()).search(**given),
    "ReplayBuffer": lambda **given: azpy.ReplayBuffer("pig", **given),
    "ReplayBuffer.resize": lambda **given: azpy.ReplayBuffer("pig").resize(**given),
    "ReplayBuffer.sample": lambda **given: azpy.ReplayBuffer("pig").sample(**{"rows": 1, "seed": 0, **given}),
    "GameRecord.of_actions": lambda **given: azpy.GameRecord.of_actions(connect_four(), [3], 0.0, **given),
    "GameRecord.as_imported": lambda **given: played().as_imported(**{"game_id": 0, "seed": 0, **given}),
    "SelfPlay": lambda **given: azpy.SelfPlay("pig", UNIFORM, **given),
    "SelfPlay.admit": lambda **given: azpy.SelfPlay("pig", UNIFORM, games=0).admit(**{"first": 0, "n": 0, **given}),
    "SelfPlay.take_finished": lambda **given: azpy.SelfPlay("pig", UNIFORM, games=0).take_finished(**given),
    "Line.play": lambda **given: _core.Line(connect_four()).play("4", **given),
    "Line.go_on": lambda **given: _core.Line(connect_four()).go_on(**given),
    "Line.upto": lambda **given: _core.Line(connect_four()).upto(**given),
    "parse_state": lambda **given: azpy.parse_state(connect_four(), "4", **given),
    "State.play": lambda **given: connect_four().play(**given),
    "State.action_name": lambda **given: connect_four().action_name(**given),
    "State.short_name": lambda **given: connect_four().short_name(**given),
    "State.touches": lambda **given: connect_four().touches(**given),
    "State.render_view": lambda **given: connect_four().render_view(**given),
    "State.without_past": lambda **given: connect_four().without_past(**given),
    "State.read_variations": lambda **given: connect_four().read_variations("", **given),
    "State.write_variations": lambda **given: azpy.make_game("chess").write_variations([], **given),
    "State.symmetric_action": lambda **given: connect_four().symmetric_action(**{"symmetry": 0, "action": 0, **given}),
    "State.symmetric_observation": lambda symmetry: connect_four().symmetric_observation(
        symmetry, connect_four().observation()
    ),
    "Exploitability": lambda **given: _core.Exploitability("kuhn_poker", **given),
    "remember_at_most": lambda **given: _core.remember_at_most(**given),
    "random_playouts": lambda **given: _core.random_playouts(connect_four(), **{"games": 1, **given}),
}


def whole_numbers() -> list[tuple[str, str]]:
    """All parameters of the core that are one, as its stub has them."""
    found: list[tuple[str, str]] = []
    options: list[tuple[str, str]] = []
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    for outer in stub.body:
        if isinstance(outer, ast.ClassDef) and outer.name == "Walk":  # az-check-game's own
            continue
        for inner in [outer, *(outer.body if isinstance(outer, ast.ClassDef) else [])]:
            if isinstance(inner, ast.FunctionDef) and inner.name != "_play":  # az-check-game's own
                place = [outer.name] if isinstance(outer, ast.ClassDef) else []
                place += [inner.name] if inner.name != "__new__" else []
                arguments = [*inner.args.args, *inner.args.kwonlyargs]
                numbers = [a.arg for a in arguments if a.annotation and ast.unparse(a.annotation) in WHOLE]
                found += [(".".join(place), name) for name in numbers]
            elif isinstance(inner, ast.AnnAssign) and ast.unparse(inner.annotation) in WHOLE:
                kinds = KINDS.get(outer.name, ()) if isinstance(outer, ast.ClassDef) else ()
                options += [(kind, ast.unparse(inner.target)) for kind in kinds]
    return [*found, *options]


WHOLE = {"int", "int | None"}
KINDS = {"SearchOptions": ("Search", "SelfPlay"), "SelfPlayOptions": ("SelfPlay",)}


@pytest.mark.parametrize("number", [-1, 2**70, -(2**70), 2**200], ids=["-1", "2**70", "-2**70", "2**200"])
def test_a_whole_number_out_of_range_is_refused_by_its_name(number: int) -> None:
    cases = whole_numbers()
    assert len(cases) > 50
    assert {kind for kind, _ in cases} == MAKERS.keys()
    for kind, name in cases:
        with pytest.raises(ValueError) as caught:
            MAKERS[kind](**{name: number})
        said = str(caught.value).splitlines()[0]
        assert name in said, (kind, name, said)
        assert str(number) in said or (number == 2**200 and "2**127 or more" in said), (kind, name, said)


def test_a_whole_number_in_a_list_is_refused_too() -> None:
    for number in (-2, 2**70):
        with pytest.raises(ValueError, match=f"^illegal action {number}; legal actions are"):
            azpy.VectorSearch([connect_four()], UNIFORM).advance([number])
        with pytest.raises(ValueError, match=f"^illegal action {number}; legal actions are"):
            azpy.make_game("wall_game").captured([number])
        with pytest.raises(ValueError, match=f"^illegal action {number}$"):
            azpy.make_game("wall_game").format_actions([number])


@pytest.mark.parametrize("kind", ["Search", "VectorSearch", "Engine", "SelfPlay"])
def test_a_misspelt_option_lists_all_options(kind: str) -> None:
    parameters = inspect.signature(getattr(azpy, kind)).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    names |= {"eval_batch", "solver", "max_memory_mb"}
    for name in names:
        with pytest.raises(TypeError, match=f'unexpected keyword argument "{name}_"; did you mean "{name}"'):
            MAKERS[kind](**{f"{name}_": 1})
    with pytest.raises(TypeError, match='unexpected keyword argument "banana"; there are: ') as caught:
        MAKERS[kind](banana=1)
    known = str(caught.value).split("there are: ")[1].split(", ")
    assert names <= set(known)
    assert len(set(known)) == len(known)


def test_self_play_with_every_option_makes_games_that_bear_out() -> None:
    for options in (
        {"solver": True, "root_temperature": 1.2, "c_puct_base": 100.0},
        {"gumbel_actions": 4, "solver": True, "lookahead": 3},
        {"lcb": 1.0},
        {"early_stop": True},
    ):
        buffer = azpy.ReplayBuffer("tic_tac_toe")
        with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=4, simulations=40, games=20, **options) as games:
            for record in games:
                buffer.add(record)
        assert buffer.num_games == 20


# The table of options.

OPTIONS = _core.OPTIONS
SEARCH = [name for name in OPTIONS if OPTIONS[name]["group"] == "search"]


def test_help_writes_each_default_as_python_does() -> None:
    for kind in (azpy.Search, azpy.SelfPlay):
        told = re.findall(r"^- (\w+) \((.*?)\):", kind.__doc__ or "", re.MULTILINE)
        assert told
        assert {name: ast.literal_eval(text) for name, text in told} == {
            name: OPTIONS[name]["default"] for name, _ in told
        }


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_the_table_reaches_all_that_take_options(name: str) -> None:
    value = another(name)
    needs: dict[str, Any] = {"gumbel_actions": 4} if OPTIONS[name]["rule"] == "Gumbel" else {}
    needs |= {switch: True for switch in [OPTIONS[name]["needs"]] if switch}
    kinds = ("Search", "VectorSearch", "Engine", "SelfPlay") if name in SEARCH else ("SelfPlay",)
    for kind in kinds:
        extra = {"max_batch": 100} if kind == "Engine" else {}
        make = ALONE.get(kind, MAKERS[kind]) if name == "score_to_beat" else MAKERS[kind]
        make(**{name: value}, **needs, **extra)
        for wrong in ("much", *((True, False) if OPTIONS[name]["kind"] is not bool else ())):
            with pytest.raises((TypeError, ValueError), match=f"{name} must be .*got '?{wrong}"):
                MAKERS[kind](**{name: wrong}, **needs, **extra)
    text = str(value).lower()
    assert Settings("pig", **{name: value}, **needs).search_options()[name] == value
    if OPTIONS[name]["kind"] is not bool:
        with pytest.raises(ValueError, match=f"{name} must be"):
            MAKERS["SelfPlay"](**{name: OPTIONS[name]["low"] - 1}, **needs)
        with pytest.raises(SettingsError, match=f"{name} must be .*, got True"):
            Settings("pig", **dict[str, Any]({name: True}), **needs)
    flag = "--" + name.replace("_", "-")
    typed = [flag if value else f"--no-{flag[2:]}"] if isinstance(value, bool) else [flag, text]
    needed = [f"--{key}" if value is True else f"--{key}={value}" for key, value in needs.items()]
    needed = [each.replace("_", "-") for each in needed]
    assert settings_from(["pig", *needed, *typed])[0].search_options()[name] == value
    assert getattr(bench_parser().parse_args(["selfplay", *typed]), name) == value
    if name in SEARCH:
        assert parse_search(f"{name}={text}")[name] == value


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name]["rule"]])
def test_an_option_without_effect_is_refused_with_both_names(name: str) -> None:
    rule = OPTIONS[name]["rule"]
    options: dict[str, Any] = {"gumbel_actions": 4 if rule == "PUCT" else 0}
    for kind in ("Search", "SelfPlay") if name in SEARCH else ("SelfPlay",):
        with pytest.raises(ValueError, match=f"{name} (does not go with|needs) gumbel_actions"):
            MAKERS[kind](**options, **{name: another(name)})
        default = OPTIONS[name]["in_self_play" if kind == "SelfPlay" else "default"]
        MAKERS[kind](**options, **{name: default})
    if OPTIONS[name]["in_self_play"] != OPTIONS[name]["default"]:  # no default of a search alone
        with pytest.raises(ValueError, match=f"{name} does not go with gumbel_actions"):
            azpy.Search(UNIFORM, **options, **{name: OPTIONS[name]["in_self_play"]})


@pytest.mark.parametrize(
    ("options", "draws", "said"),
    [({}, [0.0] * 6, "gumbel")]
    + [({"gumbel_actions": 4}, draws, "one finite number for each of the 7") for draws in ([0.0], [float("nan")] * 7)],
    ids=str,
)
def test_draws_that_are_refused_change_nothing(options: dict[str, Any], draws: list[float], said: str) -> None:
    search = azpy.Search(Hashed(7), simulations=10, **options)
    before = search.run(connect_four()).visits.tolist()
    with pytest.raises(ValueError, match=said):
        search.run(connect_four(3), gumbel=draws)
    assert search.run(simulations=0).visits.tolist() == before


@pytest.mark.parametrize("number", [0, -1, 2**64])
def test_a_network_id_out_of_range_is_refused(number: int) -> None:
    for make in (azpy.Search, azpy.Engine, lambda own: azpy.SelfPlay("connect_four", own)):
        with pytest.raises(ValueError, match=f"network_id must be None or a whole number from 1 .*, got {number}"):
            make(Hashed(7, network_id=number))
