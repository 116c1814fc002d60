#!/usr/bin/env python3
"""Rank programs as generators: what they see, what they may do, and what is said of wrong ones.

programs.py
"""

import itertools
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import weft

MACHINE = weft.machine("bxi3-fattree").set("topology.k", 4)


def ping_pong(rank: int, size: int) -> weft.RankProgram:
    """The loop of osu_latency."""
    for _ in range(100):
        if rank == 0:
            yield weft.send(1, bytes=8, tag=1)
            yield weft.recv(1)
        else:
            yield weft.recv(0)
            yield weft.send(0, bytes=8, tag=1)


def check_times() -> None:
    """Compares a ping-pong with the benchmark, and the clock of a program with its computation.

    Catches a program that is stepped at other times than those of its operations.
    """
    result = weft.replay(ping_pong, MACHINE, ranks=2, ppn=1)
    run_time = result.summary["run_time_us"][0]
    latency = weft.osu("latency", MACHINE, ranks=2, ppn=1, sizes="8").summary["latency_us"][0]
    assert abs(run_time / 200 / latency - 1) < 0.02, (run_time, latency)
    seen = {}

    def computes(rank: int, size: int) -> weft.RankProgram:
        first = yield weft.compute("5us")
        second = yield weft.compute("1.5us")
        seen[rank] = (size, first.now_ps, second.now_ps)

    result = weft.replay(computes, MACHINE, ranks=3)
    ranks = result.ranks.collect()
    assert seen == {rank: (3, 5_000_000, 6_500_000) for rank in range(3)}, seen
    assert ranks["computation_ps"].to_list() == [6_500_000] * 3

    def works(rank: int, size: int) -> weft.RankProgram:
        yield weft.work(1_000_000)

    # Half an operation in a cycle of 1.3 GHz.
    works_ps = weft.replay(works, weft.machine("exanest"), ranks=1).ranks.collect()["computation_ps"][0]
    assert abs(works_ps / (1_000_000 / 0.5 / 1.3e-3) - 1) < 1e-6, works_ps


def check_work() -> None:
    """Two programs on one host, whose cores share the channel to memory, against times worked out by hand.

    Catches operations or bytes that are lost or swapped on their way, and a channel of each program's own.
    """
    ended = {}

    def long(rank: int, size: int) -> weft.RankProgram:
        done = yield weft.work(1_000_000, memory=10_000_000)
        ended["long"] = done.now_ps

    def short(rank: int, size: int) -> weft.RankProgram:
        done = yield weft.work(2_000_000, memory=5_000_000)
        ended["short"] = done.now_ps

    machine = weft.machine("exanest").set("host.core.bandwidth", "20Gb/s")
    machine = machine.set("host.core.memory_bandwidth", "32Gb/s")
    both = [weft.program(long, 1), weft.program(short, 1)]
    result = weft.replay(both, machine)
    # Both stream at 16 Gb/s until the 5 MB of the short one are over, at 2.5 ms. The long one has as much
    # left, at 20 Gb/s.
    # The short one's arithmetic, half an operation in a cycle of 1.3 GHz, takes longer than its stream.
    expected = {"long": 2_500_000_000 + 2_000_000_000, "short": round(2_000_000 / 0.5 / 1.3e-3)}
    assert all(abs(ended[name] - expected[name]) < 1_000 for name in expected), (ended, expected)
    waits = result.ranks.collect()["computation_ps"].to_list()
    assert all(abs(took - expected[name]) < 1_000 for took, name in zip(waits, expected, strict=True)), waits


def check_decisions() -> None:
    """A manager hands out work to whoever asks first: what ranks do depends on what came when.

    Catches messages without their source, tag or size, and results that depend on the number of threads.
    """
    done: dict[int, int] = {}

    def manager(rank: int, size: int) -> weft.RankProgram:
        if rank > 0:
            while True:
                yield weft.send(0, bytes=rank, tag=7)
                work = yield weft.recv(0)
                if work.tag == 0:
                    return
                yield weft.compute(f"{rank * 10}us")
                done[rank] = done.get(rank, 0) + 1
        for left in range(30, 30 - 30 - size + 1, -1):
            asked = yield weft.recv(tag=7)
            assert asked.bytes == asked.source and asked.tag == 7
            yield weft.send(asked.source, bytes="4K", tag=1 if left > 0 else 0)

    summaries = []
    for threads in (1, 2):
        done.clear()
        result = weft.replay(manager, MACHINE, ranks=4, ppn=1, threads=threads)
        assert sum(done.values()) == 30 and done[1] > done[2] > done[3] > 0, done
        files = ["run.json", "messages.parquet", "links.parquet"]
        summaries.append([(result.directory / file).read_bytes() for file in files])
    assert summaries[0] == summaries[1]


def check_operations() -> None:
    """Each operation once, in ways that depend on each other: all must come to the end."""
    sizes = [4 * (rank + 1) for rank in range(4)]

    def each(rank: int, size: int) -> weft.RankProgram:
        right, left = (rank + 1) % size, (rank - 1) % size
        receive = yield weft.irecv(left, tag=3)
        send = yield weft.isend(right, bytes="64K", tag=3)
        message, sent = yield weft.waitall([receive, send])
        assert (message.source, message.tag, message.bytes) == (left, 3, 65536)
        assert not isinstance(sent, weft.Message) and sent.now_ps == message.now_ps
        message = yield weft.sendrecv(right, left, bytes=100, tag=4)
        assert (message.source, message.bytes) == (left, 100)
        early = yield weft.isend(left, bytes=5, synchronous=True)
        message = yield weft.recv(right, bytes=5)
        done = yield weft.wait(early)
        assert message.bytes == 5 and done.now_ps >= message.now_ps
        yield weft.marker("collectives")
        for collective in (weft.barrier, weft.broadcast, weft.reduce, weft.allreduce, weft.gather):
            yield collective() if collective is weft.barrier else collective("1K")
        for collective in (weft.scatter, weft.allgather, weft.alltoall, weft.scan, weft.exscan):
            yield collective(6)
        for collective in (weft.gatherv, weft.scatterv, weft.allgatherv, weft.reduce_scatter):
            yield collective(sizes)
        request = yield weft.allreduce(8, blocking=False)
        yield weft.compute("1us")
        yield weft.wait(request)

    result = weft.replay(
        weft.program(each, ranks=4, name="each"),
        MACHINE,
        breakdown=True,
        tables="calls,links,messages",
    )
    calls = {(row["rank"], row["operation"]): row for row in result.calls.collect().to_dicts()}
    assert calls[2, "allreduce"]["calls"] == 2 and calls[2, "isend"]["calls"] == 2, calls
    assert calls[0, "barrier"]["time_ps"] > 0
    # Each packet, acknowledgements too, and the same for any number of threads.
    program, tables = weft.program(each, ranks=4), "links,packets"
    followed = weft.replay(program, MACHINE, tables=tables)
    twice = weft.replay(program, MACHINE, tables=tables, threads=2)
    assert followed.packets.collect().equals(twice.packets.collect())
    packets = followed.packets.collect()
    assert packets.height == followed.links.collect()["packets"].sum() > 0
    assert packets["began_ps"].is_sorted()
    steps = ["came_ps", "ready_ps", "could_ps", "crossed_ps", "began_ps", "ended_ps"]
    for before, after in itertools.pairwise(steps):
        assert (packets[before] <= packets[after]).all(), (before, after)
    assert result.manifest["ended"] == "finished" and result.summary["trace"][0] == "each"
    # Beside another program, on a machine of blocks, and with real bytes.
    both = weft.replay([weft.program(each, 4), weft.program(ping_pong, 2)], "exanest", data=True)
    assert both.summary["ranks"].to_list() == [4, 2]
    assert both.summary["compared_bytes"][0] > 4 * 65536


def raises(kind: type[BaseException], text: str, call: Callable[[], object]) -> BaseException:
    """Makes sure that a call raises this."""
    try:
        call()
    except kind as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        assert text in f"{error}\n{notes}", (error, notes)
        return error
    raise AssertionError(f"nothing was said about {text}")


def check_wrong_programs() -> None:
    """Each wrong program is an exception that says what is wrong, in which rank and when."""

    def one(*operations: Callable[[], object]) -> Callable[[], object]:
        def program(rank: int, size: int) -> weft.RankProgram:
            yield weft.compute("2us")
            if rank == 1:
                for operation in operations:
                    yield operation()

        return lambda: weft.replay(program, MACHINE, ranks=2)

    for text, call in [
        ("no operation; yield operations only", one(lambda: 5)),
        ("the destination is rank 7, and there are 2 ranks: 0 to 1", one(lambda: weft.send(7, 8))),
        ("in rank 1 of program, at 2.000 us", one(lambda: weft.send(7, 8))),
        ("-4 is no size", one(lambda: weft.send(0, -4))),
        ("`4Q`", one(lambda: weft.send(0, "4Q"))),
        ("the source is -1", one(lambda: weft.recv(-1))),
        ("the tag is 'a'", one(lambda: weft.recv(0, tag="a"))),
        ('write compute("5us")', one(lambda: weft.compute(5))),
        ("write a whole number", one(lambda: weft.work(-1))),
        ("`5 years`", one(lambda: weft.compute("5 years"))),
        ("which is no request", one(lambda: weft.wait(3))),
        ("gatherv has 1 sizes for 2 ranks", one(lambda: weft.gatherv([3]))),
        ("the root is rank 2", one(lambda: weft.broadcast(8, root=2))),
        ("is no generator", lambda: weft.replay(lambda rank, size: 5, MACHINE, ranks=2)),
        ("write ranks=16", lambda: weft.replay(ping_pong, MACHINE)),
        ("on 0 ranks", lambda: weft.replay(ping_pong, MACHINE, ranks=0)),
        ("ranks", lambda: weft.replay(weft.program(ping_pong, 400), MACHINE, ppn=1)),
        ("--save-every", lambda: weft.replay(ping_pong, MACHINE, ranks=2, save_every="1us")),
    ]:
        raises(weft.BadInput, text, call)

    def waits_twice(rank: int, size: int) -> weft.RankProgram:
        request = yield weft.isend(1 - rank, 8)
        yield weft.recv()
        yield weft.wait(request)
        yield weft.wait(request)

    raises(weft.BadInput, "a request that is over", lambda: weft.replay(waits_twice, MACHINE, ranks=2))

    def too_long(rank: int, size: int) -> weft.RankProgram:
        yield weft.send(1, bytes=100) if rank == 0 else weft.recv(0, bytes=10)

    raises(weft.BadInput, "100", lambda: weft.replay(too_long, MACHINE, ranks=2))

    def fails(rank: int, size: int) -> weft.RankProgram:
        yield weft.barrier()
        if rank >= 2:
            raise KeyError(f"rank {rank}")

    # Which of several is raised must not depend on which is first.
    raises(KeyError, "rank 2", lambda: weft.replay(fails, MACHINE, ranks=8, threads=2))

    def waits(rank: int, size: int) -> weft.RankProgram:
        yield weft.recv(1 - rank, tag=9)

    error = raises(weft.EndedBadly, "no-progress", lambda: weft.replay(waits, MACHINE, ranks=2))
    assert "rank 0" in str(error) and "tag 9" in str(error), error


def check_mends() -> None:
    """A program is shown where it is wrong, and may go on."""

    def mends(rank: int, size: int) -> weft.RankProgram:
        try:
            yield weft.send(size, bytes=8)
        except weft.BadInput:
            yield weft.compute("3us")

    assert weft.replay(mends, MACHINE, ranks=2).summary["run_time_us"][0] == 3.0


def check_interrupts() -> None:
    """Ctrl-C ends a program that has no end, also one that yields nothing any more."""

    def forever(rank: int, size: int) -> weft.RankProgram:
        while True:
            yield weft.compute("1us")

    def at_once(rank: int, size: int) -> weft.RankProgram:
        while True:
            yield weft.marker("again")

    def hangs(rank: int, size: int) -> weft.RankProgram:
        yield weft.barrier()
        while True:
            pass

    for program in (forever, at_once, hangs):
        timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        raises(KeyboardInterrupt, "", lambda program=program: weft.replay(program, MACHINE, ranks=2))
        timer.join()


def check_results() -> None:
    """Results keep the program's name and ranks, and are not run again without it."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "kept")
        result = weft.replay(ping_pong, MACHINE, ranks=2, output=kept, telemetry="1us")
        traces = result.manifest["request"]["traces"]
        assert traces == [{"name": "ping_pong", "stepped": {"ranks": 2}}], traces
        assert result.rates.collect().height > 0
        result.report(Path(folder, "report.html"))
        from weft import _call

        for words in (["rerun", str(kept)], ["explain", str(kept)]):
            raises(weft.BadInput, "results do not keep", lambda words=words: _call.text(words))
        placed = weft.replay(ping_pong, MACHINE, ranks=2, placement=lambda rank, on: 5 * rank)
        assert placed.ranks.collect()["endpoint"].to_list() == [0, 5]


def main() -> None:
    """All of it."""
    check_times()
    check_work()
    check_decisions()
    check_operations()
    check_wrong_programs()
    check_mends()
    check_interrupts()
    check_results()
    print("rank programs: ok")


if __name__ == "__main__":
    main()
