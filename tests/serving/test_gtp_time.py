"""The time systems of GTP: what they leave for a move, by a plain clock that counts along."""

import math
import random

import pytest

from azpy.serving.gtp import SYSTEMS, Times
from talks import talk_with

OVERHEAD = 0.1


class Referee:
    """A clock of one player as a server keeps it; `spend` fails once the flag falls."""

    def __init__(self, system: str) -> None:
        self.kind, *numbers = system.split()
        self.numbers = [float(number) for number in numbers]
        self.main = self.numbers[0]
        # What is left of the period, and stones or periods that are left; both 0 in the main time.
        self.period, self.count = 0.0, 0
        if not self.main and len(self.numbers) == 3:
            self.period, self.count = self.numbers[1], int(self.numbers[2])

    def told(self) -> list[str]:
        in_main = not self.count
        return [f"{self.main if in_main else self.period:.3f}", "0" if in_main else str(self.count)]

    def spend(self, seconds: float) -> None:
        """A move that took so long."""
        if self.kind in {"absolute", "fischer", "fischer-capped"}:
            if self.kind == "fischer-capped" and self.numbers[3] >= 0:
                assert seconds <= self.numbers[3] + 1e-9
            assert seconds < self.main, "the flag fell"
            self.main -= seconds
            self.main += self.numbers[1] if self.kind != "absolute" else 0
            if self.kind == "fischer-capped" and self.numbers[2] >= 0:
                self.main = min(self.main, self.numbers[2])
            return
        _, length, count = self.numbers
        if not self.count:
            if seconds < self.main:
                self.main -= seconds
                return
            seconds, self.main = seconds - self.main, 0.0
            self.period, self.count = length, int(count)
        if self.kind == "byoyomi":
            while seconds >= self.period:
                seconds, self.count = seconds - self.period, self.count - 1
                assert self.count, "the flag fell"
            self.period = length
        else:
            assert seconds < self.period, "the flag fell"
            self.period, self.count = self.period - seconds, self.count - 1
            if not self.count:
                self.period, self.count = length, int(count)


@pytest.mark.parametrize(
    ("system", "late"),
    [
        ("absolute 600", (0.01, 4)),
        ("byoyomi 20 5 3", (3, 4.6)),
        ("byoyomi 0 2 1", (1.5, 1.9)),
        ("canadian 20 30 10", (1.5, 3.5)),
        ("canadian 0 30 10", (1.5, 3.5)),
        ("fischer 30 2", (1.4, 2)),
        ("fischer-capped 30 2 30 -1", (1.4, 2)),
        ("fischer-capped 3 5 6 -1", (2, 5)),
        ("fischer-capped 300 2 -1 1.5", (1.39, 1.5)),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_no_flag_falls_and_the_time_is_used(system: str, late: tuple[float, float], told: bool) -> None:
    times, referee = Times(OVERHEAD), Referee(system)
    assert times.named_settings(system.split(), SYSTEMS) == ""
    rng, spent = random.Random(1), list[float]()
    for move in range(150):
        if told or move:  # the first move may come before `time_left`
            times.left(0, referee.told())
        seconds = times.seconds(0)
        assert seconds is not None
        spent.append(seconds)
        referee.spend(seconds + rng.random() * OVERHEAD)
    assert late[0] <= sum(spent[-50:]) / 50 <= late[1], spent[-20:]
    assert times.seconds(1) == pytest.approx(spent[0]), "the other color's clock is as it was"


@pytest.mark.parametrize(
    ("system", "left", "expected"),
    [
        ("absolute 100", "50 0", 2),
        ("absolute 100", "50 3", 2),
        ("absolute 0", "0 0", 0.001),
        ("byoyomi 100 10 5", "50 0", 9),  # a period is there after the main time
        ("byoyomi 100 10 5", "4 0", 9),
        ("byoyomi 1000 10 5", "500 0", 20),
        ("byoyomi 100 10 5", "10 5", 9),
        ("byoyomi 100 10 5", "10 1", 9),
        ("canadian 100 30 10", "50 0", 3),
        ("canadian 100 30 10", "20 5", 4),
        ("fischer 100 10", "50 0", 2 + 8),
        ("fischer 100 10", "50 1", 2 + 8),
        ("fischer 100 10", "10 0", 5),  # half of what is left at most
        ("fischer-capped 100 10 100 -1", "95 0", 95 / 25 + 8),
        ("fischer-capped 100 10 100 -1", "100 0", 12),
        ("fischer-capped 10 10 10 -1", "10 0", 5),
        ("fischer-capped 40 10 40 -1", "40 0", 10),  # what the limit would take away
        ("fischer-capped 100 10 -1 3", "50 0", 3),
        # More time than a period has is main time.
        ("canadian 10 1 1", "11 1", 0.9),  # an increment of 1 s
        ("canadian 100 7 1", "107 1", 6.3),
        ("canadian 300 30 10", "330 10", 330 / 25),
        ("byoyomi 100 10 5", "110 5", 9),
    ],
)
def test_seconds_are_those_of_the_formula(system: str, left: str, expected: float) -> None:
    """A 25th of the rest, or of the moves until more time comes, and 0.8 of the increment."""
    times = Times(0.0)
    times.named_settings(system.split(), SYSTEMS)
    times.left(1, left.split())
    assert times.seconds(1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "expected"), [("300 0 0", 12), ("300 0 5", 12), ("0 30 0", None), ("300 30 0", None)]
)
def test_time_settings_without_stones_of_a_period_have_no_limit(words: str, expected: float | None) -> None:
    times = Times(0.0)
    times.settings(words.split())
    assert [times.seconds(color) for color in (0, 1)] == [expected] * 2


def test_new_settings_fill_both_clocks() -> None:
    for name, words in (("settings", [["300", "0", "0"]]), ("named_settings", [["absolute", "300"], SYSTEMS])):
        times = Times(0.0)
        times.settings(["1000", "0", "0"])
        for color in (0, 1):
            times.left(color, ["25", "0"])
        assert times.seconds(0) == times.seconds(1) == 1
        getattr(times, name)(*words)
        assert times.seconds(0) == times.seconds(1) == 12


def test_a_move_has_the_seconds_of_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[int, float]]()
    true = Times.seconds

    def seconds(times: Times, color: int) -> float | None:
        found = true(times, color)
        asked.append((color, math.inf if found is None else found))
        return 0.001

    monkeypatch.setattr(Times, "seconds", seconds)
    with talk_with(player="go(size=5)") as gtp:
        for command in ("kgs-time_settings byoyomi 100 10 3", "time_left w 8 2", "genmove b", "genmove w"):
            assert gtp.ask(command).startswith("=")
        for command in ("clear_board", "genmove w", "time_settings 0 1 0", "genmove b"):
            assert gtp.ask(command).startswith("=")
    assert [color for color, _ in asked] == [0, 1, 1, 0]
    assert [found for _, found in asked] == pytest.approx([9.95 * 0.9, 7.95 * 0.9, 9.95 * 0.9, math.inf])
