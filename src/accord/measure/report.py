"""What is made of the times of several workers, as figures and as a picture."""

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

_BAR_PX, _ROW_PX, _LETTER_PX = 420, 22, 7


def of(outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rate, percentiles and worst of the times, and how evenly the workers came to their turn."""
    times = sorted(time for outcome in outcomes for time in outcome["times"])
    span_s = max(outcome["ended"] for outcome in outcomes) - min(outcome["began"] for outcome in outcomes)
    rates = [len(one["times"]) / max(one["ended"] - one["began"], 1e-9) for one in outcomes]
    return {
        "operations": len(times),
        "per_second": round(len(times) / max(span_s, 1e-9), 1),
        "p50_ms": _percentile_ms(times, 50),
        "p95_ms": _percentile_ms(times, 95),
        "p99_ms": _percentile_ms(times, 99),
        "worst_ms": round(times[-1] / 1000, 3),
        "fairness": round(min(rates) / (sum(rates) / len(rates)), 2),  # the slowest against the mean
    }


def svg(rows: Sequence[dict[str, Any]]) -> str:
    """Bars of the rates, each workload by itself."""
    lines: list[str] = []
    left = 20 + _LETTER_PX * max((len(row["engine"]) for row in rows), default=0)
    y = 10
    for name in dict.fromkeys(row["workload"] for row in rows):
        some = [row for row in rows if row["workload"] == name]
        most = max(row["per_second"] for row in some) or 1.0
        lines.append(f'<text x="0" y="{y + 14}" font-weight="bold">{escape(name)}, operations a second</text>')
        y += _ROW_PX
        for row in some:
            width = _BAR_PX * row["per_second"] / most
            lines.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(row["engine"])}</text>')
            lines.append(f'<rect x="{left}" y="{y + 2}" width="{width:.0f}" height="16" fill="#4a7bb5"/>')
            label = f"{row['per_second']:,.0f}, p99 {row['p99_ms']:g} ms"
            lines.append(f'<text x="{left + width + 6:.0f}" y="{y + 14}">{label}</text>')
            y += _ROW_PX
        y += _ROW_PX // 2
    size = f'width="{left + _BAR_PX + 170}" height="{y}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(lines) + "\n</svg>\n"


def _percentile_ms(times: Sequence[int], percent: int) -> float:
    """The time within which so many of them were done."""
    return round(times[min(len(times) - 1, len(times) * percent // 100)] / 1000, 3)
