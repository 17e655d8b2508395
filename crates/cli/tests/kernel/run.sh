#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Linux guests in QEMU with a UFS device: `make test-kernel`. run.sh DIR fills DIR (setup.sh), then runs the scenarios.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/setup.sh" "$1"
cd "$1"
export KERNEL_LAB="$PWD"
if [ ! -e qemu ]; then
    echo "SKIPPED: no QEMU, so no guest"
    exit 0
fi
passed=0
failed=0
# scenario NAME KERNEL OPTION...: SCENARIO of guest.sh, with its marks and the console in files of that name.
scenario() {
    name=$1 kernel=$2
    shift 2
    if [ ! -e "kernel-$kernel.vmlinuz" ]; then
        echo "SKIPPED: $name: there is no kernel $kernel"
        return
    fi
    begin=$(date +%s)
    if sh "$here/guest.sh" -l "$name.log" "$@" >"$name.marks"; then
        passed=$((passed + 1))
        echo "passed: $name ($(($(date +%s) - begin)) s, $(grep -c '@@ PASS' "$name.marks") checks)"
    else
        failed=$((failed + 1))
        echo "FAILED: $name: $PWD/$name.log"
    fi
}
for kernel in a b; do
    truncate -s 0 qemu-ufs.img
    truncate -s 256M qemu-ufs.img
    scenario "compare-qemu-$kernel" $kernel -t 300 -i qemu-ufs.img $kernel "$here/scenarios/compare.sh"
done
rm -f qemu-ufs.img
echo "kernel: $passed passed, $failed failed"
[ $failed = 0 ]
