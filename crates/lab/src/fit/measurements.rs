// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements as a table of text: reads and checks it. It opens no file and simulates nothing;
//! `docs/formats/measurements.md` describes the format.

use super::review;
use super::setting::{Access, Setting};
use readpath_config::DevicePreset;
use readpath_results::metric::{Figure, Requests};
use std::fmt;

/// No table has more rows than this.
pub const MOST_ROWS: usize = 500;
/// Standard error of a measurement that states none, in percent.
pub const DEFAULT_ERROR_PERCENT: f64 = 1.0;

/// A mistake in a table of measurements.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct MeasurementError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 when no line is at fault.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for MeasurementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

readpath_kit::named! {
    /// A metric of a measurement.
    #[derive(PartialOrd, Ord)]
    pub enum Metric {
        /// MiB/s.
        Throughput = "throughput_mib_s",
        /// Requests per second.
        Iops = "iops",
        /// Mean latency, us.
        LatencyMean = "latency_mean_us",
        /// Median latency, us.
        LatencyP50 = "latency_p50_us",
        /// 99th percentile of latency, us.
        LatencyP99 = "latency_p99_us",
    }
}

impl Metric {
    /// The metric of result documents for a measurement of this setting.
    pub(crate) fn in_documents(self, setting: &Setting) -> readpath_results::Metric {
        let requests = match setting.access {
            Access::RandomRead => Requests::RandomRead,
            Access::RandomWrites(_) => Requests::RandomWrite,
            Access::SequentialWrite(_) => Requests::Write,
        };
        requests.of(match self {
            Metric::Throughput => Figure::Throughput,
            Metric::Iops => Figure::Iops,
            Metric::LatencyMean => Figure::LatencyMean,
            Metric::LatencyP50 => Figure::LatencyP50,
            Metric::LatencyP99 => Figure::LatencyP99,
        })
    }
}

/// A measured value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measurement {
    /// Line of the table.
    pub line: usize,
    /// How it was made.
    pub setting: Setting,
    /// The metric that was measured.
    pub metric: Metric,
    /// The value, in the unit of the metric.
    pub value: f64,
    /// Its standard error as a share of the value.
    pub error: f64,
}

const COLUMNS: [&str; 9] =
    ["range_gib", "range_mib", "queue_depth", "hpb", "block_kib", "metric", "value", "weight", "error_percent"];

/// Where a table is read, for errors.
pub(super) struct Reader<'a> {
    pub file: &'a str,
    pub line: usize,
}

impl Reader<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> MeasurementError {
        MeasurementError { file: self.file.to_owned(), line: self.line, message: message.into() }
    }

    /// A positive number in plain or scientific notation, at most `most`.
    pub(super) fn number(&self, column: &str, text: &str, most: f64) -> Result<f64, MeasurementError> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        let value: f64 = Some(text)
            .filter(|t| plain && t.len() <= 40)
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| self.error(format!("{column} is {}; expected a number such as 12.5", shown(text))))?;
        if value > 0.0 && value <= most {
            return Ok(value);
        }
        Err(self.error(format!("{column} is {}; it must be greater than 0 and at most {most}", shown(text))))
    }

    fn whole(&self, column: &str, text: &str, most: u32) -> Result<u32, MeasurementError> {
        match text.parse::<u32>() {
            Ok(n) if n > 0 && n <= most => Ok(n),
            _ => Err(self.error(format!("{column} is {}; expected a whole number from 1 to {most}", shown(text)))),
        }
    }
}

/// A field as it can be quoted in an error.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

pub(super) fn fields<'a>(line: &'a str) -> Vec<&'a str> {
    let unquoted = |f: &'a str| -> Option<&'a str> { f.strip_prefix('"')?.strip_suffix('"').map(str::trim) };
    line.split(',').map(str::trim).map(|f| unquoted(f).unwrap_or(f)).collect()
}

/// Reads a table; `file` is for errors.
///
/// # Errors
/// The first mistake, with its line.
pub fn parse(text: &str, file: &str) -> Result<Vec<Measurement>, MeasurementError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    if lines.find(|line| !line.is_empty()).is_some_and(|line| review::is_one(&fields(line))) {
        return review::parse(text, file);
    }
    let mut reader = Reader { file, line: 0 };
    let mut header: Option<Vec<&'static str>> = None;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        reader.line = i + 1;
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let fields = fields(line);
        match &header {
            None => header = Some(read_header(&reader, &fields)?),
            Some(_) if rows.len() == MOST_ROWS => {
                return Err(reader.error(format!("is row {}; at most {MOST_ROWS} are possible", MOST_ROWS + 1)));
            }
            Some(header) => rows.push(read_row(&reader, header, &fields)?),
        }
    }
    reader.line = 0;
    if header.is_none() {
        return Err(reader.error(
            "is empty; expected a line of column names such as range_gib,queue_depth,hpb,metric,value and rows below \
             it",
        ));
    }
    if rows.is_empty() {
        return Err(reader.error("has column names, but no measurement"));
    }
    Ok(rows)
}

fn read_header(reader: &Reader, fields: &[&str]) -> Result<Vec<&'static str>, MeasurementError> {
    let mut header: Vec<&'static str> = Vec::new();
    for field in fields {
        let Some(column) = COLUMNS.iter().find(|c| *c == field) else {
            return Err(reader.error(format!("{} is not a column; known here: {}", shown(field), COLUMNS.join(", "))));
        };
        if header.contains(column) {
            return Err(reader.error(format!("has the column {column} twice")));
        }
        header.push(column);
    }
    let has = |c| header.contains(&c);
    for column in ["queue_depth", "hpb", "metric", "value"] {
        if !has(column) {
            return Err(reader.error(format!("has no column {column}")));
        }
    }
    if has("range_gib") == has("range_mib") {
        return Err(reader.error("needs a column for the range: either range_gib or range_mib"));
    }
    if has("weight") && has("error_percent") {
        return Err(reader.error("has both weight and error_percent, which say the same; keep one of them"));
    }
    Ok(header)
}

fn read_row(reader: &Reader, header: &[&'static str], fields: &[&str]) -> Result<Measurement, MeasurementError> {
    if fields.len() != header.len() {
        return Err(reader.error(format!(
            "has {} fields, but there are {} columns: {}",
            fields.len(),
            header.len(),
            header.join(", ")
        )));
    }
    let field = |column: &str| {
        let at = header.iter().position(|c| *c == column)?;
        Some(fields[at]).filter(|f| !f.is_empty())
    };
    let need = |column: &str| field(column).ok_or_else(|| reader.error(format!("{column} is missing")));
    let blocks = if header.contains(&"range_gib") {
        reader.number("range_gib", need("range_gib")?, 8191.0)? * 262_144.0
    } else {
        reader.number("range_mib", need("range_mib")?, 8_387_584.0)? * 256.0
    };
    let range_blocks = blocks as u32;
    if f64::from(range_blocks) != blocks {
        return Err(reader.error("range is no whole number of 4 KiB blocks"));
    }
    let hpb = match need("hpb")? {
        "off" => false,
        "on" => true,
        other => return Err(reader.error(format!("hpb is {}; expected on or off", shown(other)))),
    };
    let metric = need("metric")?;
    let metric = Metric::by_name(metric).ok_or_else(|| {
        reader.error(format!("metric is {}; known here: {}", shown(metric), Metric::ALL.map(Metric::name).join(", ")))
    })?;
    let block_kib = field("block_kib").map_or(Ok(4), |t| reader.whole("block_kib", t, 4 * u32::from(u16::MAX)))?;
    if block_kib % 4 != 0 {
        return Err(reader.error(format!("block_kib is {block_kib}; it must be a multiple of 4")));
    }
    let block_count = (block_kib / 4) as u16;
    if range_blocks < u32::from(block_count) {
        return Err(reader.error(format!("range is smaller than one request of {block_kib} KiB")));
    }
    let error = match (field("weight"), field("error_percent")) {
        (Some(w), _) => DEFAULT_ERROR_PERCENT / reader.number("weight", w, 1e6)?.sqrt(),
        (None, Some(e)) => {
            let e = reader.number("error_percent", e, 100.0)?;
            if e < 0.001 {
                return Err(reader.error(format!("error_percent is {e}; at least 0.001 is possible")));
            }
            e
        }
        (None, None) => DEFAULT_ERROR_PERCENT,
    } / 100.0;
    if error > 1.0 {
        return Err(reader.error("weight makes the standard error more than 100 %; at least 0.0001 is possible"));
    }
    Ok(Measurement {
        line: reader.line,
        setting: Setting {
            access: Access::RandomRead,
            range_blocks,
            queue_depth: reader.whole("queue_depth", need("queue_depth")?, 64)?,
            hpb,
            block_count,
        },
        metric,
        value: reader.number("value", need("value")?, 1e12)?,
        error,
    })
}

/// Checks that a device can have been measured in this way.
///
/// # Errors
/// The first row that it cannot have been, with its line.
pub fn check(rows: &[Measurement], preset: &DevicePreset, file: &str) -> Result<(), MeasurementError> {
    for row in rows {
        let reader = Reader { file, line: row.line };
        row.setting.check(preset).map_err(|message| reader.error(message))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use readpath_config::device;

    const HEAD: &str = "range_gib,queue_depth,hpb,metric,value\n";

    fn preset() -> DevicePreset {
        device::load("ufs21-64g", &|_| Err(std::io::Error::other("none"))).unwrap()
    }

    fn message(text: &str) -> String {
        match parse(text, "m.csv") {
            Ok(rows) => check(&rows, &preset(), "m.csv").unwrap_err().to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn a_table_is_read() {
        let text = "\u{feff}# a comment\r\n\r\nrange_mib, queue_depth, hpb, block_kib, metric, value, weight\r\n\
                    512, 16, on, 8, iops, 7.5e4, 4 # good\r\n\"1024\",1,off,,latency_p50_us,99.5,\n";
        let rows = parse(text, "m.csv").unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0].setting,
            Setting { access: Access::RandomRead, range_blocks: 131_072, queue_depth: 16, hpb: true, block_count: 2 }
        );
        assert_eq!((rows[0].line, rows[0].metric, rows[0].value, rows[0].error), (4, Metric::Iops, 7.5e4, 0.005));
        assert_eq!(
            rows[1].setting,
            Setting { access: Access::RandomRead, range_blocks: 262_144, queue_depth: 1, hpb: false, block_count: 1 }
        );
        assert_eq!((rows[1].metric, rows[1].error), (Metric::LatencyP50, 0.01));
    }

    #[test]
    fn mistakes_name_line_and_remedy() {
        for (text, wanted) in [
            ("", "m.csv: is empty"),
            ("# nothing\n", "m.csv: is empty"),
            (HEAD, "m.csv: has column names, but no measurement"),
            ("range_gb,queue_depth\n", "m.csv:1: \"range_gb\" is not a column; known here: range_gib"),
            ("range_gib,range_gib\n", "m.csv:1: has the column range_gib twice"),
            ("range_gib,queue_depth,hpb,value\n", "m.csv:1: has no column metric"),
            ("queue_depth,hpb,value,metric\n", "m.csv:1: needs a column for the range"),
            ("range_gib,queue_depth,hpb,value,metric,weight,error_percent\n", "keep one of them"),
            (&format!("{HEAD}1,16,off,iops\n"), "m.csv:2: has 4 fields, but there are 5 columns"),
            (&format!("{HEAD}1,16,off,iops,x\n"), "m.csv:2: value is \"x\"; expected a number"),
            (&format!("{HEAD}1,16,off,iops,0\n"), "m.csv:2: value is \"0\"; it must be greater than 0"),
            (&format!("{HEAD}-1,16,off,iops,5\n"), "m.csv:2: range_gib is \"-1\"; it must be greater than 0"),
            (&format!("{HEAD}1,16,off,iops,nan\n"), "expected a number"),
            (&format!("{HEAD}1,16,off,iops,1e999\n"), "at most"),
            (&format!("{HEAD}1,0,off,iops,5\n"), "m.csv:2: queue_depth is \"0\"; expected a whole number from 1"),
            (&format!("{HEAD}1,,off,iops,5\n"), "m.csv:2: queue_depth is missing"),
            (&format!("{HEAD}1,1,yes,iops,5\n"), "m.csv:2: hpb is \"yes\"; expected on or off"),
            (&format!("{HEAD}1,1,on,speed,5\n"), "m.csv:2: metric is \"speed\"; known here: throughput_mib_s"),
            (&format!("{HEAD}0.3000001,1,on,iops,5\n"), "no whole number of 4 KiB blocks"),
            (&format!("{HEAD}1,1,on,iops,5\n65,1,off,iops,5\n"), "m.csv:3: range is 65 GiB, but the logical unit"),
            (&format!("{HEAD}1,32,off,iops,5\n"), "m.csv:2: queue_depth is 32, but host and 'ufs21-64g' have 31 slots"),
        ] {
            let found = message(text);
            assert!(found.contains(wanted), "{text:?}: {found}");
        }
        let block = "range_gib,queue_depth,hpb,metric,value,block_kib\n1,1,off,iops,5,";
        assert!(message(&format!("{block}6\n")).contains("multiple of 4"));
        assert!(message(&format!("{block}1024\n")).contains("sends at most 512"));
        let error = "range_gib,queue_depth,hpb,metric,value,error_percent\n1,1,off,iops,5,";
        assert!(message(&format!("{error}0\n")).contains("greater than 0"));
        assert!(message(&format!("{error}101\n")).contains("at most 100"));
        let many = format!("{HEAD}{}", "1,1,off,iops,5\n".repeat(MOST_ROWS + 1));
        assert!(message(&many).contains("m.csv:502: is row 501"));
    }

    #[test]
    fn hpb_needs_a_device_that_has_it() {
        let plain = preset().with_override("lu[0].hpb", "false").unwrap();
        let rows = parse(&format!("{HEAD}1,1,on,iops,5\n"), "m.csv").unwrap();
        assert!(check(&rows, &plain, "m.csv").unwrap_err().message.contains("has no HPB"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&String::from_utf8_lossy(&bytes), "m.csv");
        }

        #[test]
        fn any_fields_are_an_answer(text in "(([0-9.eE+\\-\"]{0,6}|off|on|iops|#|latency_p50_us),){0,9}\n") {
            if let Ok(rows) = parse(&format!("{HEAD}{text}"), "m.csv") {
                for r in rows {
                    prop_assert!(r.value > 0.0 && r.value.is_finite() && r.error > 0.0 && r.setting.range_blocks > 0);
                }
            }
        }
    }
}
