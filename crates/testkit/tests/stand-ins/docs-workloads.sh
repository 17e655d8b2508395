# SPDX-License-Identifier: MIT OR Apache-2.0
# Jobs that are refused. Sourced after all.sh.
printf '[a]\nrw=read\nsize=1m\niodpeth=4\n' >bad.fio
printf '[a]\nrw=read\nsize=1m\npre_read=1\n' >bad2.fio
printf '[a]\nrw=read\nsize=100g\n' >bad3.fio
printf '[a]\nrw=read\nsize=1m\nramp_time=10s\n' >bad4.fio
printf '[a]\nrw=read\nfilename=/dev/sdc\nsize=1m\n' >bad5.fio
