# SPDX-License-Identifier: MIT OR Apache-2.0
# A trace of two volumes. Sourced after all.sh.
printf '%s,R,%s,4096,15778081440%s\n' 419 0 00100 420 0 00200 419 4096 00300 >volumes.csv
