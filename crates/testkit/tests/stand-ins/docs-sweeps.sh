# SPDX-License-Identifier: MIT OR Apache-2.0
# What the other machines make. Sourced after all.sh.
mkdir -p tmp
for part in 1 2; do readpath sweep study.toml --shard $part/2 --out tmp/part0$part; done
