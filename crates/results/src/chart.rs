// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure as data: what is to be drawn, not how. Knows no pixels and no colours.

use serde::{Deserialize, Serialize};

use crate::error::{Error, finite};
use crate::spread::Interval;

/// How the points of a chart are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// One group of bars for each x, one bar in it for each series.
    Bars,
    /// Straight lines through marked points.
    Lines,
    /// The value holds until the next point: distribution functions, states over time.
    Step,
    /// A row of cells for each series, the first lowest; the colour of a cell says its value.
    Heat,
}

/// What a series shows: literature or model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesStyle {
    /// Values of the literature.
    Published,
    /// Values of the model that are compared with published ones.
    Simulated,
    /// Anything else.
    Plain,
    /// As `Plain`, but no line connects its points.
    Points,
}

/// Position of a point: a word or a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum X {
    /// A position on a numeric axis.
    Number(f64),
    /// A category, placed in order of first appearance.
    Label(String),
}

impl From<f64> for X {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for X {
    fn from(value: &str) -> Self {
        Self::Label(value.to_owned())
    }
}

impl From<String> for X {
    fn from(value: String) -> Self {
        Self::Label(value)
    }
}

/// One point of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Position in the unit of the x axis.
    pub x: X,
    /// How much, in the unit of the y axis.
    pub y: f64,
    /// An interval that contains `y`, drawn as an error bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name for the legend.
    pub name: String,
    /// What the series stands for. The n-th published and the n-th simulated series of a chart are drawn as a pair.
    pub style: SeriesStyle,
    /// The points in drawing order.
    pub points: Vec<Point>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Name of the chart within its document: `throughput_by_range`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// How the points are joined.
    pub kind: ChartKind,
    /// Title of the x axis with its unit.
    pub x_label: String,
    /// Title of the y axis with its unit; of a heat map, what the colours say.
    pub y_label: String,
    /// Of a heat map, the title of its rows with its unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub series_label: String,
    /// Logarithmic x axis; without meaning where x is a label.
    pub x_log: bool,
    /// Logarithmic y axis.
    pub y_log: bool,
    /// The series in legend order.
    pub series: Vec<Series>,
    /// A sentence or two below the figure.
    pub caption: String,
}

impl Chart {
    /// A chart with linear axes and no series yet.
    pub fn new(id: impl Into<String>, title: impl Into<String>, kind: ChartKind) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            kind,
            x_label: String::new(),
            y_label: String::new(),
            series_label: String::new(),
            x_log: false,
            y_log: false,
            series: Vec::new(),
            caption: String::new(),
        }
    }

    /// Names the axes; write the unit after a comma: `read latency, µs`.
    #[must_use]
    pub fn axes(mut self, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        self.x_label = x_label.into();
        self.y_label = y_label.into();
        self
    }

    /// Says what the rows of a heat map are; write the unit after a comma.
    #[must_use]
    pub fn rows(mut self, label: impl Into<String>) -> Self {
        self.series_label = label.into();
        self
    }

    /// Makes the x axis logarithmic.
    #[must_use]
    pub fn x_log(mut self) -> Self {
        self.x_log = true;
        self
    }

    /// Makes the y axis logarithmic.
    #[must_use]
    pub fn y_log(mut self) -> Self {
        self.y_log = true;
        self
    }

    /// Sets the text below the figure.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Adds a series of `(x, y)` points.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if a coordinate is NaN or infinite; the chart is then as it was.
    pub fn series<T: Into<X>>(
        &mut self,
        name: impl Into<String>,
        style: SeriesStyle,
        points: impl IntoIterator<Item = (T, f64)>,
    ) -> Result<&mut Self, Error> {
        self.series_with_bars(name, style, points.into_iter().map(|(x, y)| (x, y, None)))
    }

    /// Adds a series of `(x, y, interval)` points, each with an error bar if it has an interval.
    pub fn series_with_bars<T: Into<X>>(
        &mut self,
        name: impl Into<String>,
        style: SeriesStyle,
        points: impl IntoIterator<Item = (T, f64, Option<Interval>)>,
    ) -> Result<&mut Self, Error> {
        let points = points.into_iter().map(|(x, y, interval)| Point { x: x.into(), y, interval }).collect();
        let series = Series { name: name.into(), style, points };
        self.check(&series)?;
        self.series.push(series);
        Ok(self)
    }

    fn check(&self, series: &Series) -> Result<(), Error> {
        for (i, point) in series.points.iter().enumerate() {
            let what = |axis: &str| format!("{axis} of point {i}, series `{}`, chart `{}`", series.name, self.id);
            if let X::Number(x) = point.x {
                finite(x, || what("x"))?;
            }
            finite(point.y, || what("y"))?;
            point.interval.map_or(Ok(()), |i| i.check(point.y, &what))?;
        }
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        self.series.iter().try_for_each(|series| self.check(series))
    }
}
