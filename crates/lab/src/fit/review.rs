// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a published review as measurements: how fast an erased drive is filled, phase by phase. It opens no file
//! and simulates nothing; `docs/formats/measurements.md` describes the table.

use super::measurements::{Measurement, Metric};
use super::setting::{Access, LongWrite, Setting, Stretch};
use super::table::{self, Columns, HELD_OUT, MeasurementError, Reader, shown};

pub(super) const COLUMNS: [&str; 10] = [
    "drive",
    "phase",
    "capacity_gb",
    "capacity_gib",
    "until_gb",
    "until_gib",
    "throughput_mb_s",
    "throughput_mib_s",
    "error_percent",
    HELD_OUT,
];
const PHASES: [&str; 3] = ["cached", "direct", "folding"];
/// Parts of the drive: phases begin and end at one of them.
const PARTS: u16 = 500;
/// Reviews write in long requests, several at once.
const BLOCKS: u16 = 128;
const DEPTH: u32 = 8;
/// Standard error of a figure that states none, in percent: reviews round.
const ERROR_PERCENT: f64 = 5.0;

/// A phase ends where its speed does: so much of what was written before on each side is a row of its own, with the
/// speed of its phase. Means of whole phases alone would allow for a phase of any length.
const EDGE: f64 = 0.1;
/// Standard error of these rows, in percent, if their phase has no greater one: a phase ends gradually.
const EDGE_ERROR_PERCENT: f64 = 20.0;

/// Whether columns are those of a review.
pub(super) fn is_one(header: &[&str]) -> bool {
    header.contains(&"phase")
}

/// The columns of a table; of a quantity in one of two units the one that is there.
struct Header<'a> {
    columns: Columns<'a>,
    capacity: &'a str,
    until: &'a str,
    throughput: &'a str,
}

impl<'a> Header<'a> {
    fn read(reader: &Reader, all: Vec<&'a str>) -> Result<Self, MeasurementError> {
        let columns = Columns::read(reader, all, &COLUMNS)?;
        let of = |name: &str| {
            let mut found = columns.names().iter().copied().filter(|column| column.starts_with(name));
            let one = found.next().ok_or_else(|| reader.error(format!("has no column {name}_...")))?;
            match found.next() {
                Some(other) => Err(reader.error(format!("has both {one} and {other}; keep one of them"))),
                None => Ok(one),
            }
        };
        let (capacity, until, throughput) = (of("capacity")?, of("until")?, of("throughput")?);
        columns.need(reader, "drive")?;
        let binary = |column: &&str| column.contains("ib");
        let figures = [capacity, until, throughput];
        if let (Some(a), Some(b)) = (figures.iter().find(|c| binary(c)), figures.iter().find(|c| !binary(c))) {
            return Err(reader.error(format!(
                "mixes binary units ({a}) with decimal ones ({b}); expected capacity_gb, until_gb and \
                 throughput_mb_s, or capacity_gib, until_gib and throughput_mib_s"
            )));
        }
        Ok(Header { columns, capacity, until, throughput })
    }

    fn is_binary(&self) -> bool {
        self.capacity.ends_with("gib")
    }
}

/// A number without a unit, which its column has.
fn figure(reader: &Reader, column: &str, text: &str) -> Result<f64, MeasurementError> {
    let has_unit = text.chars().any(|c| c.is_alphabetic() || c == '%') && text.parse::<f64>().is_err();
    if has_unit {
        let unit = match column.rsplit_once('_').map(|(_, unit)| unit) {
            Some("s") if column.contains("mib") => "MiB/s",
            Some("s") => "MB/s",
            Some("gib") => "GiB",
            _ => "GB",
        };
        let text = shown(text);
        return Err(reader.error(format!("{column} is {text}; expected a number in {unit}, the unit of its column")));
    }
    reader.number(column, text, 1e9)
}

/// Reads a table of one drive; `file` is for errors.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<Measurement>, MeasurementError> {
    let mut reader = Reader { file, line: 0 };
    let mut lines = table::lines(text);
    let Some((line, names)) = lines.next() else { return Err(reader.error("is empty")) };
    reader.line = line;
    let header = Header::read(&reader, names)?;
    let mut drive: Option<(&str, f64)> = None;
    let mut rows: Vec<Measurement> = Vec::new();
    // Where the last phase ended, as a share of the drive, and its place among the phases.
    let (mut from, mut last, mut is_open) = (0.0_f64, None, false);
    for (line, fields) in lines {
        reader.line = line;
        let row = header.columns.row(&reader, fields)?;
        let field = |column: &str| row.field(column).unwrap_or("");
        let capacity = figure(&reader, header.capacity, field(header.capacity))?;
        match drive {
            Some((name, size)) if name != field("drive") || size != capacity => {
                return Err(reader.error(format!(
                    "is of {} with {capacity}, but the lines before are of {} with {size}; expected one drive in a \
                     table",
                    shown(field("drive")),
                    shown(name)
                )));
            }
            _ => drive = Some((field("drive"), capacity)),
        }
        if is_open {
            return Err(
                reader.error(format!("{} was left out before; only the last phase may have none", header.until))
            );
        }
        let phase = PHASES.iter().position(|phase| *phase == field("phase"));
        let phase = phase.filter(|phase| last.is_none_or(|last| *phase > last)).ok_or_else(|| {
            let (is, expected) = (shown(field("phase")), PHASES.join(", "));
            reader.error(format!("phase is {is}; expected {expected}, each once and in this order"))
        })?;
        is_open = field(header.until).is_empty();
        // Without an end a phase is taken to be as long as all before it.
        let until = match is_open {
            true if from == 0.0 => return Err(reader.error(format!("{} is missing", header.until))),
            true => (2.0 * from).min(1.0),
            false => figure(&reader, header.until, field(header.until))? / capacity,
        };
        let [first, end] = [from, until].map(|share: f64| (share * f64::from(PARTS)).round());
        if until > 1.0 || end <= first {
            let (is, least) = (until * capacity, from * capacity);
            return Err(reader.error(format!(
                "{} is {is}; expected more than {least}, by a five-hundredth of the drive at least, and at most \
                 {capacity}",
                header.until
            )));
        }
        let (gib, mib) = match header.is_binary() {
            true => (1.0, 1.0),
            false => (1e9 / f64::from(1 << 30), 1e6 / f64::from(1 << 20)),
        };
        let blocks = capacity * gib * f64::from(1 << 18);
        let unit = u32::from(PARTS) * u32::from(BLOCKS);
        if !(f64::from(unit)..f64::from(u32::MAX)).contains(&blocks) {
            return Err(reader.error(format!("{} is {capacity}; expected 1 to 16,000", header.capacity)));
        }
        let stretch = Stretch { of: LongWrite::Fill, parts: PARTS, part: first as u16, count: (end - first) as u16 };
        rows.push(Measurement {
            line: reader.line,
            setting: Setting {
                access: Access::SequentialWrite(stretch),
                range_blocks: blocks as u32 / unit * unit,
                queue_depth: DEPTH,
                hpb: false,
                block_count: BLOCKS,
            },
            metric: Metric::Throughput,
            value: figure(&reader, header.throughput, field(header.throughput))? * mib,
            error: reader.error_percent(field("error_percent"), ERROR_PERCENT)?,
            held_out: reader.held_out(row.field(HELD_OUT))?,
        });
        (from, last) = (until, Some(phase));
    }
    match rows.is_empty() {
        true => Err(Reader { file, line: 0 }.error("has column names, but no phase")),
        false => Ok(rows.iter().copied().chain(edges(&rows)).collect()),
    }
}

/// Rows on both sides of where a phase ends and the next begins.
fn edges(phases: &[Measurement]) -> Vec<Measurement> {
    let stretch = |phase: &Measurement| match phase.setting.access {
        Access::SequentialWrite(stretch) => Some(stretch),
        Access::RandomRead | Access::RandomWrites(_) => None,
    };
    let error = EDGE_ERROR_PERCENT / 100.0;
    let row = |phase: &Measurement, stretch: Stretch| Measurement {
        setting: Setting { access: Access::SequentialWrite(stretch), ..phase.setting },
        error: phase.error.max(error),
        ..*phase
    };
    let mut rows = Vec::new();
    for pair in phases.windows(2) {
        let [Some(before), Some(after)] = [stretch(&pair[0]), stretch(&pair[1])] else { continue };
        let wide = ((f64::from(after.part) * EDGE).round() as u16).max(1);
        let last = Stretch { part: after.part.saturating_sub(wide), count: wide, ..before };
        let first = Stretch { count: wide, ..after };
        rows.extend((wide < before.count).then(|| row(&pair[0], last)));
        rows.extend((wide < after.count).then(|| row(&pair[1], first)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const HEAD: &str = "drive,phase,capacity_gb,until_gb,throughput_mb_s\n";

    #[test]
    fn published_reviews_are_read() {
        let ex900 = parse(include_str!("../../../../docs/examples/review_ex900_pro.csv"), "a").unwrap();
        let stretch = |row: &Measurement| match row.setting.access {
            Access::SequentialWrite(stretch) => (stretch.of, stretch.part, stretch.count),
            _ => panic!("{row:?}"),
        };
        let of = |part, count| (LongWrite::Fill, part, count);
        let edges = [of(67, 7), of(74, 7), of(270, 30), of(300, 30)];
        let all = [&[of(0, 74), of(74, 226), of(300, 200)][..], &edges].concat();
        assert_eq!(ex900.iter().map(stretch).collect::<Vec<_>>(), all);
        let figures = |at: usize| (ex900[at].value, ex900[at].error, ex900[at].line);
        assert_eq!((figures(3), figures(4)), ((figures(0).0, 0.2, 4), (figures(1).0, 0.2, 5)));
        assert!((ex900[0].value - 2000e6 / 1_048_576.0).abs() < 1e-9, "{ex900:?}");
        assert_eq!(ex900[0].setting.range_blocks, 244_096_000, "a TB in parts of whole requests");
        let p41 = parse(include_str!("../../../../docs/examples/review_p41_plus.csv"), "b").unwrap();
        assert_eq!(p41.iter().map(stretch).collect::<Vec<_>>(), [of(0, 60), of(60, 440), of(54, 6), of(60, 6)]);
        // The end of what was written is not published.
        let qvo = parse(include_str!("../../../../docs/examples/review_870_qvo.csv"), "c").unwrap();
        assert_eq!(qvo.iter().map(stretch).collect::<Vec<_>>(), [of(0, 10), of(10, 10), of(9, 1), of(10, 1)]);
    }

    /// The same review in both families of units.
    #[test]
    fn binary_units_are_powers_of_two() {
        let of = |head: &str, row: &str| parse(&format!("{head}A,cached,{row}\n"), "r.csv").unwrap()[0];
        let binary = of("drive,phase,capacity_gib,until_gib,throughput_mib_s\n", "500,100,1000");
        let decimal = of(HEAD, "536.870912,107.3741824,1048.576");
        assert_eq!(binary.setting, decimal.setting);
        let blocks = 500 << 18;
        assert_eq!(binary.setting.range_blocks, blocks / 64_000 * 64_000);
        assert_eq!(binary.value, 1000.0);
        assert!((decimal.value - 1000.0).abs() < 1e-9, "{decimal:?}");
    }

    #[test]
    fn wrong_reviews_name_the_line_and_what_would_be_right() {
        let bad = |text: &str, line: usize, says: &str| {
            let error = parse(text, "r.csv").unwrap_err();
            assert!(error.line == line && error.message.contains(says), "{error}");
        };
        let rows = |rows: &str| format!("{HEAD}{rows}");
        bad(&rows("A,cached,1000,148,2 GB/s\n"), 2, "throughput_mb_s is \"2 GB/s\"; expected a number in MB/s");
        bad(&rows("A,cached,1000,12 %,2000\n"), 2, "until_gb is \"12 %\"; expected a number in GB, the unit of its");
        bad(&HEAD.replace("mb_s", "mib_s"), 1, "mixes binary units (throughput_mib_s) with decimal ones (capacity_gb)");
        bad(&HEAD.replace("until_gb", "until"), 1, "\"until\" is not a column; known here: drive, phase");
        bad(&rows("A,cached,1000,148,2000\nB,direct,1000,600,600\n"), 3, "expected one drive in a table");
        bad(
            &rows("A,direct,1000,148,600\nA,cached,1000,600,2000\n"),
            3,
            "phase is \"cached\"; expected cached, direct",
        );
        bad(&rows("A,cached,1000,148,2000\nA,direct,1000,100,600\n"), 3, "until_gb is 100; expected more than 148");
        bad(&rows("A,cached,1000,1480,2000\n"), 2, "and at most 1000");
        bad(&rows("A,cached,1000,,2000\n"), 2, "until_gb is missing");
        bad(&rows("A,cached,0,1,2000\n"), 2, "capacity_gb is \"0\"; it must be greater than 0");
        bad(HEAD, 0, "has column names, but no phase");
        for (separator, called) in [(";", "semicolons"), ("\t", "tabs"), ("\";\"", "semicolons")] {
            let says = format!("is separated by {called}; expected commas: \"drive,phase,capacity_gb,");
            bad(&format!("\"{}\"\n", HEAD.trim().replace(',', separator)), 1, &says);
        }
        bad(&HEAD.replace("until_gb", "until_gb,held_out"), 0, "has column names, but no phase");
        let all = HEAD.replace("throughput_mb_s", "throughput_mb_s,held_out");
        bad(&format!("{all}A,cached,1000,148,2000,x\n"), 2, "held_out is \"x\"; expected yes or no");
        let rows = parse(&format!("{all}A,cached,1000,148,2000,\nA,direct,1000,600,600,yes\n"), "r.csv").unwrap();
        assert_eq!(rows.iter().map(Measurement::is_seen).collect::<Vec<_>>(), [true, false, true, false]);
    }
}
