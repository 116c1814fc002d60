"""Packets of ExaNet for the tests of the RTL: their words, and the packets of wire_vectors.txt."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/wire"))
import check as wire  # noqa: E402

SMALL, ACKNOWLEDGEMENT = 0x01, 0x82
REFUSED_DAMAGED, REFUSED_DOMAIN, REFUSED_INTERFACE, REFUSED_FULL = 0x83, 0x84, 0x85, 0x86
ANSWERS = [ACKNOWLEDGEMENT, REFUSED_DAMAGED, REFUSED_DOMAIN, REFUSED_INTERFACE, REFUSED_FULL]


@dataclass(frozen=True)
class Packet:
    """A small message or an answer to one."""

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
        """The answer of the mailbox of `node` to this small message."""
        return Packet(kind, node=self.source, source=node, number=self.number, identity=self.identity)


def identity(interface: int, channel: int) -> int:
    """The identity of a small message: the channel that it was posted to."""
    return interface << 16 | channel


def vectors(kinds: list[int] | None = None) -> list[tuple[Packet, list[int]]]:
    """The packets of wire_vectors.txt of these kinds, or of packetizer and mailbox, with their words."""
    found = []
    for line in wire.VECTORS.read_text().splitlines():
        if line.startswith("#"):
            continue
        *numbers, payload, header, footer = line.split()
        kind, domain, node, interface, address, size, source, number, of_channel = (
            int(text, 16) for text in numbers
        )
        if kind not in (kinds or [SMALL, *ANSWERS]):
            continue
        data = b"" if payload == "-" else bytes.fromhex(payload)
        packet = Packet(kind, node, source, number, of_channel, domain, interface, address, size, data)
        body = packet.words()[1:-1]
        found.append((packet, [int(header, 16), *body, int(footer, 16)]))
    return found
