//! How the thread of a disk waits, for its device, its clients, and moments alike. It decides;
//! [`owner`](crate::owner) does it.
//!
//! ```text
//!   in the device      the estimator says    the thread
//!   ───────────────    ──────────────────    ────────────────────────────────────────────────
//!   nothing            –                     looks for a moment whether a client has something,
//!                                            then sleeps until anything comes
//!   reads and writes   poll                  looks until one of them is done
//!                      sleep until t         sleeps until t, or until anything comes; then looks
//!                      block                 as with nothing in the device
//!   more than a few    whatever              as with nothing, where it is to find out by itself
//! ```
//!
//! Whatever comes ends a sleep: a completion, a client's command, a wake-up by another thread, a
//! moment that is due. So clients are served meanwhile, and a sleep that turns out to be too long
//! costs no more than an interrupt does.
//!
//! What sleeping costs here becomes known by 192 sleeps for nothing, the first of them before any
//! client comes. They end like any other.

mod device;
mod look;
mod spin;

use std::ops::RangeInclusive;
use std::thread::available_parallelism;

use paternoster::poll::{PollPolicy, PollStatistics, Wait};
use paternoster::{Instant, Nanos};

use crate::engine::{Transfer, TransferId};
use device::DeviceWait;
pub use look::LookStats;
use look::Looks;
pub(crate) use spin::{Seen, spin};

/// Where more reads and writes than that are in the device, the next one is done soon and the
/// device has work meanwhile: how late a thread wakes up then costs nobody anything.
const FEW_IN_DEVICE: usize = 2;

/// Where more commands were done since the wait before, they share what sleeping costs, and what
/// comes during a sleep is then taken in together, which costs less than one by one. To wake the
/// thread costs a virtual machine much: for one it looks all the same, unless a read or write is in
/// the device, for which the kernel's threads may want the processor.
const FEW_DONE: u32 = 4;

/// So long nothing is polled for after somebody else had the processor: at first, then twice as
/// long each time, up to the second. Each look that finds something halves it. One that lost the
/// processor to an interrupt looks again soon, and one that shares it lets the other run.
const CROWDED: RangeInclusive<Nanos> = Nanos::from_micros(200)..=Nanos::from_millis(10);

/// After so many sleeps for nothing that something has ended, there are more of them only while the
/// thread has nothing to do: what comes as soon as that is better looked for.
const MOST_CUT_SHORT: u32 = 256;

/// What the thread is to do until something comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Sleep until anything comes.
    Sleep,
    /// Look for so long, then sleep until anything comes.
    Look(Nanos),
    /// Look until something is done, or the answer is another one.
    Poll,
    /// Sleep until then, or until anything comes.
    SleepUntil(Instant),
    /// Sleep for so long to see what that costs, or until anything comes.
    Calibrate(Nanos),
}

/// What has come of a thread's ways to wait.
#[derive(Clone, Debug)]
pub struct WaitStats {
    /// How it waits, what it knows of its device, and what sleeping costs.
    pub device: PollStatistics,
    /// How often it looked for completions.
    pub polls: u64,
    /// The time of that.
    pub polled: Nanos,
    /// How often it looked for a client's command before it slept.
    pub looks: LookStats,
    /// How often somebody else had the processor while it looked for either.
    pub crowded: u64,
    /// Sleeps that something ended before their time: an interrupt of the device's, or the wake-up
    /// of a client or another thread.
    pub interrupts: u64,
}

/// The ways to wait of one thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    device: DeviceWait,
    looks: Looks,
    /// Whether somebody else could run while this thread looks.
    has_room: bool,
    /// Commands that were done since it last waited.
    done: u32,
    /// Whether it costs a client much to wake this thread.
    is_costly_to_wake: bool,
    /// Nothing is polled for until then.
    crowded_until: Instant,
    /// How long nothing is the next time.
    crowded_for: Nanos,
    /// When the thread began to wait for whatever comes, of which there was nothing since.
    idle_since: Option<Instant>,
    crowded: u64,
    polls: u64,
    polled: Nanos,
    /// Sleeps for nothing that something has ended.
    cut_short: u32,
    /// All sleeps that something has ended.
    interrupts: u64,
}

impl Waiting {
    /// For a thread that may run on all of the process's processors, and a device that takes time
    /// or does not; so many other threads of the process have work when this one has.
    pub(crate) fn new(policy: PollPolicy, takes_time: bool, beside: usize) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self::with_room(policy, takes_time, processors.saturating_sub(beside) > 1)
    }

    fn with_room(policy: PollPolicy, takes_time: bool, has_room: bool) -> Self {
        Self {
            device: DeviceWait::new(policy, takes_time),
            looks: Looks::default(),
            has_room,
            done: 0,
            is_costly_to_wake: false,
            crowded_until: Instant::START,
            crowded_for: *CROWDED.start(),
            idle_since: None,
            crowded: 0,
            polls: 0,
            polled: Nanos::ZERO,
            cut_short: 0,
            interrupts: 0,
        }
    }

    pub(crate) fn policy(&self) -> PollPolicy {
        self.device.policy()
    }

    pub(crate) fn set_policy(&mut self, policy: PollPolicy) {
        self.device.set_policy(policy);
    }

    /// Whether other threads of the process can run while this one polls.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room
    }

    /// Notes that a transfer was given to the device.
    pub(crate) fn started(&mut self, id: TransferId, transfer: &Transfer, now: Instant) {
        self.device.started(id, transfer, now);
    }

    /// Notes that a transfer is done.
    pub(crate) fn transfer_done(&mut self, id: TransferId, at: Instant) {
        self.something_came(at);
        self.device.done(id, at);
    }

    /// Notes that a client's command, a completion or another thread's wake-up has come.
    pub(crate) fn something_came(&mut self, now: Instant) {
        if let Some(since) = self.idle_since.take() {
            self.looks.waited(now.saturating_since(since));
        }
    }

    /// Notes that a command is done.
    pub(crate) fn command_done(&mut self) {
        self.done = self.done.saturating_add(1);
    }

    /// Notes whether it costs a client much to wake the thread.
    pub(crate) fn set_costly_to_wake(&mut self, is_costly_to_wake: bool) {
        self.is_costly_to_wake = is_costly_to_wake;
    }

    /// How to wait from now on.
    pub(crate) fn how(&mut self, now: Instant) -> How {
        if !self.finds_out() {
            return self.for_device(now).unwrap_or(How::Sleep);
        }
        if !self.has_leisure(now) {
            return How::Sleep;
        }
        if let Some(asked) = self.calibration() {
            return How::Calibrate(asked);
        }
        let is_deep = self.device.len() > FEW_IN_DEVICE;
        let for_device = if is_deep { None } else { self.for_device(now) };
        for_device.unwrap_or_else(|| self.looks.limit().map_or(How::Sleep, How::Look))
    }

    /// What the estimator wants, where that is not to wait for whatever comes.
    fn for_device(&mut self, now: Instant) -> Option<How> {
        match self.device.wait(now) {
            Wait::Poll => Some(How::Poll),
            Wait::SleepUntil(at) => Some(How::SleepUntil(at)),
            Wait::Block => None,
        }
    }

    /// Whether it is to find out by itself how to wait.
    fn finds_out(&self) -> bool {
        matches!(self.policy(), PollPolicy::Auto(_))
    }

    /// How long to sleep now to see what that costs, if that is not known and something may well
    /// not come before.
    fn calibration(&self) -> Option<Nanos> {
        let is_idle = self.device.len() == 0 && self.looks.limit().is_none();
        let may_try = is_idle || self.cut_short < MOST_CUT_SHORT;
        self.device.calibration_wanted().filter(|_| may_try)
    }

    /// Whether to poll would take the processor from nobody, and what a sleep costs is not shared
    /// by many.
    fn has_leisure(&self, now: Instant) -> bool {
        let waits_for_clients = self.device.len() == 0;
        let shares = self.done > FEW_DONE && !(self.is_costly_to_wake && waits_for_clients);
        self.has_room && !shares && now >= self.crowded_until
    }

    /// Notes that the thread waits from now on.
    pub(crate) fn begins(&mut self, how: How, now: Instant) {
        self.done = 0;
        let may_look = self.finds_out() && self.has_room;
        if !may_look || !matches!(how, How::Sleep | How::Look(_)) {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }

    /// Notes what came of a look for a client's command that took so long.
    pub(crate) fn looked(&mut self, seen: Seen, took: Nanos, now: Instant) {
        self.looks.looked(seen, took);
        self.note_crowd(seen, now);
    }

    /// Notes what came of a look for completions.
    pub(crate) fn polled(&mut self, seen: Seen, took: Nanos, now: Instant) {
        self.polls += 1;
        self.polled += took;
        self.device.looked_until(now);
        self.note_crowd(seen, now);
    }

    /// Notes that a sleep until `asked` is over. What was done by then is told by
    /// [`first_look`](Self::first_look).
    pub(crate) fn slept(&mut self, asked: Instant, now: Instant) {
        self.device.slept(asked, now);
    }

    /// Notes whether something is done, at the first look after a sleep; of others nothing.
    pub(crate) fn first_look(&mut self, found: impl FnOnce() -> bool) {
        self.device.first_look(found);
    }

    /// Notes that something has ended a sleep.
    pub(crate) fn interrupted(&mut self) {
        self.interrupts += 1;
    }

    /// Notes that something has ended a sleep for nothing.
    pub(crate) fn calibration_cut_short(&mut self) {
        self.cut_short += 1;
    }

    /// Notes a sleep for nothing of that length: how late it ended, and its CPU time.
    pub(crate) fn calibrated(&mut self, asked: Nanos, overshoot: Nanos, cpu: Nanos) {
        self.device.calibrated(asked, overshoot, cpu);
    }

    pub(crate) fn stats(&self) -> WaitStats {
        let Self { polls, polled, crowded, interrupts, .. } = *self;
        let looks = self.looks.stats();
        let device = self.device.statistics();
        WaitStats { device, polls, polled, looks, crowded, interrupts }
    }

    fn note_crowd(&mut self, seen: Seen, now: Instant) {
        let half = Nanos::new(self.crowded_for.as_nanos() / 2);
        match seen {
            Seen::Crowd => {
                self.crowded += 1;
                self.crowded_until = now + self.crowded_for;
                self.crowded_for = (self.crowded_for + self.crowded_for).min(*CROWDED.end());
            }
            Seen::Something => self.crowded_for = half.max(*CROWDED.start()),
            Seen::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use paternoster::RequestId;
    use paternoster::poll::AutoTunables;
    use slotmap::KeyData;

    use super::*;
    use crate::engine::{Parts, VolumeId};

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    fn waiting() -> Waiting {
        Waiting::with_room(PollPolicy::Auto(AutoTunables::DEFAULT), false, true)
    }

    /// What a thread has sent completes, too, and ends a wait.
    #[test]
    fn wait_lasts_until_something_comes_however_often_it_is_ended() {
        let mut waiting = waiting();
        waiting.begins(How::Sleep, at(100));
        waiting.begins(How::Sleep, at(103));
        waiting.something_came(at(112));
        assert_eq!(waiting.how(at(120)), How::Look(Nanos::from_micros(24)), "twice 12 µs");
    }

    #[test]
    fn thread_that_has_done_much_sleeps_unless_it_is_costly_to_wake() {
        for (done, is_costly_to_wake, looks) in
            [(4, false, true), (5, false, false), (5, true, true)]
        {
            let mut waiting = waiting();
            waiting.begins(How::Sleep, at(100));
            waiting.something_came(at(112));
            (0..done).for_each(|_| waiting.command_done());
            waiting.set_costly_to_wake(is_costly_to_wake);
            let wanted = if looks { How::Look(Nanos::from_micros(24)) } else { How::Sleep };
            assert_eq!(waiting.how(at(120)), wanted, "{done} done, costly: {is_costly_to_wake}");
        }
    }

    #[test]
    fn device_wakes_a_thread_that_is_costly_to_wake() {
        let auto = PollPolicy::Auto(AutoTunables::DEFAULT);
        let mut waiting = Waiting::with_room(auto, true, true);
        waiting.begins(How::Sleep, at(100));
        waiting.something_came(at(112));
        (0..5).for_each(|_| waiting.command_done());
        waiting.set_costly_to_wake(true);
        let read = Transfer::Read { offset: 0, parts: Parts::from_elem(4096, 1) };
        let request = RequestId::from(KeyData::from_ffi(1 << 32 | 1));
        let id = TransferId::Request(VolumeId::default(), request);
        waiting.started(id, &read, at(113));
        assert_eq!(waiting.how(at(120)), How::Sleep);
        waiting.transfer_done(id, at(121));
        assert_ne!(waiting.how(at(122)), How::Sleep);
    }

    #[test]
    fn thread_that_shares_its_processor_looks_less_and_less() {
        let mut waiting = waiting();
        waiting.begins(How::Sleep, at(0));
        waiting.something_came(at(20));
        let mut now = at(100);
        let mut spans = Vec::new();
        for seen in [Seen::Crowd; 8].into_iter().chain([Seen::Something, Seen::Crowd]) {
            waiting.looked(seen, Nanos::ZERO, now);
            let began = now;
            while waiting.how(now) == How::Sleep {
                now = now + Nanos::from_micros(100);
            }
            spans.push(now.saturating_since(began).as_nanos() / 1000);
        }
        assert_eq!(spans, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 0, 5000]);
        assert_eq!(waiting.stats().crowded, 9);
    }
}
