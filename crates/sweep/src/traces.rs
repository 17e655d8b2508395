// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that points replay: each is read once for a size of device and a way to replay it, and shared.

use crate::plan::Plan;
use readpath_config::study::{TraceKeys, TraceMode};
use readpath_lab::replay::{LONGEST, Mode, ReplayCase};
use readpath_workload::trace::{Fit, Loaded, Options, Prepare, Reader, Speed};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Requests of a trace to the device at most; they take 16 bytes each.
const MAX_IOS: usize = 1 << 28;

type Slot = Arc<OnceLock<Result<Arc<ReplayCase>, String>>>;

/// Traces kept in memory at most.
const KEPT: usize = 8;

/// Traces in memory, the most recently used last.
#[derive(Default)]
pub(crate) struct Traces(Mutex<Vec<(String, Slot)>>);

/// When the requests of a trace are submitted.
pub(crate) fn mode(keys: &TraceKeys) -> Mode {
    match keys.mode {
        TraceMode::Timed => Mode::Timed,
        TraceMode::Closed => Mode::Closed { iodepth: keys.iodepth.unwrap_or(32) },
    }
}

impl Traces {
    /// The trace on unit 0 of a device, which has so many blocks. Reading ends early if `stop` is set.
    pub(crate) fn get(
        &self,
        plan: &Plan,
        keys: &TraceKeys,
        blocks: u32,
        stop: &Arc<AtomicBool>,
    ) -> Result<Arc<ReplayCase>, String> {
        let name = format!(
            "{:?} {blocks} {:?} {} {:?} {} {}",
            keys.file, keys.mode, keys.speed, keys.max_idle, keys.fold, keys.spread_ties
        );
        let slot = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = kept.iter().position(|(other, _)| *other == name).map(|at| kept.remove(at).1);
            let slot = found.unwrap_or_default();
            kept.push((name, slot.clone()));
            if kept.len() > KEPT {
                kept.remove(0);
            }
            slot
        };
        // Other threads that need the same trace wait here.
        slot.get_or_init(|| load(plan, keys, blocks, stop).map(Arc::new)).clone()
    }
}

fn load(plan: &Plan, keys: &TraceKeys, blocks: u32, stop: &Arc<AtomicBool>) -> Result<ReplayCase, String> {
    let path = keys.file.clone().unwrap_or_default();
    let file = File::open(plan.place(&path)).map_err(|e| format!("{path}: cannot be read: {e}"))?;
    let prepare = Prepare {
        fit: if keys.fold { Fit::Fold } else { Fit::Refuse },
        max_idle: keys.max_idle,
        speed: Speed::parse(&keys.speed.to_string()).map_err(|e| format!("trace.speed: {e}"))?,
        max_blocks: u16::MAX,
        ..Prepare::new(blocks)
    };
    let options = Options { within: prepare.within(), ..Options::default() };
    let mut reader = Reader::new(&path, Box::new(file), &options).map_err(|e| e.to_string())?;
    reader.stop_when(stop.clone());
    let mut replay = prepare.requests(&path, reader).map_err(|e| e.to_string())?;
    let mut loaded = Loaded::load_if(&mut replay, MAX_IOS, |_| Ok(())).map_err(|e| e.to_string())?;
    if loaded.ios.is_empty() {
        return Err(format!("{path}: no request is left to replay"));
    }
    if keys.spread_ties {
        loaded.spread_ties(replay.into_inner().summary().stamps.spread(), prepare.speed);
    }
    let name = Path::new(&path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
    let case = ReplayCase::new(&name, Vec::new(), Arc::new(loaded), blocks);
    if keys.mode == TraceMode::Timed && case.span() > LONGEST {
        let (span, message) = (case.span(), "cut pauses with trace.max_idle_ms, or make it faster with trace.speed");
        return Err(format!("{path}: takes {span} of virtual time, more than {LONGEST}; {message}"));
    }
    Ok(case)
}
