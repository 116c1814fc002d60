#!/bin/sh
# Median overhead per recorded call, for each MPI named: bench/run.sh mpich abi openmpi
set -eu
cd "$(dirname "$0")/.."
out=$(cd ../build/recorder && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-8s %-26s %12s %12s %14s\n' MPI calls 'alone ns' 'recorded ns' 'per call ns'
for mpi in "$@"; do
    # A single process: MPI starts without a launcher.
    "$out/$mpi/overhead" > "$work/alone"
    mkdir "$work/parts"
    LD_PRELOAD=$out/libweft-record-$mpi.so WEFT_RECORD_PARTS=$work/parts "$out/$mpi/overhead" > "$work/recorded"
    rm -r "$work/parts"
    paste -d ' ' "$work/alone" "$work/recorded" |
        awk -v mpi="$mpi" '{ printf "%-8s %-26s %12d %12d %14.0f\n", mpi, $1, $3, $7, ($7 - $3) / $2 }'
done
