// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[trace]` of a study: a block trace and the options of its replay. It knows no trace format.

use crate::error::Result;
use crate::experiment::{LAYOUTS, Layout};
use crate::keys::{Keys, filled, flag, keys, ms, number, whole, words};
use readpath_kit::Ns;

/// Submission times of the requests of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TraceMode {
    /// At their recorded times.
    Timed,
    /// In order, as soon as the queue depth allows.
    Closed,
}

/// A trace and the options of its replay.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceKeys {
    /// Its path in the file.
    pub file: Option<String>,
    /// When requests are submitted.
    pub mode: TraceMode,
    /// Requests in flight with [`TraceMode::Closed`].
    pub iodepth: Option<u32>,
    /// Speed-up relative to the recording.
    pub speed: f64,
    /// Longer pauses are cut to this.
    pub max_idle: Option<Ns>,
    /// Folds addresses beyond the device onto it.
    pub fold: bool,
    /// Spreads requests with equal times over the resolution of the trace's clock.
    pub spread_ties: bool,
    /// Order in which the blocks present at the start were written.
    pub preload: Layout,
}

/// `[trace]`.
pub(super) fn trace(k: &mut Keys<TraceKeys>) -> Result<TraceKeys> {
    let trace = keys!(k => TraceKeys {
        /// path of the trace, relative to this file; its format is recognised
        file: filled().optional();
        /// `timed`: requests come at their times; `closed`: in order, as fast as `iodepth` allows
        mode: words([("timed", TraceMode::Timed), ("closed", TraceMode::Closed)]).or(TraceMode::Timed);
        /// for `closed`: requests in flight, by default 32
        iodepth: whole(1..=65_535).optional();
        /// for `timed`: how many times as fast as recorded
        speed: number().or(1.0);
        /// for `timed`: longer pauses are cut to this
        max_idle = "max_idle_ms": ms(0..=Ns::from_secs(1_000_000).0).optional();
        /// fold addresses beyond the device onto it, instead of refusing them
        fold: flag().or(false);
        /// for `timed`: spread requests with the same time over the resolution of the trace's clock
        spread_ties: flag().or(false);
        /// in which order the blocks that are there at the start were written
        preload: words(LAYOUTS).or(Layout::Sequential);
    });
    let closed = trace.mode == TraceMode::Closed;
    let message = "belongs to mode = \"closed\"; with timed, requests come at their times";
    k.refuse(!closed && trace.iodepth.is_some(), "iodepth", message)?;
    for key in ["speed", "max_idle_ms", "spread_ties"] {
        k.refuse(closed && k.has(key), key, "changes times, which do not count with mode = \"closed\"")?;
    }
    let possible = trace.speed > 0.0 && trace.speed <= 1e6;
    k.refuse(!possible, "speed", format!("is {}; it must be above 0 and at most 1000000", trace.speed))?;
    Ok(trace)
}
