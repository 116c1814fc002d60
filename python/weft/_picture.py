"""Pictures."""

import tempfile
from pathlib import Path
from typing import Any

from weft import _call, _figure


class Picture:
    """A picture as SVG; notebooks show it."""

    def __init__(self, svg: str, data: Any = None):
        self.svg = svg
        """The text of the SVG file."""
        self.data: Any = data
        """The numbers: axes with units, series, labels."""

    def figure(self) -> Any:
        """The same as a figure of matplotlib, to change or to save in other formats."""
        if self.data is None:
            raise _call.BadInput("a drawing of a machine has no numbers; write it with .draw(FILE)", 2)
        return _figure.picture(self.data)

    def _repr_svg_(self) -> str:
        return self.svg


def draw(words: list[str], path: str | Path | None) -> Picture:
    """The picture that `weft plot` makes of these words. It writes a file where one is named.

    matplotlib draws the file, in any of its formats; without it the command does, as SVG or PNG.
    """
    words = ["plot", *words, "--force"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "picture.svg")
        document = _call.document([*words, "-o", str(file)])
        picture = Picture(file.read_text(), document["picture"])
    if path is not None and _figure.installed():
        _figure.save(picture.figure(), path)
    elif path is not None:
        _call.text([*words, "-o", str(path)])
    return picture
