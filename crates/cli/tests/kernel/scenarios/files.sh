# SPDX-License-Identifier: MIT OR Apache-2.0
# f2fs with its metadata on a conventional unit and its files on a zoned one. Checks what a killed guest has left
# (changes of files from OLD to FLUSHED), then changes files from NEW on until it is killed as well.

has_both() { [ -n "$(zoned host-managed)" ] && [ -n "$(zoned none)" ]; }
check probe wait_for 20 has_both
node() { mknod "/dev/$1" b $(tr : ' ' <"/sys/block/$2/dev"); }
# f2fs keeps the paths of its devices, and the kernel may find the units in another order the next time.
node zoned "$(zoned host-managed)" && node plain "$(zoned none)"
mounted() { mount -t f2fs /dev/plain /mnt; }
# A mount mends what a kill leaves, so that nothing is left to mend.
clean() {
    fsck.f2fs --dry-run /dev/plain >/tmp/fsck && grep -q '\[Ok' /tmp/fsck &&
        ! grep -i 'mismatch\|assert\|\[fail\]' /tmp/fsck
}

if [ -n "${OLD:-}" ]; then
    say "zones=$(blkzone report /dev/zoned | sed 's/.*zcond: *//; s/ .*//' | sort | uniq -c | xargs)"
    check mount mounted
    files check /mnt "$OLD" "$FLUSHED" >/tmp/files || say "FAIL files_from_${OLD}_to_$FLUSHED"
    while read -r line; do say "found: $line"; done </tmp/files
    umount /mnt
    check fsck clean
else
    check mkfs mkfs.f2fs -q -f -m -c /dev/zoned /dev/plain
fi
say checked
if [ -n "${NEW:-}" ]; then
    check mount_again mounted
    files write /mnt "$NEW"
fi
