// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a device while it is served: it is published at its post now and then, as in runs of the simulator.
//! It knows neither sockets nor files.

use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_run::{Hooks, Post, Publisher, RunError};
use readpath_stack::{Payload, Stack, Wire};

/// Real time between two looks.
const EVERY: Ns = Ns::from_ms(100);

/// Shows a served device at its post.
pub(crate) struct Shown<'a> {
    publisher: Option<Publisher<'a>>,
    every: Ns,
    next: Ns,
    ios: u64,
}

impl<'a> Shown<'a> {
    /// Shows at `post`, if there is one; `scale` is how much slower than real time the device is. Where time jumps it
    /// would jump from look to look, so those come with requests only.
    pub(crate) fn new(post: Option<&'a Post>, scale: Option<f64>) -> Shown<'a> {
        let publisher = post.map(Publisher::new);
        let every = scale.map_or(Ns::NEVER, |scale| Ns((EVERY.0 as f64 / scale) as u64).max(Ns(1)));
        let next = if publisher.is_some() && every != Ns::NEVER { Ns::ZERO } else { Ns::NEVER };
        Shown { publisher, every, next, ios: 0 }
    }
}

impl Shown<'_> {
    /// Another host has come to the device.
    pub(crate) fn begin_again(&self) {
        self.publisher.iter().for_each(Publisher::begin_again);
    }
}

impl Hooks for Shown<'_> {
    #[inline]
    fn next_at(&self) -> Ns {
        self.next
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        _: u32,
    ) -> Result<Ns, RunError> {
        if let Some(publisher) = &self.publisher {
            publisher.look(stack, now, self.ios);
        }
        self.next = now + self.every;
        Ok(now)
    }

    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        self.ios = ios;
        if self.next == Ns::NEVER
            && let Some(publisher) = &self.publisher
        {
            publisher.look(stack, now, ios);
        }
        true
    }
}
