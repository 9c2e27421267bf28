"""Settings of a game without a preset: they fit what its games cost here, and what the user gave."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

import azpy
from azpy.devices import Device
from azpy.errors import SettingsError
from azpy.games.lines import random_games
from azpy.games.names import make_game
from azpy.settings.choosing import choose
from azpy.settings.run import Settings, combine
from azpy.training import sizing
from azpy.training.sizing import Costs, costs_of, suited
from oracles import Countdown, DiceCountdown

PLIES, ACTIONS, SPEEDS = (5, 40, 300), (2, 30, 200), (20.0, 1e3, 1e5)


def costs(plies: float = 40, actions: float = 7, speed: float = 1e4) -> Costs:
    """Costs of a game; its small network answers ten times as many positions a second as its large one."""
    rows, parameters = {"2x32": 2 * speed, "5x64": speed / 5}, {"2x32": 40_000, "5x64": 400_000}
    return Costs(plies, actions, 2 * int(actions), 2 * speed, rows, {spec: rows[spec] / 4 for spec in rows}, parameters)


@pytest.mark.parametrize("minutes", [2.0, 5.0, None])
@pytest.mark.parametrize(("plies", "actions", "speed"), list(itertools.product(PLIES, ACTIONS, SPEEDS)))
def test_many_iterations_fit_into_a_run(minutes: float | None, plies: float, actions: float, speed: float) -> None:
    game = costs(plies, actions, speed)
    found = suited(game, {"minutes": minutes}, pipelines=2)
    chosen = combine({"game": "connect_four", "minutes": minutes}, found)
    a_game = plies * chosen.simulations / game.speed(chosen.network)
    length = min(15.0, 60 * (minutes or 60) / 20)
    if chosen.games_per_iteration > 4:  # fewer teach nothing, and take as long as they take
        assert chosen.games_per_iteration * a_game < 0.6 * length
    # No game waits for the end of a hundred others.
    assert chosen.slots <= max(8, chosen.games_per_iteration)
    assert chosen.games_per_iteration >= 16 or chosen.simulations == 8
    assert chosen.eval_batch <= max(1, chosen.simulations // 8)


def test_a_longer_run_has_a_larger_network() -> None:
    assert suited(costs(speed=100), {"minutes": 5.0}, 2)["network"] == "2x32"
    assert suited(costs(speed=1e7), {"minutes": 5.0}, 2)["network"] == "5x64"
    assert suited(costs(speed=1e4), {"minutes": 5.0}, 2)["network"] == "2x32"
    assert suited(costs(speed=1e4), {"minutes": 5000.0}, 2)["network"] == "5x64"


def test_what_is_given_stays_and_decides_on_the_rest() -> None:
    plain, given = suited(costs(), {}, 2), {"simulations": 400, "slots": 6}
    found = suited(costs(), given, 2)
    assert not given.keys() & found.keys()
    assert found["games_per_iteration"] < plain["games_per_iteration"] / 20
    puct = suited(costs(), {"c_puct": 2.0}, 2)
    assert "gumbel_actions" not in puct
    assert combine({"game": "pig"}, puct, {"c_puct": 2.0}).gumbel_actions == 0


@pytest.mark.parametrize("game", ["tic_tac_toe", "pig(target=15)"])
def test_a_deterministic_run_measures_no_time(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "_RULES_SECONDS", 0.01)
    monkeypatch.setattr(sizing, "_NETWORK_SECONDS", 0.01)
    monkeypatch.setattr(sizing, "_ENOUGH_SECONDS", 0.0)
    start = azpy.make_game(game)
    found = costs_of(start, Settings(game))
    assert 1 < found.actions <= found.most <= start.num_actions
    assert found.plies <= start.max_plies
    assert list(found.rows) == list(found.learned) == list(found.parameters)
    assert min(found.simulations, *found.rows.values(), *found.learned.values()) > 0

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("time was measured")

    for name in ("SelfPlay", "rate", "Learner"):
        monkeypatch.setattr(sizing, name, refuse)
    fixed = [costs_of(start, Settings(game, deterministic=True)) for _ in range(2)]
    assert fixed[0] == fixed[1]
    assert combine({"game": game, "deterministic": True}, suited(fixed[0], {}, 2)).network in fixed[0].rows


def test_only_a_new_run_of_a_game_without_a_preset_is_sized(tmp_path: Path) -> None:
    asked = list[dict[str, Any]]()

    def note(settings: Settings, given: Any) -> tuple[dict[str, Any], str]:
        asked.append({"game": settings.game, **given})
        return {"slots": 17}, "measured"

    out = str(tmp_path / "run")
    settings, _, said = choose({"game": "pig:Mine", "minutes": 2.0}, out=out, sizing=note)
    assert (settings.slots, settings.minutes, said) == (17, 2.0, "measured; so slots 17")
    assert choose({"game": "connect_four"}, out=out, sizing=note)[0].slots == 128
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.toml").write_text('game = "pig:Mine"\nslots = 33\n')
    assert choose({"game": "pig:Mine"}, out=out, sizing=note)[0].slots == 33
    assert [each["game"] for each in asked] == ["pig:Mine"]


def test_no_choice_contradicts_what_was_given() -> None:
    """Of the settings that go with each other; the costs do not matter."""
    given: list[dict[str, Any]] = [
        {"simulations": 20, "temperature": 0.5},
        {"gumbel_actions": 0},
        {"slots": 1, "pipelines": 1},
        {"eval_batch": "auto"},
        {"deterministic": True, "iterations": 3},
    ]
    for settings, game in itertools.product(given, (costs(), costs(300, 200, 2.0))):
        found = suited(game, settings, settings.get("pipelines", 2))
        combine({"game": "connect_four"}, found, settings)
    # PUCT plans with more simulations, and an iteration has fewer games.
    puct, gumbel = (suited(costs(), {"gumbel_actions": actions}, 2)["games_per_iteration"] for actions in (0, 8))
    assert puct < 0.3 * gumbel


class Endless(Countdown):
    """Players who take nothing."""

    max_plies = 10**9

    def __init__(self) -> None:
        super().__init__(9)

    def play(self, action: int) -> None:
        pass

    def clone(self) -> Self:
        return self


class Dice(DiceCountdown):
    """A roll after the other."""

    play, clone = Endless.play, Endless.clone

    def __init__(self) -> None:
        super().__init__(9)


class Shared(Countdown):
    """A clone is the position itself, so that the first game ends all others."""

    def __init__(self) -> None:
        super().__init__(9)

    def clone(self) -> Self:
        copy = type(self)()
        copy.__dict__ = self.__dict__
        return copy


def test_games_that_end_before_a_search_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "_RULES_SECONDS", 0.0)
    with pytest.raises(SettingsError, match="end before their first search"):
        costs_of(make_game("test_sizing:Shared"), Settings("pig"), "1x8")


def test_games_without_an_end_or_a_player_do_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "_ENOUGH_SECONDS", 0.0)
    endless = costs_of(make_game("test_sizing:Endless"), Settings("pig", max_plies=100))
    assert (endless.plies, endless.actions) == (100, 2)
    with pytest.raises(SettingsError, match="no player moves"):
        costs_of(make_game("test_sizing:Dice"), Settings("pig", max_plies=100))


def test_auto_is_placed_first_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.settings.run.usable_cores", lambda: 16)
    monkeypatch.setattr("azpy.settings.run.no_gpu", lambda: None)  # there may be a GPU
    sized_on = list[tuple[str, int]]()

    def note(settings: Settings, given: Any) -> tuple[dict[str, Any], str]:
        sized_on.append((settings.device, settings.pipelines))
        return {"slots": 64}, "measured"

    for device, pipelines in (("cpu", 16), ("cuda:0", 2)):
        given = {"game": "pig:Mine", "device": "auto"}

        def place(_: Settings, on: str = device) -> tuple[str, str]:
            return on, f"plays on {on}"

        settings, _, said = choose(given, sizing=note, placing=place)
        # The run may go on elsewhere, and torch trains on a GPU of its own choice.
        assert (settings.device, settings.training_device, settings.pipelines) == ("auto", "auto", pipelines)
        assert said == f"plays on {device}; measured; so slots 64"
        assert sized_on.pop() == (device, pipelines)


def test_a_device_is_found_with_the_run_s_network(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[dict[str, Any]]()

    class Found:
        device, notes = "webgpu", ("WebGPU answers 9 rows/s of this network, the CPU 8",)

        def __init__(self, model: bytes, device: Device, settings: Settings, **options: Any) -> None:
            opened.append({"device": device, "size": len(model), **options})

    monkeypatch.setattr(sizing, "open_generation", Found)
    settings = Settings("tic_tac_toe", device="auto", network="1x16", slots=40, pipelines=2, eval_batch=3)
    monkeypatch.setattr(sizing, "no_gpu", lambda: "no package")
    assert sizing.placed(settings) == ("cpu", "device auto chose the CPU: no package")
    monkeypatch.setattr(sizing, "no_gpu", lambda: None)
    assert sizing.placed(settings) == ("webgpu", f"device auto chose webgpu; {Found.notes[0]}")
    assert [(each["device"], each["batch"]) for each in opened] == [(Device("auto"), 60)]


def test_pipelines_of_a_gpu_are_measured_where_they_are_auto(tmp_path: Path) -> None:
    asked = list[list[tuple[int, int]]]()

    def pipe(with_pipelines: Callable[[int], Settings]) -> tuple[int, str]:
        trials = [with_pipelines(number) for number in (2, 16)]
        asked.append([(trial.pipelines, trial.eval_batch) for trial in trials])
        return 8, "8 are the fastest"

    settings, _, said = choose({"game": "tic_tac_toe", "device": "cuda", "slots": 256}, piping=pipe)
    assert (settings.pipelines, settings.eval_batch, asked) == (8, 2, [[(2, 1), (16, 4)]])
    assert said.startswith("8 are the fastest; preset for tic_tac_toe")
    kept = {"game": "tic_tac_toe", "device": "cuda"}
    for given in ({"device": "cpu"}, {"pipelines": 3}, {"slots": 1}, {"workers": 2}):
        choose(kept | given, piping=pipe)
    (tmp_path / "config.toml").write_text('game = "tic_tac_toe"\ndevice = "cuda"\npipelines = 5\n')
    assert choose({"game": "tic_tac_toe"}, out=str(tmp_path), piping=pipe)[0].pipelines == 5
    assert len(asked) == 1


def test_pipelines_are_measured_from_two_to_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "_PIPELINES_SECONDS", 0.02)

    def trial(pipelines: int) -> Settings:
        return combine({"game": "tic_tac_toe", "network": "1x8", "slots": 16, "pipelines": pipelines})

    monkeypatch.setattr(sizing, "usable_cores", lambda: 8)
    number, said = sizing.piped(trial)
    assert number in (2, 4, 8)
    assert re.fullmatch(
        rf"pipelines auto chose {number}: 2 play \S+ rows/s, 4 play \S+ rows/s, 8 play \S+ rows/s", said
    )
    monkeypatch.setattr(sizing, "usable_cores", lambda: 2)
    assert sizing.piped(trial) == (2, "")


def test_a_gpu_that_the_run_leaves_idle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(**more: Any) -> str:
        return choose({"game": "tic_tac_toe", **more}, placing=lambda settings: ("cpu", "placed"))[2]

    monkeypatch.setattr("azpy.settings.choosing.driver_problem", lambda: "no NVIDIA driver found")
    assert "GPU" not in said()
    monkeypatch.setattr("azpy.settings.choosing.driver_problem", lambda: None)
    assert said().startswith("this machine has an NVIDIA GPU, but the run uses the CPU: --device auto")
    assert "GPU" not in said(device="cpu")


def test_auto_is_measured_with_the_layout_of_cuda() -> None:
    seen = list[tuple[str, int]]()

    def place(settings: Settings) -> tuple[str, str]:
        seen.append((settings.device, settings.slots))
        return "cpu", "placed"

    assert choose({"game": "tic_tac_toe", "device": "auto"}, placing=place)[0].slots == 128
    assert seen == [("cuda", 2000)]


@pytest.mark.parametrize(("device", "said"), [("cuda", False), ("cpu", True)])
def test_a_measured_run_on_cuda_has_the_slots_of_cuda(device: str, said: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = costs_of(make_game("tic_tac_toe"), Settings("tic_tac_toe", deterministic=True))
    monkeypatch.setattr(sizing, "costs_of", lambda *_: costs)
    found, _ = sizing.sized(Settings("tic_tac_toe", device=device), {})
    assert ("slots" in found) == said


def test_of_cut_random_games_the_first_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    start = make_game("connect_four")
    first, second = random_games(start, 2, 100, 1e9)
    ticks = itertools.count()
    monkeypatch.setattr("azpy.games.lines.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    for seconds, expected in ((3, [first[:4]]), (len(first) + 2, [first]), (1e9, [first, second])):
        assert random_games(start, 2, 100, seconds) == expected


@pytest.mark.parametrize(
    ("minutes", "speed", "games"), [(5.0, 1e5, 1024), (5.0, 5e3, 256), (12.0, 290, 64), (5.0, 0, 64)]
)
def test_a_timed_run_of_a_game_that_hides_something_has_enough_steps(
    minutes: float, speed: float, games: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(**given: Any) -> int:
        return int(choose({"game": "kuhn_poker", **given}, sizing=sizing.sized)[0].games_per_iteration)

    asked = list[float]()

    def play_for(play: Any, seconds: float) -> dict[str, float]:
        asked.append(seconds)
        return {"games_per_second": speed if len(asked) == 2 else 0.0}  # answers of rules are remembered by then

    monkeypatch.setattr(sizing, "play_for", play_for)
    assert chosen(minutes=minutes) == games
    assert chosen(minutes=minutes, games_per_iteration=100) == 100
    assert chosen(iterations=9) == chosen(iterations=9, deterministic=True) == 1024
    assert len(asked) == 2
