# SPDX-License-Identifier: MIT OR Apache-2.0
# A zoned unit beside a conventional one: what Linux, util-linux, zbd-utils and sg3-utils make of it, and data of fio.
# With STAGE=f2fs the server was started anew: fio has to find its data; then f2fs goes over both units. With
# STAGE=again the server was killed meanwhile: f2fs has to mount, and what was synced has to be there.

has_both() { [ -n "$(zoned host-managed)" ] && [ -n "$(zoned none)" ]; }
check probe wait_for 20 has_both
disk=$(zoned host-managed) plain=$(zoned none)
queue=/sys/block/$disk/queue
# f2fs keeps the paths of its devices, and the kernel may find the units in another order the next time.
node() { rm -f "/dev/$1" && mknod "/dev/$1" b $(tr : ' ' <"/sys/block/$2/dev"); }
node zoned "$disk" && node plain "$plain"
sg=/dev/$(basename /sys/block/"$disk"/device/scsi_generic/*)
state() { blkzone report -o $(($1 * zone)) -c 1 /dev/zoned | sed 's/, reset.*(/ (/; s/ \[type.*//'; }
condition() { state "$1" | sed 's/.*zcond: *\([0-9]*\).*/\1/'; }
zone=$(cat "$queue/chunk_sectors")
sum_of_sums() { (cd /mnt && find . -type f -exec sha256sum {} + | sort -k 2) | sha256sum | cut -c 1-16; }
mounted() { mount -t f2fs /dev/plain /mnt; }
# Both programs ask the kernel. One prints sectors, and how far a write pointer is from the start, the other bytes.
same_reports() {
    blkzone report /dev/zoned | tr ',(' '  ' | sed 's/zcond: */zcond: /' |
        while read -r _ start _ length _ capacity _ pointer _ _ _ condition _; do
            printf '%014d, %014d, %014d, %014d, 0x%x\n' $((start * 512)) $((length * 512)) $((capacity * 512)) \
                $(((start + pointer) * 512)) "$condition"
        done >/tmp/blkzone
    # It looks for the device's name in sysfs.
    zbd report -csv "/dev/$disk" | sed -n 's/^[0-9]*, [0-9]*, \(.*\), 0, 0$/\1/p' >/tmp/zbd
    [ -s /tmp/zbd ] && diff /tmp/blkzone /tmp/zbd
}
counted() { blkzone report /dev/zoned | grep -cE "zcond: *($1)\("; }
# fio_job FIRST OPTION...: in eight zones, which are reset before fio writes what it is to verify.
fio_job() {
    first=$1
    shift
    fio --name=job --filename=/dev/zoned --zonemode=zbd --offset=$((first * zone * 512)) --size=$((8 * zone * 512)) \
        --direct=1 --thread --ioengine=libaio --iodepth=8 --verify=crc32c --verify_fatal=1 --verify_interval=4k \
        --randrepeat=0 --eta=never --output=/tmp/report "$@"
}
if [ "${STAGE:-first}" = first ]; then
    say "zones=$(cat "$queue/nr_zones") sectors=$zone open=$(cat "$queue/max_open_zones")" \
        "granularity=$(cat "$queue/zone_write_granularity")"
    check all_empty [ "$(blkzone report /dev/zoned | grep -c 'zcond: 1(em)')" = "$(cat "$queue/nr_zones")" ]
    check sg_counts [ "$(sg_rep_zones -m 65536 "$sg" | grep -c 'Zone type: Sequential')" = "$(cat "$queue/nr_zones")" ]
    dd if=/dev/urandom of=/tmp/data bs=64k count=4 2>/dev/null
    check write dd if=/tmp/data "of=/dev/zoned" bs=64k oflag=direct seek=$((zone * 512 / 65536))
    say "written: $(state 1)"
    check read sh -c "dd if=/dev/zoned bs=64k iflag=direct count=4 skip=$((zone * 512 / 65536)) 2>/dev/null | cmp - /tmp/data"
    check above_pointer sh -c "dd if=/dev/zoned bs=64k iflag=direct count=1 skip=$((zone * 512 / 65536 + 4)) 2>/dev/null |
        cmp - /dev/zero 2>&1 | grep -q EOF"
    check quiet_before quiet
    check refused sh -c "! dd if=/tmp/data of=/dev/zoned bs=4k count=1 oflag=direct seek=$((zone * 512 / 4096)) 2>/dev/null"
    dmesg -c >/dev/null
    check open blkzone open -o $((2 * zone)) -c 1 /dev/zoned
    say "opened: $(state 2)"
    check close blkzone close -o $((zone)) -c 1 /dev/zoned
    say "closed: $(state 1)"
    check finish blkzone finish -o $((zone)) -c 1 /dev/zoned
    say "finished: $(state 1)"
    check same_reports same_reports
    check sg_open sg_zone --open --zone=$((3 * zone / 8)) "$sg"
    check sg_opened [ "$(condition 3)" = 3 ]
    check sg_close sg_zone --close --zone=$((3 * zone / 8)) "$sg"
    check sg_closed [ "$(condition 3)" = 1 ]
    check sg_finish sg_zone --finish --zone=$((3 * zone / 8)) "$sg"
    check sg_finished [ "$(condition 3)" = 14 ]
    check reset sg_reset_wp --zone=$((zone / 8)) "$sg"
    say "reset: $(state 1)"
    check reset_all blkzone reset /dev/zoned
    check again_empty [ "$(blkzone report /dev/zoned | grep -c 'zcond: 1(em)')" = "$(cat "$queue/nr_zones")" ]

    check fio_write fio_job 0 --rw=write --bs=64k --io_size=20m
    check fio_randwrite fio_job 8 --rw=randwrite --bs=16k --io_size=12m
    check same_reports_after_fio same_reports
    say "report=$(counted 1) empty, $(counted '2|3|4') written in part, $(counted 14) full"
    check quiet quiet
elif [ "$STAGE" = f2fs ]; then
    check fio_read fio_job 0 --rw=read --bs=64k
    check fio_read_random fio_job 8 --rw=read --bs=4k
    say "report_after=$(counted 1) empty, $(counted '2|3|4') written in part, $(counted 14) full"

    check mkfs mkfs.f2fs -q -f -m -c /dev/zoned /dev/plain
    check mount mounted
    for round in 1 2 3; do
        for n in 1 2 3 4 5 6 7 8; do head -c $((n * 700000)) /dev/urandom >/mnt/$round-$n; done
        sync
        rm -f /mnt/$round-[2468]
    done
    sync
    say "files=$(sum_of_sums)"
    say "used=$(blkzone report /dev/zoned | grep -vc 'zcond: 1(em)')"
    umount /mnt
    check fsck fsck.f2fs --dry-run /dev/plain
    check mount_again mounted
    check quiet quiet
    # Not synced: this may be lost. The machine ends with f2fs mounted.
    head -c 3000000 /dev/urandom >/mnt/unsynced
    say END
    poweroff -n -f
else
    say "used=$(blkzone report /dev/zoned | grep -vc 'zcond: 1(em)')"
    check mount_after mounted
    rm -f /mnt/unsynced
    say "files=$(sum_of_sums)"
    umount /mnt
    check fsck_after fsck.f2fs --dry-run /dev/plain
    # f2fs tells of write pointers that it mends.
    check quiet quiet 'sd |zbc|ufs|I/O'
fi
