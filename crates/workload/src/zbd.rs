// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a job is told that works on zones itself (fio `zonemode=zbd`). Where write pointers are, and so where requests
//! go, is known to who makes them.

/// The zones of a logical unit. All take sequential writes only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonedUnit {
    /// Blocks from the start of a zone to that of the next.
    pub stride: u32,
    /// Blocks that a zone holds.
    pub capacity: u32,
    /// Zones that may be open.
    pub most_open: u32,
}

/// A job on zones. Its stream says what kind of request comes next, how long it is and which zone it means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zbd {
    /// The zones that it uses: the first, and the one behind the last.
    pub zones: (u32, u32),
    /// Whether the stream chooses zones; else the job goes on where its last request of the same kind ended.
    pub random: bool,
    /// Whether it also writes.
    pub writes: bool,
    /// Zones of the unit that its jobs may write to at a time, at least 1 (fio `max_open_zones`).
    pub most_open: u32,
    /// The same of the job alone; 0 for no limit (fio `job_max_open_zones`).
    pub job_most_open: u32,
    /// With so many written blocks in zones of the unit, every so many writes, at least 1, reset their zone first (fio
    /// `zone_reset_threshold`, `zone_reset_frequency`).
    pub resets: Option<(u64, u32)>,
    /// It makes several passes: sequential reads begin again behind the last data.
    pub again: bool,
    /// Reads may go beyond write pointers (fio `read_beyond_wp`).
    pub read_beyond_wp: bool,
}
