// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events in the middle of a run: each has its effect on host and device, every request still ends, and the results
//! have the counts before and after it.

use crate::made::{Made, document, run_all};
use readpath_config::experiment::{Experiment, parse};
use readpath_kit::Ns;
use readpath_lab::experiment::plan;
use readpath_lab::runs::{ExperimentError, Plan};
use readpath_run::{RunOutput, Span};
use std::path::Path;

const IOS: u64 = 12_000;
/// How every experiment here begins; the range of `[precondition]` follows.
const HEAD: &str = r#"
schema = "readpath-experiment/1"
name = "events"
title = "Events"
description = "What events do."
citations = []
device = "ufs21-64g"
seed = 1
[precondition]
layout = "random""#;

fn no_file(_: &Path) -> std::io::Result<String> {
    Err(std::io::ErrorKind::NotFound.into())
}

/// 4 KiB random reads in 256 MiB at queue depth 4, for about 0.4 s, with these keys of the variant, and events.
fn experiment(variant: &str, events: &str) -> Experiment {
    let text = format!(
        r#"{HEAD}
range = "files"
[workload]
kind = "fio"
text = """
[reads]
rw=randread
ioengine=libaio
direct=1
iodepth=4
size=256m
number_ios={IOS}
"""
[[variant]]
name = "v"
{variant}
{events}
"#
    );
    parse(&text, "events.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn event(at_ms: u32, what: &str) -> String {
    format!("[[event]]\nat_ms = {at_ms}\nwhat = {what}\n")
}

fn plans(experiment: &Experiment, encoded: bool) -> Result<Vec<Plan>, ExperimentError> {
    let mut plans = plan(experiment, &[], &no_file)?;
    plans.iter_mut().for_each(|p| p.setup.encoded = encoded);
    Ok(plans)
}

fn runs(experiment: &Experiment, encoded: bool) -> Result<Vec<Made>, ExperimentError> {
    run_all(plans(experiment, encoded)?)
}

/// The spans of the only run; all requests have ended.
fn spans(variant: &str, events: &str) -> Vec<Span> {
    let run = runs(&experiment(variant, events), false).expect("a run").remove(0);
    assert_eq!(run.output.ios, IOS);
    run.output.spans
}

/// Percent of blocks read with good entries.
fn hits(span: &Span) -> u64 {
    let device = &span.counts.device;
    assert!(device.translated_reads() > 500, "{span:?}");
    100 * device.hpb_hits / device.translated_reads()
}

const DCM: &str = "hpb = true";
const LRU: &str = "hpb = true\npolicy = \"lru\"";

#[test]
fn a_host_that_sleeps_sends_no_entries_and_keeps_its_maps() {
    for variant in [DCM, LRU] {
        let spans = spans(variant, &(event(200, "\"suspend\"") + &event(250, "\"resume\"")));
        let [before, asleep, awake] = &spans[..] else { panic!("three spans") };
        assert!(hits(before) > 50, "{before:?}");
        assert_eq!((hits(asleep), asleep.counts.device.read_buffers), (0, 0));
        let held = |span: &Span| span.counts.memory.expect("HPB").map_bytes;
        assert_eq!(held(asleep), held(before));
        assert!(hits(awake) > 95, "{awake:?}");
        assert_eq!((before.to, asleep.to - asleep.from), (before.from + Ns::from_ms(200), Ns::from_ms(50)));
    }
}

#[test]
fn after_a_reset_maps_are_loaded_anew() {
    for variant in [DCM, LRU] {
        let spans = spans(variant, &event(200, "\"hardware-reset\""));
        let [before, after] = &spans[..] else { panic!("two spans") };
        let loads = |span: &Span| span.counts.device.read_buffers;
        assert!(after.recovery.is_none() && loads(before) >= 16 && loads(after) >= 16, "{before:?} {after:?}");
        assert!(hits(after) > 50, "{after:?}");
    }
}

#[test]
fn a_device_without_power_answers_when_it_has_recovered() {
    for variant in [DCM, LRU, "hpb = false"] {
        let without = runs(&experiment(variant, ""), false).expect("a run").remove(0);
        let with = event(200, "\"power-cycle\"\noff_ms = 30");
        let with = runs(&experiment(variant, &with), false).expect("a run").remove(0);
        let span = with.output.spans.last().expect("a span behind the event");
        let recovery = span.recovery.expect("it was without power");
        assert!(recovery > Ns::ZERO, "{span:?}");
        let end = |run: &Made| run.output.phases[0].stats.end;
        assert!(end(&with) >= end(&without) + Ns::from_ms(30) + recovery, "nothing is read meanwhile");
        let slowest = with.output.phases[0].stats.jobs[0].kinds[0].latency.quantile(1.0);
        assert!(slowest >= 30_000_000, "what was in flight has waited: {slowest} ns");
        if variant != "hpb = false" {
            assert!(span.counts.device.resets_announced > 0, "the host was told that its entries are lost");
            assert!(hits(span) > 50, "{span:?}");
        }
        // SRAM loses its content with the power.
        assert!(span.counts.device.map_loads > 0);
    }
}

#[test]
fn memory_shrinks_and_grows_with_its_limit() {
    let spans = spans(
        LRU,
        &(event(150, "\"pressure\"\nmemory_bytes = 300000") + &event(250, "\"pressure\"\nmemory_bytes = 4000000")),
    );
    let [before, little, enough] = &spans[..] else { panic!("three spans") };
    let held = |span: &Span| span.counts.memory.map(|m| m.map_bytes + m.bitmap_bytes + m.table_bytes).expect("HPB");
    assert!(held(before) > 500_000 && held(little) <= 300_000 && held(enough) > 500_000);
    assert!(little.counts.hpb.expect("HPB").shrink_cnt > 0);
    assert!(hits(little) < hits(before) && hits(enough) > 90, "{little:?} {enough:?}");
}

/// No request waits for memory that is given back: the slowest of those around every shrink, and while the limit goes
/// up and down, takes no longer than the slowest of a host that has had little, or enough, all the time.
#[test]
fn nothing_waits_while_memory_shrinks() {
    let slowest = |spans: &[Span]| spans.iter().map(|s| s.latency[0].max()).max().expect("spans");
    let pressure = |at, bytes: u32| event(at, &format!("\"pressure\"\nmemory_bytes = {bytes}"));
    for policy in ["lru", "cost-aware"] {
        const LITTLE: u32 = 300_000;
        const ENOUGH: u32 = 4_000_000;
        let host = format!("hpb = true\npolicy = \"{policy}\"");
        let steady = |bytes| slowest(&spans(&host, &pressure(0, bytes)));
        let changes = (8..24).map(|i| pressure(i * 10, if i % 2 == 0 { LITTLE } else { ENOUGH })).collect::<String>();
        let spans = spans(&host, &(pressure(0, ENOUGH) + &changes));
        let shrunk: u64 = spans.iter().map(|s| s.counts.hpb.expect("HPB").shrink_cnt).sum();
        assert!(shrunk > 10, "{policy}: {shrunk}");
        assert!(spans[1..].iter().all(|s| s.latency[0].count() > 100), "{policy}: requests end all the time");
        let (changing, usual) = (slowest(&spans), steady(LITTLE).max(steady(ENOUGH)));
        assert!(changing <= usual, "{policy}: {changing} ns, and {usual} ns without changes");
    }
}

#[test]
fn apps_are_launched_through_events() {
    let workload = r#"
range = "all"
[workload]
kind = "launches"
apps = 4
games = 1
requests = 1000
game_percent = 200
range_gib = 4
shared_gib = 1
span_gib = 1
shared_percent = 30
repeat_percent = 85
burst_percent = 12
write_percent = 5
busy_seconds = [0.2, 0.2]
[[variant]]
name = "v"
hpb = true
"#;
    let text = format!("{HEAD}{workload}");
    // One event within each cycle, and the last after all cycles.
    let events =
        event(100, "\"power-cycle\"\noff_ms = 400") + &event(900, "\"hardware-reset\"") + &event(60_000, "\"resume\"");
    let of = |text: &str| runs(&parse(text, "t").expect("an experiment"), false).expect("a run").remove(0).output;
    let (without, with) = (of(&text), of(&format!("{text}{events}")));
    let end = |output: &RunOutput| output.phases[1].stats.end;
    assert_eq!((with.ios, with.spans.len()), (without.ios, 3));
    assert!(end(&with) > end(&without) + Ns::from_ms(400), "{} and {}", end(&with), end(&without));
    assert_eq!(with.spans[1].to - with.spans[1].from, Ns::from_ms(800));
}

#[test]
fn events_that_come_too_late_change_nothing_and_are_named() {
    let late = experiment(DCM, &(event(100_000, "\"suspend\"") + &event(200_000, "\"resume\"")));
    let late_runs = runs(&late, false).expect("a run");
    let without = runs(&experiment(DCM, ""), false).expect("a run");
    assert_eq!(late_runs[0].output.phases[0].stats.end, without[0].output.phases[0].stats.end);
    assert_eq!(late_runs[0].output.phases[0].device, without[0].output.phases[0].device);
    assert!(without[0].output.spans.is_empty());
    let doc = document(&late, plans(&late, false).expect("plans"));
    assert!(
        doc.notes.iter().any(|n| n.text == "fio, v: events 1 to 2 did not come: the run was over before"),
        "{:?}",
        doc.notes
    );
}

#[test]
fn every_request_and_reply_is_the_same_on_the_wire() {
    let events = event(50, "\"suspend\"") + &event(60, "\"resume\"") + &event(100, "\"hardware-reset\"");
    let experiment = experiment(DCM, &(events + &event(150, "\"power-cycle\"")));
    let of = |encoded| document(&experiment, plans(&experiment, encoded).expect("plans"));
    let (typed, encoded) = (of(false), of(true));
    assert_eq!(typed.to_json_pretty().expect("JSON"), encoded.to_json_pretty().expect("JSON"));
    let case = "fio: after event 4 (power-cycle of 100.000 ms at 150 ms)";
    let value =
        |metric: &str| typed.rows.iter().find(|r| r.case == case && r.metric.name() == metric).map(|r| r.simulated);
    assert!(value("recovery").is_some_and(|ms| ms > 0.0) && value("hpb_hit_ratio").is_some(), "rows of the event");
}

#[test]
fn a_limit_without_room_for_the_tables_names_its_event() {
    let events = event(1, "\"suspend\"") + &event(2, "\"pressure\"\nmemory_bytes = 10");
    let error = runs(&experiment(LRU, &events), false).expect_err("too little");
    let message = error.to_string();
    assert!(error.is_usage() && message.contains("event 2 (pressure 10 bytes at 2 ms): "), "{message}");
}
