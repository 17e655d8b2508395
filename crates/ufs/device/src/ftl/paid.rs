// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proof that the device may look into a map page. It takes no memory worth mentioning and no time; without it nobody
//! outside flash translation can read what a map page says.

use crate::ids::MapPage;

/// A map page that SRAM holds, that has been read from where it is kept, or that does not exist, which the directory
/// says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paid(MapPage);

impl Paid {
    /// Of a page that is in SRAM, or has just come from flash or from host memory. The only way to one: who calls this
    /// has paid for the load, or has found the page.
    #[inline(always)]
    pub(crate) fn loaded(page: MapPage) -> Paid {
        Paid(page)
    }

    /// The page.
    #[inline(always)]
    pub(super) fn page(self) -> MapPage {
        self.0
    }
}
