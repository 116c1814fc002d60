#!/usr/bin/env python3
"""Checks the licences, sources and duplicates of all crates that the workspace builds, who may use which of
them, and the wheel's lock.

Works offline, from `cargo tree`. cargo-deny does this and more, but building it takes minutes
of every first `make test`, and its advisory database needs the network.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# As `cargo tree` writes it: `serde v1.0.229`, with a folder or a git address where it is from one.
PACKAGE = re.compile(r"(?P<name>\S+) v(?P<version>\S+)(?: \(proc-macro\))?(?: \((?P<origin>.*)\))?$")


class Crate(NamedTuple):
    """A crate in the tree."""

    name: str
    version: str
    origin: str | None
    licence: str


def licence_is_allowed(expression: str, allowed: set[str]) -> bool:
    """Evaluates an SPDX expression: an identifier counts as true if it is allowed."""
    # Crates from before SPDX write A/B for A OR B.
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    def both() -> bool:
        value = single()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = single() and value
        return value

    def single() -> bool:
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            token = f"{token} WITH {tokens[1]}"
            del tokens[:2]
        return token in allowed

    return either()


def crates(which: list[str]) -> list[Crate]:
    """The crates in the tree of dependencies that these options of `cargo tree` choose, on this platform."""
    # `cargo metadata` would also name optional crates that no feature switches on.
    command = ["cargo", "tree", "--offline", "--locked", *which]
    command += ["--prefix", "none", "--format", "{p}\t{l}"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"{answer.stderr}check_dependencies: run `cargo fetch --locked` once, with a network")
    found = set()
    for line in answer.stdout.splitlines():
        # A crate that has its own dependencies above has a mark behind it.
        package, tab, licence = line.removesuffix(" (*)").partition("\t")
        # The edges include features, written `serde feature "derive"`: no crates of their own.
        if tab and (match := PACKAGE.match(package)):
            found.add(Crate(match["name"], match["version"], match["origin"], licence))
    return sorted(found, key=lambda crate: (crate.name, crate.version))


def findings(used: list[Crate], policy: dict) -> list[str]:
    """The faults against the policy, one line each."""
    allowed, duplicates = set(policy["licences"]), policy["duplicates"]
    found = []
    versions: dict[str, set[str]] = {}
    for crate in used:
        name = f"{crate.name} {crate.version}"
        versions.setdefault(crate.name, set()).add(crate.version)
        if not crate.licence:
            found.append(f"{name} declares no licence")
        elif not licence_is_allowed(crate.licence, allowed):
            found.append(f"{name} is under {crate.licence}, which is not in the list of licences")
        if crate.origin and not Path(crate.origin).is_relative_to(ROOT):
            found.append(f"{name} comes from {crate.origin}, not from crates.io")
    for name, several in sorted(versions.items()):
        if len(several) > 1 and name not in duplicates:
            several = ", ".join(sorted(several))
            found.append(f"{name} is in the tree as {several}: unify, or list it with the reason")
    for name in duplicates:
        if len(versions.get(name, ())) < 2:
            found.append(f"{name} is listed as a duplicate but is none: remove it from the list")
    return found


def trespasses(rooms: dict[str, dict]) -> list[str]:
    """The crates that a room of the house uses although it must not, one line each."""
    found = []
    for room, rule in rooms.items():
        may, must_not = set(rule.get("may_use", [])), tuple(rule.get("must_not_use", []))
        for user in rule["crates"]:
            for crate in crates(["--package", user, "--edges", "normal"]):
                refused = crate.name.startswith(must_not) if must_not else crate.name not in may
                if refused and crate.name not in rule["crates"]:
                    found.append(f"rooms.{room}: {user} uses {crate.name}: {rule['reason']}")
    return found


def stale() -> list[str]:
    """The crates that the wheel's lock knows otherwise than they are, one line each: pip would refuse it."""
    lock = tomllib.loads((ROOT / "python/Cargo.lock").read_text())
    locked = {
        package["name"]: {name.split()[0] for name in package.get("dependencies", [])}
        for package in lock["package"]
        if "source" not in package
    }
    found = []
    for name, dependencies in sorted(locked.items()):
        folder = ROOT / "crates" / name
        manifest = tomllib.loads(
            (folder / "Cargo.toml" if folder.is_dir() else ROOT / "python/Cargo.toml").read_text()
        )
        wanted = {*manifest.get("dependencies", {}), *manifest.get("build-dependencies", {})}
        if wanted != dependencies:
            found.append(
                f"{name} has other dependencies: run `cargo metadata --manifest-path python/Cargo.toml`"
            )
    return found


def main() -> None:
    policy = tomllib.loads((ROOT / "tools/dependencies.toml").read_text())
    # All that a build, a test or a benchmark of the workspace uses.
    used = crates(["--workspace", "--edges", "all"])
    found = findings(used, policy) + trespasses(policy["rooms"])
    for finding in found:
        print(f"tools/dependencies.toml: {finding}", file=sys.stderr)
    old = stale()
    for finding in old:
        print(f"python/Cargo.lock: {finding}", file=sys.stderr)
    print(f"{len(used)} crates checked, {len(found) + len(old)} findings")
    sys.exit(1 if found or old else 0)


if __name__ == "__main__":
    main()
