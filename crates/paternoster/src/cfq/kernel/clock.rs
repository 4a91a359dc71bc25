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
use crate::time::Instant;
use crate::trace::{Event, Trace};

/// The sink of events, with the moment at which they happen if CFQ's clock shows another one.
#[derive(Debug)]
pub(in crate::cfq) struct Stamped<T> {
    pub(in crate::cfq) sink: T,
    /// None if CFQ's clock shows the moment itself.
    at: Option<Instant>,
}

impl<T: Trace> Stamped<T> {
    pub(in crate::cfq) fn new(sink: T) -> Self {
        Self { sink, at: None }
    }

    /// Reports what happens `now`, by CFQ's clock.
    #[inline]
    pub(in crate::cfq) fn event(&mut self, now: Instant, event: Event) {
        self.sink.event(self.at.unwrap_or(now), event);
    }
}

impl<T: Trace> Cfq<T> {
    /// Handles a call at the moment that CFQ's clock shows.
    #[inline]
    pub(in crate::cfq) fn at_own_time<R>(
        &mut self,
        cx: &mut Cx,
        handle: impl FnOnce(&mut Self, &mut Cx) -> R,
    ) -> R {
        let now = cx.now;
        if self.kernel.counts_ticks() {
            self.trace.at = Some(now);
            cx.now = self.kernel.tick_of(now);
        }
        let handled = handle(self, cx);
        cx.now = now;
        handled
    }
}
