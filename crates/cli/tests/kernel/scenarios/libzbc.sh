# SPDX-License-Identifier: MIT OR Apache-2.0
# The suite of libzbc, which its checkout has brought to /libzbc: commands, sense data and states of zones, by /dev/sg.

has_zoned() { [ -n "$(zoned host-managed)" ]; }
check probe wait_for 20 has_zoned
sg=/dev/$(basename /sys/block/"$(zoned host-managed)"/device/scsi_generic/*)
# Its library is found where it was built, which is perhaps not here.
export LD_LIBRARY_PATH=/libzbc/.libs
cd /libzbc/test || exit
./zbc_test.sh -n -S "00 01 02" "$sg" >/tmp/output 2>&1
passed=0 not_applicable=0
# Every script has a log with its result, or has left none.
for script in scripts/0[0-2]*/*.sh; do
    section=${script#scripts/}
    section=${section%%_*}
    number=$(basename "$script" .sh)
    log=$(echo log/*/*/"$section/$number.log")
    result=$(sed -n 's/^TESTRESULT==//p' "$log" | tail -n 1)
    case $result in
    Passed*) passed=$((passed + 1)) ;;
    # All zones of the unit are sequential write required, of type 2. Its physical blocks are its logical blocks.
    "N/A No zone is of type 0x1 "* | "N/A No zone is of type 0x4 "* | "N/A No zone is of type 0x1|0x4 "* | \
        "N/A No available zone sequence of type 0x1 "* | "N/A physical_block_size=logical_block_size"*)
        not_applicable=$((not_applicable + 1))
        say "not applicable: $section.$number: ${result#N/A }"
        ;;
    *)
        say "FAIL $section.$number: ${result:-no result}"
        tail -n 40 "$log"
        ;;
    esac
done
[ $passed -gt 0 ] || head -n 20 /tmp/output
check any [ $passed -gt 0 ]
say "libzbc=$passed passed, $not_applicable not applicable"
