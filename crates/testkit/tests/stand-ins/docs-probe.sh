# SPDX-License-Identifier: MIT OR Apache-2.0
# Results of fio that are refused, made from good ones. Sourced after all.sh.
booster=docs/examples/write_booster.toml
readpath device probe plan --target /dev/sda --size 8G --destructive /dev/sda --device $booster --out made
for name in reads-1 writes-1; do
    readpath fio made/$name.fio --hpb off --device $booster --output-format json+ --output $name.json
done
sed '0,/"error" : 0/s//"error" : 28/' writes-1.json >failed.json
sed 's/fio-3[^"]*/fio-2.21/' reads-1.json >old.json
sed 's/"bins"/"no bins"/' reads-1.json >plain.json
{ echo 'fio: refusing extend of file due to read-only' && cat reads-1.json; } >short.json
