#!/usr/bin/env bash
# The tests of the provider: by itself, then under MPICH where its wheel is there. The last line counts.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
out=$root/build/libfabric
failed=0

"$out/tests/provider" "$out/libweft-fi.so" "$out/tests/libweft-stand-in.so" || failed=1

# It exports its entry alone, and imports nothing of libfabric.
symbols=$(nm -D --defined-only "$out/libweft-fi.so" | awk '{ print $3 }')
if [ "$symbols" = fi_prov_ini ]; then
  echo "ok      exports fi_prov_ini alone"
else
  echo "FAILED  exports: $symbols"; failed=1
fi
if nm -D --undefined-only "$out/libweft-fi.so" | grep -qE ' (fi|weft)_'; then
  echo "FAILED  imports:"; nm -D --undefined-only "$out/libweft-fi.so" | grep -E ' (fi|weft)_'; failed=1
else
  echo "ok      imports nothing of libfabric, nor of libweft"
fi

venv=${VENV:-$root/build/venv}
if [ -x "$venv/bin/mpiexec.gforker" ]; then
  # The summary of each rank names the provider.
  summary=$(MPIR_CVAR_DEBUG_SUMMARY=1 ./mpi.sh 2 "$venv/bin/python" -c 'import mpi4py.MPI' || true)
  if grep -q 'provider: weft' <<<"$summary"; then
    echo "ok      MPICH takes the provider"
  else
    echo "FAILED  MPICH does not take the provider"; failed=1
  fi
  "$venv/bin/python" "$root/tests/mpi/run.py" --launch "$PWD/mpi.sh {ranks}" --ranks "${RANKS:-2,5}" || failed=1
else
  echo "skipped: MPI programs over the provider (no MPICH in $venv)"
fi
exit $failed
