#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Starts one Linux guest with one UFS device, and says whether its scenario went well.
#
#     guest.sh [OPTION...] a|b SCENARIO.sh [QEMU OPTION...]
#
#     -s SOCKET     the device is a vfio-user server that listens there
#     -i IMAGE      the device is QEMU's own, with one logical unit: this raw file
#     -l LOG        the guest's console goes here (KERNEL_LAB/console.log)
#     -t SECONDS    the guest is stopped then (120)
#     -e KEY=VALUE  environment of the scenario
#     -f FILE       a file or program for the scenario, as /files/NAME
#     -c ARCHIVE    files for the guest, made by cpio
#     -a WORDS      for the kernel's command line
#     -r            it may reboot
#
# KERNEL_LAB is the folder that setup.sh has filled (target/kernel), SMP the number of processors (1). The marks of the
# scenario ("@@ ...") are printed. Status 1: a check failed, the kernel complained or there was no end.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lab=${KERNEL_LAB:-target/kernel}
log=$lab/console.log
limit=120
# An oops ends the guest. Marks that go to the kernel's log are not to be held back.
# The test of the timer fails when the emulator gets no processor for a while.
words="console=ttyS0 no_console_suspend printk.devkmsg=on panic=-1 oops=panic tsc=reliable mitigations=off"
words="$words no_timer_check"
files=
archive=/dev/null
device=
reboot=-no-reboot
usage() { sed -n 's/^# \{0,1\}//; 3,16p' "$0" >&2; exit 2; }
while getopts s:i:l:t:e:f:c:a:r option; do
    case $option in
    s) device="{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"$OPTARG\"}}" ;;
    i) device=ufs,id=ufs image=$OPTARG ;;
    l) log=$OPTARG ;;
    t) limit=$OPTARG ;;
    e | a) words="$words $OPTARG" ;;
    f) files="$files $OPTARG" ;;
    c) archive=$OPTARG ;;
    r) reboot= ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
kernel=$lab/kernel-$1
scenario=$2
shift 2
[ -z "$device" ] || set -- "$@" -device "$device"
if [ -n "${image:-}" ]; then
    set -- "$@" -drive "if=none,id=image,format=raw,discard=unmap,file=$image" -device ufs-lu,bus=ufs,drive=image
fi

# The kernel takes archives one after the other: tools, modules, and what this guest is to do. fio with its libraries
# takes a second to unpack, so only a scenario that names it gets it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/add" "$work/add/files"
cp "$here/init.sh" "$work/add/init"
chmod 755 "$work/add/init"
cp "$scenario" "$work/add/scenario.sh"
for file in $files; do cp "$file" "$work/add/files/"; done
set -- -initrd "$work/initrd" "$@"
cp "$lab/tools.cpio" "$work/initrd"
if grep -qw fio "$scenario"; then cat "$lab/fio.cpio" >>"$work/initrd"; fi
if [ -e "$kernel.cpio" ]; then cat "$kernel.cpio" >>"$work/initrd"; fi
cat "$archive" >>"$work/initrd"
(cd "$work/add" && find . | cpio -o -H newc --quiet) >>"$work/initrd"

# The loader of the libraries that QEMU was linked with; they are newer than those of this system.
: >"$log"
status=0
qemu=$lab/qemu
# shellcheck disable=SC2086
timeout --foreground -k 5 "$limit" "$qemu/lib/ld-linux-x86-64.so.2" --library-path "$qemu/lib" \
    "$qemu/qemu-system-x86_64" \
    -L "$qemu/share" -nodefaults -no-user-config -display none $reboot \
    -accel tcg,thread=multi -machine q35,memory-backend=mem -cpu max -smp "${SMP:-1}" -m 512 \
    -object memory-backend-memfd,id=mem,size=512M,share=on -serial "file:$log" \
    -kernel "$kernel.vmlinuz" -append "$words" "$@" || status=$?

sed -n 's/\r//; s/.*\(@@ .*\)/\1/p' "$log"
# complain WHY: the last words of this script.
complain() {
    echo "$1: $log" >&2
    exit 1
}
! grep -E '^\[[ 0-9.]*\] .*(Call Trace|BUG|WARNING): ?' "$log" >&2 || complain "the kernel complained"
[ $status != 124 ] || complain "no end within $limit s"
[ $status = 0 ] || complain "QEMU ended with status $status"
grep -q '@@ END' "$log" || complain "the guest came to no end"
! grep '@@ FAIL' "$log" >&2 || complain "a check failed"
