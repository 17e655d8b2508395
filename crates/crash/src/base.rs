// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of the disk before the recording: an image whose device has recovered, so that its map says where each
//! block lies. Reads take no device time.

use crate::error::CrashError;
use readpath_config::DevicePreset;
use readpath_device::{UfsDevice, WithMedia};
use readpath_flash::AnySched;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_run::LUN;
use readpath_serve::Recorded;
use readpath_store::{FileDisk, FlashFile, Image};

/// Bytes of a block.
pub(crate) const BLOCK: usize = BLOCK_BYTES as usize;

/// The content of a block.
pub(crate) type Block = [u8; BLOCK];

/// An image and its recovered device.
pub struct Base {
    device: UfsDevice<AnySched, WithMedia, ()>,
    array: FlashFile<FileDisk>,
    blocks: u32,
}

impl Base {
    /// Lets the device recover from an image, which stays as it is if it is read-only; the recording, if there is one,
    /// must have begun with it.
    ///
    /// # Errors
    /// The device cannot begin from the image, or the recording is of another.
    pub fn new(image: Image<FileDisk>, preset: &DevicePreset, recorded: Option<&Recorded>) -> Result<Base, CrashError> {
        let mut array = image.array;
        let mut device = UfsDevice::new(&preset.device, preset.delays, ())?;
        let recovery = device.power_on_with(Ns::ZERO, &mut array)?;
        if let Some(recorded) = recorded {
            let began = recorded.began_with(&preset.name, &recovery, device.valid_slices(), &device.wear());
            began.map_err(CrashError::Recording)?;
        }
        Ok(Base { device, array, blocks: preset.device.lus[usize::from(LUN)].blocks })
    }

    /// Size of the disk.
    pub fn bytes(&self) -> u64 {
        u64::from(self.blocks) * u64::from(BLOCK_BYTES)
    }

    /// Whether a block was never written, or was trimmed: it reads as zeros.
    pub(crate) fn is_hole(&self, block: u32) -> bool {
        self.device.slice_of(LUN, block).is_none()
    }

    /// Reads a block of the disk.
    ///
    /// # Errors
    /// The image cannot be read, or is damaged there.
    pub fn read(&self, block: u32, to: &mut Block) -> Result<(), CrashError> {
        match self.device.slice_of(LUN, block) {
            // The unit is the first: its blocks are numbered as those of the device.
            Some(slice) => self
                .array
                .read_page(slice, block, to)
                .map_err(|fault| CrashError::Block { block, what: fault.to_string() }),
            None => {
                to.fill(0);
                Ok(())
            }
        }
    }
}
