// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document as a whole and its JSON text. Knows no files.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::error::{Error, finite};
use crate::{Case, Chart, Input, Metric, Note, Origin, Row};

/// Name and number of the format. The number rises when the meaning of a field changes, not when a field is added.
pub const SCHEMA: &str = "readpath-results/2";
/// The former version, which is read too: its notes are strings, and its cases do not say where their parts begin.
const FORMER: &str = "readpath-results/1";

/// How the document was made, and figures that depend on the machine; comparisons of documents ignore them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The command line, word by word, with the name of the program for its path; empty if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// CPU time of all threads, in seconds.
    pub cpu_seconds: f64,
    /// Largest resident set, in bytes.
    pub peak_rss_bytes: u64,
}

/// The results of one experiment. Serialises with its fields in the order given here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Name of the experiment in snake case.
    pub experiment: String,
    /// Heading.
    pub title: String,
    /// The answer in one to three sentences, which are shown before anything else; empty where nothing was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdict: Vec<Note>,
    /// What was asked and how, in a paragraph or more; an empty line parts paragraphs.
    pub description: String,
    /// The numbers.
    pub rows: Vec<Row>,
    /// The figures.
    pub charts: Vec<Chart>,
    /// Number of I/Os that were simulated to get the numbers.
    pub simulated_ios: u64,
    /// Seed of every random stream; the same seed and configuration give the same document but for `process`.
    pub seed: u64,
    /// The complete configuration of the run, in whatever shape the experiment has.
    pub configuration: serde_json::Value,
    /// What a reader must know to read the numbers right.
    pub notes: Vec<Note>,
    /// Sources of published values.
    pub citations: Vec<String>,
    /// The program that made it, and its version.
    #[serde(default)]
    pub program: String,
    /// Files that were read, each once: job files and traces.
    #[serde(default)]
    pub inputs: Vec<Input>,
    /// What the run cost on the machine that ran it.
    pub process: Process,
}

impl Document {
    /// The configuration for readers: of objects that are nearly equal, such as the devices of variants, all but the
    /// first have only what differs, and under `same as` the name of the first.
    pub fn short_configuration(&self) -> serde_json::Value {
        crate::alike::once(&self.configuration)
    }

    /// A document without rows.
    pub fn new(experiment: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            experiment: experiment.into(),
            title: title.into(),
            verdict: Vec::new(),
            description: String::new(),
            rows: Vec::new(),
            charts: Vec::new(),
            simulated_ios: 0,
            seed: 0,
            configuration: serde_json::Value::Object(serde_json::Map::new()),
            notes: Vec::new(),
            citations: Vec::new(),
            program: concat!("readpath ", env!("CARGO_PKG_VERSION")).to_owned(),
            inputs: Vec::new(),
            process: Process::default(),
        }
    }

    /// Adds a row and returns it, so that a published value may follow: `doc.row(…)?.published(293.45)?`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if `simulated` is NaN or infinite; no row is added then. That no two rows share case,
    /// variant and metric is checked by [`Self::validate`].
    pub fn row(
        &mut self,
        case: impl Into<Case>,
        variant: impl Into<String>,
        metric: Metric,
        simulated: f64,
        origin: Origin,
    ) -> Result<&mut Row, Error> {
        let at = self.rows.len();
        self.rows.push(Row::new(case, variant, metric, simulated, origin)?);
        Ok(&mut self.rows[at])
    }

    /// Adds a predicted row for each figure.
    pub fn predicted(
        &mut self,
        case: impl Into<Case>,
        variant: &str,
        figures: impl IntoIterator<Item = (Metric, f64)>,
    ) -> Result<(), Error> {
        let case = case.into();
        for (metric, value) in figures {
            self.row(&case, variant, metric, value, Origin::Predicted)?;
        }
        Ok(())
    }

    /// The row of this case, variant and metric.
    pub fn find(&self, case: &str, variant: &str, metric: &Metric) -> Option<&Row> {
        self.rows.iter().find(|r| *r.case == *case && r.variant == variant && r.metric.name() == metric.name())
    }

    /// Adds the rows, charts, inputs, notes and simulated requests of another document. The ids of its charts get
    /// `prefix`, so that they are unique.
    pub fn absorb(&mut self, other: Document, prefix: &str) {
        self.read_from(&other.inputs);
        other.notes.into_iter().for_each(|note| self.note(note));
        self.rows.extend(other.rows);
        let renamed = |chart: Chart| Chart { id: format!("{prefix}{}", chart.id), ..chart };
        self.charts.extend(other.charts.into_iter().map(renamed));
        self.simulated_ios += other.simulated_ios;
    }

    /// Adds a note unless the document has an equal one.
    pub fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a remark, even if the document has an equal one.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.notes.push(Note::remark(text));
    }

    /// Adds files that were read, each once.
    pub fn read_from<'a>(&mut self, inputs: impl IntoIterator<Item = &'a Input>) {
        for input in inputs {
            if !self.inputs.contains(input) {
                self.inputs.push(input.clone());
            }
        }
    }

    /// Checks what the types do not: the schema, finite numbers, errors that follow from their values, unique rows
    /// and unique chart ids. Reading and writing JSON both do this.
    pub fn validate(&self) -> Result<(), Error> {
        if self.schema != SCHEMA {
            return Err(Error::UnknownSchema(self.schema.clone()));
        }
        let mut seen = HashSet::new();
        for row in &self.rows {
            row.validate()?;
            if !seen.insert((&row.case, &row.variant, row.metric.name())) {
                let (case, variant) = (row.case.to_string(), row.variant.clone());
                let metric = row.metric.name().to_owned();
                return Err(Error::DuplicateRow { case, variant, metric });
            }
        }
        let mut ids = HashSet::new();
        for chart in &self.charts {
            chart.validate()?;
            if !ids.insert(&chart.id) {
                return Err(Error::DuplicateChart(chart.id.clone()));
            }
        }
        finite(self.process.cpu_seconds, || "process.cpu_seconds".to_owned())?;
        Ok(())
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json_pretty(&self) -> Result<String, Error> {
        self.validate()?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads a document. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`Error::Json`] if the text is malformed, [`Error::NoSchema`] or [`Error::UnknownSchema`] if it is not a
    /// document of this schema or the one before, otherwise as [`Self::validate`].
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        // The schema is checked first, so that a document of another version is not reported as malformed.
        match serde_json::from_str::<Head>(text)?.schema {
            None => return Err(Error::NoSchema),
            Some(schema) if schema != SCHEMA && schema != FORMER => return Err(Error::UnknownSchema(schema)),
            Some(_) => {}
        }
        let mut document: Self = serde_json::from_str(text)?;
        document.schema = SCHEMA.to_owned();
        document.validate()?;
        Ok(document)
    }

    /// The document with an empty `process`: two runs of the same experiment and seed are equal after this.
    #[must_use]
    pub fn without_process(&self) -> Self {
        Self { process: Process::default(), ..self.clone() }
    }
}
