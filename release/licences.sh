#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the licence texts of everything that is linked into the program: its crates with the C sources in them, Rust's
# library, and the C library. Fails when a crate brings no text and its licence is not one whose text is here.
# Each text is printed once, with the crates that have it. Needs the sources that cargo has fetched.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# add TEXT_FILE USER: the text, named by its hash, has one user more.
add() {
    hash=$(sha256sum <"$1" | cut -d' ' -f1)
    cp "$1" "$work/$hash.text"
    echo "$2" >>"$work/$hash.users"
}

system=x86_64-unknown-linux-gnu
cargo tree --locked -p readpath -e normal --prefix none --no-dedupe --target $system --format '{p}|{l}' |
    grep -v '(/' | sort -u >"$work/crates"
while IFS='|' read -r crate licence; do
    name=$(echo "$crate" | sed 's/ v/-/; s/ .*//')
    found=
    for file in $(find "$sources"/*/"$name" -type f |
        grep -iE '/(licen[sc]e|copying|unlicense|notice|copyright)[^/]*$' |
        grep -vE '\.(rs|c|h|py|sh|html)$' | sort); do
        found=yes
        add "$file" "$name ($licence): ${file#*/"$name"/}"
    done
    if [ -z "$found" ]; then
        case $licence in
        *Apache-2.0*) add LICENSE-APACHE "$name ($licence): names the licence, brings no text" ;;
        *) echo "$name: has no text of its licence, $licence" >&2 && exit 1 ;;
        esac
    fi
done <"$work/crates"

rust=$(rustc --print sysroot)/share/doc/rust
for file in "$rust"/licenses/* "$(rustc --print sysroot)"/share/doc/cargo/LICENSE-MIT; do
    case $file in
    */Apache-2.0.txt | */MIT.txt | */Unicode* | */LICENSE-MIT) add "$file" "Rust's library (MIT OR Apache-2.0)" ;;
    esac
done
add /usr/share/doc/libc6/copyright "the GNU C library (LGPL-2.1-or-later), linked statically"
add /usr/share/common-licenses/LGPL-2.1 "the GNU C library (LGPL-2.1-or-later): its licence"

echo "Licences of what is linked into readpath. Readpath itself: LICENSE-MIT or LICENSE-APACHE. From its source it can be"
echo "linked to another C library, as release/dist.sh does."
sort "$work"/*.users | sed 's/^/  /; s/:.*//' | uniq
for users in "$work"/*.users; do
    printf '\n%s\n' ================================================================================
    sort "$users" | uniq
    printf '%s\n\n' --------------------------------------------------------------------------------
    cat "${users%.users}.text"
done
