"""Builds libweft_rtl.so: the blocks under Verilator, with their ports and parameters in tables."""

import hashlib
import re
import subprocess
from pathlib import Path

from blocks import ROOT, RTL

# A port in the header that Verilator writes: VL_IN8(&clk,0,0), VL_OUTW(&m_axis_net_tdata,127,0,4).
PORT = re.compile(r"VL_(IN|OUT)(?:8|16|64|W)?\(&(\w+),(\d+),(\d+)")
# A parameter of a top module, with a number.
PARAMETER = re.compile(r"parameter int (\w+)\s*=\s*([\d_]+)")


def ports(header: Path) -> list[tuple[str, int, bool]]:
    """Name, bits, and whether it is an output, of all ports but the clock."""
    found = PORT.findall(header.read_text())
    return [(name, int(high) - int(low) + 1, way == "OUT") for way, name, high, low in found if name != "clk"]


def tables(block: str, of: list[tuple[str, int, bool]], top: str) -> str:
    """The C++ of a block: its tables, and an instance of it."""
    lines, word = [f"const WeftRtlPort {block}_ports[] = {{"], 0
    drives, samples = [], []
    for name, bits, is_output in of:
        lines.append(f'    {{"{name}", {bits}, {int(is_output)}, {word}, 0}},')
        (samples if is_output else drives).append((name, word))
        word += (bits + 63) // 64
    lines += ["};", f"const WeftRtlParameter {block}_parameters[] = {{"]
    lines += [f'    {{"{name}", {value.replace("_", "")}}},' for name, value in PARAMETER.findall(top)]
    lines += ["};", f"struct {block}_instance final : Block<V{block}, V{block}___024root> {{"]
    lines += [f"    {block}_instance() {{ words.resize({word}); }}", "    void cycle() override {"]
    lines += ["        model.clk = 0;"]
    lines += [f"        put(model.{name}, &words[{place}]);" for name, place in drives]
    lines += ["        model.eval();"]
    lines += [f"        get(model.{name}, &words[{place}]);" for name, place in samples]
    lines += ["        model.clk = 1;", "        model.eval();", "    }", "};"]
    return "\n".join(lines) + "\n"


def check_state(header: str, block: str) -> None:
    """Checks that the state of a block is plain data, which can be copied as bytes."""
    state = header.partition("DESIGN SPECIFIC STATE")[2].partition("INTERNAL VARIABLES")[0]
    if not state or (other := re.search(r"std::\w+|\bVl(?!Wide|Unpacked)[A-Z]\w*", state)):
        raise SystemExit(f"{block}: {other[0] if state else 'its state'} cannot be saved: library.cpp, Block")


def verilate(block: str, sources: list[Path], folder: Path) -> list[Path]:
    """Makes C++ of a block, and returns its files."""
    command = ["verilator", "--cc", "-O3", "--quiet", "-Wno-fatal", "--x-assign", "0", "--x-initial", "0"]
    command += ["--flatten"]
    command += ["--output-split", "0", "--prefix", f"V{block}", "--top-module", block, "--Mdir", str(folder)]
    subprocess.run([*command, *map(str, sources)], check=True)
    check_state((folder / f"V{block}___024root.h").read_text(), block)
    listed = (folder / f"V{block}_classes.mk").read_text()
    names = set(re.findall(rf"^\s+(V{block}\w*)", listed, re.MULTILINE))
    files = [folder / f"{name}.cpp" for name in sorted(names)]
    return [file for file in files if file.exists()]


def kind(block: str) -> str:
    """The line of a block in the table of blocks."""
    listed = lambda table: f"{block}_{table}, sizeof {block}_{table} / sizeof *{block}_{table}"  # noqa: E731
    create = f"[]() -> Instance * {{ return new {block}_instance; }}"
    return f'    {{"{block}", {listed("ports")}, {listed("parameters")}, {create}}},\n'


def digest(blocks: list[tuple[str, list[Path]]]) -> str:
    """A hash of the sources of blocks and of all in rtl/, as crates/weft-rtl/src/sources.rs computes it."""
    hashed = hashlib.sha256()
    beside = [*RTL.glob("*/*.sv"), RTL / "library.cpp"]
    names = {
        source.relative_to(ROOT).as_posix(): source
        for of in (beside, *(of for _, of in blocks))
        for source in of
    }
    for name in sorted(names):
        hashed.update(name.encode() + b"\0" + names[name].read_bytes())
    return hashed.hexdigest()


def build(blocks: list[tuple[str, list[Path]]], output: Path) -> None:
    """Builds the library of blocks, each with its sources."""
    folder = output.parent / "library"
    folder.mkdir(parents=True, exist_ok=True)
    root_of_verilator = subprocess.check_output(
        ["verilator", "--getenv", "VERILATOR_ROOT"], text=True
    ).strip()
    include = Path(root_of_verilator) / "include"
    files = [include / "verilated.cpp", include / "verilated_threads.cpp", RTL / "library.cpp"]
    text = ""
    for block, sources in blocks:
        files += verilate(block, sources, folder)
        top = next(source for source in sources if source.stem == block)
        text += tables(block, ports(folder / f"V{block}.h"), top.read_text())
    text += f'const char SOURCES[] = "{digest(blocks)}";\n'
    text += f"const Kind KINDS[] = {{\n{''.join(kind(block) for block, _ in blocks)}}};\n"
    (folder / "blocks.inc").write_text(text)
    headers = [header for block, _ in blocks for header in (f"V{block}.h", f"V{block}___024root.h")]
    (folder / "blocks.h").write_text("".join(f'#include "{header}"\n' for header in headers))
    flags = ["-O2", "-fPIC", "-std=c++17", f"-I{include}", f"-I{include}/vltstd", f"-I{folder}"]
    objects = [str(folder / f"{file.stem}.o") for file in files]
    for file, target in zip(files, objects, strict=True):
        extra = ["-include", str(folder / "blocks.h")] if file.name == "library.cpp" else []
        subprocess.run(["c++", *flags, *extra, "-c", str(file), "-o", target], check=True)
    subprocess.run(["c++", "-shared", "-o", str(output), *objects, "-pthread"], check=True)
