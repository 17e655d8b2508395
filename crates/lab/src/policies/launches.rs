// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory on launches of applications: those of an experiment, with every policy and size of memory in
//! place of its variants.

use super::{Contender, PoliciesPlan, PolicyFigures, Reads, Shown, best, bounds, rows};
use crate::experiment::{self, ReadFile};
use crate::runs::{ExperimentError, Plan};
use readpath_config::experiment::{Experiment, Workload};
use readpath_config::{ConfigFileError, Override};
use readpath_kit::Ns;
use readpath_results::{Document, Error};
use readpath_run::RunOutput;
use readpath_workload::launch::Launches;
use serde_json::json;

/// Runs of launches that are to be compared.
pub struct Launched {
    case: String,
    contenders: Vec<Contender>,
    /// The runs, variant by variant.
    pub plans: Vec<Plan>,
}

impl Launched {
    /// The launches of `experiment` with all policies and all sizes of memory, on the device of its variant with HPB.
    ///
    /// # Errors
    /// When the experiment's files are wrong, or its device does not offer a control mode.
    pub fn new(experiment: &Experiment, set: &[Override], read: ReadFile) -> Result<Self, ExperimentError> {
        let hpb = experiment.variants.iter().find(|v| v.hpb.is_some()).map_or(&[][..], |v| &v.set);
        let mut experiment = experiment.clone();
        (experiment.published, experiment.claims) = (Vec::new(), Vec::new());
        if let Workload::Launches(keys) = &mut experiment.workload {
            let cycles = PoliciesPlan::builtin().launches.cycles;
            keys.busy_seconds.truncate(cycles);
            keys.cycles.truncate(cycles);
        }
        let contenders = Contender::all();
        let variants = contenders.iter().map(|c| {
            let mut variant = c.of_experiment()?;
            variant.set.splice(..0, hpb.iter().cloned());
            Ok(variant)
        });
        experiment.variants = variants.collect::<Result<_, ConfigFileError>>()?;
        let plans = experiment::plan(&experiment, set, read)?;
        Ok(Launched {
            case: format!("{}, {} cycles", experiment.name, experiment.workload.cases().len()),
            contenders,
            plans,
        })
    }

    /// What rows of these runs are called.
    pub fn case(&self) -> &str {
        &self.case
    }

    /// Keeps the runs of one variant.
    pub fn keep_variant(&mut self, wanted: &str) {
        self.plans.retain(|plan| plan.variant == wanted);
    }

    /// Requests of all runs.
    pub fn ios(&self) -> u64 {
        self.plans.iter().filter_map(|p| p.workload.launches.as_ref()).map(Launches::total_requests).sum()
    }
}

pub(super) fn add_launches(doc: &mut Document, launched: &Launched, runs: &[&PolicyFigures]) -> Result<(), Error> {
    let Some(first) = launched.plans.first() else { return Ok(()) };
    let Some(launches) = &first.workload.launches else { return Ok(()) };
    let echo = serde_json::to_value(first.setup.preset.echo()).unwrap_or(serde_json::Value::Null);
    if let Some(configuration) = doc.configuration.as_object_mut() {
        configuration.insert("launches".to_owned(), json!({ "case": launched.case, "device": echo }));
    }
    let reads = reads(launches);
    for group in Contender::groups() {
        let mut all: Vec<Shown> = Vec::new();
        for (plan, figures) in launched.plans.iter().zip(runs) {
            let contender = launched.contenders.iter().find(|c| c.is_of(group) && c.name() == plan.variant);
            all.extend(contender.map(|c| Shown { policy: c.policy, variant: plan.variant.clone(), figures }));
        }
        rows(doc, &launched.case, &all)?;
        let device = &first.setup.preset.device;
        best(doc, &launched.case, group, &all, |map_bytes| bounds(&reads, device, map_bytes))?;
    }
    doc.simulated_ios += runs.iter().map(|run| run.ios).sum::<u64>();
    Ok(())
}

/// Figures of a run of launches.
pub(super) fn figures(output: &RunOutput) -> PolicyFigures {
    let phases = &output.phases;
    let time: Ns = phases.iter().fold(Ns::ZERO, |sum, p| sum + p.stats.end.saturating_sub(p.stats.start));
    PolicyFigures { start_up_s: Some(time.as_secs_f64()), ..PolicyFigures::of(output.ios, phases) }
}

/// The reads of all launches, in order.
fn reads(launches: &Launches) -> Reads {
    let mut all = Reads(Vec::new());
    for cycle in 0..launches.cycles() {
        for app in 0..launches.apps() {
            let requests = launches.launch(cycle, app).requests;
            all.0.append(&mut Reads::of(requests.iter().map(|io| (io.kind, io.block, io.blocks))).0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Policies, Protocol, name};
    use super::*;
    use crate::question::{Question, make};
    use crate::runs::Shared;
    use readpath_config::experiment::load;

    /// Four applications, two cycles, on the device of the experiment.
    #[test]
    fn every_policy_starts_the_same_applications_and_none_beats_the_optimum() {
        let nothing = |_: &std::path::Path| unreachable!("the experiment comes with the program");
        let mut small = load("appstart", &nothing).expect("it comes with the program");
        let Workload::Launches(keys) = &mut small.workload else { panic!("launches") };
        (keys.apps, keys.games, keys.requests) = (4, 1, 1_000);
        keys.busy_seconds = vec![1.0, 0.5];
        keys.cycles.truncate(2);
        let launched = Launched::new(&small, &[], &nothing).expect("possible");
        assert_eq!(launched.plans.len(), Contender::all().len());
        let ios = launched.ios();
        let policies = Policies::new(Vec::new(), Vec::new(), launched, false, Vec::new());
        let done = make(&policies, &Shared::default()).expect("they run");
        let doc = policies.answer(&done).expect("finite figures").document;
        let value = |variant: &str, metric: &str| {
            doc.rows.iter().find(|r| r.variant == variant && r.metric.name() == metric).map(|r| r.simulated)
        };
        for group in Contender::groups() {
            let optimum = value(&name("optimum", group), "map_loads").expect("a bound");
            for contender in Contender::all().into_iter().filter(|c| c.is_of(group)) {
                let variant = contender.name();
                let (loads, time) = (value(&variant, "map_loads"), value(&variant, "start_up_time"));
                assert!(loads.expect("loads") >= optimum * 0.9 && optimum > 100.0, "{variant}: {loads:?}, {optimum}");
                assert!(time.is_some_and(|t| t > 1.5 && t < 10.0), "{variant}: {time:?}");
                let memory = value(&variant, "host_memory").expect("bytes");
                assert!(memory <= (group.1 << 20) as f64, "{variant}: {memory}");
            }
            assert_eq!(value(&name("linux-dcm", group), "start_up_against_dcm"), Some(0.0));
            let mean = |policy| value(&name(policy, group), "read_latency_mean").expect("reads");
            let against = value(&name("lru", group), "read_latency_against_hcm").expect("a base");
            assert!((mean("lru") / mean("linux-hcm") - 1.0 - against / 100.0).abs() < 1e-9, "{against}");
        }
        // A pre-request spares a long read the map pages of all its blocks, not just that of the first.
        let own = |c: &Contender| c.protocol == Protocol::V2 && c.policy.managed().is_some();
        for of_v2 in Contender::all().into_iter().filter(own) {
            let loads = |protocol| value(&Contender { protocol, ..of_v2 }.name(), "map_loads").expect("loads");
            let (v1, v2) = (loads(Protocol::V1), loads(Protocol::V2));
            assert!(v2 < 0.9 * v1, "{}: {v2} map pages, {v1} with HPB 1.0", of_v2.name());
        }
        assert_eq!(doc.simulated_ios, ios);
    }
}
