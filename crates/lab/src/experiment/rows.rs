// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a run of jobs or launches, each with the part of the case that it is about.

use crate::attack::verdict_metrics;
use crate::figures::*;
use crate::fragment::map_sram;
use crate::life::Life;
use crate::long_write::LongWrite;
use crate::map_rows;
use crate::runs::CaseRun;
use readpath_kit::Histogram;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Case, Metric};
use readpath_run::{GroupStats, PhaseOutput};
use readpath_workload::IoKind;
use readpath_workload::iozone::Test;

/// A phase of a run, and iozone's test if it is one.
struct About<'a> {
    run: CaseRun<'a>,
    phase: &'a PhaseOutput,
    test: Option<Test>,
}

impl About<'_> {
    fn requests(&self, kind: IoKind) -> Requests {
        match (self.test, kind) {
            (Some(Test::RandomRead), IoKind::Read) => Requests::RandomRead,
            (Some(Test::RandomWrite), IoKind::Write) => Requests::RandomWrite,
            _ => requests(kind),
        }
    }

    /// The case of a group's rows, with the part that distinguishes the group.
    fn case(&self, group: &GroupStats) -> Case {
        let plan = &self.run.plan;
        let case = Case::from(&plan.case);
        if plan.workload.launches.is_some() {
            return Case::from(&self.phase.stats.name);
        }
        // Random tests have a metric of their own; other groups and phases do not.
        if self.test.is_some_and(Test::is_random) {
            return case;
        }
        match plan.workload.groups.get(group.group) {
            Some(name) if plan.workload.groups.len() > 1 => case.jobs(name),
            _ if plan.workload.phases.len() > 1 => self.whole(),
            _ => case,
        }
    }

    /// Whether another phase has rows of the same case: both random tests do. Metrics tell their requests apart, but
    /// not what the device does by itself.
    fn shares_its_case(&self) -> bool {
        self.test == Some(Test::RandomRead) && self.run.plan.workload.tests.contains(&Test::RandomWrite)
    }

    /// The phase as a whole.
    fn whole(&self) -> Case {
        Case::from(&self.run.plan.case).jobs(&self.phase.stats.name)
    }
}

/// All figures of a run, and which part of its case each is about. With `says_where_the_map_is` they include those of
/// the places of the map.
pub(super) fn figures(run: CaseRun, says_where_the_map_is: bool) -> Vec<(Case, Metric, f64)> {
    let phases = run.output.phases.iter().enumerate();
    let of_phase = |(number, phase)| {
        let about = About { run, phase, test: run.plan.workload.tests.get(number).copied() };
        of_phase(&about, says_where_the_map_is)
    };
    phases.flat_map(of_phase).collect()
}

/// The case of the rows of a phase of a run, and what the phase does.
pub(super) fn phase(run: CaseRun, number: usize) -> (Case, String) {
    let phase = &run.output.phases[number];
    let about = About { run, phase, test: run.plan.workload.tests.get(number).copied() };
    let case = match &phase.stats.groups()[..] {
        [group] => about.case(group),
        _ => about.whole(),
    };
    let work = case.jobs_name().unwrap_or(&phase.stats.name).to_owned();
    (case, work)
}

/// Groups at most whose distributions are kept.
const MOST_DISTRIBUTIONS: usize = 6;

/// The distribution of read latency of each group of jobs that reads, by the case of its rows.
pub(super) fn distributions(run: CaseRun) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut all: Vec<(String, Histogram)> = Vec::new();
    for (number, phase) in run.output.phases.iter().enumerate() {
        let about = About { run, phase, test: run.plan.workload.tests.get(number).copied() };
        for group in phase.stats.groups().iter().filter(|group| group.of(IoKind::Read).ios > 0) {
            let (case, latency) = (about.case(group).to_string(), &group.of(IoKind::Read).latency);
            match all.iter_mut().find(|(known, _)| *known == case) {
                Some((_, known)) => known.merge(latency),
                None => all.push((case, latency.clone())),
            }
        }
    }
    all.into_iter().take(MOST_DISTRIBUTIONS).map(|(case, latency)| (case, distribution(&latency))).collect()
}

/// The figures of a phase.
fn of_phase(about: &About<'_>, says_where_the_map_is: bool) -> Vec<(Case, Metric, f64)> {
    let About { run, phase, .. } = about;
    let setup = &run.plan.setup;
    let mut all: Vec<(Case, Metric, f64)> = Vec::new();
    let mut add = |case: &Case, figures: Vec<(Metric, f64)>| {
        all.extend(figures.into_iter().map(|(metric, value)| (case.clone(), metric, value)));
    };
    let groups = phase.stats.groups();
    for group in &groups {
        let seconds = group.end.saturating_sub(group.start).as_secs_f64();
        let mut figures = Vec::new();
        if run.plan.workload.launches.is_some() {
            figures.push((metric::START_UP_TIME, seconds));
        }
        for kind in KINDS {
            let stats = group.of(kind);
            if stats.ios == 0 {
                continue;
            }
            let of = about.requests(kind);
            if matches!(kind, IoKind::Read | IoKind::Write) {
                figures.push((of.of(Figure::Throughput), group.rates[kind as usize] / MIB));
            }
            if seconds > 0.0 {
                figures.push((of.of(Figure::Iops), stats.ios as f64 / seconds));
            }
            figures.extend(latencies(stats).map(|(figure, us)| (of.of(figure), us)));
            figures.extend(asked_percentiles(&run.plan.workload, group, stats, of));
        }
        add(&about.case(group), figures);
    }
    // Device and host count for the whole phase.
    let case = |first: &GroupStats| if groups.len() == 1 { about.case(first) } else { about.whole() };
    let of_device = |first: &GroupStats| if about.shares_its_case() { about.whole() } else { case(first) };
    let device = &phase.device;
    if let Some(first) = groups.first().filter(|_| device.slices_written > 0 || device.has_moved_unasked()) {
        let config = &setup.preset.device;
        let mut figures = write_metrics(device, config);
        figures.extend(zone_metrics(phase.zones.as_ref()));
        figures.extend(zone_map(phase.zones.as_ref()));
        figures.extend(wear_metrics(&phase.wear));
        let life = Life::of(&run.plan.variant, &[phase], config, run.output.over_time.as_ref());
        figures.extend(life.iter().flat_map(Life::figures));
        if let (Some(series), 1) = (&run.output.over_time, run.output.phases.len()) {
            figures.extend(LongWrite::of(series).iter().flat_map(LongWrite::figures));
        }
        add(&of_device(first), figures);
    }
    let Some(first) = groups.iter().find(|g| g.of(IoKind::Read).ios > 0) else { return all };
    let of_device = of_device(first);
    let case = case(first);
    let mut figures: Vec<(Metric, f64)> = hit_ratios(device, says_where_the_map_is).collect();
    figures.push((metric::MAP_LOADS, (device.map_loads + device.buffer_map_loads) as f64));
    figures.extend(runs_and_ahead(device, &setup.preset.device));
    figures.push((metric::HPB_READ_BUFFERS, device.read_buffers as f64));
    figures.extend(verdict_metrics(device, &setup.preset));
    figures.extend(phase.hpb.iter().flat_map(|hpb| hpb_counts(hpb, &setup.host)));
    add(&case, figures);
    for unit in &phase.units {
        add(&unit_case(&case, unit), unit_figures(unit, &setup.host).collect());
    }
    let mut figures = if says_where_the_map_is { map_rows::figures(*run, phase) } else { Vec::new() };
    let memory = map_rows::peak_host_bytes([*phase], &setup.preset);
    figures.push((metric::HOST_MEMORY, memory as f64));
    figures.push((metric::DEVICE_MAP_MEMORY, map_sram(&run.output.sram) as f64));
    add(&case, figures);
    // Else it stands with the writes.
    if device.slices_written == 0 && !device.has_moved_unasked() {
        add(&of_device, zone_map(phase.zones.as_ref()).into_iter().collect());
    }
    all
}
