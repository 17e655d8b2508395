// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workload of an experiment, as plain data, and its keys. It knows nothing of requests.

use super::launches::{self, LaunchKeys};
use crate::error::Result;
use crate::keys::{
    Key, KeyValue, Keys, filled, gib, keys, list, multiple, names, open_table, table, text, texts, whole, words,
};
use crate::tree::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The workload.
#[derive(Clone, PartialEq, Debug)]
pub enum Workload {
    /// iozone in throughput mode.
    Iozone(Iozone),
    /// A fio job file.
    Fio(Fio),
    /// Launches of apps.
    Launches(LaunchKeys),
}

/// An iozone run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Iozone {
    /// A command line as typed, without the program's name.
    Args {
        /// Name of the case.
        case: String,
        /// The arguments.
        args: Vec<String>,
    },
    /// Random reads over ranges of several sizes.
    Cases {
        /// Threads, each with a file of its own.
        threads: u32,
        /// Size of a read.
        record_kib: u32,
        /// The ranges.
        cases: Vec<IozoneCase>,
    },
}

/// A range that is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IozoneCase {
    /// Name of the case.
    pub name: String,
    /// Bytes of all files together.
    pub total_bytes: u64,
}

/// A fio run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fio {
    /// A job file.
    File {
        /// Name of the case.
        case: String,
        /// Path relative to the experiment file.
        job: PathBuf,
        /// Options typed beside it, as a section of defaults; empty for none.
        defaults: String,
    },
    /// The text of a job file.
    Text {
        /// Name of the case.
        case: String,
        /// The text.
        text: String,
    },
    /// The text of a job file with placeholders, `${NAME}`, that each case replaces.
    Cases {
        /// The text.
        text: String,
        /// The replacements of each case.
        cases: Vec<FioCase>,
    },
}

/// Replacements of a case in the text of a job file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioCase {
    /// Name of the case.
    pub name: String,
    /// For each placeholder, a name in capital letters, its replacement.
    pub with: BTreeMap<String, String>,
}

impl FioCase {
    /// The text of the job file in this case.
    pub fn text(&self, text: &str) -> String {
        self.with.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
    }
}

impl Workload {
    /// Names of the cases, in order.
    pub fn cases(&self) -> Vec<&str> {
        match self {
            Workload::Iozone(Iozone::Cases { cases, .. }) => cases.iter().map(|c| c.name.as_str()).collect(),
            Workload::Iozone(Iozone::Args { case, .. })
            | Workload::Fio(Fio::File { case, .. } | Fio::Text { case, .. }) => vec![case],
            Workload::Fio(Fio::Cases { cases, .. }) => cases.iter().map(|c| c.name.as_str()).collect(),
            Workload::Launches(launches) => launches.cycles.iter().map(String::as_str).collect(),
        }
    }

    /// Names of the runs of each variant. Cycles of launches are cases of one run.
    pub fn runs(&self) -> Vec<&str> {
        match self {
            Workload::Launches(_) => vec!["launches"],
            _ => self.cases(),
        }
    }
}

const KINDS: [(&str, &str); 3] = [("iozone", "iozone"), ("fio", "fio"), ("launches", "launches")];
const AN_EARLIER_CASE: &str = "an earlier case";

/// `[workload]`.
pub(crate) fn workload(k: &mut Keys<Workload>) -> Result<Workload> {
    let kind = Key::new("kind", "kind of workload; it decides which other keys apply");
    let kind = k.key(kind, words(KINDS), |workload| match workload {
        Workload::Iozone(_) => "iozone",
        Workload::Fio(_) => "fio",
        Workload::Launches(_) => "launches",
    })?;
    let kinds = [("iozone", names(iozone)), ("fio", names(fio)), ("launches", names(launches::launches))];
    let (own, others): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|(name, _)| *name == kind);
    let others = others.into_iter().flat_map(|(_, keys)| keys).filter(|key| !own[0].1.contains(key));
    k.refuse_keys(&others.collect::<Vec<_>>(), &format!("has no meaning for kind = {kind:?}"))?;
    let of_iozone = |workload: &Workload| match workload {
        Workload::Iozone(iozone) => Some(iozone.clone()),
        _ => None,
    };
    let of_fio = |workload: &Workload| match workload {
        Workload::Fio(fio) => Some(fio.clone()),
        _ => None,
    };
    let of_launches = |workload: &Workload| match workload {
        Workload::Launches(launches) => Some(launches.clone()),
        _ => None,
    };
    let iozone = k.group(kind == "iozone", None, of_iozone, iozone)?.map(Workload::Iozone);
    let fio = k.group(kind == "fio", None, of_fio, fio)?.map(Workload::Fio);
    let launches = k.group(kind == "launches", None, of_launches, launches::launches)?.map(Workload::Launches);
    Ok(iozone.or(fio).or(launches).expect("there is a workload of each kind"))
}

fn iozone(k: &mut Keys<Iozone>) -> Result<Iozone> {
    let case = Key::new("case", "with `args`: name of the only case; `iozone` unless given");
    let case = k.key(case, filled().optional(), |iozone| match iozone {
        Iozone::Args { case, .. } => Some(case.clone()),
        Iozone::Cases { .. } => None,
    })?;
    let args = Key::new("args", "`iozone`: command line as typed, without the program's name");
    let args = k.key(args, texts().optional(), |iozone| match iozone {
        Iozone::Args { args, .. } => Some(args.clone()),
        Iozone::Cases { .. } => None,
    })?;
    let of_cases = |iozone: &Iozone| match iozone {
        Iozone::Cases { threads, record_kib, cases } => {
            Some(Ranges { threads: *threads, record_kib: *record_kib, cases: cases.clone() })
        }
        Iozone::Args { .. } => None,
    };
    let why = "is said by args too; give either args or threads, record_kib and cases";
    let missing = args.is_none() && !k.has("cases");
    k.refuse(missing, "cases", "is missing; expected args, or threads, record_kib and cases")?;
    let cases = k.group(args.is_none(), Some(why), of_cases, ranges)?;
    let beside = args.is_none() && case.is_some();
    k.refuse(beside, "case", "has no meaning beside cases, which have their own names")?;
    Ok(match (args, cases) {
        (None, Some(Ranges { threads, record_kib, cases })) => Iozone::Cases { threads, record_kib, cases },
        (args, _) => Iozone::Args { case: case.unwrap_or_else(|| "iozone".into()), args: args.unwrap_or_default() },
    })
}

#[derive(Clone)]
struct Ranges {
    threads: u32,
    record_kib: u32,
    cases: Vec<IozoneCase>,
}

fn ranges(k: &mut Keys<Ranges>) -> Result<Ranges> {
    let ranges = keys!(k => Ranges {
        /// `iozone` without `args`: threads, each with a file of its own
        threads: whole(1..=65_535);
        /// the same: size of a read
        record_kib: multiple(4..=65_535 * 4, 4);
        /// the same: `{ name = "1 GB", total_gib = 1 }`, size of all files together; names differ; each thread gets a
        /// whole number of records
        cases: list(table(|k| range(k, threads, record_kib)), "an array of tables");
    });
    let names: Vec<&str> = ranges.cases.iter().map(|case| case.name.as_str()).collect();
    k.refuse_same_names("cases", AN_EARLIER_CASE, &names)?;
    k.refuse(names.is_empty(), "cases", "is empty; at least one case is needed")?;
    Ok(ranges)
}

fn range(k: &mut Keys<IozoneCase>, threads: u32, record_kib: u32) -> Result<IozoneCase> {
    let from_millionths = |millionths: u64| {
        let bytes = u128::from(millionths) << 30;
        let record_of_all = (u128::from(threads) * u128::from(record_kib)) << 10;
        match bytes == 0 || bytes % (1_000_000 * record_of_all) != 0 {
            true => Err(format!("does not give each of {threads} threads the same number of {record_kib} KiB records")),
            false => Ok((bytes / 1_000_000) as u64),
        }
    };
    let total = gib("a size in GiB").parsed(from_millionths, |bytes| Value::number(*bytes as f64 / f64::from(1 << 30)));
    Ok(keys!(k => IozoneCase {
        /// what its rows are called
        name: filled();
        /// size of all files together
        total_bytes = "total_gib": total;
    }))
}

fn fio(k: &mut Keys<Fio>) -> Result<Fio> {
    let case = Key::new("case", "`fio`: name of the only case; `fio` unless given");
    let case = k.key(case, filled().optional(), |fio| match fio {
        Fio::File { case, .. } | Fio::Text { case, .. } => Some(case.clone()),
        Fio::Cases { .. } => None,
    })?;
    let job = Key::new("job", "`fio`: path of a job file, relative to the experiment file; or give `text`");
    let job = k.key(job, filled().optional(), |fio| match fio {
        // Only for display, so bytes that are not UTF-8 are replaced.
        Fio::File { job, .. } => Some(job.display().to_string()),
        _ => None,
    })?;
    let text = Key::new("text", "`fio`: the job file itself; or give `job`");
    let text = k.key(text, filled().optional(), |fio| match fio {
        Fio::Text { text, .. } | Fio::Cases { text, .. } => Some(text.clone()),
        Fio::File { .. } => None,
    })?;
    let cases = Key::new(
        "cases",
        "`fio`: `{ name = \"2 threads\", with = { THREADS = \"2\" } }`, `text` is run once for each, with `2` wherever \
         it says `${THREADS}`; names differ; not together with `job` or `case`",
    );
    k.refuse(k.has("cases") && text.is_none(), "cases", "fill places of text, which is missing")?;
    let filling = list(table(|k| fio_case(k, text.as_deref().unwrap_or_default())), "an array of tables");
    let cases = k.key(cases, filling.optional(), |fio| match fio {
        Fio::Cases { cases, .. } => Some(cases.clone()),
        _ => None,
    })?;
    if let Some(cases) = cases {
        for (key, given) in [("case", case.is_some()), ("job", job.is_some())] {
            k.refuse(given, key, "has no meaning beside cases, which have their own names and fill text")?;
        }
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        k.refuse_same_names("cases", AN_EARLIER_CASE, &names)?;
        k.refuse(names.is_empty(), "cases", "is empty; at least one case is needed")?;
        return Ok(Fio::Cases { text: text.unwrap_or_default(), cases });
    }
    k.refuse(job.is_some() && text.is_some(), "job", "and text say the same; keep one of them")?;
    let neither = job.is_none() && text.is_none();
    k.refuse(neither, "job", "is missing; expected the path of a fio job file, or its text in text")?;
    let case = case.unwrap_or_else(|| "fio".into());
    Ok(match job {
        Some(job) => Fio::File { case, job: job.into(), defaults: String::new() },
        None => Fio::Text { case, text: text.unwrap_or_default() },
    })
}

fn fio_case(k: &mut Keys<FioCase>, in_text: &str) -> Result<FioCase> {
    let filling = |key: &str, found: &KeyValue| match in_text.contains(&format!("${{{key}}}")) {
        true => Ok((key.to_owned(), text().read(found)?)),
        false => Err(found.wrong(format!("fills nothing: there is no ${{{key}}} in text"))),
    };
    let written = |with: &BTreeMap<String, String>| {
        Value::table(with.iter().map(|(key, value)| (key.as_str(), Value::text(value))))
    };
    Ok(keys!(k => FioCase {
        /// what its rows are called
        name: filled();
        /// what stands in places of the text
        with: open_table(filling, written);
    }))
}
