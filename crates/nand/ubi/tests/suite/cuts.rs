// SPDX-License-Identifier: MIT OR Apache-2.0
//! A short life of a device, cut at every program and erase; and each attach after a cut, cut at each of its own.
//! Every step happens completely or not at all.

use crate::common::{OnePage, one_page};
use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options};
use readpath_ubi::UbiError;
use readpath_ubi::mtd::{Geometry, MtdError};

const GEOMETRY: Geometry = Geometry { peb_bytes: 4096, page_bytes: 512, subpage_bytes: 256, pebs: 24 };
/// Different tears come from different seeds.
const SEEDS: u64 = 12;

type Flashed<'a> = Device<&'a mut Nand, OnePage>;
type Step = fn(&mut Flashed) -> Result<(), UbiError>;

fn attach(nand: &mut Nand) -> Result<Flashed<'_>, UbiError> {
    Device::attach(nand, one_page(512), &Options { image_seq_if_empty: 6, wear_threshold: 3, ..Options::default() })
}

/// The steps of a life. Between them background work is done, which may be cut as well.
const STEPS: [Step; 12] = [
    |ubi| ubi.create_volume(&NewVolume::dynamic("first", 3)).map(drop),
    |ubi| ubi.map(0, 0),
    |ubi| ubi.change(0, 0, &[0x11; 1024]),
    |ubi| ubi.create_volume(&NewVolume { is_static: true, ..NewVolume::dynamic("second", 2) }).map(drop),
    |ubi| ubi.update_volume(1, &[0x22; 4000]),
    |ubi| ubi.change(0, 0, &[0x33; 512]),
    |ubi| ubi.update_volume(1, &[0x44; 100]),
    |ubi| ubi.change(0, 0, &[0x55; 3072]),
    |ubi| ubi.remove_volume(1),
    |ubi| ubi.create_volume(&NewVolume::dynamic("third", 2)).map(drop),
    |ubi| ubi.change(0, 0, &[0x66; 2048]),
    |ubi| ubi.remove_volume(1),
];

/// Visible contents of the volumes.
fn look(ubi: &mut Flashed) -> Result<Vec<String>, UbiError> {
    let volumes: Vec<_> = ubi.volumes().map(|v| (v.id, v.name(), v.bytes(), v.record.update_marker)).collect();
    let mut seen = Vec::new();
    for (id, name, bytes, updating) in volumes {
        if updating {
            seen.push(format!("{name} updating"));
            continue;
        }
        let mut data = vec![0; 3072];
        ubi.read(id, 0, 0, &mut data, 0)?;
        if name == "second" && bytes > 0 {
            ubi.check_static(id)?;
            // The last page is padded with zeros behind the data.
            data.truncate(bytes as usize);
        }
        let used = data.iter().rposition(|&b| b != 0xFF).map_or(0, |last| last + 1);
        assert!(data[..used].iter().all(|&b| b == data[0]), "a mixture");
        seen.push(format!("{name} {bytes} {used} {:02x}", data[0]));
    }
    Ok(seen)
}

fn is_cut(e: &UbiError) -> bool {
    matches!(e, UbiError::Mtd(MtdError::PowerOff { .. }))
}

/// A formatted device. As in Linux, formatting is not safe against power cuts: a device with an EC header but no
/// volume table is refused.
fn formatted(seed: u64) -> Nand {
    let mut nand = Nand::new(GEOMETRY, Ecc::new(256, 8), seed).expect("a device");
    attach(&mut nand).expect("empty").work_all().expect("no faults");
    nand
}

/// Visible contents before each step, and at the end.
fn stages() -> Vec<Vec<String>> {
    let mut nand = formatted(0);
    let mut ubi = attach(&mut nand).expect("formatted");
    let mut stages = vec![look(&mut ubi).expect("it can be read")];
    for step in STEPS {
        step(&mut ubi).expect("no faults");
        ubi.work_all().expect("no faults");
        stages.push(look(&mut ubi).expect("it can be read"));
    }
    stages
}

/// Runs until the power is cut; returns the step in progress, or `None` at the end.
fn live(nand: &mut Nand) -> Option<usize> {
    let cut = |e: UbiError| assert!(is_cut(&e), "{e}");
    let mut ubi = match attach(nand) {
        Ok(ubi) => ubi,
        Err(e) => {
            cut(e);
            return Some(0);
        }
    };
    for (i, step) in STEPS.into_iter().enumerate() {
        // A completed step stays completed when background work is cut.
        if let Err(e) = step(&mut ubi) {
            cut(e);
            return Some(i);
        }
        if let Err(e) = ubi.work_all() {
            cut(e);
            return Some(i + 1);
        }
    }
    None
}

/// Attaches after a cut, and compares; `updates` are steps during which a volume may have its update marker.
fn compare(nand: &mut Nand, stages: &[Vec<String>], step: usize, what: &str) {
    let mut ubi = attach(nand).unwrap_or_else(|e| panic!("{what}: {e}"));
    let seen = look(&mut ubi).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (before, after) = (&stages[step], stages.get(step + 1).unwrap_or(&stages[step]));
    let updating = |seen: &[String]| {
        let same = seen.len() == before.len() && seen[0] == before[0];
        same && matches!(step, 4 | 6) && seen[1] == "second updating"
    };
    assert!(seen == *before || seen == *after || updating(&seen), "{what}: {seen:?}, not {before:?} or {after:?}");
    // Traces of a cut are not reported as damage, except an update that cannot be finished.
    let findings = ubi.findings().unwrap_or_else(|e| panic!("{what}: {e}"));
    let damage: Vec<_> = findings.iter().filter(|f| f.is_damage && f.kind != "interrupted-update").collect();
    assert!(damage.is_empty(), "{what}: {damage:?}");
    ubi.work_all().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(look(&mut ubi).expect("as before"), seen, "{what}: after the background work");
}

#[test]
fn a_cut_at_every_program_and_erase() {
    let stages = stages();
    assert_eq!(stages.last().expect("some"), &["first 10752 2048 66"]);
    let (mut cuts, mut nested) = (0, 0);
    for seed in 0..SEEDS {
        for at in 0.. {
            let mut nand = formatted(seed);
            nand.cut_after(at);
            let Some(step) = live(&mut nand) else { break };
            cuts += 1;
            // The attach after it, cut at each of its operations.
            for again in 0.. {
                let mut second = nand.clone();
                second.power_on();
                second.cut_after(again);
                let whole = match attach(&mut second) {
                    Ok(_) => true,
                    Err(e) => {
                        assert!(is_cut(&e), "{e}");
                        false
                    }
                };
                second.power_on();
                compare(&mut second, &stages, step, &format!("seed {seed}, cut {at}, step {step}, then {again}"));
                if whole {
                    break;
                }
                nested += 1;
            }
        }
    }
    assert!(cuts > 100 * SEEDS && nested > 10 * SEEDS, "{cuts} {nested}");
}
