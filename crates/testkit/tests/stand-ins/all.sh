# SPDX-License-Identifier: MIT OR Apache-2.0
# Small stand-ins for a reader's own files, beside what `readpath examples` writes. Sourced in the folder where the
# commands of a page run.
cp docs/examples/study.toml study.toml
mkdir -p tmp && truncate -s 9G tmp/disk.img

mkdir -p home/.local/share/bash-completion/completions home/.zfunc home/.config/fish/completions home/.config/elvish

# A device of two logical units, 16 and 48 GiB.
unit='[[lu]]\ncapacity_gib = %s\nhpb = true\nmax_active_regions = 900\npinned_start = 0\npinned_regions = 0\n'
awk -v unit="$unit" '/^\[\[lu\]\]/ { printf unit unit "\n", 16, 48; skip = 1 } /^\[host\]/ { skip = 0 } !skip' \
    presets/ufs21-64g.toml >two.toml

# A program of others: what it prints.
cat >bin/blkparse <<'PROGRAM'
#!/bin/sh
echo '  8,0    0        1     0.000000000   811  Q   R 1000 + 8 [app]'
echo '  8,0    0        2     0.000100000   811  C   R 1000 + 8 [0]'
PROGRAM
chmod +x bin/blkparse
