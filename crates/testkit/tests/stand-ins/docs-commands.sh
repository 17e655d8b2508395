# SPDX-License-Identifier: MIT OR Apache-2.0
# A device file with a mistake. Sourced after all.sh.
sed '0,/^page_bytes = 16384/s//page_bytes = 6000/' presets/ufs21-64g.toml >my.toml
