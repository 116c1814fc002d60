#!/usr/bin/env python3
"""Compares application kernels with the programs that they stand for: operations and virtual time.

The programs lie beside this tree: --with-apps names a folder with the sources of HPCG
(github.com/hpcg-benchmark/hpcg) as `hpcg`, of miniFE (github.com/Mantevo/miniFE) as `miniFE`, and of NEST
(github.com/nest/nest-simulator) as `nest`, built in `nest-build` as docs/src/commands/app.md says. A program
that is not there is said to be skipped. Computation is not compared: kernels have operations and bytes,
recordings have times. In virtual time a program runs on real processes that compute for nothing, and its
kernel on the messaging library that these load, also without computation. Only reading a clock takes a real
process time there; it is left out, as no kernel has clocks.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as parquet

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
LIBRARIES = Path(sysconfig.get_path("data")) / "lib"

# What of an operation decides how it moves. A wait says nothing: requests are numbered by whoever writes.
FIELDS = ["operation", "peer", "tag", "bytes", "receive_bytes", "reduction", "data_type"]
# Per cent by which a kernel's virtual time may be off.
MOST = 1.0
# The machine of virtual times.
MACHINE = ["-m", "exanest", "--ppn", "4", "--json", "--quiet"]
# Of the machine and not of the program, or of the comparison itself.
LEFT_OUT = ("compute", "work", "marker", "communicator")


class Case(NamedTuple):
    """A program and the kernel of the same run."""

    ranks: int
    program: list[str | Path]
    kernel: str
    """The name of the kernel."""
    goes_on: bool = False
    """Whether the program may go on after the kernel's end."""


def run(words: list[str | Path], folder: Path) -> str:
    """Runs a command where MPICH is that of this Python; ends the test if it fails."""
    paths = {"PATH": f"{SCRIPTS}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(LIBRARIES)}
    done = subprocess.run(words, cwd=folder, env=os.environ | paths, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def operations(trace: Path, region: bool) -> list[list[tuple]]:
    """The operations of each rank; with `region` those between MPI_Pcontrol(1) and MPI_Pcontrol(0)."""
    table = parquet.read_table(trace, columns=["rank", "text", *FIELDS]).to_pylist()
    ranks: dict[int, list[tuple]] = {}
    inside: dict[int, bool] = {}
    for row in table:
        rank = row["rank"]
        found = ranks.setdefault(rank, [])
        if row["operation"] == "marker" and row["text"].startswith("pcontrol "):
            inside[rank] = row["text"] == "pcontrol 1"
        if row["operation"] not in LEFT_OUT and (inside.get(rank, False) or not region):
            found.append(tuple(row[field] for field in FIELDS))
    return [ranks[rank] for rank in sorted(ranks)]


def compare(weft: Path, case: Case, folder: Path) -> int:
    """Records the program, writes the kernel as a trace, compares; returns the number of differences."""
    recorded, written = folder / "recorded.weft", folder / "kernel.weft"
    words = [weft, "record", "-o", recorded, "--", "mpiexec", "-n", str(case.ranks), *case.program]
    run(words, folder)
    run([weft, "trace", "convert", f"{case.kernel}", "-o", written], folder)
    ours, theirs = operations(written, region=False), operations(recorded, region=True)
    recorded.unlink()
    written.unlink()
    wrong = 0
    for rank, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if case.goes_on:
            other = other[: len(own)]
        if own == other:
            continue
        wrong += 1
        if wrong > 2:
            continue
        pairs = zip(own, other, strict=False)
        at = next((n for n, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(own), len(other)))
        print(f"  rank {rank}: {len(own)} operations, the program has {len(other)}; they differ at {at}")
        print(f"    kernel  {own[at : at + 3]}\n    program {other[at : at + 3]}")
    messages = sum(operation[0] == "isend" for rank in theirs for operation in rank)
    total = sum(operation[3] or 0 for rank in theirs for operation in rank if operation[0] == "isend")
    verdict = "equal" if wrong == 0 else f"{wrong} RANKS DIFFER"
    print(f"{case.kernel:<50} {messages:8} messages {total:12} bytes   {verdict}", flush=True)
    return wrong


def timed(weft: Path, case: Case, folder: Path) -> int:
    """Runs the program's region on real processes, and the kernel; returns whether times differ."""
    trace = folder / "virtual.weft"
    for report in folder.glob("miniFE*.yaml"):
        report.unlink()
    where = ["-n", str(case.ranks), "--host", "none", "--region", "1", "--record", trace, "--force"]
    real = json.loads(run([weft, "run", *MACHINE, *where, "--", *case.program], folder))["rows"][0][
        "run_time_us"
    ]
    kernel = case.kernel
    if "iterations=" not in kernel and kernel.startswith("minife"):
        report = next(folder.glob("miniFE*.yaml"))
        kernel += f",iterations={re.search(r'Iterations: *([0-9]+)', report.read_text())[1]}"
    # The library of real processes, as a replay of their recording has it. Their reads of the clock are
    # recorded as computation, and nothing else is.
    replayed = json.loads(run([weft, "replay", *MACHINE, "--region", "1", trace], folder))
    asked, row = replayed["sets"], replayed["rows"][0]
    real -= row["computation_share"] * row["run_time_us"]
    trace.unlink()
    sets = [word for key in asked for word in ("--set", key)]
    done = json.loads(run([weft, "replay", *MACHINE, "--compute-scale", "0", *sets, kernel], folder))
    off = 100 * (done["rows"][0]["run_time_us"] / real - 1)
    verdict = "" if abs(off) <= MOST else f"   MORE THAN {MOST} % OFF"
    print(f"{kernel:<60} {real:10.1f} us on real processes {off:+6.2f} %{verdict}", flush=True)
    return int(abs(off) > MOST)


def halo3d(weft: Path, folder: Path) -> int:
    """The kernel halo3d beside a program of ours."""
    program = folder / "halo3d"
    run(
        [
            "mpicc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-o",
            program,
            ROOT / "tests/apps/halo3d.c",
        ],
        folder,
    )
    wrong = 0
    for grid, points, stencil in (
        ((2, 2, 2), 8, 7),
        ((2, 2, 2), 32, 7),
        ((2, 2, 2), 16, 27),
        ((1, 2, 3), 16, 7),
    ):
        ranks = grid[0] * grid[1] * grid[2]
        words = [program, *map(str, grid), str(points), str(stencil), "20"]
        kernel = f"halo3d@{ranks},local={points}x{points}x{points},stencil={stencil},steps=20"
        case = Case(ranks, words, kernel)
        wrong += compare(weft, case, folder) + timed(weft, case, folder)
    return wrong


def hpcg(apps: Path, folder: Path) -> list[Case]:
    """HPCG, in a program of ours that does one set of iterations."""
    source, program = apps / "hpcg/src", folder / "hpcg_set"
    own = [path for path in sorted(source.glob("*.cpp")) if path.stem not in ("main", "init", "finalize")]
    own.append(ROOT / "tests/apps/hpcg_set.cpp")
    run(["mpicxx", "-O1", "-DHPCG_NO_OPENMP", "-I", source, "-o", program, *own], folder)
    cases = []
    runs = [(1, (8, 8, 8), 2), (8, (16, 16, 16), 3), (12, (16, 8, 24), 2), (16, (8, 8, 16), 2)]
    for ranks, (x, y, z), iterations in runs:
        kernel = f"hpcg@{ranks},local={x}x{y}x{z},iterations={iterations}"
        cases.append(Case(ranks, [program, str(x), str(y), str(z), str(iterations)], kernel))
    return cases


def minife(apps: Path, folder: Path) -> list[Case]:
    """miniFE as it is."""
    source, program = apps / "miniFE/ref/src", folder / "minife"
    folders = [flag for place in ("src", "utils", "fem") for flag in ("-I", apps / "miniFE/ref" / place)]
    types = ["SCALAR=double", "LOCAL_ORDINAL=int", "GLOBAL_ORDINAL=int", "CSR_MATRIX=1"]
    macros = ["-DHAVE_MPI", "-DUSE_MPI_PCONTROL", *(f"-DMINIFE_{name}" for name in types)]
    own = [source / name for name in ("main.cpp", "YAML_Doc.cpp", "YAML_Element.cpp")]
    own += sorted((apps / "miniFE/ref/utils").glob("*.cpp"))
    header = ["-include", apps / "miniFE/ref/utils/miniFE_no_info.hpp"]
    run(["mpicxx", "-O1", *macros, *folders, *header, "-o", program, *own], folder)
    cases = []
    for ranks, (x, y, z) in ((2, (6, 7, 8)), (7, (9, 8, 7)), (8, (12, 12, 12)), (12, (10, 11, 12))):
        words = [program, f"nx={x}", f"ny={y}", f"nz={z}", "verify_solution=0"]
        # It stops when nothing is left to be solved, at the earliest here.
        cases.append(Case(ranks, words, f"minife@{ranks},global={x}x{y}x{z},iterations=12", goes_on=True))
    return cases


def nest(weft: Path, apps: Path, folder: Path) -> int:
    """NEST's exchange of spikes, on a balanced network: all its collectives but those that it repeats while
    its blocks grow. The size of blocks is not compared: it is fitted, by `peak` from the recording."""
    source, built, program = apps / "nest", apps / "nest-build", folder / "nest_network"
    places = [
        built / "libnestutil",
        *(source / name for name in ("nestkernel", "libnestutil", "models", "thirdparty")),
    ]
    includes = [word for place in places for word in ("-I", place)]
    names = ("models/libmodels.a", "nestkernel/libnestkernel.a", "libnestutil/libnestutil.a")
    libraries = ["-Wl,--start-group", *(built / name for name in names), "-Wl,--end-group"]
    own = ROOT / "tests/apps/nest_network.cpp"
    run(["mpicxx", "-std=c++20", "-O1", "-DHAVE_CONFIG_H", *includes, "-o", program, own, *libraries], folder)
    wrong = 0
    # In steps of 0.1 ms the intervals are 15 and 10.
    for ranks, neurons, interval, time in ((2, 1000, 15, 150), (4, 1000, 15, 150), (8, 2000, 10, 100)):
        recorded, written = folder / "recorded.weft", folder / "kernel.weft"
        words = [program, str(neurons), "100", str(interval / 10), str(time)]
        run([weft, "record", "-o", recorded, "--", "mpiexec", "-n", str(ranks), *words], folder)
        theirs = operations(recorded, region=True)
        blocks = [row[3] for row in theirs[0] if row[0] == "alltoall"]
        # A block has room for half more than the most spikes so far.
        kernel = (
            f"nest@{ranks},neurons={neurons},interval={interval},time={time},building=no,exchange=alltoall"
        )
        kernel += f",peak={-(-blocks[-1] // 8 * 2 // 3)}"
        run([weft, "trace", "convert", kernel, "-o", written], folder)
        ours = operations(written, region=False)
        recorded.unlink()
        written.unlink()
        # An exchange is made again with a larger block where spikes did not fit.
        grown = sum(later > earlier for earlier, later in pairwise(blocks))
        # A barrier moves nothing, of whatever type a trace calls it.
        others = [
            [row[:-1] if row[0] == "barrier" else row for row in rank if row[0] != "alltoall"]
            for rank in (theirs[0], ours[0])
        ]
        own_blocks = [row[3] for row in ours[0] if row[0] == "alltoall"]
        steady = len(blocks) - blocks.index(blocks[-1], len(blocks) // 2)
        is_alike = all(rank == theirs[0] for rank in theirs) and all(rank == ours[0] for rank in ours)
        is_equal = others[0] == others[1] and len(blocks) - grown == len(own_blocks)
        is_equal = is_equal and is_alike and own_blocks[-1] == blocks[-1]
        wrong += not is_equal
        verdict = "equal" if is_equal else "DIFFERS"
        text = f"{len(own_blocks)} exchanges, in NEST {grown} more; blocks of {own_blocks[-1]} bytes (fitted)"
        print(
            f"{kernel}\n    {text}, the last {steady}; {len(others[0])} other collectives   {verdict}",
            flush=True,
        )
    return wrong


def diapasom(weft: Path, folder: Path) -> int:
    """DIAPASOM, serial and on several ranks: the same map to rounding. Then beside its kernel."""
    source, program, serial = ROOT / "examples/diapasom.c", folder / "diapasom", folder / "diapasom-serial"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"]
    run(["mpicc", *flags, "-o", program, source, "-lm"], folder)
    run(["cc", *flags, "-DSERIAL", "-o", serial, source, "-lm"], folder)
    run([serial, "3000", "7", "serial.map"], folder)
    expected = [float(number) for number in (folder / "serial.map").read_text().split()]
    wrong = 0
    for ranks in (1, 3, 4):
        kernel = f"som@{ranks},records=3000,batches=7"
        case = Case(ranks, [program, "3000", "7", "ranks.map"], kernel)
        wrong += compare(weft, case, folder) + (timed(weft, case, folder) if ranks > 1 else 0)
        found = [float(number) for number in (folder / "ranks.map").read_text().split()]
        apart = max(abs(one - other) for one, other in zip(expected, found, strict=True))
        # Ranks add in another order than one does: a few units in the last place of numbers below 1.
        if apart > 1e-12 or len(expected) != 256 * 16:
            print(f"  the map of {ranks} ranks lies {apart} from that of one process")
            wrong += 1
    return wrong


def say_skipped(reason: str) -> None:
    """Says what was not compared, also in the list that tools/test.py prints at its end."""
    print(f"skipped: {reason}")
    if path := os.environ.get("WEFT_SKIPPED"):
        with Path(path).open("a") as file:
            file.write(f"skipped: {reason}\n")


def main() -> None:
    """Compares all that there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", type=Path, required=True, help="the weft command")
    parser.add_argument("--with-apps", type=Path, help="the folder of hpcg and miniFE")
    options = parser.parse_args()
    weft, wrong = options.weft.resolve(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wrong += diapasom(weft, folder) + halo3d(weft, folder)
        if options.with_apps and (options.with_apps / "nest-build/nestkernel/libnestkernel.a").is_file():
            wrong += nest(weft, options.with_apps.resolve(), folder)
        else:
            say_skipped("apps: nest: --with-apps names no folder with nest-build")
        for program, needs in ((hpcg, "hpcg/src"), (minife, "miniFE/ref/src")):
            if options.with_apps is None or not (options.with_apps / needs).is_dir():
                say_skipped(f"apps: {program.__name__}: --with-apps names no folder with {needs}")
                continue
            wrong += sum(compare(weft, case, folder) for case in program(options.with_apps.resolve(), folder))
            if program is minife:
                # It does all of its 200 iterations: when it stops earlier, its region goes on to its end.
                for ranks, (x, y, z) in ((2, (16, 16, 300)), (8, (12, 12, 300))):
                    words = [folder / "minife", f"nx={x}", f"ny={y}", f"nz={z}", "verify_solution=0"]
                    kernel = f"minife@{ranks},global={x}x{y}x{z}"
                    wrong += timed(weft, Case(ranks, words, kernel), folder)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
