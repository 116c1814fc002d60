"""The accelerator among modules that are played: packets, memory, and their cycles."""

import os
import random
from collections import deque

import cocotb
import exanet
from accelerator import BLOCK, DATA, NAME, NOTIFY, PAIRS, START, VECTOR_AT, WORD_AT, Setup, board, boards
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam
from operation import (
    ASK,
    CONTRIBUTION,
    DOUBLE,
    EXCHANGE,
    FAILED,
    FLOAT,
    INT,
    MAX,
    MIN,
    NOT_YET,
    RESULT,
    SUM,
    Operation,
)

from bench import Coverage

LATENCY, TIMEOUT, LONGEST_TIMEOUT = 8, 400, 1600
CYCLES = int(os.environ.get("WEFT_RTL_CYCLES", "100000"))
STATES = ["idle", "fetching", "awaiting", "gathering", "exchanging", "finishing", "failing"]
# Of vectors: at the limits of words and of a packet.
SIZES = [4, 8, 12, 16, 20, 32, 64, 128, 240, 248, 256]


@cocotb.test()
async def four_ranks_of_every_type(dut):
    """Catches another operation or type, operands that are swapped, and a size that is not whole words."""
    setup = Setup(dut, 8, 1)
    rng = setup.bench.random
    await setup.start()
    number = 0
    for order in [(0, 1, 2, 3), (3, 0, 2, 1), (1, 2, 0, 3), (2, 1, 3, 0)]:
        for data_type in [INT, FLOAT, DOUBLE]:
            for operation in [SUM, MIN, MAX]:
                members = board(2, order)
                size = rng.choice([size for size in SIZES if size % (8 if data_type == DOUBLE else 4) == 0])
                of = Operation(members, members.index(8), size, operation, data_type, number=number)
                await setup.whole(of.fill(rng))
                number += 1


@cocotb.test()
async def a_client_sends_and_awaits(dut):
    """Catches a contribution to another than the server, or of another member, and a changed result."""
    for node in [9, 10, 11]:
        setup = Setup(dut, node, 2)
        await setup.start()
        for number, size in enumerate(SIZES):
            members = board(2, (2, 3, 0, 1)) + board(0)
            of = Operation(members, members.index(node), size, number=number, group=node)
            await setup.whole(of.fill(setup.bench.random))


@cocotb.test()
async def exchanges_of_all_levels(dut):
    """Catches a partner of another distance, and an upper board's vector taken for the lower one's."""
    for own_board, count in [(0, 2), (1, 2), (2, 4), (5, 8), (200, 256)]:
        members = boards(count)
        setup = Setup(dut, 4 * own_board, 3)
        await setup.start()
        # A minimum with zeros of both signs says which operand was the lower one.
        for number, (operation, data_type) in enumerate([(SUM, DOUBLE), (MIN, FLOAT)]):
            of = Operation(members, 4 * own_board, 32, operation, data_type, number=number)
            await setup.whole(of.fill(setup.bench.random))


@cocotb.test()
async def every_packet_at_its_edge(dut):
    """Catches a state, a reduction or a packet that takes other cycles than the head of the block says."""
    for trial in range(40):
        setup = Setup(dut, 4 * (trial % 2), 100 + trial)
        rng, memory = setup.bench.random, setup.memory
        memory.latency = rng.choice([3, 4, 19, 60])
        await setup.start()
        order = [0, 1, 2, 3]
        rng.shuffle(order)
        members = board(0, tuple(order)) + board(1, tuple(order))
        of = Operation(members, members.index(4 * (trial % 2)), rng.choice(SIZES)).fill(rng)
        coming = of.coming()
        rng.shuffle(coming)
        before = rng.randint(0, len(coming))
        for packet in coming[:before]:
            setup.send(packet)
        setup.program(of)
        for packet in coming[before:]:
            async for _ in setup.bench.cycles(rng.choice([1, 10, 40, 100])):
                pass
            setup.send(packet)
        headers = [await setup.expect(packet) for packet in of.going()]
        written = await setup.told(of, 1)
        words, came = -(-of.size // 16), {}
        for packet, footer in zip(coming, setup.footers, strict=True):
            came[packet.kind, packet.identity & 0xFF] = footer + 1
        assert memory.requests[0] == (setup.registers.written + 1, 0)
        came[CONTRIBUTION, of.own % 4] = memory.read[0][0] + 1
        ready = came[CONTRIBUTION, 0]
        for step in [(CONTRIBUTION, 1), (CONTRIBUTION, 2), (CONTRIBUTION, 3), (EXCHANGE, 1)]:
            if step == (EXCHANGE, 1):
                assert memory.requests[1] == (ready, 1)
            ready = max(ready, came[step], came[CONTRIBUTION, of.own % 4]) + words + LATENCY
        assert (memory.requests[2], written) == ((ready, 1), ready)
        # A packet begins behind its lookup, unless another is on the bus.
        free = 0
        for place, header in enumerate(headers):
            looked_up = memory.read[min(place + 1, 2)][0] + 1
            assert header == max(free, looked_up), f"packet {place} at {header}, not {max(free, looked_up)}"
            free = header + words + 2


@cocotb.test()
async def a_clients_packets_at_their_edges(dut):
    """Catches a client that sends or writes at another edge, for a result that comes early or late."""
    for size, gap in [(4, 0), (4, 30), (64, 60), (256, 200)]:
        setup = Setup(dut, 6, size)
        await setup.start()
        of = Operation(boards(4), 6, size).fill(setup.bench.random)
        setup.program(of)
        header = await setup.expect(of.going()[0])
        async for _ in setup.bench.cycles(gap):
            pass
        setup.send(of.coming()[0])
        written = await setup.told(of, 1)
        memory = setup.memory
        assert list(memory.requests) == [(setup.registers.written + 1, 0), (memory.read[0][0] + 1, 1)]
        assert header == memory.read[1][0] + 1
        assert written == setup.footers[0] + 3


@cocotb.test()
async def packets_of_the_vectors(dut):
    """Catches a field or a check that is not where wire.rs has it: both read one file."""
    kinds = [CONTRIBUTION, EXCHANGE, RESULT, ASK, NOT_YET, FAILED]
    found = {packet.kind: (packet, words) for packet, words in exanet.vectors(kinds)}
    assert sorted(found) == kinds
    setup = Setup(dut, 0, 4)
    await setup.start()
    packet, words = found[CONTRIBUTION]
    number, block = packet.identity >> 32, packet.identity >> 8 & 0xFFFFFF
    of = Operation(boards(1), 0, packet.size, group=packet.number, number=number, block=block)
    of.fill(setup.bench.random)
    of.vectors[3] = packet.payload
    setup.program(of)
    for other in of.coming()[:2]:
        setup.send(other)
    setup.source.send(words)
    for packet in of.going():
        await setup.expect(packet)
    await setup.told(of, 1)
    not_yet, words = found[NOT_YET]
    setup.send(exanet.Packet(ASK, 0, 1, not_yet.number, not_yet.identity))
    assert (await setup.packet())[1] == words
    setup = Setup(dut, 1, 5)
    await setup.start()
    result, words = found[RESULT]
    of = Operation(boards(1), 1, 4, group=result.number, number=result.identity >> 32, block=1)
    of.fill(setup.bench.random)
    setup.program(of)
    await setup.expect(of.going()[0])
    setup.source.send(words)
    await setup.bench.until(lambda: len(setup.memory.written) == 2, 200, "the result")
    assert setup.memory.written[0][1:] == (VECTOR_AT, result.payload)


@cocotb.test()
async def vectors_that_are_early(dut):
    """Catches a vector that is lost or taken for another's, if it comes before software has called."""
    for node in [0, 3]:
        setup = Setup(dut, node, 6)
        await setup.start()
        names = [(1, 0, 0), (1, 0, 1), (2, 0, 0), (1, 1, 0)]
        all_of_them = [
            Operation(boards(2), node, 48, group=group, number=number, block=block).fill(setup.bench.random)
            for group, number, block in names
        ]
        for of in reversed(all_of_them):
            for packet in of.coming():
                setup.send(packet)
        await setup.bench.until(lambda setup=setup: not setup.source.queue, 2000, "sending")
        for of in all_of_them:
            setup.program(of)
            for packet in of.going():
                await setup.expect(packet)
            await setup.told(of, 1)


@cocotb.test()
async def what_comes_again_changes_nothing(dut):
    """Catches a vector that is taken twice: beside the first, behind it, and when the operation is over."""
    for node in [0, 2]:
        setup = Setup(dut, node, 7)
        rng = setup.bench.random
        await setup.start()
        past = []
        for number in range(6):
            of = Operation(boards(2), node, rng.choice(SIZES), number=number).fill(rng)
            other = Operation(boards(2), node, of.size, number=number).fill(rng)
            setup.program(of)
            for packet, wrong in zip(of.coming(), other.coming(), strict=True):
                setup.send(packet)
                # The first counts, whatever comes behind it.
                setup.send(wrong)
            past += other.coming()
            for packet in past[-8:]:
                setup.send(packet)
            for packet in of.going():
                await setup.expect(packet)
            await setup.told(of, 1)
            await setup.bench.until(lambda setup=setup: not setup.source.queue, 2000, "sending")
        # They have not taken the places of others.
        await setup.whole(Operation(boards(8), node, 256, number=9).fill(rng))


@cocotb.test()
async def more_than_there_is_room_for(dut):
    """Catches buffers or places that are lost: vectors of many operations, dropped and asked for."""
    setup = Setup(dut, 0, 8)
    rng = setup.bench.random
    await setup.start()
    for _ in range(3):
        for number in range(100, 120):
            for packet in Operation(boards(8), 0, 256, group=number, number=number).fill(rng).coming():
                setup.send(packet)
    await setup.bench.until(lambda: not setup.source.queue, 20_000, "sending")
    for number in range(6):
        of = Operation(boards(2), 0, 64, number=number).fill(rng)
        setup.program(of)
        for packet in of.coming():
            setup.send(packet)
        going = of.going()
        while going:
            _, words = await setup.packet(2 * TIMEOUT)
            kind = words[0] >> 40 & 0xFF
            if kind == ASK:
                asked = words[0] >> 90 & 0x3FFFFF
                again = next(packet for packet in of.coming() if packet.source == asked)
                setup.send(again)
            else:
                assert words == going.pop(0).words()
        await setup.told(of, 1)


@cocotb.test()
async def bad_packets_change_nothing(dut):
    """Catches a packet that is taken although it is damaged, too long, cut short, or of no step."""
    setup = Setup(dut, 0, 9)
    rng = setup.bench.random
    await setup.start()
    of = Operation(boards(2), 0, 40).fill(rng)
    other = Operation(boards(2), 0, 40).fill(rng)
    setup.program(of)
    words = len(other.contribution(1).words())
    for flip in [0, 40, 127, 128, 300, 128 * (words - 1), 128 * (words - 1) + 31, 128 * (words - 1) + 96]:
        setup.send(other.contribution(1), flip)
    for step in [4, 5, 255]:
        setup.send(other.packet(CONTRIBUTION, 1, 0, step, bytes(40)))
    for step in [0, 9, 200]:
        setup.send(other.packet(EXCHANGE, 4, 0, step, bytes(40)))
    setup.send(other.packet(0x01, 1, 0, 1, bytes(40)))
    setup.send(other.packet(0x12, 1, 0, 1, bytes(40)))
    setup.send(other.packet(CONTRIBUTION, 1, 0, 1, bytes(272)))
    for size, payload in [(33, bytes(16)), (16, bytes(32)), (0, bytes(16))]:
        packet = exanet.Packet(CONTRIBUTION, 0, 1, of.group, of.identity(1), size=size, payload=payload)
        setup.source.send(packet.words())
    # A header alone is no packet.
    setup.source.send(other.contribution(1).words()[:1])
    for packet in of.coming():
        setup.send(packet)
    for packet in of.going():
        await setup.expect(packet, 2000)
    await setup.told(of, 1)


@cocotb.test()
async def software_that_is_wrong(dut):
    """Catches an operation that begins although there is none such, or another runs; a wrong register."""
    setup = Setup(dut, 1, 10)
    await setup.start()
    of = Operation(boards(2), 1, 24).fill(setup.bench.random)
    wrong = [{"ranks": ranks} for ranks in [0, 2, 6, 12, 1028, 2044]]
    wrong += [{"own": 8}, {"size": 0}, {"size": 260}, {"size": 6}, {"operation": 3}, {"data_type": 3}]
    wrong += [{"size": 12, "data_type": DOUBLE}]
    for bad in wrong:
        setup.program(of, bad)
        await setup.idle()
        assert setup.registers.answers.pop() == 2, bad
    assert not setup.memory.requests
    setup.registers.answers.clear()
    setup.program(of)
    await setup.expect(of.going()[0])
    # While it runs.
    setup.program(Operation(boards(2), 1, 8, number=7).fill(setup.bench.random))
    setup.memory.vector = of.vectors[1]
    await setup.idle()
    assert list(setup.registers.answers) == [0] * 9 + [2]
    setup.send(of.coming()[0])
    await setup.told(of, 1)
    for address in [40, 48, 4104, 8184]:
        setup.registers.queue.append((address, 1))
        await setup.idle()
        assert setup.registers.answers.pop() == 2, address
    dut.s_axil_wstrb.value = 0x0F
    setup.registers.queue.append((DATA, 0))
    await setup.idle()
    assert setup.registers.answers.pop() == 2


@cocotb.test()
async def stores_behind_a_reset(dut):
    """Catches a store that is answered while the tables are cleared, but lost."""
    setup = Setup(dut, 1, 20)
    await setup.bench.reset(0)
    setup.registers.queue.append((NOTIFY, WORD_AT))
    await setup.whole(Operation(boards(2), 1, 24).fill(setup.bench.random))
    assert list(setup.registers.answers) == [0] * 6


async def asked(setup: Setup, of: Operation, nodes: list[int], after: tuple[int, int]) -> int:
    """The module asks these nodes, so many cycles after a cycle, and some for a lookup. Returns when."""
    begin, wait = after
    cycles = [await setup.expect(of.packet(ASK, of.node, node), wait + 100) for node in nodes]
    assert 0 <= cycles[0] - begin - wait <= 16, f"asked {cycles[0] - begin} cycles later, not {wait}"
    return cycles[0]


@cocotb.test()
async def who_waits_asks_and_gives_up(dut):
    """Catches a state that waits for ever, asks others, or at another time, and a failure not told."""
    waits = [TIMEOUT, 2 * TIMEOUT, LONGEST_TIMEOUT]
    for node, come, missing in [
        (1, [], [0]),
        (0, [], [1, 2, 3]),
        (0, [1], [2, 3]),
        (0, [1, 2], [3]),
        (0, [2], [1, 3]),
        (0, [1, 2, 3], [4]),
        (0, [1, 2, 3, 4], [8]),
    ]:
        setup = Setup(dut, node, 11)
        await setup.start()
        of = Operation(boards(4), node, 16).fill(setup.bench.random)
        setup.program(of)
        for packet in of.coming():
            if packet.source in come:
                setup.send(packet)
        sent = [packet for packet in of.going() if packet.kind == CONTRIBUTION]
        sent += [packet for packet in of.going() if packet.kind == EXCHANGE][: max(0, len(come) - 2)]
        for packet in sent:
            await setup.expect(packet)
        await setup.bench.until(
            lambda setup=setup: bool(setup.memory.read) and not setup.source.queue, 400, "a vector"
        )
        begin = max(setup.memory.read[0][0] + 1, *(footer + 1 for footer in setup.footers), 0)
        for wait in waits:
            # The time of each question is that of the one before, but for its lookup.
            await asked(setup, of, missing, (begin, wait))
            begin += wait
        await setup.told(of, 2, missing[0], LONGEST_TIMEOUT + 100)
        # The group's next operation fails at once, another group's does not.
        later = Operation(boards(4), node, 16, number=1).fill(setup.bench.random)
        for packet in later.coming():
            setup.send(packet)
        setup.program(later)
        await setup.told(later, 2, node)
        setup.send(later.packet(ASK, 3, node))
        await setup.expect(later.packet(FAILED, node, 3))
        await setup.whole(Operation(boards(4), node, 16, group=2).fill(setup.bench.random))


@cocotb.test()
async def who_is_alive_is_left_alone(dut):
    """Catches patience that does not grow, and questions that are counted although they were answered."""
    for node, other in [(2, 0), (0, 3), (0, 4)]:
        setup = Setup(dut, node, 12)
        await setup.start()
        of = Operation(boards(2), node, 16).fill(setup.bench.random)
        setup.program(of)
        last = of.coming()[{2: 0, 0: -1 if other == 4 else -2}[node]]
        for packet in of.coming():
            if packet.kind == CONTRIBUTION and packet is not last and packet.source != other:
                setup.send(packet)
        for packet in of.going():
            if packet.kind == CONTRIBUTION or (packet.kind == EXCHANGE and other == 4):
                await setup.expect(packet)
        await setup.bench.until(
            lambda setup=setup: bool(setup.memory.read) and not setup.source.queue, 400, "a vector"
        )
        begin = max(setup.memory.read[0][0] + 1, *(footer + 1 for footer in setup.footers), 0)
        await asked(setup, of, [other], (begin, TIMEOUT))
        for patience in [1, 2, 4, 8]:
            footers = len(setup.footers)
            setup.send(of.packet(NOT_YET, other, node))
            await setup.bench.until(
                lambda setup=setup, footers=footers: len(setup.footers) > footers, 50, "an answer"
            )
            await asked(setup, of, [other], (setup.footers[-1] + 1, patience * TIMEOUT))
        for packet in of.coming():
            if packet.source == other or packet.kind != CONTRIBUTION:
                setup.send(packet)
        for packet in of.going():
            if packet.kind == RESULT or (packet.kind == EXCHANGE and other != 4):
                await setup.expect(packet)
        await setup.told(of, 1)


@cocotb.test()
async def who_hears_of_a_failure_fails(dut):
    """Catches a failure that is waited through: in each state that waits, and before it does."""
    for node, come in [(1, 0), (0, 0), (0, 2), (0, 3), (0, 4)]:
        for early in [0, 100]:
            setup = Setup(dut, node, 13)
            setup.memory.latency = 30
            await setup.start()
            of = Operation(boards(4), node, 256).fill(setup.bench.random)
            setup.program(of)
            for packet in of.coming()[:come]:
                setup.send(packet)
            await setup.bench.until(
                lambda setup=setup: bool(dut.state.value) and not setup.source.queue, 200, "sending"
            )
            async for _ in setup.bench.cycles(early):
                pass
            setup.send(of.packet(FAILED, 77, node))
            await setup.told(of, 2, 77)
            # Vectors of the group are dropped, and others are told.
            async for _ in setup.bench.cycles(60):
                pass
            setup.sink.packets.clear()
            setup.send(of.packet(ASK, 9, node))
            await setup.expect(of.packet(FAILED, node, 9))


@cocotb.test()
async def who_is_asked_sends_again(dut):
    """Catches a vector that is not kept, or another's, and an answer to one that has not gone."""
    for node in [1, 0]:
        setup = Setup(dut, node, 14)
        await setup.start()
        of = Operation(boards(4), node, 72, number=5).fill(setup.bench.random)
        setup.send(of.packet(ASK, 2, node))
        await setup.expect(of.packet(NOT_YET, node, 2))
        setup.program(of)
        for packet in of.coming():
            setup.send(packet)
        for packet in of.going():
            await setup.expect(packet)
        for packet in reversed(of.going()):
            setup.send(of.packet(ASK, packet.node, node))
            await setup.expect(packet)
        await setup.told(of, 1)
        for packet in of.going():
            setup.send(of.packet(ASK, packet.node, node))
            await setup.expect(packet)
        setup.send(of.packet(ASK, 1000, node))
        await setup.expect(of.packet(NOT_YET, node, 1000))
        # Forgotten when the group's next operation is done, and not when another group's is.
        await setup.whole(Operation(boards(4), node, 8, group=3).fill(setup.bench.random))
        to = of.going()[0].node
        setup.send(of.packet(ASK, to, node))
        await setup.expect(of.going()[0])
        await setup.whole(Operation(boards(4), node, 8, number=6).fill(setup.bench.random))
        setup.send(of.packet(ASK, to, node))
        await setup.expect(of.packet(NOT_YET, node, to))
        # An operation that is early has the place of one whose vectors were sent to the same.
        for group in range(10, 16):
            await setup.whole(Operation(boards(4), node, 8, group=group).fill(setup.bench.random))
        for group in range(20, 24):
            early = Operation(boards(4), node, 8, group=group).fill(setup.bench.random)
            setup.send(early.coming()[0])
            setup.send(early.packet(ASK, to, node))
            await setup.expect(early.packet(NOT_YET, node, to))


@cocotb.test()
async def who_is_asked_during_a_lookup_sends_once(dut):
    """Catches a vector that goes twice though the question came before it was due, by a cycle at least."""
    seen = set()
    for wait in range(22, 34):
        setup = Setup(dut, 1, wait)
        await setup.start()
        setup.memory.latency = 30
        of = Operation(boards(4), 1, 16).fill(setup.bench.random)
        setup.program(of)
        requests = setup.memory.requests
        await setup.bench.until(lambda requests=requests: len(requests) == 2, 200, "the lookup")
        async for _ in setup.bench.cycles(wait):
            pass
        setup.send(of.packet(ASK, 0, 1))
        contribution = of.going()[0]
        await setup.expect(contribution)
        _, words = await setup.packet()
        # The cycle of the footer, from that of the last pair.
        behind = setup.footers[0] - setup.memory.read[1][0]
        expected = contribution if behind >= 0 else of.packet(NOT_YET, 1, 0)
        assert words == expected.words(), f"{behind} cycles behind the last pair"
        seen.add(behind)
    assert {-2, -1, 0, 1} <= seen, seen


@cocotb.test()
async def reset_in_the_middle(dut):
    """Catches state that survives a reset: a vector, a packet, a write or an operation that had begun."""
    for node in [0, 3]:
        for after in [3, 12, 20, 30, 45, 60, 75, 90, 120, 150]:
            setup = Setup(dut, node, 15)
            await setup.start()
            of = Operation(boards(2), node, 256).fill(setup.bench.random)
            setup.program(of)
            for packet in of.coming():
                setup.send(packet)
            async for _ in setup.bench.cycles(after):
                pass
            setup = Setup(dut, node, 16)
            await setup.start()
            # The same name: nothing of it may have come.
            again = Operation(boards(2), node, 128).fill(setup.bench.random)
            await setup.whole(again)


@cocotb.test()
async def memory_and_registers_of_others(dut):
    """Catches what our own drivers would not see: vector, table, result and registers by cocotbext-axi."""
    for node in [4, 6]:
        setup = Setup(dut, node, 17)
        await setup.bench.reset(64)
        setup.bench.parts.remove(setup.memory)
        setup.bench.parts.remove(setup.registers)
        ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.reset, size=1 << 16)
        registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.reset)
        of = Operation(boards(4), node, 100, SUM, FLOAT, 3, 4, 5).fill(setup.bench.random)
        ram.write(0x1100, of.vectors[node] + b"\xa5" * 156)
        pairs = (
            member.to_bytes(4, "little") + rank.to_bytes(4, "little")
            for rank, member in enumerate(of.members)
        )
        ram.write(0x2020, b"".join(pairs))
        start = len(of.members) | node << 16 | of.size << 32 | of.operation << 48 | of.data_type << 52
        for address, value in [
            (NOTIFY, 0x3010),
            (DATA, 0x1100),
            (PAIRS, 0x2020),
            (NAME, 4 << 32 | 3),
            (BLOCK, 5),
        ]:
            await registers.write_qword(address, value)
        assert [await registers.read_qword(address) for address in [NOTIFY, DATA, PAIRS, START]] == [
            0x3010,
            0x1100,
            0x2020,
            0,
        ]
        await registers.write_qword(START, start)
        assert await registers.read_qword(START) == 1
        for packet in of.coming():
            setup.send(packet)
        for packet in of.going():
            await setup.expect(packet)
        async for _ in setup.bench.cycles(200):
            pass
        # Nothing is written behind the vector.
        assert ram.read(0x1100, 256) == of.of_boards(0, 4) + b"\xa5" * 156
        assert int.from_bytes(ram.read(0x3010, 16), "little") == 3 | 4 << 32 | 5 << 64 | 1 << 88
        assert await registers.read_qword(START) == 0
        answer = await registers.read(16, 8)
        assert answer.resp != 0


class Others:
    """All other modules: send what the module needs, lose some, answer questions, and check what it sends."""

    def __init__(self, setup: Setup, coverage: Coverage):
        self.setup, self.coverage = setup, coverage
        self.operations: dict[tuple, Operation] = {}
        # Vectors that the module is to send, in their order, and answers in any order.
        self.vectors: deque[list[int]] = deque()
        self.answers: list[list[int]] = []
        self.sent: list[exanet.Packet] = []

    def name(self, of: Operation) -> tuple:
        """The name of an operation."""
        return of.group, of.number, of.block

    def play(self, of: Operation, packet: exanet.Packet):
        """Sends a packet, or loses it, or sends it damaged, or twice."""
        rng, setup = self.setup.bench.random, self.setup
        luck = rng.random()
        if luck < 0.03:
            self.coverage.hit("luck", "lost")
        elif luck < 0.06:
            self.coverage.hit("luck", "damaged")
            setup.send(packet, rng.randrange(128 * len(packet.words())))
        else:
            self.coverage.hit("luck", "twice" if luck < 0.1 else "well")
            setup.send(packet)
            if luck < 0.1:
                setup.send(packet)

    def check(self):
        """Looks at what the module has sent."""
        while self.setup.sink.packets:
            cycle, words = self.setup.sink.packets.popleft()
            kind, to = words[0] >> 40 & 0xFF, words[0] >> 90 & 0x3FFFFF
            self.coverage.hit("out", kind)
            name = words[-1] >> 96, words[-1] >> 64 & 0xFFFF_FFFF, words[-1] >> 40 & 0xFFFFFF
            if kind == ASK:
                of = self.operations[name]
                assert words == of.packet(ASK, of.node, to).words()
                found = [packet for packet in of.coming() if packet.source == to]
                assert len(found) == 1, f"cycle {cycle}: asked {to}, which sends nothing"
                if self.setup.bench.random.random() < 0.2:
                    self.setup.send(of.packet(NOT_YET, to, of.node))
                else:
                    self.play(of, found[0])
            elif words in self.answers:
                self.answers.remove(words)
            else:
                assert self.vectors, f"cycle {cycle}: a packet too many: {words[0]:032x}"
                expected = self.vectors.popleft()
                assert words == expected, f"cycle {cycle}: {words[0]:032x}, not {expected[0]:032x}"
                if kind == CONTRIBUTION:
                    self.play(self.operations[name], self.operations[name].coming()[0])


@cocotb.test()
async def random_operations_under_back_pressure(dut):
    """Catches what nobody thought of: all types, sizes, groups; early, lost, damaged, repeated packets."""
    coverage = Coverage(
        state=STATES,
        transition=[
            ("idle", "fetching"),
            ("fetching", "awaiting"),
            ("fetching", "gathering"),
            ("awaiting", "finishing"),
            ("gathering", "exchanging"),
            ("gathering", "finishing"),
            ("exchanging", "finishing"),
            ("finishing", "idle"),
        ],
        out=[CONTRIBUTION, EXCHANGE, RESULT, ASK, NOT_YET, FAILED],
        operation=[
            (operation, data_type) for operation in [SUM, MIN, MAX] for data_type in [INT, FLOAT, DOUBLE]
        ],
        size=SIZES,
        levels=list(range(9)),
        member=[("client", member) for member in range(4)] + [("server", member) for member in range(4)],
        luck=["well", "lost", "damaged", "twice"],
        waits=["network in", "network out", "read", "read word", "write", "write word", "registers"],
    )
    coverage.excuse("state", "failing", "a failure ends all operations of its group: the tests above have it")
    coverage.excuse("out", FAILED, "as above")
    coverage.excuse("waits", "network in", "the module takes whatever comes, but while it clears its tables")
    coverage.excuse("waits", "registers", "a store waits only where software does not take the answer before")
    coverage.excuse("waits", "read word", "a lookup waits only behind questions to a board")
    cycles, trial, begun, first_seed = 0, 0, 0, int(os.environ.get("WEFT_RTL_SEED", "10"))
    while cycles < CYCLES:
        trial += 1
        seed = first_seed + trial
        rng = random.Random(seed)
        # Each number of boards, member and role comes in turn, all else by chance.
        count, member, is_server = 1 << trial % 9, trial % 4, trial // 4 % 2 == 0
        order = rng.sample([1, 2, 3], 3)
        order.insert(member if is_server else (member + 1 + rng.randrange(3)) % 4, 0)
        members = [node for number in range(count) for node in board(number, tuple(order))]
        own = 4 * rng.randrange(count) + member
        setup = Setup(dut, members[own], seed)
        await setup.start()
        others = Others(setup, coverage)
        role = "server" if members[own] % 4 == 0 else "client"
        before = "idle"
        programs: deque[Operation] = deque()
        numbers = [0, 0]
        for _ in range(3):
            begun += 1
            group, data_type = rng.randrange(2), begun % 3
            sizes = [size for size in SIZES if size % (8 if data_type == DOUBLE else 4) == 0]
            size, operation = sizes[begun // 3 % len(sizes)], begun // 3 % 3
            of = Operation(members, own, size, operation, data_type, group, numbers[group])
            numbers[group] += 1
            programs.append(of.fill(rng))
            others.operations[others.name(of)] = of
        ahead: deque[Operation] = deque(programs)
        running: Operation | None = None
        done = 0
        setup.source.idle, setup.sink.busy, setup.memory.busy = (
            rng.choice([0, 0, 0.5, 0.8]) for _ in range(3)
        )
        setup.memory.latency = rng.choice([2, 10, 30])
        limit = 60_000
        while done < 3:
            async for _ in setup.bench.cycles(1):
                cycles += 1
                limit -= 1
            assert limit, "operations that do not end"
            others.check()
            state = STATES[int(dut.state.value)]
            coverage.hit("state", state)
            if state != before:
                coverage.hit("transition", (before, state))
                before = state
            for name, valid, ready in [
                ("network in", dut.s_axis_net_tvalid, dut.s_axis_net_tready),
                ("network out", dut.m_axis_net_tvalid, dut.m_axis_net_tready),
                ("read", dut.m_axi_arvalid, dut.m_axi_arready),
                ("read word", dut.m_axi_rvalid, dut.m_axi_rready),
                ("write", dut.m_axi_awvalid, dut.m_axi_awready),
                ("write word", dut.m_axi_wvalid, dut.m_axi_wready),
                ("registers", dut.s_axil_awvalid, dut.s_axil_awready),
            ]:
                if valid.value and not ready.value:
                    coverage.hit("waits", name)
            # Others are ahead of the module by one operation at most.
            if ahead and len(ahead) + 1 >= len(programs) + (running is None) and rng.random() < 0.02:
                of = ahead.popleft()
                coming = of.coming()
                rng.shuffle(coming)
                # A result comes when the module's own vector has gone.
                for packet in coming if role == "server" else []:
                    others.play(of, packet)
            if running is None and state == "idle" and programs and not setup.registers.queue:
                running = programs.popleft()
                setup.program(running)
                others.vectors.extend(packet.words() for packet in running.going())
                coverage.hit("operation", (running.operation, running.data_type))
                coverage.hit("size", running.size)
                coverage.hit("levels", running.levels)
                coverage.hit("member", (role, own % 4))
            if rng.random() < 0.002:
                of = rng.choice(list(others.operations.values()))
                stranger = 1 << 20
                setup.send(of.packet(ASK, stranger, of.node))
                others.answers.append(of.packet(NOT_YET, of.node, stranger).words())
            if running is not None and len(setup.memory.written) == 2:
                await setup.told(running, 1)
                cycles += 4
                running, done = None, done + 1
        setup.source.idle = setup.sink.busy = setup.memory.busy = 0.0

        def is_done(setup: Setup = setup, others: Others = others) -> bool:
            others.check()
            return not (setup.source.queue or setup.source.current or others.vectors or others.answers)

        await setup.bench.until(is_done, 5000, "draining")
    coverage.close(dut._log)
