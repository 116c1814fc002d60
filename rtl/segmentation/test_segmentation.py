"""The send unit of the RDMA engine against a model of its own: reads, cells, cycles, answers, repetitions."""

import os
from collections import deque
from dataclasses import dataclass, field, replace

import cocotb
import exanet
from cocotbext.axi import AxiBus, AxiMaster, AxiRamRead, AxiReadBus
from exanet import Cell, Packet

from bench import Bench, Coverage, Sink, Source

CHANNELS, BLOCK, CELL, BUFFERS, OVERHEAD = 1024, 16384, 256, 8, 5
# As rtl/run.py builds it for the tests.
TIMEOUT, LONGEST, REPETITIONS = 5000, 15_000, 3
NODE = 5
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
# Whether read channels are given to requests.
PAGES = 16
# From the cycle behind a request's footer: its answer, and the read of its first cell.
ANSWERED, READ = 4, 11
SYSTEM = 1 << 16
STARTED, LAST_CELL, ACKNOWLEDGED, FINISHED, AGAIN, FAULT_MET, GIVEN_UP = range(7)
CHANGES = [STARTED, LAST_CELL, ACKNOWLEDGED, FINISHED, AGAIN, FAULT_MET, GIVEN_UP]
# How the last transfer of a channel has ended, as its process loads it.
DONE, TIMED_OUT, PROTECTION, ADDRESS = 1, 2, 3, 4
# At the limits of words, cells and blocks.
SIZES = [0, 1, 15, 16, 17, 255, 256, 257, 4095, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 256]


def word_at(address: int) -> int:
    """The word of memory at an address."""
    return (address // 16 * 0x9E3779B97F4A7C15F39CC0605CEDC835 + 1) & (1 << 128) - 1


def bytes_at(address: int, size: int) -> bytes:
    """The bytes of memory from an address on."""
    words = [word_at(address + offset).to_bytes(16, "little") for offset in range(0, size, 16)]
    return b"".join(words)[:size]


@dataclass
class Transfer:
    """A transfer, as its process describes it."""

    channel: int
    source: int
    size: int
    node: int = 77
    interface: int = 11
    address: int = 0x20_0000
    # The first transaction, once it is known.
    first: int = 0
    # Of each block and attempt the next cell that may come, and how many have.
    next_cell: dict[tuple[int, int], int] = field(default_factory=dict)
    came: dict[tuple[int, int], int] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    # Whether a block has been answered with a NACK of its domain.
    refused: bool = False

    @property
    def blocks(self) -> int:
        """The blocks of the transfer."""
        return max(1, -(-self.size // BLOCK))

    def words(self) -> list[int]:
        """The words of the descriptor."""
        destination = Packet(
            0, self.node, 0, 0, domain=0, interface=self.interface, address=self.address, size=0
        )
        return [self.size << 64 | self.source, destination.words()[0], 0, 0]

    def request(self, number: int, **other) -> Packet:
        """The request of this transfer by the node that it goes to; its page gives it a channel."""
        page = self.channel >> 6
        payload = b"".join(word.to_bytes(16, "little") for word in self.words()[:2])
        fields = {"domain": page + 1, "interface": page, "size": 32, "payload": payload}
        fields |= {"kind": exanet.READ_REQUEST, "identity": exanet.identity(11, 2)} | other
        return Packet(node=NODE, source=self.node, number=number, **fields)

    def cells(self, block: int) -> int:
        """The cells of a block."""
        return max(1, -(-min(BLOCK, self.size - block * BLOCK) // CELL))

    def cell(self, block: int, index: int, attempt: int = 0) -> list[int]:
        """The words of a cell."""
        offset = block * BLOCK + index * CELL
        size = min(CELL, self.size - offset)
        last = index + 1 == self.cells(block)
        transaction = (self.first + block) % (1 << 32)
        cell = Cell(self.channel, transaction, index, attempt, last, block + 1 == self.blocks)
        rank = self.channel >> 6 & 7
        return Packet(
            exanet.CELL,
            self.node,
            NODE,
            self.first,
            cell.identity(),
            (self.channel >> 6) + 1,
            self.interface,
            self.address + offset,
            size,
            bytes_at(rank << 39 | self.source + offset, size),
        ).words()


class Stores:
    """Stores words into pages, one in each cycle, with gaps of chance `idle`."""

    def __init__(self, bench: Bench):
        self.dut, self.random, self.idle = bench.dut, bench.random, 0.0
        self.reset()

    def reset(self):
        """Drops what has not been stored."""
        self.queue: deque[tuple] = deque()
        self.current: tuple | None = None
        self.last_taken = -1
        self.answers: list[int] = []
        for signal in ["awvalid", "wvalid", "arvalid", "awid", "awlen", "arid", "arlen"]:
            getattr(self.dut, f"s_axi_{signal}").value = 0
        for signal in ["wlast", "bready", "rready", "awburst", "arburst"]:
            getattr(self.dut, f"s_axi_{signal}").value = 1
        self.dut.s_axi_awsize.value = self.dut.s_axi_arsize.value = 4
        self.dut.s_axi_wstrb.value = 0xFFFF

    def store(self, address: int, data: int):
        """Stores a word."""
        self.queue.append((address, data))

    def is_idle(self) -> bool:
        """Whether all is stored."""
        return not self.queue and self.current is None

    def step(self, cycle: int):
        """One cycle."""
        dut = self.dut
        if dut.s_axi_bvalid.value:
            self.answers.append(int(dut.s_axi_bresp.value))
        if self.current is not None:
            if not dut.s_axi_awready.value:
                return
            self.last_taken = cycle
            self.current = None
        if self.queue and not (self.idle and self.random.random() < self.idle):
            self.current = self.queue.popleft()
            dut.s_axi_awaddr.value, dut.s_axi_wdata.value = self.current
        dut.s_axi_awvalid.value = dut.s_axi_wvalid.value = int(self.current is not None)


class Memory:
    """Memory behind the AXI4 port: answers bursts in their order, each `latency` cycles after its request."""

    def __init__(self, bench: Bench):
        self.dut, self.random = bench.dut, bench.random
        self.busy, self.latency, self.most = 0.0, 19, 99
        # Addresses of words that are refused.
        self.unmapped: set[int] = set()
        self.requests: list[tuple[int, int, int]] = []
        # The cycle in which the last word of each burst was on the bus.
        self.answered: list[int] = []
        self.most_outstanding = 0
        self.reset()

    def reset(self):
        """Forgets what has begun."""
        self.bursts: deque[list[int]] = deque()
        self.ready = False
        self.held = False
        for signal in ["arready", "rvalid", "rid", "rresp", "rlast"]:
            getattr(self.dut, f"m_axi_{signal}").value = 0

    def step(self, cycle: int):
        """One cycle."""
        dut = self.dut
        if self.held:
            _, _, left = self.bursts[0]
            if left == 1:
                self.answered.append(cycle)
                self.bursts.popleft()
            else:
                self.bursts[0][1:] = self.bursts[0][1] + 16, left - 1
        if self.ready and dut.m_axi_arvalid.value:
            address, words = int(dut.m_axi_araddr.value), int(dut.m_axi_arlen.value) + 1
            assert address % 16 == 0 and words <= 16, f"{address:#x}, {words} words"
            assert address // 4096 == (address + 16 * words - 1) // 4096, f"{address:#x} crosses 4 KB"
            self.requests.append((cycle, address, words))
            self.bursts.append([cycle + self.latency, address, words])
            self.most_outstanding = max(self.most_outstanding, len(self.bursts))
        is_busy = self.busy and self.random.random() < self.busy
        self.held = bool(self.bursts) and self.bursts[0][0] <= cycle and not is_busy
        dut.m_axi_rvalid.value = int(self.held)
        if self.held:
            _, address, left = self.bursts[0]
            dut.m_axi_rdata.value, dut.m_axi_rlast.value = word_at(address), int(left == 1)
            dut.m_axi_rresp.value = 2 if address in self.unmapped else 0
        self.ready = len(self.bursts) < self.most and not (self.busy and self.random.random() < self.busy)
        dut.m_axi_arready.value = int(self.ready)


@dataclass
class Request:
    """A request: its words as they are sent, whether they are sound, and its transfer."""

    words: list[int]
    is_sound: bool
    transfer: Transfer
    # The cycle of its footer.
    came: int = -1

    @property
    def source(self) -> int:
        """The node that sends it."""
        return self.words[0] & (1 << 22) - 1

    @property
    def number(self) -> int:
        """The number that its source has given it."""
        return self.words[-1] >> 96

    @property
    def page(self) -> int:
        """The interface that it names."""
        return (self.words[0] >> 32 & 0xFF) << 3 | self.words[0] >> 87 & 7

    @property
    def place(self) -> int:
        """The place in the table of requests that were accepted."""
        return (self.number ^ (self.source << 5 | self.source >> 5 & 31)) & CHANNELS - 1

    def answer(self, kind: int) -> list[int]:
        """The words of an answer."""
        identity = self.words[-1] >> 32 & 0xFFFFFFFF
        return Packet(kind, self.source, NODE, self.number, identity).words()


class Requests:
    """The mailbox for requests, and the verdict that it has to give on each: its cycle, and the channel."""

    def __init__(self, bench: Bench, transactions: list[int]):
        self.source = bench.add(Source(bench, "s_axis_request"))
        self.sink = bench.add(Sink(bench, "m_axis_answer"))
        self.source.taken = self.take
        self.transactions = transactions
        self.number = 0
        # Whether each answer is taken as it is there.
        self.is_exact = True
        # Called with a request and the verdict on it, in the cycle behind its footer.
        self.judged = lambda request, kind, again: None
        self.reset()
        bench.add(self)

    def reset(self):
        """All channels are free, and no request was accepted."""
        self.free = [deque(range(32)) for _ in range(PAGES)]
        self.accepted: dict[int, tuple[int, int]] = {}
        self.came: deque[Request] = deque()
        self.expected: deque[tuple[int, list[int]]] = deque()
        # Answers that came as expected: cycle and kind.
        self.answered: deque[tuple[int, int]] = deque()
        self.sink.packets.clear()

    def send(self, transfer: Transfer, flip: int | None = None, **other) -> Request:
        """Sends a request; with a bit that is wrong, if one is given."""
        self.number = other.pop("number", self.number + 1)
        packet = transfer.request(self.number, **other)
        words = packet.words()
        is_sound = packet.size == 32 and len(packet.payload) == 32 and packet.kind == exanet.READ_REQUEST
        if flip is not None:
            words[flip // 128] ^= 1 << flip % 128
        request = Request(words, is_sound and flip is None, transfer)
        self.source.send(words, request)
        return request

    def send_again(self, request: Request) -> Request:
        """Sends the words of a request once more."""
        clean = {"next_cell": {}, "came": {}, "acknowledged": set(), "refused": False}
        again = Request(request.words, request.is_sound, replace(request.transfer, **clean))
        self.source.send(again.words, again)
        return again

    def send_any(self, transfer: Transfer, before: list[Request]):
        """Sends a request, or one that has come before, or one that is wrong."""
        random = self.source.random
        what = random.random()
        if what < 0.25 and before:
            self.send_again(random.choice(before[-4:]))
            return
        wrong = {}
        if what < 0.35:
            wrong = {"flip": random.randrange(512)}
        elif what < 0.45:
            wrong = {"domain": random.choice([0, 0xFFFF, (transfer.channel >> 6) + 2])}
        elif what < 0.5:
            wrong = {"interface": random.choice([PAGES, 2047, random.randrange(PAGES, 2048)])}
        elif what < 0.55:
            size = random.choice([0, 16, 31, 33, 48, 64])
            wrong = {"size": size, "payload": bytes(size)}
        before.append(self.send(transfer, **wrong))

    def take(self, cycle: int, request: Request | None):
        """The footer of a request is taken."""
        if request is not None:
            request.came = cycle
            self.came.append(request)

    def freed(self, channel: int):
        """A channel is free again."""
        if channel & 32:
            self.free[channel >> 6].append(channel & 31)

    def verdict(self, request: Request) -> tuple[int, bool]:
        """The kind of the answer, and whether it is an acknowledgement of what was accepted before."""
        if not request.is_sound:
            return exanet.REFUSED_DAMAGED, False
        if self.accepted.get(request.place) == (request.source, request.number):
            return exanet.ACKNOWLEDGEMENT, True
        if request.page >= PAGES:
            return exanet.REFUSED_INTERFACE, False
        if request.words[0] >> 112 != request.page + 1:
            return exanet.REFUSED_DOMAIN, False
        return (exanet.ACKNOWLEDGEMENT if self.free[request.page] else exanet.REFUSED_FULL), False

    def step(self, cycle: int):
        """Judges a request in the cycle behind its footer, and compares answers."""
        if self.came and self.came[0].came < cycle:
            request = self.came.popleft()
            kind, again = self.verdict(request)
            if kind == exanet.ACKNOWLEDGEMENT and not again:
                self.accepted[request.place] = request.source, request.number
                channel = self.free[request.page].popleft()
                transfer = request.transfer
                transfer.channel = request.page << 6 | 32 | channel
                transfer.first = self.transactions[transfer.channel]
                self.transactions[transfer.channel] += transfer.blocks
            self.expected.append((request.came + 1 + ANSWERED, request.answer(kind)))
            self.judged(request, kind, again)
        while self.sink.packets:
            begun, words = self.sink.packets.popleft()
            assert self.expected, f"cycle {begun}: an answer to nobody, {[f'{w:032x}' for w in words]}"
            due, right = self.expected.popleft()
            assert words == right, f"{[f'{w:032x}' for w in words]}, not {[f'{w:032x}' for w in right]}"
            assert begun == due or (begun > due and not self.is_exact), f"an answer in {begun}, not {due}"
            self.answered.append((begun, words[0] >> 40 & 0xFF))


class Setup:
    """The send unit in its surroundings, reset; page i is of domain i + 1."""

    def __init__(self, dut, seed: int):
        self.dut, self.bench = dut, Bench(dut, seed)
        dut.node.value = NODE
        self.memory = self.bench.add(Memory(self.bench))
        self.stores = self.bench.add(Stores(self.bench))
        self.sink = self.bench.add(Sink(self.bench, "m_axis_net"))
        self.answers = self.bench.add(Source(self.bench, "s_axis_net"))
        # Transactions of each channel so far.
        self.transactions = [0] * CHANNELS
        self.requests = Requests(self.bench, self.transactions)
        self.changes: list[tuple[int, int, int, int]] = []
        self.bench.add(self)

    def reset(self):
        """Forgets what has happened: transactions begin anew."""
        self.transactions[:] = [0] * CHANNELS
        self.changes.clear()

    def step(self, cycle: int):
        """Keeps what happens to blocks and channels."""
        dut = self.dut
        if dut.change_valid.value:
            what = (dut.change_channel, dut.change_transaction, dut.change_what)
            self.changes.append((cycle, *(int(signal.value) for signal in what)))
            if self.changes[-1][3] in (FINISHED, GIVEN_UP):
                self.requests.freed(self.changes[-1][1])

    async def start(self):
        """Resets, and gives pages to domains."""
        await self.bench.reset(CHANNELS)
        for page in range(PAGES):
            self.stores.store(SYSTEM | page << 12, page + 1)
        await self.bench.until(self.stores.is_idle, 40, "opening")

    def post(self, transfer: Transfer) -> Transfer:
        """Stores a descriptor; or asks for a read channel of its page."""
        if transfer.channel & 32:
            return self.requests.send(transfer).transfer
        transfer.first = self.transactions[transfer.channel]
        self.transactions[transfer.channel] += transfer.blocks
        for place, word in enumerate(transfer.words()):
            self.stores.store(transfer.channel << 6 | place << 4, word)
        return transfer

    def answer(self, transfer: Transfer, block: int, kind: int = exanet.BLOCK_ACKNOWLEDGEMENT, **other):
        """Answers a block; with a bit that is wrong, if one is given."""
        flip = other.pop("flip", None)
        cell = Cell(transfer.channel, transfer.first + block, transfer.cells(block) - 1, last=True)
        words = Cell(**{**cell.__dict__, **other}).answer(kind, transfer.node, NODE).words()
        if flip is not None:
            words[flip // 128 % 2] ^= 1 << flip % 128
        self.answers.send(words)

    async def expect(self, transfer: Transfer, block: int, attempt: int = 0):
        """All cells of a block, and nothing else."""
        for index in range(transfer.cells(block)):
            await self.bench.until(lambda: self.sink.packets, 300, f"cell {index}")
            _, words = self.sink.packets.popleft()
            right = transfer.cell(block, index, attempt)
            assert words == right, f"{[f'{w:032x}' for w in words]}, not {[f'{w:032x}' for w in right]}"

    async def verdict(self, most: int = 60) -> int:
        """The next answer to a request."""
        await self.bench.until(lambda: self.requests.answered, most, "an answer to a request")
        return self.requests.answered.popleft()[1]

    async def finish(self, transfer: Transfer):
        """All of a transfer of one block, up to its acknowledgement."""
        await self.expect(transfer, 0)
        self.answer(transfer, 0)
        assert (await self.change(FINISHED))[1:] == (transfer.channel, transfer.first)

    async def change(self, what: int, most: int = 200) -> tuple[int, int, int]:
        """The next change of a kind: its cycle, channel and transaction."""
        await self.bench.until(
            lambda: any(change[3] == what for change in self.changes), most, f"change {what}"
        )
        place = next(place for place, change in enumerate(self.changes) if change[3] == what)
        return self.changes.pop(place)[:3]

    async def rest(self, cycles: int):
        """Nothing comes for so long."""
        async for _ in self.bench.cycles(cycles):
            assert not self.sink.packets and not self.dut.m_axis_net_tvalid.value

    async def state(self, channel: int) -> tuple[bool, int]:
        """Whether a transfer is under way, and how the last one ended."""
        dut = self.dut
        dut.s_axi_araddr.value, dut.s_axi_arvalid.value = channel << 6, 1
        await self.bench.until(lambda: dut.s_axi_arready.value and dut.s_axi_arvalid.value, 10, "a load")
        dut.s_axi_arvalid.value = 0
        await self.bench.until(lambda: dut.s_axi_rvalid.value, 60, "a load")
        word = int(dut.s_axi_rdata.value)
        return bool(word & 2), word >> 2


@cocotb.test()
async def reads_and_headers_at_their_edges(dut):
    """Catches reads and cells that come in another cycle than the head of segmentation.sv says."""
    setup = Setup(dut, 1)
    await setup.start()
    for size in [0, 16, 256, 2048, 4000]:
        setup.memory.requests.clear()
        setup.memory.answered.clear()
        transfer = setup.post(Transfer(3, 0x1000, size))
        await setup.bench.until(setup.stores.is_idle, 20, "storing")
        n = setup.stores.last_taken + 1
        headers = []
        for index in range(transfer.cells(0)):
            await setup.bench.until(lambda: setup.sink.packets, 200, "a cell")
            begun, words = setup.sink.packets.popleft()
            assert words == transfer.cell(0, index)
            headers.append((begun, len(words)))
        asked = [cycle for cycle, _, _ in setup.memory.requests]
        assert asked[:8] == [n + 7 + place for place in range(len(asked[:8]))], (n, asked)
        free = 0
        for (begun, words), answered in zip(headers, setup.memory.answered, strict=True):
            assert begun == max(free, answered + 1), (begun, free, answered)
            free = begun + words + OVERHEAD
        setup.answer(transfer, 0)
        await setup.change(FINISHED)
        assert await setup.state(3) == (False, DONE)


@cocotb.test()
async def packets_of_the_vectors(dut):
    """Catches cells and answers of the tests that are not where wire.rs has them, and answers to nobody."""
    setup = Setup(dut, 2)
    await setup.start()
    found = exanet.vectors([exanet.CELL, *exanet.BLOCK_ANSWERS])
    assert len(found) >= 7
    for packet, words in found:
        assert packet.words() == words
        assert Cell.of(packet.identity).identity() == packet.identity
        setup.answers.send(words)
    transfer = setup.post(Transfer(0x41, 0, 256))
    await setup.expect(transfer, 0)
    await setup.rest(100)
    assert [change[3] for change in setup.changes] == [STARTED, LAST_CELL]


@cocotb.test()
async def outstanding_bursts_saturate_the_path(dut):
    """Catches bursts that wait for each other: the rate by bursts under way and round trip (§4.2)."""
    setup = Setup(dut, 3)
    await setup.start()
    engine = CELL // 16 + 2 + OVERHEAD
    for nanoseconds in [100, 150, 225, 600]:
        latency = -(-nanoseconds * 150 // 1000)
        rates = []
        for most in [1, 2, 3, 4, 6, 8]:
            setup.memory.latency, setup.memory.most = latency, most
            setup.memory.most_outstanding = 0
            transfer = setup.post(Transfer(0, 0, BLOCK))
            begun = []
            for index in range(transfer.cells(0)):
                await setup.bench.until(lambda: setup.sink.packets, 300, "a cell")
                cycle, words = setup.sink.packets.popleft()
                assert words == transfer.cell(0, index)
                begun.append(cycle)
            setup.answer(transfer, 0)
            await setup.change(FINISHED)
            assert setup.memory.most_outstanding == min(most, 8)
            # From a request to the next that takes its place: a round trip and the words of a burst.
            period = max(engine, (latency + 17) / most)
            pace = (begun[-1] - begun[16]) / 47
            what = f"{nanoseconds} ns, {most} bursts: {pace} cycles a cell, not {period}"
            assert abs(pace - period) < 1, what
            rates.append(f"{most}: {CELL * 8 * 0.15 / pace:.2f} Gb/s")
        dut._log.info("round trip of %d ns, bursts outstanding %s", nanoseconds, ", ".join(rates))


@cocotb.test()
async def two_blocks_are_outstanding(dut):
    """Catches a third block that does not wait, one that is lost, and answers in any order."""
    setup = Setup(dut, 4)
    await setup.start()
    transfer = setup.post(Transfer(40, 0x10_0000, 5 * BLOCK + 1))
    await setup.expect(transfer, 0)
    await setup.expect(transfer, 1)
    await setup.rest(100)
    for answered, next_block in [(1, 2), (2, 3), (0, 4), (4, 5)]:
        setup.answer(transfer, answered)
        await setup.expect(transfer, next_block)
        await setup.rest(60)
    assert await setup.state(transfer.channel) == (True, 0)
    setup.answer(transfer, 3)
    setup.answer(transfer, 3)
    await setup.rest(30)
    setup.answer(transfer, 5)
    assert (await setup.change(FINISHED))[1:] == (transfer.channel, transfer.first + 5)
    assert await setup.state(transfer.channel) == (False, DONE)


@cocotb.test()
async def nacks_send_a_block_again(dut):
    """Catches a NACK that is not heeded, or is though it is damaged or of another attempt, block, channel."""
    setup = Setup(dut, 5)
    await setup.start()
    transfer = setup.post(Transfer(7, 0x8000, 3 * CELL))
    await setup.expect(transfer, 0)
    for attempt in range(3):
        kind = [exanet.BLOCK_WITHOUT_CONTEXT, exanet.BLOCK_FAULTED][attempt % 2]
        setup.answer(transfer, 0, kind, attempt=attempt + 1)
        setup.answer(transfer, 0, kind, attempt=attempt, transaction=transfer.first + 1)
        setup.answer(transfer, 0, kind, attempt=attempt, channel=8)
        for flip in [0, 45, 130, 200, 170]:
            setup.answer(transfer, 0, kind, attempt=attempt, flip=flip)
        await setup.rest(60)
        setup.answer(transfer, 0, kind, attempt=attempt)
        await setup.expect(transfer, 0, attempt + 1)
    # A small message's answer is no block's; nor are words too many or too few.
    words = Cell(7, transfer.first, 2, 3, last=True).answer(exanet.BLOCK_ACKNOWLEDGEMENT, 77, NODE).words()
    setup.answers.send(Packet(exanet.ACKNOWLEDGEMENT, NODE, 77, 0, identity=7).words())
    setup.answers.send([words[0], words[0], words[1]])
    setup.answers.send(words[:1])
    await setup.rest(60)
    setup.answer(transfer, 0, exanet.BLOCK_OF_DOMAIN, attempt=3)
    await setup.change(GIVEN_UP)
    assert await setup.state(7) == (False, PROTECTION)
    # The channel serves another transfer, whose transactions follow.
    transfer = setup.post(Transfer(7, 0x8000, CELL))
    await setup.expect(transfer, 0)
    setup.answer(transfer, 0)
    await setup.change(FINISHED)


@cocotb.test()
async def time_outs_to_the_cycle(dut):
    """Catches timers that fire in another cycle, do not double, or go on for ever."""
    setup = Setup(dut, 6)
    await setup.start()
    transfer = setup.post(Transfer(1023, 0, BLOCK + CELL))
    await setup.expect(transfer, 0)
    await setup.expect(transfer, 1)
    setup.answer(transfer, 0)
    await setup.change(ACKNOWLEDGED)
    # That of the first block.
    await setup.change(LAST_CELL)
    wait, attempt = TIMEOUT, 0
    while attempt < REPETITIONS:
        gone, _, _ = await setup.change(LAST_CELL)
        again, channel, transaction = await setup.change(AGAIN, 2 * LONGEST)
        assert (channel, transaction) == (transfer.channel, transfer.first + 1)
        assert abs(again - gone - wait) <= 8, f"{again - gone} cycles, not {wait}"
        attempt, wait = attempt + 1, min(2 * wait, LONGEST)
        await setup.expect(transfer, 1, attempt)
    gone, _, _ = await setup.change(LAST_CELL)
    given_up, _, _ = await setup.change(GIVEN_UP, 2 * LONGEST)
    assert abs(given_up - gone - LONGEST) <= 8
    assert await setup.state(transfer.channel) == (False, TIMED_OUT)
    # An answer that comes after all means nothing.
    setup.answer(transfer, 1, attempt=attempt)
    await setup.rest(60)


@cocotb.test()
async def page_faults_wait_for_the_page(dut):
    """Catches a cell that leaves though memory has refused a word, and a block that is not sent again."""
    setup = Setup(dut, 7)
    await setup.start()
    for refused, channel in [(0x2000, 64), (0x2100, 64), (0x22F0, 64), (0x2100, 96)]:
        setup.memory.unmapped = {refused}
        transfer = setup.post(Transfer(channel, 0x2000, 3 * CELL))
        setup.memory.unmapped = {1 << 39 | refused}
        await setup.change(FAULT_MET)
        async for _ in setup.bench.cycles(120):
            pass
        for _, words in setup.sink.packets:
            index = Cell.of(words[-1] >> 32 & (1 << 64) - 1).index
            assert index != (refused - 0x2000) // CELL and words == transfer.cell(0, index)
        setup.sink.packets.clear()
        setup.memory.unmapped = set()
        setup.stores.store(SYSTEM | 1 << 12 | 16, channel & 63)
        await setup.change(AGAIN)
        await setup.expect(transfer, 0, 1)
        setup.answer(transfer, 0)
        await setup.change(FINISHED)


@cocotb.test()
async def descriptors_that_are_wrong(dut):
    """Catches a channel that is overwritten while it is busy, and odd addresses that are taken."""
    setup = Setup(dut, 8)
    await setup.start()
    await setup.rest(4)
    setup.stores.answers.clear()
    transfer = setup.post(Transfer(9, 0x3000, CELL))
    for place in range(4):
        setup.stores.store(9 << 6 | place << 4, 0)
    await setup.expect(transfer, 0)
    assert setup.stores.answers == [0] * 4 + [2] * 4
    setup.answer(transfer, 0)
    await setup.change(FINISHED)
    for transfer in [Transfer(9, 0x3001, CELL), Transfer(9, 0x3000, CELL, address=8)]:
        setup.post(transfer)
        await setup.change(GIVEN_UP)
        setup.transactions[9] -= 1
        assert await setup.state(9) == (False, ADDRESS)
    setup.stores.answers.clear()
    # There are no such registers.
    for address in [SYSTEM | 32, SYSTEM | 1 << 12 | 0xFF0]:
        setup.stores.store(address, 1)
    await setup.bench.until(lambda: len(setup.stores.answers) == 2, 20, "answers")
    assert setup.stores.answers == [2, 2]
    transfer = setup.post(Transfer(9, 0x3000, 0))
    await setup.expect(transfer, 0)


@cocotb.test()
async def cells_across_pages_of_memory(dut):
    """Catches a burst that crosses 4 KB, and words of its two parts that come in another order."""
    setup = Setup(dut, 9)
    await setup.start()
    for source in [0xF10, 0xFF0, 0x1F80, 0x7F_FFFF_E010]:
        transfer = setup.post(Transfer(700, source, 3 * CELL + 17))
        await setup.expect(transfer, 0)
        setup.answer(transfer, 0)
        await setup.change(FINISHED)


@cocotb.test()
async def channels_take_turns(dut):
    """Catches a channel that waits while another sends cell after cell."""
    setup = Setup(dut, 10)
    await setup.start()
    transfers = [setup.post(Transfer(channel, channel << 16, BLOCK)) for channel in [5, 70, 1000]]
    sent: list[int] = []

    def are_sent() -> bool:
        while setup.sink.packets:
            _, words = setup.sink.packets.popleft()
            cell = Cell.of(words[-1] >> 32 & (1 << 64) - 1)
            transfer = next(transfer for transfer in transfers if transfer.channel == cell.channel)
            assert words == transfer.cell(0, cell.index)
            sent.append(cell.channel)
        return len(sent) == 192

    await setup.bench.until(are_sent, 192 * 24, "sending")
    # The first cells of the first channel are read before the others are there.
    for place in range(30, 150):
        assert len(set(sent[place : place + 3])) == 3, sent


@cocotb.test()
async def reset_in_the_middle(dut):
    """Catches state that survives a reset: words of a cell, reads that are asked for, blocks, turns."""
    setup = Setup(dut, 11)
    for after in [6, 20, 50, 61, 90]:
        await setup.start()
        for channel in [2, 3, 999]:
            setup.post(Transfer(channel, 0x4000, 3 * BLOCK))
        setup.sink.busy = 0.3
        async for _ in setup.bench.cycles(after):
            pass
        setup = Setup(dut, 12)
        await setup.start()
        transfer = setup.post(Transfer(2, 0x5000, 700))
        await setup.expect(transfer, 0)
        setup.answer(transfer, 0)
        await setup.change(FINISHED)


@cocotb.test()
async def pages_and_memory_of_others(dut):
    """Catches what our own drivers would not see: bursts of stores, loads and reads by cocotbext-axi."""
    setup = Setup(dut, 13)
    await setup.start()
    await setup.rest(4)
    setup.bench.parts.remove(setup.stores)
    setup.bench.parts.remove(setup.memory)
    pages = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.reset)
    ram = AxiRamRead(AxiReadBus.from_prefix(dut, "m_axi"), dut.clk, dut.reset, size=1 << 16)
    transfer = Transfer(31, 0xF00, 1000)
    ram.write(0xF00, bytes_at(0xF00, 1008))
    descriptor = b"".join(word.to_bytes(16, "little") for word in transfer.words())
    await pages.write(31 << 6, descriptor)
    await setup.expect(transfer, 0)
    # A burst into a channel that is busy, and a load of two words.
    assert (await pages.write(31 << 6, descriptor)).resp != 0
    assert (await pages.read(31 << 6, 16)).data[0] == 2
    assert (await pages.read(31 << 6, 32)).resp != 0
    # Read channels are the unit's own.
    assert (await pages.write(32 << 6, descriptor)).resp != 0
    setup.answer(transfer, 0)
    await setup.change(FINISHED)
    assert (await pages.read(31 << 6, 16)).data[0] == DONE << 2


@cocotb.test()
async def requests_at_their_edges(dut):
    """Catches answers and reads in other cycles than segmentation_requests.sv says, and taken channels."""
    setup = Setup(dut, 15)
    await setup.start()
    for size in [0, 16, 256, 2048, 4000]:
        setup.memory.requests.clear()
        request = setup.requests.send(Transfer(5 << 6 | 32, 0x1000, size))
        # Requests compares the cycle of the answer.
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        transfer = request.transfer
        assert transfer.channel == 5 << 6 | 32
        await setup.change(STARTED)
        assert (await setup.state(transfer.channel))[0]
        await setup.finish(transfer)
        asked = [cycle for cycle, _, _ in setup.memory.requests]
        n = request.came + 1
        assert asked[:8] == [n + READ + place for place in range(len(asked[:8]))], (n, asked)
        assert await setup.state(transfer.channel) == (False, DONE)
    # A header is taken six cycles behind the footer before it.
    requests = [setup.requests.send(Transfer(page << 6 | 32, 0x2000, CELL)) for page in range(4)]
    for _ in requests:
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    assert [request.came - requests[0].came for request in requests] == [0, 10, 20, 30]


@cocotb.test()
async def the_verdict_line_by_line(dut):
    """Catches a line of the verdict that is missing or in another place, and what starts but should not."""
    setup = Setup(dut, 16)
    await setup.start()
    page = 2

    async def judge(right: int, starts: bool = False, **other) -> Transfer:
        transfer = setup.requests.send(Transfer(page << 6 | 32, 0x3000, CELL), **other).transfer
        found = await setup.verdict()
        assert found == right, f"{found:#x}, not {right:#x}: {other}"
        setup.changes = [change for change in setup.changes if change[3] == STARTED]
        assert len(setup.changes) == starts, other
        setup.changes.clear()
        if starts:
            await setup.finish(transfer)
        else:
            await setup.rest(30)
        return transfer

    # The source, size, kind, address and PDID; payload; check, identity and number.
    for flip in [3, 25, 41, 60, 120, 131, 250, 300, 390, 420, 500]:
        await judge(exanet.REFUSED_DAMAGED, flip=flip)
    for size in [0, 16, 31, 33, 48, 64]:
        await judge(exanet.REFUSED_DAMAGED, size=size, payload=bytes(size))
    for size in [0, 16, 48, 64, 96]:
        await judge(exanet.REFUSED_DAMAGED, payload=bytes(size))
    await judge(exanet.REFUSED_DAMAGED, kind=exanet.SMALL)
    await judge(exanet.REFUSED_DAMAGED, kind=exanet.SMALL, interface=PAGES, domain=0)
    # Without a footer there is nobody to be answered.
    setup.requests.source.send(Transfer(32, 0, CELL).request(1).words()[:1])
    await setup.rest(30)
    for interface in [PAGES, PAGES + page, 2047]:
        await judge(exanet.REFUSED_INTERFACE, interface=interface)
        await judge(exanet.REFUSED_INTERFACE, interface=interface, domain=0)
    # What was refused is not remembered; what was accepted is, whatever else is wrong with it by now.
    await judge(exanet.REFUSED_DOMAIN, domain=page + 2, number=500)
    await judge(exanet.ACKNOWLEDGEMENT, starts=True, number=500)
    await judge(exanet.ACKNOWLEDGEMENT, number=500)
    await judge(exanet.ACKNOWLEDGEMENT, number=500, domain=page + 2)
    await judge(exanet.ACKNOWLEDGEMENT, number=500, interface=PAGES)
    await judge(exanet.REFUSED_DAMAGED, number=500, flip=140)
    # Another request takes its place in the table.
    await judge(exanet.ACKNOWLEDGEMENT, starts=True, number=500 + CHANNELS)
    await judge(exanet.ACKNOWLEDGEMENT, starts=True, number=500)
    # One of another node, by the same number.
    other = setup.requests.send(Transfer(page << 6 | 32, 0x3000, CELL, node=78), number=500).transfer
    assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    await setup.finish(other)
    # Odd addresses are given up, as those of descriptors are, and the channel is free.
    for wrong in [{"source": 0x3001}, {"address": 8}]:
        transfer = Transfer(page << 6 | 32, **{"source": 0x3000, "size": CELL} | wrong)
        setup.requests.send(transfer)
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        await setup.change(GIVEN_UP)
        setup.transactions[transfer.channel] -= 1
        assert await setup.state(transfer.channel) == (False, ADDRESS)
        assert transfer.channel == page << 6 | 32


@cocotb.test()
async def a_page_has_32_read_channels(dut):
    """Catches a request that gets another channel than the first free one, none, or one of another page."""
    setup = Setup(dut, 17)
    await setup.start()

    def ask(page: int) -> Request:
        return setup.requests.send(Transfer(page << 6 | 32, setup.requests.number << 12, CELL))

    transfers = [ask(15).transfer for _ in range(32)]
    for _ in transfers:
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    assert [transfer.channel for transfer in transfers] == list(range(15 << 6 | 32, 16 << 6))
    refused = ask(15)
    assert await setup.verdict() == exanet.REFUSED_FULL
    setup.requests.send(refused.transfer, domain=1)
    assert await setup.verdict() == exanet.REFUSED_DOMAIN
    other = ask(14).transfer
    assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    assert other.channel == 14 << 6 | 32
    for transfer in [*transfers, other]:
        await setup.expect(transfer, 0)
    setup.answer(transfers[19], 0)
    await setup.change(FINISHED)
    # Refused for want of a channel, it is accepted when it comes again.
    again = setup.requests.send_again(refused).transfer
    assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    assert again.channel == transfers[19].channel
    await setup.finish(again)
    for free in [31, 4, 19]:
        if free != 19:
            setup.answer(transfers[free], 0)
            await setup.change(FINISHED)
    for free in [4, 19, 31]:
        transfer = ask(15).transfer
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        assert transfer.channel == transfers[free].channel
    ask(15)
    assert await setup.verdict() == exanet.REFUSED_FULL


@cocotb.test()
async def requests_beside_stores(dut):
    """Catches a descriptor that is mixed with words stored meanwhile, and stores into read channels."""
    setup = Setup(dut, 18)
    await setup.start()
    await setup.rest(4)
    setup.stores.answers.clear()
    by_channel: dict[int, Transfer] = {}

    def judged(request: Request, kind: int, again: bool):
        assert (kind, again) == (exanet.ACKNOWLEDGEMENT, False)
        by_channel[request.transfer.channel] = request.transfer

    setup.requests.judged = judged
    for place in range(20):
        setup.post(Transfer(place % 3 << 6 | 32, place << 12, 16, address=place << 8))
        for write in range(3):
            transfer = Transfer(write << 6 | place, 0x10_0000 | place << 12, 16)
            by_channel[transfer.channel] = setup.post(transfer)
    waits = 0
    async for _ in setup.bench.cycles(400):
        waits += bool(dut.s_axi_awvalid.value and not dut.s_axi_awready.value)
    assert waits >= 20 and setup.stores.is_idle() and setup.stores.answers == [0] * 240
    for _ in range(80):
        await setup.bench.until(lambda: setup.sink.packets, 300, "a cell")
        _, words = setup.sink.packets.popleft()
        transfer = by_channel.pop(Cell.of(words[-1] >> 32 & (1 << 64) - 1).channel)
        assert words == transfer.cell(0, 0)
    # Read channels are not for stores, taken or free.
    setup.stores.answers.clear()
    for channel in [32, 63, 15 << 6 | 32]:
        for place in range(4):
            setup.stores.store(channel << 6 | place << 4, 0)
    await setup.rest(60)
    assert setup.stores.answers == [2] * 12


@cocotb.test()
async def reset_in_the_middle_of_a_request(dut):
    """Catches what survives a reset: words, a verdict, an answer, a channel, a request that is known."""
    for after in [1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 40]:
        setup = Setup(dut, 19)
        await setup.start()
        setup.requests.send(Transfer(7 << 6 | 32, 0x4000, CELL), number=9)
        async for _ in setup.bench.cycles(after):
            pass
        setup = Setup(dut, 20)
        await setup.start()
        transfer = setup.requests.send(Transfer(7 << 6 | 32, 0x5000, 700), number=9).transfer
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        assert transfer.channel == 7 << 6 | 32
        await setup.finish(transfer)
        await setup.rest(30)


@cocotb.test()
async def random_requests_fill_pages(dut):
    """Catches what nobody thought of: pages that fill up and empty, requests that are wrong or come again."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random, requests = setup.bench.random, setup.requests
    verdicts = [*exanet.ANSWERS, "again", "after a refusal"]
    coverage = Coverage(verdict=verdicts, under_way=["none", "some", "all"], waits=["requests", "answers"])
    await setup.start()
    busy: dict[int, Transfer] = {}
    sent: list[Request] = []
    # Those that were refused for want of a channel.
    refused: dict[tuple[int, int], Request] = {}
    whole: deque[Transfer] = deque()

    def judged(request: Request, kind: int, again: bool):
        coverage.hit("verdict", "again" if again else kind)
        name = request.source, request.number
        if kind == exanet.ACKNOWLEDGEMENT and not again:
            busy[request.transfer.channel] = request.transfer
            if refused.pop(name, None):
                coverage.hit("verdict", "after a refusal")
        elif kind == exanet.REFUSED_FULL:
            refused[name] = request

    requests.judged, requests.is_exact = judged, False
    async for cycle in setup.bench.cycles(CYCLES // 2):
        if cycle % 512 == 0:
            requests.source.idle, requests.sink.busy = (random.choice([0, 0, 0.3, 0.6]) for _ in range(2))
            setup.memory.latency = random.choice([1, 19, 90])
        for name, valid, ready in [
            ("requests", dut.s_axis_request_tvalid, dut.s_axis_request_tready),
            ("answers", dut.m_axis_answer_tvalid, dut.m_axis_answer_tready),
        ]:
            if valid.value and not ready.value:
                coverage.hit("waits", name)
        while setup.changes:
            _, channel, _, what = setup.changes.pop(0)
            assert what in (STARTED, LAST_CELL, FINISHED), what
            if what == FINISHED:
                del busy[channel]
        while setup.sink.packets:
            _, words = setup.sink.packets.popleft()
            cell = Cell.of(words[-1] >> 32 & (1 << 64) - 1)
            transfer = busy[cell.channel]
            assert words == transfer.cell(0, cell.index)
            if cell.last:
                whole.append(transfer)
        count = sum(channel >> 6 == 0 for channel in busy)
        coverage.hit("under_way", {0: "none", 32: "all"}.get(count, "some"))
        # Blocks are answered in every other phase alone.
        if cycle // 1500 % 2 and whole and random.random() < 0.3:
            setup.answer(whole.popleft(), 0)
        if requests.source.queue or cycle % 3000 > 2700:
            continue
        if refused and random.random() < 0.3:
            requests.send_again(random.choice(list(refused.values())))
        else:
            page, size = random.choice([0, 0, 0, 15]), random.choice([0, 16, 200, 512])
            source, node = random.randrange(1 << 34) & ~15, random.choice([77, 0, (1 << 22) - 1])
            requests.send_any(Transfer(page << 6 | 32, source, size, node), sent)
    dut._log.info("%d requests, %d under way", len(sent), len(busy))
    coverage.close(dut._log)


@cocotb.test()
async def random_transfers_under_back_pressure(dut):
    """Catches what nobody thought of: all answers, sizes and channels, with every port busy at times."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random, memory = setup.bench.random, setup.memory
    coverage = Coverage(
        change=CHANGES,
        answer=[*exanet.BLOCK_ANSWERS, "none", "damaged", "twice"],
        size=SIZES,
        channel=["first", "last", "write", "read"],
        outcome=[DONE, TIMED_OUT, PROTECTION],
        crossing=[True, False],
        together=[1, 2, 3, 4, 5],
        waits=["network in", "network out", "request", "pages"],
        turn=["alone", "shared"],
        request=[*exanet.ANSWERS, "again"],
    )
    await setup.start()
    busy: dict[int, Transfer] = {}
    requests: list[Request] = []

    def begin(transfer: Transfer):
        channel = transfer.channel
        busy[channel] = transfer
        coverage.hit("size", transfer.size)
        coverage.hit("crossing", transfer.source & 0xFFF > 0xF00)
        coverage.hit("together", min(len(busy), 5))
        named = {0: "first", CHANNELS - 1: "last"}.get(channel, "read" if channel & 32 else "write")
        coverage.hit("channel", named)

    def judged(request: Request, kind: int, again: bool):
        coverage.hit("request", "again" if again else kind)
        if kind == exanet.ACKNOWLEDGEMENT and not again:
            begin(request.transfer)

    setup.requests.judged, setup.requests.is_exact = judged, False
    faulted: deque[tuple[int, int]] = deque()
    later: list[tuple[int, Transfer, int, int]] = []
    ended, cells, last_channel = 0, 0, -1
    sizes: list[int] = []
    async for cycle in setup.bench.cycles(CYCLES):
        if cycle % 1024 == 0:
            setup.stores.idle, setup.sink.busy, setup.answers.idle, memory.busy = (
                random.choice([0, 0, 0.3, 0.7]) for _ in range(4)
            )
            setup.requests.source.idle = random.choice([0, 0.3])
            setup.requests.sink.busy = random.choice([0, 0.7])
            memory.latency = random.choice([1, 19, 34, 90])
            memory.unmapped = set()
        for name, valid, ready in [
            ("network in", dut.s_axis_net_tvalid, dut.s_axis_net_tready),
            ("network out", dut.m_axis_net_tvalid, dut.m_axis_net_tready),
            ("request", dut.m_axi_arvalid, dut.m_axi_arready),
            ("pages", dut.s_axi_awvalid, dut.s_axi_awready),
        ]:
            if valid.value and not ready.value:
                coverage.hit("waits", name)
        while setup.changes:
            _, channel, transaction, what = setup.changes.pop(0)
            coverage.hit("change", what)
            transfer = busy[channel]
            assert 0 <= transaction - transfer.first < transfer.blocks
            if what == FAULT_MET:
                faulted.append((cycle + random.randrange(200), channel))
            if what == FINISHED:
                assert transfer.acknowledged == set(range(transfer.blocks)), transfer
                coverage.hit("outcome", DONE)
            if what == GIVEN_UP:
                coverage.hit("outcome", PROTECTION if transfer.refused else TIMED_OUT)
            if what in (FINISHED, GIVEN_UP):
                del busy[channel]
                ended += 1
        while setup.sink.packets:
            _, words = setup.sink.packets.popleft()
            cells += 1
            cell = Cell.of(words[-1] >> 32 & (1 << 64) - 1)
            coverage.hit("turn", "alone" if cell.channel == last_channel else "shared")
            last_channel = cell.channel
            transfer = busy.get(cell.channel)
            if transfer is None or cell.transaction < transfer.first:
                # Of a transfer that has been given up since it was read.
                continue
            block = cell.transaction - transfer.first
            right = transfer.cell(block, cell.index, cell.attempt)
            assert words == right, f"{[f'{w:032x}' for w in words]}, not {[f'{w:032x}' for w in right]}"
            place = block, cell.attempt
            # Cells that memory has refused are left out.
            assert cell.index >= transfer.next_cell.get(place, 0), f"cell {cell.index} again"
            transfer.next_cell[place] = cell.index + 1
            transfer.came[place] = transfer.came.get(place, 0) + 1
            if cell.last and transfer.came[place] == transfer.cells(block):
                later.append((cycle + random.choice([0, 5, 300]), transfer, block, cell.attempt))
        for entry in [entry for entry in later if entry[0] <= cycle]:
            later.remove(entry)
            _, transfer, block, attempt = entry
            if busy.get(transfer.channel) is not transfer:
                continue
            what = random.random()
            kind = exanet.BLOCK_ACKNOWLEDGEMENT
            if what < 0.05:
                coverage.hit("answer", "none")
                continue
            if what < 0.1:
                coverage.hit("answer", "damaged")
                # Not in bits that nobody looks at: all are under the check.
                setup.answer(transfer, block, kind, attempt=attempt, flip=random.randrange(256))
                continue
            if what < 0.2:
                kind = random.choice([exanet.BLOCK_WITHOUT_CONTEXT, exanet.BLOCK_FAULTED])
            elif what < 0.25:
                kind = exanet.BLOCK_OF_DOMAIN
                transfer.refused = True
            else:
                transfer.acknowledged.add(block)
                if what < 0.35:
                    coverage.hit("answer", "twice")
                    setup.answer(transfer, block, kind, attempt=attempt)
            coverage.hit("answer", kind)
            setup.answer(transfer, block, kind, attempt=attempt)
        if faulted and faulted[0][0] <= cycle:
            _, channel = faulted.popleft()
            memory.unmapped = set()
            setup.stores.store(SYSTEM | channel >> 6 << 12 | 16, channel & 63)
        is_posted = not setup.stores.queue and not setup.requests.source.queue
        if len(busy) < random.choice([1, 2, 5]) and is_posted:
            channel = random.choice([0, CHANNELS - 1, random.randrange(CHANNELS), 3, 35])
            is_request = channel & 32
            if is_request or channel not in busy:
                sizes = sizes or random.sample(SIZES + 4 * SIZES[:8], len(SIZES) + 32)
                size = sizes.pop()
                source = random.choice([0, 0xF10, random.randrange(1 << 34) & ~15])
                node, interface = random.randrange(1 << 22), random.randrange(2048)
                address = random.randrange(1 << 38) & ~15
                transfer = Transfer(channel, source, size, node, interface, address)
                if is_request:
                    setup.requests.send_any(transfer, requests)
                else:
                    begin(setup.post(transfer))
                if random.random() < 0.3:
                    memory.unmapped = {
                        (channel >> 6 & 7) << 39 | source + random.randrange(0, max(size, 1), 16)
                    }
    dut._log.info("%d transfers, %d cells, %d bursts at most", ended, cells, memory.most_outstanding)
    coverage.excuse("outcome", TIMED_OUT, "four answers must be lost in a row")
    coverage.excuse("waits", "network in", "an answer has two words, and the agent takes one a cycle")
    coverage.excuse("waits", "pages", "a descriptor has four words, and the agent takes one a cycle")
    coverage.excuse("request", exanet.REFUSED_FULL, "five transfers are not 32 of a page")
    coverage.excuse("channel", "last", "it is given where 31 others of its page are taken")
    assert memory.most_outstanding <= 8
    coverage.close(dut._log)
