"""Rank programs as generators, stepped while they run.

def pingpong(rank, size):
    if rank == 0:
        yield weft.send(1, bytes="4K")
    else:
        message = yield weft.recv(0)

weft.replay(pingpong, "exanest", ranks=2)

    rank ── end of its last operation ──► Ranks.step ── send(outcome) ──► generator
         ◄── names and numbers ─────────              ◄── Operation ────
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from weft import _call
from weft._weft import size as _size
from weft._weft import span as _span

Size = int | str
"""Bytes: a number, or a text such as `"4K"`."""

# Tags are numbers of 31 bits, as MPI has them.
MAX_TAG = 2**31 - 1
MAX_BYTES = 2**62
MAX_FLOPS = 2**63 - 1
# What the simulator does for an operation, one after the other: a name of the trace format, and numbers.
Parts = list[tuple[Any, ...]]


def _refused(message: str) -> _call.BadInput:
    return _call.BadInput(message, 2)


def _bytes(what: str, size: Size) -> int:
    """The bytes of a size."""
    if isinstance(size, str):
        try:
            size = _size(size)
        except ValueError as error:
            raise _refused(f"{what}: {error}") from None
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_BYTES:
        raise _refused(f'{what}: {size!r} is no size; write bytes=4096 or bytes="4K"')
    return size


def _whole(what: str, number: Any, limit: int) -> int:
    """A number from 0 to `limit`; whoever calls knows what ranks there are."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= limit:
        raise _refused(f"{what} is {number!r}; write a number from 0 to {limit}")
    return number


@dataclass(frozen=True)
class Done:
    """The outcome of an operation: `done = yield weft.barrier()`."""

    now_ps: int
    """The rank's clock, in picoseconds of virtual time."""


@dataclass(frozen=True)
class Message(Done):
    """The outcome of a receive: `message = yield weft.recv(1)`."""

    source: int
    """The rank that sent it."""
    tag: int
    """The message's tag."""
    bytes: int
    """The message's size."""


@dataclass(frozen=True, eq=False)
class Request(Done):
    """An operation that continues while its rank does something else; give it to `weft.wait` once."""

    number: int
    """Counts the requests of the rank."""


class Operation:
    """An operation that a rank program yields, such as the result of `weft.send`."""

    def _start(self, rank: "_Rank") -> Parts:
        """The parts of which it is made."""
        raise NotImplementedError

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        """The value of `yield`, when the parts are over."""
        return Done(now)


@dataclass(frozen=True)
class _Compute(Operation):
    ps: int

    def _start(self, rank: "_Rank") -> Parts:
        return [("compute", self.ps)]


@dataclass(frozen=True)
class _Work(Operation):
    flops: int
    memory: int

    def _start(self, rank: "_Rank") -> Parts:
        return [("work", self.flops, self.memory)]


@dataclass(frozen=True)
class _Marker(Operation):
    text: str

    def _start(self, rank: "_Rank") -> Parts:
        return [("marker", self.text)]


@dataclass(frozen=True)
class _Started(Operation):
    """An operation that has a request, for which a blocking one waits at once."""

    blocking: bool

    def _begin(self, rank: "_Rank", request: int) -> tuple[Any, ...]:
        raise NotImplementedError

    def _start(self, rank: "_Rank") -> Parts:
        request = rank.open()
        parts = [self._begin(rank, request)]
        if self.blocking:
            parts.append(("wait", request))
        return parts

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        request = rank.newest
        return rank.close(request, now) if self.blocking else Request(now, request)


@dataclass(frozen=True)
class _Send(_Started):
    to: int
    bytes: int
    tag: int
    kind: str

    def _begin(self, rank: "_Rank", request: int) -> tuple[Any, ...]:
        return (self.kind, rank.peer("the destination", self.to), self.tag, self.bytes, request)


@dataclass(frozen=True)
class _Recv(_Started):
    source: int | None
    tag: int | None
    bytes: int | None

    def _begin(self, rank: "_Rank", request: int) -> tuple[Any, ...]:
        source = None if self.source is None else rank.peer("the source", self.source)
        return ("irecv", source, self.tag, self.bytes, request)


@dataclass(frozen=True)
class _Wait(Operation):
    request: Request

    def _start(self, rank: "_Rank") -> Parts:
        return [("wait", rank.pending(self.request))]

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        return rank.close(self.request.number, now)


@dataclass(frozen=True)
class _Waitall(Operation):
    requests: tuple[Request, ...]

    def _start(self, rank: "_Rank") -> Parts:
        numbers = [rank.pending(request) for request in self.requests]
        if len(set(numbers)) < len(numbers):
            raise _refused("waitall has one request twice; give it each once")
        return [("waitall", numbers)]

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        return [rank.close(request.number, now) for request in self.requests]


@dataclass(frozen=True)
class _SendRecv(Operation):
    send: _Send
    recv: _Recv

    def _start(self, rank: "_Rank") -> Parts:
        first, second = rank.open(), rank.open()
        sends, receives = self.send._begin(rank, first), self.recv._begin(rank, second)
        return [receives, sends, ("waitall", [first, second])]

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        second = rank.newest
        rank.close(second - 1, now)
        return rank.close(second, now)


@dataclass(frozen=True)
class _Collective(Operation):
    kind: str
    root: int | None
    bytes: int
    element: int
    blocking: bool
    # Bytes for each rank, of the collectives whose ranks give or take different sizes.
    counts: tuple[int, ...] | None = None

    def _sizes(self, rank: "_Rank") -> tuple[tuple[int, int], tuple[list[int], list[int]]]:
        """Bytes given and taken, in all and by rank."""
        if self.counts is None:
            return (self.bytes, self.bytes), ([], [])
        if len(self.counts) != rank.size:
            raise _refused(f"{self.kind} has {len(self.counts)} sizes for {rank.size} ranks")
        counts, total = list(self.counts), sum(self.counts)
        own, at_root = counts[rank.rank], rank.rank == self.root
        match self.kind:
            case "gatherv":
                return (own, total if at_root else 0), ([], counts if at_root else [])
            case "scatterv":
                return (total if at_root else 0, own), (counts if at_root else [], [])
            case "allgatherv":
                return (own, total), ([], counts)
            case _:
                return (total, own), ([], counts)

    def _start(self, rank: "_Rank") -> Parts:
        root = None if self.root is None else rank.peer("the root", self.root)
        request = None if self.blocking else rank.open()
        return [(self.kind, root, *self._sizes(rank), self.element, request)]

    def _outcome(self, rank: "_Rank", now: int) -> Any:
        return Done(now) if self.blocking else Request(now, rank.newest)


def compute(time: str) -> Operation:
    """The rank computes: `yield weft.compute("5us")`."""
    if not isinstance(time, str):
        raise _refused(f'compute: {time!r} is no time; write compute("5us")')
    try:
        return _Compute(_span(time))
    except ValueError as error:
        raise _refused(f"compute: {error}") from None


def work(flops: int, memory: Size = 0) -> Operation:
    """The rank does floating-point operations and moves bytes of memory, for as long as `[host.core]` of the
    machine says."""
    return _Work(_whole("work: flops", flops, MAX_FLOPS), _bytes("work", memory))


def marker(text: str) -> Operation:
    """A text for timelines. `pcontrol 1` opens region 1, and `pcontrol 0` closes it."""
    return _Marker(str(text))


def _send(to: int, bytes: Size, tag: int, kind: str, blocking: bool) -> _Send:
    to, tag = _whole("the destination", to, MAX_TAG), _whole("the tag", tag, MAX_TAG)
    return _Send(blocking, to, _bytes("a send", bytes), tag, kind)


def _recv(source: int | None, tag: int | None, bytes: Size | None, blocking: bool) -> _Recv:
    source = None if source is None else _whole("the source", source, MAX_TAG)
    tag = None if tag is None else _whole("the tag", tag, MAX_TAG)
    return _Recv(blocking, source, tag, None if bytes is None else _bytes("a receive", bytes))


def send(to: int, bytes: Size = 0, tag: int = 0, synchronous: bool = False) -> Operation:
    """Sends a message, and waits until its buffer may be used again.

    A synchronous one waits for its receive.
    """
    return _send(to, bytes, tag, "issend" if synchronous else "isend", True)


def isend(to: int, bytes: Size = 0, tag: int = 0, synchronous: bool = False) -> Operation:
    """Begins to send a message; `yield` returns a `Request`."""
    return _send(to, bytes, tag, "issend" if synchronous else "isend", False)


def recv(source: int | None = None, tag: int | None = None, bytes: Size | None = None) -> Operation:
    """Waits for a message, from any source and with any tag by default; `yield` returns a `Message`.

    `bytes` is the most that it takes.
    """
    return _recv(source, tag, bytes, True)


def irecv(source: int | None = None, tag: int | None = None, bytes: Size | None = None) -> Operation:
    """Begins to receive a message; `yield` returns a `Request`, and its `weft.wait` the `Message`."""
    return _recv(source, tag, bytes, False)


def sendrecv(to: int, source: int | None = None, bytes: Size = 0, tag: int = 0) -> Operation:
    """Sends a message and receives another of the same tag; `yield` returns the `Message` received."""
    return _SendRecv(_send(to, bytes, tag, "isend", False), _recv(source, tag, None, False))


def wait(request: Request) -> Operation:
    """Waits for a request; `yield` returns the `Message` of a receive, and `Done` of others."""
    return _Wait(_request(request))


def waitall(requests: Sequence[Request]) -> Operation:
    """Waits for several requests; `yield` returns a list of what `weft.wait` returns for each."""
    return _Waitall(tuple(_request(one) for one in requests))


def _request(request: Any) -> Request:
    if not isinstance(request, Request):
        mend = "give it what a yield of isend, irecv or a collective with blocking=False has returned"
        raise _refused(f"a wait for {request!r}, which is no request; {mend}")
    return request


def _collective(kind: str, bytes: Size, blocking: bool, root: int | None = None) -> Operation:
    size = _bytes(kind, bytes)
    root = None if root is None else _whole("the root", root, MAX_TAG)
    # Reductions are of floats, as in the OSU benchmarks, where their size allows it.
    return _Collective(kind, root, size, 4 if size % 4 == 0 else 1, blocking)


def _vector(kind: str, sizes: Sequence[Size], blocking: bool, root: int | None = None) -> Operation:
    counts = tuple(_bytes(kind, size) for size in sizes)
    root = None if root is None else _whole("the root", root, MAX_TAG)
    element = 4 if all(size % 4 == 0 for size in counts) else 1
    return _Collective(kind, root, 0, element, blocking, counts)


def barrier(blocking: bool = True) -> Operation:
    """All ranks wait for each other.

    A collective with `blocking=False` only begins; `yield` returns a `Request`.
    """
    return _collective("barrier", 0, blocking)


def broadcast(bytes: Size, root: int = 0, blocking: bool = True) -> Operation:
    """All ranks get the data of `root`."""
    return _collective("broadcast", bytes, blocking, root)


def reduce(bytes: Size, root: int = 0, blocking: bool = True) -> Operation:
    """`root` gets the sum of all ranks' vectors of this size."""
    return _collective("reduce", bytes, blocking, root)


def allreduce(bytes: Size, blocking: bool = True) -> Operation:
    """All ranks get the sum of all ranks' vectors of this size."""
    return _collective("allreduce", bytes, blocking)


def gather(bytes: Size, root: int = 0, blocking: bool = True) -> Operation:
    """`root` gets a block of this size from each rank."""
    return _collective("gather", bytes, blocking, root)


def scatter(bytes: Size, root: int = 0, blocking: bool = True) -> Operation:
    """Each rank gets a block of this size from `root`."""
    return _collective("scatter", bytes, blocking, root)


def allgather(bytes: Size, blocking: bool = True) -> Operation:
    """Each rank gets a block of this size from each rank."""
    return _collective("allgather", bytes, blocking)


def alltoall(bytes: Size, blocking: bool = True) -> Operation:
    """Each rank sends each rank a block of this size."""
    return _collective("alltoall", bytes, blocking)


def scan(bytes: Size, blocking: bool = True) -> Operation:
    """Each rank gets the sum of the vectors of the ranks up to itself."""
    return _collective("scan", bytes, blocking)


def exscan(bytes: Size, blocking: bool = True) -> Operation:
    """Each rank gets the sum of the vectors of the ranks below it."""
    return _collective("exscan", bytes, blocking)


def gatherv(sizes: Sequence[Size], root: int = 0, blocking: bool = True) -> Operation:
    """`root` gets a block from each rank, with the sizes of this list."""
    return _vector("gatherv", sizes, blocking, root)


def scatterv(sizes: Sequence[Size], root: int = 0, blocking: bool = True) -> Operation:
    """Each rank gets a block from `root`, with the sizes of this list."""
    return _vector("scatterv", sizes, blocking, root)


def allgatherv(sizes: Sequence[Size], blocking: bool = True) -> Operation:
    """Each rank gets a block from each rank, with the sizes of this list."""
    return _vector("allgatherv", sizes, blocking)


def reduce_scatter(sizes: Sequence[Size], blocking: bool = True) -> Operation:
    """Each rank gets its part of the sum of all ranks' vectors, with the sizes of this list."""
    return _vector("reduce_scatter", sizes, blocking)


RankProgram = Callable[[int, int], Generator[Operation, Any, None]]
"""A generator function `program(rank, size)` that yields operations."""


class _Rank:
    """A rank: its generator, and its requests."""

    def __init__(self, name: str, rank: int, size: int):
        self.name, self.rank, self.size = name, rank, size
        self.newest = -1
        self._open: set[int] = set()
        self._received: dict[int, tuple[int, int, int]] = {}
        self._generator: Generator[Operation, Any, None] | None = None
        self._operation: Operation | None = None

    def open(self) -> int:
        """The number of a new request."""
        self.newest += 1
        self._open.add(self.newest)
        return self.newest

    def pending(self, request: Request) -> int:
        """The number of a request that nobody has waited for."""
        if request.number not in self._open:
            raise _refused("a wait for a request that is over; wait for each once")
        return request.number

    def close(self, request: int, now: int) -> Done:
        """The outcome of a request that is over."""
        self._open.discard(request)
        received = self._received.pop(request, None)
        return Done(now) if received is None else Message(now, *received)

    def peer(self, what: str, rank: int) -> int:
        """A rank of the program."""
        if rank >= self.size:
            raise _refused(f"{what} is rank {rank}, and there are {self.size} ranks: 0 to {self.size - 1}")
        return rank

    def step(self, program: RankProgram, now: int, received: list[tuple[int, int, int, int]]) -> Parts | None:
        """Goes on to the next operation; `None`: the program is over."""
        for request, *message in received:
            self._received[request] = tuple(message)
        try:
            if self._generator is None:
                self._generator = self._begin(program)
                yielded = next(self._generator)
            else:
                outcome = self._operation._outcome(self, now) if self._operation else None
                yielded = self._generator.send(outcome)
            while True:
                try:
                    parts = self._parts(yielded)
                except _call.BadInput as error:
                    # The program is shown where it is wrong.
                    yielded = self._generator.throw(error)
                else:
                    self._operation = yielded
                    return parts
        except StopIteration:
            return None
        except BaseException as error:
            error.add_note(f"in rank {self.rank} of {self.name}, at {now / 1e6:.3f} us of virtual time")
            raise

    def _begin(self, program: RankProgram) -> Generator[Operation, Any, None]:
        generator = program(self.rank, self.size)
        if not isinstance(generator, Generator):
            mend = "write operations as yield weft.send(...)"
            raise _refused(f"{self.name} returns {generator!r} and is no generator; {mend}")
        return generator

    def _parts(self, yielded: Any) -> Parts:
        if not isinstance(yielded, Operation):
            mend = "yield operations only, such as yield weft.send(1, bytes=1024)"
            raise _refused(f"{self.name} yields {yielded!r}, which is no operation; {mend}")
        return yielded._start(self)


@dataclass(frozen=True)
class Program:
    """A rank program and its number of ranks. Each replay begins it anew."""

    function: RankProgram
    """The generator function."""
    ranks: int
    """The number of ranks."""
    name: str
    """The name in results."""

    def _native(self) -> tuple[str, int, Callable[..., Parts | None]]:
        """The function that the simulator calls. Each call of this begins a run."""
        ranks = [_Rank(self.name, rank, self.ranks) for rank in range(self.ranks)]

        def step(rank: int, now: int, received: list[tuple[int, int, int, int]]) -> Parts | None:
            return ranks[rank].step(self.function, now, received)

        return self.name, self.ranks, step


def program(function: RankProgram, ranks: int, name: str | None = None) -> Program:
    """A rank program for `weft.replay`: `program(pingpong, ranks=2)`.

    `function(rank, size)` is a generator. It continues when its operation has ended in virtual time: `yield`
    returns the outcome and its time. Ranks are stepped in no particular order of real time, so they may
    exchange data by messages only.
    """
    if not callable(function):
        raise _refused(f"{function!r} is no rank program; write a generator function of rank and size")
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 1 <= ranks < 2**31:
        raise _refused(f"a rank program on {ranks!r} ranks; write ranks=16")
    return Program(function, ranks, name or getattr(function, "__name__", "program"))
