// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to host and device in the middle of a run, at which virtual time. Whoever runs the workload makes it happen.

use super::error::ConfigFileError;
use super::experiment::Variant;
use super::section::Section;
use readpath_host::HpbOptions;
use readpath_kit::Ns;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::fmt;

type Result<T> = std::result::Result<T, ConfigFileError>;

/// Events of a run at most: each gives rows of its own.
pub const MOST_EVENTS: usize = 1000;
/// For how long the power is away, unless it is said.
const OFF: Ns = Ns::from_ms(100);

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The host stops using HPB, as Linux does when it suspends the UFS device; requests go on without entries.
    Suspend,
    /// The host goes on with HPB and the maps that it had.
    Resume,
    /// Controller and device are reset; what was in flight is sent again.
    HardwareReset,
    /// The device loses its power beneath a living host, which sends again what was in flight.
    PowerCycle {
        /// How long the power is away.
        off: Ns,
    },
    /// Host memory for HPB has another limit.
    Pressure {
        /// The limit, tables included.
        bytes: u64,
    },
}

impl EventKind {
    /// The word of files.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Suspend => "suspend",
            EventKind::Resume => "resume",
            EventKind::HardwareReset => "hardware-reset",
            EventKind::PowerCycle { .. } => "power-cycle",
            EventKind::Pressure { .. } => "pressure",
        }
    }
}

/// An event and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Virtual time after the host has found the device, or for a replay after the trace began.
    pub at: Ns,
    /// What happens.
    pub kind: EventKind,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        match self.kind {
            EventKind::Pressure { bytes } => write!(f, " {bytes} bytes")?,
            EventKind::PowerCycle { off } => write!(f, " of {off}")?,
            _ => {}
        }
        write!(f, " at {} ms", ms(self.at))
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("at_ms", &ms(self.at))?;
        map.serialize_entry("what", self.kind.name())?;
        match self.kind {
            EventKind::Pressure { bytes } => map.serialize_entry("memory_bytes", &bytes)?,
            EventKind::PowerCycle { off } => map.serialize_entry("off_ms", &ms(off))?,
            _ => {}
        }
        map.end()
    }
}

fn ms(time: Ns) -> f64 {
    time.0 as f64 / 1e6
}

const WORDS: [(&str, EventKind); 5] = {
    let kinds = [
        EventKind::Suspend,
        EventKind::Resume,
        EventKind::HardwareReset,
        EventKind::PowerCycle { off: OFF },
        EventKind::Pressure { bytes: 0 },
    ];
    [
        (kinds[0].name(), kinds[0]),
        (kinds[1].name(), kinds[1]),
        (kinds[2].name(), kinds[2]),
        (kinds[3].name(), kinds[3]),
        (kinds[4].name(), kinds[4]),
    ]
};

impl EventKind {
    /// The kind that a word names, with what else belongs to it as usual, or not yet said.
    pub fn named(word: &str) -> std::result::Result<EventKind, String> {
        let found = WORDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            let names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
            format!("{word:?} is no event; there are {}", names.join(", "))
        })
    }
}

/// All events of a file, whose variants have to be able to do what they ask for.
pub(super) fn events(root: &Section, variants: &[Variant]) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    if !root.has("event") {
        return Ok(events);
    }
    for s in root.sections("event", &["at_ms", "what", "off_ms", "memory_bytes"])? {
        let event = event(&s)?;
        if events.last().is_some_and(|before| event.at < before.at) {
            return Err(s.error("at_ms", "is before that of the event above; times must not decrease"));
        }
        if matches!(event.kind, EventKind::Pressure { .. }) {
            can_shrink(&s, variants)?;
        }
        if events.len() == MOST_EVENTS {
            return Err(s.error("what", format!("is that of event {}; at most {MOST_EVENTS}", MOST_EVENTS + 1)));
        }
        events.push(event);
    }
    Ok(events)
}

fn event(s: &Section) -> Result<Event> {
    let kind = match s.word("what", &WORDS)? {
        EventKind::PowerCycle { off } => {
            EventKind::PowerCycle { off: if s.has("off_ms") { s.ms("off_ms")? } else { off } }
        }
        EventKind::Pressure { .. } => EventKind::Pressure { bytes: s.integer("memory_bytes", 1..=1 << 40)? },
        kind => kind,
    };
    for (key, owner) in [("off_ms", "power-cycle"), ("memory_bytes", "pressure")] {
        if s.has(key) && kind.name() != owner {
            return Err(s.error(key, format!("has no meaning for what = {:?}; it belongs to {owner:?}", kind.name())));
        }
    }
    let at = s.decimal("at_ms", 6, Ns::from_secs(1_000_000).0, "a time in milliseconds").map(Ns)?;
    Ok(Event { at, kind })
}

/// Why a host with HPB keeps the memory that it has, whatever the pressure, if it does.
pub fn keeps_memory(hpb: Option<HpbOptions>) -> Option<&'static str> {
    match hpb? {
        HpbOptions { policy: Some(_), .. } => None,
        HpbOptions { prototype: Some(_), .. } => Some("is the prototype's, which knows no pressure"),
        _ => Some("never gives memory back, as Linux never does"),
    }
}

/// Some host has memory to give back, and those that have are able to.
fn can_shrink(s: &Section, variants: &[Variant]) -> Result<()> {
    let hosts = || variants.iter().filter_map(|v| v.hpb.map(|hpb| (&v.name, hpb)));
    if let Some((name, why)) = hosts().find_map(|(name, hpb)| Some((name, keeps_memory(Some(hpb))?))) {
        let needs = "pressure needs a policy of this host's own";
        return Err(s.error("what", format!("is \"pressure\", but the host of variant {name:?} {why}; {needs}")));
    }
    if hosts().next().is_none() {
        return Err(s.error("what", "is \"pressure\", but no variant uses HPB"));
    }
    Ok(())
}
