// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath report`: the page of a result document.

use crate::args::Report;
use crate::files::{check_not_input, is_standard_output, write_whole};
use crate::{inputs, usage};
use anyhow::{Context, Result};
use readpath_report::html;
use readpath_session::kinds::{self, Kind};
use readpath_session::results::Document;
use std::io::{self, Write};

pub fn main(args: &Report) -> Result<()> {
    let name = args.result.display();
    check_not_input(&args.output, &args.result)?;
    kinds::check(&args.result, Kind::Document)?;
    let text = inputs::document(&args.result)?;
    let doc = Document::from_json(&text).with_context(|| name.to_string()).map_err(usage)?;
    write_whole(&args.output, html::page(&doc)?.as_bytes())?;
    match is_standard_output(&args.output) {
        true => Ok(()),
        false => Ok(writeln!(io::stdout(), "{}", args.output.display())?),
    }
}
