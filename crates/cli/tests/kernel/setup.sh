#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fills a folder with what Linux guests with a UFS device need, from Debian's packages: setup.sh DIR
#
#     DIR/qemu             a QEMU that has vfio-user-pci and ufs, with its libraries
#     DIR/kernel-a.*       Linux 6.1 with HPB, built from Debian's source and kernel-6.1.config
#     DIR/kernel-b.*       the newest Linux that Debian has for trixie, as it is, with the modules for UFS
#     DIR/kernel-c.*       Linux 6.1 of Debian 12, as it is; DIR/kernel-d.* Linux 6.12 of Debian 13
#     DIR/tools.cpio, DIR/fio.cpio    this machine's tools for the guest, and those of tools/
#     DIR/cut.so           for the server: kills it at a chosen write
#
# Nothing is installed: packages are downloaded with a configuration of their own and unpacked, so root is not needed.
# What is there stays, kernel A while its configuration is the same; remove DIR to begin anew. A part that cannot be had
# is named with SKIPPED.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=archive.sh
. "$here/archive.sh"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

if [ "$(uname -m)" != x86_64 ] || ! command -v apt-get >/dev/null; then
    echo "SKIPPED: the kernel lab is made of Debian's packages for x86-64, by apt-get" >&2
    exit 0
fi
missing=
need() { command -v "$1" >/dev/null || [ -e "$1" ] || missing="$missing $2"; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
need $keyring debian-archive-keyring
need xz xz-utils
need cpio cpio
need modprobe kmod
need gcc gcc
need make make
need bc bc
need flex flex
need bison bison
need /usr/include/gelf.h libelf-dev
need busybox busybox-static
need mkfs.ext4 e2fsprogs
need mkfs.f2fs f2fs-tools
need sg_raw sg3-utils
need blkzone util-linux
need zbd zbd-utils
need fio fio
if [ -n "$missing" ]; then
    echo "the kernel lab needs packages that are not installed: apt-get install$missing" >&2
    exit 1
fi
mkdir -p "$1"
cd "$1"
dir=$PWD

# ---- Packages of other releases than this machine's. With an empty list of installed packages apt names all that is
# needed.

apt=$dir/apt
log=$apt/log
prepare_apt() {
    [ ! -e "$apt/ready" ] || return 0
    mkdir -p "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    for suite in debian/bookworm debian-security/bookworm-security debian/trixie debian/trixie-backports; do
        echo "deb [signed-by=$keyring] $mirror/${suite%/*} ${suite#*/} main"
    done >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
Dir::Etc "$apt/etc";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
END
    apt-config dump | grep -i '^Acquire::.*Proxy' >>"$apt/apt.conf" || true
    get -q update >"$apt/update.log" 2>&1 || true
    touch "$apt/ready"
}
get() { APT_CONFIG="$apt/apt.conf" apt-get "$@"; }

# with_dependencies PACKAGE: the names of all the packages that it needs.
with_dependencies() {
    prepare_apt
    get -qq -t "${from:-trixie-backports}" --no-install-recommends --print-uris install "$1" 2>>"$log" |
        cut -d ' ' -f 2 | sed 's/_.*//'
}
# unpack PACKAGE...: into ./root; the version of the first goes to ./version.
unpack() {
    prepare_apt
    get -q -t "${from:-trixie-backports}" download "$@" >>"$log" 2>&1 || return 1
    mkdir root
    for package in *.deb; do dpkg -x "$package" root; done
    echo "$1"_*.deb | sed 's/_[a-z0-9]*\.deb$//; s/.*_//; s/%3a/:/' >version
    rm ./*.deb
}

# A folder for the work on a part, and what is said if the part's packages do not come.
begin() {
    rm -rf "$dir/work"
    mkdir -p "$dir/work" "$apt"
    cd "$dir/work"
    : >"$log"
}
without() {
    echo "SKIPPED: there will be no $1, its packages cannot be had:" >&2
    grep -hE '^[EW]:' "$apt/update.log" "$log" | head -n 2 >&2
}

# ---- QEMU, to be started by the dynamic loader that comes with it.

qemu() {
    begin
    # shellcheck disable=SC2046
    unpack qemu-system-x86 $(with_dependencies qemu-system-x86) || { without QEMU; return; }
    libraries=root/usr/lib/x86_64-linux-gnu
    loader=$libraries/ld-linux-x86-64.so.2
    mkdir -p qemu/lib qemu/share
    cp root/usr/bin/qemu-system-x86_64 version qemu/
    cp -L $loader qemu/lib/
    $loader --library-path $libraries --list qemu/qemu-system-x86_64 | sed -n 's/.* => \(root.*\) (0x.*/\1/p' |
        while read -r library; do cp -L "$library" qemu/lib/; done
    cp -L root/usr/share/seabios/bios-256k.bin qemu/share/
    for rom in kvmvapic linuxboot_dma pvh; do cp "root/usr/share/qemu/$rom.bin" qemu/share/; done
    # A list of all devices would load the modules of another QEMU that this machine has.
    for device in vfio-user-pci ufs ufs-lu; do
        qemu/lib/ld-linux-x86-64.so.2 --library-path qemu/lib qemu/qemu-system-x86_64 -L qemu/share -M none \
            -nodefaults -no-user-config -device "$device,help" >help.log 2>&1 && grep -q options help.log ||
            { echo "this QEMU has no $device" >&2; exit 1; }
    done
    mv qemu "$dir/"
}

# ---- Kernel A.

kernel_a() {
    rm -f "$dir"/kernel-a.*
    begin
    unpack linux-source-6.1 || { without "kernel A"; return; }
    # Other architectures and the largest of the drivers are not needed, but for the files that configure.
    xz -dc root/usr/src/linux-source-6.1.tar.xz |
        tar x --exclude='*/arch/[a-tv-w]*/*.[chSd]*' --exclude='*/drivers/gpu/drm/amd/*.h'
    cd linux-source-6.1
    make -s KCONFIG_ALLCONFIG="$here/kernel-6.1.config" allnoconfig
    grep '^CONFIG' "$here/kernel-6.1.config" | while read -r option; do
        grep -qx "$option" .config || { echo "the kernel's configuration lost $option" >&2; exit 1; }
    done
    make -s -j"$(nproc)" KBUILD_BUILD_USER=readpath KBUILD_BUILD_HOST=lab bzImage
    cp arch/x86/boot/bzImage "$dir/kernel-a.vmlinuz"
    cp ../version "$dir/kernel-a.version"
    cp "$here/kernel-6.1.config" "$dir/kernel-a.config"
}

# ---- Kernels of Debian, as they are: B, C, D.

# stock LETTER SUITE
stock() {
    begin
    from=$2
    # shellcheck disable=SC2046
    unpack linux-image-amd64 $(with_dependencies linux-image-amd64 | grep '^linux-') || { without "kernel $1"; return; }
    [ -e root/lib ] || ln -s usr/lib root/lib
    release=$(ls root/lib/modules)
    modules=lib/modules/$release
    depmod -b root "$release"
    mkdir -p "add/$modules"
    for module in ufshcd-pci sd_mod sg ext4 f2fs zonefs scsi_debug; do
        modprobe -d root -S "$release" --show-depends $module
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r file; do
        name=$(basename "$file")
        case $name in
        *.xz) xz -dc "$file" >"add/$modules/${name%.xz}" ;;
        *) cp "$file" "add/$modules/" ;;
        esac
    done
    cp root/"$modules"/modules.builtin* root/"$modules"/modules.order "add/$modules/"
    depmod -b add "$release"
    archive add "$dir/kernel-$1.cpio"
    # Beside its modules; in older packages it is in /boot.
    cp root/"$modules"/vmlinuz "$dir/kernel-$1.vmlinuz" 2>/dev/null || cp root/boot/vmlinuz-* "$dir/kernel-$1.vmlinuz"
    cp version "$dir/kernel-$1.version"
}

# ---- Tools. fio, with libraries for every kind of storage, is ten times the size of the others together.

tools() {
    begin
    mkdir -p add/bin add/sbin add/usr/bin add/usr/sbin add/proc add/sys add/dev add/tmp add/mnt add/etc
    : >add/etc/mtab
    cp "$(command -v busybox)" add/bin/
    for tool in mkfs.ext4 e2fsck mkfs.f2fs fsck.f2fs sg_raw sg_inq sg_vpd sg_reset blkdiscard \
        blkzone zbd sg_rep_zones sg_zone sg_reset_wp; do
        copy_with_libraries "$(command -v $tool)" add
    done
    for tool in stamps files bsg rpmb zones; do gcc -O2 -Wall -static -o add/bin/$tool "$here/tools/$tool.c"; done
    gcc -O2 -Wall -shared -fPIC -o "$dir/cut.so" "$here/tools/cut.c"
    archive add "$dir/tools.cpio"
    copy_with_libraries "$(command -v fio)" only-fio
    archive only-fio "$dir/fio.cpio"
}

rm -rf "$apt"
[ -e qemu ] || qemu
[ -e "$dir/kernel-b.vmlinuz" ] || stock b trixie-backports
[ -e "$dir/kernel-c.vmlinuz" ] || stock c bookworm
[ -e "$dir/kernel-d.vmlinuz" ] || stock d trixie
cmp -s "$here/kernel-6.1.config" "$dir/kernel-a.config" || kernel_a
[ -z "$(find "$here/setup.sh" "$here"/tools/* -newer "$dir/fio.cpio" 2>&1)" ] || tools
rm -rf "$dir/work" "$apt"
cd "$dir"
for part in qemu/version kernel-a.version kernel-b.version kernel-c.version kernel-d.version; do
    [ ! -e $part ] || echo "$(echo $part | sed 's/[/.]version//'): $(cat $part)"
done
