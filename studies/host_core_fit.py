#!/usr/bin/env python3
"""Fits the memory channel of exanest's hosts on the efficiencies of TR-488 Table 3 on two processes.

Efficiencies are times over times: they tell how much of the channel one core draws, and not how fast it is.
So `memory_bandwidth` over `bandwidth` is fitted, once for all three applications; `bandwidth` is assumed.
Printed are the fit, and what follows on two and on four cores. Steps are cut: all are alike.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Figure(NamedTuple):
    """An efficiency on two processes, in per cent, of TR-488 Table 3."""

    app: str
    grows: bool
    """Whether the problem grows with the ranks: weak scaling."""
    options: str
    published: int


FIGURES = [
    Figure("lammps", True, "steps=9,atoms=32000", 96),
    Figure("lammps", False, "steps=9,total=32000", 97),
    Figure("hpcg", True, "iterations=3,local=104x104x104", 96),
    Figure("hpcg", False, "iterations=3,global=256x256x128", 92),
    Figure("minife", True, "iterations=5,local=64x64x64", 86),
    Figure("minife", False, "iterations=5,global=264x264x264", 94),
]


def run(weft: Path, figure: Figure, ranks: int, channel: str | None) -> dict:
    """The row of a run on the cores of one host."""
    words = [weft, "app", figure.app, "-m", "exanest", "--ranks", str(ranks), "--ppn", "4"]
    words += ["--with", figure.options, "--quiet", "--json"]
    words += ["--set", f"host.core.memory_bandwidth={channel}"] if channel else []
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["rows"][0]


def efficiency(weft: Path, figure: Figure, ranks: int, channel: str | None) -> float:
    """The efficiency in per cent."""
    alone, together = (run(weft, figure, count, channel)["run_time_us"] for count in (1, ranks))
    return 100 * alone / together / (1 if figure.grows else ranks)


def main() -> None:
    """Prints the fit and what follows from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", type=Path, default=ROOT / "target/debug/weft", help="the weft command")
    weft = parser.parse_args().weft.resolve()
    # Of 20 Gb/s, what one core is assumed to draw.
    tried = [f"{20_000 * ratio // 1000}Mb/s" for ratio in range(1740, 1960, 5)]

    def apart(channel: str) -> float:
        return sum((efficiency(weft, figure, 2, channel) - figure.published) ** 2 for figure in FIGURES)

    print(f"least squares: memory_bandwidth = {min(tried, key=apart)}, tried {tried[0]} to {tried[-1]}")
    print("as shipped:")
    for figure in FIGURES:
        scaling, two, four = (
            "weak" if figure.grows else "strong",
            *(efficiency(weft, figure, ranks, None) for ranks in (2, 4)),
        )
        shares = [100 * run(weft, figure, ranks, None)["communication_share"] for ranks in (2, 4)]
        print(
            f"{figure.app:7} {scaling:6} on 2: {two:5.1f} % (published {figure.published}), "
            f"on 4: {four:5.1f} %; communication {shares[0]:.2f} and {shares[1]:.2f} %"
        )


if __name__ == "__main__":
    main()
