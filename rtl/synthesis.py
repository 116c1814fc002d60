"""Synthesizes blocks for UltraScale+ with yosys, and writes the table of docs/src/nic/rtl.md.

Memory belongs into block RAM or distributed RAM: a block with more registers than its logic has fails.

yosys works in the order of names, which have the paths of files in them, and in that in which it has come to
know them. So each block has a process of its own, and paths that are relative: the table is the same in any
tree, whatever was synthesized before.
"""

import multiprocessing
import os
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from blocks import BLOCKS, BUILD, ROOT, Block

BEGIN, END = "<!-- make rtl writes this table -->\n", "<!-- end -->\n"
# TR-488 §4.6 prints them together, for buses of 128 bits.
PRINTED = ["mailbox of 128 bits", "packetizer of 128 bits"]


def synthesize(block: Block, variant: str) -> dict[str, int]:
    """LUTs, registers, block RAMs of 36 Kb in halves, DSPs, and the longest path of LUTs in ps."""
    from pyosys import libyosys

    os.chdir(ROOT)
    # What yosys says of its work goes into a file.
    said = (BUILD / f"synthesis-{block.name}-{variant}.log").open("w")
    os.dup2(said.fileno(), sys.stdout.fileno())
    design = libyosys.Design()
    with tempfile.NamedTemporaryFile(suffix=".txt") as log:
        run = lambda command: libyosys.run_pass(command, design)  # noqa: E731
        chosen = " ".join(f"-G {name}={value}" for name, value in block.variants[variant].items())
        files = " ".join(str(file.relative_to(ROOT)) for file in block.sources)
        run(f"read_slang --top {block.name} {chosen} {files}")
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
    if all(name in found for name in PRINTED):
        luts = sum(found[name]["LUTs"] for name in PRINTED)
        bram = sum(found[name]["BRAM, half blocks"] for name in PRINTED) / 2
        lines.append(f"| {' and '.join(PRINTED)} | {luts:,} | | | {bram:g} | | |")
    return "\n".join(lines) + "\n"


def check(blocks: list[Block], page: Path, write: bool) -> int:
    """Compares the table of the page with what comes of all blocks, or writes it. Returns what fails."""
    jobs = [(block, variant) for block in blocks for variant in block.variants]
    processes = len(os.sched_getaffinity(0))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, max_tasks_per_child=1) as pool:
        cells = pool.map(synthesize, *zip(*jobs, strict=True))
        try:
            found = {block.named(variant): of for (block, variant), of in zip(jobs, cells, strict=True)}
        except BrokenProcessPool:
            # yosys ends its process where it finds an error, and has said which.
            print("yosys has failed: see build/rtl/synthesis-*.log", file=sys.stderr)
            return 1
    failed = 0
    for block, variant in jobs:
        name = block.named(variant)
        if (registers := found[name]["registers"]) > block.registers:
            print(f"{name}: {registers} registers: is a memory in flip-flops?", file=sys.stderr)
            failed += 1
    new = "\n" + table(found) + "\n"
    print(new, end="")
    text = page.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    if len(blocks) < len(BLOCKS):
        print(f"{page.name} has a table of all blocks: it is not compared with these")
    elif write:
        page.write_text(before + BEGIN + new + END + after)
    elif old != new:
        print(f"{page.name} has another table: rtl/run.py --write synthesis", file=sys.stderr)
        failed += 1
    return failed
