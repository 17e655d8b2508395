// SPDX-License-Identifier: MIT OR Apache-2.0
//! A probe as a result document, with figures, and as sentences. It adds no figure that the probe did not give.

use super::cliff::{Cliff, cliff};
use super::names::MIB;
use super::plan::Job;
use super::solve::{Compared, Probe};
use crate::fit::{Access, Known, LongWrite, Metric, Setting, Stretch, Verdict, WIDE, jobs_notes, parts_note};
use readpath_results::{Chart, ChartKind, Document, Error, Interval, Note, Origin, SeriesStyle};
use serde_json::{Value, json};

/// Metrics of a reading, and whether the fit may have seen them.
const METRICS: [(Metric, bool); 4] = [
    (Metric::Throughput, true),
    (Metric::LatencyMean, false),
    (Metric::LatencyP50, false),
    (Metric::LatencyP99, false),
];
/// Length of error bars in standard errors.
const BARS: f64 = 2.0;

impl Compared {
    /// The measured value.
    pub fn measured(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Throughput => self.reading.throughput_mib_s,
            Metric::Iops => self.reading.throughput_mib_s * f64::from(MIB),
            Metric::LatencyMean => self.reading.mean_us,
            Metric::LatencyP50 => self.reading.p50_us,
            Metric::LatencyP99 => self.reading.p99_us,
        }
    }
}

impl Probe {
    fn setting(&self, row: &Compared) -> Setting {
        self.plan.jobs[row.reading.job].setting
    }

    /// Root of the mean squared difference of throughput in percent, of rows that the fit saw or of those held out;
    /// nothing if there are none.
    pub fn rms_percent(&self, fitted: bool) -> Option<f64> {
        let of: Vec<f64> = self.rows.iter().filter(|r| r.fitted == fitted).map(Compared::error_percent).collect();
        let sum: f64 = of.iter().map(|e| e * e).sum();
        (!of.is_empty()).then(|| (sum / of.len() as f64).sqrt())
    }

    /// The cliff of the long write, and the MiB of each of its parts.
    pub fn cliff(&self) -> Option<(Cliff, f64)> {
        let parts = self.long_write(LongWrite::Again);
        let Access::SequentialWrite(Stretch { parts: count, .. }) = self.setting(parts.first()?).access else {
            return None;
        };
        // A missing part would shift the others.
        let complete = parts.len() == usize::from(count);
        let values: Vec<f64> = parts.iter().map(|row| row.reading.throughput_mib_s).collect();
        let mib = f64::from(self.setting(parts[0]).range_blocks / u32::from(count)) / f64::from(MIB);
        cliff(&values).filter(|_| complete).map(|cliff| (cliff, mib))
    }

    /// The parts of the long write of a kind.
    fn long_write(&self, wanted: LongWrite) -> Vec<&Compared> {
        let part = |row: &&Compared| match self.setting(row).access {
            Access::SequentialWrite(Stretch { of, parts, .. }) => of == wanted && parts > 1,
            Access::RandomRead | Access::RandomWrites(_) => false,
        };
        self.rows.iter().filter(part).collect()
    }

    /// The kinds of long writes of the plan.
    fn long_writes(&self) -> Vec<LongWrite> {
        let of = |job: &Job| match job.setting.access {
            Access::SequentialWrite(Stretch { of, parts: 2.., .. }) => Some(of),
            _ => None,
        };
        let mut kinds: Vec<LongWrite> = self.plan.jobs.iter().filter_map(of).collect();
        kinds.dedup();
        kinds
    }

    /// What there is to say of the probe beyond its tables.
    pub fn notes(&self) -> Vec<String> {
        let fit = &self.fit;
        let mut notes = self.verdicts();
        let missing = self.plan.jobs.len() - self.rows.len();
        if missing > 0 {
            notes.push(format!("{missing} of {} jobs of the plan have no results here.", self.plan.jobs.len()));
        }
        if !fit.converged {
            notes.push("The search did not converge, so nothing is identified.".to_owned());
        }
        if fit.freedom > 0 && fit.misfit > fit.freedom as f64 {
            let times = (fit.misfit / fit.freedom as f64).sqrt();
            let more = if fit.is_plausible() {
                ""
            } else {
                " That is no chance: the model lacks something, or the measurements are worse, so nothing is \
                 identified."
            };
            notes.push(format!(
                "The fitted device misses the measurements by {times:.1} times their errors; intervals are as many \
                 times wider.{more}"
            ));
        }
        if let Some((cliff, mib)) = self.cliff() {
            notes.push(format!(
                "Read off, not fitted: the long write falls from {:.0} to {:.0} MiB/s after {:.0} MiB.{}",
                cliff.before,
                cliff.behind,
                cliff.after_parts * mib,
                if fit.preset.device.slc_cache.is_some() {
                    ""
                } else {
                    " The device file has no [write_booster] or [slc_cache]; with one, it can be fitted."
                }
            ));
        } else if !self.long_write(LongWrite::Again).is_empty() && fit.preset.device.slc_cache.is_some() {
            notes.push("The long write does not fall, so it did not reach the end of the cache.".to_owned());
        }
        for p in fit.params.iter().filter(|p| !p.concerned) {
            notes.push(format!("No measurement depends on {}; it was left as it was.", p.param.key()));
        }
        for c in &fit.combinations {
            notes.push(format!("Only together: {}.", c.told()));
        }
        notes.push(self.next_note());
        notes.extend(jobs_notes(&self.known, Some(self.plan.kind())));
        notes.extend(parts_note(&self.known));
        notes
    }

    /// What is known of the device, and what to do next.
    fn verdict(&self) -> Vec<String> {
        let known: Vec<&Known> = self.known.iter().filter(|k| k.verdict == Verdict::Identified).collect();
        let values: Vec<String> =
            known.iter().map(|k| format!("{} {} ({})", k.param.key(), k.param.show(k.fitted), k.interval())).collect();
        let what = match (&known[..], self.known.len()) {
            ([], all) => format!("None of {all} parameters is identified."),
            (some, all) => format!("{} of {all} parameters are identified: {}.", some.len(), values.join(", ")),
        };
        let held_out = self.rms_percent(false).map(|rms| {
            format!("On jobs that the fit did not see, the fitted device is off by {rms:.1} % (root mean square).")
        });
        [Some(what), held_out, Some(self.next_note())].into_iter().flatten().collect()
    }

    /// The parameters by verdict.
    fn verdicts(&self) -> Vec<String> {
        let of = |verdict: Verdict| {
            let value = |k: &Known| format!("{} {} ({})", k.param.key(), k.param.show(k.fitted), k.interval());
            let known: Vec<String> = self.known.iter().filter(|k| k.verdict == verdict).map(value).collect();
            let name = verdict.name();
            let name = name[..1].to_uppercase() + &name[1..];
            (!known.is_empty()).then(|| format!("{name}: {}.", known.join(", ")))
        };
        [Verdict::Identified, Verdict::Weakly, Verdict::NotIdentified].into_iter().filter_map(of).collect()
    }

    fn next_note(&self) -> String {
        if self.known.iter().all(|k| k.verdict == Verdict::Identified) {
            return "The jobs identify every parameter; none needs to be run next.".to_owned();
        }
        if !self.fit.is_plausible() {
            return "Before other jobs are run, look which of these the fitted device misses.".to_owned();
        }
        match self.next_jobs() {
            [] => "No other job would tell more; repeat these with less error.".to_owned(),
            jobs => {
                let names: Vec<&str> = jobs.iter().map(|job| &*job.name).collect();
                format!("Run next: {}.{}", names.join(", "), self.promise())
            }
        }
    }

    /// What the next jobs would leave open.
    fn promise(&self) -> String {
        let Some(advice) = &self.fit.advice else { return String::new() };
        let then = advice.then.iter().map(|(param, error)| {
            format!("{} {} (± {:.0} %)", param.key(), Verdict::of(*error).name(), (100.0 * error).min(100.0))
        });
        format!(" That would leave: {}.", then.collect::<Vec<_>>().join(", "))
    }

    /// The probe as a result document, without what depends on the machine.
    ///
    /// # Errors
    /// When a figure cannot be written in one.
    pub fn document(&self) -> Result<Document, Error> {
        let mut doc = Document::new("device_probe", format!("{} probed by fio", self.fit.device));
        doc.description =
            "Under published: what fio measured. Under simulated: what the fitted device shows. The fit saw \
                           the throughput of the jobs that are not held out; all else is predicted."
                .to_owned();
        doc.seed = self.fit.options.seed;
        doc.simulated_ios = self.fit.simulated_ios;
        for row in &self.rows {
            let setting = self.setting(row);
            let variant = if row.fitted { "fitted" } else { "held out" };
            for (metric, seen) in METRICS {
                let origin = if seen && row.fitted { Origin::Fit } else { Origin::Predicted };
                let shown = row.predicted.of(metric);
                let name = metric.in_documents(&setting);
                doc.row(setting.to_string(), variant, name, shown, origin)?.published(row.measured(metric))?;
            }
        }
        doc.charts = self.charts()?;
        doc.verdict = self.verdict().into_iter().map(Note::remark).collect();
        doc.notes = self.notes().into_iter().map(Note::remark).collect();
        doc.configuration = json!({
            "probe": {
                "target": self.plan.target,
                "error_percent": self.plan.error_percent,
                "parameters": self.known.iter().map(Known::to_json).collect::<Vec<Value>>(),
                "held_out_rms_percent": self.rms_percent(false),
                "fitted_rms_percent": self.rms_percent(true),
                "converged": self.fit.converged,
                "misfit": self.fit.misfit,
                "degrees_of_freedom": self.fit.freedom,
                "requests_per_job": self.fit.options.ios,
                "next_jobs": self.next_jobs().iter().map(|job| job.name.clone()).collect::<Vec<_>>(),
            },
            "device": serde_json::to_value(self.fit.preset.echo()).unwrap_or(Value::Null),
        });
        Ok(doc)
    }

    fn charts(&self) -> Result<Vec<Chart>, Error> {
        let mut depths: Vec<u32> = self.rows.iter().map(|row| self.setting(row).queue_depth).collect();
        depths.sort_unstable();
        depths.dedup();
        let mut charts = Vec::from_iter(self.parameter_chart()?);
        for depth in depths {
            charts.extend(self.read_chart(depth)?);
        }
        charts.extend(self.depth_chart()?);
        charts.extend(self.block_chart()?);
        for of in self.long_writes() {
            charts.extend(self.write_chart(of)?);
        }
        charts.extend(self.held_out_chart()?);
        Ok(charts)
    }

    /// Short random reads over the range.
    fn read_chart(&self, depth: u32) -> Result<Option<Chart>, Error> {
        let mut rows: Vec<(f64, &Compared)> = Vec::new();
        for row in &self.rows {
            let s = self.setting(row);
            if s.access == Access::RandomRead && s.block_count == 1 && s.queue_depth == depth {
                rows.push((f64::from(s.range_blocks) / f64::from(MIB), row));
            }
        }
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        if rows.len() < 3 {
            return Ok(None);
        }
        let title = format!("Random reads of 4 KiB, queue depth {depth}");
        let chart = Chart::new(format!("reads_{depth}"), title, ChartKind::Lines)
            .axes("range, MiB", "throughput, MiB/s")
            .x_log()
            .caption("Bars are two standard errors. The fit did not see what is held out.");
        measured_and_shown(chart, &rows).map(Some)
    }

    /// Random reads of the shortest range by one thing, `x`, of jobs that are alike in all else.
    fn sweep(&self, x: impl Fn(&Setting) -> u32, is_one: impl Fn(&Setting) -> bool) -> Vec<(f64, &Compared)> {
        let reads = self.rows.iter().map(|row| (self.setting(row), row));
        let reads: Vec<_> = reads.filter(|(s, _)| s.access == Access::RandomRead).collect();
        let shortest = reads.iter().map(|(s, _)| s.range_blocks).min();
        let of = |(s, row): &(Setting, _)| (f64::from(x(s)), *row);
        let alike = reads.iter().filter(|(s, _)| Some(s.range_blocks) == shortest && is_one(s));
        let mut rows: Vec<(f64, &Compared)> = alike.map(of).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows
    }

    /// Short random reads within the map cache over the queue depth.
    fn depth_chart(&self) -> Result<Option<Chart>, Error> {
        let rows = self.sweep(|s| s.queue_depth, |s| s.block_count == 1);
        let chart = Chart::new("depths", "Random reads of 4 KiB in the shortest range", ChartKind::Lines)
            .axes("queue depth", "throughput, MiB/s")
            .x_log()
            .caption("What more requests at once bring, until something is always busy.");
        (rows.len() > 2).then(|| measured_and_shown(chart, &rows)).transpose()
    }

    /// Random reads, one at a time, over their length.
    fn block_chart(&self) -> Result<Option<Chart>, Error> {
        let rows = self.sweep(|s| 4 * u32::from(s.block_count), |s| s.queue_depth == 1);
        let chart = Chart::new("lengths", "Random reads in the shortest range, queue depth 1", ChartKind::Lines)
            .axes("length of a read, KiB", "throughput, MiB/s")
            .x_log()
            .caption("What longer reads bring: dies and planes that work together, then channels and link.");
        (rows.len() > 2).then(|| measured_and_shown(chart, &rows)).transpose()
    }

    /// The throughput of a long write over the amount written.
    fn write_chart(&self, of: LongWrite) -> Result<Option<Chart>, Error> {
        let rows = self.long_write(of);
        if rows.is_empty() {
            return Ok(None);
        }
        let at = |row: &&Compared| {
            let s = self.setting(row);
            let Access::SequentialWrite(Stretch { part, parts, .. }) = s.access else { return 0.0 };
            f64::from(s.range_blocks) / f64::from(MIB) * (f64::from(part) + 0.5) / f64::from(parts)
        };
        let (id, title, says) = match of {
            LongWrite::Again => ("long_write", "The long sequential write".to_owned(), "A fall is the end of a cache."),
            LongWrite::Fill => (
                "fill",
                "The erased device is filled".to_owned(),
                "The first fall is the end of the cache, a second one the begin of folding.",
            ),
            LongWrite::Pause(s) => (
                "pause",
                format!("A long write with a pause of {s} s in its middle"),
                "What is fast behind the pause is what the device has emptied.",
            ),
        };
        let chart = Chart::new(id, title, ChartKind::Lines)
            .axes("written, MiB", "throughput, MiB/s")
            .caption(format!("Each point is the mean of a part, at its middle. {says}"));
        let points: Vec<_> = rows.iter().map(|r| (at(r), *r)).collect();
        measured_and_shown(chart, &points).map(Some)
    }

    fn held_out_chart(&self) -> Result<Option<Chart>, Error> {
        let rows: Vec<&Compared> = self.rows.iter().filter(|r| !r.fitted).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let name = |row: &Compared| self.plan.jobs[row.reading.job].name.clone();
        let percent = |x: f64| 100.0 * x;
        let measured: Vec<_> = rows
            .iter()
            .map(|r| {
                let (low, high) = bar_of(r.error);
                let (low, high) = (percent(low), percent(high));
                (name(r), 100.0, Some(Interval { low, high }))
            })
            .collect();
        let shown =
            rows.iter().map(|r| (name(r), percent(r.predicted.of(Metric::Throughput) / r.reading.throughput_mib_s)));
        let mut chart = Chart::new("held_out", "Jobs that the fit did not see", ChartKind::Bars)
            .axes("job", "throughput, % of the measured")
            .caption("Bars are two standard errors of the measurement.");
        chart.series_with_bars("measured", SeriesStyle::Published, measured)?;
        chart.series("predicted", SeriesStyle::Simulated, shown)?;
        Ok(Some(chart))
    }

    fn parameter_chart(&self) -> Result<Option<Chart>, Error> {
        let known: Vec<_> = self
            .known
            .iter()
            .filter(|k| k.start > 0 && !k.param.is_choice() && k.high <= WIDE * k.param.in_unit(k.fitted))
            .map(|k| {
                let percent = |x: f64| 100.0 * x / k.param.in_unit(k.start);
                let interval = Interval { low: percent(k.low), high: percent(k.high) };
                (k.param.key().to_owned(), percent(k.param.in_unit(k.fitted)), Some(interval))
            })
            .collect();
        if known.is_empty() {
            return Ok(None);
        }
        let mut chart = Chart::new("parameters", "Parameters of the fitted device", ChartKind::Bars)
            .axes("parameter", "value, % of the start")
            .caption("Bars are the stated intervals. Parameters about which nothing is known are left out.");
        chart.series_with_bars("fitted", SeriesStyle::Plain, known)?;
        Ok(Some(chart))
    }
}

/// A chart of measured rows, those held out apart, and of what the fitted device shows.
fn measured_and_shown(mut chart: Chart, rows: &[(f64, &Compared)]) -> Result<Chart, Error> {
    let bars = |fitted: bool| -> Vec<_> {
        let of = |(x, r): &(f64, &Compared)| (*x, r.reading.throughput_mib_s, Some(bar(r)));
        rows.iter().filter(|(_, r)| r.fitted == fitted).map(of).collect()
    };
    chart.series_with_bars("measured", SeriesStyle::Points, bars(true))?;
    let shown = rows.iter().map(|(x, r)| (*x, r.predicted.of(Metric::Throughput)));
    chart.series("fitted device", SeriesStyle::Simulated, shown)?;
    if rows.iter().any(|(_, r)| !r.fitted) {
        chart.series_with_bars("measured, held out", SeriesStyle::Points, bars(false))?;
    }
    Ok(chart)
}

/// Two standard errors on each side, as shares of a value, which is not below 0.
fn bar_of(error: f64) -> (f64, f64) {
    ((1.0 - BARS * error).max(0.0), 1.0 + BARS * error)
}

/// Two standard errors on each side of the measured value.
fn bar(row: &Compared) -> Interval {
    let value = row.reading.throughput_mib_s;
    let (low, high) = bar_of(row.error);
    Interval { low: value * low, high: value * high }
}
