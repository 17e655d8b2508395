// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of job files to sections of options: comments, section headings, `include`, variables. Knows no option's name
//! or meaning.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use readpath_kit::BLOCK_BYTES;

use super::{JobError, TYPED};

/// Bytes of all files together.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of one line, as in fio.
const MAX_LINE: usize = 4096;
/// Bytes of a section's name, as in fio.
pub(super) const MAX_NAME: usize = 255;
/// Files inside files.
const MAX_DEPTH: u32 = 16;
/// Included files altogether.
const MAX_INCLUDES: u32 = 4096;

/// File and line of an option or heading.
#[derive(Clone, Debug, Default)]
pub(super) struct At {
    pub file: Arc<str>,
    pub line: u32,
}

/// File and line; of what was typed the option, which has no line.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

impl At {
    pub(super) fn error(&self, message: impl Into<String>) -> JobError {
        JobError { file: self.file.to_string(), line: self.line, key: None, message: message.into() }
    }
}

/// One `key=value`, or a key alone.
#[derive(Debug)]
pub(super) struct Opt {
    pub at: At,
    pub key: String,
    pub value: Option<Arc<str>>,
}

impl Opt {
    pub(super) fn error(&self, message: impl Into<String>) -> JobError {
        JobError { key: Some(self.key.clone()), ..self.at.error(message) }
    }
}

/// A heading and the options below it.
#[derive(Debug)]
pub(super) struct Section {
    pub at: At,
    pub name: Arc<str>,
    pub options: Vec<Opt>,
}

/// Adds options to every job, after its own: a later value replaces an earlier one.
pub(super) fn add(sections: &mut [Section], options: &[(String, String)]) {
    for section in sections.iter_mut().filter(|section| !section.name.starts_with("global")) {
        section.options.extend(options.iter().map(|(key, value)| {
            let at = At { file: "job".into(), line: 0 };
            Opt { at, key: key.clone(), value: Some(value.as_str().into()) }
        }));
    }
}

struct Reader<'a> {
    load: &'a dyn Fn(&Path) -> io::Result<String>,
    sections: Vec<Section>,
    bytes: usize,
    includes: u32,
}

pub(super) fn read(
    file: &str,
    text: &str,
    load: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<Vec<Section>, JobError> {
    let mut reader = Reader { load, sections: Vec::new(), bytes: 0, includes: 0 };
    let whole = At { file: file.into(), line: 0 };
    reader.file(&whole, file, text, 0)?;
    Ok(reader.sections)
}

impl Reader<'_> {
    fn file(&mut self, from: &At, name: &str, text: &str, depth: u32) -> Result<(), JobError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES {
            return Err(from.error("the job file and what it includes are longer than 16 MiB"));
        }
        let file: Arc<str> = name.into();
        // Editors of Windows put a byte order mark before the first line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, text) in (1u32..).zip(text.lines()) {
            let at = if name == TYPED { typed(text) } else { At { file: file.clone(), line } };
            if text.len() > MAX_LINE {
                return Err(at.error(format!("the line is longer than {MAX_LINE} bytes")));
            }
            // fio ends a line at the first ; or #, whatever its position.
            let text = text.split([';', '#']).next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            if let Some(rest) = text.strip_prefix('[') {
                let Some(name) = rest.strip_suffix(']').map(str::trim) else {
                    return Err(at.error("a section heading must end with ]"));
                };
                if name.is_empty() {
                    return Err(at.error("a section needs a name: [global] or [jobname]"));
                }
                if name.len() > MAX_NAME {
                    return Err(at.error(format!("the section's name is longer than {MAX_NAME} bytes")));
                }
                self.sections.push(Section { at, name: name.into(), options: Vec::new() });
            } else if let Some(path) = include(text) {
                self.include(&at, path, depth)?;
            } else {
                self.option(at, text)?;
            }
        }
        Ok(())
    }

    fn option(&mut self, at: At, text: &str) -> Result<(), JobError> {
        let text = self.expand(&at, text)?;
        let text = text.as_str();
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (text, None),
        };
        let Some(section) = self.sections.last_mut() else {
            return Err(at.error("an option before the first section; put [global] or [jobname] above it"));
        };
        if key.is_empty() {
            return Err(at.error("the option name before the = is missing"));
        }
        section.options.push(Opt { at, key: key.into(), value: value.map(Into::into) });
        Ok(())
    }

    /// The line with the values of its variables and of fio's keywords.
    fn expand(&self, at: &At, text: &str) -> Result<String, JobError> {
        for word in ["$mb_memory", "$ncpus"] {
            if text.contains(word) {
                let what = "says what machine fio runs on, which would change the result; write the number itself";
                return Err(at.error(format!("{word} {what}")));
            }
        }
        let mut rest = text;
        let mut expanded = String::new();
        while let Some((before, (name, after))) = rest.split_once("${").and_then(|(b, r)| Some((b, r.split_once('}')?)))
        {
            let value = (self.load)(Path::new(&format!("${{{name}}}"))).map_err(|_| {
                at.error(format!("the environment has no variable {name}; give it before the command: {name}=VALUE"))
            })?;
            expanded.extend([before, value.as_str()]);
            rest = after;
        }
        Ok((expanded + rest).replace("$pagesize", &BLOCK_BYTES.to_string()))
    }

    fn include(&mut self, at: &At, path: &str, depth: u32) -> Result<(), JobError> {
        self.includes += 1;
        if depth == MAX_DEPTH {
            return Err(at.error(format!("more than {MAX_DEPTH} files included in one another")));
        }
        if self.includes > MAX_INCLUDES {
            return Err(at.error(format!("more than {MAX_INCLUDES} files included")));
        }
        let beside = Path::new(&*at.file).parent().map_or_else(|| path.into(), |dir| dir.join(path));
        let loaded = match (self.load)(&beside) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && beside != Path::new(path) => {
                (self.load)(Path::new(path)).map(|text| (path.to_owned(), text))
            }
            other => other.map(|text| (beside.display().to_string(), text)),
        };
        match loaded {
            Ok((name, text)) => self.file(at, &name, &text, depth + 1),
            Err(e) => Err(at.error(format!("the included file \"{path}\" cannot be read: {e}"))),
        }
    }
}

/// The option of a command line that became this line.
fn typed(line: &str) -> At {
    let option = match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        Some(name) => format!("--name={name}"),
        None => format!("--{line}"),
    };
    At { file: option.into(), line: 0 }
}

/// The path of an `include` line.
fn include(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("include")?;
    rest.starts_with([' ', '\t']).then(|| rest.trim()).filter(|path| !path.is_empty() && !path.starts_with('='))
}
