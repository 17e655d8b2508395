#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A check for `readpath crash`: the file system of a state is as a crash leaves it, and nothing has to be mended but what
# a mount does. clean.sh ext4|f2fs
set -eu
PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nbdcopy "$URI" "$work/disk"
case $1 in
ext4)
    e2fsck -E journal_only -y "$work/disk" >"$work/log" 2>&1 || [ $? = 1 ]
    e2fsck -fn "$work/disk" >"$work/log" 2>&1 || { tail -n 1 "$work/log"; exit 1; }
    ;;
f2fs)
    # Of two checkpoints one may be in the making, which it says and does not mind.
    fsck.f2fs --dry-run "$work/disk" >"$work/log" 2>&1 || { tail -n 3 "$work/log"; exit 1; }
    ! grep -i 'mismatch\|assert\|\[fail\]' "$work/log" || exit 1
    grep -q '\[Ok' "$work/log"
    ;;
esac
