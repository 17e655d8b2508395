#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/tarball.sh FOLDER: writes readpath-VERSION-x86_64-linux.tar.gz to FOLDER: the program, linked statically, and
# its documents. The same sources, Rust and C library make the same bytes, in whatever folder they lie. Needs a Rust
# toolchain and a C compiler.
. "$(dirname "$0")/common.sh"
# RUSTFLAGS must not reach build scripts and macros: that is what --target is for.
system=x86_64-unknown-linux-gnu
name=readpath-$version-x86_64-linux
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
sh release/licences.sh program >"$share/doc/readpath/THIRD-PARTY.txt"
tar -C "$tree" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --format=gnu -cf "$tree/tar" "$name"
gzip -9n <"$tree/tar" >"$out/$name.tar.gz"
