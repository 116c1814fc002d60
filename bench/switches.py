#!/usr/bin/env python3
"""Runs a command of `weft run` with `--json` and counts the context switches of all its processes.

Usage: switches.py COMMAND...

The answer in JSON has their number for each message of the run. Switches of the start and the end are in
it, so a run should have many messages. Linux counts a switch where a thread leaves its core, to sleep or for
another.
"""

import json
import resource
import subprocess
import sys


def main() -> None:
    """Runs the command that the arguments are."""
    run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.returncode)
    # Of a process that has been waited for it holds those that it has waited for: weft waits for its ranks.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The program's own output comes before the answer.
    messages = json.loads(run.stdout[run.stdout.index("{\n") :])["messages"]
    if messages == 0:
        sys.exit("switches: the run has sent no message, by which its switches would be divided")
    answer = {
        "messages": messages,
        "voluntary_switches": used.ru_nvcsw,
        "involuntary_switches": used.ru_nivcsw,
        "context_switches_per_message": (used.ru_nvcsw + used.ru_nivcsw) / messages,
        "cpu_seconds": used.ru_utime + used.ru_stime,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
