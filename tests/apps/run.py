#!/usr/bin/env python3
"""Compares application kernels with recordings of the programs that they stand for, operation by operation.

The programs lie beside this tree: --with-apps names a folder with the sources of HPCG
(github.com/hpcg-benchmark/hpcg) as `hpcg` and of miniFE (github.com/Mantevo/miniFE) as `miniFE`. A program
that
is not there is said to be skipped. Computation is not compared: kernels have operations and bytes, recordings
have times.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as parquet

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
LIBRARIES = Path(sysconfig.get_path("data")) / "lib"

# What of an operation decides how it moves. A wait says nothing: requests are numbered by whoever writes.
FIELDS = ["operation", "peer", "tag", "bytes", "receive_bytes", "reduction", "data_type"]
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
        wrong += compare(weft, Case(ranks, [program, "3000", "7", "ranks.map"], kernel), folder)
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
        wrong += diapasom(weft, folder)
        for program, needs in ((hpcg, "hpcg/src"), (minife, "miniFE/ref/src")):
            if options.with_apps is None or not (options.with_apps / needs).is_dir():
                say_skipped(f"apps: {program.__name__}: --with-apps names no folder with {needs}")
                continue
            wrong += sum(compare(weft, case, folder) for case in program(options.with_apps.resolve(), folder))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
