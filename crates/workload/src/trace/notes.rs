// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes on a trace for the reader of its results. Knows nothing of where they are shown.

use super::{NO_DEVICE, Place, Reader, Reason, UfsBlocks};

impl Reader {
    /// Notes on a trace called `name` that has been read to its end, in the words of the command's
    /// options. The first says what it is.
    pub fn notes(&self, name: &str) -> Vec<String> {
        let s = self.summary();
        let mut list = vec![format!(
            "{name}: format {}, {}, {} requests over {}",
            self.format().name(),
            self.compression().name(),
            s.requests,
            s.span
        )];
        if self.format().has_objects() {
            let bytes = self.object_bytes();
            list.push(format!("{name}: addresses are numbers of objects times {bytes} bytes (--object-bytes)"));
        }
        match self.processors {
            Some(1) => list.push(format!(
                "{name}: is the file of ONE processor, and that of no other lies beside it; what others requested is \
                 missing"
            )),
            Some(n) => list.push(format!("{name}: the files of all {n} processors that lie beside it were joined")),
            None => {}
        }
        match s.ufs_blocks {
            UfsBlocks::Seen(512) => list.push(format!(
                "{name}: addresses count sectors of 512 bytes, as its sequential requests show (Linux before 5.14; \
                 --ufs-block-bytes)"
            )),
            UfsBlocks::Assumed => list.push(format!(
                "{name}: addresses were TAKEN for blocks of 4096 bytes; no sequential request shows whether they count \
                 sectors, as before Linux 5.14 (--ufs-block-bytes 512)"
            )),
            UfsBlocks::None | UfsBlocks::Given(_) | UfsBlocks::Seen(_) => {}
        }
        if !self.has_operations() {
            list.push(format!("{name}: its accesses have no operation; all were taken for READS"));
        }
        let mut note = |n: u64, text: String| {
            if n > 0 {
                list.push(format!("{name}: {n} {text}"));
            }
        };
        for (reason, count, place, example) in s.skips.iter() {
            let place = match place {
                Place::File => String::new(),
                Place::Line(n) => format!("line {n}: "),
                Place::Byte(n) => format!("byte {n}: "),
            };
            let what = if reason == Reason::Order { "rows were MOVED in time" } else { "rows were SKIPPED" };
            note(count, format!("{what} ({}); the first at {place}{example}", reason.words()));
        }
        let larger = match s.needed_bytes {
            NO_DEVICE => "on no device".to_owned(),
            bytes => format!("on one of at least {bytes} bytes"),
        };
        note(s.beyond, format!("requests that do not lie on the device would {larger}"));
        note(s.other_device, "requests to other devices were left out".into());
        if let Some(other) = self.format().other_layer() {
            let name = other.name();
            note(
                s.other_layer,
                format!("requests of the other layer were left out (--format {name} takes those instead)"),
            );
        }
        note(
            s.lost_events,
            match self.format().is_perfetto() {
                true => "bundles of events begin where events were lost when the trace was recorded".into(),
                false => "events were lost when the trace was recorded".into(),
            },
        );
        note(s.inversions, format!("rows were out of order by up to {} and were sorted", s.furthest_inversion));
        note(s.unmatched_completions, "completions have no request in the trace".into());
        if s.unterminated {
            list.push(format!(
                "{name}: the last line has no end; if the trace was cut off there, what it ends with may be short or \
                 missing"
            ));
        }
        list
    }

    /// That times are too coarse for a replay at those times, if they are, and a `way_out`.
    pub fn coarse_times(&self, name: &str, way_out: &str) -> Option<String> {
        let s = self.summary();
        let warning = s.stamps.warning(s.requests)?;
        Some(format!(
            "{name}: {warning}. Replayed at those times, latencies and hits come of the bursts, not of the device; \
             {way_out}"
        ))
    }
}
