# SPDX-License-Identifier: MIT OR Apache-2.0
# HPB of Linux 6.1 at work on a small device: loads, hits, dirty entries, garbage collection. MODE is device or host,
# RANGE the MiB that are read, LOADS how many sub-regions they are. The last marks are what the guest has counted.

check probe wait_for 20 test -b /dev/sda
lu=$(cd /sys/block/sda/device && pwd -P)
count() { cat "$lu/hpb_stats/$1_cnt"; }
fio_job() {
    fio --name=job --filename=/dev/sda --size="${RANGE}m" --direct=1 --thread --ioengine=libaio --iodepth=8 --bs=4k \
        --randrepeat=0 --eta=never --output=/dev/null "$@"
}
# ratio NAME READS: how many of so many random reads were HPB READs, in percent and tenths.
ratio() {
    hits=$(count hit) misses=$(count miss)
    fio_job --rw=randread --number_ios="$2"
    hits=$(($(count hit) - hits)) misses=$(($(count miss) - misses))
    tenths=$((1000 * hits / (hits + misses)))
    say "$1: $hits hits, $misses misses, $((tenths / 10)).$((tenths % 10)) % hits"
}
at_least() { [ $tenths -ge $(($1 * 10)) ]; }
# Reads until so many sub-regions were asked for: loads come in their own time.
warm() {
    tries=60
    until [ "$(count map_req)" -ge "$1" ]; do
        [ $((tries -= 1)) -ge 0 ] || return 1
        # shellcheck disable=SC2153
        fio_job --rw=randread --number_ios=$((LOADS * 12))
        sleep 0.3
    done
}
# Single blocks, read by HPB READ where possible, have the same data as long reads.
same() {
    dd if=/dev/sda bs=4k count=3072 iflag=direct 2>/dev/null | sha256sum >/tmp/single
    dd if=/dev/sda bs=1M count=12 iflag=direct 2>/dev/null | sha256sum | cmp - /tmp/single
}
set_param() { echo "$2" >"$lu/hpb_params/$1" && [ "$(cat "$lu/hpb_params/$1")" = "$2" ]; }

if [ "$MODE" = host ]; then
    # Eager: a sub-region after 4 reads, a region in the place of another after 40, and gone soon after a write.
    for param in activation_thld=4 eviction_thld_exit=20 eviction_thld_enter=40 inflight_map_req=4 \
        read_timeout_ms=2000; do
        check "param_$param" set_param "${param%=*}" "${param#*=}"
    done
fi
check fill fio_job --rw=write --bs=256k --size=100%
say "filled: map_req=$(count map_req) miss=$(count miss)"
check warm warm "$LOADS"
say "warm: map_req=$(count map_req) of $LOADS sub-regions"
ratio warm_range 4000
check warm_range_hits_95_percent at_least 95
check hpb_reads_are_right same

# One block of eight. The first of the reads already bring loads about.
loads=$(count map_req)
fio_job --rw=randwrite --number_ios=$((RANGE * 32))
ratio after_overwrites 400
check overwrites_are_misses test "$misses" -gt 10
check loaded_again warm $((loads + LOADS))
ratio after_loads 2000
check dirty_entries_come_back at_least 95

# As much as the flash has in all, so that space has to be made.
for n in 1 2; do check rewrite_$n fio_job --rw=randwrite --bs=16k --size=100%; done
check right_after_collection same
ratio after_collection 2000
if [ "$MODE" = host ]; then
    idle_dirty() { [ "$(count umap_req)" -gt 0 ]; }
    check dirty_regions_leave wait_for 30 idle_dirty
else
    # More regions than may be active.
    others() {
        fio_job --rw=randread --size=100% --number_ios=4000
        [ "$(count rcmd_inactive)" -gt 0 ]
    }
    check regions_take_turns wait_for 60 others
fi
sleep 1
# The last notifications of the device come with these commands.
for n in 1 2 3 4 5 6 7 8; do sg_raw /dev/sda 00 00 00 00 00 00 2>/dev/null; done
for name in hit map_req umap_req rcmd_noti rcmd_active rcmd_inactive; do say "count $name $(count $name)"; done
