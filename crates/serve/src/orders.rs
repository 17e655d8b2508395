// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders for a served device: the language of `readpath ctl`, of `--faults` files and of recordings, and what
//! each order does to host and device. `docs/serve.md` describes it. It knows no socket and no clock.

use crate::host::Host;
use crate::jobs::Job;
use crate::requests::Requests;
use readpath_config::{DevicePreset, size};
use readpath_device::{Failable, Failing, Probe, Recovery};
use readpath_flash::DieSched;
use readpath_host::HpbParam;
use readpath_kit::Ns;
use readpath_run::rules::{self, Due, Exactly, RuleOrder, Wrong, number, span};
use readpath_run::{LUN, RunError};
use readpath_stack::{Payload, Stack, Wire};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

const WITHOUT_POWER: Ns = Ns::from_ms(100);

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fails {
    Read,
    Flash(Failable),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Order {
    /// The device loses its power. Clients stay, and what is in flight is sent again.
    Cut { off: Ns },
    /// Host and device lose their power. What is in flight is lost, and connections end.
    Disconnect { off: Ns },
    /// Host and device lose their power, until it is switched on. What is in flight is lost, and nobody hears of it.
    Crash,
    /// The power is on again.
    PowerOn,
    /// Nothing is answered for some time.
    Stall { time: Ns },
    /// Requests that are held back are answered at once.
    StallOff,
    /// Requests fail, take longer, or are not done as they should be, or no longer. A seed is that of all failures by
    /// chance.
    Rules(RuleOrder),
    /// Operations of flash fail.
    Fail { what: Fails, failing: Failing },
    /// Flush and FUA are answered although nothing is durable.
    Lie(bool),
    /// Writes are refused.
    EndOfLife(bool),
    /// Limit of host memory for HPB.
    Memory { bytes: u64 },
    /// A parameter of HPB.
    Param { param: HpbParam, value: u32 },
    /// The host restarts with other settings.
    Host(Host),
    /// Nothing happens; a recording has the words, for those who look at what was done until then.
    Mark(String),
}

/// Why a text is no order.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct OrderError(String);

/// The orders, for help and errors.
pub(crate) const ORDERS: &str = "cut [disconnect] [TIME], cut crash, power on, stall TIME, stall off, error RULE \
                                 [ERRNO], slow RULE TIME, drop RULE, torn RULE 512|4K, misdirect RULE, corrupt RULE, \
                                 error|slow|drop|torn|misdirect|corrupt off, fail read|program|erase N|Nppm|off, lie \
                                 on|off, end-of-life on|off, memory SIZE, param NAME VALUE, host KEY=VALUE..., seed \
                                 N, mark WORDS; a RULE has any of [read|write|flush|trim|zero] [FROM-TO] [client N] \
                                 [nth N|every N|first N|P%|Nppm] [up TIME down TIME]";

/// What connections hear of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Nothing,
    /// They end.
    End,
    /// No client is answered or read from, and none can connect.
    Silence,
    /// The silence is over: those from before it end, and clients can connect.
    Back,
}

/// What an order has done.
pub(crate) struct Carried {
    /// For the sender.
    pub answer: String,
    /// When it is over.
    pub after: Ns,
    /// Requests that were lost, in the order in which they came.
    pub lost: Vec<Job>,
    pub heard: Heard,
}

/// Why an order was not carried out.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What host or device have against it.
    Order(String),
    /// Host and device cannot go on.
    Run(RunError),
}

impl From<String> for Refused {
    fn from(what: String) -> Refused {
        Refused::Order(what)
    }
}

impl Order {
    /// Whether the device is switched off.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Order::Cut { .. } | Order::Disconnect { .. } | Order::Crash | Order::Host(_))
    }

    /// Carries an order out at `now`, with these requests in flight. The caller brings the new host.
    ///
    /// # Errors
    /// What host or device has against it.
    pub(crate) fn carry_out<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &self,
        stack: &mut Stack<S, X, P, W>,
        requests: &mut Requests,
        now: Ns,
    ) -> Result<Carried, Refused> {
        let in_flight = requests.count();
        let done = |answer: String| Ok(Carried { answer, after: now, lost: Vec::new(), heard: Heard::Nothing });
        let recovered = |recovery: Recovery, on: Ns| {
            format!("{} units torn; recovered in {}", recovery.torn, recovery.ready_at.saturating_sub(on))
        };
        let needs_power =
            matches!(self, Order::Cut { .. } | Order::Disconnect { .. } | Order::Crash | Order::Memory { .. })
                || matches!(self, Order::Param { .. } | Order::Host(_));
        if needs_power && requests.troubles.is_off() {
            return Err(Refused::Order("the power is off; 'power on' switches it on".to_owned()));
        }
        let Requests { troubles, .. } = requests;
        match self {
            &Order::Cut { off } => {
                let on = now + off;
                let recovery = stack.device_power_cycle(now, on);
                stack.advance(on);
                requests.power_was_lost();
                let recovered = recovered(recovery, on);
                let answer = format!("cut at {now} for {off} with {in_flight} requests in flight; {recovered}");
                Ok(Carried { after: on, ..done(answer)? })
            }
            &Order::Disconnect { off } => {
                let on = now + off;
                let recovery = stack.power_cycle(now, on);
                let after = restarted(stack, recovery)?;
                let answer = format!(
                    "cut at {now} for {off} with {in_flight} requests in flight, which are lost; clients are \
                     disconnected; {}",
                    recovered(recovery, on)
                );
                Ok(Carried { answer, after, lost: requests.lose(), heard: Heard::End })
            }
            Order::Crash => {
                stack.power_cut(now);
                troubles.switch_off(true);
                let answer = format!(
                    "power off at {now} with {in_flight} requests in flight, which are lost; nothing is answered until \
                     'power on'"
                );
                Ok(Carried { answer, after: now, lost: requests.lose(), heard: Heard::Silence })
            }
            Order::PowerOn if !troubles.is_off() => Err("the power is on".to_owned())?,
            Order::PowerOn => {
                let recovery = stack.power_on(now);
                let after = restarted(stack, recovery)?;
                troubles.switch_off(false);
                let answer = format!("power on at {now}; clients have to connect again; {}", recovered(recovery, now));
                Ok(Carried { after, heard: Heard::Back, ..done(answer)? })
            }
            &Order::Stall { time } => {
                troubles.stall(now + time);
                done(format!("nothing is answered from {now} on for {time}"))
            }
            Order::Rules(order) => {
                let units: Vec<u32> = stack.host.luns().map(|lun| stack.host.unit_blocks(lun).unwrap_or(0)).collect();
                troubles.rules.carry_out(order, now, &units)?;
                if let &RuleOrder::Seed(seed) = order {
                    stack.device.seed_faults(seed);
                    stack.payload.seed_reads(seed);
                }
                done(self.to_string())
            }
            Order::StallOff => {
                troubles.let_go();
                done(self.to_string())
            }
            &Order::Fail { what: Fails::Read, failing } => {
                stack.payload.fail_reads(failing);
                done(self.to_string())
            }
            &Order::Fail { what: Fails::Flash(what), failing } => {
                stack.device.set_failing(what, failing);
                done(self.to_string())
            }
            &Order::Lie(lies) => {
                troubles.lie(lies);
                done(self.to_string())
            }
            &Order::EndOfLife(is_worn_out) => {
                troubles.wear_out(is_worn_out);
                done(self.to_string())
            }
            &Order::Memory { bytes } => {
                for lun in hpb_units(stack) {
                    stack.limit_memory(now, lun, bytes).map_err(|error| error.to_string())?;
                }
                done(self.to_string())
            }
            &Order::Param { param, value } => {
                for lun in hpb_units(stack) {
                    stack.host.store_hpb_param(lun, param, value).map_err(|error| error.to_string())?;
                }
                done(self.to_string())
            }
            Order::Host(_) => {
                // It comes when everything has been answered.
                troubles.let_go();
                troubles.drain(true);
                done(self.to_string())
            }
            Order::Mark(_) => done(self.to_string()),
        }
    }
}

/// Lets the host, which lost its power too, find the device; returns when it has.
fn restarted<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    recovery: Recovery,
) -> Result<Ns, Refused> {
    stack.start(recovery.ready_at).map_err(|error| Refused::Run(RunError::Restart(Arc::new(error))))
}

/// The logical units with HPB, each with memory and parameters of its own; without any, the first, which says so.
fn hpb_units<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Vec<u8> {
    let units: Vec<u8> = stack.host.luns().filter(|&lun| stack.host.hpb(lun).is_some()).collect();
    if units.is_empty() { vec![LUN] } else { units }
}

impl fmt::Display for Order {
    /// The order as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_off = |on: bool| if on { "on" } else { "off" };
        match self {
            Order::Cut { off } => write!(f, "cut {}", Exactly(*off)),
            Order::Disconnect { off } => write!(f, "cut disconnect {}", Exactly(*off)),
            Order::Crash => write!(f, "cut crash"),
            Order::PowerOn => write!(f, "power on"),
            Order::Stall { time } => write!(f, "stall {}", Exactly(*time)),
            Order::Rules(order) => write!(f, "{order}"),
            Order::StallOff => write!(f, "stall off"),
            Order::Fail { what, failing } => {
                let what = match what {
                    Fails::Read => "read",
                    Fails::Flash(what) => what.name(),
                };
                match *failing {
                    Failing { ppm: 0, nth: 0 } => write!(f, "fail {what} off"),
                    Failing { ppm: 0, nth } => write!(f, "fail {what} {nth}"),
                    Failing { ppm, .. } => write!(f, "fail {what} {ppm}ppm"),
                }
            }
            Order::Lie(lies) => write!(f, "lie {}", on_off(*lies)),
            Order::EndOfLife(is_worn_out) => write!(f, "end-of-life {}", on_off(*is_worn_out)),
            Order::Memory { bytes } => write!(f, "memory {bytes}"),
            Order::Param { param, value } => write!(f, "param {} {value}", param.name()),
            Order::Host(host) => write!(f, "host {host}"),
            Order::Mark(words) => write!(f, "mark {words}"),
        }
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{text}' is neither on nor off")),
    }
}

fn failing(text: &str) -> Result<Failing, String> {
    let failing = match text.strip_suffix("ppm") {
        _ if text == "off" => Failing::default(),
        Some(ppm) => Failing { ppm: number(ppm)?, nth: 0 },
        None => Failing { ppm: 0, nth: number(text)? },
    };
    match failing {
        Failing { ppm: 1_000_001.., .. } => Err(format!("{text} is more than all: 1000000ppm")),
        Failing { ppm: 0, nth: 0 } if text != "off" => {
            Err(format!("'{text}' lets nothing fail: write off, or from 1 on"))
        }
        failing => Ok(failing),
    }
}

fn param(name: &str, value: &str) -> Result<Order, String> {
    let all = || HpbParam::ALL.map(HpbParam::name).join(", ");
    let param = HpbParam::by_name(name).ok_or_else(|| format!("'{name}' is not one of {}", all()))?;
    Ok(Order::Param { param, value: number(value)? })
}

/// An order that is no rule.
fn other(words: &[&str]) -> Result<Order, String> {
    match *words {
        ["cut"] => Ok(Order::Cut { off: WITHOUT_POWER }),
        ["cut", "disconnect"] => Ok(Order::Disconnect { off: WITHOUT_POWER }),
        ["cut", "disconnect", off] => span(off).map(|off| Order::Disconnect { off }),
        ["cut", "crash"] => Ok(Order::Crash),
        ["cut", "crash", _] => Err("takes no time: the power is off until 'power on'".to_owned()),
        ["power", "on"] => Ok(Order::PowerOn),
        ["power", "off"] => Err("write 'cut crash'".to_owned()),
        ["cut", off] => span(off).map(|off| Order::Cut { off }),
        ["stall", "off"] => Ok(Order::StallOff),
        ["stall", time] => match span(time) {
            Ok(Ns::ZERO) => Err("lasts no time; 'stall off' ends one".to_owned()),
            time => time.map(|time| Order::Stall { time }),
        },
        ["fail", what, when] => {
            let flash = Failable::by_name(what).map(Fails::Flash);
            match flash.or((what == "read").then_some(Fails::Read)) {
                Some(what) => failing(when).map(|failing| Order::Fail { what, failing }),
                None => Err(format!("'{what}' is not read, program or erase of flash; 'error {what}' fails requests")),
            }
        }
        ["lie", word] => on_off(word).map(Order::Lie),
        ["end-of-life", word] => on_off(word).map(Order::EndOfLife),
        ["memory", bytes] => size(bytes).map(|bytes| Order::Memory { bytes }),
        ["param", name, value] => param(name, value),
        ["host", ref words @ ..] => words.join(" ").parse().map(Order::Host),
        ["mark", ref words @ ..] if !words.is_empty() => Ok(Order::Mark(words.join(" "))),
        _ => Err(format!("is not an order; there are: {ORDERS}")),
    }
}

impl Order {
    /// The order of a text.
    ///
    /// # Errors
    /// Why it is none, and the word at fault.
    pub(crate) fn read(text: &str) -> Result<Order, Wrong> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let order = match RuleOrder::read(text) {
            _ if words.is_empty() => return Err(Wrong { at: 0, what: "nothing is ordered".to_owned() }),
            Some(order) => order.map(Order::Rules),
            None => {
                let at = text.len() - text.trim_start().len();
                other(&words).map_err(|what| Wrong { at, what })
            }
        };
        order.map_err(|Wrong { at, what }| Wrong { at, what: format!("{}: {what}", words.join(" ")) })
    }
}

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Order, OrderError> {
        Order::read(text).map_err(|wrong| OrderError(wrong.what))
    }
}

/// Orders and when they are due: what a `--faults` file says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Faults(pub(crate) Vec<Due<Order>>);

impl Faults {
    /// Reads lines of a time and an order, in order of time; `#` begins a comment. `file` is what errors call them.
    ///
    /// # Errors
    /// The first line that is wrong, and why.
    pub fn read(text: &str, file: &str) -> Result<Faults, OrderError> {
        rules::lines(text, file, Order::read).map(Faults).map_err(OrderError)
    }

    /// Whether each rule and each host that is to take over fits a device.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self, base: &DevicePreset) -> Result<(), OrderError> {
        let units: Vec<u32> = base.device.lus.iter().map(|unit| unit.blocks).collect();
        for Due { order, place, .. } in &self.0 {
            let fits = match order {
                Order::Host(host) => host.fits(base),
                Order::Rules(RuleOrder::Add(rule)) => rule.fits(&units),
                _ => Ok(()),
            };
            fits.map_err(|what| OrderError(format!("{place}: {order}: {what}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_written() {
        for (text, written) in [
            ("cut", "cut 100ms"),
            (" cut  2s ", "cut 2s"),
            ("cut 0ms", "cut 0s"),
            ("cut disconnect", "cut disconnect 100ms"),
            ("cut disconnect 5s", "cut disconnect 5s"),
            ("cut crash", "cut crash"),
            ("power on", "power on"),
            ("stall 1500us", "stall 1500us"),
            ("stall off", "stall off"),
            ("slow 5ms", "slow 5ms"),
            ("slow read 5ms", "slow read 5ms"),
            ("slow 0-1K 1ns", "slow 0-1024 1ns"),
            ("slow flush 1s 5%", "slow flush 5% 1s"),
            ("error write 0-4K every 3", "error write 0-4096 every 3 EIO"),
            ("slow off", "slow off"),
            ("misdirect off", "misdirect off"),
            ("fail read 3", "fail read 3"),
            ("fail program 20ppm", "fail program 20ppm"),
            ("fail erase off", "fail erase off"),
            ("lie on", "lie on"),
            ("end-of-life off", "end-of-life off"),
            ("memory 4M", "memory 4194304"),
            ("param inflight_map_req 4", "param inflight_map_req 4"),
            ("host hpb=off", "host hpb=off"),
            ("host policy=lru  memory=4M", "host policy=lru memory=4M"),
            ("seed 7", "seed 7"),
            ("mark  row 17 ", "mark row 17"),
        ] {
            let order: Order = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(order.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(order), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, what) in [
            ("", "nothing"),
            ("jump", "there are: cut"),
            ("cut 5", "units are"),
            ("cut crash 5s", "until 'power on'"),
            ("cut disconnect 5", "units are"),
            ("power off", "cut crash"),
            ("cut 99999999999999999999s", "units are"),
            ("stall", "there are: cut"),
            ("stall 2h", "units are"),
            ("stall 3601s", "longer than"),
            ("stall 0ms", "'stall off'"),
            ("slow", "slow: by how much? write slow [read|write"),
            ("slow fast 5ms", "'fast' is nothing that slow takes"),
            ("slow 8K-4K 5ms", "is empty"),
            ("slow read off", "'off' is nothing"),
            ("fail write 3", "not read, program or erase of flash; 'error write' fails requests"),
            ("fail read 0", "lets nothing fail"),
            ("fail read 1000001ppm", "more than all"),
            ("lie maybe", "neither on nor off"),
            ("memory 4MB", "4MiB"),
            ("param x 4", "is not one of"),
            ("param inflight_map_req -4", "not a number"),
            ("host", "needs hpb=off, hpb=dcm, hpb=hcm or a policy"),
            ("host hpb=always", "hpb"),
            (
                "host order=recency",
                "order=recency: does not say whether the host uses HPB; add hpb=off, hpb=dcm, hpb=hcm",
            ),
            ("host hpb=dcm ordr=recency", "ordr is not a key of a host; there are: hpb, order, "),
            ("host hpb=dcm scheduler=exact", "scheduler is not a key of a host"),
            ("host hpb=off order=recency", "order: has no meaning with hpb=off"),
            ("host geometry.channels=1", "device"),
            ("seed x", "not a number"),
        ] {
            let error = text.parse::<Order>().expect_err(text).to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn lines_of_files_are_named() {
        for (text, what) in [
            ("5s", "f: line 1, column 3: nothing"),
            ("5s cut\n4s cut", "f: line 2, column 1: its time"),
            ("5s  lie maybe", "f: line 1, column 5: lie maybe: 'maybe' is neither"),
            ("5s slow fast 1ms", "f: line 1, column 9: slow fast 1ms: 'fast' is nothing"),
        ] {
            let error = Faults::read(text, "f").expect_err(text).to_string();
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }
}
