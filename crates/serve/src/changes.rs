// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording says of the content of the disk: which requests changed it, which of them became durable and when.
//! What rules did to a request counts, as the server did it. It knows no device.

use crate::edges::{Ask, BLOCK};
use crate::jobs::Job;
use crate::orders::Order;
use crate::record::{Asked, Item, Recorded};
use crate::replayed::fault;
use crate::troubles::Troubles;
use readpath_kit::Ns;
use std::sync::Arc;

/// What a request did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// It made durable what had been answered before it was sent.
    Flush,
    /// It wrote bytes.
    Data(Arc<[u8]>),
    /// So many bytes read as zeros.
    Zeros(u64),
}

/// A request that changed the content of the disk, or made changes durable, as it was done: rules may have dropped all
/// or the end of it, moved it, or flipped a bit of its data. A trim counts as zeros, over the blocks of 4 KiB that it
/// covers. A flush that failed is none, and another request that failed was never answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its number in the recording.
    pub number: u64,
    /// Device time at which the request came.
    pub sent: Ns,
    /// Device time at which it had ended.
    pub answered: Ns,
    /// First byte.
    pub offset: u64,
    /// What it did.
    pub what: What,
    /// It was durable itself when it was answered (FUA). A flush is, too.
    pub fua: bool,
}

/// An order `mark`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Its number in the recording.
    pub number: u64,
    /// Device time.
    pub at: Ns,
    /// The words.
    pub words: String,
}

impl Change {
    /// Bytes that it changed.
    pub fn bytes(&self) -> u64 {
        match &self.what {
            What::Flush => 0,
            What::Data(data) => data.len() as u64,
            What::Zeros(bytes) => *bytes,
        }
    }
}

/// The changes of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes {
    /// In the order in which they were sent.
    pub changes: Vec<Change>,
    /// Marks, as they were made.
    pub marks: Vec<Mark>,
    /// The order of the recording, with its number, behind which nothing counts: the device was switched off.
    pub until: Option<(u64, String)>,
}

impl Recorded {
    /// The changes of a unit of so many bytes up to the first order that switches the device off. Flushes that were
    /// answered although the device had been told to lie are no flushes.
    ///
    /// # Errors
    /// A write without its data, or a request that no server has answered, by its number.
    pub fn changes(&self, unit_bytes: u64) -> Result<Changes, String> {
        let others = self.items.iter().find_map(|(number, _, item)| match item {
            Item::Request(Asked { unit, .. }) if *unit > 0 => Some((number, unit)),
            _ => None,
        });
        if let Some((number, unit)) = others {
            return Err(format!("request {number} is of logical unit {unit}; states are made of the first unit alone"));
        }
        if let Some(fault) = fault(&self.items, &[unit_bytes]) {
            return Err(fault);
        }
        // Recorded rules fit the device, whose other units may be larger.
        let units = [(unit_bytes / BLOCK as u64) as u32, u32::MAX];
        let (mut changes, mut marks, mut until, mut troubles) = (Vec::new(), Vec::new(), None, Troubles::default());
        for (number, at, item) in &self.items {
            match item {
                Item::Order(order) if order.is_off() => {
                    until = Some((*number, order.to_string()));
                    break;
                }
                Item::Order(Order::Mark(words)) => marks.push(Mark { number: *number, at: *at, words: words.clone() }),
                &Item::Order(Order::Lie(lies)) => troubles.lie(lies),
                &Item::Order(Order::EndOfLife(is_worn_out)) => troubles.wear_out(is_worn_out),
                Item::Order(Order::Rules(order)) => {
                    let carried = troubles.rules.carry_out(order, *at, &units);
                    carried.map_err(|error| format!("order {number}: {error}"))?;
                }
                Item::Request(asked) => changes.extend(self.change(asked, &mut troubles)?),
                Item::Order(_) => {}
            }
        }
        Ok(Changes { changes, marks, until })
    }

    fn change(&self, asked: &Asked, troubles: &mut Troubles) -> Result<Option<Change>, String> {
        let Asked { at: sent, ask, offset, bytes, client, number, modelled, .. } = *asked;
        let has_failed = self.failed.contains(&number);
        let data = match (ask, self.data.get(&number)) {
            (Ask::Write { .. }, Some(data)) if data.len() == bytes as usize => data.clone(),
            (Ask::Write { .. }, Some(data)) => {
                return Err(format!("write {number} has {bytes} bytes, and data of {}", data.len()));
            }
            (Ask::Write { .. }, None) => {
                return Err(format!("write {number} has no data: record with 'readpath serve --record --data'"));
            }
            _ => Vec::new(),
        };
        let owner = client.map(|client| (0, client));
        let mut job = Job { owner, ask, offset, bytes, data, ..Job::default() };
        let Some((ask, bytes)) = troubles.what_is_done(sent, &mut job) else { return Ok(None) };
        let mut offset = job.place();
        let what = match ask {
            Ask::Read | Ask::Cache => return Ok(None),
            Ask::Flush if has_failed => return Ok(None),
            Ask::Flush => What::Flush,
            Ask::Write { .. } => What::Data(job.data[..bytes as usize].into()),
            Ask::Zero { .. } => What::Zeros(bytes.into()),
            Ask::Trim { .. } => {
                let end = (offset + u64::from(bytes)) / BLOCK as u64 * BLOCK as u64;
                offset = offset.next_multiple_of(BLOCK as u64);
                What::Zeros(end.saturating_sub(offset))
            }
        };
        let answered = if has_failed { Ns::NEVER } else { Ns(sent.0.saturating_add(modelled.0)) };
        Ok(Some(Change { number, sent, answered, offset, what, fua: ask.is_durable() && !has_failed }))
    }
}
