// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts under every kind of load: the requested number, within the bounds of the configuration, no flushed data
//! lost, reproducible by seed; impossible cuts are errors.

use readpath_config::experiment::{Layout, Precondition, PreconditionRange};
use readpath_config::{DevicePreset, Event, EventKind, device};
use readpath_host::{HostCores, HpbOptions};
use readpath_kit::{Ns, Prng};
use readpath_lab::power_cuts::{Load, Loses, Moments, PowerCuts, PowerError, PowerRun, check, read_faults, run};
use readpath_lab::replay::{Mode, ReplayCase};
use readpath_run::{Setup, Tap};
use readpath_workload::launch::{LaunchSpec, Launches};
use readpath_workload::trace::{Loaded, Options, Prepare, Reader};
use readpath_workload::{Workload, fio};
use std::fmt::Write;
use std::sync::Arc;

fn no_file(path: &std::path::Path) -> std::io::Result<String> {
    Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.display().to_string()))
}

fn preset() -> DevicePreset {
    device::load("ufs21-64g", &no_file).expect("it comes with the program")
}

/// A host whose requests cost CPU: rules and power cuts meet them before, in and behind their core.
const CORES: HostCores =
    HostCores { submit_cycles: 40_000, complete_cycles: 30_000, interrupt_cycles: 10_000, ..HostCores::FREE };

fn setup() -> Setup {
    let preset = preset();
    let mut host = preset.host;
    host.hpb = Some(HpbOptions::default());
    let precondition = Precondition { layout: Layout::Random, range: PreconditionRange::Files };
    Setup { preset, host, precondition, seed: 5, encoded: false, events: Vec::new(), over_time: false }
}

fn cuts(cuts: u32, loses: Loses) -> PowerCuts {
    PowerCuts { cuts, loses, off: Ns::from_ms(10), seed: 7, faults: Arc::default() }
}

fn job(options: &str) -> Workload {
    let text = format!("[job]\nbs=4k\niodepth=8\n{options}\n");
    let context =
        fio::Context { unit_blocks: &[preset().device.lus[0].blocks], zones: &[], seed: 3, options: &[], defaults: "" };
    fio::parse("job", &text, &no_file, &context).expect("a job")
}

fn checked(setup: &Setup, load: Load, plan: &PowerCuts) -> Result<PowerRun, PowerError> {
    let moments = check(&load, plan)?;
    Ok(run(setup, load, plan, moments, None, &mut ()).0.expect("it runs"))
}

fn cut(options: &str, count: u32, loses: Loses) -> Result<PowerRun, PowerError> {
    let mut workload = job(&format!("size=48m\n{options}"));
    checked(&setup(), Load::Workload(&mut workload), &cuts(count, loses))
}

/// All cuts came, no flushed data was lost, and all blocks were checked.
fn assert_well(run: &PowerRun, count: usize, blocks: u64, what: &str) {
    assert_eq!((run.cuts.len(), run.wrong), (count, 0), "{what}: {:?}", run.first_wrong);
    assert!(run.checked >= blocks, "{what}: only {} blocks were checked", run.checked);
    assert!(run.cuts.windows(2).all(|pair| pair[0].at < pair[1].at), "{what}: one after another");
    assert!(run.cuts.iter().any(|cut| cut.in_flight > 0), "{what}: in the middle of requests");
    for cut in &run.cuts {
        assert!(cut.took <= run.longest.ready_at && cut.recovery.reads() <= run.longest.reads(), "{what}: {cut:?}");
    }
}

const MIX: &str = "rw=randrw\nrwmixread=40\nfsync=16";

#[test]
fn the_power_goes_and_the_workload_goes_on() {
    for loses in [Loses::Everything, Loses::Device] {
        let result = cut(MIX, 12, loses).expect("it runs");
        assert_eq!((result.cuts.len(), result.wrong), (12, 0), "{:?}", result.first_wrong);
        assert!(result.checked >= 12_288, "every block was read back: {}", result.checked);
        for cut in &result.cuts {
            assert!(cut.took <= result.longest.ready_at && cut.recovery.reads() <= result.longest.reads(), "{cut:?}");
        }
        assert!(result.cuts.iter().any(|cut| cut.recovery.torn > 0), "some programs were torn");
        assert!(result.cuts.windows(2).all(|pair| pair[0].at < pair[1].at));
        if loses == Loses::Device {
            assert!(result.device.resets_announced > 0, "the host was told");
        }
        assert_eq!(cut(MIX, 12, loses).expect("it runs again").cuts, result.cuts);
    }
}

const BOTH: [Loses; 2] = [Loses::Everything, Loses::Device];

/// Rates, pauses and limits of jobs go on over the cuts.
#[test]
fn the_power_goes_under_jobs_with_a_pace() {
    for (options, requests) in [
        ("rw=randrw\nrate_iops=2000,1000\nnumber_ios=6000\nfsync=32", 6000),
        ("rw=randwrite\nthinktime=3000\nthinktime_blocks=16\nnumber_ios=4000", 4000),
        ("rw=randrw\nstartdelay=1\nramp_time=1\nrate_iops=1000,1000\nnumber_ios=2000", 2000),
    ] {
        for loses in BOTH {
            let result = cut(options, 6, loses).expect(options);
            assert_well(&result, 6, 12_288, options);
            // With its host a cut takes the requests in flight along; the host that lives on sends them again.
            let lost: u64 = result.cuts.iter().map(|cut| u64::from(cut.in_flight)).sum();
            let ended = result.ios + if loses == Loses::Everything { lost } else { 0 };
            assert!(ended >= requests, "{options}: {} of {requests} ended, {lost} were lost", result.ios);
        }
    }
}

/// The number of requests is not known before: the moments are times, and the job ends when it would have ended.
#[test]
fn the_power_goes_under_a_job_that_ends_after_a_time() {
    let options = "rw=randrw\nruntime=2\ntime_based=1\nramp_time=1\nfsync=64";
    for loses in BOTH {
        let result = cut(options, 5, loses).expect("it runs");
        assert_well(&result, 5, 12_288, options);
        let first = result.cuts[0].at;
        assert!(result.cuts.iter().all(|cut| cut.at - first < Ns::from_secs(3)), "{:?}", result.cuts);
        assert!(result.cuts.windows(2).all(|pair| pair[1].at - pair[0].at >= Ns::from_ms(10)), "{:?}", result.cuts);
        assert_eq!(cut(options, 5, loses).expect("it runs again").cuts, result.cuts);
    }
}

/// The moments are spread over the requests that there will be, however long they are.
#[test]
fn the_power_goes_while_long_requests_are_in_flight() {
    let result = cut("rw=randwrite\nbs=64k\nfsync=16", 12, Loses::Everything).expect("it runs");
    assert_well(&result, 12, 12_288, "64 KiB");
    let in_flight = result.cuts.iter().filter(|cut| cut.in_flight > 0).count();
    assert!(in_flight >= 11, "{in_flight} of 12 cuts met requests in flight: {:?}", result.cuts);
}

/// The example of a device with zones, smaller.
fn zoned(layout: &str, size_mib: u32) -> DevicePreset {
    let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml"));
    let text = std::fs::read_to_string(path).expect("an example");
    let zones = format!("layout = \"{layout}\"\nsize_mib = {size_mib}");
    let text = text.replace("capacity_gib = 8", "capacity_gib = 1").replace("size_mib = 128", &zones);
    device::load("zoned.toml", &|_| Ok(text.clone())).expect("a device")
}

/// Cuts under jobs of which some write to zones; twice, with the same result.
fn cut_on_zones(preset: DevicePreset, jobs: &str, count: u32) -> PowerRun {
    let zones = readpath_run::zoned_units(&preset);
    let unit_blocks: Vec<u32> = preset.device.lus.iter().map(|unit| unit.blocks).collect();
    let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::None };
    let setup = Setup { host: preset.host, preset, precondition, ..setup() };
    let text = format!("[global]\nfilename=/dev/sdb\ndirect=1\nioengine=libaio\n{jobs}\n");
    let context = fio::Context { unit_blocks: &unit_blocks, zones: &zones, seed: 3, options: &[], defaults: "" };
    let workload = || fio::parse("z", &text, &no_file, &context).expect("a job");
    let run = || checked(&setup, Load::Workload(&mut workload()), &cuts(count, Loses::Everything)).expect("it runs");
    let result = run();
    assert_eq!((result.cuts.len() as u32, result.wrong), (count, 0), "{jobs}: {:?}", result.first_wrong);
    assert_eq!(run().cuts, result.cuts);
    result
}

/// The host asks for write pointers when the power is back, and jobs go on there; what was confirmed is below them, and
/// above them is nothing.
#[test]
fn the_power_goes_under_jobs_on_zones() {
    for (layout, size_mib) in [("power-of-two", 16), ("gaps", 12)] {
        let zones = |job: &str, count| {
            let result = cut_on_zones(zoned(layout, size_mib), &format!("zonemode=zbd\niodepth=8\n[z]\n{job}"), count);
            assert_well(&result, count as usize, 10_000, job);
            result
        };
        zones("rw=write\nbs=64k\nfsync=8\nio_size=96m", 12);
        zones("rw=randrw\nbs=16k\nsync=1\nio_size=12m\nsize=96m", 12);
        zones("rw=randwrite\nbs=4k\nio_size=24m\nnumjobs=2\nsize=96m", 12);
        // So often that it happens while requests wait for a zone to be reset.
        let result = zones("rw=write\nbs=256k\nio_size=240m\nsize=48m\nnumjobs=2\nmax_open_zones=2", 60);
        let lost: u64 = result.cuts.iter().map(|cut| u64::from(cut.in_flight)).sum();
        assert_eq!(result.ios + lost, 1920, "each request ended or was lost, once");
    }
}

/// What a cut takes may be what a reader waits for; and a cut may fall where no job knows of zones.
#[test]
fn the_power_goes_under_readers_of_zones_and_between_their_writers() {
    let preset = || zoned("power-of-two", 16);
    let writer = "zonemode=zbd\nbs=4k\nsize=16m\n[w]\nrw=write\nio_size=64k\n[r]\nrw=read\n";
    for reader in ["loops=2\nstartdelay=2ms", "startdelay=2ms", "stonewall"] {
        cut_on_zones(preset(), &format!("{writer}{reader}"), 5);
    }
    // What a job was to read is lost before its first read.
    let late = "[j0]\nrw=write\nbs=16k\niodepth=32\nsize=48m\nio_size=30m\nfsync=4\n\
                [j1]\nstonewall\nrw=rw\nbs=32k\nrwmixread=90\niodepth=2\noffset=36m\nsize=72m\nio_size=30m\n\
                [j2]\nrw=randread\nbs=32k\niodepth=2\noffset=24m\nsize=60m\nio_size=2m";
    cut_on_zones(zoned("gaps", 12), &format!("zonemode=zbd\n{late}"), 100);
    let mixed = "zonemode=zbd\nbs=16k\nsize=16m\n[m]\nrw=rw\nloops=2\nnumber_ios=400";
    cut_on_zones(preset(), mixed, 20);
    let phase = |rw: &str| format!("zonemode=zbd\nsize=16m\nrw={rw}\nio_size=100k\n");
    let between = "[b]\nstonewall\nfilename=/dev/sda\nrw=randwrite\nsize=64m\nio_size=8m\n";
    let phases = format!("bs=4k\niodepth=4\n[a]\n{}{between}[c]\nstonewall\n{}", phase("write"), phase("randwrite"));
    cut_on_zones(preset(), &phases, 3);
    // Zones that were torn are not open.
    let full = "zonemode=zbd\nbs=64k\niodepth=8\nmax_open_zones=1\nsize=64m\n[a]\nrw=randwrite\nio_size=64m";
    cut_on_zones(preset(), full, 12);
}

/// Reads and writes of areas that are far apart, one each 200 us, some of half a block, every 20th behind a flush.
fn trace(requests: u64) -> ReplayCase {
    let blocks = preset().device.lus[0].blocks;
    let mut text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    let mut rng = Prng::stream(1, "trace", 0);
    for i in 0..requests {
        let (area, at) = (rng.below(16), rng.below(512));
        let (op, size) = match rng.below(20) {
            0 => ("F", 0),
            1..8 => ("W", 512 << rng.below(7)),
            _ => ("R", 4096 << rng.below(4)),
        };
        let offset = if size == 0 { 0 } else { ((area << 18) + at * 8) * 4096 };
        writeln!(text, "{},{op},{offset},{size},,", i * 200_000).expect("a string");
    }
    let reader = Reader::new("t", Box::new(std::io::Cursor::new(text.into_bytes())), &Options::default());
    let mut requests = Prepare::new(blocks).requests("t", reader.expect("a trace")).expect("prepared");
    let loaded = Arc::new(Loaded::load(&mut requests, 1 << 20).expect("loaded"));
    ReplayCase::new("t", vec![loaded.clone()], loaded, blocks)
}

#[test]
fn the_power_goes_under_a_trace() {
    let case = trace(4000);
    for mode in [Mode::Timed, Mode::Closed { iodepth: 16 }] {
        for loses in BOTH {
            let load = || Load::Trace { case: &case, mode };
            let what = format!("{mode:?}, {loses:?}");
            assert_eq!(check(&load(), &cuts(6, loses)).expect("a known length"), Moments::Requests(8000));
            let result = checked(&setup(), load(), &cuts(6, loses)).expect("it runs");
            assert_well(&result, 6, 8000, &what);
            let lost: u64 = result.cuts.iter().map(|cut| u64::from(cut.in_flight)).sum();
            assert!(result.ios == 8000 || loses == Loses::Everything && result.ios + lost == 8000, "{what}");
            assert_eq!(checked(&setup(), load(), &cuts(6, loses)).expect("it runs again").cuts, result.cuts);
        }
    }
}

fn launches() -> Workload {
    let spec = LaunchSpec {
        apps: 6,
        games: 1,
        requests: 600,
        game_percent: 200,
        blocks: 1 << 18,
        shared_blocks: 1 << 14,
        span_blocks: 1 << 14,
        shared_percent: 30,
        repeat_percent: 85,
        burst_percent: 12,
        write_percent: 20,
        busy: vec![Ns::from_ms(300), Ns::from_ms(200)],
        seed: 3,
    };
    Launches::new(spec).expect("possible").workload("apps")
}

#[test]
fn the_power_goes_under_launches_of_apps() {
    for loses in BOTH {
        let mut workload = launches();
        let all = workload.launches.as_ref().map_or(0, Launches::total_requests);
        let result = checked(&setup(), Load::Workload(&mut workload), &cuts(8, loses)).expect("it runs");
        assert_well(&result, 8, 1 << 18, "launches");
        let lost: u64 = result.cuts.iter().map(|cut| u64::from(cut.in_flight)).sum();
        assert!(result.ios == all || loses == Loses::Everything && result.ios + lost == all, "{}", result.ios);
    }
}

/// Events come at their times in spite of the cuts, and the counts between them are reported.
#[test]
fn events_come_between_the_cuts() {
    let mut setup = setup();
    let event = |ms, kind| Event { at: Ns::from_ms(ms), kind };
    setup.events = vec![
        event(20, EventKind::HardwareReset),
        event(40, EventKind::PowerCycle { off: Ns::from_ms(5) }),
        event(60, EventKind::Suspend),
        event(70, EventKind::Resume),
    ];
    let case = trace(2000);
    for loses in BOTH {
        let (mut jobs, mut apps) = (job("size=48m\nrw=randrw\nrate_iops=9000,9000\nfsync=16"), launches());
        for (what, load) in [
            ("jobs", Load::Workload(&mut jobs)),
            ("launches", Load::Workload(&mut apps)),
            ("trace", Load::Trace { case: &case, mode: Mode::Timed }),
        ] {
            let result = checked(&setup, load, &cuts(6, loses)).expect(what);
            assert_well(&result, 6, 2000, what);
            let came: Vec<_> = result.spans.iter().filter_map(|span| span.event.map(|(_, event)| event)).collect();
            assert_eq!(came, setup.events, "{what}");
            assert!(result.spans[2].recovery.is_some_and(|time| time > Ns::ZERO), "{what}");
            let ended: u64 = result.spans.iter().flat_map(|span| &span.latency).map(|l| l.count()).sum();
            assert_eq!(ended, result.ios, "{what}");
        }
    }
}

fn with_faults(text: &str, count: u32, loses: Loses) -> PowerCuts {
    PowerCuts { faults: read_faults(text, "f").expect(text), ..cuts(count, loses) }
}

/// Each block is written once, and flushed, so that a rule loses what it took and nothing else.
#[test]
fn what_a_rule_takes_is_lost_by_rule() {
    for (rule, done, lost) in [
        ("drop write 4K-40K", 2, 16..=16),
        ("torn 4K 0-32K", 1, 1..=8),
        ("torn 512 0-32K", 1, 1..=8),
        ("corrupt write 0-64K", 2, 2..=2),
        ("misdirect write 0-32K", 1, 8..=16),
        ("error write 0-32K", 1, 0..=0),
        ("slow write 0-64K 7ms", 2, 0..=0),
        ("drop flush", 127, 1..=4096),
    ] {
        for (loses, cores) in [(BOTH[0], None), (BOTH[1], None), (BOTH[0], Some(CORES)), (BOTH[1], Some(CORES))] {
            let mut workload = job("size=16m\nrw=write\nbs=32k\niodepth=1\nfsync=4");
            let plan = with_faults(&format!("0s {rule}"), 2, loses);
            let mut setup = setup();
            setup.host.cores = cores;
            let result = checked(&setup, Load::Workload(&mut workload), &plan).expect(rule);
            assert_well(&result, 2, 4096, rule);
            let counted: Vec<_> = result.rules.iter().map(|rule| rule.done).collect();
            assert!(counted == [done] || rule == "drop flush" && counted[0] > 120, "{rule}: {counted:?}");
            assert!(lost.contains(&result.wrong_by_rule), "{rule}, {loses:?}: {}", result.wrong_by_rule);
            assert_eq!(result.first_by_rule.is_some(), result.wrong_by_rule > 0, "{rule}");
            let lost: u64 = result.cuts.iter().map(|cut| u64::from(cut.in_flight)).sum();
            let all = result.ios + if loses == Loses::Everything { lost } else { 0 };
            assert_eq!((all, result.never_due), (512 + 127, Vec::new()), "{rule}");
        }
    }
}

/// Whatever rules do, the device keeps its word; who is told of an error, or waits, loses nothing.
#[test]
fn rules_go_with_every_load() {
    let case = trace(2000);
    let honest =
        "0s error 3%\n0s slow 20% 300us\n50ms error off\n60ms slow off\n70ms error write up 5ms down 5ms\n9000s drop";
    let lying = "0s drop write 1%\n0s drop flush 20%\n0s torn 512 2%\n0s torn 4K 2%\n0s misdirect 1%\n0s corrupt 1%\n0s slow 5% 1ms\n0s drop trim";
    for (text, loses) in [(honest, BOTH[0]), (honest, BOTH[1]), (lying, BOTH[0]), (lying, BOTH[1])] {
        let plan = with_faults(text, 6, loses);
        let made = |what: &str| {
            let (mut jobs, mut apps) = (job("size=16m\nrw=randrw\nbsrange=4k-32k\nfsync=16"), launches());
            let load = match what {
                "jobs" => Load::Workload(&mut jobs),
                "launches" => Load::Workload(&mut apps),
                _ => Load::Trace { case: &case, mode: Mode::Timed },
            };
            checked(&setup(), load, &plan).expect(what)
        };
        for what in ["jobs", "launches", "trace"] {
            let result = made(what);
            assert_well(&result, 6, 2000, what);
            let done: Vec<u64> = result.rules.iter().map(|rule| rule.done).collect();
            if text == honest {
                assert_eq!((result.wrong_by_rule, result.first_by_rule), (0, None), "{what}, {loses:?}");
                assert_eq!(result.never_due, ["f: line 6"], "{what}");
            } else {
                assert!(result.wrong_by_rule > 20, "{what}, {loses:?}: {}", result.wrong_by_rule);
            }
            assert!(done[0] > 0 && (text == honest || done[4] > 0 && done[5] > 0), "{what}: {:?}", result.rules);
            if what == "jobs" {
                let again = made(what);
                assert_eq!((again.rules, again.cuts), (result.rules, result.cuts), "{loses:?}");
            }
        }
    }
}

/// A window opens and closes in virtual time, and who is slow is later.
#[test]
fn rules_follow_virtual_time() {
    let made = |text: &str, rate: &str| {
        let mut workload = job(&format!("size=48m\nrw=randread\nnumber_ios=2000\niodepth=1\n{rate}"));
        let plan = with_faults(text, 1, Loses::Device);
        checked(&setup(), Load::Workload(&mut workload), &plan).expect(text)
    };
    let (half, none) = (made("0s error up 500ms down 500ms", "rate_iops=1000"), made("100s error", ""));
    assert!((950..1050).contains(&half.rules[0].done) && half.rules[0].met == half.rules[0].done, "{:?}", half.rules);
    assert!(none.rules.is_empty() && none.never_due == ["f: line 1"], "{:?}", none.never_due);
    let late = made("100ms slow first 100 10ms", "");
    let by = (late.end - none.end).0 / 1_000_000;
    assert!(late.rules[0].done == 100 && (990..1010).contains(&by), "{by} ms");
}

/// Neither the wire nor a recording of what crosses it makes a difference.
#[test]
fn cuts_are_the_same_when_recorded_and_on_the_wire() {
    let (mut setup, case, plan) = (setup(), trace(500), cuts(3, Loses::Device));
    let load = || Load::Trace { case: &case, mode: Mode::Timed };
    let plain = checked(&setup, load(), &plan).expect("it runs");
    let mut text = Vec::new();
    let out: &mut dyn std::io::Write = &mut text;
    let tap = Tap::new(out, "cuts", None);
    let (recorded, tap) = run(&setup, load(), &plan, Moments::Requests(case.ios()), Some(tap), &mut ());
    assert_eq!(recorded.expect("it runs").cuts, plain.cuts);
    let mut tap = tap.expect("it comes back");
    assert!(tap.requests() > 1000);
    tap.finish().expect("memory");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("\"no reply\"") && text.ends_with("]\n"), "what a cut took has no reply");
    setup.encoded = true;
    let encoded = checked(&setup, load(), &plan).expect("it runs");
    assert_eq!((encoded.cuts, encoded.device), (plain.cuts, plain.device));
}

/// The host would send writes of zones again after an event that resets.
#[test]
fn zones_are_not_reset_by_events() {
    let preset = zoned("power-of-two", 16);
    let zones = readpath_run::zoned_units(&preset);
    let unit_blocks: Vec<u32> = preset.device.lus.iter().map(|unit| unit.blocks).collect();
    let context = fio::Context { unit_blocks: &unit_blocks, zones: &zones, seed: 3, options: &[], defaults: "" };
    let text = "[z]\nfilename=/dev/sdb\ndirect=1\nzonemode=zbd\nrw=write\nbs=64k\nsize=16m\n";
    let mut workload = fio::parse("z", text, &no_file, &context).expect("a job");
    let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::None };
    let events = vec![Event { at: Ns::from_ms(1), kind: EventKind::HardwareReset }];
    let setup = Setup { host: preset.host, preset, precondition, events, ..setup() };
    let (load, plan) = (Load::Workload(&mut workload), cuts(1, Loses::Everything));
    let moments = check(&load, &plan).expect("requests that can be counted");
    let error = run(&setup, load, &plan, moments, None, &mut ()).0.expect_err("a reset");
    assert!(error.to_string().contains("the event hardware-reset at 1 ms is not modelled"), "{error}");
}

#[test]
fn what_cannot_be_cut_is_said() {
    let error = cut("rw=randread\nnumber_ios=4", 5, Loses::Device).expect_err("more than requests");
    assert!(matches!(error, PowerError::TooMany { cuts: 5, .. }), "{error}");
    let error = cut("rw=randread\nruntime=1\ntime_based=1", 100, Loses::Device).expect_err("nothing but cuts");
    assert!(matches!(error, PowerError::TooShort { cuts: 100, .. }), "{error}");
    assert!(error.to_string().contains("100 power cuts take 1"), "{error}");
}
