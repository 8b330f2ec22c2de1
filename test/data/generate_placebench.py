"""Writes test/data/placebench: a small made-up set in placebench's formats, for its tests.

    python3 test/data/generate_placebench.py

Up and down times are Weibull with long tails, as those of real pools; nothing in it is recorded.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

FOLDER = Path(__file__).parent / "placebench"
DAYS = 12
GAP_S = 300
ZONES = [("east-1a", 0.8, 4.0), ("east-1b", 2.0, 2.5), ("east-1c", 3.0, 2.0), ("west-2a", 6.0, 1.0), ("west-2b", 8.0, 0.8)]


def write(name: str, header: list[str], rows: list[list[object]]) -> None:
    with (FOLDER / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def runs(rng: random.Random, up_h: float, down_h: float) -> list[tuple[int, int, int]]:
    """start tick, ticks, available"""
    out = []
    tick = 0
    up = rng.random() < up_h / (up_h + down_h)
    while tick < DAYS * 86400 // GAP_S:
        mean = up_h if up else down_h
        # Gamma(1 + 1/0.5) = 2: the mean of a Weibull of shape 0.5 is twice its scale.
        hours = rng.weibullvariate(mean / 2, 0.5)
        ticks = max(1, min(round(hours * 3600 / GAP_S), DAYS * 86400 // GAP_S - tick))
        out.append((tick, ticks, int(up)))
        tick += ticks
        up = not up
    return out


def main() -> None:
    rng = random.Random(7)
    FOLDER.mkdir(exist_ok=True)
    traces: list[list[object]] = []
    for kind, name in (("availability", "made-up-1"), ("preemption", "made-up-2")):
        for zone, up_h, down_h in ZONES:
            for start, ticks, up in runs(rng, up_h, down_h):
                traces.append([name, kind, 1, "cloud", zone, "v100_1", GAP_S, start, ticks, up])
    write(
        "spot_traces_rle.csv",
        ["set", "kind", "nodes", "cloud", "zone", "instance", "gap_s", "start_tick", "ticks", "available"],
        traces,
    )
    prices: list[list[object]] = [["made-up", "seller-0", "V100", 1, 16, "3.00", "0.90"]]
    for i in range(8):
        prices.append(["made-up", f"seller-{i}", "A100", 1, 80, f"{1 + 0.45 * i:.2f}", ""])
    write(
        "prices_gpu_offers.csv",
        ["source", "provider", "gpu", "gpu_count", "vram_gb", "ondemand_usd_h", "spot_usd_h"],
        prices,
    )
    quantiles = sorted(min(rng.lognormvariate(7, 2), 200_000) for _ in range(101))
    write("philly_runtime_quantiles.csv", ["q", "runtime_s"], [[i / 100, round(q)] for i, q in enumerate(quantiles)])
    steps: list[list[object]] = []
    for zone in ("a", "b", "c"):
        for day in range(20):
            steps.append(["p", zone, f"2020-01-{day + 1:02}T0{day % 10}:00:00", f"{rng.uniform(0.8, 1.3):.4f}"])
    write("aws_gpu_spot_price_2020.csv", ["instance", "zone", "utc", "usd_per_h"], steps)
    pods = [[rng.choice([4000, 8000, 12000]), rng.choice([8192, 16384, 32768]), rng.choice([1, 1, 1, 2, 8])] for _ in range(40)]
    write("openb_pods.csv", ["cpu_milli", "memory_mib", "num_gpu"], pods)


if __name__ == "__main__":
    main()
