# SPDX-License-Identifier: MIT OR Apache-2.0
# A device file with a mistake. Sourced after all.sh.
sed '39s/16384/6000/' presets/ufs21-64g.toml >my.toml
