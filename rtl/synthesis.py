"""Synthesizes blocks for UltraScale+ with yosys, and writes the table of docs/src/nic/rtl.md.

Memory belongs into block RAM or distributed RAM: a block with more registers than its logic has fails.
"""

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from blocks import Block

BEGIN, END = "<!-- make rtl writes this table -->\n", "<!-- end -->\n"
# TR-488 §4.6 prints them together, for buses of 128 bits.
PRINTED = ["mailbox of 128 bits", "packetizer of 128 bits"]


def synthesize(block: Block, parameters: dict[str, int]) -> dict[str, int]:
    """LUTs, registers, block RAMs of 36 Kb in halves, DSPs, and the longest path of LUTs in ps."""
    from pyosys import libyosys

    design = libyosys.Design()
    with tempfile.NamedTemporaryFile(suffix=".txt") as log:
        run = lambda command: libyosys.run_pass(command, design)  # noqa: E731
        chosen = " ".join(f"-G {name}={value}" for name, value in parameters.items())
        run(f"read_slang --top {block.name} {chosen} {' '.join(map(str, block.sources))}")
        # What is asserted is for simulation.
        run("proc")
        run("chformal -remove")
        run(f"synth_xilinx -family xcup -top {block.name} -abc9 -flatten")
        run(f"tee -q -o {log.name} stat")
        stat = Path(log.name).read_text()
        run(f"tee -q -o {log.name} sta")
        arrival = re.search(r"Latest arrival time in '\w+' is (\d+)", Path(log.name).read_text())
    cells = Counter(
        {kind: int(count) for count, kind in re.findall(r"^\s+(\d+)\s+([A-Z]\w+)$", stat, re.MULTILINE)}
    )
    of = lambda *starts: sum(count for kind, count in cells.items() if kind.startswith(starts))  # noqa: E731
    # A memory of LUTs takes eight of them, the small one as well.
    memory = 8 * of("RAM64M8", "RAM32M16")
    return {
        "LUTs": of("LUT", "INV") + memory,
        "of them memory": memory,
        "registers": of("FD"),
        "BRAM, half blocks": 2 * of("RAMB36") + of("RAMB18"),
        "DSP": of("DSP"),
        "path": int(arrival[1]) if arrival else 0,
    }


def table(found: dict[str, dict[str, int]]) -> str:
    """The table of the page."""
    lines = ["| block | LUTs | of them memory | registers | BRAM of 36 Kb | DSP | longest path of LUTs |"]
    lines.append("|---|---|---|---|---|---|---|")
    for block, cells in found.items():
        counts = [f"{cells[name]:,}" for name in ["LUTs", "of them memory", "registers"]]
        counts += [f"{cells['BRAM, half blocks'] / 2:g}", str(cells["DSP"]), f"{cells['path'] / 1000:.1f} ns"]
        lines.append(f"| {block} | {' | '.join(counts)} |")
    printed = [found[name] for name in PRINTED if name in found]
    luts = sum(cells["LUTs"] for cells in printed)
    bram = sum(cells["BRAM, half blocks"] for cells in printed) / 2
    lines.append(f"| {' and '.join(PRINTED)} | {luts:,} | | | {bram:g} | | |")
    return "\n".join(lines) + "\n"


def check(blocks: list[Block], page: Path, write: bool) -> int:
    """Compares the table of the page with what comes of the blocks, or writes it. Returns what fails."""
    found = {}
    failed = 0
    for block in blocks:
        for variant, parameters in block.variants.items():
            name = block.named(variant)
            found[name] = synthesize(block, parameters)
            registers = found[name]["registers"]
            if registers > block.registers:
                print(f"{name}: {registers} registers: is a memory in flip-flops?", file=sys.stderr)
                failed += 1
    text = page.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    new = "\n" + table(found) + "\n"
    print(new, end="")
    if write:
        page.write_text(before + BEGIN + new + END + after)
    elif old != new:
        print(f"{page.name} has another table: rtl/run.py --write synthesis", file=sys.stderr)
        failed += 1
    return failed
