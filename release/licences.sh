#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/licences.sh program|wheel: prints the licence texts of everything that is linked into it: its crates with the
# C sources in them, Rust's library, and, into the program, the C library. The text of a crate that brings none, but has
# one where it is developed, is release/texts/CRATE.txt. Fails when a crate has no text and its licence is not one whose
# text is here. Each text is printed once, with the crates that have it. Needs the sources that cargo has fetched, and a
# toolchain of rustup: it has the texts of Rust's library, which a distribution's may lack.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "licences: $1" >&2
    exit 1
}

case ${1:-} in
program) manifest=Cargo.toml crate=readpath ;;
wheel) manifest=crates/py/Cargo.toml crate=readpath-py ;;
*) fail "'${1:-}': is neither program nor wheel" ;;
esac
what=$1

# add TEXT_FILE USER: the text, named by its hash, has one user more.
add() {
    hash=$(sha256sum <"$1" | cut -d' ' -f1)
    cp "$1" "$work/$hash.text"
    echo "$2" >>"$work/$hash.users"
}

# A pipe has the status of its last program, so what may fail writes to a file.
system=x86_64-unknown-linux-gnu
cargo tree --locked --manifest-path $manifest -p $crate -e normal --prefix none --no-dedupe --target $system \
    --format '{p}|{l}' >"$work/tree"
# Readpath's own crates are those with a path.
grep -v '(/' "$work/tree" | sort -u >"$work/crates"
[ -s "$work/crates" ] || fail "cargo tree lists no crate"
while IFS='|' read -r crate licence; do
    name=$(echo "$crate" | sed 's/ v/-/; s/ .*//')
    set -- "$sources"/*/"$name"
    [ -d "$1" ] || fail "$name: no sources below $sources; cargo fetch brings them"
    find "$@" -type f >"$work/files"
    grep -iE '/(licen[sc]e|copying|unlicense|notice|copyright)[^/]*$' "$work/files" |
        grep -vE '\.(rs|c|h|py|sh|html)$' | sort >"$work/texts"
    while read -r file; do
        add "$file" "$name ($licence): ${file#*/"$name"/}"
    done <"$work/texts"
    [ -s "$work/texts" ] && continue
    own=release/texts/${crate%% *}.txt
    if [ -f "$own" ]; then
        add "$own" "$name ($licence): the text where it is developed"
        continue
    fi
    case $licence in
    *Apache-2.0*) add LICENSE-APACHE "$name ($licence): names the licence, brings no text" ;;
    *) fail "$name: has no text of its licence, $licence" ;;
    esac
done <"$work/crates"

docs=$(rustc --print sysroot)/share/doc
library="Rust's library (MIT OR Apache-2.0)"
found=
for file in "$docs"/rust/licenses/*; do
    case $file in
    */Apache-2.0.txt | */MIT.txt | */Unicode*)
        add "$file" "$library"
        found=yes
        ;;
    esac
done
[ -n "$found" ] || fail "no text of Rust's library in $docs/rust/licenses; a toolchain of rustup has it"
add "$docs/cargo/LICENSE-MIT" "$library"
if [ "$what" = program ]; then
    add /usr/share/doc/libc6/copyright "the GNU C library (LGPL-2.1-or-later), linked statically"
    add /usr/share/common-licenses/LGPL-2.1 "the GNU C library (LGPL-2.1-or-later): its licence"
fi

echo "Licences of what is linked into the $what of readpath. Readpath itself: LICENSE-MIT or LICENSE-APACHE."
if [ "$what" = program ]; then
    echo "From its source it can be linked to another C library, as release/tarball.sh does."
fi
sort "$work"/*.users | sed 's/^/  /; s/:.*//' | uniq
for users in "$work"/*.users; do
    printf '\n%s\n' ================================================================================
    sort "$users" | uniq
    printf '%s\n\n' --------------------------------------------------------------------------------
    cat "${users%.users}.text"
done
