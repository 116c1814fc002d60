"""Proves what the files in proofs/ beside the blocks assert, by induction over the SAT solver of yosys.

A proof has small parameters and holds for any time: all that is asserted is true in the first steps behind
a reset, and in a step wherever it has been in those before it.
"""

import re
import tempfile
from pathlib import Path

# Steps of an induction at most: a proof that needs more wants a stronger assertion.
MOST_STEPS = 12


def prove(proof: Path, sources: list[Path]) -> int:
    """The steps of the induction by which a proof holds; 0: it does not."""
    from pyosys import libyosys

    design = libyosys.Design()
    run = lambda command: libyosys.run_pass(command, design)  # noqa: E731
    files = " ".join(map(str, [*sources, proof]))
    with tempfile.NamedTemporaryFile(suffix=".txt") as log:
        run(f"tee -q -o {log.name} read_slang --top {proof.stem} {files}")
        for command in ("prep -flatten", "memory_map", "async2sync", "chformal -lower", "opt -full"):
            run(f"tee -q -o {log.name} {command}")
        solve = f"sat -tempinduct -prove-asserts -set-init-zero -set-at 1 reset 1 -maxsteps {MOST_STEPS}"
        run(f"tee -q -o {log.name} {solve} {proof.stem}")
        text = Path(log.name).read_text()
    steps = re.findall(r"\[induction step (\d+)\]", text)
    return int(steps[-1]) if "Induction step proven: SUCCESS!" in text else 0


def check(folder: Path, sources: list[Path]) -> int:
    """Proves what is asserted in the proofs of a folder of rtl/. Returns how many proofs fail."""
    failed = 0
    for proof in sorted((folder / "proofs").glob("*.sv")):
        steps = prove(proof, sources)
        print(f"{proof.stem}: " + (f"proven by induction of length {steps}" if steps else "not proven"))
        failed += not steps
    return failed
