// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a trace of format [`super::Format::TraceIo`], one by one, for printing: every UPIU with its bytes,
//! requests without reply, marks. Knows no meaning of the bytes.

use super::error::{Place, Reason, TraceError};
use super::formats::trace_io::Event;
use super::input::{Input, Line, Stop};
use super::messages::stop_error;
use super::{Format, Options};
use readpath_kit::Ns;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An event of a trace of UPIUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// A UPIU on its way.
    Upiu {
        /// When, in virtual time.
        time: Ns,
        /// The same in real time since the start of the server, if a server wrote the trace.
        wall: Option<Ns>,
        /// The request that it belongs to.
        request: u64,
        /// The UPIU.
        bytes: Vec<u8>,
        /// The parameter list that goes with it.
        data: Vec<u8>,
    },
    /// A request will not be answered.
    NoReply {
        /// When this was clear.
        time: Ns,
        /// The request.
        request: u64,
        /// Its tag.
        tag: u64,
        /// Its name in the trace.
        name: String,
    },
    /// The host's driver polled its requests and took the replies so far.
    Heard {
        /// When, in virtual time.
        time: Ns,
        /// Real time.
        wall: Option<Ns>,
    },
    /// An event that concerns all requests.
    Mark {
        /// When, in virtual time.
        time: Ns,
        /// Real time.
        wall: Option<Ns>,
        /// Its name.
        name: String,
    },
}

/// Reads such a trace, compressed or not. After an error or the end it yields nothing more.
pub struct Upius {
    file: String,
    input: Input,
    line: u64,
    ended: bool,
    any: bool,
}

impl Upius {
    /// Opens a trace called `file` in messages.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(file: &str, source: Box<dyn Read + Send>) -> Result<Upius, TraceError> {
        let Options { max_line_bytes, max_expanded_bytes, .. } = Options::default();
        let input = Input::new(source, max_line_bytes, max_expanded_bytes)
            .map_err(|e| TraceError::of_file(file, Reason::Io, format!("cannot be read: {e}")))?;
        Ok(Upius { file: file.into(), input, line: 0, ended: false, any: false })
    }

    /// Reading ends with an error soon after `asked` is set.
    pub fn stop_when(&mut self, asked: Arc<AtomicBool>) {
        self.input.asked = Some(asked);
    }

    /// The next event; `None` at the end.
    fn read(&mut self) -> Result<Option<Seen>, TraceError> {
        while !self.ended {
            let (reason, message) = match self.input.line() {
                Line::End => {
                    self.ended = true;
                    let place = Place::Line(self.line + 1);
                    return match stop_error(&self.file, place, &self.input.stop()) {
                        Some(error) => Err(error),
                        None if !self.any && self.input.stop() == Stop::End => {
                            Err(TraceError::of_file(&self.file, Reason::Empty, "there is no UPIU"))
                        }
                        None => Ok(None),
                    };
                }
                Line::TooLong | Line::Endless => {
                    self.line += 1;
                    (Reason::LongLine, "the line is longer than the limit; this is not an event".to_owned())
                }
                Line::Text(from, to) => {
                    self.line += 1;
                    let row = self.input.slice(from, to);
                    if row.trim_ascii().is_empty() {
                        continue;
                    }
                    match Event::parse(row) {
                        Ok(None) => continue,
                        Ok(Some(event)) => match seen(&event) {
                            Ok(None) => continue,
                            Ok(seen) => {
                                self.any = true;
                                return Ok(seen);
                            }
                            Err(field) => (Reason::Syntax, format!("{field}: expected a member of that name")),
                        },
                        Err(e) => {
                            let (message, name) = (e.message(row, e.expected), Format::TraceIo.name());
                            let shape = Format::TraceIo.about().shape;
                            (e.reason, format!("{message}; a row of format {name} is {shape}"))
                        }
                    }
                }
            };
            self.ended = true;
            return Err(TraceError {
                file: self.file.clone(),
                place: Place::Line(self.line),
                reason,
                message,
                needed_bytes: None,
            });
        }
        Ok(None)
    }
}

impl Iterator for Upius {
    type Item = Result<Seen, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// What an event says, or the member that it lacks.
fn seen(event: &Event) -> Result<Option<Seen>, &'static str> {
    let name = || String::from_utf8_lossy(event.name).into_owned();
    let time = || event.time.map(Ns).ok_or("ts");
    let request = || event.request.ok_or("request");
    let wall = event.wall_ns.map(Ns);
    Ok(match event.category {
        b"upiu" => {
            let bytes = event.upiu.ok_or("upiu")?.0.bytes().collect();
            Some(Seen::Upiu { time: time()?, wall, request: request()?, bytes, data: event.data.bytes().collect() })
        }
        b"request" if event.status == b"no reply" => {
            let time = Ns(time()?.0.saturating_add(event.duration));
            Some(Seen::NoReply { time, request: request()?, tag: event.tag, name: name() })
        }
        b"heard" => Some(Seen::Heard { time: time()?, wall }),
        b"" if event.scope == b"g" => Some(Seen::Mark { time: time()?, wall, name: name() }),
        _ => None,
    })
}
