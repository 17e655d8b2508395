// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kinds of states have in common: each state has a number, a name that brings it back, and losses of which some
//! can be taken back.

use crate::base::Base;
use crate::error::CrashError;
use crate::state::State;

/// A kind of states.
pub trait States: Sync {
    /// Which state.
    type Spec: Clone + Send;

    /// How many systematic states there are, of which some may be equal. States with higher numbers are random.
    fn systematic(&self) -> u64;

    /// The state at the end, in which nothing is lost; none if nothing was written.
    fn whole(&self) -> Option<Self::Spec>;

    /// State `n`; none if there are not so many.
    fn nth(&self, n: u64) -> Option<Self::Spec>;

    /// Makes a state.
    ///
    /// # Errors
    /// The image cannot be read.
    fn state(&self, spec: &Self::Spec, base: &Base) -> Result<State, CrashError>;

    /// The name of a state.
    fn name(&self, spec: &Self::Spec) -> String;

    /// The state of a name.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&self, name: &str) -> Result<Self::Spec, CrashError>;

    /// What is lost in a state: numbers that mean something to it alone.
    ///
    /// # Errors
    /// The image cannot be read.
    fn losses(&self, spec: &Self::Spec, base: &Base) -> Result<Vec<usize>, CrashError>;

    /// The state with only some of its losses.
    fn with_losses(&self, spec: &Self::Spec, losses: &[usize]) -> Self::Spec;

    /// The states with the same losses and earlier moments, in order.
    fn earlier(&self, spec: &Self::Spec) -> Vec<Self::Spec>;

    /// When power goes, for people.
    fn moment(&self, spec: &Self::Spec) -> String;

    /// What is lost, a line each.
    fn described(&self, spec: &Self::Spec) -> Vec<String>;
}
