#!/usr/bin/env python3
"""Lints the RTL and runs its tests under Verilator.

Usage: run.py [--cycles N] [--seed N] lint|test [BLOCK …]
"""

import argparse
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
BUILD = ROOT / "build/rtl"
BLOCKS = ["mailbox", "packetizer"]
# Warnings that say nothing here: an output that nobody wants, checks of parameters that need no name, constants of a
# package that a block does not use.
LINT = ["-Wall", "-Wno-PINCONNECTEMPTY", "-Wno-GENUNNAMED", "-Wno-UNUSEDPARAM"]


def sources(block: str) -> list[Path]:
    """The files of a block, packages first."""
    common = [RTL / "common" / name for name in ["exanet.sv", "ram.sv", "fifo.sv"]]
    return common + sorted((RTL / block).glob("*.sv"))


def lint(block: str):
    """Verilator's warnings are errors; the text is as verible formats it."""
    subprocess.run(
        ["verilator", "--lint-only", "--quiet", *LINT, "--top-module", block, *sources(block)], check=True, cwd=ROOT
    )


def test(block: str, arguments: argparse.Namespace):
    """Runs the tests of a block."""
    from cocotb_tools.runner import get_results, get_runner

    logging.getLogger("cocotb").setLevel(logging.WARNING)
    runner = get_runner("verilator")
    build = BUILD / f"test-{block}"
    runner.build(
        sources=sources(block),
        hdl_toplevel=block,
        build_dir=build,
        build_args=["-O3", "--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal", "-CFLAGS", "-O1"],
        always=True,
    )
    # cocotb hands the path on.
    sys.path[:0] = [str(RTL / "common"), str(RTL / block)]
    environment = {"WEFT_RTL_CYCLES": str(arguments.cycles), "WEFT_RTL_SEED": str(arguments.seed)}
    results = runner.test(
        hdl_toplevel=block,
        test_module=f"test_{block}",
        build_dir=build,
        extra_env=environment,
        # Memory and registers begin with random bits, but for what an FPGA has at zero.
        plusargs=[f"+verilator+rand+reset+2", f"+verilator+seed+{arguments.seed}"],
        test_filter=arguments.filter,
    )
    count, failed = get_results(results)
    print(f"{block}: {count} tests, {failed} failed")
    return failed


def main() -> int:
    """Does what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100_000, help="of the random test of each block")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--filter")
    parser.add_argument("what", choices=["lint", "test"])
    parser.add_argument("blocks", nargs="*", default=BLOCKS)
    arguments = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([str(BUILD / "bin"), str(BUILD / "venv/bin"), os.environ["PATH"]])
    if not shutil.which("verilator"):
        print("Verilator is missing: make rtl-tools", file=sys.stderr)
        return 2
    failed = 0
    for block in arguments.blocks or BLOCKS:
        if arguments.what == "lint":
            lint(block)
        else:
            failed += test(block, arguments)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
