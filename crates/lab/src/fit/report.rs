// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fit as a result document and as sentences. It adds no figure that the fit did not give.

use super::identify::{Combination, Verdict};
use super::params::Jobs;
use super::{Fit, FittedParam, FittedRow, Known};
use readpath_results::{Document, Error, Note, Origin};
use serde_json::{Value, json};

/// A standard error in percent; near its own size it is no longer a figure.
pub(super) fn percent(error: f64) -> String {
    match 100.0 * error {
        p if p < 9.995 => format!("{p:.2} %"),
        p if p < 95.0 => format!("{p:.0} %"),
        _ => "unknown".to_owned(),
    }
}

impl FittedParam {
    /// Its standard error as text; a choice has none.
    pub fn error(&self) -> String {
        if self.concerned && !self.param.is_choice() { percent(self.standard_error) } else { "-".to_owned() }
    }
}

impl Combination {
    /// The sum, its value and its standard error as they are shown.
    pub fn told(&self) -> String {
        format!("{} = {} ± {}", self.sum(), short(self.value), percent(self.standard_error))
    }

    /// The sum as text.
    pub fn sum(&self) -> String {
        let mut sum = String::new();
        for (i, (param, factor)) in self.parts.iter().enumerate() {
            match (i, *factor < 0.0) {
                (0, _) => {}
                (_, true) => sum.push_str(" - "),
                (_, false) => sum.push_str(" + "),
            }
            if (factor.abs() - 1.0).abs() >= 0.005 {
                sum.push_str(&format!("{} x ", short(factor.abs())));
            }
            sum.push_str(param.key());
        }
        sum
    }
}

/// Three digits.
fn short(x: f64) -> String {
    match x {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x if x >= 0.1 => format!("{x:.2}"),
        x => format!("{x:.4}"),
    }
}

impl Fit {
    /// Root of the mean squared difference in percent, of the rows that the fit saw or of those held out; nothing if
    /// there are none.
    pub fn rms_percent(&self, seen: bool) -> Option<f64> {
        let of = self.rows.iter().filter(|r| r.measurement.is_seen() == seen).map(FittedRow::error_percent);
        let (count, sum) = of.fold((0, 0.0), |(n, sum), e| (n + 1, sum + e * e));
        (count > 0).then(|| (sum / f64::from(count)).sqrt())
    }

    /// What there is to say of the fit beyond its tables.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.converged {
            notes.push(format!(
                "The search did not converge in {} steps: the fitted values are the best that were found, their \
                 standard errors are rough, and nothing is identified.",
                self.iterations
            ));
        }
        if self.freedom > 0 && self.misfit > 4.0 * self.freedom as f64 {
            notes.push(format!(
                "The model misses the measurements by {:.1} times their stated errors, so either they are worse than \
                 stated or the model lacks something; intervals are as many times wider.",
                self.excess()
            ));
        }
        notes.push(self.held_out_note());
        for p in self.params.iter().filter(|p| !p.concerned) {
            notes.push(format!("No measurement depends on {}; it was left as it was.", p.param.key()));
        }
        for p in self.params.iter().filter(|p| p.at_bound && p.verdict != Verdict::Identified) {
            notes.push(format!("{} ended at the edge of what is possible.", p.param.key()));
        }
        for c in &self.combinations {
            notes.push(format!("Only together: {}.", c.told()));
        }
        for c in &self.correlations {
            let what = if c.value > 0.0 { "rise and fall together" } else { "make up for each other" };
            notes.push(format!("{} and {} {what} (correlation {:.2}).", c.a.key(), c.b.key(), c.value));
        }
        notes.extend(self.advice_notes());
        notes.extend(jobs_notes(&self.known(), None));
        notes.extend(parts_note(&self.known()));
        notes
    }

    fn held_out_note(&self) -> String {
        let (all, held) = (self.rows.len(), self.rows.iter().filter(|r| !r.measurement.is_seen()));
        let errors: Vec<f64> = held.map(|r| r.error_percent().abs()).collect();
        match self.rms_percent(false) {
            Some(rms) => format!(
                "{} of {all} rows were held out of the fit. It predicts them with an error of {rms:.2} % (root mean \
                 square), at most {:.2} %.",
                errors.len(),
                errors.iter().fold(0.0, |a: f64, b| a.max(*b)),
            ),
            None => format!(
                "No row of {all} was held out of the fit, so nothing here tests what it predicts. A column held_out \
                 can say which to hold out."
            ),
        }
    }

    fn advice_notes(&self) -> Vec<String> {
        if self.known().iter().all(|p| p.verdict == Verdict::Identified) {
            return vec!["The measurements identify every parameter.".to_owned()];
        }
        let Some(advice) = self.advice.as_ref().filter(|_| self.options.advice) else {
            return match self.options.advice {
                true => vec![
                    "No further measurement of this kind would tell more; only smaller errors or more rows of those \
                     made."
                        .to_owned(),
                ],
                false => Vec::new(),
            };
        };
        let rows = advice
            .measurements
            .iter()
            .map(|(setting, _)| format!("{setting}, HPB {}", if setting.hpb { "on" } else { "off" }));
        let then = advice.then.iter().map(|(param, error)| {
            let verdict = Verdict::of(*error).name();
            format!("{} {verdict} (± {})", param.key(), percent(*error))
        });
        let enough = advice.then.iter().all(|(_, error)| Verdict::of(*error) == Verdict::Identified);
        let rest = if enough { "" } else { " What remains needs smaller errors or more rows." };
        vec![format!(
            "To learn more, measure throughput, to {} %, at: {}. That would leave: {}.{rest}",
            self.options.candidate_error_percent,
            rows.collect::<Vec<_>>().join("; "),
            then.collect::<Vec<_>>().join(", ")
        )]
    }

    /// The fit as a result document, without what depends on the machine. `source` names the measurements.
    ///
    /// # Errors
    /// When a figure cannot be written in one.
    pub fn document(&self, source: &str) -> Result<Document, Error> {
        let mut doc = Document::new("device_fit", format!("{} fitted to {source}", self.device));
        doc.description = "Measured values beside those of the fitted device.".to_owned();
        doc.seed = self.options.seed;
        doc.simulated_ios = self.simulated_ios;
        for row in &self.rows {
            let m = &row.measurement;
            let variant = if m.setting.hpb { "HPB dcm" } else { "HPB off" };
            let metric = m.metric.in_documents(&m.setting);
            let mut case = m.setting.to_string();
            // The line distinguishes repeated measurements.
            if doc.find(&case, variant, &metric).is_some() {
                case = format!("{case} (line {})", m.line);
            }
            let origin = if m.is_seen() { Origin::Fit } else { Origin::Predicted };
            doc.row(case, variant, metric, row.simulated, origin)?.published(m.value)?;
        }
        doc.notes = self.notes().into_iter().map(Note::remark).collect();
        let known = self.known();
        let parameters: Vec<Value> = self.params.iter().zip(&known).map(|(p, known)| parameter(p, known)).collect();
        doc.configuration = json!({
            "fit": {
                "parameters": parameters,
                "held_out_rows": self.rows.iter().filter(|row| !row.measurement.is_seen()).count(),
                "held_out_rms_percent": self.rms_percent(false),
                "fitted_rms_percent": self.rms_percent(true),
                "iterations": self.iterations,
                "converged": self.converged,
                "misfit_before": self.misfit_before,
                "misfit": self.misfit,
                "degrees_of_freedom": self.freedom,
                "requests_per_row": self.options.ios,
            },
            "device": serde_json::to_value(self.preset.echo()).unwrap_or(Value::Null),
        });
        Ok(doc)
    }
}

fn parameter(p: &FittedParam, known: &Known) -> Value {
    let mut value = known.to_json();
    // Not a number in JSON when nothing is known, or of a choice.
    let error = Some(100.0 * p.standard_error).filter(|e| e.is_finite() && !p.param.is_choice());
    value["standard_error_percent"] = json!(error);
    value
}

impl Known {
    /// As documents have it.
    pub(crate) fn to_json(&self) -> Value {
        let verdict = self.verdict.name();
        if self.param.is_choice() {
            let [start, fitted] = [self.start, self.fitted].map(|value| self.param.show(value));
            let possible: Vec<String> = self.possible.iter().map(|value| self.param.show(*value)).collect();
            return json!({
                "key": self.param.key(), "start": start, "fitted": fitted, "possible": possible, "verdict": verdict,
            });
        }
        json!({
            "key": self.param.key(),
            "start": self.param.in_unit(self.start),
            "fitted": self.param.in_unit(self.fitted),
            // Not numbers in JSON when nothing is known.
            "low": Some(self.low).filter(|_| self.high.is_finite()),
            "high": Some(self.high).filter(|x| x.is_finite()),
            "verdict": verdict,
        })
    }
}

/// What is known of the two parts of a cache if neither is known by itself.
pub(crate) fn parts_note(known: &[Known]) -> Option<String> {
    let open = known.iter().filter(|k| k.param.is_part_of_cache() && k.verdict != Verdict::Identified);
    let [a, b] = open.collect::<Vec<_>>()[..] else { return None };
    let (keys, sum) = ([a.param.key(), b.param.key()].join(" and "), a.fitted + b.fitted);
    Some(format!("Of {keys} a write shows only the sum, {sum} MiB here; no job of a probe tells them apart."))
}

/// Which jobs of a probe would tell what is not identified, beyond those that were made.
pub(crate) fn jobs_notes(known: &[Known], made: Option<Jobs>) -> Vec<String> {
    let open = known.iter().filter(|k| k.verdict != Verdict::Identified);
    let open: Vec<(Option<Jobs>, &str)> = open.map(|k| (k.param.jobs(), k.param.key())).collect();
    let note = |jobs: Jobs| {
        let keys: Vec<&str> = open.iter().filter(|(of, _)| *of == Some(jobs)).map(|(_, key)| *key).collect();
        (!keys.is_empty() && made < Some(jobs)).then(|| format!("Jobs that tell {}: {}.", keys.join(", "), jobs.told()))
    };
    [Jobs::Reads, Jobs::Writes, Jobs::Fill].into_iter().filter_map(note).collect()
}
