// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace experts`: the reads of a language model's experts as a block trace, drawn or from a list.

use crate::args::TraceExperts;
use crate::files::{PartFile, check_not_input, is_standard_output};
use crate::{inputs, output, usage};
use anyhow::{Context, Result, anyhow};
use readpath_session::config::{size, time};
use readpath_session::workload::experts::ExpertSpec;
use readpath_session::workload::trace::CsvWriter;
use std::fs;
use std::io::{self, Write};

pub fn main(args: &TraceExperts) -> Result<()> {
    let bytes = |option: &str, text: &str| size(text).map_err(|e| usage(anyhow!("{option}: {e}")));
    let spec = ExpertSpec {
        layers: args.layers,
        experts: args.experts,
        expert_bytes: bytes("--expert-size", &args.expert_size)?,
        per_token: args.per_token,
        tokens: args.tokens,
        skew: args.skew,
        read_bytes: bytes("--read-size", &args.read_size)?,
        token: time(&args.token_time).map_err(|e| usage(anyhow!("--token-time: {e}")))?,
        seed: args.seed,
    };
    spec.check().map_err(|e| usage(anyhow!(e)))?;
    let requests = match &args.list {
        None => spec.draw(),
        Some(list) => {
            check_not_input(&args.output, list)?;
            let name = inputs::name(list);
            let text = fs::read_to_string(list).with_context(|| name.clone()).map_err(usage)?;
            spec.read_list(&text, &name).map_err(usage)?
        }
    };
    let part = PartFile::create(&args.output)?;
    let name = args.output.display().to_string();
    let mut out = CsvWriter::new(&name, &part.file)?;
    requests.iter().try_for_each(|request| out.write(request))?;
    out.finish()?;
    part.finish()?;
    let bytes: u64 = requests.iter().map(|request| request.bytes).sum();
    let reach = requests.iter().map(|request| request.offset + request.bytes).max().unwrap_or(0);
    let said = format!(
        "{name}: {} reads of {:.2} GiB in all, within the first {:.2} GiB\n",
        requests.len(),
        gib(bytes),
        gib(reach)
    );
    if is_standard_output(&args.output) {
        // Standard error may be closed; that is no reason to fail.
        io::stderr().write_all(said.as_bytes()).ok();
        return Ok(());
    }
    output::emit(&said, None)
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
