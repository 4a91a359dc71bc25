//! Switches a running device to another hierarchy.
//!
//! ```text
//!   the active queue expires
//!   all queues leave their trees, and with them all groups       children before parents
//!   all queues come back at the minimum, in their old order      parents before children
//! ```
//!
//! Requests stay in their queues, and what the queues have learned stays with them. Keys and
//! vdisktimes of one hierarchy mean nothing in another, so all begin alike. What was left of
//! workloads is lost.

use super::{Hierarchy, Sharing, vdisktime};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::Key;
use crate::scheduler::Cx;
use crate::trace::{CfqEvent, Event, SliceEnd, Trace};

impl<T: Trace> Cfq<T> {
    /// Has groups share the device in that way from now on.
    pub(in crate::cfq) fn switch_hierarchy(&mut self, cx: &Cx, to: Hierarchy) {
        let sharing = to.into();
        if self.sharing == sharing {
            return;
        }
        if self.active.is_some() {
            self.expire(cx, SliceEnd::HierarchySwitched);
        }
        let busy = self.take_all_off(cx);
        self.sharing = sharing;
        self.trace.event(cx.now, Event::Cfq(CfqEvent::HierarchySwitched { to }));
        for queue in busy {
            self.place_at_minimum(queue);
            // No group is behind another: each joins without a delay.
            self.join_behind(cx, self.queues[queue].group, 0);
        }
    }

    /// Takes all busy queues off their trees, so that no group is on a tree either. Returns them in
    /// their order, group by group.
    fn take_all_off(&mut self, cx: &Cx) -> Vec<QueueId> {
        let mut taken = Vec::new();
        for group in self.groups_by_path(cx).into_iter().rev() {
            let mut of_group = Vec::new();
            // Its child groups have left its trees.
            while let Some(first) = self.groups[group].trees.any_first() {
                let queue = first.queue();
                self.take_off_tree(queue);
                self.leave_group(cx, group);
                of_group.push(queue);
            }
            taken.push(of_group);
        }
        taken.into_iter().rev().flatten().collect()
    }

    /// All groups, parents before their children.
    fn groups_by_path(&self, cx: &Cx) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> = self.groups.iter().map(|(group, _)| group).collect();
        groups.sort_by_cached_key(|&group| {
            let above = std::iter::successors(Some(group), |&node| cx.groups[node].parent);
            let mut path: Vec<GroupId> = above.collect();
            path.reverse();
            path
        });
        groups
    }

    /// Puts a queue, which is on no tree, behind those that came at this moment before it.
    fn place_at_minimum(&mut self, queue: QueueId) {
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide => {
                self.queues[queue].take_residue();
                self.put_on_tree(queue, Key::at(self.now));
            }
            Sharing::Flat | Sharing::Entities => {
                vdisktime::place_at_minimum(self, queue);
            }
        }
    }
}
