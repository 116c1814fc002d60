"""The packetizer against a model of its own: packets, their cycles, states, repetitions."""

import itertools
import os
from collections import deque

import cocotb
import exanet
from cocotbext.axi import AxiBus, AxiMaster
from exanet import Packet

from bench import Bench, Coverage, Sink, Source

INTERFACES, CHANNELS = 64, 4
ENGINE, TIMEOUT, LONGEST, REPETITIONS = 9, 7500, 150_000, 16
NODE = 5
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
SYSTEM = 1 << 18
STATUS, CLEAR = 0x800, 0x900
IDLE, ONGOING, ACKNOWLEDGED, NEGATIVE, TIMED_OUT = range(5)
SIZES = [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64]


def descriptor(packet: Packet, kind: int = 0) -> int:
    """The word that starts the packet of a channel; that of a small message has any kind but a request's."""
    kind = packet.kind if packet.kind == exanet.READ_REQUEST else kind
    return packet.words()[0] & ~(0xFFFF << 112 | 0xFF << 40 | (1 << 22) - 1) | kind << 40


class Stores:
    """Stores words into pages, one in each cycle, with gaps of chance `idle`."""

    def __init__(self, bench: Bench):
        self.dut, self.random, self.idle = bench.dut, bench.random, 0.0
        # Called with the cycle in which a word was taken, and what was given with it.
        self.taken = lambda cycle, what: None
        self.reset()

    def reset(self):
        """Drops what has not been stored."""
        self.queue: deque[tuple] = deque()
        self.current: tuple | None = None
        dut = self.dut
        for signal in ["awvalid", "wvalid", "arvalid", "awid", "awlen", "arid", "arlen"]:
            getattr(dut, f"s_axi_{signal}").value = 0
        for signal, value in [
            ("awsize", 4),
            ("awburst", 1),
            ("wlast", 1),
            ("bready", 1),
            ("rready", 1),
            ("arsize", 4),
        ]:
            getattr(dut, f"s_axi_{signal}").value = value
        dut.number.value = 0

    def store(self, address: int, data: int, what=None, number: int = 0, lanes: int = 0xFFFF):
        """Stores a word."""
        self.queue.append((address, data, lanes, number, what))

    def is_idle(self) -> bool:
        """Whether all is stored."""
        return not self.queue and self.current is None

    def step(self, cycle: int):
        """One cycle."""
        dut = self.dut
        if self.current is not None:
            if not dut.s_axi_awready.value:
                return
            self.taken(cycle, self.current[-1])
            self.current = None
        if self.queue and not (self.idle and self.random.random() < self.idle):
            self.current = self.queue.popleft()
            address, data, lanes, number, _ = self.current
            dut.s_axi_awaddr.value, dut.s_axi_wdata.value = address, data
            dut.s_axi_wstrb.value, dut.number.value = lanes, number
        valid = int(self.current is not None)
        dut.s_axi_awvalid.value, dut.s_axi_wvalid.value = valid, valid


class Setup:
    """The packetizer in its surroundings, reset; interface i is of domain i + 1."""

    def __init__(self, dut, seed: int):
        self.dut, self.bench = dut, Bench(dut, seed)
        dut.node.value = NODE
        self.stores = self.bench.add(Stores(self.bench))
        self.sink = self.bench.add(Sink(self.bench, "m_axis_net"))
        self.answers = self.bench.add(Source(self.bench, "s_axis_net"))
        self.bench.add(self)
        self.number = 0
        # The last state of each channel, and what has changed.
        self.state = [IDLE] * (INTERFACES * CHANNELS)
        self.changes: list[tuple[int, int, int]] = []

    def reset(self):
        """Nothing of its own."""

    def step(self, cycle: int):
        """Keeps changes of states."""
        if self.dut.change_valid.value:
            channel, state = int(self.dut.change_channel.value), int(self.dut.change_state.value)
            self.changes.append((channel, self.state[channel], state))
            self.state[channel] = state

    async def start(self):
        """Resets, and gives interfaces to domains."""
        await self.bench.reset(INTERFACES * CHANNELS)
        for interface in range(INTERFACES):
            self.stores.store(SYSTEM | interface << 12, interface + 1)
        await self.settle(100)

    async def settle(self, most: int):
        """Waits until all is stored, and the table has it."""
        await self.bench.until(self.stores.is_idle, most, "storing")
        async for _ in self.bench.cycles(8):
            pass

    def packet(self, interface: int, channel: int, size: int, **other) -> Packet:
        """The packet that a post to a channel makes."""
        self.number += 1
        payload = self.bench.random.randbytes(size)
        other = {
            "kind": exanet.SMALL,
            "node": self.bench.random.randrange(1 << 22),
            "interface": self.bench.random.randrange(2048),
        } | other
        of = exanet.identity(interface, channel)
        fields = {
            "source": NODE,
            "number": self.number,
            "identity": of,
            "domain": interface + 1,
            "size": size,
        }
        return Packet(payload=payload, **(fields | other))

    def post(self, packet: Packet, dirt: bool = False, kind: int = 0):
        """Stores payload and descriptor; behind the last byte may be something."""
        interface, channel = packet.identity >> 16, packet.identity & 0xFFFF
        place = interface << 12 | channel << 8
        payload = packet.payload
        if dirt and len(payload) % 16:
            payload += self.bench.random.randbytes(-len(payload) % 16)
        for offset in range(0, len(payload), 16):
            word = payload[offset : offset + 16]
            self.stores.store(place + offset, int.from_bytes(word, "little"), lanes=(1 << len(word)) - 1)
        self.stores.store(place + 64, descriptor(packet, kind), what=packet, number=packet.number)

    def answer(self, packet: Packet, kind: int = exanet.ACKNOWLEDGEMENT, flip: int | None = None):
        """Answers a packet."""
        words = packet.answer(kind, packet.node).words()
        if flip is not None:
            words[flip // 128 % 2] ^= 1 << flip % 128
        self.answers.send(words, (packet, kind))

    async def sent(self, most: int = 60) -> tuple[int, list[int]]:
        """The next packet, with the cycle of its header."""
        await self.bench.until(lambda: self.sink.packets, most, "a packet")
        return self.sink.packets.popleft()

    async def states(self, interface: int) -> list[int]:
        """The states of a page's channels, as its process loads them."""
        dut = self.dut
        dut.s_axi_araddr.value, dut.s_axi_arvalid.value = interface << 12 | STATUS, 1
        await self.bench.until(lambda: dut.s_axi_arready.value and dut.s_axi_arvalid.value, 10, "a load")
        dut.s_axi_arvalid.value = 0
        await self.bench.until(lambda: dut.s_axi_rvalid.value, 20, "a load")
        return list(int(dut.s_axi_rdata.value).to_bytes(16, "little")[:CHANNELS])


@cocotb.test()
async def every_packet_at_its_edge(dut):
    """Catches an engine that takes another number of cycles, and words, fields or a check that are wrong."""
    setup = Setup(dut, 1)
    await setup.start()
    free, expected = 0, deque()

    def taken(cycle: int, packet):
        nonlocal free
        if packet is not None:
            free = max(free, cycle + 1) + ENGINE
            expected.append((free, packet.words()))

    setup.stores.taken = taken
    places = [(interface, channel) for interface in range(INTERFACES) for channel in range(CHANNELS)]
    for turn, (interface, channel) in enumerate(places):
        setup.post(setup.packet(interface, channel, SIZES[turn % len(SIZES)]), dirt=True)
        async for _ in setup.bench.cycles([0, 0, 0, 1, 8, 9, 10, 30][turn % 8]):
            pass
    await setup.bench.until(lambda: len(setup.sink.packets) == len(places), 20 * len(places), "sending")
    for found, right in zip(setup.sink.packets, expected, strict=True):
        assert found == right, (
            f"{found[0]} {[f'{w:032x}' for w in found[1]]}, not {right[0]} {[f'{w:032x}' for w in right[1]]}"
        )


@cocotb.test()
async def packets_of_the_vectors(dut):
    """Catches a field or a check that is not where wire.rs has it: both read one file."""
    setup = Setup(dut, 2)
    await setup.start()
    kinds = {exanet.READ_REQUEST}
    for packet, words in exanet.vectors([exanet.SMALL, exanet.READ_REQUEST, *exanet.ANSWERS]):
        interface, channel = packet.identity >> 16, packet.identity & 0xFFFF
        index = interface * CHANNELS + channel
        if packet.kind in (exanet.SMALL, exanet.READ_REQUEST):
            dut.node.value = packet.source
            setup.stores.store(SYSTEM | interface << 12, packet.domain)
            setup.post(packet)
            assert (await setup.sent())[1] == words
            setup.answer(packet)
            state = ACKNOWLEDGED
        else:
            dut.node.value = packet.node
            posted = setup.packet(interface, channel, 0, number=packet.number)
            setup.post(posted)
            await setup.sent()
            setup.answers.send(words)
            state = ACKNOWLEDGED if packet.kind == exanet.ACKNOWLEDGEMENT else NEGATIVE
        async for _ in setup.bench.cycles(10):
            pass
        assert setup.state[index] == state, packet
        setup.stores.store(interface << 12 | CLEAR | channel << 4, 0)
        await setup.settle(10)
        kinds.add(packet.kind)
    assert kinds == {exanet.SMALL, exanet.READ_REQUEST, *exanet.ANSWERS}


@cocotb.test()
async def requests_of_reads(dut):
    """Catches a request that goes as a small message, also when it is repeated; and the other way round."""
    setup = Setup(dut, 10)
    await setup.start()
    for size, kind, state in [
        (32, exanet.ACKNOWLEDGEMENT, ACKNOWLEDGED),
        (32, exanet.REFUSED_FULL, NEGATIVE),
        (0, exanet.ACKNOWLEDGEMENT, ACKNOWLEDGED),
        (64, exanet.REFUSED_DAMAGED, NEGATIVE),
    ]:
        request = setup.packet(5, 2, size, kind=exanet.READ_REQUEST)
        setup.post(request)
        words = (await setup.sent())[1]
        assert words == request.words() and words[0] >> 40 & 0xFF == 0x12
        if size == 0:
            assert (await setup.sent(TIMEOUT + 60))[1] == words
        setup.answer(request, kind)
        await setup.settle(10)
        assert (await setup.states(5))[2] == state
        setup.stores.store(5 << 12 | CLEAR | 2 << 4, 0)
        await setup.settle(10)
    for place in range(256):
        if place != exanet.READ_REQUEST:
            message = setup.packet(6, 0, 8)
            setup.post(message, kind=place)
            assert (await setup.sent())[1] == message.words()
            setup.answer(message)
            await setup.settle(10)


@cocotb.test()
async def the_table_of_states(dut):
    """Catches a transition that is missing, or one too many: each input in each state."""
    setup = Setup(dut, 3)
    await setup.start()

    async def post():
        packet = setup.packet(3, 1, 5)
        setup.post(packet)
        await setup.settle(20)
        return packet

    async def reach(state: int):
        """A channel in this state, and the packet that it had."""
        await setup.start()
        setup.state = [IDLE] * len(setup.state)
        packet = setup.packet(3, 1, 5)
        if state != IDLE:
            packet = await post()
            await setup.sent()
        if state in (ACKNOWLEDGED, NEGATIVE):
            setup.answer(packet, exanet.ACKNOWLEDGEMENT if state == ACKNOWLEDGED else exanet.REFUSED_FULL)
            async for _ in setup.bench.cycles(10):
                pass
        assert (await setup.states(3))[1] == state
        return packet

    # Time-outs have a test of their own.
    table = {
        (IDLE, "post"): ONGOING,
        (ACKNOWLEDGED, "post"): ONGOING,
        (NEGATIVE, "post"): ONGOING,
        (ONGOING, "acknowledge"): ACKNOWLEDGED,
        (ONGOING, "refuse"): NEGATIVE,
        (NEGATIVE, "clear"): IDLE,
    }
    for state in [IDLE, ONGOING, ACKNOWLEDGED, NEGATIVE]:
        for what in ["post", "acknowledge", "refuse", "clear", "another's answer", "a damaged answer"]:
            packet = await reach(state)
            if what == "post":
                await post()
            elif what == "clear":
                setup.stores.store(3 << 12 | CLEAR | 1 << 4, 0)
            elif what == "another's answer":
                setup.answer(Packet(**{**packet.__dict__, "number": packet.number + 1}))
            else:
                kind = exanet.REFUSED_DOMAIN if what == "refuse" else exanet.ACKNOWLEDGEMENT
                setup.answer(packet, kind, 200 if what == "a damaged answer" else None)
            async for _ in setup.bench.cycles(15):
                pass
            assert (await setup.states(3))[1] == table.get((state, what), state), f"{what} in state {state}"


@cocotb.test()
async def what_nobody_answers_is_repeated_and_given_up(dut):
    """Catches a repetition at another edge than its own, one too many or few, and a timer that runs on."""
    setup = Setup(dut, 4)
    await setup.start()
    packet = setup.packet(63, 3, 64)
    setup.post(packet)
    sent = [await setup.sent()]
    wait = TIMEOUT
    for _ in range(3):
        sent.append(await setup.sent(wait + 60))
        wait = min(2 * wait, LONGEST)
    assert all(words == packet.words() for _, words in sent)
    starts = [cycle for cycle, _ in sent]
    assert [after - before for before, after in itertools.pairwise(starts)] == [
        TIMEOUT + ENGINE,
        2 * TIMEOUT + ENGINE,
        4 * TIMEOUT + ENGINE,
    ]
    setup.answer(packet)
    async for _ in setup.bench.cycles(8 * TIMEOUT + 600):
        pass
    assert not setup.sink.packets and (await setup.states(63))[3] == ACKNOWLEDGED
    # The next packet begins with the shortest time again.
    packet = setup.packet(63, 3, 0)
    setup.post(packet)
    first = (await setup.sent())[0]
    assert (await setup.sent(TIMEOUT + 60))[0] - first == TIMEOUT + ENGINE


@cocotb.test(skip=CYCLES < 10**6)
async def a_packet_is_given_up(dut):
    """Catches a channel that never gives up: all repetitions, two million cycles of them."""
    setup = Setup(dut, 5)
    await setup.start()
    packet = setup.packet(0, 0, 1)
    setup.post(packet)
    wait, repeats = TIMEOUT, 0
    await setup.sent()
    for _ in range(REPETITIONS):
        await setup.sent(wait + 60)
        wait, repeats = min(2 * wait, LONGEST), repeats + 1
    async for _ in setup.bench.cycles(wait + 60):
        pass
    assert not setup.sink.packets and (await setup.states(0))[0] == TIMED_OUT
    setup.stores.store(CLEAR, 0)
    await setup.settle(10)
    assert (await setup.states(0))[0] == IDLE


@cocotb.test()
async def all_channels_are_repeated_at_once(dut):
    """Catches timers that get in each other's way: every channel waits, and is repeated once, in order."""
    setup = Setup(dut, 6)
    await setup.start()
    packets = [setup.packet(i, c, 0) for i in range(INTERFACES) for c in range(CHANNELS)]
    for packet in packets:
        setup.post(packet)
    await setup.bench.until(lambda: len(setup.sink.packets) == 256, 256 * 12, "sending")
    first = list(setup.sink.packets)
    setup.sink.packets.clear()
    await setup.bench.until(lambda: len(setup.sink.packets) == 256, TIMEOUT + 256 * 12, "repeating")
    for (before, words), (after, again) in zip(first, setup.sink.packets, strict=True):
        assert words == again and after - before == TIMEOUT + ENGINE


@cocotb.test()
async def a_repeat_that_is_answered_in_time_is_not_sent(dut):
    """Catches a packet that goes out although its channel has been answered meanwhile."""
    setup = Setup(dut, 7)
    await setup.start()
    packet = setup.packet(1, 1, 20)
    setup.post(packet)
    sent = (await setup.sent())[0]
    # The engine begins anew at sent + TIMEOUT; the answer is on the bus in the two cycles behind.
    await setup.bench.until(lambda: setup.bench.cycle == sent + TIMEOUT - 1, TIMEOUT + 60, "waiting")
    setup.answer(packet)
    async for _ in setup.bench.cycles(60):
        pass
    assert not setup.sink.packets and setup.state[5] == ACKNOWLEDGED


@cocotb.test()
async def a_packet_has_the_domain_of_its_post(dut):
    """Catches a repetition, or a packet that waits, with the PDID of an interface's next owner."""
    setup = Setup(dut, 11)
    await setup.start()
    packets = [setup.packet(7, channel, 32) for channel in range(2)]
    setup.sink.busy = 1.0
    for packet in packets:
        setup.post(packet)
    await setup.settle(100)
    setup.stores.store(SYSTEM | 7 << 12, 900)
    packets.append(setup.packet(7, 2, 16, domain=900))
    setup.post(packets[-1])
    await setup.settle(100)
    setup.sink.busy = 0.0
    for packet in [*packets, *packets]:
        assert (await setup.sent(TIMEOUT + 60))[1] == packet.words()


@cocotb.test()
async def answers_to_the_post_before(dut):
    """Catches an answer that comes before the descriptor and answers its post, one behind it that does not,
    and a packet of the post before that goes for the next one: a message is posted again by its number."""
    setup = Setup(dut, 12)
    await setup.start()
    packet = setup.packet(4, 2, 0)
    # Cycles from the end of the answer to the descriptor.
    for later, state in [(0, ONGOING), (1, ONGOING), (-1, NEGATIVE), (-2, NEGATIVE)]:
        setup.post(packet)
        await setup.sent()
        setup.answer(packet, exanet.REFUSED_DAMAGED)
        await setup.settle(10)
        assert (await setup.states(4))[2] == NEGATIVE
        begin = setup.bench.cycle + 10
        async for cycle in setup.bench.cycles(40):
            if cycle == begin:
                setup.answer(packet, exanet.REFUSED_DAMAGED)
            if cycle == begin + 1 + later:
                setup.post(packet)
        assert (await setup.states(4))[2] == state, later
        if state == ONGOING:
            assert (await setup.sent())[1] == packet.words()
            setup.answer(packet)
            await setup.settle(10)
    # The repetition waits behind another packet until its message has been refused and is posted again.
    first = setup.packet(4, 3, 64)
    setup.post(packet)
    await setup.sent()
    setup.sink.busy = 1.0
    setup.post(first)
    async for _ in setup.bench.cycles(TIMEOUT + 60):
        pass
    setup.answer(packet, exanet.REFUSED_DAMAGED)
    await setup.settle(10)
    setup.post(packet)
    await setup.settle(60)
    setup.sink.busy = 0.0
    assert [(await setup.sent())[1] for _ in range(2)] == [first.words(), packet.words()]
    setup.answer(packet)
    async for _ in setup.bench.cycles(60):
        pass
    assert not setup.sink.packets


@cocotb.test()
async def a_time_out_behind_one_that_is_answered(dut):
    """Catches a repetition that is late where a time-out ends a cycle before it, as that is answered."""
    setup = Setup(dut, 13)
    await setup.start()
    for early in range(3):
        first, second = setup.packet(1, 0, 0), setup.packet(2, 0, 0)
        setup.post(first)
        await setup.sent()
        # The second wait is twice as long: both end side by side.
        ends = (await setup.sent(TIMEOUT + 60))[0] + 2 * TIMEOUT
        async for cycle in setup.bench.cycles(2 * TIMEOUT + 60):
            if cycle == ends + 1 - TIMEOUT - ENGINE - 3:
                setup.post(second)
            if cycle == ends - 7 - early:
                setup.answer(first)
        assert setup.state[1 * CHANNELS] == ACKNOWLEDGED
        assert [cycle for cycle, _ in setup.sink.packets] == [ends + 1 - TIMEOUT, ends + 1 + ENGINE]
        setup.sink.packets.clear()
        setup.answer(second)
        await setup.settle(10)


@cocotb.test()
async def bad_stores_change_nothing(dut):
    """Catches a packet that is made of a store that starts none; and what our own drivers would not see."""
    setup = Setup(dut, 8)
    await setup.start()
    setup.bench.parts.remove(setup.stores)
    pages = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.reset)

    async def store(address: int, data: bytes) -> int:
        return (await pages.write(address, data)).resp

    good = setup.packet(2, 3, 40)
    word = descriptor(good).to_bytes(16, "little")
    too_long = (descriptor(good) & ~(0x3FF << 22) | 65 << 22).to_bytes(16, "little")
    place = 2 << 12 | 3 << 8
    assert await store(place + 64, too_long) != 0
    assert await store(place + 64, word[:8]) != 0
    assert await store(place + 80, word) != 0
    assert await store(2 << 12 | 0x400, word) != 0
    assert await store(SYSTEM | 2 << 12 | 16, word) != 0
    assert (await pages.read(place, 16)).resp != 0
    async for _ in setup.bench.cycles(40):
        pass
    assert not setup.sink.packets and not setup.changes
    # A burst of the payload in bytes, then the descriptor.
    dut.number.value = good.number
    assert await store(place, good.payload) == 0
    assert await store(place + 64, word) == 0
    assert (await setup.sent())[1] == good.words()
    # The channel is ongoing: a second descriptor starts nothing.
    dut.number.value = good.number + 1
    assert await store(place + 64, word) == 0
    assert (await pages.read(2 << 12 | STATUS, 16)).data[:4] == bytes([0, 0, 0, ONGOING])
    async for _ in setup.bench.cycles(40):
        pass
    assert not setup.sink.packets


@cocotb.test()
async def reset_in_the_middle(dut):
    """Catches state that survives a reset: a packet on the bus, one in the engine, a channel, a timer."""
    for after in [2, 9, 12, 13, 14, 200]:
        setup = Setup(dut, 9)
        await setup.start()
        setup.sink.busy = 0.3
        for channel in range(CHANNELS):
            setup.post(setup.packet(8, channel, 64))
        async for _ in setup.bench.cycles(after):
            pass
    setup = Setup(dut, 9)
    await setup.start()
    assert await setup.states(8) == [IDLE] * 4
    async for _ in setup.bench.cycles(TIMEOUT + 300):
        pass
    assert not setup.sink.packets
    packet = setup.packet(8, 0, 64)
    setup.post(packet)
    assert (await setup.sent())[1] == packet.words()


@cocotb.test()
async def random_posts_under_back_pressure(dut):
    """Catches what nobody thought of: all channels, sizes and answers, with every port busy at times."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random = setup.bench.random
    coverage = Coverage(
        change=[
            (IDLE, ONGOING),
            (ACKNOWLEDGED, ONGOING),
            (ONGOING, ACKNOWLEDGED),
            (ONGOING, NEGATIVE),
            (NEGATIVE, IDLE),
        ],
        size=SIZES,
        channel=list(range(CHANNELS)),
        interface=["first", "last", "other"],
        answer=exanet.ANSWERS,
        kind=[exanet.SMALL, exanet.READ_REQUEST],
        repeated=[1],
        waits=["stores", "network out", "answers"],
    )
    await setup.start()
    # By channel: the packet that is posted, and how often it has come.
    posted: dict[int, Packet] = {}
    came: dict[int, int] = {}
    silent: set[int] = set()

    def answered(cycle: int, what):
        if what is not None:
            packet, kind = what
            index = (packet.identity >> 16) * CHANNELS + (packet.identity & 0xFFFF)
            if posted.get(index) is packet:
                del posted[index]
                if kind != exanet.ACKNOWLEDGEMENT:
                    refused.append((cycle, index))

    refused: list[tuple[int, int]] = []
    setup.answers.taken = answered
    posts = 0
    async for cycle in setup.bench.cycles(CYCLES):
        if cycle % 512 == 0:
            setup.stores.idle, setup.sink.busy, setup.answers.idle = (
                random.choice([0, 0, 0.5, 0.9]) for _ in range(3)
            )
        for name, valid, ready in [
            ("stores", dut.s_axi_wvalid, dut.s_axi_wready),
            ("network out", dut.m_axis_net_tvalid, dut.m_axis_net_tready),
            ("answers", dut.s_axis_net_tvalid, dut.s_axis_net_tready),
        ]:
            if valid.value and not ready.value:
                coverage.hit("waits", name)
        while setup.sink.packets:
            _, words = setup.sink.packets.popleft()
            index = (words[-1] >> 48 & 0xFFFF) * CHANNELS + (words[-1] >> 32 & 0xFFFF)
            packet = posted.get(index)
            if packet is None or words[-1] >> 96 != packet.number:
                # It was made before it was answered.
                assert came.get(words[-1] >> 96, 0) > 0, (
                    f"cycle {cycle}: a packet of nobody, {words[-1]:032x}"
                )
                continue
            assert words == packet.words(), f"cycle {cycle}: {[f'{w:032x}' for w in words]}, of {packet}"
            came[packet.number] = came.get(packet.number, 0) + 1
            if came[packet.number] > 1:
                coverage.hit("repeated", 1)
            what = random.random()
            if what < 0.02:
                silent.add(packet.number)
            elif what < 0.05:
                setup.answer(packet, flip=random.randrange(256))
            else:
                kind = exanet.ACKNOWLEDGEMENT if what < 0.8 else random.choice(exanet.ANSWERS)
                coverage.hit("answer", kind)
                setup.answer(packet, kind)
                if what > 0.95:
                    setup.answer(packet, random.choice(exanet.ANSWERS))
        for when, index in refused[:]:
            if cycle > when + 40:
                refused.remove((when, index))
                setup.stores.store(index // CHANNELS << 12 | CLEAR | index % CHANNELS << 4, 0)
        index = random.randrange(INTERFACES * CHANNELS)
        is_free = index not in posted and all(other != index for _, other in refused)
        if len(setup.stores.queue) < 8 and is_free and setup.state[index] in (IDLE, ACKNOWLEDGED):
            kind = random.choice([exanet.SMALL, exanet.SMALL, exanet.READ_REQUEST])
            packet = setup.packet(index // CHANNELS, index % CHANNELS, random.choice(SIZES), kind=kind)
            posted[index] = packet
            posts += 1
            setup.post(packet, dirt=True)
            coverage.hit("size", packet.size)
            coverage.hit("kind", kind)
            coverage.hit("channel", index % CHANNELS)
            coverage.hit("interface", {0: "first", INTERFACES - 1: "last"}.get(index // CHANNELS, "other"))
    for _, before, after in setup.changes:
        coverage.hit("change", (before, after))
    dut._log.info("%d posts", posts)
    coverage.close(dut._log)
