"""Calls of the command in this process."""

import json
from collections.abc import Iterable
from typing import Any

from weft._weft import call as _call


class WeftError(Exception):
    """An error, in the words of the command."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status: int = status
        """The exit status that the command has: 1 the simulation ended badly, 2 bad input."""


class BadInput(WeftError, ValueError):
    """The input is wrong; the message says how to mend it."""


class EndedBadly(WeftError, RuntimeError):
    """The simulation ended badly, for example in a deadlock, or its results could not be kept."""


def error(message: str, status: int) -> WeftError:
    """The exception of an exit status."""
    return {1: EndedBadly, 2: BadInput}.get(status, WeftError)(message, status)


def options(given: dict[str, Any]) -> list[str]:
    """The words of keyword arguments: `warm_up="5us"` is `--warm-up 5us`, a list is joined by commas."""
    words = []
    for name, value in given.items():
        option = f"--{name.strip('_').replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Iterable) and not isinstance(value, str):
            words += [option, ",".join(str(one) for one in value)]
        else:
            words += [option, str(value)]
    return words


def text(words: list[str], programs: list[Any] | None = None) -> str:
    """The output of the command, which must do its work. `programs` are what it steps."""
    status, output, message = _call(words, programs or [])
    if status != 0:
        raise error(message or f"weft {words[0]} ended with status {status}", status)
    return output


def document(words: list[str]) -> Any:
    """The JSON document of the command."""
    return json.loads(text([*words, "--json"]))
