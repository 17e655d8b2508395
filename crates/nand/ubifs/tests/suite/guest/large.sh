# SPDX-License-Identifier: MIT OR Apache-2.0
# What the guest does with the large device. $big_mib, $part_mib: MiB of two files; the NAND as in probes.sh.
# The image to be flashed is on /dev/vda, what comes back is a tar archive on /dev/vdb, and the flash on /dev/vdc.
. /probes.sh

# 1. What mkfs.ubifs and ubinize made.
flash
attached mkfs
streams mkfs usr
mount -t ubifs ubi0:rootfs /mnt
manifest mkfs
umount /mnt

# 2. The same tree as the kernel writes it, and two files that LZO cannot make smaller.
mount -t ubifs ubi0:rootfs /mnt
cp -a /mnt/usr /mnt/copy
dd if=/dev/urandom of=/mnt/part bs=1M count=$part_mib 2>/dev/null
dd if=/dev/urandom of=/mnt/big bs=1M count=$big_mib 2>/dev/null
sync
umount /mnt
ubidetach -m 0
nanddump -q -f /dev/vdc /dev/mtd0
sync
# The pages of that disk would fill the memory: then the kernel looks for nodes of the index to drop.
echo 3 >/proc/sys/vm/drop_caches

attached used
streams used copy
mounted used_part "" 'cat part >/dev/null'
mounted used_bulk "-o bulk_read" 'cat part >/dev/null'
mount -t ubifs ubi0:rootfs /mnt
manifest used
umount /mnt
mounted used_rm "" 'rm big; sync'

cd $out
tar cf /dev/vdb .
