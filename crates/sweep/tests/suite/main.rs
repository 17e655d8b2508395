// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod asked;
mod designs;
mod folders;
mod reports;

use readpath_config::study;
use readpath_sweep::Plan;
use std::io;
use std::path::Path;

/// Reads of a small device, so that a point takes milliseconds.
const HEAD: &str = r#"
schema = "readpath-study/1"
name = "small"
title = "A small study"
seed = 7
device = "ufs21-64g"
set = { hpb = "off" }
[precondition]
layout = "sequential"
range = "none"
[workload]
kind = "fio"
text = "[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\nio_size=400k\nsize=1g\nioengine=libaio"
"#;

fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

fn plan_of(text: &str) -> Plan {
    let study = study::parse(text, "study.toml").expect("a study");
    Plan::new(study, text, &read).expect("a plan")
}

fn plan(more: &str) -> Plan {
    plan_of(&format!("{HEAD}{more}"))
}
