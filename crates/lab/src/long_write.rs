// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phases of a long write to a device with a cache in SLC mode, from what a recorder kept: cached, direct, and
//! folding, where each write waits until data of the cache has been moved. It knows no device and no case.

use crate::figures::MIB;
use crate::over_time::Timed;
use readpath_kit::BLOCK_BYTES;
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
    /// beside. Where nothing was programmed it is that of the bin before.
    fn of(bin: &Bin, before: Phase) -> Phase {
        let written = bin.device.slices_written;
        match went(bin) {
            (boosted, past) if boosted > 0 && boosted >= past => Phase::Cached,
            _ if 10 * bin.device.slices_moved >= written => Phase::Folding,
            (0, 0) => before,
            _ => Phase::Direct,
        }
    }
}

/// Blocks of the host that were programmed in a bin, into the cache and past it. Those that were written differ by what
/// the write buffer took in or gave out.
fn went(bin: &Bin) -> (u64, u64) {
    let boosted = bin.device.slices_boosted;
    (boosted, bin.device.slices_programmed.saturating_sub(boosted))
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
    /// Blocks that went to the cache before any went past it.
    cached: u64,
}

impl LongWrite {
    /// The phases of a run, if it left the cache.
    pub(crate) fn of(series: &Series) -> Option<LongWrite> {
        let (mut from, mut written) = (series.from, 0);
        let mut parts: Vec<(Part, &Bin)> = Vec::new();
        let mut unknown = (0, 0.0);
        for bin in &series.bins {
            let time = bin.to.saturating_sub(std::mem::replace(&mut from, bin.to)).as_secs_f64();
            if bin.device.slices_written == 0 || time == 0.0 {
                continue;
            }
            let (blocks, seconds) = (unknown.0 + bin.device.slices_written, unknown.1 + time);
            // What fills the write buffer at first goes where the first program does.
            if parts.is_empty() && went(bin) == (0, 0) {
                unknown = (blocks, seconds);
                continue;
            }
            unknown = (0, 0.0);
            let before = parts.last().map_or(Phase::Cached, |(last, _)| last.phase);
            let phase = Phase::of(bin, before);
            let begins = !parts.is_empty() && before != phase;
            parts.push((Part { phase, from: written, blocks, seconds, begins }, bin));
            written += blocks;
        }
        // What the device moves when the host has ended counts into the last bin: no write waited for it.
        if let [.., (before, _), (last, bin)] = &mut parts[..]
            && (last.phase == Phase::Folding && before.phase != Phase::Folding)
            && bin.device.stall_space_ns == 0
        {
            (last.phase, last.begins) = (Phase::Direct, before.phase != Phase::Direct);
        }
        // The first bin that is not all of the cache's ends the cached phase.
        let is_mixed = |(part, bin): &(Part, &Bin)| {
            let (boosted, past) = went(bin);
            part.phase != Phase::Cached || 100 * past > boosted + past
        };
        let border = parts.iter().position(is_mixed)?;
        let cached = parts[..=border].iter().map(|(_, bin)| went(bin).0).sum();
        let (part, bin) = parts[border];
        let past = parts[border + 1..].iter().map(|(part, _)| part).filter(|part| part.phase != Phase::Cached);
        let next = past.clone().find(|part| !part.begins).or(past.clone().next()).copied()?;
        let mut parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let rest = match went(bin) {
            (0, 0) => part.blocks,
            (_, past) => past.min(part.blocks),
        };
        let slow = (mib(rest) / next.rate()).min(part.seconds);
        let fast = part.blocks - rest;
        let split = [
            Part { phase: Phase::Cached, blocks: fast, seconds: part.seconds - slow, begins: false, ..part },
            Part { phase: next.phase, from: part.from + fast, blocks: rest, seconds: slow, begins: true },
        ];
        parts.splice(border..=border, split.into_iter().filter(|part| part.blocks > 0 && part.seconds > 0.0));
        (cached > 0 && parts[0].phase == Phase::Cached).then_some(LongWrite { parts, cached })
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
        let mut all: Vec<(Metric, f64)> = vec![(metric::CACHED_WRITE, gb(self.cached))];
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
    use readpath_kit::Ns;

    /// Bins of a second.
    fn of_bins(bins: impl Iterator<Item = DeviceStats>) -> Series {
        let bin = |(device, second): (DeviceStats, u64)| Bin {
            to: Ns::from_ms(1000 * second),
            device,
            host_memory: 0,
            valid: 0,
            latency: Default::default(),
        };
        Series { from: Ns(0), bins: bins.zip(1..).map(bin).collect(), regions: None }
    }

    /// Bins by blocks written, of those cached, and moved beside. All are programmed at once.
    fn series(bins: &[(u64, u64, u64)]) -> Series {
        of_bins(bins.iter().map(|&(slices_written, slices_boosted, slices_moved)| DeviceStats {
            slices_written,
            slices_programmed: slices_written,
            slices_boosted,
            slices_moved,
            ..DeviceStats::default()
        }))
    }

    /// Bins by blocks written, programmed into the cache, and programmed past it.
    fn buffered(bins: &[(u64, u64, u64)]) -> Series {
        of_bins(bins.iter().map(|&(slices_written, slices_boosted, past)| DeviceStats {
            slices_written,
            slices_programmed: slices_boosted + past,
            slices_boosted,
            ..DeviceStats::default()
        }))
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

    /// The write buffer holds what has been written and not yet programmed, also of whole bins.
    #[test]
    fn what_the_write_buffer_holds_ends_no_phase() {
        let end = [(1536, 1280, 256), (512, 0, 512), (512, 0, 512), (512, 0, 768)];
        let past = [(Phase::Cached, 1280), (Phase::Direct, 256), (Phase::Direct, 512), (Phase::Direct, 512)];
        for (begin, cached, speed) in [
            (&[(2816, 2560, 0), (2560, 2560, 0)][..], &[2816, 2560][..], 10.4),
            (&[(2560, 0, 0), (2560, 2304, 0), (2560, 2560, 0)], &[5120, 2560], 10.0),
            (&[(2560, 2304, 0), (128, 0, 0), (2432, 2560, 0)], &[2560, 128, 2432], 7.142_857_142_857_143),
        ] {
            let write = LongWrite::of(&buffered(&[begin, &end].concat())).expect("phases");
            let drawn: Vec<_> = write.parts.iter().map(|part| (part.phase, part.blocks)).collect();
            let all: Vec<_> = cached.iter().map(|&blocks| (Phase::Cached, blocks)).chain(past).collect();
            assert_eq!(drawn[..all.len()], all, "{begin:?}");
            let boosted: u64 = begin.iter().map(|bin| bin.1).sum();
            assert_eq!(write.figures()[0], (metric::CACHED_WRITE, gb(boosted + 1280)), "{begin:?}");
            let rates = [Phase::Cached, Phase::Direct].map(|phase| write.rate(phase).expect("a speed"));
            assert!((rates[0] / speed - 1.0).abs() < 0.03 && rates[1] == 2.0, "{rates:?} {begin:?}");
        }
        // Nothing is programmed where each write waits for data that is moved.
        let mut waits = buffered(&[(2560, 2560, 0), (128, 0, 0), (512, 0, 512), (512, 0, 512)]);
        waits.bins[1..].iter_mut().for_each(|bin| bin.device.slices_moved = 300);
        let write = LongWrite::of(&waits).expect("phases");
        assert_eq!((write.rate(Phase::Cached), write.rate(Phase::Folding)), (Some(10.0), Some(2.0)));
        assert_eq!(write.parts[1].phase, Phase::Folding);
        let no_cache = [(512, 0, 0), (512, 0, 768), (512, 0, 512)];
        assert!(LongWrite::of(&buffered(&no_cache)).is_none(), "nor is it a cache");
        let never_left = [(2816, 2560, 0), (2560, 2560, 0), (2560, 2816, 0)];
        assert!(LongWrite::of(&buffered(&never_left)).is_none());
    }

    /// What the device moves behind the last write is no folding before it, wherever that write went.
    #[test]
    fn work_behind_the_last_write_is_no_phase() {
        let told = |series: &Series| {
            let figures = LongWrite::of(series).expect("phases").figures();
            let has = |metric: Metric| figures.iter().any(|(m, _)| *m == metric);
            (has(metric::DIRECT_WRITE_THROUGHPUT), has(metric::FOLDING_FROM), has(metric::FOLDING_WRITE_THROUGHPUT))
        };
        let waits = |bins: &[(u64, u64, u64)]| {
            let mut series = series(bins);
            series.bins.last_mut().expect("bins").device.stall_space_ns = 1;
            series
        };
        for ends in [
            &[(2560, 2560, 0), (1280, 640, 0), (512, 0, 0), (512, 0, 0), (256, 0, 200)][..],
            &[(2560, 2560, 0), (1280, 640, 0), (256, 0, 200)],
            &[(2560, 2560, 0), (1280, 1240, 0), (256, 0, 2000)],
        ] {
            assert_eq!(told(&series(ends)), (true, false, false), "{ends:?}");
            // It is where a write waited for it.
            assert!(told(&waits(ends)).1, "{ends:?}");
        }
        let folds = [(2560, 2560, 0), (1280, 640, 0), (512, 0, 0), (512, 0, 400), (256, 0, 200)];
        assert_eq!(told(&series(&folds)), (true, true, true));
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
