"""The mailbox of the send unit for requests of reads: verdicts, channels, cycles."""

import os
from collections import deque

import cocotb
import exanet
from exanet import Cell
from send_unit import (
    ADDRESS,
    CELL,
    CHANNELS,
    CYCLES,
    DONE,
    FINISHED,
    GIVEN_UP,
    LAST_CELL,
    PAGES,
    READ,
    STARTED,
    Request,
    Setup,
    Transfer,
)

from bench import Coverage


@cocotb.test()
async def requests_at_their_edges(dut):
    """Catches answers and reads in other cycles than segmentation_requests.sv says, and taken channels."""
    setup = Setup(dut, 15)
    await setup.start()
    for place, size in enumerate([0, 16, 256, 2048, 4000]):
        setup.memory.requests.clear()
        request = setup.requests.send(Transfer(5 << 6 | 32, 0x1000, size))
        # Requests compares the cycle of the answer.
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        transfer = request.transfer
        assert transfer.channel == 5 << 6 | 32 | place
        await setup.change(STARTED)
        assert (await setup.state(transfer.channel))[0]
        await setup.finish(transfer)
        asked = [cycle for cycle, _, _ in setup.memory.requests]
        n = request.came + 1
        assert asked[:8] == [n + READ + place for place in range(len(asked[:8]))], (n, asked)
        assert await setup.state(transfer.channel) == (False, DONE)
    # A header is taken six cycles behind the footer before it; as a beat, five.
    requests = [setup.requests.send(Transfer(page << 6 | 32, 0x2000, CELL)) for page in range(4)]
    for _ in requests:
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
    each = {1: 10, 4: 6}[setup.lanes]
    assert [request.came - requests[0].came for request in requests] == [0, each, 2 * each, 3 * each]


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
        if starts:
            await setup.change(STARTED)
            await setup.finish(transfer)
        else:
            await setup.rest(30)
        assert not any(change[3] == STARTED for change in setup.changes), other
        setup.changes.clear()
        return transfer

    # The source, kind, address and PDID; payload; check, identity and number.
    for flip in [3, 41, 60, 120, 131, 250, 300, 390, 420, 500]:
        await judge(exanet.REFUSED_DAMAGED, flip=flip)
    for size in [0, 16, 31, 33, 48, 64]:
        await judge(exanet.REFUSED_DAMAGED, size=size, payload=bytes(size))
    # In wider beats the header says where a packet ends: there are no others, and no header alone.
    if setup.lanes == 1:
        await judge(exanet.REFUSED_DAMAGED, flip=25)
        for size in [0, 16, 48, 64, 96]:
            await judge(exanet.REFUSED_DAMAGED, payload=bytes(size))
        # Without a footer there is nobody to be answered.
        setup.requests.source.send(Transfer(32, 0, CELL).request(1).words()[:1])
        await setup.rest(30)
    await judge(exanet.REFUSED_DAMAGED, kind=exanet.SMALL)
    await judge(exanet.REFUSED_DAMAGED, kind=exanet.SMALL, interface=PAGES, domain=0)
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
    # Odd addresses are given up, as those of descriptors are, and all channels are free.
    for wrong in [{"source": 0x3001}, {"address": 8}]:
        transfer = Transfer(page << 6 | 32, **{"source": 0x3000, "size": CELL} | wrong)
        setup.requests.send(transfer)
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT
        await setup.change(GIVEN_UP)
        setup.transactions[transfer.channel] -= 1
        assert await setup.state(transfer.channel) == (False, ADDRESS)
    for _ in range(32):
        setup.requests.send(Transfer(page << 6 | 32, 0x3000, CELL))
    for _ in range(32):
        assert await setup.verdict() == exanet.ACKNOWLEDGEMENT


@cocotb.test()
async def a_page_has_32_read_channels(dut):
    """Catches a request that gets another channel than the first that was freed, none, or another page's."""
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
    for free in [31, 4]:
        setup.answer(transfers[free], 0)
        await setup.change(FINISHED)
    for free in [19, 31, 4]:
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
            source, node = setup.whole(random.randrange(1 << 34)), random.choice([77, 0, (1 << 22) - 1])
            requests.send_any(Transfer(page << 6 | 32, source, size, node), sent)
    dut._log.info("%d requests, %d under way", len(sent), len(busy))
    coverage.close(dut._log)
