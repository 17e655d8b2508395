# SPDX-License-Identifier: MIT OR Apache-2.0
# Resets of every kind and sleep, while fio writes and verifies.

check probe wait_for 20 test -b /dev/sda
host=$(host)
fio_verified() {
    fio --name=job --filename=/dev/sda --size=24m --direct=1 --thread --ioengine=libaio --iodepth=16 --rw=randrw \
        --bsrange=4k-64k --verify=crc32c --verify_fatal=1 --eta=never --time_based --runtime="$1" --output=/dev/null
}
# under SECONDS NAME COMMAND...: the command, every second, while fio runs, at least twice.
under() {
    seconds=$1 name=$2
    shift 2
    fio_verified "$seconds" &
    job=$!
    done=0
    failed=0
    sleep 1
    while kill -0 $job 2>/dev/null; do
        if "$@"; then done=$((done + 1)); else failed=$((failed + 1)); fi
        sleep 0.7
    done
    say "$name: $done times, $failed failed"
    check "io_goes_on_under_$name" wait $job
    # Linux gives a task 100 ms. A loaded machine may exceed that now and then, and the log says so.
    late=$(dmesg | grep -c 'reset_handler: failed with err -110')
    check "${name}_done" test $done -gt $failed -a $done -ge 2 -a $failed -le "$late"
}
# Without -N Linux would take a host reset for a device reset that failed.
under 4 device_reset sg_reset -N -d /dev/sda
under 12 host_reset sg_reset -N -H /dev/sda
check read_after_resets dd if=/dev/sda of=/dev/null bs=64k count=64 iflag=direct
say "resets_in_log=$(dmesg | grep -c 'ufshcd_eh_host_reset_handler\|host reset')"

# Asleep whenever it may, and woken by each burst.
for power in "$host"/host*/target*/*/power; do
    echo 100 >"$power/autosuspend_delay_ms" && echo auto >"$power/control"
done 2>/dev/null
slept() { wait_for 10 grep -q suspended "$host/power/runtime_status"; }
head -c 262144 /dev/urandom >/tmp/data
sleeps=0
for n in 1 2 3 4; do
    slept && sleeps=$((sleeps + 1))
    check "write_wakes_$n" dd if=/tmp/data of=/dev/sda bs=64k seek=$((n * 4)) oflag=direct
    slept && sleeps=$((sleeps + 1))
    check "read_wakes_$n" sh -c "dd if=/dev/sda bs=64k skip=$((n * 4)) count=4 iflag=direct | cmp - /tmp/data"
done
say "runtime_suspends=$sleeps"
check sleeps test $sleeps -ge 8
for power in "$host"/host*/target*/*/power; do echo on >"$power/control"; done 2>/dev/null

# Suspend of the whole machine, but that it does not go to sleep at the end. The wait is five seconds.
if [ -w /sys/power/pm_test ] && [ "${SUSPEND:-no}" = yes ]; then
    echo devices >/sys/power/pm_test
    fio_verified 8 &
    job=$!
    sleep 1
    check system_suspend sh -c "echo mem >/sys/power/state"
    check io_after_suspend wait $job
fi
