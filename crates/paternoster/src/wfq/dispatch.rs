//! Which request is next: from the root down the least tag, while the device has room.
//!
//! ```text
//!   something waits, and fewer than depth are in flight?
//!      │yes
//!      ▼
//!   a group is behind its reservation? ──yes──▶ from that group down, as below; but a twentieth
//!      │no                                       is for others that wait (limits/others.rs)
//!      ▼
//!   a run goes on (run.rs), and may? ──yes──▶ its I/O context
//!      │no
//!      ▼
//!   root ─▶ least start ─▶ least start ─▶ own ─▶ class ─▶ context ─▶ its head
//!   ◀──── each on the way is charged: its start advances by charge / weight
//! ```

use super::class::{Age, Classes};
use super::directions::Directions;
use super::insert::emit;
use super::node::{Context, Kind, NodeId, SiblingsId};
use super::order::Served;
use super::price::{Class, moved};
use super::service::{Units, Vtime};
use super::tournament::Tag;
use super::{InFlight, Wfq};
use crate::arena::RequestId;
use crate::scheduler::Cx;
use crate::trace::{
    ElevatorEvent, Event, FairWhy, HoldReason, ShareOf, Trace, WaitReason, WfqEvent,
};

/// The request to dispatch, and where it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) context: NodeId,
    pub(super) rq: RequestId,
    /// The tag of the node below the root that it is of.
    pub(super) start: Vtime,
    /// The node whose reservation brings it forward.
    pub(super) reserved: Option<NodeId>,
    /// Others, whose request has the least tag, let it pass.
    pub(super) passes_others: bool,
}

impl<T: Trace> Wfq<T> {
    /// Takes the next request, if the device may have one more. Something waits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_request(&mut self, cx: &mut Cx) -> Option<RequestId> {
        let depth = self.depth.in_force().min(cx.device.queue_depth);
        if cx.in_device >= depth {
            self.trace.event(
                cx.now,
                Event::Elevator(ElevatorEvent::Waiting { why: WaitReason::DeviceFull }),
            );
            return None;
        }
        self.request_within(cx, depth)
    }

    /// Takes the next request, unless caps or places that are kept hold it. The device has room for
    /// one of `depth`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn request_within(&mut self, cx: &mut Cx, depth: u32) -> Option<RequestId> {
        self.release(cx.now);
        let Some(choice) = self.choose(cx, depth) else {
            self.trace
                .event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why: WaitReason::Capped }));
            return None;
        };
        if let Some((why, waits)) = self.why_held(cx, &choice, depth) {
            let node = ShareOf::Group(cx.requests[choice.rq].group);
            self.trace.event(cx.now, Event::Wfq(WfqEvent::Held { node, why, until: None }));
            self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why: waits }));
            return None;
        }
        self.take(cx, choice);
        if !self.targets.is_empty() {
            self.targets.enter(self.groups[cx.requests[choice.rq].group].within);
        }
        let top = self.tree.context(choice.context).top;
        self.kept.change_outstanding(&mut self.tree, top, |demand| demand.enter(cx.now));
        self.note_load(cx.now, cx.in_device + 1);
        Some(choice.rq)
    }

    /// Returns why a request may not enter the device though it has room, if it may not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn why_held(&self, cx: &Cx, choice: &Choice, depth: u32) -> Option<(HoldReason, WaitReason)> {
        let may_hold = !self.kept.is_empty() || self.targets.hold_some();
        if choice.reserved.is_some() || !may_hold {
            return None;
        }
        let nodes = &self.groups[cx.requests[choice.rq].group];
        let percent = self.tunables.keep_slots.cast_unsigned();
        if self.kept.hold(&self.tree, nodes.top, cx.in_device, depth, percent) {
            return Some((HoldReason::Kept, WaitReason::Kept));
        }
        self.targets.must_wait(nodes.within).then_some((HoldReason::Target, WaitReason::Target))
    }

    /// Returns the request that a reservation brings forward, else that of a run which nothing
    /// holds, else the one by least tags; none where caps hold all that waits. Something waits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn choose(&self, cx: &Cx, depth: u32) -> Option<Choice> {
        if let Some((node, directions)) = self.tree.reserved(cx.now) {
            return Some(self.choose_reserved(cx, depth, node, directions));
        }
        if let Some(choice) = self.next_of_run(cx)
            && self.why_held(cx, &choice, depth).is_none()
        {
            return Some(choice);
        }
        self.least(cx)
    }

    /// Returns the request by least tags, from the root down.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn least(&self, cx: &Cx) -> Option<Choice> {
        let &Tag { start, node, .. } = self.tree.first()?;
        let (context, rq) = self.least_below(cx, node, self.tree.limits.open());
        Some(Choice { context, rq, start, reserved: None, passes_others: false })
    }

    /// Returns the request that the reservation of `node` brings forward; or that of another which
    /// has let enough pass.
    #[inline(never)]
    fn choose_reserved(&self, cx: &Cx, depth: u32, node: NodeId, directions: Directions) -> Choice {
        let is_other = |least: &Choice| !self.tree.is_within(least.context, node);
        let other = self.least(cx).filter(is_other);
        let has_turn =
            |other: &Choice| self.others.go_first(self.pricing.charge(&cx.requests[other.rq]));
        let mut passes_others = false;
        if let Some(other) = other {
            passes_others = !has_turn(&other);
            if !passes_others && self.why_held(cx, &other, depth).is_none() {
                return other;
            }
        }
        let start = self.tree.start_below_root(node);
        let (context, rq) = self.least_below(cx, node, directions);
        Choice { context, rq, start, reserved: Some(node), passes_others }
    }

    /// Returns the request by least tags below an active node in one of those directions, and its
    /// context.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn least_below(
        &self,
        cx: &Cx,
        node: NodeId,
        mut directions: Directions,
    ) -> (NodeId, RequestId) {
        let all = &self.tree.siblings;
        let mut at = node;
        loop {
            let node = &self.tree.nodes[at];
            directions &= node.active;
            let first = match &node.kind {
                Kind::Group { members, .. } => all[*members].first(directions),
                Kind::Own { classes, .. } => {
                    let class = self.next_class(cx, classes, directions);
                    class.and_then(|class| all[class].first(directions))
                }
                Kind::Context(context) => {
                    let rq = context.queue.head();
                    return (at, rq.expect("an active context has requests"));
                }
            };
            at = first.expect("something below an active node waits").node;
        }
    }

    /// The class of a group's own requests to serve next in one of those directions.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_class(
        &self,
        cx: &Cx,
        classes: &Classes,
        directions: Directions,
    ) -> Option<SiblingsId> {
        let cost_of = |class| self.cost_of_next(cx, class, directions);
        classes.next(&self.tree.siblings, directions, self.age(cx), cost_of)
    }

    fn age(&self, cx: &Cx) -> Age {
        Age { now: cx.now, class_age: self.tunables.class_age() }
    }

    /// Returns what the request costs that a class would serve next in one of those directions;
    /// nothing if it was charged before, or if there is none.
    fn cost_of_next(&self, cx: &Cx, class: SiblingsId, directions: Directions) -> Units {
        let first = self.tree.siblings[class].first(directions);
        let head = first.and_then(|first| self.tree.context(first.node).queue.head());
        let is_new = |rq: &RequestId| self.in_flight.get(*rq).is_none();
        head.filter(is_new).map_or(Units::ZERO, |rq| self.pricing.charge(&cx.requests[rq]))
    }

    /// Takes out the request and charges all whose share it is of.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take(&mut self, cx: &mut Cx, choice: Choice) {
        let Choice { context, rq, start, reserved, passes_others } = choice;
        let &Context { own, class, .. } = self.tree.context(context);
        // That of the dearer one, if it has one in each direction: a cap may hold the other.
        let cost_of = |class| {
            let of = |direction| self.cost_of_next(cx, class, direction);
            of(Directions::READ).max(of(Directions::WRITE))
        };
        let earning = self.tree.classes_of(own).earning(self.age(cx), cost_of);
        let charge = self.note_in_flight(cx, rq);
        self.queued -= 1;
        let node = &mut self.tree.nodes[context];
        node.context_mut().queue.pop(&mut cx.requests, rq);
        node.note_head(&cx.requests, self.tree.limits.by_direction());
        self.tree.classes_of_mut(own).served(class, charge, earning);
        let name = cx.requests[rq].name();
        let why = reserved.map_or(FairWhy::Weight, |_| FairWhy::Reserved);
        let dispatched =
            Event::Wfq(WfqEvent::Chosen { rq: name, start, charge: charge.count(), why });
        self.trace.event(cx.now, dispatched);
        self.count_run(context, charge);
        if let Some(node) = reserved {
            self.tree.share_mut(node).reserved += 1;
        } else {
            self.others.served(charge);
        }
        if passes_others {
            self.others.passed(charge);
        }
        let served = Served { request: &cx.requests[rq], charge, reserved };
        let (now, grace) = (cx.now, self.tunables.grace());
        let Self { tree, trace, .. } = self;
        tree.charge_path(context, &served, now, grace, |change| emit(trace, now, change));
    }

    /// Notes that the request is in the device from now on. Returns what that costs: nothing if it
    /// was charged before, and requeued.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_in_flight(&mut self, cx: &Cx, rq: RequestId) -> Units {
        let window = self.windows.number();
        self.in_device += 1;
        if let Some(before) = self.in_flight.get_mut(rq) {
            (before.window, before.in_device) = (window, true);
            return Units::ZERO;
        }
        let request = &cx.requests[rq];
        let charge = self.pricing.charge(request);
        let (class, sectors) = (Class::of(request), moved(request));
        let entry = InFlight { charge, window, sectors, class, in_device: true };
        self.in_flight.add(rq, || entry);
        charge
    }
}
