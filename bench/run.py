#!/usr/bin/env python3
"""Runs the cases of cases.toml, prints their table and keeps it with its raw data under bench/runs.

Give words to run only the cases whose names hold one of them.
"""

import argparse
import csv
import datetime
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
WEFT = HERE.parent / "target/release/weft"

# Columns next to every measured value: key of the answer, heading, factor.
FURTHER_COLUMNS = (
    ("accepted_load", "accepted load", 1),
    ("latency_mean_ns", "latency (ns)", 1),
    ("peak_memory_bytes", "memory (MB)", 1e-6),
)


def values_of(answer: dict) -> dict:
    """The keys of an answer and of its only measurement."""
    rows = answer.get("rows") or [{}]
    return answer | rows[0]


def run_together(commands: list[str]) -> list[dict]:
    """Starts all commands at once and returns their answers."""

    def words(command: str) -> list[str | Path]:
        program, *arguments = shlex.split(command)
        return [WEFT if program == "weft" else program, *arguments]

    started = [subprocess.Popen(words(command), stdout=subprocess.PIPE, text=True) for command in commands]
    # All are waited for before any is judged, so that a failed one leaves none behind.
    finished = [(process.communicate()[0], process.returncode) for process in started]
    for command, (_, status) in zip(commands, finished, strict=True):
        if status != 0:
            sys.exit(f"bench: exit status {status} of: {command}")
    return [values_of(json.loads(output)) for output, _ in finished]


def commands_of(case: dict) -> tuple[str, ...]:
    """The commands of a case, started together: of weft, or another program that answers in JSON."""
    if "run" in case:
        return (case["run"],)
    arguments = [case["weft"]] if isinstance(case["weft"], str) else case["weft"]
    return tuple(f"weft {words}" for words in arguments)


def cpu_model() -> str:
    """The processor's name, as Linux names it."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return models[0] if models else platform.machine()


def table(cases: list[dict], samples: dict) -> list[str]:
    """The table as lines of Markdown: medians over the repetitions, and the best of them, which others on the
    machine have disturbed least: by it a case is judged.
    """
    lines = [
        "| case | required | aim | median | best | "
        + " | ".join(heading for _, heading, _ in FURTHER_COLUMNS)
        + " |",
        "|---|---|---|---|---|" + "---|" * len(FURTHER_COLUMNS),
    ]

    def values(case: dict) -> list[float]:
        runs = samples[commands_of(case)]
        return [sum(answer[case["measure"]] for answer in run) / case.get("per", 1) for run in runs]

    by_name = {case["name"]: case for case in cases}
    for case in cases:
        smaller = case.get("smaller_is_better", False)
        runs = values(case)
        if base := case.get("relative_to"):
            # Those of one round have been disturbed alike.
            runs = [value / other for value, other in zip(runs, values(by_name[base]), strict=True)]
        best = min(runs) if smaller else max(runs)
        first = [run[0] for run in samples[commands_of(case)]]
        further = [
            f"{statistics.median(answer[key] for answer in first) * factor:.4g}"
            if first[0].get(key) is not None
            else ""
            for key, _, factor in FURTHER_COLUMNS
        ]
        goals = [f"{case[goal]:,.4g}" if goal in case else "" for goal in ("required", "aim")]
        verdict = ""
        if "required" in case:
            met = best <= case["required"] if smaller else best >= case["required"]
            verdict = "" if met else " (missed)"
        measured = [f"{statistics.median(runs):,.4g}", f"{best:,.4g}{verdict}"]
        lines.append("| " + " | ".join([case["name"], *goals, *measured, *further]) + " |")
    return lines


def write_run(lines: list[str], samples: dict, repeat: int) -> Path:
    """Writes the table with the machine it holds for, and every sample."""
    cpu = cpu_model()
    name = re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
    folder = HERE / "runs" / f"{datetime.date.today()}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    machine = f"{cpu}, {cores} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}"
    head = ["# Benchmark", "", f"- machine: {machine}", f"- compiler: {rust}, release profile"]
    head += [f"- median and best of {repeat} runs, or of as many as cases.toml says; judged by the best"]
    head += ["- rates and sizes are in base units", ""]
    (folder / "summary.md").write_text("\n".join([*head, *lines, ""]))
    with (folder / "raw.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["command", "run", "key", "value"])
        for runs in samples.values():
            for number, run in enumerate(runs):
                for command, answer in run:
                    numbers = {key: value for key, value in answer.items() if isinstance(value, int | float)}
                    writer.writerows([command, number, key, value] for key, value in numbers.items())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="run only the cases whose names hold one of these")
    parser.add_argument("--repeat", type=int, help="runs of each case (default: as in cases.toml)")
    options = parser.parse_args()

    plan = tomllib.loads((HERE / "cases.toml").read_text())
    repeat = options.repeat or plan["repeat"]
    cases = [c for c in plan["case"] if not options.words or any(word in c["name"] for word in options.words)]
    for case in [c for c in cases if "needs" in c and not shutil.which(c["needs"])]:
        print(f"left out, for want of {case['needs']}: {case['name']}", file=sys.stderr)
        cases.remove(case)
    missing = [c["name"] for c in cases if c.get("relative_to", c["name"]) not in {d["name"] for d in cases}]
    if not cases:
        sys.exit(f"bench: no case holds any of: {', '.join(options.words)}")
    if missing:
        sys.exit(f"bench: choose also the case that these are relative to: {', '.join(missing)}")

    # Cases that look at the same run share it; rounds, not cases, are repeated, so that a disturbance
    # hits all of them alike.
    samples: dict[tuple[str, ...], list] = {commands_of(case): [] for case in cases}
    at_most = {commands_of(case): case.get("repeat", repeat) for case in cases}
    for round_number in range(repeat):
        for commands, runs in samples.items():
            if round_number >= at_most[commands]:
                continue
            print(f"[{round_number + 1}/{repeat}] {' & '.join(commands)}", file=sys.stderr, flush=True)
            runs.append(list(zip(commands, run_together(list(commands)), strict=True)))
    answers = {
        commands: [[answer for _, answer in run] for run in runs] for commands, runs in samples.items()
    }
    lines = table(cases, answers)
    print("\n".join(lines))
    folder = write_run(lines, samples, repeat)
    print(f"kept in {folder.relative_to(HERE.parent)}", file=sys.stderr)


if __name__ == "__main__":
    main()
