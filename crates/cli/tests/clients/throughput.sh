#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# How many 4 KiB requests a second a served device takes when nobody waits for modelled time, beside other servers of
# the same size, with the same fio job, one after the other: `make bench-clients`.
#
#     throughput.sh READPATH [SECONDS]
#
# Needs fio, nbdkit and qemu-storage-daemon (Debian packages fio, nbdkit, qemu-system-common).
set -euo pipefail
readpath=$(realpath "$1")
seconds=${2:-5}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"
size=1073741824

wait_for() { for _ in $(seq 100); do [ -S "$1" ] && return; sleep 0.1; done; echo "$1 is not there" >&2; exit 1; }

"$readpath" image create dev.img >/dev/null
"$readpath" serve dev.img --nbd "unix:$work/readpath" --instant --no-sync >/dev/null &
wait_for readpath
nbdkit -f -U "$work/nbdkit" memory $size &
wait_for nbdkit
servers=(readpath nbdkit)
if command -v qemu-storage-daemon >/dev/null; then
    qemu-storage-daemon --blockdev driver=null-co,node-name=n,size=$size,read-zeroes=on \
        --nbd-server addr.type=unix,addr.path="$work/null-co" --export type=nbd,id=e,node-name=n,name=,writable=on &
    wait_for null-co
    servers+=(null-co)
else
    echo "qemu-storage-daemon is missing (Debian package qemu-system-common): null-co is left out" >&2
fi

# iops SERVER RW DEPTH SECONDS
iops() {
    fio --name=j --ioengine=nbd --uri="nbd+unix:///?socket=$work/$1" --rw="$2" --bs=4k --size=$size --iodepth="$3" \
        --time_based --runtime="$4" --output-format=json 2>/dev/null |
        python3 -c 'import json, sys; text = sys.stdin.read()
jobs = json.loads(text[text.index("{"):])["jobs"][0]
print(round(max(jobs["read"]["iops"], jobs["write"]["iops"])))'
}

for server in "${servers[@]}"; do
    fio --name=f --ioengine=nbd --uri="nbd+unix:///?socket=$work/$server" --rw=write --bs=1m --size=$size --iodepth=4 \
        >/dev/null 2>&1
done
printf '%-10s %5s' request depth
printf ' %10s' "${servers[@]}"
printf ' %20s\n' "readpath / nbdkit"
for rw in randread randwrite; do
    for depth in 1 16 64; do
        printf '%-10s %5d' $rw $depth
        declare -A got=()
        # Each twice, in turns; the better counts.
        for _ in 1 2; do
            for server in "${servers[@]}"; do
                new=$(iops "$server" $rw $depth "$seconds")
                [ "$new" -gt "${got[$server]:-0}" ] && got[$server]=$new
            done
        done
        for server in "${servers[@]}"; do printf ' %10d' "${got[$server]}"; done
        python3 -c "print(f' {${got[readpath]} / ${got[nbdkit]}:20.2f}')"
    done
done
