// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath dev parity`: whether the host of this program decides as the one whose commands were traced.

use crate::ask::stoppable;
use crate::inputs::{self, Source};
use crate::live::Live;
use crate::presets::preset;
use crate::traces::check_stop;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_session::config::GivenKey;
use readpath_session::config::experiment::Variant;
use readpath_session::lab::parity::{HEARD_WITHIN, Parity, ParityError, parity};
use readpath_session::workload::trace::upius::Upius;
use std::io::{self, Write};
use std::path::Path;

pub fn main(path: &Path, device: &str, set: &[String], mode: &str) -> Result<()> {
    let keys = [GivenKey::new("hpb", mode, "--hpb"), GivenKey::new("strict_linux", "true", "--hpb")];
    let variant = Variant::of_keys("parity", &keys).map_err(usage)?;
    let preset = variant.device(&preset(device, set)?).map_err(usage)?;
    let shared = stoppable(&Live::default())?;
    let source = Source::open(path, "a trace", shared.stop.clone())?;
    let mut upius = Upius::new(&inputs::name(path), Box::new(source)).map_err(usage)?;
    upius.stop_when(shared.stop.clone());
    let found = parity(upius, &preset, variant.host(&preset));
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            check_stop(&shared)?;
            return Err(match error {
                ParityError::Stack(error) => error.into(),
                error => usage(error),
            });
        }
    };
    write!(io::stdout(), "{}", text(&found))?;
    match found.differences {
        0 => Ok(()),
        n => Err(anyhow!("{n} decisions differ, and nothing explains them")),
    }
}

fn text(found: &Parity) -> String {
    let Parity { requests, both_hpb, both_plain, loads, drops, tolerated, differences, told } = found;
    let mut text = format!(
        "{requests} block requests\n{both_hpb} reads are HPB READs here and there\n\
         {both_plain} reads are READs here and there\n{loads} sub-regions are loaded, and {drops} regions are dropped, \
         here and there\n"
    );
    for (cause, n) in tolerated {
        text += &format!("{n} differ as is to be expected within {HEARD_WITHIN}: {}\n", cause.text());
    }
    text += &format!("{differences} differ, and nothing explains them\n");
    for what in told {
        text += &format!("  {what}\n");
    }
    text
}
