// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts under a workload of the user's: as many as asked for, within the bounds of the configuration, nothing lost
//! that was flushed, the same for the same seed; and what cannot be is said.

use readpath_config::experiment::{Layout, Precondition, PreconditionRange, default_hpb};
use readpath_config::{DevicePreset, device};
use readpath_kit::Ns;
use readpath_lab::experiment::Shared;
use readpath_lab::power_cuts::{Loses, PowerCuts, PowerError, PowerRun, run};
use readpath_run::Setup;
use readpath_workload::{Workload, fio};

fn no_file(path: &std::path::Path) -> std::io::Result<String> {
    Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.display().to_string()))
}

fn preset() -> DevicePreset {
    device::load("ufs21-64g", &no_file).expect("it comes with the program")
}

fn workload(options: &str) -> Workload {
    let text = format!("[job]\nbs=4k\nsize=48m\niodepth=8\n{options}\n");
    let context = fio::Context { unit_blocks: &[preset().device.lus[0].blocks], seed: 3 };
    fio::parse("job", &text, &no_file, &context).expect("a job")
}

fn cut(options: &str, cuts: u32, loses: Loses) -> Result<PowerRun, PowerError> {
    let preset = preset();
    let mut host = preset.host;
    host.hpb = Some(default_hpb());
    let precondition = Precondition { layout: Layout::Random, range: PreconditionRange::Files };
    let setup = Setup { preset, host, precondition, seed: 5, encoded: false, events: Vec::new() };
    let plan = PowerCuts { cuts, loses, off: Ns::from_ms(10), seed: 7 };
    run(&setup, &mut workload(options), &plan, &Shared::default())
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

#[test]
fn what_does_not_go_with_power_cuts_is_said() {
    for (options, what) in [
        ("rw=randread\nrate_iops=100", "a rate"),
        ("rw=randread\nthinktime=100", "thinktime"),
        ("rw=randread\nstartdelay=1", "startdelay"),
        ("rw=randread\nruntime=5\ntime_based=1", "runtime"),
    ] {
        let error = cut(options, 1, Loses::Everything).expect_err(options).to_string();
        assert!(error.contains(what) && error.contains("'job'"), "{error}");
    }
    let error = cut("rw=randread\nnumber_ios=4", 5, Loses::Device).expect_err("more than requests");
    assert!(matches!(error, PowerError::TooMany { cuts: 5, .. }), "{error}");
}
