# SPDX-License-Identifier: MIT OR Apache-2.0
# A damaged image: one bit in each of two nodes. Sourced after all.sh.
xz -dc "$ROOT/crates/nand/ubi/tests/data/fx.mtd.xz" >bad.mtd
printf '\263' | dd of=bad.mtd bs=1 seek=2550368 conv=notrunc status=none
printf '\001' | dd of=bad.mtd bs=1 seek=3003605 conv=notrunc status=none
