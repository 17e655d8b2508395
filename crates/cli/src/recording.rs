// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath replay FILE --image START.img`: what a server recorded, in virtual time.

use crate::args::Replay;
use crate::failure::Damaged;
use crate::serve::{acted, judged};
use crate::{output, stop, usage};
use anyhow::{Result, anyhow};
use readpath_serve::{Recorded, Replayed, ServeError};
use readpath_session::images;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub fn main(args: &Replay, start: &Path) -> Result<()> {
    let [file] = &args.of.files[..] else {
        return Err(usage(anyhow!("--image: one recording is replayed at a time")));
    };
    let name = file.display();
    let opened = File::open(file).map_err(|error| usage(anyhow!("{name}: {error}")))?;
    let recorded = Recorded::read(BufReader::new(opened)).map_err(|error| usage(anyhow!("{name}: {error}")))?;
    let (image, preset) = images::open(start, false, false)?;
    let host = recorded.host.clone();
    let flag = Arc::new(AtomicBool::new(false));
    stop::in_order(flag.clone())?;
    let bar = output::bar(recorded.requests() as u64, "requests");
    let progress = |requests| {
        bar.set_position(requests);
        !flag.load(Ordering::Relaxed)
    };
    let replayed = readpath_serve::replay(image, &preset, recorded, progress);
    bar.finish_and_clear();
    let replayed = replayed.map_err(|error| match error {
        ServeError::Load(_) => Damaged(format!("{}: {error}", start.display())).into(),
        ServeError::Recording(_) => usage(anyhow!("{name}: {error}")),
        _ => anyhow::Error::new(error),
    })?;
    let mut out = io::stdout().lock();
    writeln!(out, "{name} on {}: {}, {host}", start.display(), preset.name)?;
    write!(out, "{}", report(&replayed))?;
    let is_other = replayed.first_other.is_some() || replayed.other_counters.is_some_and(|others| !others.is_empty());
    if is_other { Err(anyhow!("{name}: the replay is not what was served")) } else { Ok(()) }
}

fn report(replayed: &Replayed) -> String {
    let mut text = String::new();
    let Replayed { requests, same, .. } = replayed;
    let _ = writeln!(text, "{requests} requests in {} of device time", replayed.end);
    if replayed.left_out > 0 {
        let _ = writeln!(text, "{} more are left out, because some before them are missing", replayed.left_out);
    }
    let _ = match replayed.first_other {
        None => writeln!(text, "each took as long as when it was served"),
        Some((number, then, now)) => writeln!(
            text,
            "{} of them took another time than when they were served; the first is number {number}: {then} then, {now} \
             now",
            requests - same
        ),
    };
    let _ = match &replayed.other_counters {
        None if replayed.left_out > 0 => Ok(()),
        None => writeln!(text, "the recording does not have its end, so counters cannot be compared"),
        Some(others) if others.is_empty() => writeln!(text, "host and device counted what they counted then"),
        Some(others) => {
            let list = others.iter().map(|(name, then, now)| format!("{name} {then} then, {now} now"));
            writeln!(text, "other counters than then: {}", list.collect::<Vec<_>>().join("; "))
        }
    };
    if let Some(hpb) = &replayed.hpb {
        let _ = writeln!(text, "HPB: {} hits, {} misses", hpb.hit_cnt, hpb.miss_cnt);
    }
    text += &acted(&replayed.rules);
    if replayed.lateness.requests() > 0 {
        text += &judged(&replayed.lateness, None);
    } else if *requests > 0 {
        let modelled = &replayed.modelled;
        let us = |ns: u64| ns as f64 / 1e3;
        let _ = writeln!(text, "no request was served in real time, so there is the model's latency only");
        let _ = writeln!(text, "mean   {:>9.1} us modelled", modelled.mean() / 1e3);
        for (name, part) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            let _ = writeln!(text, "{name:<6} {:>9.1} us modelled", us(modelled.quantile(part)));
        }
    }
    text
}
