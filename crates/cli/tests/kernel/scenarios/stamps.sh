# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks what a killed guest has left (stamps from OLD to FLUSHED), then writes from NEW on until it is killed as well.

check probe wait_for 20 test -b /dev/sda
if [ -n "${OLD:-}" ]; then
    check "stamps_from_${OLD}_to_$FLUSHED" stamps check /dev/sda "$OLD" "$FLUSHED"
fi
say checked
[ -z "${NEW:-}" ] || stamps write /dev/sda "$NEW"
