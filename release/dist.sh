#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/dist.sh FOLDER: writes readpath-VERSION-x86_64-linux.tar.gz, the wheel and SHA256SUMS to FOLDER.
# The same sources, Rust and C library make the same tarball, in whatever folder they lie, if its path has no space.
# Beside a Rust toolchain it needs a C compiler, and for the wheel Python 3.11 or newer and PyPI once. WHEEL=0 leaves
# the wheel out.
set -eu
export LC_ALL=C TZ=UTC
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
root=$(pwd)
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
# RUSTFLAGS must not reach build scripts and macros: that is what --target is for.
system=x86_64-unknown-linux-gnu
target=${CARGO_TARGET_DIR:-$root/target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=readpath-$version-x86_64-linux

sysroot=$(rustc --print sysroot)
# The flags of compilers are divided at spaces.
for folder in "$root" "$target" "$cargo_home" "$sysroot"; do
    case $folder in
    *[[:space:]]*) echo "dist: $folder: has a space in its path; no release can be made there" >&2 && exit 1 ;;
    esac
done

remap="--remap-path-prefix=$root=/readpath --remap-path-prefix=$cargo_home=/cargo"
remap="$remap --remap-path-prefix=$sysroot=/rust"
export CFLAGS="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=/target"
RUSTFLAGS="-C target-feature=+crt-static $remap" \
    cargo build --profile dist --locked --target "$system" -p readpath

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
share=$tree/$name/share
mkdir -p "$tree/$name/bin" "$share/doc/readpath" "$share/man"
for folder in bash-completion/completions zsh/site-functions fish/vendor_completions.d; do
    mkdir -p "$share/$folder"
done
program=$tree/$name/bin/readpath
cp "$target/$system/dist/readpath" "$program"
"$program" man --out "$share/man/man1" >&2
"$program" completions bash >"$share/bash-completion/completions/readpath"
"$program" completions zsh >"$share/zsh/site-functions/_readpath"
"$program" completions fish >"$share/fish/vendor_completions.d/readpath.fish"
cp -r README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md LICENSE-MIT LICENSE-APACHE docs presets experiments \
    "$share/doc/readpath"
sh release/licences.sh >"$share/doc/readpath/THIRD-PARTY.txt"
tar -C "$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --format=gnu -cf "$tree/tar" "$name"
gzip -9n <"$tree/tar" >"$out/$name.tar.gz"

if [ "${WHEEL:-1}" = 1 ]; then
    ${PYTHON:-python3} -m venv "$target/wheel-venv"
    # lib.rs is linked to no C library of its own, so the flags of the program do not fit.
    RUSTFLAGS="$remap" CARGO_TARGET_DIR="$target/py" "$target/wheel-venv/bin/pip" wheel \
        --quiet --disable-pip-version-check --no-deps --no-cache-dir --wheel-dir "$out" .
fi
cd "$out"
set -- "$name.tar.gz"
[ "${WHEEL:-1}" = 0 ] || set -- "$@" readpath-"$version"-*.whl
sha256sum "$@" >SHA256SUMS
cat SHA256SUMS
