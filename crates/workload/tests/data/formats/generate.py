#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the traces in this folder from one table of requests. README.md says with what."""

import contextlib
import os
import random
import struct
import tempfile
import zlib
from pathlib import Path

import zstandard
from libcachesim import libcachesim_python as lcs
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pf

HERE = Path(__file__).parent
HEADER = "time_ns,device,rwbs,sector,sectors,process,latency_ns"
START = 1_577_808_144_360_767_000


def table():
    """Requests in order of time: two devices, some at one time, some far away, some between blocks of 4 KiB."""
    draw = random.Random(20200101)
    time, rows = 0, []
    for i in range(52):
        time += draw.choice([0, 1_000, 37_000, 900_000, 12_345_000, 400_000_000]) if i else 0
        device = draw.choice([0, 0, 0, 1])
        rwbs = draw.choice(["R", "R", "R", "RA", "W", "W", "WS", "WFS", "D"])
        if i % 13 == 7:
            time, rwbs = time + 9_000_000, "FF"
        block = draw.choice([7, 1000, draw.randrange(1 << 20), draw.randrange(1 << 33)]) + i
        blocks = draw.choice([1, 1, 2, 8, 128])
        sector, sectors = block * 8, blocks * 8
        if i % 10 == 3 and rwbs != "D":
            sector, sectors = sector + 3, 1
        if rwbs == "FF":
            sector, sectors = 0, 0
        rows.append((time, device, rwbs, sector, sectors, 100 + draw.randrange(4), 50_000 + draw.randrange(4_000_000)))
    return rows


def moves(rows):
    """Reads and writes only."""
    return [row for row in rows if row[2][0] in "RW"]


def tables(rows):
    """Alibaba's and Tencent's."""
    with open(HERE / "alibaba.csv", "w") as out:
        for time, device, rwbs, sector, sectors, _, _ in moves(rows):
            out.write(f"{419 + device},{rwbs[0]},{sector * 512},{sectors * 512},{(START + time) // 1000}\n")
    with open(HERE / "tencent.csv", "w") as out:
        for time, device, rwbs, sector, sectors, _, _ in moves(rows):
            word = "RW".index(rwbs[0])
            out.write(f"{(START + time) // 10**9},{sector},{sectors},{word},{1283 + device}\n")


@contextlib.contextmanager
def silence():
    """libCacheSim logs to standard output past Python."""
    kept, null = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept[0], 1), os.dup2(kept[1], 2)


def object_reader(path):
    params = lcs.ReaderInitParam(has_header=True, has_header_set=True, delimiter=",", obj_id_is_num=True,
                                 obj_id_is_num_set=True)
    params.time_field, params.obj_id_field, params.obj_size_field = 1, 2, 3
    params.op_field, params.tenant_field = 4, 5
    return lcs.Reader(str(path), lcs.TraceType.CSV_TRACE, params)


def objects(rows):
    """oracleGeneral, and every version of lcs: by libCacheSim's converters. Objects are sectors."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "requests.csv"
        lines = ["time,object,size,op,tenant"]
        for time, device, rwbs, sector, sectors, _, _ in moves(rows):
            op = {"R": "read", "W": "write"}[rwbs[0]]
            lines.append(f"{time // 10**9},{sector},{sectors * 512},{op},{device}")
        source.write_text("\n".join(lines) + "\n")

        def keep(made, name):
            packed = zstandard.ZstdCompressor(level=19).compress(made.read_bytes())
            (HERE / f"{name}.zst").write_bytes(packed)

        made = Path(folder) / "made"
        lcs.convert_to_oracleGeneral(object_reader(source), str(made))
        keep(made, "requests.oracleGeneral")
        for version in range(1, 9):
            lcs.convert_to_lcs(object_reader(source), str(made), lcs_ver=version)
            keep(made, f"requests.v{version}.lcs")


def vscsi(rows):
    """Both versions, by the structures of libCacheSim's reader, which has to read them."""
    codes = {"R": (0x28, 0x88), "W": (0x2A, 0x8A), "F": (0x35, 0x91)}
    kept = [row for row in rows if row[2][0] in codes]
    for version in (1, 2):
        records, expected = [], []
        for i, (time, _, rwbs, sector, sectors, _, latency) in enumerate(kept):
            commands = [(codes[rwbs[0]][sector >= 1 << 32], sector, sectors * 512)]
            if i % 9 == 4:
                # TEST UNIT READY, INQUIRY: they move no data of the disk.
                commands += [(0x00, 0, 0), (0x12, 0, 36)]
            for code, lbn, length in commands:
                us, number = (START + time) // 1000, len(records)
                if version == 1:
                    records.append(struct.pack("<IIIHHQQ", number, length, 1, code, 0x0100, lbn, us))
                else:
                    records.append(
                        struct.pack("<HHIIIQQQ", code, 0x0200, number, length, 1, lbn, us, latency // 1000))
                expected.append((us // 10**6 & 0xFFFFFFFF, lbn, length))
        path = HERE / f"requests.v{version}.vscsi"
        path.write_bytes(b"".join(records))
        params = lcs.ReaderInitParam(ignore_size_zero_req=False)
        reader = lcs.Reader(str(path), lcs.TraceType.VSCSI_TRACE, params)
        request, seen = lcs.Request(), []
        for _ in records:
            reader.read_one_req(request)
            seen.append((request.clock_time, request.obj_id, request.obj_size))
        assert seen == expected, f"libCacheSim reads version {version} otherwise"


def makedev(major, minor):
    return ((major & 0xFFFFF000) << 32) | ((major & 0xFFF) << 8) | ((minor & 0xFFFFFF00) << 12) | (minor & 0xFF)


def events(rows, words):
    """Events of four processors in order of time, each with its processor."""
    found = []

    def event(time, cpu, process):
        e = pf.FtraceEvent(timestamp=START + time, pid=process)
        found.append((time, cpu, e))
        return e

    for i, (time, device, rwbs, sector, sectors, process, latency) in enumerate(rows):
        cpu, other, dev = i * 7 % 4, i * 5 % 4, makedev(8, 16 * device)
        event(time, cpu, process).sched_switch.next_comm = "kworker/u16:1"
        e = event(time, cpu, process).block_bio_queue
        e.dev, e.sector, e.nr_sector, e.rwbs, e.comm = dev, sector, sectors, rwbs, "app"
        e = event(time, cpu, process).block_rq_issue
        e.dev, e.sector, e.nr_sector, e.bytes, e.rwbs, e.comm, e.cmd = (
            dev, sector, sectors, sectors * 512, rwbs, "app", "")
        e = event(time + latency, other, 0).block_rq_complete
        e.dev, e.sector, e.nr_sector, e.errors, e.rwbs, e.cmd = dev, sector, sectors, 0, rwbs, ""
        if sector % 8:
            continue
        code = {"R": 0x28, "W": 0x2A, "D": 0x42, "F": 0x35}[rwbs[0]]
        for at, on, send in ((time + 1_000, cpu, True), (time + latency - 1_000, other, False)):
            e = event(at, on, process if send else 0).ufshcd_command
            e.dev_name, e.doorbell, e.intr, e.lba = "1d84000.ufshc", 1 << i % 32, 0, sector // 8
            e.opcode, e.tag, e.group_id = code, i % 32, 0
            e.transfer_len = sectors * 512 if rwbs[0] != "F" else -1
            if words:
                e.str = "send" if send else "complete"
            else:
                e.str_t = 0 if send else 1
    return sorted(found, key=lambda f: f[0])


def perfetto(rows):
    """As the tracing service writes it: other packets, and bundles of each processor in turn for each 500 ms."""
    for name, words, pack in (("plain", False, None), ("zlib", False, "zlib"), ("zstd", True, "zstd")):
        trace = pf.Trace()
        first = trace.packet.add(trusted_uid=9999, trusted_packet_sequence_id=1)
        first.clock_snapshot.clocks.add(clock_id=6, timestamp=START)
        trace.packet.add(trusted_uid=9999).trace_config.data_sources.add().config.name = "linux.ftrace"
        trace.packet.add(trusted_uid=9999).synchronization_marker = bytes(range(16))
        found = events(rows, words)
        period, at = 500_000_000, 0
        while found:
            at += period
            now, found = [f for f in found if f[0] < at], [f for f in found if f[0] >= at]
            for cpu in range(4):
                mine = [e for _, on, e in now if on == cpu]
                if mine:
                    packet = trace.packet.add(trusted_uid=9999, trusted_packet_sequence_id=2)
                    packet.ftrace_events.cpu = cpu
                    packet.ftrace_events.event.extend(mine)
        trace.packet.add(trusted_uid=9999).process_tree.processes.add(pid=100, cmdline=["app"])
        if pack:
            whole = list(trace.packet)
            trace = pf.Trace()
            for begin in range(0, len(whole), 5):
                inner = pf.Trace(packet=whole[begin:begin + 5]).SerializeToString()
                if pack == "zlib":
                    trace.packet.add().compressed_packets = zlib.compress(inner)
                else:
                    trace.packet.add().zstd_compressed_packets = zstandard.ZstdCompressor().compress(inner)
        (HERE / f"{name}.pftrace").write_bytes(trace.SerializeToString())


def main():
    rows = table()
    (HERE / "requests.csv").write_text("\n".join([HEADER] + [",".join(map(str, row)) for row in rows]) + "\n")
    tables(rows)
    with silence():
        objects(rows)
        vscsi(rows)
    perfetto(rows)


main()
