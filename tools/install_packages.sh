#!/usr/bin/env bash
# Installs the named Debian packages that are missing: with apt-get when root, else says what to type.
# Usage: install_packages.sh [--optional WHAT_IS_LOST] PACKAGE...
# With --optional a package that cannot be had is reported, and is no error.
set -euo pipefail

optional=
if [ "${1:-}" = --optional ]; then
  optional=$2
  shift 2
fi

missing=()
for package in "$@"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  if { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2; then
    exit 0
  fi
fi

if [ -n "$optional" ]; then
  echo "skipped: $optional (missing: ${missing[*]})" >&2
  exit 0
fi
if command -v apt-get >/dev/null; then
  echo "Please install what is missing: sudo apt-get install ${missing[*]}" >&2
else
  echo "Please install your system's counterparts of the Debian packages ${missing[*]}" >&2
fi
exit 2
