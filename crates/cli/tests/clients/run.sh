#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Clients that others wrote, against the server: `make test-clients`.
#
#     run.sh READPATH WORKDIR [SCENARIO...]
#
# Prints a line for each scenario, and how many passed. Programs that are missing are installed from Debian packages if
# this is root on a system with apt-get; otherwise the scenario is skipped. What a failed scenario leaves stays in
# WORKDIR/SCENARIO.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C.UTF-8
# Makers of file systems, for those who are not root.
PATH=$PATH:/usr/sbin:/sbin

[ $# -ge 2 ] || { echo "usage: run.sh READPATH WORKDIR [SCENARIO...]" >&2; exit 2; }
readpath=$(realpath "$1")
mkdir -p "$2"
work=$(realpath "$2")
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The path of a socket is short.
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT
socket=$sockets/nbd
uri="nbd+unix:///?socket=$socket"

# Superblocks of 1 MiB, 14 % more than the host sees: a small device that collects garbage all the time.
mib=256
blocks=$((mib * 256))
device=(--set "lu[0].blocks=$blocks" --set geometry.channels=1 --set geometry.dies_per_channel=2
    --set geometry.pages_per_block=32 --set geometry.blocks_per_plane=304
    --set ftl.map_changes=4096 --set ftl.checkpoint_after_units=1024)

# ---- Scenarios and their servers. All runs in the scenario's directory; what is said to fd 3 is its line.

say() { printf '%s\n' "$*" >&3; }
fail() { say "$*"; exit 1; }
skip() { say "$*"; exit 77; }

# later COMMAND...: when the scenario ends, the last one first.
endings=()
later() { endings+=("$(printf '%q ' "$@")"); }
finish() {
    local i
    set +e
    trap - ERR
    for ((i = ${#endings[@]} - 1; i >= 0; i--)); do eval "${endings[i]}"; done
}

declare -A package=([nbdinfo]=libnbd-bin [nbdcopy]=libnbd-bin [nbdfuse]="libnbd-bin nbdfuse" [fusermount3]=fuse3
    [nbdkit]=nbdkit [qemu-img]=qemu-utils [qemu-io]=qemu-utils [fio]=fio [mkfs.ext4]=e2fsprogs [debugfs]=e2fsprogs
    [e2fsck]=e2fsprogs [mkfs.f2fs]=f2fs-tools [sload.f2fs]=f2fs-tools [fsck.f2fs]=f2fs-tools [sqlite3]=sqlite3
    [python3]=python3 [losetup]=mount [mount]=mount)

# install PACKAGE: once, if it can be.
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    [ ! -e "$sockets/tried-$1" ] || return 1
    [ -e "$sockets/updated" ] || timeout 120 apt-get update -q </dev/null || true
    touch "$sockets/tried-$1" "$sockets/updated"
    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -q "$1" </dev/null
}

# need PROGRAM...
need() {
    local program name
    for program in "$@"; do
        for name in ${package[$program]}; do
            command -v "$program" >/dev/null || install "$name" || true
        done
        command -v "$program" >/dev/null || skip "$program is missing (Debian package ${package[$program]// / or })"
    done
}

# A Python that has libnbd, as $python.
need_python() {
    need python3
    local name
    for name in python3 /usr/bin/python3; do
        python=$name
        "$python" -c 'import nbd' && return
    done
    install python3-libnbd || true
    "$python" -c 'import nbd' || skip "Python module nbd is missing (Debian package python3-libnbd)"
}

# fresh IMAGE OPTION...: a new image of the small device.
fresh() {
    local image=$1
    shift
    "$readpath" image create "$image" "${device[@]}" "$@"
}

# start IMAGE OPTION...: a server, ready, as $server.
server=
starts=0
speed=--instant
start() {
    local image=$1 log i
    shift
    starts=$((starts + 1))
    log=server$starts.log
    "$readpath" serve "$image" --nbd "unix:$socket" $speed "$@" >"$log" 2>&1 3>&- &
    server=$!
    for ((i = 0; i < 1000; i++)); do
        grep -q '^serving' "$log" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.01
    done
    fail "the server does not begin: $(tail -n 1 "$log")"
}

# stop: politely; the exit status must be 0.
stop() {
    local pid=$server status=0
    server=
    kill -TERM "$pid"
    wait "$pid" || status=$?
    [ "$status" = 0 ] || fail "the server ended with $status: $(tail -n 1 "server$starts.log")"
}

# crash: at once.
crash() {
    local pid=$server
    server=
    kill -KILL "$pid"
    wait "$pid" || true
}
end_server() { if [ -n "$server" ]; then crash; fi; }

alive() { kill -0 "$server" || fail "the server is gone: $(tail -n 1 "server$starts.log")"; }

checked() { "$readpath" image check "$1" >check.log 2>&1 || fail "image check: $(tail -n 1 check.log)"; }

# t SECONDS COMMAND...: no client may hang.
t() { timeout -k 5 "$@"; }

# noise FILE MIB: the same bytes on every machine.
noise() {
    head -c "$2M" /dev/zero | openssl enc -aes-128-ctr -nosalt -K 0123456789abcdef -iv 0 >"$1" 2>/dev/null ||
        head -c "$2M" /dev/urandom >"$1"
}

same() { cmp "$1" "$2" || fail "$3"; }

now() { date +%s%N; }
# rate MIB SINCE
rate() { echo "$(($1 * 1000000000 / ($(now) - $2))) MiB/s"; }

# erases IMAGE: how often its superblocks were erased, in the mean.
erases() { "$readpath" image info "$1" | sed -n 's/^wear *\([0-9.]*\) erases.*/\1/p'; }

# expose: the export as the file mnt/nbd, until `hide`.
expose() {
    rm -f fuse.pid
    mkdir -p mnt
    nbdfuse -C "${1:-1}" -P fuse.pid mnt/nbd "$uri" 3>&- &
    fuse=$!
    later hide
    local i
    for ((i = 0; i < 500; i++)); do
        [ -s fuse.pid ] && return
        kill -0 "$fuse" 2>/dev/null || break
        sleep 0.01
    done
    fuse=
    skip "nbdfuse does not work here"
}
hide() {
    [ -n "${fuse:-}" ] || return 0
    local pid=$fuse
    fuse=
    fusermount3 -u mnt || fusermount3 -uz mnt || true
    # It ends when the file system is gone.
    timeout 10 tail --pid="$pid" -f /dev/null || kill "$pid" || true
    wait "$pid" || true
}
need_fuse() {
    need nbdfuse fusermount3
    [ -w /dev/fuse ] || skip "/dev/fuse is missing or may not be used"
}

# A file system's tree: many small files, some large, some names.
tree() {
    local i
    mkdir -p tree/many tree/a/b/c/d
    for ((i = 0; i < 300; i++)); do
        head -c $((i * 37 % 9000)) data.raw | tail -c $((i * 37 % 9000)) >"tree/many/file $i"
    done
    head -c 20M data.raw >tree/a/b/large
    head -c 5M data.raw >tree/a/b/c/d/deep
}

# ---- 1

info() {
    need nbdinfo qemu-io
    fresh dev.img
    start dev.img
    t 10 nbdinfo --json "$uri" >info.json
    local line
    for line in '"protocol": "newstyle-fixed"' '"structured": true' "\"export-size\": $((mib << 20))" \
        '"block_size_minimum": 1' '"block_size_preferred": 4096' '"block_size_maximum": 33554432' \
        '"is_read_only": false' '"is_rotational": false' '"base:allocation"' '"can_flush": true' '"can_fua": true' \
        '"can_trim": true' '"can_zero": true' '"can_fast_zero": true' '"can_multi_conn": true' '"can_df": true' \
        '"can_cache": true'; do
        grep -qF "$line" info.json || fail "nbdinfo does not say $line"
    done
    [ "$(t 10 nbdinfo --size "$uri")" = $((mib << 20)) ] || fail "nbdinfo --size"
    map "0 $((mib << 20)) 3"
    t 10 qemu-io -f raw -d unmap "$uri" -c "write -P 1 64k 64k" -c "discard 80k 16k" -c "flush" >qemu.log
    map "0 65536 3" "65536 16384 0" "81920 16384 3" "98304 32768 0" "131072 $(((mib << 20) - 131072)) 3"
    crash
    start dev.img --hpb dcm
    map "0 65536 3" "65536 16384 0" "81920 16384 3" "98304 32768 0" "131072 $(((mib << 20) - 131072)) 3"
    stop
    say "17 facts, maps before and after a crash"
}
# map LINE...: what nbdinfo --map must say: offset, length, type.
map() {
    t 10 nbdinfo --map "$uri" | awk '{ print $1, $2, $3 }' >map.txt
    diff map.txt <(printf '%s\n' "$@") || fail "nbdinfo --map says $(paste -sd, map.txt)"
}

# ---- 2

copy() {
    need nbdcopy
    noise data.raw $mib
    fresh dev.img
    start dev.img
    local since in out
    since=$(now)
    t 60 nbdcopy --connections=4 --requests=64 --flush data.raw "$uri"
    in=$(rate $mib "$since")
    since=$(now)
    t 60 nbdcopy --connections=4 --requests=64 "$uri" out.raw
    out=$(rate $mib "$since")
    same data.raw out.raw "what comes out is not what went in"
    t 60 nbdcopy --synchronous "$uri" - | cmp - data.raw || fail "synchronous: not what went in"
    crash
    start dev.img
    t 60 nbdcopy --request-size=$((32 << 20)) "$uri" out.raw
    same data.raw out.raw "after a crash, what comes out is not what went in"
    stop
    checked dev.img
    say "in $in, out $out, 4 connections"
}

copy_over_tcp() {
    need nbdcopy nbdinfo
    noise data.raw 64
    fresh dev.img
    local port=$((20000 + $$ % 20000)) i
    for ((i = 0; i < 20; i++)); do
        port=$((port + 1))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    speed=
    start dev.img --nbd "tcp:127.0.0.1:$port" --hpb dcm
    local tcp=nbd://127.0.0.1:$port since in
    since=$(now)
    t 60 nbdcopy --connections=4 --flush data.raw "$tcp"
    in=$(rate 64 "$since")
    since=$(now)
    t 60 nbdcopy --connections=4 "$tcp" out.raw
    truncate -s 64M out.raw
    same data.raw out.raw "what comes out is not what went in"
    # The other address shows the same.
    t 60 nbdcopy "$uri" out.raw
    truncate -s 64M out.raw
    same data.raw out.raw "over the other socket: not what went in"
    stop
    say "in $in at the speed of the device, HPB in device control mode"
}

copy_through_nbdkit() {
    need nbdcopy nbdkit
    noise data.raw 64
    fresh dev.img
    start dev.img
    # nbdkit is client of one and server of the other; its filters make small and unaligned requests of what comes.
    t 60 nbdkit -U - --filter=blocksize nbd uri="$uri" minblock=512 maxdata=5120 maxlen=1M \
        --run 'nbdcopy --connections=4 --flush data.raw "$uri" && nbdcopy "$uri" out.raw'
    truncate -s 64M out.raw
    same data.raw out.raw "what comes out is not what went in"
    crash
    start dev.img
    t 60 nbdcopy "$uri" out.raw
    truncate -s 64M out.raw
    same data.raw out.raw "after a crash: not what went in"
    stop
    say "64 MiB in requests of at most 5120 bytes"
}

# ---- 3

qemu_convert() {
    need qemu-img
    noise data.raw 96
    # Holes, too.
    truncate -s ${mib}M data.raw
    dd if=data.raw of=data.raw bs=1M seek=200 count=8 conv=notrunc status=none
    fresh dev.img --fill random
    start dev.img
    t 60 qemu-img convert -n -f raw -O raw -m 16 -W data.raw "$uri"
    t 60 qemu-img compare -f raw -F raw data.raw "$uri" || fail "not the same after a conversion"
    t 60 qemu-img convert -f raw -O qcow2 "$uri" out.qcow2
    t 60 qemu-img compare -f raw -F qcow2 "$uri" out.qcow2 || fail "qcow2 made of it is not the same"
    # Back, over old data, with zeros that are trimmed.
    t 60 qemu-img convert -n -f qcow2 -O raw -S 4k out.qcow2 "$uri"
    t 60 qemu-img bench -f raw -c 20000 -d 32 -s 4096 "$uri" >bench.log
    crash
    start dev.img
    t 60 qemu-img compare -f raw -F raw data.raw "$uri" || fail "not the same after a crash"
    stop
    checked dev.img
    say "104 MiB of $mib MiB, $(sed -n 's/Run completed in \(.*\) seconds.*/20000 reads in \1 s/p' bench.log)"
}

qemu_io() {
    need qemu-io qemu-img
    fresh dev.img
    start dev.img
    truncate -s ${mib}M data.raw
    local commands=() i at length
    # Unaligned writes that overlap, with FUA or not, zeros that leave holes or not, aligned discards.
    for ((i = 1; i <= 150; i++)); do
        at=$((i * 7919 % 4000 * 1009 % 4000000))
        length=$((i * 104729 % 70000 + 1))
        case $((i % 6)) in
        0) commands+=(-c "write -f -P $((i % 255 + 1)) $at $length") ;;
        1) commands+=(-c "write -z $at $length") ;;
        2) commands+=(-c "write -z -u $at $length") ;;
        3) commands+=(-c "discard $((at / 4096 * 4096)) $((length / 4096 * 4096 + 4096))" -c "flush") ;;
        *) commands+=(-c "write -P $((i % 255 + 1)) $at $length") ;;
        esac
    done
    # The same to a plain file.
    t 30 qemu-io -f raw -d unmap data.raw "${commands[@]}" >file.log
    t 30 qemu-io -f raw -d unmap -t none "$uri" "${commands[@]}" -c flush >nbd.log
    ! grep -i 'fail\|error' nbd.log || fail "qemu-io: $(grep -i 'fail\|error' nbd.log | head -n 1)"
    t 30 qemu-img compare -f raw -F raw data.raw "$uri" || fail "not what the same commands make of a file"
    t 10 qemu-io -f raw "$uri" -c "write -P 0x5a 8388095 4098" -c "read -P 0x5a 8388095 4098" \
        -c "read -P 0 8388094 1" -c "read -P 0 8392193 1" -c "aio_write -P 7 9m 3m" -c "aio_write -P 8 13m 3m" \
        -c aio_flush -c "read -P 7 9m 3m" -c "read -P 8 13m 3m" -c "write -f -P 9 1 1" -c "read -P 9 1 1" >patterns.log
    ! grep -qi 'fail\|error' patterns.log || fail "qemu-io: $(grep -i 'fail\|error' patterns.log | head -n 1)"
    crash
    start dev.img
    # FUA means that the last of them is there without a flush.
    t 10 qemu-io -f raw -r "$uri" -c "read -P 9 1 1" >fua.log
    ! grep -qi 'fail\|error' fua.log || fail "a write with FUA did not survive a crash"
    stop
    checked dev.img
    say "$(grep -c '^wrote\|^discard' nbd.log) requests as on a file, patterns, FUA"
}

# ---- 4

libnbd_protocol() {
    need_python
    fresh dev.img --fill random
    start dev.img
    t 60 "$python" "$here/protocol.py" "$uri" >protocol.log || fail "$(tail -n 1 protocol.log)"
    alive
    stop
    checked dev.img
    say "$(tail -n 1 protocol.log)"
}

# ---- 5

need_fio() {
    need fio
    fio --enghelp | grep -qw nbd || skip "fio has no engine for NBD"
}
# job NAME OPTION...
job() {
    local name=$1
    shift
    t 60 fio --ioengine=nbd --uri="$uri" --iodepth=16 --name="$name" --output="$name.log" --randrepeat=1 \
        --verify_fatal=1 "$@" 2>"$name.err" ||
        fail "fio $name: $(cat "$name.err" "$name.log" | grep -m 1 'verify\|err' || true)"
    ! grep -q 'verify: bad\|err= *[1-9]' "$name.log" "$name.err" || fail "fio $name: see $name.log and $name.err"
}

fio_verify() {
    need_fio
    fresh dev.img --fill random --set hpb.control=host
    start dev.img --hpb hcm
    job sequential --rw=write --bs=64k --size=${mib}M --verify=crc32c
    job b512 --rw=randwrite --bs=512 --size=8M --verify=crc32c
    job b4k --rw=randwrite --bs=4k --size=96M --verify=crc32c --offset=64M
    job b64k --rw=randwrite --bs=64k --size=${mib}M --verify=crc32c
    job unaligned --rw=randwrite --bsrange=512-9k --bs_unaligned --size=16M --offset=100001 --norandommap \
        --verify=crc32c --verify_backlog=64 --serialize_overlap=1
    job mixed --rw=randrw --rwmixread=40 --bs=4k --size=128M --verify=crc32c --verify_backlog=1024 --fsync=500
    job two --numjobs=2 --rw=randwrite --bssplit=512/20:4k/50:16k/30 --size=48M --offset_increment=128M \
        --verify=crc32c --fsync=200
    stop
    checked dev.img
    say "7 jobs, $(erases dev.img) erases of a superblock in the mean"
}

fio_trim() {
    need_fio
    fresh dev.img --fill random
    start dev.img --hpb dcm
    job trim --rw=randtrim --bs=16k --size=${mib}M --io_size=64M
    job trimwrite --rw=trimwrite --bs=64k --size=${mib}M
    job randtrimwrite --rw=randtrimwrite --bs=4k --size=64M --loops=2 --verify=crc32c
    job after --rw=randwrite --bs=16k --size=${mib}M --verify=crc32c
    stop
    checked dev.img
    say "4 jobs, $(erases dev.img) erases of a superblock in the mean"
}

# A full device whose spare flash is less than the table of changes describes: what is overwritten is garbage that the
# device does not know of until it writes its map.
little_spare_flash() {
    need_fio
    fresh dev.img --set ftl.map_changes=16384 --fill random
    start dev.img
    job overwrite --rw=write --bs=512k --size=${mib}M --verify=crc32c
    stop
    checked dev.img
    say "$(erases dev.img) erases of a superblock in the mean"
}

# ---- 6

ext4_over_fuse() {
    need_fuse
    need mkfs.ext4 debugfs e2fsck
    noise data.raw 24
    tree
    fresh dev.img --fill random
    start dev.img
    expose 4
    t 30 mkfs.ext4 -q -F -b 4096 -E discard mnt/nbd
    t 10 e2fsck -fn mnt/nbd >fsck.log 2>&1 || fail "e2fsck finds an empty file system bad"
    local commands=debugfs.in name
    (cd tree && find . -mindepth 1 -type d -printf 'mkdir "%p"\n') >$commands
    (cd tree && find . -type f -printf 'write "tree/%P" "%p"\n') >>$commands
    t 60 debugfs -w -f $commands mnt/nbd >debugfs.log 2>&1
    t 30 e2fsck -fn mnt/nbd >fsck.log 2>&1 || fail "e2fsck: $(tail -n 1 fsck.log)"
    sync mnt/nbd
    crash
    hide
    start dev.img
    expose
    t 30 e2fsck -fn mnt/nbd >fsck.log 2>&1 || fail "e2fsck after a crash: $(tail -n 1 fsck.log)"
    mkdir out
    t 30 debugfs -R "rdump / out" mnt/nbd >rdump.log 2>&1
    rmdir out/lost+found
    diff -r tree out || fail "files differ after a crash"
    hide
    stop
    checked dev.img
    say "$(find tree -type f | wc -l) files, 25 MiB, a crash"
}

f2fs_over_fuse() {
    need_fuse
    need mkfs.f2fs sload.f2fs fsck.f2fs
    noise data.raw 24
    tree
    fresh dev.img --fill random --set hpb.control=host
    start dev.img --hpb hcm
    expose 4
    t 30 mkfs.f2fs -f mnt/nbd >mkfs.log 2>&1 || fail "mkfs.f2fs: $(tail -n 1 mkfs.log)"
    t 30 sload.f2fs -f tree mnt/nbd >sload.log 2>&1 || fail "sload.f2fs: $(tail -n 1 sload.log)"
    sync mnt/nbd
    f2fs_checked
    crash
    hide
    start dev.img
    expose
    f2fs_checked
    hide
    stop
    checked dev.img
    say "$(grep -c . tree.txt) files and directories, 25 MiB, a crash"
}
f2fs_checked() {
    t 30 fsck.f2fs --dry-run mnt/nbd >fsck.log 2>&1 || fail "fsck.f2fs ends with an error"
    ! grep -i 'mismatch\|assert\|\[fail\]\|invalid' fsck.log ||
        fail "fsck.f2fs: $(grep -im 1 'mismatch\|assert\|\[fail\]\|invalid' fsck.log)"
    grep -q '\[Ok' fsck.log || fail "fsck.f2fs says nothing that is right"
    (cd tree && find . -mindepth 1) >tree.txt
    local there
    # Beside the tree's: the root.
    there=$(sed -n 's/.*valid_inode_count matched.*\[Ok..\] \[\(0x[0-9a-f]*\)\].*/\1/p' fsck.log)
    [ $((there)) = $(($(grep -c . tree.txt) + 1)) ] || fail "fsck.f2fs finds $((there)) inodes"
}

# Without FUSE: made in a file, copied in, copied out after a crash.
ext4_copied() {
    need nbdcopy mkfs.ext4 e2fsck
    noise data.raw 24
    tree
    truncate -s ${mib}M fs.raw
    mkfs.ext4 -q -F -d tree fs.raw
    fresh dev.img
    start dev.img
    t 60 nbdcopy --flush fs.raw "$uri"
    crash
    start dev.img
    t 60 nbdcopy "$uri" out.raw
    stop
    same fs.raw out.raw "the copy differs"
    t 30 e2fsck -fn out.raw >fsck.log 2>&1 || fail "e2fsck: $(tail -n 1 fsck.log)"
    say "$mib MiB, a crash"
}

# ---- 7

crashes() {
    need_python
    fresh dev.img --fill random
    local round writer writes=0 flushes=0 acknowledged w f
    for round in 1 2 3 4 5; do
        # It ends like this, but the machine goes on, so the file need not be synced. That is fast: much garbage.
        if [ $((round % 2)) = 0 ]; then start dev.img --no-sync; else start dev.img; fi
        t 30 "$python" "$here/blocks.py" write "$uri" record.json $blocks 20 "$round" >"write$round.log" 2>&1 3>&- &
        writer=$!
        sleep "$((RANDOM % 2)).$((RANDOM % 7 + 3))"
        crash
        wait "$writer" || fail "round $round: the writer ended badly: $(tail -n 1 "write$round.log")"
        read -r w _ f _ <"write$round.log"
        writes=$((writes + w)) flushes=$((flushes + f))
        # In the middle of recovery, or just behind it.
        "$readpath" serve dev.img --nbd "unix:$socket" --instant >recovering.log 2>&1 3>&- &
        server=$!
        sleep "0.0$((RANDOM % 10))"
        crash
        start dev.img
        t 30 "$python" "$here/blocks.py" check "$uri" record.json $blocks >"check$round.log" 2>&1 ||
            fail "round $round: $(tail -n 1 "check$round.log"); $(head -n 1 "check$round.log")"
        crash
        acknowledged=$(cut -d' ' -f1 "check$round.log")
        echo "round $round: $(cat "write$round.log" "check$round.log")"
    done
    checked dev.img
    [ "$flushes" -gt 0 ] || fail "no flush ended before a crash"
    say "15 crashes, $writes writes, $flushes flushes, $acknowledged blocks checked," \
        "$(erases dev.img) erases of a superblock in the mean"
}

# ---- 8

sqlite() {
    need sqlite3
    need_fuse
    need mkfs.ext4 e2fsck losetup mount
    [ "$(id -u)" = 0 ] || skip "only root mounts the file system with the database"
    grep -qw ext4 /proc/filesystems || skip "this kernel has no ext4"
    losetup -f >/dev/null 2>&1 || skip "there is no loop device"
    fresh dev.img --fill random
    start dev.img
    expose
    t 30 mkfs.ext4 -q -F mnt/nbd
    hide
    local round last=0 count kept clients
    for round in 1 2 3; do
        expose
        attach
        [ "$round" = 1 ] || fuller ext/db "$last"
        # Rows are committed one by one; a number is printed once its commit has ended.
        t 20 sqlite3 -bail ext/db "PRAGMA journal_mode=$([ "$round" = 2 ] && echo wal || echo delete);" >sqlite.log
        (commits "$last") >acknowledged.txt 2>sqlite.err 3>&- &
        clients=$!
        sleep "1.$((RANDOM % 9))"
        crash
        wait "$clients" || true
        count=$(tail -n 1 acknowledged.txt)
        [ -n "$count" ] || fail "round $round: nothing was committed before the crash"
        last=$count
        detach
        hide
        start dev.img
        echo "round $round: $last commits"
    done
    expose
    attach
    fuller ext/db "$last"
    kept=$(t 10 sqlite3 ext/db "SELECT count(*) FROM t")
    detach
    t 30 e2fsck -fn mnt/nbd >fsck.log 2>&1 || fail "e2fsck: $(tail -n 1 fsck.log)"
    hide
    stop
    checked dev.img
    say "3 crashes, $last commits acknowledged, $kept rows kept, ext4 on a loop device"
}
# The script of `readpath examples`, as the recipe of the book runs it.
sqlite_example() {
    need sqlite3 nbdcopy
    need_fuse
    fresh dev.img
    "$readpath" examples try >examples.log
    t 120 "$readpath" serve dev.img --run 'sh try/sqlite.sh' >run.log || fail "$(tail -n 1 run.log)"
    grep -q '^Honest device: of 100 acknowledged commits 100 .*: ok$' run.log || fail "$(sed -n 1p run.log)"
    grep -q '^Lying device: of 100 acknowledged commits [0-9][0-9]\? ' run.log || fail "$(sed -n 2p run.log)"
    say "$(sed -n 2p run.log)"
}
# The same with a device that acknowledges flushes without making them: acknowledged commits must get lost.
lying_sqlite() {
    need sqlite3
    need_fuse
    need mkfs.ext4 e2fsck losetup mount
    [ "$(id -u)" = 0 ] || skip "only root mounts the file system with the database"
    grep -qw ext4 /proc/filesystems || skip "this kernel has no ext4"
    losetup -f >/dev/null 2>&1 || skip "there is no loop device"
    local round row count lost=0 what=""
    # What happened to be in flash when the crash came is not lost.
    for ((round = 1; round <= 12 && lost == 0; round++)); do
        rm -f dev.img
        fresh dev.img --fill random
        # Where time jumps, flash has everything at once.
        speed= start dev.img --control control
        expose
        t 30 mkfs.ext4 -q -F mnt/nbd
        attach
        t 20 sqlite3 -bail ext/db "PRAGMA journal_mode=delete;" >sqlite.log
        "$readpath" ctl control lie on
        # The power goes as soon as the last of some commits has been acknowledged.
        count=$((round * 7))
        {
            echo "PRAGMA synchronous=EXTRA; CREATE TABLE t(n INTEGER PRIMARY KEY, x BLOB);"
            for ((row = 1; row <= count; row++)); do echo "INSERT INTO t VALUES($row, randomblob(3000));"; done
        } | t 20 sqlite3 -bail ext/db || fail "round $round: not everything was committed"
        crash
        detach
        hide
        # Rows may be lost, but the image itself must be consistent.
        checked dev.img
        start dev.img
        expose
        if (attach && fuller ext/db "$count") 3>lost.log >attach.log 2>&1; then
            what="$what all of $count kept;"
        else
            lost=$((lost + 1))
            what="$what $(cat attach.log lost.log | tail -n 1);"
        fi
        umount -l ext 2>/dev/null || true
        losetup -j mnt/nbd | cut -d: -f1 | xargs -r -n 1 losetup -d
        loop=
        hide
        stop
    done
    [ "$lost" -gt 0 ] || fail "twelve crashes lost nothing that a lying flush had promised:$what"
    say "crash $((round - 1)) lost what had been committed:$what"
}
# commits AFTER: endless rows, each in a transaction of its own.
commits() {
    local i=$1
    {
        # In the mode with a rollback journal FULL does not sync the directory, and a commit may be undone.
        echo "PRAGMA synchronous=EXTRA;"
        echo "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, x BLOB);"
        echo "DELETE FROM t WHERE n > $i;"
        while i=$((i + 1)) && [ "$i" -lt $(($1 + 20000)) ]; do
            echo "INSERT INTO t VALUES($i, randomblob($((i * 97 % 5000))));"
            echo "SELECT $i;"
        done
    } | timeout -k 5 15 sqlite3 -bail ext/db | grep --line-buffered '^[0-9]*$'
}
# fuller DATABASE LAST: it is whole and has all rows up to LAST.
fuller() {
    local answer
    answer=$(t 20 sqlite3 "$1" "PRAGMA integrity_check")
    [ "$answer" = ok ] || fail "integrity_check: $(head -n 1 <<<"$answer")"
    answer=$(t 20 sqlite3 "$1" "SELECT count(*) FROM t WHERE n <= $2")
    [ "$answer" = "$2" ] || fail "of $2 rows that were committed, $answer are there"
}
# attach, detach: mnt/nbd as ext, through a loop device.
attach() {
    mkdir -p ext
    loop=$(losetup --find --show mnt/nbd)
    later detach
    t 20 mount -t ext4 "$loop" ext
}
detach() {
    [ -n "${loop:-}" ] || return 0
    local device=$loop
    loop=
    t 20 umount ext || umount -l ext || true
    losetup -d "$device"
}

# ---- 9

# Every state that a crash can leave of some commits: all that were acknowledged are there and ext4 is clean; without
# syncs, or with a device that lies, some are not. (In the mode with a rollback journal that takes EXTRA. With blocks of
# 1 KiB ext4 writes its superblock as two sectors when it is unmounted, and one state is not survived: torn between them.)
crash_states() {
    need sqlite3 nbdcopy
    need_fuse
    need mkfs.ext4 e2fsck debugfs losetup mount
    [ "$(id -u)" = 0 ] || skip "only root mounts the file system with the database"
    grep -qw ext4 /proc/filesystems || skip "this kernel has no ext4"
    losetup -f >/dev/null 2>&1 || skip "there is no loop device"
    cat >check.sh <<'CHECK'
set -e
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
nbdcopy "$URI" "$t/disk"
e2fsck -E journal_only -y "$t/disk" >"$t/log" 2>&1 || [ $? = 1 ]
e2fsck -fn "$t/disk" >"$t/log" 2>&1 || { tail -n 1 "$t/log"; exit 1; }
debugfs -R "rdump / $t" "$t/disk" >"$t/log" 2>&1
answer=$(sqlite3 "$t/db" 'PRAGMA integrity_check')
[ "$answer" = ok ] || { echo "integrity_check: $answer"; exit 1; }
rows=$(sqlite3 "$t/db" "SELECT count(*) FROM t WHERE n <= ${MARK:-0}")
[ "$rows" = "${MARK:-0}" ] || { echo "of ${MARK:-0} rows that were committed, $rows are there"; exit 1; }
CHECK
    local one row status journal sync lie states expected what=""
    for one in "wal FULL off permitted 0" "delete EXTRA off permitted 0" "wal OFF off permitted 3" \
        "wal FULL on permitted 3" "wal FULL off device 0"; do
        read -r journal sync lie states expected <<<"$one"
        rm -f dev.img day.rec
        fresh dev.img
        start dev.img
        expose
        t 30 mkfs.ext4 -q -F -b 4096 mnt/nbd
        attach
        t 20 sqlite3 -bail ext/db "PRAGMA journal_mode=$journal; CREATE TABLE t(n INTEGER PRIMARY KEY, x BLOB);"
        detach
        hide
        stop
        cp --sparse=always dev.img start.img
        start dev.img --record day.rec --data --control control
        expose
        attach
        "$readpath" ctl control lie "$lie"
        {
            echo "PRAGMA synchronous=$sync;"
            for ((row = 1; row <= 12; row++)); do
                echo "INSERT INTO t VALUES($row, randomblob($((row * 397 % 5000))));"
                echo ".shell '$readpath' ctl control mark $row"
            done
        } | t 30 sqlite3 -bail ext/db
        detach
        hide
        stop
        status=0
        t 120 "$readpath" crash day.rec --image start.img --states "$states" --budget 120 -- sh check.sh >crash.log ||
            status=$?
        what="$what $one: $(head -n 1 crash.log)"
        [ "$status" = "$expected" ] || fail "status $status:$what"
        if [ "$status" = 3 ]; then of_one_transaction; fi
    done
    say "${what# }"
}

# What the smallest state lost is of one transaction: no mark lies between the writes that its line names. If it lost
# nothing, power went just behind the promise of the one row that had not been sent.
of_one_transaction() {
    local smallest numbers first last between committed there
    smallest=$(grep -m 1 -e '--state' crash.log)
    numbers=$(grep -oE '(lost|torn): [a-z]+ [0-9]+' <<<"$smallest" | grep -oE '[0-9]+$' | sort -n) || true
    if [ -z "$numbers" ]; then
        read -r committed there < <(sed -nE 's/.*of ([0-9]+) rows that were committed, ([0-9]+) are there.*/\1 \2/p' \
            <<<"$smallest")
        [ "$((${committed:-0} - ${there:-0}))" = 1 ] || fail "more than one transaction is missing: $smallest"
        grep -q "power goes behind mark [0-9]* '$committed'" <<<"$smallest" || fail "not behind its promise: $smallest"
        return 0
    fi
    first=$(head -n 1 <<<"$numbers") last=$(tail -n 1 <<<"$numbers")
    between=$(awk -v first="$first" -v last="$last" '$1 == "#order" && $4 == "mark" && $3 > first && $3 < last' day.rec)
    [ -z "$between" ] || fail "writes $first to $last are not of one transaction: $between"
}

hostile_crowd() {
    need_python
    need nbdcopy nbdinfo
    noise data.raw $mib
    fresh dev.img
    start dev.img
    mkfifo go
    "$python" "$here/crowd.py" "$socket" 150 150 <go >crowd.log 2>&1 3>&- &
    local crowd=$! i since
    later kill "$crowd"
    exec 8>go
    for ((i = 0; i < 1000; i++)); do
        if grep -q ready crowd.log; then break; fi
        sleep 0.01
    done
    grep -q ready crowd.log || fail "the crowd does not come in: $(tail -n 1 crowd.log)"
    since=$(now)
    t 60 nbdcopy --connections=4 --flush data.raw "$uri" || fail "a good client cannot write among others"
    t 60 nbdcopy --connections=4 "$uri" out.raw || fail "a good client cannot read among others"
    local speed
    speed=$(rate $((2 * mib)) "$since")
    exec 8>&-
    wait "$crowd" || fail "the crowd: $(tail -n 1 crowd.log)"
    same data.raw out.raw "what comes out is not what went in"
    alive
    stop
    checked dev.img
    say "300 connections at once, $(tail -n 1 crowd.log), $speed for the good one"
}

# refuses STATUS PATTERN COMMAND...: it ends so and says so.
refuses() {
    local wanted=$1 pattern=$2 status=0
    shift 2
    t 10 "$@" >refused.log 2>&1 || status=$?
    [ "$status" = "$wanted" ] || fail "status $status, not $wanted: ${*:2}: $(tail -n 1 refused.log)"
    grep -q -- "$pattern" refused.log || fail "the message does not say $pattern: $(tail -n 1 refused.log)"
}

images_refused() {
    fresh dev.img --fill random
    start dev.img
    local other=unix:$sockets/other name command kinds=0
    # In use.
    refuses 2 dev.img "$readpath" serve dev.img --nbd "$other"
    ln dev.img link.img
    refuses 2 link.img "$readpath" serve link.img --nbd "$other"
    rm link.img
    refuses 2 dev.img "$readpath" image reset dev.img
    # A socket in use.
    fresh second.img
    refuses 2 "$socket" "$readpath" serve second.img --nbd "unix:$socket"
    alive
    stop
    # Not images.
    head -c 3M /dev/urandom >garbage.img
    : >empty.img
    echo hello >text.img
    mkdir directory.img
    for name in truncated short header; do cp --sparse=always dev.img $name.img; done
    truncate -s $(($(stat -c %s dev.img) / 2)) truncated.img
    truncate -s -1 short.img
    truncate -s 100 header.img
    cp --sparse=always dev.img flipped.img
    head -c 64 /dev/urandom | dd of=flipped.img bs=1 seek=16 conv=notrunc status=none
    for name in garbage empty text directory truncated short header flipped missing; do
        for command in "serve --nbd $other" "image check" "image info"; do
            # shellcheck disable=SC2086
            refuses 2 "$name.img" "$readpath" $command "$name.img"
            kinds=$((kinds + 1))
        done
    done
    refuses 2 dev.img "$readpath" image create dev.img
    checked dev.img
    say "$((kinds + 5)) refusals, each with status 2 and the image's name"
}

read_only() {
    need_python
    need nbdinfo
    fresh dev.img
    start dev.img
    "$python" - "$uri" <<'END'
import sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
h.pwrite(b"keep" * 1024, 0, nbd.CMD_FLAG_FUA)
END
    stop
    chmod a-w dev.img
    cp --sparse=always dev.img before.img
    start dev.img --read-only
    t 10 nbdinfo --is read-only "$uri" || fail "a read-only export is not announced as such"
    t 20 "$python" - "$uri" <<'END' 2>python.err || fail "$(tail -n 1 python.err)"
import errno, sys, nbd
h = nbd.NBD()
h.set_strict_mode(0)
h.connect_uri(sys.argv[1])
assert h.is_read_only()
for name, request in [
    ("write", lambda: h.pwrite(b"none" * 1024, 0)),
    ("trim", lambda: h.trim(4096, 0)),
    ("zeros", lambda: h.zero(4096, 0)),
]:
    try:
        request()
    except nbd.Error as error:
        assert error.errnum == errno.EPERM, f"{name}: {error}"
    else:
        sys.exit(f"{name} on a read-only export succeeds")
    assert h.pread(4096, 0) == b"keep" * 1024, f"after {name}: other data"
h.shutdown()
END
    stop
    same before.img dev.img "a read-only server changed the image"
    say "write, trim and zeros: EPERM"
}

disk_full() {
    need_python
    [ "$(id -u)" = 0 ] || skip "only root makes a small file system for the image"
    need mount
    mkdir small
    mount -t tmpfs -o size=48M tmpfs small 2>mount.err || skip "no tmpfs can be mounted: $(tail -n 1 mount.err)"
    later umount small
    later end_server
    fresh small/dev.img --fill random
    start small/dev.img
    t 30 "$python" "$here/blocks.py" write "$uri" record.json $blocks 20 1 >write.log 2>&1 ||
        fail "the writer ended badly: $(tail -n 1 write.log)"
    grep -q 'ENOSPC\|EIO' write.log || fail "writes do not fail: $(tail -n 1 write.log)"
    alive
    # It still serves, and nothing that can be read is wrong.
    t 30 "$python" "$here/blocks.py" look "$uri" record.json $blocks >look.log 2>&1 || fail "$(tail -n 1 look.log)"
    alive
    crash
    cp --sparse=always small/dev.img dev.img
    start dev.img
    t 30 "$python" "$here/blocks.py" check "$uri" record.json $blocks >full.log 2>&1 ||
        fail "$(tail -n 1 full.log); $(head -n 1 full.log)"
    # And with more space it writes again.
    t 30 "$python" "$here/blocks.py" write "$uri" record.json $blocks 1 2 >again.log 2>&1
    grep -q 'ended with None' again.log || fail "with more space: $(tail -n 1 again.log)"
    t 30 "$python" "$here/blocks.py" check "$uri" record.json $blocks >again.log 2>&1 || fail "$(tail -n 1 again.log)"
    stop
    checked dev.img
    say "$(cat write.log); $(cat look.log); after a restart $(cat full.log)"
}

# ---- 11

# What real clients did in real time is replayed to the bit.
recorded() {
    need fio
    local hpb
    for hpb in off dcm hcm; do
        rm -f dev.img start.img recording
        fresh dev.img --fill random
        cp --sparse=always dev.img start.img
        speed= start dev.img --hpb $hpb --record recording --control control
        t 30 fio --name=mixed --ioengine=nbd --uri="$uri" --rw=randrw --bsrange=512-64k --blockalign=512 --iodepth=8 \
            --size=32m --time_based --runtime=2 --fsync=20 >fio.log 2>&1 || fail "fio: $(tail -n 1 fio.log)"
        "$readpath" ctl control cut 5ms
        t 30 fio --name=trim --ioengine=nbd --uri="$uri" --rw=randtrim --bs=64k --iodepth=4 --size=32m \
            --time_based --runtime=1 >fio.log 2>&1 || fail "fio: $(tail -n 1 fio.log)"
        stop
        "$readpath" replay recording --image start.img >replay.log 2>&1 || fail "replay: $(tail -n 1 replay.log)"
        grep -q 'each took as long as when it was served' replay.log || fail "$hpb: $(sed -n 3p replay.log)"
        grep -q 'counted what they counted then' replay.log || fail "$hpb: $(sed -n 4p replay.log)"
        "$readpath" trace info recording >info.log 2>&1 || fail "trace info: $(tail -n 1 info.log)"
        echo "hpb=$hpb: $(sed -n 2p replay.log)"
    done
    say "three hosts, $(sed -n 2p replay.log) the last"
}

# ---- The run

scenarios=(info copy copy_over_tcp copy_through_nbdkit qemu_convert qemu_io libnbd_protocol fio_verify fio_trim
    little_spare_flash ext4_over_fuse f2fs_over_fuse ext4_copied crashes sqlite sqlite_example lying_sqlite crash_states hostile_crowd images_refused
    read_only disk_full recorded)
[ $# = 0 ] || scenarios=("$@")
passed=0 skipped=0 failed=0
for name in "${scenarios[@]}"; do
    dir=$work/$name
    rm -rf "$dir"
    mkdir "$dir"
    began=$(now)
    set +e
    (
        set -eE
        cd "$dir"
        trap finish EXIT
        trap 'say "line $LINENO ended with $?, from lines ${BASH_LINENO[*]}: $BASH_COMMAND"' ERR
        later end_server
        "$name"
    ) >"$dir/log" 2>&1 3>"$dir/said"
    status=$?
    set -e
    text=$(head -n 1 "$dir/said")
    took=$((($(now) - began) / 100000000))
    case $status in
    0)
        passed=$((passed + 1))
        echo "ok $name ($text; $((took / 10)).$((took % 10)) s)"
        rm -rf "$dir"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "SKIPPED $name: $text"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAILED $name: ${text:-status $status, see $dir/log}"
        ;;
    esac
done
echo "$passed passed, $skipped skipped, $failed failed"
[ "$failed" = 0 ]
