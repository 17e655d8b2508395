// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded read streams of UBI, schedules of memory and cost presets, valid and invalid.

use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Geometry, Limits, Pressure, Setup, load, parse_pressure, run};
use readpath_ubi::variant::{Kind, Variant};

/// Lines of the caches: few, so that a short input fills them.
const LINES: u32 = 3;

/// A stream, after a line of `%%` a schedule of memory: replayed through every cache, with and without the schedule.
pub fn ubi_stream(data: &[u8]) {
    let (records, schedule) = match data.windows(4).position(|w| w == b"\n%%\n") {
        Some(at) => (&data[..=at], &data[at + 4..]),
        None => (data, &[][..]),
    };
    let pressure = std::str::from_utf8(schedule).ok().and_then(|text| parse_pressure("fuzz.txt", text).ok());
    let pressure = pressure.unwrap_or_default();
    assert!(pressure.steps.windows(2).all(|pair| pair[0].read < pair[1].read));
    let geometry = Geometry::new(2048, Some(1 << 17)).expect("a geometry");
    let costs = CostPreset::builtin("mlc-16k").expect("a preset").model(geometry.page_bytes);
    for lenient in [false, true] {
        let mut input = records;
        let stream = match load("fuzz.csv", &mut input, geometry, lenient, Limits::default()) {
            Ok(stream) => stream,
            Err(e) => {
                assert!(!e.to_string().is_empty());
                continue;
            }
        };
        let s = &stream.summary;
        assert_eq!(s.reads + s.other_reads + s.writes + s.erases, stream.records.len() as u64);
        for suffix in ["", "+split"] {
            let pages = |kind: Kind, pressure: &Pressure| {
                let name = match kind {
                    Kind::None | Kind::NandPage => kind.name().to_owned(),
                    _ => format!("{}{suffix}", kind.name()),
                };
                let variant = Variant::parse(&name, LINES).expect("a cache");
                let outcome = run(&stream.records, &Setup { variant, costs, pressure }).expect("a short stream");
                let c = &outcome.counters;
                assert_eq!(c.hits + c.misses + c.no_query, s.reads, "{name}");
                assert!(outcome.resident_most <= variant.lines, "{name}");
                outcome.totals.page_reads + outcome.totals.part_reads
            };
            // No cache reads fewer pages than the one that knows the future; the page of the NAND core follows other
            // rules.
            for pressure in [&Pressure::default(), &pressure] {
                let best = pages(Kind::Opt, pressure);
                for (kind, ..) in Kind::ALL {
                    let read = pages(kind, pressure);
                    assert!(best <= read || kind == Kind::NandPage, "{}{suffix}: {read}, {best} at best", kind.name());
                }
            }
        }
    }
}

/// A preset of what reads cost: what is read makes a model in which more bytes never cost less.
pub fn ubi_costs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match CostPreset::parse(text, "fuzz.toml") {
        Ok(preset) => {
            for page_bytes in [512, 2048, 1 << 14, 1 << 16] {
                let model = preset.model(page_bytes);
                let part = |bytes| model.part(0, bytes).total_ns();
                assert!(part(1) <= part(page_bytes / 2) && part(page_bytes / 2) <= part(page_bytes));
                let ratio = model.break_even_hit_ratio();
                assert!(ratio.is_finite(), "{ratio}");
            }
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}
