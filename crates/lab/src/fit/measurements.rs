// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements as a table of text: reads and checks it. It opens no file and simulates nothing;
//! `docs/formats/measurements.md` describes the format.

use super::setting::{Access, Setting};
use super::table::{self, Columns, HELD_OUT, MeasurementError, Reader, Row, shown};
use super::{filled, review};
use readpath_config::DevicePreset;
use readpath_results::metric::{Figure, Requests};

/// No table has more rows than this.
pub const MOST_ROWS: usize = 500;
/// Standard error of a measurement that states none, in percent.
pub const DEFAULT_ERROR_PERCENT: f64 = 1.0;

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
    /// Whether the fit must not see it, but predicts it; nothing if its table does not say.
    pub held_out: Option<bool>,
}

impl Measurement {
    /// Whether the fit sees it.
    pub fn is_seen(&self) -> bool {
        self.held_out != Some(true)
    }
}

const COLUMNS: [&str; 10] = [
    "range_gib",
    "range_mib",
    "queue_depth",
    "hpb",
    "block_kib",
    "metric",
    "value",
    "weight",
    "error_percent",
    HELD_OUT,
];

/// Reads a table; `file` is for errors.
///
/// # Errors
/// The first mistake, with its line.
pub fn parse(text: &str, file: &str) -> Result<Vec<Measurement>, MeasurementError> {
    let mut reader = Reader { file, line: 0 };
    let mut lines = table::lines(text);
    let Some((line, names)) = lines.next() else {
        return Err(reader.error(
            "is empty; expected a line of column names such as range_gib,queue_depth,hpb,metric,value and rows below \
             it",
        ));
    };
    reader.line = line;
    table::check_separator(&reader, &names, |name| COLUMNS.contains(&name) || review::COLUMNS.contains(&name))?;
    if review::is_one(&names) {
        return review::parse(text, file);
    }
    let columns = read_columns(&reader, names)?;
    let mut rows = Vec::new();
    for (line, fields) in lines {
        reader.line = line;
        if rows.len() == MOST_ROWS {
            return Err(reader.error(format!("is row {}; at most {MOST_ROWS} are possible", MOST_ROWS + 1)));
        }
        rows.push(read_row(&reader, &columns.row(&reader, fields)?)?);
    }
    reader.line = 0;
    if rows.is_empty() {
        return Err(reader.error("has column names, but no measurement"));
    }
    Ok(rows)
}

fn read_columns<'a>(reader: &Reader, names: Vec<&'a str>) -> Result<Columns<'a>, MeasurementError> {
    let columns = Columns::read(reader, names, &COLUMNS)?;
    for column in ["queue_depth", "hpb", "metric", "value"] {
        columns.need(reader, column)?;
    }
    if columns.has("range_gib") == columns.has("range_mib") {
        return Err(reader.error("needs a column for the range: either range_gib or range_mib"));
    }
    if columns.has("weight") && columns.has("error_percent") {
        return Err(reader.error("has both weight and error_percent, which say the same; keep one of them"));
    }
    Ok(columns)
}

fn read_row(reader: &Reader, row: &Row) -> Result<Measurement, MeasurementError> {
    let blocks = if row.field("range_gib").is_some() {
        reader.number("range_gib", row.need(reader, "range_gib")?, 8191.0)? * 262_144.0
    } else {
        reader.number("range_mib", row.need(reader, "range_mib")?, 8_387_584.0)? * 256.0
    };
    let range_blocks = blocks as u32;
    if f64::from(range_blocks) != blocks {
        return Err(reader.error("range is no whole number of 4 KiB blocks"));
    }
    let hpb = match row.need(reader, "hpb")? {
        "off" => false,
        "on" => true,
        other => return Err(reader.error(format!("hpb is {}; expected on or off", shown(other)))),
    };
    let metric = row.need(reader, "metric")?;
    let metric = Metric::by_name(metric).ok_or_else(|| {
        reader.error(format!("metric is {}; known here: {}", shown(metric), Metric::ALL.map(Metric::name).join(", ")))
    })?;
    let block_kib = row.filled("block_kib").map_or(Ok(4), |t| reader.whole("block_kib", t, 4 * u32::from(u16::MAX)))?;
    if block_kib % 4 != 0 {
        return Err(reader.error(format!("block_kib is {block_kib}; it must be a multiple of 4")));
    }
    let block_count = (block_kib / 4) as u16;
    if range_blocks < u32::from(block_count) {
        return Err(reader.error(format!("range is smaller than one request of {block_kib} KiB")));
    }
    let error = match row.filled("weight") {
        Some(weight) => DEFAULT_ERROR_PERCENT / reader.number("weight", weight, 1e6)?.sqrt() / 100.0,
        None => reader.error_percent(row.field("error_percent").unwrap_or(""), DEFAULT_ERROR_PERCENT)?,
    };
    if error > 1.0 {
        return Err(reader.error("weight makes the standard error more than 100 %; at least 0.0001 is possible"));
    }
    Ok(Measurement {
        line: reader.line,
        setting: Setting {
            access: Access::RandomRead,
            range_blocks,
            queue_depth: reader.whole("queue_depth", row.need(reader, "queue_depth")?, 64)?,
            hpb,
            block_count,
        },
        metric,
        value: reader.number("value", row.need(reader, "value")?, 1e12)?,
        error,
        held_out: reader.held_out(row.field(HELD_OUT))?,
    })
}

/// Settings of which one is held out, and the first such one.
const SHARE: usize = 5;
const FIRST: usize = 2;
/// Settings that a table has at least if some are to be held out.
const ENOUGH: usize = 10;
/// Rows that the fit keeps at least for each parameter.
const ROWS_A_PARAMETER: usize = 2;

/// Holds rows out of the fit if the table does not say which: all of every fifth setting, in the order of the table, if
/// enough are left for so many parameters.
pub fn hold_out(rows: &mut [Measurement], params: usize) {
    if rows.iter().any(|row| row.held_out.is_some()) {
        return;
    }
    let mut settings: Vec<Setting> = Vec::new();
    for row in rows.iter() {
        if !settings.contains(&row.setting) {
            settings.push(row.setting);
        }
    }
    let chosen: Vec<Setting> = settings.iter().skip(FIRST).step_by(SHARE).copied().collect();
    let left = rows.iter().filter(|row| !chosen.contains(&row.setting)).count();
    if settings.len() < ENOUGH || left < ROWS_A_PARAMETER * params {
        return;
    }
    for row in rows.iter_mut() {
        row.held_out = Some(chosen.contains(&row.setting));
    }
}

/// Checks that a device can have been measured in this way.
///
/// # Errors
/// The first row that it cannot have been, with its line.
pub fn check(rows: &[Measurement], preset: &DevicePreset, file: &str) -> Result<(), MeasurementError> {
    for row in rows {
        let reader = Reader { file, line: row.line };
        row.setting.check(preset).map_err(|message| reader.error(message))?;
        filled::check(&row.setting, preset).map_err(|message| reader.error(message))?;
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
            (
                "range_gib;queue_depth\n1;16\n",
                "m.csv:1: is separated by semicolons; expected commas: \"range_gib,queue_depth\"",
            ),
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
    fn a_table_says_what_is_held_out() {
        let table = |rows: &str| parse(&format!("range_mib,queue_depth,hpb,metric,value,held_out\n{rows}"), "m.csv");
        let rows = table("64,1,off,iops,5,yes\n64,1,off,iops,5,no\n64,1,off,iops,5,\n").unwrap();
        assert_eq!(rows.iter().map(|row| row.held_out).collect::<Vec<_>>(), [Some(true), Some(false), Some(false)]);
        assert_eq!(rows.iter().map(Measurement::is_seen).collect::<Vec<_>>(), [false, true, true]);
        let error = table("64,1,off,iops,5,true\n").unwrap_err().to_string();
        assert!(error.contains("m.csv:2: held_out is \"true\"; expected yes or no"), "{error}");
        // What the table says stands.
        let mut many = table(&"64,1,off,iops,5,\n".repeat(40)).unwrap();
        hold_out(&mut many, 1);
        assert!(many.iter().all(Measurement::is_seen));
    }

    /// Every fifth setting, with all that was measured there, from ten settings on, if two rows are left for each
    /// parameter.
    #[test]
    fn a_fifth_of_the_settings_is_held_out() {
        let rows = |settings: u32| {
            let row = |i: u32| format!("{0},1,off,iops,5\n{0},1,off,latency_mean_us,5\n", 64 + i);
            let text =
                format!("range_mib,queue_depth,hpb,metric,value\n{}", (0..settings).map(row).collect::<String>());
            parse(&text, "m.csv").unwrap()
        };
        let held = |settings: u32, params: usize| -> Vec<usize> {
            let mut rows = rows(settings);
            hold_out(&mut rows, params);
            (0..rows.len()).filter(|i| !rows[*i].is_seen()).collect()
        };
        assert_eq!(held(10, 2), [4, 5, 14, 15]);
        assert_eq!(held(13, 2), [4, 5, 14, 15, 24, 25]);
        assert_eq!(held(9, 1), [0; 0]);
        assert_eq!(held(10, 8), [4, 5, 14, 15], "16 rows for 8 parameters");
        assert_eq!(held(10, 9), [0; 0]);
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
