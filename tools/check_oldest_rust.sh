#!/bin/sh
# Builds what a rank loads with the oldest Rust that its crates name: that of Debian 13. A rank may run in a
# root file system of its own, which has no other.
set -eu
cd "$(dirname "$0")/.."

skip() {
  echo "skipped: what a rank loads, with its oldest Rust: $1" | tee -a "${WEFT_SKIPPED:-/dev/null}"
  exit 0
}

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' crates/weft-client/Cargo.toml)
command -v rustup >/dev/null || skip "rustup is not installed, so there is no Rust $version"
if ! cargo "+$version" --version >/dev/null 2>&1; then
  rustup toolchain install "$version" --profile minimal --no-self-update || skip "Rust $version cannot be installed"
fi
# `cargo check` would do, but for what only the linker sees.
cargo "+$version" build --locked -p weft-client -p weft-calls -p weft-portals --target-dir target/oldest-rust
