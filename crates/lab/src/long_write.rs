// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases of a long write to a device with a cache in SLC mode, from what a recorder kept: cached, direct, and
//! folding, where each write waits until data of the cache has been moved. It knows no device and no case.

use crate::figures::MIB;
use crate::over_time::Timed;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_results::{Chart, ChartKind, Error, Metric, SeriesStyle, metric};
use readpath_run::{Bin, Series};

/// Where the host's data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Cached,
    Direct,
    Folding,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Cached, Phase::Direct, Phase::Folding];

    fn name(self) -> &'static str {
        ["cached", "direct", "folding"][self as usize]
    }

    /// The phase of a bin with writes: where most of its data went, and whether as much as a tenth of it was moved
    /// beside.
    fn of(bin: &Bin) -> Option<Phase> {
        let d = &bin.device;
        Some(match d.slices_written {
            0 => return None,
            written if 2 * d.slices_boosted >= written => Phase::Cached,
            written if 10 * d.slices_moved >= written => Phase::Folding,
            _ => Phase::Direct,
        })
    }
}

/// A part of the write, of one phase.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Part {
    phase: Phase,
    /// Blocks that had been written before.
    from: u64,
    blocks: u64,
    seconds: f64,
    /// A phase may have begun in it, so that it counts for no speed.
    begins: bool,
}

impl Part {
    fn rate(&self) -> f64 {
        mib(self.blocks) / self.seconds
    }
}

/// A long write by its phases.
pub(crate) struct LongWrite {
    parts: Vec<Part>,
}

impl LongWrite {
    /// The phases of a run, if it left the cache.
    pub(crate) fn of(series: &Series) -> Option<LongWrite> {
        let (mut from, mut written) = (series.from, 0);
        let mut parts: Vec<(Part, u64)> = Vec::new();
        for bin in &series.bins {
            let time = bin.to.saturating_sub(std::mem::replace(&mut from, bin.to));
            let Some(phase) = Phase::of(bin).filter(|_| time > Ns(0)) else { continue };
            let (blocks, boosted) =
                (bin.device.slices_written, bin.device.slices_boosted.min(bin.device.slices_written));
            let begins = parts.last().is_some_and(|(last, _)| last.phase != phase);
            parts.push((Part { phase, from: written, blocks, seconds: time.as_secs_f64(), begins }, boosted));
            written += blocks;
        }
        // What the device moves when the host has ended counts into the last bin.
        if let [.., (before, _), (last, _)] = &mut parts[..]
            && (before.phase, last.phase) == (Phase::Direct, Phase::Folding)
        {
            (last.phase, last.begins) = (Phase::Direct, false);
        }
        // The first bin that is not all of the cache's ends the cached phase.
        let border = parts.iter().position(|(part, boosted)| 100 * boosted < 99 * part.blocks)?;
        let (part, boosted) = parts[border];
        let past = parts[border + 1..].iter().map(|(part, _)| part).filter(|part| part.phase != Phase::Cached);
        let next = past.clone().find(|part| !part.begins).or(past.clone().next()).copied()?;
        let mut parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let rest = part.blocks - boosted;
        let slow = (mib(rest) / next.rate()).min(part.seconds);
        let split = [
            Part { phase: Phase::Cached, blocks: boosted, seconds: part.seconds - slow, begins: false, ..part },
            Part { phase: next.phase, from: part.from + boosted, blocks: rest, seconds: slow, begins: true },
        ];
        parts.splice(border..=border, split.into_iter().filter(|part| part.blocks > 0 && part.seconds > 0.0));
        (parts[0].phase == Phase::Cached).then_some(LongWrite { parts })
    }

    /// Speed of a phase, from the parts that lie in it wholly, if any does.
    fn rate(&self, phase: Phase) -> Option<f64> {
        let of = |begun: bool| self.parts.iter().filter(move |part| part.phase == phase && (begun || !part.begins));
        speed(of(false)).or_else(|| speed(of(true)))
    }

    /// How fast each phase was, and where it ended.
    pub(crate) fn figures(&self) -> Vec<(Metric, f64)> {
        let speeds = [
            (metric::CACHED_WRITE_THROUGHPUT, Phase::Cached),
            (metric::DIRECT_WRITE_THROUGHPUT, Phase::Direct),
            (metric::FOLDING_WRITE_THROUGHPUT, Phase::Folding),
        ];
        let cached = self.parts.iter().take_while(|part| part.phase == Phase::Cached);
        let mut all: Vec<(Metric, f64)> = vec![(metric::CACHED_WRITE, gb(cached.map(|part| part.blocks).sum()))];
        all.extend(speeds.into_iter().filter_map(|(metric, phase)| Some((metric, self.rate(phase)?))));
        let folding = self.parts.iter().find(|part| part.phase == Phase::Folding);
        let past = self.parts.iter().filter(|part| part.phase != Phase::Cached && !part.begins);
        all.extend(speed(past).map(|speed| (metric::UNCACHED_WRITE_THROUGHPUT, speed)));
        all.extend(folding.map(|part| (metric::FOLDING_FROM, gb(part.from))));
        all
    }

    /// Throughput over what has been written, a line for each phase.
    ///
    /// # Errors
    /// A figure that is not finite.
    pub(crate) fn chart(&self, case: &str, run: &Timed, named: bool) -> Result<Chart, Error> {
        let (mut id, mut title) = (format!("throughput_over_bytes: {case}"), format!("The long write, {case}"));
        if named {
            id = format!("{id}: {}", run.variant);
            title = format!("{title}, {}", run.variant);
        }
        let mut chart = Chart::new(id, title, ChartKind::Step).axes("written, GB", "MiB/s").caption(
            "Cached: most data went to the cache in SLC mode. Direct: past it. Folding: a tenth as much or more was \
             moved beside.",
        );
        for phase in Phase::ALL {
            let mut points = Vec::new();
            for part in self.parts.iter().filter(|part| part.phase == phase) {
                points.push((gb(part.from), part.rate()));
                points.push((gb(part.from + part.blocks), part.rate()));
            }
            if !points.is_empty() {
                chart.series(phase.name(), SeriesStyle::Plain, points)?;
            }
        }
        Ok(chart)
    }
}

/// MiB/s of these parts, if there are any.
fn speed<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<f64> {
    let (blocks, seconds) = parts.fold((0, 0.0), |(blocks, time), part| (blocks + part.blocks, time + part.seconds));
    (blocks > 0).then(|| mib(blocks) / seconds)
}

fn mib(blocks: u64) -> f64 {
    (blocks * u64::from(BLOCK_BYTES)) as f64 / MIB
}

fn gb(blocks: u64) -> f64 {
    (blocks * u64::from(BLOCK_BYTES)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_device::DeviceStats;

    /// Bins of a second: blocks written, of those cached, and moved beside.
    fn series(bins: &[(u64, u64, u64)]) -> Series {
        let bin = |(i, &(slices_written, slices_boosted, slices_moved)): (usize, &(u64, u64, u64))| Bin {
            to: Ns::from_ms(1000 * (i as u64 + 1)),
            device: DeviceStats { slices_written, slices_boosted, slices_moved, ..DeviceStats::default() },
            host_memory: 0,
            valid: 0,
            latency: Default::default(),
        };
        Series { from: Ns(0), bins: bins.iter().enumerate().map(bin).collect(), regions: None }
    }

    #[test]
    fn a_long_write_has_three_speeds_and_two_ends() {
        // In the third bin 1280 blocks take half a second in the cache, and 256 as long past it.
        let bins =
            [(2560, 2560, 0), (2560, 2560, 0), (1536, 1280, 0), (512, 0, 0), (512, 0, 0), (300, 0, 200), (128, 0, 128)];
        let write = LongWrite::of(&series(&bins)).expect("phases");
        let figures = write.figures();
        let find = |metric: Metric| figures.iter().find(|(m, _)| *m == metric).expect("a figure").1;
        let near = |metric, value: f64| {
            let told = find(metric);
            assert!((told / value - 1.0).abs() < 1e-12, "{told} {value}");
        };
        near(metric::CACHED_WRITE, 6400.0 * 4096.0 / 1e9);
        near(metric::CACHED_WRITE_THROUGHPUT, 10.0);
        near(metric::DIRECT_WRITE_THROUGHPUT, 2.0);
        near(metric::FOLDING_FROM, 7680.0 * 4096.0 / 1e9);
        // The bin in which folding begins counts for no speed.
        near(metric::FOLDING_WRITE_THROUGHPUT, 0.5);
        near(metric::UNCACHED_WRITE_THROUGHPUT, 2.5 / 2.0);
        let drawn: Vec<_> = write.parts.iter().map(|part| (part.phase, part.blocks)).collect();
        assert_eq!(drawn[2..4], [(Phase::Cached, 1280), (Phase::Direct, 256)]);
    }

    /// What the device moves behind the last write is no folding before it.
    #[test]
    fn work_behind_the_last_write_is_no_phase() {
        let bins = [(2560, 2560, 0), (1280, 640, 0), (512, 0, 0), (512, 0, 0), (256, 0, 200)];
        let write = LongWrite::of(&series(&bins)).expect("phases");
        let figures = write.figures();
        assert!(!figures.iter().any(|(metric, _)| *metric == metric::FOLDING_FROM), "{figures:?}");
        // Where it has folded before, the last bin does too.
        let bins = [(2560, 2560, 0), (1280, 640, 0), (512, 0, 0), (512, 0, 400), (256, 0, 200)];
        let figures = LongWrite::of(&series(&bins)).expect("phases").figures();
        assert!(figures.iter().any(|(metric, _)| *metric == metric::FOLDING_FROM), "{figures:?}");
    }

    /// All of the cached phase and the first writes past it may lie in one bin.
    #[test]
    fn a_short_cached_phase_has_a_speed_of_its_own() {
        let write = LongWrite::of(&series(&[(1408, 1280, 0), (256, 0, 0), (256, 0, 0), (256, 0, 0)])).expect("phases");
        assert_eq!(write.rate(Phase::Cached), Some(10.0));
        assert_eq!(write.rate(Phase::Direct), Some(1.0));
    }

    #[test]
    fn a_write_that_stays_in_the_cache_has_no_phases() {
        assert!(LongWrite::of(&series(&[(512, 512, 0), (0, 0, 0), (512, 512, 300)])).is_none());
        assert!(LongWrite::of(&series(&[(512, 0, 0), (512, 0, 0)])).is_none(), "nor one without a cache");
    }
}
