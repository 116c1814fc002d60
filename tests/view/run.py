#!/usr/bin/env python3
"""Looks at the page of `weft view` in headless Chromium, on results that it makes.

run.py [--weft target/quick/weft] [--shots FOLDER]

Without Node, view/node_modules, Chromium or the page in the command it says so and counts as skipped.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "page in Chromium"
# Text that would become markup, were it not kept as text.
HOSTILE = "<img src=x onerror=document.title=1>"


def missing(weft: str) -> str | None:
    """The reason why the test cannot run."""
    if not shutil.which("node"):
        return "Node is missing: apt-get install nodejs npm"
    if not (ROOT / "view/node_modules/playwright-core").is_dir():
        return "playwright-core is missing: make view"
    if not shutil.which("chromium"):
        return "chromium is missing: apt-get install chromium"
    doctor = subprocess.run([weft, "doctor", "--json"], capture_output=True, text=True)
    rows = json.loads(doctor.stdout)["rows"]
    if not any(row["what"] == "page in the browser" and row["found"] for row in rows):
        return "the command has no page: make view"
    return None


def skip(reason: str) -> None:
    """Says that the test did not run, as tools/test.py reads it."""
    print(f"skipped: {NAME}: {reason}")
    if path := os.environ.get("WEFT_SKIPPED"):
        with Path(path).open("a") as file:
            file.write(f"skipped: {NAME}: {reason}\n")


def simulate(weft: str, out: Path, words: str) -> None:
    """Makes a result."""
    subprocess.run([weft, *words.split(), "--quiet", "-o", out], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def served(weft: str, *directories: Path):
    """The address of a page that shows results."""
    process = subprocess.Popen([weft, "view", *directories], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@contextmanager
def running(weft: str, program: Path, out: Path):
    """The address of a page of a run that goes on for minutes, if nobody ends it."""
    words = f"run -m exanest -n 2 --ppn 1 --view --telemetry 2ms --quiet -o {out} -- {program} 1000000"
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([weft, *words.split()], text=True, **pipes)
    try:
        yield process.stderr.readline().removeprefix("weft: ").strip()
    finally:
        # Its ranks end with it.
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", default="target/quick/weft")
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    weft = str(Path(options.weft).resolve())
    if reason := missing(weft):
        skip(reason)
        return
    with tempfile.TemporaryDirectory() as folder:
        one, two, hostile = (Path(folder, name) for name in ("one", "two", HOSTILE))
        tables = "--telemetry 1us --tables messages,flows,links"
        traffic = f"traffic -m bxi3-fattree --set topology.k=4 --time 20us {tables}"
        simulate(weft, one, f"{traffic} --load 0.2:0.6:0.4")
        simulate(weft, two, f"{traffic} --load 0.4")
        shutil.copytree(two, hostile)
        shots = options.shots or Path(folder, "shots")
        shots.mkdir(exist_ok=True)
        with served(weft, one) as first, served(weft, one, two) as both, served(weft, hostile) as third:
            addresses = [first, both, third]
            status = subprocess.run(["node", ROOT / "view/tests/page.js", shots, *addresses]).returncode
        compiler, program = ROOT / "build/venv/bin/mpicc", Path(folder, "ping_pong")
        if compiler.is_file():
            subprocess.run([compiler, "-O2", "-o", program, ROOT / "bench/ping_pong.c"], check=True)
            with running(weft, program, Path(folder, "live")) as address:
                status |= subprocess.run(["node", ROOT / "view/tests/live.js", shots, address]).returncode
        else:
            skip("no MPICH in build/venv, whose programs a page shows as they run; make test installs it")
    sys.exit(status)


if __name__ == "__main__":
    main()
