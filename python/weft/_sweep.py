"""Sweeps: a study over processes, or over any executor."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from weft import _call
from weft._toml import inline
from weft._weft import Refused
from weft._weft import Sweep as _Sweep

Ended = tuple[int, str, str]


class Study:
    """The data set of a study."""

    def __init__(self, directory: str | Path, keep: Any = None):
        self.directory: Path = Path(directory)
        """The folder of its files."""
        self._keep = keep
        file = self.directory / "study.json"
        if not file.is_file():
            message = f"{self.directory} holds no study; name a directory that weft sweep wrote"
            raise _call.BadInput(message, 2)
        self.manifest: dict[str, Any] = json.loads(file.read_text())
        """The whole of `study.json`."""

    def _read(self, name: str) -> pl.LazyFrame:
        # Read at once: a temporary directory may go before the frame does.
        return pl.read_parquet(self.directory / f"{name}.parquet").lazy()

    @property
    def rows(self) -> pl.LazyFrame:
        """A row per point, seed and measured row: parameters, and what was measured."""
        return self._read("study")

    @property
    def intervals(self) -> pl.LazyFrame:
        """Means over seeds, with the bounds of their 95 % intervals in `NAME.low` and `NAME.high`."""
        return self._read("intervals")

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Points that the command refused, with its words. They are tried again the next time."""
        return (self.manifest.get("summary") or {}).get("failed", [])

    def to_pandas(self) -> Any:
        """The intervals, as a frame of pandas."""
        return self.intervals.collect().to_pandas()

    def plot(self, x: str, y: str, by: str | None = None, path: str | Path | None = None) -> Any:
        """A measured value over a parameter, a line for each value of `by`: a figure of matplotlib."""
        from weft import _figure

        return _figure.save(_figure.study(self.intervals.collect(), (x, y, by)), path)

    def _repr_html_(self) -> str:
        return self.intervals.collect()._repr_html_()

    def __repr__(self) -> str:
        return f"weft.Study({str(self.directory)!r})"


def point(words: list[str]) -> Ended:
    """Runs a point in this process: the exit status, what the command prints, its error."""
    from weft._weft import call

    return call(words)


def _point_in_process(words: list[str]) -> Ended:
    """Runs a point in a process of the command."""
    command = [sys.executable, "-m", "weft._command", *words]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    status = ended.returncode if ended.returncode >= 0 else 1
    message = ended.stderr.strip().removeprefix("weft: ")
    if ended.returncode < 0:
        message = f"its process was killed by signal {-ended.returncode}: there may be too little memory"
    return status, ended.stdout, message


@contextmanager
def _file(study: str | Path | Mapping[str, Any]) -> Iterator[Path]:
    """The file of a study, which may be a mapping of the same form."""
    if not isinstance(study, Mapping):
        yield Path(study)
        return
    text = "".join(f"{json.dumps(str(key))} = {inline(value)}\n" for key, value in study.items())
    # Files that it names lie in the current folder.
    with tempfile.NamedTemporaryFile("w", prefix=".study-", suffix=".toml", dir=".") as file:
        file.write(text)
        file.flush()
        yield Path(file.name)


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the native part, as those of the command."""
    try:
        yield
    except Refused as error:
        message, status = error.args
        raise _call.error(message, status) from None


def _progress(futures: Any, total: int, show: bool) -> Any:
    """The futures as they end, with a bar where tqdm is installed."""
    ended = as_completed(futures)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return ended
    # None: a bar on a terminal alone. Of a notebook the standard error is no terminal.
    hidden = False if _in_notebook() else None
    return tqdm(ended, total=total, unit="point", disable=hidden if show else True)


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


def sweep(
    study: str | Path | Mapping[str, Any],
    executor: Executor | None = None,
    output: str | Path | None = None,
    *,
    jobs: int | None = None,
    force: bool = False,
    progress: bool = True,
) -> Study:
    """Runs the points of a study that are not done yet, and collects the data set.

    `study` is a file, or a mapping of the same form. `executor` is any of `concurrent.futures`, such as that
    of Dask or of mpi4py; without one, `jobs` processes run, one per core by default. `output` is the
    directory, where an interrupted study continues; by default the name of the file, or a temporary
    directory for a mapping.
    """
    keep = None
    if output is None and isinstance(study, Mapping):
        keep = tempfile.TemporaryDirectory(prefix="weft-study-")
        output = keep.name
    with _file(study) as file, _told():
        directory = Path(output) if output is not None else Path(Path(file).stem)
        work = _Sweep(file, directory, force)
    missing = work.missing()
    if executor is None:
        own = ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0)))
        run, run_on = _point_in_process, own
    else:
        own, run, run_on = None, point, executor
    futures = {run_on.submit(run, words): name for name, words in missing}
    try:
        for future in _progress(futures, len(futures), progress):
            with _told():
                work.keep(futures[future], *future.result())
    finally:
        # After Ctrl-C what has ended is kept, and the rest is left to the next time.
        for future in futures:
            future.cancel()
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)
        with _told():
            work.finish()
    return Study(directory, keep)
