//! What reservations leave to all others, whose requests wait meanwhile.
//!
//! ```text
//!   brought forward, past another that waits      passed += charge
//!   passed ≥ 19 × the charge of that other's?     it goes, by the least tag
//!   any that no reservation brings forward        passed -= 19 × its charge, not below 0
//! ```
//!
//! So where more is reserved than the device does, all others together have a twentieth of what it
//! does, by their weights; none starves. Who is due less than a twentieth by its weight has that.

use crate::wfq::service::Units;

/// How many times what others get reservations may take while others wait.
const TIMES: u64 = 19;

/// What reservations took while others waited, and did not leave to them since.
#[derive(Debug, Default)]
pub(in crate::wfq) struct Others {
    passed: Units,
}

impl Others {
    /// Whether another's request of that charge goes before one with a reservation.
    pub(in crate::wfq) fn go_first(&self, charge: Units) -> bool {
        self.passed >= charge.times(TIMES)
    }

    /// Counts a request that was brought forward past others that wait.
    pub(in crate::wfq) fn passed(&mut self, charge: Units) {
        self.passed += charge;
    }

    /// Counts a request that no reservation brought forward.
    #[inline]
    pub(in crate::wfq) fn served(&mut self, charge: Units) {
        if self.passed > Units::ZERO {
            self.passed = self.passed.without(charge.times(TIMES)).unwrap_or_default();
        }
    }
}
