// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants from options: named ones, and every combination of varied keys. Meaning and bounds of keys are checked by
//! `readpath-config`.

use crate::args::{Hpb, HpbHost};
use crate::usage;
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use readpath_config::experiment::{Variant, hpb_modes};
use readpath_config::{GivenKey, size};

/// Variants at most; more would fill the memory before the first run.
const MOST: usize = 1000;
const MAP_CACHE: &str = "map_cache.size_kib";

/// Options that choose variants.
pub struct Typed<'a> {
    /// `--variant NAME:KEY=VALUE,...`.
    pub named: &'a [String],
    /// `--vary KEY=VALUE,...`.
    pub varied: &'a [String],
    /// `--policy NAME`.
    pub policy: &'a [String],
    /// `--map-cache BYTES`.
    pub map_cache: &'a [String],
    /// `--hpb`; both if neither this nor a key sets it.
    pub hpb: &'a [Hpb],
}

impl HpbHost {
    /// `--host-memory` in bytes.
    ///
    /// # Errors
    /// When it is not a size, or HPB is off.
    pub fn memory_bytes(&self) -> Result<Option<u64>> {
        let Some(text) = &self.host_memory else { return Ok(None) };
        let bytes = size(text).map_err(|e| usage(anyhow!("--host-memory: {e}")))?;
        if self.hpb == Some(Hpb::Off) {
            return Err(usage(anyhow!("--host-memory is memory for HPB, which --hpb off does not use")));
        }
        Ok(Some(bytes))
    }
}

/// One choice: its part of the name of a variant, and its keys.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Choice {
    name: Option<String>,
    keys: Vec<GivenKey>,
}

impl Typed<'_> {
    /// Whether no option chooses a variant.
    pub fn is_empty(&self) -> bool {
        let lists = [self.named, self.varied, self.policy, self.map_cache];
        lists.iter().all(|list| list.is_empty()) && self.hpb.is_empty()
    }

    /// All combinations; HPB alternates fastest.
    ///
    /// # Errors
    /// When an option is wrong, two variants have one name, or there are more than 1000.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let sizes = sizes(self.map_cache)?;
        let hpb = hpb(self.hpb)?;
        // Lists of choices, from what changes slowest to what changes fastest.
        let mut lists = vec![named(self.named)?];
        for argument in self.varied {
            lists.push(varied(argument)?);
        }
        lists.push(policies(self.policy)?);
        lists.push(sizes);
        let count = lists.iter().try_fold(1usize, |n, list| n.checked_mul(list.len())).filter(|n| *n <= MOST);
        count.ok_or_else(|| usage(anyhow!("more than {MOST} variants; compare fewer at a time")))?;
        let mut chosen: Vec<Vec<&Choice>> = vec![Vec::new()];
        for list in &lists {
            chosen = chosen.iter().flat_map(|before| list.iter().map(|c| [&before[..], &[c]].concat())).collect();
        }
        let mut variants: Vec<Variant> = Vec::new();
        for choices in &chosen {
            let keys: Vec<GivenKey> = choices.iter().flat_map(|c| c.keys.clone()).collect();
            // A policy implies how HPB is used.
            let said = keys.iter().any(|k| k.key == "hpb" || k.key == "policy");
            let neither = [Choice::default()];
            for on in if said && self.hpb.is_empty() { &neither[..] } else { &hpb } {
                // Named ones first, then HPB or the policy, then sizes, then the rest.
                let (first, rest) = choices.split_at(1);
                let (varied, last) = rest.split_at(rest.len() - 2);
                let parts = first.iter().copied().chain([on]).chain(last.iter().copied()).chain(varied.iter().copied());
                let name = parts.filter_map(|c| c.name.as_deref()).collect::<Vec<_>>().join(", ");
                if variants.iter().any(|v| v.name == name) {
                    return Err(usage(anyhow!("two variants are called {name:?}; names must differ")));
                }
                let keys = [&keys[..], &on.keys].concat();
                variants.push(Variant::of_keys(&name, &keys).map_err(usage)?);
            }
        }
        Ok(variants)
    }
}

fn named(arguments: &[String]) -> Result<Vec<Choice>> {
    let mut list: Vec<Choice> = Vec::new();
    for argument in arguments {
        let wrong = |what: &str| usage(anyhow!("--variant {argument:?}: {what}"));
        let (name, keys) =
            argument.split_once(':').ok_or_else(|| wrong("has no ':'; expected NAME:KEY=VALUE,KEY=VALUE"))?;
        let name = name.trim();
        if name.is_empty() {
            return Err(wrong("has no name before the ':'"));
        }
        if list.iter().any(|c| c.name.as_deref() == Some(name)) {
            return Err(wrong("the name is given twice; names must differ"));
        }
        let mut choice = Choice { name: Some(name.to_owned()), keys: Vec::new() };
        for part in split(keys) {
            let (key, value) = pair(part).ok_or_else(|| wrong(&format!("{part:?} is not KEY=VALUE")))?;
            choice.keys.push(GivenKey::new(key, value, format!("--variant {name}")));
        }
        list.push(choice);
    }
    if list.is_empty() {
        list.push(Choice::default());
    }
    Ok(list)
}

fn varied(argument: &str) -> Result<Vec<Choice>> {
    let wrong = |what: &str| usage(anyhow!("--vary {argument:?}: {what}"));
    let (key, values) = pair(argument).ok_or_else(|| wrong("is not KEY=VALUE,VALUE"))?;
    let mut list: Vec<Choice> = Vec::new();
    for value in split(values) {
        let name = format!("{key}={value}");
        if value.is_empty() {
            return Err(wrong("a value is empty"));
        }
        if list.iter().any(|c| c.name.as_deref() == Some(&name)) {
            return Err(wrong(&format!("{value} is given twice")));
        }
        list.push(Choice { name: Some(name), keys: vec![GivenKey::new(key, value, "--vary")] });
    }
    if list.is_empty() {
        return Err(wrong("has no value after the '='"));
    }
    Ok(list)
}

fn policies(arguments: &[String]) -> Result<Vec<Choice>> {
    let mut list: Vec<Choice> = Vec::new();
    for name in arguments {
        if list.iter().any(|c| c.name.as_ref() == Some(name)) {
            return Err(usage(anyhow!("--policy: {name} is given twice")));
        }
        let key = GivenKey::new("policy", name, "--policy");
        // Checked apart, so that an error names the policy and not the whole variant.
        Variant::of_keys("policy", std::slice::from_ref(&key)).map_err(usage)?;
        list.push(Choice { name: Some(name.clone()), keys: vec![key] });
    }
    if list.is_empty() {
        list.push(Choice::default());
    }
    Ok(list)
}

fn sizes(arguments: &[String]) -> Result<Vec<Choice>> {
    let mut list: Vec<Choice> = Vec::new();
    for text in arguments {
        let bytes = size(text).map_err(|e| usage(anyhow!("--map-cache: {e}")))?;
        if !bytes.is_multiple_of(1024) {
            return Err(usage(anyhow!("--map-cache: {bytes} bytes are not a multiple of 1024")));
        }
        let name = format!("map cache {}", size_name(bytes));
        if list.iter().any(|c| c.name.as_ref() == Some(&name)) {
            return Err(usage(anyhow!("--map-cache: {} is given twice", size_name(bytes))));
        }
        let key = GivenKey::new(MAP_CACHE, (bytes >> 10).to_string(), "--map-cache");
        list.push(Choice { name: Some(name), keys: vec![key] });
    }
    if list.is_empty() {
        list.push(Choice::default());
    }
    Ok(list)
}

fn hpb(given: &[Hpb]) -> Result<Vec<Choice>> {
    let given = if given.is_empty() { &[Hpb::Both] } else { given };
    let mut list: Vec<Choice> = Vec::new();
    for choice in given {
        let word = choice.to_possible_value();
        let modes = word.as_ref().and_then(|word| hpb_modes(word.get_name())).unwrap_or_default();
        for &(name, word) in modes {
            if list.iter().any(|c| c.name.as_deref() == Some(name)) {
                return Err(usage(anyhow!("--hpb: {word} is given twice")));
            }
            list.push(Choice { name: Some(name.to_owned()), keys: vec![GivenKey::new("hpb", word, "--hpb")] });
        }
    }
    Ok(list)
}

/// A key and its value of KEY=VALUE, without blanks around them; none for anything else.
pub fn pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim(), value.trim())).filter(|(key, _)| !key.is_empty())
}

/// Parts between commas, but for those within brackets or quotes. An empty text has no parts.
pub fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0usize, None, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

/// A size in words, exact.
fn size_name(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn made(named: &[&str], varied: &[&str], map_cache: &[&str], hpb: &[Hpb]) -> Result<Vec<Variant>, String> {
        let (named, varied, map_cache) = (texts(named), texts(varied), texts(map_cache));
        let typed = Typed { named: &named, varied: &varied, policy: &[], map_cache: &map_cache, hpb };
        typed.variants().map_err(|e| e.to_string())
    }

    fn names(list: Vec<Variant>) -> Vec<String> {
        list.into_iter().map(|v| v.name).collect()
    }

    #[test]
    fn all_combinations() {
        let of = |a: &[&str], b: &[&str], c: &[&str], d: &[Hpb]| names(made(a, b, c, d).expect("variants"));
        assert_eq!(of(&[], &[], &[], &[]), ["HPB off", "HPB dcm"]);
        assert_eq!(
            of(&[], &[], &["256K", "1M"], &[Hpb::Dcm]),
            ["HPB dcm, map cache 256 KiB", "HPB dcm, map cache 1 MiB"]
        );
        assert_eq!(of(&[], &["hpb=dcm,off,hcm"], &[], &[]), ["hpb=dcm", "hpb=off", "hpb=hcm"]);
        assert_eq!(of(&[], &[], &[], &[Hpb::All]), ["HPB off", "HPB dcm", "HPB hcm"]);
        let prototype = ["HPB prototype (host)", "HPB prototype (device)"];
        assert_eq!(of(&[], &[], &[], &[Hpb::Prototype]), prototype);
        assert_eq!(of(&[], &[], &[], &[Hpb::Off, Hpb::PrototypeDevice]), ["HPB off", prototype[1]]);
        let both = of(&["a:hpb=off", "b:x.y=1,hpb=dcm", "c:"], &["k=1,[2, 3]"], &[], &[]);
        assert_eq!(
            both,
            [
                "a, k=1",
                "a, k=[2, 3]",
                "b, k=1",
                "b, k=[2, 3]",
                "c, HPB off, k=1",
                "c, HPB dcm, k=1",
                "c, HPB off, k=[2, 3]",
                "c, HPB dcm, k=[2, 3]"
            ]
        );
        let b = &made(&["b: x.y = 1 , hpb=dcm"], &[], &[], &[]).expect("variants")[0];
        assert!(b.hpb.is_some() && b.set.len() == 1 && b.set[0].key() == "x.y");
    }

    #[test]
    fn mistakes() {
        for (named, varied, says) in [
            (&["a"][..], &[][..], "--variant \"a\": has no ':'"),
            (&[":k=1"], &[], "has no name before"),
            (&["a:k"], &[], "\"k\" is not KEY=VALUE"),
            (&["a:k=1,"], &[], "\"\" is not KEY=VALUE"),
            (&["a:k=1", "a:k=2"], &[], "the name is given twice"),
            (&["a:k=1,k=2"], &[], "--variant a: k: is given twice"),
            (&["a:k=1"], &["k=2"], "--vary: k: is given by --variant a too"),
            (&[], &["k=1,1"], "1 is given twice"),
            (&[], &["k="], "has no value after the '='"),
            (&[], &["k=1,,2"], "a value is empty"),
            (&[], &["k"], "is not KEY=VALUE,VALUE"),
            (&[], &["map_cache.size_kib=1", "map_cache.size_kib=2"], "--vary: map_cache.size_kib: is given twice"),
        ] {
            let message = made(named, varied, &[], &[]).expect_err("a mistake");
            assert!(message.contains(says), "{says}: {message}");
        }
        let message = made(&["a:hpb=off"], &[], &[], &[Hpb::Off]).expect_err("twice");
        assert!(message.contains("--hpb: hpb: is given by --variant a too"), "{message}");
        let message = made(&[], &[], &[], &[Hpb::Hcm, Hpb::All]).expect_err("twice");
        assert!(message.contains("--hpb: hcm is given twice"), "{message}");
        let message = made(&[], &["map_cache.size_kib=1"], &["1M"], &[]).expect_err("twice");
        assert!(message.contains("--map-cache: map_cache.size_kib: is given by --vary too"), "{message}");
        let many = format!("k={}", (0..1001).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
        assert!(made(&[], &[&many], &[], &[]).expect_err("many").contains("more than 1000 variants"));
    }

    #[test]
    fn commas_within_brackets_and_quotes_part_nothing() {
        assert_eq!(split("a=[1,2],b='x,y' , c={d=1,e=2}"), ["a=[1,2]", "b='x,y'", "c={d=1,e=2}"]);
        assert_eq!(split(""), Vec::<&str>::new());
        assert_eq!(split("a,"), ["a", ""]);
    }
}
