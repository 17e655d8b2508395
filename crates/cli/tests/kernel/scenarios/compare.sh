# SPDX-License-Identifier: MIT OR Apache-2.0
# What a device is to Linux and what can be done with it: the same for QEMU's ufs device as for any other, so that two
# lists of marks, side by side, tell the devices apart. PASS and FAIL are what every device has to do. STAGE=attribute
# only looks at what another guest has written, STAGE=timing only at latencies.

check probe wait_for 20 test -b /dev/sda
host=$(host)
lu=$(cd /sys/block/sda/device && pwd -P)
say "pci_id=$(cat "$host/vendor"):$(cat "$host/device")"

# What may be written and has to stay: bBootLunEn, which only ufs-bsg can write.
write_attribute() { bsg write-attribute 0 1; }
attribute() { bsg read-attribute 0; }
# The median in microseconds, as the guest sees it: an emulated machine is slow, so only differences tell something.
timing() {
    for size in 4k 256k; do
        fio --name=t --filename=/dev/sda --size=24m --direct=1 --ioengine=psync --thread --rw=randread --bs=$size \
            --number_ios=300 --randrepeat=0 --eta=never --output-format=terse --terse-version=3 --output=/tmp/terse
        say "read_${size}_us=$(tr ';' '\n' </tmp/terse | sed -n 's/^50.000000%=//p' | head -n 1)"
    done
}
case ${STAGE:-all} in
attribute)
    say "attribute_after_restart=$(attribute)"
    exit 0
    ;;
timing)
    check fill dd if=/dev/urandom of=/dev/sda bs=1M count=24 oflag=direct
    timing
    exit 0
    ;;
esac

# ---- What it says of itself.

# show FOLDER NAME: every file that can be read.
show() {
    for file in "$1"/*; do
        [ ! -f "$file" ] || say "$2/$(basename "$file")=$(cat "$file" 2>/dev/null || echo unreadable)"
    done
}
for group in device_descriptor geometry_descriptor interconnect_descriptor health_descriptor string_descriptors flags \
    attributes; do
    show "$host/$group" $group
done
show "$lu/unit_descriptor" unit_descriptor
for file in vendor model rev scsi_level queue_depth; do say "lu/$file=$(cat "$lu/$file")"; done
for file in logical_block_size physical_block_size max_sectors_kb discard_max_bytes write_zeroes_max_bytes write_cache \
    fua rotational; do
    say "queue/$file=$(cat "/sys/block/sda/queue/$file")"
done
can bsg_node test -e /dev/bsg/ufs-bsg0
can hpb cat "$lu/hpb_stats/hit_cnt"

# ---- Commands of the logical unit.

for page in 00 80 83 87 b0 b1 b2; do can vpd_$page sg_raw -r 252 /dev/sda 12 01 $page 00 fc 00; done
# accepts NAME ARGUMENTS OF SG_RAW...
accepts() {
    command=$1
    shift
    can "command_$command" sg_raw "$@"
}
accepts test_unit_ready /dev/sda 00 00 00 00 00 00
accepts request_sense -r 18 /dev/sda 03 00 00 00 12 00
accepts read_6 -r 4096 /dev/sda 08 00 00 00 01 00
accepts mode_sense_6 -r 192 /dev/sda 1a 08 3f 00 c0 00
accepts mode_sense_10 -r 192 /dev/sda 5a 08 3f 00 00 00 00 00 c0 00
accepts read_capacity_10 -r 8 /dev/sda 25 00 00 00 00 00 00 00 00 00
accepts read_capacity_16 -r 32 /dev/sda 9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00
accepts read_10 -r 4096 /dev/sda 28 00 00 00 00 00 00 00 01 00
accepts read_16 -r 4096 /dev/sda 88 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00
accepts verify_10 /dev/sda 2f 00 00 00 00 00 00 00 01 00
accepts prefetch_10 /dev/sda 34 00 00 00 00 00 00 00 01 00
accepts synchronize_cache_10 /dev/sda 35 00 00 00 00 00 00 00 00 00
accepts synchronize_cache_16 /dev/sda 91 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
accepts report_luns -r 64 /dev/sda a0 00 00 00 00 00 00 00 00 40 00 00
accepts report_supported_commands -r 512 /dev/sda a3 0c 00 00 00 00 00 00 02 00 00 00

rpmb=$(well_known 49476)
can rpmb_unit test -n "$rpmb"
# The key is asked for by a frame, and its result is fetched: SECURITY PROTOCOL OUT and IN of JEDEC's protocol.
rpmb_counter() {
    head -c 510 /dev/zero >/tmp/frame && printf '\000\002' >>/tmp/frame
    sg_raw -s 512 -i /tmp/frame "$rpmb" b5 ec 00 01 00 00 00 00 02 00 00 00 &&
        sg_raw -r 512 "$rpmb" a2 ec 00 01 00 00 00 00 02 00 00 00
}
can rpmb_commands rpmb_counter

if [ -e /dev/bsg/ufs-bsg0 ]; then
    can attribute_written write_attribute
    say "attribute=$(attribute)"
fi
can write_booster test $(($(cat "$host/device_descriptor/ext_feature_sup") & 0x100)) != 0

# ---- Data.

head -c 8388608 /dev/urandom >/tmp/data
dd_back() {
    dd if=/tmp/data of=/dev/sda bs=64k oflag=direct 2>/dev/null &&
        dd if=/dev/sda bs=64k count=128 iflag=direct 2>/dev/null | cmp - /tmp/data
}
check dd dd_back
fio_verify() {
    fio --name=verify --filename=/dev/sda --size=24m --direct=1 --thread --ioengine=libaio --iodepth=16 \
        --rw=randwrite --bsrange=4k-64k --verify=crc32c --verify_fatal=1 --eta=never
}
check fio_verify fio_verify
can discard blkdiscard -l 4194304 /dev/sda
zeros() { [ "$(dd if=/dev/sda bs=1M count=4 iflag=direct 2>/dev/null | tr -d '\0' | wc -c)" = 0 ]; }
can discarded_reads_zero zeros

# file_system NAME MKFS FSCK: makes, fills, mounts again, compares, checks.
file_system() {
    $2 /dev/sda && mount -t "$1" /dev/sda /mnt || return
    for n in 1 2 3 4; do head -c $((n << 20)) /tmp/data >/mnt/$n || return; done
    cp -r /bin /mnt/ && rm /mnt/2 && sync && echo 3 >/proc/sys/vm/drop_caches || return
    sums >/tmp/before && cmp -n 4194304 /mnt/4 /tmp/data && umount /mnt || return
    mount -t "$1" /dev/sda /mnt && sums >/tmp/after && umount /mnt || return
    [ -s /tmp/before ] && cmp /tmp/before /tmp/after && $3 /dev/sda
}
sums() { (cd /mnt && find . -type f -exec sha256sum {} + | sort -k 2); }
check ext4 file_system ext4 "mkfs.ext4 -F -q" "e2fsck -f -n"
check f2fs file_system f2fs "mkfs.f2fs -f -q" "fsck.f2fs --dry-run"

timing

# ---- Task management. -N: nothing stronger if it fails.

can lu_reset sg_reset -N -d /dev/sda
if [ -e /dev/bsg/ufs-bsg0 ]; then
    # 0 and 8 are success, 4 says that there is no such function, 5 that it failed.
    for function in 01:abort_task 02:abort_task_set 04:clear_task_set 08:lu_reset 80:query_task 81:query_task_set; do
        say "task_${function#*:}=$(bsg task 0x${function%:*} 0 0)"
    done
fi
check read_after_reset dd if=/dev/sda of=/dev/null bs=64k count=16 iflag=direct
say "host_resets=$(dmesg | grep -c 'host reset\|reset_and_restore\|host_reset')"

# ---- Power.

# Linux lets a controller of this kind sleep only when told to, and when every logical unit of it does.
runtime_suspend() {
    for power in "$host"/host*/target*/*/power; do
        echo 200 >"$power/autosuspend_delay_ms" && echo auto >"$power/control"
    done 2>/dev/null
    wait_for 10 grep -q suspended "$host/power/runtime_status"
}
can runtime_suspend runtime_suspend
check awake dd if=/dev/sda of=/dev/null bs=4k count=1 iflag=direct
can runtime_suspend_again wait_for 10 grep -q suspended "$host/power/runtime_status"
