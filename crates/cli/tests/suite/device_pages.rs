// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of the presets in the book: made from the comments of the preset files and from the documents of the
//! experiments that have published rows of them.

use crate::common::Room;
use readpath_results::{Document, Row, Standing};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What a comment begins with that says where a value comes from, and what the page says of it.
const MARKS: [(&str, &str); 5] = [
    ("Published", "of such a device, of its parts, or of a standard"),
    ("Derived", "from published figures"),
    ("Fitted", "chosen so that a published row comes out"),
    ("Assumption", "no source has it"),
    ("Model", "of the simulator, not of the device"),
];

/// A preset file, as far as its page needs it.
#[derive(Default)]
struct Preset {
    name: String,
    description: String,
    sources: Vec<String>,
    /// Keys with their values that share a comment, the mark of the comment, and the rest of it.
    values: Vec<(String, &'static str, String)>,
    /// Keys that comments call fitted, and those that `[calibration]` does.
    fitted: [BTreeSet<String>; 2],
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Preset {
    fn read(name: &str) -> Preset {
        let text = fs::read_to_string(root().join(format!("presets/{name}.toml"))).expect("a preset");
        let (_, rest) = text.split_once("description = \"\"\"\n").expect("a description");
        let (description, rest) = rest.split_once("\"\"\"\nsources = [\n").expect("sources");
        let (sources, rest) = rest.split_once("\n]\n").expect("an end of the sources");
        let source = |line: &str| Some(line.trim().strip_prefix('"')?.strip_suffix("\",")?.replace("\\\"", "\""));
        let mut preset = Preset {
            name: name.to_owned(),
            description: description.trim().replace("\\\n", ""),
            sources: sources.lines().filter_map(source).collect(),
            ..Preset::default()
        };
        preset.read_values(rest);
        preset
    }

    /// A comment is that of the key or the table below it, and of keys that follow there without another.
    fn read_values(&mut self, text: &str) {
        let (mut table, mut above, mut comment) = (String::new(), String::new(), String::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(words) = line.strip_prefix("# ") {
                above += if above.is_empty() { "" } else { " " };
                above += words;
            } else if let Some(name) = line.strip_prefix('[') {
                let name = name.trim_matches(['[', ']']);
                table = if line.starts_with("[[") { format!("{name}[0].") } else { format!("{name}.") };
                comment = std::mem::take(&mut above);
            } else if table == "calibration." {
                let key = line.split_once("{ key = \"").and_then(|(_, rest)| rest.split_once('"'));
                self.fitted[1].extend(key.map(|(key, _)| key.to_owned()));
            } else {
                if !above.is_empty() {
                    comment = std::mem::take(&mut above);
                }
                let (key, _) = line.split_once(" = ").unwrap_or_else(|| panic!("{}: {line}", self.name));
                if !["product_name", "scheduler"].contains(&key) {
                    self.add(&format!("{table}{key}"), &format!("`{table}{line}`"), &comment);
                }
            }
        }
    }

    fn add(&mut self, key: &str, shown: &str, comment: &str) {
        let marked = MARKS.iter().find_map(|(mark, _)| Some((*mark, comment.strip_prefix(mark)?.strip_prefix(": ")?)));
        let marks = MARKS.map(|(mark, _)| mark).join(", ");
        let (mark, says) = marked
            .unwrap_or_else(|| panic!("{}: the comment of {key} begins with none of {marks}: {comment:?}", self.name));
        if mark == "Fitted" {
            self.fitted[0].insert(key.to_owned());
        }
        match self.values.last_mut() {
            Some((keys, of, text)) if *of == mark && text == says => *keys += &format!(", {shown}"),
            _ => self.values.push((shown.to_owned(), mark, says.to_owned())),
        }
    }

    /// The page, with the rows that are published of this preset.
    fn page(&self, documents: &[Document]) -> String {
        let command = format!("READPATH_KEEP_REFERENCE=1 cargo test -p readpath --test suite {TEST}");
        let mut page = format!(
            "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n<!-- {command} -->\n# {}\n\n{}\n\n## Published rows\n\n",
            self.name, self.description
        );
        let _ = writeln!(page, "{}", self.rows(documents));
        page += "## Where the values come from\n\n";
        for (mark, meaning) in MARKS.iter().filter(|(mark, _)| self.values.iter().any(|(_, of, _)| of == mark)) {
            let _ = writeln!(page, "- *{mark}*: {meaning}.");
        }
        page += "\n| value | is | which |\n|---|---|---|\n";
        for (keys, mark, says) in &self.values {
            assert!(!says.contains('|'), "{says}");
            let _ = writeln!(page, "| {keys} | {} | {says} |", mark.to_lowercase());
        }
        page += "\n## Sources\n\n";
        self.sources.iter().for_each(|source| page += &format!("- {source}\n"));
        page
    }

    /// Published rows of this preset: fitted, predicted, and those that do not hold.
    fn counts(&self, documents: &[Document]) -> [usize; 3] {
        let rows = || documents.iter().filter(|doc| self.is_of(doc)).flat_map(|doc| &doc.rows);
        [Standing::Fit, Standing::Holds, Standing::DoesNotHold]
            .map(|standing| rows().filter(|row| row.standing() == Some(standing)).count())
    }

    fn is_of(&self, doc: &Document) -> bool {
        doc.configuration["experiment"]["device"] == self.name.as_str()
    }

    fn rows(&self, documents: &[Document]) -> String {
        let is_of = |doc: &&Document| self.is_of(doc);
        let compared = |doc: &Document| doc.rows.iter().filter(|row| row.standing().is_some()).cloned().collect();
        let all: Vec<(&str, Vec<Row>)> =
            documents.iter().filter(is_of).map(|doc| (&*doc.experiment, compared(doc))).collect();
        let rows = || all.iter().flat_map(|(_, rows)| rows);
        if rows().next().is_none() {
            return "None is published of such a device.\n".to_owned();
        }
        let [fit, hold, fail] = self.counts(documents);
        let mut text = format!(
            "Of {} rows {fit} were fitted, {hold} predictions hold, {fail} **do not hold**.\n\n\
             | experiment | case | variant | metric | published | simulated | error, % | |\n\
             |---|---|---|---|---:|---:|---:|---|\n",
            rows().count()
        );
        for (experiment, rows) in &all {
            for row in rows {
                let standing = row.standing().expect("compared");
                let bold = if standing == Standing::DoesNotHold { "**" } else { "" };
                let Row { case, variant, simulated, .. } = row;
                let (published, error) = (row.published.expect("published"), row.error_percent.expect("an error"));
                let metric = match row.metric.unit() {
                    "" => row.metric.label(),
                    unit => format!("{}, {unit}", row.metric.label()),
                };
                let numbers =
                    format!("{published:.1} | {simulated:.1} | {error:+.1} | {bold}{}{bold}", standing.as_str());
                let _ = writeln!(text, "| `{experiment}` | {case} | {variant} | {metric} | {numbers} |");
            }
        }
        let reasons: Vec<_> = documents.iter().filter(is_of).flat_map(readpath_report::why_not).collect();
        if !reasons.is_empty() {
            text += "\nWhat does not hold, and why:\n\n";
            reasons.iter().for_each(|(reason, rows)| text += &format!("- {rows}: {reason}.\n"));
        }
        text
    }
}

/// The test that has the documents.
const TEST: &str = "devices_of_today";

/// Every preset has its page in the book, and says of each of its values where it comes from. Every prediction that
/// does not hold has its reason, and no other row has one. No preset has more fitted rows than predictions that hold.
#[track_caller]
pub fn check(room: &Room, folders: &[String]) {
    let read = |folder: &String| Document::from_json(&room.read(&format!("{folder}/result.json"))).expect("a document");
    let documents: Vec<Document> = folders.iter().map(read).collect();
    for row in documents.iter().flat_map(|doc| &doc.rows) {
        let fails = row.standing() == Some(Standing::DoesNotHold);
        assert_eq!(fails, row.reason.is_some(), "{}, {}: {:?}", row.case, row.variant, row.reason);
    }
    let summary = fs::read_to_string(root().join("docs/experiments.md")).expect("the chapter");
    let keep = env::var_os("READPATH_KEEP_REFERENCE").is_some();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(root().join("presets")).expect("presets") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let preset = Preset::read(&name);
        assert_eq!(
            preset.fitted[0], preset.fitted[1],
            "{name}: what comments call fitted is not what [calibration] does"
        );
        let (path, page) = (root().join(format!("docs/devices/{name}.md")), preset.page(&documents));
        if keep {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, page).expect("the page can be written");
        } else {
            let old = fs::read_to_string(&path).unwrap_or_default();
            let differs = old.lines().zip(page.lines()).find(|(old, new)| old != new);
            let again = format!("READPATH_KEEP_REFERENCE=1 cargo test -p readpath --test suite {TEST}");
            assert!(
                old == page,
                "docs/devices/{name}.md is not as the preset is; write it anew:\n{again}\n{differs:#?}"
            );
        }
        let [fit, hold, fail] = preset.counts(&documents);
        assert!(fit <= hold, "{name}: {fit} rows were fitted, and only {hold} predictions hold");
        let line = format!("| {fit} | {hold} | {fail} |");
        let mut lines = summary.lines().filter(|line| line.starts_with(&format!("| [`{name}`](devices/{name}.md)")));
        assert!(lines.all(|of| of.ends_with(&line)), "docs/experiments.md does not say {line} of {name}");
        names.insert(format!("{name}.md"));
    }
    let pages = fs::read_dir(root().join("docs/devices")).expect("pages");
    let pages: BTreeSet<String> =
        pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(pages, names, "each preset has a page, and each page a preset");
}
