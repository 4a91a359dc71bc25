//! The loop of a connection thread.
//!
//! ```text
//!   ┌─▶ what the sockets have brought; what owners have sent
//!   │   commands, in rotation ──▶ owners
//!   │   replies ──▶ sockets;  who is gone ──▶ owners
//!   └── wait in the ring, until the next moment at which something is due
//! ```

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, mpsc};

use paternoster::{Instant, Nanos};
use paternoster_crossing::{Door, Inbox, Notice};
use paternoster_disk::{FrontToken, IoEngine, MonotonicClock, Ring, Waker};

use super::far_site::{FarSite, WayToOwner};
use super::post::Post;
use super::{Plugged, ToOwner, ToThread, WakeBy, inbox};
use crate::clients::{Clients, Notices};

/// How soon to look again whether a full ring has room.
pub(super) const RETRY: Nanos = Nanos::from_micros(50);

/// Names an operation on the thread's ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// Another thread wants attention.
    Wake,
    /// Of a client of that disk.
    Client(usize, FrontToken),
}

/// A connection thread that has not started yet.
#[derive(Debug)]
pub(crate) struct Thread {
    inbox: Inbox<(usize, ToThread)>,
    waker: Waker,
    engine: IoEngine,
    /// Disks that come, in the order of their numbers.
    new: mpsc::Receiver<Disk>,
}

/// Gives a connection thread further disks, whose clients it serves then. The thread ends when this
/// is gone and all of its disks have ended.
#[derive(Debug)]
pub(crate) struct ThreadHandle {
    door: Door<(usize, ToThread)>,
    waker: Waker,
    /// None when it is dropped.
    new: Option<mpsc::Sender<Disk>>,
    /// How many disks it has had.
    disks: usize,
}

/// A disk, as this thread serves its clients.
#[derive(Debug)]
struct Disk {
    clients: Clients,
    way: WayToOwner,
    stage: Stage,
}

/// How far the end of a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Another server is to go on, by that order: what it needs has not been told.
    Holding(u32),
    /// It has.
    Held,
    /// No command is taken in any more.
    Stopping,
    /// The owner knows that nobody waits for anything.
    Drained,
    /// The owner is gone.
    Ended,
}

impl Thread {
    /// One whose operations on sockets that engine carries out.
    pub(crate) fn new(engine: IoEngine) -> io::Result<(Self, ThreadHandle)> {
        let waker = Waker::new()?;
        let inbox = inbox(&waker);
        let (sender, new) = mpsc::channel();
        let handle =
            ThreadHandle { door: inbox.door(), waker: waker.clone(), new: Some(sender), disks: 0 };
        Ok((Self { inbox, waker, engine, new }, handle))
    }

    /// Serves until its handle is gone and all disks have ended.
    pub(crate) fn run(self) -> io::Result<()> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let Self { mut inbox, waker, engine, new } = self;
        let mut disks = Vec::new();
        let mut ring = Ring::<Token>::new(engine)?;
        let clock = MonotonicClock::start();
        let mut completions = Vec::new();
        ring.poll_readable(Token::Wake, waker.fd());
        loop {
            ring.take_completions(&mut completions);
            for completion in completions.drain(..) {
                match completion.token {
                    Token::Wake => {
                        waker.clear();
                        ring.poll_readable(Token::Wake, waker.fd());
                    }
                    Token::Client(index, token) => {
                        let Disk { clients, way, .. } = &mut disks[index];
                        let site = FarSite { clock, ring: &mut ring, disk: index, way };
                        clients.ring_completed(&site, completion.with_token(token));
                    }
                }
            }
            inbox.take(|_, (disk, message)| {
                if disk >= disks.len() {
                    // A disk is sent to this thread before its owner runs.
                    disks.extend(new.try_iter());
                }
                disks[disk].take(clock, message);
            });
            for (index, disk) in disks.iter_mut().enumerate() {
                disk.round(clock, &mut ring, index);
            }
            let is_idle = disks.iter().all(|disk| disk.stage == Stage::Ended);
            if is_idle && has_last_disk(&new, &mut disks) {
                return Ok(());
            }
            wait(&mut inbox, &mut ring, clock, &disks)?;
        }
    }
}

/// Takes a disk in that has come. Returns whether none comes any more.
fn has_last_disk(new: &mpsc::Receiver<Disk>, disks: &mut Vec<Disk>) -> bool {
    match new.try_recv() {
        Ok(disk) => {
            disks.push(disk);
            false
        }
        Err(mpsc::TryRecvError::Empty) => false,
        Err(mpsc::TryRecvError::Disconnected) => true,
    }
}

impl ThreadHandle {
    /// Notices that wake these threads, for those that serve a disk's clients.
    pub(crate) fn notices(threads: &[Self]) -> Arc<Notices> {
        let notice = |thread: &Self| Notice::new(WakeBy(thread.waker.clone()));
        Notices::new(threads.iter().map(notice).collect())
    }

    /// Has the thread serve clients of another disk, whose owner takes in at that door what it
    /// sends. Returns the way back.
    pub(super) fn add(
        &mut self,
        door: &Door<ToOwner>,
        clients: Clients,
        plugged: Plugged,
    ) -> PostToThread {
        let way = WayToOwner::new(Post::new(door), plugged);
        if let Some(new) = &self.new {
            // A thread that has failed ends the server.
            let _ = new.send(Disk { clients, way, stage: Stage::Serving });
        }
        self.disks += 1;
        PostToThread { disk: self.disks - 1, post: Post::new(&self.door) }
    }
}

impl Drop for ThreadHandle {
    fn drop(&mut self) {
        drop(self.new.take());
        self.waker.wake();
    }
}

/// Waits until something is due or has come.
fn wait(
    inbox: &mut Inbox<(usize, ToThread)>,
    ring: &mut Ring<Token>,
    clock: MonotonicClock,
    disks: &[Disk],
) -> io::Result<()> {
    let now = clock.now();
    let until = disks.iter().filter_map(|disk| disk.poll_timeout(now)).min();
    let may_wait = until.is_none_or(|until| until > now) && inbox.fall_asleep();
    let result = if may_wait {
        ring.wait(until.map(|until| clock.monotonic_at(until)))
    } else {
        ring.submit()
    };
    inbox.awake();
    result
}

impl Disk {
    /// Takes a message of the owner.
    fn take(&mut self, clock: MonotonicClock, message: ToThread) {
        let Self { clients, way, stage } = self;
        match message {
            ToThread::Connect(client, new) => clients.connect(clock.now(), client, *new),
            ToThread::Done(outcomes) => {
                for outcome in outcomes {
                    clients.command_done(outcome);
                }
            }
            ToThread::Extents(tag, answer) => clients.extents_found(tag, &answer),
            ToThread::Rules(rules) => way.rules = rules,
            ToThread::EndClients(of, how) => clients.end_clients(&of, how),
            ToThread::Stop(at_stop) => {
                clients.begin_shutdown(at_stop);
                *stage = Stage::Stopping;
            }
            ToThread::Hold(order) => {
                clients.hold();
                *stage = Stage::Holding(order);
            }
            ToThread::GoOn => {
                clients.go_on();
                *stage = Stage::Serving;
            }
            ToThread::End => {
                clients.shut();
                // What the ring has of them it keeps until it is done with that.
                *clients = Clients::of_all(Nanos::ZERO);
                *stage = Stage::Ended;
            }
        }
    }

    /// Does what there is to be done for the disk's clients.
    fn round(&mut self, clock: MonotonicClock, ring: &mut Ring<Token>, disk: usize) {
        if self.stage == Stage::Ended {
            return;
        }
        let Self { clients, way, .. } = self;
        let mut site = FarSite { clock, ring, disk, way };
        clients.take_in(&mut site);
        clients.round_over(&mut site);
        #[cfg(test)]
        clients.check();
        for gone in clients.take_gone() {
            way.post.send(ToOwner::Gone(gone));
        }
        // These are of what holds now: an owner that takes nothing is told later, once.
        if !way.post.has_kept() {
            for (tenant, held_back) in clients.take_changed() {
                way.post.send(ToOwner::HeldBack(tenant, held_back));
            }
        }
        if self.stage == Stage::Stopping && clients.is_drained() {
            self.stage = Stage::Drained;
            way.post.send(ToOwner::Drained);
        }
        if let Stage::Holding(order) = self.stage
            && clients.are_held()
        {
            self.stage = Stage::Held;
            way.post.send(ToOwner::Held(order, clients.held()));
        }
        way.post.send_kept();
    }

    /// Returns when it wants its next round at the latest: `now` if it has work left.
    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        if self.stage == Stage::Ended {
            return None;
        }
        let look = self.way.post.has_kept().then(|| now + RETRY);
        look.into_iter().chain(self.clients.poll_timeout(now)).min()
    }
}

/// What the owner of a disk sends to one thread.
#[derive(Debug)]
pub(super) struct PostToThread {
    /// The disk's index among those of the thread.
    disk: usize,
    pub(super) post: Post<(usize, ToThread)>,
}

impl PostToThread {
    pub(super) fn send(&mut self, message: ToThread) {
        self.post.send((self.disk, message));
    }
}
