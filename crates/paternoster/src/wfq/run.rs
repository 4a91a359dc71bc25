//! Runs: requests of one I/O context that are dispatched one after the other.
//!
//! ```text
//!   by tags alone   A C B C C A C B C …     a reply each to many clients
//!   in runs         A A A C C C C C B …     the same replies, in fewer sends and wake-ups
//!                   ├───┤ what the device does in run_us
//! ```
//!
//! Where a request takes microseconds (in memory, in the page cache), most of that is what it costs
//! to hand a reply to a client and to hear from it again, and replies that leave together share it.
//! Tags count each request of a run, so shares are what they are without runs: who had one is ahead
//! by it, and is not served until the others have drawn level. A device that takes `run_us` or more
//! for a request has no runs.

use super::Wfq;
use super::dispatch::Choice;
use super::node::NodeId;
use super::service::Units;
use crate::scheduler::Cx;
use crate::trace::Trace;

/// The run that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The I/O context that was served last.
    context: NodeId,
    /// What it may still be charged in this run.
    left: Units,
}

impl<T: Trace> Wfq<T> {
    /// Returns the next request of the run, if it goes on: its I/O context has one that may go.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_of_run(&self, cx: &Cx) -> Option<Choice> {
        let Run { context, .. } = self.run?;
        if !self.goes_first(cx, context) {
            return None;
        }
        let rq = self.tree.context(context).queue.head().expect("an active context has requests");
        let start = self.tree.start_below_root(context);
        Some(Choice { context, rq, start, reserved: None, passes_others: false })
    }

    /// Returns whether the I/O context is still there and has something waiting that no cap holds,
    /// and whether no other class of its group goes before its own.
    fn goes_first(&self, cx: &Cx, context: NodeId) -> bool {
        let nodes = &self.tree.nodes;
        let Some(node) = nodes.get(context) else { return false };
        let own = node.context().own;
        // The directions that no cap above the context holds.
        let mut open = self.tree.limits.open();
        let mut at = own;
        while let Some(among) = nodes[at].among {
            open &= nodes[at].active;
            at = self.tree.siblings[among].of;
        }
        if (open & node.active).is_empty() {
            return false;
        }
        self.next_class(cx, self.tree.classes_of(own), open) == node.among
    }

    /// Counts a dispatched request of the I/O context in its run, or begins a run with it. A run
    /// ends with the last request that the device has done in `run_us`. One that is dispatched
    /// again, for nothing, ends it too.
    #[inline]
    pub(super) fn count_run(&mut self, context: NodeId, charge: Units) {
        if self.tunables.run_us() == 0 {
            self.run = None;
            return;
        }
        let left = match self.run {
            Some(run) if run.context == context => run.left,
            _ => self.longest_run(),
        };
        // The next of its requests is likely to cost as much.
        let left = left.without(charge).filter(|&left| left >= charge && charge > Units::ZERO);
        self.run = left.map(|left| Run { context, left });
    }

    /// Returns what the device does in `run_us`: nothing while its speed is not known.
    fn longest_run(&self) -> Units {
        Units::new(self.windows.last_speed().saturating_mul(self.tunables.run_us()) / 1_000_000)
    }
}
