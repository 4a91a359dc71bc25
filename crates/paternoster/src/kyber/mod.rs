//! Kyber: each kind of request has as many in the device as lets all meet their latency targets.
//!
//! A fast device serves many requests at once, and needs no order. But whoever fills its queue
//! makes everybody wait: a flood of writes delays each read behind it. So Kyber splits requests
//! into four *domains* and gives each a number of *tokens*. A request needs one to be dispatched,
//! and gives it back when it completes. Ten times a second the latencies of the completed requests
//! say how many tokens each domain has from then on:
//!
//! ```text
//!            waiting                     in the device, at most as many as tokens
//!   READ     arrived ─▶ ready ─┐         256 ▶ 192   ●●●●●●●●●●●●
//!   WRITE    arrived ─▶ ready ─┤ in      128 ▶ 32    ●●●
//!   DISCARD  arrived ─▶ ready ─┤ turns   64          ●
//!   OTHER    arrived ─▶ ready ─┘         16
//!                                          ▲             │ time in the device: congestion?
//!                                          └─────────────┘ total time beside the target
//! ```
//!
//! With congestion, a domain that is well within its target gives up tokens in proportion, and one
//! that misses it gets more. Without congestion nothing is taken away. So *only congestion shrinks
//! a domain, and only a missed target lets it grow*: a throttled domain comes back by missing its
//! own target, waiting included.
//!
//! The life of a request, and the file for each step:
//!
//! ```text
//!   inserted     domain.rs        it is in the domain of its operation
//!                domain_queue.rs  it has arrived, and bios may merge into it
//!   dispatched   dispatch.rs      it is the turn of its domain,
//!                token_map.rs     which has a token left
//!   completed    complete.rs      it gives back its token,
//!                latency.rs       and its latencies are counted
//!   a timer      adjust.rs        the depths of the domains follow the latencies
//! ```
//!
//! `admission.rs` keeps room for synchronous requests, `tunables.rs` has the targets, and `dump.rs`
//! shows the state. I/O priorities and weights play no part.
//!
//! Decisions are those of Linux 6.1 with one hardware queue and one CPU; each oddity is a named
//! step. Linux draws the place at which the search for a token begins anew after a depth was
//! lowered; here it is 0.

mod adjust;
mod admission;
mod complete;
mod dispatch;
mod domain;
mod domain_queue;
mod dump;
mod latency;
mod token_map;
mod tunables;

use crate::arena::RequestId;
use crate::dump::Dump;
use crate::request::Bio;
use crate::scheduler::{Cx, Existing, InsertAt, MergeRules, Requeue, Rules, Scheduler};
use crate::time::Instant;
use crate::trace::{Domain, Trace};
use crate::tunable::{TunableInfo, tunable_methods};
use domain::{MEASURED, domain_of, tokens_of};
use domain_queue::DomainQueue;
use latency::Latencies;
use token_map::TokenMap;
use tunables::Tunables;

/// Its name in sysfs.
pub(crate) const NAME: &str = "kyber";

/// The requests of a domain that wait, and its tokens.
#[derive(Debug)]
struct DomainState {
    queue: DomainQueue,
    tokens: TokenMap,
    /// Whether it lacked a token when it was last asked, and none has come back since.
    throttled: bool,
}

impl DomainState {
    fn new(domain: Domain) -> Self {
        let tokens = TokenMap::new(tokens_of(domain));
        Self { queue: DomainQueue::default(), tokens, throttled: false }
    }
}

/// The Kyber scheduler.
#[derive(Debug)]
pub struct Kyber<T> {
    domains: [DomainState; Domain::COUNT],
    /// The latencies of the first domains, which are measured.
    latencies: [Latencies; MEASURED.len()],
    /// The domain whose turn it is.
    current: Domain,
    /// Requests dispatched in its turn.
    batching: u32,
    /// When the depths are to be adjusted; none until a request completes.
    timer: Option<Instant>,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> Kyber<T> {
    /// Makes an empty scheduler with Linux's defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self {
            domains: Domain::ALL.map(DomainState::new),
            latencies: Default::default(),
            current: Domain::Read,
            batching: 0,
            timer: None,
            tunables: Tunables::with_defaults(),
            trace,
        }
    }

    /// The tunables.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;
}

impl<T: Trace> Scheduler for Kyber<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt) {
        let domain = domain_of(cx.requests[rq].op);
        self.domains[domain as usize].queue.insert(&mut cx.requests, rq, at, cx.now);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, cx: &mut Cx, rq: RequestId) {
        self.count_latencies(cx, rq);
        self.give_back_token(cx, rq);
    }

    fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue {
        self.give_back_token(cx, rq);
        self.insert(cx, rq, InsertAt::Head);
        Requeue::Scheduler
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.timer_fired(cx);
    }

    #[inline]
    fn rules(&self) -> Rules {
        Rules { merging: MergeRules::ListScan, ..Rules::default() }
    }

    #[inline]
    fn scan(&self, cx: &Cx, bio: &Bio, newer: Option<RequestId>) -> Option<RequestId> {
        self.domains[domain_of(bio.op) as usize].queue.merge_candidate(&cx.requests, newer)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.next_request(cx)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    #[inline]
    fn has_work(&self) -> bool {
        self.domains.iter().any(|domain| !domain.queue.is_empty())
    }

    fn refusal(&mut self, _cx: &mut Cx, bio: &Bio, existing: Existing) -> Option<u32> {
        if bio.is_sync() {
            return existing.bound();
        }
        existing.bound_or_limit(bio, admission::async_depth(existing.nr_requests))
    }

    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        for domain in &mut self.domains {
            while let Some(rq) = domain.queue.pop(&mut cx.requests) {
                out.push(rq);
            }
        }
    }

    tunable_methods!(tunables: Tunables);

    fn dump(&self, out: &mut dyn Dump) {
        self.dump_all(out);
    }

    fn check(&self, cx: &Cx) {
        let in_flight = |of: Domain| {
            let bound = cx.requests.iter().filter(|(_, rq)| rq.bound && rq.is_in_flight());
            bound.filter(|(_, rq)| domain_of(rq.op) == of).count()
        };
        for (domain, state) in Domain::ALL.into_iter().zip(&self.domains) {
            state.queue.check(&cx.requests);
            assert_eq!(state.tokens.out() as usize, in_flight(domain), "a request has a token");
        }
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
