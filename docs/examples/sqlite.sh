# SPDX-License-Identifier: MIT OR Apache-2.0
# What does SQLite lose in a power cut, on a device that keeps its word and on one that lies about flushes?
#   readpath serve dev.img --run 'sh sqlite.sh'
# No root. Debian's packages: libnbd-bin nbdfuse fuse3 sqlite3. It overwrites the beginning of the device.
set -eu
for program in nbdcopy nbdfuse fusermount3 sqlite3; do
    command -v $program >/dev/null || { echo "sqlite.sh: there is no $program" >&2; exit 127; }
done
at=$(mktemp -d)
disk=$at/disk   # the device as a file; SQLite's journal is beside it, not on the device
trap 'fusermount3 -u "$disk" 2>/dev/null || true; rm -rf "$at"' EXIT

attach() {
    rm -f "$at/ready"; touch "$disk"
    nbdfuse -P "$at/ready" "$disk" "$uri" &
    until [ -s "$at/ready" ]; do kill -0 $! && sleep 0.1; done
}

# Commits rows $2 to $3, cuts the power, and says how many are there.
round() {
    attach
    seq -f 'insert into t values (%g);' "$2" "$3" | sqlite3 "$disk"
    "$readpath" ctl "$control" cut >/dev/null
    fusermount3 -u "$disk"; attach   # nothing may come from the page cache
    kept=$(sqlite3 "$disk" "select count(*) from t where n between $2 and $3" 2>&1) || true
    whole=$(sqlite3 "$disk" 'pragma integrity_check' 2>&1 | head -n 1) || true
    echo "$1: of $(($3 - $2 + 1)) acknowledged commits $kept are there after a power cut; integrity_check: $whole"
    fusermount3 -u "$disk"; wait
}

sqlite3 "$at/new" 'create table t(n integer primary key)'
nbdcopy "$at/new" "$uri"
round 'Honest device' 1 100
"$readpath" ctl "$control" lie on >/dev/null
round 'Lying device' 101 200
