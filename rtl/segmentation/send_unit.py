"""The bench of the send unit of the RDMA engine: its surroundings, and a model of what it has to do."""

import os
from collections import deque
from dataclasses import dataclass, field, replace

import exanet
from exanet import Cell, Packet

from bench import Bench, Sink, Source

CHANNELS, BLOCK, CELL = 1024, 16384, 256
# By the words of 128 bits side by side on a bus: cycles from cell to cell beside its words, buffers of cells,
# and cycles from the last word of its payload to its header.
BESIDE, BUFFERS, FORWARD = {1: 2 + 5, 4: 1 + 0}, {1: 8, 4: 16}, {1: 1, 4: 2}
# As rtl/run.py builds it for the tests.
TIMEOUT, LONGEST, REPETITIONS = 5000, 15_000, 3
NODE = 5
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
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
# And at those of beats.
BEAT_SIZES = [32, 33, 47, 48, 49, 63, 64, 65, 112, 113, 128, 129, 176, 192, 193, 239, 240, 241]


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
        # Bytes of a word of the bus.
        self.word = len(bench.dut.m_axi_rdata) // 8
        # Addresses of words of 16 bytes that are refused.
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
                self.bursts[0][1:] = self.bursts[0][1] + self.word, left - 1
        if self.ready and dut.m_axi_arvalid.value:
            address, words = int(dut.m_axi_araddr.value), int(dut.m_axi_arlen.value) + 1
            size = words * self.word
            assert address % self.word == 0 and size <= CELL, f"{address:#x}, {words} words"
            assert 1 << int(dut.m_axi_arsize.value) == self.word
            assert address // 4096 == (address + size - 1) // 4096, f"{address:#x} crosses 4 KB"
            self.requests.append((cycle, address, words))
            self.bursts.append([cycle + self.latency, address, words])
            self.most_outstanding = max(self.most_outstanding, len(self.bursts))
        is_busy = self.busy and self.random.random() < self.busy
        self.held = bool(self.bursts) and self.bursts[0][0] <= cycle and not is_busy
        dut.m_axi_rvalid.value = int(self.held)
        if self.held:
            _, address, left = self.bursts[0]
            data = int.from_bytes(bytes_at(address, self.word), "little")
            dut.m_axi_rdata.value, dut.m_axi_rlast.value = data, int(left == 1)
            refused = any(place in self.unmapped for place in range(address, address + self.word, 16))
            dut.m_axi_rresp.value = 2 if refused else 0
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
            # In wider beats the header says where a packet ends.
            wrong = {"flip": random.randrange(128 if self.source.lanes > 1 else 0, 512)}
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
        # Words of 128 bits side by side on a bus.
        self.lanes = len(dut.m_axis_net_tdata) // 128
        self.beat_sizes = BEAT_SIZES if self.lanes > 1 else []
        self.sizes = SIZES + self.beat_sizes
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

    def whole(self, address: int) -> int:
        """The address of the word of the bus that has an address."""
        return address // self.memory.word * self.memory.word

    def pace(self, size: int) -> int:
        """Cycles from the header of a cell to that of the next."""
        return -(-size // self.memory.word) + BESIDE[self.lanes]

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
