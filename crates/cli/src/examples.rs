// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath examples`: lists and writes inputs to try.

use crate::args::Examples;
use crate::files::{NewFolder, write_whole};
use crate::{output, usage};
use anyhow::{Result, anyhow};
use readpath_session::examples::ALL;
use std::fs;
use std::io::Write;

pub fn main(args: &Examples) -> Result<()> {
    let shown = args.dir.as_ref().map_or("DIR".into(), |dir| dir.display().to_string());
    if let Some(dir) = &args.dir {
        let files: Vec<_> = ALL.iter().map(|example| (dir.join(example.name), (example.make)())).collect();
        if let Some((path, _)) = files.iter().find(|(path, made)| fs::read(path).is_ok_and(|there| there != *made)) {
            return Err(usage(anyhow!("{}: has other contents; give another folder", path.display())));
        }
        let _made = NewFolder::create(dir)?;
        files.iter().try_for_each(|(path, made)| write_whole(path, made))?;
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
