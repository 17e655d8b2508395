// SPDX-License-Identifier: MIT OR Apache-2.0
//! One number of an experiment, and what it may be compared with. Knows nothing of the document around it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::error::{Error, finite};
use crate::metric::Metric;
use crate::spread::{Difference, Sample};

/// What a simulated value may be taken as evidence for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The published value was used to choose a parameter of the model: agreement is no evidence.
    Fit,
    /// No parameter was chosen with the published value in view: agreement is evidence.
    Predicted,
    /// Not simulated: timed on the machine that ran the program, or counted in a recorded trace.
    Measured,
}

impl Origin {
    /// The word used in the document: `fit`, `predicted` or `measured`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Predicted => "predicted",
            Self::Measured => "measured",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One value of one metric, for one case and one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload or its parameter: `16 GB`.
    #[serde(flatten)]
    pub case: Case,
    /// The variant that was compared: `HPB dcm`. Empty if there was only one.
    pub variant: String,
    /// The metric, which has the unit of both values.
    #[serde(flatten)]
    pub metric: Metric,
    /// The value in the literature, in the unit of the metric.
    pub published: Option<f64>,
    /// The value that the model gave, in the unit of the metric.
    pub simulated: f64,
    /// `100 · (simulated − published) / |published|`; none if nothing was published or zero was.
    pub error_percent: Option<f64>,
    /// Whether agreement of the two values is evidence.
    pub origin: Origin,
    /// The values behind `simulated` if it is a mean over several seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// Difference from the base variant, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

impl Row {
    /// A row without a published value.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if `simulated` is NaN or infinite.
    pub fn new(
        case: impl Into<Case>,
        variant: impl Into<String>,
        metric: Metric,
        simulated: f64,
        origin: Origin,
    ) -> Result<Self, Error> {
        let row = Self {
            case: case.into(),
            variant: variant.into(),
            metric,
            published: None,
            simulated,
            error_percent: None,
            origin,
            sample: None,
            difference: None,
        };
        finite(simulated, || row.what("simulated"))?;
        Ok(row)
    }

    /// Adds the published value, in the unit of the row, and the error of the simulated one.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if `value`, or the error that follows from it, is NaN or infinite.
    pub fn published(&mut self, value: f64) -> Result<&mut Self, Error> {
        finite(value, || self.what("published"))?;
        let error = error_percent(value, self.simulated);
        if let Some(error) = error {
            finite(error, || self.what("error_percent"))?;
        }
        self.published = Some(value);
        self.error_percent = error;
        Ok(self)
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        finite(self.simulated, || self.what("simulated"))?;
        if let Some(published) = self.published {
            finite(published, || self.what("published"))?;
        }
        if let Some(error) = self.error_percent {
            finite(error, || self.what("error_percent"))?;
        }
        let what = |field: &str| self.what(field);
        self.sample.as_ref().map_or(Ok(()), |s| s.validate(self.simulated, &what))?;
        self.difference.as_ref().map_or(Ok(()), |d| d.validate(&what))?;
        // Other writers may round the error.
        let good = match (self.published.and_then(|p| error_percent(p, self.simulated)), self.error_percent) {
            (None, None) => true,
            (Some(want), Some(got)) => (want - got).abs() <= 1e-6 * want.abs().max(1.0),
            _ => false,
        };
        if good { Ok(()) } else { Err(Error::WrongErrorPercent { what: self.what("row") }) }
    }

    fn what(&self, field: &str) -> String {
        format!("{field} of case `{}`, variant `{}`, metric `{}`", self.case, self.variant, self.metric.name())
    }
}

fn error_percent(published: f64, simulated: f64) -> Option<f64> {
    (published != 0.0).then(|| 100.0 * (simulated - published) / published.abs())
}
