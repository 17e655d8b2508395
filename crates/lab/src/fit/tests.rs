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
        Measurement { line, setting, metric, value, error: 0.01 }
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
    }
    assert_eq!(fit.freedom, rows.len() - 3);
    assert!(fit.rms_percent() < 0.5 && fit.misfit < fit.misfit_before);
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
    assert!(fit.rms_percent() < 0.1, "{}", fit.rms_percent());
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
    let truth = with(&preset(), &[("firmware.flash_op_us", 30.0)]);
    let rows = measured(&truth, &SATURATED[..2], 1);
    let fit_in = |iterations: u32| {
        let options = FitOptions { iterations, ..options(&["firmware.flash_op_us", "flash.read_us"]) };
        fit(&preset(), &rows, &options, &Shared::default()).unwrap()
    };
    let fit = fit_in(0);
    assert!(!fit.converged && fit.combinations.is_empty());
    assert!(fit.params.iter().all(|p| p.verdict != Verdict::Identified), "{:?}", fit.params);
    assert!(fit.notes()[0].starts_with("The search did not converge in 0 steps"), "{:?}", fit.notes());
    let fit = fit_in(30);
    assert!(fit.converged);
    assert_eq!(found(&fit, "firmware.flash_op_us").verdict, Verdict::Identified);
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
