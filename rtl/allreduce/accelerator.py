"""The surroundings of the accelerator in its tests: memory, registers, and modules that are played."""

from collections import deque

import exanet
from operation import Operation

from bench import Bench, Sink, Source

DATA, PAIRS, NAME, BLOCK, START, NOTIFY = 0, 8, 16, 24, 32, 4096
VECTOR_AT, TABLE_AT, WORD_AT = 0x3_0000_0100, 0x4_0000_0020, 0x5_0000_0010


class Memory:
    """The memory behind the AXI4 port: answers reads `latency` cycles later, not ready with chance `busy`."""

    def __init__(self, bench: Bench):
        self.dut, self.random = bench.dut, bench.random
        self.busy, self.latency = 0.0, 4
        self.vector, self.table = b"", b""
        # Cycles of requests, and what was written: cycle of the first word, address, bytes.
        self.requests: deque[tuple[int, int]] = deque()
        # The cycles of the last words of reads, with their threads.
        self.read: deque[tuple[int, int]] = deque()
        self.written: deque[tuple[int, int, bytes]] = deque()
        self.reset()

    def reset(self):
        """Forgets what has begun."""
        self.reads: deque[tuple[int, int, bytes, bool]] = deque()
        self.word: tuple | None = None
        self.addresses: deque[tuple[int, int, int]] = deque()
        self.words: list[tuple[int, int]] = []
        self.first_word = 0
        self.whole: deque[tuple[int, list[tuple[int, int]]]] = deque()
        self.to_answer: deque[int] = deque()
        self.ready = [False] * 3
        for signal in ["arready", "rvalid", "rid", "rresp", "awready", "wready", "bvalid", "bid", "bresp"]:
            getattr(self.dut, f"m_axi_{signal}").value = 0

    def step(self, cycle: int):
        """One cycle of all five channels."""
        dut = self.dut
        if self.ready[0] and dut.m_axi_arvalid.value:
            thread, address = int(dut.m_axi_arid.value), int(dut.m_axi_araddr.value)
            words = int(dut.m_axi_arlen.value) + 1
            self.requests.append((cycle, thread))
            data, base = (self.table, TABLE_AT) if thread else (self.vector, VECTOR_AT)
            data = data[address - base : address - base + 16 * words].ljust(16 * words, b"\xa5")
            for place in range(words):
                word = data[16 * place : 16 * place + 16]
                self.reads.append((cycle + self.latency + place, thread, word, place == words - 1))
        if self.word is not None and dut.m_axi_rready.value:
            if self.word[3]:
                self.read.append((cycle, self.word[1]))
            self.word = None
        due = self.word is None and self.reads and self.reads[0][0] <= cycle + 1
        if due and not (self.busy and self.random.random() < self.busy):
            self.word = self.reads.popleft()
            _, thread, data, last = self.word
            dut.m_axi_rid.value, dut.m_axi_rlast.value = thread, int(last)
            dut.m_axi_rdata.value = int.from_bytes(data, "little")
        dut.m_axi_rvalid.value = int(self.word is not None)
        if self.ready[1] and dut.m_axi_awvalid.value:
            length = int(dut.m_axi_awlen.value) + 1
            self.addresses.append((int(dut.m_axi_awid.value), int(dut.m_axi_awaddr.value), length))
        if self.ready[2] and dut.m_axi_wvalid.value:
            if not self.words:
                self.first_word = cycle
            self.words.append((int(dut.m_axi_wdata.value), int(dut.m_axi_wstrb.value)))
            if dut.m_axi_wlast.value:
                self.whole.append((self.first_word, self.words))
                self.words = []
        if self.addresses and self.whole:
            thread, address, length = self.addresses.popleft()
            first, words = self.whole.popleft()
            assert length == len(words), f"cycle {cycle}: {len(words)} words, not {length}"
            data = b"".join(word.to_bytes(16, "little") for word, _ in words)
            strobes = [strobe >> place & 1 for _, strobe in words for place in range(16)]
            size = sum(strobes)
            assert strobes == [1] * size + [0] * (len(data) - size)
            self.written.append((first, address, data[:size]))
            self.to_answer.append(thread)
        answers = bool(self.to_answer) and not (self.busy and self.random.random() < self.busy)
        dut.m_axi_bvalid.value = int(answers)
        if answers:
            dut.m_axi_bid.value = self.to_answer.popleft()
        self.ready = [not (self.busy and self.random.random() < self.busy) for _ in range(3)]
        for name, ready in zip(["ar", "aw", "w"], self.ready, strict=True):
            getattr(dut, f"m_axi_{name}ready").value = int(ready)


class Registers:
    """Writes registers, one after the other; keeps the cycle and answer of each."""

    def __init__(self, bench: Bench):
        self.dut = bench.dut
        self.answers: deque[int] = deque()
        self.reset()

    def reset(self):
        """Drops what has not been written."""
        self.queue: deque[tuple[int, int]] = deque()
        self.current: tuple[int, int] | None = None
        self.written = 0
        for signal in ["awvalid", "wvalid", "arvalid"]:
            getattr(self.dut, f"s_axil_{signal}").value = 0
        self.dut.s_axil_wstrb.value = 0xFF
        self.dut.s_axil_bready.value = 1
        self.dut.s_axil_rready.value = 1

    def step(self, cycle: int):
        """One cycle."""
        if self.dut.s_axil_bvalid.value:
            self.answers.append(int(self.dut.s_axil_bresp.value))
        if self.current is not None:
            if not self.dut.s_axil_awready.value:
                return
            self.written, self.current = cycle, None
        if self.queue:
            self.current = self.queue.popleft()
            self.dut.s_axil_awaddr.value, self.dut.s_axil_wdata.value = self.current
        valid = int(self.current is not None)
        self.dut.s_axil_awvalid.value, self.dut.s_axil_wvalid.value = valid, valid


class Setup:
    """A module with all its surroundings."""

    def __init__(self, dut, node: int, seed: int):
        self.bench = Bench(dut, seed)
        dut.node.value = node
        self.source = self.bench.add(Source(self.bench, "s_axis_net"))
        self.sink = self.bench.add(Sink(self.bench, "m_axis_net"))
        self.memory = self.bench.add(Memory(self.bench))
        self.registers = self.bench.add(Registers(self.bench))
        # The cycle of each footer that was taken.
        self.footers: deque[int] = deque()
        self.source.taken = lambda cycle, what: self.footers.append(cycle)

    async def start(self):
        """Resets."""
        await self.bench.reset(64)
        self.registers.queue.append((NOTIFY, WORD_AT))

    def program(self, of: Operation, bad: dict | None = None):
        """Software programs an operation."""
        self.memory.vector = of.vectors[of.own]
        pairs = enumerate(of.members)
        self.memory.table = b"".join(
            node.to_bytes(4, "little") + rank.to_bytes(4, "little") for rank, node in pairs
        )
        fields = {"ranks": len(of.members), "own": of.own, "size": of.size}
        fields |= {"operation": of.operation, "data_type": of.data_type} | (bad or {})
        start = fields["ranks"] | fields["own"] << 16 | fields["size"] << 32
        start |= fields["operation"] << 48 | fields["data_type"] << 52
        for store in [
            (DATA, VECTOR_AT),
            (PAIRS, TABLE_AT),
            (NAME, of.number << 32 | of.group),
            (BLOCK, of.block),
        ]:
            self.registers.queue.append(store)
        self.registers.queue.append((START, start))

    def send(self, packet: exanet.Packet, flip: int | None = None):
        """Sends a packet to the module, with a bit of its words flipped, if one is given."""
        words = packet.words()
        if flip is not None:
            words[flip // 128 % len(words)] ^= 1 << flip % 128
        self.source.send(words, packet)

    async def packet(self, most: int = 400) -> tuple[int, list[int]]:
        """The next packet of the module, with the cycle of its header."""
        await self.bench.until(lambda: bool(self.sink.packets), most, "a packet")
        return self.sink.packets.popleft()

    async def expect(self, packet: exanet.Packet, most: int = 400) -> int:
        """The module sends this packet next. Returns the cycle of its header."""
        cycle, words = await self.packet(most)
        expected = packet.words()
        assert words == expected, (
            f"cycle {cycle}: {[f'{w:032x}' for w in words]}, not {[f'{w:032x}' for w in expected]}"
        )
        return cycle

    async def told(self, of: Operation, status: int, node: int = 0, most: int = 2000) -> int:
        """The word that tells software, and the result before it. Returns the cycle of their first word."""
        count = 2 if status == 1 else 1
        await self.bench.until(lambda: len(self.memory.written) >= count, most, "telling software")
        first = self.memory.written[0][0]
        if status == 1:
            _, address, data = self.memory.written.popleft()
            expected = of.of_boards(0, len(of.members) // 4)
            assert (address, data) == (VECTOR_AT, expected), f"{data.hex()}, not {expected.hex()}"
        _, address, data = self.memory.written.popleft()
        word = of.group | of.number << 32 | of.block << 64 | status << 88 | node << 96
        assert (address, int.from_bytes(data, "little")) == (WORD_AT, word), f"{data.hex()}"
        async for _ in self.bench.cycles(4):
            pass
        return first

    async def idle(self):
        """Nothing comes out."""
        async for _ in self.bench.cycles(60):
            pass
        assert not self.sink.packets and not self.memory.written

    async def whole(self, of: Operation):
        """An operation from begin to end, with all that has to come sent at once."""
        self.program(of)
        for packet in of.coming():
            self.send(packet)
        for packet in of.going():
            await self.expect(packet)
        await self.told(of, 1)


def board(first: int = 0, order: tuple = (0, 1, 2, 3)) -> list[int]:
    """The nodes of a board in the order of their ranks."""
    return [4 * first + place for place in order]


def boards(count: int, first: int = 0) -> list[int]:
    """The nodes of boards in order."""
    return list(range(4 * first, 4 * (first + count)))
