// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lives of made-up loads, by hand.

use super::*;
use readpath_device::{CacheOwner, SlcCacheConfig, SlcConfig};
use readpath_flash::Lean;
use readpath_host::HostConfig;
use readpath_proto::query::{descriptor, opcode};
use readpath_proto::typed::QueryRequest;
use readpath_run::Runner;
use readpath_stack::{NoData, Typed};
use readpath_testkit::{job, start};
use readpath_workload::{IoKind, Offsets, Phase, Stream, StreamSpec};

/// 12 superblocks that count, of 4 dies; 10 erases of each in full mode, 100 in SLC mode.
fn config() -> DeviceConfig {
    let mut config = readpath_testkit::device(1 << 18);
    config.geometry.blocks_per_plane = 14;
    config.flash.life_erases = 10;
    config.slc = Some(config_slc());
    config.slc_cache = Some(SlcCacheConfig::write_booster(2 * config.cache_slices()));
    config
}

fn config_slc() -> SlcConfig {
    SlcConfig {
        bits_per_cell: 2,
        read: Ns(1),
        program: Ns(1),
        erase: Ns(1),
        life_erases: 100,
        holds_map: false,
        folds_on_die: false,
    }
}

fn days(days: f64) -> f64 {
    days * 86_400e9
}

/// What a document says of these lives.
fn said(lives: &[&Life]) -> Note {
    let mut doc = Document::new("e", "t");
    judge(&mut doc, lives.iter().copied());
    doc.verdict.into_iter().chain(doc.notes).next().expect("a sentence")
}

fn figure(life: &Life, of: &Metric) -> Option<f64> {
    life.figures().into_iter().find(|(metric, _)| metric == of).map(|(_, value)| value)
}

/// In 73 days the host writes half a TB; of 480 erases in full mode there were 24, of 4,800 in SLC mode 120.
#[test]
fn shares_of_modes_add_up_and_give_years_bytes_and_drive_writes() {
    let config = config();
    assert_eq!((config.geometry.dies(), config.geometry.superblocks()), (4, 14));
    let all =
        Load { ns: days(73.0), written: 5e11, programmed: 1e12, erases: [24, 120, 0], filled: [30.0, 150.0, 0.0] };
    let life = Life::new("v", &all, &[], &config);
    let is = |of: &Metric, value: f64| {
        let found = figure(&life, of).expect("a figure");
        assert!((found / value - 1.0).abs() < 1e-12, "{of:?}: {found} instead of {value}");
    };
    is(&metric::LIFE_USED, 5.0 + 2.5);
    is(&metric::LIFE_USED_SLC, 2.5);
    // Two superblocks of the cache endure 200 erases, 800 of blocks.
    is(&metric::CACHE_LIFE_USED, 15.0);
    // 30 and 150 blocks were filled, and will be erased.
    is(&metric::LIFE_DUE, 6.25 + 3.125);
    is(&metric::LIFE_YEARS, 0.2 / 0.09375);
    is(&metric::TBW, 0.5 / 0.09375);
    // The capacity is 2^18 blocks of 4 KiB.
    is(&metric::DWPD, 5e11 / 0.09375 / 1_073_741_824.0 / 1825.0);
    assert_eq!(figure(&life, &metric::LIFE_YEARS_ERROR), None, "nothing is known of its parts");
    let rest = "A longer run, or a fuller device, would tell.";
    let text = format!("How long cells live cannot be told: the run gives no 95 % interval. {rest}");
    assert_eq!(said(&[&life]).text, text);
    let note = said(&[&Life { half: Some(0.05), ..life }]);
    let text = "Cells are worn after 2.13 ± 0.0500 years of this load, when the host has written 5.33 TB (2.72 drive \
                writes a day for 5 years), with a write amplification of 2.00. Its cache in SLC mode takes no more \
                data after 3.33 TB.";
    assert_eq!((note.kind, &*note.text), (NoteKind::Lifetime, text));
}

/// Parts without an erase count with their time.
#[test]
fn the_interval_is_that_of_parts() {
    let config = config();
    let part =
        |erases| Load { ns: days(36.5), written: 1e9, programmed: 1e9, erases: [erases, 0, 0], ..Load::default() };
    let life = |erases: &[u64]| {
        let parts: Vec<Load> = erases.iter().map(|erases| part(*erases)).collect();
        let ns = parts.iter().map(|part| part.ns).sum();
        let all = Load { ns, written: 1e9, programmed: 1e9, erases: [erases.iter().sum(), 0, 0], ..Load::default() };
        Life::new("v", &all, &parts, &config)
    };
    let even = life(&[48, 24, 48, 24]);
    // Without one part after the other: 0.3 years over 96 or 120 of 480 erases, 1.5 or 1.2 years.
    let spread = (3.0 / 4.0 * 4.0 * 0.15f64 * 0.15).sqrt();
    let half = crate::compare::t_95(3, 1) * spread;
    let found = figure(&even, &metric::LIFE_YEARS_ERROR).expect("an interval");
    assert!((found - half).abs() < 1e-9, "{found} instead of {half}");
    assert_eq!(even.quiet, 0.0);
    let late = life(&[0, 0, 48, 0]);
    assert_eq!(late.half, None, "one part has erases");
    let text = said(&[&Life { half: Some(0.1), ..late }]).text;
    assert!(
        text.ends_with(" The first erase came after 50 % of the run: in the long run cells wear faster."),
        "{text}"
    );
    let uneven = life(&[96, 1, 0, 0]);
    assert!(uneven.half > Some(uneven.years()));
    let text = "How long cells live cannot be told: its 95 % interval is wider than the figure. A longer run, or a \
                fuller device, would tell.";
    assert_eq!(said(&[&uneven]).text, text);
}

/// The shortest life is told. Erases that have not caught up with the programs tell nothing, and no figure is infinite.
#[test]
fn a_run_with_too_few_erases_says_so() {
    let config = config();
    let life = |variant: &str, erases, filled| {
        let filled = [filled, 0.0, 0.0];
        let all = Load { ns: days(1.0), written: 1e9, programmed: 1e9, erases: [erases, 0, 0], filled };
        Life { half: Some(0.01), ..Life::new(variant, &all, &[], &config) }
    };
    let fresh = life("new", 0, 40.0);
    assert_eq!(fresh.figures(), []);
    let rest = "A longer run, or a fuller device, would tell.";
    let text = format!("How long cells live cannot be told: no superblock was erased. {rest}");
    assert_eq!(said(&[&fresh]).text, text);
    let few = life("few", 4, 10.0);
    assert_eq!(few.figures().len(), 1, "what was used is known");
    let why = "of the erases that its programs will need, 40 % have come";
    assert_eq!(said(&[&fresh, &few]).text, format!("How long cells live cannot be told: {why}. {rest}"));
    let text = said(&[&fresh, &few, &life("slow", 1, 1.5), &life("fast", 2, 2.0)]).text;
    assert!(text.starts_with("With 'fast' cells are worn first after 0.658 ± 0.0100 years"), "{text}");
    let mut doc = Document::new("e", "t");
    judge(&mut doc, [].into_iter());
    assert!(doc.verdict.is_empty() && doc.notes.is_empty());
}

/// A life that nothing tells may be shorter than the one that is told.
#[test]
fn a_shorter_life_without_an_interval_is_named() {
    let config = config();
    let life = |variant: &str, erases, half| {
        let all = Load { ns: days(1.0), written: 1e9, programmed: 1e9, erases: [erases, 0, 0], ..Load::default() };
        Life { half, ..Life::new(variant, &all, &[], &config) }
    };
    let (short, long) = (life("short", 4, None), life("long", 2, Some(0.01)));
    let text = said(&[&short, &long]).text;
    assert!(text.starts_with("With 'long' cells are worn after 0.658 ± 0.0100 years"), "{text}");
    assert!(text.ends_with(" With 'short' they may be worn sooner, but its run gives no interval."), "{text}");
    let text = said(&[&life("short", 4, Some(0.01)), &long]).text;
    assert!(text.starts_with("With 'short' cells are worn first after 0.329 ± ") && !text.contains("sooner"), "{text}");
}

/// The device's health descriptor says what the figures say, until all cells are worn: on a device with a cache and a
/// map in SLC mode, which is overwritten many times.
#[test]
fn the_health_descriptor_agrees() {
    let mut config = readpath_testkit::device(3000);
    config.geometry.pages_per_block = 24;
    config.flash.life_erases = 12;
    config.flash.map_read = Ns(1);
    let slc = SlcConfig { bits_per_cell: 3, life_erases: 60, holds_map: true, ..config_slc() };
    config.slc = Some(slc);
    let owner = CacheOwner::Device { folds_when_idle: true };
    config.slc_cache = Some(SlcCacheConfig {
        owner,
        static_blocks: 3 * config.cache_slices(),
        dynamic_blocks: config.cache_slices(),
        cells: None,
    });
    config.ftl.checkpoint_after_units = 64;
    config.geometry.blocks_per_plane = 1;
    while let Err(e) = config.check() {
        match e.field {
            "ftl.spare_map_superblocks" => config.ftl.spare_map_superblocks += 1,
            _ => config.geometry.blocks_per_plane += 1,
        }
        assert!(config.geometry.blocks_per_plane < 100, "{e}");
    }
    let (mut stack, now) = start::<Lean, NoData, Typed>(&config, HostConfig::LINUX, |_| ());
    let mut runner = Runner::new(now);
    let spec = StreamSpec::plain(IoKind::Write, 0, 3000, 1, Offsets::Uniform);
    let stream = Stream::new(&spec, 5).expect("a possible stream");
    let mut phase = Phase { name: String::new(), jobs: vec![job(stream, 8, 2500)] };
    let mut seen = Vec::new();
    for _ in 0..60 {
        runner.phase(&mut stack, &mut phase, &mut ()).expect("the run ends well");
        let mut all = Load::default();
        all.add(stack.device.stats(), Ns(1), &config);
        let life = Life::new("v", &all, &[], &config);
        let tenths = |of: &Metric| 1 + (figure(&life, of).unwrap_or(0.0) / 10.0) as u8;
        let figures = [tenths(&metric::LIFE_USED).min(11), tenths(&metric::CACHE_LIFE_USED).min(11)];
        let mut health = Vec::new();
        let (opcode, idn) = (opcode::READ_DESCRIPTOR, descriptor::HEALTH);
        let query = QueryRequest { opcode, idn, index: 0, selector: 0, length: 45, value: 0 };
        stack.device.inspect(&query, &mut health).expect("a descriptor");
        assert_eq!((health[2], &health[3..5]), (1, &figures[..]), "{:?}", stack.device.stats());
        seen.push(health[3]);
        // By hand: every erase of a superblock, whatever its mode, shows in the wear of superblocks.
        let (wear, dies) = (stack.device.wear(), u64::from(config.geometry.dies()));
        let erases: u64 = stack.device.stats().erases_by_mode().iter().sum();
        assert_eq!((wear.mean * f64::from(wear.superblocks)).round() as u64 * dies, erases);
    }
    let by_mode = stack.device.stats().erases_by_mode();
    assert!(by_mode.iter().all(|erases| *erases > 100), "{by_mode:?}");
    assert!(seen.is_sorted() && seen[0] < 3 && seen[59] == 11, "{seen:?}");
}

/// Causes and modes each add up to all programs.
#[test]
fn parts_of_write_amplification_add_up() {
    let config = config();
    let unit = u64::from(config.geometry.slices_per_unit());
    let device = DeviceStats {
        slices_written: 100,
        programs: 80,
        slc_programs: 30,
        slc_map_programs: 5,
        meta_programs: 9,
        anchor_programs: 2,
        table_writes: 3,
        slices_moved: 90,
        slices_flushed: 40,
        slices_levelled: 20,
        slices_refreshed: 10,
        slices_padded: 7,
        zone_rests: 30,
        map_writes: 20,
        journal_writes: 8,
        checkpoint_writes: 3,
        ..DeviceStats::default()
    };
    assert_eq!((unit, config.map_page_bytes), (4, 4096));
    let found: Vec<(String, f64)> =
        programs(&device, &config).map(|(metric, value)| (metric.name().to_owned(), value)).collect();
    let named = |name: &str| {
        let name = format!("write_amplification_{name}");
        found.iter().find(|(known, _)| *known == name).map(|(_, value)| (value * 100.0).round())
    };
    let causes = ["host", "rests", "collection", "folding", "levelling", "refresh", "map", "journal"];
    let blocks = causes.map(|name| named(name).expect("a part"));
    assert_eq!(blocks, [137.0, 30.0, 20.0, 40.0, 20.0, 10.0, 20.0, 8.0]);
    assert_eq!(["checkpoints", "tables", "padding"].map(named), [Some(11.0), Some(12.0), Some(12.0)]);
    assert_eq!(["full_cells", "slc", "slc_map"].map(named), [Some(180.0), Some(120.0), Some(20.0)]);
    let sum: f64 = found.iter().map(|(_, value)| value).sum();
    assert!((sum - 2.0 * 3.2).abs() < 1e-12, "{sum}");
}
