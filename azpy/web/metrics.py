"""Metrics for Prometheus: counts since the start, and response times. They contain no client text."""

from collections.abc import Iterator, Mapping

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from azpy.serving.models import PlayerEngine

_BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # seconds
_ENGINE = {  # of `Engine.stats`
    "requests": "searches requested",
    "finished": "searches answered",
    "failed": "searches that failed",
    "cancelled": "searches cancelled",
    "late": "searches answered after their time limit",
    "simulations": "simulations",
    "evaluations": "answers of the network",
    "cache_hits": "answers of the cache",
    "batches": "calls of the network",
}
# Leave out the creation time of each count: the start of the process tells it.
prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Collector):
    """Counts and times of one server with these players. Any thread may call all methods.

    Attributes:
        queries: queries and actions that came, by `transport`.
        refused: requests and queries that were refused, by `reason`. Both labels are fixed words.
        seconds: from a query to the answer of a search.
        connections: open WebSockets.
        ready: 1 while queries are taken.
    """

    def __init__(self, models: Mapping[str, PlayerEngine]) -> None:
        self._models = models
        self._registry = every = prometheus.CollectorRegistry()
        self.ready = prometheus.Gauge("azpy_ready", "1 while the server accepts queries", registry=every)
        self.connections = prometheus.Gauge("azpy_connections", "open WebSockets", registry=every)
        came, refused = "queries and actions received", "requests and queries refused"
        self.queries = prometheus.Counter("azpy_queries", came, ["transport"], registry=every)
        self.refused = prometheus.Counter("azpy_refused", refused, ["reason"], registry=every)
        asked = "from a query to the answer of a search, by POST and WebSocket"
        self.seconds = prometheus.Histogram("azpy_search_seconds", asked, buckets=_BOUNDS, registry=every)
        every.register(self)

    def collect(self) -> Iterator[Metric]:
        """The figures of each player's engine."""
        stats = {name: model.engine.stats for name, model in self._models.items()}
        for name, about in _ENGINE.items():
            family = CounterMetricFamily(f"azpy_{name}", about, labels=["model"])
            for model in stats:
                family.add_metric([model], stats[model][name])
            yield family
        still = GaugeMetricFamily("azpy_open_searches", "searches not answered yet", labels=["model"])
        for model in stats:
            still.add_metric([model], stats[model]["open"])
        yield still

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return prometheus.generate_latest(self._registry)
