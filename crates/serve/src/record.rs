// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings: requests and orders of a served device, their times and how long they took, as lines of text. Up to the
//! latency a line is one of our tables of requests, which every command reads that reads traces; the rest of it and the
//! lines that begin with `#` are for a replay on the image that the recording began with, and have the data of writes.
//! `docs/formats/recording.md` describes it. It knows no file by name.

use crate::edges::Ask;
use crate::orders::{Order, OrderError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use readpath_device::{DeviceStats, Recovery, Wear};
use readpath_host::HpbCounters;
use readpath_kit::Ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};
use thiserror::Error;

const FIRST: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns,request,number,modelled_ns";
/// Version of the format.
const VERSION: &str = "# recording 1";
/// Requests and orders that a replay takes.
const MOST: usize = 1 << 28;

/// Bytes of data in one line: readers of traces take lines of 64 KiB.
const DATA_BYTES: usize = 24 << 10;

/// Bytes of a line; a longer one counts as cut off.
const MOST_LINE: u64 = 1 << 20;

/// Words for what can be asked, and letters for those who read traces.
const ASKS: [(Ask, &str, &str); 11] = [
    (Ask::Read, "read", "R"),
    (Ask::Cache, "cache", "R"),
    (Ask::Write { fua: false }, "write", "W"),
    (Ask::Write { fua: true }, "write-fua", "WF"),
    (Ask::Flush, "flush", "F"),
    (Ask::Trim { fua: false }, "trim", "D"),
    (Ask::Trim { fua: true }, "trim-fua", "D"),
    (Ask::Zero { fua: false, no_hole: false }, "zero", "W"),
    (Ask::Zero { fua: true, no_hole: false }, "zero-fua", "W"),
    (Ask::Zero { fua: false, no_hole: true }, "zero-allocated", "W"),
    (Ask::Zero { fua: true, no_hole: true }, "zero-allocated-fua", "W"),
];

/// A request of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    /// When it was read from the socket.
    pub at: Ns,
    /// Its logical unit.
    pub unit: u8,
    pub ask: Ask,
    pub offset: u64,
    pub bytes: u32,
    /// The client, by its connection; none for the server itself.
    pub client: Option<u32>,
    /// Its place among requests and orders.
    pub number: u64,
    /// How long the device took.
    pub modelled: Ns,
    /// How long it was until the answer had left, if a client took it and time was real.
    pub served: Option<Ns>,
}

/// The state that a device began with: a replay on another image is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start(String);

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Start {
    /// Whether a device `here` is in the state.
    pub(crate) fn is(&self, here: &Start) -> Result<(), String> {
        match self == here {
            true => Ok(()),
            false => Err(format!("it did not begin with this image, or not as it is now; then: {self}; here: {here}")),
        }
    }

    pub(crate) fn new(recovery: &Recovery, valid_slices: u64, wear: &Wear) -> Start {
        Start(format!(
            "ready_ns={} reads={} torn={} valid={valid_slices} erases={} bad={}",
            recovery.ready_at.0,
            recovery.reads(),
            recovery.torn,
            wear.max,
            wear.bad_blocks
        ))
    }
}

/// What host and device had counted at the end.
pub(crate) fn counters(device: &DeviceStats, hpb: Option<&HpbCounters>) -> Vec<(String, u64)> {
    let device = device.by_name().map(|(name, value)| (format!("device_{name}"), value));
    let hpb = hpb.map(HpbCounters::by_name).into_iter().flatten();
    device.chain(hpb.map(|(name, value)| (format!("hpb_{name}"), value))).collect()
}

struct Recorder {
    out: Box<dyn Write>,
    line: String,
    next: u64,
    /// The data of writes is recorded too.
    keeps_data: bool,
    /// Why nothing is written any more.
    failure: Option<String>,
}

/// The recorder, if a recording was asked for.
#[derive(Default)]
pub(crate) struct Recording(Option<Recorder>);

impl Recording {
    /// Begins a recording of a device with this name and host, with the data of writes or without.
    pub(crate) fn new(
        out: Box<dyn Write>,
        keeps_data: bool,
        device: &str,
        host: &str,
        Start(start): &Start,
    ) -> Recording {
        let mut recording = Recording(Some(Recorder { out, line: String::new(), next: 0, keeps_data, failure: None }));
        recording
            .line(|line| _ = write!(line, "{FIRST}\n{VERSION}\n# device {device}\n# host {host}\n# start {start}"));
        recording
    }

    fn line(&mut self, line: impl FnOnce(&mut String)) {
        let Some(Recorder { out, line: buffer, failure, .. }) = &mut self.0 else { return };
        buffer.clear();
        line(buffer);
        buffer.push('\n');
        if failure.is_none()
            && let Err(error) = out.write_all(buffer.as_bytes())
        {
            *failure = Some(error.to_string());
        }
    }

    /// The place of the next request or order.
    pub(crate) fn number(&mut self) -> u64 {
        let Some(recorder) = &mut self.0 else { return 0 };
        recorder.next += 1;
        recorder.next
    }

    /// Request `number` of a logical unit has come, with its data.
    pub(crate) fn came(&mut self, number: u64, unit: u8, data: &[u8]) {
        if unit > 0 {
            self.line(|line| _ = write!(line, "#unit {number} {unit}"));
        }
        if self.0.as_ref().is_some_and(|recorder| recorder.keeps_data) {
            for part in data.chunks(DATA_BYTES) {
                self.line(|line| {
                    let _ = write!(line, "#data {number} ");
                    STANDARD.encode_string(part, line);
                });
            }
        }
    }

    /// Request `number`, which [`Recording::asked`] will be told of, has ended.
    pub(crate) fn ended(&mut self, number: u64, has_failed: bool) {
        if has_failed {
            self.line(|line| _ = write!(line, "#failed {number}"));
        }
    }

    /// A request has been answered.
    pub(crate) fn asked(&mut self, asked: &Asked) {
        if self.0.is_none() {
            return;
        }
        let Asked { at, ask, offset, bytes, client, number, modelled, served, .. } = *asked;
        let Some((_, word, letter)) = ASKS.iter().find(|(known, ..)| *known == ask) else { return };
        self.line(|line| {
            let _ = write!(line, "{},{letter},{offset},{bytes},", at.0);
            client.iter().for_each(|client| _ = write!(line, "{client}"));
            line.push(',');
            served.iter().for_each(|served| _ = write!(line, "{}", served.0));
            let _ = write!(line, ",{word},{number},{}", modelled.0);
        });
    }

    /// An order has been carried out.
    pub(crate) fn ordered(&mut self, at: Ns, order: &Order) {
        let number = self.number();
        self.line(|line| _ = write!(line, "#order {} {number} {order}", at.0));
    }

    /// The server has ended at `at`. Says why the recording is not whole, if it is not.
    pub(crate) fn end(&mut self, at: Ns, device: &DeviceStats, hpb: Option<&HpbCounters>) -> Option<String> {
        self.line(|line| {
            let _ = write!(line, "# end {}", at.0);
            counters(device, hpb).iter().for_each(|(name, value)| _ = write!(line, "\n# counter {name} {value}"));
        });
        let Recorder { out, failure, .. } = self.0.as_mut()?;
        let flushed = out.flush().err().map(|error| error.to_string());
        failure.take().or(flushed)
    }
}

/// Why a recording cannot be replayed.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no recording.
    #[error("it does not begin with '{FIRST}' and '{VERSION}': it is no recording of a server")]
    NoRecording,
    /// A line is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Complete lines; a rest behind the last one was cut off.
struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.0.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
            Err(error) => Some(Err(error)),
            Ok(_) => (line.pop() == Some(b'\n')).then_some(Ok(line)),
        }
    }
}

/// An entry of a recording.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Item {
    Request(Asked),
    Order(Order),
}

/// A recording that was read.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The device.
    pub device: String,
    /// Options of the host: `key=value`, separated by spaces.
    pub host: String,
    pub(crate) start: Start,
    /// Entries in order, each with its number and time.
    pub(crate) items: Vec<(u64, Ns, Item)>,
    /// When the server ended and what had been counted, if it ended in order.
    pub(crate) end: Option<Ns>,
    pub(crate) counters: Vec<(String, u64)>,
    /// Data of writes, by their numbers; empty if it was not recorded.
    pub(crate) data: BTreeMap<u64, Vec<u8>>,
    /// Logical units of requests, by their numbers; that of others is the first.
    units: BTreeMap<u64, u8>,
    /// Requests that failed.
    pub(crate) failed: BTreeSet<u64>,
    /// Requests and orders that are left out, because some before them are missing or were cut off.
    pub left_out: u64,
}

impl Recorded {
    /// Reads a recording.
    ///
    /// # Errors
    /// It cannot be read, or a line is wrong; it may end anywhere.
    pub fn read(input: impl BufRead) -> Result<Recorded, RecordingError> {
        let mut recorded = Recorded {
            device: String::new(),
            host: String::new(),
            start: Start(String::new()),
            items: Vec::new(),
            end: None,
            counters: Vec::new(),
            data: BTreeMap::new(),
            units: BTreeMap::new(),
            failed: BTreeSet::new(),
            left_out: 0,
        };
        let mut lines = Lines(input).enumerate();
        for expected in [FIRST, VERSION] {
            match lines.next() {
                Some((_, Ok(line))) if line == expected.as_bytes() => {}
                Some((_, Err(error))) => return Err(error.into()),
                _ => return Err(RecordingError::NoRecording),
            }
        }
        for (i, line) in lines {
            let wrong = |what| RecordingError::Line { line: i + 1, what };
            let line = line?;
            let line = std::str::from_utf8(&line).map_err(|_| wrong("is not text".to_owned()))?;
            recorded.take(line).map_err(wrong)?;
            if recorded.items.len() > MOST {
                return Err(wrong(format!("a replay takes {MOST} requests at most")));
            }
        }
        recorded.items.sort_by_key(|&(number, ..)| number);
        // Requests in flight when a server was killed are missing, and they affected later ones.
        let whole = (1..).zip(&recorded.items).take_while(|(expected, (number, ..))| expected == number).count();
        recorded.left_out = (recorded.items.len() - whole) as u64;
        recorded.items.truncate(whole);
        if recorded.left_out > 0 {
            recorded.end = None;
        }
        if recorded.start.0.is_empty() {
            return Err(RecordingError::Line { line: 5, what: "does not say how the device began".to_owned() });
        }
        Ok(recorded)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not a number"));
        if let Some(order) = line.strip_prefix("#order ") {
            let mut words = order.splitn(3, ' ');
            let mut word = || words.next().ok_or("an order has a time, a number and words");
            let (at, place, text) = (number(word()?)?, number(word()?)?, word()?);
            let order: Order = text.parse().map_err(|error: OrderError| error.to_string())?;
            self.items.push((place, Ns(at), Item::Order(order)));
        } else if let Some(data) = line.strip_prefix("#data ") {
            let (place, text) = data.split_once(' ').ok_or("data has a number and text")?;
            let data = self.data.entry(number(place)?).or_default();
            STANDARD.decode_vec(text, data).map_err(|error| format!("data is not base64: {error}"))?;
        } else if let Some(of) = line.strip_prefix("#unit ") {
            let (place, unit) = of.split_once(' ').ok_or("a unit has the number of a request and its own")?;
            let unit = unit.parse().map_err(|_| format!("'{unit}' is not a logical unit"))?;
            self.units.insert(number(place)?, unit);
        } else if let Some(place) = line.strip_prefix("#failed ") {
            self.failed.insert(number(place)?);
        } else if let Some(comment) = line.strip_prefix("# ") {
            match comment.split_once(' ') {
                Some(("device", device)) => device.clone_into(&mut self.device),
                Some(("host", host)) => host.clone_into(&mut self.host),
                Some(("start", start)) => self.start = Start(start.to_owned()),
                Some(("end", at)) => self.end = Some(Ns(number(at)?)),
                Some(("counter", counter)) => {
                    let (name, value) = counter.split_once(' ').ok_or("a counter has a name and a value")?;
                    self.counters.push((name.to_owned(), number(value)?));
                }
                _ => {}
            }
        } else if !line.is_empty() {
            let fields: Vec<&str> = line.split(',').collect();
            let [at, _, offset, bytes, client, served, word, place, modelled] = fields[..] else {
                return Err(format!("has {} fields and should have 9", fields.len()));
            };
            let ask = ASKS.iter().find(|(_, known, _)| *known == word).map(|&(ask, ..)| ask);
            let maybe = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
            let asked = Asked {
                at: Ns(number(at)?),
                // Its line comes before.
                unit: self.units.remove(&number(place)?).unwrap_or(0),
                ask: ask.ok_or_else(|| format!("'{word}' is not a request"))?,
                offset: number(offset)?,
                bytes: number(bytes)?.try_into().map_err(|_| format!("{bytes} bytes are too many"))?,
                client: maybe(client)?.and_then(|client| client.try_into().ok()),
                number: number(place)?,
                modelled: Ns(number(modelled)?),
                served: maybe(served)?.map(Ns),
            };
            self.items.push((asked.number, asked.at, Item::Request(asked)));
        }
        Ok(())
    }

    /// Whether the recording began with this device as it is after its recovery.
    ///
    /// # Errors
    /// In which way it did not.
    pub fn began_with(&self, device: &str, recovery: &Recovery, valid_slices: u64, wear: &Wear) -> Result<(), String> {
        if self.device != device {
            return Err(format!("it is of a device {}, and the image of a {device}", self.device));
        }
        self.start.is(&Start::new(recovery, valid_slices, wear))
    }

    /// Requests.
    pub fn requests(&self) -> usize {
        self.items.iter().filter(|(.., item)| matches!(item, Item::Request(_))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A place that a test can look at.
    #[derive(Clone, Default)]
    struct Sink(Rc<RefCell<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let sink = Sink::default();
        let start = Start("ready_ns=5".to_owned());
        let mut recording = Recording::new(Box::new(sink.clone()), true, "ufs21-64g", "hpb=dcm", &start);
        let mut expected = Vec::new();
        for (i, &(ask, ..)) in ASKS.iter().enumerate() {
            let at = Ns(100 + i as u64);
            let served = (i % 2 == 0).then_some(Ns(9));
            let number = recording.number();
            let client = (i > 0).then_some(i as u32);
            let unit = (i % 3) as u8;
            let asked = Asked { at, unit, ask, offset: 4096, bytes: 512, client, number, modelled: Ns(7), served };
            expected.push((number, at, Item::Request(asked)));
        }
        // Answers come in another order.
        for (.., item) in expected.iter().rev() {
            let Item::Request(asked) = item else { continue };
            recording.came(asked.number, asked.unit, &vec![asked.number as u8; 50_000]);
            recording.ended(asked.number, asked.ask == Ask::Flush);
            recording.asked(asked);
        }
        let order: Order = "cut 5ms".parse().unwrap();
        recording.ordered(Ns(200), &order);
        expected.push((12, Ns(200), Item::Order(order)));
        assert_eq!(recording.end(Ns(300), &DeviceStats::default(), None), None);
        let bytes = sink.0.borrow().clone();
        let recorded = Recorded::read(&bytes[..]).unwrap();
        assert_eq!((&*recorded.device, &*recorded.host), ("ufs21-64g", "hpb=dcm"));
        assert_eq!((recorded.start, recorded.end), (start, Some(Ns(300))));
        assert_eq!(recorded.counters, counters(&DeviceStats::default(), None));
        assert_eq!(recorded.items, expected);
        assert_eq!(recorded.failed, [5].into());
        assert_eq!(recorded.data.len(), ASKS.len());
        assert!(recorded.data.iter().all(|(&number, data)| *data == vec![number as u8; 50_000]));
    }

    #[test]
    fn lines_that_are_wrong_are_named() {
        let head = format!("{FIRST}\n{VERSION}\n# start x\n");
        for (line, what) in [
            ("1,R,0,4096,,,read,1", "8 fields"),
            ("x,R,0,4096,,,read,1,5", "'x' is not a number"),
            ("1,R,0,4096,,,reed,1,5", "'reed' is not a request"),
            ("1,R,0,4294967296,,,read,1,5", "too many"),
            ("#order 5 1", "an order has"),
            ("#order 5 1 jump", "jump"),
            ("# counter x", "a counter has"),
            ("#data 5", "a number and text"),
            ("#data x AAAA", "'x' is not a number"),
            ("#data 5 A", "not base64"),
            ("#failed x", "'x' is not a number"),
            ("#unit 5", "a unit has the number"),
            ("#unit 5 256", "'256' is not a logical unit"),
        ] {
            let error = Recorded::read(format!("{head}{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 4: ") && error.contains(what), "{line}: {error}");
        }
        assert!(matches!(Recorded::read(&b"time_ns,op\n# recording 1\n"[..]), Err(RecordingError::NoRecording)));
        assert!(matches!(Recorded::read(&b""[..]), Err(RecordingError::NoRecording)));
    }
}
