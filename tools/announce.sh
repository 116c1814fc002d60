#!/usr/bin/env bash
# Says what the first build takes, before it begins: as measured, for the cores that there are.
set -euo pipefail

# CPU time of `cargo build --profile quick -p weft-cli` from nothing, and its longest chain of crates, in seconds; the
# share of two cores that it kept busy, in percent; disk of target/quick in GB. bench/performance.md says more.
cpu=309
chain=150
busy=95
disk=0.5

cores=$(nproc)
seconds=$((cpu * 100 / busy / cores))
minutes=$(((seconds > chain ? seconds : chain) / 60 + 1))
echo "The first build: about $minutes min on $cores cores, $disk GB in target/quick." \
  "Into build/ go a Python environment and an MPI." >&2
