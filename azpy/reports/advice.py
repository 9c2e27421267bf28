"""What the metrics of a run warn of, and what to change where its time is spent badly: in words, from rows alone."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from azpy.games.names import name_of
from azpy.settings.run import CPU_BATCH, Settings

_RECENT = 3  # iterations that a sign must last
_YOUNG = 10  # iterations after which a player should beat a random one
_SEAT = (
    "Seat 0 always {} (it scores {{first_seat_score:.2f}}). That is right for a solved game. Otherwise check whose "
    "view the outcome and the observation have, or add opening plies."
)
# The range of each metric in which there is a sign, and the sentence.
_SIGNS: tuple[tuple[dict[str, tuple[float, float]], str], ...] = (
    (
        {"value_spread": (0.0, 0.05), "draws": (0.0, 0.9)},  # where all is drawn, 0 is right
        "Value collapse: the values of searched positions differ by only {value_spread:.3f} (standard deviation), "
        "although games are won and lost. Check the learning rate, and whose view outcome and observation have.",
    ),
    (
        {"predicted_draws": (0.95, 1.0), "draws": (0.0, 0.97)},
        "The value predicts draws: {predicted_draws:.0%} on average, although only {draws:.0%} of the games are drawn. "
        "Give wins and losses more weight: try --decisive-weight 3 --value-smoothing 0.15.",
    ),
    (
        {"explained_variance": (-math.inf, -0.05), "draws": (0.0, 0.9)},  # few wins vary too little to be explained
        "The value misleads: a constant would predict new outcomes better (explained variance "
        "{explained_variance:.2f}). The network may have memorized a few games. Try fewer passes, more games per "
        "iteration or a longer window.",
    ),
    (
        {"draws": (0.98, 1.0)},
        "All draws: {draws:.0%} of the games. That is right for a strong player of a drawn game. Otherwise check the "
        "outcome, or add opening plies.",
    ),
    (
        {"search_gain": (0.0, 0.003)},
        "The policy no longer moves: search changes it by only {search_gain:.4f} nats. Try more simulations, more root "
        "noise or more varied openings.",
    ),
    (
        {"duplicates": (0.2, 1.0)},
        "Duplicate games: {duplicates:.0%} of the games repeat an earlier one of their iteration. Add opening plies, "
        "temperature plies or root noise.",
    ),
    ({"first_seat_score": (0.97, 1.0)}, _SEAT.format("wins")),
    ({"first_seat_score": (0.0, 0.03)}, _SEAT.format("loses")),
)
_NAMES = {"random": "a random player", "untrained": "an untrained network"}
_NAMES |= {"mcts-100": "plain search with 100 rollouts", "mcts-1000": "plain search with 1,000 rollouts"}
_MOST = 0.6  # of self-play
_SOME_PLAY = 0.3  # of all time: below it nothing is said about self-play
_HALF_FULL = 0.5
_IDLE = 0.2  # of a lone pipeline's time that its device waits
_TOO_MUCH = {  # stage -> its largest share of all time, and what to do about more
    "writing": (0.1, "writing takes long: put the run folder on a faster disk with --out"),
    "fitting": (0.5, "fitting takes more than half of the time: try fewer --passes (now {0.passes:g})"),
    "exporting": (0.3, "exports take long: try a larger --games-per-iteration (now {0.games_per_iteration})"),
    "matches": (0.3, "matches take long: try a larger --match-every or fewer --match-games"),
}


# What is said of a match, by whether the whole interval and the score are above an even one (1) or below it (-1).
_STANDINGS = {
    (1, 1): ("beats", ""),
    (0, 1): ("is ahead of", ", which may be luck"),
    (0, 0): ("is level with", ""),
    (0, -1): ("is behind", ", which may be luck"),
    (-1, -1): ("loses to", ""),
}


def verdict(rows: Sequence[Mapping[str, Any]], game: str) -> str:
    """Say in words how strong the newest network is, whether the run learns, and if not, what to try.

    A run learns if its network beats an untrained one, or scores more than in its first match, by the whole 95 %
    interval. It does not learn if that interval shows that it hardly beats the untrained one.

    Args:
        rows: of metrics.jsonl.
        game: its name, for the commands to try.
    """
    if certificates := [row for row in rows if row["kind"] == "exploitability"]:
        found, uniform = (certificates[-1][name] for name in ("exploitability", "uniform"))
        if found < uniform:
            return f"A best response wins {found / uniform:.0%} of what it wins against uniform play: it learns."
        return "A best response wins more against it than against uniform play: give it more --minutes."
    matches = [row for row in rows if row["kind"] == "match"]
    done = max((row["iteration"] for row in rows if row["kind"] == "iteration"), default=0)
    if not matches:
        return "It is too early to tell whether it learns: no match is played yet."
    first = {row["opponent"]: row for row in reversed(matches)}
    newest = {row["opponent"]: row for row in matches if row["iteration"] == matches[-1]["iteration"]}
    said, untrained = _compared(newest), newest.get("untrained")
    lead = ". ".join(reversed(said))
    if not done:
        return f"It has not learned from its own games yet. {lead}."
    if any(_rises(first[name], row) for name, row in newest.items()) or (untrained and _stands(untrained) > 0):
        return ". ".join([f"{said[0]}: it learns", *said[1:]]) + "."
    drawn = untrained and untrained.get("draws", 0) > untrained.get("wins", 0) + untrained.get("losses", 0)
    if not untrained or drawn or not _hardly_beats(untrained):
        return f"{lead}. These matches cannot tell yet whether it learns."
    advice = "Try what the warnings say." if alarms(rows) else f"Give it more --minutes, or run az-check-game {game}."
    return f"{lead}: it does not learn{' yet' if done < _YOUNG else ''}. {advice}"


def _compared(newest: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The newest match against each opponent in sentences without a full stop; the best results come first."""
    named = [(_NAMES.get(name, name), row) for name, row in newest.items()]
    players = named[0][1].get("players", 2)
    if players == 1:
        scores = [f"{name} {row['other_outcome']:+.2f}" for name, row in named]
        return [f"On the same games it scores {named[0][1]['score']:+.2f}, {_listed(scores)}"]
    said, copies = list[str](), f"{players - 1} copies of " if players > 2 else ""
    for stands, (verb, unsure) in _STANDINGS.items():
        met = [
            f"{copies}{name} ({_counted(row)})"
            for name, row in named
            if (_stands(row), _stands(row, "score", "score")) == stands
        ]
        said += [f"It {verb} {_listed(met)}{unsure}"] if met else []
    return said + ([f"One win in {players} is even"] if players > 2 else [])


def _rises(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the 95 % interval of the difference of two scores is above 0 (Newcombe 1998, method 10)."""
    return bool(new["score"] - old["score"] > math.hypot(new["score"] - new["low"], old["high"] - old["score"]))


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def _counted(row: Mapping[str, Any]) -> str:
    """The games of a match: "40-0" if one side won all, else "31 of 36 with 2 draws"."""
    wins, draws, losses = (row.get(name, 0) for name in ("wins", "draws", "losses"))
    if not wins + draws + losses:
        return f"a score of {row['score']:.2f}"
    if not draws and not (wins and losses):
        return f"{wins}-{losses}"
    return f"{wins} of {wins + draws + losses}" + (f" with {draws} draw{'s' * (draws > 1)}" if draws else "")


def _stands(row: Mapping[str, Any], low: str = "low", high: str = "high") -> int:
    """Whether the network is stronger (1), weaker (-1) or neither (0), by the whole interval or by other figures."""
    players, alone = row.get("players", 2), "difference_" if row.get("players") == 1 else ""
    even = 0.0 if alone else 1 / players
    return int(row[f"{alone}{low}"] > even) - int(row[f"{alone}{high}"] < even)


def alarms(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the last iterations and matches of a run warn of.

    Args:
        rows: of metrics.jsonl.

    Returns:
        One sentence an alarm, with the figure and what it may mean; empty when nothing looks wrong.
    """
    recent = [row for row in rows if row["kind"] == "iteration"][-_RECENT:]
    found = []
    for ranges, text in _SIGNS if len(recent) == _RECENT else ():
        # One player draws no game, and its rows do not say so.
        told = [{"draws": 0.0} | dict(row) for row in recent]
        tests = [(row.get(name, math.nan), *ends) for row in told for name, ends in ranges.items()]
        if all(low <= value <= high for value, low, high in tests):
            found.append(text.format(**recent[-1]))
    matches = [row for row in rows if row["kind"] == "match"]
    for opponent in dict.fromkeys(row["opponent"] for row in matches):
        met = [row for row in matches if row["opponent"] == opponent]
        last, best = met[-1], max(met, key=lambda row: float(row["low"]))
        if opponent == "random" and last["iteration"] >= _YOUNG and _hardly_beats(last):
            found.append(
                f"It hardly beats a random player: {last['score']:.2f} after iteration {last['iteration']}. Check the "
                "game: whose view its observation and outcome have, and whether its key tells positions apart."
            )
        if last.get("players") == 1 and opponent != matches[0]["opponent"]:
            continue  # its score is the same, whoever else plays these games
        if last["high"] < best["low"]:
            found.append(
                f"Weaker than it was: {last['score']:.2f} against {opponent} after iteration {last['iteration']}, "
                f"{best['score']:.2f} after iteration {best['iteration']}. Try a smaller learning rate or a longer "
                "window. The older checkpoint may still be there."
            )
    return found


def _hardly_beats(row: Mapping[str, Any]) -> bool:
    """Whether a match shows that the run's player is not 191 Elo stronger; with one player, that it is no better."""
    players = row.get("players", 2)
    if players == 1:
        return float(row["difference_high"]) <= 0
    if "players" in row and not row["wins"] + row["losses"]:
        return False  # all always get the same: nobody beats anybody
    return bool(row["high"] < 3 / (2 + players))


def advise(
    settings: Settings, rows: Sequence[Mapping[str, float]], cores: int, *, own_device: bool = False
) -> str | None:
    """What to change first, if anything stands out.

    The sentence holds settings but no measured number, so it changes only when the advice does.

    Args:
        settings: of the run.
        rows: of some iterations: the shares of `TimeShares`, and `batch_rows` (a batch, on average) and `batch_fill`
            where games were played. Matches and slow writes come with one iteration and are spread over all.
        cores: of this machine.
        own_device: whether the network runs on a device of its own; if not, on the cores that also grow the trees.

    Returns:
        One sentence, or None.
    """
    names = set.intersection(*(set(row) for row in rows))
    metrics = {name: sum(row[name] for row in rows) / len(rows) for name in names}
    # The last row is printed beside the advice, so it has to show the same thing.
    shares = {stage: min(metrics[f"share_{stage}"], rows[-1][f"share_{stage}"]) for stage in _TOO_MUCH}
    if over := [stage for stage, (most, _) in _TOO_MUCH.items() if shares[stage] > most]:
        return _TOO_MUCH[max(over, key=shares.__getitem__)][1].format(settings)
    playing = metrics["share_growing"] + metrics["share_evaluating"]
    others = max(row[f"share_{stage}"] for row in (metrics, rows[-1]) for stage in _TOO_MUCH)
    if min(playing, rows[-1]["share_growing"] + rows[-1]["share_evaluating"]) < max(_SOME_PLAY, others):
        return None
    evaluating = metrics["share_evaluating"] / playing
    # Where the trees are the limit, larger batches win nothing. Half of a CPU's batch costs it little.
    if "batch_fill" in metrics and evaluating >= 0.5 and (own_device or metrics["batch_rows"] < CPU_BATCH / 2):
        if metrics["batch_fill"] < _HALF_FULL:
            return f"batches are less than half full: try more --slots (now {settings.slots})"
        if not own_device:  # how many rows a device needs is not known here
            # In a deterministic run another --eval-batch would be other games.
            leaves = "" if settings.deterministic else f" or a larger --eval-batch (now {settings.eval_batch})"
            return f"batches are small for the network: try more --slots (now {settings.slots}){leaves}"
    if own_device and settings.pipelines == 1 and evaluating < 1 - _IDLE:
        return "the device waits while the trees grow: try --pipelines 2"
    if not own_device and settings.pipelines < cores and evaluating > 1 / 3:
        # A pipeline's network runs on one core; the trees of one pipeline grow on all.
        return f"each pipeline's network uses one core of {cores}: try --pipelines {cores}"
    if evaluating > _MOST and own_device:
        return "the trees wait for the device: try a smaller --network or a faster device"
    if evaluating > _MOST:
        int8 = "--precision auto, " if settings.precision == "fp32" and not settings.deterministic else ""
        return f"the network takes most of self-play: try {int8}a smaller --network, or a GPU"
    if evaluating < 1 - _MOST:
        waits = "the device waits for the trees" if own_device else "growing the trees takes most of self-play"
        if ":" in name_of(settings.game):  # module:Class or open_spiel:NAME: asked with the GIL held
            return (
                f"{waits}: the game's Python code runs on one core, so write it in Rust (docs/start/own_game_rust.md)"
            )
        return f"{waits}: try more cores"
    return None
