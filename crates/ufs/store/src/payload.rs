// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real data: moves the data of a stack's requests to the array and from it, as the device reports.

use crate::array::FlashFile;
use crate::disk::Disk;
use readpath_device::{Failing, MediaOp, Own, WithMedia};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{BLOCK_BYTES, Prng};
use readpath_proto::typed::Sense;
use readpath_stack::{Fault, Payload};

const SLICE: usize = BLOCK_BYTES as usize;

/// The data of a request.
#[derive(Debug, Default)]
struct Transfer {
    /// Its first block.
    block: u32,
    data: Vec<u8>,
    fault: Option<Fault>,
}

/// Injected failures of reads of flash.
#[derive(Debug)]
struct FailingReads {
    failing: Failing,
    stream: Prng,
}

impl Default for FailingReads {
    fn default() -> Self {
        FailingReads { failing: Failing::default(), stream: Prng::stream(0, "reads", 0) }
    }
}

/// A command in progress: its request, and its offset in that request's data.
#[derive(Clone, Copy, Default)]
struct Part {
    cookie: u32,
    offset: usize,
    /// Its first logical page.
    page: u32,
}

/// See the module.
pub struct Store<D> {
    array: FlashFile<D>,
    /// 4 KiB for each slot of the write buffer.
    slots: Vec<u8>,
    /// The data of requests in flight, by cookie.
    transfers: Vec<Transfer>,
    failing_reads: FailingReads,
    parts: [Part; 64],
    /// Reads of data never written; below, all others.
    zeros_read: u64,
    slices_read: u64,
}

impl<D: Disk> Store<D> {
    /// Data in `array`.
    pub fn new(array: FlashFile<D>) -> Self {
        Store {
            array,
            slots: Vec::new(),
            transfers: Vec::new(),
            failing_reads: FailingReads::default(),
            parts: [Part::default(); 64],
            zeros_read: 0,
            slices_read: 0,
        }
    }

    /// The array.
    pub fn array(&self) -> &FlashFile<D> {
        &self.array
    }

    /// The array, to sync or to load from.
    pub fn array_mut(&mut self) -> &mut FlashFile<D> {
        &mut self.array
    }

    /// Blocks read that were never written, or were trimmed.
    pub fn zeros_read(&self) -> u64 {
        self.zeros_read
    }

    /// Blocks read from flash or from the write buffer.
    pub fn slices_read(&self) -> u64 {
        self.slices_read
    }

    fn slot(&mut self, slot: u16) -> &mut [u8] {
        let at = usize::from(slot) * SLICE;
        &mut self.slots[at..at + SLICE]
    }

    /// Block `index` of the command `tag`, if its request has data.
    fn with_block(&mut self, tag: u8, index: u32, what: impl FnOnce(&mut Self, &mut [u8]) -> Option<Fault>) {
        let Part { cookie, offset, .. } = self.parts[usize::from(tag)];
        let mut data = std::mem::take(&mut self.transfers[cookie as usize].data);
        let at = offset + index as usize * SLICE;
        let fault = data.get_mut(at..at + SLICE).and_then(|block| what(self, block));
        self.transfers[cookie as usize].data = data;
        fault.into_iter().for_each(|fault| self.fault(cookie, fault));
    }

    fn fault(&mut self, cookie: u32, fault: Fault) {
        self.transfers[cookie as usize].fault.get_or_insert(fault);
    }
}

impl<D: Disk> Payload for Store<D> {
    type Mode = WithMedia;

    fn attach(&mut self, _slices: u32, buffer_slots: usize, _logical_blocks: u32) {
        self.slots = vec![0; buffer_slots * SLICE];
    }

    fn begin(&mut self, tag: u8, request: &BlockRequest, page: u32) {
        let first = self.transfers[request.cookie as usize].block;
        let offset = (request.block - first) as usize * SLICE;
        self.parts[usize::from(tag)] = Part { cookie: request.cookie, offset, page };
    }

    fn execute(&mut self, op: MediaOp) {
        match op {
            MediaOp::Fill { tag, index, slot } => self.with_block(tag, index, |store, block| {
                store.slot(slot).copy_from_slice(block);
                None
            }),
            MediaOp::Program { slot, ppn, lpn, sequence } => {
                let at = usize::from(slot) * SLICE;
                self.array.program(ppn, lpn, sequence, &self.slots[at..at + SLICE]);
            }
            MediaOp::Move { from, to, lpn, sequence } => self.array.copy(from, to, lpn, sequence),
            MediaOp::Programmed { first, stream, program } => self.array.programmed(first, stream, program),
            MediaOp::Own => {}
            MediaOp::Torn { first, slices } => self.array.tear(first, slices),
            MediaOp::ReadFlash { tag, index, ppn } => {
                self.slices_read += 1;
                let Part { cookie, page, .. } = self.parts[usize::from(tag)];
                let FailingReads { failing, stream } = &mut self.failing_reads;
                if failing.next(stream) {
                    let what = format!("slice {} cannot be read: this read was ordered to fail", ppn.0);
                    return self.fault(cookie, Fault::Medium(what));
                }
                let page = page + index;
                self.array.settle_slice(ppn);
                self.with_block(tag, index, |store, block| {
                    let fault = store.array.read_page(ppn, page, block).err()?;
                    block.fill(0);
                    Some(Fault::Medium(fault.to_string()))
                });
            }
            MediaOp::ReadBuffer { tag, index, slot } => {
                self.slices_read += 1;
                self.with_block(tag, index, |store, block| {
                    block.copy_from_slice(store.slot(slot));
                    None
                });
            }
            MediaOp::ReadZeros { tag, index } => {
                self.zeros_read += 1;
                self.with_block(tag, index, |_, block| {
                    block.fill(0);
                    None
                });
            }
            MediaOp::Erase { first, slices } => self.array.erase(first, slices),
        }
    }

    fn keep(&mut self, own: Own) {
        match own {
            Own::Unit(slices) => self.array.program_own(&slices),
            Own::Block { superblock, record } => self.array.put_record(superblock, &record),
            Own::Rpmb(update) => self.array.put_rpmb(&update),
            Own::Settings(settings) => self.array.put_settings(&settings),
        }
    }

    fn not_kept(&self) -> Option<Sense> {
        self.array.failure().map(|error| Fault::Write(error.to_owned()).sense())
    }

    fn end(&mut self, tag: u8, request: &BlockRequest, _lpn: u32, good: bool) {
        let Part { cookie, .. } = self.parts[usize::from(tag)];
        let has_failed = match request.op {
            // The disk must sync before a flush is acknowledged.
            BlockOp::Flush | BlockOp::WriteFua if good => self.array.sync().err(),
            BlockOp::Write | BlockOp::Discard => self.array.failure().map(str::to_owned),
            _ => None,
        };
        if let Some(error) = has_failed {
            self.fault(cookie, Fault::Write(error));
        }
    }

    fn power_cut(&mut self) {
        self.settle();
        self.slots.fill(0);
    }

    fn settle(&mut self) {
        self.array.settle();
    }

    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>) {
        if self.transfers.len() <= cookie as usize {
            self.transfers.resize_with(cookie as usize + 1, Transfer::default);
        }
        self.transfers[cookie as usize] = Transfer { block, data, fault: None };
    }

    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        let transfer = std::mem::take(&mut self.transfers[cookie as usize]);
        (transfer.data, transfer.fault)
    }

    fn fail_reads(&mut self, failing: Failing) {
        self.failing_reads.failing = failing;
    }

    fn seed_reads(&mut self, seed: u64) {
        self.failing_reads.stream = Prng::stream(seed, "reads", 0);
    }

    fn process_bytes(&self) -> u64 {
        self.slots.len() as u64
    }
}
