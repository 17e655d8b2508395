# SPDX-License-Identifier: MIT OR Apache-2.0
# What the guest does. $compr: compressor; $big: bytes of a file; $gone: a file that is removed; the NAND as in probes.sh.
# The image to be flashed is on /dev/vda, what comes back is a tar archive on /dev/vdb.
. /probes.sh

# 1. What Readpath wrote.
flash
attached ours
sha256sum </dev/ubi0_1 >$out/static.sha
sha256sum </dev/ubi0_2 >$out/scratch.sha
streams ours .
mount -t ubifs ubi0:rootfs /mnt
manifest ours
umount /mnt

# 2. What Linux makes of it, unmounted as it should be.
mount -t ubifs -o compr=$compr ubi0:rootfs /mnt
cd /mnt
mkdir -p new/a/b/c
for i in $(seq 1 60); do
    noise new/noise$i $((i * 331))
    seq 1 $((i * 40)) >new/a/text$i
    mkdir new/a/b/dir$i
done
noise new/large 1500000
noise new/big $big
seq 1 90000 >new/counting
sync
noise new/patch 3000
for at in 0 7 150 366; do dd if=new/patch of=new/large bs=4096 seek=$at conv=notrunc 2>/dev/null; done
truncate -s 700001 new/large
truncate -s 900000 new/large
dd if=new/patch of=new/sparse bs=1000 seek=3000 2>/dev/null
truncate -s 0 new/noise3
ln new/counting new/a/second
ln -s a/text1 new/link
mknod new/char c 300 70000
mknod new/block b 8 1
mkfifo new/pipe
mv new/a/text2 new/b_text
mv new/a/text4 new/a/text5
mv new/a/b/dir7 new/dir_seven
rm new/noise9 new/a/text9
rmdir new/a/b/dir9
chmod 4711 new/b_text
for i in $(seq 1 12); do setfattr -n user.number$i -v "value of $i" new/b_text; done
setfattr -n user.large -v $(head -c 3000 /dev/zero | tr '\0' x) new/counting
setfattr -x user.number4 new/b_text
cd /
umount /mnt
nanddump -q -f $out/clean.mtd /dev/mtd0
streams clean .
mount -t ubifs ubi0:rootfs /mnt
manifest clean
umount /mnt
mounted clean_bulk "-o bulk_read" 'cat new/large new/counting new/big >/dev/null'
mounted clean_rm "" 'rm $gone; sync'

# 3. A power cut: everything is in flash, some of it only in the journal, and a file without a name is still open.
mount -t ubifs -o compr=$compr ubi0:rootfs /mnt
cd /mnt
noise orphan 30000
exec 9<orphan
rm orphan
sync
mkdir late
for i in $(seq 1 25); do noise late/n$i $((i * 1701)); done
seq 1 3000 >late/text
truncate -s 100000 new/a/second
mv late/n3 new/noise10
rm late/n4 new/counting
for f in late/n1 late/n5 late/n25 late/text new/a/second; do dd if=/dev/null of=$f bs=1 count=0 conv=notrunc,fsync 2>/dev/null; done
# Write buffers are flushed by timers of up to five seconds; data not synchronised reach flash after up to 35.
sleep 42
nanddump -q -f $out/cut.mtd /dev/mtd0
exec 9<&-
cd /
umount /mnt
ubidetach -m 0
flash_erase -q /dev/mtd0 0 0
nandwrite -q -k -p /dev/mtd0 $out/cut.mtd
attached cut
begin
mount -t ubifs ubi0:rootfs /mnt
end cut_mount
manifest cut
umount /mnt

cd $out
tar cf /dev/vdb .
