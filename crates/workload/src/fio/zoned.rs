// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs on units with zones: `zonemode=zbd`, and the error of a job that writes without it. Knows no option as text and
//! no write pointers.

use readpath_kit::BLOCK_BYTES;

use super::JobError;
use super::job::JobSection;
use super::settings::{Set, Settings};
use crate::{Kinds, Sizes, Zbd, ZonedUnit};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A unit on which a section's jobs know of zones.
pub(super) struct OnZones<'a> {
    s: &'a Settings,
    at: &'a Set<()>,
    unit: ZonedUnit,
}

/// Looks at a section's unit, which its jobs use as a whole `device`, or a part of by the name of a file.
///
/// # Errors
/// A job that writes to zones and does not know of them, or cannot work on them as it is.
pub(super) fn look<'a>(
    section: &'a JobSection,
    (lun, unit): (u8, Option<ZonedUnit>),
    is_device: bool,
) -> Result<Option<OnZones<'a>>, JobError> {
    let s = &section.settings;
    let (at, unit) = match (&s.zbd.on, unit) {
        (None, Some(_)) if s.writes() || s.kinds() == Kinds::Only(crate::IoKind::Trim) => {
            return Err(section.at.error(format!(
                "job {} writes to logical unit {lun}, whose zones take writes at their write pointers only; add \
                 zonemode=zbd, or name a unit without zones, or put a mapper in front of it (host.zones.mapper = \
                 \"log\" in the device file)",
                section.name()
            )));
        }
        (None, _) => return s.zbd.only_with_zbd().map(|()| None),
        (Some(at), None) => {
            let disk = "name one with zones ([lu.zones], and no host.zones.mapper, which hides them; \
                        filename=/dev/sdb is unit 1), or leave zonemode out";
            return Err(at.error(format!("zonemode=zbd: logical unit {lun} has no zones of its own; {disk}")));
        }
        (Some(at), Some(unit)) => (at, unit),
    };
    let wrong = |message: &str| Err(at.error(format!("zonemode=zbd: {message}")));
    if !is_device {
        return wrong("needs a whole unit; give filename=/dev/sda for unit 0, /dev/sdb for unit 1, and so on");
    }
    if matches!(s.kinds(), Kinds::TrimWrite | Kinds::Only(crate::IoKind::Trim)) {
        return wrong("trims are not modelled; zones are reset when they are written again");
    }
    if s.writes() && !s.direct {
        return wrong("writes need direct=1, as in fio");
    }
    if s.reads_back() {
        return wrong("verify is not modelled; leave it out, or give do_verify=0");
    }
    if s.used().iter().any(|&k| !matches!(s.lengths()[k], Sizes::Fixed(_))) {
        return wrong("several block sizes in one job are not modelled; give bs");
    }
    if s.pattern.random && s.used().iter().any(|&k| s.random_percent[k] != 100) || s.pattern.skip_blocks != 0 {
        return wrong("percentage_random and gaps between requests are not modelled; leave them out");
    }
    let capacity = u64::from(unit.capacity) * BLOCK;
    if let Some(bytes) = s.used().iter().map(|&k| s.shortest()[k]).find(|bytes| !capacity.is_multiple_of(*bytes)) {
        return wrong(&format!("bs={bytes} does not divide the {capacity} bytes of a zone"));
    }
    let stride = u64::from(unit.stride) * BLOCK;
    let [size, range, skip] = &s.zone;
    if let Some(zone) = size.iter().chain(range).find(|zone| zone.value != stride) {
        return Err(zone.error(format!(
            "{}={} is not the size of the unit's zones, {stride} bytes; leave it out, or change the device's \
             lu.zones.size_mib",
            zone.key, zone.value
        )));
    }
    if let Some(skip) = skip {
        return Err(skip.error("zoneskip must be 0 with zonemode=zbd"));
    }
    if let Some(open) = s.zbd.most_open.as_ref().filter(|open| open.value > unit.most_open) {
        return Err(open.error(format!(
            "max_open_zones={}: the unit may have {} open (lu.zones.most_open of the device)",
            open.value, unit.most_open
        )));
    }
    Ok(Some(OnZones { s, at, unit }))
}

impl super::settings::ZbdSettings {
    /// Refuses what means nothing without `zonemode=zbd`.
    fn only_with_zbd(&self) -> Result<(), JobError> {
        let of = |key: &'static str| format!("{key} needs zonemode=zbd");
        let open = self.most_open.as_ref().or(self.job_most_open.as_ref()).map(|set| set.error(of(set.key)));
        let share = self.threshold.as_ref().or(self.frequency.as_ref()).map(|set| set.error(of(set.key)));
        let beyond = self.read_beyond_wp.as_ref().map(|set| set.error(of(set.key)));
        open.or(share).or(beyond).map_or(Ok(()), Err)
    }
}

impl OnZones<'_> {
    /// The whole zones in `bytes` from `offset` on, as fio rounds them: the first byte, the bytes to the end of the
    /// last, and those that they hold.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn whole(&self, offset: u64, bytes: u64) -> Result<(u64, u64, u64), JobError> {
        let stride = u64::from(self.unit.stride) * BLOCK;
        let (first, end) = (offset.div_ceil(stride), (offset + bytes) / stride);
        if first >= end {
            let at = self.s.size.as_ref().map(|size| (size.at.clone(), size.key));
            let (at, key) = at.unwrap_or((self.at.at.clone(), self.at.key));
            let message = format!("zonemode=zbd: {bytes} bytes from {offset} on contain no whole zone of {stride}");
            return Err(JobError { key: Some(key.into()), ..at.error(message) });
        }
        Ok((first * stride, (end - first) * stride, (end - first) * u64::from(self.unit.capacity) * BLOCK))
    }

    /// The job whose part of the unit begins at block `start` and has so many blocks.
    pub(super) fn zbd(&self, start: u32, blocks: u32) -> Zbd {
        let set = |value: &Option<Set<u32>>| value.as_ref().map(|set| set.value);
        let share = |value: &Option<Set<f64>>| value.as_ref().map(|set| set.value);
        let above = (f64::from(blocks) * share(&self.s.zbd.threshold).unwrap_or(0.0)).ceil() as u64;
        Zbd {
            zones: (start / self.unit.stride, (start + blocks) / self.unit.stride),
            random: self.s.pattern.random,
            writes: self.s.writes() && self.s.kinds() != Kinds::Mix(100),
            most_open: set(&self.s.zbd.most_open).unwrap_or(self.unit.most_open),
            job_most_open: set(&self.s.zbd.job_most_open).unwrap_or(0),
            resets: share(&self.s.zbd.frequency).map(|often| (above, (1.0 / often) as u32)),
            again: self.s.by_time() || self.s.loops.value > 1,
            read_beyond_wp: self.s.zbd.read_beyond_wp.is_some(),
        }
    }
}
