#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/fast.sh: builds target/dist/readpath, optimised as a whole for what it does most: a build that counts which
# branches are taken runs benches and an experiment, and the compiler lays the program out by its counts. Its results
# are those of every other build. Needs a Rust toolchain, and llvm-profdata of the same LLVM, which rustup has.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
mkdir -p "${CARGO_TARGET_DIR:-target}"
# The compiler is not always called in this folder.
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
case $target in
*[[:space:]]*) echo "make fast: $target: has a space in its path, where RUSTFLAGS are divided" >&2 && exit 1 ;;
esac

# llvm-profdata reads what the compiler's own LLVM writes, or an older one.
system=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
own=$(rustc --print sysroot)/lib/rustlib/$system/bin/llvm-profdata
if [ ! -x "$own" ] && command -v rustup >/dev/null; then
    rustup component add llvm-tools || true
fi
profdata=
for tool in "$own" "llvm-profdata-$llvm" llvm-profdata; do
    command -v "$tool" >/dev/null || continue
    has=$("$tool" --version 2>&1 | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
    [ "${has:-0}" -ge "$llvm" ] && profdata=$tool && break
done
if [ -z "$profdata" ]; then
    echo "make fast: no llvm-profdata of LLVM $llvm: rustup component add llvm-tools, or the package llvm-$llvm" >&2
    exit 1
fi

counts=$target/counts
rm -rf "$counts"
# With --target, RUSTFLAGS do not reach build scripts and macros, which would leave counts of their own.
build() { # FLAGS
    RUSTFLAGS="${RUSTFLAGS:-} $1" ${CARGO:-cargo} build --profile dist --locked --target "$system" -p readpath
}
build "-Cprofile-generate=$counts"
counting=$target/$system/dist/readpath
# A mix runs long before its writes are steady, so it needs few requests of its own.
"$counting" dev bench mix-70-30-gc-52g --repeat 1 --ios 500000
for bench in qd1 qd16 qd31 1t-miss zones-write; do
    "$counting" dev bench "$bench" --repeat 1 --ios 1000000
done
"$counting" reproduce iozone --out "$counts/iozone" >/dev/null
"$profdata" merge -o "$counts/all.profdata" "$counts"/*.profraw
build "-Cprofile-use=$counts/all.profdata"
mkdir -p "$target/dist"
cp "$target/$system/dist/readpath" "$target/dist/readpath"
