"""What a hub counts, as Prometheus reads it."""

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from accord import __version__

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

# What goes up and down. Whatever else the hub tells only ever grows.
_GAUGES = {
    "uptime_s": ("uptime_seconds", "for how long the hub has run"),
    "threads": ("threads", "threads of the hub"),
    "in_progress": ("in_progress", "what was asked and is not done yet"),
    "listeners": ("listeners", "who listens to mail or to events"),
}
_COUNTERS = {
    "commits": "groups of changes that were written together",
    "changes": "changes that were asked for",
    "requests": "requests of JSON-RPC, by any door",
    "pushed": "messages and events that were pushed to listeners",
    "refused": "connections and requests that were refused",
    "malformed": "messages that could not be read",
    "failures": "what should never happen",
    "http_requests": "requests by HTTP, refused ones too",
}


def exposition(statistics: dict[str, Any]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Statistics(statistics))
    return generate_latest(registry)


class _Statistics:
    """Values that were counted elsewhere."""

    def __init__(self, statistics: dict[str, Any]) -> None:
        self._statistics = statistics

    def collect(self) -> Iterable[Metric]:
        version = GaugeMetricFamily("accord_hub_info", "the hub's version", labels=["version"])
        version.add_metric([__version__], 1)
        yield version
        for key, (name, help) in _GAUGES.items():
            yield GaugeMetricFamily(f"accord_hub_{name}", help, value=self._statistics[key])
        for key in sorted(_COUNTERS.keys() | self._statistics.keys() - _GAUGES.keys()):
            help = _COUNTERS.get(key, key)
            yield CounterMetricFamily(f"accord_hub_{key}", help, value=self._statistics.get(key, 0))
