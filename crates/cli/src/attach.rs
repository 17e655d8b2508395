// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath attach`: a device behind a UFS host controller, for a virtual machine's own driver, until Ctrl-C or
//! SIGTERM.

use crate::args::Attach;
use crate::failure::Damaged;
use crate::serve::speed;
use crate::{image, output, stop, usage};
use anyhow::{Result, anyhow};
use readpath_device::Recovery;
use readpath_serve::{AttachOptions, ServeError, WasAttached, attach};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

pub fn main(args: &Attach) -> Result<()> {
    let speed = speed(&args.speed, args.scale)?;
    let id = args.pci_id.parse().map_err(|error| usage(anyhow!("--pci-id: {error}")))?;
    let misbehaviour = args.misbehave.as_deref().map(str::parse).transpose();
    let misbehaviour = misbehaviour.map_err(|error| usage(anyhow!("--misbehave: {error}")))?;
    // A signal that comes while the device recovers waits until a client could connect.
    let stop = stop::readable()?;
    let (image, preset) = image::open(&args.image, true, !args.no_sync)?;
    let bar = output::bar(u64::from(image.array.format().shape.superblocks), "superblocks");
    let begun = |recovery: &Recovery| {
        bar.finish_and_clear();
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{} recovered in {} of device time", preset.name, recovery.ready_at);
        let _ = writeln!(out, "attached to {}; a machine of QEMU 10.1 or later finds it by:", args.socket.display());
        let _ = writeln!(out, "{}", qemu_arguments(&args.socket));
        let _ = out.flush();
    };
    let log = |line: &str| _ = writeln!(io::stderr(), "readpath: {line}");
    let options = AttachOptions { socket: &args.socket, id, misbehaviour, speed, stop: stop.as_fd(), log };
    let mut looked = |at: u32| bar.set_position(at.into());
    let was = attach(image, &preset, &options, (), &mut looked, begun).map_err(|error| match error {
        ServeError::Load(_) => Damaged(format!("{}: {error}", args.image.display())).into(),
        ServeError::Stack(_) | ServeError::Listen { .. } => usage(error),
        _ => anyhow::Error::new(error),
    })?;
    let WasAttached { clients, turned_away, broken, device, .. } = was;
    writeln!(
        io::stdout(),
        "{clients} clients, {turned_away} turned away, {broken} disconnected for what they sent\n\
         {} blocks written; {} HPB READs, of which {} hit, {} HPB READ BUFFERs",
        device.slices_written,
        device.hpb_reads,
        device.hpb_hits,
        device.read_buffers
    )?;
    if let Some(how) = misbehaviour {
        writeln!(io::stdout(), "{how}: {} times", was.misbehaved)?;
    }
    match was.lost {
        Some(error) => Err(anyhow!("what the device held in its write buffer is lost: {error}")),
        None => Ok(()),
    }
}

/// What a machine of QEMU needs to find the function: memory that another process can reach, and the socket.
fn qemu_arguments(socket: &Path) -> String {
    // A comma would end the name of the socket in the plain form of an option.
    let path = serde_json::to_string(&socket.to_string_lossy()).unwrap_or_default();
    format!(
        "  -machine q35,memory-backend=mem -object memory-backend-memfd,id=mem,size=512M,share=on \\\n  \
         -device '{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":{path}}}}}'"
    )
}
