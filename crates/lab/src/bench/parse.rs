// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benches of the readers of block traces. The traces are made in memory.

use readpath_workload::trace::bench::{drain, options, sample};
use readpath_workload::trace::{Format, TraceError};
use std::sync::Arc;

/// A trace to be read.
#[derive(Clone, Copy, Debug)]
pub struct ParseCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    format: Format,
}

/// All benches of parsers.
pub const PARSES: &[ParseCase] = &[
    ParseCase { name: "parse-msr", what: "trace of MSR Cambridge (CSV)", format: Format::MsrCambridge },
    ParseCase { name: "parse-mobile", what: "trace of a telephone (CSV)", format: Format::Mobile },
    ParseCase { name: "parse-alibaba", what: "trace of Alibaba's volumes (CSV)", format: Format::Alibaba },
    ParseCase { name: "parse-tencent", what: "trace of Tencent's volumes (CSV)", format: Format::Tencent },
    ParseCase { name: "parse-vscsi", what: "binary records of vscsiStats", format: Format::Vscsi },
    ParseCase { name: "parse-oracle", what: "libCacheSim's oracleGeneral", format: Format::OracleGeneral },
    ParseCase { name: "parse-lcs", what: "libCacheSim's lcs, version 2", format: Format::Lcs },
    ParseCase { name: "parse-pftrace-ufs", what: "Perfetto's ufshcd_command", format: Format::PerfettoUfs },
    ParseCase { name: "parse-pftrace-blk", what: "Perfetto's block_rq_issue", format: Format::PerfettoBlock },
    ParseCase { name: "parse-blkparse", what: "text of blkparse", format: Format::Blkparse },
    ParseCase { name: "parse-blktrace", what: "binary records of blktrace", format: Format::Blktrace },
    ParseCase { name: "parse-ftrace-ufs", what: "ftrace of ufshcd_command", format: Format::FtraceUfs },
    ParseCase { name: "parse-fio3", what: "fio's I/O log, version 3", format: Format::FioV3 },
    ParseCase { name: "parse-csv", what: "our own table (CSV)", format: Format::Csv },
];

/// Reads about `bytes` bytes of a trace from end to end; its bytes, its requests, and the seconds that `clock` counted.
/// Making the trace is not counted.
pub fn parse(case: &ParseCase, bytes: usize, clock: impl Fn() -> f64) -> Result<(u64, u64, f64), TraceError> {
    let trace: Arc<[u8]> = sample(case.format, bytes).into();
    let begin = clock();
    let requests = drain(&trace, &options(case.format))?;
    Ok((trace.len() as u64, requests, clock() - begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_read_as_what_it_is() {
        for case in PARSES {
            let (bytes, requests, _) = parse(case, 20_000, || 0.0).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            assert!(bytes >= 20_000 && (100..1000).contains(&requests), "{}: {requests} of {bytes}", case.name);
        }
    }
}
