// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns a result document into a page: `cargo run -p readpath-report --example page -- results.json > page.html`.
//! With `--text` the tables go to the terminal instead, with `--svg` the first chart as a file of its own.

use std::error::Error;

use readpath_report::{TableSpec, html, svg, terminal};
use readpath_results::Document;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: page results.json [--text [width] | --svg]")?;
    let document = Document::from_json(&std::fs::read_to_string(path)?)?;
    let out = match arguments.next().as_deref() {
        Some("--text") => {
            let spec = match arguments.next() {
                Some(width) => TableSpec::new().width(width.parse()?),
                None => TableSpec::new(),
            };
            terminal::table(&document, &spec)
        }
        Some("--svg") => svg::standalone(document.charts.first().ok_or("the document has no chart")?)?,
        _ => html::page(&document)?,
    };
    print!("{out}");
    Ok(())
}
