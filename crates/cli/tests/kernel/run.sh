#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Linux guests in QEMU with a UFS device: `make test-kernel`. run.sh DIR READPATH fills DIR (setup.sh), then runs the
# scenarios with this program and compares it with QEMU's own ufs device. Later words are the names of the scenarios
# to run: probe io crash zones libzbc hpb parity errors misbehave gone compare torture rpmb.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
readpath=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
[ -z "${LIBZBC:-}" ] || LIBZBC=$(realpath -m "$LIBZBC")
sh "$here/setup.sh" "$1"
cd "$1"
shift 2
if [ ! -e qemu ]; then
    echo "SKIPPED: no QEMU, so no guest"
    exit 0
fi
[ $# -gt 0 ] || set -- probe io crash zones libzbc hpb parity errors misbehave gone compare torture rpmb
begin=$(date +%s)
# Kernels C and D are only looked at for zones.
zones=
for word in zones libzbc; do case " $* " in *" $word "*) zones="$zones $word" ;; esac; done
# The kernel with all scenarios, then the one with those of zones: c after a, d after b.
# shellcheck disable=SC2016
two='
    here=$1 readpath=$2 kernel=$3 second=$4 zones=$5 failed=0
    shift 5
    sh "$here/kernel.sh" . "$readpath" "$kernel" "$@" || failed=1
    [ -z "$zones" ] || sh "$here/kernel.sh" . "$readpath" "$second" $zones || failed=1
    exit $failed'
# The machine of an emulator is one thread, so both have a processor. What has a group of its own can be ended as a
# whole.
setsid sh -c "$two" sh "$here" "$readpath" b d "$zones" "$@" >b.output 2>&1 &
b=$!
trap 'kill -TERM -- -$b 2>/dev/null || true' EXIT
trap 'exit 1' HUP INT TERM
failed=0
sh -c "$two" sh "$here" "$readpath" a c "$zones" "$@" || failed=1
wait $b || failed=1
cat b.output
case " $* " in *" compare "*) sh "$here/table.sh" >comparison.md && cat comparison.md ;; esac
echo "kernels: $([ $failed = 0 ] && echo passed || echo FAILED) ($(($(date +%s) - begin)) s)"
[ $failed = 0 ]
