"""Control words of ExaNet packets, a second time: header and footer of every packet of wire_vectors.txt.

The words are put together from the widths in the drawing of crates/weft-nic/src/exanet/wire.rs. The script
shares no code with it; the check is zlib's CRC-32. `--write` puts the words of this script into the file, for
packets that are new there.
"""

import sys
import zlib
from pathlib import Path

VECTORS = Path(__file__).parents[2] / "crates/weft-nic/src/exanet/wire_vectors.txt"
RANK_BITS = 3
PACKET_FIELDS = 10


def word(*fields: tuple[int, int]) -> bytes:
    """The fields, each with its width in bits, the highest first."""
    value = bits = 0
    for field, width in fields:
        if field >> width:
            raise ValueError(f"{field:#x} does not fit {width} bits")
        value, bits = value << width | field, bits + width
    return value.to_bytes(bits // 8, "big")


def control_words(packet: list[str]) -> tuple[bytes, bytes]:
    """Header and footer of a packet, by the ten fields that describe it."""
    numbers = (int(field, 16) for field in packet[:-1])
    kind, domain, node, interface, address, size, source, number, identity = numbers
    payload = b"" if packet[-1] == "-" else bytes.fromhex(packet[-1])
    rank, page = interface % (1 << RANK_BITS), interface >> RANK_BITS
    target = (domain, 16), (node, 22), (rank, RANK_BITS), (address, 39)
    header = word(*target, (kind, 8), (page, 8), (size, 10), (source, 22))
    behind = word((number, 32), (identity, 64))
    padding = bytes(-len(payload) % 16)
    return header, behind + word((zlib.crc32(header + payload + padding + behind), 32))


def main() -> int:
    """Compares the file with the words of this script, or writes them."""
    lines, wrong = [], 0
    for number, line in enumerate(VECTORS.read_text().splitlines(), 1):
        if line.startswith("#"):
            lines.append(line)
            continue
        packet = line.split()[:PACKET_FIELDS]
        lines.append(" ".join(packet + [words.hex() for words in control_words(packet)]))
        if line != lines[-1]:
            wrong += 1
            print(f"{VECTORS.name}:{number}: expected {lines[-1]}")
    if sys.argv[1:] == ["--write"]:
        VECTORS.write_text("\n".join(lines) + "\n")
        return 0
    packets = sum(not line.startswith("#") for line in lines)
    print(f"{packets} packets, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
