"""Packets of ExaNet for the tests of the RTL: their words, and the packets of wire_vectors.txt."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/wire"))
import check as wire  # noqa: E402

SMALL, READ_REQUEST, ACKNOWLEDGEMENT = 0x01, 0x12, 0x82
REFUSED_DAMAGED, REFUSED_DOMAIN, REFUSED_INTERFACE, REFUSED_FULL = 0x83, 0x84, 0x85, 0x86
CELL, BLOCK_ACKNOWLEDGEMENT = 0x07, 0x88
BLOCK_WITHOUT_CONTEXT, BLOCK_FAULTED, BLOCK_OF_DOMAIN = 0x89, 0x8A, 0x8B
BLOCK_ANSWERS = [BLOCK_ACKNOWLEDGEMENT, BLOCK_WITHOUT_CONTEXT, BLOCK_FAULTED, BLOCK_OF_DOMAIN]
ANSWERS = [ACKNOWLEDGEMENT, REFUSED_DAMAGED, REFUSED_DOMAIN, REFUSED_INTERFACE, REFUSED_FULL]


@dataclass(frozen=True)
class Packet:
    """A small message, a request of a read or a cell, or an answer to one."""

    kind: int
    node: int
    source: int
    number: int
    identity: int = 0
    domain: int = 0
    interface: int = 0
    address: int = 0
    size: int = 0
    payload: bytes = b""

    def words(self) -> list[int]:
        """Header, payload in whole words, and footer."""
        numbers = self.kind, self.domain, self.node, self.interface, self.address, self.size
        numbers += self.source, self.number, self.identity
        header, footer = wire.control_words(
            [f"{number:x}" for number in numbers] + [self.payload.hex() or "-"]
        )
        payload = self.payload + bytes(-len(self.payload) % 16)
        body = [payload[place : place + 16] for place in range(0, len(payload), 16)]
        return [int.from_bytes(word, "big") for word in [header, *body, footer]]

    def answer(self, kind: int, node: int) -> "Packet":
        """The answer of the mailbox of `node` to this small message or request."""
        return Packet(kind, node=self.source, source=node, number=self.number, identity=self.identity)


def identity(interface: int, channel: int) -> int:
    """The identity of a small message: the channel that it was posted to."""
    return interface << 16 | channel


@dataclass(frozen=True)
class Cell:
    """The identity of a cell."""

    channel: int
    transaction: int
    index: int
    attempt: int = 0
    last: bool = False
    ends_transfer: bool = False

    def identity(self) -> int:
        """The same in the bits of a footer."""
        marks = self.last << 15 | self.ends_transfer << 14
        return self.channel << 48 | (marks | self.index << 8 | self.attempt) << 32 | self.transaction

    @staticmethod
    def of(identity: int) -> "Cell":
        """The identity in the bits of a footer."""
        marks = identity >> 32
        transaction, index, attempt = identity & 0xFFFFFFFF, marks >> 8 & 63, marks & 0xFF
        return Cell(identity >> 48, transaction, index, attempt, bool(marks >> 15 & 1), bool(marks >> 14 & 1))

    def answer(self, kind: int, node: int, source: int) -> Packet:
        """The answer of the receive unit of `node` to the block of this cell, which `source` has sent."""
        identity = self.identity() & ~(1 << 46)
        return Packet(kind, node=source, source=node, number=0, identity=identity)


def vectors(kinds: list[int] | None = None) -> list[tuple[Packet, list[int]]]:
    """The packets of wire_vectors.txt of these kinds, with their words; those of packetizer and mailbox."""
    kinds = kinds or [SMALL, *ANSWERS]
    found = []
    for line in wire.VECTORS.read_text().splitlines():
        if line.startswith("#"):
            continue
        *numbers, payload, header, footer = line.split()
        kind, domain, node, interface, address, size, source, number, of_channel = (
            int(text, 16) for text in numbers
        )
        if kind not in kinds:
            continue
        data = b"" if payload == "-" else bytes.fromhex(payload)
        packet = Packet(kind, node, source, number, of_channel, domain, interface, address, size, data)
        body = packet.words()[1:-1]
        found.append((packet, [int(header, 16), *body, int(footer, 16)]))
    return found
