"""report.html: one page that says in words and in charts whether a run learns. It sends no requests."""

import html
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from azpy import _core
from azpy.games.names import must_be_typed
from azpy.reports.advice import alarms, verdict
from azpy.reports.game_picture import replay
from azpy.reports.statistics import searched_positions
from azpy.settings.toml import path_argument

_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 350, 10, 170  # of a chart's axes, in units of its picture

Rows = Sequence[Mapping[str, Any]]
Points = Sequence[tuple[int, float, float, float]]  # iteration, value, lower and upper end of its interval


def make_report(
    path: str, settings: Mapping[str, Any], rows: Rows, records: Sequence[_core.GameRecord], start: _core.State
) -> str:
    """Return the page as HTML.

    Args:
        path: of the run folder.
        settings: of the run, by name.
        rows: of metrics.jsonl.
        records: the games of the newest iteration.
        start: where the games begin.
    """
    game = str(settings["game"])
    title, run = html.escape(f"{game}: {path}"), shlex.quote(path_argument(path))
    typed = f" --game {shlex.quote(game)}" if must_be_typed(game) else ""
    play = f"Play against it: <code>{html.escape(f'az-play {run}{typed}')}</code>"
    measure = html.escape(f"az-match {run} {'random' if start.hides else 'mcts:1000'}{typed}")
    warnings = "".join(f'<p class="alarm">{html.escape(text)}</p>' for text in alarms(rows))
    positions, charts = searched_positions(records), _charts(rows, start.num_players)
    if len(positions.game):
        shown = records[positions.game[np.argmax(positions.search_gain)]]
        about = "Of the newest games, the one where search changed the network's policy most."
        steps = replay(start, shown).to_html()
        charts.insert(2, f'<div><b>Game {shown.game_id}</b><p class="quiet">{about}</p>{steps}</div>')
    table = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in settings.items()
        if value is not None
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_STYLE}</style></head><body>
<h1>{title}</h1>
<p class="verdict">{html.escape(verdict(rows, game))}</p>
<p class="quiet">{html.escape(summary(rows))}</p>
{warnings or '<p class="calm">No alarms.</p>'}
<p>{play} Measure it: <code>{measure}</code></p>
<div class="charts">{"".join(charts)}</div>
<details><summary>Settings</summary><table>{table}</table></details>
</body></html>
"""


_STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --quiet: #536173; --line: #d5dbe3; --paper: #fff; --warn: #b42318;
  --calm: #14733c; --c0: #1d4ed8; --c1: #c2410c; --c2: #0f766e; --c3: #86198f }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --quiet: #a9b4c2; --line: #39434f; --paper: #1b2129;
  --warn: #ff9d90; --calm: #5fcf8f; --c0: #8fb0ff; --c1: #ffa270; --c2: #4fc7b8; --c3: #e59bf0 }
  img { filter: brightness(.88) } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1200px;
  margin: auto; padding: 1rem } h1, .verdict { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere }
.verdict { font-size: 1.3rem; margin: .3rem 0 } p { margin: .4rem 0 }
.quiet, figcaption, th, output { color: var(--quiet); font-size: .85rem }
.alarm, .calm { border-left: 4px solid var(--warn); padding-left: .75rem } .calm { border-color: var(--calm) }
code { border: 1px solid var(--line); border-radius: 4px; padding: 0 .3rem; margin-right: .8rem; display: inline-block }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); gap: 1rem;
  margin-top: 1rem } figure { margin: auto } .charts > div { grid-row: span 2 }
.charts > * { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .6rem; min-width: 0 }
svg { display: block; width: 100%; font-size: 11px; fill: var(--quiet); stroke-linecap: round }
summary { font-weight: bold; margin: 1rem 0; cursor: pointer } table { border-collapse: collapse; font-size: .85rem }
th { font-weight: normal; text-align: left; padding-right: 1.5rem } td { overflow-wrap: anywhere }
"""


def summary(rows: Rows) -> str:
    """How long the run was, and its newest matches, from rows of metrics.jsonl."""
    iterations = [row for row in rows if row["kind"] == "iteration"]
    text = "No iteration is done yet."
    if iterations:
        games, positions = (sum(row[name] for row in iterations) for name in ("games", "positions"))
        minutes = f"{iterations[-1]['seconds'] / 60:.1f} minutes"
        text = f"Iteration {iterations[-1]['iteration']}, {minutes}, {games:,} games, {positions:,} positions."
    if certificates := [row for row in rows if row["kind"] == "exploitability"]:
        return f"{text} {exploitability(certificates[-1]).capitalize()}."
    newest = {row["opponent"]: row for row in rows if row["kind"] == "match"}
    alone = "{score:.2f} [{low:.2f}, {high:.2f}], and {opponent} {other_outcome:.2f}"
    usual = "{score:.2f} [{low:.2f}, {high:.2f}] against {opponent}"
    scores = [(alone if row.get("players") == 1 else usual).format(**row) for row in newest.values()]
    return f"{text} Last matches: {', '.join(scores)}." if scores else text


def exploitability(row: Mapping[str, Any]) -> str:
    """A row of metrics.jsonl in words."""
    unit = f" {row['unit']}" if row["unit"] else ""
    return f"exploitability {row['exploitability']:.3f}{unit}; uniform play {row['uniform']:.3f}"


def _charts(rows: Rows, players: int) -> list[str]:
    """One figure a question."""
    iterations, matches = ([row for row in rows if row["kind"] == kind] for kind in ("iteration", "match"))

    def curve(rows: Rows, value: str, low: str, high: str) -> Points:
        return [(row["iteration"], row[value], row[low], row[high]) for row in rows if value in row]

    def lines(*names: str) -> dict[str, Points]:
        return {name.replace("_", " "): curve(iterations, name, name, name) for name in names}

    met = {row["opponent"]: [one for one in matches if one["opponent"] == row["opponent"]] for row in matches}
    strength = {opponent: curve(own, "score", "low", "high") for opponent, own in met.items()}
    scored, least = f"Score against each opponent with its 95 % interval. {1 / players:.2g} is even.", 0
    outcomes = "Outcomes", "Share of draws, and what the first player scores.", lines("draws", "first_seat_score"), 0, 1
    if players == 1:  # its score is that of the same games, whoever else plays them
        own = next(iter(strength.values()), [])
        strength = {opponent: curve(rows, *["other_outcome"] * 3) for opponent, rows in met.items()}
        strength = {"the network": own} | strength
        scored, least = "Mean scores on the same games, that of the network with its 95 % interval.", -1
        scores = lines("mean_score", "best_score", "score_to_beat")
        outcomes = "Scores", "From -1 to 1. A game above the score to beat is won.", scores, -1, 1
    strong = "Strength", scored, strength, least, 1
    if certificates := [row for row in rows if row["kind"] == "exploitability"]:
        unit = certificates[0]["unit"] or "units of the outcome"
        about = f"What a best response wins a game on average, in {unit}; an equilibrium has 0."
        named = {"the network": "exploitability", "uniform play": "uniform"}
        curves = {name: curve(certificates, *[figure] * 3) for name, figure in named.items()}
        strong = "Exploitability", about, curves, 0, 0
    knows = "How well root values explain new outcomes: 1 is exact, 0 no better than a constant."
    entropies = "Entropy of the network's policy and of the search's, and how far search moves it (gain), in nats."
    return [
        _chart(*strong),
        _chart("What the value knows", knows, lines("explained_variance")),
        _chart("Losses", "Policy: cross-entropy in nats. Value: squared error.", lines("policy_loss", "value_loss")),
        _chart("Policy", entropies, lines("policy_entropy", "search_entropy", "search_gain")),
        _chart(*outcomes),
        _chart("Game length", "Mean plies of a game.", lines("mean_plies")),
    ]


def _chart(title: str, caption: str, curves: Mapping[str, Points], low: float = 0, high: float = 0) -> str:
    """A figure of curves over the iterations, whose axis holds `low`, `high` and every value."""
    curves = {name: points for name, points in curves.items() if points}
    every = [point for points in curves.values() for point in points]
    across = _ticks(0, max((point[0] for point in every), default=0), 1)
    up = _ticks(min([low, *(point[2] for point in every)]), max([high, *(point[3] for point in every)]), 0.05)

    def place(at: float, value: float) -> tuple[float, float]:
        above = (value - up[0]) / (up[-1] - up[0])
        return _LEFT + (_RIGHT - _LEFT) * at / across[-1], _BOTTOM - (_BOTTOM - _TOP) * above

    parts, legend = list[str](), list[str]()
    for tick in up:
        y = place(0, tick)[1]
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="var(--line)"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in across:
        x = place(tick, 0)[0]
        parts.append(f'<text x="{x:.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for number, (name, points) in enumerate(curves.items()):
        color = f"var(--c{number % 4})"
        line, lower, upper = (
            " ".join("{:.1f},{:.1f}".format(*place(point[0], point[which])) for point in points[::order])
            for which, order in ((1, 1), (2, 1), (3, -1))
        )
        parts.append(f'<polygon points="{lower} {upper}" fill="{color}" opacity=".13"/>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<path d="M{line.replace(" ", "h0M")}h0" stroke="{color}" stroke-width="5"/>')  # dots
        legend.append(f'<span style="color:{color}">&#9632;</span> {html.escape(name)}')
    return (
        f'<figure><b>{title}</b><svg viewBox="0 0 360 206" role="img" aria-label="{title}">{"".join(parts)}'
        f'<text x="{_RIGHT}" y="{_BOTTOM + 32}" text-anchor="end">iteration</text></svg>'
        f"<figcaption><div>{' '.join(legend * (len(legend) > 1))}</div>{html.escape(caption)}</figcaption></figure>"
    )


def _ticks(low: float, high: float, least: float) -> list[float]:
    """Round numbers, `least` or more apart, from at most `low` to at least `high`."""
    wanted = max((high - low) / 4, least)
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= wanted * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * number for number in range(first, max(last, first + 1) + 1)]
