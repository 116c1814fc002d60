"""The build backend of the wheel: maturin's, with the libraries that ranks load added to the wheel.

    pip ──► build_wheel ──► maturin: the native part, the command, libraries of ranks in cargo's folder
                    │
                    ├── make: the libfabric provider, where libfabric's headers are found
                    ├── make: the recorder, for each MPI whose compiler is found
                    └── adds them to the wheel, in weft/lib

What cannot be built is left out: the wheel installs all the same, and `weft doctor` says what is missing.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[2]
# Made by cargo beside the native part, since the command depends on them.
OF_CARGO = ["libweft_client.so", "libweft_calls.so", "libportals.so"]
# Where they lie in the wheel; weft/_command.py and weft/_call.py name the folder to the command.
FOLDER = "weft/lib"
# Of each MPI that the recorder knows: names of its compiler, and what its header defines.
COMPILERS = {
    "mpich": (["mpicc.mpich", "mpicc"], "MPICH_VERSION"),
    "abi": (["mpicc_abi"], "MPI_ABI_VERSION"),
    "openmpi": (["mpicc.openmpi", "mpicc"], "OMPI_MAJOR_VERSION"),
}


def build_wheel(
    wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    """The wheel, with all libraries that can be built here."""
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    with tempfile.TemporaryDirectory() as folder:
        add(Path(wheel_directory, name), libraries(Path(folder)))
    return name


def build_editable(
    wheel_directory: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    """As maturin builds it: in a clone the command finds what `make provider recorder` build."""
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def libraries(folder: Path) -> list[Path]:
    """The libraries that ranks load; those of C are built into a folder."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    command += ["--manifest-path", str(ROOT / "python/Cargo.toml")]
    described = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    of_cargo = Path(described["target_directory"], "release/deps")
    found = [of_cargo / name for name in OF_CARGO]
    if missing := [str(file) for file in found if not file.is_file()]:
        tell(f"weft run will not work: cargo has not left {', '.join(missing)}")
        return []
    return [*found, *provider(folder), *recorders(folder)]


def provider(folder: Path) -> list[Path]:
    """The libfabric provider, where the headers are installed."""
    file = folder / "libweft-fi.so"
    if make("libfabric", [f"OUT={folder}"], file):
        return [file]
    tell("weft run will not work: apt-get install libfabric-dev pkg-config, and install this again")
    return []


def recorders(folder: Path) -> list[Path]:
    """The recorder for each MPI that is found."""
    # An MPI may lie in the environment for which the wheel is built, which need not be active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    built = []
    for mpi, (names, defined) in COMPILERS.items():
        compilers = [shutil.which(name, path=path) for name in names]
        compiler = next((one for one in compilers if one and defines(one, defined)), None)
        if compiler is None:
            continue
        words = [f"MPICC_{one}={compiler if one == mpi else ''}" for one in COMPILERS]
        file = folder / f"libweft-record-{mpi}.so"
        if make("recorder", [f"OUT={folder}", f"PYTHON={sys.executable}", *words], file):
            built.append(file)
    if not built:
        tell("weft record will not work: pip install mpich, or apt-get install libopenmpi-dev; then again")
    return built


def defines(compiler: str, name: str) -> bool:
    """Whether the header of an MPI, which its compiler finds, defines a name."""
    command = [compiler, "-dM", "-E", "-x", "c", "-"]
    text = "#include <mpi.h>\n"
    done = subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.returncode == 0 and f"#define {name} " in done.stdout


def make(part: str, words: list[str], file: Path) -> bool:
    """Builds a library of C; whether it could be built."""
    command = ["make", "--no-print-directory", "-C", str(ROOT / part), *words, str(file)]
    try:
        done = subprocess.run(command, stdout=sys.stderr)
    except FileNotFoundError:
        tell("make is not installed")
        return False
    return done.returncode == 0 and file.is_file()


def tell(text: str) -> None:
    """Shown by `pip install -v`; later `weft doctor` says it."""
    print(f"weft: {text}", file=sys.stderr)


def add(wheel: Path, files: list[Path]) -> None:
    """Adds libraries to a wheel, and to the list of its files."""
    anew = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(anew, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode()
        for entry in old.infolist():
            if entry.filename != record:
                new.writestr(entry, old.read(entry))
        for file in files:
            content = file.read_bytes()
            entry = zipfile.ZipInfo(f"{FOLDER}/{file.name}")
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
            new.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines += f"{entry.filename},sha256={digest},{len(content)}\n"
        new.writestr(record, lines)
    anew.replace(wheel)
