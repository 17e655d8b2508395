// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heat maps of a crossed study: figures over two factors whose levels are numbers.

use super::{Added, Answer, name};
use readpath_config::study::Factor;
use readpath_results::{Chart, ChartKind, Document, SeriesStyle, X};

/// Maps of a figure at most, one for each combination of the other factors; if there are more, one of their means.
const MOST_MAPS: u64 = 4;
/// Cells across or upward at most.
const MOST_LEVELS: usize = 40;

impl Answer<'_> {
    /// Maps of each figure over the first two factors with numbers, the longer one across.
    pub(super) fn maps(&self, doc: &mut Document) -> Added {
        let factors = &self.plan.study.factors;
        let numbers = |&factor: &usize| {
            let places = self.places(factor).0;
            (2..=MOST_LEVELS).contains(&places.len()) && matches!(places[0], X::Number(_))
        };
        let mut numeric = (0..factors.len()).filter(numbers);
        let (Some(first), Some(second)) = (numeric.next(), numeric.next()) else { return Ok(()) };
        let (across, upward) =
            if factors[first].steps() < factors[second].steps() { (second, first) } else { (first, second) };
        let others: Vec<usize> = (0..factors.len()).filter(|i| ![across, upward].contains(i)).collect();
        let maps: u64 = others.iter().map(|&i| factors[i].steps()).fold(1, u64::saturating_mul);
        let means = maps > MOST_MAPS;
        for number in 0..self.columns.shown.len() {
            let mut named: Vec<String> = Vec::new();
            for index in 0..self.columns.settings.len() {
                let name = self.others(&others, index, means);
                if !named.contains(&name) {
                    doc.charts.push(self.map(number, (across, upward), &others, &name, means, named.len())?);
                    named.push(name);
                }
            }
        }
        Ok(())
    }

    /// The settings of the other factors at a point; empty if maps are means over them.
    fn others(&self, others: &[usize], index: usize, means: bool) -> String {
        let settings = others.iter().filter(|_| !means).map(|&i| self.setting(i, index));
        settings.collect::<Vec<_>>().join(", ")
    }

    fn map(
        &self,
        number: usize,
        (across, upward): (usize, usize),
        others: &[usize],
        of: &str,
        means: bool,
        place: usize,
    ) -> Result<Chart, readpath_results::Error> {
        let factors: &[Factor] = &self.plan.study.factors;
        let column = &self.columns.shown[number];
        let (x, y) = (self.places(across).0, self.places(upward).0);
        let mut sums = vec![(0.0, 0u64); x.len() * y.len()];
        for (index, value) in column.values.iter().enumerate() {
            if self.others(others, index, means) == of {
                let cell = &mut sums[self.level(upward, index) * x.len() + self.level(across, index)];
                *cell = (cell.0 + value, cell.1 + 1);
            }
        }
        let whose = if of.is_empty() { String::new() } else { format!(", {of}") };
        let title = format!("{} by {} and {}{whose}", column.title(), name(&factors[across]), name(&factors[upward]));
        let caption = match (means, others.is_empty()) {
            (true, _) => "Mean over all other factors.",
            (false, true) => "A cell for each point.",
            (false, false) => "A cell for each point with these other factors.",
        };
        let mut chart = Chart::new(format!("map_{number}_{place}"), title, ChartKind::Heat)
            .axes(name(&factors[across]), format!("{}, {}", column.title(), column.metric.unit()))
            .rows(name(&factors[upward]))
            .caption(caption);
        for (level, sums) in sums.chunks(x.len()).enumerate() {
            let row = match &y[level] {
                X::Number(number) => number.to_string(),
                X::Label(label) => label.clone(),
            };
            let cells = x.iter().zip(sums).filter(|(_, (_, n))| *n > 0);
            chart.series(row, SeriesStyle::Plain, cells.map(|(x, (sum, n))| (x.clone(), sum / *n as f64)))?;
        }
        Ok(chart)
    }
}
