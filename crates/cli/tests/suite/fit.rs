// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device fit` as a user meets it: tables, documents, files and mistakes.

use assert_cmd::Command;
use std::fs;
use tempfile::TempDir;

const MEASURED: &str = "range_gib,queue_depth,hpb,metric,value\n\
                        0.5,31,off,throughput_mib_s,260\n\
                        4,31,off,throughput_mib_s,160\n\
                        8,31,off,throughput_mib_s,143\n";

/// Ranges whose map the cache holds, so that few requests warm up what is timed.
const CACHED: &str = "range_gib,queue_depth,hpb,metric,value\n\
                      0.25,31,off,throughput_mib_s,260\n\
                      0.5,31,off,throughput_mib_s,260\n";

/// Runs a fit of `csv` in a folder of its own.
fn fit(csv: &str, more: &[&str]) -> (TempDir, std::process::Output) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.csv"), csv).unwrap();
    let mut command = Command::cargo_bin("readpath").unwrap();
    command.current_dir(folder.path()).args(["device", "fit", "m.csv", "--ios", "3000"]).args(more);
    let output = command.output().unwrap();
    (folder, output)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_fit_shows_tables_and_writes_a_device_that_can_be_used() {
    let params = "firmware.flash_op_us,flash.read_us";
    let (folder, output) = fit(CACHED, &["--params", params, "--output", "fitted.toml"]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let line = |key: &str| shown.lines().find(|l| l.starts_with(key)).unwrap_or_else(|| panic!("{shown}")).to_owned();
    assert!(line("firmware.flash_op_us").ends_with("  identified"), "{shown}");
    assert!(line("flash.read_us").ends_with("not identified"), "{shown}");
    assert!(shown.contains("To learn more, measure"), "{shown}");
    assert!(line("parameter").contains("± error"), "{shown}");
    assert!(line("firmware.flash_op_us").contains(" to "), "{shown}");
    assert!(shown.contains("Note: No row of 2 was held out of the fit"), "{shown}");
    assert!(shown.contains("Note: Jobs that tell flash.read_us: device probe plan (reads by range"), "{shown}");
    let file = folder.path().join("fitted.toml");
    Command::cargo_bin("readpath").unwrap().args(["device", "check"]).arg(&file).assert().success();
    let device = fs::read_to_string(&file).unwrap();
    assert!(device.contains("to = \"measurements\"") && !device.contains("to = \"iozone"), "{device}");
    assert!(device.contains("name = \"ufs21-64g-fitted\"") && !device.contains("alibrated"), "{device}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_document_holds_measured_and_fitted_values() {
    let (_folder, output) = fit(MEASURED, &["--params", "firmware.flash_op_us", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let doc = readpath_results::Document::from_json(&text(&output.stdout)).unwrap();
    assert_eq!(doc.rows.len(), 3);
    assert_eq!(doc.rows[0].published, Some(260.0));
    assert_eq!(doc.rows[0].case, "512 MiB, queue depth 31");
    let parameter = &doc.configuration["fit"]["parameters"][0];
    assert_eq!(parameter["verdict"], "identified");
    let [low, fitted, high] = ["low", "fitted", "high"].map(|key| parameter[key].as_f64().expect("a number"));
    assert!(low < fitted && fitted < high, "{parameter}");
    assert_eq!(doc.configuration["fit"]["held_out_rows"], 0);
    assert!(doc.configuration["fit"]["held_out_rms_percent"].is_null());
}

/// Of ten settings two are held out: they stand apart, as predictions.
#[test]
fn rows_held_out_stand_apart() {
    let rows: String = (1..=10).map(|depth| format!("64,{depth},off,throughput_mib_s,{}\n", 38 * depth)).collect();
    let csv = format!("range_mib,queue_depth,hpb,metric,value\n{rows}");
    let (_folder, output) = fit(&csv, &["--params", "flash.read_us"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let ends = |word: &str| shown.lines().filter(|line| line.ends_with(word)).count();
    assert_eq!((ends("  fit"), ends("  predicted")), (8, 2), "{shown}");
    assert!(shown.contains("rms error, fit: ") && shown.contains("rms error, predicted: "), "{shown}");
    assert!(shown.contains("Note: 2 of 10 rows were held out of the fit."), "{shown}");
    let all: String = rows.lines().map(|row| format!("{row},yes\n")).collect();
    let (_folder, output) = fit(&format!("range_mib,queue_depth,hpb,metric,value,held_out\n{all}"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("m.csv: all rows are held out, so there is nothing to fit"));
}

#[test]
fn mistakes_end_with_status_2_and_say_where() {
    for (csv, more, wanted) in [
        ("", &[][..], "m.csv: is empty"),
        ("range,value\n", &[], "m.csv:1: \"range\" is not a column"),
        (&MEASURED.replace("160", "-1"), &[], "m.csv:3: value is \"-1\""),
        (&MEASURED.replace("\n8,", "\n80,"), &[], "m.csv:4: range is 80 GiB"),
        (MEASURED, &["--params", "flash.red_us"], "\"flash.red_us\" cannot be fitted; known here: firmware"),
        (MEASURED, &["--device", "nothing"], "nothing"),
        ("drive;phase;capacity_gb\n", &[], "m.csv:1: is separated by semicolons; expected commas: \"drive,phase,"),
        (
            &P41_PLUS.replace(",1000", ",500"),
            &["--device", "nvme-qlc-1t"],
            "m.csv:4: the drive has 500 GB, but the first logical unit of 'nvme-qlc-1t' 1000 GB",
        ),
        (MEASURED, &["--threads", "0"], "1..=1024"),
    ] {
        let (_folder, output) = fit(csv, more);
        assert_eq!(output.status.code(), Some(2), "{wanted}");
        assert!(text(&output.stderr).contains(wanted), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

const P41_PLUS: &str = include_str!("../../../../docs/examples/review_p41_plus.csv");

/// A parameter's fitted value, from the tables.
fn fitted(shown: &str, key: &str) -> f64 {
    let line = shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {shown}"));
    line.split_whitespace().nth(2).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// A sixteenth of the drive, as `reproduce qlc_writes` has it: a device so small that its blocks can hardly be made
/// shorter for the fit.
#[test]
fn a_review_of_a_sixteenth_of_a_drive_is_fitted() {
    let review = P41_PLUS.replace(",1000,120,", ",62.5,7.5,").replace(",1000,1000,", ",62.5,62.5,");
    let keys = [
        "lu.0.blocks=15261915",
        "geometry.pages_per_block=336",
        "geometry.blocks_per_plane=390",
        // The review names the size of the cache.
        "slc_cache.dynamic_mib=12000",
        "flash.program_us=1200",
    ];
    let mut args = vec!["--device", "nvme-qlc-1t", "--params", "flash.program_us"];
    args.extend(keys.iter().flat_map(|key| ["--set", key]));
    let (_folder, output) = fit(&review, &args);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The preset's, which a paper of the maker gives, is 1638 us.
    let program = fitted(&shown, "flash.program_us");
    assert!((1500.0..1800.0).contains(&program) && shown.contains("  identified"), "{shown}");
    assert!(shown.contains("parts 61 to 500 of 500 of 58.10"), "{shown}");
}

/// `docs/formats/measurements.md` says how well the size of the cache is found.
#[test]
#[ignore = "takes minutes: make test-long"]
fn published_reviews_are_fitted() {
    let ex900 = include_str!("../../../../docs/examples/review_ex900_pro.csv");
    for (review, device, programs, cache_gb) in
        [(P41_PLUS, "nvme-qlc-1t", [1236.0, 2041.0], 120.0), (ex900, "nvme-dramless-1t", [513.0, 949.0], 148.0)]
    {
        let (_folder, output) = fit(review, &["--device", device]);
        let shown = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let program = fitted(&shown, "flash.program_us");
        assert!((programs[0]..programs[1]).contains(&program), "{shown}");
        let gb = fitted(&shown, "slc_cache.dynamic_mib") * f64::from(1 << 20) / 1e9;
        assert!((gb / cache_gb - 1.0).abs() < 0.03, "{gb} GB: {shown}");
        // The ends of the phases fix it; two or three speeds alone do not fix the time of the cache.
        let is = |key: &str, verdict: &str| shown.lines().any(|l| l.starts_with(key) && l.ends_with(verdict));
        assert!(is("slc_cache.dynamic_mib", "  identified") && is("slc.program_us", "  weakly"), "{shown}");
    }
}
