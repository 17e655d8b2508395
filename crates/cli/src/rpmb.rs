// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath image rpmb`: what an image holds of RPMB, shown or forgotten.

use crate::failure::Damaged;
use anyhow::{Result, anyhow};
use readpath_session::device::FlashArray;
use readpath_session::device::rpmb::{BLOCK_BYTES, BLOCKS};
use readpath_session::images;
use std::io::{self, Write};
use std::path::Path;

pub fn main(image: &Path, with_key: bool, to_reset: bool) -> Result<()> {
    if to_reset { reset(image) } else { show(image, with_key) }
}

fn damaged(path: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    Damaged(format!("{}: {error}", path.display())).into()
}

fn show(path: &Path, with_key: bool) -> Result<()> {
    let (mut image, _) = images::open(path, false, false)?;
    let kept = image.array.rpmb().map_err(|error| damaged(path, error))?;
    let mut out = io::stdout().lock();
    match &kept {
        None => writeln!(out, "key         not programmed")?,
        Some(kept) if with_key => {
            let digits: String = kept.key.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(out, "key         {digits}")?;
        }
        Some(_) => writeln!(out, "key         programmed")?,
    }
    let (counter, data) = kept.map_or((0, Vec::new()), |kept| (kept.counter, kept.data));
    let written = data.chunks(BLOCK_BYTES).filter(|block| block.iter().any(|&byte| byte != 0)).count();
    let mib = f64::from(BLOCKS) * BLOCK_BYTES as f64 / f64::from(1 << 20);
    writeln!(out, "counter     {counter}")?;
    writeln!(out, "size        {mib:.2} MiB, {BLOCKS} blocks of {BLOCK_BYTES} bytes")?;
    writeln!(out, "written     {written} blocks are not zero")?;
    Ok(())
}

fn reset(path: &Path) -> Result<()> {
    // Opened for writing, it is locked until the end.
    let (mut image, _) = images::open(path, true, true)?;
    let had_key = image.array.reset_rpmb().map_err(|error| match image.array.failure() {
        Some(_) => anyhow!("{}: {error}", path.display()),
        None => damaged(path, error),
    })?;
    let what = match had_key {
        true => "key, write counter and blocks of RPMB are forgotten",
        false => "RPMB has no key, and nothing was changed",
    };
    Ok(writeln!(io::stdout(), "{}: {what}", path.display())?)
}
