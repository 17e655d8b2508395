# SPDX-License-Identifier: MIT OR Apache-2.0
# The server is told to end while the guest reads: requests end with an error, and soon.

check probe wait_for 20 test -b /dev/sda
begin=$(cut -d . -f 1 /proc/uptime)
(sleep 1 && say ready) &
# Reads until one fails.
reads() { while dd if=/dev/sda of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null; do :; done; }
reads
ended=$(cut -d . -f 1 /proc/uptime)
say "requests ended $((ended - begin)) seconds after they began"
check soon test $((ended - begin)) -lt 25
check later_ones_fail_at_once sh -c '! dd if=/dev/sda of=/dev/null bs=4k count=1 skip=3000 iflag=direct'
