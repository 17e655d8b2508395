# SPDX-License-Identifier: MIT OR Apache-2.0
# A device that misbehaves in one way (HOW): Linux has to get over it, its log has to say so, and data has to be right.

check probe wait_for 30 test -b /dev/sda
# Linux waits 30 s for a command; nobody here does.
echo 3 >/sys/block/sda/device/timeout
depth=4 size=12m
# A completion that is lost is found with the next one, if there is another.
[ "$HOW" != lost-completion ] || depth=1 size=6m
if [ "$HOW" = lost-hibernate ]; then
    # Only a device that sleeps hibernates its link.
    host=$(host)
    for power in "$host"/host*/target*/*/power; do
        echo 100 >"$power/autosuspend_delay_ms" && echo auto >"$power/control"
    done 2>/dev/null
    wait_for 20 sh -c 'dmesg | grep -q "0x17.*completion timeout"'
    for power in "$host"/host*/target*/*/power; do echo on >"$power/control"; done 2>/dev/null
fi
check verify fio --name=v --filename=/dev/sda --rw=randwrite --verify=crc32c --bs=4k --size=$size --direct=1 \
    --ioengine=libaio --iodepth=$depth --randseed=3 --output=/dev/null
check still_reads dd if=/dev/sda of=/dev/null bs=1M count=8 iflag=direct
# seen NAME PATTERN: so many lines of the log.
seen() { say "$1=$(dmesg | grep -c -E "$2")"; }
seen aborts 'ufshcd_abort: Device abort task'
seen lost_completions 'cmd was completed, but without a notifying'
seen recoveries 'ufshcd_err_handler finished; HBA state operational'
seen hibernate_timeouts 'cmd 0x17 .*completion timeout'
