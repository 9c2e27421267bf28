"""report.html: one self-contained page that shows whether a run learns; no network, scripts or other files needed.

Made from what the run folder holds: rows of metrics.jsonl and the newest games. Writes nothing.
"""

import base64
import html
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from azpy import _core
from azpy.errors import missing_to_train
from azpy.games.lines import replayed
from azpy.reports.alarms import alarms
from azpy.reports.statistics import Searched, calibration, searched_positions

_POSITIONS = 6  # pictures of positions
_BARS = 8  # actions shown for one position
_INK, _GRID = "#333333", "#dddddd"

Rows = Sequence[Mapping[str, Any]]


def make_report(
    title: str, settings: Mapping[str, Any], rows: Rows, records: Sequence[_core.GameRecord], start: _core.State
) -> str:
    """The page, as HTML.

    Args:
        title: the run's name.
        settings: of the run, by name.
        rows: of metrics.jsonl.
        records: the games of the newest iteration.
        start: where the games begin.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    boxes = "".join(f'<p class="alarm">{html.escape(text)}</p>' for text in alarms(rows))
    positions = searched_positions(records)
    charts = "".join(_charts(rows, positions, start.num_players))
    boards = "".join(_position(records[game], ply, start) for game, ply in _telling(positions))
    table = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in settings.items()
        if value is not None
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p class="summary">{html.escape(summary(rows))}</p>
{boxes or '<p class="calm">No alarms.</p>'}
<h2>Is it learning?</h2><div class="charts">{charts}</div>
<h2>What search thought</h2>
<p>Positions of the newest games in which search changed the network's policy most, and one in which it was most
wrong about the outcome. Values are for the player to move: 1 is a win.</p>
<div class="boards">{boards}</div>
<h2>Settings</h2><table>{table}</table>
</body></html>
"""


_STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1400px;
  margin: auto; padding: 1rem }
h1 { font-size: 1.5rem; margin: 0 }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
.summary { color: #555; margin: .25rem 0 1rem }
.alarm, .calm { border-left: 4px solid #c0392b; background: #fdf0ee; padding: .5rem .75rem; margin: .4rem 0 }
.calm { border-color: #2e8b57; background: #eef8f1 }
.charts, .boards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 350px), 1fr)); gap: 1rem }
figure, .board { margin: 0; border: 1px solid #ddd; border-radius: 6px; padding: .6rem; min-width: 0 }
figure img { width: 100%; height: auto }
figcaption { font-size: .85rem; color: #555 }
.board img { display: block; max-width: 100%; max-height: 340px; margin: .5rem auto }
.board table { width: 100% }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th { font-weight: normal; text-align: left; color: #555; padding-right: 1.5rem }
td { overflow-wrap: anywhere }
.board td, .board th { padding: 1px 4px; white-space: nowrap }
.board td { text-align: right }
.board td.bar { width: 40%; padding-left: 8px }
.bar i { display: block; height: 6px; background: #2b6cb0; border-radius: 2px }
.bar i + i { background: #cbd5e0; margin-top: 1px }
.played th { font-weight: bold; color: #222 }
"""


def summary(rows: Rows) -> str:
    """How long the run was, and its newest matches, from rows of metrics.jsonl."""
    iterations = [row for row in rows if row["kind"] == "iteration"]
    text = "No iteration is done yet."
    if iterations:
        last, games = iterations[-1], sum(row["games"] for row in iterations)
        positions = sum(row["positions"] for row in iterations)
        minutes = f"{last['seconds'] / 60:.1f} minutes"
        text = f"Iteration {last['iteration']}, {minutes}, {games:,} games, {positions:,} positions."
    newest = {row["opponent"]: row for row in rows if row["kind"] == "match"}
    alone = "{score:.2f} [{low:.2f}, {high:.2f}], and {opponent} {other_outcome:.2f}"
    usual = "{score:.2f} [{low:.2f}, {high:.2f}] against {opponent}"
    scores = [(alone if row.get("players") == 1 else usual).format(**row) for row in newest.values()]
    return f"{text} Last matches: {', '.join(scores)}." if scores else text


def _charts(rows: Rows, positions: Searched, players: int) -> list[str]:
    """One figure a question."""
    iterations, matches = ([row for row in rows if row["kind"] == kind] for kind in ("iteration", "match"))

    def lines(*names: str, share: bool = False) -> Callable[[Any], None]:
        def draw(axes: Any) -> None:
            for name in names:
                drawn = [(row["iteration"], row[name]) for row in iterations if name in row]
                if drawn:
                    marker = "o" if len(drawn) == 1 else None  # a line of one point is not seen
                    axes.plot(*zip(*drawn, strict=True), marker=marker, label=name.replace("_", " "))
            if len(names) > 1 and axes.lines:
                axes.legend(frameon=False)
            if share:
                axes.set_ylim(-0.02, 1.02)

        return draw

    def strength(axes: Any) -> None:
        for opponent in dict.fromkeys(row["opponent"] for row in matches):
            met = [row for row in matches if row["opponent"] == opponent]
            at, score, low, high = ([row[name] for row in met] for name in ("iteration", "score", "low", "high"))
            if players == 1:  # its score is that of the same games, whoever else plays them
                axes.plot(at, [row["other_outcome"] for row in met], linestyle="--", label=opponent)
                if opponent != matches[0]["opponent"]:
                    continue
            label = opponent if players > 1 else "the network"
            (line,) = axes.plot(at, score, marker="o", markersize=3, label=label)
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.15)
        axes.set_ylim(-0.02 if players > 1 else -1.02, 1.02)
        if matches:
            axes.legend(frameon=False, loc="lower right")

    def calibrated(axes: Any) -> None:
        axes.plot([-1, 1], [-1, 1], color=_GRID)
        table = calibration(positions)
        if len(table):
            axes.scatter(table[:, 0], table[:, 1], s=8 + 200 * table[:, 2] / table[:, 2].sum())
        axes.set(xlabel="root value", ylabel="outcome", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))

    fitted = lines("policy_loss", "value_loss")
    entropies = lines("policy_entropy", "search_entropy", "search_gain")
    speeds = lines("simulations_per_second", "evaluations_per_second")
    times = lines("share_growing", "share_evaluating", "share_fitting", "share_matches")
    varied = lines("openings", "duplicates", share=True)
    knows = "New games. Explained variance: share of the outcomes' variance that root values explain; a constant has "
    knows += "0. Value spread: standard deviation of the root values."
    scored = f"Score against each opponent, with its 95 % interval; {1 / players:.2g} is even."
    if players == 1:
        scored = "Mean scores on the same games, that of the network with its 95 % interval."
    outcomes = "Outcomes", "Share of draws, and what seat 0 scores.", lines("draws", "first_seat_score", share=True)
    if players == 1:
        scores = lines("mean_score", "best_score", "score_to_beat")
        outcomes = "Scores", "As the game pays them: from -1 to 1. Games are won above the score to beat.", scores
    charts = (
        ("Strength", scored, strength),
        ("Losses", "Cross-entropy of the policy in nats, squared error of the value.", fitted),
        ("Value calibration", "Newest games: mean outcome by root value; size is the share of positions.", calibrated),
        ("Policy entropy", "In nats: of the network, of its target, and their KL divergence (search gain).", entropies),
        outcomes,
        ("Game length", "Mean plies of a game.", lines("mean_plies")),
        ("Variety", "Shares of the games: different openings, repeated games.", varied),
        ("What the value knows", knows, lines("explained_variance", "value_spread")),
        ("Speed", "Simulations and evaluations a second in self-play.", speeds),
        ("Where the time went", "Shares of an iteration: growing trees, evaluating leaves, fitting, matches.", times),
    )
    return [_figure(title, caption, draw) for title, caption, draw in charts]


def _figure(title: str, caption: str, draw: Callable[[Any], None]) -> str:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_to_train("matplotlib") from error
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.size": 9, "text.color": _INK}):
        figure = Figure(figsize=(4.6, 2.9))
        # Wide enough for ticks of seven digits; a layout that measures them takes as long as everything else.
        axes = figure.add_axes((0.15, 0.16, 0.82, 0.73))
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("iteration")
        axes.grid(color=_GRID, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f"<figure>{_inline(buffer.getvalue(), title)}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _inline(svg: bytes, alternative: str) -> str:
    picture = base64.b64encode(svg).decode()
    return f'<img alt="{html.escape(alternative)}" src="data:image/svg+xml;base64,{picture}">'


def _telling(positions: Searched) -> list[tuple[int, int]]:
    """(game, ply) of the position most wrong about the outcome, and of those that search changed most: one a game."""
    order = [*np.argsort(-abs(positions.value - positions.result))[:1], *np.argsort(-positions.search_gain)]
    chosen: dict[int, int] = {}
    for index in order:
        chosen.setdefault(int(positions.game[index]), int(positions.ply[index]))
    return list(chosen.items())[:_POSITIONS]


def _position(record: _core.GameRecord, ply: int, start: _core.State) -> str:
    *_, state = replayed(start, record.actions[:ply].tolist())
    begin, end = record.offsets[ply : ply + 2]
    share, priors, legal = (array[begin:end] for array in (record.targets, record.priors, record.legal))
    result = record.outcomes[record.players[ply]]
    outcome = "won" if result > 0 else "lost" if result < 0 else "drew"
    if not start.zero_sum:
        outcome = f"{result:+.2f}" + (f", to beat {beat:+.2f}" if (beat := record.score_to_beat) is not None else "")
    lines = [
        f"<tr{' class=played' if legal[i] == record.actions[ply] else ''}>"
        f"<th>{html.escape(state.action_name(int(legal[i])))}</th><td>{share[i]:.0%}</td><td>{priors[i]:.0%}</td>"
        f'<td class="bar"><i style="width:{100 * share[i]:.0f}%"></i>'
        f'<i style="width:{100 * priors[i]:.0f}%"></i></td></tr>'
        for i in np.argsort(-share, kind="stable")[:_BARS]
    ]
    return (
        f'<div class="board"><b>Game {record.game_id}, ply {ply}</b>, player {record.players[ply]} to move: value '
        f"{record.root_values[ply]:+.2f}, in the end {outcome}{_inline(state.to_svg().encode(), str(state))}<table>"
        "<thead><tr><th>action</th><th>search</th><th>network</th><th></th></tr></thead>"
        f"{''.join(lines)}</table></div>"
    )
