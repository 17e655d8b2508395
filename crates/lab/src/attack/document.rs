// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attacks as rows of a result document: each is a case, each protection a variant.

use super::{Attack, Means, Tally, attack};
use crate::runs::{ExperimentError, Shared};
use readpath_config::DevicePreset;
use readpath_device::{DeviceConfig, DeviceStats, EntryConfig, Protection};
use readpath_results::{Document, Error, Metric, Note, NoteKind, Origin, metric};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Forged entries that are tried against each protection.
pub const FORGERIES: u64 = 400_000;

const PROTECTIONS: usize = 6;

/// How entries are sent, and what that adds to the name of a case.
const MEANS: [(Means, &str); 2] = [(Means::OneEntry, ""), (Means::PreRequest, " by lists")];

/// Protections that are attacked, by what tables call them.
fn attacked() -> [(&'static str, EntryConfig); PROTECTIONS] {
    let tag = |tag_bits| EntryConfig { tag_bits, tell_foreign: true, ..EntryConfig::DEFAULT };
    let other = |protection| EntryConfig { protection, ..EntryConfig::DEFAULT };
    [
        ("none", other(Protection::None)),
        ("tag of 8 bits", tag(8)),
        ("tag of 12 bits", tag(12)),
        ("tag of 16 bits", tag(16)),
        ("tag of 32 bits", tag(32)),
        ("encrypted", other(Protection::Encrypted)),
    ]
}

/// An attack on a protection.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Case.
    pub case: String,
    /// Variant: the protection.
    pub variant: &'static str,
    kind: Attack,
    means: Means,
    entries: EntryConfig,
    times: Arc<DeviceConfig>,
    forgeries: u64,
    seed: u64,
}

impl Attempt {
    /// Every attack on every protection, on a small device with the times of `times`. Who forges entries sends so many.
    pub fn all(times: &DeviceConfig, forgeries: u64, seed: u64) -> Vec<Attempt> {
        let times = Arc::new(times.clone());
        let mut all = Vec::new();
        for kind in Attack::ALL {
            for (means, suffix) in MEANS {
                for (variant, entries) in attacked() {
                    let case = format!("attack: {}{suffix}", kind.name());
                    all.push(Attempt { case, variant, kind, means, entries, times: times.clone(), forgeries, seed });
                }
            }
        }
        all
    }

    /// Entries that it sends, roughly.
    pub(crate) fn expected(&self) -> u64 {
        if self.kind == Attack::Forge { self.forgeries } else { 0 }
    }

    /// Makes the attack.
    ///
    /// # Errors
    /// When the small device cannot exist with the times that were asked for, or when the attack is stopped.
    pub(crate) fn make(&self, shared: &Shared) -> Result<Tally, ExperimentError> {
        if shared.stop.load(Ordering::Relaxed) {
            return Err(ExperimentError::interrupted(&self.case, self.variant));
        }
        let tally = attack(self.kind, &self.times, self.entries, self.means, self.forgeries, self.seed)?;
        shared.ios.fetch_add(tally.tries, Ordering::Relaxed);
        Ok(tally)
    }
}

/// The document of all attacks.
///
/// # Errors
/// A figure that is not finite.
pub(crate) fn document<'a>(attempts: impl Iterator<Item = &'a Attempt>, tallies: &[&Tally]) -> Result<Document, Error> {
    let mut doc = Document::new("attacks", "Attacks on HPB entries");
    let mut withstood: [Vec<String>; PROTECTIONS] = Default::default();
    let protections = attacked();
    for (attempt, tally) in attempts.zip(tallies) {
        let Attempt { case, variant, kind, means, entries, .. } = attempt;
        doc.simulated_ios += tally.tries;
        rows(&mut doc, case, variant, tally)?;
        if *kind == Attack::Forge && entries.protection == Protection::Mac {
            let expected = 100.0 / (1u64 << entries.tag_bits) as f64;
            doc.row(case, *variant, metric::BELIEVED_EXPECTED, expected, Origin::Predicted)?;
        }
        if tally.leaked == 0 {
            let suffix = MEANS.iter().find(|(other, _)| other == means).map_or("", |(_, suffix)| suffix);
            let withstood = protections.iter().zip(&mut withstood).find(|((name, _), _)| name == variant);
            withstood.into_iter().for_each(|(_, list)| list.push(format!("{}{suffix}", kind.name())));
        }
    }
    for ((name, _), withstood) in protections.into_iter().zip(withstood) {
        let came = match withstood.len() {
            0 => "every kind of attack returned data that a READ would not have".to_owned(),
            n if n == Attack::ALL.len() * MEANS.len() => {
                "no attack returned anything that a READ would not have".to_owned()
            }
            _ => format!("withstood {}; the others got through", withstood.join(", ")),
        };
        doc.notes.push(Note::new(NoteKind::Attack, format!("{name}: {came}")).of_variant(name));
    }
    Ok(doc)
}

fn rows(doc: &mut Document, case: &str, variant: &str, tally: &Tally) -> Result<(), Error> {
    let tried = [(metric::TRIES, tally.tries), (metric::BELIEVED, tally.believed), (metric::LEAKED, tally.leaked)];
    let counts = tried.into_iter().chain(verdicts(&tally.device)).map(|(metric, count)| (metric, count as f64));
    let of_a_try = |sum: f64| sum / tally.tries.max(1) as f64;
    let share = (metric::BELIEVED_SHARE, of_a_try(100.0 * tally.believed as f64));
    let time = (metric::TIME_OF_A_TRY, of_a_try(tally.time.0 as f64 / 1e3));
    doc.predicted(case, variant, counts.chain([share, time]))
}

/// Verdicts of the device on bad entries.
fn verdicts(device: &DeviceStats) -> [(Metric, u64); 5] {
    [
        (metric::HPB_ZERO, device.hpb_zero),
        (metric::HPB_INACTIVE, device.hpb_inactive),
        (metric::HPB_STALE, device.hpb_stale),
        (metric::HPB_FORGED, device.hpb_forged),
        (metric::HPB_FOREIGN, device.hpb_foreign),
    ]
}

/// The verdicts as rows of a run, for a device whose file says how entries are protected, and for the prototype, with
/// what its responses carried.
pub(crate) fn verdict_metrics(device: &DeviceStats, preset: &DevicePreset) -> impl Iterator<Item = (Metric, f64)> {
    let is_prototype = preset.device.prototype().is_some();
    let says = is_prototype || preset.device.hpb.is_some_and(|hpb| hpb.entries != EntryConfig::DEFAULT);
    let told = [
        (metric::DIRTY_GROUPS_NAMED, device.dirty_groups_named),
        (metric::ENTRIES_PIGGYBACKED, device.entries_piggybacked),
    ];
    let counts = verdicts(device).into_iter().filter(move |_| says);
    counts.chain(told.into_iter().filter(move |_| is_prototype)).map(|(metric, count)| (metric, count as f64))
}
