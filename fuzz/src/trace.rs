// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces, valid and invalid.

use readpath_run::UpiuText;
use readpath_workload::IoKind;
use readpath_workload::trace::mrc::{MapReuse, Of};
use readpath_workload::trace::upius::{Seen, Upius};
use readpath_workload::trace::{
    Analysis, Columns, CsvWriter, Devices, Fit, Format, Loaded, Options, Prepare, Reader, Reason, Request, TraceError,
};
use std::io::Cursor;

/// Small limits, so that an input does not take long.
fn options(lenient: bool) -> Options {
    Options { lenient, window: 64, max_expanded_bytes: 1 << 20, ..Options::default() }
}

fn read(data: &[u8], options: &Options) -> Result<Vec<Request>, TraceError> {
    let mut reader = Reader::new("fuzz", Box::new(Cursor::new(data.to_vec())), options)?;
    let requests = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    let summary = reader.summary();
    assert_eq!(summary.requests, requests.len() as u64);
    assert!(!requests.is_empty(), "an empty trace is an error");
    assert_eq!(requests[0].time.0, 0);
    assert!(requests.is_sorted_by_key(|r| r.time));
    for r in &requests {
        assert!((r.kind == IoKind::Flush) == (r.bytes == 0), "{r:?}");
        assert!(r.offset.checked_add(r.bytes).is_some(), "{r:?}");
    }
    assert!(options.lenient || summary.skips.total() == 0);
    Ok(requests)
}

/// Curves of map hits never fall, and end where each page misses once.
fn curves(requests: &[Request], sample: Option<usize>) {
    let mut reuse = MapReuse::new(&Analysis::MAP_SPANS, sample, 64 << 20);
    if requests.iter().try_for_each(|r| reuse.add(r)).is_err() {
        return;
    }
    for spans in reuse.finish() {
        for curve in Of::ALL.map(|of| spans.of(of)) {
            assert!(curve.steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{curve:?}");
            let hits = curve.steps.last().map_or(0.0, |step| step.1);
            let all_but_first = curve.accesses.saturating_sub(curve.pages) as f64;
            assert!(hits <= curve.accesses as f64 && (sample.is_some() || hits == all_but_first), "{curve:?}");
        }
    }
}

/// What holds for every trace that can be read.
fn check(requests: &[Request]) {
    let mut writer = CsvWriter::new("fuzz", Vec::new()).expect("a vector");
    requests.iter().for_each(|r| writer.write(r).expect("a vector"));
    let written = writer.finish().expect("a vector");
    assert_eq!(read(&written, &Options::default()).expect("what we wrote"), requests);

    let mut analysis = Analysis::new(&Analysis::MAP_SPANS, 64 << 20).expect("spans");
    if requests.iter().try_for_each(|r| analysis.add(r)).is_ok() {
        let info = analysis.finish();
        assert_eq!(info.requests(), requests.len() as u64);
        let f = info.footprint;
        assert!(f.blocks_only_read <= f.blocks_read_first && f.blocks_read_first <= f.blocks_read);
        assert_eq!(f.blocks, f.blocks_only_read + f.blocks_written);
        for (reuse, skew) in info.reuse.iter().zip(&info.skew) {
            assert_eq!(reuse.hits.last().copied().unwrap_or(0), reuse.accesses - reuse.pages);
            assert_eq!((skew.accesses, skew.pages_read), (reuse.accesses, reuse.pages));
            assert!(skew.hottest.is_sorted() && skew.hottest[2] <= skew.accesses && skew.pages >= skew.pages_read);
        }
        assert_eq!(info.timeline.slots.iter().map(|s| s.requests).sum::<u64>(), requests.len() as u64);
    }

    curves(requests, None);
    curves(requests, Some(64));

    let how = Prepare { fit: Fit::Fold, ..Prepare::new(1 << 18) };
    let mut replay = how.requests("fuzz", requests.iter().copied().map(Ok)).expect("a device");
    if let Ok(loaded) = Loaded::load(&mut replay, 1 << 16) {
        for io in &loaded.ios {
            assert!((io.kind == IoKind::Flush) == (io.blocks == 0), "{io:?}");
            assert!(u64::from(io.block) + u64::from(io.blocks) <= 1 << 18, "{io:?}");
            assert!(io.blocks <= how.max_blocks);
        }
        assert!(loaded.preload_blocks() <= 1 << 18);
    }
}

fn both(data: &[u8], options: impl Fn(bool) -> Options) {
    let strict = read(data, &options(false));
    let lenient = read(data, &options(true));
    if let Ok(requests) = &strict {
        assert_eq!(lenient.as_ref(), Ok(requests), "nothing to skip");
        check(requests);
    } else if let Ok(requests) = &lenient {
        check(requests);
    }
    for e in [strict.err(), lenient.err()].into_iter().flatten() {
        assert!(!e.message.is_empty());
    }
}

/// A listing ends with an error or at the end, and every UPIU has words.
fn list(data: &[u8]) {
    let Ok(upius) = Upius::new("fuzz", Box::new(Cursor::new(data.to_vec()))) else { return };
    // A compressed input may be long.
    for seen in upius.take(1000) {
        match seen {
            Ok(Seen::Upiu { bytes, data, .. }) => assert!(!UpiuText::new(&bytes, &data).text.is_empty()),
            Ok(_) => {}
            Err(e) => assert!(!e.message.is_empty()),
        }
    }
}

/// A trace, of the format that it seems to have, of those that have to be named and, leniently, of every other; and a
/// list of UPIUs.
pub fn trace(data: &[u8]) {
    let opened = Reader::new("fuzz", Box::new(Cursor::new(data.to_vec())), &options(false));
    // Only formats with numbers of objects need their size.
    let objects = opened.is_err_and(|e| e.reason == Reason::Options).then_some(512);
    both(data, |lenient| Options { object_bytes: objects, ..options(lenient) });
    list(data);
    for format in Format::ALL {
        let object_bytes = format.has_objects().then_some(512);
        let named = |lenient| Options { format: Some(format), object_bytes, ..options(lenient) };
        match format {
            Format::Alibaba | Format::Tencent | Format::OracleGeneral => {
                both(data, |lenient| Options { devices: Devices::Merge, ..named(lenient) });
            }
            _ => drop(read(data, &named(true))),
        }
    }
}

/// A first line that describes columns, and a table.
pub fn trace_columns(data: &[u8]) {
    let end = data.iter().position(|&b| b == b'\n').unwrap_or(data.len());
    let Ok(spec) = std::str::from_utf8(&data[..end]) else { return };
    match Columns::parse(spec) {
        Ok(columns) => both(&data[(end + 1).min(data.len())..], |lenient| Options {
            columns: Some(columns.clone()),
            ..options(lenient)
        }),
        Err(e) => assert!(e.starts_with("columns: ")),
    }
}
