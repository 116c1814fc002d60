"""Allreduce operations as they have to be: packets, order of reduction, arithmetic of this machine."""

import ctypes
import math
import random
import struct
from dataclasses import dataclass, field

from exanet import Packet

CONTRIBUTION, EXCHANGE, RESULT, ASK, NOT_YET, FAILED = range(0x0C, 0x12)
SUM, MIN, MAX = range(3)
INT, FLOAT, DOUBLE = range(3)
WIDTH = {INT: 4, FLOAT: 4, DOUBLE: 8}
CODE = {INT: "i", FLOAT: "f", DOUBLE: "d"}
NO_NUMBER = {FLOAT: bytes.fromhex("0000c07f"), DOUBLE: bytes.fromhex("000000000000f87f")}


def element(lower: bytes, upper: bytes, operation: int, data_type: int) -> bytes:
    """One element of a reduction."""
    code = "<" + CODE[data_type]
    (a,), (b,) = struct.unpack(code, lower), struct.unpack(code, upper)
    if operation == MIN:
        return upper if b < a else lower
    if operation == MAX:
        return upper if b > a else lower
    if data_type == INT:
        return struct.pack("<I", (a + b) & 0xFFFF_FFFF)
    total = a + b
    if math.isnan(total):
        return NO_NUMBER[data_type]
    # A sum of two singles in double precision, rounded to single, is rounded once.
    return bytes(ctypes.c_float(total)) if data_type == FLOAT else struct.pack("<d", total)


def combine(lower: bytes, upper: bytes, operation: int, data_type: int) -> bytes:
    """The reduction of two vectors, the lower ranks' first."""
    width = WIDTH[data_type]
    pairs = ((lower[i : i + width], upper[i : i + width]) for i in range(0, len(lower), width))
    return b"".join(element(a, b, operation, data_type) for a, b in pairs)


def some_bytes(rng: random.Random, size: int, data_type: int) -> bytes:
    """A vector: random bits, small numbers, and what is special."""
    elements = []
    for _ in range(0, size, WIDTH[data_type]):
        kind = rng.random()
        if data_type == INT or kind < 0.3:
            elements.append(rng.randbytes(WIDTH[data_type]))
        elif kind < 0.8:
            elements.append(
                struct.pack("<" + CODE[data_type], rng.randint(-999, 999) / rng.choice([1, 3, 8]))
            )
        else:
            special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-310, 1e-40, -1e-40]
            value = rng.choice(special)
            is_single = data_type == FLOAT
            elements.append(bytes(ctypes.c_float(value)) if is_single else struct.pack("<d", value))
    return b"".join(elements)


@dataclass
class Operation:
    """An operation on one block, and all vectors of its members."""

    members: list[int]
    own: int
    size: int = 16
    operation: int = SUM
    data_type: int = INT
    group: int = 1
    number: int = 0
    block: int = 0
    vectors: list[bytes] = field(default_factory=list)

    def fill(self, rng: random.Random) -> "Operation":
        """Gives each member a vector."""
        self.vectors = [some_bytes(rng, self.size, self.data_type) for _ in self.members]
        return self

    @property
    def node(self) -> int:
        """The module's own node."""
        return self.members[self.own]

    @property
    def board(self) -> int:
        """The module's own board."""
        return self.own // 4

    @property
    def levels(self) -> int:
        """Exchanges."""
        return (len(self.members) // 4).bit_length() - 1

    def identity(self, step: int) -> int:
        """The identity of a packet."""
        return self.number << 32 | self.block << 8 | step

    def server(self, board: int) -> int:
        """The server of a board."""
        return next(node for node in self.members[4 * board : 4 * board + 4] if node % 4 == 0)

    def of_boards(self, first: int, boards: int) -> bytes:
        """The reduction of a power of two of boards."""
        both = lambda a, b: combine(a, b, self.operation, self.data_type)  # noqa: E731
        if boards > 1:
            half = boards // 2
            return both(self.of_boards(first, half), self.of_boards(first + half, half))
        total, *others = self.vectors[4 * first : 4 * first + 4]
        for other in others:
            total = both(total, other)
        return total

    def of_level(self, board: int, level: int) -> bytes:
        """The vector of the server of a board behind `level` exchanges."""
        boards = 1 << level
        return self.of_boards(board // boards * boards, boards)

    def packet(self, kind: int, source: int, to: int, step: int = 0, payload: bytes = b"") -> Packet:
        """A packet of the operation."""
        size = len(payload)
        return Packet(kind, to, source, self.group, self.identity(step), size=size, payload=payload)

    def contribution(self, member: int) -> Packet:
        """A member's vector, to the server of the own board."""
        rank = 4 * self.board + member
        return self.packet(
            CONTRIBUTION, self.members[rank], self.server(self.board), member, self.vectors[rank]
        )

    def exchange(self, level: int, board: int, to: int) -> Packet:
        """The vector of the server of `board` at a level, to that of another."""
        payload = self.of_level(board, level - 1)
        return self.packet(EXCHANGE, self.server(board), self.server(to), level, payload)

    def partner(self, level: int) -> int:
        """The board with which the own one exchanges."""
        return self.board ^ (1 << (level - 1))

    def result(self, to: int) -> Packet:
        """The result, to a member of the own board."""
        return self.packet(RESULT, self.server(self.board), to, 0, self.of_boards(0, len(self.members) // 4))

    def coming(self) -> list[Packet]:
        """The packets that come to the own module."""
        if self.node % 4:
            return [self.result(self.node)]
        members = [self.contribution(member) for member in range(4) if member != self.own % 4]
        levels = range(1, self.levels + 1)
        return members + [self.exchange(level, self.partner(level), self.board) for level in levels]

    def going(self) -> list[Packet]:
        """The packets that the own module sends, in its order."""
        if self.node % 4:
            return [self.contribution(self.own % 4)]
        levels = range(1, self.levels + 1)
        clients = [node for node in self.members[4 * self.board : 4 * self.board + 4] if node % 4]
        sent = [self.exchange(level, self.board, self.partner(level)) for level in levels]
        return sent + [self.result(node) for node in clients]
