"""One sentence on what to change when a run spends its time badly. A pure function; it measures and prints nothing."""

from collections.abc import Mapping, Sequence

from azpy.games.names import name_of
from azpy.settings.run import CPU_BATCH, Settings

_MOST = 0.6  # of self-play
_SOME_PLAY = 0.3  # of all time: below it nothing is said about self-play
_HALF_FULL = 0.5
_IDLE = 0.2  # of a lone pipeline's time that its device waits
_TOO_MUCH = {  # stage -> its largest share of all time, and what to do about more
    "writing": (0.1, "the disk, or the whole machine, is slow: put the run folder on another one with --out"),
    "fitting": (0.5, "fitting takes more than half of the time: give fewer --passes (now {0.passes:g})"),
    "exporting": (0.3, "exports take long: give a larger --games-per-iteration (now {0.games_per_iteration})"),
    "matches": (
        0.3,
        "matches take long: give fewer --match-games (now {0.match_games}) or a larger --match-every "
        "(now {0.match_every})",
    ),
}


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
    for stage, (most, text) in _TOO_MUCH.items():
        if metrics[f"share_{stage}"] > most:
            return text.format(settings)
    playing = metrics["share_growing"] + metrics["share_evaluating"]
    if playing < _SOME_PLAY:
        return None
    evaluating = metrics["share_evaluating"] / playing
    # Where the trees are the limit, larger batches win nothing. Half of a CPU's batch costs it little.
    if "batch_fill" in metrics and evaluating >= 0.5 and (own_device or metrics["batch_rows"] < CPU_BATCH / 2):
        if metrics["batch_fill"] < _HALF_FULL:
            return f"batches are less than half full: give more --slots (now {settings.slots})"
        if not own_device:  # how many rows a device needs is not known here
            # In a deterministic run another --eval-batch would be other games.
            leaves = "" if settings.deterministic else f" or a larger --eval-batch (now {settings.eval_batch})"
            return f"batches are small for the network: give more --slots (now {settings.slots}){leaves}"
    if own_device and settings.pipelines == 1 and evaluating < 1 - _IDLE:
        return "the device waits while the trees grow: --pipelines 2"
    if not own_device and settings.pipelines < cores and evaluating > 1 / 3:
        # A pipeline's network runs on one core; the trees of one pipeline grow on all.
        return f"each pipeline's network runs on one core, and there are {cores}: --pipelines {cores}"
    if evaluating > _MOST and own_device:
        return "the trees wait for the device: a smaller --network, or a faster device"
    if evaluating > _MOST:
        int8 = "--precision auto, " if settings.precision == "fp32" and not settings.deterministic else ""
        return f"the network takes most of self-play: {int8}a smaller --network, or a GPU"
    if evaluating < 1 - _MOST:
        waits = "the device waits for the trees" if own_device else "growing the trees takes most of self-play"
        if ":" in name_of(settings.game):  # module:Class or open_spiel:NAME: asked with the GIL held
            return f"{waits}: the game's Python code runs on one core; write it in Rust (docs/own_game.md)"
        return f"{waits}: more cores"
    return None
