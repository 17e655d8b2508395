// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of host and device during a run, with their virtual times. The runner of the workload executes them.

use super::variant::Variant;
use crate::error::Result;
use crate::keys::{Key, Keys, fields, ms, whole, words, write_document};
use readpath_host::HpbOptions;
use readpath_kit::Ns;
use serde::{Serialize, Serializer};
use std::fmt;

/// The most events of a run: each adds rows to the results.
pub const MOST_EVENTS: usize = 1000;
/// Default duration of a power cut.
const OFF: Ns = Ns::from_ms(100);

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The host stops using HPB, as Linux does when it suspends the UFS device; requests continue without entries.
    /// Host memory that the device uses is withdrawn.
    Suspend,
    /// The host continues with HPB and its maps, and returns the device's host memory.
    Resume,
    /// Controller and device are reset; commands in flight are sent again.
    HardwareReset,
    /// The device loses its power while the host runs on, which sends commands in flight again.
    PowerCycle {
        /// How long the power is off.
        off: Ns,
    },
    /// The limit of host memory for HPB changes.
    Pressure {
        /// The limit, tables included.
        bytes: u64,
    },
    /// No action; counters restart from here.
    Mark,
}

impl EventKind {
    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Suspend => "suspend",
            EventKind::Resume => "resume",
            EventKind::HardwareReset => "hardware-reset",
            EventKind::PowerCycle { .. } => "power-cycle",
            EventKind::Pressure { .. } => "pressure",
            EventKind::Mark => "mark",
        }
    }
}

/// An event and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Virtual time after the host has found the device, or for a replay after the start of the trace.
    pub at: Ns,
    /// The kind.
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
        write!(f, " at {} ms", self.at.0 as f64 / 1e6)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        write_document(self, event).serialize(s)
    }
}

const KINDS: [EventKind; 6] = [
    EventKind::Suspend,
    EventKind::Resume,
    EventKind::HardwareReset,
    EventKind::PowerCycle { off: OFF },
    EventKind::Pressure { bytes: 0 },
    EventKind::Mark,
];

impl EventKind {
    /// The kind that a word names, with default or blank values.
    pub fn named(word: &str) -> std::result::Result<EventKind, String> {
        KINDS.into_iter().find(|kind| kind.name() == word).ok_or_else(|| {
            let names = KINDS.map(EventKind::name);
            format!("{word:?} is no event; there are {}", names.join(", "))
        })
    }
}

/// `[[event]]`.
pub(crate) fn event(k: &mut Keys<Event>) -> Result<Event> {
    fields! { k:
        /// virtual time after the host has probed the device
        at = "at_ms": ms(0..=Ns::from_secs(1_000_000).0);
    }
    let what = words(KINDS.map(|kind| (kind.name(), kind.name())));
    let what = k.key(Key::new("what", "one of the words below"), what, |event| event.kind.name())?;
    let others = |owner| format!("has no meaning for what = {what:?}; it belongs to {owner:?}");
    let power = |event: &Event| match event.kind {
        EventKind::PowerCycle { off } => Some(off),
        _ => None,
    };
    let off = k.group(what == "power-cycle", Some(&others("power-cycle")), power, |k| {
        let key = Key::new("off_ms", "for `power-cycle`: how long the power is off");
        k.key(key, ms(0..=Ns::from_secs(1000).0).or(OFF), |off| *off)
    })?;
    let limit = |event: &Event| match event.kind {
        EventKind::Pressure { bytes } => Some(bytes),
        _ => None,
    };
    let bytes = k.group(what == "pressure", Some(&others("pressure")), limit, |k| {
        let key = Key::new(
            "memory_bytes",
            "for `pressure`: limit of host memory for HPB from now on (maps, dirty bitmaps and tables), for each \
                logical unit with HPB",
        );
        k.key(key, whole(1..=1 << 40), |bytes| *bytes)
    })?;
    let kind = match (EventKind::named(what), off, bytes) {
        (Ok(EventKind::PowerCycle { .. }), Some(off), _) => EventKind::PowerCycle { off },
        (Ok(EventKind::Pressure { .. }), _, Some(bytes)) => EventKind::Pressure { bytes },
        (kind, ..) => kind.unwrap_or(EventKind::Suspend),
    };
    Ok(Event { at, kind })
}

/// Checks that events are in order of time, and that the variants support them.
pub(super) fn check<T>(k: &Keys<T>, events: &[Event], variants: &[Variant]) -> Result<()> {
    for (i, event) in events.iter().enumerate() {
        let (at, what) = (format!("event[{i}].at_ms"), format!("event[{i}].what"));
        let early = i > 0 && event.at < events[i - 1].at;
        k.refuse(early, &at, "is before that of the event above; times must not decrease")?;
        if let EventKind::Pressure { .. } = event.kind
            && let Some(why) = cannot_shrink(variants)
        {
            k.refuse(true, &what, format!("is \"pressure\", but {why}"))?;
        }
        k.refuse(i == MOST_EVENTS, &what, format!("is that of event {}; at most {MOST_EVENTS}", i + 1))?;
    }
    Ok(())
}

/// Why the memory of a host with HPB cannot shrink, if it cannot.
pub fn keeps_memory(hpb: Option<HpbOptions>) -> Option<&'static str> {
    match hpb? {
        HpbOptions { policy: Some(_), .. } => None,
        HpbOptions { prototype: Some(_), .. } => Some("is the prototype's, which knows no pressure"),
        _ => Some("never gives memory back, as Linux never does"),
    }
}

/// Why a host has no memory to release, or cannot release it.
fn cannot_shrink(variants: &[Variant]) -> Option<String> {
    let hosts = || variants.iter().filter_map(|v| v.hpb.map(|hpb| (&v.name, hpb)));
    if let Some((name, why)) = hosts().find_map(|(name, hpb)| Some((name, keeps_memory(Some(hpb))?))) {
        return Some(format!(
            "the host of variant {name:?} {why}; pressure needs a policy other than linux-dcm and linux-hcm"
        ));
    }
    hosts().next().is_none().then(|| "no variant uses HPB".into())
}
