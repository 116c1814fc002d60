#!/usr/bin/env python3
"""Writes the wrappers of one MPI: calls.table and that MPI's header in, functions.h and wrappers.c out.

    mpicc -E -P header.c | generate.py calls.table OUTPUT_DIRECTORY handwritten.c...

Every function that the header declares together with its PMPI name is either written out in one of the
handwritten files, in the table, or wrapped so that it is counted by its name.
"""

import re
import sys
from pathlib import Path

PROTOTYPE = re.compile(
    r"\bint\s+((?:P?MPI|P?MPIX)_\w+)\s*\(([^;{}]*?)\)\s*(?:__attribute__[^;]*)?;", re.DOTALL
)
LINE = re.compile(r"(call|before|creates|test|collective)\s+(\w+)\(([^)]*)\)\s+(.+)$")


def split_parameters(text):
    """The top-level parameters of a prototype, without comments and needless blanks."""
    parameters, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parameters.append(current)
            current = ""
        else:
            current += letter
    parameters.append(current)
    parameters = [" ".join(p.split()) for p in parameters]
    return [] if parameters in (["void"], [""]) else parameters


def rename(parameter, name):
    """`const int counts[]` with another name."""
    declared = re.fullmatch(r"(.*[\s*])(\w+)\s*((?:\[[^]]*\])*)", parameter)
    if not declared:
        raise SystemExit(f"generate.py: parameter without a name: {parameter!r}")
    return f"{declared[1]}{name}{declared[3]}"


def read_header(text):
    """Function name -> parameters, for what has a PMPI twin."""
    declared = {name: split_parameters(parameters) for name, parameters in PROTOTYPE.findall(text)}
    return {
        name: parameters
        for name, parameters in declared.items()
        if not name.startswith("P") and "P" + name in declared
    }


def forms(kind, name, parameters, code):
    """The functions that a line of the table stands for: (function, kind, parameters, code)."""
    if kind != "collective":
        yield name, kind, parameters, code
        return
    yield name, "call", parameters, code.replace("HOW", "BLOCKING")
    yield (
        "I" + name[0].lower() + name[1:],
        "call",
        [*parameters, "request"],
        code.replace("HOW", "NONBLOCKING"),
    )
    yield name + "_init", "call", [*parameters, "info", "request"], code.replace("HOW", "PERSISTENT")


def read_table(path):
    """Function -> (kind, parameters, code), and the patterns of local functions."""
    recorded, local = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("local "):
            local.append(line.split(None, 1)[1])
            continue
        parts = LINE.fullmatch(line)
        if not parts:
            raise SystemExit(f"{path}:{number}: not a line of the table: {line}")
        for name, kind, parameters, code in forms(parts[1], parts[2], parts[3].split(), parts[4]):
            for suffix in ("", "_c"):
                recorded[f"MPI_{name}{suffix}"] = (kind, parameters, code)
    return recorded, re.compile("MPI_(?:" + "|".join(f"(?:{p})" for p in local) + ")(?:_c)?")


def wrapper(name, declared, kind, names, code):
    """The C text of one wrapper."""
    if len(declared) != len(names):
        raise SystemExit(f"generate.py: {name} has {len(declared)} parameters, the table names {len(names)}")
    signature = ", ".join(rename(p, n) for p, n in zip(declared, names, strict=True)) or "void"
    call = f"P{name}({', '.join(names)})"
    out = [f"int {name}({signature})", "{", f"    if (!recorder_enter(F_{name}))", f"        return {call};"]
    if "status" in names:
        out += [
            "    MPI_Status own_status;",
            "    if (status == MPI_STATUS_IGNORE)",
            "        status = &own_status;",
        ]
    if "kept_message" in code:
        out.append("    MPI_Message kept_message = *message;")
    if kind == "before":
        out += ["    recorder_lock();", f"    {code};", "    recorder_unlock();"]
    out.append(f"    int result = {call};")
    if kind == "test":
        out += ["    if (result != MPI_SUCCESS || !*flag) {", "        recorder_leave_as_computation();"]
        out += ["        return result;", "    }"]
    if kind in ("call", "test"):
        out += [
            "    recorder_lock();",
            "    if (result == MPI_SUCCESS)",
            f"        {code};",
            "    recorder_unlock();",
        ]
    if kind == "creates":
        out += ["    if (result == MPI_SUCCESS)", f"        {code};"]
    out += ["    recorder_leave();", "    return result;", "}", ""]
    return "\n".join(out)


def main():
    table, output = Path(sys.argv[1]), Path(sys.argv[2])
    handwritten = set()
    for path in sys.argv[3:]:
        handwritten.update(re.findall(r"^int (MPI_\w+)\(", Path(path).read_text(), re.MULTILINE))
    header = read_header(sys.stdin.read())
    if "MPI_Send" not in header:
        raise SystemExit("generate.py: the header declares no MPI_Send")
    recorded, local = read_table(table)

    wrapped, bodies = sorted(handwritten & header.keys()), []
    for name, parameters in sorted(header.items()):
        if name in handwritten:
            continue
        if name in recorded:
            bodies.append(wrapper(name, parameters, *recorded[name]))
        elif local.fullmatch(name):
            continue
        else:
            names = [f"argument_{i}" for i in range(len(parameters))]
            bodies.append(wrapper(name, parameters, "call", names, "record_unrecorded(false)"))
        wrapped.append(name)

    (output / "functions.h").write_text(
        "/* Generated by generate.py: the intercepted functions. */\n"
        + "enum { "
        + ", ".join(f"F_{name}" for name in wrapped)
        + ", FUNCTION_COUNT };\nextern const char *const function_names[];\n"
    )
    (output / "wrappers.c").write_text(
        '/* Generated by generate.py from calls.table. */\n#include "recorder.h"\n#include "functions.h"\n\n'
        + "const char *const function_names[] = {"
        + ", ".join(f'"{name}"' for name in wrapped)
        + "};\n\n"
        + "\n".join(bodies)
    )


main()
