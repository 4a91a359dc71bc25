//! The clock of a kernel that counts ticks. CFQ is called at any moment, and decides as at the
//! beginning of its tick; what it reports still happens at that moment.
//!
//! ```text
//!   tick       10          11          12
//!   ──────┼──────────┼──────────┼─────────▶      a call at ✕: CFQ's time is 11, the trace's is ✕
//!                        ✕
//! ```
//!
//! So two events of one tick are simultaneous, and a timer fires as its tick begins.

use crate::cfq::Cfq;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    /// Reads CFQ's clock, as each call does first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::cfq) fn read_clock(&mut self, cx: &Cx) {
        self.now = self.kernel.tick_of(cx.now);
    }
}
