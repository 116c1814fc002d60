"""The libraries of the wheel that ranks load: `weft run` and `weft record` are told where they are."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "lib"


def name_them() -> None:
    """Names the folder to the command, unless others are named or the wheel has none, as in a clone."""
    if FOLDER.is_dir():
        os.environ.setdefault("WEFT_LIBRARIES", str(FOLDER))
        os.environ.setdefault("WEFT_RECORDER_DIR", str(FOLDER))
        # What is missing there is mended by pip.
        os.environ.setdefault("WEFT_WHEEL", "1")
