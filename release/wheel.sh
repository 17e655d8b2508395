#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/wheel.sh FOLDER: writes the wheel of the Python package to FOLDER. The same sources in the same folder, with
# the same Rust, maturin and Python, make the same bytes. In another folder its library differs, because cargo names
# crates outside of a workspace by their paths. Needs a Rust toolchain, a C compiler, Python 3.11 or newer, and PyPI
# once.
. "$(dirname "$0")/common.sh"
# pyproject.toml names it, and it is in no commit.
trap 'rm -f "$root/THIRD-PARTY.txt"' EXIT
trap 'exit 130' INT TERM
sh release/licences.sh wheel >THIRD-PARTY.txt
${PYTHON:-python3} -m venv "$target/wheel-venv"
RUSTFLAGS="$remap" CARGO_TARGET_DIR="$target/py" "$target/wheel-venv/bin/pip" wheel \
    --quiet --disable-pip-version-check --no-deps --no-cache-dir --wheel-dir "$out" .
