# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced after all.sh.
readpath image create dev.img
