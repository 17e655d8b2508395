#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process: runs /scenario.sh, which guest.sh adds to the initramfs. Parameters of the scenario come as
# environment, from the kernel's command line.
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t tmpfs tmp /tmp
ln -s /proc/self/fd /dev/fd

# Marks go by the kernel's log, which writes whole lines, with the time: nothing else on the console can cut them.
say() { echo "@@ $*" >/dev/kmsg; }
# check NAME COMMAND...: has to succeed.
check() {
    name=$1
    shift
    if "$@"; then say "PASS $name"; else say "FAIL $name: status $?"; fi
}
# can NAME COMMAND...: a difference between devices, not a fault.
can() {
    name=$1
    shift
    if "$@"; then say "$name=yes"; else say "$name=no"; fi
}
# wait_for SECONDS COMMAND...
wait_for() {
    tenths=$(($1 * 10))
    shift
    until "$@" 2>/dev/null; do
        [ $((tenths -= 1)) -ge 0 ] || return 1
        sleep 0.1
    done
}
# well_known NUMBER: the generic node of that logical unit.
well_known() {
    for node in /sys/class/scsi_generic/*; do
        case $(basename "$(cd "$node/device" && pwd -P)") in *:"$1") echo "/dev/$(basename "$node")" ;; esac
    done
}
# zoned MODEL: the disks whose zones are of that model, host-managed or none.
zoned() { for disk in /sys/block/sd*; do [ "$(cat "$disk/queue/zoned")" != "$1" ] || basename "$disk"; done; }
# quiet [OF WHAT]: the drivers have nothing to complain about.
quiet() {
    ! dmesg | grep -E "(${1:-sd |zbc|ufs|I/O|F2FS}).*(FAILED|[Ff]ail|[Ee]rror|[Ii]nvalid|[Uu]naligned|mismatch)"
}
# The first UFS controller that has a driver.
host() { ls -d /sys/bus/pci/drivers/ufshcd/0* 2>/dev/null | head -n 1 | grep .; }

modprobe -a ufshcd-pci sd_mod sg 2>/dev/null
# QEMU's own device, which 6.1 has no id for.
echo 1b36 0013 2>/dev/null >/sys/bus/pci/drivers/ufshcd/new_id
say "kernel=$(uname -r)"
(
    . /scenario.sh
    exit 0
) </dev/null || say "FAIL scenario: it left with status $?"
umount -a -t ext4,f2fs
say END
poweroff -f
