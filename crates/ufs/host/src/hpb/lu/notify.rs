// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifications of the device for a unit: whether they count, and whether their indexes exist. The drivers decide
//! what follows.

use super::{HpbLu, MapDriver, each};
use crate::hpb::LuState;
use readpath_proto::typed::HpbNotification;

impl HpbLu {
    /// Handles a notification for this unit in a GOOD response. False if it was refused.
    pub(crate) fn notified(&mut self, n: &HpbNotification) -> bool {
        if !self.listens() {
            return false;
        }
        if n.operation == HpbNotification::REGION_UPDATE {
            return self.region_update(n);
        }
        self.common.counters.rcmd_noti_cnt += 1;
        true
    }

    /// Whether notifications count in this state.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.common.state, LuState::Present | LuState::Suspend)
    }

    fn region_update(&mut self, n: &HpbNotification) -> bool {
        let geometry = self.common.table.geometry();
        let active = n.active.get(..usize::from(n.active_count));
        let inactive = n.inactive.get(..usize::from(n.inactive_count));
        let (Some(active), Some(inactive)) = (active, inactive) else { return self.refuse() };
        let exist = active.iter().all(|&at| geometry.contains(at))
            && inactive.iter().all(|&region| u32::from(region) < geometry.regions());
        if !exist || active.len() + inactive.len() == 0 {
            return self.refuse();
        }
        self.common.counters.rcmd_noti_cnt += 1;
        each!(&mut self.driver, d => d.region_update(&mut self.common, active, inactive));
        true
    }

    fn refuse(&mut self) -> bool {
        self.common.counters.rejected_noti_cnt += 1;
        false
    }

    /// HPB operation 02h: the device has lost its HPB state.
    pub(crate) fn device_reset(&mut self) {
        each!(&mut self.driver, d => d.device_reset(&mut self.common));
    }
}
