// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be measured: a name, a unit, and what the registry says of both. Knows no values.

mod registry;
mod requests;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use registry::*;
pub use requests::{Figure, Requests};

/// What is measured. The constants of this module are those of the registry; [`Metric::new`] is for what comes from
/// elsewhere.
///
/// Two metrics are equal if name and unit are. Within a document the name alone identifies a metric.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Metric {
    #[serde(rename = "metric")]
    name: Cow<'static, str>,
    unit: Cow<'static, str>,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// The greater one.
    More,
    /// The smaller one.
    Less,
    /// Neither: the metric counts work.
    Neither,
}

/// The registry's entry of a metric, or of a family of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Its name in snake case. A word in braces makes it a family: `{requests}` stands for one of [`Requests`], `{n}`
    /// for a whole number, `{span}` for a size such as `4mib`, `{percentile}` for one such as `99_9`, and
    /// `{metric}` for the name of another metric.
    pub name: &'static str,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// Heading of its column where tables are narrow; empty for its label. Words in braces mean the same as in the
    /// name.
    pub heading: &'static str,
    /// Which way is better.
    pub better: Better,
    /// Definition and computation, in a line of Markdown.
    pub what: &'static str,
}

impl Metric {
    const fn known(name: &'static str, unit: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), unit: Cow::Borrowed(unit) }
    }

    /// A metric by name and unit, whether or not the registry has it.
    pub fn new(name: impl Into<Cow<'static, str>>, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), unit: unit.into() }
    }

    /// The member of a family for which the words in braces stand for `words`, in this order.
    #[must_use]
    pub fn with<const N: usize>(&self, words: [&str; N]) -> Self {
        let mut name = String::new();
        let mut words = words.into_iter();
        for (i, part) in self.name.split(['{', '}']).enumerate() {
            name.push_str(if i % 2 == 1 { words.next().unwrap_or(part) } else { part });
        }
        Self { name: name.into(), unit: self.unit.clone() }
    }

    /// Name in snake case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Unit; empty for counts and ratios.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Its entry in the registry.
    pub fn definition(&self) -> Option<&'static Definition> {
        let of_unit = || definitions().filter(|d| d.unit == self.unit);
        of_unit().find(|d| d.name == self.name).or_else(|| of_unit().find(|d| member(d.name, &self.name).is_some()))
    }

    /// Its name in words: `map_hit_ratio` becomes `Map hit ratio`; counters of Linux keep their names (`hit_cnt`).
    pub fn label(&self) -> String {
        in_words(&self.name)
    }

    /// Heading of its column in a narrow table.
    pub fn heading(&self) -> String {
        let found = self.definition().filter(|d| !d.heading.is_empty());
        let Some(definition) = found else { return self.label() };
        let words = member(definition.name, &self.name).unwrap_or_default();
        words.iter().fold(definition.heading.to_owned(), |heading, (brace, word)| {
            heading.replace(brace, &word.replace('_', if *brace == PERCENTILE { "." } else { " " }))
        })
    }
}

const PERCENTILE: &str = "{percentile}";

/// All definitions of the registry.
pub fn definitions() -> impl Iterator<Item = &'static Definition> {
    SECTIONS.iter().flat_map(|(_, definitions)| definitions.iter())
}

/// What the words in braces of `family` stand for in `name`, each with its braces, the last one first; none if it is no
/// member.
fn member<'a>(family: &'static str, name: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let Some(at) = family.find('{') else { return (family == name).then(Vec::new) };
    let end = at + family[at..].find('}')? + 1;
    let (brace, name) = (&family[at..end], name.strip_prefix(&family[..at])?);
    (1..=name.len()).filter(|&n| name.is_char_boundary(n) && stands_for(brace, &name[..n])).find_map(|n| {
        let mut words = member(&family[end..], &name[n..])?;
        words.push((brace, &name[..n]));
        Some(words)
    })
}

fn stands_for(brace: &str, word: &str) -> bool {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit()) && !word.is_empty();
    match brace {
        "{requests}" => Requests::ALL.iter().any(|r| r.name() == word),
        "{n}" => is_number(word),
        PERCENTILE => word.split_once('_').map_or_else(|| is_number(word), |(a, b)| is_number(a) && is_number(b)),
        "{span}" => ["kib", "mib"].iter().any(|unit| word.strip_suffix(unit).is_some_and(is_number)),
        "{metric}" => definitions().any(|d| !d.name.starts_with(brace) && member(d.name, word).is_some()),
        _ => false,
    }
}

/// A name in words.
fn in_words(name: &str) -> String {
    const CAPITALS: [&str; 20] = [
        "cdf", "cpu", "dcm", "dram", "ftl", "gc", "hcm", "hmb", "hpb", "io", "l2p", "lpn", "nand", "nbd", "ppn", "qd",
        "sram", "ubi", "ufs", "waf",
    ];
    // Counters of Linux keep their names.
    if name.ends_with("_cnt") {
        return name.to_owned();
    }
    let mut out = String::new();
    let mut before = "";
    for word in name.split('_').filter(|word| !word.is_empty()) {
        // A name has no point: p99_9 is the percentile 99.9.
        let fraction = is_percentile(before) && word.bytes().all(|b| b.is_ascii_digit());
        if !out.is_empty() {
            out.push(if fraction { '.' } else { ' ' });
        }
        before = word;
        match word {
            "ios" => out.push_str("I/Os"),
            "iops" => out.push_str("IOPS"),
            _ if CAPITALS.contains(&word) => out.push_str(&word.to_uppercase()),
            _ if out.is_empty() => {
                let mut letters = word.chars();
                out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                out.push_str(letters.as_str());
            }
            _ => out.push_str(word),
        }
    }
    if out.is_empty() { name.to_owned() } else { out }
}

fn is_percentile(word: &str) -> bool {
    word.strip_prefix('p').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn labels() {
        for (name, label) in [
            ("random_read_throughput", "Random read throughput"),
            ("hpb_map_loads", "HPB map loads"),
            ("latency_p99", "Latency p99"),
            ("read_latency_p99_9", "Read latency p99.9"),
            ("depth_4_16", "Depth 4 16"),
            ("hit_cnt", "hit_cnt"),
            ("__", "__"),
            ("", ""),
        ] {
            assert_eq!(Metric::new(name, "").label(), label);
        }
    }

    #[test]
    fn families_have_members() {
        let headings = |metrics: &[Metric]| metrics.iter().map(Metric::heading).collect::<Vec<_>>();
        let shown = [
            Requests::RandomRead.of(Figure::Throughput),
            Requests::Read.of(Figure::Iops),
            Requests::Write.of(Figure::LatencyP99_9),
            Requests::Write.of(Figure::LatencyPercentile).with(["99_99"]),
            MAP_LOADS,
            ERASE_COUNT_MEAN,
        ];
        let words = ["random read", "read IOPS", "write p99.9", "write p99.99", "map loads", "Erase count mean"];
        assert_eq!(headings(&shown), words);
        let hits = LRU_HITS.with(["4mib", "16"]);
        assert_eq!((hits.name(), hits.unit()), ("lru_hits_4mib_16_pages", "%"));
        assert_eq!(hits.definition().map(|d| d.name), Some("lru_hits_{span}_{n}_pages"));
        assert!(GAIN.with(["random_read_throughput"]).definition().is_some());
        for (name, unit) in [
            ("gc_throughput", "MiB/s"),
            ("read_throughput", "%"),
            ("lru_hits_4mb_16_pages", "%"),
            ("lru_hits_4mib__pages", "%"),
            ("nothing_gain", "%"),
        ] {
            assert_eq!(Metric::new(name, unit).definition(), None, "{name} {unit}");
        }
    }

    #[test]
    fn the_registry_has_each_metric_once_and_says_what_it_is() {
        let mut seen = HashSet::new();
        for Definition { name, unit, what, heading, .. } in definitions() {
            assert!(seen.insert((name, unit)), "{name} in {unit} is there twice");
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_{}".contains(c);
            assert!(name.chars().all(plain) && !name.is_empty(), "{name}");
            assert!(!what.is_empty() && !what.ends_with('.') && !what.contains('|'), "{name}: {what}");
            assert!(heading.chars().count() <= 24, "{name}: {heading}");
        }
    }
}
