// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mapper on a device that refuses what is not at a write pointer, and whose payload checks that each read returns
//! the newest data of its place. What cleaning costs is compared with the formula. That blocks are found again where
//! the mapper has put them is tested beside the mapper itself. `-- --nocapture` prints the figures.

use crate::write_amplification::greedy;
use crate::zonemode::zoned_alone;
use readpath_device::{DeviceConfig, ZoneLayout, ZoneRule};
use readpath_flash::Lean;
use readpath_host::{HostConfig, ZoneMapper, ZoneMapping};
use readpath_kit::{Ns, Prng};
use readpath_run::Runner;
use readpath_stack::{NoData, Stack, Typed};
use readpath_testkit::writes::closed_form;
use readpath_testkit::{Checked, chosen, everything, give_little_room, host, job, run, start};
use readpath_workload::{IoKind, Job, Kinds, Offsets, Sizes, Stream, StreamSpec, Zone};

fn behind(spare_percent: u8, keep_free: u16) -> ZoneMapper {
    ZoneMapper { mapper: ZoneMapping::Log, spare_percent, keep_free }
}

fn mapping(mapper: ZoneMapper) -> HostConfig {
    HostConfig { zones: Some(mapper), ..host(None) }
}

fn logical(config: &DeviceConfig, mapper: ZoneMapper) -> u32 {
    let lu = &config.lus[0];
    mapper.logical_blocks(lu.zone_count(), lu.zones.expect("zones").blocks)
}

/// Random mixes of reads, writes, trims and flushes: the device refuses nothing, no read returns old data, no more
/// zones are open than may be, and two runs are the same.
#[test]
fn random_mixes_respect_zones() {
    let (seeds, _) = chosen(0..12);
    let (mut resets, mut checked) = (0, 0);
    for seed in seeds {
        let mut rng = Prng::new(seed);
        let (layout, blocks) =
            [(ZoneLayout::PowerOfTwo, 64), (ZoneLayout::Gaps, 48), (ZoneLayout::Native, 96)][rng.below(3) as usize];
        let rule = [ZoneRule::Zbc, ZoneRule::Zufs][rng.below(2) as usize];
        let most_open = 3 + rng.below(3) as u32;
        let config = zoned_alone(16, layout, blocks, rule, most_open);
        let mapper = behind(rng.below(60) as u8, 2 + rng.below(3) as u16);
        let unit = logical(&config, mapper);
        let jobs = || {
            let mut rng = Prng::new(seed);
            let jobs = (0..4).map(|i| {
                let offsets = [Offsets::Uniform, Offsets::Sequential, Offsets::Zipf(1.1)];
                let sizes = Sizes::Range { min: 1, max: 1 + rng.below(40) as u16 };
                let offsets = offsets[rng.below(3) as usize].clone();
                let mut spec = StreamSpec::plain(IoKind::Write, 0, unit, 1, offsets);
                spec.kinds = [Kinds::Mix(30), Kinds::Only(IoKind::Write), Kinds::Only(IoKind::Trim), Kinds::Mix(60)][i];
                spec.sizes = std::array::from_fn(|_| sizes.clone());
                spec.fua = rng.below(3) == 0;
                spec.flush_every = [rng.below(3) as u32 * 40, 0];
                let ios = if i == 2 { 60 } else { 900 };
                job(Stream::new(&spec, seed + i as u64).expect("a possible stream"), 1 + rng.below(16) as u32, ios)
            });
            jobs.collect::<Vec<Job>>()
        };
        let make = || {
            let (mut stack, now): (Checked, Ns) = start(&config, mapping(mapper), |_| {});
            let mut runner = Runner::new(now);
            let mut told = everything(&run(&mut stack, &mut runner, jobs()));
            // Where all is by now outlives a phase.
            let mut spec = StreamSpec::plain(IoKind::Read, 0, unit, 8, Offsets::Sequential);
            spec.sizes = std::array::from_fn(|_| Sizes::Fixed(8));
            let reads = job(Stream::new(&spec, 1).expect("a possible stream"), 4, u64::from(unit / 8));
            told += &everything(&run(&mut stack, &mut runner, vec![reads]));
            (stack, told)
        };
        let (stack, told) = make();
        assert_eq!(stack.payload.wrong, 0, "seed {seed}: {:?}", stack.payload.first_wrong);
        stack.device.check_consistency().expect("tables that agree");
        let open = stack.device.zone_pointers(0).iter().filter(|&&at| at > 0 && at < blocks).count();
        assert!(open <= most_open as usize, "seed {seed}: {open} zones are open or closed");
        assert!(told == make().1, "seed {seed}: two runs differ");
        resets += stack.host.zone_resets();
        checked += stack.payload.checked;
    }
    assert!(resets > 300 && checked > 15_000, "{resets}, {checked}");
}

/// Writes single blocks at `offsets` to a full unit, three times its size; blocks that the host's commands wrote for
/// each block of the job, in the last third.
fn amplification(config: &DeviceConfig, mapper: ZoneMapper, offsets: Offsets, iodepth: u32) -> f64 {
    let (mut stack, now): (Stack<Lean, NoData, (), Typed>, Ns) = start(config, mapping(mapper), |_| {});
    let mut runner = Runner::new(now);
    let unit = logical(config, mapper);
    let mut write = |offsets: &Offsets, blocks: u16, iodepth, ios: u32, seed| {
        let spec = StreamSpec::plain(IoKind::Write, 0, unit, blocks, offsets.clone());
        let stream = Stream::new(&spec, seed).expect("a possible stream");
        run(&mut stack, &mut runner, vec![job(stream, iodepth, ios.into())]);
        stack.device.stats().slices_written
    };
    write(&Offsets::Sequential, 16, 1, unit / 16, 1);
    let before = write(&offsets, 1, iodepth, 2 * unit, 2);
    (write(&offsets, 1, iodepth, unit, 3) - before) as f64 / f64::from(unit)
}

/// When a victim is chosen, one of the two zones that are kept is free, and the ends of three logs are half empty in
/// the mean. What is left over holds garbage. Under uniform writes age tells nothing that data does not.
fn meets_the_formula(zones: u32, spare_percent: u8, iodepth: u32) {
    const BLOCKS: u32 = 256;
    let (config, mapper) = (large(zones, BLOCKS), behind(spare_percent, 2));
    let unit = logical(&config, mapper) / BLOCKS;
    let spare = (f64::from(zones) - 1.0 - 1.5) / f64::from(unit) - 1.0;
    let (expected, limit) = (greedy(spare, BLOCKS), closed_form(1.0 + spare));
    let found = amplification(&config, mapper, Offsets::Uniform, iodepth);
    println!(
        "{zones} zones, {spare_percent} % spare, depth {iodepth}: {found:.3}; greedy form {expected:.3} ({:+.2} %), \
         its limit {limit:.3}",
        100.0 * (found / expected - 1.0)
    );
    assert!((found / expected - 1.0).abs() < 0.03, "{found} and {expected}");
}

fn large(zones: u32, blocks: u32) -> DeviceConfig {
    let mut config = zoned_alone(zones, ZoneLayout::PowerOfTwo, blocks, ZoneRule::Zbc, 6);
    give_little_room(&mut config, 8);
    config
}

#[test]
fn uniform_writes_cost_what_the_formula_says() {
    for (zones, spare_percent, iodepth) in [(400, 7, 1), (400, 15, 4), (400, 28, 1), (200, 15, 16)] {
        meets_the_formula(zones, spare_percent, iodepth);
    }
}

/// Blocks that are rewritten while they are young have a log of their own, so has what is moved, and zones are cleaned
/// by their age too.
#[test]
fn skewed_writes_cost_less_than_uniform_ones() {
    let config = large(200, 256);
    let share = |access_percent, size_percent| Zone { access_percent, size_percent };
    let shares = Offsets::Zoned(vec![share(90, 10), share(10, 90)]);
    let of = |offsets| amplification(&config, behind(15, 2), offsets, 4);
    let [uniform, zipf, shares] = [Offsets::Uniform, Offsets::Zipf(0.9), shares].map(of);
    println!("uniform {uniform:.3}, Zipf 0.9 {zipf:.3}, 90 % of writes to 10 % {shares:.3}");
    assert!(zipf < 0.92 * uniform && shares < 0.75 * uniform, "{uniform}, {zipf}, {shares}");
}

/// What was trimmed is not moved. And when nothing is asked for, as many zones are free as were to be kept.
#[test]
fn trimmed_blocks_are_not_moved_and_zones_are_kept_free() {
    let (config, mapper) = (large(64, 256), behind(25, 9));
    let unit = logical(&config, mapper);
    let (mut stack, now): (Stack<Lean, NoData, (), Typed>, Ns) = start(&config, mapping(mapper), |_| {});
    let mut runner = Runner::new(now);
    let mut of = |kind, first, blocks: u32, each: u16, offsets, ios: u32| {
        let spec = StreamSpec::plain(kind, first, blocks, each, offsets);
        let stream = Stream::new(&spec, 7).expect("a possible stream");
        run(&mut stack, &mut runner, vec![job(stream, 4, ios.into())]);
        let empty = stack.device.zone_pointers(0).iter().filter(|&&at| at == 0).count();
        assert!(empty >= 9, "{empty} zones are free");
        stack.device.stats().slices_written
    };
    of(IoKind::Write, 0, unit, 16, Offsets::Sequential, unit / 16);
    let [full, trimmed] = [false, true].map(|trims| {
        if trims {
            of(IoKind::Trim, unit / 2, unit / 2, 16, Offsets::Sequential, unit / 32);
        }
        let before = of(IoKind::Write, 0, unit / 2, 1, Offsets::Uniform, 3 * unit);
        (of(IoKind::Write, 0, unit / 2, 1, Offsets::Uniform, unit) - before) as f64 / f64::from(unit)
    });
    println!("half of the blocks are written again: {full:.3}, and {trimmed:.3} when the others are trimmed");
    assert!(full > 1.5 && trimmed < 1.3, "{full}, {trimmed}");
}
