// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath serve`: a device in real time for NBD clients, until Ctrl-C or SIGTERM, or for one program.

mod program;
mod watch;

use crate::args::{Ctl, Serve};
use crate::failure::Damaged;
use crate::inputs::read_text;
use crate::live::Live;
use crate::{output, stop, usage};
use anyhow::{Result, anyhow};
use program::{Program, Room};
use readpath_serve::{
    Address, Begun, Cause, Faults, Host, Lateness, Options, RuleCount, ServeError, Served, Speed, serve,
};
use readpath_session::device::Ns;
use readpath_session::images;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub fn main(args: &Serve) -> Result<()> {
    let room = args.run.as_ref().map(|_| Room::new()).transpose()?;
    let own = |name| room.as_ref().map(|room| room.path(name));
    let addresses = match own("nbd.sock").filter(|_| args.nbd.is_empty()) {
        Some(path) => vec![Address::Unix(path)],
        None => addresses(args)?,
    };
    let control = args.control.clone().or(own("ctl.sock"));
    let speed = speed(args.instant, args.scale)?;
    let host = host(args)?;
    let faults = args.faults.as_deref().map(faults).transpose()?.unwrap_or_default();
    if let Some(at) = args.metrics.filter(|at| !at.ip().is_loopback() && !args.public) {
        return Err(usage(anyhow!("--metrics: {at} can be reached from other machines; --public allows it")));
    }
    // A signal that comes while the device recovers waits until clients could connect.
    let stop = stop::readable()?;
    let opened = readpath_serve::open(&args.image, !args.read_only, !args.no_sync);
    let (image, preset) = images::opened(&args.image, opened)?;
    host.fits(&preset).map_err(|error| usage(anyhow!("--hpb, --policy, --host-memory ({host}): {error}")))?;
    faults.check(&preset).map_err(usage)?;
    let live = Live::start(&args.live, [(preset.name.clone(), host.to_string())])?;
    let board = live.shared().board;
    let (record, begins) = args.record.as_deref().map(recording).transpose()?.unzip();
    let shown = addresses.clone();
    let options = Options {
        addresses,
        control: control.clone(),
        metrics: args.metrics,
        faults,
        record,
        record_data: args.data,
        post: board.as_deref().and_then(|board| board.posts().first()),
        speed,
        read_only: args.read_only,
        stop: stop.as_fd(),
        log: |line| _ = writeln!(io::stderr(), "readpath: {line}"),
    };
    let bar = output::bar(u64::from(image.array.format().shape.superblocks), "superblocks");
    let mut program = None;
    let begun = |begun: &Begun| {
        bar.finish_and_clear();
        begins.into_iter().for_each(Fresh::keep);
        if let (Some(command), Some(control)) = (&args.run, &control) {
            program = Some(Program::start(command, &shown[0], control));
            return;
        }
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{} recovered in {} of device time", preset.name, begun.recovery.ready_at);
        for address in &shown {
            let _ = writeln!(out, "serving {address}{}", if args.read_only { " read-only" } else { "" });
        }
        if let exports @ [_, _, ..] = &*readpath_serve::exports(&preset) {
            let _ = writeln!(out, "exports: {}", exports.join(", "));
        }
        let _ = out.flush();
    };
    let served = serve(image, &preset, &host, options, &mut |at| bar.set_position(at.into()), begun).map_err(
        |error| match error {
            ServeError::Load(_) => Damaged(format!("{}: {error}", args.image.display())).into(),
            ServeError::Stack(_) | ServeError::Listen { .. } | ServeError::Zones { .. } => usage(error),
            _ => anyhow::Error::new(error),
        },
    )?;
    write!(io::stdout(), "{}", report(&served))?;
    live.finish()?;
    let ended = program.map_or(Ok(()), |program| program.map_err(|e| anyhow!("--run: {e}"))?.end());
    if let Some(error) = &served.lost {
        return Err(anyhow!("what the device held in its write buffer is lost: {error}"));
    }
    match (&args.record, &served.recording) {
        (Some(path), Some(error)) => Err(anyhow!("{}: the recording is not whole: {error}", path.display())),
        _ => ended,
    }
}

fn faults(path: &Path) -> Result<Faults> {
    let text = read_text(path).map_err(|error| usage(anyhow!("{}: {error}", path.display())))?;
    Faults::read(&text, &path.display().to_string()).map_err(usage)
}

/// A file that was made for a recording. It is removed on drop unless the recording has begun.
struct Fresh(Option<PathBuf>);

impl Fresh {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.0.iter().for_each(|path| _ = std::fs::remove_file(path));
    }
}

/// Made before the device recovers, so that a wrong path is reported at once.
fn recording(path: &Path) -> Result<(Box<dyn Write>, Fresh)> {
    let file = File::create_new(path).map_err(|error| usage(anyhow!("{}: {error}", path.display())))?;
    Ok((Box::new(BufWriter::with_capacity(1 << 16, file)), Fresh(Some(path.to_owned()))))
}

/// `readpath ctl`: sends a line to a server, and shows its answer.
pub fn ctl(args: &Ctl) -> Result<()> {
    if args.order == ["watch"] {
        return watch::main(&args.socket);
    }
    let order = args.order.join(" ");
    if order.contains(['\n', '\r']) {
        return Err(usage(anyhow!("an order is one line; give each to a command of its own, or to --faults FILE")));
    }
    let answer = send(&args.socket, &order)?;
    Ok(write!(io::stdout(), "{answer}")?)
}

/// Sends a line to a server and returns its answer.
fn send(socket: &Path, line: &str) -> Result<String> {
    let name = socket.display();
    let connected = UnixStream::connect(socket);
    let mut connected = connected.map_err(|error| usage(anyhow!("{name}: no server listens there: {error}")))?;
    // The server may refuse the line and still send an answer.
    _ = writeln!(connected, "{line}");
    let mut answer = String::new();
    let read = connected.read_to_string(&mut answer);
    read.map_err(|error| anyhow!("{name}: the server hung up: {error}"))?;
    match answer.strip_prefix("error: ") {
        Some(error) => Err(usage(anyhow!("{}", error.trim_end()))),
        None if answer.is_empty() => Err(anyhow!("{name}: the server hung up")),
        None => Ok(answer),
    }
}

fn addresses(args: &Serve) -> Result<Vec<Address>> {
    let given = if args.nbd.is_empty() { &["tcp:127.0.0.1:10809".to_owned()][..] } else { &args.nbd };
    let addresses: Vec<Address> =
        given.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(|e| usage(anyhow!("--nbd: {e}")))?;
    match addresses.iter().find(|address| address.is_public()) {
        Some(address) if !args.public => Err(usage(anyhow!(
            "{address} can be reached from other machines, and there is neither a password nor TLS; --public allows it"
        ))),
        _ => Ok(addresses),
    }
}

/// The speed of time.
pub fn speed(instant: bool, scale: f64) -> Result<Speed> {
    match scale {
        _ if instant => Ok(Speed::Instant),
        scale if (0.001..=1e6).contains(&scale) => Ok(Speed::Real(scale)),
        scale => Err(usage(anyhow!("--scale {scale} is not possible; it is from 0.001 to 1000000"))),
    }
}

/// The host of the options.
fn host(args: &Serve) -> Result<Host> {
    let hpb = args.hpb.as_deref().or(args.policy.is_none().then_some("off"));
    let words = [("hpb", hpb), ("policy", args.policy.as_deref()), ("memory", args.host_memory.as_deref())];
    let words = words.iter().filter_map(|(key, value)| Some(format!("{key}={}", (*value)?)));
    let words = words.collect::<Vec<_>>().join(" ");
    words.parse().map_err(|error| usage(anyhow!("--hpb, --policy and --host-memory: {error}")))
}

fn report(served: &Served) -> String {
    let mut text = String::new();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let _ = writeln!(
        text,
        "{} requests of {} connections: {:.1} MiB read, {:.1} MiB written, {} errors",
        served.requests,
        served.connections,
        mib(served.read_bytes),
        mib(served.written_bytes),
        served.errors
    );
    for unit in served.by_unit.iter().filter(|_| served.by_unit.len() > 1) {
        let (read, written) = (mib(unit.read_bytes), mib(unit.written_bytes));
        let _ =
            writeln!(text, "{}: {} requests, {read:.1} MiB read, {written:.1} MiB written", unit.name, unit.requests);
    }
    let all = served.zeros_read + served.slices_read;
    let _ = writeln!(text, "{} of {all} blocks read were never written, or were trimmed", served.zeros_read);
    if let Some(hpb) = &served.hpb {
        let _ = writeln!(text, "HPB: {} hits, {} misses", hpb.hit_cnt, hpb.miss_cnt);
    }
    text += &acted(&served.rules);
    if let Some(lateness) = &served.lateness {
        text += &judged(lateness, Some(lateness.cause()));
    }
    text
}

/// What rules have done.
pub fn acted(rules: &[RuleCount]) -> String {
    let line = |RuleCount { number, rule, met, done }: &RuleCount| {
        format!("rule {number}: {rule}: acted on {done} of the {met} requests that it met\n")
    };
    rules.iter().map(line).collect()
}

/// Latency as it was modelled and as it was served, the mean and each percentile with its verdict.
pub fn judged(lateness: &Lateness, cause: Option<Cause>) -> String {
    let mut text = String::new();
    if lateness.requests() == 0 {
        return text;
    }
    let us = |ns: Ns| ns.0 as f64 / 1e3;
    for verdict in lateness.verdicts() {
        let time = match (verdict.is_valid(), cause) {
            (true, _) => "valid".to_owned(),
            (false, Some(cause)) => format!("late ({})", cause.name()),
            (false, None) => "late".to_owned(),
        };
        let (name, modelled, served) = (verdict.name, us(verdict.modelled), us(verdict.served));
        let _ = writeln!(text, "{name:<6} {modelled:>9.1} us modelled, {served:>9.1} us served; server: {time}");
    }
    text += "A client measures its own path to the socket and back as well.\n";
    text
}
