#!/usr/bin/env python3
"""Runs a command and measures the memory of all its processes together.

Usage: memory.py COMMAND...

The answer in JSON has the largest sum that was seen, looking every half second: of each process its
proportional set size (PSS), in which a page that several share counts once in all.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

PSS = re.compile(r"^Pss: +(\d+) kB$", re.MULTILINE)


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold anything.
            found[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


def proportional_set_size(process: int) -> int:
    """Bytes of a process; 0 where it has ended."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    size = PSS.search(rollup)
    return int(size[1]) * 1024 if size else 0


def memory_below(root: int) -> int:
    """Bytes of a process and of all that it has started."""
    of = parents()
    family = {root}
    while more := {child for child, parent in of.items() if parent in family} - family:
        family |= more
    return sum(map(proportional_set_size, family))


def main() -> None:
    """Runs the command that the arguments are."""
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, memory_below(process.pid))
        time.sleep(0.5)
    if process.returncode != 0:
        sys.exit(process.returncode)
    print(json.dumps({"processes_memory_bytes": most}))


if __name__ == "__main__":
    main()
