//! To which node of the tree a request is bound.
//!
//! An I/O context has a node in each class of each group in which it has made requests. A node
//! keeps its tag until the I/O context has exited: to change class or group and back gains nothing.

use slotmap::Key as _;
use smallvec::SmallVec;

use super::Wfq;
use super::demand::Demand;
use super::node::{Context, GroupNodes, NodeId};
use super::queue::{ContextQueue, Order};
use crate::arena::{GroupId, IocId, RequestId};
use crate::group_limits::GroupLimits;
use crate::io_context::{IoClass, IoPrio};
use crate::scheduler::Cx;
use crate::trace::Trace;

/// A node of an I/O context, found by its group and class without a look at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) group: GroupId,
    pub(super) class: IoClass,
    pub(super) node: NodeId,
}

/// Returns the node that a bound request waits below.
#[inline]
pub(super) fn context_of(cx: &Cx, rq: RequestId) -> NodeId {
    cx.requests[rq].queue.into()
}

/// Returns the weight of an I/O context among those of its group and class.
#[inline]
pub(super) fn weight_of(io_prio: IoPrio) -> u32 {
    u32::from(IoPrio::LEVELS - io_prio.level())
}

impl<T: Trace> Wfq<T> {
    /// Binds a request to the node of its I/O context when it is made.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn bind_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, class) = (request.ioc, request.group, request.io_prio.class());
        let node = self.node_for(cx, ioc, group, class);
        let context = self.tree.context_mut(node);
        context.bound += 1;
        let (own, top) = (context.own, context.top);
        if top != own {
            self.tree.nodes[own].demand.grow(cx.now);
        }
        self.kept.change_outstanding(&mut self.tree, top, |demand| demand.grow(cx.now));
        cx.requests.get_mut(rq).queue = node.data();
    }

    /// Ends the binding of a request. The node may be freed with it. `of_top` is what becomes of
    /// the demand of the node below the root.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn unbind_request(
        &mut self,
        cx: &Cx,
        rq: RequestId,
        of_top: impl FnOnce(&mut Demand),
    ) {
        let node = context_of(cx, rq);
        let context = self.tree.context_mut(node);
        context.bound -= 1;
        let (own, top, is_unused) = (context.own, context.top, context.is_unused());
        if top != own {
            self.tree.nodes[own].demand.shrink(cx.now);
        }
        self.kept.change_outstanding(&mut self.tree, top, of_top);
        if is_unused {
            self.tree.nodes.remove(node);
        }
    }

    #[inline]
    fn node_for(&mut self, cx: &Cx, ioc: IocId, group: GroupId, class: IoClass) -> NodeId {
        let known = self.known_node(ioc, group, class);
        known.unwrap_or_else(|| self.make_node(cx, ioc, group, class))
    }

    /// Returns the node of an I/O context in a class of a group, if it has one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn known_node(&self, ioc: IocId, group: GroupId, class: IoClass) -> Option<NodeId> {
        let is_it = |known: &&Known| known.group == group && known.class == class;
        self.contexts.get(ioc)?.iter().find(is_it).map(|known| known.node)
    }

    fn make_node(&mut self, cx: &Cx, ioc: IocId, group: GroupId, class: IoClass) -> NodeId {
        let GroupNodes { own, top, .. } = self.group_nodes(cx, group);
        let queue = ContextQueue::new(Order::of(&cx.device));
        let context = Context { ioc, group, own, top, class, queue, bound: 0, exited: false };
        let node = self.tree.add_context(context);
        if !self.contexts.contains_key(ioc) {
            self.contexts.add(ioc, SmallVec::default);
        }
        self.contexts[ioc].push(Known { group, class, node });
        node
    }

    /// Returns the nodes of a group, and makes them, and those above, if there are none.
    pub(super) fn group_nodes(&mut self, cx: &Cx, group: GroupId) -> GroupNodes {
        if let Some(&nodes) = self.groups.get(group) {
            return nodes;
        }
        let parent = cx.groups[group].parent.map(|parent| self.group_nodes(cx, parent));
        let weights = &cx.groups[group];
        let (weight, leaf) = (weights.weight().value(), weights.leaf_weight().value());
        let nodes = self.tree.add_group(group, parent, weight, leaf);
        self.groups.add(group, || nodes);
        self.follow_limits(cx, group);
        nodes
    }

    /// The I/O context makes no more requests: its nodes are freed, those with requests later.
    pub(super) fn exit(&mut self, ioc: IocId) {
        for Known { node, .. } in self.contexts.remove(ioc).map(std::mem::take).unwrap_or_default()
        {
            let context = self.tree.context_mut(node);
            context.exited = true;
            if context.is_unused() {
                self.tree.nodes.remove(node);
            }
        }
    }

    /// A group is gone, with the nodes of I/O contexts that were in it and have moved elsewhere.
    pub(super) fn remove_group(&mut self, cx: &Cx, group: GroupId) {
        let Some(&nodes) = self.groups.get(group) else { return };
        self.limit(cx, nodes.node, &GroupLimits::NONE);
        self.set_target(cx, group, None);
        self.groups.remove(group);
        for (_, nodes) in self.contexts.iter_mut() {
            nodes.retain(|known| {
                let stays = known.group != group;
                if !stays {
                    self.tree.nodes.remove(known.node);
                }
                stays
            });
        }
        self.tree.remove_group(nodes);
    }

    /// A group has other weights: they hold from the next dispatch on.
    pub(super) fn follow_weights(&mut self, cx: &Cx, group: GroupId) {
        if let Some(&GroupNodes { node, own, .. }) = self.groups.get(group) {
            self.tree.nodes[node].weight = cx.groups[group].weight().value();
            self.tree.nodes[own].weight = cx.groups[group].leaf_weight().value();
        }
    }
}
