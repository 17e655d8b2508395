// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of binary records: those of `blktrace`, which a magic number begins, and those of one size.

use super::super::Format;
use super::super::error::{Place, Reason, RowError, TraceError};
use super::super::formats::binary::{Field, message};
use super::super::formats::libcachesim::{self, HEADER_BYTES, Lcs};
use super::super::formats::{Context, DeviceName, Row, blktrace, vscsi};
use super::super::input::Stop;
use super::super::messages::explain;
use super::{BATCH, Reader};

/// What the records of a binary trace are like.
#[derive(Clone, Copy, Default)]
pub(super) enum Layout {
    /// It has none.
    #[default]
    Text,
    Blktrace(blktrace::Order),
    Vscsi(vscsi::Version),
    OracleGeneral,
    Lcs(Lcs),
}

impl Layout {
    /// Whether it is of a format that names devices in some versions, but not in this one.
    pub(super) fn is_nameless(self) -> bool {
        matches!(self, Layout::Lcs(lcs) if lcs.version == 1)
    }

    pub(super) fn has_operations(self) -> bool {
        !matches!(self, Layout::OracleGeneral) && !self.is_nameless()
    }
}

impl Reader {
    /// Learns from the beginning what records are like, and passes a header.
    pub(super) fn layout(&mut self) -> Result<(), TraceError> {
        let bytes = self.input.bytes();
        self.records = match self.format {
            Format::Blktrace => Layout::Blktrace(match blktrace::magic(bytes) {
                blktrace::Magic::Known(order) => order,
                _ => blktrace::Order::Little,
            }),
            Format::Vscsi => match vscsi::version(bytes) {
                Some(version) => Layout::Vscsi(version),
                None if bytes.is_empty() => Layout::Vscsi(vscsi::Version::One),
                None => return Err(self.at_byte(0, vscsi::no_version().into())),
            },
            Format::OracleGeneral => Layout::OracleGeneral,
            Format::Lcs => {
                let lcs = Lcs::header(bytes).map_err(|(byte, message)| self.at_byte(byte, message))?;
                self.input.skip(HEADER_BYTES);
                Layout::Lcs(lcs)
            }
            _ => Layout::Text,
        };
        Ok(())
    }

    fn at_byte(&self, byte: u64, message: String) -> TraceError {
        TraceError {
            file: self.file.clone(),
            place: Place::Byte(byte),
            reason: Reason::Format,
            message,
            needed_bytes: None,
        }
    }

    /// Reads records until about [`BATCH`] more requests are in the window.
    pub(super) fn read_records(&mut self) -> Result<(), TraceError> {
        match self.records {
            Layout::Text => Ok(()),
            Layout::Blktrace(order) => self.with_payload(order),
            Layout::Vscsi(version) => {
                let size = version.record_bytes();
                self.of_size(size, version.fields(), move |record, cx, _| vscsi::row(version, record, cx))
            }
            Layout::OracleGeneral => {
                let row = |record: &[u8], cx: &mut Context, _: &mut DeviceName| libcachesim::oracle(record, cx);
                self.of_size(libcachesim::ORACLE_BYTES, libcachesim::ORACLE, row)
            }
            Layout::Lcs(lcs) => {
                let Lcs { version, .. } = lcs;
                match version {
                    1 => {
                        self.of_size(lcs.record_bytes(), lcs.fields(), |record, cx, _| libcachesim::oracle(record, cx))
                    }
                    _ => self.of_size(lcs.record_bytes(), lcs.fields(), move |record, cx, name| {
                        libcachesim::later(version, record, cx, name)
                    }),
                }?;
                if self.ended { self.all_there(lcs) } else { Ok(()) }
            }
        }
    }

    /// Whether there are as many records as the header says.
    fn all_there(&mut self, lcs: Lcs) -> Result<(), TraceError> {
        let found = self.summary.rows;
        if found == lcs.requests || self.input.stop() != Stop::End {
            return Ok(());
        }
        let message = format!("the header says {} requests at byte 24, and {found} follow", lcs.requests);
        self.fault(Reason::Truncated, Place::Byte(self.input.offset), message)
    }

    /// Reads records of `size` bytes. One copy for each format.
    #[inline(always)]
    fn of_size(
        &mut self,
        size: usize,
        fields: &[Field],
        parse: impl Fn(&[u8], &mut Context, &mut DeviceName) -> Result<Row, RowError>,
    ) -> Result<(), TraceError> {
        let target = self.window.len() + BATCH;
        while self.window.len() < target && !self.ended {
            let offset = self.input.offset;
            let bytes = self.input.need(size);
            if bytes.is_empty() {
                return self.end(Place::Byte(offset));
            }
            let Some(record) = bytes.get(..size) else { return self.cut(Place::Byte(offset)) };
            self.summary.rows += 1;
            match parse(record, &mut self.cx, &mut self.device_name).and_then(|row| self.cx.placed(row)) {
                Ok(Row::Request(raw)) if self.is_usual(&raw) => self.window.push(raw),
                Ok(row) => self.unusual(row, Place::Byte(offset))?,
                Err(e) => {
                    if !self.lenient || !self.summary.skips.again(e.reason) {
                        let message = message(&e, &self.input.bytes()[..size], fields);
                        self.fault(e.reason, Place::Byte(offset + e.at as u64), message)?;
                    }
                }
            }
            self.input.skip(size);
        }
        Ok(())
    }

    /// Reads records of `blktrace`, which have payload behind them.
    fn with_payload(&mut self, order: blktrace::Order) -> Result<(), TraceError> {
        let target = self.window.len() + BATCH;
        while self.window.len() < target && !self.ended {
            let place = Place::Byte(self.input.offset);
            let bytes = self.input.need(blktrace::RECORD_BYTES);
            if bytes.is_empty() {
                return self.end(place);
            }
            if bytes.len() < 4 && blktrace::magic_bytes(order).starts_with(bytes) {
                return self.cut(place);
            }
            if !matches!(blktrace::magic(bytes), blktrace::Magic::Known(o) if o == order) {
                let message = explain(&blktrace::bad_magic(), bytes, self.format, None);
                self.fault(Reason::Syntax, place, message)?;
                self.resynchronise(order);
                continue;
            }
            let Some(record) = bytes.first_chunk() else { return self.cut(place) };
            let record = blktrace::Record::parse(record, order);
            let whole = blktrace::RECORD_BYTES + record.payload;
            if self.input.need(whole).len() < whole {
                return self.cut(place);
            }
            self.input.skip(whole);
            self.summary.rows += 1;
            match record.row(&mut self.cx, &mut self.device_name).and_then(|row| self.cx.placed(row)) {
                Ok(Row::Request(raw)) if self.is_usual(&raw) => self.window.push(raw),
                Ok(Row::Issue(raw, key)) if self.is_usual(&raw) => self.window.push_issued(raw, key),
                Ok(row) => self.unusual(row, place)?,
                Err(e) => {
                    let message = if e.field.is_empty() {
                        format!("expected {}", e.expected)
                    } else {
                        format!("{}: expected {}", e.field, e.expected)
                    };
                    self.fault(e.reason, place, message)?;
                }
            }
        }
        Ok(())
    }

    fn resynchronise(&mut self, order: blktrace::Order) {
        let magic = blktrace::magic_bytes(order);
        self.input.skip(1);
        loop {
            let bytes = self.input.need(blktrace::RECORD_BYTES);
            let left = bytes.len();
            match memchr::memmem::find(bytes, &magic) {
                Some(n) => return self.input.skip(n),
                None if left < blktrace::RECORD_BYTES => return self.input.skip(left),
                // The magic number may have begun in the last three bytes.
                None => self.input.skip(left - 3),
            }
        }
    }

    /// The content ends inside a record.
    fn cut(&mut self, place: Place) -> Result<(), TraceError> {
        self.ended = true;
        let message = match self.input.stop() {
            Stop::End => format!("the record is cut off; {} bytes are left", self.input.bytes().len()),
            _ => return self.end(place),
        };
        self.fault(Reason::Truncated, place, message)
    }
}
