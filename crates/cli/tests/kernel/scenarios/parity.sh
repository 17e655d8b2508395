# SPDX-License-Identifier: MIT OR Apache-2.0
# Block requests of all kinds, more than 100,000 of them, for `readpath dev parity` to compare hosts by.

check probe wait_for 20 test -b /dev/sda
# job NAME OPTIONS...
job() {
    name=$1
    shift
    check "$name" fio --name="$name" --filename=/dev/sda --size=512m --direct=1 --ioengine=libaio --output=/dev/null "$@"
}
job fill --rw=write --bs=256k --iodepth=4 --end_fsync=1
job read --rw=randread --bs=4k --io_size=250m --iodepth=8 --randseed=7
job mixed --rw=randrw --rwmixread=85 --bs=4k --io_size=160m --iodepth=4 --randseed=9
for file in /sys/block/sda/device/hpb_stats/*; do say "$(basename "$file")=$(cat "$file")"; done
