"""The rules of the VEF format, read a second time: from its description alone, knowing nothing of weft.

`parse` reads a file, `check` says where it breaks a rule, and `times` computes when each record is done on a
network on which a message takes `LATENCY` and nothing else takes time.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

LATENCY = 1
OPERATIONS = ["bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "barrier", "alltoall"]


class Record(NamedTuple):
    """A line of the body: a message if `to` is given, else a part in a collective."""

    name: str
    task: int
    to: int | None
    size: tuple[int, ...]
    kind: int
    time: int
    on: str
    communicator: int = 0
    operation: int = 0


@dataclass
class Trace:
    """A file."""

    tasks: int
    counts: tuple[int, int, int, int]
    only_sends: bool
    communicators: list[list[int]]
    records: list[Record] = field(default_factory=list)

    def messages(self) -> list[Record]:
        return [record for record in self.records if record.to is not None]

    def parts(self) -> list[Record]:
        return [record for record in self.records if record.to is None]


def parse(text: str) -> Trace:
    """Reads a file, whose lines must be whole."""
    lines = iter(text.splitlines())
    tag, tasks, messages, communicators, collectives, parts, flag = next(lines).split()
    assert tag.startswith("VEF"), tag
    counts = (int(messages), int(communicators), int(collectives), int(parts))
    trace = Trace(int(tasks), counts, {"TRUE": True, "FALSE": False}[flag], [])
    for number in range(counts[1]):
        name, *members = next(lines).split()
        assert name == f"C{number}", name
        trace.communicators.append([int(member) for member in members])
    for line in lines:
        words = line.split()
        if words[0].startswith("G"):
            name, communicator, operation, task, sent, received, kind, time, on = words
            size = (int(sent), int(received))
            record = Record(
                name, int(task), None, size, int(kind), int(time), on, int(communicator), int(operation)
            )
        else:
            name, task, to, size, kind, time, on = words
            record = Record(name, int(task), int(to), (int(size),), int(kind), int(time), on)
        trace.records.append(record)
    return trace


def check(trace: Trace) -> list[str]:
    """The rules that a file breaks, and those of readers that go through it once."""
    faults = []
    names = {part.name for part in trace.parts()}
    found = (len(trace.messages()), len(trace.communicators), len(names), len(trace.parts()))
    if found != trace.counts:
        faults.append(f"the header counts {trace.counts}, there are {found}")
    only_sends = all(message.kind != 2 for message in trace.messages())
    if trace.only_sends != only_sends:
        faults.append("onlySendFlag")
    if [message.name for message in trace.messages()] != [str(number) for number in range(found[0])]:
        faults.append("messages are not numbered from 0 on, in their order")
    if trace.communicators and trace.communicators[0] != list(range(trace.tasks)):
        faults.append("C0 is not the world")
    seen: dict[str, Record] = {}
    members: dict[str, list[Record]] = {}
    for record in trace.records:
        on = seen.get(record.on)
        fits = {
            0: record.on == "-1",
            1: on is not None and on.to is not None and on.task == record.task,
            2: on is not None and on.to == record.task,
            3: record.on in members
            and any(part.task == record.task for part in members[record.on])
            and len(members[record.on]) == len(trace.communicators[members[record.on][0].communicator]),
        }
        if not fits[record.kind] or record.time < 0:
            faults.append(f"{record} does not stand behind what it waits for")
        if record.to is None:
            members.setdefault(record.name, []).append(record)
        else:
            seen[record.name] = record
    for name, parts in members.items():
        tasks = sorted(part.task for part in parts)
        if tasks != sorted(trace.communicators[parts[0].communicator]):
            faults.append(f"{name}: {tasks} take part")
        if not sizes_fit(OPERATIONS[parts[0].operation], [part.size for part in parts]):
            faults.append(f"{name}: sizes {parts}")
    return faults


def sizes_fit(operation: str, sizes: list[tuple[int, ...]]) -> bool:
    """Whether what the members of a collective send and receive is as the format says."""
    sent, received = [size[0] for size in sizes], [size[1] for size in sizes]
    ours = [max(size) for size in sizes]
    roots = {
        "bcast": [size for size in sizes if size[0]],
        "reduce": [size for size in sizes if size[1]],
        "gather": [size for size in sizes if size[1]],
        "scatter": [size for size in sizes if size[0]],
    }.get(operation, [])
    return (
        len(roots) <= 1
        and {
            "bcast": len(set(ours)) == 1 and all(0 in size for size in sizes),
            "reduce": len(set(ours)) == 1 and all(0 in size for size in sizes),
            "allreduce": len(set(sizes)) == 1 and sent == received,
            "gather": not roots or roots[0][1] == sum(sent),
            "scatter": not roots or roots[0][0] == sum(received),
            "allgather": set(received) == {sum(sent)},
            "barrier": set(sizes) == {(0, 0)},
            "alltoall": len(set(received)) == 1 and received[0] in (0, 1),
        }[operation]
    )


def times(trace: Trace) -> dict[tuple[str, int], int]:
    """When each record is done, by its name and task; of a part in a collective, when the collective is over.

    Collectives are taken to be over when the last member has begun.
    """
    done: dict[tuple[str, int], int] = {}
    begun: dict[str, list[int]] = {}
    tasks: dict[str, list[int]] = {}
    for record in trace.records:
        if record.kind == 0:
            start = 0
        elif record.kind == 2:
            start = next(done[key] for key in done if key[0] == record.on) + LATENCY
        else:
            start = done[record.on, record.task]
        start += record.time
        if record.to is not None:
            done[record.name, record.task] = start
            continue
        begun.setdefault(record.name, []).append(start)
        tasks.setdefault(record.name, []).append(record.task)
        for task in tasks[record.name]:
            done[record.name, task] = max(begun[record.name])
    return done


def end(trace: Trace) -> int:
    """When the last record is done and the last message has come."""
    done = times(trace)
    received = [done[message.name, message.task] + LATENCY for message in trace.messages()]
    return max([*done.values(), *received], default=0)
