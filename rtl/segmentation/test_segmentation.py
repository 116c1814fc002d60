"""The send unit of the RDMA engine: reads, cells, cycles, answers, repetitions."""

import os
from collections import deque

import cocotb
import exanet
from cocotbext.axi import AxiBus, AxiMaster, AxiRamRead, AxiReadBus
from exanet import Cell, Packet
from send_unit import (
    ACKNOWLEDGED,
    ADDRESS,
    AGAIN,
    BLOCK,
    BUFFERS,
    CELL,
    CHANGES,
    CHANNELS,
    CYCLES,
    DONE,
    FAULT_MET,
    FINISHED,
    FORWARD,
    GIVEN_UP,
    LAST_CELL,
    LONGEST,
    NODE,
    PROTECTION,
    REPETITIONS,
    STARTED,
    SYSTEM,
    TIMED_OUT,
    TIMEOUT,
    Request,
    Setup,
    Transfer,
    bytes_at,
)

from bench import Coverage


@cocotb.test()
async def reads_and_headers_at_their_edges(dut):
    """Catches reads and cells that come in another cycle than the head of segmentation.sv says."""
    setup = Setup(dut, 1)
    await setup.start()
    buffers = BUFFERS[setup.lanes]
    for size in [0, 16, 256, 2048, 4000, *setup.beat_sizes]:
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
            headers.append((begun, min(CELL, size - CELL * index)))
        asked = [cycle for cycle, _, _ in setup.memory.requests]
        first = asked[:buffers]
        assert first == [n + 7 + place for place in range(len(first))], (n, asked)
        free = 0
        for (begun, of_cell), answered in zip(headers, setup.memory.answered, strict=True):
            assert begun == max(free, answered + FORWARD[setup.lanes]), (begun, free, answered)
            free = begun + setup.pace(of_cell)
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
    engine, beats, megahertz = setup.pace(CELL), CELL // setup.memory.word, {1: 150, 4: 200}[setup.lanes]
    for nanoseconds in [100, 150, 225, 600]:
        latency = -(-nanoseconds * megahertz // 1000)
        rates = []
        for most in [1, 2, 3, 4, 6, 8] if setup.lanes == 1 else [1, 2, 4, 6, 8, 12, 16]:
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
            assert setup.memory.most_outstanding == most
            # From a request to the next that takes its place: a round trip and the words of a burst.
            period = max(engine, (latency + 1 + beats) / most)
            pace = (begun[-1] - begun[15]) / 48
            what = f"{nanoseconds} ns, {most} bursts: {pace} cycles a cell, not {period}"
            assert abs(pace - period) < 1, what
            rates.append(f"{most}: {CELL * 8 * megahertz / pace / 1000:.2f} Gb/s")
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
    odd = setup.memory.word // 2
    for wrong in [{"source": 0x3001}, {"source": 0x3000 + odd}, {"address": odd}]:
        transfer = Transfer(9, **{"source": 0x3000, "size": CELL} | wrong)
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
        transfer = setup.post(Transfer(700, setup.whole(source), 3 * CELL + 17))
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

    await setup.bench.until(are_sent, 192 * (setup.pace(CELL) + 1), "sending")
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
async def random_transfers_under_back_pressure(dut):
    """Catches what nobody thought of: all answers, sizes and channels, with every port busy at times."""
    setup = Setup(dut, int(os.environ.get("WEFT_RTL_SEED", "10")))
    random, memory = setup.bench.random, setup.memory
    coverage = Coverage(
        change=CHANGES,
        answer=[*exanet.BLOCK_ANSWERS, "none", "damaged", "twice"],
        size=setup.sizes,
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
    # All of them before any comes again.
    all_sizes = setup.sizes
    sizes = random.sample(all_sizes, len(all_sizes))
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
                sizes = sizes or random.sample(all_sizes + 4 * all_sizes[:8], len(all_sizes) + 32)
                size = sizes.pop()
                source = setup.whole(random.choice([0, 0xF00 + setup.memory.word, random.randrange(1 << 34)]))
                node, interface = random.randrange(1 << 22), random.randrange(2048)
                address = setup.whole(random.randrange(1 << 38))
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
    assert memory.most_outstanding <= BUFFERS[setup.lanes]
    coverage.close(dut._log)
