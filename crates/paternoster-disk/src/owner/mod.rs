//! The loop of the one thread that owns a disk: its engine, the back ends of its volumes, its ring
//! and its front.
//!
//! ```text
//!   ┌─▶ arrivals: all that the front's sockets have brought; then dispatch
//!   │   the scheduler's timer, if it is due; then dispatch
//!   │   the transfers that are done by now: each completes, then dispatch
//!   │   what became of commands ──▶ the front, which sends all of its replies
//!   └── wait, as `waiting` says, until something comes or the next moment that is due
//! ```
//!
//! So the elevator sees the same law as in the laboratory, and several arrivals before a dispatch:
//! on a disk that is done with a transfer as soon as it is started (in memory, or in the page
//! cache), nothing would ever wait for the scheduler otherwise. There the round is the device: what
//! is dispatched in one is done in the next, `depth` requests at a time.
//!
//! Each input has a moment. What a round takes in has one for all, the round's beginning; a
//! transfer that is done has one of its own, and so has what is dispatched by that.

mod backends;
mod volumes;
mod wait;

use std::io;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

use paternoster::poll::PollPolicy;
use paternoster::scheduler::{Scheduler, SideTable};
use paternoster::{Administration, Batch, GroupId, Instant, Nanos};

use self::backends::Backends;
pub use self::volumes::GrowError;
use crate::backend::{Backend, BusyDepth, Notice, TransferDone};
use crate::clock::MonotonicClock;
use crate::engine::{Command, Engine, Fault, Outcome, TransferId, VolumeId};
use crate::ring::{Completion, IoEngine, Ring};
use crate::token::{FrontToken, Token};
use crate::waiting::{WaitStats, Waiting};
use crate::waker::Waker;

/// How long a round goes on with transfers that are done: those that they let begin may be long,
/// and in memory it is this thread that moves their bytes. The clock is read before
/// each of them, so a round may be two transfers longer.
const ROUND: Nanos = Nanos::from_micros(200);

/// A front gives commands to a disk and takes their outcomes, on the owner's thread.
pub trait Front<S: Scheduler> {
    /// Takes the start: it is called once, before the first round.
    fn started(&mut self, owner: &mut Owner<S>);

    /// Takes a completion of one of its operations on the ring. What has arrived by it may wait for
    /// [`take_in`](Self::take_in).
    fn ring_completed(&mut self, owner: &mut Owner<S>, completion: Completion<FrontToken>);

    /// Gives the disk all that has arrived, in every round and before anything is dispatched.
    fn take_in(&mut self, owner: &mut Owner<S>);

    /// Takes the outcome of a command.
    fn command_done(&mut self, owner: &mut Owner<S>, outcome: Outcome);

    /// Takes a wake-up: another thread has called [`Waker::wake`].
    fn woken(&mut self, owner: &mut Owner<S>);

    /// Ends a round: the front sends what it has gathered. It breaks the loop when it is done
    /// with the disk.
    fn round_over(&mut self, owner: &mut Owner<S>) -> ControlFlow<()>;

    /// Returns when the front wants its next round at the latest: `now` if it has work left.
    fn poll_timeout(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Returns whether something has come from another thread, which [`take_in`](Self::take_in)
    /// takes: asked again and again while the thread looks for it.
    fn has_arrived(&self) -> bool {
        false
    }

    /// Returns whether it costs a client much to wake the thread, as a kick does a virtual machine:
    /// then the thread looks for something first, however much was done.
    fn is_costly_to_wake(&self) -> bool {
        false
    }

    /// Takes note that the thread is about to wait. Returns whether it may: not where something has
    /// come from another thread meanwhile.
    fn falls_asleep(&mut self) -> bool {
        true
    }

    /// Takes note that the thread has waited, or did not wait where it was about to.
    fn awake(&mut self) {}
}

/// One disk as one thread owns it: its engine, back ends, ring and clock.
#[derive(Debug)]
pub struct Owner<S: Scheduler> {
    engine: Engine<S>,
    backends: Backends,
    ring: Ring<Token>,
    clock: MonotonicClock,
    /// The moment of all that this round takes in: its beginning. None while it takes nothing in.
    arrived: Option<Instant>,
    waker: Waker,
    /// Whether the device is made of servers.
    has_servers: bool,
    /// How long each group's requests that are done kept them.
    device_time: SideTable<GroupId, Nanos>,
    waiting: Waiting,
    /// How often the thread has slept.
    waits: u64,
    /// Commands that are done.
    done: u64,
}

impl<S: Scheduler> Owner<S> {
    /// Makes an owner on the thread that calls this, which it must not leave, with a ring of that
    /// thread. Each of the engine's volumes has one of the back ends. The thread's timers are made
    /// exact.
    ///
    /// # Panics
    ///
    /// Where a volume has no back end, or several. Where the elevator was made at a moment that the
    /// clock has yet to come to: the elevator would take all inputs until then for simultaneous.
    pub fn new(
        engine: Engine<S>,
        of_volumes: impl IntoIterator<Item = (VolumeId, Box<dyn Backend>)>,
        ring: Ring<Token>,
        clock: MonotonicClock,
        waker: Waker,
    ) -> io::Result<Self> {
        let made = engine.elevator().clock().caller_time(Instant::START);
        assert!(made <= clock.now(), "the elevator was made later than the owner's clock says");
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let mut backends = Backends::default();
        of_volumes.into_iter().for_each(|(volume, backend)| backends.add(volume, backend));
        assert!(engine.open_volumes().all(|id| backends.has(id)), "each volume has a back end");
        Ok(Self {
            engine,
            ring,
            clock,
            arrived: None,
            waker,
            has_servers: backends.have_servers(),
            device_time: SideTable::new(),
            waiting: Waiting::new(PollPolicy::Interrupt, backends.take_time(), 0),
            backends,
            waits: 0,
            done: 0,
        })
    }

    /// Has the thread wait otherwise than by interrupts, as it does unless told; so many other
    /// threads of the program have work when it has.
    #[must_use]
    pub fn with_polling(mut self, policy: PollPolicy, beside: usize) -> Self {
        self.waiting = Waiting::new(policy, self.backends.take_time(), beside);
        self
    }

    /// Gives a command to the disk, which takes it in [now](Self::now). What may begin by that
    /// begins when the front has given all that it has, in this round.
    pub fn submit(&mut self, command: Command) {
        let now = self.now();
        self.waiting.something_came(now);
        self.engine.submit(now, command);
    }

    /// Gives the disk a batch of a plug, with its commands: see [`Engine::submit_batch`].
    pub fn submit_batch(&mut self, batch: Batch, commands: Vec<Command>) {
        let now = self.now();
        self.waiting.something_came(now);
        self.engine.submit_batch(now, batch, commands);
    }

    /// Changes something of the elevator (groups, weights, I/O contexts, tunables, depth) at the
    /// moment that `change` is given.
    pub fn administer<R>(
        &mut self,
        change: impl FnOnce(&mut Administration<'_, S>, Instant) -> R,
    ) -> R {
        let now = self.now();
        self.engine.administer(|elevator| change(elevator, now))
    }

    /// Fails with ESHUTDOWN everything that is not in the device yet; the device waits no longer
    /// for what is not there.
    pub fn cancel_queued(&mut self) {
        self.engine.cancel_queued(self.now());
        self.backends.begin_end(self.now());
    }

    /// A sync of a volume has failed before: see [`Engine::sync_has_failed`].
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn sync_has_failed(&mut self, volume: VolumeId) {
        self.engine.sync_has_failed(volume);
    }

    /// Gives up all that is not in the device, for somebody else to do it: see [`Engine::hold`].
    pub fn hold(&mut self) {
        self.engine.hold(self.now());
    }

    /// Nobody takes over: see [`Engine::go_on`].
    pub fn go_on(&mut self) {
        self.engine.go_on();
    }

    /// Cancels every sync that has not begun: see [`Engine::cancel_syncs`].
    pub fn cancel_syncs(&mut self) {
        self.engine.cancel_syncs();
    }

    /// Takes the faults since the last call: see [`Engine::take_faults`].
    pub fn take_faults(&mut self) -> Vec<Fault> {
        self.engine.take_faults()
    }

    /// Returns by what operations on files and sockets are carried out.
    pub fn io_engine(&self) -> IoEngine {
        self.ring.engine()
    }

    /// Takes what has happened to back ends since the last call: see [`Backend::take_notices`].
    pub fn take_notices(&mut self) -> Vec<(VolumeId, Notice)> {
        self.backends.take_notices()
    }

    /// Returns the engine, to read its state.
    pub fn engine(&self) -> &Engine<S> {
        &self.engine
    }

    /// Returns the sink of the scheduler's events, which are in the time of the elevator's clock.
    pub fn trace(&mut self) -> &mut S::Trace {
        self.engine.trace()
    }

    /// Returns the back end of a volume, to read its state.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn backend(&self, volume: VolumeId) -> &dyn Backend {
        self.backends.get(volume)
    }

    /// Returns how many requests in flight keep the device busy and no more.
    pub fn depth(&self) -> BusyDepth {
        let depth = self.backends.depth();
        let rotates = self.engine.elevator().device().rotational;
        if rotates { depth.of_rotational() } else { depth }
    }

    /// Returns how long the requests of a group that are done kept servers of the device, summed
    /// over servers; none where the device is not made of servers.
    pub fn device_time(&self, group: GroupId) -> Option<Nanos> {
        self.has_servers.then(|| self.device_time.get(group).copied().unwrap_or_default())
    }

    /// Returns how often the thread has slept: for its device, its clients, or a moment.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Returns the commands that are done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Returns the CPU time of the thread, which has to be the one that asks.
    pub fn cpu_time(&self) -> Nanos {
        wait::cpu_time()
    }

    /// Returns how the thread waits for its device.
    pub fn polling(&self) -> PollPolicy {
        self.waiting.policy()
    }

    /// Changes how the thread waits, from its next wait on.
    pub fn set_polling(&mut self, policy: PollPolicy) {
        self.waiting.set_policy(policy);
    }

    /// Returns what has come of the ways in which the thread waits.
    pub fn wait_stats(&self) -> WaitStats {
        self.waiting.stats()
    }

    /// Returns the ring, for the front's operations under [`Token::Front`].
    pub fn ring(&mut self) -> &mut Ring<Token> {
        &mut self.ring
    }

    /// Has the front woken once more, in the next round: where it has not taken all that came.
    pub fn wake_again(&self) {
        self.waker.wake();
    }

    /// Returns the moment now: while a round takes in what has come, that at which it began.
    pub fn now(&self) -> Instant {
        self.arrived.unwrap_or_else(|| self.clock.now())
    }

    /// Runs rounds until the front breaks the loop.
    pub fn run(mut self, front: &mut impl Front<S>) -> io::Result<()> {
        let (mut completions, mut transfers) = (Vec::new(), Vec::new());
        self.watch_waker();
        self.backends.begin_all(&mut self.ring);
        front.started(&mut self);
        loop {
            self.ring.take_completions(&mut completions);
            self.arrived = Some(self.clock.now());
            for completion in completions.drain(..) {
                match completion.token {
                    Token::Transfer(id) => transfers.push(completion.with_token(id)),
                    Token::Backend(volume, token) => {
                        let (now, completion) = (self.now(), completion.with_token(token));
                        self.backends.ring_event(&mut self.ring, now, volume, completion);
                    }
                    Token::Front(token) => {
                        front.ring_completed(&mut self, completion.with_token(token));
                    }
                    Token::Wake => {
                        self.waker.clear();
                        self.watch_waker();
                        self.waiting.something_came(self.now());
                        front.woken(&mut self);
                    }
                }
            }
            self.look_after_sleep(&transfers);
            front.take_in(&mut self);
            self.arrived = None;
            self.settle(None);
            self.handle_timer();
            self.complete(&mut transfers);
            self.follow_pauses();
            while let Some(outcome) = self.engine.poll_outcome() {
                self.done += 1;
                self.waiting.command_done();
                front.command_done(&mut self, outcome);
            }
            if front.round_over(&mut self).is_break() {
                return Ok(());
            }
            self.settle(None);
            let wanted = front.poll_timeout(self.now());
            self.wait(wanted, front)?;
        }
    }

    fn watch_waker(&mut self) {
        self.ring.poll_readable(Token::Wake, self.waker.fd());
    }

    /// Tells whether a transfer was done at the end of a sleep that was for one.
    fn look_after_sleep(&mut self, transfers: &[Completion<TransferId>]) {
        let Self { waiting, backends, clock, .. } = self;
        waiting.first_look(|| {
            !transfers.is_empty() || backends.poll_timeout().is_some_and(|at| at <= clock.now())
        });
    }

    fn handle_timer(&mut self) {
        let Some(at) = self.engine.poll_timeout() else { return };
        let now = self.clock.now();
        if at <= now {
            self.engine.handle_timeout(now);
            self.settle(Some(now));
        }
    }

    /// Completes the transfers that are done by now: those of the ring, and those that back ends
    /// have carried out themselves. What begins meanwhile is for a later round, even if it is done.
    fn complete(&mut self, transfers: &mut Vec<Completion<TransferId>>) {
        for completion in transfers.drain(..) {
            if let Some(done) = self.backends.ring_completed(&mut self.ring, completion) {
                self.transfer_done(self.clock.now(), done);
            }
        }
        let began = self.clock.now();
        for _ in 0..self.backends.active() {
            while let Some(done) = self.backends.take_done(began) {
                let now = self.clock.now();
                self.transfer_done(now, done);
                if now >= began + ROUND {
                    self.backends.next();
                    return;
                }
            }
            self.backends.next();
        }
    }

    /// Has volumes pause whose server is away, and go on when it is back.
    fn follow_pauses(&mut self) {
        for (volume, is_paused) in self.backends.take_pauses() {
            if self.backends.has(volume) {
                self.engine.set_paused(volume, is_paused);
                self.settle(None);
            }
        }
    }

    fn transfer_done(&mut self, now: Instant, done: TransferDone) {
        self.count_device_time(&done);
        self.waiting.transfer_done(done.id, now);
        self.engine.transfer_done(now, done.id, done.transferred);
        self.settle(Some(now));
    }

    fn count_device_time(&mut self, done: &TransferDone) {
        if !self.has_servers {
            return;
        }
        let (TransferId::Request(volume, rq), Ok(bytes)) = (done.id, done.transferred.result)
        else {
            return;
        };
        let Some(servers) = self.backends.get(volume).servers_time() else { return };
        let group = self.engine.elevator().request(rq).group;
        let before = self.device_time.get(group).copied().unwrap_or_default();
        self.device_time.insert(group, before + servers.time(bytes));
    }

    /// Has the engine take steps until nothing waits to be submitted. The first is at the moment of
    /// the input that it is for, where there was one alone.
    fn settle(&mut self, mut of_input: Option<Instant>) {
        let Self { engine, backends, ring, clock, waiting, .. } = self;
        loop {
            let start = |now, id, transfer| {
                waiting.started(id, &transfer, now);
                backends.start(ring, now, id, transfer);
            };
            let now = || of_input.take().unwrap_or_else(|| clock.now());
            if engine.step(now, start).is_break() {
                break;
            }
        }
        backends.all_started(ring);
    }
}
