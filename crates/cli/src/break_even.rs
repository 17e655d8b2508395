// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath break-even`: the least value of a key with which a workload is served as well as by another variant. Each
//! round of the search is a comparison; what comes out is one of all of them.

use crate::args::{BreakEven, Compare};
use crate::compare::{self, Compared, Made};
use crate::inputs::is_stdin;
use crate::output::{self, Kept};
use crate::presets::preset;
use crate::{runs, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::Variant;
use readpath_lab::compare::{Trial, document};
use readpath_lab::unused_hpb::without_hpb;
use readpath_report::TableSpec;
use readpath_results::metric::{self, Better};
use readpath_results::{Metric, Note, NoteKind, Row};

/// What `--with` is where nobody says.
pub const HPB_OFF: &str = "hpb=off";
const MAP_CACHE: &str = "map_cache.size_kib";
/// Least size of a map cache and distance of sizes that are tried, in KiB, where nobody says.
const CACHE_STEP_KIB: u64 = 64;
/// Values that are tried at a time, whatever the number of threads: the answer must not depend on it.
const AT_A_TIME: u64 = 3;

/// The values that may be the answer, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Grid {
    from: u64,
    to: u64,
    step: u64,
    last: u64,
}

impl Grid {
    fn value(self, number: u64) -> u64 {
        self.to.min(self.from.saturating_add(number.saturating_mul(self.step)))
    }
}

pub fn main(args: &BreakEven) -> Result<()> {
    let grid = grid(args)?;
    if !(0.0..=1000.0).contains(&args.within) {
        return Err(usage(anyhow!("--within: {} must be a number of percent from 0 to 1000", args.within)));
    }
    if matches!(&*args.key, "hpb" | "policy") {
        return Err(usage(anyhow!("--key {}: its values are no numbers", args.key)));
    }
    if is_stdin(&args.workload) {
        return Err(usage(anyhow!(
            "the workload is read for every round, which standard input cannot be; give a file"
        )));
    }
    let against = with_host("--against", &args.against)?;
    let with = with_host("--with", &args.with)?;
    if is_of_host(&args.key) && pairs(&with).any(|(key, value)| (key, value) == ("hpb", "off")) {
        return Err(usage(anyhow!("--key {0}: only a host with HPB has it; give --with hpb=dcm or another", args.key)));
    }
    let inputs = [&args.workload].into_iter().chain(&args.precondition);
    let kept = Kept::create(&args.basics, args.basics.out.as_deref(), inputs)?;
    let mut search = Search { args, against, with, made: None, best: 0 };
    let answer = search.answer(grid)?;
    let Search { against, best, made: Some(mut made), .. } = search else { unreachable!("an answer comes from runs") };

    let value = |name: &str| name.rsplit('=').next().and_then(|text| text.parse::<u64>().ok());
    made.variants[1..].sort_by_key(|name| value(name));
    let variant = |trial: &Trial| trial.document.rows.first().map(|row| row.variant.clone());
    // Time is shown of the two that matter.
    let kept_series = [search_name(&args.key, best), made.base.clone()];
    for trial in &mut made.trials {
        if variant(trial).is_none_or(|name| !kept_series.contains(&name)) {
            trial.over_time.clear();
        }
    }
    made.trials.sort_by_key(|trial| {
        let place = variant(trial).and_then(|name| made.variants.iter().position(|other| *other == name));
        (place, trial.seed)
    });
    let mut doc = document(&made.texts, &made.trials, &made.variants, &made.base, made.seeds)?;
    let workload = args.workload.display();
    doc.title = format!("{workload}: the least {} that is as good as {against}", args.key);
    doc.notes.insert(0, Note::new(NoteKind::Advice, answer));
    doc.process = output::process();
    doc.validate()?;
    kept.write(&doc)?;
    let metric = doc.rows.iter().find(|row| row.metric.name() == args.metric).map(|row| row.metric.clone());
    let metrics: Vec<Metric> = metric.into_iter().chain([metric::MAP_HIT_RATIO, metric::HOST_MEMORY]).collect();
    let table = || output::table(&doc, TableSpec::of(&metrics), output::terminal_width());
    output::show(&doc, &args.basics, args.basics.out.as_deref(), None, table)?;
    runs::complete(made.trials.iter().filter_map(|t| t.incomplete.clone()), made.trials.len())
}

fn grid(args: &BreakEven) -> Result<Grid> {
    let (mut from, mut to, mut step) = (args.from, args.to, args.step);
    if args.key == MAP_CACHE {
        let device = preset(&args.device, &args.basics.set)?.device;
        let map_kib = u64::from(device.map_pages()) * u64::from(device.map_page_bytes) / 1024;
        from = from.or(Some(CACHE_STEP_KIB));
        step = step.or(Some(CACHE_STEP_KIB));
        to = to.or(Some(map_kib.max(2 * CACHE_STEP_KIB)));
    }
    let (Some(from), Some(to)) = (from, to) else {
        return Err(usage(anyhow!("--from and --to are needed for --key {}: between which values is it?", args.key)));
    };
    let step = step.unwrap_or(1);
    match to.checked_sub(from).map(|span| span.div_ceil(step)) {
        None | Some(0) if args.to.is_none() => {
            Err(usage(anyhow!("--from {from} must be less than {to}, the whole map")))
        }
        None | Some(0) => Err(usage(anyhow!("--to {to} must be more than --from {from}"))),
        Some(last) => Ok(Grid { from, to, step, last }),
    }
}

/// The keys after `option` as they name a variant, without HPB where they say nothing of it.
fn with_host(option: &str, keys: &str) -> Result<String> {
    let keys = keys.trim();
    if keys.is_empty() {
        return Err(usage(anyhow!("{option}: is empty; expected KEY=VALUE")));
    }
    if pairs(keys).any(|(key, _)| matches!(key, "hpb" | "policy")) {
        return Ok(keys.to_owned());
    }
    match pairs(keys).find(|(key, _)| is_of_host(key)) {
        Some((key, _)) => Err(usage(anyhow!("{option} {keys}: {key} is of a host with HPB; add hpb=dcm or another"))),
        None => Ok(format!("{keys},{HPB_OFF}")),
    }
}

fn pairs(keys: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = keys.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.trim(), value.trim()))
}

fn is_of_host(key: &str) -> bool {
    Variant::host_keys().contains(&key)
}

/// What the variant with a value is called.
fn search_name(key: &str, value: u64) -> String {
    format!("{key}={value}")
}

/// A figure as people compare it.
fn shown(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

struct Search<'a> {
    args: &'a BreakEven,
    /// Keys of what is to be reached, and its name.
    against: String,
    /// Keys beside the one that is looked for.
    with: String,
    /// All runs so far.
    made: Option<Box<Made>>,
    /// The value that was found, or else the last.
    best: u64,
}

impl Search<'_> {
    /// What the search found, as a sentence.
    fn answer(&mut self, grid: Grid) -> Result<String> {
        let BreakEven { key, metric, .. } = self.args;
        let against = self.against.clone();
        let (from, to) = (grid.value(0), grid.value(grid.last));
        self.run(&[from, to], true)?;
        let made = self.made.iter().flat_map(|made| &made.trials);
        if let Some(note) = made.into_iter().find_map(|trial| without_hpb(&trial.document, &against)) {
            return Err(usage(anyhow!("--against {against}: {note}")));
        }
        let goal = self.mean(&against)?;
        let unit = match self.unit() {
            unit if unit.is_empty() => unit,
            unit => format!(" {unit}"),
        };
        let (mut bad, mut good) = (0, grid.last);
        if self.is_good(from)? {
            good = 0;
        } else if !self.is_good(to)? {
            self.best = to;
            let reached = shown(self.mean(&self.name(to))?);
            return Ok(format!(
                "no {key} up to {to}: even with {to} {metric} is {reached}{unit}; with {against} it is {}",
                shown(goal)
            ));
        }
        while good > bad + 1 {
            let span = u128::from(good - bad);
            let part = |k: u64| bad + (span * u128::from(k) / u128::from(AT_A_TIME + 1)) as u64;
            let mut tried: Vec<u64> = (1..=AT_A_TIME).map(part).filter(|&number| number > bad).collect();
            tried.dedup();
            let values: Vec<u64> = tried.iter().map(|&number| grid.value(number)).collect();
            self.run(&values, false)?;
            for number in tried {
                if self.is_good(grid.value(number))? {
                    good = number;
                    break;
                }
                bad = number;
            }
        }
        let found = grid.value(good);
        self.best = found;
        let reached = shown(self.mean(&self.name(found))?);
        let below = match good {
            0 => "it is the least that was looked at".to_owned(),
            _ => {
                let below = grid.value(good - 1);
                format!("with {below} it is {}", shown(self.mean(&self.name(below))?))
            }
        };
        Ok(format!(
            "{key}={found} is as good as {against}: {metric} is {reached}{unit}, and {} with {against}; {below}",
            shown(goal)
        ))
    }

    fn name(&self, value: u64) -> String {
        search_name(&self.args.key, value)
    }

    /// Runs variants with these values, and the one that they are compared with if it is `first`.
    fn run(&mut self, values: &[u64], first: bool) -> Result<()> {
        let args = self.args;
        let against = first.then(|| format!("{0}:{0}", self.against));
        let tried = values.iter().map(|&value| format!("{0}:{0},{1}", self.name(value), self.with));
        let round = Compare {
            workload: args.workload.clone(),
            fio: args.fio,
            trace: args.trace,
            variant: against.into_iter().chain(tried).collect(),
            vary: Vec::new(),
            hpb: Vec::new(),
            policy: Vec::new(),
            map_cache: Vec::new(),
            base: None,
            seeds: Some(args.seeds),
            seed: Some(args.seed),
            device: Some(args.device.clone()),
            preload: Some(args.preload),
            case: None,
            dry_run: false,
            basics: crate::args::Basics { out: None, csv: None, ..args.basics.clone() },
            precondition: args.precondition.clone(),
            how: args.how.clone(),
        };
        let Compared::Made(made) = compare::compared(&round)? else { unreachable!("it is no dry run") };
        match &mut self.made {
            None => self.made = Some(made),
            Some(all) => {
                all.variants.extend(made.variants);
                all.trials.extend(made.trials);
            }
        }
        Ok(())
    }

    /// Rows of a variant. Of a trace behind others only what it did itself counts.
    fn rows_of<'t>(&self, trial: &'t Trial, variant: &str) -> impl Iterator<Item = &'t Row> {
        let whole_only = !self.args.precondition.is_empty();
        let rows = trial.document.rows.iter().filter(move |row| row.variant == variant);
        rows.filter(move |row| !whole_only || &*row.case == row.case.name())
    }

    /// Figures of a variant, by seed.
    fn figures(&self, variant: &str) -> Result<Vec<(&Metric, f64)>> {
        let trials = self.made.iter().flat_map(|made| &made.trials);
        let mut found = Vec::new();
        for trial in trials {
            let name = &self.args.metric;
            let rows: Vec<&Row> = self.rows_of(trial, variant).filter(|row| row.metric.name() == name).collect();
            let whole = rows.iter().copied().find(|row| &*row.case == row.case.name());
            match (whole, &rows[..]) {
                (Some(row), _) | (None, &[row]) => found.push((&row.metric, row.simulated)),
                (None, []) => {}
                (None, _) => {
                    let names: Vec<String> = rows.iter().map(|row| format!("'{}'", &*row.case)).collect();
                    let names = names.join(", ");
                    let message = "group_reporting makes one of jobs that run together";
                    return Err(usage(anyhow!("--metric {name}: {names} have it each; {message}")));
                }
            }
        }
        Ok(found)
    }

    fn mean(&self, variant: &str) -> Result<f64> {
        let figures = self.figures(variant)?;
        if figures.is_empty() {
            let trials = self.made.iter().flat_map(|made| &made.trials);
            let rows = trials.flat_map(|trial| self.rows_of(trial, variant));
            let mut names: Vec<&str> = rows.map(|row| row.metric.name()).collect();
            names.sort_unstable();
            names.dedup();
            let metric = &self.args.metric;
            return Err(usage(anyhow!("--metric {metric}: {variant} does not have it; it has {}", names.join(", "))));
        }
        Ok(figures.iter().map(|(_, value)| value).sum::<f64>() / figures.len() as f64)
    }

    fn unit(&self) -> String {
        let figures = self.figures(&self.against).unwrap_or_default();
        figures.first().map(|(metric, _)| metric.unit().to_owned()).unwrap_or_default()
    }

    /// Whether a value is as good as what it is compared with.
    fn is_good(&self, value: u64) -> Result<bool> {
        let (tried, goal) = (self.mean(&self.name(value))?, self.mean(&self.against)?);
        let metric = self.figures(&self.against)?[0].0.clone();
        let slack = self.args.within / 100.0;
        match metric.definition().map(|d| d.better) {
            Some(Better::Less) => Ok(tried <= goal * (1.0 + slack)),
            Some(Better::More) => Ok(tried >= goal * (1.0 - slack)),
            _ => Err(usage(anyhow!("--metric {}: neither more nor less of it is better", metric.name()))),
        }
    }
}
