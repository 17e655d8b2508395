// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath examples`: lists and writes inputs to try.

use crate::args::Examples;
use crate::output;
use anyhow::Result;
use readpath_session::examples::{self, ALL};
use std::io::Write;

pub fn main(args: &Examples) -> Result<()> {
    let shown = args.dir.as_ref().map_or("DIR".into(), |dir| dir.display().to_string());
    if let Some(dir) = &args.dir {
        examples::write(dir)?;
    }
    let mut out = output::stdout();
    for example in &ALL {
        writeln!(out, "{:<13} {}", example.name, example.about.replace("DIR", &shown))?;
    }
    if args.dir.is_none() {
        writeln!(out, "\nAll are made by this program, and synthetic. 'readpath examples DIR' writes them.")?;
    }
    Ok(out.flush()?)
}
