//! A server that is left for its restart: everything is durable before, requests wait meanwhile,
//! and nothing is in doubt afterwards.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paternoster::{AnyScheduler, Device, IocId, Nanos, NoTrace, SchedulerKind};
use paternoster_disk::{
    AfterReconnect, Command, CommandOp, Completion, FarStats, Front, FrontToken, NbdBackend,
    NbdDialer, NbdOptions, Outcome, QuiesceError, Quiesced, VolumeId, Waker,
};
use paternoster_nbd::{NbdError, TransmissionFlags};
use rustix::io::Errno;

use crate::support::far_server::{Cache, FarServer, State};
use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, read, within_a_minute, write};

const DISK: usize = 64 << 10;

/// What the owner's thread is told.
enum Told {
    Ask(CommandOp),
    Quiesce,
    Resume,
    State(Sender<FarStats>),
    Grow(u64, Sender<Result<(), String>>),
    End,
}

/// An owner that serves the export of another server, in a thread.
struct Disk {
    sender: Sender<Told>,
    waker: Waker,
    /// Each command's number and what became of it.
    answers: Receiver<(u64, Result<Vec<u8>, Errno>)>,
    thread: JoinHandle<()>,
    asked: u64,
}

struct Served {
    volume: VolumeId,
    ioc: IocId,
    inbox: Receiver<Told>,
    answers: Sender<(u64, Result<Vec<u8>, Errno>)>,
    asked: u64,
    has_ended: bool,
    refused: Option<QuiesceError>,
}

impl Front<AnyScheduler<NoTrace>> for Served {
    fn started(&mut self, _: &mut TestOwner) {}

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring")
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, _: &mut TestOwner, outcome: Outcome) {
        let result = outcome.result.map(|payload| payload.concat());
        self.answers.send((outcome.tag.key, result)).expect("somebody waits for it");
    }

    fn woken(&mut self, owner: &mut TestOwner) {
        while let Ok(told) = self.inbox.try_recv() {
            match told {
                Told::Ask(op) => {
                    let (volume, ioc, tag) = (self.volume, self.ioc, self.asked.into());
                    self.asked += 1;
                    owner.submit(Command { tag, volume, ioc, op });
                }
                Told::Quiesce => self.refused = owner.quiesce_volume(self.volume).err(),
                Told::Resume => owner.resume_volume(self.volume),
                Told::State(sender) => {
                    let mut far = owner.backend(self.volume).far(owner.now()).expect("it is one");
                    if let Some(refused) = self.refused {
                        far.quiesced = Quiesced::Failed(refused);
                    }
                    sender.send(far).expect("somebody waits for it");
                }
                Told::Grow(size, sender) => {
                    let grown = owner.grow_volume(self.volume, size);
                    let grown = grown.map_err(|error| error.to_string());
                    sender.send(grown).expect("somebody waits for it");
                }
                Told::End => {
                    owner.cancel_queued();
                    self.has_ended = true;
                }
            }
        }
    }

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        if self.has_ended && owner.engine().is_idle() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Disk {
    fn serve(options: NbdOptions) -> Self {
        let (sender, inbox) = mpsc::channel();
        let (answered, answers) = mpsc::channel();
        let waker = Waker::new().expect("an event");
        let of_owner = waker.clone();
        let dialer = NbdDialer::new().expect("a thread");
        let backend = Box::new(NbdBackend::open(options, &dialer).expect("it is there"));
        let thread = thread::spawn(move || {
            let (elevator, iocs) = elevator_with(SchedulerKind::None, Device::solid_state(16), 1);
            let (owner, volume) = owner_of(elevator, backend, of_owner);
            let (ioc, asked, has_ended, refused) = (iocs[0], 0, false, None);
            let mut served =
                Served { volume, ioc, inbox, answers: answered, asked, has_ended, refused };
            owner.run(&mut served).expect("the ring works");
        });
        Self { sender, waker, answers, thread, asked: 0 }
    }

    fn tell(&self, told: Told) {
        self.sender.send(told).expect("the owner runs");
        self.waker.wake();
    }

    /// Has a command begin, which is answered later.
    fn begin(&mut self, op: CommandOp) -> u64 {
        self.tell(Told::Ask(op));
        self.asked += 1;
        self.asked - 1
    }

    fn answer(&self) -> (u64, Result<Vec<u8>, Errno>) {
        self.answers.recv().expect("the owner runs")
    }

    fn ask(&mut self, op: CommandOp) -> Result<Vec<u8>, Errno> {
        let number = self.begin(op);
        let (answered, result) = self.answer();
        assert_eq!(answered, number);
        result
    }

    fn state(&self) -> FarStats {
        let (sender, state) = mpsc::channel();
        self.tell(Told::State(sender));
        state.recv().expect("the owner runs")
    }

    /// Quiesces, and waits until that is over.
    fn quiesce(&self) -> Quiesced {
        self.tell(Told::Quiesce);
        self.until_quiesced()
    }

    fn until_quiesced(&self) -> Quiesced {
        loop {
            match self.state().quiesced {
                Quiesced::UnderWay => thread::sleep(Duration::from_millis(1)),
                over => return over,
            }
        }
    }

    fn grow(&self, size: u64) -> Result<(), String> {
        let (sender, grown) = mpsc::channel();
        self.tell(Told::Grow(size, sender));
        grown.recv().expect("the owner runs")
    }

    fn is_answered(&self) -> bool {
        self.answers.try_recv().is_ok()
    }

    fn end(self) {
        self.tell(Told::End);
        self.thread.join().expect("nothing is amiss");
    }
}

fn server() -> FarServer {
    let flags = TransmissionFlags::all() - TransmissionFlags::READ_ONLY;
    FarServer::new(DISK, flags, 1)
}

fn options(server: &FarServer) -> NbdOptions {
    NbdOptions {
        uri: server.uri(),
        connections: 2,
        reconnect: Nanos::from_millis(30_000),
        resends: 10,
        answer_timeout: Nanos::from_millis(30_000),
        after_reconnect: AfterReconnect::Doubt,
    }
}

/// Whether it was asked for the write that it holds back.
fn has_held(state: &State) -> bool {
    state.asked.iter().any(|asked| asked.what == "write" && asked.bytes.start == 4096)
}

/// The server loses its cache each time.
#[test]
fn hundred_restarts_lose_nothing_and_leave_nothing_in_doubt() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        for round in 0..100_u8 {
            let at = u64::from(round % 16) * 4096;
            assert_eq!(disk.ask(write(at, 4096, round)), Ok(Vec::new()));
            assert_eq!(disk.quiesce(), Quiesced::Yes);
            server.wait_until(|state| state.left > usize::from(round));
            let later = disk.begin(write(at, 512, round + 100));
            server.kill(Cache::Lost);
            // Where nothing is to be flushed, nobody has to wait for that.
            let flushed = disk.begin(CommandOp::Flush);
            assert_eq!(disk.answer(), (flushed, Ok(Vec::new())));
            assert!(!disk.is_answered(), "a write waits");
            disk.tell(Told::Resume);
            assert_eq!(disk.answer(), (later, Ok(Vec::new())));
            let expected = [vec![round + 100; 512], vec![round; 4096 - 512]].concat();
            assert_eq!(disk.ask(read(at, 4096)), Ok(expected), "round {round}");
            assert_eq!(disk.ask(CommandOp::Flush), Ok(Vec::new()));
        }
        let state = disk.state();
        assert_eq!((state.in_doubt, state.lost, state.sent_again), (false, 0, 0));
        disk.end();
    });
}

#[test]
fn requests_that_were_sent_are_answered_before_the_server_is_left() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        server.set(|state| state.held = Some(4096..8192));
        let first = disk.begin(write(4096, 512, 1));
        server.wait_until(has_held);
        disk.tell(Told::Quiesce);
        let second = disk.begin(read(0, 512));
        thread::sleep(Duration::from_millis(20));
        assert_eq!(disk.state().quiesced, Quiesced::UnderWay);
        assert!(!disk.is_answered(), "what comes after it waits");
        server.set(|state| state.held = None);
        assert_eq!(disk.answer(), (first, Ok(Vec::new())));
        assert_eq!(disk.until_quiesced(), Quiesced::Yes);
        assert_eq!(server.state().durable[4096], 1);
        assert_eq!(disk.quiesce(), Quiesced::Yes, "a second time does nothing");
        disk.tell(Told::Resume);
        assert_eq!(disk.answer(), (second, Ok(vec![0; 512])));
        disk.end();
    });
}

#[test]
fn connection_that_is_lost_meanwhile_ends_it() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        assert_eq!(disk.ask(write(0, 512, 1)), Ok(Vec::new()));
        server.set(|state| state.held = Some(4096..8192));
        let held = disk.begin(write(4096, 512, 1));
        server.wait_until(has_held);
        disk.tell(Told::Quiesce);
        let later = disk.begin(read(0, 512));
        assert_eq!(disk.state().quiesced, Quiesced::UnderWay);
        server.kill(Cache::Kept);
        server.set(|state| state.held = None);
        let answers = [disk.answer(), disk.answer()];
        assert!(answers.contains(&(held, Ok(Vec::new()))), "it is sent again: {answers:?}");
        assert!(answers.contains(&(later, Ok(vec![1; 512]))), "{answers:?}");
        assert_eq!(disk.state().quiesced, Quiesced::Failed(QuiesceError::Lost));
        assert_eq!(disk.ask(CommandOp::Flush), Err(Errno::IO), "it is in doubt as ever");
        disk.end();
    });
}

#[test]
fn flush_that_fails_ends_it_and_no_later_one_succeeds() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        assert_eq!(disk.ask(write(0, 512, 1)), Ok(Vec::new()));
        server.set(|state| state.flush_error = Some(NbdError::Io));
        assert_eq!(disk.quiesce(), Quiesced::Failed(QuiesceError::Flush(Errno::IO)));
        server.set(|state| state.flush_error = None);
        assert_eq!(disk.ask(read(0, 512)), Ok(vec![1; 512]), "it is in use");
        assert_eq!(disk.ask(CommandOp::Flush), Err(Errno::IO));
        disk.end();
    });
}

/// What it refuses as it goes it has not carried out, and not failed to.
#[test]
fn server_that_shuts_down_meanwhile_ends_it_without_doubt_of_its_cache() {
    within_a_minute(|| {
        let server = server();
        let trusted = AfterReconnect::Trust;
        let mut disk = Disk::serve(NbdOptions { after_reconnect: trusted, ..options(&server) });
        assert_eq!(disk.ask(write(0, 512, 1)), Ok(Vec::new()));
        server.set(|state| state.shuts_down = true);
        assert_eq!(disk.quiesce(), Quiesced::Failed(QuiesceError::Lost));
        server.set(|state| {
            state.shuts_down = false;
            state.die(Cache::Kept);
        });
        assert_eq!(disk.ask(CommandOp::Flush), Ok(Vec::new()));
        assert!(!disk.state().in_doubt);
        disk.end();
    });
}

#[test]
fn server_that_is_lost_cannot_be_quiesced() {
    within_a_minute(|| {
        let server = server();
        let disk = Disk::serve(options(&server));
        server.set(|state| state.is_away = true);
        server.kill(Cache::Kept);
        while disk.state().lost == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(disk.quiesce(), Quiesced::Failed(QuiesceError::NotConnected));
        disk.end();
    });
}

/// Who waits for a server that does not come back hears of it as after a loss.
#[test]
fn time_to_reconnect_begins_when_it_is_resumed() {
    within_a_minute(|| {
        let server = server();
        let reconnect = Nanos::from_millis(200);
        let mut disk = Disk::serve(NbdOptions { reconnect, ..options(&server) });
        assert_eq!(disk.quiesce(), Quiesced::Yes);
        server.set(|state| state.is_away = true);
        let waiting = disk.begin(read(0, 512));
        thread::sleep(Duration::from_millis(300));
        assert!(!disk.is_answered(), "for longer than that");
        disk.tell(Told::Resume);
        assert_eq!(disk.answer(), (waiting, Err(Errno::IO)));
        disk.end();
    });
}

#[test]
fn end_does_not_wait_for_a_server_that_was_left() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        assert_eq!(disk.quiesce(), Quiesced::Yes);
        let waiting = disk.begin(read(0, 512));
        disk.tell(Told::End);
        let (answered, result) = disk.answer();
        // It may not have begun before the end did.
        let errors = [Err(Errno::IO), Err(Errno::SHUTDOWN)];
        assert!(answered == waiting && errors.contains(&result), "{result:?}");
        disk.thread.join().expect("nothing is amiss");
    });
}

#[test]
fn volume_grows_once_its_connections_show_more() {
    within_a_minute(|| {
        let server = server();
        let mut disk = Disk::serve(options(&server));
        let more = DISK as u64 + 4096;
        server.set(|state| state.grow(more));
        let refused = disk.grow(more).expect_err("the connections are of before");
        assert!(refused.contains("show 65536 bytes"), "{refused}");
        assert_eq!(disk.quiesce(), Quiesced::Yes);
        disk.tell(Told::Resume);
        assert_eq!(disk.ask(read(0, 512)), Ok(vec![0; 512]));
        assert_eq!(disk.grow(more), Ok(()));
        assert_eq!(disk.ask(write(DISK as u64, 4096, 3)), Ok(Vec::new()));
        assert_eq!(disk.ask(CommandOp::Flush), Ok(Vec::new()));
        assert_eq!(server.state().durable[DISK], 3);
        disk.end();
    });
}
