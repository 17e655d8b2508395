// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for a terminal or a pipe: no colours, no escape sequences, no question to the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Row, Table, TableStyle};
use readpath_results::{Document, Standing};

use crate::pivot::{Column, LEGEND, Line, Pivot, TableSpec, mark};
use crate::{format, text};

/// Space between columns.
const GAP: usize = 2;
/// Headings of single metrics and names of cases are wrapped at these widths.
const HEADING: usize = 12;
const NAME: usize = 28;
/// Names are not wrapped at less than this.
const NARROWEST: usize = 6;

/// The rows of a document as text: a line for each case and variant, a column for each metric.
///
/// A metric with published values takes three columns: published, simulated, and the error in percent with the mark
/// of its origin. If the spec has a width, columns that do not fit go into a further table below. Every line ends
/// with a line feed and none with spaces. A document without rows gives a line that says so.
pub fn table(document: &Document, spec: &TableSpec) -> String {
    let pivot = Pivot::new(document, spec);
    if pivot.lines.is_empty() {
        return "no rows\n".to_owned();
    }
    let names = match spec.max_width() {
        None => Block::names(&pivot, None),
        Some(max) => {
            // Names are wrapped as far as that makes room for the widest metric.
            let widest = (0..pivot.columns.len()).map(|at| Block::metric(&pivot, at).width()).max().unwrap_or(0);
            let blocks = (NARROWEST..=NAME).rev().map(|width| Block::names(&pivot, Some(width)));
            let fits = |block: &Block| block.width() + widest - GAP <= max;
            blocks.into_iter().find(fits).unwrap_or_else(|| Block::names(&pivot, Some(NARROWEST)))
        }
    };
    let mut blocks: Vec<Block> = Vec::new();
    for at in 0..pivot.columns.len() {
        let metric = Block::metric(&pivot, at);
        match (blocks.last_mut(), spec.max_width()) {
            (Some(last), None) => last.join(metric),
            (Some(last), Some(max)) if last.width() + metric.width() - GAP <= max => last.join(metric),
            _ => {
                let mut block = names.clone();
                block.join(metric);
                blocks.push(block);
            }
        }
    }
    let mut out: String = blocks.iter().map(Block::render).collect::<Vec<_>>().join("\n");
    if pivot.has_compared() {
        out.push('\n');
        let fails = document.rows.iter().any(|row| row.standing() == Some(Standing::DoesNotHold));
        let words = &LEGEND[..if fails { 3 } else { 2 }];
        let indent = if fails { LEGEND[2].0.len() } else { 6 } + 1;
        for (word, meaning) in words {
            let word = format!("{:<indent$}", if *word == "predicted" { "pred." } else { word });
            let width = spec.max_width().unwrap_or(120).max(40) - indent;
            for (i, part) in text::wrap(meaning, width).iter().enumerate() {
                out.push_str(&if i == 0 { word.clone() } else { " ".repeat(indent) });
                out.push_str(part);
                out.push('\n');
            }
        }
    }
    out
}

/// Cells in columns below their headings: the first column to the left, the others to the right, two spaces between
/// them. No line ends with spaces.
pub fn columns(head: &[&str], rows: &[Vec<String>]) -> String {
    columns_up_to(head, rows, None)
}

/// The same; cells are broken where there is a limit to the width of all.
pub fn columns_up_to(head: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let head: Vec<(&str, bool)> = head.iter().enumerate().map(|(at, heading)| (*heading, at == 0)).collect();
    grid(TableStyle::new(), &head, rows.iter().cloned(), width.map(usize::from))
}

/// Texts in columns below their headings, each to the left or else to the right; cells are broken where there is a
/// limit to the width of all.
pub fn texts(head: &[(&str, bool)], rows: &[Vec<String>], width: Option<u16>) -> String {
    grid(
        ruled(),
        head,
        rows.iter().map(|row| row.iter().map(|cell| text::plain(cell)).collect()),
        width.map(usize::from),
    )
}

/// Columns with a heading each, aligned to the left or to the right; at most `width` characters wide if there is a
/// limit.
pub(crate) fn grid(
    style: TableStyle,
    head: &[(&str, bool)],
    rows: impl Iterator<Item = Vec<String>>,
    width: Option<usize>,
) -> String {
    let mut table = Table::new();
    if let Some(width) = width {
        // The gap behind the last column goes.
        let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.load_style(style).set_header(head.iter().map(|(heading, _)| Cell::new(heading)));
    table.add_rows(rows);
    for (column, (_, is_left)) in table.column_iter_mut().zip(head) {
        column.set_padding((0, GAP as u16));
        column.set_cell_alignment(if *is_left { CellAlignment::Left } else { CellAlignment::Right });
    }
    ended(table.to_string().lines())
}

/// A rule below the headings and no other lines.
pub(crate) fn ruled() -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill('─'))
}

/// Lines without the gap after the last column, each with a line feed.
fn ended<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.fold(String::new(), |mut out, line| {
        // The rule ends where the last column does.
        let line = if line.starts_with('─') { &line[..line.len() - GAP * '─'.len_utf8()] } else { line.trim_end() };
        out.push_str(line);
        out.push('\n');
        out
    })
}

/// A heading over some columns, and those columns as text.
#[derive(Clone)]
struct Group {
    over: String,
    columns: usize,
}

#[derive(Clone, Default)]
struct Block {
    groups: Vec<Group>,
    /// Heading and cells of each column; the cells may have several lines.
    columns: Vec<(Vec<String>, Vec<Vec<String>>, CellAlignment)>,
}

impl Block {
    fn names(pivot: &Pivot<'_>, limit: Option<usize>) -> Self {
        let wrap = |name: &str| {
            let name = text::plain(name);
            limit.map_or_else(|| vec![name.clone()], |width| text::wrap(&name, width))
        };
        let case = |line: &Line<'_>| if line.case_lines > 0 { wrap(line.case) } else { vec![String::new()] };
        let mut block = Self::default();
        block.push("Case", pivot.lines.iter().map(case).collect(), CellAlignment::Left);
        if pivot.has_variants() {
            let cells = pivot.lines.iter().map(|line| wrap(line.variant)).collect();
            block.push("Variant", cells, CellAlignment::Left);
        }
        block
    }

    fn metric(pivot: &Pivot<'_>, at: usize) -> Self {
        let column = &pivot.columns[at];
        let rows = || pivot.lines.iter().map(|line| line.cells[at]);
        let show = |value: Option<f64>| vec![value.map_or_else(|| "–".to_owned(), |v| column.number(v))];
        let simulated = rows().map(|row| show(row.map(|r| r.simulated))).collect();
        let mut block = Self::default();
        if column.compared {
            let width = rows().flatten().map(|row| mark(row).len()).max().unwrap_or(0);
            let error = rows().map(|row| {
                let number = row.and_then(|r| r.error_percent).map_or_else(|| "–".to_owned(), format::percent);
                // No-break spaces, so that the marks line up although the cell is aligned to the right.
                vec![format!("{number} {:<width$}", row.map_or("", mark)).replace(' ', "\u{a0}")]
            });
            block.push("published", rows().map(|r| show(r.and_then(|r| r.published))).collect(), CellAlignment::Right);
            block.push("simulated", simulated, CellAlignment::Right);
            let heading = format!("error %{}", "\u{a0}".repeat(width + 1));
            block.push(&heading, error.collect(), CellAlignment::Right);
            block.groups = vec![Group { over: text::plain(&column.heading()), columns: 3 }];
        } else {
            block.push("", simulated, CellAlignment::Right);
            block.columns[0].0 = heading(column);
        }
        block
    }

    fn push(&mut self, heading: &str, cells: Vec<Vec<String>>, alignment: CellAlignment) {
        self.groups.push(Group { over: String::new(), columns: 1 });
        self.columns.push((vec![heading.to_owned()], cells, alignment));
    }

    fn join(&mut self, other: Self) {
        self.groups.extend(other.groups);
        self.columns.extend(other.columns);
    }

    /// Width of each column with the gap after it.
    fn widths(&self) -> Vec<usize> {
        let longest = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let columns = self.columns.iter();
        columns.map(|(head, cells, _)| cells.iter().map(|c| longest(c)).fold(longest(head), usize::max) + GAP).collect()
    }

    /// Width of the table with the gap after its last column.
    fn width(&self) -> usize {
        self.widths().iter().sum()
    }

    fn render(&self) -> String {
        let widths = self.widths();
        // First column and width of each group, and its heading in lines.
        let mut over: Vec<(usize, usize, Vec<String>)> = Vec::new();
        let (mut left, mut column) = (0, 0);
        for group in &self.groups {
            let width: usize = widths[column..column + group.columns].iter().sum::<usize>() - GAP;
            if !group.over.is_empty() {
                over.push((left, width, text::wrap(&group.over, width)));
            }
            left += width + GAP;
            column += group.columns;
        }
        let tallest = self.columns.iter().map(|c| c.0.len()).max().unwrap_or(1);
        let tallest = over.iter().map(|(.., lines)| lines.len() + 1).fold(tallest, usize::max);

        let mut table = Table::new();
        table.load_style(ruled());
        table.set_header(
            self.columns.iter().map(|(head, ..)| Cell::new("\n".repeat(tallest - head.len()) + &head.join("\n"))),
        );
        for line in 0..self.columns.first().map_or(0, |c| c.1.len()) {
            table.add_row(Row::from(self.columns.iter().map(|c| c.1[line].join("\n")).collect::<Vec<_>>()));
        }
        for (column, (.., alignment)) in table.column_iter_mut().zip(&self.columns) {
            column.set_padding((0, GAP as u16));
            column.set_cell_alignment(*alignment);
        }

        let mut lines: Vec<Vec<char>> =
            table.to_string().replace('\u{a0}', " ").lines().map(|line| line.chars().collect()).collect();
        for (left, width, heading) in over {
            let first = tallest - 1 - heading.len();
            for (line, part) in lines[first..].iter_mut().zip(heading) {
                // The columns of the group are empty here.
                let at = left + (width - part.chars().count()) / 2;
                line.resize(line.len().max(at + width), ' ');
                line.iter_mut().skip(at).zip(part.chars()).for_each(|(to, c)| *to = c);
            }
        }
        let lines: Vec<String> = lines.into_iter().map(String::from_iter).collect();
        ended(lines.iter().map(String::as_str))
    }
}

fn heading(column: &Column) -> Vec<String> {
    let mut lines = text::wrap(&text::plain(&column.label), HEADING);
    if !column.metric.unit().is_empty() {
        lines.push(text::plain(column.metric.unit()));
    }
    lines
}
