#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Are the latencies of a served device those of the model? fio reads 4 KiB at random from a device in real time, and the
# recorded requests run again in virtual time: `make bench-latency`.
#
#     latency.sh READPATH [SECONDS]
#
# For each row: what fio measured, what the server says it served, what the model says of the same requests, and the
# verdict on the served ones. Behind them how much longer a read takes without HPB than with it, for each of the three.
# Needs fio (Debian package fio), and a machine that has nothing else to do.
set -euo pipefail
readpath=$(realpath "$1")
seconds=${2:-5}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cd "$work"

"$readpath" image create start.img --fill sequential >/dev/null

# serve SCALE HPB [OPTION...]
serve() {
    local scale=$1 hpb=$2 i
    shift 2
    rm -f socket
    "$readpath" serve dev.img --nbd "unix:$work/socket" --scale "$scale" --hpb "$hpb" "$@" >served.log 2>&1 &
    for ((i = 0; i < 1000; i++)); do
        grep -q '^serving' served.log && return
        sleep 0.01
    done
    cat served.log >&2
    exit 1
}
# reads SCALE GIB DEPTH SECONDS
reads() {
    fio --name=j --ioengine=nbd --uri="nbd+unix:///?socket=$work/socket" --rw=randread --bs=4k --size="$2g" \
        --iodepth="$3" --time_based --runtime="$4" --norandommap --output-format=json 2>/dev/null >fio.json
}
# row NAME SCALE: prints what the last run was, and keeps its means in the file NAME.
row() {
    "$readpath" replay recording --image start.img >replay.log
    python3 - "$1" "$2" <<'EOF'
import json, re, sys
name, scale = sys.argv[1], float(sys.argv[2])
text = open('fio.json').read()
fio = json.loads(text[text.index('{'):])['jobs'][0]['read']['lat_ns']
clat = json.loads(text[text.index('{'):])['jobs'][0]['read']['clat_ns']
us = lambda ns: ns / 1e3 / scale
fio = {'mean': us(fio['mean']), 'p50': us(clat['percentile']['50.000000']), 'p99': us(clat['percentile']['99.000000'])}
log = open('replay.log').read()
exact = 'each took as long as when it was served' in log and 'counted what they counted then' in log
found = re.findall(r'^(mean|p50|p99) +([\d.]+) us modelled, +([\d.]+) us served; server: (\w+)', log, re.M)
for of, modelled, served, verdict in found:
    print(f'{name:<22} {of:<5} {fio[of]:>9.1f} {float(served):>9.1f} {float(modelled):>9.1f}  {verdict}')
mean = next(row for row in found if row[0] == 'mean')
open('means ' + name, 'w').write(f"{fio['mean']} {mean[2]} {mean[1]}")
if not exact:
    sys.exit(f'{name}: the replay is not exact:\n{log}')
EOF
}

printf '%-22s %-5s %9s %9s %9s  %s\n' "scale, GiB, depth, HPB" "" "fio us" "served us" "model us" "time"
for scale in 1 10; do
    for case in "1 1" "1 16" "8 1" "8 16"; do
        read -r gib depth <<<"$case"
        for hpb in off dcm; do
            cp --sparse=always start.img dev.img
            rm -f recording
            serve "$scale" "$hpb" --record recording
            # The map is on the host before the measurement; what is recorded is replayed as a whole.
            reads "$scale" "$gib" "$depth" "$seconds"
            kill %?serve
            wait
            row "$scale $gib $depth $hpb" "$scale"
        done
        python3 - "$scale $gib $depth" <<'EOF'
import sys
off, dcm = ([float(x) for x in open(f'means {sys.argv[1]} {hpb}').read().split()] for hpb in ('off', 'dcm'))
fio, served, model = (a / b for a, b in zip(off, dcm))
print(f'{sys.argv[1] + " off/dcm":<22}       {fio:>9.3f} {served:>9.3f} {model:>9.3f}  {100 * (fio / model - 1):+.1f} %')
EOF
    done
done
