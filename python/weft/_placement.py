"""Placements: a function that says where each rank sits, called before the run begins.

placement(rank, machine) ──► an endpoint, or an endpoint and a core ──► a line of a mapping file
"""

from collections.abc import Callable
from typing import Any

from weft import _call
from weft._machine import Machine

Endpoint = int | str
Placement = Callable[[int, Machine], Endpoint | tuple[Endpoint, int]]
"""The place of a rank on a machine: an endpoint by number or name, or that and a core of its host."""


def mapping(placement: Placement, ranks: int, on: Machine) -> str:
    """The mapping file of a placement: a line for each rank."""
    if not callable(placement):
        mend = 'write placement=lambda rank, machine: rank, or map="random"'
        raise _call.BadInput(f"placement is {placement!r}, which is no function; {mend}", 2)
    return "".join(f"{_line(placement(rank, on), rank, on)}\n" for rank in range(ranks))


def _line(place: Any, rank: int, on: Machine) -> str:
    """The line of a rank: the name of its endpoint, and its core where the function names one."""
    endpoint, *core = place if isinstance(place, tuple) else (place,)
    names = on.endpoints
    if isinstance(endpoint, str) and endpoint in names:
        name = endpoint
    elif isinstance(endpoint, int) and not isinstance(endpoint, bool) and 0 <= endpoint < len(names):
        name = names[endpoint]
    else:
        mend = f"return a number below {len(names)}, or a name such as {names[0]!r}"
        raise _call.BadInput(f"placement puts rank {rank} at {endpoint!r}, which is no endpoint; {mend}", 2)
    return " ".join([name, *map(str, core)])
