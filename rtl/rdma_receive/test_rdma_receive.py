"""The receive unit of the RDMA engine against a model of its own: memory, answers, contexts."""

import os
from collections import deque
from dataclasses import dataclass, field

import cocotb
import exanet
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamWrite, AxiWriteBus
from exanet import Cell, Packet

from bench import Bench, Coverage, Sink, Source

INTERFACES, CELL, BLOCK = 64, 256, 16384
# As rtl/run.py builds it for the tests.
CONTEXTS, CONTEXT_TIMEOUT, CHANNELS, WAYS, WAITING = 5, 3000, 64, 4, 4
NODE = 4100
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
DROPPED, FOREIGN, DUPLICATE, NO_CONTEXT, AGAIN, WRITTEN, COMPLETE, FAULT = range(8)
ACK, NACK, FAULTED, DOMAIN = exanet.BLOCK_ANSWERS
SIZES = [0, 1, 15, 16, 17, 255, 256, 257, 700, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 256]


def queue_of(interface: int) -> int:
    """The place of the notifications of an interface."""
    return 1 << 38 | interface << 10


class Memory:
    """Memory behind the AXI4 port: takes bursts and words, and answers each burst `latency` cycles later."""

    def __init__(self, bench: Bench):
        self.dut, self.random = bench.dut, bench.random
        # Bytes of a word of the bus.
        self.word = len(bench.dut.m_axi_wstrb)
        self.busy, self.latency = 0.0, 5
        # Addresses of bursts that are refused, each once.
        self.unmapped: set[int] = set()
        self.bytes: dict[int, int] = {}
        self.notifications: dict[int, list[int]] = {}
        # The cycle of each burst's address, of its first word, and of its answer.
        self.addressed: list[tuple[int, int, int]] = []
        self.first_words: list[int] = []
        self.answered: list[int] = []
        self.reset()

    def reset(self):
        """Forgets what has begun."""
        self.bursts: deque[tuple[int, int]] = deque()
        self.words: deque[tuple[int, int, int]] = deque()
        self.answers: deque[tuple[int, int]] = deque()
        self.ready = [False, False]
        self.answering = self.begins = False
        self.begins = True
        for signal in ["awready", "wready", "bvalid", "bid", "bresp"]:
            getattr(self.dut, f"m_axi_{signal}").value = 0

    def write(self, address: int, words: list[tuple[int, int, int]]):
        """A burst is whole."""
        begin = address // self.word * self.word
        for place, (data, strobe, _) in enumerate(words):
            if address >> 38 & 1:
                found = data >> 8 * (address - begin) & (1 << 128) - 1
                self.notifications.setdefault(address >> 10 & 63, []).append(found)
                assert len(words) == 1 and strobe == 0xFFFF << address - begin
            for byte in range(self.word):
                if strobe >> byte & 1:
                    self.bytes[begin + self.word * place + byte] = data >> 8 * byte & 0xFF

    def step(self, cycle: int):
        """One cycle of all three channels."""
        dut = self.dut
        if self.ready[0] and dut.m_axi_awvalid.value:
            address, words = int(dut.m_axi_awaddr.value), int(dut.m_axi_awlen.value) + 1
            is_notification = address >> 38 & 1
            assert address % (16 if is_notification else self.word) == 0
            assert is_notification or address // 4096 == (address + self.word * words - 1) // 4096
            self.bursts.append((address, words))
            self.addressed.append((cycle, address, words))
        if self.ready[1] and dut.m_axi_wvalid.value:
            if self.begins:
                self.first_words.append(cycle)
            self.begins = bool(dut.m_axi_wlast.value)
            self.words.append(
                (int(dut.m_axi_wdata.value), int(dut.m_axi_wstrb.value), int(dut.m_axi_wlast.value))
            )
        if self.bursts and len(self.words) >= self.bursts[0][1]:
            address, count = self.bursts.popleft()
            words = [self.words.popleft() for _ in range(count)]
            assert [last for _, _, last in words] == [0] * (count - 1) + [1], f"{address:#x}: {count} words"
            is_refused = address in self.unmapped
            if is_refused:
                self.unmapped.discard(address)
            else:
                self.write(address, words)
            self.answers.append((cycle + self.latency, 2 if is_refused else 0))
        if self.answering and dut.m_axi_bready.value:
            self.answers.popleft()
            self.answered.append(cycle)
        is_busy = self.busy and self.random.random() < self.busy
        held = self.answering and not dut.m_axi_bready.value
        self.answering = held or (bool(self.answers) and self.answers[0][0] <= cycle and not is_busy)
        dut.m_axi_bvalid.value = int(self.answering)
        if self.answering:
            dut.m_axi_bresp.value = self.answers[0][1]
        self.ready = [not (self.busy and self.random.random() < self.busy) for _ in range(2)]
        dut.m_axi_awready.value, dut.m_axi_wready.value = map(int, self.ready)


@dataclass
class Transfer:
    """A transfer, as its cells have it."""

    source: int
    channel: int
    first: int
    size: int
    interface: int
    address: int
    payload: bytes
    domain: int = 0
    acknowledged: set[int] = field(default_factory=set)
    notified: set[int] = field(default_factory=set)
    # Bytes that were sent damaged at last: they may be in memory, the block having come before.
    damaged: set[int] = field(default_factory=set)

    @property
    def blocks(self) -> int:
        """The blocks of the transfer."""
        return max(1, -(-self.size // BLOCK))

    def cells(self, block: int) -> int:
        """The cells of a block."""
        return max(1, -(-min(BLOCK, self.size - block * BLOCK) // CELL))

    def cell(self, block: int, index: int, attempt: int = 0) -> Packet:
        """A cell."""
        offset = block * BLOCK + index * CELL
        payload = self.payload[offset : offset + min(CELL, self.size - offset)]
        transaction = (self.first + block) % (1 << 32)
        last = index + 1 == self.cells(block)
        cell = Cell(self.channel, transaction, index, attempt, last, block + 1 == self.blocks)
        return Packet(
            exanet.CELL,
            NODE,
            self.source,
            self.first,
            cell.identity(),
            self.domain,
            self.interface,
            self.address + offset,
            len(payload),
            payload,
        )

    def notification(self, block: int, whole: bool, phase: int = 1) -> int:
        """The word that tells the process of a block that has come."""
        transaction = (self.first + block) % (1 << 32)
        ends = block + 1 == self.blocks
        marks = ends << 47 | whole << 46 | phase << 31 | self.source
        return self.first << 96 | transaction << 64 | self.channel << 48 | marks


class Setup:
    """The receive unit in its surroundings, reset; interface i is of domain i + 1."""

    def __init__(self, dut, seed: int):
        self.dut, self.bench = dut, Bench(dut, seed)
        dut.node.value = NODE
        self.memory = self.bench.add(Memory(self.bench))
        self.source = self.bench.add(Source(self.bench, "s_axis_net"))
        self.sink = self.bench.add(Sink(self.bench, "m_axis_net"))
        self.bench.add(self)
        self.changes: list[int] = []

    def reset(self):
        """The registers are written to later."""
        for signal in ["awvalid", "wvalid", "arvalid"]:
            getattr(self.dut, f"s_axil_{signal}").value = 0
        self.dut.s_axil_wstrb.value = 0xFF
        self.dut.s_axil_bready.value = self.dut.s_axil_rready.value = 1

    def step(self, cycle: int):
        """Keeps what cells come to."""
        if self.dut.change_valid.value:
            self.changes.append(int(self.dut.change_what.value))

    async def write(self, address: int, value: int):
        """Writes a register."""
        dut = self.dut
        dut.s_axil_awaddr.value, dut.s_axil_wdata.value = address, value
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 1
        async for _ in self.bench.cycles(20):
            if dut.s_axil_awready.value:
                break
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 0

    async def start(self):
        """Resets, and gives interfaces to domains."""
        await self.bench.reset(CHANNELS)
        for interface in range(INTERFACES):
            await self.write(interface << 12, interface + 1)
            await self.write(interface << 12 | 8, queue_of(interface))

    def transfer(self, size: int, **other) -> Transfer:
        """A transfer with bytes of its own."""
        fields = {"source": 77, "channel": 5, "first": 0, "interface": 3, "address": 0x10_0000} | other
        payload = self.bench.random.randbytes(size)
        return Transfer(**{"domain": fields["interface"] + 1} | fields, size=size, payload=payload)

    def send(self, transfer: Transfer, block: int, which=None, attempt: int = 0):
        """Sends the cells of a block, or some of them."""
        for index in range(transfer.cells(block)) if which is None else which:
            self.source.send(transfer.cell(block, index, attempt).words())

    async def answer(self, most: int = 2000) -> tuple[int, Cell, int]:
        """The next answer: its kind, the cell that it names, and its cycle."""
        await self.bench.until(lambda: self.sink.packets, most, "an answer")
        cycle, words = self.sink.packets.popleft()
        header, identity = words[0], words[1] >> 32 & (1 << 64) - 1
        cell = Cell.of(identity)
        kind, source = header >> 40 & 0xFF, header >> 90 & (1 << 22) - 1
        assert words == cell.answer(kind, NODE, source).words()
        return kind, cell, cycle

    async def rest(self, cycles: int = 60):
        """Nothing is answered for so long."""
        await self.bench.until(lambda: not self.source.queue and not self.source.current, 20000, "sending")
        async for _ in self.bench.cycles(cycles):
            assert not self.sink.packets, [f"{word:032x}" for word in self.sink.packets[0][1]]

    def check_memory(self, transfer: Transfer, block: int):
        """A block is in memory, and nothing behind it."""
        rank = (transfer.interface & 7) << 39
        begin, end = block * BLOCK, min(transfer.size, block * BLOCK + BLOCK)
        at = rank | transfer.address
        for place in range(begin, end):
            is_right = self.memory.bytes.get(at + place, 0) == transfer.payload[place]
            assert is_right or place in transfer.damaged, f"byte {place} of {transfer.size}"
        if block + 1 == transfer.blocks:
            assert at + end not in self.memory.bytes


@cocotb.test()
async def words_and_answers_at_their_edges(dut):
    """Catches words and answers that come in another cycle than the head of rdma_receive.sv says."""
    setup = Setup(dut, 1)
    await setup.start()
    begun: list[int] = []
    setup.source.begun = lambda cycle, what: begun.append(cycle)
    for number, size in enumerate([1, 16, 100, 256, 600]):
        transfer = setup.transfer(size, first=number)
        begun.clear(), setup.memory.first_words.clear(), setup.memory.answered.clear()
        setup.send(transfer, 0)
        kind, cell, cycle = await setup.answer()
        assert (kind, cell.index) == (ACK, transfer.cells(0) - 1)
        # The first word of payload is behind the header.
        assert setup.memory.first_words[: len(begun)] == [first + 2 for first in begun]
        assert cycle == setup.memory.answered[transfer.cells(0) - 1] + 2
        setup.check_memory(transfer, 0)
        await setup.rest(30)
        assert setup.memory.notifications.pop(3) == [transfer.notification(0, True)]


@cocotb.test()
async def cells_at_the_full_rate(dut):
    """Catches a cell that holds up the next one: whole blocks, and cells of a word each."""
    setup = Setup(dut, 15)
    await setup.start()
    lanes, taken = setup.source.lanes, []
    setup.source.taken = lambda cycle, what: taken.append(cycle)
    for number, size in enumerate([BLOCK, 2 * BLOCK + 16, 4096 + 40]):
        transfer = setup.transfer(size, first=4 * number, address=size << 8)
        taken.clear()
        for block in range(transfer.blocks):
            setup.send(transfer, block)
        for block in range(transfer.blocks):
            assert (await setup.answer(6000))[0] == ACK
            setup.check_memory(transfer, block)
        await setup.rest()
        last = 2 + -(-(size % CELL or CELL) // 16)
        cells = [-(-(18 if index + 1 < len(taken) else last) // lanes) for index in range(len(taken))]
        assert taken == [taken[0] + sum(cells[1 : index + 1]) for index in range(len(taken))]
        assert len(setup.memory.notifications.pop(3)) == transfer.blocks
    taken.clear()
    for channel in range(12):
        setup.send(setup.transfer(16, channel=40 + channel, address=0x8000 + 64 * channel), 0)
    for _ in range(12):
        assert (await setup.answer())[0] == ACK
    await setup.rest()
    assert taken == [taken[0] + -(-3 // lanes) * place for place in range(12)]


@cocotb.test()
async def cells_of_the_vectors(dut):
    """Catches a field or a check that is not where wire.rs has it: both read one file."""
    setup = Setup(dut, 2)
    await setup.start()
    found = exanet.vectors([exanet.CELL])
    assert len(found) >= 3
    for packet, words in found:
        setup.source.send(words)
        cell = Cell.of(packet.identity)
        if packet.interface >= INTERFACES or packet.address % setup.memory.word:
            if cell.last:
                assert (await setup.answer())[:2] == (DOMAIN, Cell.of(packet.identity & ~(1 << 46)))
            continue
        await setup.write(packet.interface << 12, packet.domain)
        async for _ in setup.bench.cycles(80):
            pass
        # A block of which only the last cell comes.
        setup.sink.packets.clear()
        at = (packet.interface & 7) << 39 | packet.address
        assert bytes(setup.memory.bytes[at + place] for place in range(packet.size)) == packet.payload


@cocotb.test()
async def blocks_in_any_order(dut):
    """Catches a block that is answered before it is whole, or twice, and one that is lost."""
    setup = Setup(dut, 3)
    await setup.start()
    transfer = setup.transfer(3 * BLOCK + 300, first=(1 << 32) - 2)
    random = setup.bench.random
    for block in [1, 0, 3, 2]:
        cells = list(range(transfer.cells(block)))
        # The first opens the context: another would not find the block whole.
        order = [0, *random.sample(cells[1:], len(cells) - 1)]
        setup.send(transfer, block, order[:-1])
        await setup.rest()
        setup.send(transfer, block, order[-1:])
        kind, cell, _ = await setup.answer()
        assert (kind, cell.index) == (ACK, order[-1])
        assert cell.transaction == (transfer.first + block) % (1 << 32)
        setup.check_memory(transfer, block)
        await setup.rest(20)
    right = [transfer.notification(block, block == 2) for block in [1, 0, 3, 2]]
    assert setup.memory.notifications[3] == right


@cocotb.test()
async def what_has_come_before(dut):
    """Catches a block that is told of twice, and one that is not acknowledged again."""
    setup = Setup(dut, 4)
    await setup.start()
    transfer = setup.transfer(BLOCK + 600)
    for block in [0, 1]:
        setup.send(transfer, block)
        assert (await setup.answer())[0] == ACK
        for attempt in [0, 1]:
            setup.send(transfer, block, attempt=attempt)
            kind, cell, _ = await setup.answer()
            assert (kind, cell.attempt, cell.last) == (ACK, attempt, True)
    await setup.rest()
    # A cell twice, of a block that is not whole.
    following = setup.transfer(600, first=2)
    setup.send(following, 0, [0, 0, 2, 2])
    await setup.rest()
    # One of the transfer before, meanwhile.
    setup.send(transfer, 1, [2])
    assert (await setup.answer())[0] == ACK
    setup.send(following, 0, [1])
    assert (await setup.answer())[:2] == (ACK, Cell(5, 2, 1))
    await setup.rest()
    right = [transfer.notification(0, False), transfer.notification(1, True), following.notification(0, True)]
    assert setup.memory.notifications[3] == right
    assert setup.changes.count(AGAIN) == 2


@cocotb.test()
async def cells_that_are_wrong(dut):
    """Catches a cell that counts though it is damaged, and a foreign one that is written."""
    setup = Setup(dut, 5)
    await setup.start()
    transfer = setup.transfer(700)
    for flip in [0, 100, 127]:
        words = transfer.cell(0, 0).words()
        words[1 + flip % 4] ^= 1 << flip
        setup.source.send(words)
    # The check, words that are missing, and one too many.
    words = transfer.cell(0, 0).words()
    for wrong in [
        [*words[:-1], words[-1] ^ 1],
        words[:4] + words[-1:],
        words[:1] + words[-1:],
        words[:2] + words[1:],
    ]:
        setup.source.send(wrong)
    setup.source.send(words[:1])
    setup.send(transfer, 0, [1])
    await setup.rest()
    # A header alone is no cell over 128 bits, and one that is damaged in a wider beat.
    assert setup.changes == [DROPPED] * (7 if setup.source.lanes == 1 else 8) + [WRITTEN]
    before = dict(setup.memory.bytes)
    foreign = [{"domain": 9}, {"interface": 64, "domain": 65}, {"interface": 2047}]
    foreign += [{"address": 0x2000 + setup.memory.word // 2}]
    for other in foreign:
        setup.send(setup.transfer(300, **{"channel": 6} | other), 0)
        kind, cell, _ = await setup.answer()
        assert (kind, cell.index) == (DOMAIN, 1)
    stray = setup.transfer(0, channel=6).cell(0, 0)
    setup.source.send(Packet(**{**stray.__dict__, "kind": exanet.SMALL}).words())
    await setup.rest()
    assert setup.memory.bytes == before
    setup.send(transfer, 0, [0, 2])
    assert (await setup.answer())[:2] == (ACK, Cell(5, 0, 2, last=True))
    setup.check_memory(transfer, 0)


@cocotb.test()
async def contexts_run_out(dut):
    """Catches blocks beyond the contexts that are taken, and a context that is not free again."""
    setup = Setup(dut, 6)
    await setup.start()
    transfers = [
        setup.transfer(600, channel=channel, address=channel << 16) for channel in range(CONTEXTS + 1)
    ]
    for transfer in transfers:
        setup.send(transfer, 0, [0, 1])
    await setup.rest()
    setup.send(transfers[0], 0, [2])
    assert (await setup.answer())[0] == ACK
    # Now there is one: but for a block whose first cells have found none, which is told so at its end.
    setup.send(transfers[-1], 0, [1, 2], attempt=1)
    assert (await setup.answer())[0] == NACK
    setup.send(transfers[-1], 0, [0], attempt=2)
    assert (await setup.answer())[0] == ACK
    # A newer transfer of a channel ends the one before.
    newer = setup.transfer(600, channel=1, first=1, address=0x70_0000)
    setup.send(newer, 0)
    assert (await setup.answer())[0] == ACK
    # Silent ones make way.
    setup.send(setup.transfer(600, channel=20), 0, [0])
    setup.send(setup.transfer(600, channel=21), 0, [0])
    await setup.rest(2 * CONTEXT_TIMEOUT + CHANNELS)
    last = [setup.transfer(600, channel=30 + channel, address=channel << 16) for channel in range(CONTEXTS)]
    for transfer in last:
        setup.send(transfer, 0, [0, 1])
        if setup.source.lanes > 1:
            # Cells of few beats come faster than silent contexts are found.
            await setup.rest(2 * CHANNELS)
    for transfer in last:
        setup.send(transfer, 0, [2])
        assert (await setup.answer())[0] == ACK


@cocotb.test()
async def blocks_wait_for_a_context(dut):
    """Catches a context that another block gets, a block that is told twice or never, and a wrong one."""
    setup = Setup(dut, 13)
    await setup.start()
    number = CONTEXTS + WAITING + 1
    *others, last = [setup.transfer(600, channel=channel, address=channel << 16) for channel in range(number)]
    holding, waiting = others[:CONTEXTS], others[CONTEXTS:]
    for transfer in holding:
        setup.send(transfer, 0, [0, 1])
    for transfer in waiting:
        setup.send(transfer, 0)
    await setup.rest()
    # There is no place to wait in.
    setup.send(last, 0)
    assert (await setup.answer())[:2] == (NACK, Cell(last.channel, 0, 2, last=True))
    # The newest attempt is answered; a newer transfer has taken the place of the second.
    setup.send(waiting[0], 0, attempt=3)
    setup.send(setup.transfer(600, channel=waiting[1].channel, first=7), 0, [0])
    await setup.rest()
    for place, transfer in enumerate(holding[:3]):
        setup.send(transfer, 0, [2])
        assert (await setup.answer())[0] == ACK
        told = [waiting[0], waiting[2], waiting[3]][place]
        cell = Cell(told.channel, 0, 2, 3 if place == 0 else 0, last=True)
        assert (await setup.answer())[:2] == (NACK, cell)
        await setup.rest()
        # It is kept: others find none.
        setup.send(last, 0, [0, 1])
        await setup.rest()
    for transfer in [waiting[0], waiting[2], waiting[3]]:
        setup.send(transfer, 0, attempt=4)
        assert (await setup.answer())[0] == ACK
    for transfer in holding[3:]:
        setup.send(transfer, 0, [2])
        assert (await setup.answer())[0] == ACK
    # All are free again.
    for transfer in holding:
        setup.send(setup.transfer(600, channel=transfer.channel, first=1), 0, [0])
    await setup.rest()
    setup.send(last, 0)
    await setup.rest()


def of_one_set(setup: Setup, size: int, begin: int = 0) -> list[Transfer]:
    """Transfers of channels of one set: for its ways, and one too many."""
    numbers = range(begin, begin + WAYS + 1)
    return [setup.transfer(size, source=256 * n, channel=7, address=n << 16) for n in numbers]


@cocotb.test()
async def places_that_others_take(dut):
    """Catches a channel that is taken for another of its set, and a place that nobody gets."""
    setup = Setup(dut, 7)
    await setup.start()
    transfers = of_one_set(setup, 600)
    *others, last = transfers
    for transfer in others:
        setup.send(transfer, 0, [0])
    setup.send(last, 0)
    assert (await setup.answer())[0] == NACK
    for transfer in others:
        setup.send(transfer, 0, [1, 2])
        assert (await setup.answer())[0] == ACK
    setup.send(last, 0, attempt=1)
    assert (await setup.answer())[0] == ACK
    for transfer in transfers:
        setup.check_memory(transfer, 0)
    await setup.rest()
    # All but the first, whose place the last has, are remembered.
    setup.changes.clear()
    for transfer in transfers[1:]:
        setup.send(transfer, 0, attempt=1)
        assert (await setup.answer())[0] == ACK
    assert setup.changes == [DUPLICATE] * 3 * WAYS
    setup.send(transfers[0], 0, attempt=1)
    assert (await setup.answer())[0] == ACK
    assert setup.changes[-1] == COMPLETE


@cocotb.test()
async def transfers_that_are_not_whole_keep_their_places(dut):
    """Catches a transfer that is forgotten between its blocks, and one that keeps its place for ever."""
    setup = Setup(dut, 12)
    await setup.start()
    transfers = of_one_set(setup, BLOCK + 300)
    *others, last = transfers
    for transfer in others:
        setup.send(transfer, 0)
        assert (await setup.answer())[0] == ACK
    setup.send(last, 1)
    assert (await setup.answer())[0] == NACK
    for transfer in others:
        setup.send(transfer, 1)
        assert (await setup.answer())[0] == ACK
    await setup.rest()
    told = [transfer.notification(block, block == 1) for block in range(2) for transfer in others]
    assert setup.memory.notifications[3] == told
    # Silent ones make way, once one is refused.
    for transfer in of_one_set(setup, 600, begin=8)[:-1]:
        setup.send(transfer, 0, [0])
    await setup.rest(2 * CONTEXT_TIMEOUT + 2 * CHANNELS)
    *others, last = of_one_set(setup, 600, begin=16)
    setup.send(others[0], 0, [2])
    assert (await setup.answer())[0] == NACK
    await setup.rest(2 * CHANNELS)
    for transfer in others:
        setup.send(transfer, 0, [0, 1])
    setup.send(last, 0)
    assert (await setup.answer())[0] == NACK
    for transfer in others:
        setup.send(transfer, 0, [2])
        assert (await setup.answer())[0] == ACK


@cocotb.test()
async def an_answer_of_memory_a_cycle(dut):
    """Catches an answer of memory that waits for the one before, a change that the next cell overlooks."""
    setup = Setup(dut, 14)
    await setup.start()
    transfer, newer = (setup.transfer(CELL + 1, first=first) for first in range(2))
    setup.send(transfer, 0, [0])
    await setup.rest(100)
    # The last cell has one word: the answers come together.
    setup.memory.answered.clear()
    setup.memory.busy = 1.0
    for _ in range(4):
        setup.send(transfer, 0, [1])
    setup.send(newer, 0, [1])
    await setup.rest()
    setup.memory.busy = 0.0
    kinds = [(await setup.answer())[0] for _ in range(5)]
    assert kinds == [ACK, ACK, ACK, ACK, NACK]
    first = setup.memory.answered[0]
    assert setup.memory.answered[:5] == [first + place for place in range(5)]
    assert setup.changes[1:] == [COMPLETE] + [DUPLICATE] * 3 + [WRITTEN]


@cocotb.test()
async def page_faults(dut):
    """Catches a block that is acknowledged though memory has refused a word of it."""
    setup = Setup(dut, 8)
    await setup.start()
    for number, (address, index) in enumerate([(0x1_0000, 0), (0x2_0100, 1), (0x3_0200, 2), (0x4_0F80, 1)]):
        transfer = setup.transfer(700, first=number, address=address & ~0x300 if number < 3 else address)
        at = 3 << 39 | transfer.address + 256 * index
        setup.memory.unmapped = {at, at + 128 if number == 3 else at}
        setup.send(transfer, 0)
        kind, cell, _ = await setup.answer()
        assert (kind, cell.last) == (FAULTED, True), number
        setup.memory.unmapped = set()
        setup.send(transfer, 0, attempt=1)
        kind, cell, _ = await setup.answer()
        assert (kind, cell.index) == (ACK, index)
        if index < 2:
            # The cells behind it come again.
            assert (await setup.answer())[:2] == (ACK, Cell(5, number, 2, 1, last=True))
        setup.check_memory(transfer, 0)
        await setup.rest()


@cocotb.test()
async def reset_in_the_middle(dut):
    """Catches state that survives a reset: words of a cell, bursts, contexts, answers."""
    setup = Setup(dut, 9)
    for after in [1, 9, 30, 50, 64]:
        await setup.start()
        transfer = setup.transfer(600)
        setup.send(transfer, 0)
        setup.memory.busy = setup.sink.busy = 0.5
        async for _ in setup.bench.cycles(after):
            pass
        setup = Setup(dut, 10)
        await setup.start()
        transfer = setup.transfer(600)
        setup.send(transfer, 0, [0, 1])
        await setup.rest()
        setup.send(transfer, 0, [2])
        assert (await setup.answer())[0] == ACK
        await setup.rest()
        assert setup.memory.notifications[3] == [transfer.notification(0, True)]


@cocotb.test()
async def memory_and_registers_of_others(dut):
    """Catches what our own drivers would not see: memory and registers by cocotbext-axi."""
    setup = Setup(dut, 11)
    await setup.start()
    await setup.rest(4)
    setup.bench.parts.remove(setup.memory)
    ram_word = setup.memory.word
    ram = AxiRamWrite(AxiWriteBus.from_prefix(dut, "m_axi"), dut.clk, dut.reset, size=1 << 16)
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.reset)
    await registers.write_qword(8 << 12, 77)
    await registers.write_qword(8 << 12 | 8, 0x4000)
    assert await registers.read_qword(8 << 12) == 77
    assert await registers.read_qword(8 << 12 | 8) == 0x4000
    assert (await registers.write(8 << 12 | 16, bytes(8))).resp != 0
    assert (await registers.read(8 << 12 | 16, 8)).resp != 0
    transfer = setup.transfer(1000, interface=8, domain=77, address=0xF00 + ram_word)
    setup.send(transfer, 0)
    assert (await setup.answer())[0] == ACK
    async for _ in setup.bench.cycles(40):
        pass
    assert ram.read(0xF00 + ram_word, 1000) == transfer.payload
    assert int.from_bytes(ram.read(0x4000, 16), "little") == transfer.notification(0, True)


@cocotb.test()
async def random_cells_under_back_pressure(dut):
    """Catches what nobody thought of: cells lost, repeated, damaged, of many channels, with busy ports."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random, memory = setup.bench.random, setup.memory
    coverage = Coverage(
        change=list(range(8)),
        answer=exanet.BLOCK_ANSWERS,
        size=SIZES,
        interface=["first", "last", "other"],
        crossing=[True, False],
        waits=["network in", "network out", "address", "word", "answer"],
    )
    await setup.start()
    places = [(random.randrange(1 << 22), random.randrange(1 << 16)) for _ in range(6)]
    # One more of a set than it has ways.
    places += [((1 << 22) - 1, (1 << 16) - 1), *((256 * number, 0) for number in range(WAYS + 1))]
    firsts = dict.fromkeys(places, 0)
    busy: dict[tuple[int, int], Transfer] = {}
    # Blocks that are to be sent, again or for the first time: their source's part.
    todo: dict[tuple[int, int], deque[tuple[int, int]]] = {}
    last_told: dict[tuple[int, int], int] = {}
    address, told, whole = 0x1000, 0, 0
    sizes: list[int] = []
    async for cycle in setup.bench.cycles(CYCLES):
        if cycle % 1024 == 0:
            setup.source.idle, setup.sink.busy, memory.busy = (
                random.choice([0, 0, 0.3, 0.6]) for _ in range(3)
            )
            memory.latency = random.choice([1, 10, 30])
        for name, valid, ready in [
            ("network in", dut.s_axis_net_tvalid, dut.s_axis_net_tready),
            ("network out", dut.m_axis_net_tvalid, dut.m_axis_net_tready),
            ("address", dut.m_axi_awvalid, dut.m_axi_awready),
            ("word", dut.m_axi_wvalid, dut.m_axi_wready),
            ("answer", dut.m_axi_bvalid, dut.m_axi_bready),
        ]:
            if valid.value and not ready.value:
                coverage.hit("waits", name)
        while setup.changes:
            coverage.hit("change", setup.changes.pop(0))
        while setup.sink.packets:
            _, words = setup.sink.packets.popleft()
            kind, source = words[0] >> 40 & 0xFF, words[0] >> 90 & (1 << 22) - 1
            cell = Cell.of(words[1] >> 32 & (1 << 64) - 1)
            assert words == cell.answer(kind, NODE, source).words()
            coverage.hit("answer", kind)
            place = source, cell.channel
            transfer = busy.get(place)
            block = cell.transaction - (transfer.first if transfer else 0)
            if transfer is None or not 0 <= block < transfer.blocks:
                continue
            if kind == ACK:
                if block not in transfer.acknowledged:
                    setup.check_memory(transfer, block)
                    transfer.acknowledged.add(block)
                if len(transfer.acknowledged) == transfer.blocks and not todo[place]:
                    whole += 1
                    del busy[place]
            elif kind != DOMAIN:
                todo[place].append((block, cell.attempt + 1))
        if len(busy) < random.choice([2, 4, 8]):
            place = random.choice(places)
            if place not in busy:
                sizes = sizes or random.sample(SIZES + 4 * SIZES[:9], len(SIZES) + 36)
                interface = random.choice([0, INTERFACES - 1, random.randrange(INTERFACES)])
                size = sizes.pop()
                transfer = setup.transfer(
                    size,
                    source=place[0],
                    channel=place[1],
                    first=firsts[place],
                    interface=interface,
                    address=address,
                )
                firsts[place] += transfer.blocks
                busy[place] = transfer
                todo[place] = deque((block, 0) for block in range(transfer.blocks))
                coverage.hit("size", size)
                coverage.hit("crossing", address % 256 != 0 and size > 4096)
                named = {0: "first", INTERFACES - 1: "last"}.get(interface, "other")
                coverage.hit("interface", named)
                word = memory.word
                address = address + size + random.choice([word, 0x100, 0x1000]) + word - 1 & -word
                last_told[place] = cycle
        if len(setup.source.queue) < 40 and busy:
            # As many channels send in turn as there are.
            place = random.choice(list(busy))
            transfer = busy[place]
            if not todo[place]:
                # Nobody has answered: what is missing is sent again.
                if cycle - last_told[place] > 3000:
                    missing = set(range(transfer.blocks)) - transfer.acknowledged
                    todo[place].extend((block, 7) for block in sorted(missing)[:2])
                    if not missing:
                        del busy[place]
                continue
            block, attempt = todo[place].popleft()
            last_told[place] = cycle
            for index in range(transfer.cells(block)):
                packet = transfer.cell(block, index, attempt)
                what = random.random()
                if what < 0.01:
                    continue
                words = packet.words()
                offset = block * BLOCK + index * CELL
                sent = range(offset, offset + packet.size)
                transfer.damaged.difference_update(sent)
                if what < 0.02:
                    transfer.damaged.update(sent)
                    flip = random.randrange(128 * (len(words) - 1))
                    # A damaged header may look like another's: not so a damaged payload or footer.
                    words[1 + flip // 128] ^= 1 << flip % 128
                elif what < 0.03 or (index + 1 == transfer.cells(block) and what < 0.12):
                    setup.source.send(Packet(**{**packet.__dict__, "domain": 999}).words())
                elif what < 0.04:
                    memory.unmapped.add((transfer.interface & 7) << 39 | packet.address)
                elif what < 0.05:
                    setup.source.send(words)
                setup.source.send(words)
        told = sum(len(queue) for queue in memory.notifications.values())
    dut._log.info("%d transfers, %d notifications", whole, told)
    coverage.close(dut._log)
