# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Archives for a guest's initramfs, for setup.sh and kernel.sh.

# copy_with_libraries PROGRAM ROOT: the libraries go to the places that they have here.
copy_with_libraries() {
    mkdir -p "$2/bin"
    cp -L "$1" "$2/bin/"
    ldd "$1" | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$2$(dirname "$library")"
        cp -L "$library" "$2$library"
    done
}
# archive ROOT FILE
archive() { (cd "$1" && find . | sort | cpio -o -H newc --quiet) >"$2.new" && mv "$2.new" "$2"; }
