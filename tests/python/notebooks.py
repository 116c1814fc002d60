#!/usr/bin/env python3
"""Runs the notebooks of examples/, in an environment that has the wheel, and looks at what they show.

notebooks.py
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def shown(notebook: nbformat.NotebookNode) -> set[str]:
    """The types of all that the cells show, as a notebook names them."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return {kind for output in outputs for kind in output.get("data", {})}


def main() -> None:
    """Runs each, which must end without an error, show tables and pictures, and be kept without outputs."""
    notebooks = sorted(EXAMPLES.glob("*.ipynb"))
    assert notebooks, f"{EXAMPLES} has no notebook"
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        assert not shown(notebook), f"{path.name} is kept with outputs; clear them"
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(Path.cwd())}}).execute()
        assert {"text/html", "image/svg+xml"} <= shown(notebook), shown(notebook)
        text = "".join(
            output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
        )
        assert "point" in text, "the bar of weft.sweep is not shown"
    print(f"{len(notebooks)} notebooks: ok")


if __name__ == "__main__":
    main()
