#!/usr/bin/env python3
"""A stencil on a ring of ranks, as a rank program: is it worth to hide the exchange behind the computation?

rank_program.py
"""

import weft


def stencil(overlap):
    """A program in which each rank computes 50 us and gives both neighbours 64 KiB, ten times."""

    def program(rank, size):
        for step in range(10):
            requests = []
            for neighbour in ((rank - 1) % size, (rank + 1) % size):
                requests.append((yield weft.irecv(neighbour, tag=step)))
                requests.append((yield weft.isend(neighbour, bytes="64K", tag=step)))
            if not overlap:
                yield weft.waitall(requests)
            yield weft.compute("50us")
            if overlap:
                yield weft.waitall(requests)
        yield weft.allreduce(8)

    return program


def main():
    """Compares both on a machine that ships."""
    for overlap in (False, True):
        name = "with overlap" if overlap else "without overlap"
        result = weft.replay(weft.program(stencil(overlap), ranks=16, name=name), "ib-ndr-fattree", ppn=1)
        print(f"{name}: {result.summary['run_time_us'][0]:.1f} us")
        print(result.calls.collect().group_by("operation").sum().select("operation", "calls", "time_ps"))


if __name__ == "__main__":
    main()
