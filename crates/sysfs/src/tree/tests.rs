// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of real runs: each test starts a run that continues until the test has seen enough, and reads its files.

use super::*;
use readpath_config::experiment::{Layout, Precondition, PreconditionRange, Variant};
use readpath_config::{DevicePreset, device};
use readpath_host::{Control, HpbOptions, HpbParam, PolicyChoice};
use readpath_lab::runs::{Plan, Shared};
use readpath_run::Setup;
use readpath_workload::iozone;

const UNIT_0: &str = "class/scsi_device/0:0:0:0/device";

fn preset() -> DevicePreset {
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    device::load("ufs21-64g", &none).expect("a preset")
}

/// A long run with HPB in this mode, or without.
fn plan(name: &str, mode: Option<Control>) -> Plan {
    plan_with(name, mode.map(|mode| HpbOptions { mode: Some(mode), ..HpbOptions::default() }))
}

fn plan_with(name: &str, hpb: Option<HpbOptions>) -> Plan {
    let variant = Variant::new(name, hpb, Vec::new());
    let preset = variant.device(&preset()).expect("a possible device");
    let host = variant.host(&preset);
    let precondition = Precondition { layout: Layout::Sequential, range: PreconditionRange::Files };
    let setup = Setup { preset, host, precondition, seed: 1, encoded: false, events: Vec::new(), over_time: false };
    // Long enough for any test to stop it.
    let workload = iozone::parse(&["-i2", "-t", "16", "-s", "3g"], 1).expect("an iozone line");
    Plan { case: "48 GiB".into(), variant: name.into(), setup, workload, inputs: Vec::new() }
}

/// Lets `see` look at the tree while the runs are in progress, then stops them. The tree comes back.
fn during(plans: Vec<Plan>, see: impl FnOnce(&Tree)) -> Tree {
    let board = Arc::new(Board::new(plans.iter().map(|p| (p.case.clone(), p.variant.clone()))));
    let tree = Tree::new(board.clone());
    let shared = Shared { board: Some(board.clone()), ..Shared::default() };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let (plans, shared) = (&plans, &shared);
            std::thread::scope(|scope| {
                let made = |place: usize| plans[place].make(place, None, shared).0.map(drop);
                let runs: Vec<_> = (0..plans.len()).map(|place| scope.spawn(move || made(place))).collect();
                runs.into_iter().try_for_each(|run| run.join().expect("no panic"))
            })
        });
        // A test that fails must not let its run go on.
        let stop = Stop(&shared);
        while board.posts().iter().any(|post| post.state() == RunState::Waiting) {
            std::thread::yield_now();
        }
        see(&tree);
        drop(stop);
        assert!(run.join().expect("no panic").is_err_and(|e| e.is_interruption()), "the run was still going on");
    });
    tree
}

struct Stop<'a>(&'a Shared);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

fn read(tree: &Tree, path: &str) -> Result<String, Errno> {
    tree.read(tree.find(path).unwrap_or_else(|e| panic!("{path}: {e:?}")))
}

fn write(tree: &Tree, path: &str, text: &str) -> Result<(), Errno> {
    tree.write(tree.find(path).unwrap_or_else(|e| panic!("{path}: {e:?}")), text.as_bytes())
}

fn param(name: &str) -> String {
    format!("{UNIT_0}/hpb_params/{name}")
}

/// Every name of the kernel's HPB files, with the format of the kernel.
#[test]
fn names_and_formats_are_the_kernels() {
    during(vec![plan("on", Some(Control::Device))], |tree| {
        let device = "bus/platform/drivers/ufshcd/0.ufs";
        for (path, text) in [
            ("device_descriptor/hpb_version", "0x0100\n"),
            ("device_descriptor/hpb_control", "0x01\n"),
            ("device_descriptor/ufs_features", "0x80\n"),
            ("device_descriptor/ext_feature_sup", "0x00000080\n"),
            ("device_descriptor/number_of_luns", "0x01\n"),
            ("geometry_descriptor/hpb_region_size", "0x0F\n"),
            ("geometry_descriptor/hpb_number_lu", "0x01\n"),
            ("geometry_descriptor/hpb_subregion_size", "0x0F\n"),
            ("attributes/max_data_size_hpb_single_cmd", "0x00000000\n"),
            ("attributes/current_power_mode", "0x00000011\n"),
            ("flags/device_init", "false\n"),
            ("string_descriptors/manufacturer_name", "READPATH\n"),
            ("health_descriptor/eol_info", "0x01\n"),
            ("interconnect_descriptor/unipro_version", "0x0180\n"),
            ("power_descriptor/active_icc_levels_vccq215", "0x0000\n"),
        ] {
            assert_eq!(read(tree, &format!("{device}/{path}")).as_deref(), Ok(text), "{path}");
        }
        // HPB 1.0 has no fHPBEn: the device refuses the query.
        assert_eq!(read(tree, &format!("{device}/flags/hpb_enable")), Err(Errno::INVAL));
        let most = preset().device.hpb.expect("HPB").max_active_regions;
        let most = format!("0x{most:04X}\n");
        assert_eq!(read(tree, &format!("{device}/geometry_descriptor/hpb_max_active_regions")), Ok(most));
        for name in STATS {
            let count = read(tree, &format!("{UNIT_0}/hpb_stats/{name}")).expect("a counter");
            assert!(count.trim_end().parse::<u64>().is_ok() && count.ends_with('\n'), "{name}: {count:?}");
        }
        for (name, text) in [
            ("hpb_lu_max_active_regions", preset().device.lus[0].max_active_regions),
            ("hpb_pinned_region_start_offset", 0),
            ("hpb_number_pinned_regions", 0),
        ] {
            assert_eq!(read(tree, &format!("{UNIT_0}/unit_descriptor/{name}")), Ok(format!("0x{text:04X}\n")));
        }
        let blocks = u64::from(preset().device.lus[0].blocks);
        assert_eq!(
            read(tree, &format!("{UNIT_0}/unit_descriptor/logical_block_count")),
            Ok(format!("0x{blocks:016X}\n"))
        );
        assert_eq!(read(tree, "module/ufshcd_core/parameters/ufshpb_host_map_kbytes").as_deref(), Ok("2048\n"));
    });
}

#[test]
fn counters_have_the_names_of_the_host() {
    let names: Vec<&str> = readpath_host::HpbCounters::default().by_name().map(|(name, _)| name).collect();
    assert_eq!(names, STATS);
}

/// All paths to a folder lead to the same one.
#[test]
fn links_lead_to_one_place() {
    during(vec![plan("on", Some(Control::Device))], |tree| {
        let unit = tree.find("devices/platform/0.ufs/host0/target0:0:0/0:0:0:0").expect("the unit");
        for path in [UNIT_0, "bus/scsi/devices/0:0:0:0"] {
            assert_eq!(tree.find(path), Ok(unit), "{path}");
        }
        let device = tree.find("devices/platform/0.ufs").expect("the device");
        for path in ["bus/platform/devices/0.ufs", "bus/platform/drivers/ufshcd/0.ufs"] {
            assert_eq!(tree.find(path), Ok(device), "{path}");
        }
        assert_eq!(tree.find("devices/platform/0.ufs/driver"), tree.find("bus/platform/drivers/ufshcd"));
        // Every link leads somewhere, and every file can be read or says why not.
        let mut folders = vec![ROOT];
        let (mut files, mut writable) = (0, 0);
        while let Some(folder) = folders.pop() {
            for entry in tree.entries(folder).expect("a folder") {
                assert_eq!(tree.lookup(folder, &entry.name), Ok(entry.node));
                assert_eq!(tree.parent(entry.node), Ok(folder));
                match entry.kind {
                    Kind::Folder => folders.push(entry.node),
                    Kind::Link(target) => assert!(tree.find_from(folder, &target).is_ok(), "{}", entry.name),
                    Kind::File { writable: may } => {
                        (files, writable) = (files + 1, writable + usize::from(may));
                        assert_ne!(tree.read(entry.node), Err(Errno::NOENT));
                        assert_eq!(tree.check_open(entry.node, true).is_ok(), may, "{}", entry.name);
                        assert_eq!(tree.check_open(entry.node, false), Ok(()));
                        if !may {
                            assert_eq!(tree.write(entry.node, b"1\n"), Err(Errno::ACCESS));
                        }
                    }
                }
            }
        }
        let device = DESCRIPTORS.iter().map(|g| g.fields.len()).sum::<usize>() + 48 + 5 + 12 + 21;
        assert_eq!((files, writable), (device + UNIT.len() + 1 + 7 + 9 + 5 + 1, 9 + 1));
    });
}

/// Each parameter on both sides of each bound of Linux's `_store` functions, as text that reaches a run in progress.
#[test]
fn parameters_are_stored_as_linux_stores_them() {
    let depth = preset().host.slots - 1;
    during(vec![plan("hcm", Some(Control::Host))], |tree| {
        let defaults = [
            ("requeue_timeout_ms", "0"),
            ("activation_thld", "8"),
            ("normalization_factor", "1"),
            ("eviction_thld_enter", "256"),
            ("eviction_thld_exit", "128"),
            ("read_timeout_ms", "1000"),
            ("read_timeout_expiries", "100"),
            ("timeout_polling_interval_ms", "200"),
            ("inflight_map_req", "1"),
        ];
        assert_eq!(defaults.len(), HpbParam::ALL.len());
        let (most_in_flight, too_many) = ((depth - 1).to_string(), depth.to_string());
        for (name, default) in defaults {
            assert_eq!(read(tree, &param(name)), Ok(format!("{default}\n")), "{name}");
            let (taken, refused): (&[&str], &[&str]) = match name {
                "requeue_timeout_ms" => (&["0", "2147483647"], &["2147483648", "4294967295"]),
                "activation_thld" | "read_timeout_expiries" => (&["1", "2147483647"], &["0", "2147483648"]),
                "normalization_factor" => (&["1", "12"], &["0", "13"]),
                "eviction_thld_enter" => (&["129"], &["128", "0", "2147483648"]),
                "eviction_thld_exit" => (&["9"], &["8", "0"]),
                "read_timeout_ms" => (&["400"], &["399", "0"]),
                "timeout_polling_interval_ms" => (&["1", "500"], &["0", "501"]),
                _ => (&["1", &most_in_flight], &["0", &too_many]),
            };
            for value in taken {
                assert_eq!(write(tree, &param(name), &format!("{value}\n")), Ok(()), "{name} {value}");
                assert_eq!(read(tree, &param(name)), Ok(format!("{value}\n")), "{name} {value}");
            }
            assert_eq!(write(tree, &param(name), default), Ok(()));
            for value in refused.iter().chain(&["", "\n", "-1", "x", " 9", "9 9", "4294967296", "99999999999999999999"])
            {
                assert_eq!(write(tree, &param(name), value), Err(Errno::INVAL), "{name} {value:?}");
                assert_eq!(read(tree, &param(name)), Ok(format!("{default}\n")), "{name} {value:?}");
            }
        }
        assert_eq!(write(tree, &param("activation_thld"), "0x10\n"), Ok(()));
        assert_eq!(read(tree, &param("activation_thld")).as_deref(), Ok("16\n"));
    });
}

#[test]
fn device_control_mode_has_one_parameter() {
    let tree = during(vec![plan("dcm", Some(Control::Device))], |tree| {
        for p in HpbParam::ALL {
            // The mode is looked at before the number.
            for text in ["5\n", "rubbish"] {
                let expected = match (p, text) {
                    (HpbParam::RequeueTimeoutMs, "5\n") => Ok(()),
                    (HpbParam::RequeueTimeoutMs, _) => Err(Errno::INVAL),
                    _ => Err(Errno::OPNOTSUPP),
                };
                assert_eq!(write(tree, &param(p.name()), text), expected, "{p} {text}");
            }
            let shown = if p == HpbParam::RequeueTimeoutMs { "5\n" } else { "0\n" };
            assert_eq!(read(tree, &param(p.name())).as_deref(), Ok(shown), "{p}");
        }
    });
    // The run is over: its last values stay, and it takes no writes.
    assert_eq!(read(&tree, &param("requeue_timeout_ms")).as_deref(), Ok("5\n"));
    assert_eq!(write(&tree, &param("requeue_timeout_ms"), "6\n"), Err(Errno::NODEV));
    assert_eq!(read(&tree, "readpath/host0/state").as_deref(), Ok("over\n"));
    let (changes, count) = tree.board.posts()[0].changes();
    assert_eq!((changes.len(), count, changes[0].param, changes[0].value), (1, 1, HpbParam::RequeueTimeoutMs, 5));
}

/// A policy of this host's own does not use the rules of Linux, so it refuses their parameters.
#[test]
fn a_policy_takes_what_it_heeds() {
    let policy = PolicyChoice::ALL.into_iter().find_map(PolicyChoice::managed);
    assert!(policy.is_some());
    let options = HpbOptions { mode: Some(Control::Host), policy, ..HpbOptions::default() };
    during(vec![plan_with("managed", Some(options))], |tree| {
        for p in HpbParam::ALL {
            let heeded = matches!(p, HpbParam::RequeueTimeoutMs | HpbParam::InflightMapReq);
            let expected = if heeded { Ok(()) } else { Err(Errno::OPNOTSUPP) };
            assert_eq!(write(tree, &param(p.name()), "5\n"), expected, "{p}");
            assert_eq!(read(tree, &param(p.name())).as_deref(), Ok(if heeded { "5\n" } else { "0\n" }), "{p}");
        }
    });
}

#[test]
fn a_host_without_hpb_says_so() {
    let tree = during(vec![plan("off", None), plan("hcm", Some(Control::Host))], |tree| {
        for name in STATS.iter().map(|n| format!("hpb_stats/{n}")).chain(["hpb_params/activation_thld".into()]) {
            assert_eq!(read(tree, &format!("{UNIT_0}/{name}")), Err(Errno::NODEV), "{name}");
        }
        assert_eq!(write(tree, &param("activation_thld"), "rubbish"), Err(Errno::NODEV));
        // The device still has HPB.
        assert_eq!(read(tree, "bus/platform/devices/0.ufs/device_descriptor/hpb_version").as_deref(), Ok("0x0100\n"));
        assert!(read(tree, "class/scsi_device/1:0:0:0/device/hpb_stats/hit_cnt").is_ok());
        assert_eq!(read(tree, "bus/platform/devices/1.ufs/device_descriptor/hpb_control").as_deref(), Ok("0x00\n"));
    });
    assert_eq!(read(&tree, "readpath/host1/variant").as_deref(), Ok("hcm\n"));
}

/// Counters grow while the run goes on.
#[test]
fn counters_are_live() {
    during(vec![plan("on", Some(Control::Device))], |tree| {
        let count = |name: &str| -> u64 {
            read(tree, &format!("{UNIT_0}/hpb_stats/{name}")).expect("a counter").trim_end().parse().expect("a number")
        };
        let first = count("hit_cnt");
        let requests = || -> u64 {
            read(tree, "readpath/host0/requests").expect("requests").trim_end().parse().expect("a number")
        };
        // Bounded by requests, not by time: a run whose counters stay where they are fails the test instead of holding
        // it.
        while count("hit_cnt") <= first {
            assert!(requests() < 4_000_000, "millions of requests and no read with an entry");
            std::thread::yield_now();
        }
        assert!(requests() > 0);
    });
}

#[test]
fn the_module_parameter_is_kept() {
    let board = Arc::new(Board::new([("case".to_owned(), "variant".to_owned())]));
    let tree = Tree::new(board);
    let file = "module/ufshcd_core/parameters/ufshpb_host_map_kbytes";
    for (text, result) in [
        ("4096\n", Ok(())),
        ("4294967295", Ok(())),
        ("4294967296", Err(Errno::RANGE)),
        ("-1", Err(Errno::INVAL)),
        ("", Err(Errno::INVAL)),
    ] {
        assert_eq!(write(&tree, file, text), result, "{text:?}");
    }
    assert_eq!(read(&tree, file).as_deref(), Ok("4294967295\n"));
    // A run that has not begun has no host yet.
    assert_eq!(tree.find("devices/platform/0.ufs"), Err(Errno::NOENT));
    assert_eq!(read(&tree, "readpath/host0/state").as_deref(), Ok("waiting\n"));
    assert_eq!(tree.kind(10_000), Err(Errno::NOENT));
    assert_eq!(tree.entries(tree.find(file).expect("a file")), Err(Errno::NOTDIR));
}
