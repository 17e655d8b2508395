# SPDX-License-Identifier: MIT OR Apache-2.0
# fio at several queue depths, then files that outlive a reboot of the guest, and of the server. STAGE=again only looks
# at the files. FS is ext4 or f2fs.

check probe wait_for 20 test -b /dev/sda
# The figures are those of an emulated processor. See docs/linux-guest.md.
fio_job() {
    what=$1
    shift
    fio --name=job --filename=/dev/sda --size=24m --direct=1 --thread --ioengine=libaio --randrepeat=0 --eta=never \
        --output=/tmp/report "$@" || return
    say "fio_$what: $(sed -n 's/^ *\(read\|write\|trim\) *: *\(IOPS=[^,]*, BW=[^ ]*\).*/\1 \2/p' /tmp/report | xargs)"
}
verified() { fio_job "$@" --verify=crc32c --verify_fatal=1; }
sums() { (cd /mnt && find . -type f -exec sha256sum {} + | sort -k 2); }
sum_of_sums() { sums | sha256sum | cut -c 1-16; }
mounted() { mount -t "$FS" /dev/sda /mnt 2>/dev/null; }

if [ "${STAGE:-first}" = first ] && ! mounted; then
    for depth in 1 4 32; do
        size="--bs=4k --io_size=8m --iodepth=$depth"
        # shellcheck disable=SC2086
        check fio_randwrite_qd$depth verified "randwrite_4k_qd$depth" --rw=randwrite $size
        # shellcheck disable=SC2086
        check fio_randread_qd$depth fio_job "randread_4k_qd$depth" --rw=randread $size
    done
    check fio_randrw verified randrw_qd16 --rw=randrw --bsrange=4k-128k --iodepth=16 --io_size=24m
    check fio_trim fio_job trim_qd8 --rw=randtrim --bs=64k --iodepth=8 --io_size=8m
    check fio_trimwrite fio_job trimwrite_qd8 --rw=trimwrite --bs=64k --iodepth=8 --io_size=8m
    check fio_after_trim verified seqwrite_qd8 --rw=write --bs=128k --iodepth=8
    force=-F
    [ "$FS" = ext4 ] || force=-f
    check mkfs "mkfs.$FS" -q $force /dev/sda
    check mount mounted
    for n in 1 2 3 4 5 6 7 8; do head -c $((n * 300000)) /dev/urandom >/mnt/$n; done
    mkdir /mnt/bin && cp /bin/busybox /bin/stamps /mnt/bin/
    sync
    say "boot=1 files=$(sum_of_sums)"
    # Not unmounted: it is for the journal, and the cache of the device, to bring everything back.
    reboot -f
    sleep 60
fi
grep -q " /mnt " /proc/mounts || check mounts mounted
say "boot=again files=$(sum_of_sums)"
umount /mnt
if [ "$FS" = ext4 ]; then check fsck e2fsck -f -n /dev/sda; else check fsck fsck.f2fs --dry-run /dev/sda; fi
