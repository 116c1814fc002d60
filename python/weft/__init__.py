"""A virtual HPC interconnect: describe a machine, put work on it, see what every message and link does.

import weft
r = weft.traffic("bxi3-fattree", pattern="uniform", load=[0.2, 0.6])
print(r.links.collect())
r.plot.load_curve("curve.png")
"""

from importlib.metadata import version as _version

from weft import _libraries
from weft._call import BadInput, EndedBadly, WeftError
from weft._graph import NextHop
from weft._machine import Machine, machine
from weft._picture import Picture
from weft._placement import Placement
from weft._program import (
    Done,
    Message,
    Operation,
    Program,
    RankProgram,
    Request,
    allgather,
    allgatherv,
    allreduce,
    alltoall,
    barrier,
    broadcast,
    compute,
    exscan,
    gather,
    gatherv,
    irecv,
    isend,
    marker,
    program,
    recv,
    reduce,
    reduce_scatter,
    scan,
    scatter,
    scatterv,
    send,
    sendrecv,
    wait,
    waitall,
    work,
)
from weft._result import Plots, Result, app, open, osu, replay, run, traffic
from weft._sweep import Study, sweep
from weft._trace import Trace, trace

_libraries.name_them()

__version__: str = _version("weft")
"""The version of weft, as `weft --version` prints it."""

__all__ = [
    "BadInput",
    "Done",
    "EndedBadly",
    "Machine",
    "Message",
    "NextHop",
    "Operation",
    "Picture",
    "Placement",
    "Plots",
    "Program",
    "RankProgram",
    "Request",
    "Result",
    "Study",
    "Trace",
    "WeftError",
    "__version__",
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "app",
    "barrier",
    "broadcast",
    "compute",
    "exscan",
    "gather",
    "gatherv",
    "irecv",
    "isend",
    "machine",
    "marker",
    "open",
    "osu",
    "program",
    "recv",
    "reduce",
    "reduce_scatter",
    "replay",
    "run",
    "scan",
    "scatter",
    "scatterv",
    "send",
    "sendrecv",
    "sweep",
    "trace",
    "traffic",
    "wait",
    "waitall",
    "work",
]
