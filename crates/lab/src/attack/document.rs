// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attacks as rows of a result document: each is a case, each protection a variant.

use super::{Attack, Means, Tally, attack};
use crate::experiment::Shared;
use readpath_config::DevicePreset;
use readpath_device::{ConfigError, DeviceConfig, DeviceStats, EntryConfig, Protection};
use readpath_results::{Document, Error, Origin};
use std::sync::atomic::Ordering;

/// Forged entries that are tried against each protection.
const FORGERIES: u64 = 400_000;

/// Attacks that are made.
pub const RUNS: usize = Attack::ALL.len() * MEANS.len() * PROTECTIONS;
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

/// Why attacks could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    /// The small device that is attacked cannot exist with the times of the one that was asked for.
    #[error("the device to attack: {0}")]
    Device(#[from] ConfigError),
    /// A figure is not finite.
    #[error(transparent)]
    Document(#[from] Error),
    /// Stopped on request.
    #[error("interrupted")]
    Interrupted,
}

/// Makes every attack on every protection, on a small device with the times of `times`, and adds what came of it to `doc`.
///
/// # Errors
/// See [`AttackError`].
pub fn add_rows(doc: &mut Document, times: &DeviceConfig, seed: u64, shared: &Shared) -> Result<(), AttackError> {
    let mut safe = Vec::new();
    for kind in Attack::ALL {
        for (means, suffix) in MEANS {
            let case = format!("attack: {}{suffix}", kind.name());
            for (name, entries) in attacked() {
                if shared.stop.load(Ordering::Relaxed) {
                    return Err(AttackError::Interrupted);
                }
                let tally = attack(kind, times, entries, means, FORGERIES, seed)?;
                doc.simulated_ios += tally.tries;
                shared.ios.fetch_add(tally.tries, Ordering::Relaxed);
                rows(doc, &case, name, &tally)?;
                if kind == Attack::Forge && entries.protection == Protection::Mac {
                    let expected = 100.0 / (1u64 << entries.tag_bits) as f64;
                    doc.row(&case, name, "believed_expected", "%", expected, Origin::Predicted)?;
                }
                if tally.leaked == 0 {
                    safe.push((format!("{}{suffix}", kind.name()), name));
                }
            }
        }
    }
    for (name, _) in attacked() {
        let withstood: Vec<&str> = safe.iter().filter(|(_, n)| *n == name).map(|(kind, _)| kind.as_str()).collect();
        doc.notes.push(match withstood.len() {
            0 => format!("ATTACK: {name}: every kind of attack returned data that a READ would not have"),
            n if n == Attack::ALL.len() * MEANS.len() => {
                format!("ATTACK: {name}: no attack returned anything that a READ would not have")
            }
            _ => format!("ATTACK: {name}: withstood {}; the others got through", withstood.join(", ")),
        });
    }
    Ok(())
}

fn rows(doc: &mut Document, case: &str, variant: &str, tally: &Tally) -> Result<(), Error> {
    for (metric, count) in [("tries", tally.tries), ("believed", tally.believed), ("leaked", tally.leaked)]
        .into_iter()
        .chain(verdicts(&tally.device))
    {
        doc.row(case, variant, metric, "", count as f64, Origin::Predicted)?;
    }
    let share = 100.0 * tally.believed as f64 / tally.tries.max(1) as f64;
    doc.row(case, variant, "believed_share", "%", share, Origin::Predicted)?;
    let each = tally.time.0 as f64 / 1e3 / tally.tries.max(1) as f64;
    doc.row(case, variant, "time_of_a_try", "us", each, Origin::Predicted)?;
    Ok(())
}

/// What entries that were not good turned out to be.
fn verdicts(device: &DeviceStats) -> [(&'static str, u64); 5] {
    [
        ("hpb_zero", device.hpb_zero),
        ("hpb_inactive", device.hpb_inactive),
        ("hpb_stale", device.hpb_stale),
        ("hpb_forged", device.hpb_forged),
        ("hpb_foreign", device.hpb_foreign),
    ]
}

/// The same as rows of a run, for a device whose file says how entries are protected, and for one of the prototype, with what
/// its responses told.
pub(crate) fn verdict_metrics(
    device: &DeviceStats,
    preset: &DevicePreset,
) -> impl Iterator<Item = (&'static str, u64)> {
    let is_prototype = preset.device.prototype().is_some();
    let says = is_prototype || preset.device.hpb.is_some_and(|hpb| hpb.entries != EntryConfig::DEFAULT);
    let told = [("dirty_groups_named", device.dirty_groups_named), ("entries_piggybacked", device.entries_piggybacked)];
    verdicts(device).into_iter().filter(move |_| says).chain(told.into_iter().filter(move |_| is_prototype))
}
