//! Reports the state of `wfq`.

use super::Wfq;
use crate::dump::Dump;
use crate::trace::Trace;

impl<T: Trace> Wfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        out.number("depth_in_force", self.depth_now.into());
        out.number("queued", self.queued.into());
    }
}
