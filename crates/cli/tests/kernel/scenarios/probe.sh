# SPDX-License-Identifier: MIT OR Apache-2.0
# Linux finds the device that the device file describes. /files/expected has a line for each file of sysfs: the logical
# unit's number or "-" for the host, a path and the value. A kernel without HPB lacks some of these files.

check probe wait_for 20 test -b /dev/sda
host=$(host)
# unit NUMBER: its folder.
unit() { echo "$host"/host*/target*/*:0:"$1"; }
is() { [ "$2" = "$3" ] || { echo "$1: $2, expected $3" && false; }; }
seen=0
lacking=0
while read -r lun path value; do
    folder=$host
    [ "$lun" = - ] || folder=$(unit "$lun")
    # The disk gets its number in the order of arrival.
    case $path in block/*) path=$(cd "$folder" && echo block/*/"${path#*/}") ;; esac
    if [ -e "$folder/$path" ]; then
        check "$lun/$path=$value" is "$path" "$(sed 's/ *$//' "$folder/$path")" "$value"
        seen=$((seen + 1))
    else
        lacking=$((lacking + 1))
    fi
done </files/expected
say "files=$seen lacking=$lacking"

# Only a unit whose HPB is PRESENT counts reads.
present() {
    dd if="/dev/$1" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
    [ $(($(cat "$2/hpb_stats/hit_cnt") + $(cat "$2/hpb_stats/miss_cnt"))) -gt 0 ]
}
# last_block DISK: is written and read back.
last_block() {
    at=$(($(cat "/sys/block/$1/size") / 8 - 1))
    head -c 4096 /dev/urandom >/tmp/last
    dd if=/tmp/last of="/dev/$1" bs=4k seek=$at oflag=direct && dd if="/dev/$1" bs=4k skip=$at iflag=direct | cmp - /tmp/last
}
while read -r lun path value; do
    [ "$path" = unit_descriptor/lu_enable ] || continue
    folder=$(unit "$lun")
    disk=$(basename "$folder"/block/*)
    check "read_$lun" dd if="/dev/$disk" of=/dev/null bs=1M count=1 iflag=direct
    check "last_block_$lun" last_block "$disk"
    if [ -d "$folder/hpb_stats" ] && [ "$value" = 0x02 ]; then
        check "hpb_present_$lun" wait_for 5 present "$disk" "$folder"
    fi
done </files/expected
quiet() { ! dmesg | grep -E 'I/O error|ufshcd .*(fail|error|unexpected|timeout|timed out|invalid)'; }
check no_errors quiet
