#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The marks of scenarios/compare.sh as a table, in the folder that has them. A cell is what a guest has seen; "-" if its
# kernel had no way to ask.
set -eu
# cell DEVICE MARK [STAGE]
cell() { value=$(sed -n "s/^@@ $2=//p" "compare-$1-${3:-all}.marks" 2>/dev/null | tail -n 1) && echo "${value:--}"; }
# row TITLE MARK: of both devices, with both kernels.
row() {
    echo "| $1 | $(cell qemu-a "$2") | $(cell readpath-a "$2") | $(cell qemu-b "$2") | $(cell readpath-b "$2") |"
}
kept() {
    written=$(cell "$1" attribute_written) set=$(cell "$1" attribute) now=$(cell "$1" attribute_after_restart attribute)
    case $written:$now in
    -:*) echo - ;;
    yes:"$set") echo "yes ($now)" ;;
    yes:*) echo "no ($set, then $now)" ;;
    *) echo "not writable" ;;
    esac
}
tasks() {
    list=
    for task in query_task abort_task lu_reset; do list="$list $(cell "$1" "task_$task")"; done
    echo "$list" | sed 's/^ //; s/ /, /g'
}
# pair DEVICE [STAGE]
pair() { echo "$(cell "$1" read_4k_us "${2:-all}"), $(cell "$1" read_256k_us "${2:-all}")"; }
cat <<END
| Linux | $(cell qemu-a kernel) | $(cell readpath-a kernel) | $(cell qemu-b kernel) | $(cell readpath-b kernel) |
|---|---|---|---|---|
| device | QEMU's ufs | Readpath | QEMU's ufs | Readpath |
END
row "RPMB unit is there" rpmb_unit
row "RPMB takes SECURITY PROTOCOL OUT and IN" rpmb_commands
row "LU reset by sg_reset, without a host reset" lu_reset
echo "| query task, abort task, LU reset: service responses (0 and 8 are success)" \
    "| $(tasks qemu-a) | $(tasks readpath-a) | $(tasks qemu-b) | $(tasks readpath-b) |"
row "HPB" hpb
row "WriteBooster" write_booster
row "UNMAP" discard
row "REPORT SUPPORTED OPERATION CODES" command_report_supported_commands
row "runtime suspend" runtime_suspend
echo "| an attribute outlives the device's program | $(kept qemu-a) | $(kept readpath-a)" \
    "| $(kept qemu-b) | $(kept readpath-b) |"
echo "| random reads of 4 KiB and 256 KiB, us in the guest (Readpath without \`--instant\`) | $(pair qemu-a) | $(pair readpath-a)" \
    "| $(pair qemu-b) | $(pair readpath-b) |"
echo "| the same with a device 20 times as slow (\`--scale 20\`) | no such option | $(pair readpath-a timing)" \
    "| no such option | not run |"
