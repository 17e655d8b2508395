#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The scenarios of one kernel: kernel.sh DIR READPATH a|b NAME... Everything is left in DIR, which setup.sh has filled.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
readpath=$2
kernel=$3
wanted=" $* "
cd "$1"
export KERNEL_LAB="$PWD"
# shellcheck source=lab.sh
. "$here/lab.sh"
# shellcheck source=archive.sh
. "$here/archive.sh"
wanted() { case $wanted in *" $1 "*) ;; *) return 1 ;; esac; }
has_kernel "$kernel" "all of kernel $kernel" || exit 0
rm -f ./*-"$kernel".server
started=$(date +%s)

# ---- Probe: presets, host control, and two units with pinned regions and HPB 2.0.

# probe NAME DEVICE OPTION...
probe() {
    name=probe-$kernel-$1 device=$2
    shift 2
    "$readpath" device show "$device" "$@" | sh "$here/expected.sh" >"$sockets/expected"
    image "probe-$kernel" --device "$device" "$@"
    serve "probe-$kernel" --instant || return 0
    guest "$name" -t 120 -s "$socket" -f "$sockets/expected" "$kernel" "$here/scenarios/probe.sh" || true
    shown "$name" '^files=|^FAIL'
    stop_server
}
# Units whose last region is short, one of a single block and without HPB, pinned regions, and HPB 2.0.
odd_units() {
    "$readpath" device show ufs21-64g --set lu.0.blocks=2097151 --set hpb.max_active_regions=66 \
        --set lu.0.max_active_regions=32 --set lu.0.pinned_start=4 --set lu.0.pinned_regions=2 |
        awk '
            function unit(blocks, hpb, regions) {
                print "[[lu]]\nblocks = " blocks "\nhpb = " hpb "\nmax_active_regions = " regions
                print "pinned_start = 0\npinned_regions = 0\n"
            }
            $1 == "[host]" {
                print "[hpb.v2]\nsingle_kib = 32\n"
                unit(1048576, "true", 32)
                unit(1, "false", 0)
                unit(4097, "true", 2)
            }
            /^# |^\[\[calibration/ { exit }
            { print }'
}
if wanted probe; then
    odd_units >"$sockets/odd-units.toml"
    probe ufs21-64g ufs21-64g
    probe odd-units "$sockets/odd-units.toml"
    # What these differ in, kernel B cannot show.
    if [ "$kernel" = a ]; then
        probe ufs31-256g ufs31-256g
        probe ufs40-512g ufs40-512g
        probe host-control ufs21-64g --set hpb.control=host
    fi
fi

# ---- I/O, and data that outlives a reboot and the server.

# io FILE-SYSTEM
io() {
    name=io-$kernel fs=$1
    image "$name" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    serve "$name" || return 0
    if guest "$name" -r -t 300 -s "$socket" -e "FS=$fs" "$kernel" "$here/scenarios/io.sh"; then
        first=$(mark "$name" "boot=1 files")
        same "$name" "$fs after a reboot of the guest" "$first" "$(mark "$name" "boot=again files")"
        stop_server
        serve "$name" || return 0
        if guest "$name-again" -s "$socket" -e "FS=$fs" -e STAGE=again "$kernel" "$here/scenarios/io.sh"; then
            same "$name" "$fs after a restart of the server" "$first" "$(mark "$name-again" "boot=again files")"
        fi
    fi
    shown "$name" '^fio_|^FAIL'
    stop_server
    "$readpath" image check "$name.img" >"$name.check" || fail "$name: $PWD/$name.check"
}
if wanted io; then
    if [ "$kernel" = a ]; then io ext4; else io f2fs; fi
fi

# ---- What a crash can leave of a file system as its guest writes it: fsck finds all of it clean.

# crash FILE-SYSTEM
crash() {
    name=crash-$kernel fs=$1
    command -v nbdcopy >/dev/null || { echo "SKIPPED: $name: nbdcopy is missing (Debian package libnbd-bin)"; return 0; }
    image "$name" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    for stage in make write; do
        record=
        if [ $stage = write ]; then
            cp --sparse=always "$name.img" "$name-start.img"
            record="--record $name.rec --data"
        fi
        rm -f "$socket" "$name.rec"
        its=$name
        # shellcheck disable=SC2086
        "$readpath" serve "$name.img" --nbd "unix:$socket" --instant $record >>"$name.server" 2>&1 &
        server=$!
        listens || return 0
        # The device of the machine is QEMU's, and its disk is served.
        guest "$name-$stage" -i "nbd+unix:///?socket=$socket" -e "FS=$fs" -e "STAGE=$stage" "$kernel" \
            "$here/scenarios/crash.sh" || true
        stop_server
    done
    for states in permitted device; do
        if "$readpath" crash "$name.rec" --image "$name-start.img" --states $states --budget 200 -- \
            sh "$here/clean.sh" "$fs" >"$name-$states.crash" 2>&1; then
            pass "$name: $fs, $states states: $(head -n 1 "$name-$states.crash")"
        else
            fail "$name: $fs, $states states: $PWD/$name-$states.crash"
        fi
    done
}
if wanted crash; then
    if [ "$kernel" = a ]; then crash ext4; else crash f2fs; fi
fi

# ---- A zoned unit: Linux's view of it, data of fio that outlives the server, f2fs over both units, machine and
# server gone without a word; then zones that are cleaned, and random commands beside scsi_debug, which only kernels of
# Debian have.

zones() {
    name=zones-$kernel
    zoned "$name" 65536 524288 16 66 190
    serve "$name" --instant || return 0
    if guest "$name" -t 200 -s "$socket" "$kernel" "$here/scenarios/zones.sh"; then
        stop_server
        same "$name" "zones of the guest, of image info" "$(mark "$name" report)" \
            "$("$readpath" image info "$name.img" | sed -n 's/^zones .*: //p')"
        serve "$name" --instant || return 0
        if guest "$name-f2fs" -t 300 -s "$socket" -e STAGE=f2fs "$kernel" "$here/scenarios/zones.sh"; then
            kill_server
            serve "$name" --instant || return 0
            if guest "$name-again" -s "$socket" -e STAGE=again "$kernel" "$here/scenarios/zones.sh"; then
                same "$name" "f2fs after a kill of the server" "$(mark "$name-f2fs" files)" \
                    "$(mark "$name-again" files)"
            fi
        fi
        same "$name" "zones before and after a restart" "$(mark "$name" report)" "$(mark "$name-f2fs" report_after)"
    fi
    shown "$name" '^zones=|^written|^FAIL'
    stop_server
    "$readpath" image check "$name.img" >"$name.check" || fail "$name: $PWD/$name.check"
    [ "$kernel" != a ] || return 0
    # Two kernels will do.
    if [ "$kernel" != b ]; then
        cleaning power-of-two 8
        cleaning gaps 6
    fi
    random power-of-two 4 1,2
    random gaps 3 3
}
# cleaning LAYOUT MIB-OF-A-ZONE
cleaning() {
    name=cleaning-$kernel-$1
    zoned "$name" 16384 49152 "$2" 66 60 --set "lu.1.zones.layout=$1"
    serve "$name" --instant || return 0
    rm -rf "$sockets/zonefs"
    mkdir "$sockets/zonefs"
    # Linux 6.1 refuses its own appends to zonefs on any SCSI disk, those of scsi_debug too.
    if [ "$kernel" = d ] && ! command -v mkzonefs >/dev/null; then
        echo "SKIPPED: $name: zonefs: mkzonefs is missing (zonefs-tools, which Debian 12 does not have)"
    elif [ "$kernel" = d ]; then
        copy_with_libraries "$(command -v mkzonefs)" "$sockets/zonefs"
    fi
    archive "$sockets/zonefs" "$sockets/zonefs.cpio"
    guest "$name" -t 200 -s "$socket" -c "$sockets/zonefs.cpio" -e "CAPACITY=$2" "$kernel" \
        "$here/scenarios/cleaning.sh" || true
    shown "$name" '^shapes|^f2fs:|^zonefs:|^FAIL'
    stop_server
    "$readpath" image check "$name.img" >"$name.check" || fail "$name: $PWD/$name.check"
}
# random LAYOUT MIB-OF-A-ZONE SEEDS: COMMANDS of each seed.
random() {
    name=zones-$kernel-$1
    zoned "$name" 65536 16384 "$2" 66 60 --set "lu.1.zones.layout=$1"
    serve "$name" --instant || return 0
    guest "$name" -t 300 -s "$socket" -e COMMANDS=3500 -e "SEEDS=$3" "$kernel" "$here/scenarios/zones-random.sh" || true
    shown "$name" 'commands|^[0-9]+:|^FAIL'
    stop_server
}
if wanted zones; then zones; fi

# ---- libzbc's suite through /dev/sg, if LIBZBC names a checkout that was configured --with-test and built.

libzbc() {
    name=libzbc-$kernel
    if [ -z "${LIBZBC:-}" ] || [ ! -x "$LIBZBC/test/programs/zbc_test_report_zones" ]; then
        echo "SKIPPED: $name: LIBZBC=${LIBZBC:-} is no checkout of libzbc with built tests"
        return 0
    fi
    mkdir "$sockets/add" "$sockets/add/libzbc"
    cp -r "$LIBZBC/test" "$LIBZBC/lib/.libs" "$sockets/add/libzbc/"
    for program in "$(command -v bash)" "$LIBZBC"/test/programs/zbc_test_*; do
        copy_with_libraries "$program" "$sockets/add"
    done
    archive "$sockets/add" "$sockets/libzbc.cpio"
    zoned "$name" 16384 32768 4 66 60
    serve "$name" --instant || return 0
    guest "$name" -t 600 -s "$socket" -c "$sockets/libzbc.cpio" "$kernel" "$here/scenarios/libzbc.sh" || true
    shown "$name" '^libzbc=|^not applicable|^FAIL'
    stop_server
}
# Kernels A and B are not asked: what answers is the device.
if wanted libzbc; then
    case $kernel in c | d) libzbc ;; esac
fi

# ---- HPB, which only kernel A has.

device_count() { sed -n "s/^$1 //p" hpb-a.counters; }
# counted NAME GUEST'S DEVICE'S [NOT COUNTED]: the guest's counter is the device's, without another one of the device.
counted() {
    mine=$(sed -n "s/^@@ count $2 //p" "$1.marks")
    same "$1" "guest's ${2}_cnt, device's $3${4:+ - $4}" "$mine" \
        $(($(device_count "$3") - $(device_count "${4:-none}" | grep . || echo 0)))
}
# hpb MODE REGIONS RANGE: regions that may be active, and the MiB that are read.
hpb() {
    name=hpb-$1
    # shellcheck disable=SC2086
    image hpb-a $small --set "hpb.control=$1" --set "hpb.max_active_regions=$2" --set "lu.0.max_active_regions=$2"
    serve hpb-a || return 0
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
    echo "    device: $(grep -E '^(hpb_|slices_moved|collected)' hpb-a.counters | xargs)"
    if [ "$(device_count slices_moved)" = 0 ]; then fail "$name: nothing was collected"; fi
}
if wanted hpb && [ "$kernel" = a ]; then
    hpb device 16 48
    hpb host 12 32
fi

# ---- Does our host decide as Linux, request by request?

# parity DEVICE|HOST DCM|HCM
parity() {
    name=parity-$1
    image parity-a --set "hpb.control=$1"
    serve parity-a --trace-io "$name.json" || return 0
    guest "$name" -t 300 -s "$socket" a "$here/scenarios/parity.sh" || true
    stop_server
    if "$readpath" dev parity "$name.json" --set "hpb.control=$1" --hpb "$2" >"$name.txt"; then
        pass "$name: $(head -n 1 "$name.txt")"
    else
        fail "$name: $PWD/$name.txt"
    fi
    sed 's/^/    /' "$name.txt"
    same "$name" "the guest's hit_cnt, HPB READs of the trace" "$(mark "$name" hit_cnt)" \
        "$("$readpath" dev upius "$name.json" | grep -c '> HPB READ:')"
    # A trace with differences is kept for inspection.
    ! grep -q '^0 differ' "$name.txt" || rm -f "$name.json"
}
if wanted parity && [ "$kernel" = a ]; then
    parity device dcm
    parity host hcm
fi

# ---- Devices that misbehave.

misbehave() {
    name=misbehave-$kernel-$1
    image "misbehave-$kernel" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    serve "misbehave-$kernel" --misbehave "$1" || return 0
    if guest "$name" -t 300 -s "$socket" -e "HOW=$1" "$kernel" "$here/scenarios/misbehave.sh"; then
        shown "$name" '^[a-z_]*=[1-9][0-9]*$'
    fi
    stop_server
    times=$(sed -n "s/^$1: \([0-9]*\) times$/\1/p" "misbehave-$kernel.server" | tail -n 1)
    if [ "${times:-0}" -gt 0 ]; then echo "    $times times"; else fail "$name: it did not"; fi
}
if wanted misbehave; then
    for how in slow-init lost-hibernate hung-tag lost-completion uic-errors fatal-error; do misbehave $how; done
fi

# ---- Resets and sleep.

if wanted errors; then
    image "errors-$kernel" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    if serve "errors-$kernel"; then
        guest "errors-$kernel" -t 300 -s "$socket" -e SUSPEND=yes "$kernel" "$here/scenarios/errors.sh" || true
        shown "errors-$kernel" '_reset:|runtime_suspends|resets_in_log|system|FAIL'
        stop_server
    fi
fi

# ---- The server ends while a guest has its device: Ctrl-C is a removal, which the guest's driver notices at once.

if wanted gone; then
    image "gone-$kernel" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=30
    rm -f "gone-$kernel.log"
    if serve "gone-$kernel"; then
        (
            tries=1200
            until grep -q '@@ ready' "gone-$kernel.log" 2>/dev/null || [ $((tries -= 1)) -lt 0 ]; do sleep 0.1; done
            kill -TERM "$server"
        ) &
        guest "gone-$kernel" -s "$socket" "$kernel" "$here/scenarios/gone.sh" || true
        shown "gone-$kernel" 'seconds|FAIL'
        wait "$server" || fail "the server has ended with an error"
        server=
    fi
fi

# ---- The same for QEMU's device and for this one.

# compared DEVICE STAGE OPTION...
compared() {
    name=compare-$1-$kernel-$2 stage=$2
    shift 2
    guest "$name" -t 300 -e "STAGE=$stage" "$@" "$kernel" "$here/scenarios/compare.sh" || true
}
# compared_here STAGE OPTION...: this device, by a server with these options.
compared_here() {
    stage=$1
    shift
    serve "compare-$kernel" "$@" || return 0
    compared readpath "$stage" -s "$socket"
    stop_server
}
if wanted compare; then
    booster="--set write_booster.buffer_mib=64 --set slc.bits_per_cell=3 --set slc.read_us=20
        --set slc.program_us=75 --set slc.erase_us=3500 --set slc.life_erases=30000"
    qemus=qemu-ufs-$kernel.img
    rm -f "$qemus"
    truncate -s 256M "$qemus"
    # shellcheck disable=SC2086
    image "compare-$kernel" --set lu.0.blocks=65536 --set geometry.blocks_per_plane=40 $booster
    compared qemu all -i "$qemus"
    compared_here all
    # Kernel B has no ufs-bsg, and one look at a slow device will do.
    if [ "$kernel" = a ]; then
        compared qemu attribute -i "$qemus"
        compared_here attribute
        compared_here timing --scale 20
    fi
fi

# ---- Kills, in a script of its own.

# tortured ROUNDS stamps|files
tortured() {
    if sh "$here/torture.sh" . "$readpath" "$1" "$kernel" "$2"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}
if wanted torture; then
    rounds=${ROUNDS:-10}
    # A round of files takes twice as long.
    if [ "$kernel" = a ]; then
        tortured "$rounds" stamps
    else
        tortured 4 stamps
        tortured $((rounds / 2)) files
    fi
fi

# ---- RPMB, and kills while it is written.

if wanted rpmb; then
    # shellcheck source=rpmb.sh
    . "$here/rpmb.sh"
fi

rm -f ./*-"$kernel".img
echo "kernel $kernel: $passed passed, $failed failed ($(seconds "$started") s)"
[ $failed = 0 ]
