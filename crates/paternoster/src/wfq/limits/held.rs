//! Whose own requests caps hold, for the trace.
//!
//! ```text
//!   p  parked for reads ──┬── a  reads wait     held until p may go on
//!                         ├── b  writes wait    not held
//!                         └── c  reads wait,
//!                                parked itself  held until both may go on
//! ```
//!
//! A cap parks its own node alone: what is below it keeps its place among its siblings. So whether
//! a cap holds requests of a group is asked on the way from them up to the root: as the node is
//! parked or freed, and as something begins or ceases to wait while some node is parked. A cap of a
//! group with many below it that wait costs a walk over those, each time that it holds them.

use smallvec::SmallVec;

use super::Parked;
use crate::time::Instant;
use crate::wfq::node::{Kind, NodeId, Tree};
use crate::wfq::order::Change;

impl Tree {
    /// A node is parked otherwise than before: emits that of it, and of all own requests below it.
    #[inline(never)]
    pub(in crate::wfq) fn note_parked(
        &mut self,
        node: NodeId,
        parked: Parked,
        emit: &mut impl FnMut(Change),
    ) {
        let whom = self.nodes[node].whom();
        match parked {
            Parked::AsBefore => return,
            Parked::Until(until) => emit(Change::Held(whom, until)),
            Parked::NoMore => emit(Change::Released(whom)),
        }
        self.note_held_below(node, emit);
    }

    fn note_held_below(&mut self, node: NodeId, emit: &mut impl FnMut(Change)) {
        match &self.nodes[node].kind {
            Kind::Group { members, .. } => {
                let members = self.siblings[*members].active(self.nodes[node].waiting);
                for member in members.collect::<SmallVec<[NodeId; 8]>>() {
                    self.note_held_below(member, emit);
                }
            }
            Kind::Own { .. } => self.note_held(node, emit),
            Kind::Context(_) => unreachable!("contexts are below own requests"),
        }
    }

    /// Emits until when caps hold own requests of a group, if that has changed.
    pub(in crate::wfq) fn note_held(&mut self, own: NodeId, emit: &mut impl FnMut(Change)) {
        let now = self.own_held_until(own);
        let node = &mut self.nodes[own];
        let whom = node.whom();
        let Kind::Own { held_until, .. } = &mut node.kind else {
            unreachable!("they are own requests")
        };
        if *held_until != now {
            *held_until = now;
            emit(now.map_or(Change::Released(whom), |until| Change::Held(whom, until)));
        }
    }

    /// Until when caps hold own requests of a group: the last of them, in the directions in which
    /// some wait.
    fn own_held_until(&self, own: NodeId) -> Option<Instant> {
        let directions = self.nodes[own].waiting;
        let mut until = None;
        let mut at = own;
        loop {
            let node = &self.nodes[at];
            let limits = node.limits.as_ref();
            until = until.max(limits.and_then(|limits| limits.parked_until(directions)));
            let Some(among) = node.among else { return until };
            at = self.siblings[among].of;
        }
    }
}
