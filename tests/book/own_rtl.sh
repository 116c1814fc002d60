#!/bin/bash
# The folder of a page gets RTL of its own to change, and a build/rtl of its own with the tools that are installed.
set -e
tree=$(dirname "$(readlink -f build)")
rm build
mkdir -p build/rtl
ln -s "$tree"/build/rtl/{venv,bin} build/rtl
cp -r "$tree/rtl" .
