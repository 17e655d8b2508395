// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments as questions: a built-in one, all of them, or that of a file.

use super::{experiment, hmb, policies};
use crate::args::{Chosen, Making, OwnImages, Reproduce};
use crate::failure::classify;
use crate::inputs::read_text;
use crate::presets::overrides;
use crate::{cases, kinds, ubi, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::{load, load_beside};
use readpath_lab::beforehand;
use readpath_lab::builtin::{self, Builtin, Group, Kind};
use readpath_lab::experiment::Experimenting;
use readpath_lab::hmb::HostMemory;
use readpath_lab::policies::Policies;
use readpath_lab::replay::{Mode, Replay, ReplayOptions, ReplayTexts, ReplayVariant, Replays};
use readpath_run::LUN;
use std::path::Path;
use std::sync::Arc;

/// The name that means every built-in experiment.
pub const ALL: &str = "all";
/// What recorded traces are for.
const WITH_TRACES: &str = "reproduce policies, zones and ubi";

/// An experiment that options name.
pub enum Named {
    /// Cases and variants, with attacks if it has some.
    Runs(Box<Experimenting>),
    /// Host memory of SSDs.
    Hmb(Box<HostMemory>),
    /// Host memory policies.
    Policies(Box<Policies>),
    /// Read caches of UBI.
    Ubi(Box<ubi::Prepared>),
}

/// The experiment that options name.
///
/// # Errors
/// When there is none of this name, or an option or trace is wrong.
pub fn named(args: &Reproduce) -> Result<Named> {
    let kind = builtin::find(&args.name).map(|builtin| builtin.kind);
    check_options(args, kind)?;
    Ok(match kind {
        Some(Kind::Ubi) => {
            // A folder for all experiments has a folder for this one.
            let within =
                args.traces.as_ref().map(|folder| folder.join(ubi::EXPERIMENT)).filter(|folder| folder.is_dir());
            Named::Ubi(ubi::prepare(within.as_deref().or(args.traces.as_deref()), &args.own)?.into())
        }
        Some(Kind::Policies) => Named::Policies(policies::question(args)?.into()),
        Some(Kind::Hmb) => Named::Hmb(hmb::question(args)?.into()),
        // An unknown name is refused where files are looked for.
        Some(Kind::File { .. }) | None => {
            let others: Vec<&str> =
                builtin::BUILTINS.iter().filter(|b| !b.is_file()).map(|b| b.name).chain([ALL]).collect();
            let others = [others, builtin::GROUPS.map(|group| group.name).to_vec()].concat();
            kinds::check(Path::new(&args.name), kinds::Kind::Experiment)?;
            let experiment = load_beside(&others, &args.name, &|path| args.making.read(path)).map_err(usage)?;
            Named::Runs(experiment::of(experiment, &args.making, &args.chosen)?.into())
        }
    })
}

/// Refuses options that belong to other experiments.
fn check_options(args: &Reproduce, kind: Option<Kind>) -> Result<()> {
    let name = &args.name;
    if kind == Some(Kind::Ubi) {
        return Ok(());
    }
    if !args.own.images.is_empty() {
        return Err(usage(anyhow!("--image goes with reproduce ubi; {name} reads no image of NAND")));
    }
    if args.own.cost.is_some() {
        return Err(usage(anyhow!("--cost goes with reproduce ubi; {name} has no NAND to name")));
    }
    if args.traces.is_some() && kind == Some(Kind::Hmb) {
        return Err(usage(anyhow!("--traces: hmb is a command for traces of your own: readpath hmb TRACE...")));
    }
    if args.traces.is_some() && kind != Some(Kind::Policies) {
        return Err(usage(anyhow!("--traces goes with {WITH_TRACES}; {name} runs on no recorded trace")));
    }
    Ok(())
}

/// The experiments of this name, if it is that of several.
pub fn group(name: &str) -> Option<Group> {
    builtin::GROUPS.into_iter().find(|group| group.name == name)
}

/// What the experiments of a group ask.
///
/// # Errors
/// When an option does not fit an experiment.
pub fn members(group: &Group, making: &Making) -> Result<Vec<Experimenting>> {
    let of = |name: &&str| experiment::of(load(name, &read_text).map_err(usage)?, making, &Chosen::default());
    group.members.iter().map(of).collect()
}

/// The question what recorded traces of a folder show on the variants of one of a group's experiments.
///
/// # Errors
/// When nothing of the group runs on traces, a key of the device is wrong, or a trace cannot be read.
pub fn of_recorded(group: &Group, making: &Making, dir: &Path) -> Result<Replays> {
    let Some(name) = group.replays else {
        let name = group.name;
        return Err(usage(anyhow!("--traces goes with {WITH_TRACES}; {name} runs on no recorded trace")));
    };
    let experiment = load(name, &read_text).map_err(usage)?;
    let base = experiment.load_device(&read_text).map_err(usage)?;
    let base = base.with_overrides(&overrides(&making.set)?).map_err(usage)?;
    let variants = experiment.variants.iter().map(|variant| ReplayVariant::new(variant, &base));
    let variants = variants.collect::<Result<Vec<_>, _>>().map_err(usage)?;
    // Behind a mapper a host sees less of the flash. All variants get the same requests.
    let units = variants.iter().map(|variant| variant.preset.seen_units());
    let units = units.min_by_key(|units| units[usize::from(LUN)].blocks).unwrap_or_default();
    let cases = policies::recorded(dir, &units, true)?;
    beforehand::variants(&cases[0].name, &variants).map_err(classify)?;
    let layout = experiment.precondition.layout;
    let texts = cases::texts(&policies::how(true), (&[], &[]), &experiment.device, layout, &cases);
    let what = experiment.title.split(':').next().unwrap_or_default();
    let texts = ReplayTexts { title: format!("{what}: recorded traces"), ..texts };
    let (mode, seed) = (Mode::Timed, experiment.seed);
    let options = ReplayOptions { mode, layout, seed, encoded: false, over_time: true };
    let cases: Vec<_> = cases.into_iter().map(Arc::new).collect();
    let variants: Vec<_> = variants.into_iter().map(Arc::new).collect();
    Ok(Replays::new(texts, Replay::all(&cases, &variants, &options)))
}

/// Everything that `all` asks.
pub struct All {
    /// Experiments of cases and variants.
    pub files: Vec<Experimenting>,
    /// Host memory of SSDs.
    pub hmb: HostMemory,
    /// Host memory policies.
    pub policies: Policies,
    /// Read caches of UBI.
    pub ubi: ubi::Prepared,
}

/// All built-in experiments, with the traces of the folders `mobile`, `block` and `ubi` that exist.
///
/// # Errors
/// When a trace cannot be read.
pub fn all(making: &Making, dir: Option<&Path>) -> Result<All> {
    let chosen = &Chosen::default();
    const UBI: &str = ubi::EXPERIMENT;
    let has = |name: &str| dir.is_some_and(|dir| dir.join(name).is_dir());
    let traces = dir.filter(|_| policies::folders().into_iter().any(has));
    let streams = dir.filter(|_| has(UBI)).map(|dir| dir.join(UBI));
    if let (Some(dir), None, None) = (dir, traces, &streams) {
        let dir = dir.display();
        return Err(usage(anyhow!("--traces {dir}: there is none of {dir}/mobile, {dir}/block and {dir}/ubi")));
    }
    let without_traces = match dir.map(Path::display) {
        None => Some(policies::ONLY_BUILT_IN.to_owned()),
        Some(dir) => traces
            .is_none()
            .then(|| format!("--traces {dir}: has no folder mobile or block; only the built-in workloads were run.")),
    };
    let policies = policies::prepare(making, chosen, traces, without_traces)?;
    let hmb = hmb::experiment_of(making, chosen)?;
    let mut ubi = ubi::prepare(streams.as_deref(), &OwnImages::default())?;
    if let (Some(dir), None) = (dir, &streams) {
        let dir = dir.display();
        ubi.notes.push(format!("--traces {dir}: has no folder {UBI}; no recorded stream was replayed."));
    }
    let file = |builtin: &Builtin| {
        let experiment = load(builtin.name, &read_text).map_err(usage)?;
        experiment::of(experiment, making, chosen)
    };
    let is_plain = |builtin: &&Builtin| matches!(builtin.kind, Kind::File { .. });
    let files = builtin::BUILTINS.iter().filter(is_plain).map(file).collect::<Result<_>>()?;
    Ok(All { files, hmb, policies, ubi })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs;
    use readpath_lab::question::Question;
    use readpath_lab::runs::Shared;
    use std::fs;

    /// Every place of the map sees the same requests, also if the mapper leaves less than the device has.
    #[test]
    fn recorded_traces_are_replayed_on_all_places_of_the_map() {
        let room = tempfile::tempdir().expect("a folder");
        fs::create_dir(room.path().join("block")).expect("a folder");
        let far = (64u64 << 30) - 4096;
        let trace =
            format!("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,W,0,8192,,\n1000000,R,{far},4096,,\n");
        fs::write(room.path().join("block/x.csv"), trace).expect("a trace");
        let zones = group("zones").expect("a group");
        let asked = of_recorded(&zones, &Making::default(), room.path()).expect("a question");
        let names: Vec<&str> = asked.points().iter().map(|point| point.variant()).collect();
        let places = ["page map, SRAM", "page map, HPB 16 MiB", "page map, HMB 16 MiB", "page map, DRAM", "zones"];
        assert_eq!(names, places);
        let done = runs::side_by_side(&asked, &Making::default(), &Shared::default()).expect("runs");
        let document = asked.answer(&done).expect("an answer").document;
        let folded = "1 of 2 requests lie beyond the device and were FOLDED";
        assert!(document.notes.iter().any(|note| note.to_string().contains(folded)), "{:?}", document.notes);
        for place in places {
            let of = |metric: &str| {
                document.rows.iter().find(|r| r.variant == place && r.metric.name() == metric).map(|r| r.simulated)
            };
            assert_eq!((of("read_requests"), of("write_requests")), (Some(1.0), Some(1.0)), "{place}");
        }
        let devices = group("devices").expect("a group");
        let none = of_recorded(&devices, &Making::default(), room.path()).expect_err("no traces").to_string();
        assert_eq!(none, "--traces goes with reproduce policies, zones and ubi; devices runs on no recorded trace");
    }

    /// The result of each part notes which traces the folder lacks.
    #[test]
    fn notes_of_a_folder_of_traces_that_lacks_some() {
        let room = tempfile::tempdir().expect("a folder");
        let path = |name: &str| room.path().join(name);
        let notes = |dir: Option<&Path>| {
            let all = all(&Making::default(), dir).expect("traces");
            let of = |notes: Vec<String>| notes.join(" ").replace(&room.path().display().to_string(), "DIR");
            (of(all.policies.notes().iter().map(ToString::to_string).collect()), of(all.ubi.notes))
        };
        assert_eq!(notes(None), (policies::ONLY_BUILT_IN.to_owned(), String::new()));
        for name in ["ubi", "block"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        fs::write(path("ubi/x_find.csv"), "R,1,0,64,,find\n").expect("a stream");
        let table = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n";
        fs::write(path("block/x.csv"), table).expect("a trace");
        let no_mobile = "--traces DIR: has no folder mobile; left out.".to_owned();
        assert_eq!(notes(Some(room.path())), (no_mobile.clone(), String::new()));
        fs::rename(path("ubi"), path("other")).expect("another name");
        let no_ubi = "--traces DIR: has no folder ubi; no recorded stream was replayed.".to_owned();
        assert_eq!(notes(Some(room.path())), (no_mobile, no_ubi));
        fs::rename(path("other"), path("ubi")).expect("its name");
        fs::remove_dir_all(path("block")).expect("the folder");
        let only_ubi = "--traces DIR: has no folder mobile or block; only the built-in workloads were run.".to_owned();
        assert_eq!(notes(Some(room.path())), (only_ubi, String::new()));
    }
}
