#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Puts the Linux guest of the tests together: setup.sh DIR makes DIR/vmlinuz and DIR/initrd.gz from Debian's packages.
# The kernel is downloaded (once, by apt-get) and only unpacked; the tools in the guest are those of this machine.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

missing=
need() { command -v "$1" >/dev/null || missing="$missing $2"; }
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
need ubiattach mtd-utils
need setfattr attr
need make make
need gcc-12 gcc-12
if [ -n "$missing" ]; then
    echo "the guest needs packages that are not installed: apt-get install$missing" >&2
    exit 1
fi

mkdir -p "$dir"
cd "$dir"
if [ ! -e vmlinuz ] || [ ! -d kernel/usr/src ]; then
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -n 1)
    if [ -z "$package" ]; then
        echo "apt knows no linux-image-amd64: apt-get update" >&2
        exit 1
    fi
    rm -rf kernel ./*.deb
    apt-get -o APT::Sandbox::User=root download -q "$package"
    dpkg -x "$package"_*.deb kernel
    version=${package#linux-image-}
    common=${version%-*}-common
    kbuild=linux-kbuild-$(echo "$version" | cut -d . -f 1,2)
    apt-get -o APT::Sandbox::User=root download -q "linux-headers-$version" "linux-headers-$common" "$kbuild"
    for headers in linux-headers-*.deb linux-kbuild-*.deb; do dpkg -x "$headers" kernel; done
    sed -i "s|/usr/src|$PWD/kernel/usr/src|" "kernel/usr/src/linux-headers-$version/Makefile"
    rm -f ./*.deb
    cp kernel/boot/vmlinuz-* vmlinuz.new
    mv vmlinuz.new vmlinuz
fi

# A NAND with pages of 16 KiB, which the kernel has none of.
rm -rf ramnand
mkdir ramnand
cp "$here/ramnand.c" ramnand/
echo "obj-m := ramnand.o" >ramnand/Makefile
headers=$(find kernel/usr/src -maxdepth 1 -name 'linux-headers-*' ! -name '*-common')
make -s -C "$headers" M="$PWD/ramnand" CC=gcc-12 modules

rm -rf root
for d in bin dev etc mnt mod out proc sys tmp; do mkdir -p root/$d; done

# Modules in the order in which they can be loaded. Those that begin later, with parameters, are in folders of their own.
order=0
module() {
    file=$(find kernel/lib/modules -name "$1.ko" -o -name "$(echo "$1" | tr _ -).ko" | head -n 1)
    # Not a module of this kernel: it is built in.
    if [ -z "$file" ] || grep -q " $1 " root/mod/names 2>/dev/null; then return; fi
    depends=$(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | tr , ' ')
    for depends_on in $depends; do module "$depends_on"; done
    file=$(find kernel/lib/modules -name "$1.ko" -o -name "$(echo "$1" | tr _ -).ko" | head -n 1)
    echo " $1 " >>root/mod/names
    order=$((order + 1))
    cp "$file" "root/mod/$(printf %02d $order)-$1.ko"
}
for m in virtio_pci virtio_blk zstd nandsim ubi ubifs; do module $m; done
strip -g -o root/mod/99-ramnand.ko ramnand/ramnand.ko

# Tools with the libraries that they are linked with.
cp "$(command -v busybox)" root/bin/busybox
for tool in nandwrite nanddump flash_erase ubiattach ubidetach find stat sha256sum cat xargs setfattr; do
    path=$(command -v $tool)
    cp "$path" root/bin/
    ldd "$path" | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "root$(dirname "$library")"
        cp -L "$library" "root$library"
    done
done
cp "$here/init.sh" root/init
cp "$here/probes.sh" "$here/work.sh" "$here/large.sh" root/
chmod 755 root/init
(cd root && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1) >initrd.new
mv initrd.new initrd.gz
