// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi stream`: the flash reads of work on a freshly mounted volume, in the format that `ubi replay` reads.

use crate::args::{UbiStream, UbiWork};
use crate::files::{check_not_input, check_writable, is_special, is_standard_output, write_whole};
use crate::inputs;
use crate::stop::hold;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_session::ubi::nand::mtd::write_stream;
use readpath_session::ubi::ubifs::{MountMode, ReadKind};
use readpath_session::ubi::{Reads, Work, lines, reads, volume, wrong};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

pub fn main(args: &UbiStream) -> Result<()> {
    let image = &args.input.image;
    let path = args.path.as_os_str().as_bytes();
    check_not_input(&args.output, image)?;
    if args.work == UbiWork::Read {
        check_not_input(&args.output, &args.path)?;
    }
    let held = hold();
    check_writable(&args.output)?;
    drop(held);
    let list = match args.work {
        UbiWork::Read => lines(&inputs::text(&args.path)?),
        UbiWork::Mount if path != b"/" => {
            return Err(usage(anyhow!("{}: a mount reads nothing below /, which is its path", args.path.display())));
        }
        _ => Vec::new(),
    };
    if args.read_only && args.work == UbiWork::Rm {
        return Err(usage(anyhow!("--read-only: nothing can be removed then")));
    }
    let work = Work {
        what: args.work,
        path,
        list: &list,
        mode: if args.read_only { MountMode::ReadOnly } else { MountMode::ReadWrite },
        bulk_read: args.bulk_read,
        with_mount: args.with_mount || args.work == UbiWork::Mount,
    };
    let Reads { records, page_bytes } =
        reads(volume(&args.input, args.with_mount)?, &work).map_err(|e| wrong(image, e))?;
    let mut text = format!("# op,peb,offset,len,lnum,what\n# page_bytes={page_bytes}\n").into_bytes();
    write_stream(&records, &mut text, ReadKind::name_of)?;
    // What is no file is written as it comes, to a reader who may take long.
    let held = (!is_special(&args.output)).then(hold);
    write_whole(&args.output, &text)?;
    if let Some(held) = held {
        held.done();
    }
    if !is_standard_output(&args.output) {
        writeln!(io::stdout(), "{} reads in {}", records.len(), args.output.display())?;
    }
    Ok(())
}
