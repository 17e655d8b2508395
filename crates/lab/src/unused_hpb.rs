// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes that a run's host could not use HPB although it should: the results are those of the device alone, whatever
//! the name of the variant.

use crate::question::Point;
use crate::runs::Plan;
use readpath_config::DevicePreset;
use readpath_host::HostConfig;
use readpath_results::{Document, Note, NoteKind};
use readpath_run::LUN;

/// Adds a sentence to the notes, once, if the host of `variant` was to use HPB and found none on the logical units
/// `luns` (none: the one that traces and launches run on).
pub(crate) fn note(doc: &mut Document, variant: &str, preset: &DevicePreset, host: &HostConfig, luns: &[u8]) {
    let Some(why) = host.hpb.and_then(|_| reason(preset, luns)) else { return };
    doc.note(Note::new(NoteKind::WithoutHpb, sentence(variant, &why)).of_variant(variant));
}

/// A sentence as of [`note`] for a run that was planned, on the logical units that its workload has files on.
pub(crate) fn note_of(doc: &mut Document, plan: &Plan) {
    note(doc, &plan.variant, &plan.setup.preset, &plan.setup.host, &luns(plan));
}

fn luns(plan: &Plan) -> Vec<u8> {
    let mut luns: Vec<u8> = plan.workload.files.iter().map(|f| f.lun).collect();
    luns.sort_unstable();
    luns.dedup();
    luns
}

/// Why a run will not use HPB although its host was to; none if it will, or was not to.
pub(crate) fn of_point(point: &Point) -> Option<String> {
    let (preset, host, luns) = match point {
        Point::Workload(plan) => (&plan.setup.preset, &plan.setup.host, luns(plan)),
        Point::Replay(replay) => (&replay.variant.preset, &replay.variant.host, Vec::new()),
        Point::Cuts(_) | Point::Attack(_) => return None,
    };
    let why = host.hpb.and_then(|_| reason(preset, &luns))?;
    Some(sentence(point.variant(), &why))
}

fn sentence(variant: &str, why: &str) -> String {
    format!("'{variant}' ran WITHOUT HPB: {why}. Its figures are those of the device alone")
}

fn reason(preset: &DevicePreset, luns: &[u8]) -> Option<String> {
    let Some(hpb) = &preset.device.hpb else { return Some(format!("the device '{}' has none", preset.name)) };
    if hpb.v2.is_some_and(|v2| !v2.enabled) {
        return Some("the device has it switched off (hpb.v2.enabled = false, fHPBEn is 0)".to_owned());
    }
    let luns = if luns.is_empty() { &[LUN] } else { luns };
    let has = |lun: &u8| preset.device.lus.get(usize::from(*lun)).is_some_and(|lu| lu.hpb);
    if luns.iter().any(has) {
        return None;
    }
    let names: Vec<String> = luns.iter().map(|lun| format!("lu[{lun}].hpb")).collect();
    Some(format!("the logical units of this workload have none ({} is false)", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::{Override, device};
    use readpath_host::HpbOptions;

    fn notes(set: &[(&str, &str)], hpb: bool, luns: &[u8]) -> Vec<String> {
        let preset = device::load("ufs21-64g", &|_| unreachable!("it comes with the program")).expect("a preset");
        let set: Vec<Override> = set.iter().map(|(k, v)| Override::new(k, v, "--set").expect("a value")).collect();
        let mut preset = preset.with_overrides(&set).expect("a device");
        if luns.contains(&1) {
            preset.device.lus.push(preset.device.lus[0]);
            preset.device.lus[0].hpb = false;
        }
        let host = HostConfig { hpb: hpb.then(HpbOptions::default), ..preset.host };
        let mut doc = Document::new("test", "test");
        // One note for any number of runs.
        (0..2).for_each(|_| note(&mut doc, "HPB dcm", &preset, &host, luns));
        doc.notes.iter().map(Note::to_string).collect()
    }

    #[test]
    fn a_run_without_hpb_is_not_called_one_with_it() {
        let switched_off = [("hpb.v2.single_kib", "4"), ("hpb.v2.enabled", "false")];
        let off = notes(&switched_off, true, &[]);
        assert!(
            off.len() == 1 && off[0].starts_with("'HPB dcm' ran WITHOUT HPB: the device has it switched off"),
            "{off:?}"
        );
        assert_eq!(notes(&switched_off, false, &[]), [""; 0], "it was not to use it");
        assert_eq!(notes(&[], true, &[]), [""; 0]);
        let unit = notes(&[("lu[0].hpb", "false")], true, &[0]);
        assert!(unit.len() == 1 && unit[0].contains("of this workload have none (lu[0].hpb is false)"), "{unit:?}");
        assert_eq!(notes(&[], true, &[0, 1]), [""; 0], "one of them has it");
    }
}
