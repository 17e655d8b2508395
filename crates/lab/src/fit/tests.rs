// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements made by the model itself: known values have to come back, and what cannot be known has to be called so.

use super::*;
use readpath_config::device;

const IOS: u32 = 6000;

/// The preset with 4 GiB, which are soon made and read as fast.
fn preset() -> DevicePreset {
    let preset = device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap();
    let set = [("lu[0].capacity_gib", "4"), ("geometry.blocks_per_plane", "230")];
    set.iter().fold(preset, |preset, (key, value)| preset.with_override(key, value).unwrap())
}

fn param(key: &str) -> Param {
    Param::of_key(key).unwrap()
}

/// (range in MiB, queue depth, HPB, metric)
type Way = (u32, u32, bool, Metric);

/// What `truth` shows, with another seed than fits use if `seed` is not 1.
fn measured(truth: &DevicePreset, ways: &[Way], seed: u64) -> Vec<Measurement> {
    let shared = Shared::default();
    let mut model = Model::new(truth, Vec::new(), IOS, seed, &shared);
    let of = |(line, &(mib, queue_depth, hpb, metric)): (usize, &Way)| {
        let setting = Setting { access: Access::RandomRead, range_blocks: mib * 256, queue_depth, hpb, block_count: 1 };
        let number = model.setting(setting);
        let value = model.outcome(number, &Values::new()).unwrap().of(metric);
        Measurement { line, setting, metric, value, error: 0.01, held_out: None }
    };
    ways.iter().enumerate().map(of).collect()
}

fn options(params: &[&str]) -> FitOptions {
    let params = params.iter().map(|key| param(key)).collect();
    FitOptions { params, ios: IOS, advice: false, ..FitOptions::default() }
}

fn found<'a>(fit: &'a Fit, key: &str) -> &'a FittedParam {
    fit.params.iter().find(|p| p.param == param(key)).unwrap()
}

fn with(preset: &DevicePreset, values: &[(&str, f64)]) -> DevicePreset {
    let set = |(key, x): &(&str, f64)| {
        let param = param(key);
        let scale = if param.in_unit(1000) == 1.0 { 1e3 } else { 1.0 };
        (param, param.realize(x * scale, preset))
    };
    params::device(preset, &values.iter().map(set).collect::<Vec<_>>()).unwrap()
}

const SATURATED: [Way; 4] = [
    (512, 31, false, Metric::Throughput),
    (2048, 31, false, Metric::Throughput),
    (3072, 31, false, Metric::Iops),
    (4096, 31, false, Metric::Throughput),
];

#[test]
fn known_values_come_back() {
    let truth =
        with(&preset(), &[("firmware.flash_op_us", 11.3), ("flash.read_us", 61.0), ("map_cache.size_kib", 848.0)]);
    let ways = [&SATURATED[..], &[(512, 1, false, Metric::LatencyMean), (4096, 2, false, Metric::Throughput)]].concat();
    let rows = measured(&truth, &ways, 1);
    let fit = fit(
        &preset(),
        &rows,
        &options(&["firmware.flash_op_us", "flash.read_us", "map_cache.size_kib"]),
        &Shared::default(),
    )
    .unwrap();
    assert!(fit.converged);
    for (key, wanted) in
        [("firmware.flash_op_us", 11_300.0), ("flash.read_us", 61_000.0), ("map_cache.size_kib", 848.0)]
    {
        let p = found(&fit, key);
        assert_eq!(p.verdict, Verdict::Identified, "{key}: {}", p.error());
        assert!((p.fitted as f64 / wanted - 1.0).abs() < 0.02, "{key}: {} instead of {wanted}", p.fitted);
        assert!(!p.at_bound, "{key}");
    }
    assert_eq!(fit.freedom, rows.len() - 3);
    assert!(fit.rms_percent(true).unwrap() < 0.5 && fit.misfit < fit.misfit_before);
}

#[test]
fn saturated_rows_say_nothing_of_what_does_not_saturate() {
    let truth = with(&preset(), &[("firmware.flash_op_us", 15.0)]);
    let rows = measured(&truth, &SATURATED, 2);
    let keys = ["firmware.flash_op_us", "flash.read_us", "host.submit_us", "firmware.hpb_read_extra_us"];
    let fit = fit(&preset(), &rows, &FitOptions { advice: true, ..options(&keys) }, &Shared::default()).unwrap();
    let core = found(&fit, "firmware.flash_op_us");
    assert_eq!(core.verdict, Verdict::Identified);
    assert!((core.fitted as f64 / 15_000.0 - 1.0).abs() < 0.02);
    for key in ["flash.read_us", "host.submit_us", "firmware.hpb_read_extra_us"] {
        let p = found(&fit, key);
        assert_eq!(p.verdict, Verdict::NotIdentified, "{key} {}", p.error());
        assert!((p.fitted as f64 / p.start as f64 - 1.0).abs() < 0.1, "{key} wandered to {}", p.fitted);
    }
    assert!(!found(&fit, "firmware.hpb_read_extra_us").concerned);
    // Measurements with one request at a time would identify the rest.
    let advice = fit.advice.as_ref().unwrap();
    assert!(advice.measurements.iter().any(|(s, _)| s.queue_depth < 31), "{advice:?}");
    assert!(fit.notes().iter().any(|n| n.contains("No measurement depends on firmware.hpb_read_extra_us")));
}

#[test]
fn one_reader_at_a_time_fixes_a_sum() {
    let rows = measured(&preset(), &[(512, 1, false, Metric::LatencyMean), (256, 1, false, Metric::Iops)], 1);
    let start = with(&preset(), &[("flash.read_us", 70.0)]);
    let fit = fit(&start, &rows, &options(&["flash.read_us", "host.submit_us"]), &Shared::default()).unwrap();
    assert!(fit.params.iter().all(|p| p.verdict != Verdict::Identified));
    assert!(fit.rms_percent(true).unwrap() < 0.1, "{}", fit.rms_percent(true).unwrap());
    let [sum] = &fit.combinations[..] else { panic!("{:?}", fit.combinations) };
    assert!((sum.value - 75.0).abs() < 1.0, "{} = {}", sum.sum(), sum.value);
    assert_eq!(sum.sum(), "flash.read_us + host.submit_us+complete_us");
}

#[test]
fn hpb_shows_its_price_and_its_limit() {
    let truth = with(&preset(), &[("firmware.hpb_read_extra_us", 1.3), ("hpb.max_active_regions", 150.0)]);
    let ways = [
        (512, 31, false, Metric::Throughput),
        (1024, 31, true, Metric::Throughput),
        (2048, 31, true, Metric::Throughput),
        (3584, 31, true, Metric::Throughput),
    ];
    let rows = measured(&truth, &ways, 1);
    let keys = ["firmware.flash_op_us", "firmware.hpb_read_extra_us", "hpb.max_active_regions"];
    let fit = fit(&preset(), &rows, &options(&keys), &Shared::default()).unwrap();
    let regions = found(&fit, "hpb.max_active_regions");
    assert_eq!(regions.verdict, Verdict::Identified, "{}", regions.error());
    assert!((regions.fitted as f64 / 150.0 - 1.0).abs() < 0.02, "{}", regions.fitted);
    let extra = found(&fit, "firmware.hpb_read_extra_us");
    assert_eq!(extra.verdict, Verdict::Weakly, "{}", extra.error());
    assert!((extra.fitted as f64 / 1300.0 - 1.0).abs() < 0.1, "{}", extra.fitted);
}

/// Noise-free measurements of a preset, from a start that is off: wherever the search ends, it says no more than holds.
#[test]
fn what_is_said_of_a_value_holds() {
    let ways = [
        (512, 16, false, Metric::Throughput),
        (2048, 16, false, Metric::Throughput),
        (512, 1, false, Metric::LatencyMean),
        (2048, 4, false, Metric::Throughput),
    ];
    let rows = measured(&preset(), &ways, 1);
    let start = with(&preset(), &[("flash.read_us", 70.0)]);
    let keys = ["firmware.flash_op_us", "map_cache.size_kib", "flash.read_us", "host.submit_us"];
    let fit = fit(&start, &rows, &options(&keys), &Shared::default()).unwrap();
    for p in &fit.params {
        let off = ln(p.fitted as f64 / p.param.value(&preset()) as f64).abs();
        let known = p.verdict != Verdict::NotIdentified;
        assert!(!known || off < 0.01 + 2.0 * p.standard_error, "{} {} ± {}", p.param.key(), p.fitted, p.error());
        assert!(fit.converged || p.verdict != Verdict::Identified, "{}", p.param.key());
    }
}

#[test]
fn without_convergence_nothing_is_identified() {
    let truth = with(&preset(), &[("firmware.flash_op_us", 60.0)]);
    let rows = measured(&truth, &SATURATED[..2], 1);
    let fit_in = |iterations: u32| {
        let options = FitOptions { iterations, ..options(&["firmware.flash_op_us", "flash.read_us"]) };
        fit(&preset(), &rows, &options, &Shared::default()).unwrap()
    };
    let fit = fit_in(0);
    assert!(!fit.converged && fit.combinations.is_empty());
    assert!(fit.params.iter().all(|p| p.verdict != Verdict::Identified), "{:?}", fit.params);
    assert!(fit.notes()[0].starts_with("The search did not converge in 0 steps"), "{:?}", fit.notes());
    // Nearly three times as much is a few steps away.
    let fit = fit_in(6);
    assert!(fit.converged);
    let op = found(&fit, "firmware.flash_op_us");
    assert!(op.verdict == Verdict::Identified && op.fitted.abs_diff(60_000) < 600, "{op:?}");
}

#[test]
fn a_fitted_device_is_another_one() {
    let rows = measured(&preset(), &SATURATED[..1], 1);
    let fit = fit(&preset(), &rows, &options(&["firmware.flash_op_us"]), &Shared::default()).unwrap();
    assert_eq!(fit.document("m.csv").unwrap().title, "ufs21-64g fitted to m.csv");
    let device = device::parse(&fit.preset.echo().to_toml(), "fitted.toml").unwrap();
    assert_eq!(device.name, "ufs21-64g-fitted");
    assert!(!device.description.contains("alibrated with"), "{}", device.description);
    assert!(device.description.contains("'ufs21-64g'"), "{}", device.description);
    assert_eq!(device.fitted, [("firmware.flash_op_us".to_owned(), "measurements".to_owned())]);
    // A name stays within 64 characters after repeated fits.
    let mut long = preset();
    long.name = "a".repeat(64);
    let again = super::fitted_device(&long, &[(param("flash.read_us"), 60_000)]).unwrap();
    device::parse(&again.echo().to_toml(), "again.toml").unwrap();
}

/// What `truth` shows in these settings.
fn throughput(truth: &DevicePreset, settings: &[Setting]) -> Vec<Measurement> {
    let shown = predict(truth, 0, settings, IOS, 1, &Shared::default()).unwrap();
    let of = |(line, (setting, outcome)): (usize, (&Setting, Outcome))| Measurement {
        line,
        setting: *setting,
        metric: Metric::Throughput,
        value: outcome.of(Metric::Throughput),
        error: 0.02,
        held_out: None,
    };
    settings.iter().zip(shown).enumerate().map(of).collect()
}

/// Two cores that take twice as long are as fast as one with many requests, but not with one.
#[test]
fn the_number_of_cores_is_found() {
    let truth = with(&preset(), &[("firmware.flash_op_us", 22.0)]).with_override("firmware.cores", "2").unwrap();
    let deep = [(512, 31, false, Metric::Throughput), (256, 31, false, Metric::Throughput)];
    let alone = [(512, 1, false, Metric::LatencyMean), (512, 2, false, Metric::Throughput)];
    let keys = ["firmware.cores", "firmware.flash_op_us"];
    let fitted =
        |ways: &[Way]| fit(&preset(), &measured(&truth, ways, 1), &options(&keys), &Shared::default()).unwrap();
    let fit = fitted(&[&deep[..], &alone[..]].concat());
    let cores = found(&fit, "firmware.cores");
    assert_eq!((cores.start, cores.fitted, &cores.possible[..]), (1, 2, &[2][..]), "{cores:?}");
    assert_eq!(cores.verdict, Verdict::Identified);
    let op = found(&fit, "firmware.flash_op_us").fitted;
    assert!((op as f64 / 22_000.0 - 1.0).abs() < 0.02, "{op}");
    assert!(fit.preset.fitted.iter().any(|(key, _)| key == "firmware.cores"), "{:?}", fit.preset.fitted);
    assert_eq!(fit.preset.device.firmware.cores, 2);

    let fit = fitted(&deep);
    let cores = found(&fit, "firmware.cores");
    assert_eq!(cores.verdict, Verdict::NotIdentified);
    assert!(cores.possible.contains(&1) && cores.possible.contains(&2), "{cores:?}");
    let [known, _] = &fit.known()[..] else { panic!("{:?}", fit.known()) };
    assert!(known.interval().starts_with("1 to ") || known.interval() == "1 or 2", "{}", known.interval());
    assert!(fit.notes().iter().any(|n| n.starts_with("Jobs that tell firmware.cores: device probe plan (reads")));
}

/// Long reads, one at a time, tell how planes read; a device with one plane has no such choice.
#[test]
fn how_planes_read_is_found() {
    let one = crate::probe::study::dramless(0, 64).unwrap();
    let set = [("geometry.planes", "4"), ("geometry.blocks_per_plane", "108")];
    let start = set.iter().fold(one.clone(), |preset, (key, value)| preset.with_override(key, value).unwrap());
    let truth = start.with_override("flash.plane_reads", "together").unwrap();
    let setting = |queue_depth, block_count| Setting {
        range_blocks: 1 << 14,
        queue_depth,
        block_count,
        ..Setting { access: Access::RandomRead, range_blocks: 0, queue_depth: 0, hpb: false, block_count: 0 }
    };
    let rows = throughput(&truth, &[setting(1, 1), setting(1, 16), setting(63, 1), setting(8, 16)]);
    let options = options(&["flash.plane_reads", "flash.read_us"]);
    let fit = fit(&start, &rows, &options, &Shared::default()).unwrap();
    let planes = found(&fit, "flash.plane_reads");
    assert_eq!((planes.param.show(planes.start), planes.param.show(planes.fitted)), ("one".into(), "together".into()));
    assert_eq!(planes.verdict, Verdict::Identified, "{planes:?}");
    assert_eq!(fit.document("m.csv").unwrap().configuration["fit"]["parameters"][0]["possible"][0], "together");
    assert!(!param("flash.plane_reads").concerns(&rows[0].setting, &one));
}

/// A device of four planes a die that reads as `word` says, with so many cores and `op_us` for an operation on them.
fn with_planes(word: &str, cores: &str, op_us: &str) -> DevicePreset {
    let set = [
        ("geometry.planes", "4"),
        ("geometry.blocks_per_plane", "108"),
        ("flash.plane_reads", word),
        ("firmware.cores", cores),
        ("firmware.flash_op_us", op_us),
    ];
    let one = crate::probe::study::dramless(0, 64).unwrap();
    set.iter().fold(one, |preset, (key, value)| preset.with_override(key, value).unwrap())
}

/// Reads of so many blocks at each depth, whose errors are this share of what `truth` shows.
fn short_and_long_reads(truth: &DevicePreset, ways: &[(u32, u16)], error: f64) -> Vec<Measurement> {
    let read =
        Setting { access: Access::RandomRead, range_blocks: 1 << 14, queue_depth: 0, hpb: false, block_count: 0 };
    let of = |&(queue_depth, block_count): &(u32, u16)| Setting { queue_depth, block_count, ..read };
    let mut rows = throughput(truth, &ways.iter().map(of).collect::<Vec<_>>());
    rows.iter_mut().for_each(|row| row.error = error);
    rows
}

/// Every way to be built is tried, whichever the preset has, and those that fit within the errors are named.
#[test]
fn ways_before_and_behind_that_of_the_preset_are_tried() {
    let key = "flash.plane_reads";
    const READS: [(u32, u16); 3] = [(1, 16), (63, 1), (8, 16)];
    let of = |from: &str, truth: &str, reads: &[(u32, u16)], (error, wrong): (f64, f64)| {
        let mut rows = short_and_long_reads(&with_planes(truth, "1", "2"), reads, error);
        rows[0].value *= wrong;
        let fit = fit(&with_planes(from, "1", "2"), &rows, &options(&[key]), &Shared::default()).unwrap();
        let FittedParam { verdict, fitted, possible, .. } = found(&fit, key).clone();
        (verdict, param(key).show(fitted), possible.len())
    };
    assert_eq!(of("one", "apart", &READS, (0.01, 1.0)), (Verdict::Identified, "apart".into(), 1));
    assert_eq!(of("apart", "one", &READS, (0.01, 1.0)), (Verdict::Identified, "one".into(), 1));
    // Single pages do not tell "together", which lies between, from "one".
    assert_eq!(of("one", "apart", &READS[1..2], (0.01, 1.0)).1, "apart");
    // Where errors are large, or larger than stated, several ways may be.
    for (error, wrong) in [(0.9, 1.0), (0.01, 3.0)] {
        let (verdict, _, possible) = of("one", "together", &READS, (error, wrong));
        assert_eq!((verdict, possible > 1), (Verdict::NotIdentified, true), "{error} {wrong}");
    }
}

/// One read at a time keeps one core busy: there may be any number of others.
#[test]
fn cores_that_are_never_busy_are_not_counted() {
    let key = "firmware.cores";
    let rows = measured(&preset(), &[(512, 1, false, Metric::LatencyMean)], 1);
    let fit = fit(&preset(), &rows, &options(&[key]), &Shared::default()).unwrap();
    let cores = found(&fit, key);
    let (least, most) = cores.param.bounds(&preset());
    assert_eq!((cores.verdict, cores.fitted), (Verdict::NotIdentified, 1));
    assert_eq!(cores.possible, (least..=most).collect::<Vec<_>>());
}

/// A second core shows only when planes no longer hold the reads up, so that the cores are tried again.
#[test]
fn one_choice_may_depend_on_another() {
    let rows = short_and_long_reads(&with_planes("apart", "2", "4"), &[(1, 1), (63, 1)], 0.01);
    let options = options(&["firmware.cores", "flash.plane_reads"]);
    let fit = fit(&with_planes("one", "1", "4"), &rows, &options, &Shared::default()).unwrap();
    assert_eq!(found(&fit, "firmware.cores").fitted, 2, "{:?}", fit.params);
    assert_eq!(param("flash.plane_reads").show(found(&fit, "flash.plane_reads").fitted), "apart");
}

/// A part of a long write of as many parts, each of so many blocks.
fn long_write(of: LongWrite, (part, parts): (u16, u16), blocks: u32) -> Setting {
    Setting {
        access: Access::SequentialWrite(Stretch::part(of, part, parts)),
        range_blocks: u32::from(parts) * blocks,
        queue_depth: 8,
        hpb: false,
        block_count: 128,
    }
}

/// Where data must be folded, it shows whether it crosses the channel.
#[test]
fn how_data_is_folded_is_found() {
    let set =
        [("geometry.dies_per_channel", "4"), ("geometry.blocks_per_plane", "190"), ("flash.transfer_4k_us", "40")];
    let one = crate::probe::study::dramless(0, 400).unwrap();
    let start = set.iter().fold(one, |preset, (key, value)| preset.with_override(key, value).unwrap());
    let truth = start.with_override("slc.fold", "die").unwrap();
    let rows = throughput(&truth, &[21, 22, 23].map(|part| long_write(LongWrite::Fill, (part, 24), 43_008)));
    let fit = fit(&start, &rows, &options(&["slc.fold"]), &Shared::default()).unwrap();
    let fold = found(&fit, "slc.fold");
    assert_eq!((fold.fitted, fold.verdict), (2, Verdict::Identified), "{fold:?} {:?}", fit.rows);
}

/// A long write shows where the static and the dynamic part of a cache end together, and not where one of them does.
#[test]
fn parts_of_a_cache_are_not_told_apart() {
    let one = |fixed, dynamic| crate::probe::study::dramless(fixed, dynamic).unwrap();
    let settings: Vec<Setting> = (0..12).map(|part| long_write(LongWrite::Again, (part, 12), 8192)).collect();
    let fit_of = |keys: &[&str], start: &DevicePreset, truth: &DevicePreset| {
        let options = FitOptions { rough: true, ..options(keys) };
        fit(start, &throughput(truth, &settings), &options, &Shared::default()).unwrap()
    };
    let both = fit_of(&["slc_cache.static_mib", "slc_cache.dynamic_mib"], &one(80, 180), &one(120, 160));
    let sizes: Vec<u64> = both.params.iter().map(|p| p.fitted).collect();
    assert!((sizes[0] + sizes[1]).abs_diff(280) <= 8, "{sizes:?}");
    assert!(both.params.iter().all(|p| p.verdict != Verdict::Identified), "{:?}", both.params);
    for (known, truth) in both.known().iter().zip([120.0, 160.0]) {
        assert!((known.low..=known.high).contains(&truth), "{known:?}");
    }
    assert!(both.notes().iter().any(|n| n.contains("a write shows only the sum, ")), "{:?}", both.notes());
    // Alone, it is known to a superblock or two, although the first search finds none of its slopes.
    let alone = fit_of(&["slc_cache.dynamic_mib"], &one(0, 256), &one(0, 300));
    let size = &alone.params[0];
    assert_eq!(size.verdict, Verdict::Identified, "{size:?}");
    assert!(size.fitted.abs_diff(300) <= 8, "{size:?}");
}

/// A write that ends within the cache does not show where that ends.
#[test]
fn a_cache_that_was_not_filled_may_be_larger() {
    let one = |mib| crate::probe::study::dramless(0, mib).unwrap();
    let settings: Vec<Setting> = (0..6).map(|part| long_write(LongWrite::Again, (part, 6), 8192)).collect();
    let options = FitOptions { rough: true, ..options(&["slc_cache.dynamic_mib"]) };
    let fit = fit(&one(256), &throughput(&one(360), &settings), &options, &Shared::default()).unwrap();
    let [known] = &fit.known()[..] else { panic!("{:?}", fit.known()) };
    assert_ne!(known.verdict, Verdict::Identified, "{known:?}");
    assert!((known.low..=known.high).contains(&360.0), "{known:?}");
}

/// What is held out tells the fit nothing, and is predicted.
#[test]
fn rows_held_out_do_not_change_the_fit() {
    let truth = with(&preset(), &[("firmware.flash_op_us", 11.0)]);
    let mut rows = measured(&truth, &SATURATED, 1);
    rows[1].held_out = Some(true);
    let fitted =
        |rows: &[Measurement]| fit(&preset(), rows, &options(&["firmware.flash_op_us"]), &Shared::default()).unwrap();
    let first = fitted(&rows);
    rows[1].value *= 2.0;
    let other = fitted(&rows);
    assert_eq!(first.params[0].fitted, other.params[0].fitted);
    assert_eq!((first.freedom, first.misfit.to_bits()), (2, other.misfit.to_bits()));
    assert_eq!(first.rms_percent(true), other.rms_percent(true));
    let [predicted, wrong] = [&first, &other].map(|fit| fit.rms_percent(false).unwrap());
    assert!(predicted < 1.0 && (wrong - 50.0).abs() < 1.0, "{predicted} {wrong}");
    assert!(first.notes().iter().any(|n| n.starts_with("1 of 4 rows were held out of the fit. It predicts them")));
    let document = first.document("m.csv").unwrap();
    let origins: Vec<_> = document.rows.iter().map(|row| row.origin).collect();
    use readpath_results::Origin::{Fit, Predicted};
    assert_eq!(origins, [Fit, Predicted, Fit, Fit]);
    assert_eq!(document.configuration["fit"]["held_out_rows"], 1);
    rows[1].held_out = Some(false);
    assert!(fitted(&rows).notes().iter().any(|n| n.starts_with("No row of 4 was held out")));
}

/// A row that is held out tells nothing of a parameter, even if no other depends on it.
#[test]
fn what_only_rows_held_out_could_show_is_left_as_it_was() {
    let mut rows = measured(&preset(), &[SATURATED[0], (1024, 31, true, Metric::Throughput)], 1);
    rows[1].held_out = Some(true);
    let options = FitOptions { iterations: 2, ..options(&["firmware.flash_op_us", "firmware.hpb_read_extra_us"]) };
    let fit = fit(&preset(), &rows, &options, &Shared::default()).unwrap();
    let extra = found(&fit, "firmware.hpb_read_extra_us");
    assert_eq!((extra.concerned, extra.fitted, extra.verdict), (false, extra.start, Verdict::NotIdentified));
    assert!(found(&fit, "firmware.flash_op_us").concerned);
}

/// A cache that holds the whole map could be larger, and nothing would change.
#[test]
fn a_value_at_its_bound_is_named() {
    let (key, most) = ("map_cache.size_kib", Param::MapCache.bounds(&preset()).1);
    let truth = with(&preset(), &[(key, most as f64)]);
    let fit = fit(&preset(), &measured(&truth, &SATURATED[3..], 1), &options(&[key]), &Shared::default()).unwrap();
    let size = found(&fit, key);
    assert!(size.at_bound && size.fitted == most, "{size:?}");
    let is_told = fit.notes().iter().any(|note| note.starts_with("map_cache.size_kib ended at the edge"));
    assert_eq!(is_told, size.verdict != Verdict::Identified, "{:?}", fit.notes());
}

#[test]
fn the_same_fit_has_the_same_bits() {
    let rows = measured(&preset(), &SATURATED, 3);
    let options = options(&["firmware.flash_op_us", "map_cache.size_kib"]);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fit = pool.install(|| fit(&preset(), &rows, &options, &Shared::default())).unwrap();
        let doc = fit.document("m.csv").unwrap();
        (doc.to_json_pretty().unwrap(), fit.preset.echo().to_toml())
    };
    let (doc, toml) = run(1);
    assert_eq!(run(3), (doc, toml.clone()));
    let again = device::parse(&toml, "fitted.toml").unwrap();
    assert!(again.fitted.iter().any(|(key, to)| key == "map_cache.size_kib" && to == "measurements"));
}

#[test]
fn a_stop_is_heard() {
    let rows = measured(&preset(), &SATURATED[..1], 1);
    let shared = Shared::default();
    shared.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(fit(&preset(), &rows, &options(&["flash.read_us"]), &shared).is_err());
}
