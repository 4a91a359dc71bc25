//! The loop of an owner: who is called when, and that it waits for nothing in vain.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use paternoster::{
    AnyScheduler, Device, Elevator, Instant, IoPrio, IocId, Nanos, NoTrace, SchedulerKind,
};
use paternoster_disk::{
    Backend, Capabilities, Command, CommandOp, Completion, Engine, Extent, Fd, Front, FrontToken,
    MemoryBackend, MonotonicClock, Outcome, Owner, Payload, Ring, Token, Transfer, TransferDone,
    TransferId, Transferred, VolumeId, Waker,
};
use rustix::io::Errno;

use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, new_ring, read, within_a_minute, write};

/// A front that notes what it is told; a function says what to do at the end of a round.
struct Noting<F> {
    notes: Vec<Note>,
    timeout: Option<Instant>,
    round_over: F,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Note {
    Started,
    Ring(FrontToken, Result<u32, Errno>),
    Done(u64, Result<(), Errno>),
    Woken,
}

impl<F: FnMut(&mut TestOwner, &[Note]) -> ControlFlow<()>> Front<AnyScheduler<NoTrace>>
    for Noting<F>
{
    fn started(&mut self, _: &mut TestOwner) {
        self.notes.push(Note::Started);
    }

    fn ring_completed(&mut self, _: &mut TestOwner, completion: Completion<FrontToken>) {
        self.notes.push(Note::Ring(completion.token, completion.result));
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, _: &mut TestOwner, outcome: Outcome) {
        self.notes.push(Note::Done(outcome.tag.key, outcome.result.map(drop)));
    }

    fn woken(&mut self, _: &mut TestOwner) {
        self.notes.push(Note::Woken);
    }

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        (self.round_over)(owner, &self.notes)
    }

    fn poll_timeout(&self, _: Instant) -> Option<Instant> {
        self.timeout
    }
}

/// Runs an owner of a disk in memory until the function breaks the loop; returns what its front
/// noted.
fn run(
    waker: Waker,
    timeout: Option<Instant>,
    round_over: impl FnMut(&mut TestOwner, &[Note]) -> ControlFlow<()>,
) -> Vec<Note> {
    let device = Device::solid_state(4);
    let (elevator, _) = elevator_with(SchedulerKind::Cfq, device, 1);
    let backend = Box::new(MemoryBackend::new(1 << 20));
    let (owner, _) = owner_of(elevator, backend, waker);
    let mut front = Noting { notes: Vec::new(), timeout, round_over };
    owner.run(&mut front).expect("the ring works");
    front.notes
}

/// It would take everything until then for one moment.
#[test]
#[should_panic(expected = "the elevator was made later than the owner's clock says")]
fn elevator_of_a_moment_to_come_is_refused() {
    let in_an_hour = Instant::START + Nanos::from_millis(3_600_000);
    let scheduler = AnyScheduler::new(SchedulerKind::Cfq, NoTrace);
    let elevator = Elevator::new(scheduler, Device::solid_state(4), in_an_hour);
    owner_of(elevator, Box::new(MemoryBackend::new(1 << 20)), waker());
}

pub(crate) fn waker() -> Waker {
    Waker::new().expect("an event")
}

pub(crate) fn stop_when(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// A context of the root group.
pub(crate) fn submit(owner: &mut TestOwner, tag: u64, op: CommandOp) {
    let ioc = owner.administer(|elevator, now| {
        let root = elevator.groups().root();
        elevator.add_io_context(now, IoPrio::default(), root)
    });
    let volume = owner.engine().open_volumes().next().expect("it has one");
    owner.submit(Command { tag: tag.into(), volume, ioc, op });
}

#[test]
fn front_is_started_before_its_first_round() {
    within_a_minute(|| {
        assert_eq!(run(waker(), None, |_, _| stop_when(true)), [Note::Started]);
    });
}

#[test]
fn another_thread_wakes_an_owner_that_waits_and_does_so_again() {
    within_a_minute(|| {
        let waker = waker();
        let (asleep, sleeps) = std::sync::mpsc::channel();
        let other = waker.clone();
        let thread = std::thread::spawn(move || {
            while sleeps.recv().is_ok() {
                other.wake();
                other.wake(); // A second call while one is pending is the same call.
            }
        });
        let notes = run(waker, None, move |_, notes| {
            let _ = asleep.send(());
            stop_when(notes.iter().filter(|note| **note == Note::Woken).count() >= 3)
        });
        assert!(notes[1..].iter().all(|note| *note == Note::Woken), "{notes:?}");
        thread.join().expect("it ends");
    });
}

#[test]
fn front_has_a_round_at_the_moment_that_it_wants() {
    within_a_minute(|| {
        let until = Instant::START + Nanos::from_millis(5);
        let mut rounds = 0;
        run(waker(), Some(until), move |owner, _| {
            rounds += 1;
            assert!(rounds < 1000, "it waits in between");
            stop_when(owner.now() >= until)
        });
    });
}

const RECEIVE: FrontToken = FrontToken { key: 7, operation: 0 };
const SEND: FrontToken = FrontToken { key: 7, operation: 1 };

#[test]
fn operations_of_the_front_come_back_under_its_names() {
    within_a_minute(|| {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let (ours, theirs): (Fd, Fd) = (Fd::new(ours.into()), Fd::new(theirs.into()));
        let mut begun = false;
        let notes = run(waker(), None, move |owner, notes| {
            if !std::mem::replace(&mut begun, true) {
                let buffer = BytesMut::with_capacity(10);
                owner.ring().receive(Token::Front(RECEIVE), &ours, buffer);
                let hello = [bytes::Bytes::from_static(b"hello")].into_iter().collect();
                owner.ring().send(Token::Front(SEND), &theirs, hello);
            }
            stop_when(notes.len() == 3)
        });
        let mut notes = notes[1..].to_vec();
        notes.sort_by_key(|note| matches!(note, Note::Ring(SEND, _)));
        assert_eq!(notes, [Note::Ring(RECEIVE, Ok(5)), Note::Ring(SEND, Ok(5))]);
    });
}

#[test]
fn commands_put_at_the_end_of_a_round_are_answered_in_the_next() {
    within_a_minute(|| {
        let mut begun = false;
        let notes = run(waker(), None, move |owner, notes| {
            if !std::mem::replace(&mut begun, true) {
                submit(owner, 1, write(100, 100, 1));
                submit(owner, 2, read(8192, 100));
                submit(owner, 3, read(0, 0));
                submit(owner, 4, CommandOp::Flush);
            }
            stop_when(notes.len() == 5)
        });
        let mut done = notes[1..].to_vec();
        done.sort_by_key(|note| format!("{note:?}"));
        assert_eq!(done, [1, 2, 3, 4].map(|tag| Note::Done(tag, Ok(()))));
    });
}

#[test]
fn commands_cancelled_at_the_end_of_a_round_are_answered_in_the_next() {
    within_a_minute(|| {
        let mut begun = false;
        let notes = run(waker(), None, move |owner, notes| {
            if !std::mem::replace(&mut begun, true) {
                owner.administer(|elevator, _| elevator.set_depth(0));
                submit_held_back(owner);
                owner.cancel_queued();
            }
            stop_when(notes.len() == 2)
        });
        assert_eq!(notes[1..], [Note::Done(1, Err(Errno::SHUTDOWN))]);
    });
}

/// Puts a read that a device of no depth does not take.
fn submit_held_back(owner: &mut TestOwner) {
    submit(owner, 1, read(0, 512));
    assert_eq!(owner.engine().elevator().queued(), 1);
}

/// A disk that is done with everything as soon as it is started, and says what it is asked, in the
/// order in which it is.
#[derive(Debug)]
struct Said {
    done: VecDeque<TransferDone>,
    log: Log,
}

type Log = Arc<Mutex<Vec<String>>>;

impl Said {
    fn say(&self, what: String) {
        self.log.lock().expect("nobody has panicked").push(what);
    }
}

impl Backend for Said {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1 << 20, 2)
    }

    fn start(&mut self, _: &mut Ring<Token>, _: Instant, id: TransferId, transfer: Transfer) {
        let Transfer::Read { offset, parts } = transfer else { unreachable!("only reads are put") };
        self.say(format!("start {}", offset / 4096));
        let read: Payload = parts.iter().map(|&part| vec![0; part as usize].into()).collect();
        let result = Ok(read.iter().map(|part| part.len() as u64).sum());
        self.done.push_back(TransferDone { id, transferred: Transferred::new(result, read) });
    }

    fn take_done(&mut self, _: Instant) -> Option<TransferDone> {
        let done = self.done.pop_front()?;
        self.say("done".to_owned());
        Some(done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.done.front().map(|_| Instant::START)
    }

    fn extents(&self, _: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }
}

/// Clients each of whose bytes is a read of that block.
struct Readers {
    sockets: Vec<Fd>,
    log: Log,
    received: Vec<u8>,
    answered: usize,
}

impl Front<AnyScheduler<NoTrace>> for Readers {
    fn started(&mut self, owner: &mut TestOwner) {
        for (key, socket) in (0..).zip(&self.sockets) {
            let token = Token::Front(FrontToken { key, operation: 0 });
            owner.ring().receive(token, socket, BytesMut::with_capacity(10));
        }
    }

    fn ring_completed(&mut self, _: &mut TestOwner, completion: Completion<FrontToken>) {
        self.received.extend(completion.output.into_buffers().concat());
    }

    fn take_in(&mut self, owner: &mut TestOwner) {
        for block in self.received.drain(..) {
            self.log.lock().expect("nobody has panicked").push(format!("take in {block}"));
            submit(owner, block.into(), read(u64::from(block) * 4096, 512));
        }
    }

    fn command_done(&mut self, _: &mut TestOwner, outcome: Outcome) {
        self.log.lock().expect("nobody has panicked").push(format!("reply {}", outcome.tag.key));
        self.answered += 1;
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, _: &mut TestOwner) -> ControlFlow<()> {
        stop_when(self.answered == 5)
    }
}

/// Two sockets have commands as the owner begins, three and two. The disk has two at a time, and
/// mq-deadline begins with the oldest and goes on upwards.
#[test]
fn all_that_has_arrived_is_taken_in_before_a_dispatch_and_each_completion_is_followed_by_one() {
    within_a_minute(|| {
        let log = Log::default();
        let mut sockets = Vec::new();
        let mut clients = Vec::new();
        for commands in [&[50, 10, 90][..], &[30, 70]] {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
            theirs.write_all(commands).expect("there is room");
            sockets.push(Fd::new(ours.into()));
            clients.push(theirs);
        }
        let (elevator, _) = elevator_with(SchedulerKind::MqDeadline, Device::solid_state(2), 1);
        let backend = Box::new(Said { done: VecDeque::new(), log: log.clone() });
        let (owner, _) = owner_of(elevator, backend, waker());
        let mut front = Readers { sockets, log: log.clone(), received: Vec::new(), answered: 0 };
        owner.run(&mut front).expect("the ring works");
        let log = log.lock().expect("nobody has panicked");
        // Where the replies are among these is a matter of the clock, which ends a long round.
        let (replies, rest): (Vec<&str>, Vec<&str>) =
            log.iter().map(String::as_str).partition(|line| line.starts_with("reply"));
        let expected = [
            "take in 50",
            "take in 10",
            "take in 90",
            "take in 30",
            "take in 70", //
            "start 50",
            "start 70", //
            "done",
            "start 90",
            "done",
            "start 10",
            "done",
            "start 30",
            "done",
            "done",
        ];
        assert_eq!(rest, expected);
        assert_eq!(replies, ["reply 50", "reply 70", "reply 90", "reply 10", "reply 30"]);
    });
}

/// Each round is as many as the device has at once: so whoever comes meanwhile is chosen among.
#[test]
fn disk_in_memory_does_as_many_in_a_round_as_it_has_at_once() {
    within_a_minute(|| {
        let mut by_round = Vec::new();
        let mut begun = false;
        let notes = run(waker(), None, move |owner, notes| {
            if !std::mem::replace(&mut begun, true) {
                for tag in 0..10 {
                    submit(owner, tag, read(tag * 8192, 512));
                }
            }
            let done = notes.iter().filter(|note| matches!(note, Note::Done(..))).count();
            by_round.push(done);
            if done == 10 {
                assert_eq!(by_round, [0, 4, 8, 10]);
            }
            stop_when(done == 10)
        });
        assert_eq!(notes.len(), 11);
    });
}

/// On a disk that is done with a transfer as soon as it has begun, the owner was never done with
/// what was due: the front was called no more, and the server did not end.
#[test]
fn front_is_called_while_a_disk_in_memory_has_more_and_more_to_do() {
    within_a_minute(|| {
        let mut rounds = 0;
        let notes = run(waker(), None, move |owner, _| {
            rounds += 1;
            if rounds == 1 {
                // A terabyte.
                for tag in 0..1 << 20 {
                    submit(owner, tag, read(0, 1 << 20));
                }
            }
            stop_when(rounds == 5)
        });
        let done = notes.iter().filter(|note| matches!(note, Note::Done(..))).count();
        assert!((1..1000).contains(&done), "{done} commands in four rounds");
    });
}

/// Memory that counts how often it is asked for what is done.
#[derive(Debug)]
struct Asked {
    within: MemoryBackend,
    times: Arc<AtomicUsize>,
}

impl Backend for Asked {
    fn capabilities(&self) -> Capabilities {
        self.within.capabilities()
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        self.within.start(ring, now, id, transfer);
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.within.take_done(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.within.poll_timeout()
    }

    fn extents(&self, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        self.within.extents(offset, len)
    }
}

/// Puts one command after the other.
struct InTurn {
    ioc: IocId,
    commands: VecDeque<(VolumeId, CommandOp)>,
    read: Vec<Vec<u8>>,
}

impl InTurn {
    fn put(&mut self, owner: &mut TestOwner) {
        if let Some((volume, op)) = self.commands.pop_front() {
            owner.submit(Command { tag: 0.into(), volume, ioc: self.ioc, op });
        }
    }
}

impl Front<AnyScheduler<NoTrace>> for InTurn {
    fn started(&mut self, owner: &mut TestOwner) {
        self.put(owner);
    }

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring")
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, owner: &mut TestOwner, outcome: Outcome) {
        let read = outcome.result.expect("all goes well").concat();
        self.read.extend((!read.is_empty()).then_some(read));
        self.put(owner);
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        stop_when(owner.engine().is_idle() && self.commands.is_empty())
    }
}

/// A thousand volumes of which two are used: each has its own bytes, and a round asks those two.
#[test]
fn volumes_have_bytes_of_their_own_and_those_that_nobody_uses_cost_a_round_nothing() {
    within_a_minute(|| {
        let (elevator, connections) = elevator_with(SchedulerKind::Cfq, Device::solid_state(4), 1);
        let mut engine = Engine::new(elevator);
        let mut volumes = Vec::new();
        for _ in 0..1000 {
            let (within, times) = (MemoryBackend::new(1 << 16), Arc::default());
            let backend: Box<dyn Backend> = Box::new(Asked { within, times: Arc::clone(&times) });
            let volume = engine.add_volume(&backend.capabilities()).expect("there is room");
            volumes.push((volume, backend, times));
        }
        let (one, other) = (volumes[3].0, volumes[700].0);
        let mut commands = VecDeque::new();
        for (value, volume) in [(1, one), (2, other)] {
            commands.push_back((volume, write(4096, 512, value)));
            commands.push_back((volume, CommandOp::Flush));
        }
        commands.extend(
            (0..200).map(|turn| (if turn % 2 == 0 { one } else { other }, read(4096, 512))),
        );
        let mut asked = Vec::new();
        let backends = volumes.into_iter().map(|(volume, backend, times)| {
            asked.push((volume, times));
            (volume, backend)
        });
        let clock = MonotonicClock::start();
        let owner = Owner::new(engine, backends, new_ring(), clock, waker()).expect("a ring");
        let mut front = InTurn { ioc: connections[0], commands, read: Vec::new() };
        owner.run(&mut front).expect("the ring works");
        let expected = (0..200).map(|turn| vec![1 + turn % 2; 512]);
        assert!(front.read.into_iter().eq(expected));
        for (volume, times) in asked {
            let times = times.load(Ordering::Relaxed);
            // Once as the owner begins.
            let is_used = [one, other].contains(&volume);
            assert!(if is_used { times > 100 } else { times == 1 }, "asked {times} times");
        }
    });
}

/// Long writes to one volume, as many as the device takes and more, and one read at a time of
/// another.
struct Crowded {
    ioc: IocId,
    busy: VolumeId,
    other: VolumeId,
    writes: u64,
    reads: u64,
}

const A_WRITE: u64 = 0;
const A_READ: u64 = 1;

impl Crowded {
    fn put(&self, owner: &mut TestOwner, tag: u64) {
        let (volume, op) = match tag {
            A_READ => (self.other, read(0, 512)),
            _ => (self.busy, write(0, 1 << 20, 7)),
        };
        owner.submit(Command { tag: tag.into(), volume, ioc: self.ioc, op });
    }
}

impl Front<AnyScheduler<NoTrace>> for Crowded {
    fn started(&mut self, owner: &mut TestOwner) {
        (0..32).for_each(|_| self.put(owner, A_WRITE));
        self.put(owner, A_READ);
    }

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring")
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, owner: &mut TestOwner, outcome: Outcome) {
        let count = if outcome.tag.key == A_READ { &mut self.reads } else { &mut self.writes };
        *count += 1;
        self.put(owner, outcome.tag.key);
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, _: &mut TestOwner) -> ControlFlow<()> {
        stop_when(self.reads == 20 || self.writes == 5000)
    }
}

/// What is done on the one takes up each round; the next round begins with the other.
#[test]
fn volume_that_fills_rounds_does_not_keep_others_from_theirs() {
    within_a_minute(|| {
        let (elevator, connections) =
            elevator_with(SchedulerKind::None, Device::solid_state(64), 1);
        let mut engine = Engine::new(elevator);
        let backends = [4 << 20, 1 << 16].map(|size| {
            let backend: Box<dyn Backend> = Box::new(MemoryBackend::new(size));
            let volume = engine.add_volume(&backend.capabilities()).expect("there is room");
            (volume, backend)
        });
        let [busy, other] = [0, 1].map(|index| backends[index].0);
        let clock = MonotonicClock::start();
        let owner = Owner::new(engine, backends, new_ring(), clock, waker()).expect("a ring");
        let ioc = connections[0];
        let mut front = Crowded { ioc, busy, other, writes: 0, reads: 0 };
        owner.run(&mut front).expect("the ring works");
        assert_eq!(front.reads, 20, "beside {} writes", front.writes);
    });
}
