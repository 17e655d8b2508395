# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a file system (STAGE=make), or writes files to it, some of them synced. FS is ext4 or f2fs.

check probe wait_for 20 test -b /dev/sda
if [ "$STAGE" = make ]; then
    force=-F
    [ "$FS" = ext4 ] || force=-f
    check mkfs "mkfs.$FS" -q $force /dev/sda
    sync
else
    check mount mount -t "$FS" /dev/sda /mnt
    synced() { head -c "$1" /dev/urandom | dd of="/mnt/$2" bs=4k conv=fsync; }
    for n in 1 2 3 4 5 6; do
        head -c $((n * 30000)) /dev/urandom >/mnt/$n
        check fsync synced $((n * 7000)) synced-$n
    done
    mkdir /mnt/folder
    mv /mnt/1 /mnt/folder/
    sync
    rm /mnt/2 /mnt/synced-3
    check fsync synced 5000 /folder/last
    check unmount umount /mnt
fi
