#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Kills under running I/O: torture.sh DIR READPATH ROUNDS a|b|c|d stamps|files. In turn the server and QEMU are killed
# at some moment after the guest's first flush. The next guest checks that all is there that was reported as flushed.
# Stamps are blocks of a conventional unit; at their first kill a second machine wants the device, and is refused.
# Files are those of f2fs over a conventional and a zoned unit; every other end of their server is in the middle of a
# write to the image.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
readpath=$2
rounds=$3
kernel=$4
what=$5
cd "$1"
export KERNEL_LAB="$PWD"
# shellcheck source=lab.sh
. "$here/lab.sh"
it=$what-$kernel

flushed() { sed -n 's/.*@@ flushed \([0-9]*\)\.\r*$/\1/p' "$it.log" 2>/dev/null | tail -n 1; }

# round KERNEL KILLED: one guest, which checks and then writes.
round() {
    if [ "$2" = torn ]; then
        [ -z "$server" ] || stop_server
        # So many writes that the guest has come to its first flush.
        wrapper="env LD_PRELOAD=$PWD/cut.so CUT=$((1800 + count * 37 % 500)):0:99999999999:0:99999999999:4096"
    fi
    [ -n "$server" ] || serve "$it" || return 1
    wrapper=
    rm -f "$sockets/pid" "$it.log"
    sh "$here/guest.sh" -l "$it.log" -t 120 -s "$socket" -e "OLD=$old" -e "FLUSHED=$durable" -e "NEW=$new" "$1" \
        "$here/scenarios/$what.sh" -pidfile "$sockets/pid" >"$it.marks" 2>&1 &
    machine=$!
    while [ -z "$(flushed)" ] && kill -0 $machine 2>/dev/null && kill -0 "$server" 2>/dev/null; do sleep 0.05; done
    if [ -n "$(flushed)" ] && [ "$2" = second ]; then
        before=$(flushed)
        turned_away=$(grep -c 'turned away: there' "$it.server" || true)
        if sh "$here/guest.sh" -l "second-$kernel.log" -t 20 -s "$socket" "$1" "$here/scenarios/stamps.sh" \
            >"second-$kernel.marks" 2>&1; then
            fail "a second machine was given the device"
        fi
        sleep 0.5
        refused=$(($(grep -c 'turned away: there' "$it.server") - turned_away))
        if [ $refused -gt 0 ] && [ "$(flushed)" -gt "$before" ]; then
            pass "kernel $1: a second machine is refused, and the first goes on"
        else
            fail "kernel $1: a second machine disturbs the first"
        fi
    fi
    if [ "$2" = torn ]; then
        wait_for_end
        ! kill -0 "$server" 2>/dev/null || fail "round $count of kernel $1: the server was not cut off"
    else
        some_time
    fi
    # A change of a file takes longer than a stamp.
    if [ "$what $2" = "files machine" ] || [ "$what $2" = "files server" ]; then some_time && some_time; fi
    if [ "$2" != machine ] && [ "$2" != second ]; then kill_server; fi
    kill_machine
    wait $machine 2>/dev/null || true
    if grep -q '@@ FAIL' "$it.log" || [ -z "$(flushed)" ]; then
        cp "$it.log" "$it-failed-$count.log"
        fail "round $count of kernel $1, after $what from ${old:-none}: $PWD/$it-failed-$count.log${kept:+, $kept}"
        return 1
    fi
    old=$new durable=$(flushed) new=$((durable + 1000))
}

if [ "$what" = stamps ]; then
    # shellcheck disable=SC2086
    image "$it" $small
else
    zoned "$it" 16384 32768 4 66 100
fi
: >"$it.server"
kept='' old='' durable='' new=1000 count=0 machines=0 servers=0
begin=$(date +%s)
while [ $count -lt "$rounds" ]; do
    count=$((count + 1))
    if [ $((count % 2)) = 0 ]; then kind=server; else kind=machine; fi
    if [ "$what $count" = "stamps 1" ]; then kind=second; fi
    if [ "$what $((count % 4))" = "files 0" ]; then kind=torn; fi
    # What a file that is wrong has become can be looked at again.
    if [ "$what" = files ]; then kept=$it-before.img && cp --sparse=always "$it.img" "$kept"; fi
    round "$kernel" $kind || break
    case $kind in server | torn) servers=$((servers + 1)) ;; *) machines=$((machines + 1)) ;; esac
done
# The last look.
[ -n "$server" ] || serve "$it"
sh "$here/guest.sh" -l "$it.log" -s "$socket" -e "OLD=$old" -e "FLUSHED=$durable" "$kernel" \
    "$here/scenarios/$what.sh" >"$it.marks" 2>&1 || fail "the guest after the last kill: $PWD/$it.log"
stop_server
if "$readpath" image check "$it.img" >"$it.check" 2>&1; then :; else fail "the image: $PWD/$it.check"; fi
[ $failed -gt 0 ] || pass "kernel $kernel: $servers kills of the server, $machines of QEMU," \
    "$what up to $durable, nothing lost that was flushed ($(seconds "$begin") s)"
rm -f "$it.img"
[ $failed -gt 0 ] || rm -f "$kept"
echo "torture, $what: $passed passed, $failed failed"
[ $failed = 0 ]
