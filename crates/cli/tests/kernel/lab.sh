# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# What kernel.sh, rpmb.sh and torture.sh share: servers, guests and the count of what passed. They are in the lab's
# folder then, $here is that of the scripts, and $readpath the program.

passed=0
failed=0
server=
# A socket's path may have about a hundred bytes, which the lab's folder may use up.
sockets=$(mktemp -d)
socket=$sockets/s
trap 'kill_server; rm -rf "$sockets"' EXIT
trap 'exit 1' HUP INT TERM

seconds() { echo $(($(date +%s) - $1)); }
pass() { passed=$((passed + 1)) && echo "passed: $*"; }
fail() { failed=$((failed + 1)) && echo "FAILED: $*"; }
# has_kernel a|b NAME: says if the scenario cannot be.
has_kernel() {
    [ ! -e "kernel-$1.vmlinuz" ] || return 0
    echo "SKIPPED: $2: there is no kernel $1"
    return 1
}

# image NAME OPTION...: a new device.
image() {
    its=$1
    shift
    rm -f "$its.img"
    "$readpath" image create "$its.img" "$@" >"$its.device"
}
# A device of 128 MiB, of which a lap over its flash takes seconds..
small="--set lu.0.blocks=32768 --set geometry.pages_per_block=32 --set geometry.blocks_per_plane=52
    --set map_cache.size_kib=64 --set hpb.region_mib=4 --set hpb.sub_region_mib=4"
# zoned NAME BLOCKS OF A CONVENTIONAL UNIT, OF A ZONED UNIT, MIB OF A ZONE, PAGES OF A BLOCK, SUPERBLOCKS, OPTION...
zoned() {
    its=$1 plain=$2 blocks=$3 mib=$4 pages=$5 superblocks=$6
    shift 6
    image "$its" --device "$here/../../../../docs/examples/zoned.toml" --set "lu.0.blocks=$plain" \
        --set "lu.1.blocks=$blocks" --set "lu.1.zones.size_mib=$mib" --set "geometry.pages_per_block=$pages" \
        --set "geometry.blocks_per_plane=$superblocks" "$@"
}

# What serve adds: words before the server's program, and an option behind it. No image here has to outlive a crash of
# this machine.
wrapper=
syncs=--no-sync
# serve NAME OPTION...: offers the device. What it counts goes to NAME.counters, what it says is added to NAME.server.
serve() {
    its=$1
    shift
    rm -f "$socket" "$its.counters"
    echo "== $*" >>"$its.server"
    # shellcheck disable=SC2086
    $wrapper "$readpath" attach "$its.img" --socket "$socket" --counters "$its.counters" $syncs "$@" \
        >>"$its.server" 2>&1 &
    server=$!
    listens
}
# listens: waits until the server $its does.
listens() {
    tries=600
    until [ -S "$socket" ]; do
        if ! kill -0 $server 2>/dev/null || [ $((tries -= 1)) -lt 0 ]; then
            fail "$its: the server does not start: $PWD/$its.server"
            return 1
        fi
        sleep 0.05
    done
}
# Ends it as Ctrl-C does.
stop_server() {
    kill -TERM "$server" 2>/dev/null || fail "the server has ended by itself"
    wait "$server" || fail "the server has ended with an error"
    server=
}
# As a power cut does.
kill_server() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
# The server's end, which does not come if nothing is written where it is to be cut.
wait_for_end() {
    tries=600
    while kill -0 "$server" 2>/dev/null && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
}

# Killing a shell leaves its children. The machine was started with -pidfile.
kill_machine() { [ ! -e "$sockets/pid" ] || kill -KILL "$(cat "$sockets/pid")" 2>/dev/null || true; }
# Up to a second, by a generator that is the same every time.
seed=1
some_time() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "0.$(printf %03d $((seed / 65536 % 1000)))"
}

# guest NAME OPTION...: a guest of guest.sh, with its marks and the console in files of that name.
guest() {
    its=$1
    shift
    begin=$(date +%s)
    if sh "$here/guest.sh" -l "$its.log" "$@" >"$its.marks" 2>"$its.errors"; then
        pass "$its ($(seconds "$begin") s, $(grep -c '@@ PASS' "$its.marks") checks)"
    else
        fail "$its: $PWD/$its.log"
        # QEMU repeats itself without end when a server has gone.
        grep -v '^qemu-system' "$its.errors" | head -n 20 || true
        return 1
    fi
}
# shown NAME PATTERN: such marks of a guest, without their @@.
shown() { sed -n 's/^@@ //p' "$1.marks" | grep -E "$2" | sed 's/^/    /' || true; }
mark() { sed -n "s/^@@ $2=//p" "$1.marks" | tail -n 1; }
# same NAME WHAT THIS THAT
same() {
    if [ -n "$3" ] && [ "$3" = "$4" ]; then pass "$1: $2: $3"; else fail "$1: $2: '$3' and '$4'"; fi
}
