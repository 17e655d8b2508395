// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi replay`: recorded read streams through the caches that were asked for.

use super::streams;
use crate::args::UbiReplay;
use crate::ask;
use crate::cases::names;
use crate::files::{check_not_input, check_writable};
use crate::inputs::{self, is_stdin};
use crate::output::{self, Folder};
use crate::stop::hold;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::ubi::{CacheCase, CacheTexts, Error, document};
use readpath_report::TableSpec;
use readpath_results::metric;
use readpath_results::{Document, Metric, Note, NoteKind, Row};
use readpath_ubi::stream::{Pressure, parse_pressure};
use readpath_ubi::variant::{Kind, Variant};
use serde_json::json;
use std::io::{self, Write};

/// Caches that are compared unless others are named.
const DEFAULT: [&str; 6] = ["none", "nand-page", "one-line", "peb-hash", "lru", "opt"];

static COLUMNS: [Metric; 8] = [
    metric::HITS,
    metric::MISSES,
    metric::NO_QUERY,
    metric::HIT_RATIO,
    metric::PAGE_READS,
    metric::WHOLE_PAGE_READS,
    metric::SECONDS,
    metric::METADATA_MEMORY,
];

/// Columns more, where a stream has nothing but other reads.
static OTHER_COLUMNS: [Metric; 2] = [metric::OTHER_PAGE_READS, metric::OTHER_SECONDS];

/// What `--help` says below the options.
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

pub fn main(args: &UbiReplay) -> Result<()> {
    if args.json && args.csv.as_deref().is_some_and(is_stdin) {
        return Err(usage(anyhow!("--csv - and --json both print to standard output; choose one")));
    }
    let mut input = streams::input(&args.input)?;
    let variants = variants(args)?;
    let pressure = match &args.pressure {
        None => Pressure::default(),
        Some(path) => {
            let name = path.display().to_string();
            parse_pressure(&name, &inputs::text(path)?).map_err(usage)?
        }
    };
    let names = names(&args.files)?;
    let inputs = args.files.iter().chain(&args.pressure);
    let cases: Vec<CacheCase> =
        args.files.iter().zip(&names).map(|(path, name)| streams::load(path, name, &input)).collect::<Result<_>>()?;
    let of = cases.len();
    let (cases, without): (Vec<CacheCase>, Vec<CacheCase>) = cases.into_iter().partition(|case| {
        let s = &case.stream.summary;
        s.reads + s.other_reads > 0
    });
    let left_out: Vec<String> = without
        .iter()
        .map(|case| format!("{}: no line is a read (r or R), so there is nothing to replay", case.input.file))
        .collect();
    if let (Some(first), true) = (left_out.first(), cases.is_empty()) {
        return Err(usage(anyhow!("{first}")));
    }
    input.settle(&cases)?;
    let folder = || args.out.as_deref().map(|out| Folder::create(out)?.apart_from(inputs.clone())).transpose();
    if let Some(file) = args.csv.as_ref().filter(|file| !is_stdin(file)) {
        inputs.clone().try_for_each(|input| check_not_input(file, input))?;
        check_writable(file)?;
    }
    // Whether it can be written is found out now; it is made again in the end, so that nothing lies about until then.
    let held = hold();
    drop(folder()?);
    drop(held);
    let page_bytes = input.geometry.page_bytes;
    let cost = input.cost();
    let texts = CacheTexts {
        title: format!("Read caches of UBI on {}", names.join(", ")),
        settings: json!({
            "files": args.files.iter().map(|p| p.display().to_string()).collect::<Vec<_>>(),
            "page_bytes": input.geometry.page_bytes,
            "page_bytes_from": input.page_size_is_from(&cases),
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
    let mut doc = document(&texts, &cases, &variants, &costs, &pressure).map_err(|e| match e {
        Error::TooLarge { .. } => usage(e),
        Error::Document(_) => e.into(),
    })?;
    let chosen = if input.cost.is_some() { "" } else { " They were chosen by the page size; --cost names others." };
    doc.remark(format!("Reads cost: {}.{chosen}", cost.described(page_bytes)));
    let of_pages = input.notes_of_pages(&cases).into_iter().map(Note::remark);
    let missing = left_out.iter().map(|what| Note::new(NoteKind::Incomplete, what));
    // What makes all figures doubtful comes first.
    doc.notes.splice(0..0, missing.chain(of_pages));
    doc.process = output::process();
    doc.validate()?;
    let held = hold();
    if let Some(folder) = folder()? {
        folder.write(&doc)?;
        held.done();
    }
    if let Some(file) = &args.csv {
        let to = Some(file.as_path()).filter(|file| !is_stdin(file));
        output::emit(&doc.to_csv()?, to)?;
        if to.is_none() {
            doc.notes.iter().for_each(|note| drop(writeln!(io::stderr(), "Note: {note}")));
            return ask::missing(left_out.into_iter(), of);
        }
    }
    let table = || output::table(&doc, columns(&doc), output::terminal_width());
    output::emit(&output::printed(&doc, args.json, args.out.as_deref(), table)?, None)?;
    ask::missing(left_out.into_iter(), of)
}

fn columns(doc: &Document) -> TableSpec {
    let is_other = |rows: &[Row]| rows.iter().all(|r| r.metric != metric::SECONDS);
    let only_other = doc.rows.chunk_by(|a, b| a.case == b.case).any(is_other);
    let spec = TableSpec::of(&COLUMNS);
    if only_other { spec.and(&OTHER_COLUMNS) } else { spec }
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
