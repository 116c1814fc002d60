"""The blocks: a folder each, with NAME/NAME.sv, its tests in NAME/test_*.py, and NAME/block.toml.

block.toml has:
    registers = 820        # more of them fail the synthesis: is a memory in flip-flops?
    uses = ["float"]       # blocks whose files it needs too
    test_parameters = { TIMEOUT = 5000 }  # parameters of its tests, where not those of the file
    stimulus = 10_000_000  # of crates/weft-rtl/examples/random_stimulus: cycles without a difference
    stimulus_bits = [512]  # and of variants beside that of 128 bits
    [variants]             # parameters that it is built for, by the bits or the part that tables name
    32 = { EXP = 8 }
    [bug]                  # put into the block on purpose: tests of weft --rtl, or its own, have to find it
    file = "mailbox_write.sv"
    right = "a line of it"
    wrong = "the line with the bug"
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
BUILD = ROOT / "build/rtl"


class NoBugError(Exception):
    """The line of a block that the bug of its block.toml changes is not there."""

    def __init__(self, block: str, bug: "Bug", found: int):
        self.block, self.bug, self.found = block, bug, found

    def __str__(self) -> str:
        folder = f"rtl/{self.block}"
        return (
            f"{folder}/{self.bug.file}: the line that the bug of {folder}/block.toml changes is there "
            f"{self.found} times, not once:\n    {self.bug.right}\n"
            f"write such a line as `right` in {folder}/block.toml, and the same with a bug as `wrong`"
        )


@dataclass(frozen=True)
class Bug:
    """A bug on purpose: a file, a line of it, and the wrong one."""

    file: str
    right: str
    wrong: str


@dataclass(frozen=True)
class Block:
    """A folder of rtl/."""

    name: str
    registers: int
    uses: list[str] = field(default_factory=list)
    test_parameters: dict[str, int] = field(default_factory=dict)
    variants: dict[str, dict[str, int]] = field(default_factory=lambda: {"": {}})
    stimulus: int = 0
    stimulus_bits: list[int] = field(default_factory=list)
    bug: Bug | None = None

    @staticmethod
    def read(file: Path) -> "Block":
        """The block of a block.toml."""
        text = tomllib.loads(file.read_text())
        if "bug" in text:
            text["bug"] = Bug(**text["bug"])
        return Block(file.parent.name, **text)

    @property
    def is_in_step(self) -> bool:
        """Whether weft --rtl has it in step with its model. Others are parts of those."""
        return self.stimulus > 0

    def named(self, variant: str) -> str:
        """The name of a variant, in tests and tables."""
        if variant.isdigit():
            return f"{self.name} of {variant} bits"
        return f"{self.name} with {variant}" if variant else self.name

    @property
    def kinds(self) -> dict[str, dict[str, int]]:
        """The parameters of the variants by their names in the library, the first of which is the block's."""
        first, *others = self.variants
        names = {first: self.name} | {variant: f"{self.name}_{variant}" for variant in others}
        return {names[variant]: parameters for variant, parameters in self.variants.items()}

    @property
    def sources(self) -> list[Path]:
        """All files that it is made of, packages first."""
        folders = ["common", *self.uses, self.name]
        files = [file for folder in folders for file in sorted((RTL / folder).glob("*.sv"))]
        return sorted(files, key=lambda file: not re.search(r"^package", file.read_text(), re.MULTILINE))

    def sources_with_bug(self, folder: Path) -> list[Path]:
        """The files, one of them with the bug, in a folder of its own."""
        right = RTL / self.name / self.bug.file
        text = right.read_text() if right.exists() else ""
        if (found := text.count(self.bug.right)) != 1:
            raise NoBugError(self.name, self.bug, found)
        wrong = folder / self.bug.file
        text = text.replace(self.bug.right, self.bug.wrong)
        # The same text is not built again.
        if not wrong.exists() or wrong.read_text() != text:
            wrong.write_text(text)
        return [wrong if file == right else file for file in self.sources]


BLOCKS = {file.parent.name: Block.read(file) for file in sorted(RTL.glob("*/block.toml"))}
