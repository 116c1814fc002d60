#!/usr/bin/env python3
"""Uses `import weft` as the book shows it, in an environment that has the wheel.

smoke.py
"""

import re
import subprocess
import sys
import tempfile
from concurrent.futures import Executor
from pathlib import Path

import weft
from weft._toml import inline


class Idle(Executor):
    """Takes no work."""

    def submit(self, *_: object) -> None:
        raise AssertionError("a point is run twice")


def check_placements(machine: weft.Machine) -> None:
    """Compares ranks that a function places with ranks at the same endpoints, and with nearer ones."""

    def latency(**options: object) -> float:
        return weft.osu("latency", machine, sizes="8", **options).summary["latency_us"][0]

    far = latency(ranks=2, placement=lambda rank, on: rank * (len(on.endpoints) - 1))
    assert far == latency(_from=0, to=15)
    assert far > latency(ranks=2, placement=lambda rank, on: on.endpoints[rank])
    # Two cores of one host, of which the first is named.
    shared = machine.set("host.cores", 2)
    places = weft.osu(
        "latency", shared, ranks=2, sizes="8", placement=lambda rank, on: (3, 1 - rank)
    ).manifest["request"]["map"]
    assert places == {"file": "3 1\n3 0\n"}, places


def check_routings() -> None:
    """Compares ways that a function chooses with the shortest ones."""
    import networkx

    ring = networkx.cycle_graph(8)
    base = weft.machine("bxi3-fattree")
    around = base.on_graph(ring, routing=lambda at, to, graph: (at + 1) % 8)
    assert around.check()["deadlock_free"]

    def latency(machine: weft.Machine) -> float:
        return weft.osu("latency", machine, sizes="8", _from=1, to=0).summary["latency_us"][0]

    # One link and back the long way of seven, or one link either way.
    assert latency(around) > latency(base.on_graph(ring))
    try:
        base.on_graph(ring, routing=lambda at, to, graph: (at + 2) % 8)
    except weft.BadInput as error:
        assert "goes to 2, which no link joins to 0" in str(error), error
    else:
        raise AssertionError("nothing was said about a hop without a link")
    back = base.on_graph(ring, routing=lambda at, to, graph: at ^ 1)
    try:
        back.check()
    except weft.BadInput as error:
        assert "in a circle" in str(error), error
    else:
        raise AssertionError("nothing was said about packets that go in a circle")


SCENARIO = """
[scenario]
title = "two groups"
time = "20us"
[[flows]]
name = "incast"
role = "aggressor"
from = "0,4"
to = "15"
size = "2K"
[[flows]]
name = "small"
role = "victim"
from = "6"
to = "14"
size = "256"
rate = "1Gb/s"
"""


PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 0:
    world.Send(bytearray(4096), 1)
else:
    world.Recv(bytearray(4096), 0)
"""


LATE_SENDER = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 0:
    time.sleep(0.01)
    world.Send(bytearray(8), 1)
else:
    world.Recv(bytearray(8), 0)
"""


def check_diagnosis(folder: Path) -> None:
    """Looks for the verdict on a program whose fault is known."""
    program = folder / "late.py"
    program.write_text(LATE_SENDER)
    found = weft.run([sys.executable, str(program)], "exanest", ranks=2).diagnosis
    assert found["pattern"] == "late-sender" and found["sentence"].startswith("Late sender: "), found
    assert found["share"] == found["shares"]["late-sender"] > 0.1, found


def check_values(folder: Path) -> None:
    """Catches a program that is taken apart letter by letter, and tables that are no TOML."""
    program = folder / "alone.py"
    program.write_text(f"#!{sys.executable}\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    program.chmod(0o755)
    assert weft.run(str(program), "exanest", ranks=2).summary.height == 1
    assert weft.run(program, "exanest", ranks=2).summary.height == 1
    try:
        weft.run("./nope", "exanest", ranks=2)
        raise AssertionError("a program that is not there was run")
    except weft.WeftError as error:
        assert "./nope" in str(error), error
    star = {"kind": "star", "endpoints": 4}
    machine = weft.machine("ethernet-100g-spineleaf").set("topology", star)
    assert machine.show()["endpoints"] == 4
    faulty = machine.set("faults", [{"of": "switch 0", "off_at": "20us", "on_at": "30us"}])
    assert faulty.check()["deadlock_free"]
    assert inline({"a": [True, 'b"c', 1.5], "d": {}}) == '{"a" = [true, "b\\"c", 1.5], "d" = {}}'


ACTIONS = """0 compute 1e6
0 send 1 7 100
0 barrier
1 recv 0 7 100
1 barrier
"""

GRAPH = """num_ranks 2
rank 0 {
a: calc 1000000
b: send 100b to 1 tag 7
b requires a
}
rank 1 {
a: recv 100b from 0 tag 7
}
"""


def check_traces(folder: Path) -> None:
    """Counts what traces of other programs hold, and replays one of them by a function that places ranks."""
    actions, graph = folder / "actions.txt", folder / "graph.goal"
    actions.write_text(ACTIONS)
    graph.write_text(GRAPH)
    for trace in (weft.trace(actions, speed="1Gf"), weft.trace(graph)):
        assert trace.info["ranks"] == 2 and trace.stats["messages"] == 1, trace
        assert trace.ranks["bytes_sent"].to_list() == [100, 0], trace
        assert trace.matrix.rows() == [(0, 1, 1, 100)], trace
        assert trace.evolution["messages"].sum() == 1 and trace.ranks["computation_us"].max() == 1000, trace
        assert trace.plot("evolution").data["kind"] == "evolution", trace
        trace.plot(path=folder / "matrix.png")
        assert (folder / "matrix.png").read_bytes().startswith(b"\x89PNG")
        trace.report(folder / "trace.html")
        assert (folder / "trace.html").read_text().count("<svg") > 2
    placed = weft.replay(actions, "exanest", placement=lambda rank, on: 1 - rank, speed="1Gf")
    assert placed.summary["run_time_us"][0] > 1000
    try:
        weft.trace(actions).stats  # noqa: B018
    except weft.BadInput as error:
        assert "--speed 1Gf" in str(error), error
    else:
        raise AssertionError("nothing was said about the speed of a core")


def check_experiments(folder: Path) -> None:
    """Looks at the rows, tables and pictures of each kind of experiment: those of outlets.rs."""

    def one_message(rank: int, _: int) -> weft.RankProgram:
        yield weft.send(1, bytes=4096) if rank == 0 else weft.recv(0)

    scenario, program = folder / "own.toml", folder / "own.py"
    scenario.write_text(SCENARIO)
    program.write_text(PROGRAM)
    ways = {"scenario": scenario, "congestion": ["none", "acc"]}
    experiments = {
        "traffic": lambda: weft.traffic("bxi3-fattree", load=0.3, time="5us"),
        "scenario": lambda: weft.traffic("carvnet-spineleaf", **ways),
        "osu": lambda: weft.osu("latency", "exanest", sizes="8:16", iterations=10, warm_up=2),
        "replay": lambda: weft.replay(one_message, "carvnet-spineleaf", ranks=2),
        "jobs": lambda: weft.replay(
            [one_message, one_message], "carvnet-spineleaf", ranks=2, map="switch", start=["0", "2us"]
        ),
        "run": lambda: weft.run([sys.executable, str(program)], "exanest", ranks=2),
    }
    for name, experiment in experiments.items():
        result = experiment()
        assert result.summary.height == len(result.manifest["rows"]) > 0, name
        assert result.messages.collect().height > 0, name
        assert result.plot.fct_cdf().data["panels"], name
        if name == "scenario":
            groups = result.summary.select("congestion", "group").rows()
            assert groups == [(way, group) for way in ("none", "acc") for group in ("incast", "small")]
            assert set(result.messages.collect()["group"]) == {"incast", "small"}


def check_flows() -> None:
    """Catches results of fluids that Python reads otherwise than those of packets."""
    machine = weft.machine("bxi3-fattree").set("topology.k", 4)
    fluid = machine.set("fabric.kind", "flow")
    options = {"pattern": "permutation", "size": "1M", "messages": 1, "tables": "links,messages"}
    packets, flows = (weft.traffic(kind, **options) for kind in (machine, fluid))
    carried = [result.links.collect()["packet_bytes"].sum() for result in (packets, flows)]
    # Packets have acknowledgements beside them.
    assert abs(carried[1] / carried[0] - 1) < 0.02, carried
    sent = [result.messages.collect().height for result in (packets, flows)]
    assert sent[0] == sent[1] > 0, sent
    loads = [result.summary["accepted_load"][0] for result in (packets, flows)]
    assert abs(loads[1] / loads[0] - 1) < 0.05, loads
    latency = [weft.osu("latency", kind, sizes="4K").summary["latency_us"][0] for kind in (machine, fluid)]
    assert abs(latency[1] / latency[0] - 1) < 0.01, latency
    assert "switch.arbiter" in fluid.show()["without_effect"]
    try:
        weft.traffic(fluid.set("congestion.kind", "acc"), load=0.2)
    except weft.BadInput as error:
        assert "max-min fair" in str(error), error
    else:
        raise AssertionError("nothing was said about congestion control of fluids")


def check_apps() -> None:
    """Catches a kernel that Python runs as another one, and one that is no trace."""
    result = weft.app("hpcg", "exanest", 8, {"local": "8x8x8", "iterations": 3}, ppn=4)
    replayed = weft.replay("hpcg@8,local=8x8x8,iterations=3", "exanest", ppn=4)
    for column in ("run_time_us", "messages", "bytes"):
        assert result.summary[column][0] == replayed.summary[column][0], column
    # Eight ranks that all touch each other, and 34 halos.
    assert weft.trace("hpcg@8,local=8x8x8,iterations=3").stats["messages"] == 56 * 34
    try:
        weft.app("hpcg", "exanest", 8, {"locals": 8})
    except weft.BadInput as error:
        assert "did you mean `local`?" in str(error), error
    else:
        raise AssertionError("nothing was said about an option that there is not")


def check_forms(result: weft.Result, machine: weft.Machine) -> None:
    """Catches a notebook's table as wide as all columns, text that is markup, a wrong version."""
    form = result._repr_html_()
    headings = re.findall("<th>([^<]*)</th>", form.split("</table>")[1])
    assert headings[:2] == ["size bytes", "offered load"] and len(headings) <= 10, headings
    assert "topology.k=4" in form and "<svg" in form
    single = weft.traffic(machine, load=0.2, time="5us")
    assert "<svg" not in single._repr_html_(), "one load is no curve"
    form = machine._repr_html_()
    assert "topology.k" in form and "endpoints" in form and "<svg" in form
    said = subprocess.run(
        [Path(sys.executable).with_name("weft"), "--version"], capture_output=True, text=True
    ).stdout
    assert weft.__version__ == said.split()[1], said


def main() -> None:
    """Checks results, pictures, machines and errors."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"pattern": "uniform", "load": [0.2, 0.6], "time": "5us", "tables": "messages,flows,links"}
        machine = weft.machine("bxi3-fattree").set("topology.k", 4)
        result = weft.traffic(machine, **options)
        assert result.summary["offered_load"].to_list() == [0.2, 0.6]
        links = result.links.collect()
        assert set(links["run"].unique()) == {0, 1} and links["utilization"].max() > 0.1
        curve = Path(folder, "curve.png")
        picture = result.plot.load_curve(curve)
        assert curve.read_bytes().startswith(b"\x89PNG") and picture.data["kind"] == "load-curve"
        assert "<svg" in picture._repr_svg_() and "bxi3-fattree" in result._repr_html_()
        check_forms(result, machine)
        kept = Path(folder, "kept")
        weft.traffic(machine, output=kept, load=0.2, time="5us")
        assert weft.open(kept).summary.height == 1
        watched = weft.traffic(machine, load=0.2, time="5us", telemetry="1us", tables="flow_rates")
        assert watched.flow_rates.select("end_ps").collect().height > 1
        assert machine.check()["deadlock_free"] and machine.show()["endpoints"] == 16
        check_placements(machine)
        check_routings()
        check_experiments(Path(folder))
        check_traces(Path(folder))
        check_diagnosis(Path(folder))
        check_values(Path(folder))
        check_flows()
        check_apps()
        fixed = {"machine": "bxi3-fattree", "time": "5us", "set": {"topology": {"k": 4}}}
        study = {"command": "traffic", "seeds": 2, "fixed": fixed, "vary": {"load": [0.2, 0.5]}}
        swept = weft.sweep(study, output=Path(folder, "study"), jobs=2, progress=False)
        assert swept.rows.collect().height == 4 and not swept.failed
        means = swept.intervals.collect()
        assert means["load"].to_list() == [0.2, 0.5] and means["seeds"].to_list() == [2, 2]
        assert (means["accepted_load.low"] < means["accepted_load.high"]).all()
        # The points are there: an executor that refuses all work is not asked.
        again = weft.sweep(study, executor=Idle(), output=Path(folder, "study"), progress=False)
        assert again.rows.collect().equals(swept.rows.collect())
        for call, text in [
            (lambda: weft.sweep({**study, "vary": {"lode": [1]}}), "`vary.lode`"),
            (lambda: weft.traffic("bxi9", load=0.2), "bxi9"),
            (lambda: weft.traffic(machine, load=1.5), "--load"),
            (lambda: result.queues, "telemetry"),
            (lambda: result.diagnosis, "weft explain"),
            (lambda: result.flow_rates, 'tables="flow_rates"'),
            (lambda: weft.traffic(machine, load=0.2, placement=lambda rank, on: rank), "no ranks"),
            (lambda: weft.osu("latency", machine, ranks=2, placement=lambda rank, on: 16), "rank 0 at 16"),
            (lambda: weft.osu("latency", machine, placement=lambda rank, on: rank), "ranks=16"),
            (lambda: weft.osu("latency", machine, ranks=2, placement="random"), 'map="random"'),
            (lambda: weft.open(folder), "no finished run"),
        ]:
            try:
                call()
            except weft.BadInput as error:
                assert text in str(error), error
            else:
                raise AssertionError(f"nothing was said about {text}")
    print("import weft: ok")


if __name__ == "__main__":
    main()
