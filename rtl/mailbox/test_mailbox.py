"""The mailbox against a model of its own: verdicts, answers, entries, and their cycles."""

import os
from collections import deque
from collections.abc import Callable

import cocotb
import exanet
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamWrite, AxiWriteBus
from exanet import Packet

from bench import Bench, Coverage, Sink, Source

INTERFACES, ENTRIES, CHECK, SLOTS, REMEMBERED = 64, 64, 11, 128, 1024
NODE = 4100
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
SYSTEM = 1 << 18
SLVERR = 2
# Of payloads: at the limits of words and of the message, and beyond.
SIZES = [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 66]


def base(interface: int) -> int:
    """Where the tests have the queue of an interface."""
    return 0x12_0000_0000 + interface * ENTRIES * 64


class Memory:
    """The memory behind the AXI4 port: takes addresses and words, not ready with chance `busy`."""

    def __init__(self, bench: Bench):
        self.dut, self.random, self.busy = bench.dut, bench.random, 0.0
        # Bytes of a beat, and beats of an entry.
        self.bytes = len(bench.dut.m_axi_wstrb)
        self.beats = 64 // self.bytes
        self.entries: deque[tuple[int, int, bytes]] = deque()
        # Addresses of entries that it refuses.
        self.refused: set[int] = set()
        self.reset()

    def reset(self):
        """Forgets what has begun."""
        self.addresses: deque[tuple[int, int]] = deque()
        self.words: list[int] = []
        self.first_word = 0
        self.whole: deque[bytes] = deque()
        self.responses: deque[int] = deque()
        self.ready = [False, False]
        self.answering = False
        for signal in ["awready", "wready", "bvalid", "bid", "bresp"]:
            getattr(self.dut, f"m_axi_{signal}").value = 0

    def step(self, cycle: int):
        """One cycle of all three channels."""
        dut = self.dut
        if self.ready[0] and dut.m_axi_awvalid.value:
            assert (
                int(dut.m_axi_awlen.value),
                int(dut.m_axi_awsize.value),
                int(dut.m_axi_awburst.value),
            ) == (self.beats - 1, self.bytes.bit_length() - 1, 1)
            self.addresses.append((cycle, int(dut.m_axi_awaddr.value)))
        if self.ready[1] and dut.m_axi_wvalid.value:
            if not self.words:
                self.first_word = cycle
            assert int(dut.m_axi_wstrb.value) == (1 << self.bytes) - 1
            self.words.append(int(dut.m_axi_wdata.value))
            assert bool(dut.m_axi_wlast.value) == (len(self.words) == self.beats)
            if len(self.words) == self.beats:
                self.whole.append(b"".join(word.to_bytes(self.bytes, "little") for word in self.words))
                self.words = []
        if self.addresses and self.whole:
            cycle_of, address = self.addresses.popleft()
            self.entries.append((cycle_of, address, self.whole.popleft()))
            self.responses.append(SLVERR if address in self.refused else 0)
        if self.answering:
            self.responses.popleft()
        self.answering = bool(self.responses) and not (self.busy and self.random.random() < self.busy)
        dut.m_axi_bvalid.value = int(self.answering)
        dut.m_axi_bresp.value = self.responses[0] if self.answering else 0
        self.ready = [not (self.busy and self.random.random() < self.busy) for _ in range(2)]
        dut.m_axi_awready.value, dut.m_axi_wready.value = map(int, self.ready)


class Registers:
    """Writes registers, one after the other."""

    def __init__(self, bench: Bench):
        self.dut = bench.dut
        # Called with the cycle, the address and the value: None as the write is offered.
        self.written: Callable[[int, int, int | None], None] = lambda cycle, address, value: None
        self.reset()

    def reset(self):
        """Drops what has not been written."""
        self.queue: deque[tuple[int, int]] = deque()
        self.current: tuple[int, int] | None = None
        for signal in ["awvalid", "wvalid", "arvalid"]:
            getattr(self.dut, f"s_axil_{signal}").value = 0
        self.dut.s_axil_wstrb.value = 0xFF
        self.dut.s_axil_bready.value = 1
        self.dut.s_axil_rready.value = 1

    def are_idle(self) -> bool:
        """Whether all has been written."""
        return not self.queue and self.current is None

    def write(self, address: int, value: int):
        """Writes a register."""
        self.queue.append((address, value))

    def step(self, cycle: int):
        """One cycle."""
        if self.current is not None:
            if not self.dut.s_axil_awready.value:
                return
            self.written(cycle, *self.current)
            self.current = None
        if self.queue:
            self.current = self.queue.popleft()
            self.written(cycle + 1, self.current[0], None)
            self.dut.s_axil_awaddr.value, self.dut.s_axil_wdata.value = self.current
        valid = int(self.current is not None)
        self.dut.s_axil_awvalid.value, self.dut.s_axil_wvalid.value = valid, valid


class Model:
    """The mailbox as it has to be, packet by packet."""

    def __init__(self, bench: Bench):
        self.verdict = bench.dut.verdict_valid
        self.coverage: Coverage | None = None
        self.reset()

    def reset(self):
        """All queues are closed, and nothing has come."""
        # None: the queue is not open.
        self.domain: list[int | None] = [None] * INTERFACES
        self.head, self.tail, self.base = ([0] * INTERFACES for _ in range(3))
        self.put: dict[int, tuple[int, int]] = {}
        # Writes of registers by their cycle; of one that is offered, and not taken yet, no value.
        self.writes: deque[tuple[int, int, int | None]] = deque()
        # Packets whose footer has been taken.
        self.whole: deque[tuple[Packet, bool]] = deque()
        self.answers: deque[list[int]] = deque()
        self.entries: deque[tuple[int, bytes]] = deque()

    def write(self, address: int, value: int | None):
        """A register is written."""
        interface = address >> 12 & 63
        is_base = address & SYSTEM and address & 0xFFF == 8
        if is_base and value is None:
            self.domain[interface] = None
        elif is_base:
            self.base[interface], self.head[interface], self.tail[interface] = value, 0, 0
        elif value is not None:
            (self.domain if address & SYSTEM else self.head)[interface] = value

    def state(self, interface: int) -> str:
        """The state of a queue."""
        held = self.tail[interface] - self.head[interface]
        return "empty" if held == 0 else "full" if held == ENTRIES else "holding"

    def step(self, cycle: int):
        """Decides on the packet whose verdict falls, by the registers that it has found a cycle before."""
        while self.writes and self.writes[0][0] <= cycle - 2:
            self.write(*self.writes.popleft()[1:])
        if self.verdict.value:
            kind, entry = self.decide(*self.whole[0])
            packet, _ = self.whole.popleft()
            if self.coverage:
                self.coverage.hit("answer", kind)
            self.answers.append(packet.answer(kind, NODE).words())
            if entry is not None:
                self.entries.append(entry)

    def decide(self, packet: Packet, sound: bool) -> tuple[int, tuple[int, bytes] | None]:
        """The answer to a packet, and the entry that it becomes."""
        interface = packet.interface
        place = packet.number & 1023 ^ (packet.source & 31) << 5 ^ packet.source >> 5 & 31
        if not sound or packet.size > 64:
            return exanet.REFUSED_DAMAGED, None
        if self.put.get(place) == (packet.source, packet.number):
            if self.coverage:
                self.coverage.hit("again", True)
            return exanet.ACKNOWLEDGEMENT, None
        if interface >= INTERFACES or self.domain[interface] is None:
            return exanet.REFUSED_INTERFACE, None
        if packet.domain != self.domain[interface]:
            return exanet.REFUSED_DOMAIN, None
        before = self.state(interface)
        if self.coverage:
            self.coverage.hit("queue", before)
        if before == "full":
            return exanet.REFUSED_FULL, None
        self.put[place] = packet.source, packet.number
        address = self.base[interface] + self.tail[interface] % ENTRIES * 64
        self.tail[interface] += 1
        return exanet.ACKNOWLEDGEMENT, (address, packet.payload.ljust(64, b"\0"))


class Setup:
    """The mailbox with all its surroundings, reset, its queues open."""

    def __init__(self, dut, seed: int):
        self.bench = Bench(dut, seed)
        dut.node.value = NODE
        self.source = self.bench.add(Source(self.bench, "s_axis_net"))
        self.sink = self.bench.add(Sink(self.bench, "m_axis_net"))
        self.memory = self.bench.add(Memory(self.bench))
        self.registers = self.bench.add(Registers(self.bench))
        self.model = self.bench.add(Model(self.bench))
        self.source.taken = self.taken
        self.number = 0
        # The cycle of each header, as it was taken.
        self.headers: deque[int] = deque()
        self.source.begun = lambda cycle, what: self.headers.append(cycle)
        self.registers.written = lambda *write: self.model.writes.append(write)

    def taken(self, cycle: int, what):
        """The last word of a packet has been taken."""
        if what is not None:
            self.model.whole.append(what)

    async def start(self, open_queues: bool = True):
        """Resets, and opens the queue of interface i for domain i + 1."""
        await self.bench.reset(REMEMBERED)
        if open_queues:
            for interface in range(INTERFACES):
                self.open(interface, interface + 1)
            await self.bench.until(self.registers.are_idle, 800, "opening")

    def open(self, interface: int, domain: int, place: int | None = None):
        """Opens the queue of an interface anew."""
        page = SYSTEM | interface << 12
        self.registers.write(page + 8, base(interface) if place is None else place)
        self.registers.write(page, domain)

    def packet(self, interface: int, size: int, **other) -> Packet:
        """A sound packet with a number of its own."""
        self.number += 1
        other = {
            "number": self.number,
            "source": 77,
            "domain": interface + 1 if interface < 64 else 0,
        } | other
        other |= {"identity": exanet.identity(interface % 64, self.number % 4)}
        payload = self.bench.random.randbytes(min(size, 1023))
        return Packet(exanet.SMALL, node=NODE, interface=interface, size=size, payload=payload, **other)

    def send(self, packet: Packet, flip: int | None = None):
        """Sends a packet, with a bit of its words flipped, if one is given."""
        words = packet.words()
        if flip is not None:
            # A bit of the payload or of the check: a damaged header or identity would go into the answer.
            place = 1 + flip // 128 % (len(words) - 1)
            words[place] ^= 1 << flip % (128 if place < len(words) - 1 else 32)
        self.source.send(words, (packet, flip is None))

    def check(self):
        """Compares what has come out with the model."""
        while self.sink.packets:
            cycle, words = self.sink.packets.popleft()
            assert self.model.answers, f"cycle {cycle}: an answer to nothing: {words[0]:032x}"
            expected = self.model.answers.popleft()
            assert words == expected, (
                f"cycle {cycle}: {[f'{w:032x}' for w in words]}, not {[f'{w:032x}' for w in expected]}"
            )
        while self.memory.entries:
            cycle, address, data = self.memory.entries.popleft()
            assert self.model.entries, f"cycle {cycle}: an entry of nothing at {address:#x}"
            expected = self.model.entries.popleft()
            assert (address, data) == expected, f"cycle {cycle}: {address:#x} {data.hex()}, not {expected}"

    async def drain(self):
        """Waits until all is answered and written."""
        self.source.idle = self.sink.busy = self.memory.busy = 0.0

        def is_done() -> bool:
            self.check()
            model = self.model
            return not (
                self.source.queue or self.source.current or model.whole or model.answers or model.entries
            )

        await self.bench.until(is_done, 20 * SLOTS + 20 * len(self.source.queue), "draining")
        async for _ in self.bench.cycles(10):
            pass

    async def store(self, address: int, value: int):
        """Writes a register, and waits until it is taken."""
        self.registers.write(address, value)
        await self.bench.until(self.registers.are_idle, 20, "a write")

    async def tail(self, interface: int) -> int:
        """The tail of a queue, as its process reads it."""
        return await self.load(interface << 12 | 8)

    async def load(self, address: int) -> int:
        """A register."""
        dut = self.bench.dut
        dut.s_axil_araddr.value, dut.s_axil_arvalid.value = address, 1
        await RisingEdge(dut.clk)
        dut.s_axil_arvalid.value = 0
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        return int(dut.s_axil_rdata.value)


@cocotb.test()
async def every_answer_at_its_edge(dut):
    """Catches a check that takes another number of cycles, alone or behind others, for any size of packet."""
    setup = Setup(dut, 1)
    await setup.start()
    free, expected = 0, deque()

    def begun(cycle: int, what):
        nonlocal free
        free = max(free, cycle) + CHECK
        expected.append(free)

    setup.source.begun = begun
    for gap in [0, 1, 10, 11, 12, 40]:
        for size in [0, 1, 16, 17, 64]:
            setup.send(setup.packet(size % 64, size))
            async for _ in setup.bench.cycles(gap):
                pass
    for _ in range(40):
        setup.send(setup.packet(1, 0))
    answered = []

    def is_done() -> bool:
        answered.extend(cycle for cycle, _ in setup.sink.packets)
        setup.check()
        return len(answered) == 70

    await setup.bench.until(is_done, 3000, "answering")
    assert answered == list(expected), list(zip(answered, expected, strict=True))


@cocotb.test()
async def packets_of_the_vectors(dut):
    """Catches a field or a check that is not where wire.rs has it: both read one file."""
    setup = Setup(dut, 2)
    await setup.start(open_queues=False)
    small = [(packet, words) for packet, words in exanet.vectors() if packet.kind == exanet.SMALL]
    assert len(small) >= 3
    for packet, words in small:
        page = SYSTEM | packet.interface << 12
        await setup.store(page + 8, base(packet.interface))
        await setup.store(page, packet.domain)
        setup.source.send(words, (packet, True))
        await setup.drain()
        assert await setup.tail(packet.interface) == 1


@cocotb.test()
async def a_full_queue_refuses_until_its_head_moves(dut):
    """Catches room that is not there, and a head that counts too late: the queue's states and its wrap."""
    setup = Setup(dut, 3)
    await setup.start()
    for _ in range(ENTRIES + 3):
        setup.send(setup.packet(5, 8))
    await setup.drain()
    assert setup.model.state(5) == "full" and await setup.tail(5) == ENTRIES
    for head in [1, 3, ENTRIES, ENTRIES + 1]:
        await setup.store(5 << 12, head)
        for _ in range(ENTRIES + 1):
            setup.send(setup.packet(5, 64))
        await setup.drain()
    assert await setup.tail(5) == 2 * ENTRIES + 1


@cocotb.test()
async def a_head_counts_up_to_the_cycle_behind_the_footer(dut):
    """Catches a look-up that is a cycle early or late, on which RTL and model would differ."""
    for late, kind in [(0, exanet.ACKNOWLEDGEMENT), (1, exanet.ACKNOWLEDGEMENT), (2, exanet.REFUSED_FULL)]:
        setup = Setup(dut, 4)
        await setup.start()
        for _ in range(ENTRIES):
            setup.send(setup.packet(0, 0))
        await setup.drain()
        kinds, footer, written = [], [], []

        def taken(cycle: int, what, setup=setup, footer=footer):
            footer.append(cycle)
            setup.taken(cycle, what)

        def stored(cycle: int, address: int, value: int | None, written=written):
            if value is not None:
                written.append(cycle)

        setup.source.taken, setup.registers.written = taken, stored
        setup.send(setup.packet(0, 0))
        # Header and footer are on the bus in the two cycles behind this one.
        first = setup.bench.cycle + 1
        async for cycle in setup.bench.cycles(40):
            if cycle == first + 1 + late:
                setup.registers.write(0, 1)
                setup.registers.step(cycle)
            for _, words in setup.sink.packets:
                kinds.append(words[0] >> 40 & 0xFF)
            setup.sink.packets.clear()
        assert written[0] - footer[0] == late
        assert kinds == [kind], f"{late} cycles behind the footer: {kinds}"


@cocotb.test()
async def bad_packets_change_nothing(dut):
    """Catches a packet that is taken although it is damaged, foreign, for nobody, too long, or cut short."""
    setup = Setup(dut, 5)
    await setup.start()
    setup.send(setup.packet(3, 20, domain=5))
    setup.send(setup.packet(64, 20))
    setup.send(setup.packet(2047, 0))
    setup.send(setup.packet(3, 65))
    setup.send(setup.packet(3, 1023))
    for flip in [0, 31, 32, 127, 128, 255, 256]:
        setup.send(setup.packet(3, 20), flip)
    # In wider beats the header says where a packet ends: there are no others.
    if setup.source.lanes == 1:
        # Words that are missing, and one too many: the size says otherwise, though the check is right.
        for size, payload in [(33, bytes(16)), (16, bytes(32)), (0, bytes(16))]:
            packet = setup.packet(3, size)
            packet = Packet(**{**packet.__dict__, "payload": payload})
            setup.source.send(packet.words(), (packet, False))
        # A header alone is no packet, and has no answer.
        setup.source.send(setup.packet(3, 0).words()[:1])
    # An answer has strayed here.
    stray = setup.packet(3, 0)
    stray = Packet(**{**stray.__dict__, "kind": exanet.ACKNOWLEDGEMENT})
    setup.source.send(stray.words(), (stray, False))
    setup.send(setup.packet(3, 64))
    await setup.drain()
    assert await setup.tail(3) == 1


@cocotb.test()
async def a_queue_that_nobody_has_opened_refuses(dut):
    """Catches a packet of PDID 0 that is put where no process waits, and a queue of PDID 0 that is none."""
    setup = Setup(dut, 10)
    await setup.start(open_queues=False)
    for domain in [0, 1, 0xFFFF]:
        for interface in [0, 5, INTERFACES - 1]:
            setup.send(setup.packet(interface, 8, domain=domain))
    await setup.drain()
    assert [await setup.tail(interface) for interface in [0, 5, INTERFACES - 1]] == [0, 0, 0]
    await setup.store(SYSTEM | 5 << 12 | 8, base(5))
    setup.send(setup.packet(5, 8, domain=0))
    await setup.drain()
    await setup.store(SYSTEM | 5 << 12, 0)
    for interface, domain in [(5, 0), (5, 1), (4, 0)]:
        setup.send(setup.packet(interface, 8, domain=domain))
    await setup.drain()
    assert await setup.tail(5) == 1
    assert [await setup.tail(interface) for interface in [0, 4, INTERFACES - 1]] == [0, 0, 0]


@cocotb.test()
async def an_entry_that_memory_refuses_is_told(dut):
    """Catches an error of memory that nobody sees, and a tail that goes past an entry that is not there."""
    setup = Setup(dut, 11)
    await setup.start()
    error = SYSTEM | 6 << 12 | 16
    for refused in [0, 3, ENTRIES - 1]:
        await setup.store(SYSTEM | 6 << 12 | 8, base(6))
        await setup.store(SYSTEM | 6 << 12, 7)
        assert (await setup.load(error), await setup.tail(6)) == (0, 0)
        setup.memory.refused = {base(6) + refused * 64}
        for _ in range(ENTRIES + 2):
            setup.send(setup.packet(6, 64))
        setup.send(setup.packet(7, 8))
        # The model has what is put: the queue fills up behind the entry.
        await setup.drain()
        assert setup.model.state(6) == "full"
        assert (await setup.load(error), await setup.tail(6)) == (1, refused)
        # Entries before it are taken; what comes then stays behind it.
        await setup.store(6 << 12, refused)
        for _ in range(refused + 2):
            setup.send(setup.packet(6, 8))
        await setup.drain()
        assert (await setup.load(error), await setup.tail(6)) == (1, refused)
        assert await setup.load(SYSTEM | 7 << 12 | 16) == 0
    assert await setup.tail(7) == 3


@cocotb.test()
async def a_queue_is_opened_anew_under_traffic(dut):
    """Catches a message for the process before: in the memory of the next one, or counted in its tail."""
    setup = Setup(dut, 12)
    await setup.start()
    interface, register = 4, SYSTEM | 4 << 12 | 8
    placed = []

    def written(cycle: int, address: int, value: int | None):
        if address == register and value is not None:
            setup.check()
            assert not setup.model.entries and not setup.memory.responses, f"cycle {cycle}: entries come yet"
            placed.append(cycle)
        setup.model.writes.append((cycle, address, value))

    setup.registers.written = written
    for turn in range(120):
        setup.memory.busy = 0.0 if turn < 60 else 0.8
        for _ in range(5):
            setup.send(setup.packet(interface, setup.bench.random.choice([0, 64])))
        async for _ in setup.bench.cycles(turn % 60):
            setup.check()
        setup.open(interface, 9, base(60 + turn % 4))
        await setup.bench.until(setup.registers.are_idle, 2000, "opening")
        await setup.drain()
        assert (await setup.tail(interface), await setup.load(SYSTEM | interface << 12)) == (0, 9)
        setup.send(setup.packet(interface, 8, domain=9))
        await setup.drain()
        assert await setup.tail(interface) == 1
        setup.open(interface, interface + 1)
        await setup.bench.until(setup.registers.are_idle, 2000, "opening")
    assert len(placed) == 240


@cocotb.test()
async def entries_stay_where_only_the_domain_changes(dut):
    """Catches a queue that is emptied, or a failure that is forgotten, by a store of PDID."""
    setup = Setup(dut, 13)
    await setup.start()
    setup.memory.refused = {base(3) + 128}
    for _ in range(3):
        setup.send(setup.packet(3, 8))
    await setup.drain()
    await setup.store(3 << 12, 1)
    await setup.store(SYSTEM | 3 << 12, 9)
    setup.send(setup.packet(3, 8))
    setup.send(setup.packet(3, 8, domain=9))
    await setup.drain()
    registers = [3 << 12, 3 << 12 | 8, SYSTEM | 3 << 12, SYSTEM | 3 << 12 | 16]
    assert [await setup.load(register) for register in registers] == [1, 2, 9, 1]
    assert setup.model.tail[3] == 4


@cocotb.test()
async def a_repeated_packet_is_put_once(dut):
    """Catches a message that is taken twice, and one that is not taken as it looks like another."""
    setup = Setup(dut, 6)
    await setup.start()
    packet = setup.packet(9, 40)
    for _ in range(3):
        setup.send(packet)
    for other in [{"source": 78}, {"number": packet.number + REMEMBERED}]:
        setup.send(Packet(**{**packet.__dict__, **other}))
    await setup.drain()
    assert await setup.tail(9) == 3


@cocotb.test()
async def reset_in_the_middle(dut):
    """Catches state that survives a reset: a packet that had begun, an answer, an entry, what was put."""
    setup = Setup(dut, 7)
    await setup.start()
    packets = [setup.packet(2, 64) for _ in range(8)]
    for after in [3, 14, 40]:
        for packet in packets:
            setup.send(packet)
        setup.memory.busy = 0.5
        async for _ in setup.bench.cycles(after):
            pass
        setup = Setup(dut, 8)
        await setup.start()
        for packet in packets:
            setup.send(packet)
        await setup.drain()
        assert await setup.tail(2) == 8


@cocotb.test()
async def memory_and_registers_of_others(dut):
    """Catches what our own drivers would not see: registers and entries by cocotbext-axi."""
    setup = Setup(dut, 9)
    await setup.start(open_queues=False)
    setup.bench.parts.remove(setup.memory)
    setup.bench.parts.remove(setup.registers)
    ram = AxiRamWrite(AxiWriteBus.from_prefix(dut, "m_axi"), dut.clk, dut.reset, size=1 << 16)
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.reset)
    await registers.write_qword(SYSTEM | 7 << 12 | 8, 0x4000)
    await registers.write_qword(SYSTEM | 7 << 12, 8)
    setup.model.domain[7] = 8
    assert await registers.read_qword(SYSTEM | 7 << 12) == 8
    assert await registers.read_qword(SYSTEM | 7 << 12 | 8) == 0x4000
    packets = [setup.packet(7, size) for size in [1, 64, 0, 33]]
    for packet in packets:
        setup.send(packet)
    async for _ in setup.bench.cycles(200):
        pass
    for place, packet in enumerate(packets):
        assert ram.read(0x4000 + 64 * place, 64) == packet.payload.ljust(64, b"\0")
    assert await registers.read_qword(7 << 12 | 8) == 4
    await registers.write_qword(7 << 12, 4)
    assert await registers.read_qword(7 << 12) == 4
    # There is no such register.
    answer = await registers.write(7 << 12 | 8, bytes(8))
    assert answer.resp != 0
    answer = await registers.read(7 << 12 | 16, 8)
    assert answer.resp != 0
    assert (await registers.write(SYSTEM | 7 << 12 | 16, bytes(8))).resp != 0
    assert await registers.read_qword(SYSTEM | 7 << 12 | 16) == 0


@cocotb.test()
async def random_packets_under_back_pressure(dut):
    """Catches what nobody thought of: all errors, sizes and queues, with every port busy at times."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random, model = setup.bench.random, setup.model
    coverage = Coverage(
        answer=exanet.ANSWERS,
        queue=["empty", "holding", "full"],
        again=[True],
        size=SIZES,
        interface=["first", "last", "other", "none"],
        source=["least", "most", "other"],
        waits=["network in", "network out", "address", "word", "registers"],
        opened=["beside entries under way"],
    )
    model.coverage = coverage
    await setup.start()
    sent: list[Packet] = []
    favourite = 0
    async for cycle in setup.bench.cycles(CYCLES):
        setup.check()
        if cycle % 512 == 0:
            setup.source.idle, setup.sink.busy, setup.memory.busy = (
                random.choice([0, 0, 0.5, 0.9]) for _ in range(3)
            )
        if cycle % 4096 == 0:
            favourite = random.randrange(INTERFACES)
        for name, valid, ready in [
            ("network in", dut.s_axis_net_tvalid, dut.s_axis_net_tready),
            ("network out", dut.m_axis_net_tvalid, dut.m_axis_net_tready),
            ("address", dut.m_axi_awvalid, dut.m_axi_awready),
            ("word", dut.m_axi_wvalid, dut.m_axi_wready),
            ("registers", dut.s_axil_awvalid, dut.s_axil_awready),
        ]:
            if valid.value and not ready.value:
                coverage.hit("waits", name)
        if len(setup.source.queue) < 8:
            interface = random.choice([favourite, favourite, random.randrange(INTERFACES), 0, INTERFACES - 1])
            size = random.choice(SIZES)
            what = random.random()
            source = random.choice([0, (1 << 22) - 1, random.randrange(1 << 22)])
            packet = setup.packet(interface, size, source=source)
            if what < 0.05 and sent:
                packet = random.choice(sent[-50:])
            elif what < 0.08:
                packet = setup.packet(interface, size, domain=random.randrange(1 << 16))
            elif what < 0.1:
                packet = setup.packet(random.randrange(64, 2048), size)
            sent.append(packet)
            setup.send(packet, random.randrange(768) if random.random() < 0.05 else None)
            coverage.hit("size", packet.size)
            named = {0: "first", INTERFACES - 1: "last"}.get(packet.interface, "other")
            coverage.hit("interface", named if packet.interface < INTERFACES else "none")
            least, most = packet.source == 0, packet.source == (1 << 22) - 1
            coverage.hit("source", "least" if least else "most" if most else "other")
        if setup.registers.are_idle() and not model.writes:
            interface = random.choice([favourite, random.randrange(INTERFACES)])
            what = random.random()
            if what < 0.002:
                held = model.tail[interface] - model.head[interface]
                setup.registers.write(interface << 12, model.head[interface] + random.randint(0, held))
            elif what < 0.003:
                setup.open(interface, interface + 1, base(interface) + random.choice([0, 1 << 40]))
                if model.entries:
                    coverage.hit("opened", "beside entries under way")
    await setup.drain()
    dut._log.info("%d packets", len(sent))
    coverage.close(dut._log)
