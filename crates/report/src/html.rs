// SPDX-License-Identifier: MIT OR Apache-2.0
//! One self-contained page: opens offline, loads nothing, prints well. Knows documents, not their making.
//!
//! The page is well-formed XML but for its first line. Its policy forbids every load, and every script but the one that
//! saves figures; so even a mistake in escaping could neither fetch nor run anything. Without that script only its
//! buttons are missing. Figures are SVG drawn by [`crate::svg`], twice: for a page and for a telephone; a media
//! query shows one of them. Tables whose cells depend on each other make up most of it, so a template language would
//! spare no code.

mod compared;
mod figures;

use std::collections::HashSet;
use std::fmt::Write;

use readpath_results::{Document, Note, NoteKind, Origin, Row, Standing};

use crate::pivot::{LEGEND, Line, Pivot, TableSpec, main_columns, mark};
use crate::{Error, comparison, findings, format, style, text};

/// Splits a document if it has cases with published values and many more without: the latter need fewer columns.
fn parted(document: &Document) -> Option<[Document; 2]> {
    let compared: HashSet<&str> = document.rows.iter().filter(|r| r.published.is_some()).map(|r| &*r.case).collect();
    let part = |is_compared: bool| {
        let mut part = Document::new(&document.experiment, &document.title);
        part.rows = document.rows.iter().filter(|r| compared.contains(&*r.case) == is_compared).cloned().collect();
        part
    };
    let parts = [part(true), part(false)];
    let [compared, others] = parts.each_ref().map(|part| part.rows.len());
    (compared > 0 && others > compared).then_some(parts)
}

/// Columns of a table that has a line for each metric.
const MOST_VARIANTS: usize = 8;

/// The document as one HTML page.
pub fn page(document: &Document) -> Result<String, Error> {
    let mut page = Page { out: String::new(), tables: 0, figures: 0 };
    page.head(&document.title);
    page.document(document)?;
    Ok(page.end())
}

/// Several documents as one HTML page, in order, below a list of them.
pub fn pages(title: &str, documents: &[Document]) -> Result<String, Error> {
    let mut page = Page { out: String::new(), tables: 0, figures: 0 };
    page.head(title);
    let _ = writeln!(page.out, "<h1>{}</h1>\n<ul>", text::html(title));
    for (n, document) in documents.iter().enumerate() {
        let _ = writeln!(page.out, "<li><a href=\"#experiment{n}\">{}</a></li>", text::html(&document.title));
    }
    page.put("</ul>\n");
    for (n, document) in documents.iter().enumerate() {
        let _ = writeln!(page.out, "<article id=\"experiment{n}\">");
        page.document(document)?;
        page.put("</article>\n");
    }
    Ok(page.end())
}

struct Page {
    out: String,
    tables: usize,
    figures: usize,
}

impl Page {
    fn put(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
    }

    fn head(&mut self, title: &str) {
        let title = text::html(title);
        let _ = write!(
            self.out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src '{}'\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <title>{title}</title>\n<style id=\"light\">\n{}</style>\n<style>\n{}{}</style>\n\
             <style id=\"chart\">\n{}</style>\n</head>\n<body>\n<main>\n",
            figures::SCRIPT_HASH,
            style::LIGHT,
            style::DARK,
            style::PAGE,
            style::CHART
        );
    }

    fn end(mut self) -> String {
        self.put("</main>\n");
        self.script();
        self.put("</body>\n</html>\n");
        self.out
    }

    fn document(&mut self, document: &Document) -> Result<(), Error> {
        let pivot = Pivot::new(document, &TableSpec::new());
        self.answer(document);
        let (first, others) = document.charts.split_at(document.charts.len().min(1));
        first.iter().try_for_each(|chart| self.figure(chart))?;
        self.description(document);
        // Verdicts on claims are notes for programs, and findings for readers.
        let (claims, notes): (Vec<&Note>, Vec<&Note>) =
            document.notes.iter().partition(|note| matches!(note.kind, NoteKind::Claim | NoteKind::Advice));
        self.findings(&pivot, &claims);
        self.why_not(document);
        self.figures(others)?;
        self.comparison(document);
        self.results(document, &pivot);
        self.list("Notes", "ul", &notes);
        self.list("Published values come from", "ol", &document.citations);
        self.provenance(document);
        Ok(())
    }

    /// The heading and the verdict.
    fn answer(&mut self, document: &Document) {
        let _ = writeln!(self.out, "<h1>{}</h1>", text::html(&document.title));
        let name = text::html(&document.experiment);
        let _ = write!(self.out, "<p class=\"meta\"><span>Experiment {name}</span>");
        // Counts of a recording have neither I/Os nor a seed.
        if document.simulated_ios > 0 {
            let ios = format::grouped(document.simulated_ios as f64, 0);
            let _ = write!(self.out, " <span>{ios} simulated I/Os</span> <span>seed {}</span>", document.seed);
        }
        self.put("</p>\n");
        if !document.verdict.is_empty() {
            self.put("<div class=\"verdict\">\n");
            for note in &document.verdict {
                let _ = writeln!(self.out, "<p>{}</p>", text::html(&note.text));
            }
            self.put("</div>\n");
        }
    }

    fn description(&mut self, document: &Document) {
        for paragraph in document.description.split("\n\n").filter(|p| !p.trim().is_empty()) {
            let _ = writeln!(self.out, "<p>{}</p>", text::html(paragraph.trim()));
        }
    }

    /// Opens a table that scrolls sideways where it must; a keyboard can reach it.
    fn open_table(&mut self, caption: &str) {
        self.tables += 1;
        let n = self.tables;
        let _ = write!(
            self.out,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"table{n}\">\n\
             <table>\n<caption id=\"table{n}\">{caption}</caption>\n"
        );
    }

    fn close_table(&mut self) {
        self.put("</table>\n</div>\n");
    }

    fn findings(&mut self, pivot: &Pivot<'_>, claims: &[&Note]) {
        let agreement = findings::agreement(pivot);
        if agreement.is_empty() && claims.is_empty() {
            return;
        }
        self.put("<section>\n<h2>Key findings</h2>\n");
        if !claims.is_empty() {
            self.put("<ul>\n");
            for claim in claims {
                let _ = writeln!(self.out, "<li>{}</li>", text::html(&claim.to_string()));
            }
            self.put("</ul>\n");
        }
        if !agreement.is_empty() {
            self.open_table("Agreement with published values");
            self.put(
                "<thead><tr><th class=\"name\" scope=\"col\">Metric</th><th class=\"name\" scope=\"col\">Origin</th>\
                 <th scope=\"col\">values</th><th scope=\"col\">hold</th>\
                 <th scope=\"col\">mean error, %</th><th scope=\"col\">largest error, \
                 %</th>\
                 <th class=\"name\" scope=\"col\">where</th></tr></thead>\n<tbody>\n",
            );
            for of in agreement {
                let place: Vec<&str> =
                    [&*of.worst.case, &*of.worst.variant].into_iter().filter(|s| !s.is_empty()).collect();
                let mean = format::percent(of.mean_percent);
                let _ = writeln!(
                    self.out,
                    "<tr><th class=\"name\" scope=\"row\">{}</th><td class=\"name\">{}</td><td>{}</td><td>{}</td>\
                     <td>{}</td><td>{}</td><td class=\"name\">{}</td></tr>",
                    text::html(of.metric),
                    of.origin,
                    of.values,
                    of.hold.map_or_else(none, |hold| hold.to_string()),
                    mean.trim_start_matches('+'),
                    minus(&format::percent(of.worst_percent)),
                    text::html(&place.join(", "))
                );
            }
            self.put("</tbody>\n");
            self.close_table();
            self.put("<p class=\"meta\">The mean is taken over the sizes of the errors, without their signs.</p>\n");
        }
        self.put("</section>\n");
    }

    /// The predictions that do not hold, and why.
    fn why_not(&mut self, document: &Document) {
        let all = findings::why_not(document);
        if all.is_empty() {
            return;
        }
        self.put("<section>\n<h2>What does not hold</h2>\n<ul>\n");
        for (reason, rows) in all {
            let _ = writeln!(self.out, "<li><strong>{}</strong>: {}</li>", text::html(&rows), text::html(reason));
        }
        self.put("</ul>\n</section>\n");
    }

    /// Every variant as a multiple of the first one, folded.
    fn effects(&mut self, pivot: &Pivot<'_>) {
        let effects = findings::effects(pivot);
        let Some(first) = effects.first() else { return };
        let _ = writeln!(self.out, "<details>\n<summary>As multiples of {}</summary>", text::html(first.baseline));
        for of in effects {
            let caption = format!("{} as a multiple of {}", text::html(of.metric), text::html(of.baseline));
            self.open_table(&caption);
            let published = of.lines.iter().any(|line| line.published.is_some());
            self.put(
                "<thead><tr><th class=\"name\" scope=\"col\">Case</th><th class=\"name\" scope=\"col\">Variant</th>",
            );
            if published {
                self.put("<th scope=\"col\">published</th>");
            }
            self.put("<th scope=\"col\">simulated</th></tr></thead>\n<tbody>\n");
            for line in &of.lines {
                let _ = write!(
                    self.out,
                    "<tr><th class=\"name\" scope=\"row\">{}</th><td class=\"name\">{}</td>",
                    text::html(line.case),
                    text::html(line.variant)
                );
                if published {
                    let _ = write!(self.out, "<td>{}</td>", factor(line.published));
                }
                let _ = writeln!(self.out, "<td class=\"sim\">{}</td></tr>", factor(Some(line.simulated)));
            }
            self.put("</tbody>\n");
            self.close_table();
        }
        self.put("</details>\n");
    }

    fn results(&mut self, document: &Document, pivot: &Pivot<'_>) {
        self.put("<section>\n<h2>Results</h2>\n");
        if pivot.lines.is_empty() {
            self.put("<p>The document has no rows.</p>\n</section>\n");
            return;
        }
        match main_columns(document, pivot) {
            None => match parted(document) {
                None => self.table("All values", pivot),
                Some([compared, others]) => {
                    self.table("Values beside published ones", &Pivot::new(&compared, &TableSpec::new()));
                    self.table("Values of other cases", &Pivot::new(&others, &TableSpec::new()));
                }
            },
            Some(spec) => {
                self.table("Main values", &Pivot::new(document, &spec));
                self.by_case(pivot);
            }
        }
        self.legend(document);
        // Where the document has differences, they say the same.
        if !comparison::has_any(document) {
            self.effects(pivot);
        }
        self.put("</section>\n");
    }

    /// The legend of the marks in use, and which values were not simulated.
    fn legend(&mut self, document: &Document) {
        let says = |origin: Origin| {
            let of = |row: &&Row| row.origin == origin && (row.published.is_some() || origin == Origin::Measured);
            document.rows.iter().any(|row| of(&row))
        };
        let fails = document.rows.iter().any(|row| row.standing() == Some(Standing::DoesNotHold));
        let said = [says(Origin::Fit), says(Origin::Predicted), fails, says(Origin::Measured)];
        if !said.contains(&true) {
            return;
        }
        self.put("<dl class=\"legend\">\n");
        for ((word, meaning), _) in LEGEND.iter().zip(said).filter(|(_, said)| *said) {
            let _ = writeln!(self.out, "<dt>{word}</dt><dd>{meaning}</dd>");
        }
        self.put("</dl>\n");
    }

    /// The values that are too wide for one table: a table for each case, a line for each metric, a column for each
    /// variant.
    fn by_case(&mut self, pivot: &Pivot<'_>) {
        self.put("<details>\n<summary>All values, case by case</summary>\n");
        let mut at = 0;
        while at < pivot.lines.len() {
            let case = &pivot.lines[at..at + pivot.lines[at].case_lines];
            at += case.len();
            for variants in case.chunks(MOST_VARIANTS) {
                self.open_table(&text::html(case[0].case));
                self.put("<thead><tr><th class=\"name\" scope=\"col\">Metric</th>");
                for line in variants {
                    let name = if line.variant.is_empty() { "value" } else { line.variant };
                    let _ = write!(self.out, "<th scope=\"col\">{}</th>", text::html(name));
                }
                self.put("</tr></thead>\n<tbody>\n");
                for (i, column) in pivot.columns.iter().enumerate() {
                    if variants.iter().all(|line| line.cells[i].is_none()) {
                        continue;
                    }
                    let _ = write!(
                        self.out,
                        "<tr><th class=\"name metric\" scope=\"row\">{}</th>",
                        text::html(&column.heading())
                    );
                    for line in variants {
                        let value = line.cells[i].map_or_else(none, |row| minus(&column.number(row.simulated)));
                        let _ = write!(self.out, "<td>{value}</td>");
                    }
                    self.put("</tr>\n");
                }
                self.put("</tbody>\n");
                self.close_table();
            }
        }
        self.put("</details>\n");
    }

    fn table(&mut self, caption: &str, pivot: &Pivot<'_>) {
        let variants = pivot.has_variants();
        self.open_table(caption);
        let span = if pivot.has_compared() { " rowspan=\"2\"" } else { "" };
        let _ = write!(self.out, "<thead>\n<tr><th class=\"name\" scope=\"col\"{span}>Case</th>");
        if variants {
            let _ = write!(self.out, "<th class=\"name\" scope=\"col\"{span}>Variant</th>");
        }
        for column in &pivot.columns {
            let label = text::html(&column.label);
            let unit = match column.metric.unit() {
                "" => String::new(),
                unit => format!("<span class=\"unit\">{}</span>", text::html(unit)),
            };
            let _ = if column.compared {
                write!(self.out, "<th class=\"group\" scope=\"colgroup\" colspan=\"3\">{label}{unit}</th>")
            } else {
                write!(self.out, "<th scope=\"col\"{span}>{label}{unit}</th>")
            };
        }
        self.put("</tr>\n");
        if pivot.has_compared() {
            self.put("<tr>");
            for _ in pivot.columns.iter().filter(|c| c.compared) {
                self.put(
                    "<th class=\"sub\" scope=\"col\">published</th><th class=\"sub\" scope=\"col\">simulated</th>\
                     <th class=\"sub\" scope=\"col\">error, %</th>",
                );
            }
            self.put("</tr>\n");
        }
        self.put("</thead>\n");
        let mut open = false;
        for line in &pivot.lines {
            if line.case_lines > 0 {
                self.put(if open { "</tbody>\n<tbody>\n" } else { "<tbody>\n" });
                open = true;
            }
            self.line(pivot, line, variants);
        }
        self.put("</tbody>\n");
        self.close_table();
    }

    fn line(&mut self, pivot: &Pivot<'_>, line: &Line<'_>, variants: bool) {
        self.put("<tr>");
        if line.case_lines > 0 {
            let (span, scope) = match line.case_lines {
                1 => (String::new(), "row"),
                n => (format!(" rowspan=\"{n}\""), "rowgroup"),
            };
            let case = text::html(line.case);
            let _ = write!(self.out, "<th class=\"name\" scope=\"{scope}\"{span}>{case}</th>");
        }
        if variants {
            let _ = write!(self.out, "<th class=\"name\" scope=\"row\">{}</th>", text::html(line.variant));
        }
        for (column, row) in pivot.columns.iter().zip(&line.cells) {
            let show = |value: Option<f64>| value.map_or_else(none, |v| minus(&column.number(v)));
            let simulated = show(row.map(|r| r.simulated));
            if !column.compared {
                let _ = write!(self.out, "<td>{simulated}</td>");
                continue;
            }
            let error = row.and_then(|r| r.error_percent).map_or_else(none, |e| minus(&format::percent(e)));
            let mark = match row {
                Some(row) => {
                    let class = match row.standing() {
                        Some(Standing::Fit) => "mark fit",
                        Some(Standing::DoesNotHold) => "mark off",
                        _ => "mark",
                    };
                    format!("<span class=\"{class}\">{}</span>", mark(row))
                }
                None => "<span class=\"mark\"></span>".to_owned(),
            };
            let published = show(row.and_then(|r| r.published));
            let _ = write!(self.out, "<td>{published}</td><td class=\"sim\">{simulated}</td><td>{error}{mark}</td>");
        }
        self.put("</tr>\n");
    }

    fn list(&mut self, title: &str, tag: &str, items: &[impl ToString]) {
        if items.is_empty() {
            return;
        }
        let _ = writeln!(self.out, "<section>\n<h2>{title}</h2>\n<{tag}>");
        for item in items {
            let _ = writeln!(self.out, "<li>{}</li>", text::html(&item.to_string()));
        }
        let _ = writeln!(self.out, "</{tag}>\n</section>");
    }

    fn provenance(&mut self, document: &Document) {
        let process = &document.process;
        let command = match &process.command[..] {
            [] => String::new(),
            words => format!("<pre class=\"command\">{}</pre>\n", text::html_lines(&text::shell(words))),
        };
        let _ = write!(
            self.out,
            "<section>\n<h2>How to get these numbers again</h2>\n<dl>\n\
             <dt>experiment</dt><dd>{}</dd>\n<dt>seed</dt><dd>{}</dd>\n<dt>simulated I/Os</dt><dd>{}</dd>\n\
             <dt>schema</dt><dd>{}</dd>\n<dt>CPU time</dt><dd>{} s</dd>\n<dt>peak memory</dt><dd>{} MiB</dd>\n</dl>\n\
             <p class=\"meta\">CPU time and peak memory depend on the machine; everything else follows from \
             configuration and seed.</p>\n{command}\
             <details class=\"config\">\n<summary>Full \
             configuration</summary>\n<pre>{}</pre>\n</details>\n</section>\n",
            text::html(&document.experiment),
            document.seed,
            format::grouped(document.simulated_ios as f64, 0),
            text::html(&document.schema),
            format::number(process.cpu_seconds),
            format::number(process.peak_rss_bytes as f64 / 1_048_576.0),
            text::html_lines(&format!("{:#}", document.short_configuration()))
        );
    }
}

/// A cell without a value.
fn none() -> String {
    "<span class=\"none\">–</span>".to_owned()
}

fn factor(value: Option<f64>) -> String {
    value.map_or_else(none, |v| format!("×{}", format::significant(v, 3)))
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}
