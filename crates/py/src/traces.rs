// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves of map hits by memory, as those of `readpath trace mrc`.

use crate::reading::{BATCH, Reading};
use anyhow::{Result, anyhow};
use pyo3::{FromPyObject, IntoPyObject};
use readpath_session::lab::map_reuse::MapOf;
use readpath_session::lab::runs::Shared;
use readpath_session::traces::fill;
use readpath_session::workload::trace::mrc::{MapReuse, Of};
use readpath_session::workload::trace::{Request, TraceError};
use std::borrow::Cow;
use std::path::Path;

/// Memory for the order of pages: enough for thirty million in all maps.
const LIMIT_BYTES: u64 = 1 << 30;

/// Which maps are asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Maps {
    of: String,
    page_kib: Vec<u64>,
    region_mib: Vec<u64>,
    sample: Option<usize>,
}

/// The curve of a map. Its points are numbers as they lie in memory.
#[derive(IntoPyObject)]
pub struct MapCurve {
    map: String,
    page_bytes: u64,
    accesses: u64,
    pages: u64,
    knee: Option<u64>,
    /// Bytes of memory, 64-bit integers.
    memory: Cow<'static, [u8]>,
    /// Hits in percent, 64-bit floating-point numbers.
    hits: Cow<'static, [u8]>,
}

impl Maps {
    fn of(&self) -> Result<Of> {
        let found = Of::ALL.into_iter().find(|of| of.name() == self.of);
        found.ok_or_else(|| anyhow!("of: is {:?}; expected \"reads\", \"writes\" or \"all\"", self.of))
    }

    fn maps(&self) -> Result<Vec<MapOf>> {
        let checked = |name: &str, value: u64, unit: u64| match value.is_power_of_two() && value <= 1024 {
            true => Ok(value * unit),
            false => Err(anyhow!("{name}: {value}: expected a power of two, 1024 at most")),
        };
        let pages = self.page_kib.iter().map(|kib| checked("page_kib", *kib, 1 << 10).map(MapOf::pages));
        let regions = self.region_mib.iter().map(|mib| checked("region_mib", *mib, 1 << 20).map(MapOf::regions));
        pages.chain(regions).collect()
    }
}

/// Reads a trace and follows its map pages.
pub fn curves(path: &Path, how: &Reading, maps: &Maps, shared: &Shared) -> Result<Vec<MapCurve>> {
    let (of, kinds) = (maps.of()?, maps.maps()?);
    let mut spans: Vec<u64> = kinds.iter().map(|map| map.span_bytes).collect();
    spans.sort_unstable();
    spans.dedup();
    let mut reuse = MapReuse::new(&spans, maps.sample, LIMIT_BYTES);
    follow(path, how, &mut reuse, shared)?;
    let found = reuse.finish();
    let curve = |map: &MapOf| {
        let spans = found.iter().find(|spans| spans.span_bytes == map.span_bytes)?;
        let (curve, least) = (spans.of(of), spans.least(of));
        let steps = || curve.steps.iter().filter(move |(pages, _)| *pages >= least);
        let memory: Vec<u8> = steps().flat_map(|(pages, _)| (pages * map.page_bytes()).to_ne_bytes()).collect();
        let percent = |hits: f64| 100.0 * hits / curve.accesses as f64;
        let hits: Vec<u8> = steps().flat_map(|(_, hits)| percent(*hits).to_ne_bytes()).collect();
        Some(MapCurve {
            map: map.name.clone(),
            page_bytes: map.page_bytes(),
            accesses: curve.accesses,
            pages: curve.pages,
            knee: map.knee(curve),
            memory: memory.into(),
            hits: hits.into(),
        })
    };
    Ok(kinds.iter().filter_map(curve).collect())
}

fn follow(path: &Path, how: &Reading, reuse: &mut MapReuse, shared: &Shared) -> Result<()> {
    let name = path.display().to_string();
    let mut reader = how.open(path, shared)?;
    let mut batch = vec![Request::NONE; BATCH];
    loop {
        let n = fill(&mut reader, &mut batch, shared)?;
        for request in &batch[..n] {
            reuse.add(request).map_err(|error| TraceError { file: name.clone(), ..error })?;
        }
        if n < batch.len() {
            return Ok(());
        }
    }
}
