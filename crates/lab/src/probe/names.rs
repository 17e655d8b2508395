// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of jobs, which describe their measurements, and of the measurements. This module knows no plans or results.

use crate::fit::{Access, LongWrite, Setting, Stretch};
use thiserror::Error;

/// Blocks of 4 KiB of a MiB.
pub(super) const MIB: u32 = 256;

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct PlanError(pub(super) String);

/// The name of a job: `randread-256m-q1-4k`, `randwrite-256m-q1-4k-8192`, `write-4096m-q8-512k-3of16`,
/// `fill-4096m-q8-512k-3of16`, `pause-4096m-q8-512k-30s-3of16`.
pub(super) fn of(setting: &Setting) -> String {
    let (range, depth) = (setting.range_blocks / MIB, setting.queue_depth);
    let kib = u32::from(setting.block_count) * 4;
    let rest = format!("{range}m-q{depth}-{kib}k");
    match setting.access {
        Access::RandomRead => format!("randread-{rest}"),
        Access::RandomWrites(n) => format!("randwrite-{rest}-{n}"),
        Access::SequentialWrite(Stretch { of, parts, part, .. }) => {
            let (what, pause) = match of {
                LongWrite::Again => ("write", String::new()),
                LongWrite::Fill => ("fill", String::new()),
                LongWrite::Pause(s) => ("pause", format!("-{s}s")),
            };
            format!("{what}-{rest}{pause}-{}of{parts}", part + 1)
        }
    }
}

/// Requests of a job of random writes at most; plans have 8,192. All of them are simulated, many times.
const MOST_WRITES: u32 = 1 << 16;

/// What the job of a name measures; nothing if [`of`] does not make that name.
pub(super) fn setting(name: &str) -> Option<Setting> {
    let mut fields = name.split('-');
    let access = fields.next()?;
    let range: u32 = fields.next()?.strip_suffix('m')?.parse().ok()?;
    let queue_depth: u32 = fields.next()?.strip_prefix('q')?.parse().ok()?;
    let kib: u32 = fields.next()?.strip_suffix('k')?.parse().ok()?;
    let last = fields.next();
    let access = match (access, last) {
        ("randread", None) => Access::RandomRead,
        ("randwrite", Some(n)) => Access::RandomWrites(n.parse().ok().filter(|n| (1..=MOST_WRITES).contains(n))?),
        ("write" | "fill" | "pause", Some(which)) => {
            let (of, which) = match access {
                "write" => (LongWrite::Again, which),
                "fill" => (LongWrite::Fill, which),
                _ => (LongWrite::Pause(which.strip_suffix('s')?.parse().ok().filter(|s| *s > 0)?), fields.next()?),
            };
            let (part, parts) = which.split_once("of")?;
            let (part, parts): (u16, u16) = (part.parse().ok()?, parts.parse().ok()?);
            Access::SequentialWrite(Stretch::part(of, part.checked_sub(1).filter(|p| *p < parts)?, parts))
        }
        _ => return None,
    };
    let range_blocks = range.checked_mul(MIB)?;
    let block_count = u16::try_from(kib / 4).ok().filter(|b| *b > 0)?;
    let setting = Setting { access, range_blocks, queue_depth, hpb: false, block_count };
    let pieces = match access {
        Access::SequentialWrite(Stretch { parts, .. }) => u32::from(parts) * u32::from(block_count),
        Access::RandomRead | Access::RandomWrites(_) => u32::from(block_count),
    };
    // Every part has whole requests, at least one.
    let possible = queue_depth > 0 && range_blocks >= pieces && range_blocks.is_multiple_of(pieces);
    (possible && of(&setting) == name).then_some(setting)
}

/// Refuses names that a job file or a shell would interpret.
pub(super) fn check_target(target: &str) -> Result<(), PlanError> {
    let strange = |c: char| c.is_control() || c.is_whitespace() || "'\"\\:;#$`".contains(c);
    match target.chars().find(|c| strange(*c)) {
        Some(c) => Err(PlanError(format!(
            "{target:?}: has {c:?}, which job files or shells understand otherwise; give the file another name"
        ))),
        // The script and the jobs may be run from anywhere.
        None if !target.starts_with('/') => {
            Err(PlanError(format!("{target:?}: is no full path; write it from the root, such as /data/probe.bin")))
        }
        None => Ok(()),
    }
}
