"""Forms for notebooks: tables of HTML, with all text escaped."""

import html
from collections.abc import Iterable
from typing import Any


def _text(value: Any) -> str:
    """A value as people read it: four digits that count, thousands apart."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else ("yes" if value else "no")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return html.escape(str(value))


def cells(rows: Iterable[dict[str, Any]], columns: list[str]) -> list[list[Any]]:
    """The values of some columns by row."""
    return [[row.get(column) for column in columns] for row in rows]


def facts(named: dict[str, Any]) -> str:
    """A line for each name with its value."""
    lines = (f"<tr><th>{html.escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in named.items())
    return f"<table>{''.join(lines)}</table>"


def table(headings: list[str], rows: Iterable[list[Any]]) -> str:
    """A table with a row of headings."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
