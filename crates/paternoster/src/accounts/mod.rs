//! Where each group's time goes: an account of every nanosecond, by its cause.
//!
//! A trace event tells a decision at its moment; this adds up for how long it held. The causes of a
//! group's time are these, and at each moment one of them holds:
//!
//! ```text
//!   a request waits      places taken ──┬── the device serves its own            Busy
//!   (`backlogged`)                       └── the device serves another group       Turn
//!                        the device idles for a queue                             IdleWindow
//!                        a cap holds it: its group's, or that of one above        Cap
//!                        places are held free for another's latency target        Target
//!                        none of these: nobody has asked the scheduler yet        Driver
//!   none waits           the front holds bios back, for a cause of its own        Front
//!                        some requests are in the device                          TooFew
//!                        the front has a cause of its own while there is nothing  Front
//!                        nothing                                                  Nothing
//! ```
//!
//! So the first six add up to the group's backlogged time, and all of them to all time. A *front*
//! is what hands bios over to the driver, as a server does. What its causes mean it alone knows.
//!
//! *Places taken* is when the device is as deep as it may be, or the scheduler waits for
//! completions. Whom the device serves then is known as requests complete, by [`RequestTime`], and
//! `behind.rs` says what of that was while a group waited: its own part of it is *Busy*. So of a
//! group with a quarter of the device, a quarter of the waiting is its own. In what order requests
//! were dispatched, and how many at once, makes no difference. Until something has completed, the
//! device is what is waited for.
//!
//! Until when a cap holds what waits of a group, its scheduler says as it begins; the time is the
//! cap's until then, however late anybody asks. It is so if the cap holds the group's reads alone
//! and its writes wait for their turn.
//!
//! The device's state is one for all groups: four sums of time (places taken, idling, held free,
//! none), of which a group takes what was added while it waited. An event costs the same
//! however many groups there are:
//!
//! ```text
//!   places taken  ───────▶ 0 ──── 40 ──── 70 ──────── 130 ──▶      µs, summed
//!   a waits             from 20 …                      … 130     110: Turn and Busy
//! ```

mod behind;
mod request_time;

use std::collections::BTreeSet;

use self::behind::{Behind, Column, Work};
pub use self::request_time::RequestTime;
use self::request_time::{part_of, part_of_time};
use crate::arena::{GroupId, RequestId, SideTable};
use crate::time::{Instant, Nanos};
use crate::trace::{
    BfqEvent, CfqEvent, ElevatorEvent, Event, HoldReason, ShareOf, Trace, WaitReason, WfqEvent,
};

/// Why a group's time is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A request of it waits, and the device serves other groups.
    Turn,
    /// A request of it waits for a place in the device, which serves others of its own.
    Busy,
    /// A request of it waits, and the device idles for the next request of a queue.
    IdleWindow,
    /// A request of it waits, and a cap holds it.
    Cap,
    /// A request of it waits, and places are held free for a group that misses its latency target.
    Target,
    /// A request of it waits, and the driver has yet to ask the scheduler.
    Driver,
    /// None waits in the scheduler, and the front says why.
    Front(FrontCause),
    /// All that it has is in the device: more requests would wait.
    TooFew,
    /// It has no request.
    Nothing,
}

impl Cause {
    /// The number of causes.
    pub const COUNT: usize = 10;

    /// All of them. The first six are those of a request that waits.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Turn,
        Self::Busy,
        Self::IdleWindow,
        Self::Cap,
        Self::Target,
        Self::Driver,
        Self::Front(FrontCause::First),
        Self::Front(FrontCause::Second),
        Self::TooFew,
        Self::Nothing,
    ];

    /// Its place in [`Self::ALL`].
    const fn index(self) -> usize {
        match self {
            Self::Turn => 0,
            Self::Busy => 1,
            Self::IdleWindow => 2,
            Self::Cap => 3,
            Self::Target => 4,
            Self::Driver => 5,
            Self::Front(FrontCause::First) => 6,
            Self::Front(FrontCause::Second) => 7,
            Self::TooFew => 8,
            Self::Nothing => 9,
        }
    }
}

/// A cause outside the core. The front decides what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontCause {
    /// The first of its two causes.
    First,
    /// The second.
    Second,
}

/// What a front knows of a group's bios that have not come yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// None is held back.
    #[default]
    Free,
    /// Some are held back for that cause.
    Holds(FrontCause),
    /// None is held back now; the cause counts while the group has no request.
    IfIdle(FrontCause),
}

/// The account of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTimes {
    by_cause: [Nanos; Cause::COUNT],
    /// The time with all places taken in which the device served it: what others waited behind.
    pub served: Nanos,
    /// The time for which the device idled for it though something waited.
    pub idled: Nanos,
}

impl GroupTimes {
    /// The time that a cause has.
    pub fn of(&self, cause: Cause) -> Nanos {
        self.by_cause[cause.index()]
    }

    fn add(&mut self, cause: Cause, time: Nanos) {
        self.by_cause[cause.index()] += time;
    }
}

/// What the device does while something waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nobody has asked since the last event, or caps hold all that waited then.
    #[default]
    Unasked,
    /// All places are taken.
    Taken,
    /// It idles for a queue of this group.
    IdlingFor(Option<GroupId>),
    /// Places are held free for a group that misses its latency target.
    HeldFree,
}

/// The sums of the time that the device was in each state.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    unasked: Nanos,
    taken: Nanos,
    idle: Nanos,
    held_free: Nanos,
    /// What was served while places were taken, by [`RequestTime`].
    served: u64,
}

/// What the times of a group that waited for the device have been divided by already.
#[derive(Clone, Copy, Debug, Default)]
struct Divided {
    /// What was served of its own while it waited, and of all.
    own: u64,
    all: u64,
    /// What was served of it,
    served: u64,
    /// and of all, for how long.
    sums: Sums,
}

/// One group.
#[derive(Clone, Copy, Debug)]
struct Account {
    times: GroupTimes,
    /// Whether a request of it waits.
    waits: bool,
    /// Until when a cap holds some of them; none where none does.
    held_until: Option<Instant>,
    /// Its requests in the device.
    in_device: u32,
    outside: Outside,
    /// Up to when `times` has everything.
    closed: Instant,
    /// The device's sums at that moment.
    sums: Sums,
    /// How long it waited with all places taken, not divided into `Turn` and `Busy` yet.
    undivided: Nanos,
    /// What was served of it while places were taken, by [`RequestTime`].
    served: u64,
    divided: Divided,
    /// Its place in `Behind`.
    column: Column,
}

/// A sink that keeps the account of each group.
///
/// ```
/// use paternoster::{
///     AnyScheduler, Bio, Cause, Device, Elevator, Instant, IoPrio, Nanos, SchedulerKind, Sector,
///     SectorCount, TimeAccounts,
/// };
///
/// let scheduler = AnyScheduler::new(SchedulerKind::None, TimeAccounts::default());
/// let now = Instant::START;
/// let mut elevator = Elevator::new(scheduler, Device::solid_state(1), now);
/// let root = elevator.groups().root();
/// let ioc = elevator.add_io_context(now, IoPrio::default(), root);
/// for sector in [0, 800] {
///     let _ = elevator.submit(now, Bio::read(ioc, Sector(sector), SectorCount(8)));
/// }
/// let first = elevator.dispatch(now).expect("there is a place");
/// assert_eq!(elevator.dispatch(now), None, "there is one");
///
/// let later = now + Nanos::from_micros(80);
/// let _ = elevator.complete(later, first);
/// elevator.dispatch(later);
/// elevator.trace().close(later, [root]);
/// let times = elevator.trace().times(root);
/// assert_eq!(times.of(Cause::Busy), Nanos::from_micros(80), "the second waited for the first");
/// ```
#[derive(Clone, Debug)]
pub struct TimeAccounts {
    state: State,
    /// The sums have everything up to this moment.
    now: Instant,
    sums: Sums,
    request_time: RequestTime,
    behind: Behind,
    /// The group of the active queue, or of the queue in service.
    active: Option<GroupId>,
    /// The groups that caps hold, by when they do so no more.
    held: BTreeSet<(Instant, GroupId)>,
    groups: SideTable<GroupId, Account>,
}

impl Default for TimeAccounts {
    fn default() -> Self {
        Self::new(RequestTime::default())
    }
}

impl TimeAccounts {
    /// Makes the accounts of a device whose requests take that long.
    pub fn new(request_time: RequestTime) -> Self {
        Self {
            state: State::default(),
            now: Instant::START,
            sums: Sums::default(),
            request_time,
            behind: Behind::default(),
            active: None,
            held: BTreeSet::new(),
            groups: SideTable::new(),
        }
    }

    /// The account of a group up to the last [`close`](Self::close) of it, or a moment after it.
    pub fn times(&self, group: GroupId) -> GroupTimes {
        if let Some(account) = self.groups.get(group) {
            return account.times;
        }
        // It has had no request yet.
        let mut times = GroupTimes::default();
        times.add(Cause::Nothing, self.now.since_start());
        times
    }

    /// What the device served of each other group while this one waited for its turn, up to the
    /// last [`close`](Self::close) of both: by [`RequestTime`], in no order. Of the groups beyond
    /// the first 64 that had a request this is an estimate, and for them there is none.
    pub fn behind(&self, group: GroupId) -> Vec<(GroupId, u64)> {
        let mut all = self.behind_first(group);
        let shared = self.groups.get(group).map_or(0, |own| self.behind.of(own.column).1);
        if shared == 0 {
            return all;
        }
        let sharing = || self.groups.iter().filter(|(_, other)| other.column.is_shared());
        let served: u64 = sharing().map(|(_, other)| other.served).sum();
        // Those that it was served of may be gone.
        if served > 0 {
            let part = |own| part_of(shared, own, served);
            all.extend(sharing().map(|(group, other)| (group, part(other.served))));
        }
        all
    }

    /// The same of the first 64 groups alone: this takes as long, however many there are.
    pub fn behind_first(&self, group: GroupId) -> Vec<(GroupId, u64)> {
        let Some(account) = self.groups.get(group) else { return Vec::new() };
        let (others, _) = self.behind.of(account.column);
        others.filter(|&(_, served)| served > 0).collect()
    }

    /// Brings the accounts of these groups up to `now`, on the elevator's own clock. What others
    /// were served is up to when theirs were closed last.
    pub fn close(&mut self, now: Instant, these: impl IntoIterator<Item = GroupId>) {
        self.advance(now);
        let Self { groups, sums, behind, .. } = self;
        for group in these {
            // One without an account has had no request.
            if groups.contains_key(group) {
                let account = &mut groups[group];
                account.close(now, *sums);
                account.divide(*sums, behind.own_and_all(account.column));
            }
        }
    }

    /// Notes what holds a group's bios back from now on, on the elevator's own clock.
    pub fn note_outside(&mut self, now: Instant, group: GroupId, outside: Outside) {
        self.advance(now);
        // While a request waits, that is what its time is.
        let waits = self.account(group).waits;
        let account = if waits { self.account(group) } else { self.close_one(group) };
        account.outside = outside;
    }

    /// Adds the time since the last event to the sums of the states that held.
    fn advance(&mut self, now: Instant) {
        if !self.held.is_empty() {
            self.free_until(now);
        }
        self.pass(now);
    }

    /// Frees the groups that caps hold no more by `now`, each at its moment.
    #[inline(never)]
    fn free_until(&mut self, now: Instant) {
        while let Some(&(until, group)) = self.held.first()
            && until <= now
        {
            self.pass(until);
            self.held.pop_first();
            self.free(group);
        }
    }

    /// Adds the time up to `now` to the sum of the state that holds.
    fn pass(&mut self, now: Instant) {
        let passed = now.saturating_since(self.now);
        self.now = self.now.max(now);
        match self.state {
            State::Unasked => self.sums.unasked += passed,
            State::Taken => self.sums.taken += passed,
            State::HeldFree => self.sums.held_free += passed,
            State::IdlingFor(group) => {
                self.sums.idle += passed;
                if let Some(group) = group {
                    self.account(group).times.idled += passed;
                }
            }
        }
    }

    fn enter(&mut self, now: Instant, state: State) {
        self.advance(now);
        self.state = state;
    }

    /// The group's account; a new one has seen nothing.
    #[inline]
    fn account(&mut self, group: GroupId) -> &mut Account {
        if !self.groups.contains_key(group) {
            self.add_account(group);
        }
        &mut self.groups[group]
    }

    #[inline(never)]
    fn add_account(&mut self, group: GroupId) {
        let column = self.behind.enter(group, |other| self.groups.contains_key(other));
        // Without a row all that is served counts, from now on.
        let all = if column.is_shared() { self.sums.served } else { 0 };
        let account = Account {
            times: GroupTimes::default(),
            waits: false,
            held_until: None,
            in_device: 0,
            outside: Outside::Free,
            // Until its first request it had none.
            closed: Instant::START,
            sums: self.sums,
            undivided: Nanos::ZERO,
            served: 0,
            divided: Divided { all, sums: self.sums, ..Divided::default() },
            column,
        };
        self.groups.insert(group, account);
    }

    /// Closes the group's account, for something of it to change.
    fn close_one(&mut self, group: GroupId) -> &mut Account {
        let (now, sums) = (self.now, self.sums);
        let account = self.account(group);
        account.close(now, sums);
        account
    }

    fn dispatched(&mut self, now: Instant, rq: RequestId, group: GroupId) {
        self.enter(now, State::Unasked);
        self.set_in_device(group, |in_device| in_device + 1);
        let is_known = self.request_time.known;
        self.behind.dispatched(rq, self.now, self.sums.taken, is_known);
    }

    /// A request has left the device, which spent that time on it; 0 if it did not complete it.
    fn left_device(&mut self, now: Instant, rq: RequestId, group: GroupId, time: u64) {
        self.enter(now, State::Unasked);
        // One that was there before this sink was has not been counted.
        self.set_in_device(group, |in_device| in_device.saturating_sub(1));
        let of = self.groups[group].column;
        let lasted = self.request_time.known.then_some(Nanos::new(time));
        let work = Work { of, time, lasted };
        let served = self.behind.left(rq, self.now, self.sums.taken, work);
        self.groups[group].served += served;
        self.sums.served += served;
    }

    /// Follows whether the group waits for its turn, and not until a cap lets it go.
    fn follow_turn(&mut self, group: GroupId) {
        let &Account { waits, held_until, column, .. } = &self.groups[group];
        self.behind.set_waits(column, self.sums.taken, waits && held_until.is_none());
    }

    fn set_in_device(&mut self, group: GroupId, change: impl FnOnce(u32) -> u32) {
        let account = self.account(group);
        let after = change(account.in_device);
        let changes = (after == 0) != (account.in_device == 0) && !account.waits;
        let account = if changes { self.close_one(group) } else { account };
        account.in_device = after;
    }

    /// Caps hold some of what waits below a node until then; none where they do not.
    fn hold(&mut self, now: Instant, node: ShareOf, until: Option<Instant>) {
        // Of a group as a whole the events say it too; its account is that of its own requests.
        let ShareOf::OwnRequests(group) = node else { return };
        self.advance(now);
        let before = std::mem::replace(&mut self.close_one(group).held_until, until);
        if let Some(before) = before {
            self.held.remove(&(before, group));
        }
        if let Some(until) = until {
            self.held.insert((until, group));
        }
        self.follow_turn(group);
    }

    /// A cap holds a group no more. The group may be gone by now.
    fn free(&mut self, group: GroupId) {
        if self.groups.contains_key(group) {
            self.close_one(group).held_until = None;
            self.follow_turn(group);
        }
    }

    /// What the scheduler before has said holds no more.
    fn switched(&mut self, now: Instant) {
        self.enter(now, State::Unasked);
        self.active = None;
        while let Some((_, group)) = self.held.pop_first() {
            self.free(group);
        }
    }

    fn set_waits(&mut self, now: Instant, group: GroupId, waits: bool) {
        self.advance(now);
        if self.account(group).waits != waits {
            self.close_one(group).waits = waits;
            self.follow_turn(group);
        }
    }
}

impl Account {
    /// Counts what has passed since it was closed last.
    fn close(&mut self, now: Instant, sums: Sums) {
        if self.waits && self.held_until.is_some() {
            self.times.add(Cause::Cap, now.saturating_since(self.closed));
        } else if self.waits {
            self.undivided += sums.taken.saturating_sub(self.sums.taken);
            self.times.add(Cause::IdleWindow, sums.idle.saturating_sub(self.sums.idle));
            let held_free = sums.held_free.saturating_sub(self.sums.held_free);
            self.times.add(Cause::Target, held_free);
            self.times.add(Cause::Driver, sums.unasked.saturating_sub(self.sums.unasked));
        } else {
            self.times.add(self.cause_without_waiting(), now.saturating_since(self.closed));
        }
        (self.closed, self.sums) = (now, sums);
    }

    /// Divides the time for which it waited for the device, by what was served meanwhile. Without a
    /// row of its own that is not known: then by what was served of it and of all.
    fn divide(&mut self, sums: Sums, own_and_all: Option<(u64, u64)>) {
        let before = self.divided;
        let served = self.served - before.served;
        let all_served = sums.served - before.sums.served;
        if all_served > 0 {
            let taken = sums.taken.saturating_sub(before.sums.taken);
            self.times.served += part_of_time(taken, served, all_served);
            (self.divided.served, self.divided.sums) = (self.served, sums);
        }
        let (own, all) = own_and_all.unwrap_or((self.served, sums.served));
        let undivided = std::mem::take(&mut self.undivided);
        // While nothing more is known, as what was known before.
        let (own_part, all_part) =
            if all > before.all { (own - before.own, all - before.all) } else { (own, all) };
        let busy = part_of_time(undivided, own_part, all_part);
        self.times.add(Cause::Busy, busy);
        self.times.add(Cause::Turn, undivided.saturating_sub(busy));
        (self.divided.own, self.divided.all) = (own, all);
    }

    fn cause_without_waiting(&self) -> Cause {
        match self.outside {
            Outside::Holds(cause) => Cause::Front(cause),
            _ if self.in_device > 0 => Cause::TooFew,
            Outside::IfIdle(cause) => Cause::Front(cause),
            Outside::Free => Cause::Nothing,
        }
    }
}

impl Trace for TimeAccounts {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Elevator(event) => self.follow_elevator(now, event),
            Event::Wfq(WfqEvent::Held { node, why: HoldReason::Cap, until }) => {
                self.hold(now, node, until);
            }
            Event::Wfq(WfqEvent::Released { node }) => self.hold(now, node, None),
            Event::Cfq(CfqEvent::Active { group, .. })
            | Event::Bfq(BfqEvent::InService { group, .. }) => self.active = Some(group),
            _ => {}
        }
    }
}

impl TimeAccounts {
    #[inline]
    fn follow_elevator(&mut self, now: Instant, event: ElevatorEvent) {
        match event {
            ElevatorEvent::Waiting { why } => {
                let state = self.state_of(why);
                self.enter(now, state);
            }
            ElevatorEvent::Dispatched { key, group, .. } => self.dispatched(now, key, group),
            ElevatorEvent::Completed { key, group, sectors, .. } => {
                self.left_device(now, key, group, self.request_time.of(sectors));
            }
            ElevatorEvent::Requeued { key, group, .. } => self.left_device(now, key, group, 0),
            ElevatorEvent::SchedulerSwitched => self.switched(now),
            ElevatorEvent::GroupWaits { group } => self.set_waits(now, group, true),
            ElevatorEvent::GroupWaitsNoMore { group } => self.set_waits(now, group, false),
            _ => {}
        }
    }

    /// What a scheduler that dispatches nothing leaves the device in.
    fn state_of(&self, why: WaitReason) -> State {
        match why {
            WaitReason::IdleTimer | WaitReason::InFlight | WaitReason::GroupInFlight => {
                State::IdlingFor(self.active)
            }
            WaitReason::GateAsyncDrains
            | WaitReason::GateSyncDrains
            | WaitReason::GateDepth
            | WaitReason::OneAtATime
            | WaitReason::NoToken
            | WaitReason::Kept
            | WaitReason::DeviceFull => State::Taken,
            // Whom a cap holds is known by group; for any other nobody has asked yet.
            WaitReason::Capped => State::Unasked,
            WaitReason::Target => State::HeldFree,
        }
    }
}
