// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of caches for users, and their meaning.

use crate::cache::Rules;

/// A kind of cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// No cache: every read moves only the ECC steps that it needs.
    None,
    /// The one page of the NAND core, without part reads.
    NandPage,
    /// The RFC of 2016 with one line.
    OneLine,
    /// The RFC of 2016: erase block modulo the number of lines.
    PebHash,
    /// Least recently used.
    Lru,
    /// Sets of four lines.
    SetAssoc,
    /// Second chance on a ring.
    Clock,
    /// 2Q.
    TwoQ,
    /// ARC.
    Arc,
    /// Learns which page is least likely to be touched again.
    Learned,
    /// As `Learned`, but fills only if that pays.
    Adaptive,
    /// Belady's optimum.
    Opt,
}

impl Kind {
    /// All kinds with their names and descriptions, in the order of a table.
    pub const ALL: [(Kind, &'static str, &'static str); 12] = [
        (Kind::None, "none", "no cache, part reads"),
        (Kind::NandPage, "nand-page", "the one page of the NAND core, no part reads"),
        (Kind::OneLine, "one-line", "the RFC of 2016 with one line"),
        (Kind::PebHash, "peb-hash", "the RFC of 2016: the erase block selects the line"),
        (Kind::Lru, "lru", "least recently used"),
        (Kind::SetAssoc, "set-assoc", "sets of four lines, least recently used within"),
        (Kind::Clock, "clock", "second chance on a ring"),
        (Kind::TwoQ, "2q", "2Q (Johnson and Shasha, 1994)"),
        (Kind::Arc, "arc", "ARC (Megiddo and Modha, 2003)"),
        (Kind::Learned, "learned", "learns which page is least likely to be touched again"),
        (Kind::Adaptive, "adaptive", "learned, and bypasses itself where caching does not pay"),
        (Kind::Opt, "opt", "Belady's optimum, which knows the future"),
    ];

    /// Name for users.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// Whether its number of lines can be chosen.
    pub fn has_lines(self) -> bool {
        !matches!(self, Kind::None | Kind::NandPage | Kind::OneLine)
    }
}

/// A cache with its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Kind.
    pub kind: Kind,
    /// Lines; at most [`Variant::MOST_LINES`].
    pub lines: u32,
    /// Which reads it serves.
    pub rules: Rules,
    /// A page gets a line on its second touch only.
    pub second_touch: bool,
}

impl Variant {
    /// The most lines: 2^20.
    pub const MOST_LINES: u32 = 1 << 20;

    /// Parses the name of a kind, then `+split` to split reads into pages, and for `lru` also `+second` to give a
    /// page a line on its second touch.
    ///
    /// # Errors
    /// The fault of the text, in words.
    pub fn parse(text: &str, lines: u32) -> Result<Variant, String> {
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let Some(&(kind, ..)) = Kind::ALL.iter().find(|(_, n, _)| *n == name) else {
            let names: Vec<&str> = Kind::ALL.iter().map(|(_, n, _)| *n).collect();
            return Err(format!("\"{name}\" is not a cache; there are {}", names.join(", ")));
        };
        if !(1..=Variant::MOST_LINES).contains(&lines) {
            return Err(format!("{lines} lines: expected 1 to {}", Variant::MOST_LINES));
        }
        let lines = match kind {
            Kind::None | Kind::NandPage => 0,
            Kind::OneLine => 1,
            _ => lines,
        };
        let mut variant = Variant { kind, lines, rules: Rules::Patch, second_touch: false };
        for part in parts {
            match part {
                "split" if !matches!(kind, Kind::None | Kind::NandPage) => variant.rules = Rules::Split,
                "second" if kind == Kind::Lru => variant.second_touch = true,
                _ => {
                    let has = match kind {
                        Kind::None | Kind::NandPage => "it has none",
                        Kind::Lru => "there are +split and +second",
                        _ => "there is +split",
                    };
                    return Err(format!("\"{name}\" has no variant \"+{part}\"; {has}"));
                }
            }
        }
        Ok(variant)
    }

    /// Name without the number of lines.
    pub fn name(&self) -> String {
        let mut name = self.kind.name().to_owned();
        if self.second_touch {
            name.push_str("+second");
        }
        if self.rules == Rules::Split {
            name.push_str("+split");
        }
        name
    }

    /// Whether every read moves whole pages: the NAND core caches a page only if the chip has no part reads.
    pub(crate) fn whole_pages(&self) -> bool {
        self.kind == Kind::NandPage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for text in
            ["none", "nand-page", "one-line", "peb-hash", "lru", "lru+second", "lru+second+split", "adaptive+split"]
        {
            assert_eq!(Variant::parse(text, 61).unwrap().name(), text);
        }
        assert_eq!(Variant::parse("one-line", 61).unwrap().lines, 1);
        for (text, lines, says) in [
            ("lruu", 61, "\"lruu\" is not a cache; there are none, nand-page,"),
            ("none+split", 61, "\"none\" has no variant \"+split\"; it has none"),
            ("arc+second", 61, "\"arc\" has no variant \"+second\""),
            ("lru", 0, "0 lines: expected 1 to 1048576"),
        ] {
            let error = Variant::parse(text, lines).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
