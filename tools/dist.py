#!/usr/bin/env python3
"""Packs what users need who build nothing: `make dist` calls it when all is built.

    build/dist/weft-VERSION-x86_64-linux.tar.gz   bin/, lib/weft/, include/, share/; NEEDS says what they need
    build/dist/weft-VERSION-….whl                 `import weft` and the command

The command of the archive is static, C library included. The libraries that ranks load are not: they share
the C library of the ranks, which must have all that they use of the one here. NEEDS has the version.
"""

import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "build/dist"

NEEDS = """weft {version}, for Linux on {processor}

bin/weft needs no library: everything but real programs runs on any distribution. It is static, and loads
none: RTL beside a run (--rtl) is for a weft of `make install`.

`weft run` and `weft record` load the libraries of lib/weft into ranks. These need
  glibc {glibc} or later: see `ldd --version`
  for weft run, MPICH with libfabric: `pip install mpich` has one
  for weft record, MPICH, an MPI of the standard ABI, or Open MPI

Unpack it anywhere, and put bin/ into PATH. The folders must stay beside each other: bin/weft finds
lib/weft from its own place, and WEFT_LIBRARIES names it where they do not. `weft doctor` says what is
missing.
"""


def run(*words: str | Path) -> str:
    """The output of a command."""
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def target() -> str:
    """The target that `make static` builds the command for."""
    return re.search(r"^host: (.*)$", run("rustc", "-vV"), re.MULTILINE)[1]


def glibc(libraries: list[Path]) -> str:
    """The oldest glibc that has all symbols that the libraries want."""
    wanted = set()
    for library in libraries:
        wanted.update(re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", run("objdump", "-T", library)))
    return max(wanted, key=lambda version: [int(part) for part in version.split(".")])


def main() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    processor = platform.machine()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)

    name = f"weft-{version}-{processor}-linux"
    folder = DIST / name
    command = ROOT / "target" / target() / "release/weft"
    if "INTERP" in run("readelf", "--wide", "--program-headers", command):
        sys.exit(f"dist.py: {command} is not static")
    # A static command loads no library of RTL.
    places = [f"COMMAND={command}", f"PREFIX={folder}", "DESTDIR=", "RTL_LIBRARY="]
    subprocess.run(
        ["make", "--no-print-directory", "layout", *places],
        cwd=ROOT,
        check=True,
    )
    needs = NEEDS.format(version=version, processor=processor, glibc=glibc([*folder.glob("lib/weft/*.so")]))
    (folder / "NEEDS").write_text(needs)
    with tarfile.open(DIST / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(folder, name)
    shutil.rmtree(folder)

    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", DIST, ROOT], check=True)
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
