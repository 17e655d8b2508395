// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath dev upius`: a line for each UPIU, for people.

use crate::ask::stoppable;
use crate::inputs::{self, Source};
use crate::live::Live;
use crate::traces::check_stop;
use crate::usage;
use anyhow::Result;
use readpath_session::device::Ns;
use readpath_session::running::UpiuText;
use readpath_session::workload::trace::upius::{Seen, Upius};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub fn main(path: &Path) -> Result<()> {
    let shared = stoppable(&Live::default())?;
    let source = Source::open(path, "a trace", shared.stop.clone())?;
    let mut upius = Upius::new(&inputs::name(path), Box::new(source)).map_err(usage)?;
    upius.stop_when(shared.stop.clone());
    let mut out = BufWriter::new(io::stdout().lock());
    let mut listing = Listing::default();
    for seen in upius {
        // What stands above a fault is listed: the trace may be that of a server that was killed.
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                out.flush()?;
                check_stop(&shared)?;
                return Err(usage(error));
            }
        };
        listing.write(&mut out, &seen)?;
    }
    Ok(out.flush()?)
}

#[derive(Default)]
struct Listing {
    /// When requests in flight were sent.
    sent: BTreeMap<u64, Ns>,
    has_head: bool,
}

impl Listing {
    fn write(&mut self, out: &mut impl Write, seen: &Seen) -> io::Result<()> {
        let wall = match *seen {
            Seen::Upiu { wall, .. } | Seen::Mark { wall, .. } => wall,
            Seen::NoReply { .. } | Seen::Heard { .. } => None,
        };
        if !self.has_head {
            self.has_head = true;
            writeln!(out, "#     device time (s)  real time (s)  request tag LUN")?;
        }
        match seen {
            Seen::Upiu { time, request, bytes, data, .. } => {
                let UpiuText { tag, lun, is_reply, text } = UpiuText::new(bytes, data);
                let arrow = if is_reply { '<' } else { '>' };
                write!(out, "{}{request:>9} {tag:>3} {lun:>3} {arrow} {text}", Times(*time, wall))?;
                let sent = match is_reply {
                    true => self.sent.remove(request),
                    false => {
                        self.sent.insert(*request, *time);
                        None
                    }
                };
                match sent {
                    Some(sent) => writeln!(out, ", after {}", time.saturating_sub(sent)),
                    None => writeln!(out),
                }
            }
            Seen::NoReply { time, request, tag, name } => {
                self.sent.remove(request);
                writeln!(out, "{}{request:>9} {tag:>3}     x no reply to {name}", Times(*time, wall))
            }
            // A line for each interrupt would hide the others.
            Seen::Heard { .. } => Ok(()),
            Seen::Mark { time, name, .. } => writeln!(out, "{}                  -- {name}", Times(*time, wall)),
        }
    }
}

/// Both times in seconds.
struct Times(Ns, Option<Ns>);

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let seconds = |time: Ns| format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
        write!(f, "{:>21} {:>14}", seconds(self.0), self.1.map(seconds).unwrap_or_default())
    }
}
