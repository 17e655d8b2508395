// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of host control mode that Linux 6.1 shows in `hpb_params`, with its defaults and the rules by which
//! it accepts a new value (`drivers/ufs/core/ufshpb.c`, the `_store` functions).

use std::fmt;
use thiserror::Error;

readpath_kit::named! {
    /// One of the nine parameters.
    pub enum HpbParam {
        /// See [`HpbParams::requeue_timeout_ms`].
        RequeueTimeoutMs = "requeue_timeout_ms",
        /// See [`HpbParams::activation_thld`].
        ActivationThld = "activation_thld",
        /// See [`HpbParams::normalization_factor`].
        NormalizationFactor = "normalization_factor",
        /// See [`HpbParams::eviction_thld_enter`].
        EvictionThldEnter = "eviction_thld_enter",
        /// See [`HpbParams::eviction_thld_exit`].
        EvictionThldExit = "eviction_thld_exit",
        /// See [`HpbParams::read_timeout_ms`].
        ReadTimeoutMs = "read_timeout_ms",
        /// See [`HpbParams::read_timeout_expiries`].
        ReadTimeoutExpiries = "read_timeout_expiries",
        /// See [`HpbParams::timeout_polling_interval_ms`].
        TimeoutPollingIntervalMs = "timeout_polling_interval_ms",
        /// See [`HpbParams::inflight_map_req`].
        InflightMapReq = "inflight_map_req",
    }
}

impl HpbParam {
    /// Parameters that a policy of this host accepts; the others are rules of Linux's driver.
    pub const MANAGED: [HpbParam; 2] = [HpbParam::RequeueTimeoutMs, HpbParam::InflightMapReq];

    /// All parameters, each before those whose least value depends on it: lowered in this order and raised in the
    /// reverse order, values obstruct each other least.
    const LOWERED: [HpbParam; 9] = [
        HpbParam::ActivationThld,
        HpbParam::EvictionThldExit,
        HpbParam::EvictionThldEnter,
        HpbParam::TimeoutPollingIntervalMs,
        HpbParam::ReadTimeoutMs,
        HpbParam::ReadTimeoutExpiries,
        HpbParam::NormalizationFactor,
        HpbParam::InflightMapReq,
        HpbParam::RequeueTimeoutMs,
    ];
}

impl fmt::Display for HpbParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Values of the parameters. Linux holds each in a signed 32-bit integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbParams {
    /// A remainder of HPB 2.0 without effect; the only one that device control mode has as well.
    pub requeue_timeout_ms: u32,
    /// Number of reads at which a sub-region is queued to be loaded: exactly this many.
    pub activation_thld: u32,
    /// Bits by which counters of reads are shifted down when one has become too large.
    pub normalization_factor: u32,
    /// Reads that a region needs to take the place of another.
    pub eviction_thld_enter: u32,
    /// Reads above which a region keeps its place.
    pub eviction_thld_exit: u32,
    /// Time without a read until a region's read timeout, in milliseconds.
    pub read_timeout_ms: u32,
    /// Read timeouts before a region is dropped; one is enough if it was written.
    pub read_timeout_expiries: u32,
    /// Milliseconds between two checks of read timeouts, which also start queued loads.
    pub timeout_polling_interval_ms: u32,
    /// The most HPB READ BUFFERs in flight.
    pub inflight_map_req: u32,
}

impl HpbParams {
    /// Linux's defaults (`ufshpb_hcm_param_init`).
    pub const LINUX: HpbParams = HpbParams {
        requeue_timeout_ms: 0,
        activation_thld: 8,
        normalization_factor: 1,
        eviction_thld_enter: 256,
        eviction_thld_exit: 128,
        read_timeout_ms: 1000,
        read_timeout_expiries: 100,
        timeout_polling_interval_ms: 200,
        inflight_map_req: 1,
    };

    /// The value of `param`.
    pub const fn get(&self, param: HpbParam) -> u32 {
        let mut copy = *self;
        *copy.slot(param)
    }

    /// The field of `param`, for readers of a whole set; [`HpbParams::check`] must follow.
    pub const fn slot(&mut self, param: HpbParam) -> &mut u32 {
        match param {
            HpbParam::RequeueTimeoutMs => &mut self.requeue_timeout_ms,
            HpbParam::ActivationThld => &mut self.activation_thld,
            HpbParam::NormalizationFactor => &mut self.normalization_factor,
            HpbParam::EvictionThldEnter => &mut self.eviction_thld_enter,
            HpbParam::EvictionThldExit => &mut self.eviction_thld_exit,
            HpbParam::ReadTimeoutMs => &mut self.read_timeout_ms,
            HpbParam::ReadTimeoutExpiries => &mut self.read_timeout_expiries,
            HpbParam::TimeoutPollingIntervalMs => &mut self.timeout_polling_interval_ms,
            HpbParam::InflightMapReq => &mut self.inflight_map_req,
        }
    }

    /// The least and greatest value of `param` that Linux accepts, given the others.
    pub fn range(&self, param: HpbParam, limits: &ParamLimits) -> (u32, u32) {
        const MOST: u32 = i32::MAX as u32;
        match param {
            HpbParam::RequeueTimeoutMs => (0, MOST),
            HpbParam::ActivationThld | HpbParam::ReadTimeoutExpiries => (1, MOST),
            HpbParam::NormalizationFactor => (1, limits.entries_per_sub_region.max(1).ilog2()),
            HpbParam::EvictionThldEnter => (self.eviction_thld_exit.saturating_add(1), MOST),
            HpbParam::EvictionThldExit => (self.activation_thld.saturating_add(1), MOST),
            HpbParam::ReadTimeoutMs => (self.timeout_polling_interval_ms.saturating_mul(2), MOST),
            HpbParam::TimeoutPollingIntervalMs => (1, self.read_timeout_ms / 2),
            HpbParam::InflightMapReq => (1, limits.queue_depth.saturating_sub(1)),
        }
    }

    /// Changes one value, as a write to its file does.
    ///
    /// # Errors
    /// As Linux: EOPNOTSUPP without host control mode (but for `requeue_timeout_ms`), EINVAL for a value out of
    /// range.
    pub fn store(&mut self, param: HpbParam, value: u32, limits: &ParamLimits) -> Result<(), ParamError> {
        if !limits.host_control && param != HpbParam::RequeueTimeoutMs {
            return Err(ParamError::NotHostControl { param });
        }
        let (least, most) = self.range(param, limits);
        if value < least || value > most {
            return Err(ParamError::OutOfRange { param, value, least, most, why: why(param) });
        }
        *self.slot(param) = value;
        Ok(())
    }

    /// Whether these values can be stored, each once and in the most favourable order, into a unit that Linux has
    /// just set up. A default need not be stored, so Linux's own initial values are never refused.
    pub fn check(&self, limits: &ParamLimits) -> Result<(), ParamError> {
        let mut stored = HpbParams::LINUX;
        let lowered = |param: HpbParam| self.get(param) < HpbParams::LINUX.get(param);
        let raised = |param: HpbParam| self.get(param) > HpbParams::LINUX.get(param);
        let first = HpbParam::LOWERED.into_iter().filter(|&p| lowered(p));
        let then = HpbParam::LOWERED.into_iter().rev().filter(|&p| raised(p));
        first.chain(then).try_for_each(|param| stored.store(param, self.get(param), limits))
    }
}

impl Default for HpbParams {
    fn default() -> Self {
        HpbParams::LINUX
    }
}

/// What the range of a value depends on, besides other values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParamLimits {
    /// The unit is in host control mode.
    pub host_control: bool,
    /// Entries of a full sub-region.
    pub entries_per_sub_region: u32,
    /// Commands that the unit accepts at the same time.
    pub queue_depth: u32,
}

impl ParamLimits {
    /// The widest limits of any device, for checks before there is one.
    pub const WIDEST: ParamLimits =
        ParamLimits { host_control: true, entries_per_sub_region: 1 << 16, queue_depth: 63 };
}

/// Source of a bound, for messages.
const fn why(param: HpbParam) -> &'static str {
    match param {
        HpbParam::NormalizationFactor => " (the logarithm of the entries of a sub-region)",
        HpbParam::EvictionThldEnter => " (more than eviction_thld_exit)",
        HpbParam::EvictionThldExit => " (more than activation_thld)",
        HpbParam::ReadTimeoutMs => " (at least twice timeout_polling_interval_ms)",
        HpbParam::TimeoutPollingIntervalMs => " (at most half of read_timeout_ms)",
        HpbParam::InflightMapReq => " (less than the queue depth of the unit)",
        HpbParam::RequeueTimeoutMs | HpbParam::ActivationThld | HpbParam::ReadTimeoutExpiries => "",
    }
}

/// The parameters that a policy of this host accepts, for messages.
fn taken() -> String {
    HpbParam::MANAGED.map(HpbParam::name).join(" and ")
}

/// Why a value of a parameter is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ParamError {
    /// ENODEV: the unit has no HPB.
    #[error("logical unit {lun} has no HPB")]
    NoHpb {
        /// The unit.
        lun: u8,
    },
    /// EOPNOTSUPP.
    #[error("{param} can be changed in host control mode only")]
    NotHostControl {
        /// The parameter.
        param: HpbParam,
    },
    /// EOPNOTSUPP: the unit is managed by a policy of this host, which does not use the parameter.
    #[error("{param} is a rule of Linux's own, which the policy {policy} does not have; it takes {}", taken())]
    NotOfPolicy {
        /// The parameter.
        param: HpbParam,
        /// The policy.
        policy: &'static str,
    },
    /// EINVAL.
    #[error("{param} is {value}; it must be {least} to {most}{why}")]
    OutOfRange {
        /// The parameter.
        param: HpbParam,
        /// The refused value.
        value: u32,
        /// Least value accepted.
        least: u32,
        /// Greatest value accepted; below `least` if none is.
        most: u32,
        /// Source of the bounds.
        why: &'static str,
    },
    /// ENOMEM.
    #[error("memory of {bytes} bytes is too little for HPB: {what} take {least}")]
    TooLittleMemory {
        /// The refused limit.
        bytes: u64,
        /// The least possible limit.
        least: u64,
        /// What needs that memory.
        what: &'static str,
    },
    /// EOPNOTSUPP: the driver of Linux has no shrinker.
    #[error("the policies linux-dcm and linux-hcm do not change their memory in use; choose another policy")]
    CannotShrink,
}

impl ParamError {
    /// The name of the error number that Linux returns.
    pub const fn errno(&self) -> &'static str {
        match self {
            ParamError::NoHpb { .. } => "ENODEV",
            ParamError::NotHostControl { .. } | ParamError::NotOfPolicy { .. } | ParamError::CannotShrink => {
                "EOPNOTSUPP"
            }
            ParamError::OutOfRange { .. } => "EINVAL",
            ParamError::TooLittleMemory { .. } => "ENOMEM",
        }
    }

    /// The parameter at fault, if it is one.
    pub const fn param(&self) -> Option<HpbParam> {
        match self {
            ParamError::NoHpb { .. } | ParamError::TooLittleMemory { .. } | ParamError::CannotShrink => None,
            ParamError::NotHostControl { param }
            | ParamError::NotOfPolicy { param, .. }
            | ParamError::OutOfRange { param, .. } => Some(*param),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HpbParam::*;
    use super::*;

    const LIMITS: ParamLimits = ParamLimits { host_control: true, entries_per_sub_region: 4096, queue_depth: 31 };

    /// Each rule of `ufshpb.c` at both sides of its bound, from Linux's defaults.
    #[test]
    fn values_are_taken_as_linux_takes_them() {
        const MOST: u32 = i32::MAX as u32;
        for (param, taken, refused) in [
            (RequeueTimeoutMs, &[0, 1, MOST][..], &[MOST + 1][..]),
            (ActivationThld, &[1, 8, 500, MOST], &[0, MOST + 1, u32::MAX]),
            (NormalizationFactor, &[1, 12], &[0, 13]),
            (EvictionThldEnter, &[129, MOST], &[0, 128, MOST + 1]),
            (EvictionThldExit, &[9, 128, 1000], &[0, 8]),
            (ReadTimeoutMs, &[400, MOST], &[0, 399]),
            (ReadTimeoutExpiries, &[1, MOST], &[0]),
            (TimeoutPollingIntervalMs, &[1, 500], &[0, 501]),
            (InflightMapReq, &[1, 30], &[0, 31]),
        ] {
            for &value in taken {
                let mut params = HpbParams::LINUX;
                params.store(param, value, &LIMITS).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(params.get(param), value);
                let others = HpbParam::ALL.into_iter().filter(|&p| p != param);
                others.for_each(|p| assert_eq!(params.get(p), HpbParams::LINUX.get(p)));
            }
            for &value in refused {
                let mut params = HpbParams::LINUX;
                let e = params.store(param, value, &LIMITS).expect_err("it is out of range");
                assert_eq!((e.errno(), e.param(), params), ("EINVAL", Some(param), HpbParams::LINUX));
                assert!(e.to_string().starts_with(&format!("{param} is {value}; it must be ")), "{e}");
            }
        }
    }

    /// Linux checks only the value that is written: thresholds may pass each other in the right order.
    #[test]
    fn what_a_value_depends_on_is_looked_at_when_it_is_stored() {
        let mut params = HpbParams::LINUX;
        assert!(params.store(EvictionThldEnter, 100, &LIMITS).is_err());
        params.store(EvictionThldExit, 50, &LIMITS).unwrap();
        params.store(EvictionThldEnter, 100, &LIMITS).unwrap();
        params.store(ActivationThld, 70, &LIMITS).unwrap();
        assert!(params.store(EvictionThldExit, 60, &LIMITS).is_err());
        params.store(TimeoutPollingIntervalMs, 20, &LIMITS).unwrap();
        params.store(ReadTimeoutMs, 40, &LIMITS).unwrap();
        assert!(params.store(TimeoutPollingIntervalMs, 21, &LIMITS).is_err());
        params.check(&LIMITS).expect("a set that was stored");
    }

    /// A set is accepted if its values can be stored in some order: all orders of values near bounds are tried.
    #[test]
    fn a_set_is_taken_if_some_order_of_stores_is() {
        fn some_order(at: &HpbParams, left: &[(HpbParam, u32)]) -> bool {
            left.is_empty()
                || (0..left.len()).any(|i| {
                    let (mut next, mut rest) = (*at, left.to_vec());
                    let (param, value) = rest.remove(i);
                    next.store(param, value, &LIMITS).is_ok() && some_order(&next, &rest)
                })
        }
        let choices: [(HpbParam, &[u32]); 5] = [
            (ActivationThld, &[8, 1, 7, 9, 127, 128, 256, 300]),
            (EvictionThldExit, &[128, 2, 7, 8, 9, 129, 255, 256, 300]),
            (EvictionThldEnter, &[256, 2, 8, 9, 128, 129, 300, 301]),
            (ReadTimeoutMs, &[1000, 1, 2, 100, 399, 400, 1002]),
            (TimeoutPollingIntervalMs, &[200, 1, 50, 201, 500, 501]),
        ];
        let (mut taken, mut refused) = (0, 0);
        for n in 0..choices.iter().map(|(_, values)| values.len()).product() {
            let (mut set, mut left, mut digits) = (HpbParams::LINUX, Vec::new(), n);
            for (param, values) in choices {
                let value = values[digits % values.len()];
                digits /= values.len();
                if value != set.get(param) {
                    *set.slot(param) = value;
                    left.push((param, value));
                }
            }
            let possible = some_order(&HpbParams::LINUX, &left);
            assert_eq!(set.check(&LIMITS).is_ok(), possible, "{left:?}");
            *(if possible { &mut taken } else { &mut refused }) += 1;
        }
        assert!(taken > 1000 && refused > 1000, "{taken} and {refused}");
    }

    #[test]
    fn device_control_mode_takes_the_relic_only() {
        let limits = ParamLimits { host_control: false, ..LIMITS };
        for param in HpbParam::ALL {
            let result = HpbParams::LINUX.clone().store(param, 300, &limits);
            match param {
                RequeueTimeoutMs => assert_eq!(result, Ok(())),
                _ => assert_eq!(result.map_err(|e| e.errno()), Err("EOPNOTSUPP")),
            }
            assert_eq!(HpbParam::by_name(param.name()), Some(param));
        }
    }

    #[test]
    fn defaults_are_never_refused() {
        let narrow = ParamLimits { host_control: false, entries_per_sub_region: 1, queue_depth: 1 };
        assert_eq!(HpbParams::LINUX.check(&narrow), Ok(()));
    }
}
