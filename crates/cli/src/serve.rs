// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath serve`: a device in real time for NBD clients, until Ctrl-C or SIGTERM.

use crate::args::{Ctl, Hpb, Serve};
use crate::failure::Damaged;
use crate::{image, stop, usage};
use anyhow::{Context, Result, anyhow};
use readpath_host::{Control, HostConfig, HpbOptions};
use readpath_kit::Ns;
use readpath_serve::{Address, Begun, Lateness, Options, ServeError, Served, Speed, serve};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

pub fn main(args: &Serve) -> Result<()> {
    let addresses = addresses(args)?;
    let speed = speed(args)?;
    // A signal that comes while the device recovers waits until clients could connect.
    let stop = stop::readable()?;
    let (image, preset) = image::open(&args.image, !args.read_only, !args.no_sync)?;
    let host = HostConfig { hpb: hpb(args.hpb)?, ..preset.host };
    let shown = addresses.clone();
    let log = |line: &str| _ = writeln!(io::stderr(), "readpath: {line}");
    let options = Options {
        addresses,
        control: args.control.clone(),
        speed,
        read_only: args.read_only,
        stop: stop.as_fd(),
        log: Box::new(log),
    };
    let begun = |begun: &Begun| {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{} recovered in {} of device time", preset.name, begun.recovery.ready_at);
        for address in &shown {
            let _ = writeln!(out, "serving {address}{}", if args.read_only { " read-only" } else { "" });
        }
        let _ = out.flush();
    };
    let served = serve(image, &preset, host, options, begun).map_err(|error| match error {
        ServeError::Load(_) => Damaged(format!("{}: {error}", args.image.display())).into(),
        ServeError::Stack(_) | ServeError::Listen { .. } => usage(error),
        _ => anyhow::Error::new(error),
    })?;
    Ok(write!(io::stdout(), "{}", report(&served))?)
}

/// `readpath ctl`: sends a line to a server, and shows what it says.
pub fn ctl(args: &Ctl) -> Result<()> {
    let name = args.socket.display();
    let socket = UnixStream::connect(&args.socket);
    let mut socket = socket.map_err(|error| usage(anyhow!("{name}: no server listens there: {error}")))?;
    writeln!(socket, "{}", args.command.join(" "))?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).with_context(|| format!("{name}: the server went away"))?;
    match answer.strip_prefix("error: ") {
        Some(error) => Err(usage(anyhow!("{}", error.trim_end()))),
        None if answer.is_empty() => Err(anyhow!("{name}: the server went away")),
        None => Ok(write!(io::stdout(), "{answer}")?),
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

fn speed(args: &Serve) -> Result<Speed> {
    if args.speed == "instant" {
        return Ok(Speed::Instant);
    }
    match args.scale {
        scale if (0.001..=1e6).contains(&scale) => Ok(Speed::Real(scale)),
        scale => Err(usage(anyhow!("--scale {scale} is not possible; it is from 0.001 to 1000000"))),
    }
}

fn hpb(hpb: Hpb) -> Result<Option<HpbOptions>> {
    let mode = match hpb {
        Hpb::Off => return Ok(None),
        Hpb::Dcm => Control::Device,
        Hpb::Hcm => Control::Host,
        _ => return Err(usage(anyhow!("--hpb: a server has one host: off, dcm or hcm"))),
    };
    Ok(Some(HpbOptions { mode: Some(mode), ..HpbOptions::DEFAULT }))
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
    let all = served.zeros_read + served.slices_read;
    let _ = writeln!(text, "{} of {all} blocks read were never written, or were trimmed", served.zeros_read);
    if let Some(hpb) = &served.hpb {
        let _ = writeln!(text, "HPB: {} hits, {} misses", hpb.hit_cnt, hpb.miss_cnt);
    }
    if let Some(lateness) = &served.lateness {
        text += &of_time(lateness);
    }
    text
}

/// Latency as it was modelled and as it was served, each percentile with its verdict.
fn of_time(lateness: &Lateness) -> String {
    let mut text = String::new();
    if lateness.requests() == 0 {
        return text;
    }
    let us = |ns: Ns| ns.0 as f64 / 1e3;
    for verdict in lateness.verdicts() {
        let is_valid = match verdict.is_valid() {
            true => "valid".to_owned(),
            false => format!("late ({})", lateness.cause().name()),
        };
        let _ = writeln!(
            text,
            "p{:<5} {:>9.1} us modelled, {:>9.1} us served; time: {is_valid}",
            f64::from(verdict.per_mille) / 10.0,
            us(verdict.modelled),
            us(verdict.served)
        );
    }
    text
}
