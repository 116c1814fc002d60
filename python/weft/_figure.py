"""Figures of matplotlib. The command computes what is shown: here it is only drawn."""

from pathlib import Path
from typing import Any

import polars as pl

from weft import _call

# The colours of Okabe and Ito, which colour-blind people tell apart; the command's pictures have them too.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
# Names along an axis: more of them are written over each other.
NAMES_SHOWN = 24
# Switches and endpoints with a name in the picture of a topology.
LABELLED = 80


def installed() -> bool:
    """Whether there is a matplotlib."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def _new(panels: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """A figure that no window shows, and its axes below each other."""
    if not installed():
        raise _call.BadInput("figures need matplotlib: pip install 'weft[plot]'", 2)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0], size[1] * panels), layout="constrained")
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0])


def save(figure: Any, path: str | Path | None) -> Any:
    """Writes a figure where a file is named; returns it."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def picture(data: dict[str, Any]) -> Any:
    """The figure of a picture, as `weft plot --json` has it."""
    figure, axes = _new(len(data["panels"]), (8, 4.2))
    figure.suptitle(f"{data['title']}\n{data['subtitle']}", fontsize=10)
    for panel, axis in zip(data["panels"], axes, strict=True):
        _panel(panel, axis, figure)
    return figure


def _text(axis: dict[str, Any]) -> str:
    return f"{axis['label']} ({axis['unit']})" if axis["unit"] else axis["label"]


def _panel(panel: dict[str, Any], axis: Any, figure: Any) -> None:
    kind, content = next(iter(panel["content"].items()))
    draw = {"lines": _lines, "stacked": _stacked, "segments": _segments, "cells": _cells}[kind]
    draw(content, axis, figure)
    axis.set(title=panel["title"], xlabel=_text(panel["x"]), ylabel=_text(panel["y"]))
    for side, scale, limits, ticks in [
        (panel["x"], axis.set_xscale, axis.set_xlim, axis.set_xticks),
        (panel["y"], axis.set_yscale, axis.set_ylim, axis.set_yticks),
    ]:
        if side["names"]:
            step = -(-len(side["names"]) // NAMES_SHOWN)
            middle = 0.0 if kind == "segments" else 0.5
            places = range(0, len(side["names"]), step)
            rotated = {"rotation": 90} if side is panel["x"] else {}
            ticks([place + middle for place in places], side["names"][::step], fontsize=7, **rotated)
        elif side["log"]:
            scale("log")
        elif side["from_zero"] and kind != "cells":
            limits(0)
    if kind != "cells":
        axis.grid(alpha=0.3)
        if len(content) > 1 or any(one["label"] for one in content):
            axis.legend(fontsize=7)


def _lines(content: list[dict[str, Any]], axis: Any, _: Any) -> None:
    for line in content:
        x, y = zip(*line["points"], strict=True) if line["points"] else ((), ())
        style = {"color": COLOURS[line["colour"] % len(COLOURS)], "label": line["label"]}
        marks = {"marker": "o", "markersize": 4} if line["marks"] else {}
        axis.plot(x, y, linestyle="--" if line["dashed"] else "-", linewidth=1.4, **marks, **style)
        if line["interval"]:
            low, high = zip(*line["interval"], strict=True)
            axis.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)


def _stacked(content: list[dict[str, Any]], axis: Any, _: Any) -> None:
    x = [point[0] for point in content[0]["points"]]
    heights = [[point[1] for point in line["points"]] for line in content]
    colours = [COLOURS[line["colour"] % len(COLOURS)] for line in content]
    axis.stackplot(x, heights, labels=[line["label"] for line in content], colors=colours)


def _segments(content: list[dict[str, Any]], axis: Any, _: Any) -> None:
    from matplotlib.collections import LineCollection

    for number, group in enumerate(content):
        lines = [[(x, y), (to_x, to_y)] for x, y, to_x, to_y in group["segments"]]
        colour = COLOURS[number % len(COLOURS)]
        axis.add_collection(LineCollection(lines, colors=colour, linewidths=0.8, label=group["label"]))
    axis.autoscale()


def _cells(content: dict[str, Any], axis: Any, figure: Any) -> None:
    rows = range(len(content["values"]) + 1)
    mesh = axis.pcolormesh(content["edges"], rows, content["values"], cmap="viridis", rasterized=True)
    axis.invert_yaxis()
    unit = f" ({content['unit']})" if content["unit"] else ""
    figure.colorbar(mesh, ax=axis, label=f"{content['label']}{unit}")


def study(frame: pl.DataFrame, columns: tuple[str, str, str | None]) -> Any:
    """A measured value over a parameter, with its interval; a line for each value of `by`."""
    x, y, by = columns
    for name in filter(None, columns):
        if name not in frame.columns:
            message = f"the study has no column {name}; it has {', '.join(frame.columns)}"
            raise _call.BadInput(message, 2)
    figure, (axis,) = _new(1, (8, 4.8))
    groups = frame.partition_by(by, maintain_order=True) if by else [frame]
    for number, group in enumerate(groups):
        rows = group.sort(x)
        colour = COLOURS[number % len(COLOURS)]
        label = f"{by} = {rows[by][0]}" if by else None
        axis.plot(rows[x], rows[y], color=colour, marker="o", markersize=4, label=label)
        if rows[f"{y}.low"].null_count() == 0:
            axis.fill_between(
                rows[x], rows[f"{y}.low"], rows[f"{y}.high"], color=colour, alpha=0.2, linewidth=0
            )
    axis.set(xlabel=x, ylabel=y)
    axis.grid(alpha=0.3)
    if by:
        axis.legend(fontsize=8)
    return figure


def _levels(links: pl.DataFrame) -> dict[str, int]:
    """Each endpoint and switch with its distance from the nearest endpoint."""
    beside: dict[str, set[str]] = {}
    for one, other in links.select("from", "to").iter_rows():
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    reached = {node: 0 for node in beside if node.startswith("e")}
    edge = list(reached)
    while edge:
        nearest = {other for node in edge for other in beside[node] if other not in reached}
        reached |= {node: reached[edge[0]] + 1 for node in nearest}
        edge = sorted(nearest)
    return reached


def _places(links: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Where each stands: rows by distance from the endpoints, or rings where there is one row of switches."""
    from math import cos, pi, sin

    rows: dict[int, list[str]] = {}
    for node, level in sorted(_levels(links).items(), key=lambda one: (one[1], int(one[0][1:]))):
        rows.setdefault(level, []).append(node)
    places = {}
    for level, nodes in rows.items():
        for number, node in enumerate(nodes):
            share = (number + 0.5) / len(nodes)
            if len(rows) > 2:
                places[node] = (share, float(level))
            else:
                radius = 1.0 if level else 1.4
                places[node] = (radius * cos(2 * pi * share), radius * sin(2 * pi * share))
    return places


def topology(links: pl.DataFrame, title: str) -> Any:
    """Endpoints and switches, with links in the colour of their utilization: the busier direction's."""
    from matplotlib.collections import LineCollection

    def name(side: str) -> pl.Expr:
        endpoint = "e" + pl.col(f"{side}_endpoint").cast(pl.String)
        return endpoint.fill_null("s" + pl.col(f"{side}_switch").cast(pl.String)).alias(side)

    ends = links.select(name("from"), name("to"), "utilization")
    pair = [pl.min_horizontal("from", "to").alias("one"), pl.max_horizontal("from", "to").alias("other")]
    joined = ends.select(*pair, "utilization").group_by("one", "other").max().sort("utilization")
    figure, (axis,) = _new(1, (9, 6))
    places = _places(ends)
    lines = [(places[one], places[other]) for one, other, _ in joined.iter_rows()]
    shares = [100 * share for share in joined["utilization"]]
    drawn = LineCollection(lines, array=shares, cmap="viridis", linewidths=1.2)
    drawn.set_clim(0, 100)
    axis.add_collection(drawn)
    for kind, label, marker, colour in [("e", "endpoint", "o", "#999999"), ("s", "switch", "s", "#000000")]:
        nodes = [node for node in places if node.startswith(kind)]
        x, y = zip(*(places[node] for node in nodes), strict=True) if nodes else ((), ())
        axis.scatter(x, y, s=22 if kind == "s" else 10, marker=marker, color=colour, label=label, zorder=2)
        if len(places) <= LABELLED:
            for node in nodes:
                axis.annotate(node[1:], places[node], xytext=(3, 3), textcoords="offset points", fontsize=6)
    axis.set_title(title, fontsize=10)
    axis.set_axis_off()
    axis.legend(fontsize=8, loc="lower right")
    figure.colorbar(drawn, ax=axis, label="time in which the busier direction was sending (%)")
    return figure
