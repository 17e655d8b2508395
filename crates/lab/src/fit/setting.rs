// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to measure a device. It knows neither what was measured nor how a way is simulated.

use readpath_config::DevicePreset;
use std::fmt;
use std::ops::Range;

/// What the requests of a measurement do. The range was written once before, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Access {
    /// Uniform random reads, timed when the device has warmed up.
    #[default]
    RandomRead,
    /// This many uniform random writes, from the first on, to a device that was idle.
    RandomWrites(u32),
    /// A stretch of a long sequential write.
    SequentialWrite(Stretch),
}

/// A stretch of a long write of the range from its start to its end, on a device that was idle, in equal parts that
/// follow one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stretch {
    /// What the long write finds.
    pub of: LongWrite,
    /// Number of parts.
    pub parts: u16,
    /// The first part of the stretch, from 0.
    pub part: u16,
    /// Parts of the stretch.
    pub count: u16,
}

impl Stretch {
    /// One part of a long write.
    pub fn part(of: LongWrite, part: u16, parts: u16) -> Stretch {
        Stretch { of, parts, part, count: 1 }
    }
}

/// What a long write finds and does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LongWrite {
    /// The range was written once before, and is written once more.
    Again,
    /// The device is erased.
    Fill,
    /// As `Again`, but before the middle part nothing is written for so many seconds.
    Pause(u16),
}

/// How a measurement was made, and so how it is simulated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setting {
    /// What the requests do.
    pub access: Access,
    /// Blocks of 4 KiB that the requests are spread over.
    pub range_blocks: u32,
    /// Requests outstanding at any time.
    pub queue_depth: u32,
    /// Whether the host used HPB.
    pub hpb: bool,
    /// Blocks of 4 KiB of a request.
    pub block_count: u16,
}

impl Setting {
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.access != Access::RandomRead
    }

    /// The setting that is simulated together with this one: of parts that follow one another the first. With it the
    /// places of this one among them.
    pub(super) fn run(self) -> (Setting, Range<usize>) {
        match self.access {
            Access::SequentialWrite(Stretch { of, parts, part, count }) => {
                let run = Setting { access: Access::SequentialWrite(Stretch::part(of, 0, parts)), ..self };
                (run, usize::from(part)..usize::from(part) + usize::from(count))
            }
            Access::RandomRead | Access::RandomWrites(_) => (self, 0..1),
        }
    }

    /// Whether host and device can work so.
    ///
    /// # Errors
    /// Says what they cannot do, beginning with its name in a table.
    pub(crate) fn check(&self, preset: &DevicePreset) -> Result<(), String> {
        let lu = &preset.device.lus[0];
        let name = &preset.name;
        if self.range_blocks > lu.blocks {
            let (range, unit) = (gib(self.range_blocks), gib(lu.blocks));
            return Err(format!("range is {range} GiB, but the logical unit of '{name}' has {unit} GiB"));
        }
        let slots = preset.device.queue_depth.min(u32::from(preset.host.slots) - 1);
        if self.queue_depth > slots {
            let depth = self.queue_depth;
            return Err(format!("queue_depth is {depth}, but host and '{name}' have {slots} slots for it"));
        }
        if self.hpb && (preset.device.hpb.is_none() || !lu.hpb) {
            return Err(format!("hpb is on, but '{name}' has no HPB on its first logical unit"));
        }
        let longest = preset.host.max_transfer_blocks;
        if self.block_count > longest {
            return Err(format!(
                "block_kib is {}, but the host of '{name}' sends at most {} (host.max_transfer_kib)",
                u32::from(self.block_count) * 4,
                u32::from(longest) * 4
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.access {
            Access::RandomRead => {}
            Access::RandomWrites(n) => write!(f, "{n} random writes, ")?,
            Access::SequentialWrite(Stretch { of, parts, part, count }) => {
                match of {
                    LongWrite::Again => f.write_str("sequential write, ")?,
                    LongWrite::Fill => f.write_str("erased device filled, ")?,
                    LongWrite::Pause(s) => write!(f, "sequential write with a pause of {s} s, ")?,
                }
                match (parts, count) {
                    (1, _) => {}
                    (_, 1) => write!(f, "part {} of {parts} of ", part + 1)?,
                    _ => write!(f, "parts {} to {} of {parts} of ", part + 1, part + count)?,
                }
            }
        }
        if self.range_blocks.is_multiple_of(256) && self.range_blocks < 1 << 18 {
            write!(f, "{} MiB", self.range_blocks / 256)?;
        } else {
            write!(f, "{} GiB", gib(self.range_blocks))?;
        }
        write!(f, ", queue depth {}", self.queue_depth)?;
        if self.block_count != 1 {
            write!(f, ", {} KiB", u32::from(self.block_count) * 4)?;
        }
        Ok(())
    }
}

/// Blocks in GiB.
pub(super) fn gib(blocks: u32) -> f64 {
    f64::from(blocks) / f64::from(1 << 18)
}
