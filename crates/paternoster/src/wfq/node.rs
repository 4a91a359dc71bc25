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
//! below it that no cap holds. An idle node keeps its tag and is in no tree.

use slotmap::{SlotMap, new_key_type};

use super::class::Classes;
use super::demand::Demand;
use super::directions::Directions;
use super::limits::{Amount, Dues, NO_TARGET, NodeLimits, Parking};
use super::queue::ContextQueue;
use super::service::{Units, Vtime};
use super::siblings::{Key, Siblings};
use crate::arena::{GroupId, IocId};
use crate::io_context::IoClass;
use crate::stats::ShareStats;
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
    /// The directions in which it is active.
    pub(super) active: Directions,
    /// Its caps and its reservation, if it ever had any.
    pub(super) limits: Option<Box<NodeLimits>>,
    /// What it has outstanding; kept of a group's own requests, and of nodes below the root.
    pub(super) demand: Demand,
    /// The last round of `demand.rs` in which it was present.
    pub(super) present_in: u64,
    /// It is on the list of `kept.rs`.
    pub(super) absent: bool,
}

/// What a node stands for.
#[derive(Debug)]
pub(super) enum Kind {
    /// A group, with its child groups and its own requests below it.
    Group { group: GroupId, members: SiblingsId, share: ShareStats },
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
    /// The direction that its head counts as; none without a request.
    pub(super) head: Directions,
    /// Requests that are bound to it: they wait, or are in flight.
    pub(super) bound: u32,
    /// Its I/O context issues no more requests.
    pub(super) exited: bool,
}

impl Node {
    fn new(among: Option<SiblingsId>, weight: u32, kind: Kind) -> Self {
        let (active, limits) = (Directions::empty(), None);
        let (start, demand) = (Vtime::ZERO, Demand::default());
        let (present_in, absent) = (0, false);
        Self { among, kind, weight, start, key: None, active, limits, demand, present_in, absent }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.active.is_empty()
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
    /// The node of the root group, which is made first.
    root: Option<NodeId>,
    pub(super) parking: Parking,
    pub(super) dues: Dues,
    /// How many nodes have caps.
    pub(super) caps: u32,
}

/// What happens to a node, for the trace.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// It became active.
    Busy(Entered),
    /// A cap holds what waits below it.
    Held(ShareOf),
}

/// A request that is dispatched, as those are charged whose share it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) charge: Units,
    pub(super) amount: Amount,
    /// A reservation brought it forward: of the nodes from this one upwards.
    pub(super) reserved: Option<NodeId>,
}

/// A node that became active.
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
    /// The node below the root that both are below; one of them, for a group below the root and for
    /// the root itself.
    pub(super) top: NodeId,
    /// The tightest latency target of it and those above it.
    pub(super) within: Nanos,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self {
            nodes: SlotMap::with_key(),
            siblings: SlotMap::with_key(),
            keys: 0,
            root: None,
            parking: Parking::default(),
            dues: Dues::default(),
            caps: 0,
        }
    }

    /// Adds a group below `parent`, or the root, with a node for its own requests.
    pub(super) fn add_group(
        &mut self,
        group: GroupId,
        parent: Option<GroupNodes>,
        weight: u32,
        leaf_weight: u32,
    ) -> GroupNodes {
        let among = parent.map(|parent| self.members_of(parent.node));
        let siblings = &mut self.siblings;
        let node = self.nodes.insert_with_key(|node| {
            let members = siblings.insert(Siblings::below(node));
            let share = ShareStats::default();
            Node::new(among, weight, Kind::Group { group, members, share })
        });
        if parent.is_none() {
            self.root = Some(node);
        }
        let members = self.members_of(node);
        let siblings = &mut self.siblings;
        let own = self.nodes.insert_with_key(|own| {
            let of_class = IoClass::ALL.map(|_| siblings.insert(Siblings::below(own)));
            let classes = Classes::new(of_class);
            Node::new(Some(members), leaf_weight, Kind::Own { group, classes })
        });
        let top = match parent {
            None => own,
            Some(parent) if self.nodes[parent.node].among.is_none() => node,
            Some(parent) => parent.top,
        };
        GroupNodes { node, own, top, within: parent.map_or(NO_TARGET, |parent| parent.within) }
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

    /// What the group of a node got.
    pub(super) fn share(&self, node: NodeId) -> &ShareStats {
        match &self.nodes[node].kind {
            Kind::Group { share, .. } => share,
            _ => unreachable!("only a group has counts"),
        }
    }

    pub(super) fn share_mut(&mut self, node: NodeId) -> &mut ShareStats {
        match &mut self.nodes[node].kind {
            Kind::Group { share, .. } => share,
            _ => unreachable!("only a group has counts"),
        }
    }

    /// The tag of the node below the root that `node` is, or is below.
    pub(super) fn start_below_root(&self, node: NodeId) -> Vtime {
        let mut at = node;
        while let Some(among) = self.nodes[at].among
            && Some(self.siblings[among].of) != self.root
        {
            at = self.siblings[among].of;
        }
        self.nodes[at].start
    }

    /// All I/O contexts, in no particular order.
    pub(super) fn contexts(&self) -> impl Iterator<Item = NodeId> {
        let is_context = |node: &Node| matches!(node.kind, Kind::Context(_));
        self.nodes.iter().filter(move |(_, node)| is_context(node)).map(|(id, _)| id)
    }

    /// Returns in which directions something waits below a node that no cap below it holds.
    #[inline]
    pub(super) fn waiting_below(&self, node: NodeId) -> Directions {
        match &self.nodes[node].kind {
            Kind::Group { members, .. } => self.siblings[*members].directions(),
            Kind::Own { classes, .. } => classes.directions(&self.siblings),
            Kind::Context(context) => context.head,
        }
    }

    /// Returns when a cap lets something be served, if caps hold all that waits.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let (until, _) = self.parking.first()?;
        let nothing_else = self.waiting_below(self.root?).is_empty();
        nothing_else.then_some(until)
    }

    fn next_key(&mut self, start: Vtime) -> Key {
        self.keys += 1;
        Key { start, sequence: self.keys }
    }

    /// Puts a node, and those above it, where they are in the order of service now: something began
    /// to wait below it, or ceased to, or a cap holds it, or no longer.
    pub(super) fn follow(
        &mut self,
        from: NodeId,
        now: Instant,
        grace: Nanos,
        mut tell: impl FnMut(Told),
    ) {
        let mut at = from;
        while let Some(among) = self.nodes[at].among {
            let (to, is_held) = self.park(at, self.waiting_below(at), now);
            if is_held {
                tell(Told::Held(self.nodes[at].whom()));
            }
            if to == self.nodes[at].active {
                break;
            }
            self.place(at, among, to, now, grace, &mut tell);
            at = self.siblings[among].of;
            self.classes_changed(at, now);
        }
    }

    /// Makes a node active in those directions alone.
    fn place(
        &mut self,
        at: NodeId,
        among: SiblingsId,
        to: Directions,
        now: Instant,
        grace: Nanos,
        tell: &mut impl FnMut(Told),
    ) {
        let siblings = &mut self.siblings[among];
        let node = &mut self.nodes[at];
        let from = std::mem::replace(&mut node.active, to);
        let key = if let Some(key) = node.key {
            key
        } else {
            let v = siblings.v();
            node.start = siblings.entry(node.start, now, grace);
            self.keys += 1;
            let lag = node.start.ahead_of(v, node.weight);
            tell(Told::Busy(Entered { whom: node.whom(), start: node.start, v, lag }));
            Key { start: node.start, sequence: self.keys }
        };
        siblings.remove(key, from - to);
        siblings.insert(key, at, to - from);
        node.key = (!to.is_empty()).then_some(key);
        self.relist(at);
    }

    /// Charges the context and all above it for a request that was taken out of it.
    pub(super) fn charge_path(
        &mut self,
        context: NodeId,
        served: Served,
        now: Instant,
        grace: Nanos,
        mut tell: impl FnMut(Told),
    ) {
        let direction = self.counts_as(served.amount);
        let mut is_reserved = false;
        let mut at = context;
        while let Some(among) = self.nodes[at].among {
            is_reserved |= served.reserved == Some(at);
            let siblings = &mut self.siblings[among];
            siblings.advance_v(direction, now, grace);
            let node = &mut self.nodes[at];
            let before = node.key.take().expect("who is served is active");
            siblings.remove(before, node.active);
            let (start, charge) = (node.start, served.charge);
            node.start = if is_reserved {
                start.brought_forward(siblings.v(), charge, node.weight)
            } else {
                start.advanced(charge, node.weight)
            };
            if let Some(limits) = &mut node.limits
                && served.charge > Units::ZERO
            {
                limits.count(now, served.amount, served.charge);
            }
            let is_active = self.place_again(at, among, now, &mut tell);
            at = self.siblings[among].of;
            if !is_active {
                self.classes_changed(at, now);
            }
        }
    }

    /// Puts a node that was served where its tag is now, if it is active still.
    #[inline]
    fn place_again(
        &mut self,
        at: NodeId,
        among: SiblingsId,
        now: Instant,
        tell: &mut impl FnMut(Told),
    ) -> bool {
        let (to, is_held) = self.park(at, self.waiting_below(at), now);
        self.nodes[at].active = to;
        if !to.is_empty() {
            let key = self.next_key(self.nodes[at].start);
            self.nodes[at].key = Some(key);
            self.siblings[among].insert(key, at, to);
        }
        self.relist(at);
        if is_held {
            tell(Told::Held(self.nodes[at].whom()));
        }
        !to.is_empty()
    }

    /// Returns the direction that a request counts as in the order of service.
    #[inline]
    pub(super) fn counts_as(&self, amount: Amount) -> Directions {
        if self.caps == 0 { Directions::READ } else { amount.direction.into() }
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
                let active = self.nodes[at].active;
                self.siblings[among].remove(before, active);
                self.siblings[among].insert(key, at, active);
            }
            at = self.siblings[among].of;
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
            let waiting = self.waiting_below(id);
            let is_root = node.among.is_none();
            let is_limited = node.limits.is_some();
            let expected = if is_root { Directions::empty() } else { waiting };
            assert!(is_limited || node.active == expected, "who has something waiting is active");
            assert_eq!(node.key.is_some(), node.is_active(), "who is active has a key");
            assert!(node.key.is_none_or(|key| key.start == node.start), "by its own tag");
        }
        for (id, siblings) in &self.siblings {
            let active = self.nodes.iter().filter(|(_, node)| node.among == Some(id));
            let active = active.filter_map(|(id, node)| Some((node.key?, id, node.active)));
            siblings.check(&active.collect::<Vec<_>>());
        }
        self.check_limits();
    }
}
