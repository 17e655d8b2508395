// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath power`: plans the runs of a fio job as `fio` does, has the power cut in the middle of each and shows what
//! recovery took and whether all data was there.

use crate::args::{Loses, Power};
use crate::events::time_without_power;
use crate::failure::classify;
use crate::inputs::read_text;
use crate::live::Live;
use crate::output::{self, Folder};
use crate::presets::overrides;
use crate::{memory, runs, typed, usage};
use anyhow::{Result, anyhow};
use rayon::prelude::*;
use readpath_kit::Ns;
use readpath_lab::beforehand;
use readpath_lab::experiment::{ExperimentError, Plan, expected_ios, plan};
use readpath_lab::power_cuts::{self, PowerCuts, PowerError, PowerRun, PowerTexts, document};
use readpath_stack::Tags;

/// Columns of the table.
const COLUMNS: [(&str, &str); 12] = [
    ("power_cuts", "cuts"),
    ("recovery_time_mean", "recovery, mean"),
    ("recovery_time_max", "recovery, longest"),
    ("recovery_time_bound", "recovery, at most"),
    ("recovery_reads_max", "pages read, most"),
    ("torn_units", "torn units"),
    ("requests_in_flight_mean", "in flight, mean"),
    ("blocks_checked", "blocks checked"),
    ("blocks_wrong", "blocks wrong"),
    ("hpb_hit_ratio", "HPB hits"),
    ("map_req_cnt", "map loads"),
    ("host_memory", "host memory"),
];

/// Most seconds without power in all.
const MOST_OFF_S: u64 = 1_000_000;

/// `readpath power`.
pub fn main(args: &Power) -> Result<()> {
    let cuts = PowerCuts {
        cuts: args.cuts,
        loses: match args.loses {
            Loses::Everything => power_cuts::Loses::Everything,
            Loses::Device => power_cuts::Loses::Device,
        },
        off: off(&args.off, args.cuts).map_err(|e| usage(anyhow!(e)))?,
        seed: args.target.seed,
    };
    let target = &args.target;
    let mut experiment = typed::of_job(&args.job, &target.device, target.precondition, typed::variants(&target.host)?);
    experiment.seed = target.seed;
    let set = overrides(&args.basics.set)?;
    let mut plans = plan(&experiment, &set, &read_text).map_err(classify)?;
    plans.iter().try_for_each(|p| power_cuts::check(&p.workload, &cuts).map(drop)).map_err(usage)?;
    beforehand::plans(&plans).map_err(classify)?;
    check_memory(&plans, args.basics.threads)?;
    let folder = args.basics.out.as_deref().map(|out| Folder::create(out)?.apart_from([&args.job])).transpose()?;
    let expected = plans.iter().map(|p| expected_ios(&p.workload)).sum::<Option<u64>>();
    let count = plans.len();
    let results: Vec<Result<PowerRun, PowerError>> =
        runs::side_by_side(args.basics.threads, count, expected, &runs::stoppable(&Live::default())?, |shared| {
            plans.par_iter_mut().map(|p| power_cuts::run(&p.setup, &mut p.workload, &cuts, shared)).collect()
        })?;
    let runs = plans.iter().zip(results).map(|(plan, result)| result.map_err(|error| mark(plan, error)));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let texts = PowerTexts {
        title: format!("Power cuts under {}", experiment.title),
        description: format!("Simulated on the device '{}'.", target.device),
    };
    let mut doc = document(&texts, &plans, &cuts, &runs)?;
    doc.process = output::process();
    doc.validate()?;
    if let Some(folder) = folder {
        folder.write(&doc)?;
    }
    output::emit(&output::table(&doc, args.basics.json, args.basics.out.as_deref(), &COLUMNS)?, None)?;
    match runs.iter().map(|run| run.wrong).sum::<u64>() {
        0 => Ok(()),
        wrong => Err(anyhow!("{wrong} blocks were not what they may be; see the notes of the results")),
    }
}

/// For how long the power is away each time. Virtual time ends not much later than what is allowed.
fn off(text: &str, cuts: u32) -> Result<Ns, String> {
    let off = time_without_power(text).map_err(|e| format!("--off: {e}"))?;
    if off.0.saturating_mul(u64::from(cuts)) > Ns::from_secs(MOST_OFF_S).0 {
        return Err(format!("--off: {cuts} times {text} without power; at most {MOST_OFF_S} s in all are possible"));
    }
    Ok(off)
}

/// Refuses runs whose tags this machine has no memory for, before it begins to swap.
fn check_memory(plans: &[Plan], threads: Option<u32>) -> Result<()> {
    let Some(available) = memory::available() else { return Ok(()) };
    let each = plans.iter().map(|p| Tags::most_bytes(&p.setup.preset.device)).max().unwrap_or(0);
    let threads = threads.map_or_else(rayon::current_num_threads, |n| n as usize);
    let together = threads.min(plans.len()).max(1) as u64;
    if each * together <= available {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (needed, runs) = (gib(each * together), if together == 1 { "a run" } else { "runs side by side" });
    Err(usage(anyhow!(
        "every block of the device is checked, which takes {needed:.1} GiB for {runs}; this machine has {:.1} GiB free. Take \
         --threads 1 or --hpb off, or a smaller device (--set lu[0].blocks=N)",
        gib(available)
    )))
}

fn mark(plan: &Plan, error: PowerError) -> anyhow::Error {
    match error {
        PowerError::Run(error) => {
            classify(ExperimentError::Run { case: plan.case.clone(), variant: plan.variant.clone(), error })
        }
        error => usage(error),
    }
}
