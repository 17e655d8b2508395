# SPDX-License-Identifier: MIT OR Apache-2.0
# Random commands to a zoned unit and to Linux's scsi_debug with the same zones: both answer alike. COMMANDS for each of
# the SEEDS.

generic() { echo "/dev/$(basename /sys/block/"$1"/device/scsi_generic/*)"; }
are() { [ "$(zoned host-managed | wc -w)" = "$1" ]; }
check probe wait_for 20 are 1
disk=$(zoned host-managed)
zones=$(cat "/sys/block/$disk/queue/nr_zones")
mib=$(($(cat "/sys/block/$disk/queue/chunk_sectors") / 2048))
capacity=$(blkzone report -c 1 "/dev/$disk" | sed 's/.* cap \(0x[0-9a-f]*\),.*/\1/')
check scsi_debug modprobe scsi_debug zbc=managed zone_size_mb=$mib zone_cap_mb=$((capacity / 2048)) zone_nr_conv=0 \
    zone_max_open=6 sector_size=4096 dev_size_mb=$((zones * mib)) delay=0
check both wait_for 20 are 2
for other in $(zoned host-managed); do [ "$other" = "$disk" ] || break; done
for seed in $(echo "$SEEDS" | tr , ' '); do
    check "seed_$seed" zones "$(generic "$disk")" "$(generic "$other")" "$COMMANDS" "$seed" >/tmp/out
    grep '' /tmp/out | while read -r line; do say "$line"; done
done
