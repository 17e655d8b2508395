# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest as host of RPMB. FIRST is the write counter from which on it was filled by others: it checks what they left
# and, with FILL=yes, goes on until it is killed. Without FIRST the device is new: every answer of it is checked.

check probe wait_for 20 test -b /dev/sda
node=$(well_known 49476)
if [ -n "${FIRST:-}" ]; then
    left=$(rpmb "$node" check "$FIRST" 2>/tmp/wrong)
    check both_or_none test $? = 0
    say "left=$left $(head -n 1 /tmp/wrong)"
    left=${left#counter }
    say "counter=${left%%,*}"
    [ -z "${FILL:-}" ] || rpmb "$node" fill
    exit 0
fi

# answers NAME ANSWER VERB...: the same for each check.
answers() {
    name=$1 wanted=$2
    shift 2
    answer=$(rpmb "$node" "$@" 2>&1)
    [ "$answer" = "$wanted" ] || say "$name: '$answer', expected '$wanted'"
    check "$name" test "$answer" = "$wanted"
}

# ---- Without a key.

answers counter_without_key "no key, counter 0" counter
answers read_without_key "no key" read 0 1
answers write_without_key "no key, counter 0" write 0 1 100

# ---- The key, once.

answers key ok key
answers key_again "write failure" key
answers other_key "write failure" other-key
answers new_counter "ok, counter 0" counter
answers never_written "ok, 64 x 0" read 0 64

# ---- Writes and reads.

answers write "ok, counter 1" write 8 1 101
cp /tmp/message /tmp/first
answers read_back "ok, 1 x 0, 1 x 101, 1 x 0" read 7 3
answers write_64 "ok, counter 2" write 16 64 102
answers read_64 "ok, 64 x 102" read 16 64
answers write_last "ok, counter 3" write 16383 1 103
answers read_last "ok, 1 x 0, 1 x 103" read 16382 2

# ---- What is refused, and changes nothing.

# unchanged AFTER
unchanged() {
    answers "counter_after_$1" "ok, counter 3" counter
    answers "data_after_$1" "ok, 8 x 0, 1 x 101, 7 x 0, 48 x 102" read 0 64
}
answers wrong_key "authentication failure, counter 3" forge 8 1 110
unchanged wrong_key
answers wrong_key_64 "authentication failure, counter 3" forge 0 64 111
unchanged wrong_key_64
answers altered "authentication failure, counter 3" alter 8 2 112
unchanged altered
answers beyond_the_end "address failure, counter 3" write 16383 2 113
answers behind_the_end "address failure, counter 3" write 16384 1 114
answers read_beyond_the_end "address failure" read 16383 2
answers read_behind_the_end "address failure" read 16384 1
answers too_many "general failure, counter 3" write 0 65 115
answers read_too_many "general failure" read 0 65
unchanged wrong_places
answers last_after_all "ok, 1 x 0, 1 x 103" read 16382 2

# ---- A message that was good once. The second one is of the newest write: its counter alone is old.

answers replay_first "counter failure, counter 3" replay /tmp/first
unchanged replay
answers overwrite "ok, counter 4" write 8 1 104
cp /tmp/message /tmp/newest
answers replay_old "counter failure, counter 4" replay /tmp/first
answers replay_newest "counter failure, counter 4" replay /tmp/newest
answers counter_after_replays "ok, counter 4" counter
answers data_after_replays "ok, 8 x 0, 1 x 104, 7 x 0, 48 x 102" read 0 64
say "counter=4"
