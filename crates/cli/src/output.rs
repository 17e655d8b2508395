// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user sees and keeps: tables, documents, rows and pages.

use crate::args::Basics;
use crate::files::{check_not_input, check_writable, write_whole};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_report::{TableSpec, terminal, why_not};
use readpath_session::process;
use readpath_session::results::metric::{self, Figure::*, Requests::*};
use readpath_session::results::{Document, Metric, Process};
use std::env;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::iter;
use std::path::{Path, PathBuf};

pub use crate::progress::{Progress, bar};
pub use readpath_session::folder::Folder;

/// Cost and command line of this process.
pub fn process() -> Process {
    let words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    Process { command: iter::once("readpath".to_owned()).chain(words).collect(), ..process::process() }
}

/// Columns of the terminal, if standard output is one.
pub fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|&columns| columns > 0)
}

/// Columns that tables of experiments show behind the first two, in order, where a document has them.
static COLUMNS: [Metric; 15] = [
    RandomRead.of(Throughput),
    Read.of(Throughput),
    Read.of(Iops),
    metric::MAP_HIT_RATIO,
    metric::MAP_LOADS,
    RandomRead.of(LatencyP50),
    RandomRead.of(LatencyP99),
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    metric::HOST_MEMORY,
    RandomWrite.of(Throughput),
    Write.of(Throughput),
    Write.of(Iops),
    Write.of(LatencyP99),
];

/// Columns of experiments that compare places for the map.
static MAP_COLUMNS: [Metric; 18] = [
    metric::START_UP_TIME,
    Read.of(Iops),
    Read.of(LatencyMean),
    Read.of(LatencyP99),
    metric::HOST_MEMORY,
    metric::DEVICE_SRAM,
    metric::DEVICE_DRAM,
    metric::MAP_HIT_RATIO,
    metric::MAP_READS_PER_REQUEST,
    metric::FLASH_READS_PER_REQUEST,
    metric::HOST_MAP_LINK_UP,
    metric::HOST_MAP_LINK_DOWN,
    Write.of(Iops),
    Write.of(LatencyP99),
    metric::HOST_WRITE_AMPLIFICATION,
    metric::WRITE_AMPLIFICATION,
    metric::MAP_WRITES,
    metric::ERASES,
];

/// Columns more of a run behind a mapper.
static MAPPER_COLUMNS: [Metric; 2] = [metric::HOST_WRITE_AMPLIFICATION, metric::WRITE_AMPLIFICATION];

/// Columns more of a run with events.
static EVENT_COLUMNS: [Metric; 3] = [metric::HPB_HIT_RATIO, metric::RECOVERY, metric::HOST_MEMORY_HELD];

/// Metrics with published values that are not in `columns`, in the order of the rows: no table may leave them out.
fn compared<'d>(doc: &'d Document, columns: &[Metric]) -> Vec<&'d Metric> {
    let mut compared: Vec<&Metric> = Vec::new();
    for row in doc.rows.iter().filter(|row| row.published.is_some()) {
        if !columns.contains(&row.metric) && !compared.contains(&&row.metric) {
            compared.push(&row.metric);
        }
    }
    compared
}

pub fn columns(doc: &Document) -> TableSpec {
    let has = |metric: &Metric| doc.rows.iter().any(|r| r.metric == *metric);
    let spec = if has(&metric::DEVICE_DRAM) {
        let spec = TableSpec::of(compared(doc, &MAP_COLUMNS)).and(&MAP_COLUMNS);
        spec.headed(&metric::WRITE_AMPLIFICATION, "programmed/written")
    } else {
        let gain = metric::GAIN.with([metric::START_UP_TIME.name()]);
        let spec = TableSpec::of([&metric::START_UP_TIME]).column(&gain, "against off");
        let spec = spec.and(compared(doc, &COLUMNS)).and(&COLUMNS);
        if has(&metric::HOST_WRITE_AMPLIFICATION) { spec.and(&MAPPER_COLUMNS) } else { spec }
    };
    let spec = spec.and(asked_percentiles(doc));
    if has(&metric::SPAN) { spec.and(&EVENT_COLUMNS) } else { spec }
}

/// Percentiles that a job asked for, in the order of the rows.
fn asked_percentiles(doc: &Document) -> Vec<&Metric> {
    // Metrics of every document are families of their own.
    let family = Read.of(LatencyPercentile).with(["1"]).definition();
    let is_asked = |metric: &Metric| metric.definition() == family;
    let mut asked: Vec<&Metric> = Vec::new();
    for metric in doc.rows.iter().map(|row| &row.metric).filter(|metric| is_asked(metric)) {
        if !asked.contains(&metric) {
            asked.push(metric);
        }
    }
    asked
}

/// The table of a document, with an empty line below it; at most `width` characters wide if there is a limit.
pub fn table(doc: &Document, spec: TableSpec, width: Option<u16>) -> String {
    terminal::table(doc, &limited(spec, width)) + "\n"
}

/// The specification, limited to `width` columns if given.
pub fn limited(spec: TableSpec, width: Option<u16>) -> TableSpec {
    match width {
        Some(width) => spec.width(width),
        None => spec,
    }
}

/// What is printed of a document: JSON, or else its verdict, its title, `tables`, its notes, what the simulation cost,
/// and the folder of the files.
pub fn printed(doc: &Document, json: bool, folder: Option<&Path>, tables: impl FnOnce() -> String) -> Result<String> {
    if json {
        return Ok(doc.to_json_pretty()?);
    }
    let mut text = verdict(doc);
    if !text.is_empty() {
        text.push('\n');
    }
    write!(text, "{}\n\n{}", doc.title, tables())?;
    for (reason, rows) in why_not(doc) {
        writeln!(text, "Does not hold: {rows}: {reason}")?;
    }
    for note in &doc.notes {
        writeln!(text, "Note: {note}")?;
    }
    let (seconds, mib) = (doc.process.cpu_seconds, doc.process.peak_rss_bytes as f64 / f64::from(1 << 20));
    writeln!(text, "{} requests simulated in {seconds:.1} s of CPU time, {mib:.0} MiB at most", doc.simulated_ios)?;
    if let Some(folder) = folder {
        let (json, page) = (folder.join("result.json"), folder.join("report.html"));
        writeln!(text, "Results: {} and {}", json.display(), page.display())?;
    }
    Ok(text)
}

/// The sentences of a document's verdict, a line each.
pub fn verdict(doc: &Document) -> String {
    doc.verdict.iter().fold(String::new(), |text, note| text + &note.text + "\n")
}

/// Shows a document: on standard output, or in the file `to`. With `--csv -` its rows go to standard output, and its
/// notes, which have no place there, to standard error.
pub fn show(
    doc: &Document,
    basics: &Basics,
    folder: Option<&Path>,
    to: Option<&Path>,
    tables: impl FnOnce() -> String,
) -> Result<()> {
    if basics.prints_csv() {
        emit(&doc.to_csv()?, None)?;
        if to.is_none() {
            notes_aside(doc);
            return Ok(());
        }
    }
    emit(&printed(doc, basics.json, folder, tables)?, to)
}

/// Shows the verdict and the notes of a document on standard error, where its rows or a text take standard output.
pub fn notes_aside(doc: &Document) {
    let notes = doc.notes.iter().fold(verdict(doc), |text, note| format!("{text}Note: {note}\n"));
    write!(io::stderr(), "{notes}").ok();
}

/// Writes to the file that was asked for, or else to standard output.
pub fn emit(text: &str, to: Option<&Path>) -> Result<()> {
    match to {
        Some(path) => write_whole(path, text.as_bytes()),
        None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
    }
}

/// Files of a document: those of its folder, and the file of `--csv`.
pub struct Kept {
    folder: Option<Folder>,
    rows: Option<PathBuf>,
}

impl Kept {
    /// Checks that all files can be written, and that none of them is one of `inputs`.
    pub fn create<'a, P: AsRef<Path> + ?Sized + 'a>(
        basics: &Basics,
        folder: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a P> + Clone,
    ) -> Result<Self> {
        let is_dash = basics.prints_csv();
        if is_dash && basics.json {
            return Err(usage(anyhow!("--csv - and --json both print to standard output; choose one")));
        }
        let folder = folder.map(|folder| Folder::create(folder)?.apart_from(inputs.clone())).transpose()?;
        let rows = basics.csv.clone().filter(|_| !is_dash);
        if let Some(rows) = &rows {
            inputs.into_iter().try_for_each(|input| check_not_input(rows, input.as_ref()))?;
            check_writable(rows)?;
        }
        Ok(Kept { folder, rows })
    }

    pub fn write(self, doc: &Document) -> Result<()> {
        let folder = self.folder.map_or(Ok(()), |folder| folder.write(doc));
        let rows = self.rows.map_or(Ok(()), |path| write_whole(&path, doc.to_csv()?.as_bytes()));
        folder.and(rows)
    }
}

/// JSON for a terminal: it leaves some control characters as they are (U+007F to U+009F), which a terminal may take for
/// commands. Nothing of that stands outside of its strings.
pub fn json_escaped(text: String) -> String {
    let is_raw = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !text.contains(is_raw) {
        return text;
    }
    text.chars().map(|c| if is_raw(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

/// Standard output, for much text. Its errors say that they are of it; what is not written before an error is known
/// needs a `flush`.
pub fn stdout() -> BufWriter<Named<StdoutLock<'static>>> {
    BufWriter::with_capacity(1 << 16, Named(io::stdout().lock()))
}

/// A writer whose errors say where.
#[derive(Debug)]
pub struct Named<W>(W);

impl<W> Named<W> {
    fn name(e: io::Error) -> io::Error {
        io::Error::new(e.kind(), format!("standard output: cannot write: {e}"))
    }
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(Self::name)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(Self::name)
    }
}
