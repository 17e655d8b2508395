// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay of block traces: cases (a trace, what runs before it, what is on the device) times variants (device, host),
//! run side by side. Traces are loaded once and shared. It opens no file and knows nothing of their formats.

mod document;
mod preload;
mod question;

use crate::over_time::MOST_KEPT;
use crate::runs::{ExperimentError, Shared, watch};
use readpath_config::experiment::Variant;
use readpath_config::{ConfigFileError, DevicePreset, Event};
use readpath_device::Layout;
use readpath_host::HostConfig;
use readpath_kit::Ns;
use readpath_results::{Input, Note, NoteKind};
use readpath_run::{LATEST, Replayed, TapTo, Traces, Units, replay};
use readpath_workload::trace::Loaded;
use std::sync::Arc;

pub(crate) use document::timed;
pub use document::{ReplayTexts, document, fragment, run_figures};
pub use question::Replays;
pub use readpath_run::{Mode, ReplayPhase, ReplayRun};

/// How traces are replayed, the same for all runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayOptions {
    /// When requests are submitted, in every phase.
    pub mode: Mode,
    /// The order in which the blocks that hold data at the start were written.
    pub layout: Layout,
    /// Seed of that order, if it is random. Nothing else is drawn.
    pub seed: u64,
    /// Every request and reply is encoded to a UPIU and parsed again, which makes no difference to results.
    pub encoded: bool,
    /// Whether what happens over time is kept of each trace, if it is not of too many variants.
    pub over_time: bool,
}

/// The longest that the phases of a case may take by their times, so that the run behind them has room.
pub const LONGEST: Ns = Ns(LATEST.0 / 2);

/// A trace to be measured and what comes before it.
#[derive(Clone, Debug)]
pub struct ReplayCase {
    /// Name for tables.
    pub name: String,
    /// Run in order before the trace, each until all of its requests have ended; measured apart.
    pub before: Vec<Arc<Loaded>>,
    /// The trace.
    pub trace: Arc<Loaded>,
    /// The logical units that its blocks are spread over.
    pub units: Units,
    /// Blocks that are on the device at the start: first block and how many, in order.
    preload: Vec<(u32, u32)>,
    /// What the reader of the results has to know of these files.
    pub notes: Vec<Note>,
    /// The files.
    pub inputs: Vec<Input>,
}

impl ReplayCase {
    /// A case on unit 0 of a device, which has `device_blocks` blocks, for which all traces have been prepared.
    pub fn new(name: &str, before: Vec<Arc<Loaded>>, trace: Arc<Loaded>, device_blocks: u32) -> Self {
        ReplayCase::on(Units::first(), name, before, trace, device_blocks)
    }

    /// A case on `units`, which have `device_blocks` blocks in all.
    pub fn on(units: Units, name: &str, before: Vec<Arc<Loaded>>, trace: Arc<Loaded>, device_blocks: u32) -> Self {
        let phases: Vec<&Loaded> = before.iter().chain([&trace]).map(Arc::as_ref).collect();
        let preload = preload::of_phases(&phases, device_blocks);
        ReplayCase { name: name.to_owned(), before, trace, units, preload, notes: Vec::new(), inputs: Vec::new() }
    }

    /// Blocks that are read before any phase writes them, as ranges in order.
    pub fn preload(&self) -> &[(u32, u32)] {
        &self.preload
    }

    /// How many blocks that are.
    pub fn preload_blocks(&self) -> u64 {
        self.preload.iter().map(|r| u64::from(r.1)).sum()
    }

    /// The note that blocks are on the device at the start, if any are.
    pub fn preload_note(&self) -> Option<Note> {
        (self.preload_blocks() > 0).then(|| {
            Note::remark(format!(
                "{}: {} blocks of 4 KiB in {} ranges are read before anything writes them, and so were PRELOADED: they \
                 are on the device at the start",
                self.name,
                self.preload_blocks(),
                self.preload.len()
            ))
        })
    }

    /// Why its times say nothing of latencies, if they do not.
    pub(crate) fn coarse_times(&self) -> Option<&Note> {
        self.notes.iter().find(|note| note.kind == NoteKind::CoarseTimes)
    }

    /// The traces in order, with names for tables.
    pub fn phases(&self) -> impl Iterator<Item = (String, &Loaded)> {
        let one = self.before.len() == 1;
        let name = move |i: usize| if one { "precondition".into() } else { format!("precondition {}", i + 1) };
        let before = self.before.iter().enumerate().map(move |(i, t)| (name(i), t.as_ref()));
        before.chain([("replay".to_owned(), self.trace.as_ref())])
    }

    /// Blocks of a device of `device_blocks` blocks that any phase has to do with, as ranges in order.
    pub(crate) fn touched(&self, device_blocks: u32) -> Vec<(u32, u32)> {
        preload::touched(self.phases().map(|(_, trace)| trace), device_blocks)
    }

    /// What a device of `preset` has from the start: ranges of a first block and how many, ascending.
    pub(crate) fn preloaded(&self, preset: &DevicePreset) -> Vec<(u32, u32)> {
        preload::joined(&self.preload, preset.device.geometry.slices_per_unit())
    }

    /// The traces, replayed on a device of `preset` whose preloaded blocks were written in this order.
    pub(crate) fn traces(&self, mode: Mode, preset: &DevicePreset, layout: Layout, seed: u64) -> Traces<'_> {
        let preload =
            self.preloaded(preset).into_iter().flat_map(|(first, blocks)| self.units.split(first, blocks)).collect();
        Traces { phases: self.phases().collect(), units: &self.units, mode, preload, layout, seed }
    }

    /// Requests of all phases, as the device's host sees them.
    pub fn ios(&self) -> u64 {
        self.phases().map(|(_, trace)| trace.ios.iter().filter(|io| !io.continued()).count() as u64).sum()
    }

    /// Time of all phases by their traces.
    pub fn span(&self) -> Ns {
        Ns(self.phases().fold(0, |sum: u64, (_, trace)| sum.saturating_add(trace.prepared.end.0)))
    }
}

/// Device and host under which every case is run.
#[derive(Clone, Debug)]
pub struct ReplayVariant {
    /// Name for tables.
    pub name: String,
    /// Device, delays and scheduler.
    pub preset: DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// Limits of host memory for HPB in bytes, with their times from the start of the trace on, in order. Only for
    /// policies of this host's own.
    pub limits: Vec<(Ns, u64)>,
    /// What happens in the middle of the trace, in order of time, counted from its start.
    pub events: Vec<Event>,
}

impl ReplayVariant {
    /// The device and host of `variant`, made of the device `base`.
    ///
    /// # Errors
    /// Names the key in its `set` that is at fault.
    pub fn new(variant: &Variant, base: &DevicePreset) -> Result<Self, ConfigFileError> {
        let preset = variant.device(base)?;
        Ok(ReplayVariant {
            name: variant.name.clone(),
            host: variant.host(&preset),
            preset,
            limits: Vec::new(),
            events: Vec::new(),
        })
    }
}

/// A replay to be made.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The trace and those before it.
    pub case: Arc<ReplayCase>,
    /// Device and host.
    pub variant: Arc<ReplayVariant>,
    /// How it is replayed.
    pub options: ReplayOptions,
}

impl Replay {
    /// Replays of every case on every variant, case by case. Too many variants are not kept over time.
    pub fn all(cases: &[Arc<ReplayCase>], variants: &[Arc<ReplayVariant>], options: &ReplayOptions) -> Vec<Replay> {
        let options = ReplayOptions { over_time: options.over_time && variants.len() <= MOST_KEPT, ..*options };
        let of_case = |case: &Arc<ReplayCase>| {
            let case = case.clone();
            variants.iter().map(move |variant| Replay { case: case.clone(), variant: variant.clone(), options })
        };
        cases.iter().flat_map(of_case).collect()
    }

    /// Makes the run, `place`th of those that are shown while they go on. The tap sees every stage, and comes back in
    /// any case but that of a device which cannot be made.
    ///
    /// # Errors
    /// When the device cannot be made, or the run fails or is stopped.
    pub fn make<'t>(
        &self,
        place: usize,
        tap: Option<TapTo<'t>>,
        shared: &Shared,
    ) -> (Result<ReplayRun, ExperimentError>, Option<TapTo<'t>>) {
        let Replay { case, variant, options } = self;
        let on = Replayed {
            preset: &variant.preset,
            host: variant.host,
            encoded: options.encoded,
            traces: case.traces(options.mode, &variant.preset, options.layout, options.seed),
            limits: &variant.limits,
            events: &variant.events,
            over_time: options.over_time,
        };
        let (run, tap) = replay(on, tap, &mut watch(shared, place));
        let failed = |error| ExperimentError::Run { case: case.name.clone(), variant: variant.name.clone(), error };
        (run.map_err(failed), tap)
    }
}
