"""Draws what a story's watcher has seen, as an SVG picture without any library."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Sequence

WIDTH, LEFT, RIGHT, TOP = 1180, 86, 24, 64
PANEL, GAP = 150, 46
INK, FAINT, HOME, AWAY, WAITING = "#1d2733", "#d7dde4", "#2f7d6d", "#d9822b", "#b8c2cc"
OPEN = "#fdf1e2"


@dataclasses.dataclass
class Sample:
    """One look at everything. Times in seconds since the beginning, money in dollars."""

    at: float
    home: int  # Ready pods of the service at home
    away: int  # on the rented node
    waiting: int  # neither
    free: int  # GPUs at home
    is_open: bool  # the gate
    burn: float  # per hour
    bill: float  # so far


@dataclasses.dataclass
class Mark:
    """Something that a step did."""

    at: float
    text: str


class _Panel:
    def __init__(self, top: float, title: str, highest: float, end: float) -> None:
        self.top, self.title, self.end = top, title, end
        self.highest = max(highest, 1e-9) * 1.08

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at / self.end

    def y(self, value: float) -> float:
        return self.top + PANEL * (1 - value / self.highest)

    def frame(self) -> str:
        out = text(LEFT, self.top - 9, self.title, weight="600")
        for part in (0.0, 0.5, 1.0):
            value = self.highest / 1.08 * part
            y = self.y(value)
            out += f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{FAINT}"/>'
            label = f"{value:.0f}" if self.highest >= 4 else f"{value:.2f}"
            out += text(LEFT - 8, y + 4, label, anchor="end")
        return out

    def steps(self, samples: Sequence[Sample], value: Callable[[Sample], float]) -> str:
        """The points of a curve that stays where it is until the next look."""
        points, last = [], None
        for sample in samples:
            y = self.y(value(sample))
            if last is not None and abs(y - last) > 0.05:
                points.append(f"{self.x(sample.at):.1f},{last:.1f}")
            if last is None or abs(y - last) > 0.05:
                points.append(f"{self.x(sample.at):.1f},{y:.1f}")
            last = y
        return " ".join([*points, f"{self.x(self.end):.1f},{last:.1f}"])

    def line(self, samples: Sequence[Sample], value: Callable[[Sample], float], color: str) -> str:
        points = self.steps(samples, value)
        return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'

    def area(self, samples: Sequence[Sample], value: Callable[[Sample], float], color: str) -> str:
        base = self.y(0)
        points = self.steps(samples, value)
        corners = f"{self.x(samples[0].at):.1f},{base:.1f} {points} {self.x(self.end):.1f},{base:.1f}"
        return f'<polygon points="{corners}" fill="{color}"/>'


def text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{INK}">'
        f"{html.escape(words)}</text>"
    )


def open_times(samples: Sequence[Sample], end: float) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    since: float | None = None
    for sample in samples:
        if sample.is_open and since is None:
            since = sample.at
        if not sample.is_open and since is not None:
            found.append((since, sample.at))
            since = None
    return found + ([(since, end)] if since is not None else [])


def draw(title: str, samples: Sequence[Sample], marks: Sequence[Mark]) -> str:
    """The picture: pods at home and away, free GPUs, cost; shaded while the gate is open."""
    end = samples[-1].at
    most = max(s.home + s.away + s.waiting for s in samples)
    pods = _Panel(TOP + 62, "pods: at home (green), rented (orange), waiting (grey)", most, end)
    below = pods.top + PANEL + GAP
    gpus = _Panel(below, "free GPUs at home", max(s.free for s in samples), end)
    burn = _Panel(below + PANEL + GAP, "rented now, $ per hour", max(s.burn for s in samples), end)
    bill = _Panel(below + 2 * (PANEL + GAP), "the bill, $", max(s.bill for s in samples), end)
    bottom = bill.top + PANEL
    height = bottom + 40 + 18 * ((len(marks) + 1) // 2)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="34" font-size="20" font-weight="600" fill="{INK}">{html.escape(title)}</text>',
        text(LEFT, 54, "shaded: the gate is open, pods may leave home"),
    ]
    for since, until in open_times(samples, end):
        x, width = pods.x(since), pods.x(until) - pods.x(since)
        out.append(
            f'<rect x="{x:.1f}" y="{pods.top:.1f}" width="{width:.1f}" '
            f'height="{bottom - pods.top:.1f}" fill="{OPEN}"/>'
        )
    out += [panel.frame() for panel in (pods, gpus, burn, bill)]
    out.append(pods.area(samples, lambda s: s.home + s.away + s.waiting, WAITING))
    out.append(pods.area(samples, lambda s: s.home + s.away, AWAY))
    out.append(pods.area(samples, lambda s: s.home, HOME))
    out.append(gpus.line(samples, lambda s: s.free, HOME))
    out.append(burn.line(samples, lambda s: s.burn, AWAY))
    out.append(bill.line(samples, lambda s: s.bill, AWAY))
    for number, mark in enumerate(marks, start=1):
        x = pods.x(mark.at)
        out.append(
            f'<line x1="{x:.1f}" y1="{pods.top - 30:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" '
            f'stroke="{INK}" stroke-width="0.8" stroke-dasharray="3 3"/>'
        )
        # Steps that follow at once would hide each other's numbers.
        out.append(text(x + 3, pods.top - 38 + 12 * (number % 2), str(number)))
    half = (len(marks) + 1) // 2
    for index, mark in enumerate(marks):
        x = LEFT if index < half else WIDTH / 2
        y = bottom + 34 + 18 * (index if index < half else index - half)
        out.append(text(x, y, f"{index + 1}. {mark.at:.0f} s  {mark.text}"))
    out.append("</svg>\n")
    return "\n".join(out)
