// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read streams and cost presets from files.

use super::open::nand_bytes;
use crate::args::StreamInput;
use crate::inputs::{self, Source};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::CacheCase;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{self, Geometry, Limits, Misfit};
use readpath_workload::trace::decompress;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

/// How streams are read, and what reads cost.
#[derive(Clone, Debug)]
pub struct Input {
    /// Sizes that streams must fit.
    pub geometry: Geometry,
    /// Whether no option gave the size of a page: a stream may state it.
    pub page_is_assumed: bool,
    /// Whether lines with a fault are left out.
    pub lenient: bool,
    /// What reads cost, if an option names it.
    pub cost: Option<CostPreset>,
}

/// Bytes of a page, unless a stream or an option states them.
const PAGE_BYTES: u32 = 16384;

impl Input {
    /// Takes the page size that streams state, unless an option gave one. They have to agree.
    pub fn settle(&mut self, cases: &[CacheCase]) -> Result<()> {
        let size = |case: &CacheCase| case.stream.summary.page_bytes.unwrap_or(self.geometry.page_bytes);
        let Some(first) = cases.first() else { return Ok(()) };
        let page_bytes = if self.page_is_assumed { size(first) } else { self.geometry.page_bytes };
        if let Some(other) = cases.iter().find(|case| size(case) != page_bytes) {
            let (name, bytes) = (&other.input.file, size(other));
            let than = if self.page_is_assumed { first.input.file.as_str() } else { "--page-size" };
            let message = format!("{name}: has pages of {bytes} bytes, {than} of {page_bytes}; replay it apart");
            return Err(usage(anyhow!(message)));
        }
        let wrong = |e: String| usage(anyhow!("{}: {e}", first.input.file));
        self.geometry = Geometry::new(page_bytes, self.geometry.peb_bytes).map_err(wrong)?;
        Ok(())
    }

    /// What reads cost, once the size of pages is settled: by default that of the kind of NAND with such pages.
    pub fn cost(&self) -> CostPreset {
        self.cost.clone().unwrap_or_else(|| CostPreset::for_pages(self.geometry.page_bytes, None))
    }

    /// The source of the size of pages, once that is settled.
    pub fn page_size_is_from(&self, cases: &[CacheCase]) -> &'static str {
        match cases.iter().any(|case| self.is_assumed(case)) {
            true => "assumed",
            false if self.page_is_assumed => "streams",
            false => "--page-size",
        }
    }

    fn is_assumed(&self, case: &CacheCase) -> bool {
        self.page_is_assumed && case.stream.summary.page_bytes.is_none()
    }

    /// Notes on the size of pages, once that is settled: that it was assumed, and which streams do not fit it.
    pub fn notes_of_pages(&self, cases: &[CacheCase]) -> Vec<String> {
        let page_bytes = self.geometry.page_bytes;
        let names = |cases: &[&CacheCase]| cases.iter().map(|c| c.input.file.as_str()).collect::<Vec<_>>().join(", ");
        let assumed: Vec<&CacheCase> = cases.iter().filter(|case| self.is_assumed(case)).collect();
        let mut notes = Vec::new();
        if !assumed.is_empty() {
            notes.push(format!(
                "{}: pages were ASSUMED to have {page_bytes} bytes; neither the stream nor --page-size says it",
                names(&assumed)
            ));
        }
        notes.extend(cases.iter().filter_map(|case| misfit(case, page_bytes, self.is_assumed(case))));
        notes
    }
}

/// A note, if a stream does not fit pages of `page_bytes`. What is only unusual counts if that size is assumed.
pub fn misfit(case: &CacheCase, page_bytes: u32, is_assumed: bool) -> Option<String> {
    let misfits = &case.stream.summary.misfits;
    let unusual = misfits.unusual.as_ref().filter(|_| is_assumed);
    let Misfit { line, what, page_bytes: would_fit } = misfits.certain.as_ref().or(unusual)?;
    let (does, would) = match misfits.certain {
        Some(_) => ("does NOT FIT", "fits"),
        None => ("MAY NOT FIT", "would fit"),
    };
    let file = &case.input.file;
    Some(format!("{file}: line {line} {does} pages of {page_bytes} bytes: it {what}; --page-size {would_fit} {would}"))
}

/// Reads the options and the cost preset.
pub fn input(args: &StreamInput) -> Result<Input> {
    let page_bytes = nand_bytes("--page-size", &args.page_size)?;
    let (page_bytes, page_is_assumed) = (page_bytes.unwrap_or(PAGE_BYTES), page_bytes.is_none());
    let peb_bytes = nand_bytes("--peb-size", &args.peb_size)?;
    let geometry = Geometry::new(page_bytes, None).map_err(|e| usage(anyhow!("--page-size: {e}")))?;
    let geometry = match peb_bytes {
        None => geometry,
        some => Geometry::new(page_bytes, some).map_err(|e| usage(anyhow!("--peb-size: {e}")))?,
    };
    Ok(Input { geometry, page_is_assumed, lenient: args.lenient, cost: args.cost.as_deref().map(cost).transpose()? })
}

/// What reads cost, by the name of a kind of NAND or of a file.
pub fn cost(name: &str) -> Result<CostPreset> {
    if let Some(preset) = CostPreset::builtin(name) {
        return Ok(preset);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let own = "a file of your own is given as a path that ends in .toml";
        let names = CostPreset::names();
        return Err(usage(anyhow!("--cost: there is no preset '{name}' (built in: {names}; {own})")));
    }
    CostPreset::parse(&inputs::text(Path::new(name))?, name).map_err(usage)
}

/// Reads the stream at `path`, called `name` in tables.
pub fn load(path: &Path, name: &str, input: &Input) -> Result<CacheCase> {
    let file_name = inputs::name(path);
    let unreadable = |e: io::Error| usage(anyhow!("{file_name}: cannot be read: {e}"));
    let file = Source::open(path, "a stream", Arc::default())?;
    let (source, compression) = decompress(Box::new(file.clone())).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(1 << 16, source);
    let stream = stream::load(&file_name, &mut reader, input.geometry, input.lenient, Limits::default());
    let stream = stream.map_err(usage)?;
    let s = &stream.summary;
    let mut notes = vec![format!(
        "{file_name}: {}, {} reads, {} other reads, {} writes, {} erases",
        compression.name(),
        s.reads,
        s.other_reads,
        s.writes,
        s.erases
    )];
    if let Some((line, what)) = &s.skips.first {
        notes.push(format!("{file_name}: {} lines were SKIPPED; the first is line {line}: {what}", s.skips.count));
    }
    if s.unterminated {
        notes.push(format!("{file_name}: the last line has no end; the recording may be cut off"));
    }
    let input = file.input(&file_name).map_err(unreadable)?;
    Ok(CacheCase { name: name.to_owned(), stream, notes, input })
}
