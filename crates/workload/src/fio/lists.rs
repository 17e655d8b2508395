// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of fio options that choose: patterns, size lists, distributions, engines. Knows no option but the one that a
//! function is named after.

use super::value;
use crate::{Ends, Offsets, Sizes, Zone};

/// Most weights of a split and most zones, as in fio.
const MAX_SPLIT: usize = 64;
const MAX_ZONES: usize = 256;

/// Most percentiles, as in fio.
const MAX_PERCENTILES: usize = 20;

/// fio's `percentile_list`: numbers above 0 and at most 100, separated by colons; ascending.
pub(super) fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let number = |word: &str| match word.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err(format!("\"{}\" must be a number above 0 and at most 100; colons separate several", word.trim())),
    };
    let mut list = text.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
    if list.len() > MAX_PERCENTILES {
        return Err(format!("has {} percentiles; fio takes at most {MAX_PERCENTILES}", list.len()));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Read,
    Write,
    Trim,
    Mix,
    TrimWrite,
}

#[derive(Clone)]
pub(super) struct Pattern {
    pub mode: Mode,
    pub random: bool,
    /// Requests from one random place on.
    pub run: u32,
    /// Blocks left out after each sequential request; below zero it goes back.
    pub skip_blocks: i64,
}

impl Default for Pattern {
    fn default() -> Pattern {
        Pattern { mode: Mode::Read, random: false, run: 1, skip_blocks: 0 }
    }
}

pub(super) fn pattern(text: &str, kb: u64) -> Result<Pattern, String> {
    let (name, postfix) = match text.split_once(':') {
        Some((name, postfix)) => (name.trim(), Some(postfix.trim())),
        None => (text, None),
    };
    let (mode, random) = match name {
        "read" => (Mode::Read, false),
        "write" => (Mode::Write, false),
        "trim" => (Mode::Trim, false),
        "rw" | "readwrite" => (Mode::Mix, false),
        "trimwrite" => (Mode::TrimWrite, false),
        "randread" => (Mode::Read, true),
        "randwrite" => (Mode::Write, true),
        "randtrim" => (Mode::Trim, true),
        "randrw" => (Mode::Mix, true),
        "randtrimwrite" => (Mode::TrimWrite, true),
        _ => {
            return Err(format!(
                "\"{name}\" must be read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
                 randtrimwrite"
            ));
        }
    };
    let mut pattern = Pattern { mode, random, ..Pattern::default() };
    match postfix {
        None => {}
        Some(n) if random => pattern.run = value::count(n, 1, u64::from(u32::MAX))? as u32,
        Some(n) => {
            let skip = value::bytes(n.trim_start_matches('-'), kb)?;
            if !skip.is_multiple_of(4096) || skip / 4096 > u64::from(u32::MAX) {
                return Err(format!("the gap of {skip} bytes must be a multiple of 4096"));
            }
            pattern.skip_blocks = (skip / 4096) as i64 * if n.starts_with('-') { -1 } else { 1 };
        }
    }
    Ok(pattern)
}

/// Sets what `random_distribution=` says of each kind.
pub(super) fn distribution(text: &str, out: &mut [Option<Offsets>; 3]) -> Result<(), String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let parameter = || match rest.split_once(':') {
        Some(_) => Err(format!("a centre for {name} is not supported")),
        None => value::float(rest.trim()),
    };
    match name {
        "random" => *out = [None, None, None],
        "zipf" => {
            let theta = parameter()?;
            if !(theta > 0.0 && theta <= 10.0) {
                return Err(format!("the exponent {theta} must be above 0 and at most 10"));
            }
            *out = std::array::from_fn(|_| Some(Offsets::Zipf(theta)));
        }
        "pareto" => {
            let h = parameter()?;
            if !(h > 0.0 && h < 1.0) {
                return Err(format!("{h} must lie between 0 and 1"));
            }
            *out = std::array::from_fn(|_| Some(Offsets::Pareto(h)));
        }
        "zoned" => value::per_kind(rest, out, |t| zones(t).map(|z| Some(Offsets::Zoned(z))))?,
        "normal" | "zoned_abs" => return Err(format!("{name} is not supported; random, zipf, pareto and zoned are")),
        _ => return Err(format!("\"{name}\" must be random, zipf:THETA, pareto:H or zoned:ACCESSES/SIZE:...")),
    }
    Ok(())
}

pub(super) fn size_range(text: &str, kb: u64) -> Result<Sizes, String> {
    let Some((min, max)) = text.split_once('-') else {
        return Err(format!("\"{text}\" must be a range such as 4k-64k"));
    };
    let (min, max) = (value::block_size(min.trim(), kb)?, value::block_size(max.trim(), kb)?);
    if min > max {
        return Err(format!("the range \"{text}\" goes from high to low"));
    }
    Ok(Sizes::Range { min, max })
}

/// A list `value/percent:...`; values without a percentage share what is left.
fn shares<T>(text: &str, max: usize, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<(T, u32)>, String> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let (value, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent.trim() {
            "" => None,
            p => Some(value::count(p, 0, 100)? as u32),
        };
        list.push((parse(value.trim())?, percent));
        if list.len() > max {
            return Err(format!("more than {max} entries"));
        }
    }
    let given: u32 = list.iter().filter_map(|e| e.1).sum();
    let open = list.iter().filter(|e| e.1.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!("the percentages sum to {given}, not 100"));
    }
    // The remainder goes to the first values without a percentage.
    let mut left = 100 - given;
    let mut places = open;
    let fill = |(value, percent): (T, Option<u32>)| {
        let percent = percent.unwrap_or_else(|| {
            let share = left.div_ceil(places);
            left -= share;
            places -= 1;
            share
        });
        (value, percent)
    };
    Ok(list.into_iter().map(fill).collect())
}

pub(super) fn size_split(text: &str, kb: u64) -> Result<Sizes, String> {
    shares(text, MAX_SPLIT, |t| value::block_size(t, kb)).map(Sizes::Split)
}

/// Zones `accesses/size:...`; sizes that are left out share what is left of the file.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let list = shares(text, MAX_ZONES, |t| value::count(t, 0, 100))?;
    let accesses: u64 = list.iter().map(|z| z.0).sum();
    if accesses != 100 {
        return Err(format!("the shares of accesses sum to {accesses}, not 100"));
    }
    Ok(list.into_iter().map(|(a, s)| Zone { access_percent: a as u8, size_percent: s as u8 }).collect())
}

/// Which jobs end with a job under `exitall`.
pub(super) fn ends(text: &str) -> Result<Ends, String> {
    match text {
        "group" => Ok(Ends::Group),
        "stonewall" => Ok(Ends::Phase),
        "all" => Ok(Ends::Everything),
        _ => Err(format!("\"{text}\" must be group, stonewall or all")),
    }
}

/// An engine that reads and writes a block device.
#[derive(Clone)]
pub(super) struct Engine {
    pub name: String,
    /// Whether it keeps several requests in flight.
    pub queues: bool,
}

/// The engine that `ioengine=` names; a path may follow its name after a colon.
pub(super) fn engine(text: &str) -> Result<Engine, String> {
    let name = text.split(':').next().unwrap_or_default();
    let queues = match name {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" | "splice" => false,
        "libaio" | "posixaio" | "solarisaio" | "windowsaio" | "io_uring" | "io_uring_cmd" | "sg" | "libblkio"
        | "xnvme" | "nvme" | "spdk" | "null" | "aio" | "linuxaio" => true,
        _ => return Err(format!("the engine \"{name}\" does not read and write a block device, or is not known")),
    };
    Ok(Engine { name: name.to_owned(), queues })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_shares_sum_to_100() {
        assert_eq!(size_split("4k:8k:16k", 1024), Ok(Sizes::Split(vec![(1, 34), (2, 33), (4, 33)])));
        assert_eq!(size_split("4k/90:8k:16k", 1024), Ok(Sizes::Split(vec![(1, 90), (2, 5), (4, 5)])));
    }
}
