//! Many clients of two tenants with next to no memory, and what has to hold after every round.
//!
//! Good clients check every byte that they are answered. Between them others hang up in the middle
//! of whatever they do, and volumes and exports come, have such clients, and go. Or the disk is a
//! file that one owner after the other serves, each with the clients that the one before has left,
//! or is held and goes on. A failure names its seed.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use fastrand::Rng;
use paternoster::{
    AnyScheduler, Device, Elevator, Instant, IoPrio, Nanos, PlugLimits, SchedulerKind,
};
use paternoster_disk::{
    Backend, CacheChoice, Completion, Engine, FileBackend, FileOptions, Front, FrontToken,
    IoEngine, MemoryBackend, MonotonicClock, Outcome, Owner, Ring, Waker,
};
use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::tls::Tls;
use paternoster_nbd::{BlockSize, ExportInfo, Session};

#[path = "../../tests/served/certificates.rs"]
mod certificates;

use super::{Connections, DiskLabel, DiskOwner, Removal, Scheduler, Tenants, nbd};
use crate::admission::{Rooms, TenantRoom};
use crate::clients::Export;
use crate::config::AtStop;
use crate::handover::{LeftConnection, read_back, written};
use crate::messages::{NewConnection, NewExport, NewTenant, NewVolume, OwnerHandle};
use crate::peer::Peer;
use crate::recording::Sink;
use crate::stat::Detail;
use crate::threads::{Plugged, Thread, ThreadHandle};

/// Bytes of the disk that are one client's.
const SHARE: usize = 512 << 10;

/// Good clients, of both tenants by turns; as many others come and go.
const CLIENTS: usize = 12;

/// Less than a good client has in flight at most.
const MEMORY: usize = 500 << 10;

/// Requests that a good client has in flight, each in a part of its share.
const DEPTH: usize = 4;

const ROUNDS: usize = 25;

/// Connections, looked at after every round.
struct Checked(Connections);

impl Front<Scheduler> for Checked {
    fn started(&mut self, owner: &mut DiskOwner) {
        self.0.started(owner);
    }

    fn ring_completed(&mut self, owner: &mut DiskOwner, completion: Completion<FrontToken>) {
        self.0.ring_completed(owner, completion);
    }

    fn take_in(&mut self, owner: &mut DiskOwner) {
        self.0.take_in(owner);
    }

    fn command_done(&mut self, owner: &mut DiskOwner, outcome: Outcome) {
        self.0.command_done(owner, outcome);
    }

    fn woken(&mut self, owner: &mut DiskOwner) {
        self.0.woken(owner);
    }

    fn round_over(&mut self, owner: &mut DiskOwner) -> ControlFlow<()> {
        let over = self.0.round_over(owner);
        self.0.doors.nbd.check();
        over
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.0.poll_timeout(now)
    }

    fn falls_asleep(&mut self) -> bool {
        self.0.falls_asleep()
    }

    fn awake(&mut self) {
        self.0.awake();
    }
}

/// A disk of memory on a thread of its own.
struct Disk {
    handle: OwnerHandle,
    exports: Vec<Arc<Export>>,
    room: Arc<TenantRoom>,
    thread: thread::JoinHandle<std::io::Result<()>>,
    /// Connection threads.
    threads: Vec<thread::JoinHandle<std::io::Result<()>>>,
}

impl Disk {
    /// One in memory.
    fn start(kind: SchedulerKind, threads: usize) -> Self {
        Self::start_on(Box::new(MemoryBackend::new(CLIENTS * SHARE)), kind, threads)
    }

    fn start_on(backend: Box<dyn Backend>, kind: SchedulerKind, threads: usize) -> Self {
        let elevator = Elevator::new(
            AnyScheduler::new(kind, Sink::default()),
            Device::solid_state(4),
            Instant::START,
        );
        let threads = (0..threads).map(|_| Thread::new(IoEngine::fastest()).expect("an event"));
        let (threads, mut handles) = threads.unzip::<_, _, Vec<_>, Vec<_>>();
        let notices = ThreadHandle::notices(&handles);
        let mut engine = Engine::new(elevator);
        let volume = engine.add_volume(&backend.capabilities()).expect("there is room");
        let place = engine.place(volume);
        let mut tenants = Tenants::new(&notices);
        let export = |index: usize| {
            let (name, offset) = (format!("e{index}"), (index * SHARE) as u64);
            let lineage = vec![NewTenant::plain(["/a", "/b"][index % 2], MEMORY as u64)];
            let io_prio = IoPrio::default();
            let new = NewExport { name, volume, offset, io_prio, is_offered: true, lineage };
            engine.administer(|elevator| tenants.add_export(elevator, Instant::START, new, place))
        };
        let exports: Vec<_> = (0..CLIENTS).map(export).collect();
        let label = DiskLabel::in_memory(kind, volume);
        let (sender, inbox) = mpsc::channel();
        let waker = Waker::new().expect("an event");
        let handle = OwnerHandle::new(sender, waker.clone());
        let patience = Nanos::from_millis(60_000);
        let plugged =
            Plugged { limits: PlugLimits::default(), rules: engine.elevator().plug_rules() };
        let transport = nbd(&waker, &mut handles, &notices, plugged, patience);
        let mut checked = Checked(Connections::new(label, tenants, inbox, transport));
        let threads = threads.into_iter().map(|one| thread::spawn(move || one.run())).collect();
        let thread = thread::spawn(move || {
            let (ring, clock) = (Ring::new(IoEngine::fastest())?, MonotonicClock::start());
            Owner::new(engine, [(volume, backend)], ring, clock, waker)?.run(&mut checked)?;
            checked.0.ended()
        });
        let room = Rooms::of(1024).tenant("/a", 1024);
        Self { handle, exports, room, thread, threads }
    }

    fn connect(&self, export: &Arc<Export>) -> UnixStream {
        self.connect_within(export, None)
    }

    /// The same within TLS, which is spoken behind what this returns.
    fn connect_sealed(&self, export: &Arc<Export>, random: &mut Rng) -> UnixStream {
        let [server, mut client] = certificates::agreed();
        let mut sealed = self.connect_within(export, Some(server));
        if random.u8(..8) == 0 {
            // It goes in the middle of a record.
            let whole = client.seal(&[&request(0, 1, 0, 1)]).expect("it may be sealed");
            let part = whole.slice(..random.usize(..whole.len()));
            drop(sealed.write(&part));
            return UnixStream::pair().expect("sockets").0;
        }
        certificates::relay(client, sealed, 300_000)
    }

    fn connect_within(&self, export: &Arc<Export>, tls: Option<Tls>) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let info = ExportInfo {
            name: export.name.clone(),
            description: None,
            size: SHARE as u64,
            flags: TransmissionFlags::HAS_FLAGS
                | TransmissionFlags::SEND_FLUSH
                | TransmissionFlags::SEND_FUA
                | TransmissionFlags::SEND_CACHE,
            block_size: BlockSize::default(),
        };
        let session = Session { export: info, structured_replies: false, allocation_context: None };
        let admitted = self.room.admit().expect("room");
        let export = Arc::clone(export);
        let (socket, input) = (Arc::new(OwnedFd::from(theirs)), BytesMut::new());
        let (peer, resumed) = (Peer::Unknown, None);
        let (tls, identity) = (tls.map(Box::new), None);
        self.handle.connect(NewConnection {
            socket,
            tls,
            identity,
            session,
            input,
            export,
            peer,
            admitted,
            resumed,
        });
        ours
    }

    /// Has another owner serve the clients of this one, which touches nothing from then on.
    fn hand_over(self, to: Self) -> Self {
        let held = self.handle.hold().recv().expect("it answers").expect("nothing fails");
        let (file, sockets) = written(&held.connections).expect("it is written");
        for (left, socket) in read_back(file).expect("it is read").into_iter().zip(sockets) {
            let name = &left.session.export.name;
            let export = to.exports.iter().find(|export| export.name == *name);
            let export = Arc::clone(export.expect("it has the same"));
            let LeftConnection { session, input, resumed } = left;
            let (peer, admitted) = (Peer::Unknown, self.room.admit().expect("room"));
            let resumed = Some(resumed);
            let new = NewConnection {
                socket,
                tls: None,
                identity: None,
                session,
                input,
                export,
                peer,
                admitted,
                resumed,
            };
            to.handle.connect(new);
        }
        // Its threads sleep until the test ends.
        std::mem::forget(self);
        to
    }

    /// Waits until the last client is gone; then ends it, which must go well.
    fn end(self) {
        let stat = || self.handle.stat(Detail::Groups).recv().expect("it answers");
        while stat().connections > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let left: Vec<_> = stat().groups.into_iter().map(|group| group.path).collect();
        assert_eq!(left, ["/a", "/b"], "those that came have gone");
        self.handle.shut_down(AtStop::Close);
        for thread in self.threads.into_iter().chain([self.thread]) {
            thread.join().expect("nothing is amiss").expect("a good end");
        }
    }
}

/// A request's bytes.
fn request(code: u16, cookie: usize, offset: usize, len: usize) -> Vec<u8> {
    let fua = u16::from(code == 1 && cookie.is_multiple_of(7));
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(fua.to_be_bytes());
    bytes.extend(code.to_be_bytes());
    bytes.extend((cookie as u64).to_be_bytes());
    bytes.extend((offset as u64).to_be_bytes());
    bytes.extend(u32::try_from(len).expect("short").to_be_bytes());
    bytes
}

/// Lengths of every kind: that of a byte, a stream's, a large one's.
fn some_len(random: &mut Rng) -> usize {
    let most = [1, 600, 5000, 70_000, SHARE / DEPTH][random.usize(..5)];
    random.usize(1..=most)
}

/// A client that checks what it is answered.
fn good_client(mut stream: UnixStream, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut model = vec![0; SHARE];
    for round in 0..ROUNDS {
        let mut output = Vec::new();
        let mut awaited = BTreeMap::new();
        for part in 0..random.usize(1..=DEPTH) {
            let len = some_len(&mut random);
            let start = part * (SHARE / DEPTH) + random.usize(..=SHARE / DEPTH - len);
            let (cookie, range) = (round * DEPTH + part, start..start + len);
            let code = [0, 1, 1, 3, 5][random.usize(..5)];
            match code {
                1 => {
                    random.fill(&mut model[range.clone()]);
                    output.extend(request(code, cookie, start, len));
                    output.extend(&model[range.clone()]);
                }
                3 => output.extend(request(code, cookie, 0, 0)),
                _ => output.extend(request(code, cookie, start, len)),
            }
            awaited.insert(cookie as u64, if code == 0 { range } else { 0..0 });
        }
        let mut writer = stream.try_clone().expect("a descriptor");
        let pieces = random.usize(1..=3);
        let sender = thread::spawn(move || {
            for piece in output.chunks(output.len().div_ceil(pieces)) {
                writer.write_all(piece).expect("it is taken");
            }
        });
        while !awaited.is_empty() {
            let mut reply = [0; 16];
            stream.read_exact(&mut reply).expect("a reply");
            assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "seed {seed}");
            let cookie = u64::from_be_bytes(reply[8..].try_into().expect("8 bytes"));
            let range = awaited.remove(&cookie).expect("it was asked, and not answered");
            let mut data = vec![0; range.len()];
            stream.read_exact(&mut data).expect("data");
            assert!(data == model[range], "seed {seed}, round {round}: other bytes");
        }
        sender.join().expect("all is taken");
    }
    if random.bool() {
        stream.write_all(&request(2, 0, 0, 0)).expect("taken");
    }
}

/// A client that reads, begins to write, and goes without waiting for anything.
fn rude_client(mut stream: UnixStream, random: &mut Rng) {
    stream.set_nonblocking(true).expect("a socket");
    for cookie in 0..random.usize(1..=6) {
        let len = some_len(random);
        let sent = match random.u8(..4) {
            0 => stream.write(&request(0, cookie, 0, len)),
            1 => stream.write(&request(0xff, cookie, 0, 0)),
            2 => stream.write(&request(5, cookie, 0, SHARE)),
            _ => {
                // Never all of it: what it would write is a good client's.
                let mut half = request(1, cookie, 0, len);
                half.resize(28 + random.usize(..len), 0);
                let sent = stream.write(&half);
                thread::sleep(Duration::from_millis(random.u64(..10)));
                drop(stream);
                return drop(sent);
            }
        };
        if sent.is_err() {
            return;
        }
    }
    thread::sleep(Duration::from_millis(random.u64(..10)));
}

/// Volumes, and exports of the good clients' volume, that come, have clients that hang up, and go
/// before these have left or behind them.
fn come_and_go(disk: &Disk, random: &mut Rng) {
    for round in 0..ROUNDS {
        let paths = [&["/a"][..], &["/c"], &["/c", "/c/d"]][random.usize(..3)];
        let lineage = paths.iter().map(|path| NewTenant::plain(path, MEMORY as u64)).collect();
        let (name, io_prio, is_volume) = (format!("go{round}"), IoPrio::default(), random.bool());
        let export = if is_volume {
            let backend = Box::new(MemoryBackend::new(SHARE));
            let added = disk.handle.add_volume(NewVolume {
                name,
                backend,
                io_prio,
                is_offered: true,
                lineage,
            });
            added.recv().expect("it answers").expect("there is room")
        } else {
            let volume = disk.exports[0].volume;
            let new = NewExport { name, volume, offset: 0, io_prio, is_offered: true, lineage };
            disk.handle.add_export(new).recv().expect("the volume is there")
        };
        let drain = Nanos::from_micros(random.u64(..5_000));
        thread::scope(|scope| {
            for _ in 0..random.usize(..4) {
                let (stream, seed) = (disk.connect(&export), random.u64(..));
                scope.spawn(move || rude_client(stream, &mut Rng::with_seed(seed)));
            }
            if is_volume {
                let removal = Removal { volume: export.volume, drain, sync: random.bool() };
                let removed = disk.handle.remove_volume(removal).recv().expect("it goes");
                assert_eq!(removed.synced, Ok(()));
            } else {
                disk.handle.remove_export(Arc::clone(&export), drain).recv().expect("it goes");
            }
        });
        let mut late = disk.connect(&export);
        assert_eq!(late.read(&mut [0]).expect("its end"), 0, "it has gone");
    }
}

/// Good clients and rude ones, while one owner after the other serves them.
fn swarm_with_hand_overs(seed: u64, kinds: &[SchedulerKind], threads: usize) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len((CLIENTS * SHARE) as u64).expect("room");
    let start = |kind| {
        let open = file.as_file().try_clone().expect("a descriptor");
        let options = FileOptions { read_only: false, cache: CacheChoice::Page };
        let backend = FileBackend::open_or_adopt(file.path(), options, Some(open.into()));
        let backend = backend.expect("its lock goes with it");
        Disk::start_on(Box::new(backend), kind, threads)
    };
    let disk = RwLock::new(Some(start(kinds[0])));
    let connect = |number: usize| {
        let disk = disk.read().expect("nobody has panicked");
        let disk = disk.as_ref().expect("there is one");
        disk.connect(&disk.exports[number])
    };
    let serving = AtomicUsize::new(CLIENTS);
    let mut hand_overs = 0;
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (stream, own_seed) = (connect(number), seed + number as u64);
            let serving = &serving;
            scope.spawn(move || {
                good_client(stream, own_seed);
                serving.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let (serving, connect) = (&serving, &connect);
        scope.spawn(move || {
            let mut random = Rng::with_seed(seed + 1000);
            while serving.load(Ordering::Relaxed) > 0 {
                rude_client(connect(random.usize(..CLIENTS)), &mut random);
            }
        });
        let mut random = Rng::with_seed(seed + 2000);
        let mut next = kinds.iter().cycle().skip(1);
        while serving.load(Ordering::Relaxed) > 0 {
            thread::sleep(Duration::from_millis(random.u64(1..10)));
            let mut disk = disk.write().expect("nobody has panicked");
            let one = disk.take().expect("there is one");
            *disk = Some(if random.bool() {
                drop(one.handle.hold().recv_timeout(Duration::from_millis(random.u64(..3))));
                one.handle.go_on();
                one
            } else {
                hand_overs += 1;
                one.hand_over(start(*next.next().expect("it cycles")))
            });
        }
    });
    disk.into_inner().expect("nobody has panicked").expect("there is one").end();
    assert!(hand_overs > 0, "seed {seed}: clients were done before one was made");
}

/// Some of the clients, or none, are within TLS.
fn swarm(seed: u64, kind: SchedulerKind, threads: usize, within_tls: bool) {
    let disk = Disk::start(kind, threads);
    thread::scope(|scope| {
        scope.spawn(|| come_and_go(&disk, &mut Rng::with_seed(seed + 2000)));
        for number in 0..CLIENTS {
            let stream = if within_tls && number % 3 > 0 {
                let [server, client] = certificates::agreed();
                let sealed = disk.connect_within(&disk.exports[number], Some(server));
                let stream = certificates::relay(client, sealed, 300_000);
                stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
                stream
            } else {
                disk.connect(&disk.exports[number])
            };
            let own_seed = seed + number as u64;
            scope.spawn(move || good_client(stream, own_seed));
        }
        for number in 0..4 {
            let disk = &disk;
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed + 1000 + number);
                for _ in 0..3 * CLIENTS {
                    let export = &disk.exports[random.usize(..CLIENTS)];
                    let stream = if within_tls && random.bool() {
                        disk.connect_sealed(export, &mut random)
                    } else {
                        disk.connect(export)
                    };
                    rude_client(stream, &mut random);
                }
            });
        }
    });
    disk.end();
}

#[test]
fn every_byte_is_right_and_nothing_is_left_behind_where_memory_is_short() {
    for (round, kind) in (0..).zip([SchedulerKind::None, SchedulerKind::Cfq]) {
        swarm(10_000 * round, kind, 0, false);
    }
}

#[test]
fn every_byte_is_right_and_nothing_is_left_behind_on_connection_threads() {
    for (round, kind) in (2..).zip([SchedulerKind::None, SchedulerKind::Cfq]) {
        swarm(10_000 * round, kind, 3, false);
    }
}

#[test]
fn every_byte_is_right_and_nothing_is_left_behind_within_tls() {
    for (round, threads) in (8..).zip([0, 3]) {
        swarm(10_000 * round, SchedulerKind::Wfq, threads, true);
    }
}

#[test]
fn every_byte_is_right_while_one_owner_after_the_other_serves() {
    for round in 0..4 {
        swarm_with_hand_overs(50_000 + 100 * round, &[SchedulerKind::Wfq, SchedulerKind::Cfq], 0);
    }
}

#[test]
fn every_byte_is_right_while_one_owner_after_the_other_serves_by_threads() {
    for round in 0..4 {
        swarm_with_hand_overs(60_000 + 100 * round, &[SchedulerKind::None, SchedulerKind::Wfq], 2);
    }
}
