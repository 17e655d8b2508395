// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of the page that compares over seeds: a table for each case. Knows lines, not what made them.

use std::fmt::Write;

use readpath_results::Document;

use super::{Page, minus};
use crate::comparison::{self, Line};
use crate::pivot::{KEY_METRICS, TableSpec};
use crate::text;

/// More lines than this before the first figure are folded.
const MOST_LINES: usize = 40;

impl Page {
    /// Means over seeds and their differences, if the document has them: the most important ones, and a folded table of
    /// all if there are many.
    pub(super) fn comparison(&mut self, document: &Document) {
        let lines = comparison::lines(document, &TableSpec::new());
        if lines.is_empty() {
            return;
        }
        self.put("<section>\n<h2>Comparison</h2>\n");
        if lines.len() <= MOST_LINES {
            self.compared_cases(document, &lines);
        } else {
            let key = KEY_METRICS.iter().fold(TableSpec::new(), |spec, metric| spec.column(metric, metric.label()));
            let main = comparison::lines(document, &key);
            if main.len() <= MOST_LINES {
                self.compared_cases(document, &main);
            }
            let _ = writeln!(self.out, "<details>\n<summary>All {} means and differences</summary>", lines.len());
            self.compared_cases(document, &lines);
            self.put("</details>\n");
        }
        self.put("<p class=\"meta\">± is half of a 95 % confidence interval; the notes say what it covers.</p>\n");
        self.put("</section>\n");
    }

    fn compared_cases(&mut self, document: &Document, lines: &[Line<'_>]) {
        let base = comparison::base(document).map(text::html);
        for case in lines.chunk_by(|_, next| next.case_lines == 0) {
            let against = base.as_ref().map(|b| format!(", and differences from {b}")).unwrap_or_default();
            self.open_table(&format!("{}: means over the seeds{against}", text::html(case[0].case)));
            self.put("<thead><tr>");
            self.put("<th class=\"name\" scope=\"col\">Metric</th><th class=\"name\" scope=\"col\">Variant</th>");
            self.put("<th scope=\"col\">mean</th><th scope=\"col\">±</th>");
            if base.is_some() {
                for name in ["difference", "±", "%", "±"] {
                    let _ = write!(self.out, "<th scope=\"col\">{name}</th>");
                }
                self.put("<th class=\"name\" scope=\"col\">finding</th>");
            }
            self.put("</tr></thead>\n");
            for metric in case.chunk_by(|_, next| next.metric_lines == 0) {
                self.put("<tbody>\n");
                metric.iter().for_each(|line| self.compared(line, base.is_some()));
                self.put("</tbody>\n");
            }
            self.close_table();
        }
    }

    fn compared(&mut self, line: &Line<'_>, based: bool) {
        self.put("<tr>");
        if line.metric_lines > 0 {
            let (span, metric) = (line.metric_lines, text::html(&line.metric));
            let _ = write!(self.out, "<th class=\"name\" scope=\"rowgroup\" rowspan=\"{span}\">{metric}</th>");
        }
        let (variant, mean) = (text::html(line.variant), minus(&line.mean.value));
        let _ = write!(
            self.out,
            "<th class=\"name\" scope=\"row\">{variant}</th><td class=\"sim\">{mean}</td><td>{}</td>",
            line.mean.half
        );
        if based {
            for figure in [&line.difference, &line.percent] {
                let _ = write!(self.out, "<td>{}</td><td>{}</td>", minus(&figure.value), figure.half);
            }
            let _ = write!(self.out, "<td class=\"name\">{}</td>", line.finding);
        }
        self.put("</tr>\n");
    }
}
