// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that several questions have: what each means, which values it takes, and what goes without it.

use crate::usage;
use anyhow::{Result, anyhow};
use clap::ValueEnum;

mod host;
mod making;
mod questions;
mod trace;
mod ubi;

pub use host::{Fill, Hosts, Hpb, policies, policy_names};
pub use making::{Chosen, Making};
pub use questions::{
    Attack, BreakEven, Compare, Fio, Fit, HPB_OFF, Hmb, Iozone, Loses, Power, ProbeFit, Replay, Reproduce, Target,
};
pub use trace::{Offers, TraceHow, TraceInput};
pub use ubi::{ImageInput, ImageSizes, OwnImages, StreamInput, UbiAttach, UbiReplay, UbiWork};

/// The value of `option` that `text` names.
///
/// # Errors
/// When it names none; the error lists them.
pub fn word<T: ValueEnum>(option: &str, text: &str) -> Result<T> {
    T::from_str(text, false).map_err(|_| {
        let words = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        usage(anyhow!("{option}: is {text:?}; expected one of {}", words.join(", ")))
    })
}
