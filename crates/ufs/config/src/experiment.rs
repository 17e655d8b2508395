// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files: a device, a workload, the variants that are compared under it, and what others have published about
//! it. The workload is plain data here; whoever runs the experiment makes requests of it. `docs/formats/experiment.md`
//! describes the format.

use super::builtin::{self, ReadFile};
use super::claim::{Claim, claims};
use super::device::{self, DevicePreset};
use super::error::ConfigFileError;
use super::events::{Event, events};
use super::host_control;
use super::launches::{self, LaunchKeys};
use super::overrides::Override;
use super::prototype;
use super::section::Section;
use super::tree::{At, parse_document};
pub use readpath_device::Layout;
use readpath_host::{GroupUpdate, HostConfig, HpbOptions, ListOrder, LongReads};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, ConfigFileError>;

/// The format that is read and written here.
pub const SCHEMA: &str = "readpath-experiment/1";

/// An experiment file that has been read and checked. It serialises in the names and units of the file.
#[derive(Clone, Debug, Serialize)]
pub struct Experiment {
    schema: &'static str,
    /// Name in snake case.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What is asked and how.
    pub description: String,
    /// Where the published values come from.
    pub citations: Vec<String>,
    /// The device as the file names it: a preset, or a path from where the experiment file is.
    pub device: String,
    /// What makes cases differ, for the axes of charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// What makes variants differ: then charts are drawn over them, with a line for each case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant_axis: Option<String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// What the device holds before the first request.
    pub precondition: Precondition,
    /// What is run.
    pub workload: Workload,
    /// What is compared, in order.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// What happens in the middle of every run, in order of time.
    #[serde(rename = "event", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// What has been published.
    pub published: Vec<Published>,
    /// What has been claimed.
    #[serde(rename = "claim", skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The file it was read from, as it was named.
    #[serde(skip)]
    pub file: String,
}

/// What the device holds before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Precondition {
    /// In which order it was written.
    #[serde(serialize_with = "layout_word")]
    pub layout: Layout,
    /// How much.
    pub range: PreconditionRange,
}

/// How much is written before the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PreconditionRange {
    /// The files of the workload.
    Files,
    /// The whole logical unit.
    All,
    /// Nothing: the device is as new.
    None,
}

/// What is run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workload {
    /// iozone in throughput mode.
    Iozone(Iozone),
    /// A fio job file.
    Fio(Fio),
    /// Apps that are launched.
    Launches(LaunchKeys),
}

/// An iozone run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Iozone {
    /// A command line as typed, without the program's name.
    Args {
        /// What its rows are called.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IozoneCase {
    /// What its rows are called.
    pub name: String,
    /// Bytes of all files together.
    #[serde(rename = "total_gib", serialize_with = "as_gib")]
    pub total_bytes: u64,
}

/// A fio run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Fio {
    /// A job file.
    File {
        /// What its rows are called.
        case: String,
        /// Path from where the experiment file is.
        #[serde(serialize_with = "as_text")]
        job: PathBuf,
    },
    /// The text of a job file.
    Text {
        /// What its rows are called.
        case: String,
        /// The text.
        text: String,
    },
    /// The text of a job file with places, `${NAME}`, that each case fills in its own way.
    Cases {
        /// The text.
        text: String,
        /// What is put in.
        cases: Vec<FioCase>,
    },
}

/// What a case puts into the text of a job file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FioCase {
    /// What its rows are called.
    pub name: String,
    /// For each name in capital letters what stands in its places.
    pub with: BTreeMap<String, String>,
}

impl FioCase {
    /// The text of the job file in this case.
    pub fn text(&self, text: &str) -> String {
        self.with.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
    }
}

/// One of the things that are compared.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// Name, unique in the experiment.
    pub name: String,
    /// HPB of the host, if it is to be used.
    #[serde(flatten, serialize_with = "hpb_keys")]
    pub hpb: Option<HpbOptions>,
    /// Keys of the device that are different in this variant.
    #[serde(serialize_with = "as_table", skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Override>,
    /// Where its keys of HPB stood.
    #[serde(skip)]
    pub(super) places: Vec<(&'static str, At)>,
}

/// A published value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Published {
    /// Case that it belongs to.
    pub case: String,
    /// Variant that it belongs to.
    pub variant: String,
    /// Name of the metric in snake case.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Whether a parameter was chosen with it in view.
    pub origin: Origin,
}

/// Whether a parameter of the model was chosen with a published value in view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It was, so agreement proves nothing.
    Fit,
    /// It was not, so agreement is evidence.
    Predicted,
}

impl Experiment {
    /// An experiment without published values, of a workload that runs on `device`.
    pub fn new(
        name: &str,
        title: &str,
        device: &str,
        seed: u64,
        precondition: Precondition,
        workload: Workload,
    ) -> Self {
        Experiment {
            schema: SCHEMA,
            name: name.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            citations: Vec::new(),
            device: device.to_owned(),
            axis: None,
            variant_axis: None,
            seed,
            precondition,
            workload,
            variants: Vec::new(),
            events: Vec::new(),
            published: Vec::new(),
            claims: Vec::new(),
            file: String::new(),
        }
    }
}

/// HPB of a variant that says no more than `hpb = true`.
pub fn default_hpb() -> HpbOptions {
    HpbOptions::default()
}

/// Reads an experiment file; `file_name` is for errors, and what its paths start from.
///
/// # Errors
/// The first mistake, with its line and key.
pub fn parse(text: &str, file_name: &str) -> Result<Experiment> {
    let tree = parse_document(text, file_name)?;
    let keys = [
        "schema",
        "name",
        "title",
        "description",
        "citations",
        "device",
        "axis",
        "variant_axis",
        "seed",
        "precondition",
        "workload",
        "variant",
        "event",
        "published",
        "claim",
    ];
    let root = Section::document(&tree, SCHEMA, &keys)?;
    let precondition = root.section("precondition", &["layout", "range"])?;
    let workload = workload(&root)?;
    let variants = variants(&root)?;
    let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
    Ok(Experiment {
        schema: SCHEMA,
        name: snake(&root, "name")?,
        title: root.string("title")?.to_owned(),
        description: root.string("description")?.to_owned(),
        citations: root.strings("citations")?,
        device: non_empty(&root, "device")?,
        axis: if root.has("axis") { Some(non_empty(&root, "axis")?) } else { None },
        variant_axis: if root.has("variant_axis") { Some(non_empty(&root, "variant_axis")?) } else { None },
        seed: root.integer("seed", 0..=u64::MAX)?,
        precondition: Precondition {
            layout: precondition.word("layout", &LAYOUTS)?,
            range: precondition.word(
                "range",
                &[
                    ("files", PreconditionRange::Files),
                    ("all", PreconditionRange::All),
                    ("none", PreconditionRange::None),
                ],
            )?,
        },
        claims: claims(&root, &workload.cases(), &names)?,
        published: published(&root, &workload.cases(), &names)?,
        workload,
        events: events(&root, &variants)?,
        variants,
        file: file_name.to_owned(),
    })
}

/// A built-in experiment by its name, or the file at a path, which has to contain a `/` or end in `.toml`.
///
/// # Errors
/// When there is no such experiment or file, or as [`parse`].
pub fn load(name_or_path: &str, read: ReadFile) -> Result<Experiment> {
    load_beside(&[], name_or_path, read)
}

/// The same where `others` are names of experiments too, which are no files: an error lists them.
///
/// # Errors
/// As [`load`].
pub fn load_beside(others: &[&str], name_or_path: &str, read: ReadFile) -> Result<Experiment> {
    let (text, file) = builtin::find("experiment", builtin::experiments(), others, name_or_path, read)?;
    parse(&text, &file)
}

impl Experiment {
    /// A path as it is written in the file, seen from where the program runs.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        Path::new(&self.file).parent().unwrap_or(Path::new("")).join(path)
    }

    /// The device without any variant's overrides.
    ///
    /// # Errors
    /// When it cannot be read, or as [`device::parse`].
    pub fn load_device(&self, read: ReadFile) -> Result<DevicePreset> {
        let is_path = self.device.contains('/') || self.device.ends_with(".toml");
        if !is_path {
            return device::load(&self.device, read);
        }
        let path = self.resolve(&self.device);
        // A preset's name has no separator; this one keeps a path a path.
        let path = if path.components().count() > 1 { path } else { Path::new(".").join(path) };
        device::load(&path.to_string_lossy(), read)
    }

    /// The device of each variant, in order: `base` with the variant's overrides.
    ///
    /// # Errors
    /// Names the key in `set` that is at fault.
    pub fn variant_devices(&self, base: &DevicePreset) -> Result<Vec<DevicePreset>> {
        self.variants.iter().map(|v| v.device(base)).collect()
    }

    /// The experiment file that says all this. [`parse`] reads it back.
    pub fn to_toml(&self) -> String {
        // Cannot fail: every field is a number, a text, an array or a table, and none is optional.
        toml::to_string(self).unwrap_or_default()
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

impl Variant {
    /// A variant that stands in no file.
    pub fn new(name: impl Into<String>, hpb: Option<HpbOptions>, set: Vec<Override>) -> Variant {
        Variant { name: name.into(), hpb, set, places: Vec::new() }
    }

    /// Whether a key of HPB was given.
    pub(super) fn says(&self, key: &str) -> bool {
        self.places.iter().any(|(said, _)| *said == key)
    }

    /// Where a key of HPB was given; the variant itself if it was not.
    pub(super) fn place_of(&self, key: &str) -> At {
        let place = self.places.iter().find(|(said, _)| *said == key);
        place.map_or_else(|| At { file: self.name.as_str().into(), line: 0, column: 0 }, |(_, at)| at.clone())
    }

    /// The host of this variant on a device.
    pub fn host(&self, device: &DevicePreset) -> HostConfig {
        HostConfig { hpb: self.hpb, ..device.host }
    }
}

const LAYOUTS: [(&str, Layout); 2] = [("sequential", Layout::Sequential), ("random", Layout::Random)];
const LONG_READS: [(&str, LongReads); 3] = [
    (LongReads::First.name(), LongReads::First),
    (LongReads::PreRequest.name(), LongReads::PreRequest),
    (LongReads::Ehs.name(), LongReads::Ehs),
];
const ORDERS: [(&str, ListOrder); 2] = [("activation", ListOrder::Activation), ("recency", ListOrder::Recency)];

fn non_empty(s: &Section, key: &str) -> Result<String> {
    match s.string(key)? {
        "" => Err(s.error(key, "is empty")),
        text => Ok(text.to_owned()),
    }
}

fn snake(s: &Section, key: &str) -> Result<String> {
    s.name(key, "lower-case letters, digits and '_'", |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn workload(root: &Section) -> Result<Workload> {
    let jobs = ["case", "args", "threads", "record_kib", "cases", "job", "text"];
    let keys: Vec<&str> = ["kind"].into_iter().chain(jobs).chain(launches::KEYS).collect();
    let s = root.section("workload", &keys)?;
    let kind = s.word("kind", &[("iozone", "iozone"), ("fio", "fio"), ("launches", "launches")])?;
    let own: &[&str] = match kind {
        "iozone" => &["case", "args", "threads", "record_kib", "cases"],
        "fio" => &["case", "cases", "job", "text"],
        _ => &launches::KEYS,
    };
    if let Some(key) = keys[1..].iter().find(|key| s.has(key) && !own.contains(key)) {
        return Err(s.error(key, format!("has no meaning for kind = {kind:?}")));
    }
    if kind == "launches" {
        return LaunchKeys::read(&s).map(Workload::Launches);
    }
    let case = || if s.has("case") { non_empty(&s, "case") } else { Ok(kind.to_owned()) };
    match (kind, s.has("args"), s.has("cases")) {
        ("iozone", true, _) => {
            if let Some(key) = ["threads", "record_kib", "cases"].iter().find(|key| s.has(key)) {
                return Err(s.error(key, "is said by args too; give either args or threads, record_kib and cases"));
            }
            Ok(Workload::Iozone(Iozone::Args { case: case()?, args: s.strings("args")? }))
        }
        ("iozone", false, true) => iozone_cases(&s).map(Workload::Iozone),
        ("iozone", ..) => Err(s.error("cases", "is missing; expected args, or threads, record_kib and cases")),
        (_, _, true) if !s.has("text") => Err(s.error("cases", "fill places of text, which is missing")),
        (_, _, true) => fio_cases(&s).map(Workload::Fio),
        _ => match (s.has("job"), s.has("text")) {
            (true, false) => Ok(Workload::Fio(Fio::File { case: case()?, job: non_empty(&s, "job")?.into() })),
            (false, true) => Ok(Workload::Fio(Fio::Text { case: case()?, text: non_empty(&s, "text")? })),
            (true, true) => Err(s.error("job", "and text say the same; keep one of them")),
            (false, false) => {
                Err(s.error("job", "is missing; expected the path of a fio job file, or its text in text"))
            }
        },
    }
}

fn iozone_cases(s: &Section) -> Result<Iozone> {
    if s.has("case") {
        return Err(s.error("case", "has no meaning beside cases, which have names of their own"));
    }
    let threads: u32 = s.integer("threads", 1..=65_535)?;
    let record_kib: u32 = s.integer("record_kib", 4..=65_535 * 4)?;
    if !record_kib.is_multiple_of(4) {
        return Err(s.error("record_kib", format!("is {record_kib}; it must be a multiple of 4 (blocks of 4 KiB)")));
    }
    let mut cases: Vec<IozoneCase> = Vec::new();
    for c in s.sections("cases", &["name", "total_gib"])? {
        let name = non_empty(&c, "name")?;
        if cases.iter().any(|earlier| earlier.name == name) {
            return Err(c.error("name", format!("is {name:?}, as that of an earlier case; names must differ")));
        }
        let millionths = c.decimal("total_gib", 6, 8192 * 1_000_000, "a size in GiB")?;
        let bytes = u128::from(millionths) << 30;
        let record_of_all = (u128::from(threads) * u128::from(record_kib)) << 10;
        if bytes == 0 || bytes % (1_000_000 * record_of_all) != 0 {
            let message =
                format!("does not give each of {threads} threads the same number of {record_kib} KiB records");
            return Err(c.error("total_gib", message));
        }
        cases.push(IozoneCase { name, total_bytes: (bytes / 1_000_000) as u64 });
    }
    if cases.is_empty() {
        return Err(s.error("cases", "is empty; at least one case is needed"));
    }
    Ok(Iozone::Cases { threads, record_kib, cases })
}

fn fio_cases(s: &Section) -> Result<Fio> {
    if let Some(key) = ["case", "job"].iter().find(|key| s.has(key)) {
        return Err(s.error(key, "has no meaning beside cases, which have names of their own and fill text"));
    }
    let text = non_empty(s, "text")?;
    let mut cases: Vec<FioCase> = Vec::new();
    for c in s.sections("cases", &["name", "with"])? {
        let name = non_empty(&c, "name")?;
        if cases.iter().any(|earlier| earlier.name == name) {
            return Err(c.error("name", format!("is {name:?}, as that of an earlier case; names must differ")));
        }
        let with = c.open_table("with")?;
        let mut filled = BTreeMap::new();
        for (key, _) in with.keys() {
            if !text.contains(&format!("${{{key}}}")) {
                return Err(with.error(key, format!("fills nothing: there is no ${{{key}}} in text")));
            }
            filled.insert(key.to_owned(), with.string(key)?.to_owned());
        }
        cases.push(FioCase { name, with: filled });
    }
    if cases.is_empty() {
        return Err(s.error("cases", "is empty; at least one case is needed"));
    }
    Ok(Fio::Cases { text, cases })
}

/// Keys of a variant that belong to `hpb = true`.
pub(super) const HPB_KEYS: [&str; 20] = joined(
    &["order", "strict_linux", "dirty_bitmap", "max_map_mib", "max_map", "long_reads", prototype::KEY],
    &host_control::KEYS,
);
/// All keys of a variant.
pub(super) const VARIANT_KEYS: [&str; 23] = joined(&["name", "hpb", "set"], &HPB_KEYS);

/// Two lists of keys as one, which has to be as long as both.
const fn joined<const N: usize>(first: &[&'static str], second: &[&'static str]) -> [&'static str; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [""; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}

fn variants(root: &Section) -> Result<Vec<Variant>> {
    let mut variants: Vec<Variant> = Vec::new();
    for s in root.sections("variant", &VARIANT_KEYS)? {
        let variant = variant(&s)?;
        if variants.iter().any(|v| v.name == variant.name) {
            let message = format!("is {:?}, as that of an earlier variant; names must differ", variant.name);
            return Err(s.error("name", message));
        }
        variants.push(variant);
    }
    if variants.is_empty() {
        return Err(root.error("variant", "is empty; at least one variant is needed"));
    }
    Ok(variants)
}

/// A variant, which may be part of a file or not.
pub(super) fn variant(s: &Section) -> Result<Variant> {
    let name = non_empty(s, "name")?;
    let hpb = if s.flag("hpb")? {
        Some(hpb_options(s)?)
    } else {
        if let Some(key) = HPB_KEYS.iter().find(|key| s.has(key)) {
            return Err(s.error(key, "has no meaning with hpb = false"));
        }
        None
    };
    let places = HPB_KEYS.into_iter().filter_map(|key| Some((key, s.place_of(key)?))).collect();
    Ok(Variant { name, hpb, set: overrides(s)?, places })
}

fn hpb_options(s: &Section) -> Result<HpbOptions> {
    let default = HpbOptions::default();
    let mut options = HpbOptions {
        order: if s.has("order") { s.word("order", &ORDERS)? } else { default.order },
        strict_linux: s.flag_or("strict_linux", default.strict_linux)?,
        dirty_bitmap: s.flag_or("dirty_bitmap", default.dirty_bitmap)?,
        max_map_bytes: s.memory("max_map_mib", "max_map")?,
        long_reads: if s.has("long_reads") { s.word("long_reads", &LONG_READS)? } else { default.long_reads },
        ..default
    };
    host_control::read(s, &mut options)?;
    prototype::read_key(s, &HPB_KEYS, &mut options)?;
    Ok(options)
}

fn overrides(s: &Section) -> Result<Vec<Override>> {
    if !s.has("set") {
        return Ok(Vec::new());
    }
    let of = |(key, node): (&str, &super::tree::Node)| Override {
        key: key.to_owned(),
        value: node.value.clone(),
        at: node.at.clone(),
    };
    Ok(s.open_table("set")?.keys().map(of).collect())
}

fn published(root: &Section, cases: &[&str], names: &[&str]) -> Result<Vec<Published>> {
    let mut rows: Vec<Published> = Vec::new();
    if !root.has("published") {
        return Ok(rows);
    }
    for s in root.sections("published", &["case", "variant", "metric", "unit", "value", "origin"])? {
        let row = Published {
            case: one_of(&s, "case", cases)?,
            variant: one_of(&s, "variant", names)?,
            metric: snake(&s, "metric")?,
            unit: s.string("unit")?.to_owned(),
            value: s.number("value")?,
            origin: s.word("origin", &[("fit", Origin::Fit), ("predicted", Origin::Predicted)])?,
        };
        if rows.iter().any(|r| (&r.case, &r.variant, &r.metric) == (&row.case, &row.variant, &row.metric)) {
            return Err(s.error("case", "has a row of this variant and metric already; rows must differ"));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn one_of(s: &Section, key: &str, names: &[&str]) -> Result<String> {
    let name = s.string(key)?;
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(s.error(key, format!("is {name:?}, which is no {key} of this experiment; there are {}", names.join(", "))))
}

fn layout_word<S: Serializer>(layout: &Layout, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_str(LAYOUTS.iter().find(|(_, l)| l == layout).map_or("", |(word, _)| word))
}

fn as_gib<S: Serializer>(bytes: &u64, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.serialize_f64(*bytes as f64 / f64::from(1u32 << 30))
}

/// A path for readers; what is not UTF-8 in it is replaced.
fn as_text<S: Serializer>(path: &Path, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.collect_str(&path.display())
}

fn as_table<S: Serializer>(set: &[Override], s: S) -> std::result::Result<S::Ok, S::Error> {
    s.collect_map(set.iter().map(|o| (&o.key, o)))
}

/// A size that is written in MiB.
pub(super) fn whole_mib(bytes: Option<u64>) -> Option<u64> {
    bytes.filter(|b| b.is_multiple_of(1 << 20)).map(|b| b >> 20)
}

/// A size that is not.
pub(super) fn odd_bytes(bytes: Option<u64>) -> Option<u64> {
    bytes.filter(|b| !b.is_multiple_of(1 << 20))
}

/// The keys of a variant that say what the host does.
#[derive(Serialize)]
struct HpbKeys {
    hpb: bool,
    #[serde(flatten)]
    options: Option<HpbOptionKeys>,
}

#[derive(Serialize)]
struct HpbOptionKeys {
    order: &'static str,
    strict_linux: bool,
    dirty_bitmap: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_map_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_map: Option<u64>,
    /// Said only where it is not as usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    long_reads: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prototype: Option<&'static str>,
    #[serde(flatten)]
    control: host_control::Keys,
}

fn hpb_keys<S: Serializer>(hpb: &Option<HpbOptions>, s: S) -> std::result::Result<S::Ok, S::Error> {
    let options = hpb.map(|h| HpbOptionKeys {
        order: ORDERS.iter().find(|(_, o)| *o == h.order).map_or("", |(word, _)| word),
        strict_linux: h.strict_linux,
        dirty_bitmap: h.dirty_bitmap,
        max_map_mib: whole_mib(h.max_map_bytes),
        max_map: odd_bytes(h.max_map_bytes),
        long_reads: (h.long_reads != LongReads::First).then(|| h.long_reads.name()),
        prototype: h.prototype.map(GroupUpdate::name),
        control: host_control::Keys::of(&h),
    });
    HpbKeys { hpb: hpb.is_some(), options }.serialize(s)
}
