"""The blocks: a folder each, with NAME/NAME.sv, its tests in NAME/test_NAME.py, and NAME/block.toml.

block.toml has:
    registers = 820        # more of them fail the synthesis: is a memory in flip-flops?
    uses = ["float"]       # blocks whose files it needs too
    test_parameters = { TIMEOUT = 5000 }  # parameters of its tests, where not those of the file
    stimulus = 10_000_000  # of crates/weft-rtl/examples/random_stimulus: cycles without a difference
    [variants]             # parameters that it is built for, by the bits or the part that tables name
    32 = { EXP = 8 }
    [bug]                  # put into the block on purpose, for the tests of weft --rtl, which has it in step
    file = "mailbox_write.sv"
    right = "a line of it"
    wrong = "the line with the bug"
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "rtl"
BUILD = ROOT / "build/rtl"


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
    uses: tuple[str, ...]
    test_parameters: dict[str, int]
    variants: dict[str, dict[str, int]]
    stimulus: int
    bug: Bug | None

    @staticmethod
    def read(file: Path) -> "Block":
        """The block of a block.toml."""
        text = tomllib.loads(file.read_text())
        bug = Bug(**text["bug"]) if "bug" in text else None
        uses, parameters = tuple(text.get("uses", [])), text.get("test_parameters", {})
        variants, stimulus = text.get("variants", {"": {}}), text.get("stimulus", 0)
        return Block(file.parent.name, text["registers"], uses, parameters, variants, stimulus, bug)

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
    def top(self) -> Path:
        """The file of the block's ports."""
        return RTL / self.name / f"{self.name}.sv"

    @property
    def sources(self) -> list[Path]:
        """All files that it is made of, packages first."""
        files = [
            file
            for folder in ["common", *self.uses, self.name]
            for file in sorted((RTL / folder).glob("*.sv"))
        ]
        return sorted(files, key=lambda file: not file.read_text().lstrip().startswith("package"))

    def sources_with_bug(self) -> list[Path]:
        """The files, one of them with the bug."""
        folder = BUILD / f"wrong-{self.name}"
        folder.mkdir(parents=True, exist_ok=True)
        right = RTL / self.name / self.bug.file
        text = right.read_text()
        if text.count(self.bug.right) != 1:
            count = text.count(self.bug.right)
            raise SystemExit(f"{right}: `{self.bug.right}` of block.toml is there {count} times, not once")
        wrong = folder / self.bug.file
        wrong.write_text(text.replace(self.bug.right, self.bug.wrong))
        return [wrong if file == right else file for file in self.sources]


BLOCKS = {file.parent.name: Block.read(file) for file in sorted(RTL.glob("*/block.toml"))}
