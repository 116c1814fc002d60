#!/usr/bin/env bash
# Runs an MPI program of the wheel over the provider and the stand-in: mpi.sh RANKS PROGRAM ARGUMENT...
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
ranks=$1
shift
export WEFT_JOB=/weft-stand-in-$$
trap 'rm -f "/dev/shm$WEFT_JOB"' EXIT
export FI_PROVIDER_PATH=$root/build/libfabric FI_PROVIDER=weft
export MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1
"${VENV:-$root/build/venv}/bin/${LAUNCHER:-mpiexec.gforker}" -n "$ranks" \
  env LD_PRELOAD="$root/build/libfabric/tests/libweft-stand-in.so" "$@"
