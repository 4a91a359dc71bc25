//! What callers hold: one device's requests, from their arrival to their completion.
//!
//! ```text
//!   submit ──▶ merge? ──yes──▶ part of a queued request
//!                │no
//!                ▼
//!            admission ──no──▶ Later: the caller keeps the bio
//!                │yes
//!                ▼
//!   flush? ──▶ bypass list ──┐    scheduler ◀── insert, requeue
//!                            ▼        │
//!                         dispatch ◀──┘      never beyond the device's depth
//!                            │
//!                            ▼
//!                         the device ──▶ complete ──▶ user data of each bio
//! ```
//!
//! **The law.** One event (an arrival, one expired timer, or one completion with the exits of the
//! I/O contexts whose last request it was); then [`Elevator::dispatch`] until it gives none; then
//! [`Elevator::poll_timeout`]; then the next event. Nothing is dispatched inside an event.

mod admission;
mod blkio;
mod ends;
mod limits;
mod membership;
mod merge;
mod tuning;

use admission::Admission;
pub use limits::Limits;
use merge::Merging;
pub use merge::NoMerges;
use tuning::Tuning;

use crate::arena::RequestId;
use crate::group::Groups;
use crate::io_context::IoContexts;
use crate::parts::fifo::Fifo;
use crate::request::{Bio, Place, Request, Requests, UserDataList};
use crate::scheduler::{Cx, Device, InsertAt, MergeRules, Requeue, Scheduler};
use crate::stats::{Counted, Stats};
use crate::time::Instant;
use crate::trace::{Event, MergeKind, Trace, WaitReason};

/// What became of a submitted bio.
#[must_use = "a bio that was told `Later` is its caller's to submit again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A request was made of it.
    Queued(RequestId),
    /// It is part of this request.
    Merged {
        /// The request.
        into: RequestId,
        /// At which of its ends.
        kind: MergeKind,
    },
    /// It may not enter now. The caller keeps it, and submits it again with [`Elevator::resubmit`]
    /// when a completion says so.
    Later(Bio),
}

/// The bios of a request that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bios {
    /// The submitters' names of them, in the order in which they were merged.
    pub user_data: UserDataList,
    /// Whether bios that were told `Later` should be submitted again, in order of arrival.
    pub call_waiters: bool,
}

/// The elevator of one device.
#[derive(Debug)]
pub struct Elevator<S> {
    scheduler: S,
    device: Device,
    requests: Requests,
    contexts: IoContexts,
    groups: Groups,
    merging: Merging,
    admission: Admission,
    tuning: Tuning,
    stats: Stats,
    /// What goes round the scheduler and is handed out before anything that it holds.
    bypass: Fifo,
    /// Requests that wait, in the scheduler or round it.
    queued: u32,
    /// Requests in the device.
    in_device: u32,
    /// The moment of the last event.
    now: Instant,
}

impl<S: Scheduler> Elevator<S> {
    /// An elevator without requests, with the root group alone. Its time begins at
    /// [`Instant::START`]: no event is before that.
    pub fn new(scheduler: S, device: Device) -> Self {
        let groups = Groups::new();
        let mut stats = Stats::default();
        stats.add_group(groups.root());
        let mut elevator = Self {
            scheduler,
            device,
            requests: Requests::default(),
            contexts: IoContexts::default(),
            groups,
            merging: Merging::new(),
            admission: Admission::new(),
            tuning: Tuning::default(),
            stats,
            bypass: Fifo::default(),
            queued: 0,
            in_device: 0,
            now: Instant::START,
        };
        elevator.ask(Instant::START, S::attach);
        elevator
    }

    /// A bio arrives.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the I/O context of the bio is gone. Where the
    /// bio ends beyond sector 2⁶⁴ − 1, is a flush with sectors, or is anything else without.
    pub fn submit(&mut self, now: Instant, bio: Bio) -> Submitted {
        self.advance(now);
        let Bio { op, sector, sectors, user_data, .. } = bio;
        self.scheduler.trace().event(now, Event::Queued { bio: user_data, op, sector, sectors });
        self.resubmit(now, bio)
    }

    /// A bio that was told [`Later`](Submitted::Later) tries again.
    ///
    /// ```
    /// use paternoster::{
    ///     AnyScheduler, Bio, BioFlags, Device, Elevator, Instant, IoPrio, NoTrace, Op,
    ///     SchedulerKind, Sector, SectorCount, Submitted,
    /// };
    ///
    /// let scheduler = AnyScheduler::new(SchedulerKind::MqDeadline, NoTrace);
    /// let mut elevator = Elevator::new(scheduler, Device::solid_state(1));
    /// let now = Instant::START;
    /// let ioc = elevator.io_context(now, IoPrio::default(), elevator.groups().root());
    /// let read = |sector, user_data| Bio {
    ///     op: Op::Read,
    ///     flags: BioFlags::empty(),
    ///     sector: Sector(sector),
    ///     sectors: SectorCount(8),
    ///     segments: 1,
    ///     ioc,
    ///     user_data,
    /// };
    /// elevator.set_nr_requests(Some(1));
    ///
    /// let Submitted::Queued(rq) = elevator.submit(now, read(0, 1)) else { panic!("it is free") };
    /// // Only one request may exist. This bio merges with none, so it has to wait with us.
    /// let later = elevator.submit(now, read(500, 2));
    /// let Submitted::Later(waits) = later else { panic!("there is no room") };
    ///
    /// assert_eq!(elevator.dispatch(now), Some(rq));
    /// let done = elevator.complete(now, rq);
    /// assert!(done.call_waiters, "there is room again");
    /// assert!(matches!(elevator.resubmit(now, waits), Submitted::Queued(_)));
    /// ```
    ///
    /// # Panics
    ///
    /// As [`submit`](Self::submit).
    pub fn resubmit(&mut self, now: Instant, bio: Bio) -> Submitted {
        self.advance(now);
        bio.check_range();
        let group = self.contexts[bio.ioc].group;
        if let Some((into, kind)) = self.merge_bio(now, &bio) {
            self.stats.bio_arrived(&bio, group);
            return Submitted::Merged { into, kind };
        }
        if !bio.bypasses() && !self.admits(now, &bio) {
            return Submitted::Later(bio);
        }
        self.stats.bio_arrived(&bio, group);
        let rq = self.make(now, &bio);
        if bio.bypasses() {
            self.requests[rq].place = Place::Bypassing;
            self.bypass.push(&mut self.requests, rq, now);
            return Submitted::Queued(rq);
        }
        self.bind(now, rq);
        if self.scheduler.merge_rules() == MergeRules::BlkMq
            && let Some(into) = self.join_at_insert(now, rq)
        {
            self.queued -= 1;
            self.stats.request_gone(now, Counted::bio(&bio, group));
            return Submitted::Merged { into, kind: MergeKind::Back };
        }
        self.insert(now, rq);
        Submitted::Queued(rq)
    }

    /// The next request for the device, if it has room and there is one to serve now.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the scheduler would hang: it holds requests,
    /// gives none though nothing is in the device, and asks for no timeout.
    pub fn dispatch(&mut self, now: Instant) -> Option<RequestId> {
        self.advance(now);
        if self.in_device >= self.device.queue_depth {
            if self.queued > 0 {
                let why = WaitReason::DeviceFull;
                self.scheduler.trace().event(now, Event::Waiting { why });
            }
            return None;
        }
        if let Some(rq) = self.bypass.pop(&mut self.requests) {
            if self.requests[rq].known {
                self.ask(now, |scheduler, cx| scheduler.reactivate(cx, rq));
            }
            self.start(now, rq);
            return Some(rq);
        }
        if self.scheduler.has_work()
            && let Some(rq) = self.ask(now, S::dispatch)
        {
            assert!(self.requests[rq].is_queued(), "a scheduler gives out what it holds");
            self.forget(rq);
            self.start(now, rq);
            return Some(rq);
        }
        assert!(
            self.queued == 0 || self.in_device > 0 || self.scheduler.poll_timeout().is_some(),
            "{} holds {} requests, gives none, and waits for nothing",
            self.scheduler.name(),
            self.queued
        );
        None
    }

    /// A request is done.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the request is not in the device.
    pub fn complete(&mut self, now: Instant, rq: RequestId) -> Bios {
        self.leave_device(now, rq);
        let request = &self.requests[rq];
        let name = request.name();
        self.stats.completed(now, request);
        if request.known {
            self.ask(now, |scheduler, cx| scheduler.complete(cx, rq));
        }
        self.scheduler.trace().event(now, Event::Completed { rq: name });
        let user_data = self.free(rq);
        Bios { user_data, call_waiters: self.admission.call_waiters() }
    }

    /// The device hands a request back unserved. It never merges again, and is served before
    /// others of its kind.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the request is not in the device.
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        self.leave_device(now, rq);
        let request = &mut self.requests[rq];
        let (name, known) = (request.name(), request.known);
        request.never_merge = true;
        request.place = Place::Made;
        self.stats.requeued(now, &self.requests[rq]);
        self.queued += 1;
        self.scheduler.trace().event(now, Event::Requeued { rq: name });
        let keeper = if known {
            self.ask(now, |scheduler, cx| scheduler.requeue(cx, rq))
        } else {
            Requeue::Elevator
        };
        match keeper {
            Requeue::Scheduler => self.requests[rq].place = Place::Queued,
            Requeue::Elevator => {
                self.requests[rq].place = Place::Bypassing;
                self.bypass.push_front(&mut self.requests, rq, now);
            }
        }
    }

    /// The moment that `poll_timeout` named has come. A needless call does nothing.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.ask(now, S::handle_timeout);
    }

    /// When `handle_timeout` wants to be called, without another event.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.scheduler.poll_timeout()
    }

    /// Changes to another scheduler, a new one. What was held is inserted into it in order of
    /// arrival; what is in the device completes without it hearing of that. Groups, weights and I/O
    /// contexts stay, learned state goes.
    ///
    /// Its tunables are those that fit the device, if the elevator was [`fitted`](Self::fitted),
    /// and over them what [`set_tunable`](Self::set_tunable) has ever set: where this scheduler has
    /// a tunable of that name, and the value is in its range. All others have their defaults.
    /// [`tunable`](Self::tunable) tells what holds.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the old scheduler keeps requests that it was to
    /// give up.
    pub fn switch(&mut self, now: Instant, to: S) -> S {
        self.advance(now);
        let held = self.drain_scheduler(now);
        for (_, request) in self.requests.iter_mut() {
            request.known = false;
        }
        let old = std::mem::replace(&mut self.scheduler, to);
        self.ask(now, S::attach);
        self.tune(now);
        for rq in held {
            self.bind(now, rq);
            self.insert(now, rq);
        }
        for ioc in self.contexts.exited() {
            self.ask(now, |scheduler, cx| scheduler.exit_io_context(cx, ioc));
        }
        old
    }

    /// Gives up all that waits, in order of arrival: the bios of each request.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the scheduler keeps requests that it was to give
    /// up.
    pub fn cancel_queued(&mut self, now: Instant) -> Vec<Bios> {
        self.advance(now);
        let mut waiting = self.drain_scheduler(now);
        while let Some(rq) = self.bypass.pop(&mut self.requests) {
            if self.requests[rq].known {
                // As if the device took it again and had done with it at once.
                self.ask(now, |scheduler, cx| scheduler.reactivate(cx, rq));
                self.ask(now, |scheduler, cx| scheduler.complete(cx, rq));
            }
            waiting.push(rq);
        }
        self.requests.sort_by_arrival(&mut waiting);
        let cancelled = waiting.into_iter().map(|rq| {
            self.queued -= 1;
            self.stats.request_gone(now, Counted::request(&self.requests[rq]));
            let user_data = self.free(rq);
            Bios { user_data, call_waiters: self.admission.call_waiters() }
        });
        cancelled.collect()
    }

    /// A request that exists.
    ///
    /// # Panics
    ///
    /// Where it does not: it is freed as it completes, is given up, or becomes part of another.
    pub fn request(&self, rq: RequestId) -> &Request {
        &self.requests[rq]
    }

    /// Requests that wait for the device.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Requests in the device.
    pub fn in_device(&self) -> u32 {
        self.in_device
    }

    /// What went through.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// The sink of all events.
    pub fn trace(&mut self) -> &mut S::Trace {
        self.scheduler.trace()
    }

    /// Asserts what always holds, by walking everything.
    ///
    /// # Panics
    ///
    /// Where it does not, which is a bug of this crate's or of the scheduler's.
    pub fn check(&mut self) {
        let places = |wanted: &[Place]| {
            let found = self.requests.iter().filter(|(_, rq)| wanted.contains(&rq.place)).count();
            u32::try_from(found).expect("fewer than 2³² requests exist")
        };
        assert_eq!(self.queued, places(&[Place::Queued, Place::Bypassing]), "what waits");
        assert_eq!(self.in_device, places(&[Place::InDevice]), "what runs");
        self.ask(self.now, |scheduler, cx| scheduler.check(cx));
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time does not go back");
        self.now = now;
    }

    fn ask<R>(&mut self, now: Instant, question: impl FnOnce(&mut S, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx {
            now,
            requests: &mut self.requests,
            groups: &self.groups,
            contexts: &self.contexts,
            device: &self.device,
        };
        question(&mut self.scheduler, &mut cx)
    }

    fn admits(&mut self, now: Instant, bio: &Bio) -> bool {
        let Some(nr_requests) = self.admission.nr_requests else { return true };
        let limit = self.ask(now, |scheduler, cx| scheduler.depth_limit(cx, bio, nr_requests));
        let refusal = self.admission.refusal(bio, limit).or_else(|| {
            let holds = self.ask(now, |scheduler, cx| scheduler.holds_share(cx, bio, nr_requests));
            // It may try again as soon as any request is freed.
            holds.then_some(1)
        });
        match refusal {
            None => true,
            Some(_) if self.ask(now, |scheduler, cx| scheduler.must_admit(cx, bio)) => true,
            Some(limit) => {
                self.admission.turn_away(limit);
                false
            }
        }
    }

    fn make(&mut self, now: Instant, bio: &Bio) -> RequestId {
        let context = &self.contexts[bio.ioc];
        let (io_prio, group) = (context.io_prio, context.group);
        let rq = self.requests.add(now, bio, io_prio, group);
        self.contexts.request_made(bio.ioc);
        self.groups[group].requests += 1;
        self.admission.made(bio.op);
        self.queued += 1;
        self.stats.request_waits(now, Counted::bio(bio, group));
        rq
    }

    fn bind(&mut self, now: Instant, rq: RequestId) {
        self.requests[rq].known = true;
        self.ask(now, |scheduler, cx| scheduler.bind(cx, rq));
    }

    fn insert(&mut self, now: Instant, rq: RequestId) {
        debug_assert!(!self.requests[rq].is_queued(), "a request is inserted once");
        self.ask(now, |scheduler, cx| scheduler.insert(cx, rq, InsertAt::Sorted));
        self.requests[rq].place = Place::Queued;
        self.remember(rq);
    }

    fn start(&mut self, now: Instant, rq: RequestId) {
        let request = &mut self.requests[rq];
        request.place = Place::InDevice;
        request.dispatched = now;
        self.queued -= 1;
        self.in_device += 1;
        self.stats.dispatched(now, request);
        let name = request.name();
        self.scheduler.trace().event(now, Event::Dispatched { rq: name });
    }

    fn leave_device(&mut self, now: Instant, rq: RequestId) {
        self.advance(now);
        assert_eq!(self.requests[rq].place, Place::InDevice, "a request leaves the device once");
        self.in_device -= 1;
    }

    /// Takes everything out of the scheduler, in order of arrival.
    fn drain_scheduler(&mut self, now: Instant) -> Vec<RequestId> {
        let mut held = Vec::new();
        self.ask(now, |scheduler, cx| scheduler.drain(cx, &mut held));
        assert!(!self.scheduler.has_work(), "a drained scheduler is empty");
        self.requests.sort_by_arrival(&mut held);
        for &rq in &held {
            self.forget(rq);
            self.requests[rq].place = Place::Made;
        }
        held
    }

    /// Forgets `rq`: its bios.
    fn free(&mut self, rq: RequestId) -> UserDataList {
        let Request { op, ioc, group, .. } = self.requests[rq];
        let bios = self.requests.remove(rq).bios;
        self.contexts.request_freed(ioc);
        self.groups[group].requests -= 1;
        self.admission.freed(op);
        bios
    }
}
