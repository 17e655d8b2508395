// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath attach`: a device behind a UFS host controller, for a virtual machine's own driver, until Ctrl-C or
//! SIGTERM.

use crate::args::Attach;
use crate::failure::Damaged;
use crate::files::{PartFile, check_not_input, is_standard_output};
use crate::serve::speed;
use crate::{output, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_serve::{AttachOptions, OWN_TAG, ServeError, WasAttached, attach};
use readpath_session::device::{Ns, Protocol, Recovery};
use readpath_session::images;
use readpath_session::running::{Tap, TapTo};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub fn main(args: &Attach) -> Result<()> {
    let speed = speed(args.instant, args.scale)?;
    let id = args.pci_id.parse().map_err(|error| usage(anyhow!("--pci-id: {error}")))?;
    let misbehaviour = args.misbehave.as_deref().map(str::parse).transpose();
    let misbehaviour = misbehaviour.map_err(|error| usage(anyhow!("--misbehave: {error}")))?;
    // A file that cannot be made is reported now, not at the end.
    let made =
        |path: &PathBuf| File::create(path).map_err(|error| usage(anyhow!("--counters: {}: {error}", path.display())));
    let counters = args.counters.as_ref().map(made).transpose()?;
    // A signal that comes while the device recovers waits until a client could connect.
    let stop = stop::readable()?;
    let (image, preset) = images::open(&args.image, true, !args.no_sync)?;
    if preset.device.host_map().is_some_and(|map| map.protocol == Protocol::Hmb) {
        log(&format!("{} models an NVMe drive with memory of its host; the machine sees a UFS device", preset.name));
    }
    let trace = args.trace_io.as_deref().map(|path| trace_file(path, &args.image)).transpose()?;
    let has_begun = Cell::new(false);
    let bar = output::bar(u64::from(image.array.format().shape.superblocks), "superblocks");
    let begun = |recovery: &Recovery| {
        bar.finish_and_clear();
        has_begun.set(true);
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{} recovered in {} of device time", preset.name, recovery.ready_at);
        let _ = writeln!(out, "attached to {}; a machine of QEMU 10.1 or later finds it by:", args.socket.display());
        let _ = writeln!(out, "{}", qemu_arguments(&args.socket));
        let _ = out.flush();
    };
    let options = AttachOptions { socket: &args.socket, id, misbehaviour, speed, stop: stop.as_fd(), log };
    let mut looked = |at: u32| bar.set_position(at.into());
    let (was, traced) = match &trace {
        None => (attach(image, &preset, &options, None, &mut looked, &begun), Ok(0)),
        Some(part) => {
            let mut out = &part.file;
            let mut tap = tap(&mut out, &args.image, &preset.name);
            (attach(image, &preset, &options, Some(&mut tap), &mut looked, &begun), tap.finish())
        }
    };
    // The trace is kept whatever ended the program, also as far as a full disk has taken it.
    let named = trace.filter(|_| has_begun.get()).map_or(Ok(()), PartFile::finish);
    let was = was.map_err(|error| match error {
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
    named?;
    if let Some(path) = &args.trace_io {
        let events = traced.with_context(|| format!("{}: the trace is not whole", path.display()))?;
        writeln!(io::stderr(), "{}: {events} events", path.display()).ok();
    }
    if let (Some(path), Some(mut file)) = (&args.counters, counters) {
        let lines: String = device.by_name().map(|(name, value)| format!("{name} {value}\n")).collect();
        file.write_all(lines.as_bytes()).with_context(|| path.display().to_string())?;
    }
    match was.lost {
        Some(error) => Err(anyhow!("what the device held in its write buffer is lost: {error}")),
        None => Ok(()),
    }
}

fn log(line: &str) {
    _ = writeln!(io::stderr(), "readpath: {line}");
}

/// Begins the file of the trace, which is not to take the place of the image.
fn trace_file(path: &Path, image: &Path) -> Result<PartFile> {
    check_not_input(path, image)?;
    if is_standard_output(path) {
        return Err(usage(anyhow!("--trace-io: standard output has what the program says; name a file or a pipe")));
    }
    PartFile::create(path)
}

/// Records to `out` what the machine asks of the device, without the device's own requests.
fn tap<'t>(out: &'t mut dyn Write, image: &Path, device: &str) -> TapTo<'t> {
    let (start, now) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let seconds = format!("{}.{:09}", now.as_secs(), now.subsec_nanos());
    let title = format!("{}, {device}; wall_ns 0 is {seconds} s of Unix time", image.display());
    let wall = move || Ns(start.elapsed().as_nanos().min(u64::MAX.into()) as u64);
    Tap::new(out, &title, None).with_wall_clock(wall).leaving_out(OWN_TAG)
}

/// What a machine of QEMU needs to find the function: memory that another process can reach, and the socket.
fn qemu_arguments(socket: &Path) -> String {
    // A comma would end the name of the socket in the plain form of an option.
    let path = serde_json::to_string(&socket.to_string_lossy()).unwrap_or_default();
    let device = format!(r#"{{"driver":"vfio-user-pci","socket":{{"type":"unix","path":{path}}}}}"#);
    format!(
        "  -machine q35,memory-backend=mem -object memory-backend-memfd,id=mem,size=512M,share=on \\\n  \
         -device {}",
        quoted(&device)
    )
}

/// As one word of a shell: within single quotes nothing has a meaning, and a single quote stands outside.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
