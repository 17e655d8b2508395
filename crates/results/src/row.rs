// SPDX-License-Identifier: MIT OR Apache-2.0
//! One number of an experiment, and what it may be compared with. Knows nothing of the document around it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::error::{Error, finite};
use crate::metric::{CACHED_WRITE, FOLDING_FROM, Metric};
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

/// What the error of a simulated value says beside a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// A parameter was chosen with the published value in view.
    Fit,
    /// A prediction that is near enough.
    Holds,
    /// A prediction that is too far off.
    DoesNotHold,
}

impl Standing {
    /// A prediction further from the published value does not hold.
    pub const MOST_PERCENT: f64 = 10.0;
    /// The same of a size after which a long write changes its speed.
    pub const MOST_PERCENT_OF_SIZES: f64 = 20.0;

    /// The word for it: `fit`, `predicted` or `does not hold`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Holds => "predicted",
            Self::DoesNotHold => "does not hold",
        }
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
    /// Why a prediction does not hold, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
            reason: None,
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

    /// What the error says; none without a published value, and for what was measured.
    pub fn standing(&self) -> Option<Standing> {
        let error = self.error_percent?;
        let is_size = [CACHED_WRITE, FOLDING_FROM].contains(&self.metric);
        let most = if is_size { Standing::MOST_PERCENT_OF_SIZES } else { Standing::MOST_PERCENT };
        match self.origin {
            Origin::Fit => Some(Standing::Fit),
            Origin::Predicted if error.abs() <= most => Some(Standing::Holds),
            Origin::Predicted => Some(Standing::DoesNotHold),
            Origin::Measured => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::DIRECT_WRITE_THROUGHPUT;

    #[test]
    fn a_size_may_be_off_by_twice_as_much() {
        let of = |metric: &Metric, origin, simulated| {
            let mut row = Row::new("c", "v", metric.clone(), simulated, origin).expect("a row");
            row.published(100.0).expect("a value");
            row.standing().map(Standing::as_str)
        };
        for (simulated, speed, size) in [
            (90.0, "predicted", "predicted"),
            (89.9, "does not hold", "predicted"),
            (120.0, "does not hold", "predicted"),
            (120.1, "does not hold", "does not hold"),
        ] {
            assert_eq!(of(&DIRECT_WRITE_THROUGHPUT, Origin::Predicted, simulated), Some(speed), "{simulated}");
            assert_eq!(of(&FOLDING_FROM, Origin::Predicted, simulated), Some(size), "{simulated}");
            assert_eq!(of(&CACHED_WRITE, Origin::Predicted, simulated), Some(size), "{simulated}");
        }
        assert_eq!(of(&DIRECT_WRITE_THROUGHPUT, Origin::Fit, 150.0), Some("fit"));
        assert_eq!(of(&DIRECT_WRITE_THROUGHPUT, Origin::Measured, 150.0), None);
        let row = Row::new("c", "v", DIRECT_WRITE_THROUGHPUT, 1.0, Origin::Predicted).expect("a row");
        assert_eq!(row.standing(), None, "nothing was published");
    }
}
