#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process. Parameters of the work come as environment, from the kernel's command line.
/bin/busybox --install /tmp
export PATH=/bin:/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tracefs trace /sys/kernel/tracing
echo 0 >/proc/sys/kernel/printk
mkdir -p /run/out
mount -t tmpfs -o size=90% tmp /run/out
for m in /mod/*.ko; do
    case $m in
    *-nandsim.ko | *-ramnand.ko | *-ubi.ko | *-ubifs.ko) ;;
    *) insmod "$m" || echo "FAILED: insmod $m" ;;
    esac
done
if sh -e "/$work.sh"; then echo "WORK IS DONE"; else echo "WORK FAILED"; fi
sync
poweroff -f
