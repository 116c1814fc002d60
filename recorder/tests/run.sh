#!/bin/sh
# Records the test programs, and LAMMPS, with every recorder that is built, and compares the traces with the programs.
set -eu
cd "$(dirname "$0")/../.."
# With --workspace the dependencies are those that `cargo test --workspace` has built, of the same features.
exec cargo test --locked --workspace --test it -- record:: --ignored --test-threads 1 "$@"
