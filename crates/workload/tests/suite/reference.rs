// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the book are those of the program.

use std::{env, fs};

use readpath_workload::fio;
use readpath_workload::trace::Format;

/// The part of a page that begins and ends with these words is `table`.
#[track_caller]
fn page_has(file: &str, (begin, end): (&str, &str), table: &str) {
    let path = format!("{}/../../docs/formats/{file}", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(&path).expect("the page exists");
    let begin = page.find(begin).expect("the table begins");
    let end = begin + page[begin..].find(end).expect("the table ends");
    if env::var_os("READPATH_KEEP_REFERENCE").is_some() {
        fs::write(&path, format!("{}{table}{}", &page[..begin], &page[end..])).expect("the page can be written");
    } else {
        let keep = "READPATH_KEEP_REFERENCE=1 cargo test -p readpath-workload reference";
        let differs = page[begin..end].lines().zip(table.lines()).find(|(old, new)| old != new);
        assert!(&page[begin..end] == table, "{file} differs; write it anew with\n    {keep}\n{differs:#?}");
    }
}

#[test]
fn the_page_of_options_has_all_of_fio() {
    page_has("fio-options.md", ("## Simulated", "\nAn option that is in none"), &fio::reference());
}

#[test]
fn the_page_of_traces_has_every_format() {
    page_has("block-traces.md", ("| Name | Recorded by |", "\nTimes count from"), &Format::reference());
}
