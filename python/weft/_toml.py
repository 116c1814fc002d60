"""Values of Python in TOML."""

import json
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any


def inline(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(inline(one) for one in value) + "]"
    # Numbers of numpy are none of Python's, and JSON does not know them.
    if isinstance(value, bool | str):
        return json.dumps(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, PurePath):
        return json.dumps(str(value))
    raise TypeError(f"{value!r} is no value of TOML: write a text, a number, True or False, a list or a dict")
