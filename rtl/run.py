#!/usr/bin/env python3
"""Lints the RTL, tests it under Verilator, builds libweft_rtl.so of it, and synthesizes it.

Usage: run.py [--cycles N] [--pairs N] [--seed N] [--filter REGEX] [--write] WHAT [BLOCK …]

check is lint and test, for tools/test.py: where the tools are missing, it is skipped and says so. They are
installed by `make rtl-tools`.
"""

import argparse
import logging
import os
import subprocess
import sys
from pathlib import Path

import library
import synthesis

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
BUILD = ROOT / "build/rtl"
BLOCKS = ["mailbox", "packetizer", "float", "allreduce"]
# Those that weft --rtl has in step.
IN_STEP = ["mailbox", "packetizer", "allreduce"]
# Blocks that are built for several parameters, with what the tests call them.
VARIANTS = {"float": {"32": {"EXP": 8, "MAN": 23}, "64": {"EXP": 11, "MAN": 52}}}
# Of blocks under test by cocotb, where those of the machine would take too long.
TEST_PARAMETERS = {"allreduce": {"TIMEOUT": 400, "LONGEST_TIMEOUT": 1600, "REPETITIONS": 3}}
# Blocks whose files others have.
PARTS = {"allreduce": ["float"]}
# Bugs put into a block on purpose, for the tests of weft --rtl: a file, a line of it, and the wrong one.
WRONG = {
    "mailbox": (
        "mailbox_write.sv",
        "awaddr <= base + 49'({index, 6'd0});",
        "awaddr <= base + 49'({index, 5'd0});",
    ),
    "packetizer": (
        "packetizer_engine.sv",
        "localparam int Made = ENGINE - 3;",
        "localparam int Made = ENGINE - 2;",
    ),
    "allreduce": (
        "allreduce_reduce.sv",
        "assign done = busy && cycles == 7'(words) + 7'(LATENCY - 2);",
        "assign done = busy && cycles == 7'(words) + 7'(LATENCY - 1);",
    ),
}
# Warnings that say nothing here: an output that nobody wants, checks of parameters that need no name,
# constants of a package that a block does not use.
# Registers without a value begin with random bits.
UNKNOWN = ["--x-assign", "unique", "--x-initial", "unique"]
LINT = ["-Wall", "-Wno-PINCONNECTEMPTY", "-Wno-GENUNNAMED", "-Wno-UNUSEDPARAM"]


def sources(block: str) -> list[Path]:
    """The files of a block, packages first."""
    common = [RTL / "common" / name for name in ["exanet.sv", "reduction.sv", "ram.sv", "fifo.sv"]]
    parts = [file for part in PARTS.get(block, []) for file in sorted((RTL / part).glob("*.sv"))]
    return common + parts + sorted((RTL / block).glob("*.sv"))


def with_bug(block: str, name: str, right: str, wrong: str) -> list[Path]:
    """The files of a block, one of them with a bug."""
    folder = BUILD / f"wrong-{block}"
    folder.mkdir(parents=True, exist_ok=True)
    files = sources(block)
    place = next(place for place, file in enumerate(files) if file.name == name)
    text = files[place].read_text()
    if text.count(right) != 1:
        raise SystemExit(f"{files[place]}: `{right}` is there {text.count(right)} times, not once")
    files[place] = folder / name
    files[place].write_text(text.replace(right, wrong))
    return files


def lint(block: str) -> int:
    """Verilator's warnings are errors; the text is as verible has it."""
    files = list(map(str, sources(block)))
    shape = [
        "verible-verilog-format",
        "--column_limit=120",
        "--indentation_spaces=2",
        "--inplace",
        "--verify",
    ]
    if subprocess.run([*shape, *files], cwd=ROOT, check=False).returncode:
        return 1
    command = ["verilator", "--lint-only", "--quiet", *LINT, "--top-module", block, *map(str, sources(block))]
    failed = 0
    for parameters in VARIANTS.get(block, {"": {}}).values():
        failed |= subprocess.run([*command, *values(parameters)], cwd=ROOT, check=False).returncode
    return failed


def values(parameters: dict[str, int]) -> list[str]:
    """Parameters of a top module, for Verilator."""
    return [f"-G{name}={value}" for name, value in parameters.items()]


def test_in_cpp(block: str, arguments: argparse.Namespace) -> int:
    """Runs the test of a block that is a program: one for each variant, of this number of pairs."""
    failed = 0
    for name, parameters in VARIANTS[block].items():
        folder = BUILD / f"test-{block}-{name}"
        command = [
            "verilator",
            "--cc",
            "--exe",
            "--build",
            "--quiet",
            "-O3",
            "--top-module",
            block,
            *values(parameters),
        ]
        command += ["-CFLAGS", f"-O2 -DWIDTH={name}", "--Mdir", str(folder), "-o", f"test_{block}"]
        command += [*map(str, sources(block)), str(RTL / block / f"test_{block}.cpp")]
        built = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        if built.returncode:
            return 1
        run = [str(folder / f"test_{block}"), str(arguments.pairs), str(arguments.seed)]
        failed += subprocess.run(run, check=False).returncode
    print(f"{block}: {len(VARIANTS[block])} tests, {failed} failed", flush=True)
    return failed


def test(block: str, arguments: argparse.Namespace) -> int:
    """Runs the tests of a block."""
    if block in VARIANTS:
        return test_in_cpp(block, arguments)
    from cocotb_tools.runner import get_results, get_runner

    logging.getLogger("cocotb").setLevel(logging.WARNING)
    runner = get_runner("verilator")
    build = BUILD / f"test-{block}"
    runner.build(
        sources=sources(block),
        hdl_toplevel=block,
        build_dir=build,
        parameters=TEST_PARAMETERS.get(block, {}),
        build_args=["-O3", "--assert", *UNKNOWN, "--output-split", "0", "-Wno-fatal", "-CFLAGS", "-O1"],
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
        plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{arguments.seed}"],
        test_filter=arguments.filter,
    )
    count, failed = get_results(results)
    print(f"{block}: {count} tests, {failed} failed")
    return failed


def missing(what: str) -> int:
    """Says that the tools are missing, which is no failure of a check."""
    if what not in ("check", "synthesis"):
        print("the tools for RTL are missing: make rtl-tools", file=sys.stderr)
        return 2
    line = f"skipped: RTL, {what}: its tools are not installed; make rtl-tools\n"
    if file := os.environ.get("WEFT_SKIPPED"):
        with Path(file).open("a") as skipped:
            skipped.write(line)
    else:
        print(line, end="", file=sys.stderr)
    return 0


def main() -> int:
    """Does what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100_000, help="of the random test of each block")
    parser.add_argument("--pairs", type=int, default=100_000, help="of numbers, for each floating-point unit")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--filter", help="names of tests")
    parser.add_argument("--write", action="store_true", help="the table of the page, for synthesis")
    parser.add_argument("what", choices=["check", "lint", "test", "library", "synthesis"])
    parser.add_argument("blocks", nargs="*", default=BLOCKS)
    arguments = parser.parse_args()
    if not (BUILD / "bin/verilator").exists():
        return missing(arguments.what)
    if Path(sys.prefix) != BUILD / "venv":
        # cocotb and yosys are there.
        os.execv(BUILD / "venv/bin/python", [str(BUILD / "venv/bin/python"), *sys.argv])
    os.environ["PATH"] = os.pathsep.join([str(BUILD / "bin"), str(BUILD / "venv/bin"), os.environ["PATH"]])
    if arguments.what == "library":
        library.build({block: sources(block) for block in IN_STEP}, ROOT, BUILD / "libweft_rtl.so")
        for block, wrong in WRONG.items():
            library.build({block: with_bug(block, *wrong)}, ROOT, BUILD / f"wrong-{block}/libweft_rtl.so")
        return 0
    if arguments.what == "synthesis":
        of = {block: sources(block) for block in arguments.blocks or BLOCKS}
        return 1 if synthesis.check(of, VARIANTS, ROOT / "docs/src/nic/rtl.md", arguments.write) else 0
    failed = 0
    for block in arguments.blocks or BLOCKS:
        if arguments.what in ("check", "lint"):
            failed += lint(block)
        if arguments.what in ("check", "test"):
            failed += test(block, arguments)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
