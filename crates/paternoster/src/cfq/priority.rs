//! The class and level by which a queue is served: those of its user, or higher while a request
//! with the priority flag boosts it.
//!
//! ```text
//!   a request with the flag ──▶ boosted ──▶ the next one without it: the queue's own again
//! ```
//!
//! The queue keeps its place on the service trees, and on the position index of its own level. In
//! BFQ nothing boosts a queue: there class and level are those of its entity (`bfq/wf2q/`).

use crate::arena::IocId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoPrio;
use crate::request::BioFlags;
use crate::scheduler::Cx;
use crate::trace::{Event, QueueEvent, Trace};

/// The class and level of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuePriority {
    /// Those by which it is served now.
    current: IoPrio,
    /// Those to which it falls back after a boost.
    own: IoPrio,
    /// The priority of its user has changed, and the queue has not read it yet.
    outdated: bool,
}

impl QueuePriority {
    pub(super) fn new(io_prio: IoPrio) -> Self {
        Self { current: io_prio, own: io_prio, outdated: false }
    }

    /// The class and level by which the queue is served now.
    #[inline]
    pub(super) fn current(self) -> IoPrio {
        self.current
    }

    /// The level to which the queue falls back after a boost.
    #[inline]
    pub(super) fn own_level(self) -> u8 {
        self.own.level()
    }

    /// Notes that the priority of the queue's user has changed. The queue reads it later.
    pub(super) fn mark_outdated(&mut self) {
        self.outdated = true;
    }

    /// Returns whether a request with these flags leaves it as it is.
    #[inline]
    pub(super) fn stays(self, flags: BioFlags) -> bool {
        !self.outdated && self.wanted_for(flags) == self.current
    }

    /// The priority for a request with these flags.
    #[inline]
    fn wanted_for(self, flags: BioFlags) -> IoPrio {
        if flags.contains(BioFlags::PRIO) { self.current.boosted() } else { self.own }
    }
}

impl<T: Trace> Cfq<T> {
    /// Updates the queue's class and level if those of its user, `ioc`, have changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn refresh_priority(&mut self, cx: &Cx, queue: QueueId, ioc: IocId) {
        if self.queues[queue].priority.outdated {
            self.renew_priority(cx, queue, ioc);
        }
    }

    #[cold]
    #[inline(never)]
    fn renew_priority(&mut self, cx: &Cx, queue: QueueId, ioc: IocId) {
        let state = &mut self.queues[queue];
        let io_prio = self.contexts[ioc].io_prio;
        state.priority = QueuePriority::new(io_prio);
        state.idle_window.follow_class(io_prio.class());
        self.trace
            .event(cx.now, Event::Queue(QueueEvent::Priority { queue: state.name(), io_prio }));
    }

    /// Prepares the queue of `ioc` for a request that is about to be made. One with the priority
    /// flag boosts the queue; the next one without it ends the boost. The queue keeps its place.
    #[inline]
    pub(super) fn boost(&mut self, cx: &Cx, ioc: IocId, queue: QueueId, flags: BioFlags) {
        self.refresh_priority(cx, queue, ioc);
        let state = &mut self.queues[queue];
        let io_prio = state.priority.wanted_for(flags);
        if std::mem::replace(&mut state.priority.current, io_prio) != io_prio {
            self.trace
                .event(cx.now, Event::Queue(QueueEvent::Priority { queue: state.name(), io_prio }));
        }
    }
}
