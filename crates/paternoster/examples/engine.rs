//! A small storage engine: four threads read a real file, which two tenants share by weight.
//!
//! ```text
//!   gold    weight 300   1 thread  × 32 reads ─┐            ┌─ reader ─┐
//!   silver  weight 100   3 threads × 32 reads ─┴─▶ owner ──▶┴─ reader ─┴─▶ the file
//! ```
//!
//! The owner is the only thread that has the scheduler. It waits for whatever comes first: a read
//! that a thread asks for, a read that is done, or the moment at which the scheduler wants to be
//! called. The readers are the device: each does one read at a time.
//!
//! ```sh
//! cargo run --release --example engine
//! ```

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the core has no clock and no threads; an engine, which calls it, has both"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant as Clock};

use paternoster::{
    AnyScheduler, Bio, Device, Driver, Elevator, Instant, IoPrio, IocId, Medium, Nanos, NoTrace,
    RequestId, SchedulerKind, Sector, SectorCount, Weight,
};

/// How many reads the device does at once.
const READERS: u32 = 2;
/// How many reads a thread keeps outstanding.
const OUTSTANDING: u32 = 32;
/// How long a read is, and how many such places the file has.
const SECTORS: SectorCount = SectorCount(128);
const LENGTH: usize = 64 << 10;
const PLACES: u32 = 512;

/// What was read, or what the system said instead.
type Data = Result<Vec<u8>, ErrorKind>;

/// What a thread asks for.
struct Wanted {
    client: IocId,
    sector: Sector,
    reply: Sender<(Sector, Data)>,
}

/// What the owner hears of.
enum Event {
    Wanted(Wanted),
    Done(RequestId, Data),
    End,
}

/// A request for the readers: one read, or neighbours that have merged.
type Job = (RequestId, Sector, SectorCount);

fn main() -> ExitCode {
    match run(Duration::from_secs(2)) {
        Ok([gold, silver]) => {
            let part = |reads: u32| 100 * reads / (gold + silver).max(1);
            println!("gold   (weight 300): {gold:6} reads, {:2} %", part(gold));
            println!("silver (weight 100): {silver:6} reads, {:2} %", part(silver));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("engine: {error}"); // `fn main() -> io::Result<()>` would print its fields
            ExitCode::FAILURE
        }
    }
}

/// Has the tenants read for that long. Returns how many reads each was served.
fn run(time: Duration) -> io::Result<[u32; 2]> {
    let file = tempfile::tempfile()?;
    for place in 0..PLACES {
        let sector = sector_of(place);
        file.write_all_at(&vec![byte_at(sector); LENGTH], sector.0 * 512)?;
    }

    // A tenant is a group with a weight; an I/O context in it is one of its clients.
    let now = Instant::START;
    let scheduler = AnyScheduler::new(SchedulerKind::Wfq, NoTrace);
    let device = Device::solid_state(READERS);
    let mut elevator = Elevator::fitted(scheduler, device, Medium::NotRotational, now);
    let [gold, silver] = [300, 100].map(|weight| {
        let weight = Weight::new(weight).expect("1 to 1000");
        elevator.add_group(now, elevator.groups().root(), weight)
    });
    let clients = [gold, silver, silver, silver]
        .map(|group| elevator.add_io_context(now, IoPrio::default(), group));
    let driver = Driver::new(elevator);

    let (to_owner, events) = channel();
    let (to_readers, jobs) = channel();
    let (file, jobs) = (&file, &Mutex::new(jobs));
    thread::scope(|scope| {
        scope.spawn(move || own(driver, &events, &to_readers));
        for _ in 0..READERS {
            let done = to_owner.clone();
            scope.spawn(move || read(file, jobs, &done));
        }
        let threads = clients.map(|client| {
            let to_owner = to_owner.clone();
            scope.spawn(move || ask(client, time, &to_owner))
        });
        let served = threads.map(|thread| thread.join().expect("it does not panic"));
        to_owner.send(Event::End).expect("the owner waits for it");
        let [gold, silver, second, third] = served;
        Ok([gold?, silver? + second? + third?])
    })
}

/// The owner keeps the law of the scheduler: an event, then `dispatch`, then `poll_timeout`.
fn own(mut driver: Driver<AnyScheduler<NoTrace>>, events: &Receiver<Event>, jobs: &Sender<Job>) {
    let start = Clock::now();
    let clock = || {
        let nanos = u64::try_from(start.elapsed().as_nanos()).expect("less than 584 years");
        Instant::START + Nanos::from_nanos(nanos)
    };
    let mut wanted: BTreeMap<u64, Wanted> = BTreeMap::new(); // by the user data of its bio
    for number in 0.. {
        let event = match driver.poll_timeout().map(|at| at.saturating_since(clock())) {
            None => events.recv().map_err(RecvTimeoutError::from),
            Some(Nanos::ZERO) => Err(RecvTimeoutError::Timeout), // due, whatever else waits
            Some(wait) => events.recv_timeout(Duration::from_nanos(wait.as_nanos())),
        };
        let now = clock();
        match event {
            Ok(Event::Wanted(read)) => {
                let bio = Bio::read(read.client, read.sector, SECTORS);
                driver.submit(now, bio.with_user_data(number));
                wanted.insert(number, read);
            }
            Ok(Event::Done(rq, data)) => {
                let from = driver.elevator().request(rq).sector;
                for number in driver.complete(now, rq) {
                    // Each bio of the request gets its own part of what was read.
                    let Wanted { sector, reply, .. } = wanted.remove(&number).expect("it waits");
                    let at = usize::try_from((sector.0 - from.0) * 512).expect("in the data");
                    let part = data.as_ref().map(|data| data[at..][..LENGTH].to_vec());
                    reply.send((sector, part.map_err(|kind| *kind))).ok(); // or it has given up
                }
            }
            Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => driver.handle_timeout(now),
        }
        driver.dispatch(now, |elevator, rq| {
            let request = elevator.request(rq);
            jobs.send((rq, request.sector, request.sectors)).expect("readers end after the owner");
        });
    }
}

/// A reader: does one read after the other until the owner has ended.
fn read(file: &File, jobs: &Mutex<Receiver<Job>>, done: &Sender<Event>) {
    loop {
        let job = jobs.lock().expect("nobody panics").recv();
        let Ok((rq, sector, sectors)) = job else { return };
        let mut data = vec![0; usize::try_from(sectors.bytes()).expect("it is in memory")];
        let read = file.read_exact_at(&mut data, sector.0 * 512);
        let data = read.map(|()| data).map_err(|error| error.kind());
        done.send(Event::Done(rq, data)).ok(); // or the owner has ended
    }
}

/// A client's thread: keeps reads outstanding for that long, looks at what comes, and counts it.
fn ask(client: IocId, time: Duration, owner: &Sender<Event>) -> io::Result<u32> {
    let start = Clock::now();
    let (reply, replies) = channel();
    let (mut asked, mut served) = (0, 0);
    loop {
        while asked < served + OUTSTANDING && start.elapsed() < time {
            let sector = sector_of(asked.wrapping_mul(311) % PLACES);
            let read = Wanted { client, sector, reply: reply.clone() };
            owner.send(Event::Wanted(read)).expect("the owner ends last");
            asked += 1;
        }
        if served == asked {
            return Ok(served);
        }
        let (sector, data) = replies.recv().expect("this thread can send, too");
        if data?.iter().any(|&byte| byte != byte_at(sector)) {
            return Err(io::Error::other(format!("{sector:?} has the data of another place")));
        }
        served += 1;
    }
}

fn sector_of(place: u32) -> Sector {
    Sector(u64::from(place) * u64::from(SECTORS.0))
}

/// What the file has from that sector on.
fn byte_at(sector: Sector) -> u8 {
    u8::try_from(sector.0 / u64::from(SECTORS.0) % 251).expect("below 251")
}

#[test]
fn every_read_is_served_with_its_own_data() {
    let [gold, silver] = run(Duration::from_millis(200)).expect("no read fails");
    assert!(gold > 0 && silver > 0, "{gold} : {silver}");
}
