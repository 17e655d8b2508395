# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced after all.sh.
printf '[age]\nrw=randwrite\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\n' >age.fio
