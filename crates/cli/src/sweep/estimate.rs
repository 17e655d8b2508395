// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath sweep --dry-run`: how many points a study has, and about how long they take. It makes some of them to see,
//! and keeps none.

use crate::failure::Interrupted;
use crate::inputs::read_text;
use crate::stop;
use anyhow::Result;
use readpath_session::lab::runs::Shared;
use readpath_session::runs::processors;
use readpath_session::study::{Found, Maker, Plan, Shard};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Duration of the trial that measures the time per point.
const TRIAL: Duration = Duration::from_secs(4);
/// Most points of a trial.
const MOST_TRIED: u64 = 64;

/// Shows the study, and how long it takes if some of its points are like all others.
pub fn show(plan: &Plan, shard: Shard, found: &Found, threads: usize) -> Result<()> {
    let mut out = io::stdout().lock();
    let (count, there) = (shard.count(plan.count()), shard.done(found));
    writeln!(out, "{}\n\n{} points ({})", plan.study.title, plan.count(), plan.study.design.name())?;
    if shard != Shard::WHOLE {
        writeln!(out, "{count} of them in this shard")?;
    }
    if there > 0 {
        writeln!(out, "{there} of them made before")?;
    }
    writeln!(out, "Varied: {}", plan.study.keys().collect::<Vec<_>>().join(", "))?;
    out.flush()?;
    let left = count - there;
    if left == 0 {
        return Ok(());
    }
    let threads = threads.min(processors());
    let Some(trial) = trial(plan)? else { return Ok(()) };
    let seconds = trial.seconds_per_point * left as f64 / threads.min(left.max(1) as usize) as f64;
    let (points, each) = (trial.points, trial.seconds_per_point);
    writeln!(
        out,
        "About {} for {left} points with {}: {points} took {each:.3} s each",
        duration(seconds),
        super::in_threads(threads)
    )?;
    if trial.failed > 0 {
        writeln!(out, "{} of them failed", trial.failed)?;
    }
    Ok(())
}

struct Trial {
    /// How many points were made, in words.
    points: String,
    failed: u64,
    seconds_per_point: f64,
}

/// Makes points for a while; none when the command is to stop.
fn trial(plan: &Plan) -> Result<Option<Trial>> {
    let (shared, maker) = (Arc::new(Shared::default()), Maker::default());
    stop::in_order(shared.stop.clone())?;
    let began = Instant::now();
    let (mut points, mut failed) = (0u64, 0u64);
    for index in plan.some(MOST_TRIED) {
        let point = plan.point(index);
        if points == 0 {
            end_after(TRIAL, shared.clone());
        }
        match maker.make(plan, &point, &read_text, &shared) {
            Some(record) => failed += u64::from(record.failure().is_some()),
            None if began.elapsed() < TRIAL => return Err(Interrupted.into()),
            None if points > 0 => break,
            None => {
                // Not even one point: estimated by the share of its requests.
                let elapsed = began.elapsed().as_secs_f64();
                let made = shared.ios.load(Ordering::Relaxed);
                let mut out = io::stdout().lock();
                return match Maker::expected_ios(plan, &point, &read_text) {
                    Some(expected) if made > 0 => {
                        let each = elapsed * expected.max(made) as f64 / made as f64;
                        let points = format!("{made} of {expected} requests of one point");
                        Ok(Some(Trial { points, failed, seconds_per_point: each }))
                    }
                    _ => {
                        writeln!(out, "A point takes longer than {elapsed:.0} s; how long is not known")?;
                        Ok(None)
                    }
                };
            }
        }
        points += 1;
        if began.elapsed() > TRIAL / 2 {
            break;
        }
    }
    let seconds_per_point = began.elapsed().as_secs_f64() / points.max(1) as f64;
    Ok(Some(Trial { points: format!("{points} points"), failed, seconds_per_point }))
}

fn end_after(patience: Duration, shared: Arc<Shared>) {
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        shared.stop.store(true, Ordering::Relaxed);
    });
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => "a second".into(),
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}
