//! The elevator of one device: its requests from the arrival of their bios to their completion.
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
//! [`Elevator`] says in which order its methods are to be called.

mod admission;
mod blkio;
mod chains;
mod clock;
mod limits;
mod membership;
mod merge;
mod merge_hash;
mod outcome;
mod tuning;

use admission::Admission;
pub use clock::ElevatorClock;
pub use limits::Limits;
pub(crate) use limits::adjacency;
use merge::Merging;
pub use merge::NoMerges;
pub use outcome::{Completed, Submitted};
use tuning::Tuning;

use crate::arena::{GroupId, RequestId};
use crate::device::Device;
use crate::group::GroupEvent;
use crate::io_context::IoContext;
use crate::parts::fifo::Fifo;
use crate::request::{Bio, BioFlags, Place, Request, UserDataList};
use crate::scheduler::{Cx, InsertAt, Requeue, Scheduler, Work};
use crate::stats::{Counted, Stats};
use crate::time::Instant;
use crate::trace::{ElevatorEvent, Event, MergeKind, Trace, WaitReason};

/// The elevator of one device: its requests, from the arrival of their bios to their completion.
///
/// It does no I/O, waits for nothing and reads no clock. Its driver notifies it of each event with
/// its time, starts the requests that it dispatches, and calls it at the timeout that it asks for.
///
/// # The law
///
/// 1. One event: a bio arrives ([`submit`](Self::submit)), or several that merged in a plug
///    ([`submit_chain`](Self::submit_chain)); a timeout ends
///    ([`handle_timeout`](Self::handle_timeout)); or the device is done with a request
///    ([`complete`](Self::complete)) or could not take it ([`requeue`](Self::requeue)). An I/O
///    context that ends with its last request exits in the same event.
/// 2. [`dispatch`](Self::dispatch) until it returns no request; the driver starts each.
/// 3. [`poll_timeout`](Self::poll_timeout): when to call
///    [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
///
/// Nothing is dispatched inside an event. A driver that keeps this law gets the same decisions for
/// the same events, in a simulation as in a server. Several bios may be submitted before the next
/// dispatch, each at its own time; it then chooses among all of them. What completes, and a timeout
/// that ends, is followed by dispatch before the next event.
///
/// # Its methods
///
/// - **Events**, as above; each takes the time, which never goes back. Any clock will do: the
///   elevator counts from the moment it is made with ([`clock`](Self::clock)).
/// - **Outputs**: [`dispatch`](Self::dispatch), [`poll_timeout`](Self::poll_timeout).
/// - **Administration**: groups and their weights ([`add_group`](Self::add_group),
///   [`set_weight`](Self::set_weight), …), I/O contexts
///   ([`add_io_context`](Self::add_io_context), …), tunables
///   ([`set_tunable`](Self::set_tunable), [`reset_tunables`](Self::reset_tunables)), the hierarchy
///   ([`set_hierarchy`](Self::set_hierarchy)), bounds ([`set_depth`](Self::set_depth),
///   [`set_nr_requests`](Self::set_nr_requests), [`set_limits`](Self::set_limits), …), another
///   scheduler ([`switch`](Self::switch)), the end ([`cancel_queued`](Self::cancel_queued)). Any
///   of these may let a request be dispatched, or change the timeout: steps 2 and 3 follow. The
///   bounds take no time: they hold from the next event on. None of these wakes a bio that was
///   told [`Later`](Submitted::Later) but [`cancel_queued`](Self::cancel_queued): after another
///   bound on requests, or another tunable, the next completion does.
/// - **Questions**, which change nothing: [`request`](Self::request), [`stats`](Self::stats),
///   [`blkio`](Self::blkio), [`groups`](Self::groups), [`tunable`](Self::tunable), …
///
/// # What it asks of its driver
///
/// - A bio that got [`Later`](Submitted::Later) waits with the driver, in order of arrival, and is
///   submitted again when [`Completed::wake_waiters`] says so. A driver that bounds outstanding
///   bios itself sets [`set_nr_requests`](Self::set_nr_requests) out of reach.
/// - The device has at most its depth of requests. It may complete them in any order.
/// - `user_data` are the driver's own names of bios; the elevator does not look at them.
/// - A key that is gone, and a time before the last event, are mistakes of the driver: the elevator
///   panics. It also panics where its scheduler holds requests, dispatches none though the device
///   is empty, and asks for no timeout, because that would hang.
#[derive(Debug)]
pub struct Elevator<S> {
    scheduler: S,
    /// What the scheduler sees of the rest: the requests, who issues them, the device and the
    /// moment of the last event.
    cx: Cx,
    merging: Merging,
    admission: Admission,
    tuning: Tuning,
    stats: Stats,
    /// Requests that bypass the scheduler. They are dispatched before all that it holds.
    bypass: Fifo,
    /// Requests that wait, in the scheduler or on the bypass list.
    queued: u32,
    clock: ElevatorClock,
    /// The moment of the last event, on the caller's clock. That in `cx` is on the elevator's own.
    latest: Instant,
}

impl<S: Scheduler> Elevator<S> {
    /// Makes an elevator without requests, with the root group alone. Its time begins at `now` on
    /// the caller's clock, and no event may be before that.
    pub fn new(scheduler: S, device: Device, now: Instant) -> Self {
        let cx = Cx::new(device);
        let mut stats = Stats::default();
        stats.add_group(cx.groups.root());
        let mut elevator = Self {
            scheduler,
            cx,
            merging: Merging::new(),
            admission: Admission::new(),
            tuning: Tuning::default(),
            stats,
            bypass: Fifo::default(),
            queued: 0,
            clock: ElevatorClock::starting_at(now),
            latest: now,
        };
        elevator.attach();
        elevator
    }

    /// Submits a bio, for the first time or again after it got [`Later`](Submitted::Later), which
    /// is no [`ElevatorEvent::Queued`] again.
    ///
    /// ```
    /// use paternoster::{
    ///     AnyScheduler, Bio, Device, Elevator, Instant, IoPrio, NoTrace, SchedulerKind, Sector,
    ///     SectorCount, Submitted,
    /// };
    ///
    /// let scheduler = AnyScheduler::new(SchedulerKind::MqDeadline, NoTrace);
    /// let now = Instant::START;
    /// let mut elevator = Elevator::new(scheduler, Device::solid_state(1), now);
    /// let root = elevator.groups().root();
    /// let ioc = elevator.add_io_context(now, IoPrio::default(), root);
    /// let read = |sector| Bio::read(ioc, Sector(sector), SectorCount(8));
    /// elevator.set_nr_requests(Some(1));
    ///
    /// let Submitted::Queued(rq) = elevator.submit(now, read(0)) else { panic!("it is free") };
    /// // Only one request may exist. This bio merges with none, so it has to wait with us.
    /// let later = elevator.submit(now, read(500));
    /// let Submitted::Later(waits) = later else { panic!("there is no room") };
    ///
    /// assert_eq!(elevator.dispatch(now), Some(rq));
    /// let done = elevator.complete(now, rq);
    /// assert!(done.wake_waiters, "there is room again");
    /// assert!(matches!(elevator.submit(now, waits), Submitted::Queued(_)));
    /// ```
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the I/O context of the bio is gone. Where the
    /// bio ends beyond sector 2⁶⁴ − 1, is a flush with sectors, or is anything else without.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn submit(&mut self, now: Instant, bio: Bio) -> Submitted {
        self.advance(now);
        if !bio.flags.contains(BioFlags::RETRIED) {
            let Bio { ioc, op, sector, sectors, user_data, .. } = bio;
            self.emit(Event::Elevator(ElevatorEvent::Queued {
                bio: user_data,
                ioc,
                op,
                sector,
                sectors,
            }));
        }
        self.enter(bio, |stats, group| stats.bio_arrived(&bio, group))
    }

    /// Merges the bio, or makes a request of it, or turns it away. Where it enters, `arrived`
    /// counts it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(&mut self, bio: Bio, arrived: impl FnOnce(&mut Stats, GroupId)) -> Submitted {
        bio.check_range();
        let group = self.cx.contexts[bio.ioc].group;
        let bypasses = bio.bypasses() && !(self.scheduler.rules().takes_fua && bio.has_fua_only());
        if bypasses {
            arrived(&mut self.stats, group);
            let rq = self.make(&bio);
            self.cx.requests.get_mut(rq).bound = false;
            self.bypass.push(&mut self.cx.requests, rq, self.cx.now);
            self.waits(rq, Place::Bypassing);
            return Submitted::Queued(rq);
        }
        let unmerged = match self.merge_bio(&bio) {
            Ok((into, kind)) => {
                arrived(&mut self.stats, group);
                return Submitted::Merged { into, kind };
            }
            Err(unmerged) => unmerged,
        };
        if let Some(limit) = self.refusal(&bio) {
            self.admission.turn_away(limit);
            return Submitted::Later(bio.with_flags(bio.flags | BioFlags::RETRIED));
        }
        arrived(&mut self.stats, group);
        let rq = self.make(&bio);
        self.scheduler.bind(&mut self.cx, rq);
        if let Some(into) = self.merge_at_insert(rq, unmerged) {
            return Submitted::Merged { into, kind: MergeKind::Back };
        }
        self.insert(rq);
        Submitted::Queued(rq)
    }

    /// Takes the next request for the device, if the device has room and there is one to serve now.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the scheduler would hang: it holds requests,
    /// dispatches none though none is in flight, and asks for no timeout.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn dispatch(&mut self, now: Instant) -> Option<RequestId> {
        self.advance(now);
        if self.cx.in_device >= self.cx.device.queue_depth {
            if self.queued > 0 {
                let why = WaitReason::DeviceFull;
                self.emit(Event::Elevator(ElevatorEvent::Waiting { why }));
            }
            return None;
        }
        if let Some(rq) = self.bypass.pop(&mut self.cx.requests) {
            if self.cx.requests[rq].bound {
                self.scheduler.reactivate(&mut self.cx, rq);
            }
            self.start(rq);
            return Some(rq);
        }
        if self.scheduler.has_work()
            && let Some(rq) = self.scheduler.dispatch(&mut self.cx)
        {
            let is_held = self.cx.requests.get(rq).is_some_and(Request::is_queued);
            assert!(is_held, "a scheduler dispatches what it holds");
            self.drop_candidate(rq);
            self.start(rq);
            return Some(rq);
        }
        assert!(
            self.queued == 0 || self.cx.in_device > 0 || self.scheduler.poll_timeout().is_some(),
            "{} holds {} requests, dispatches none, and waits for nothing",
            self.scheduler.name(),
            self.queued
        );
        None
    }

    /// Completes a request: the device is done with it.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the request is not in flight.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn complete(&mut self, now: Instant, rq: RequestId) -> Completed {
        self.advance(now);
        self.end_flight(rq);
        let request = &self.cx.requests[rq];
        let completed = ElevatorEvent::Completed {
            rq: request.name(),
            key: rq,
            group: request.group,
            ioc: request.ioc,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
        };
        self.stats.completed(self.cx.now, request);
        if request.bound {
            self.scheduler.complete(&mut self.cx, rq);
        }
        self.emit(Event::Elevator(completed));
        let user_data = self.free(rq);
        Completed { user_data, wake_waiters: self.admission.take_wake_up() }
    }

    /// Requeues a request that the device could not take. It never merges again, and is dispatched
    /// before others of its kind, except under Kyber those that are ready.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the request is not in flight.
    #[cold]
    #[inline(never)]
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        self.advance(now);
        self.end_flight(rq);
        let request = self.cx.requests.get_mut(rq);
        let (name, group, bound) = (request.name(), request.group, request.bound);
        request.never_merge = true;
        request.place = Place::Made;
        self.stats.requeued(&self.cx.requests[rq]);
        self.emit(Event::Elevator(ElevatorEvent::Requeued { rq: name, key: rq, group }));
        let keeper =
            if bound { self.scheduler.requeue(&mut self.cx, rq) } else { Requeue::Elevator };
        match keeper {
            Requeue::Scheduler => self.waits(rq, Place::Queued),
            Requeue::Elevator => {
                self.bypass.push_front(&mut self.cx.requests, rq, self.cx.now);
                self.waits(rq, Place::Bypassing);
            }
        }
    }

    /// Charges a group for work that was no request.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn charge(&mut self, now: Instant, group: GroupId, work: Work) {
        self.advance(now);
        self.cx.groups.assert_exists(group);
        self.notify_group(group, GroupEvent::Worked(work));
    }

    /// Handles the timeout that `poll_timeout` named. A needless call does nothing.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.scheduler.handle_timeout(&mut self.cx);
    }

    /// Returns when to call `handle_timeout` if there is no other event, on the caller's clock.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.scheduler.poll_timeout().map(|at| self.clock.caller_time(at))
    }

    /// Returns what converts between the caller's clock and the elevator's own, which trace events
    /// and the times of requests are in.
    pub fn clock(&self) -> ElevatorClock {
        self.clock
    }

    /// Switches to another, new scheduler and returns the old one. The requests that the old one
    /// held are inserted into the new one in order of arrival. The new one does not hear of the
    /// completion of requests in flight. Groups, weights and I/O contexts stay; learned state goes.
    ///
    /// If the elevator was [`fitted`](Self::fitted), the new scheduler gets the tunables that fit
    /// the device. After them it gets every value that [`set_tunable`](Self::set_tunable) has ever
    /// set, where it has a tunable of that name with the value in its range. All others have their
    /// defaults; [`tunable`](Self::tunable) returns the value that holds.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the old scheduler keeps requests.
    pub fn switch(&mut self, now: Instant, to: S) -> S {
        self.advance(now);
        let held = self.drain_scheduler();
        for (_, request) in self.cx.requests.iter_mut() {
            request.bound = false;
        }
        let old = std::mem::replace(&mut self.scheduler, to);
        self.emit(Event::Elevator(ElevatorEvent::SchedulerSwitched));
        self.attach();
        self.tune();
        self.stats.switched(held.len());
        for rq in held {
            self.cx.requests.get_mut(rq).bound = true;
            self.scheduler.bind(&mut self.cx, rq);
            self.insert(rq);
        }
        for ioc in self.cx.contexts.exited() {
            self.scheduler.exit_io_context(&mut self.cx, ioc);
        }
        old
    }

    /// Drops all waiting requests in order of arrival, and returns the bios of each.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the scheduler keeps requests when it is drained.
    pub fn cancel_queued(&mut self, now: Instant) -> Vec<Completed> {
        self.advance(now);
        let mut waiting = self.drain_scheduler();
        while let Some(rq) = self.bypass.pop(&mut self.cx.requests) {
            if self.cx.requests[rq].bound {
                // As if it were dispatched again and completed at once.
                self.scheduler.reactivate(&mut self.cx, rq);
                self.scheduler.complete(&mut self.cx, rq);
            }
            self.waits_no_more(rq);
            waiting.push(rq);
        }
        self.cx.requests.sort_by_arrival(&mut waiting);
        let cancelled = waiting.into_iter().map(|rq| {
            let user_data = self.free(rq);
            Completed { user_data, wake_waiters: self.admission.take_wake_up() }
        });
        cancelled.collect()
    }

    /// Returns a request that exists.
    ///
    /// # Panics
    ///
    /// Where it does not. A request is freed when it completes, is cancelled, or is absorbed.
    pub fn request(&self, rq: RequestId) -> &Request {
        self.cx.requests.get(rq).expect("a request that exists")
    }

    /// How many requests wait for the device.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> u32 {
        self.cx.in_device
    }

    /// The counts of bios and requests.
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

    /// Asserts all invariants by walking over everything.
    ///
    /// # Panics
    ///
    /// Where one does not hold, which is a bug of this crate or of the scheduler.
    pub fn check(&mut self) {
        let places = |wanted: &[Place]| {
            let found =
                self.cx.requests.iter().filter(|(_, rq)| wanted.contains(&rq.place)).count();
            u32::try_from(found).expect("fewer than 2³² requests exist")
        };
        assert_eq!(self.queued, places(&[Place::Queued, Place::Bypassing]), "requests that wait");
        assert_eq!(self.cx.in_device, places(&[Place::InFlight]), "requests in flight");
        self.scheduler.check(&self.cx);
    }

    /// An event happens at `now`, on the caller's clock; often at the moment of the last one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn advance(&mut self, now: Instant) {
        if now != self.latest {
            assert!(now > self.latest, "time does not go back");
            self.latest = now;
            self.cx.advance(self.clock.elevator_time(now));
        }
    }

    /// Emits an event that happens now.
    #[inline]
    fn emit(&mut self, event: Event) {
        self.scheduler.trace().event(self.cx.now, event);
    }

    /// Returns the bound that keeps `bio` from becoming a request now, if any.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn refusal(&mut self, bio: &Bio) -> Option<u32> {
        let existing = self.admission.existing()?;
        self.scheduler.refusal(&mut self.cx, bio, existing)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn make(&mut self, bio: &Bio) -> RequestId {
        let IoContext { io_prio, group, .. } = *self.cx.contexts.request_made(bio.ioc);
        let rq = self.cx.requests.add(self.cx.now, bio, io_prio, group);
        self.cx.groups.request_made(group);
        self.admission.made(bio.op);
        rq
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, rq: RequestId) {
        debug_assert!(!self.cx.requests[rq].is_queued(), "a request is inserted once");
        self.scheduler.insert(&mut self.cx, rq, InsertAt::Sorted);
        self.waits(rq, Place::Queued);
        self.make_candidate(rq);
    }

    /// Counts `rq` as waiting in `place` from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn waits(&mut self, rq: RequestId, place: Place) {
        let request = self.cx.requests.get_mut(rq);
        request.place = place;
        self.queued += 1;
        let group = request.group;
        if self.stats.request_waits(self.cx.now, Counted::request(request)) {
            self.emit(Event::Elevator(ElevatorEvent::GroupWaits { group }));
        }
    }

    /// Counts `rq` as no longer waiting, without a dispatch.
    fn waits_no_more(&mut self, rq: RequestId) {
        self.queued -= 1;
        let group = self.cx.requests[rq].group;
        if self.stats.request_gone(self.cx.now, Counted::request(&self.cx.requests[rq])) {
            self.emit(Event::Elevator(ElevatorEvent::GroupWaitsNoMore { group }));
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start(&mut self, rq: RequestId) {
        let request = self.cx.requests.get_mut(rq);
        request.place = Place::InFlight;
        request.dispatched = self.cx.now;
        self.queued -= 1;
        self.cx.in_device += 1;
        let group = request.group;
        let dispatched = ElevatorEvent::Dispatched {
            rq: request.name(),
            key: rq,
            group,
            ioc: request.ioc,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
        };
        let was_last = self.stats.dispatched(self.cx.now, request);
        self.emit(Event::Elevator(dispatched));
        if was_last {
            self.emit(Event::Elevator(ElevatorEvent::GroupWaitsNoMore { group }));
        }
    }

    fn end_flight(&mut self, rq: RequestId) {
        let is_in_flight = self.cx.requests.get(rq).is_some_and(Request::is_in_flight);
        assert!(is_in_flight, "a request is completed or requeued once");
        self.cx.in_device -= 1;
    }

    /// Takes all requests out of the scheduler, in order of arrival.
    fn drain_scheduler(&mut self) -> Vec<RequestId> {
        let mut held = Vec::new();
        self.scheduler.drain(&mut self.cx, &mut held);
        assert!(!self.scheduler.has_work(), "a drained scheduler is empty");
        self.cx.requests.sort_by_arrival(&mut held);
        for &rq in &held {
            self.drop_candidate(rq);
            self.waits_no_more(rq);
            self.cx.requests.get_mut(rq).place = Place::Made;
        }
        held
    }

    /// Frees `rq` and returns its bios.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn free(&mut self, rq: RequestId) -> UserDataList {
        let request = self.cx.requests.remove(rq);
        let (op, ioc, group) = (request.op, request.ioc, request.group);
        let bios = std::mem::take(&mut request.bios);
        self.cx.contexts.request_freed(ioc);
        self.cx.groups.request_freed(group);
        self.admission.freed(op);
        bios
    }
}
