// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs with `zonemode=zbd` on a device that refuses what is not at a write pointer, and whose payload checks that each
//! read returns the newest data.

use readpath_device::{DeviceConfig, LuConfig, ZoneConfig, ZoneLayout, ZoneRule};
use readpath_kit::{Ns, Prng};
use readpath_run::{RunError, Runner};
use readpath_testkit::{Checked, chosen, device, host, job, start};
use readpath_workload::{IoKind, Job, Kinds, Offsets, Phase, Sizes, Stream, StreamSpec, Zbd};

const ZONES: u32 = 16;

/// A zoned unit alone, of which four zones may be open.
fn zoned(layout: ZoneLayout, blocks: u32, rule: ZoneRule) -> DeviceConfig {
    zoned_alone(ZONES, layout, blocks, rule, 4)
}

/// A zoned unit alone, of so many zones.
pub(crate) fn zoned_alone(zones: u32, layout: ZoneLayout, blocks: u32, rule: ZoneRule, most_open: u32) -> DeviceConfig {
    let mut config = device(zones * 256);
    let unit = ZoneConfig { layout, blocks, most_open, rule, program_blocks: 4, flush_blocks: 4 };
    config.hpb = None;
    config.lus[0] = LuConfig {
        hpb: false,
        max_active_regions: 0,
        blocks: zones * unit.stride(),
        zones: Some(unit),
        ..config.lus[0]
    };
    config
}

fn zbd(zones: (u32, u32), random: bool, writes: bool) -> Zbd {
    Zbd { zones, random, writes, most_open: 4, job_most_open: 0, resets: None, again: false, read_beyond_wp: false }
}

fn on_zones(config: &DeviceConfig, zbd: Zbd, kinds: Kinds, sizes: [u16; 2], iodepth: u32, ios: u64, seed: u64) -> Job {
    let stride = config.lus[0].zones.expect("zones").stride();
    let (start, blocks) = (zbd.zones.0 * stride, (zbd.zones.1 - zbd.zones.0) * stride);
    let offsets = if zbd.random { Offsets::Uniform } else { Offsets::Sequential };
    let mut spec = StreamSpec::plain(IoKind::Read, start, blocks, sizes[0], offsets);
    spec.kinds = kinds;
    spec.sizes = [sizes[0], sizes[1], 1].map(Sizes::Fixed);
    spec.flush_every = [if seed.is_multiple_of(3) { 50 } else { 0 }, 0];
    Job { zbd: Some(zbd), ..job(Stream::new(&spec, seed).expect("a possible stream"), iodepth, ios) }
}

fn run(stack: &mut Checked, runner: &mut Runner, jobs: Vec<Job>) -> Result<Vec<[(u64, u64); 2]>, RunError> {
    let stats = runner.phase(stack, &mut Phase { name: String::new(), jobs }, &mut ())?;
    let of = |kind: &readpath_run::KindStats| (kind.ios, kind.blocks);
    Ok(stats.jobs.iter().map(|job| [of(&job.kinds[0]), of(&job.kinds[1])]).collect())
}

/// Sequential writes go from zone to zone, fill each, and reset those that are full; reads end where data ends.
#[test]
fn sequential_jobs_go_from_zone_to_zone() {
    for (layout, blocks) in [(ZoneLayout::PowerOfTwo, 128), (ZoneLayout::Gaps, 96), (ZoneLayout::Native, 96)] {
        let config = zoned(layout, blocks, ZoneRule::Zbc);
        let (mut stack, now): (Checked, Ns) = start(&config, host(None), |_| {});
        let mut runner = Runner::new(now);
        let part = zbd((2, 6), false, true);
        let write = |ios, seed: u64| on_zones(&config, part, Kinds::Only(IoKind::Write), [8, 8], 8, ios, 3 * seed + 1);
        let per_zone = u64::from(blocks / 8);
        run(&mut stack, &mut runner, vec![write(2 * per_zone + 3, 1)]).expect("no error");
        let written = [0, 0, blocks, blocks, 24, 0, 0];
        assert_eq!((stack.device.zone_pointers(0)[..7].to_vec(), stack.host.zone_resets()), (written.to_vec(), 0));
        // All that was written is read, and then there is no more.
        let read = on_zones(&config, zbd((0, 16), false, false), Kinds::Only(IoKind::Read), [8, 8], 4, 1000, 2);
        let read = run(&mut stack, &mut runner, vec![read]).expect("no error");
        assert_eq!(read[0][0], (2 * per_zone + 3, 8 * (2 * per_zone + 3)), "{layout:?}");
        // The next job begins at the start of its part: full zones are reset, the pointer of the third is kept.
        run(&mut stack, &mut runner, vec![write(4 * per_zone - 3, 3)]).expect("no error");
        let full = [0, 0, blocks, blocks, blocks, blocks, 0];
        assert_eq!((stack.device.zone_pointers(0)[..7].to_vec(), stack.host.zone_resets()), (full.to_vec(), 2));
        assert_eq!(stack.payload.wrong, 0);
    }
}

/// Random mixes of jobs: the device refuses nothing, no read returns old data, and no more zones are open than may be.
#[test]
fn random_mixes_respect_zones() {
    let (seeds, _) = chosen(0..60);
    let (mut resets, mut finished, mut checked) = (0, 0, 0);
    for seed in seeds {
        let mut rng = Prng::new(seed);
        let (layout, blocks) =
            [(ZoneLayout::PowerOfTwo, 64), (ZoneLayout::Gaps, 48), (ZoneLayout::Native, 96)][rng.below(3) as usize];
        let rule = [ZoneRule::Zbc, ZoneRule::Zufs][rng.below(2) as usize];
        let config = zoned(layout, blocks, rule);
        let (mut stack, now): (Checked, Ns) = start(&config, host(None), |_| {});
        let mut runner = Runner::new(now);
        let sizes = [1u16, 2, 4, 8, 16];
        for phase in 0..4 {
            let shared = 2 + rng.below(3) as u32;
            let jobs = (0..1 + rng.below(4)).map(|i| {
                // Parts overlap, so that no job is left without a zone that it may write to.
                let part = (rng.below(4) as u32, ZONES - rng.below(4) as u32);
                let kinds = match rng.below(3) {
                    0 if phase > 0 => Kinds::Only(IoKind::Read),
                    1 => Kinds::Mix(50),
                    _ => Kinds::Only(IoKind::Write),
                };
                let of = Zbd {
                    most_open: shared,
                    job_most_open: if rng.below(2) == 0 { 0 } else { 1 + rng.below(3) as u32 },
                    resets: (rng.below(3) == 0).then(|| (rng.below(500), 1 + rng.below(20) as u32)),
                    again: rng.below(2) == 0,
                    read_beyond_wp: rng.below(4) == 0,
                    ..zbd(part, rng.below(3) > 0, kinds != Kinds::Only(IoKind::Read))
                };
                let sizes = [sizes[rng.below(5) as usize], sizes[rng.below(5) as usize]];
                let depth = 1 + rng.below(16) as u32;
                on_zones(&config, of, kinds, sizes, depth, 200 + rng.below(400), seed * 100 + phase * 10 + i)
            });
            let jobs: Vec<Job> = jobs.collect();
            match run(&mut stack, &mut runner, jobs) {
                Ok(_) => {}
                // All zones that may be open lie outside of a job's part.
                Err(RunError::NoZone { .. }) => break,
                Err(e) => panic!("seed {seed}, phase {phase}: {e}"),
            }
            let open = stack.device.zone_pointers(0).iter().filter(|&&at| at > 0 && at < blocks).count();
            assert!(rule == ZoneRule::Zbc || open <= 4, "seed {seed}: {open} zones are open or closed");
            finished += stack.device.zone_pointers(0).iter().filter(|&&at| at == blocks).count();
        }
        assert_eq!(stack.payload.wrong, 0, "seed {seed}: {:?}", stack.payload.first_wrong);
        stack.device.check_consistency().expect("tables that agree");
        resets += stack.host.zone_resets();
        checked += stack.payload.checked;
    }
    assert!(resets > 500 && finished > 500 && checked > 20_000, "{resets}, {finished}, {checked}");
}

/// What cannot be is said.
#[test]
fn jobs_without_data_or_zones_say_so() {
    let config = zoned(ZoneLayout::PowerOfTwo, 64, ZoneRule::Zbc);
    let (mut stack, now): (Checked, Ns) = start(&config, host(None), |_| {});
    let mut runner = Runner::new(now);
    let only = |kind, of: Zbd, ios| on_zones(&config, of, Kinds::Only(kind), [4, 4], 4, ios, 1);
    let read = run(&mut stack, &mut runner, vec![only(IoKind::Read, zbd((0, 4), true, false), 10)]);
    let error = read.expect_err("nothing was written").to_string();
    assert!(error.contains("logical unit 0") && error.contains("--fill"), "{error}");
    // The first job opens all that may be open, and fills none of it.
    let few = |part| Zbd { most_open: 1, ..zbd(part, true, true) };
    run(&mut stack, &mut runner, vec![only(IoKind::Write, few((0, 4)), 3)]).expect("room");
    let write = run(&mut stack, &mut runner, vec![only(IoKind::Write, few((4, 8)), 3)]);
    let error = write.expect_err("no zone may be opened").to_string();
    let says = ["can be opened: 1 are open", "max_open_zones", "lu.zones.most_open"];
    assert!(says.iter().all(|says| error.contains(says)), "{error}");
}

/// A zone of `zonemode=zbd` takes one write at a time, so a deeper queue brings nothing in one zone.
#[test]
fn writes_of_one_zone_wait_for_each_other() {
    let config = zoned(ZoneLayout::PowerOfTwo, 128, ZoneRule::Zbc);
    let time = |iodepth| {
        let (mut stack, now): (Checked, Ns) = start(&config, host(None), |_| {});
        let mut runner = Runner::new(now);
        let job = on_zones(&config, zbd((0, 1), false, true), Kinds::Only(IoKind::Write), [1, 1], iodepth, 100, 1);
        run(&mut stack, &mut runner, vec![job]).expect("no error");
        runner.now() - now
    };
    let (one, eight) = (time(1), time(8));
    assert!(eight <= one && eight.0 * 100 > one.0 * 98, "{one} and {eight}");
}
