// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user sees: progress while it takes long, tables, documents, pages, and what the process used.

use crate::files::{NewFolder, begin_whole, check_not_input, check_writable, write_whole};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use readpath_lab::experiment::Shared;
use readpath_report::{TableSpec, html, terminal};
use readpath_results::{Document, Process};
use std::fs;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// CPU time and peak memory of this process so far.
pub fn process() -> Process {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_seconds = t.tv_sec as f64 + t.tv_nsec as f64 / 1e9;
    // VmHWM of proc(5) is in KiB; where there is no such file the peak is unknown and given as 0.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0);
    Process { cpu_seconds, peak_rss_bytes: kib * 1024 }
}

/// Columns of the terminal, if standard output is one.
pub fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|&columns| columns > 0)
}

/// Columns that tables of experiments show, in order, where a document has them.
const COLUMNS: [(&str, &str); 17] = [
    ("start_up_time", "start-up"),
    ("start_up_time_gain", "against off"),
    ("random_read_throughput", "random read"),
    ("read_throughput", "read"),
    ("read_iops", "read IOPS"),
    ("map_hit_ratio", "map hits"),
    ("map_loads", "map loads"),
    ("random_read_latency_p50", "random read p50"),
    ("random_read_latency_p99", "random read p99"),
    ("read_latency_mean", "read mean"),
    ("read_latency_p50", "read p50"),
    ("read_latency_p99", "read p99"),
    ("host_memory", "host memory"),
    ("random_write_throughput", "random write"),
    ("write_throughput", "write"),
    ("write_iops", "write IOPS"),
    ("write_latency_p99", "write p99"),
];

/// The same for experiments that compare places for the map.
const MAP_COLUMNS: [(&str, &str); 17] = [
    ("start_up_time", "start-up"),
    ("read_iops", "read IOPS"),
    ("read_latency_mean", "read mean"),
    ("read_latency_p99", "read p99"),
    ("host_memory", "host memory"),
    ("device_sram", "SRAM"),
    ("device_dram", "DRAM"),
    ("map_hit_ratio", "map hits"),
    ("map_reads_per_request", "map reads/request"),
    ("flash_reads_per_request", "flash reads/request"),
    ("host_map_link_up", "link up, map"),
    ("host_map_link_down", "link down, map"),
    ("write_iops", "write IOPS"),
    ("write_latency_p99", "write p99"),
    ("write_amplification", "programmed/written"),
    ("map_writes", "map writes"),
    ("erases", "erases"),
];

/// Columns more of a run with events.
const EVENT_COLUMNS: [(&str, &str); 3] =
    [("hpb_hit_ratio", "HPB hits"), ("recovery", "recovery"), ("host_memory_held", "memory held")];

/// Prints the table of an experiment's document, at most `width` characters wide if there is a limit.
pub fn print_table(doc: &Document, width: Option<u16>, out: &mut impl Write) -> Result<()> {
    let compares_maps = doc.rows.iter().any(|r| r.metric == "device_dram");
    let mut columns = if compares_maps { MAP_COLUMNS.to_vec() } else { COLUMNS.to_vec() };
    if doc.rows.iter().any(|r| r.metric == "span") {
        columns.extend(EVENT_COLUMNS);
    }
    print_columns(doc, &columns, width, out)
}

/// The same with other columns: metrics and their headings, where the document has them.
pub fn print_columns(doc: &Document, columns: &[(&str, &str)], width: Option<u16>, out: &mut impl Write) -> Result<()> {
    let mut spec = TableSpec::new();
    for &(metric, label) in columns {
        if doc.rows.iter().any(|r| r.metric == metric) {
            spec = spec.column(metric, label);
        }
    }
    if let Some(width) = width {
        spec = spec.width(width);
    }
    writeln!(out, "{}", terminal::table(doc, &spec))?;
    Ok(())
}

/// What is printed of a document that is written to `folder`, if it is: JSON, or its title, what `tables` prints, and
/// the notes.
pub fn text(
    doc: &Document,
    json: bool,
    folder: Option<&Path>,
    tables: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<Vec<u8>> {
    if json {
        return Ok(doc.to_json_pretty()?.into_bytes());
    }
    let mut out = Vec::new();
    writeln!(out, "{}\n", doc.title)?;
    tables(&mut out)?;
    for note in &doc.notes {
        writeln!(out, "Note: {note}")?;
    }
    print_end(doc, folder, &mut out)?;
    Ok(out)
}

/// The same with one table of these columns.
pub fn table(doc: &Document, json: bool, folder: Option<&Path>, columns: &[(&str, &str)]) -> Result<Vec<u8>> {
    text(doc, json, folder, |out| print_columns(doc, columns, terminal_width(), out))
}

/// Prints what stands below a table: what the simulation cost, and where the files are.
fn print_end(doc: &Document, folder: Option<&Path>, out: &mut impl Write) -> Result<()> {
    let (seconds, mib) = (doc.process.cpu_seconds, doc.process.peak_rss_bytes as f64 / f64::from(1 << 20));
    writeln!(out, "{} requests simulated in {seconds:.1} s of CPU time, {mib:.0} MiB at most", doc.simulated_ios)?;
    if let Some(folder) = folder {
        let (json, page) = (folder.join("result.json"), folder.join("report.html"));
        writeln!(out, "Results: {} and {}", json.display(), page.display())?;
    }
    Ok(())
}

/// Writes to the file that was asked for, or else to standard output.
pub fn emit(text: &[u8], to: Option<&Path>) -> Result<()> {
    match to {
        Some(path) => write_whole(path, text),
        None => Ok(io::stdout().lock().write_all(text)?),
    }
}

/// The folder that `result.json` and `report.html` will be written into. If they never are, a folder that was made for
/// them is removed.
pub struct Folder {
    json: PathBuf,
    page: PathBuf,
    _made: NewFolder,
}

impl Folder {
    /// Makes the folder if need be, and sees to it that both files can be written. Whoever simulates for an hour wants
    /// to know that before.
    pub fn create(folder: &Path) -> Result<Self> {
        let made = NewFolder::create(folder)?;
        let (json, page) = (folder.join("result.json"), folder.join("report.html"));
        check_writable(&json)?;
        check_writable(&page)?;
        Ok(Folder { json, page, _made: made })
    }

    /// Refuses to replace one of `inputs` by either file.
    pub fn apart_from<'a>(
        self,
        inputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>,
    ) -> Result<Self> {
        for input in inputs {
            check_not_input(&self.json, input.as_ref())?;
            check_not_input(&self.page, input.as_ref())?;
        }
        Ok(self)
    }

    /// Writes both.
    pub fn write(self, doc: &Document) -> Result<()> {
        // Both are made before either is written.
        let (json, page) = (doc.to_json_pretty()?, html::page(doc)?);
        let files = [(&self.json, json), (&self.page, page)].map(|(path, text)| begin_whole(path, text.as_bytes()));
        // Neither takes its name before both are on their disk.
        let [json, page] = files;
        let (json, page) = (json?, page?);
        json.finish()?;
        page.finish()
    }
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

/// Progress on standard error, if that is a terminal; ends when dropped.
pub struct Progress {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows how far `shared` has come on the way to `expected` requests.
    pub fn start(shared: Arc<Shared>, expected: Option<u64>) -> Self {
        if !io::stderr().is_terminal() {
            return Progress { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::with_draw_target(expected, ProgressDrawTarget::stderr());
            let template = match expected {
                Some(_) => "{bar:30} {percent:>3} %  {human_pos} of {human_len} requests  {per_sec}  {eta} left",
                None => "{spinner} {human_pos} requests  {per_sec}  {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_millis(200)) {
                bar.set_position(shared.ios.load(Ordering::Relaxed));
            }
            bar.finish_and_clear();
        });
        Progress { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
