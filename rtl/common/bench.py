"""A bench that is called once a cycle: drivers and monitors of streams, and a list of what was covered.

cocotb's clock edge costs more than all else, so a test has one loop with one edge in it:

    async for cycle in bench.cycles(1000):
        ...  # signals read here are those of the cycle that ends; what is written counts from the next one on

`Source` and `Sink` belong to a bench, which steps them before the loop's body. Where a beat has several words
they have those of a packet side by side.
"""

import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


class Bench:
    """The clock, the reset, and whatever is stepped with them."""

    def __init__(self, dut, seed: int):
        self.dut = dut
        self.random = random.Random(seed)
        self.cycle = -1
        self.parts: list = []
        cocotb.start_soon(Clock(dut.clk, 2, unit="step").start())

    def add(self, part):
        """Has a part stepped in every cycle; returns it."""
        self.parts.append(part)
        return part

    async def reset(self, clearing: int):
        """Resets for two cycles, and waits until the tables are cleared."""
        self.dut.reset.value = 1
        for part in self.parts:
            part.reset()
        for _ in range(2):
            await RisingEdge(self.dut.clk)
        self.dut.reset.value = 0
        for _ in range(clearing + 2):
            await RisingEdge(self.dut.clk)
        self.cycle = -1

    async def cycles(self, count: int) -> AsyncIterator[int]:
        """Runs this number of cycles."""
        edge = RisingEdge(self.dut.clk)
        for _ in range(count):
            await edge
            self.cycle += 1
            for part in self.parts:
                part.step(self.cycle)
            yield self.cycle

    async def until(self, done: Callable[[], bool], most: int, what: str):
        """Cycles until something is done."""
        if done():
            return
        async for _ in self.cycles(most):
            if done():
                return
        raise AssertionError(f"cycle {self.cycle}: {what} takes more than {most} cycles")


def beats_of(words: list[int], lanes: int) -> list[int]:
    """The beats of a packet: its first word is the highest, and zeros are behind the last."""
    filled = words + [0] * (-len(words) % lanes)
    return [
        sum(word << 128 * (lanes - 1 - place) for place, word in enumerate(filled[first : first + lanes]))
        for first in range(0, len(filled), lanes)
    ]


def words_of(beats: list[int], lanes: int) -> list[int]:
    """The words of a packet that has come in beats: as many as its header says."""
    words = [beat >> 128 * (lanes - 1 - place) & ((1 << 128) - 1) for beat in beats for place in range(lanes)]
    if lanes == 1:
        return words
    count = 2 + (((words[0] >> 22 & 0x3FF) + 15) >> 4)
    assert len(beats_of(words[:count], lanes)) == len(beats) and not any(words[count:])
    return words[:count]


class Source:
    """Sends packets into a stream, with gaps of chance `idle` before each word."""

    def __init__(self, bench: Bench, prefix: str):
        signal = lambda name: getattr(bench.dut, f"{prefix}_t{name}")  # noqa: E731
        self.valid, self.ready, self.data, self.last = map(signal, ["valid", "ready", "data", "last"])
        self.random = bench.random
        self.lanes = len(self.data) // 128
        self.idle = 0.0
        # Called with the last word's cycle, when it has been taken, and what was sent.
        self.taken: Callable[[int, object], None] = lambda cycle, what: None
        # Called with the first word's cycle, when it has been taken; with a wider beat, when it is there.
        self.begun: Callable[[int, object], None] = lambda cycle, what: None
        self.reset()

    def reset(self):
        """Drops whatever has not been sent."""
        self.queue: deque = deque()
        self.current: tuple | None = None
        self.valid.value = 0

    def send(self, words: list[int], what: object = None):
        """Sends words as a packet."""
        words = beats_of(words, self.lanes)
        for place, word in enumerate(words):
            self.queue.append((word, place == 0, place == len(words) - 1, what))

    def step(self, cycle: int):
        """Looks whether the word was taken, and puts the next one on the bus."""
        if self.current is not None:
            if not self.ready.value:
                return
            _, first, last, what = self.current
            if first and self.lanes == 1:
                self.begun(cycle, what)
            if last:
                self.taken(cycle, what)
            self.current = None
        if self.queue and not (self.idle and self.random.random() < self.idle):
            self.current = self.queue.popleft()
            self.data.value, self.last.value, self.valid.value = self.current[0], self.current[2], 1
            if self.current[1] and self.lanes > 1:
                self.begun(cycle + 1, self.current[3])
        else:
            self.valid.value = 0


class Sink:
    """Takes packets from a stream, not ready with chance `busy`; keeps each with the cycle of its header."""

    def __init__(self, bench: Bench, prefix: str):
        signal = lambda name: getattr(bench.dut, f"{prefix}_t{name}")  # noqa: E731
        self.valid, self.ready, self.data, self.last = map(signal, ["valid", "ready", "data", "last"])
        self.random = bench.random
        self.lanes = len(self.data) // 128
        self.busy = 0.0
        self.packets: deque[tuple[int, list[int]]] = deque()
        self.held: tuple | None = None
        self.reset()

    def reset(self):
        """Forgets a packet that has begun."""
        self.words: list[int] = []
        self.begun = 0
        self.is_ready = False
        self.held = None
        self.ready.value = 0

    def step(self, cycle: int):
        """Looks at the word on the bus."""
        if self.valid.value:
            word = int(self.data.value), int(self.last.value)
            assert self.held is None or self.held == word, (
                f"cycle {cycle}: a word that was not taken has changed"
            )
            self.held = None if self.is_ready else word
            if self.is_ready:
                if not self.words:
                    self.begun = cycle
                self.words.append(word[0])
                if word[1]:
                    self.packets.append((self.begun, words_of(self.words, self.lanes)))
                    self.words = []
        else:
            assert self.held is None, f"cycle {cycle}: a word was taken back"
        self.is_ready = not (self.busy and self.random.random() < self.busy)
        self.ready.value = int(self.is_ready)


class Coverage:
    """Bins, and how often each was hit. An empty one fails the test, unless it is listed with a reason."""

    def __init__(self, **bins: list):
        self.bins = {name: list(values) for name, values in bins.items()}
        self.hits = {name: Counter() for name in bins}
        self.reasons: dict[tuple, str] = {}

    def hit(self, name: str, value):
        """Counts a hit."""
        self.hits[name][value] += 1

    def excuse(self, name: str, value, reason: str):
        """Says why a bin may be empty."""
        self.reasons[name, value] = reason

    def close(self, log):
        """Prints all bins, and fails where one is empty without a reason."""
        empty = []
        for name, values in self.bins.items():
            hits = self.hits[name]
            log.info("coverage %s: %s", name, ", ".join(f"{value}: {hits[value]}" for value in values))
            for value in values:
                if not hits[value] and (name, value) not in self.reasons:
                    empty.append(f"{name} {value}")
                elif not hits[value]:
                    log.info("coverage %s %s is empty: %s", name, value, self.reasons[name, value])
            unknown = set(hits) - set(values)
            assert not unknown, f"{name}: no bins for {unknown}"
        assert not empty, f"not covered: {', '.join(empty)}"
