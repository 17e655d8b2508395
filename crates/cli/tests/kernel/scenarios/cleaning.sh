# SPDX-License-Identifier: MIT OR Apache-2.0
# Small zones, with a capacity that may end before the zone: a zone is filled, and nothing can be written behind that.
# Then f2fs has to clean zones, and zonefs shows them as files, if there is a mkzonefs.

has_both() { [ -n "$(zoned host-managed)" ] && [ -n "$(zoned none)" ]; }
check probe wait_for 20 has_both
disk=$(zoned host-managed) plain=$(zoned none)
# ---- What a zone takes. Numbers of blkzone are of sectors.

zone=$(cat "/sys/block/$disk/queue/chunk_sectors")
zones=$(cat "/sys/block/$disk/queue/nr_zones")
report() { blkzone report "/dev/$disk"; }
shapes() { report | sed 's/.*\(len 0x[0-9a-f]*, cap 0x[0-9a-f]*\),.*/\1/' | sort | uniq -c | xargs; }
say "shapes=$(shapes)"
check shapes [ "$(shapes)" = "$(printf '%d len 0x%06x, cap 0x%06x' "$zones" "$zone" $((CAPACITY * 2048)))" ]
state() { blkzone report -o $(($1 * zone)) -c 1 "/dev/$disk" | sed 's/.*zcond: *\([0-9]*\).*/\1/'; }
# A direct access to zone 3 at so many sectors.
at() { dd "$@" bs=64k count=$((${sectors:-128} / 128)) 2>/dev/null; }
head -c $((CAPACITY << 20)) /dev/urandom >/tmp/data
fill() { sectors=$((CAPACITY * 2048)) at if=/tmp/data of="/dev/$disk" oflag=direct seek=$((3 * zone / 128)); }
filled() { sectors=$((CAPACITY * 2048)) at if="/dev/$disk" iflag=direct skip=$((3 * zone / 128)) | cmp - /tmp/data; }
check fill fill
check full [ "$(state 3)" = 14 ]
check filled filled
check quiet quiet
behind() { at if=/tmp/data of="/dev/$disk" oflag=direct seek=$(((3 * zone + CAPACITY * 2048) / 128)); }
in_gap() { at if="/dev/$disk" of=/dev/null iflag=direct skip=$(((3 * zone + CAPACITY * 2048) / 128)); }
fails() { ! "$@"; }
gaps=false
if [ $((CAPACITY * 2048)) -lt "$zone" ]; then
    gaps=true
    check behind fails behind
    check in_gap fails in_gap
    check next_is_empty [ "$(state 4)" = 1 ]
fi
dmesg -c >/dev/null
check reset blkzone reset "/dev/$disk"

# ---- f2fs has to clean.

mounted() { mount -t f2fs "/dev/$plain" /mnt; }
sum_of_sums() { (cd /mnt && find . -type f -exec sha256sum {} + | sort -k 2) | sha256sum | cut -c 1-16; }
free_mib() { df -m /mnt | awk 'NR == 2 { print $4 }'; }
moved() { cat /sys/fs/f2fs/"$plain"/moved_blocks_* | awk '{ all += $1 } END { print all + 0 }'; }
has_moved() { [ "$(moved)" -ge "$1" ]; }
check mkfs mkfs.f2fs -q -f -m -c "/dev/$disk" "/dev/$plain"
# It has looked at the end of the disk, which may be a gap.
dmesg -c >/dev/null
check mount mounted
# write FIRST LAST
write() {
    for n in $(seq "$1" "$2"); do
        [ "$(free_mib)" -gt 12 ] || break
        head -c 1000000 /dev/urandom >"/mnt/$n" || return
    done
}
check write write 1000 1999
sync
rm -f /mnt/1*[13579]
for file in /mnt/1*[48]; do dd if=/tmp/data of="$file" bs=64k count=3 seek=4 conv=notrunc 2>/dev/null; done
sync
sum=$(sum_of_sums) before=$(moved)
echo 20 >/sys/fs/f2fs/"$plain"/gc_urgent_sleep_time
echo 1 >/sys/fs/f2fs/"$plain"/gc_urgent
check cleans wait_for 20 has_moved $((before + 1000))
say "f2fs: $(ls /mnt | wc -l) files, $(moved) blocks moved, $(report | grep -c 'zcond: 1(em)') zones empty"
echo 0 >/sys/fs/f2fs/"$plain"/gc_urgent
check same_after_cleaning [ "$(sum_of_sums)" = "$sum" ]
# Without the room that was won these would not fit.
check write_again write 2000 2999
sync
sum=$(sum_of_sums)
check quiet_f2fs quiet
umount /mnt
# That of f2fs-tools 1.15 counts the segments behind a capacity as free, and says so of scsi_debug as well.
clean() {
    fsck.f2fs --dry-run "/dev/$plain" >/tmp/fsck
    grep -q '\[Ok' /tmp/fsck || return
    ! grep '\[Fail\]' /tmp/fsck | { if $gaps; then grep -v 'free segment_count'; else cat; fi; } | grep .
}
check fsck clean
check mount_again mounted
check same_after_mount [ "$(sum_of_sums)" = "$sum" ]
umount /mnt

# ---- zonefs: a zone is a file.

[ -e /bin/mkzonefs ] || exit 0
size() { stat -c %s /mnt/seq/1; }
check reset_all blkzone reset "/dev/$disk"
check mkzonefs mkzonefs -f "/dev/$disk"
check mount_zonefs mount -t zonefs "/dev/$disk" /mnt
# The first zone is its superblock.
check files [ "$(ls /mnt/seq | wc -l)" = $((zones - 1)) ]
append() { dd if=/tmp/data of=/mnt/seq/1 bs=64k count=4 oflag=direct,append conv=notrunc 2>/dev/null; }
check append append
check append_again append
check size [ "$(size)" = 524288 ]
overwrite() { dd if=/tmp/data of=/mnt/seq/1 bs=64k count=1 oflag=direct conv=notrunc 2>/dev/null; }
check overwrite fails overwrite
same_file() { cmp -n 262144 "$1" /tmp/data; }
check read same_file /mnt/seq/1
fill_file() { dd if=/tmp/data of=/mnt/seq/2 bs=64k oflag=direct conv=notrunc 2>/dev/null; }
check fill_file fill_file
check is_filled cmp /mnt/seq/2 /tmp/data
umount /mnt
check mount_zonefs_again mount -t zonefs "/dev/$disk" /mnt
check size_again [ "$(size)" = 524288 ]
check read_again same_file /mnt/seq/1
check truncate truncate -s 0 /mnt/seq/1
check empty [ "$(state 2)" = 1 ]
umount /mnt
say "zonefs: $((zones - 1)) files"
