// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixed traces to measure the speed of readers with; the caller has the clock.

use super::{Format, Options, Reader, Request, TraceError};
use readpath_kit::Prng;
use std::io::{Cursor, Write};
use std::sync::Arc;

/// Formats that [`sample`] can make.
const FORMATS: [Format; 14] = [
    Format::Mobile,
    Format::MsrCambridge,
    Format::Alibaba,
    Format::Tencent,
    Format::Vscsi,
    Format::OracleGeneral,
    Format::Lcs,
    Format::PerfettoUfs,
    Format::PerfettoBlock,
    Format::Blkparse,
    Format::FtraceUfs,
    Format::FioV3,
    Format::Csv,
    Format::Blktrace,
];

/// Options that the sample of a format is read with: those that a user has to give.
pub fn options(format: Format) -> Options {
    let named = matches!(format, Format::Alibaba | Format::Tencent | Format::OracleGeneral);
    Options { format: named.then_some(format), object_bytes: format.has_objects().then_some(512), ..Options::default() }
}

/// About `bytes` bytes of a trace, the same every time; empty for formats without one.
pub fn sample(format: Format, bytes: usize) -> Vec<u8> {
    let mut p = Prng::stream(1, "trace bench", 0);
    let mut out = Vec::with_capacity(bytes + 512);
    let head: &[u8] = match format {
        Format::Mobile => b"proces,device,rw_flag,sector,size,timestamp\n",
        Format::FioV3 => b"fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n",
        Format::Csv => b"time_ns,op,offset_bytes,size_bytes,process,latency_ns\n",
        _ => b"",
    };
    out.extend_from_slice(head);
    if format == Format::Lcs {
        out.extend_from_slice(&lcs_header(bytes.saturating_sub(LCS_HEADER).div_ceil(28) as u64));
    }
    let mut us = 832_636_245_743;
    let mut row = 0u64;
    while out.len() < bytes && FORMATS.contains(&format) {
        us += p.below(900);
        row += 1;
        let (read, sector, pid) = (p.below(4) > 0, p.below(1 << 25) * 8, p.below(30_000));
        let sectors = 8 << p.below(6);
        let (s, f, tag) = (us / 1_000_000, us % 1_000_000, row % 32);
        let letter = if read { "R" } else { "W" };
        // Writing to a vector cannot fail.
        let _ = match format {
            Format::Mobile => writeln!(out, "kworker/u17:0-{pid},8388608,{letter},{sector},{sectors},{s}.{f:06}"),
            Format::MsrCambridge => {
                let word = if read { "Read" } else { "Write" };
                let time = 128_166_000_000_000_000 + us * 10;
                writeln!(out, "{time},usr,0,{word},{},{},{}", sector * 512, sectors * 512, p.below(90_000))
            }
            Format::Alibaba => writeln!(out, "419,{letter},{},{},{us}", sector * 512, sectors * 512),
            Format::Tencent => writeln!(out, "{s},{sector},{sectors},{},1283", u8::from(!read)),
            Format::Vscsi => {
                let code = if read { 0x28 } else { 0x2A };
                out.write_all(&numbers(&[
                    (row, 4),
                    (sectors * 512, 4),
                    (1, 4),
                    (code, 2),
                    (0x100, 2),
                    (sector, 8),
                    (us, 8),
                ]))
            }
            Format::OracleGeneral => out.write_all(&numbers(&[(s, 4), (sector, 8), (sectors * 512, 4), (row + 1, 8)])),
            Format::Lcs => {
                let op = if read { 12 } else { 13 };
                out.write_all(&numbers(&[(s, 4), (sector, 8), (sectors * 512, 4), (op, 1), (7, 3), (row + 1, 8)]))
            }
            Format::Blkparse => writeln!(
                out,
                "  8,0    {}  {row:>7} {s:>5}.{f:06}000 {pid:>5}  D {letter:>3} {sector} + {sectors} [kworker/u17:0]",
                p.below(8)
            ),
            Format::FtraceUfs => {
                let (code, name) = if read { (0x28, "READ_10") } else { (0x2A, "WRITE_10") };
                writeln!(
                    out,
                    " kworker/u17:0-{pid}   [00{}] d..1. {s}.{f:06}: ufshcd_command: send_req: 14700000.ufs: tag: \
                     {tag}, DB: 0x8000, size: {}, IS: 0, LBA: {}, opcode: 0x{code:x} ({name}), group_id: 0x0",
                    p.below(8),
                    sectors * 512,
                    sector / 8
                )
            }
            Format::FioV3 => {
                let word = if read { "read" } else { "write" };
                writeln!(out, "{us} /dev/sda {word} {} {}", sector * 512, sectors * 512)
            }
            Format::Csv => writeln!(out, "{},{letter},{},{},{pid},", us * 1000, sector * 512, sectors * 512),
            Format::PerfettoUfs | Format::PerfettoBlock => {
                let of_ufs = format == Format::PerfettoUfs;
                let bundles = |ns| (0..8).flat_map(move |cpu| bundle(of_ufs, cpu, ns, IN_BUNDLE));
                // The bundles of all processors for one stretch of time, each after the other.
                let all: Vec<u8> = bundles(us * 1000 + row * 1_000_000).collect();
                out.write_all(&all)
            }
            _ => out.write_all(&record(us, sector, sectors * 512, read, pid)),
        };
    }
    out
}

/// Requests in a bundle of Perfetto.
const IN_BUNDLE: u64 = 100;

/// A packet of Perfetto with the events of a processor from a time on: so many requests, and their completions.
pub fn bundle(of_ufs: bool, cpu: u64, from_ns: u64, requests: u64) -> Vec<u8> {
    let mut p = Prng::stream(from_ns, "trace bench", cpu);
    let mut events = field(1, cpu);
    for i in 0..requests {
        let (sector, sectors, read) = (p.below(1 << 25) * 8, 8 << p.below(6), p.below(4) > 0);
        let (sent, tag) = (from_ns + i * 8_000 + cpu * 1_000, i % 4 * 8 + cpu);
        for (time, is_issue) in [(sent, true), (sent + 900, false)] {
            let rwbs: &[u8] = if read { b"R" } else { b"WS" };
            let on_block = [field(1, 0x800), field(2, sector), field(3, sectors)];
            let (number, payload) = match (of_ufs, is_issue) {
                (false, true) => (
                    45,
                    [
                        &on_block.concat()[..],
                        &field(4, sectors * 512),
                        &message(5, rwbs),
                        &message(6, b"kworker/u17:0"),
                    ]
                    .concat(),
                ),
                (false, false) => (125, [&on_block.concat()[..], &field(4, 0), &message(5, rwbs)].concat()),
                (true, _) => {
                    let code = if read { 0x28 } else { 0x2A };
                    let list = [
                        (2, 1 << tag),
                        (3, 0),
                        (4, sector / 8),
                        (5, code),
                        (7, tag),
                        (8, sectors * 512),
                        (9, 0),
                        (10, u64::from(!is_issue)),
                    ];
                    let fields = list.map(|(number, value)| field(number, value)).concat();
                    (406, [message(1, b"1d84000.ufshc"), fields].concat())
                }
            };
            events.extend(message(2, &[field(1, time), field(2, p.below(30_000)), message(number, &payload)].concat()));
        }
    }
    message(1, &[field(3, 9999), message(1, &events)].concat())
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field(number: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(number) << 3, &mut out);
    varint(value, &mut out);
    out
}

/// A field of protobuf with bytes.
pub fn message(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(number) << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

const LCS_HEADER: usize = 8192;

/// The header of version 2 for `requests` requests.
fn lcs_header(requests: u64) -> Vec<u8> {
    let magic = 0x1234_5678_9ABC_DEF0;
    let mut header = numbers(&[(magic, 8), (2, 8), (1, 8), (requests, 8)]);
    header.resize(LCS_HEADER - 8, 0);
    header.extend(numbers(&[(magic, 8)]));
    header
}

/// Numbers with their sizes in bytes, concatenated.
fn numbers(list: &[(u64, usize)]) -> Vec<u8> {
    list.iter().flat_map(|&(value, bytes)| value.to_le_bytes().into_iter().take(bytes)).collect()
}

fn record(us: u64, sector: u64, bytes: u64, read: bool, pid: u64) -> [u8; 48] {
    let mut r = [0; 48];
    r[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    r[8..16].copy_from_slice(&(us * 1000).to_le_bytes());
    r[16..24].copy_from_slice(&sector.to_le_bytes());
    r[24..28].copy_from_slice(&(bytes as u32).to_le_bytes());
    let category: u32 = if read { 1 << 16 } else { 1 << 17 };
    r[28..32].copy_from_slice(&(category | 1 << 22 | 7).to_le_bytes());
    r[32..36].copy_from_slice(&(pid as u32).to_le_bytes());
    r[36..40].copy_from_slice(&(8u32 << 20).to_le_bytes());
    r
}

/// Reads a trace that lies in memory from end to end; how many requests it has.
pub fn drain(trace: &Arc<[u8]>, options: &Options) -> Result<u64, TraceError> {
    let mut reader = Reader::new("bench", Box::new(Cursor::new(Arc::clone(trace))), options)?;
    let mut batch = vec![Request::NONE; 1024];
    while reader.fill(&mut batch)? > 0 {}
    Ok(reader.summary().requests)
}
