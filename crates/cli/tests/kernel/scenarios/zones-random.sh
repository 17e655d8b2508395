# SPDX-License-Identifier: MIT OR Apache-2.0
# Random commands to a zoned unit and to Linux's scsi_debug with the same zones: both answer alike. COMMANDS for each of
# two seeds.

zoned() { for disk in /sys/block/sd*; do [ "$(cat "$disk/queue/zoned")" != host-managed ] || basename "$disk"; done; }
generic() { echo "/dev/$(basename /sys/block/"$1"/device/scsi_generic/*)"; }
are() { [ "$(zoned | wc -w)" = "$1" ]; }
check probe wait_for 20 are 1
disk=$(zoned)
zones=$(cat "/sys/block/$disk/queue/nr_zones")
mib=$(($(cat "/sys/block/$disk/queue/chunk_sectors") / 2048))
check scsi_debug modprobe scsi_debug zbc=managed zone_size_mb=$mib zone_nr_conv=0 zone_max_open=6 sector_size=4096 \
    dev_size_mb=$((zones * mib)) delay=0
check both wait_for 20 are 2
for other in $(zoned); do [ "$other" = "$disk" ] || break; done
for seed in 1 2; do
    check "seed_$seed" zones "$(generic "$disk")" "$(generic "$other")" "$COMMANDS" $seed >/tmp/out
    grep '' /tmp/out | while read -r line; do say "$line"; done
done
