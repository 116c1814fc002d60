"""Machines."""

import tempfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from weft import _call, _graph, _html
from weft._graph import NextHop
from weft._picture import Picture
from weft._toml import inline


@dataclass(frozen=True)
class Machine:
    """A machine that ships with weft, or a machine file, with changes."""

    name: str
    """The shipped machine, or the path of the file."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Keys with the values that they get."""
    # A temporary directory lives as long as the machines whose graph it has.
    _keep: Any = field(default=None, repr=False, compare=False)

    def set(self, key: str, value: Any) -> "Machine":
        """This machine with another value, such as `set("topology.k", 8)`.

        A dictionary is a table, a list of them rows: `set("faults", [{"of": "switch 0", "off_at": "1us"}])`.
        """
        return replace(self, changes=(*self.changes, (key, value)))

    def _sets(self) -> list[str]:
        # A text needs no quotes there: "8G" is a size, and "8" a number.
        texts = ((key, value if isinstance(value, str) else inline(value)) for key, value in self.changes)
        return [word for key, text in texts for word in ("--set", f"{key}={text}")]

    def _words(self) -> list[str]:
        return ["-m", self.name, *self._sets()]

    def check(self) -> dict[str, Any]:
        """The deadlock proof, and the values that no source gives."""
        return _call.document(["machine", "check", self.name, *self._sets()])

    def show(self) -> dict[str, Any]:
        """Figures, and every value with its source."""
        return _call.document(["machine", "show", self.name, *self._sets()])

    @cached_property
    def endpoints(self) -> list[str]:
        """The names of the endpoints by number; the number itself on machines without names."""
        rows = _call.document(["machine", "names", self.name, *self._sets()])["rows"]
        return [str(row["name"]) for row in rows]

    def graph(self) -> Any:
        """Endpoints and switches with their links, as a graph of networkx, an edge per direction."""
        import networkx

        graph = networkx.MultiDiGraph(name=self.name)
        for link in _call.document(["machine", "names", self.name, "--links", *self._sets()])["rows"]:
            for node in (link["from"], link["to"]):
                graph.add_node(node, kind="switch" if node.startswith("switch ") else "endpoint")
            ports = {key: link[key] for key in ("from_port", "to_port")}
            graph.add_edge(link["from"], link["to"], link_class=link["class"], **ports)
        return graph

    def on_graph(
        self, graph: Any, routing: NextHop | None = None, path: str | Path | None = None
    ) -> "Machine":
        """The links, switches and interfaces of this machine on a graph of networkx.

        `routing(at, to, graph)` names the next switch from the switch `at` towards the endpoints of `to`. It
        is called once for every pair, and never during a run. Without it packets take shortest ways. Nodes
        and edges have the attributes of `topology.kind = "graph"`. `path` keeps the file, which ends in
        .json; otherwise it goes when the last machine on it does.
        """
        text = _graph.document(graph, routing)
        keep = None
        if path is None:
            keep = tempfile.TemporaryDirectory(prefix="weft-graph-")
            path = Path(keep.name, "graph.json")
        elif Path(path).suffix != ".json":
            raise _call.BadInput(f"{path} is to hold JSON; write a name that ends in .json", 2)
        Path(path).write_text(text)
        on = replace(self, _keep=keep).set("topology.kind", "graph").set("topology.file", str(path))
        return on if routing is None else on.set("topology.routing", "table")

    def _repr_html_(self) -> str:
        figures = self.show()
        plain = (str, int, float, bool)
        said = {name.replace("_", " "): value for name, value in figures.items() if isinstance(value, plain)}
        changes = {key: inline(value) for key, value in self.changes}
        return _html.facts({"machine": self.name, **changes, **said}) + self.draw().svg

    def draw(self, path: str | Path | None = None) -> Picture:
        """The switches and links as SVG, written to `path` where that is given."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "machine.svg")
            _call.text(["machine", "draw", self.name, *self._sets(), "-o", str(file)])
            picture = Picture(file.read_text())
        if path is not None:
            Path(path).write_text(picture.svg)
        return picture


def machine(name: str | Path | Machine) -> Machine:
    """Returns the machine of this name or in this file."""
    return name if isinstance(name, Machine) else Machine(str(name))
