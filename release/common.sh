# SPDX-License-Identifier: MIT OR Apache-2.0
# For tarball.sh and wheel.sh, which read it: `out`, the folder that is their argument; the version; the time of the
# commit; and flags that keep the names of this machine's folders out of what is built.
set -eu
export LC_ALL=C TZ=UTC
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
root=$(pwd)
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
target=${CARGO_TARGET_DIR:-$root/target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)

# The flags of compilers are divided at spaces.
for folder in "$root" "$target" "$cargo_home" "$sysroot"; do
    case $folder in
    *[[:space:]]*) echo "release: $folder: has a space in its path; no release can be made there" >&2 && exit 1 ;;
    esac
done

remap="--remap-path-prefix=$root=/readpath --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$sysroot=/rust"
export CFLAGS="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=/target"
