"""Simulates blocks with X: registers and memories hold anything at first, and after the reset no output that
counts is unknown.

Its surroundings are in unknown/NAME_unknown.sv beside it, with assertions of what has to be known. yosys
simulates them; a multiplexer whose select is unknown gives X, unless both of its inputs agree.
"""

import re
import tempfile
from pathlib import Path

from blocks import RTL, Block

CYCLES = 900


def simulate(block: Block, surroundings: Path) -> list[str]:
    """The places of the assertions that fail, or are unknown themselves, the earliest first."""
    from pyosys import libyosys

    design = libyosys.Design()
    files = " ".join(map(str, [*block.sources, *(RTL / "common/unknown").glob("*.sv"), surroundings]))
    lower = ["proc", "flatten", "async2sync", "chformal -lower", "opt_clean"]
    with tempfile.NamedTemporaryFile(suffix=".txt") as log:
        run = f"sim -clock clk -reset reset -rstlen 2 -n {CYCLES} -q"
        for command in [f"read_slang --top {surroundings.stem} {files}", *lower, run]:
            libyosys.run_pass(f"tee -q -o {log.name} {command}", design)
        text = Path(log.name).read_text()
    return list(dict.fromkeys(re.findall(r"^Failed assertion .* at\n\s+(\S+)", text, re.MULTILINE)))


def check(block: Block) -> int:
    """Simulates a block, if there are surroundings for it. Returns how many fail."""
    failed = 0
    for surroundings in sorted((RTL / block.name / "unknown").glob("*.sv")):
        places = simulate(block, surroundings)
        said = f"{CYCLES} cycles, all known"
        if places:
            said = f"unknown or wrong, the earliest first: {', '.join(places)}"
        print(f"{surroundings.stem}: {said}", flush=True)
        failed += bool(places)
    return failed
