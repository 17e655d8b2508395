// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of reads by name: the kinds of NAND of [`PRESETS`], one of them with measured figures, and TOML text of a
//! user's own. Gives a [`CostModel`]; opens no file.

use crate::cost::CostModel;
use crate::nand::{self, PRESETS};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// Name and number of the format.
pub const SCHEMA: &str = "readpath-ubi-cost/1";

/// Measured figures: name, file and text.
const MEASURED: [(&str, &str, &str); 1] =
    [("mlc-16k", "presets/ubi/mlc-16k.toml", include_str!("../../../../presets/ubi/mlc-16k.toml"))];

/// An invalid preset.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct PresetError {
    /// File as the caller named it.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
    /// The fault, and what would be valid.
    pub message: String,
}

/// Contents of a preset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostPreset {
    /// Name.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Bytes of the page for which the figures of page reads hold.
    pub page_bytes: u32,
    /// Bytes of an ECC step.
    pub ecc_step_bytes: u32,
    /// Wait of a part read of one step, and of a page read, in ns.
    pub wait_ns: [u64; 2],
    /// CPU of a part read, and of a page read, in ns.
    pub cpu_ns: [u64; 2],
    /// CPU time of a read that the one page of the NAND core serves, in ns.
    pub core_hit_ns: u64,
    /// Whether CPU times are known; if not, figures include waiting only.
    pub cpu_is_known: bool,
    /// CPU time of the task find besides its reads, in ms.
    pub find_ms: u32,
    /// CPU time of the task rm besides its reads, in ms.
    pub rm_ms: u32,
    /// Time of boot besides its reads, in ms.
    pub boot_ms: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<String>,
    name: String,
    description: String,
    nand: Nand,
    wait: Reads,
    cpu: Cpu,
    base_cpu: Base,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nand {
    page_bytes: Spanned<u32>,
    ecc_step_bytes: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reads {
    part_read_us: Spanned<u32>,
    page_read_us: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cpu {
    part_read_us: Spanned<u32>,
    page_read_us: Spanned<u32>,
    core_hit_us: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    find_ms: u32,
    rm_ms: u32,
    boot_ms: u32,
}

/// The longest time of a single read: 1 s.
const MOST_US: u32 = 1_000_000;

impl CostPreset {
    /// Reads a preset; `file` is its name in messages.
    ///
    /// # Errors
    /// The first key that is missing, unknown or out of range, with its place.
    pub fn parse(text: &str, file: &str) -> Result<CostPreset, PresetError> {
        let fault = |span: Range<usize>, message: String| {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
            PresetError { file: file.to_owned(), line, column, message }
        };
        let f: File = toml::from_str(text)
            .map_err(|e| fault(e.span().unwrap_or(0..0), e.message().lines().collect::<Vec<_>>().join(" ")))?;
        if f.schema.get_ref() != SCHEMA {
            let message = format!("schema: expected \"{SCHEMA}\", found \"{}\"", f.schema.get_ref());
            return Err(fault(f.schema.span(), message));
        }
        let size = |key: &str, value: &Spanned<u32>, least: u32| {
            let n = *value.get_ref();
            if n.is_power_of_two() && (least..=1 << 16).contains(&n) {
                return Ok(n);
            }
            Err(fault(value.span(), format!("{key}: expected a power of two from {least} to 65536, found {n}")))
        };
        let page_bytes = size("page_bytes", &f.nand.page_bytes, 512)?;
        let ecc_step_bytes = size("ecc_step_bytes", &f.nand.ecc_step_bytes, 256)?;
        if ecc_step_bytes >= page_bytes {
            let message =
                format!("ecc_step_bytes: expected less than page_bytes, {page_bytes}, found {ecc_step_bytes}");
            return Err(fault(f.nand.ecc_step_bytes.span(), message));
        }
        let at_most = |key: &str, value: &Spanned<u32>| match *value.get_ref() {
            us if us <= MOST_US => Ok(us),
            us => Err(fault(value.span(), format!("{key}: expected 0 to {MOST_US}, found {us}"))),
        };
        let pair = |part: &Spanned<u32>, page: &Spanned<u32>| {
            let (part, page_us) = (at_most("part_read_us", part)?, *page.get_ref());
            if !(part..=MOST_US).contains(&page_us) {
                let message = format!("page_read_us: expected {part} (part_read_us) to {MOST_US}, found {page_us}");
                return Err(fault(page.span(), message));
            }
            Ok((part, page_us))
        };
        let wait_us = pair(&f.wait.part_read_us, &f.wait.page_read_us)?;
        let cpu_us = pair(&f.cpu.part_read_us, &f.cpu.page_read_us)?;
        let core_hit_us = f.cpu.core_hit_us.as_ref().map_or(Ok(0), |us| at_most("core_hit_us", us))?;
        // The fixed share of a part read of one step must not be negative.
        let steps_between = u64::from(page_bytes / ecc_step_bytes - 1);
        let step_ns = u64::from(wait_us.1 - wait_us.0) * 1000 / steps_between;
        if step_ns > u64::from(wait_us.0) * 1000 {
            let most = u64::from(wait_us.0) * (steps_between + 1);
            let message = format!(
                "page_read_us: expected at most {most}, {} times part_read_us, since a page is so many ECC steps; \
                 found {}",
                steps_between + 1,
                wait_us.1
            );
            return Err(fault(f.wait.page_read_us.span(), message));
        }
        if wait_us.0 + cpu_us.0 == 0 {
            return Err(fault(f.wait.part_read_us.span(), "part_read_us: expected more than 0 for wait or CPU".into()));
        }
        let ns = |(part, page): (u32, u32)| [part, page].map(|us| u64::from(us) * 1000);
        let Base { find_ms, rm_ms, boot_ms } = f.base_cpu;
        let (name, description) = (f.name, f.description);
        Ok(CostPreset {
            name,
            description,
            page_bytes,
            ecc_step_bytes,
            wait_ns: ns(wait_us),
            cpu_ns: ns(cpu_us),
            core_hit_ns: u64::from(core_hit_us) * 1000,
            cpu_is_known: true,
            find_ms,
            rm_ms,
            boot_ms,
        })
    }

    /// The kind of NAND of that name.
    pub fn builtin(name: &str) -> Option<CostPreset> {
        match MEASURED.into_iter().find(|(n, ..)| *n == name) {
            Some((_, file, text)) => Some(CostPreset::parse(text, file).expect("built-in presets are valid")),
            None => nand::preset(name).map(CostPreset::of_nand),
        }
    }

    /// Names of all kinds of NAND.
    pub fn names() -> String {
        PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
    }

    /// The kind of NAND for pages of `page_bytes`: the first with such pages, and with or without sub-pages as
    /// `has_subpages` says, if known; otherwise the one with the nearest page size, whose figures are then scaled.
    pub fn for_pages(page_bytes: u32, has_subpages: Option<bool>) -> CostPreset {
        let apart = |p: &nand::Preset| p.geometry.page_bytes.ilog2().abs_diff(page_bytes.ilog2());
        let other = |p: &nand::Preset| {
            has_subpages.is_some_and(|has| has != (p.geometry.subpage_bytes < p.geometry.page_bytes))
        };
        let nearest = PRESETS.iter().min_by_key(|p| (apart(p), other(p))).expect("there are kinds");
        CostPreset::builtin(nearest.name).expect("it is one of them")
    }

    /// Waiting times of a NAND. Its CPU times have not been measured.
    fn of_nand(nand: &nand::Preset) -> CostPreset {
        let page_bytes = nand.geometry.page_bytes;
        let ecc_step_bytes = nand.timing.ecc_step_bytes;
        CostPreset {
            name: nand.name.to_owned(),
            description: "waiting for a NAND as in data sheets of its class; CPU time is not known".to_owned(),
            page_bytes,
            ecc_step_bytes,
            wait_ns: [ecc_step_bytes, page_bytes].map(|bytes| nand.timing.read(&nand.geometry, 0, bytes).0),
            cpu_ns: [0; 2],
            core_hit_ns: 0,
            cpu_is_known: false,
            find_ms: 0,
            rm_ms: 0,
            boot_ms: 0,
        }
    }

    /// The name, and the caveats of the figures for pages of `page_bytes`.
    pub fn described(&self, page_bytes: u32) -> String {
        let mut text = self.name.clone();
        if self.page_bytes != page_bytes {
            text += &format!(
                ", SCALED from pages of {} bytes to {page_bytes} by the number of ECC steps, not measured",
                self.page_bytes
            );
        }
        if !self.cpu_is_known {
            text += ", waiting only: the CPU time was not measured";
        }
        text
    }

    /// The model for pages of `page_bytes`, a power of two. For a page size other than the preset's, the cost of a
    /// page read beyond a part read is in proportion to the number of steps.
    pub fn model(&self, page_bytes: u32) -> CostModel {
        let steps_between = u64::from(self.page_bytes / self.ecc_step_bytes - 1);
        let step_bytes = self.ecc_step_bytes.min(page_bytes);
        let steps = u64::from(page_bytes / step_bytes) - 1;
        let wait_step_ns = (self.wait_ns[1] - self.wait_ns[0]) / steps_between;
        CostModel {
            page_bytes,
            step_bytes,
            // Presets with a step that takes longer than a part read are refused.
            wait_fixed_ns: self.wait_ns[0] - wait_step_ns,
            wait_step_ns,
            cpu_part_ns: self.cpu_ns[0],
            cpu_page_ns: self.cpu_ns[0] + (self.cpu_ns[1] - self.cpu_ns[0]) * steps / steps_between,
            cpu_core_hit_ns: self.core_hit_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;

    #[test]
    fn the_preset_gives_the_figures_it_names() {
        for (name, file, text) in MEASURED {
            assert_eq!(CostPreset::parse(text, file).unwrap().name, name);
        }
        let preset = CostPreset::builtin("mlc-16k").unwrap();
        let model = preset.model(16384);
        assert_eq!(model.page(), Cost { wait_ns: 920_000, cpu_ns: 380_000 });
        assert_eq!(model.steps(1), Cost { wait_ns: 560_000, cpu_ns: 280_000 });
        assert_eq!(model.wait_fixed_ns, 536_000);
        let small = preset.model(2048);
        assert_eq!(small.page(), Cost { wait_ns: 584_000, cpu_ns: 280_000 + 6_666 });
        assert_eq!(preset.model(512).page(), preset.model(512).steps(1));
        // A file without this key charges nothing.
        assert_eq!(model.cpu_core_hit_ns, 20_000);
        let without = MEASURED[0].2.replace("core_hit_us = 20\n", "");
        assert_eq!(CostPreset::parse(&without, "mine.toml").unwrap().core_hit_ns, 0);
    }

    /// Every part of the program uses one table of read costs.
    #[test]
    fn the_kind_of_nand_follows_from_the_page() {
        let kind = |page_bytes, has_subpages| CostPreset::for_pages(page_bytes, has_subpages).name;
        for preset in PRESETS {
            let cost = CostPreset::builtin(preset.name).unwrap();
            assert_eq!(
                (cost.page_bytes, cost.ecc_step_bytes),
                (preset.geometry.page_bytes, preset.timing.ecc_step_bytes)
            );
            let subpages = preset.geometry.subpage_bytes < preset.geometry.page_bytes;
            assert_eq!(kind(preset.geometry.page_bytes, Some(subpages)), preset.name);
            // The measured figures of one kind fit those from data sheets, which the model uses for the others.
            let sheet = CostPreset::of_nand(&preset).wait_ns;
            assert!(cost.wait_ns.iter().zip(sheet).all(|(a, b)| a.abs_diff(b) < 2_000), "{}: {sheet:?}", preset.name);
        }
        assert_eq!([kind(2048, None), kind(4096, None), kind(16384, None)], ["slc-2k", "slc-4k", "mlc-16k"]);
        assert_eq!([kind(1024, None), kind(65536, None)], ["slc-512", "mlc-16k"]);
        let slc = CostPreset::builtin("slc-2k").unwrap();
        let model = slc.model(2048);
        // Call 10 us, page 15 us, tR 25 us, 7 cycles and 519 bytes of 25 ns for each step.
        assert_eq!(model.steps(1), Cost { wait_ns: 50_000 + 526 * 25, cpu_ns: 0 });
        assert_eq!(model.page(), Cost { wait_ns: 50_000 + (7 + 4 * 519) * 25, cpu_ns: 0 });
        assert_eq!(slc.described(2048), "slc-2k, waiting only: the CPU time was not measured");
        let described = CostPreset::builtin("mlc-16k").unwrap().described(2048);
        assert!(described.starts_with("mlc-16k, SCALED from pages of 16384 bytes to 2048"), "{described}");
    }

    #[test]
    fn errors_name_the_place() {
        let good = MEASURED[0].2;
        for (from, to, says) in [
            (
                "page_bytes = 16384",
                "page_bytes = 16000",
                "page_bytes: expected a power of two from 512 to 65536, found 16000",
            ),
            ("ecc_step_bytes = 1024", "ecc_step_bytes = 16384", "ecc_step_bytes: expected less than page_bytes, 16384"),
            (
                "page_read_us = 920",
                "page_read_us = 92",
                "page_read_us: expected 560 (part_read_us) to 1000000, found 92",
            ),
            ("part_read_us = 560", "part_read_us = 5000000", "part_read_us: expected 0 to 1000000, found 5000000"),
            (
                "page_read_us = 920",
                "page_read_us = 8961",
                "page_read_us: expected at most 8960, 16 times part_read_us, since a page is so many ECC steps; found \
                 8961",
            ),
            ("core_hit_us = 20", "core_hit_us = 1000001", "core_hit_us: expected 0 to 1000000, found 1000001"),
            ("find_ms", "fund_ms", "unknown field `fund_ms`"),
            ("readpath-ubi-cost/1", "readpath-ubi-cost/2", "schema: expected \"readpath-ubi-cost/1\""),
        ] {
            let text = good.replacen(from, to, 1);
            let line = text.lines().position(|l| l.contains(to)).unwrap() + 1;
            let error = CostPreset::parse(&text, "mine.toml").unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }
}
