"""What Prometheus reads: counts since the start, and how long answers took. No text of a client is in it."""

import bisect
import threading
from collections import Counter
from collections.abc import Mapping

from azpy.serving.models import Model

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # seconds
_ENGINE = {  # of `Engine.stats`
    "requests": "searches that were asked for",
    "finished": "searches that were answered",
    "failed": "searches that failed",
    "cancelled": "searches that were cancelled",
    "late": "searches that were answered after their time",
    "simulations": "simulations",
    "evaluations": "answers of the network",
    "cache_hits": "answers of the cache",
    "batches": "calls of the network",
}


class Metrics:
    """Counts and times of one server. Any thread may call all methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0
        self.connections = 0

    def count(self, name: str, label: str) -> None:
        """Counts one more of `name`: "queries" by transport, or "refused" by reason. Labels are fixed words."""
        with self._lock:
            self._counts[name, label] += 1

    def answered(self, seconds: float) -> None:
        """Notes how long a search took, from its query to its answer."""
        with self._lock:
            self._buckets[bisect.bisect_left(_BOUNDS, seconds)] += 1
            self._seconds += seconds

    def text(self, models: Mapping[str, Model], ready: bool) -> str:
        """All figures in Prometheus' text format, version 0.0.4."""
        with self._lock:
            counts, buckets, seconds = dict(self._counts), list(self._buckets), self._seconds
        lines = [
            *_family("azpy_ready", "gauge", "1 while queries are taken", {"": int(ready)}),
            *_family("azpy_connections", "gauge", "open WebSockets", {"": self.connections}),
        ]
        for name, key, about in (
            ("queries", "transport", "queries and actions that came"),
            ("refused", "reason", "requests and queries that were refused"),
        ):
            found = {f'{key}="{label}"': value for (which, label), value in sorted(counts.items()) if which == name}
            lines += _family(f"azpy_{name}_total", "counter", about, found)
        stats = {f'model="{_escaped(name)}"': model.engine.stats for name, model in models.items()}
        for name, about in _ENGINE.items():
            lines += _family(f"azpy_{name}_total", "counter", about, {one: stats[one][name] for one in stats})
        still = {one: stats[one]["open"] for one in stats}
        lines += _family("azpy_open_searches", "gauge", "searches that are not answered yet", still)
        lines += [
            "# HELP azpy_search_seconds from a query to the answer of a search, by POST and WebSocket",
            "# TYPE azpy_search_seconds histogram",
        ]
        below = 0
        for bound, number in zip([*_BOUNDS, "+Inf"], buckets, strict=True):
            below += number
            lines.append(f'azpy_search_seconds_bucket{{le="{bound}"}} {below}')
        return "\n".join([*lines, f"azpy_search_seconds_sum {seconds}", f"azpy_search_seconds_count {below}", ""])


def _family(name: str, kind: str, about: str, samples: Mapping[str, float]) -> list[str]:
    """One metric: its samples by their labels."""
    found = [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in samples.items()]
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *found]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
