#!/bin/sh
# Records the test programs, and LAMMPS, with every recorder that is built, and compares with what they do.
set -eu
cd "$(dirname "$0")/../.."
exec cargo test -p weft-cli --test record -- --ignored --test-threads 1 "$@"
