#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Linux guests in QEMU with a UFS device: `make test-kernel`. run.sh DIR READPATH fills DIR (setup.sh), then runs the
# scenarios with this program and compares it with QEMU's own ufs device. Later words are the names of the scenarios
# to run: probe io hpb parity errors misbehave compare torture.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
readpath=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
sh "$here/setup.sh" "$1"
cd "$1"
shift 2
export KERNEL_LAB="$PWD"
if [ ! -e qemu ]; then
    echo "SKIPPED: no QEMU, so no guest"
    exit 0
fi
# shellcheck source=lab.sh
. "$here/lab.sh"
all=${*:-probe io hpb parity errors misbehave compare torture}
wanted() { case " $all " in *" $1 "*) ;; *) return 1 ;; esac; }
rm -f ./*.server
started=$(date +%s)

# ---- Probe: presets, host control, and two units with pinned regions and HPB 2.0.

# probe NAME KERNEL DEVICE OPTION...
probe() {
    name=$1 kernel=$2 device=$3
    shift 3
    has_kernel "$kernel" "$name" || return 0
    "$readpath" device show "$device" "$@" | sh "$here/expected.sh" >expected
    image probe --device "$device" "$@"
    serve probe --speed instant || return 0
    guest "$name" -t 120 -s "$socket" -f expected "$kernel" "$here/scenarios/probe.sh" &&
        shown "$name" '^files=|^FAIL'
    stop_server
}
two_units() {
    "$readpath" device show ufs21-64g --set lu.0.blocks=2097152 --set hpb.max_active_regions=64 \
        --set lu.0.max_active_regions=32 --set lu.0.pinned_start=4 --set lu.0.pinned_regions=2 |
        awk '$1 == "[host]" {
                print "[hpb.v2]\nsingle_kib = 32\n"
                print "[[lu]]\nblocks = 1048576\nhpb = true\nmax_active_regions = 32"
                print "pinned_start = 0\npinned_regions = 0\n"
            }
            /^# |^\[\[calibration/ { exit }
            { print }'
}
if wanted probe; then
    for preset in ufs21-64g ufs31-256g ufs40-512g; do probe "probe-a-$preset" a $preset; done
    probe probe-a-host-control a ufs21-64g --set hpb.control=host
    two_units >two-units.toml
    probe probe-a-two-units a two-units.toml
    probe probe-b-ufs21-64g b ufs21-64g
    probe probe-b-two-units b two-units.toml
fi

# ---- I/O, and data that outlives a reboot and the server.

# io KERNEL FS
io() {
    has_kernel "$1" "io-$1" || return 0
    image io --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    serve io || return 0
    if guest "io-$1" -r -t 300 -s "$socket" -e "FS=$2" "$1" "$here/scenarios/io.sh"; then
        shown "io-$1" '^fio_'
        first=$(mark "io-$1" "boot=1 files")
        same "io-$1" "$2 after a reboot of the guest" "$first" "$(mark "io-$1" "boot=again files")"
        stop_server
        serve io
        guest "io-$1-again" -s "$socket" -e "FS=$2" -e STAGE=again "$1" "$here/scenarios/io.sh" &&
            same "io-$1" "$2 after a restart of the server" "$first" "$(mark "io-$1-again" "boot=again files")"
    fi
    stop_server
    "$readpath" image check io.img >io.check || fail "io-$1: $PWD/io.check"
}
if wanted io; then
    io a ext4
    io b f2fs
fi

# ---- HPB, which only kernel A has.

device_count() { sed -n "s/^$1 //p" hpb.counters; }
# counted NAME GUEST'S DEVICE'S [NOT COUNTED]: the guest's counter is the device's, without another one of the device.
counted() {
    mine=$(sed -n "s/^@@ count $2 //p" "$1.marks")
    same "$1" "guest's ${2}_cnt, device's $3${4:+ - $4}" "$mine" \
        $(($(device_count "$3") - $(device_count "${4:-none}" | grep . || echo 0)))
}
# hpb MODE REGIONS RANGE: regions that may be active, and the MiB that are read.
hpb() {
    name=hpb-$1
    has_kernel a "$name" || return 0
    # shellcheck disable=SC2086
    image hpb $small --set "hpb.control=$1" --set "hpb.max_active_regions=$2" --set "lu.0.max_active_regions=$2"
    serve hpb || return 0
    guest "$name" -t 300 -s "$socket" -e "MODE=$1" -e "RANGE=$3" -e "LOADS=$(($3 / 4))" \
        a "$here/scenarios/hpb.sh" || true
    shown "$name" '^(filled|warm|after|FAIL)'
    stop_server
    counted "$name" hit hpb_reads
    counted "$name" map_req read_buffers
    counted "$name" umap_req write_buffers
    # Resets are announced after power-on, when Linux does not listen yet: it hears of them by no counter.
    counted "$name" rcmd_noti hpb_notifications resets_announced
    # In host control mode the guest also counts what it recommends to itself.
    if [ "$1" = device ]; then
        counted "$name" rcmd_active recommended_active
        counted "$name" rcmd_inactive recommended_inactive
    fi
    echo "    device: $(grep -E '^(hpb_|slices_moved|collected)' hpb.counters | xargs)"
    if [ "$(device_count slices_moved)" = 0 ]; then fail "$name: nothing was collected"; fi
}
if wanted hpb; then
    hpb device 16 48
    hpb host 12 32
fi

# ---- Does our host decide as Linux, request by request?

# parity DEVICE|HOST DCM|HCM
parity() {
    has_kernel a "parity-$1" || return 0
    image parity --set "hpb.control=$1"
    serve parity --trace "parity-$1.json" || return 0
    guest "parity-$1" -t 300 -s "$socket" a "$here/scenarios/parity.sh" || true
    stop_server
    if "$readpath" trace parity "parity-$1.json" --set "hpb.control=$1" --hpb "$2" >"parity-$1.txt"; then
        pass "parity-$1: $(head -n 1 "parity-$1.txt")"
    else
        fail "parity-$1: $PWD/parity-$1.txt"
    fi
    sed 's/^/    /' "parity-$1.txt"
    same "parity-$1" "the guest's hit_cnt, HPB READs of the trace" "$(mark "parity-$1" hit_cnt)" \
        "$("$readpath" trace upius "parity-$1.json" | grep -c '> HPB READ:')"
    # A trace that tells of differences is to be looked at.
    ! grep -q '^0 differ' "parity-$1.txt" || rm -f "parity-$1.json"
}
if wanted parity; then
    parity device dcm
    parity host hcm
fi

# ---- Resets and sleep.

if wanted errors; then
    for kernel in a b; do
        has_kernel $kernel "errors-$kernel" || continue
        image errors --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
        # Linux 6.1 cannot suspend with the default id.
        serve errors --pci-id 8086:4b41 || continue
        guest "errors-$kernel" -t 300 -s "$socket" -e SUSPEND=yes $kernel "$here/scenarios/errors.sh" || true
        shown "errors-$kernel" '_reset:|runtime_suspends|resets_in_log|system|FAIL'
        stop_server
    done
fi

# ---- Devices that misbehave.

if wanted misbehave; then
    for how in slow-init lost-hibernate hung-tag lost-completion uic-errors fatal-error; do
        has_kernel a "misbehave-$how" || continue
        image misbehave --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
        serve misbehave --misbehave $how || continue
        guest "misbehave-$how" -t 300 -s "$socket" -e HOW=$how a "$here/scenarios/misbehave.sh" &&
            shown "misbehave-$how" "^[a-z_]*=[1-9][0-9]*$"
        stop_server
        times=$(sed -n "s/^$how: \([0-9]*\) times$/\1/p" misbehave.server | tail -n 1)
        if [ "${times:-0}" -gt 0 ]; then echo "    $times times"; else fail "misbehave-$how: it did not"; fi
    done
fi

# ---- The same for QEMU's device and for this one.

if wanted compare; then
    booster="--set write_booster.buffer_mib=64 --set write_booster.bits_per_cell=3 --set write_booster.slc_read_us=20
        --set write_booster.slc_program_us=75 --set write_booster.slc_erase_us=3500
        --set write_booster.life_erases=30000"
    for kernel in a b; do
        has_kernel $kernel "compare-$kernel" || continue
        compare=$here/scenarios/compare.sh
        truncate -s 0 qemu-ufs.img
        truncate -s 256M qemu-ufs.img
        guest "compare-qemu-$kernel" -t 300 -i qemu-ufs.img $kernel "$compare" || true
        [ $kernel = b ] ||
            guest "compare-qemu-$kernel-again" -i qemu-ufs.img -e STAGE=attribute $kernel "$compare" || true
        # shellcheck disable=SC2086
        image compare --set lu.0.blocks=65536 --set geometry.blocks_per_plane=40 $booster
        serve compare || continue
        guest "compare-readpath-$kernel" -t 300 -s "$socket" $kernel "$compare" || true
        stop_server
        # Kernel B has no ufs-bsg, and a look at latencies by one of them will do.
        [ $kernel = a ] || continue
        serve compare
        guest "compare-readpath-$kernel-again" -s "$socket" -e STAGE=attribute $kernel "$compare" || true
        stop_server
        serve compare --scale 20
        guest "compare-readpath-$kernel-slow" -s "$socket" -e STAGE=timing $kernel "$compare" || true
        stop_server
    done
    rm -f qemu-ufs.img
fi

# ---- Kills, in a script of its own.

if wanted torture; then
    for of in "${ROUNDS:-10} a" "4 b"; do
        # shellcheck disable=SC2086
        if sh "$here/torture.sh" . "$readpath" $of; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
fi

rm -f ./*.img
if wanted compare; then sh "$here/table.sh" >comparison.md && cat comparison.md; fi
echo "kernel: $passed passed, $failed failed ($(seconds "$started") s)"
[ $failed = 0 ]
