#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# release/check.sh FOLDER: builds the tarball of the committed sources in two folders below FOLDER, and the wheel twice
# in one, and compares them byte by byte. Runs the program of the tarball with an empty environment, the package of the
# wheel, and the program of the same commit as cargo installs it.
set -eu
mkdir -p "$1"
work=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
# Each build has its own.
unset CARGO_TARGET_DIR
# Commits may be made meanwhile.
commit=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH="$(git log -1 --format=%ct "$commit")"

for side in a another-folder/b; do
    rm -rf "${work:?}/${side:?}"
    mkdir -p "$work/$side"
    git archive -o "$work/sources.tar" "$commit"
    tar -x -C "$work/$side" -f "$work/sources.tar"
    (cd "$work/$side" && umask "$([ "$side" = a ] && echo 022 || echo 077)" && sh release/tarball.sh out)
done
cmp "$work"/a/out/*.tar.gz "$work"/another-folder/b/out/*.tar.gz
echo "tarball: the same from two folders"

for turn in 1 2; do
    rm -rf "$work/a/target/py"
    (cd "$work/a" && sh release/wheel.sh "wheel-$turn")
done
cmp "$work"/a/wheel-1/*.whl "$work"/a/wheel-2/*.whl
echo "wheel: the same from two builds"
rm -rf "$work/wheel"
"$work/a/target/wheel-venv/bin/python" -m zipfile -e "$work"/a/wheel-1/*.whl "$work/wheel"
test -s "$work"/wheel/readpath-*.dist-info/licenses/THIRD-PARTY.txt

mkdir -p "$work/unpacked"
tar -C "$work/unpacked" --strip-components=1 -xzf "$work"/a/out/*.tar.gz
program=$work/unpacked/bin/readpath
if readelf -d "$program" | grep -q NEEDED; then
    echo "$program: needs libraries" >&2 && exit 1
fi
for path in "$work" "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}"; do
    for built in "$program" "$work"/wheel/readpath/*.so; do
        ! grep -aqF "$path" "$built" || { echo "$built: has the path $path in it" >&2 && exit 1; }
    done
done
job=share/doc/readpath/docs/examples/randread.fio
(cd "$work/unpacked" && env -i ./bin/readpath doctor && env -i ./bin/readpath fio $job)

python=$work/a/target/wheel-venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$work"/a/wheel-1/*.whl
(cd "$work" && "$python" -c 'import readpath; print(readpath.__version__)')

cargo install --path "$work/a/crates/cli" --locked --root "$work/installed" --target-dir "$work/a/target"
test "$(env -i "$work/installed/bin/readpath" --version)" = "$(env -i "$program" --version)"
echo "release: checked"
