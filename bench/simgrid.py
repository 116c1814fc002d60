#!/usr/bin/env python3
"""Runs an MPI program of this folder under SimGrid's SMPI, and answers with the time it took, as JSON.

The network is a flat cluster of 10 Gb/s links, 500 ns each; computation is not simulated. SimGrid's flows
share links without packets, in one process: what is compared is the time to carry the same program's
messages, not the same model.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="rack" prefix="node" suffix="" radical="0-{last}" speed="1Gf" bw="1250MBps" lat="500ns"/>
</platform>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="C file in this folder, without .c")
    parser.add_argument("ranks", type=int)
    parser.add_argument("arguments", nargs="*", help="of the program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, platform, hosts = (Path(folder) / name for name in ("program", "platform.xml", "hosts"))
        platform.write_text(PLATFORM.format(last=options.ranks - 1))
        hosts.write_text("".join(f"node{rank}\n" for rank in range(options.ranks)))
        subprocess.run(["smpicc", "-O2", HERE / f"{options.source}.c", "-o", program], check=True)
        command = ["smpirun", "-quiet", "-np", str(options.ranks), "-platform", platform, "-hostfile", hosts]
        command += ["--cfg=smpi/simulate-computation:no", program, *options.arguments]
        began = time.perf_counter()
        ran = subprocess.run(command, capture_output=True, text=True)
        wall_seconds = time.perf_counter() - began
    if ran.returncode != 0:
        sys.exit(f"bench: smpirun ended with {ran.returncode}: {ran.stderr[-2000:]}")
    print(json.dumps({"wall_seconds": wall_seconds}))


if __name__ == "__main__":
    main()
