// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages as a browser shows them, without one to look: Chromium lays each out at the width of a telephone and of a
//! desk, in light and in dark, and a script within tells what it found. Without Chromium the tests say so and pass,
//! unless `READPATH_PAGES` is 1.

use crate::common::{EXPERIMENT, Room, json, text};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROBE: &str = include_str!("pages/probe.js");
/// Smaller text is hard to read.
const LEAST_SIZE: f64 = 10.0;
/// WCAG 2.1: of text (AA), and of marks.
const LEAST_CONTRAST: f64 = 4.5;
const LEAST_CONTRAST_OF_MARKS: f64 = 3.0;

/// The browser, or a word on standard error that there is none.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        assert!(std::env::var("READPATH_PAGES").as_deref() != Ok("1"), "there is no chromium on the PATH");
        // Not by a macro, whose output the test harness keeps to itself.
        writeln!(std::io::stderr(), "SKIPPED: pages are not opened, since there is no chromium on the PATH").ok();
    }
    found
}

/// What a page showed at one width.
struct Seen(Value);

impl Seen {
    fn width(&self) -> f64 {
        number(&self.0["width"])
    }

    fn figures(&self) -> &[Value] {
        self.0["figures"].as_array().expect("figures")
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Opens a page at 400 and 1600 pixels.
fn open(chromium: &Path, room: &Room, page: &str, dark: bool) -> Vec<Seen> {
    let page = room.read(page);
    // The policy of the page allows one more script: that of the test.
    let (head, rest) = page.split_once("script-src '").expect("a policy");
    let page = format!("{head}script-src 'nonce-probe' '{rest}");
    room.write(
        "probed.html",
        &page.replacen("<title>", &format!("<script nonce=\"probe\">{PROBE}</script><title>"), 1),
    );
    let frames = [400, 1600]
        .map(|width| format!("<iframe src=\"probed.html\" style=\"width:{width}px;height:900px;border:0\"></iframe>"));
    let around = "<!DOCTYPE html><html><body><script>addEventListener(\"message\",function(e){\
                  var told=document.createElement(\"pre\");told.textContent=e.data;document.body.appendChild(told)})\
                  </script>";
    room.write("around.html", &format!("{around}{}</body></html>", frames.concat()));
    let scheme = if dark { 0 } else { 1 };
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--window-size=1700,1000", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", room.path("browser").display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("file://{}", room.path("around.html").display()))
        .stdin(Stdio::null())
        .output()
        .expect("chromium starts");
    let shown = text(&output.stdout);
    let told = shown.split("<pre>").skip(1).map(|rest| rest.split_once("</pre>").expect("an end").0);
    let plain = |told: &str| told.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}");
    let mut seen: Vec<Seen> = told.map(|told| Seen(json(&plain(told).replace("&amp;", "&")))).collect();
    assert_eq!(seen.len(), 2, "both frames tell: {shown} {}", text(&output.stderr));
    seen.sort_by(|a, b| a.width().total_cmp(&b.width()));
    assert_eq!([seen[0].width(), seen[1].width()], [400.0, 1600.0]);
    seen
}

/// Opens the page of a folder and its document, and asserts what holds for every page.
fn check(chromium: &Path, room: &Room, folder: &str) {
    let document = json(&room.read(&format!("{folder}/result.json")));
    let charts = document["charts"].as_array().expect("charts");
    for dark in [false, true] {
        for seen in open(chromium, room, &format!("{folder}/report.html"), dark) {
            let at = format!("{folder} at {} px, dark: {dark}", seen.width());
            let Seen(found) = &seen;
            assert_eq!(found["errors"], json("[]"), "{at}: no error");
            assert_eq!(found["requests"], json("[]"), "{at}: nothing is loaded");
            assert_eq!(found["dark"], dark, "{at}");
            assert!(number(&found["content"]) <= seen.width(), "{at}: the page is {} wide", found["content"]);
            let letters = &found["text"];
            assert!(number(&letters["size"]) >= LEAST_SIZE, "{at}: small text: {letters}");
            assert!(number(&letters["contrast"]) >= LEAST_CONTRAST, "{at}: faint text: {letters}");
            assert_eq!(found["unreachable"], 0, "{at}: all that can be used can be reached with a keyboard");
            assert_eq!(seen.figures().len(), charts.len(), "{at}");
            assert!(seen.figures().len() > 1, "{at}");
            for (figure, chart) in seen.figures().iter().zip(charts) {
                check_figure(figure, chart, &format!("{at}, {}", chart["id"]));
            }
        }
    }
}

fn check_figure(figure: &Value, chart: &Value, at: &str) {
    let [drawing] = &figure["charts"].as_array().expect("drawings")[..] else { panic!("{at}: one drawing is shown") };
    assert!(number(&drawing["marks"]) > 0.0 && drawing["says_no_data"] == false, "{at}: empty: {drawing}");
    assert!(number(&drawing["contrast"]) >= LEAST_CONTRAST_OF_MARKS, "{at}: faint: {drawing}");
    assert_eq!(drawing["outside"], json("[]"), "{at}: labels are within the drawing");
    assert_eq!(drawing["collisions"], json("[]"), "{at}: labels do not lie on each other");
    assert!(number(&figure["lines"]) > 0.0, "{at}: has a table");
    let files = figure["files"].as_array().expect("files");
    let [csv, svg] = &files[..] else { panic!("{at}: two files can be saved") };
    let ends = |file: &Value, end: &str| file["name"].as_str().expect("a name").ends_with(end);
    assert!(ends(csv, ".csv") && ends(svg, ".svg") && figure["svg"] == true, "{at}: {svg}");
    assert!(svg["text"].as_str().expect("text").contains("<style"), "{at}: a file has its colours");
    let series = chart["series"].as_array().expect("series").iter();
    let points: usize = series.map(|s| s["points"].as_array().expect("points").len()).sum();
    let saved = csv["text"].as_str().expect("text");
    let first = chart["series_label"].as_str().unwrap_or("series");
    assert!(saved.trim_start_matches('"').starts_with(first), "{at}: {saved}");
    assert_eq!(saved.lines().count(), points + 1, "{at}: all points are saved");
}

/// Reads and writes of 8 MiB.
const MIX: &str = "[mix]\nrw=randrw\nrwmixread=70\nbs=4k\nsize=256m\nio_size=8m\nioengine=libaio\niodepth=8\n";

#[test]
fn pages_of_runs_and_comparisons_are_whole() {
    let Some(chromium) = chromium() else { return };
    let room = Room::with("mix.fio", MIX);
    room.write("small.toml", EXPERIMENT);
    room.good(&["fio", "mix.fio", "--out", "fio"]);
    room.good(&["reproduce", "small.toml", "--out", "run"]);
    room.good(&["compare", "mix.fio", "--seeds", "2", "--out", "compare"]);
    let rows: String = (0..400)
        .map(|i| format!("{},{},{},4096,,\n", i * 400_000, ["R", "R", "W"][i % 3], i * 7 % 99 * 4096))
        .collect();
    room.write("trace.csv", &(crate::common::HEADER.to_owned() + &rows));
    room.good(&["replay", "trace.csv", "--out", "replay"]);
    for folder in ["fio", "run", "compare", "replay"] {
        check(&chromium, &room, folder);
    }
}

#[test]
fn the_page_of_a_published_experiment_is_whole() {
    let Some(chromium) = chromium() else { return };
    let room = Room::new();
    room.good(&["reproduce", "iozone", "--case", "1 GB", "--out", "iozone"]);
    check(&chromium, &room, "iozone");
}

/// Two factors with numbers, and one with words.
fn swept() -> Room {
    let study = "schema = \"readpath-study/1\"\nname = \"grid\"\ntitle = \"A grid\"\nseed = 1\ndevice = \"ufs21-64g\"\n\
                 [workload]\nkind = \"fio\"\ntext = \"\"\"\n[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\n\
                 ioengine=libaio\nsize=4g\nio_size=400k\n\"\"\"\n[[factor]]\nkey = \"hpb\"\nvalues = [\"off\", \
                 \"dcm\"]\n[[factor]]\nkey = \"map_cache.size_kib\"\nvalues = [64, 256, 1024, 4096]\n[[factor]]\n\
                 key = \"host.submit_us\"\nvalues = [5, 10, 20]\n";
    let room = Room::with("grid.toml", study);
    room.good(&["sweep", "grid.toml", "--out", "sweep"]);
    room
}

#[test]
fn the_page_of_a_sweep_is_whole() {
    let Some(chromium) = chromium() else { return };
    check(&chromium, &swept(), "sweep");
}

/// A map for each word, and in each a cell for each pair of numbers.
#[test]
fn cells_of_heat_maps_are_points_of_the_sweep() {
    let document = json(&swept().read("sweep/result.json"));
    let charts = document["charts"].as_array().expect("charts").iter();
    let maps: Vec<&Value> = charts.filter(|chart| chart["kind"] == "heat").collect();
    for (map, hpb) in [(maps[0], "off"), (maps[1], "dcm")] {
        assert_eq!(map["y_label"], "Read latency mean, us");
        assert_eq!((&map["x_label"], &map["series_label"]), (&"map_cache.size_kib".into(), &"host.submit_us".into()));
        assert_eq!(map["series"].as_array().expect("rows").len(), 3);
        for row in map["series"].as_array().expect("rows") {
            assert_eq!(row["points"].as_array().expect("cells").len(), 4);
            for cell in row["points"].as_array().expect("cells") {
                let name = row["name"].as_str().expect("a number");
                let case = format!("hpb={hpb}, map_cache.size_kib={}, host.submit_us={name}", cell["x"]);
                let keys = [("case", &*case.replace(".0,", ",")), ("metric", "read_latency_mean")];
                assert_eq!(crate::common::figure(&document, &keys), cell["y"].as_f64(), "{case}");
            }
        }
    }
}
