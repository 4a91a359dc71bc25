//! The tree of who has a share: groups, their own requests, and I/O contexts.
//!
//! ```text
//!   root ─┬─ group ─┬─ group …
//!         │         └─ own requests ─┬─ rt ── contexts
//!         └─ own …                   ├─ be ── contexts ── requests
//!                                    └─ idle ─ contexts
//!   weights:  of the group   leaf weight       8 − level of the I/O priority
//! ```
//!
//! A node competes among its siblings by tags; the three classes of a group's own requests are
//! three sets of siblings, of which `class.rs` chooses. A node is *active* while something waits
//! below it. An idle node keeps its tag and is in no tree.

use slotmap::{SlotMap, new_key_type};

use super::class::Classes;
use super::queue::ContextQueue;
use super::service::{Units, Vtime};
use super::siblings::{Key, Siblings};
use crate::arena::{GroupId, IocId};
use crate::io_context::IoClass;
use crate::time::{Instant, Nanos};
use crate::trace::ShareOf;

new_key_type! {
    /// Names a node of the tree.
    pub(super) struct NodeId;
    /// Names nodes that compete with each other.
    pub(super) struct SiblingsId;
}

/// A node: who has a share.
#[derive(Debug)]
pub(super) struct Node {
    /// Among whom it competes; none for the root.
    pub(super) among: Option<SiblingsId>,
    pub(super) kind: Kind,
    pub(super) weight: u32,
    /// Its tag: the virtual time at which its next service starts.
    pub(super) start: Vtime,
    /// Its key in the order of service, while it is active.
    key: Option<Key>,
}

/// What a node stands for.
#[derive(Debug)]
pub(super) enum Kind {
    /// A group, with its child groups and its own requests below it.
    Group { group: GroupId, members: SiblingsId },
    /// The own requests of a group, by class.
    Own { group: GroupId, classes: Classes },
    /// An I/O context in one class, with its requests.
    Context(Box<Context>),
}

/// An I/O context in one class of one group.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) ioc: IocId,
    pub(super) group: GroupId,
    pub(super) class: IoClass,
    pub(super) queue: ContextQueue,
    /// Requests that are bound to it: they wait, or are in flight.
    pub(super) bound: u32,
    /// Its I/O context issues no more requests.
    pub(super) exited: bool,
}

impl Node {
    fn new(among: Option<SiblingsId>, weight: u32, kind: Kind) -> Self {
        Self { among, kind, weight, start: Vtime::ZERO, key: None }
    }

    pub(super) fn is_active(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn whom(&self) -> ShareOf {
        match &self.kind {
            &Kind::Group { group, .. } => ShareOf::Group(group),
            &Kind::Own { group, .. } => ShareOf::OwnRequests(group),
            Kind::Context(context) => ShareOf::Context(context.ioc),
        }
    }
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: SlotMap<NodeId, Node>,
    pub(super) siblings: SlotMap<SiblingsId, Siblings>,
    /// How many keys were made.
    keys: u64,
}

/// A node that became active, for the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    pub(super) whom: ShareOf,
    pub(super) start: Vtime,
    pub(super) v: Vtime,
    /// How far ahead of v it starts, in its own units.
    pub(super) lag: Units,
}

/// The two nodes of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupNodes {
    pub(super) node: NodeId,
    pub(super) own: NodeId,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { nodes: SlotMap::with_key(), siblings: SlotMap::with_key(), keys: 0 }
    }

    /// Adds a group below `parent`, or the root, with a node for its own requests.
    pub(super) fn add_group(
        &mut self,
        group: GroupId,
        parent: Option<NodeId>,
        weight: u32,
        leaf_weight: u32,
    ) -> GroupNodes {
        let among = parent.map(|parent| self.members_of(parent));
        let siblings = &mut self.siblings;
        let node = self.nodes.insert_with_key(|node| {
            let members = siblings.insert(Siblings::below(node));
            Node::new(among, weight, Kind::Group { group, members })
        });
        let members = self.members_of(node);
        let siblings = &mut self.siblings;
        let own = self.nodes.insert_with_key(|own| {
            let of_class = IoClass::ALL.map(|_| siblings.insert(Siblings::below(own)));
            let classes = Classes::new(of_class);
            Node::new(Some(members), leaf_weight, Kind::Own { group, classes })
        });
        GroupNodes { node, own }
    }

    /// Adds an I/O context to a class of a group's own requests. It has a weight from its first
    /// request on.
    pub(super) fn add_context(&mut self, own: NodeId, context: Context) -> NodeId {
        let Kind::Own { classes, .. } = &self.nodes[own].kind else {
            unreachable!("contexts are below a group's own requests")
        };
        let among = classes.siblings(context.class);
        self.nodes.insert(Node::new(Some(among), 1, Kind::Context(Box::new(context))))
    }

    /// Frees the nodes of a group, which has nothing below it.
    pub(super) fn remove_group(&mut self, nodes: GroupNodes) {
        for node in [nodes.own, nodes.node] {
            let removed = self.nodes.remove(node).expect("a group has its nodes");
            debug_assert!(!removed.is_active(), "nothing of it waits");
            match removed.kind {
                Kind::Group { members, .. } => drop(self.siblings.remove(members)),
                Kind::Own { classes, .. } => {
                    for class in IoClass::ALL {
                        self.siblings.remove(classes.siblings(class));
                    }
                }
                Kind::Context(_) => unreachable!("a group's nodes are no context"),
            }
        }
    }

    /// The siblings below a group.
    pub(super) fn members_of(&self, node: NodeId) -> SiblingsId {
        match self.nodes[node].kind {
            Kind::Group { members, .. } => members,
            _ => unreachable!("only a group has members"),
        }
    }

    pub(super) fn context(&self, node: NodeId) -> &Context {
        match &self.nodes[node].kind {
            Kind::Context(context) => context,
            _ => unreachable!("requests are bound to contexts"),
        }
    }

    pub(super) fn context_mut(&mut self, node: NodeId) -> &mut Context {
        match &mut self.nodes[node].kind {
            Kind::Context(context) => context,
            _ => unreachable!("requests are bound to contexts"),
        }
    }

    /// All I/O contexts, in no particular order.
    pub(super) fn contexts(&self) -> impl Iterator<Item = NodeId> {
        let is_context = |node: &Node| matches!(node.kind, Kind::Context(_));
        self.nodes.iter().filter(move |(_, node)| is_context(node)).map(|(id, _)| id)
    }

    /// Returns whether nothing waits below a node.
    fn is_empty(&self, node: NodeId) -> bool {
        match &self.nodes[node].kind {
            Kind::Group { members, .. } => self.siblings[*members].is_empty(),
            Kind::Own { classes, .. } => classes.is_empty(&self.siblings),
            Kind::Context(context) => context.queue.is_empty(),
        }
    }

    fn next_key(&mut self, start: Vtime) -> Key {
        self.keys += 1;
        Key { start, sequence: self.keys }
    }

    /// Makes the context and all above it active that are not, and tells of each.
    pub(super) fn activate(
        &mut self,
        context: NodeId,
        now: Instant,
        grace: Nanos,
        mut tell: impl FnMut(Entered),
    ) {
        let mut at = context;
        while let Some(among) = self.nodes[at].among
            && !self.nodes[at].is_active()
        {
            let siblings = &self.siblings[among];
            let v = siblings.v();
            let start = siblings.entry(self.nodes[at].start, now, grace);
            let key = self.next_key(start);
            let node = &mut self.nodes[at];
            node.start = start;
            node.key = Some(key);
            tell(Entered { whom: node.whom(), start, v, lag: start.ahead_of(v, node.weight) });
            self.siblings[among].insert(key, at);
            at = self.siblings[among].of;
            self.classes_changed(at, now);
        }
    }

    /// Charges the context and all above it for a request that was taken out of it. Returns where
    /// the last of them, below the root, started.
    pub(super) fn charge_path(
        &mut self,
        context: NodeId,
        charge: Units,
        now: Instant,
        grace: Nanos,
    ) -> Vtime {
        let mut at = context;
        let mut chosen_by = Vtime::ZERO;
        while let Some(among) = self.nodes[at].among {
            let has_more = !self.is_empty(at);
            self.siblings[among].advance_v(now, grace);
            let node = &mut self.nodes[at];
            let before = node.key.take().expect("who is served is active");
            chosen_by = before.start;
            node.start = node.start.advanced(charge, node.weight);
            let start = node.start;
            self.siblings[among].remove(before);
            if has_more {
                let key = self.next_key(start);
                self.nodes[at].key = Some(key);
                self.siblings[among].insert(key, at);
            }
            at = self.siblings[among].of;
            if !has_more {
                self.classes_changed(at, now);
            }
        }
        chosen_by
    }

    /// Charges a node and all above it for work that was no request.
    pub(super) fn charge_work(&mut self, node: NodeId, charge: Units, now: Instant, grace: Nanos) {
        let mut at = node;
        while let Some(among) = self.nodes[at].among {
            let start = match self.nodes[at].key {
                Some(key) => key.start,
                // Else the debt would be forgotten as it becomes busy.
                None => self.siblings[among].entry(self.nodes[at].start, now, grace),
            };
            let start = start.advanced(charge, self.nodes[at].weight);
            self.nodes[at].start = start;
            if let Some(before) = self.nodes[at].key {
                let key = self.next_key(start);
                self.nodes[at].key = Some(key);
                self.siblings[among].remove(before);
                self.siblings[among].insert(key, at);
            }
            at = self.siblings[among].of;
        }
    }

    /// Takes the context, and all above it that are empty by that, out of the order of service: its
    /// last request is gone without being served.
    pub(super) fn deactivate_if_empty(&mut self, context: NodeId, now: Instant) {
        let mut at = context;
        while let Some(among) = self.nodes[at].among
            && self.is_empty(at)
            && let Some(key) = self.nodes[at].key.take()
        {
            self.siblings[among].remove(key);
            at = self.siblings[among].of;
            self.classes_changed(at, now);
        }
    }

    /// Notes which classes of a group's own requests have something waiting.
    fn classes_changed(&mut self, node: NodeId, now: Instant) {
        if let Kind::Own { classes, .. } = &mut self.nodes[node].kind {
            classes.changed(&self.siblings, now);
        }
    }

    /// Asserts what always holds of the tree.
    pub(super) fn check(&self) {
        for (id, node) in &self.nodes {
            let waits = !self.is_empty(id);
            let is_root = node.among.is_none();
            assert_eq!(node.is_active(), waits && !is_root, "who has something waiting is active");
            assert!(node.key.is_none_or(|key| key.start == node.start), "by its own tag");
        }
        for (id, siblings) in &self.siblings {
            let active = self.nodes.iter().filter(|(_, node)| node.among == Some(id));
            let active = active.filter_map(|(id, node)| node.key.map(|key| (key, id)));
            siblings.check(active.collect());
        }
    }
}
