"""Results."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from weft import _call, _figure, _html
from weft._machine import Machine, machine
from weft._picture import Picture, draw
from weft._placement import Placement, mapping
from weft._program import Program, RankProgram, program

TABLES = "messages,flows,links,ranks,calls"
# Columns of a row that a notebook shows, the most telling first: the case, then what came of it.
TELLING = [
    *("name", "group", "congestion", "job", "program", "trace", "size_bytes", "offered_load", "ranks"),
    *(
        "latency_mean_ns",
        "latency_p99_ns",
        "latency_us",
        "accepted_load",
        "bandwidth_gbps",
        "throughput_gbps",
    ),
    *("slowdown", "fairness", "saturated", "time_us", "messages", "messages_per_second", "packets_dropped"),
    *("seeds", "run_time_us"),
]
# Columns and rows of that table.
COLUMNS = 10
SHOWN = 30


class Plots:
    """The pictures of a result: `plot.load_curve("curve.png")`. Each writes a file if it is given a path.

    matplotlib draws the files, in any of its formats; without it the command does, as SVG or PNG.
    """

    def __init__(self, result: "Result"):
        self._result = result

    def _draw(self, kind: str, path: str | Path | None, run: int | None) -> Picture:
        words = [str(self._result.directory), "--what", kind, *_call.options({"run": run})]
        return draw(words, path)

    def load_curve(self, path: str | Path | None = None) -> Picture:
        """Latency and throughput over load."""
        return self._draw("load-curve", path, None)

    def fct_cdf(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """The distribution of completion times of messages."""
        return self._draw("fct-cdf", path, run)

    def slow_down(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """The slow-down of messages by size."""
        return self._draw("slow-down", path, run)

    def queue(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Bytes in queues over time, stacked."""
        return self._draw("queue", path, run)

    def queue_heat_map(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Bytes in each queue over time."""
        return self._draw("queue-heat-map", path, run)

    def switch_queues(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Packets in the deepest queue of each switch over time, stacked; with telemetry."""
        return self._draw("switch-queues", path, run)

    def switch_queue_heat_map(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Packets in the deepest queue of each switch over time; with telemetry."""
        return self._draw("switch-queue-heat-map", path, run)

    def congestion_trees(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Congestion trees over time: roots, and the links that wait for them; with telemetry."""
        return self._draw("congestion-trees", path, run)

    def rates(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Rates of links over time."""
        return self._draw("rates", path, run)

    def flow_rates(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Rates of flows over time, and what congestion control allows them."""
        return self._draw("flow-rates", path, run)

    def job_rates(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Rates of jobs over time, and those of each alone."""
        return self._draw("job-rates", path, run)

    def throughput(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Payload that arrives over time, of all flows together."""
        return self._draw("throughput", path, run)

    def link_utilization(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Utilization of links."""
        return self._draw("link-utilization", path, run)

    def link_energy(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Energy of links, where the machine says their power."""
        return self._draw("link-energy", path, run)

    def timeline(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Messages between ranks or endpoints over time."""
        return self._draw("timeline", path, run)

    def communication_matrix(self, path: str | Path | None = None, run: int | None = None) -> Picture:
        """Bytes from each rank or endpoint to each."""
        return self._draw("communication-matrix", path, run)

    def topology(self, path: str | Path | None = None, run: int = 0) -> Any:
        """Endpoints and switches with links in the colour of their utilization: a figure of matplotlib."""
        links = self._result.links.filter(pl.col("run") == run).collect()
        if links.is_empty():
            raise _call.BadInput(f"{self._result.directory} has no run {run}", 2)
        title = f"Utilization of links, {self._result.manifest['request']['machine']['name']}, run {run}"
        return _figure.save(_figure.topology(links, title), path)


class Result:
    """A result directory. Tables are read lazily, with Polars."""

    def __init__(self, directory: str | Path, keep: Any = None):
        self.directory: Path = Path(directory)
        """The folder of its files."""
        # A temporary directory lives as long as its result, or a frame of one of its tables.
        self._keep = keep
        file = self.directory / "run.json"
        if not file.is_file():
            message = f"{self.directory} holds no finished run; name a directory that weft wrote"
            raise _call.BadInput(message, 2)
        self.manifest: dict[str, Any] = json.loads(file.read_text())
        """The whole of `run.json`."""

    def _table(self, name: str) -> pl.LazyFrame:
        file = self.directory / f"{name}.parquet"
        if not file.is_file():
            mends = {
                "parts": 'tables="links,parts"',
                "pieces": "breakdown=True",
                "packets": 'tables="packets"',
                "rates": 'telemetry="10us"',
                "queues": 'telemetry="10us"',
                "flow_rates": 'telemetry="10us", tables="flow_rates"',
                "job_rates": 'telemetry="10us", of several traces',
                "job_links": "links_by_job=True",
            }
            mend = mends.get(name, f'tables="{TABLES}"')
            raise _call.BadInput(f"{self.directory} has no table {name}; run it again with {mend}", 2)
        return pl.scan_parquet(file) if self._keep is None else self._kept(file)

    def _kept(self, file: Path) -> pl.LazyFrame:
        """A table of a temporary directory, which lives as long as a frame that will be read from it."""
        keep = self._keep

        def read(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _batch: int | None
        ) -> Iterator[pl.DataFrame]:
            assert keep is not None
            frame = pl.scan_parquet(file)
            frame = frame if rows is None else frame.head(rows)
            frame = frame if predicate is None else frame.filter(predicate)
            yield (frame if columns is None else frame.select(columns)).collect()

        return register_io_source(read, schema=pl.read_parquet_schema(file))

    @property
    def messages(self) -> pl.LazyFrame:
        """Messages in the order of their delivery."""
        return self._table("messages")

    @property
    def flows(self) -> pl.LazyFrame:
        """All messages from one endpoint to another, in one row."""
        return self._table("flows")

    @property
    def links(self) -> pl.LazyFrame:
        """Links, one row per direction."""
        return self._table("links")

    @property
    def ranks(self) -> pl.LazyFrame:
        """Ranks."""
        return self._table("ranks")

    @property
    def calls(self) -> pl.LazyFrame:
        """Calls of each rank by operation: how many, and their time."""
        return self._table("calls")

    @property
    def packets(self) -> pl.LazyFrame:
        """Times of each packet at each link; written with `tables="packets"`."""
        return self._table("packets")

    @property
    def parts(self) -> pl.LazyFrame:
        """Switches and interfaces whose power is known; written with `tables="links,parts"`."""
        return self._table("parts")

    @property
    def pieces(self) -> pl.LazyFrame:
        """Where the time of each message went; written with `breakdown=True`."""
        return self._table("pieces")

    @property
    def queues(self) -> pl.LazyFrame:
        """Queues over time; written with `telemetry="10us"`."""
        return self._table("queues")

    @property
    def rates(self) -> pl.LazyFrame:
        """Links over time; written with `telemetry="10us"`."""
        return self._table("rates")

    @property
    def flow_rates(self) -> pl.LazyFrame:
        """Flows over time; written with `telemetry="10us", tables="flow_rates"`."""
        return self._table("flow_rates")

    @property
    def job_rates(self) -> pl.LazyFrame:
        """Jobs over time; written with `telemetry="10us"` where several traces are replayed."""
        return self._table("job_rates")

    @property
    def job_links(self) -> pl.LazyFrame:
        """Links by job; written with `links_by_job=True`."""
        return self._table("job_links")

    @property
    def summary(self) -> pl.DataFrame:
        """The measured rows: numbers and texts of `run.json`."""
        plain = (int, float, str, bool)
        rows = [{k: v for k, v in row.items() if isinstance(v, plain)} for row in self.manifest["rows"]]
        return pl.from_dicts(rows, infer_schema_length=None) if rows else pl.DataFrame()

    @property
    def diagnosis(self) -> dict[str, Any]:
        """The verdict of `weft explain` on a run of `weft.run`: `["sentence"]` and what it rests on."""
        explained = self.manifest.get("explained", [])
        # A run that was asked for a region has the whole too.
        for one in explained:
            if "region" not in one and one.get("diagnosis"):
                return dict(one["diagnosis"])
        mend = "weft explain finds that of a replay or a benchmark"
        raise _call.BadInput(f"{self.directory} has no diagnosis in its run.json; {mend}", 2)

    @property
    def plot(self) -> Plots:
        """Pictures."""
        return Plots(self)

    def report(self, path: str | Path) -> None:
        """Writes one HTML page with all of it."""
        _call.text(["report", str(self.directory), "-o", str(path), "--force"])

    def to_pandas(self, table: str | None = None) -> Any:
        """The summary, or a table, as a frame of pandas."""
        frame = self.summary if table is None else self._table(table).collect()
        return frame.to_pandas()

    def _repr_html_(self) -> str:
        request = self.manifest["request"]
        machine = request.get("machine", {})
        facts = {
            "command": request.get("command"),
            "machine": " ".join([str(machine.get("name")), *machine.get("sets", [])]),
            "ended": self.manifest["ended"],
            "directory": str(self.directory),
        }
        rows = self.manifest["rows"]
        known = [name for name in TELLING if any(row.get(name) is not None for row in rows)][:COLUMNS]
        more = f"<p>{len(rows) - SHOWN} more rows: see .summary</p>" if len(rows) > SHOWN else ""
        table = _html.table([name.replace("_", " ") for name in known], _html.cells(rows[:SHOWN], known))
        loads = {row.get("offered_load") for row in rows} - {None}
        curve = self.plot.load_curve().svg if len(loads) > 1 else ""
        return f"{_html.facts(facts)}{table}{more}{curve}"

    def __repr__(self) -> str:
        return f"weft.Result({str(self.directory)!r}, {self.manifest['ended']})"


def open(directory: str | Path) -> Result:
    """Opens the result that the command wrote into a directory."""
    return Result(directory)


def _run(
    words: list[str],
    given: dict[str, Any],
    tail: list[str] | None = None,
    placed: str | None = None,
    programs: list[Any] | None = None,
) -> Result:
    """Runs a command into its directory, or into a temporary one. `placed` is the text of a mapping file."""
    keep = None
    directory = given.pop("output", None)
    if directory is None:
        keep = tempfile.TemporaryDirectory(prefix="weft-")
        directory = keep.name
    given.setdefault("tables", TABLES)
    words = [*words, *_call.options(given), "-o", str(directory), "--quiet"]
    # The command reads the file before it runs, and keeps the text in `run.json`.
    with tempfile.NamedTemporaryFile("w", prefix="weft-", suffix=".map") as file:
        if placed is not None:
            file.write(placed)
            file.flush()
            words += ["--map", file.name]
        _call.text([*words, *(tail or [])], programs)
    return Result(directory, keep)


def _map(placement: Placement | None, given: dict[str, Any], on: Machine) -> str | None:
    """The mapping file of a placement, of as many ranks as the options say."""
    if placement is None:
        return None
    if "map" in given:
        raise _call.BadInput("placement and map both say where ranks sit; leave one out", 2)
    ranks = given.get("ranks")
    if not isinstance(ranks, int):
        raise _call.BadInput(f"placement is asked for each rank, and ranks is {ranks}; write ranks=16", 2)
    return mapping(placement, ranks, on)


def traffic(on: str | Machine, **options: Any) -> Result:
    """Runs a traffic pattern at some loads: `traffic("exanest", pattern="uniform", load=[0.2, 0.6])`.

    Options are those of `weft traffic`, with _ for -. Every endpoint sends, so there is no placement.
    """
    if "placement" in options:
        raise _call.BadInput("traffic has no ranks to place: every endpoint sends; leave placement out", 2)
    return _run(["traffic", *machine(on)._words()], options)


def osu(benchmark: str, on: str | Machine, placement: Placement | None = None, **options: Any) -> Result:
    """Runs an OSU micro-benchmark on simulated ranks: `osu("allreduce", "exanest", ranks=16, sizes="4K")`.

    `placement(rank, machine)` names the endpoint of each rank, by number or name, or a pair of endpoint and
    core. It is called once for every rank before the run. Options are those of `weft osu`.
    """
    machine_of_it = machine(on)
    placed = _map(placement, options, machine_of_it)
    return _run(["osu", benchmark, *machine_of_it._words()], options, placed=placed)


def app(
    name: str,
    on: str | Machine,
    ranks: int,
    options: dict[str, Any] | None = None,
    placement: Placement | None = None,
    **more: Any,
) -> Result:
    """Runs an application kernel: `app("hpcg", "exanest", 64, {"local": "16x16x16"}, ppn=4)`.

    `options` are those of the application, as `weft app show NAME` has them. `placement` is that of
    `weft.osu`. More options are those of `weft app`.
    """
    given = [f"{key}={value}" for key, value in (options or {}).items()]
    with_them = ["--with", ",".join(given)] if given else []
    machine_of_it = machine(on)
    placed = _map(placement, {**more, "ranks": ranks}, machine_of_it)
    words = ["app", name, "--ranks", str(ranks), *with_them, *machine_of_it._words()]
    return _run(words, more, placed=placed)


Replayed = str | Path | RankProgram | Program
"""A program to replay: the file of a trace, or a rank program."""


def replay(
    trace: Replayed | list[Replayed],
    on: str | Machine,
    placement: Placement | None = None,
    ranks: int | None = None,
    **options: Any,
) -> Result:
    """Replays traces or rank programs on a machine; several run side by side.

    Rank programs that are functions need `ranks`: `replay(pingpong, "exanest", ranks=2)`. `placement` is that
    of `weft.osu`; ranks of several programs count on. Options are those of `weft replay`.
    """
    names: list[str] = []
    programs: list[Program] = []
    for one in trace if isinstance(trace, list) else [trace]:
        if isinstance(one, str | Path):
            names.append(str(one))
            continue
        if not isinstance(one, Program):
            one = program(one, ranks)
        names.append(f"program:{len(programs)}")
        programs.append(one)
    if ranks is not None and not programs:
        raise _call.BadInput("a trace has its own ranks; leave ranks out", 2)
    machine_of_it = machine(on)
    count = {}
    if placement is not None:
        traces = [one for one in names if not one.startswith("program:")]
        speed = _call.options({"speed": options.get("speed")})
        recorded = sum(_call.document(["trace", "info", one, *speed])["ranks"] for one in traces)
        count["ranks"] = recorded + sum(one.ranks for one in programs)
    placed = _map(placement, {**options, **count}, machine_of_it)
    native = [one._native() for one in programs]
    return _run(["replay", *machine_of_it._words(), *names], options, placed=placed, programs=native)


def run(
    program: str | Path | Sequence[str | Path],
    on: str | Machine,
    placement: Placement | None = None,
    **options: Any,
) -> Result:
    """Runs a real MPI program in virtual time: `run(["./program", "100"], "exanest", ranks=8)`.

    `program` has the program and its arguments; a single text or path is a program without arguments.
    `placement` is that of `weft.osu`. Options are those of `weft run`.
    """
    machine_of_it = machine(on)
    placed = _map(placement, options, machine_of_it)
    words = [program] if isinstance(program, str | Path) else program
    return _run(["run", *machine_of_it._words()], options, ["--", *map(str, words)], placed)
