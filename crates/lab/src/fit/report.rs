// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fit as a result document and as sentences. It adds no figure that the fit did not give.

use super::identify::{Combination, Verdict};
use super::{Fit, FittedParam};
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
    /// Its standard error as text.
    pub fn error(&self) -> String {
        percent(self.standard_error)
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
    /// Root of the mean squared difference of all rows, in percent.
    pub fn rms_percent(&self) -> f64 {
        let sum: f64 = self.rows.iter().map(|r| r.error_percent() * r.error_percent()).sum();
        (sum / self.rows.len().max(1) as f64).sqrt()
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
            let times = (self.misfit / self.freedom as f64).sqrt();
            notes.push(format!(
                "The model misses the measurements by {times:.1} times their stated errors, so either they are worse \
                 than stated or the model lacks something; take the standard errors {times:.1} times."
            ));
        }
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
        notes
    }

    fn advice_notes(&self) -> Vec<String> {
        if self.params.iter().all(|p| p.verdict == Verdict::Identified) {
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
            doc.row(case, variant, metric, row.simulated, Origin::Fit)?.published(m.value)?;
        }
        doc.notes = self.notes().into_iter().map(Note::remark).collect();
        doc.configuration = json!({
            "fit": {
                "parameters": self.params.iter().map(parameter).collect::<Vec<Value>>(),
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

fn parameter(p: &FittedParam) -> Value {
    json!({
        "key": p.param.key(),
        "start": p.param.in_unit(p.start),
        "fitted": p.param.in_unit(p.fitted),
        // Not a number in JSON when nothing is known.
        "standard_error_percent": Some(100.0 * p.standard_error).filter(|e| e.is_finite()),
        "verdict": p.verdict.name(),
    })
}
