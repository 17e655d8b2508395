# SPDX-License-Identifier: MIT OR Apache-2.0
# For the scripts of the guest: its NAND, recordings of the kernel's reads, and what a mounted volume shows.
# $ids: identifier bytes of the NAND, or none: then $page and $block are the bytes of its pages and erase blocks; $blocks: how
# many of these.
out=/run/out
trace=/sys/kernel/tracing

if [ -n "$ids" ]; then
    log2=0
    while [ $((1 << log2)) -lt $blocks ]; do log2=$((log2 + 1)); done
    insmod /mod/*-nandsim.ko id_bytes=$ids overridesize=$log2
else
    insmod /mod/*-ramnand.ko page=$page block=$block blocks=$blocks
fi
insmod /mod/*-ubi.ko
insmod /mod/*-ubifs.ko
echo 65536 >$trace/buffer_size_kb
echo 'p:io ubi:ubi_io_read peb=%dx:s32 offset=%cx:s32 bytes=%r8:s32' >$trace/kprobe_events
echo 'p:eba ubi:ubi_eba_read_leb leb=%dx:s32 offset=%r8:s32 bytes=%r9:s32' >>$trace/kprobe_events
echo 1 >$trace/events/kprobes/enable

# The shell would take its own ones.
find() { /bin/find "$@"; }
xargs() { /bin/xargs "$@"; }
sha256sum() { /bin/sha256sum "$@"; }

# The image that is to be flashed is on the first disk.
flash() {
    dd if=/dev/vda bs=64k of=$out/image 2>/dev/null
    nandwrite -q -k -p /dev/mtd0 $out/image
    rm $out/image
}
begin() { echo >$trace/trace; }
# Lines `op,peb,offset,bytes,leb`: r through ubi_eba_read_leb, R otherwise.
end() {
    if grep -E '^(overrun|commit overrun|dropped events): [1-9]' $trace/per_cpu/cpu*/stats ||
        awk '$3 > 0 { print; lost = 1 } END { exit !lost }' $trace/kprobe_profile; then
        echo "FAILED: $1: the kernel lost records"
        exit 1
    fi
    tr '=' ' ' <$trace/trace | awk '
        / eba: / { leb = $(NF-4); at = $(NF-2); bytes = $NF; next }
        / io: / {
            if (leb != "" && bytes == $NF && $(NF-2) >= at) print "r," $(NF-4) "," $(NF-2) "," $NF "," leb
            else print "R," $(NF-4) "," $(NF-2) "," $NF ","
            leb = ""
        }' >$out/$1.csv
}
manifest() {
    (
        cd /mnt
        find . -print0 | xargs -0 stat --printf='%n|%F|%s|%a|%h|%i|%t:%T\n' >$out/$1.stat
        find . -type f -print0 | xargs -0 sha256sum >$out/$1.sha
        find . -type l -printf '%p|%l\n' >$out/$1.links
    )
}
attached() {
    begin
    ubiattach -m 0 >/dev/null
    end $1_attach
}
mounted() { mount -t ubifs $2 ubi0:rootfs /mnt; cd /mnt; begin; eval "$3"; end $1; cd /; umount /mnt; }
# NAME FOLDER: what is read of the volume when it is mounted, and by walks through a folder of it.
streams() {
    begin
    mount -t ubifs ubi0:rootfs /mnt
    end $1_mount
    umount /mnt
    mounted $1_find "" "find $2 >/dev/null"
    mounted $1_findls "" "find $2 -ls >/dev/null"
    # What is to be read is found out before, so that only find and then cat are in the stream.
    mounted $1_catall "" "find $2 -type f -print0 >$out/files; xargs -0 cat <$out/files >/dev/null"
    rm $out/files
}
noise() { head -c $2 /dev/urandom >$1; }
