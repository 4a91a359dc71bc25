//! The idle window of a queue: whether it has earned that the device idles for it.
//!
//! ```text
//!   each synchronous request ──▶ should_have_window ──▶ open     the task soon asks again, nearby
//!                                                  └──▶ closed   it thinks too long, or seeks
//! ```
//!
//! Whether the device then idles is for `idle.rs` to say. In BFQ a queue has no idle window.

use crate::arena::IocId;
use crate::cfq::queue::Queue;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::Nanos;

/// So many requests waiting at a time make a queue deep.
const DEEP: u32 = 4;

/// The idle window of a queue: whether it has earned that the device idles for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleWindow {
    open: bool,
    /// The queue had four requests waiting at a time, so it may seek and keep its window. This ends
    /// when the device idles for it in vain, or when it gives up the window.
    deep: bool,
}

impl IdleWindow {
    /// A window that is open or not, of a queue that is not deep.
    pub(super) fn new(open: bool) -> Self {
        Self { open, deep: false }
    }

    /// Returns whether the queue has earned that the device idles for it.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self.open
    }

    /// Learns how many requests wait in the queue.
    #[inline]
    fn observe_queued(&mut self, queued: u32) {
        self.deep |= queued >= DEEP;
    }

    /// Notes that the device idled for the queue, and no request came.
    pub(super) fn idled_in_vain(&mut self) {
        self.deep = false;
    }

    /// Closes the window if the queue is of the idle class from now on.
    pub(super) fn follow_class(&mut self, class: IoClass) {
        self.open &= class != IoClass::Idle;
    }
}

impl Queue {
    /// Updates the idle window of the queue, into which a synchronous request of `ioc` was
    /// inserted, whose mean think time is known or not. Returns whether it is open, if that has
    /// changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn update_idle_window(
        &mut self,
        cx: &Cx,
        ioc: IocId,
        slice_idle: Nanos,
        mean: Option<Nanos>,
    ) -> Option<bool> {
        self.idle_window.observe_queued(self.waiting.count());
        let open = self.should_have_window(cx, ioc, slice_idle, mean);
        let before = std::mem::replace(&mut self.idle_window.open, open);
        (open != before).then_some(open)
    }

    /// Returns whether the queue has earned an idle window by its I/O pattern. A deep queue may
    /// seek. While the think time of `ioc` is not known, the window stays as it is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn should_have_window(
        &self,
        cx: &Cx,
        ioc: IocId,
        slice_idle: Nanos,
        mean: Option<Nanos>,
    ) -> bool {
        let next = self.next().expect("a request was inserted");
        let lost = slice_idle == Nanos::ZERO
            || cx.requests[next].is_noidle()
            || !cx.contexts.alive(ioc)
            || (!self.idle_window.deep && self.is_seeky());
        !lost && mean.map_or(self.idle_window.is_open(), |mean| mean <= slice_idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_deep_from_four_requests_until_the_device_idles_for_it_in_vain() {
        let mut window = IdleWindow::new(true);
        window.observe_queued(DEEP - 1);
        assert!(!window.deep);
        window.observe_queued(DEEP);
        window.observe_queued(1);
        assert!(window.deep, "also with fewer requests later");
        window.idled_in_vain();
        assert!(window.is_open() && !window.deep);
    }

    #[test]
    fn idle_class_closes_the_window_and_no_other_class_opens_it() {
        let mut window = IdleWindow::new(true);
        window.follow_class(IoClass::Rt);
        assert!(window.is_open());
        window.follow_class(IoClass::Idle);
        window.follow_class(IoClass::Be);
        assert!(!window.is_open());
    }
}
