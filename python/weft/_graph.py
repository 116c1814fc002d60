"""Files of graphs: a graph of networkx, with a table of next hops where a function makes one.

routing(at, to, graph) ──► next=TO:VIA,TO:VIA of each switch ──► the JSON of networkx
"""

import json
from collections.abc import Callable
from typing import Any

from weft import _call

NextHop = Callable[[Any, Any, Any], Any]
"""The next switch of packets, by the switch that they are at, the one that they go to, and the graph."""

# What separates next hops in the file.
SEPARATORS = ",: "


def document(graph: Any, routing: NextHop | None) -> str:
    """The JSON of a graph. Nodes that are not marked as endpoints are switches."""
    import networkx

    data = networkx.node_link_data(graph, edges="links")
    if routing is not None:
        tables = _tables(graph, routing)
        data["nodes"] = [{**node, **tables.get(node["id"], {})} for node in data["nodes"]]
    return json.dumps(data)


def _tables(graph: Any, routing: NextHop) -> dict[Any, dict[str, str]]:
    """The attribute of each switch that has its next hops."""
    kinds = graph.nodes(data="type")
    switches = [node for node, kind in kinds if kind in (None, "switch")]
    known = set(switches)
    for node in switches:
        if any(mark in str(node) for mark in SEPARATORS):
            mend = "give switches names without comma, colon and space"
            raise _call.BadInput(f"switch {node!r} cannot stand in a table of next hops; {mend}", 2)
    tables = {}
    for at in switches:
        hops = []
        for to in switches:
            if to == at:
                continue
            via = routing(at, to, graph)
            if via not in known or not graph.has_edge(at, via):
                mend = "return a switch that is joined to it"
                message = (
                    f"routing from {at!r} to {to!r} goes to {via!r}, which no link joins to {at!r}; {mend}"
                )
                raise _call.BadInput(message, 2)
            hops.append(f"{to}:{via}")
        tables[at] = {"next": ",".join(hops)} if hops else {}
    return tables
