// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict on caches of read streams: which saves most of their time, of how many lines, and what it costs in
//! memory. Replays count exactly, so there is no interval; what is modelled are the costs of reads.

use super::error::label;
use crate::verdict::size;
use readpath_results::{Note, NoteKind};
use readpath_ubi::stream::Outcome;
use readpath_ubi::variant::Variant;

/// A cache that saves within so many percent of the time, with less memory, is as good.
const NEAR_PERCENT: f64 = 1.0;
/// The cache that knows the future.
const FUTURE: &str = "opt";
const NONE: &str = "none";

/// What became of a stream with each cache.
pub(super) struct Replayed {
    pub(super) stream: String,
    pub(super) page_bytes: u32,
    pub(super) outcomes: Vec<(Variant, Outcome)>,
}

/// A cache over all streams.
struct Candidate {
    name: String,
    seconds: f64,
    /// The most memory that it takes for lines and tables on one stream.
    bytes: f64,
}

/// The verdict on caches of `streams`, all of which went through the same caches, called `what`; none if nothing was
/// read.
pub(super) fn of_caches(what: &str, streams: &[Replayed]) -> Option<Note> {
    let streams: Vec<&Replayed> = streams.iter().filter(|one| !one.outcomes.is_empty()).collect();
    let variants = &streams.first()?.outcomes;
    let candidate = |at: usize| {
        let of = streams.iter().filter_map(|stream| Some((stream.page_bytes, &stream.outcomes.get(at)?.1)));
        let (mut seconds, mut bytes) = (0.0, 0.0f64);
        for (page_bytes, outcome) in of {
            seconds += outcome.totals.cost.seconds();
            let lines = outcome.resident_most as f64 * f64::from(page_bytes);
            bytes = bytes.max(lines + outcome.metadata_bytes as f64);
        }
        Candidate { name: label(&variants[at].0), seconds, bytes }
    };
    let is = |at: usize, name: &str| variants[at].0.name().split('+').next() == Some(name);
    let places = || 0..variants.len();
    let base_at = places().find(|&at| is(at, NONE)).unwrap_or(0);
    let base = candidate(base_at);
    let real: Vec<(usize, Candidate)> = places()
        .filter(|&at| at != base_at && !is(at, FUTURE) && !is(at, NONE))
        .map(|at| (at, candidate(at)))
        .collect();
    let Some((best_at, best)) = real.iter().min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds)) else {
        let text = format!(
            "{what}: reads take {:.3} s with '{}'. There is no other cache to compare it with.",
            base.seconds, base.name
        );
        return Some(Note::new(NoteKind::NoAdvice, text).of_variant(base.name));
    };
    if best.seconds >= base.seconds {
        let text = format!(
            "{what}: no cache saves time: reads take {:.3} s with '{}', and {:.3} s with '{}', the best of the others.",
            base.seconds, base.name, best.seconds, best.name
        );
        return Some(Note::new(NoteKind::NoDifference, text).of_variant(base.name).with("read_seconds", base.seconds));
    }
    let saved = |seconds: f64| 100.0 * (1.0 - seconds / base.seconds);
    let range = match &streams[..] {
        [_] => String::new(),
        many => {
            let of_stream = many.iter().filter_map(|stream| {
                let seconds = |at: usize| Some(stream.outcomes.get(at)?.1.totals.cost.seconds());
                Some((100.0 * (1.0 - seconds(*best_at)? / seconds(base_at)?), stream.stream.as_str()))
            });
            let mut of_stream: Vec<(f64, &str)> = of_stream.filter(|(percent, _)| percent.is_finite()).collect();
            of_stream.sort_by(|a, b| a.0.total_cmp(&b.0));
            match (of_stream.first(), of_stream.last()) {
                (Some(least), Some(most)) => {
                    format!("; {:.1} % in '{}', {:.1} % in '{}'", least.0, least.1, most.0, most.1)
                }
                _ => String::new(),
            }
        }
    };
    let cheaper = real.iter().map(|(_, one)| one).filter(|one| {
        one.bytes < best.bytes && saved(one.seconds) > 0.0 && saved(one.seconds) >= saved(best.seconds) - NEAR_PERCENT
    });
    let near = cheaper.min_by(|a, b| a.bytes.total_cmp(&b.bytes)).map_or_else(String::new, |one| {
        format!(" '{}' saves {:.1} % for {}.", one.name, saved(one.seconds), size(one.bytes))
    });
    let text = format!(
        "{what}: '{}' saves {:.1} % of the time of reads ({:.3} s instead of {:.3} with '{}'{range}), for {}.{near}",
        best.name,
        saved(best.seconds),
        best.seconds,
        base.seconds,
        base.name,
        size(best.bytes)
    );
    let note = Note::new(NoteKind::Gain, text).of_variant(best.name.as_str()).with("read_seconds", best.seconds);
    Some(note.with("saved_percent", saved(best.seconds)).with("memory_bytes", best.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_ubi::cache::Counters;
    use readpath_ubi::cost::Cost;
    use readpath_ubi::stream::Totals;

    fn replayed(stream: &str, caches: &[(&str, u32, u64, u32)]) -> Replayed {
        let outcome = |&(cache, lines, ms, resident): &(&str, u32, u64, u32)| {
            let totals = Totals { cost: Cost { wait_ns: ms * 1_000_000, cpu_ns: 0 }, ..Totals::default() };
            let (counters, other) = (Counters::default(), Totals::default());
            let outcome = Outcome { counters, totals, other, metadata_bytes: 0, resident, resident_most: resident };
            (Variant::parse(cache, lines).expect("a cache"), outcome)
        };
        Replayed { stream: stream.to_owned(), page_bytes: 4096, outcomes: caches.iter().map(outcome).collect() }
    }

    #[test]
    fn the_cache_that_saves_most_and_the_least_that_is_as_good() {
        let caches = [
            ("none", 1, 1000, 0),
            ("lru", 8, 755, 8),
            ("lru", 64, 750, 64),
            ("opt", 64, 500, 64),
            ("peb-hash", 61, 900, 61),
        ];
        let note = of_caches("x.ubi", &[replayed("find", &caches)]).expect("a verdict");
        let text = "x.ubi: 'lru, 64 lines' saves 25.0 % of the time of reads (0.750 s instead of 1.000 with 'none'), \
                    for 256 KiB. 'lru, 8 lines' saves 24.5 % for 32 KiB.";
        assert_eq!(
            (note.kind, note.text.as_str(), note.variant.as_deref()),
            (NoteKind::Gain, text, Some("lru, 64 lines"))
        );
        let other = [
            ("none", 1, 1000, 0),
            ("lru", 8, 1000, 8),
            ("lru", 64, 990, 64),
            ("opt", 64, 900, 64),
            ("peb-hash", 61, 990, 61),
        ];
        let both = of_caches("x.ubi", &[replayed("find", &caches), replayed("boot", &other)]).expect("a verdict");
        assert!(both.text.contains("saves 13.0 % of the time of reads (1.740 s instead of 2.000"), "{}", both.text);
        assert!(both.text.contains("; 1.0 % in 'boot', 25.0 % in 'find')"), "{}", both.text);
        assert!(both.text.contains("), for 256 KiB."), "the most that a stream takes: {}", both.text);
        // What is cheap and saves little is not as good, wherever the base stands.
        let cheap = [("one-line", 1, 950, 1), ("lru", 64, 750, 64), ("none", 1, 1000, 0)];
        let note = of_caches("x.ubi", &[replayed("find", &cheap)]).expect("a verdict");
        assert!(note.text.ends_with("(0.750 s instead of 1.000 with 'none'), for 256 KiB."), "{}", note.text);
        let worse = [("none", 1, 1000, 0), ("one-line", 1, 1002, 1), ("lru", 64, 995, 64)];
        let note = of_caches("x.ubi", &[replayed("find", &worse)]).expect("a verdict");
        assert!(note.text.ends_with(", for 256 KiB."), "one line saves nothing: {}", note.text);
    }

    #[test]
    fn a_cache_that_saves_nothing_is_not_recommended() {
        let caches = [("none", 1, 1000, 0), ("one-line", 1, 1200, 1), ("opt", 61, 500, 61)];
        let note = of_caches("s", &[replayed("s", &caches)]).expect("a verdict");
        let text = "s: no cache saves time: reads take 1.000 s with 'none', and 1.200 s with 'one-line, 1 line', the \
                    best of the others.";
        assert_eq!(
            (note.kind, note.text.replace("'one-line'", "'one-line, 1 line'")),
            (NoteKind::NoDifference, text.to_owned())
        );
        let equal = of_caches("s", &[replayed("s", &[("none", 1, 1000, 0), ("lru", 8, 1000, 8)])]).expect("a verdict");
        assert!(equal.text.starts_with("s: no cache saves time"), "{}", equal.text);
        let alone = of_caches("s", &[replayed("s", &[("lru", 8, 700, 8)])]).expect("a verdict");
        assert_eq!(alone.kind, NoteKind::NoAdvice);
        assert!(of_caches("s", &[]).is_none());
    }
}
