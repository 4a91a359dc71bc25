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
//! below it that no cap holds. An idle node keeps its tag and has no seat.

use slotmap::new_key_type;

use super::class::Classes;
use super::demand::Demand;
use super::directions::Directions;
use super::limits::{Limits, NO_TARGET, NodeLimits};
use super::queue::ContextQueue;
use super::service::Vtime;
use super::siblings::Siblings;
use super::tournament::{Seat, Tag};
use crate::arena::{Arena, GroupId, IocId};
use crate::io_context::IoClass;
use crate::requests::Requests;
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
    /// The number of its tag, which orders equal starts.
    pub(super) sequence: u64,
    /// Its seat among its siblings, while it is active.
    pub(super) seat: Option<Seat>,
    /// The directions in which it is active.
    pub(super) active: Directions,
    /// The directions in which something waits below it that no cap below it holds; of a context,
    /// the direction that its head counts as.
    pub(super) waiting: Directions,
    /// Its caps and its reservation, if it ever had any.
    pub(super) limits: Option<Box<NodeLimits>>,
    /// What it has outstanding; kept of a group's own requests, and of nodes below the root.
    pub(super) demand: Demand,
    /// It is on the list of `kept.rs`.
    pub(super) absent: bool,
}

/// What a node stands for. Each event asks that: where the discriminant is a spare value of some
/// field the question costs four instructions more.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// A group, with its child groups and its own requests below it.
    Group { group: GroupId, members: SiblingsId, share: ShareStats },
    /// The own requests of a group, by class. `held_until` is when the last cap, of the group or
    /// above it, that holds some of them lets them go on, as the trace knows it.
    Own { group: GroupId, classes: Classes, held_until: Option<Instant> },
    /// An I/O context in one class, with its requests.
    Context(Box<Context>),
}

/// An I/O context in one class of one group.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) ioc: IocId,
    pub(super) group: GroupId,
    /// The own requests of the group.
    pub(super) own: NodeId,
    /// The node below the root that the group is, or is below.
    pub(super) top: NodeId,
    pub(super) class: IoClass,
    pub(super) queue: ContextQueue,
    /// Requests that are bound to it: they wait, or are in flight.
    pub(super) bound: u32,
    /// Its I/O context issues no more requests.
    pub(super) exited: bool,
}

impl Context {
    /// Returns whether nothing needs it any more.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.exited && self.bound == 0
    }
}

impl Node {
    fn new(among: Option<SiblingsId>, weight: u32, kind: Kind) -> Self {
        Self {
            among,
            kind,
            weight,
            start: Vtime::ZERO,
            sequence: 0,
            seat: None,
            active: Directions::empty(),
            waiting: Directions::empty(),
            limits: None,
            demand: Demand::default(),
            absent: false,
        }
    }

    /// The tag by which it competes; `id` is itself.
    #[inline]
    pub(super) fn tag(&self, id: NodeId) -> Tag {
        Tag { start: self.start, sequence: self.sequence, node: id }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    pub(super) fn context(&self) -> &Context {
        match &self.kind {
            Kind::Context(context) => context,
            _ => unreachable!("requests are bound to contexts"),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn context_mut(&mut self) -> &mut Context {
        match &mut self.kind {
            Kind::Context(context) => context,
            _ => unreachable!("requests are bound to contexts"),
        }
    }

    /// Notes whether a context has a head, and in which direction it counts: while no group has a
    /// cap all count as reads.
    #[inline]
    pub(super) fn note_head(&mut self, requests: &Requests, by_direction: bool) {
        self.waiting = match self.context().queue.head() {
            None => Directions::empty(),
            Some(rq) if by_direction => requests[rq].direction().into(),
            Some(_) => Directions::READ,
        };
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
    pub(super) nodes: Arena<NodeId, Node>,
    pub(super) siblings: Arena<SiblingsId, Siblings>,
    /// How many tags were made.
    pub(super) tags: u64,
    /// The node of the root group, which is made first.
    root: Option<NodeId>,
    /// Whom caps hold, and whom reservations bring forward.
    pub(super) limits: Limits,
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
    /// Makes an empty one. So much at once do caps allow, in time at their rate.
    pub(super) fn new(burst: Nanos) -> Self {
        Self {
            nodes: Arena::default(),
            siblings: Arena::default(),
            tags: 0,
            root: None,
            limits: Limits::with_burst(burst),
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
            let kind = Kind::Own { group, classes, held_until: None };
            Node::new(Some(members), leaf_weight, kind)
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
    pub(super) fn add_context(&mut self, context: Context) -> NodeId {
        let among = self.classes_of(context.own).siblings(context.class);
        self.nodes.insert(Node::new(Some(among), 1, Kind::Context(Box::new(context))))
    }

    /// Frees the nodes of a group, which has nothing below it.
    pub(super) fn remove_group(&mut self, nodes: GroupNodes) {
        for node in [nodes.own, nodes.node] {
            let removed = self.nodes.remove(node).expect("a group has its nodes");
            debug_assert!(!removed.is_active(), "nothing of it waits");
            match &removed.kind {
                Kind::Group { members, .. } => _ = self.siblings.remove(*members),
                Kind::Own { classes, .. } => {
                    for class in IoClass::ALL {
                        self.siblings.remove(classes.siblings(class));
                    }
                }
                Kind::Context(_) => unreachable!("a group's nodes are no context"),
            }
        }
    }

    /// The node to serve next of those below the root, and its tag.
    #[inline]
    pub(super) fn first(&self) -> Option<&Tag> {
        self.siblings[self.members_of(self.root?)].first(self.limits.open())
    }

    /// The classes of a group's own requests.
    #[inline]
    pub(super) fn classes_of(&self, own: NodeId) -> &Classes {
        match &self.nodes[own].kind {
            Kind::Own { classes, .. } => classes,
            _ => unreachable!("contexts are below a group's own requests"),
        }
    }

    #[inline]
    pub(super) fn classes_of_mut(&mut self, own: NodeId) -> &mut Classes {
        match &mut self.nodes[own].kind {
            Kind::Own { classes, .. } => classes,
            _ => unreachable!("contexts are below a group's own requests"),
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
        self.nodes[node].context()
    }

    pub(super) fn context_mut(&mut self, node: NodeId) -> &mut Context {
        self.nodes[node].context_mut()
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

    /// Returns when a cap lets something be served, if caps hold all that waits.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let until = self.limits.hold_until()?;
        let nothing_else = !self.nodes[self.root?].waiting.intersects(self.limits.open());
        nothing_else.then_some(until)
    }

    /// Asserts what always holds of the tree.
    pub(super) fn check(&self) {
        for node in self.nodes.values() {
            let below = match &node.kind {
                Kind::Group { members, .. } => self.siblings[*members].directions(),
                Kind::Own { classes, .. } => classes.directions(&self.siblings),
                Kind::Context(_) => node.waiting,
            };
            assert_eq!(node.waiting, below, "who has something waiting below it knows");
            let is_root = node.among.is_none();
            let is_limited = node.limits.is_some();
            let expected = if is_root { Directions::empty() } else { node.waiting };
            assert!(is_limited || node.active == expected, "who has something waiting is active");
            assert_eq!(node.seat.is_some(), node.is_active(), "who is active has a seat");
        }
        for (id, siblings) in self.siblings.iter() {
            let active = self.nodes.iter().filter(|(_, node)| node.among == Some(id));
            let active =
                active.filter_map(|(id, node)| Some((node.seat?, node.tag(id), node.active)));
            siblings.check(&active.collect::<Vec<_>>());
        }
        self.check_limits();
    }
}
