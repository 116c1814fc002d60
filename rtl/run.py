#!/usr/bin/env python3
"""Builds libweft_rtl.so of the RTL, formats and lints it, proves, tests and synthesizes it.

Usage: run.py [--cycles N] [--pairs N] [--seed N] [--filter REGEX] [--write]
              library|format|lint|prove|test|unknown|synthesis|check|random [BLOCK …]

check is lint, proofs and test, for tools/test.py: where the tools are missing, it is skipped and says so.
They are installed by `make rtl-tools`. random runs the library beside the model in Rust. unknown simulates
with X. What is done to several blocks is done to as many at a time as there are cores.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import library
import proofs
import synthesis
import unknown
from blocks import BLOCKS, BUILD, ROOT, RTL, Block, NoBugError

# Registers without a value begin with random bits.
UNKNOWN = ["--x-assign", "unique", "--x-initial", "unique"]
# Warnings that say nothing here: an output that nobody wants, checks of parameters that need no name,
# constants of a package that a block does not use.
LINT = ["-Wall", "-Wno-PINCONNECTEMPTY", "-Wno-GENUNNAMED", "-Wno-UNUSEDPARAM"]


FORMAT = ["verible-verilog-format", "--column_limit=120", "--indentation_spaces=2", "--inplace"]


def texts(block: Block) -> list[Path]:
    """The files of a block and of what it uses, with their proofs."""
    folders = ["common", *block.uses, block.name]
    return [file for folder in folders for file in sorted((RTL / folder).rglob("*.sv"))]


def shape(block: Block) -> int:
    """Lays the text of a block out as verible has it."""
    return subprocess.run([*FORMAT, *texts(block)], cwd=ROOT, check=False).returncode


def lint(block: Block) -> int:
    """Verilator's warnings are errors; the text is as verible has it."""
    files = list(map(str, block.sources))
    if subprocess.run([*FORMAT, "--verify", *texts(block)], cwd=ROOT, check=False).returncode:
        mend = "build/rtl/venv/bin/python rtl/run.py format"
        print(f"{block.name}: a file is not laid out as verible has it: {mend}", file=sys.stderr)
        return 1
    command = ["verilator", "--lint-only", "--quiet", *LINT, "--top-module", block.name, *files]
    failed = 0
    for parameters in block.variants.values():
        failed |= subprocess.run([*command, *values(parameters)], cwd=ROOT, check=False).returncode
    return failed


def values(parameters: dict[str, int]) -> list[str]:
    """Parameters of a top module, for Verilator."""
    return [f"-G{name}={value}" for name, value in parameters.items()]


def test_in_cpp(block: Block, program: Path, arguments: argparse.Namespace) -> int:
    """Runs the test of a block that is a program: its variants, by this number of pairs, and its bug."""
    failed = 0
    for name in block.variants:
        folder = BUILD / f"test-{block.name}-{name}"
        built = build_in_cpp(block, name, block.sources, program, folder)
        failed += subprocess.run([built, str(arguments.pairs), str(arguments.seed)], check=False).returncode
    failed += misses_bug(block, program, arguments)
    print(f"{block.name}: {len(block.variants) + 1} tests, {failed} failed", flush=True)
    return failed


def build_in_cpp(block: Block, variant: str, sources: list[Path], program: Path, folder: Path) -> Path:
    """Builds the test of a variant of a block, of these sources, in a folder."""
    command = ["verilator", "--cc", "--exe", "--build", "--quiet", "-O3", "--top-module", block.name]
    command += [*values(block.variants[variant]), "-CFLAGS", f"-O2 -DWIDTH={variant}", "--Mdir", str(folder)]
    command += ["-o", program.stem, *map(str, sources), str(program)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder / program.stem


def misses_bug(block: Block, program: Path, arguments: argparse.Namespace) -> int:
    """Whether the test of a block finds nothing wrong with one that has its bug."""
    folder = BUILD / f"wrong-{block.name}"
    folder.mkdir(parents=True, exist_ok=True)
    sources = block.sources_with_bug(folder)
    built = build_in_cpp(block, next(iter(block.variants)), sources, program, folder)
    pairs = str(min(arguments.pairs, 10_000))
    done = subprocess.run([built, pairs, str(arguments.seed)], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode == 1 and done.stdout.startswith("pair "):
        return 0
    print(f"{block.name}: its test does not find the bug of block.toml in {pairs} pairs: {done.stdout}")
    return 1


def test(block: Block, arguments: argparse.Namespace) -> int:
    """Runs the tests of a block."""
    program = RTL / block.name / f"test_{block.name}.cpp"
    if program.exists():
        return test_in_cpp(block, program, arguments)
    return sum(test_in_python(block, variant, arguments) for variant in block.variants)


def test_in_python(block: Block, variant: str, arguments: argparse.Namespace) -> int:
    """Runs the cocotb tests of a variant of a block."""
    from cocotb_tools.runner import get_results, get_runner

    logging.getLogger("cocotb").setLevel(logging.WARNING)
    runner = get_runner("verilator")
    build = BUILD / "-".join(["test", block.name, *filter(None, [variant])])
    try:
        runner.build(
            sources=block.sources,
            hdl_toplevel=block.name,
            build_dir=build,
            parameters=block.variants[variant] | block.test_parameters,
            build_args=["-O3", "--assert", *UNKNOWN, "--output-split", "0", "-Wno-fatal", "-CFLAGS", "-O1"],
        )
    except RuntimeError as error:
        print(f"{block.named(variant)} is not built: {error}", file=sys.stderr)
        return 1
    # cocotb hands the path on.
    sys.path[:0] = [str(RTL / "common"), str(RTL / block.name)]
    environment = {"WEFT_RTL_CYCLES": str(arguments.cycles), "WEFT_RTL_SEED": str(arguments.seed)}
    results = runner.test(
        hdl_toplevel=block.name,
        test_module=sorted(file.stem for file in (RTL / block.name).glob("test_*.py")),
        build_dir=build,
        extra_env=environment,
        # Memory and registers begin with random bits, but for what an FPGA has at zero.
        plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{arguments.seed}"],
        test_filter=arguments.filter,
    )
    count, failed = get_results(results)
    print(f"{block.named(variant)}: {count} tests, {failed} failed", flush=True)
    return failed


def libraries() -> int:
    """Builds the library, and one of each block with its bug. Returns how many of those there are not."""
    in_step = [block for block in BLOCKS.values() if block.is_in_step]
    library.build([(block, block.sources) for block in in_step], BUILD / "libweft_rtl.so")
    failed = 0
    for block in in_step:
        folder = BUILD / f"wrong-{block.name}"
        folder.mkdir(parents=True, exist_ok=True)
        wrong = folder / "libweft_rtl.so"
        try:
            library.build([(block, block.sources_with_bug(folder))], wrong)
        except NoBugError as error:
            # One of other sources would not be what its tests take it for.
            wrong.unlink(missing_ok=True)
            print(f"{error}\nlibweft_rtl.so is built, that with the bug is not", file=sys.stderr)
            failed += 1
    return failed


def random(block: Block, bits: int, arguments: argparse.Namespace) -> int:
    """Runs a block of the library beside its model under random stimulus, and says how fast."""
    profile = "release" if arguments.json else arguments.profile
    cargo = ["cargo", "build", "--quiet", "--locked", "--profile", profile, "-p", "weft-rtl"]
    subprocess.run([*cargo, "--example", "random_stimulus"], cwd=ROOT, check=True)
    built = "debug" if profile == "dev" else profile
    example = ROOT / "target" / built / "examples/random_stimulus"
    began = time.monotonic()
    cycles = min(arguments.cycles, block.stimulus)
    command = [str(example), block.name, str(bits), str(cycles), str(arguments.seed)]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    speed = cycles / (time.monotonic() - began)
    print(json.dumps({"cycles_per_second": speed}) if arguments.json else done.stdout, end="")
    return done.returncode


def missing(what: str) -> int:
    """Says that the tools are missing, which is no failure of a check."""
    if what not in ("check", "random", "synthesis", "unknown"):
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
    parser.add_argument("--json", action="store_true", help="the speed, for make bench")
    parser.add_argument("--profile", default="quick", help="of cargo, for random")
    whats = ["library", "format", "lint", "prove", "test", "unknown", "synthesis", "check", "random"]
    parser.add_argument("what", choices=whats)
    parser.add_argument("blocks", nargs="*", choices=[[], *BLOCKS], metavar="BLOCK")
    arguments = parser.parse_args()
    if not (BUILD / "bin/verilator").exists():
        return missing(arguments.what)
    if Path(sys.prefix) != BUILD / "venv":
        # cocotb and yosys are there.
        os.execv(BUILD / "venv/bin/python", [str(BUILD / "venv/bin/python"), *sys.argv])
    os.environ["PATH"] = os.pathsep.join([str(BUILD / "bin"), str(BUILD / "venv/bin"), os.environ["PATH"]])
    try:
        return 1 if do(arguments, [BLOCKS[name] for name in arguments.blocks or BLOCKS]) else 0
    except NoBugError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        # It has said why.
        print(f"{Path(error.cmd[0]).name} has failed", file=sys.stderr)
        return 1


def do(arguments: argparse.Namespace, blocks: list[Block]) -> int:
    """Does what is asked for. Returns how much of it has failed."""
    if arguments.what == "library":
        return libraries()
    if arguments.what == "format":
        return sum(shape(block) for block in blocks)
    if arguments.what == "synthesis":
        return synthesis.check(blocks, ROOT / "docs/src/nic/rtl.md", arguments.write)
    if arguments.what == "random":
        if not (BUILD / "libweft_rtl.so").exists():
            return missing(arguments.what)
        stimulated = [block for block in blocks if block.stimulus]
        widths = [(block, bits) for block in stimulated for bits in (128, *block.stimulus_bits)]
        return sum(random(block, bits, arguments) for block, bits in widths)
    if len(blocks) > 1:
        return side_by_side(arguments, blocks)
    [block] = blocks
    if arguments.what == "unknown":
        return unknown.check(block)
    failed = 0
    if arguments.what in ("check", "lint"):
        failed += lint(block)
    if arguments.what in ("check", "prove"):
        failed += proofs.check(RTL / block.name, block.sources)
    if arguments.what in ("check", "test"):
        failed += test(block, arguments)
    return failed


def side_by_side(arguments: argparse.Namespace, blocks: list[Block]) -> int:
    """Does what is asked for to each block in a process of its own. Returns how many of them fail."""
    options = [
        "--cycles",
        str(arguments.cycles),
        "--pairs",
        str(arguments.pairs),
        "--seed",
        str(arguments.seed),
    ]
    options += ["--filter", arguments.filter] if arguments.filter else []

    def run(block: Block) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, __file__, *options, arguments.what, block.name]
        return subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    failed = 0
    if arguments.what in ("check", "prove"):
        failed += proofs.check(RTL / "common", sorted((RTL / "common").glob("*.sv")))
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        for done in cores.map(run, blocks):
            print(done.stdout, end="", flush=True)
            failed += bool(done.returncode)
    return failed


if __name__ == "__main__":
    sys.exit(main())
