# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# RPMB of one kernel's guests; kernel.sh reads this file. First a guest looks at every answer. Then others fill RPMB,
# and the server is killed: at some moment, or while it writes a part of a change to the image. The next guest finds all
# blocks as the last writes up to the counter have left them: data and counter are both of before or both of after.

it=rpmb-$kernel
key=$(seq -f %02g 10 41 | tr -d '\n')
# There is more to be cut off if a change takes its time.
syncs=

# shown_counter: what the image says, if it has the key.
shown_counter() {
    "$readpath" image rpmb "$it.img" --key |
        awk -v key="$key" '$1 == "key" { is = $2 } $1 == "counter" && is == key { print $2 }'
}
acknowledged() { sed -n 's/.*@@ acknowledged \([0-9]*\)\.\r*$/\1/p' "$it.log" 2>/dev/null | tail -n 1; }

# part NAME: where the image has it, as FROM:TO (docs/formats/image.md).
part() {
    rpmb=$(($(stat -c %s "$it.img") - 4304896))
    case $1 in
    mark) echo $rpmb:$((rpmb + 4096)) ;;
    record) echo $((rpmb + 4096)):$((rpmb + 45056)) ;;
    checks) echo $((rpmb + 45056)):$((rpmb + 110592)) ;;
    blocks) echo $((rpmb + 110592)):$((rpmb + 4304896)) ;;
    esac
}

# with_rpmb OPTION...: a guest that checks what was left.
with_rpmb() {
    sh "$here/guest.sh" -l "$it.log" -t 120 -s "$socket" -e "RPMB_KEY=$key" -e "FIRST=$first" "$@" >"$it.marks" 2>&1
}
# found COUNTER: whether the guest that checked found nothing wrong, and this counter.
found() {
    its=$(sed -n 's/.*@@ counter=\([0-9]*\)\r*$/\1/p' "$it.log")
    if ! grep -q '@@ FAIL' "$it.log" && [ "$its" = "$1" ]; then return 0; fi
    cp "$it.log" "$it-failed-$count.log"
    fail "$it: after kill $count the counter is '$its', expected $1: $PWD/$it-failed-$count.log"
    return 1
}
# killed HOW: one guest, which checks and writes, and the server's end: at some moment, or while a part is written.
killed() {
    writes=$((10 + count * 3))
    [ "$1" = moment ] || wrapper="env LD_PRELOAD=$PWD/cut.so CUT=$writes:$(part record):$(part "$1"):512"
    serve "$it" || return 1
    wrapper=
    rm -f "$sockets/pid" "$it.log"
    with_rpmb -e FILL=yes "$kernel" "$here/scenarios/rpmb.sh" -pidfile "$sockets/pid" &
    machine=$!
    while [ -z "$(acknowledged)" ] && kill -0 $machine 2>/dev/null; do sleep 0.05; done
    if [ "$1" = moment ]; then some_time; else wait_for_end; fi
    kill_server
    kill_machine
    wait $machine 2>/dev/null || true
    found "$counter" || return 1
    last=$(acknowledged)
    is=$(shown_counter)
    # A record in two halves is none. Acknowledgements may still be on their way to the console.
    case $1 in
    moment) expected=$is ;;
    record) expected=$((counter + writes - 1)) ;;
    *) expected=$((counter + writes)) ;;
    esac
    if [ -z "$last" ] || [ "$is" != "$expected" ] || [ "$is" -lt "$last" ]; then
        fail "$it: kill $count ($1): from $counter up to $last is acknowledged, the image has '$is', expected $expected"
        return 1
    fi
    kept=$((kept + (is > last)))
    counter=$is
}

image "$it" --set lu.0.blocks=4096 --set geometry.blocks_per_plane=20
first=
if serve "$it"; then
    if guest "$it-first" -s "$socket" -e "RPMB_KEY=$key" "$kernel" "$here/scenarios/rpmb.sh"; then
        first=$(mark "$it-first" counter)
    fi
    shown "$it-first" "expected|FAIL"
    stop_server
    [ -z "$first" ] || same "$it" "write counter of the guest, of image rpmb" "$first" "$(shown_counter)"
fi

rounds=${ROUNDS:-10}
[ "$kernel" = a ] || rounds=3
count=0 kept=0 counter=$first
begin=$(date +%s)
while [ -n "$first" ] && [ $count -lt "$rounds" ]; do
    count=$((count + 1))
    case $((count % 8)) in
    1) how=record ;;
    3) how=blocks ;;
    5) how=checks ;;
    7) how=mark ;;
    *) how=moment ;;
    esac
    killed $how || first=
done
if [ -n "$first" ] && serve "$it"; then
    with_rpmb "$kernel" "$here/scenarios/rpmb.sh" || true
    stop_server
    if found "$counter" && [ "$(shown_counter)" = "$counter" ]; then
        pass "$it: $count kills of the server in $((counter - first)) writes, $kept between a write and its" \
            "acknowledgement; data is that of the counter ($(seconds "$begin") s)"
    fi
fi
"$readpath" image check "$it.img" >"$it.check" || fail "$it: $PWD/$it.check"
syncs=--no-sync
