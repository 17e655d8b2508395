// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants from options: named ones, and every combination of varied keys. Meaning and bounds of keys are checked by
//! `readpath-config`.

use crate::args::{Hosts, Hpb};
use crate::usage;
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use readpath_config::experiment::{Variant, hpb_mode};
use readpath_config::{GivenKey, size};

/// Variants at most; more would fill the memory before the first run.
const MOST: usize = 1000;

/// One choice: its part of the name of a variant, and its keys.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Choice {
    name: Option<String>,
    keys: Vec<GivenKey>,
}

impl Hosts {
    /// Whether no option chooses a variant.
    pub fn is_empty(&self) -> bool {
        self.vary.is_empty() && self.policy.is_empty() && self.hpb.is_empty() && self.host_memory.is_none()
    }

    /// All combinations; HPB alternates fastest.
    ///
    /// # Errors
    /// When an option is wrong, two variants have one name, or there are more than 1000.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let memory = self.memory_bytes()?;
        let hpb = hpb(&self.hpb)?;
        // Keys of the device have no colon.
        let is_whole = |argument: &&String| argument.split('=').next().is_some_and(|key| key.contains(':'));
        let (whole, of_keys): (Vec<&String>, Vec<&String>) = self.vary.iter().partition(is_whole);
        // Lists of choices, from what changes slowest to what changes fastest.
        let mut lists = vec![named(&whole)?];
        for argument in of_keys {
            lists.push(varied(argument)?);
        }
        lists.push(policies(&self.policy)?);
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
                // Named ones first, then HPB or the policy, then the rest.
                let [first, varied @ .., policy] = &choices[..] else { continue };
                let parts = [*first, on, *policy].into_iter().chain(varied.iter().copied());
                let name = parts.filter_map(|c| c.name.as_deref()).collect::<Vec<_>>().join(", ");
                if variants.iter().any(|v| v.name == name) {
                    return Err(usage(anyhow!("two variants are called {name:?}; names must differ")));
                }
                let mut variant = Variant::of_keys(&name, &[&keys[..], &on.keys].concat()).map_err(usage)?;
                if let (Some(hpb), Some(bytes)) = (&mut variant.hpb, memory) {
                    if hpb.memory_bytes.or(hpb.max_map_bytes).is_some() {
                        return Err(usage(anyhow!("--host-memory: --vary limits the memory of {name:?} already")));
                    }
                    hpb.memory_bytes = Some(bytes);
                }
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    /// `--host-memory` in bytes.
    fn memory_bytes(&self) -> Result<Option<u64>> {
        let Some(text) = &self.host_memory else { return Ok(None) };
        let bytes = size(text).map_err(|e| usage(anyhow!("--host-memory: {e}")))?;
        if self.hpb == [Hpb::Off] {
            return Err(usage(anyhow!("--host-memory is memory for HPB, which --hpb off does not use")));
        }
        Ok(Some(bytes))
    }
}

fn named(arguments: &[&String]) -> Result<Vec<Choice>> {
    let mut list: Vec<Choice> = Vec::new();
    for argument in arguments {
        let wrong = |what: &str| usage(anyhow!("--vary {argument:?}: {what}"));
        let (name, keys) = argument.split_once(':').unwrap_or((argument, ""));
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
            choice.keys.push(GivenKey::new(key, value, format!("--vary {name}")));
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
    let (key, values) = pair(argument).ok_or_else(|| wrong("is not KEY=VALUE,VALUE or NAME:KEY=VALUE,KEY=VALUE"))?;
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

fn hpb(given: &[Hpb]) -> Result<Vec<Choice>> {
    let given = if given.is_empty() { &[Hpb::Off, Hpb::Dcm] } else { given };
    let mut list: Vec<Choice> = Vec::new();
    for choice in given {
        let word = choice.to_possible_value();
        let Some((name, word)) = word.as_ref().and_then(|word| hpb_mode(word.get_name())) else { continue };
        if list.iter().any(|c| c.name.as_deref() == Some(name)) {
            return Err(usage(anyhow!("--hpb: {word} is given twice")));
        }
        list.push(Choice { name: Some(name.to_owned()), keys: vec![GivenKey::new("hpb", word, "--hpb")] });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn made(vary: &[&str], hpb: &[Hpb], host_memory: Option<&str>) -> Result<Vec<Variant>, String> {
        let host_memory = host_memory.map(str::to_owned);
        let hosts = Hosts { vary: texts(vary), policy: Vec::new(), hpb: hpb.to_vec(), host_memory };
        hosts.variants().map_err(|e| e.to_string())
    }

    fn names(list: Vec<Variant>) -> Vec<String> {
        list.into_iter().map(|v| v.name).collect()
    }

    #[test]
    fn all_combinations() {
        let of = |vary: &[&str], hpb: &[Hpb]| names(made(vary, hpb, None).expect("variants"));
        assert_eq!(of(&[], &[]), ["HPB off", "HPB dcm"]);
        assert_eq!(of(&["k=1,2"], &[Hpb::Dcm]), ["HPB dcm, k=1", "HPB dcm, k=2"]);
        assert_eq!(of(&["hpb=dcm,off,hcm"], &[]), ["hpb=dcm", "hpb=off", "hpb=hcm"]);
        assert_eq!(of(&[], &[Hpb::Off, Hpb::PrototypeDevice]), ["HPB off", "HPB prototype (device)"]);
        let both = of(&["a:hpb=off", "k=1,[2, 3]", "b:x.y=1,hpb=dcm", "c:"], &[]);
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
        let b = &made(&["b: x.y = 1 , hpb=dcm"], &[], None).expect("variants")[0];
        assert!(b.hpb.is_some() && b.set.len() == 1 && b.set[0].key() == "x.y");
    }

    #[test]
    fn mistakes() {
        for (vary, says) in [
            (&[":k=1"][..], "has no name before"),
            (&["a:k"], "\"k\" is not KEY=VALUE"),
            (&["a:k=1,"], "\"\" is not KEY=VALUE"),
            (&["a:k=1", "a:k=2"], "the name is given twice"),
            (&["a:k=1,k=2"], "--vary a: k: is given twice"),
            (&["a:k=1", "k=2"], "--vary: k: is given by --vary a too"),
            (&["k=1,1"], "1 is given twice"),
            (&["k="], "has no value after the '='"),
            (&["k=1,,2"], "a value is empty"),
            (&["k"], "--vary \"k\": is not KEY=VALUE,VALUE or NAME:KEY=VALUE,KEY=VALUE"),
            (&["map_cache.size_kib=1", "map_cache.size_kib=2"], "--vary: map_cache.size_kib: is given twice"),
        ] {
            let message = made(vary, &[], None).expect_err("a mistake");
            assert!(message.contains(says), "{says}: {message}");
        }
        let message = made(&["a:hpb=off"], &[Hpb::Off], None).expect_err("twice");
        assert!(message.contains("--hpb: hpb: is given by --vary a too"), "{message}");
        let message = made(&[], &[Hpb::Hcm, Hpb::Hcm], None).expect_err("twice");
        assert!(message.contains("--hpb: hcm is given twice"), "{message}");
        for key in ["memory", "max_map"] {
            let message = made(&[&format!("{key}=1M")], &[Hpb::Dcm], Some("2M")).expect_err("twice");
            let says = format!("--host-memory: --vary limits the memory of \"HPB dcm, {key}=1M\" already");
            assert_eq!(message, says);
        }
        let hosts = made(&[], &[], Some("2M")).expect("variants");
        let memory: Vec<Option<u64>> = hosts.iter().map(|v| v.hpb.and_then(|hpb| hpb.memory_bytes)).collect();
        assert_eq!(memory, [None, Some(2 << 20)]);
        let many = format!("k={}", (0..1001).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
        assert!(made(&[&many], &[], None).expect_err("many").contains("more than 1000 variants"));
    }

    #[test]
    fn commas_within_brackets_and_quotes_part_nothing() {
        assert_eq!(split("a=[1,2],b='x,y' , c={d=1,e=2}"), ["a=[1,2]", "b='x,y'", "c={d=1,e=2}"]);
        assert_eq!(split(""), Vec::<&str>::new());
        assert_eq!(split("a,"), ["a", ""]);
    }
}
