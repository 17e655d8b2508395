// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of a NAND read: time that the task waits for the chip, and time of the CPU. It knows neither caches nor
//! streams.
//!
//! Two kinds of reads exist. A *page read* moves a whole page; a *part read* (Linux: sub-page read) moves only the ECC
//! steps that hold the wanted bytes. Both pay the fixed wait once for each page they touch: array time, command,
//! interrupt and scheduling. The figures come from a preset, `presets/ubi/`.

/// The costs for one page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostModel {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Bytes of an ECC step, the least that a part read moves: a power of two, at most a page.
    pub step_bytes: u32,
    /// Wait for each page that is touched, in ns.
    pub wait_fixed_ns: u64,
    /// Wait for each step that is moved, in ns.
    pub wait_step_ns: u64,
    /// CPU for each page that a part read touches, in ns.
    pub cpu_part_ns: u64,
    /// CPU for each page that is read whole, in ns.
    pub cpu_page_ns: u64,
    /// CPU for each read of a logical block that the one page of the NAND core serves, in ns. Headers served by it,
    /// and hits of a cache in UBI, are not charged.
    pub cpu_core_hit_ns: u64,
}

/// Time of one or several reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Waiting for the chip, in ns.
    pub wait_ns: u64,
    /// CPU, in ns.
    pub cpu_ns: u64,
}

impl Cost {
    /// Sum of both, in ns: the time of a task that does one read at a time.
    pub fn total_ns(self) -> u64 {
        self.wait_ns + self.cpu_ns
    }

    /// Sum of both in seconds.
    pub fn seconds(self) -> f64 {
        self.total_ns() as f64 / 1e9
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.wait_ns += other.wait_ns;
        self.cpu_ns += other.cpu_ns;
    }
}

impl std::ops::Mul<u64> for Cost {
    type Output = Cost;

    fn mul(self, n: u64) -> Cost {
        Cost { wait_ns: self.wait_ns * n, cpu_ns: self.cpu_ns * n }
    }
}

impl CostModel {
    /// A read of one whole page.
    #[inline]
    pub fn page(&self) -> Cost {
        let steps = u64::from(self.page_bytes / self.step_bytes);
        Cost { wait_ns: self.wait_fixed_ns + self.wait_step_ns * steps, cpu_ns: self.cpu_page_ns }
    }

    /// A part read of `steps` steps in one page.
    #[inline]
    pub fn steps(&self, steps: u64) -> Cost {
        Cost { wait_ns: self.wait_fixed_ns + self.wait_step_ns * steps, cpu_ns: self.cpu_part_ns }
    }

    /// Steps that hold `bytes` bytes (at least 1) from `offset` within one page.
    #[inline]
    pub(crate) fn steps_of(&self, offset: u32, bytes: u32) -> u32 {
        let shift = self.step_bytes.trailing_zeros();
        ((offset + bytes - 1) >> shift) - (offset >> shift) + 1
    }

    /// A read of exactly these bytes of a page. A read of all steps is a page read.
    #[inline]
    pub fn part(&self, offset: u32, bytes: u32) -> Cost {
        let steps = self.steps_of(offset, bytes);
        if steps * self.step_bytes >= self.page_bytes { self.page() } else { self.steps(u64::from(steps)) }
    }

    /// Hit ratio above which page reads with a cache cost less than part reads of one step without.
    pub fn break_even_hit_ratio(&self) -> f64 {
        1.0 - self.steps(1).total_ns() as f64 / self.page().total_ns() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: CostModel = CostModel {
        page_bytes: 16384,
        step_bytes: 1024,
        wait_fixed_ns: 536_000,
        wait_step_ns: 24_000,
        cpu_part_ns: 280_000,
        cpu_page_ns: 380_000,
        cpu_core_hit_ns: 0,
    };

    #[test]
    fn reads_cost_what_they_move() {
        assert_eq!(MODEL.page(), Cost { wait_ns: 920_000, cpu_ns: 380_000 });
        assert_eq!(MODEL.part(0, 1), Cost { wait_ns: 560_000, cpu_ns: 280_000 });
        // Two bytes on both sides of the border of a step.
        assert_eq!(MODEL.part(1023, 2).wait_ns, 584_000);
        assert_eq!(MODEL.part(1024, 1024).wait_ns, 560_000);
        assert_eq!(MODEL.part(1, 16383), MODEL.page());
        assert_eq!(MODEL.part(1024, 15360).wait_ns, 536_000 + 15 * 24_000);
        let even = MODEL.break_even_hit_ratio();
        assert!((0.353..0.354).contains(&even), "{even}");
    }
}
