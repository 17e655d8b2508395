// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded read streams through read caches.

use super::streams::{self, Input};
use crate::args::UbiReplay;
use crate::cases::names;
use crate::{inputs, usage};
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, CacheTexts, Error, document};
use readpath_results::{Document, Note, NoteKind};
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Pressure, parse_pressure};
use readpath_ubi::variant::{Kind, Variant};
use serde_json::{Value, json};

/// Caches that are compared unless others are named.
const DEFAULT: [&str; 6] = ["none", "nand-page", "one-line", "peb-hash", "lru", "opt"];

/// Names and meanings of the caches, for help.
pub fn caches() -> String {
    let mut text = "Caches:\n".to_owned();
    for (_, name, what) in Kind::ALL {
        text.push_str(&format!("  {name:<12} {what}\n"));
    }
    text.push_str(
        "\nNAME+split: reads that cross pages are split, and each page looked up\n\
         lru+second: a page gets a line on its second touch only; also lru+second+split",
    );
    text
}

/// Names of all caches.
pub fn cache_names() -> Vec<String> {
    Kind::ALL.iter().map(|(_, name, _)| (*name).to_owned()).collect()
}

/// Names of all kinds of NAND, for `--cost`.
pub fn cost_names() -> Vec<String> {
    CostPreset::names().split(", ").map(str::to_owned).collect()
}

/// Streams that were read, and the caches through which they go.
pub struct Replay {
    input: Input,
    variants: Vec<Variant>,
    pressure: Pressure,
    cases: Vec<CacheCase>,
    title: String,
    files: Value,
    /// Streams that have no read, and so no results.
    pub left_out: Vec<String>,
}

impl Replay {
    /// Reads the streams.
    ///
    /// # Errors
    /// When an option or a stream is wrong, or no stream has a read.
    pub fn read(args: &UbiReplay) -> Result<Self> {
        let mut input = streams::input(&args.input)?;
        let variants = variants(args)?;
        let pressure = match &args.pressure {
            None => Pressure::default(),
            Some(path) => parse_pressure(&path.display().to_string(), &inputs::text(path)?).map_err(usage)?,
        };
        let names = names(&args.files)?;
        let cases = args.files.iter().zip(&names).map(|(path, name)| streams::load(path, name, &input));
        let (cases, without): (Vec<CacheCase>, Vec<CacheCase>) =
            cases.collect::<Result<Vec<_>>>()?.into_iter().partition(|case| {
                let s = &case.stream.summary;
                s.reads + s.other_reads > 0
            });
        let nothing = |case: &CacheCase| {
            format!("{}: no line is a read (r or R), so there is nothing to replay", case.input.file)
        };
        let left_out: Vec<String> = without.iter().map(nothing).collect();
        if let (Some(first), true) = (left_out.first(), cases.is_empty()) {
            return Err(usage(anyhow!("{first}")));
        }
        input.settle(&cases)?;
        let title = format!("Read caches of UBI on {}", names.join(", "));
        let files = args.files.iter().map(|p| p.display().to_string()).collect();
        Ok(Replay { input, variants, pressure, cases, title, files, left_out })
    }

    /// Streams that were given.
    pub fn streams(&self) -> usize {
        self.cases.len() + self.left_out.len()
    }

    /// Replays the streams.
    ///
    /// # Errors
    /// When a stream is too long for a cache, or a figure is not finite.
    pub fn document(&self) -> Result<Document> {
        let Replay { input, cases, pressure, .. } = self;
        let page_bytes = input.geometry.page_bytes;
        let cost = input.cost();
        let texts = CacheTexts {
            title: self.title.clone(),
            settings: json!({
                "files": self.files,
                "page_bytes": page_bytes,
                "page_bytes_from": input.page_size_is_from(cases),
                "peb_bytes": input.geometry.peb_bytes,
                "lenient": input.lenient,
                "cost": cost.name,
                "cost_from": if input.cost.is_some() { "--cost" } else { "page size" },
                "cost_scaled": cost.page_bytes != page_bytes,
                "cost_cpu_known": cost.cpu_is_known,
                "pressure": pressure.steps.iter().map(|s| [s.read, s.bytes]).collect::<Vec<_>>(),
            }),
        };
        let costs = cost.model(page_bytes);
        let mut doc = document(&texts, cases, &self.variants, &costs, pressure).map_err(|e| match e {
            Error::TooLarge { .. } => usage(e),
            Error::Document(_) => e.into(),
        })?;
        let chosen = if input.cost.is_some() { "" } else { " They were chosen by the page size; --cost names others." };
        doc.remark(format!("Reads cost: {}.{chosen}", cost.described(page_bytes)));
        let of_pages = input.notes_of_pages(cases).into_iter().map(Note::remark);
        let missing = self.left_out.iter().map(|what| Note::new(NoteKind::Incomplete, what));
        // What makes all figures doubtful comes first.
        doc.notes.splice(0..0, missing.chain(of_pages));
        Ok(doc)
    }
}

/// Each cache with each number of lines, in the order in which they were named.
fn variants(args: &UbiReplay) -> Result<Vec<Variant>> {
    for lines in &args.lines {
        if !(1..=Variant::MOST_LINES).contains(lines) {
            return Err(usage(anyhow!("--lines {lines}: expected 1 to {}", Variant::MOST_LINES)));
        }
    }
    let default: Vec<String> = DEFAULT.iter().map(|s| (*s).to_owned()).collect();
    let mut list: Vec<Variant> = Vec::new();
    for name in if args.cache.is_empty() { &default } else { &args.cache } {
        for &lines in &args.lines {
            let variant = Variant::parse(name, lines).map_err(|e| usage(anyhow!("--cache {name}: {e}")))?;
            let again = list.contains(&variant);
            // A cache without a choice of lines comes once, however many numbers of lines there are.
            if again && variant.kind.has_lines() {
                return Err(usage(anyhow!("--cache {name} with {lines} lines: is asked for twice")));
            }
            if !again {
                list.push(variant);
            }
        }
    }
    Ok(list)
}
