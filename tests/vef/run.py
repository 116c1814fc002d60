#!/usr/bin/env python3
"""Compares weft's reader and writer of VEF with the rules of the format, as rules.py has them.

Random programs, in which each record waits for the latest thing that its task knows of, are written as VEF.
weft must count what is in them, take as long as the rules say on a network that costs nothing else, for any
number of threads, and write a file that keeps the rules, with the same records.
"""

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

import rules

LIBRARY = [
    "send_call", "receive_call", "wait_call", "sendrecv_call", "reduce_call", "temporary_buffer", "copy_call",
    "collective_call", "receive_message", "matching_entry", "control_send", "control_receive", "data_send",
]  # fmt: skip
RATES = ["send_copy_rate", "receive_copy_rate", "memory_copy_rate", "reduction_rate"]
INTERFACE = ["message_send", "message_receive", "write_start"]
# A network on which a message takes a nanosecond, and nothing else takes time.
COSTLESS = [
    "fabric.kind=ideal", "nic.model=overheads", "ideal.latency=1ns", "ideal.rate=unlimited",
    "messaging.eager_limit=1M", "messaging.eager_ack=false", "messaging.eager_buffered=true",
    *(f"messaging.{key}=0ns" for key in LIBRARY),
    *(f"messaging.{key}=unlimited" for key in RATES),
    *(f"nic.{key}=0ns" for key in INTERFACE),
]  # fmt: skip


def program(seed: int, is_timed: bool) -> str:
    """A random file. If it is timed, its collectives are such as end for all at once."""
    draw = random.Random(seed)
    tasks = draw.randint(2, 6)
    communicators = [list(range(tasks)), sorted(draw.sample(range(tasks), draw.randint(1, tasks)))]
    # The last that each task has done, and the messages that it has received since: (time, Dep, IDdep).
    latest = [[(0, 0, "-1")] for _ in range(tasks)]
    lines, messages, collectives, parts = [], 0, 0, 0

    def after(task: int, names: str) -> str:
        start, kind, on = draw.choice(latest[task])
        time = draw.choice([0, draw.randint(1, 9) * 1000])
        when[0] = start + time
        return f"{names} {kind} {time} {on}"

    when = [0]
    for _ in range(draw.randint(1, 60)):
        if draw.random() < 0.7:
            task, to, size = draw.randrange(tasks), draw.randrange(tasks), draw.randint(0, 5000)
            lines.append(after(task, f"{messages} {task} {to} {size}"))
            came = when[0] + rules.LATENCY
            latest[task] = [(when[0], 1, str(messages))]
            # One that comes while the task does something else is no latest thing.
            if came >= latest[to][0][0]:
                latest[to].append((came, 2, str(messages)))
            messages += 1
            continue
        number = draw.randrange(2)
        members = communicators[number]
        operation = draw.choice([2, 5, 6, 7] if is_timed else range(8))
        sizes = draw_sizes(draw, operation, len(members))
        begun = []
        for task, (sent, received) in zip(members, sizes, strict=True):
            lines.append(after(task, f"G{collectives} {number} {operation} {task} {sent} {received}"))
            begun.append(when[0])
        for task in members:
            latest[task] = [(max(begun), 3, f"G{collectives}")]
        collectives, parts = collectives + 1, parts + len(members)
    head = [
        f"VEF3 {tasks} {messages} 2 {collectives} {parts} {'FALSE' if ' 2 ' in ''.join(lines) else 'TRUE'}"
    ]
    trace = rules.parse("\n".join([*head, *named(communicators), *lines]))
    trace.only_sends = all(message.kind != 2 for message in trace.messages())
    only_sends = not any(line.split()[4] == "2" for line in lines if not line.startswith("G"))
    head = [f"VEF3 {tasks} {messages} 2 {collectives} {parts} {str(only_sends).upper()}"]
    return "\n".join([*head, *named(communicators), *lines, ""])


def named(communicators: list[list[int]]) -> list[str]:
    return [" ".join([f"C{number}", *map(str, members)]) for number, members in enumerate(communicators)]


def draw_sizes(draw: random.Random, operation: int, members: int) -> list[tuple[int, int]]:
    """The bytes that each member of a collective sends and receives."""
    size, root = draw.randint(1, 5000), draw.randrange(members)
    unequal = [draw.randint(1, 5000) for _ in range(members)]
    ours = draw.choice([unequal, [size] * members])
    is_root = [place == root for place in range(members)]
    split = draw.randint(0, 1)
    return [
        [(size, 0) if at_root else (0, size) for at_root in is_root],
        [(0, size) if at_root else (size, 0) for at_root in is_root],
        [(size, size)] * members,
        [(own, sum(ours) if at_root else 0) for own, at_root in zip(ours, is_root, strict=True)],
        [(sum(ours) if at_root else 0, own) for own, at_root in zip(ours, is_root, strict=True)],
        [(own, sum(ours)) for own in ours],
        [(0, 0)] * members,
        [(size * (members if split else 1), split)] * members,
    ][operation]


class Weft:
    """The command."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *words: str) -> dict:
        output = subprocess.run([self.path, *words], check=False, capture_output=True, text=True)
        assert output.returncode == 0, f"{words}: {output.stderr}"
        return json.loads(output.stdout)


def compare(weft: Weft, folder: Path, seed: int) -> None:
    """Makes a program and compares what weft says of it."""
    is_timed = seed % 2 == 0
    text = program(seed, is_timed)
    path, kept, back = (str(folder / name) for name in ("there.vef", "kept.weft", "back.vef"))
    Path(path).write_text(text)
    trace = rules.parse(text)
    faults = rules.check(trace)
    assert not faults, f"seed {seed}: the test's own file: {faults}"

    stats = weft("trace", "stats", path, "--json")
    sizes = [message.size[0] for message in trace.messages()]
    assert (stats["messages"], stats["message_bytes"]) == (len(sizes), sum(sizes)), f"seed {seed}: {stats}"
    weft("trace", "convert", path, "-o", kept, "--force", "--json")
    weft("trace", "convert", kept, "-o", back, "--force", "--json")
    written = rules.parse(Path(back).read_text())
    faults = rules.check(written)
    assert not faults, f"seed {seed}: {faults}"

    def doings(trace: rules.Trace) -> list:
        messages = [(message.task, message.to, message.size) for message in trace.messages()]
        parts = [
            (part.task, trace.communicators[part.communicator], part.operation) for part in trace.parts()
        ]
        return [sorted(messages), sorted(parts)]

    assert doings(written) == doings(trace), f"seed {seed}"
    assert rules.end(written) == rules.end(trace), f"seed {seed}: {rules.end(written)} {rules.end(trace)}"
    if is_timed:
        sets = [word for entry in COSTLESS for word in ("--set", entry)]
        for threads in ("1", "2", "3", "8"):
            words = ["replay", "-m", "exanest", path, *sets, "--quiet", "--json", "--threads", threads]
            found = weft(*words)["rows"][0]["run_time_us"] * 1000
            expected = rules.end(trace)
            # A collective takes some latencies where the rules say nothing of its steps.
            most = expected + 20 * rules.LATENCY * (1 + trace.counts[2])
            assert expected - 1 <= found <= most, f"seed {seed}: {found} ns, by the rules {expected}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", default="target/quick/weft")
    parser.add_argument("--programs", type=int, default=20)
    arguments = parser.parse_args()
    weft = Weft(arguments.weft)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.programs):
            compare(weft, Path(folder), seed)
    print(f"{arguments.programs} programs, 0 differ")


if __name__ == "__main__":
    main()
