"""Traces of programs, in any format that the command reads."""

from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from weft import _call
from weft._picture import Picture, draw


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a frame: numbers and texts."""
    plain = (int, float, str, bool)
    rows = [{k: v for k, v in row.items() if isinstance(v, plain)} for row in rows]
    return pl.from_dicts(rows, infer_schema_length=None) if rows else pl.DataFrame()


class Trace:
    """A trace in a file. Each of its values is read once, when it is first asked for."""

    def __init__(self, path: str | Path, speed: str | None = None):
        self.path: Path = Path(path)
        """The file, or one of the files."""
        self._options = _call.options({"speed": speed})

    @cached_property
    def info(self) -> dict[str, Any]:
        """Program, recorder, ranks, counts of operations: `weft trace info`."""
        return _call.document(["trace", "info", str(self.path), *self._options])

    @cached_property
    def stats(self) -> dict[str, Any]:
        """All that `weft trace stats --json` counts."""
        return _call.document(["trace", "stats", str(self.path), *self._options])

    @property
    def ranks(self) -> pl.DataFrame:
        """Operations, messages, bytes and computation of each rank."""
        return _frame(self.stats["rows"])

    @property
    def matrix(self) -> pl.DataFrame:
        """Messages and bytes from each rank to each that it sends to."""
        return _frame(self.stats["matrix"]["rows"])

    @property
    def evolution(self) -> pl.DataFrame:
        """Messages, collectives and bytes of all ranks by the time that a rank has computed."""
        return _frame(self.stats["evolution"]["rows"])

    def plot(self, kind: str = "communication-matrix", path: str | Path | None = None) -> Picture:
        """A picture of `weft plot`, such as `plot("evolution", "evolution.png")`."""
        return draw([str(self.path), "--what", kind, *self._options], path)

    def report(self, path: str | Path) -> None:
        """Writes one HTML page with all of it."""
        _call.text(["report", str(self.path), "-o", str(path), "--force", *self._options])

    def __repr__(self) -> str:
        return f"weft.Trace({str(self.path)!r})"


def trace(path: str | Path, speed: str | None = None) -> Trace:
    """Opens the trace in a file of any format: `trace("actions.txt", speed="1Gf").matrix`.

    `speed` is that of a core, for traces of SimGrid that do not say it.
    """
    return Trace(path, speed)
