//! The simulation, against throughput and times worked out by hand.

use paternoster::{
    BioFlags, Instant, IoPrio, Nanos, NoTrace, Op, SchedulerKind, Sector, SectorCount,
};
use paternoster_lab::sim::{
    Action, Costs, Ended, Io, Moment, Setup, SimError, Simulation, TaskId, TaskSetup, Workload,
};
use paternoster_model::{Room, Servers};

/// Readers, each of which keeps so many reads outstanding until it has read so many times.
struct Readers {
    count: u32,
    depth: u32,
    sectors: u32,
    reads: u64,
    /// Of each reader: reads submitted, and outstanding.
    state: Vec<(u64, u32)>,
    ended: Vec<Ended>,
}

impl Readers {
    fn new(count: u32, depth: u32, reads: u64) -> Self {
        let state = vec![(0, 0); count as usize];
        Self { count, depth, sectors: 8, reads, state, ended: Vec::new() }
    }
}

impl Workload for Readers {
    fn tasks(&self) -> Vec<TaskSetup> {
        let task = TaskSetup { group: None, io_prio: IoPrio::default(), start: Instant::START };
        vec![task; self.count as usize]
    }

    fn next(&mut self, _moment: &mut Moment<'_>, task: TaskId) -> Action {
        let (submitted, outstanding) = &mut self.state[task.index()];
        if *submitted == self.reads {
            return Action::Exit;
        }
        if *outstanding == self.depth {
            return Action::Wait;
        }
        let name = *submitted;
        *submitted += 1;
        *outstanding += 1;
        let sector = Sector((u64::from(task.0) * self.reads + name) * 1000);
        let sectors = SectorCount(self.sectors);
        Action::Submit(Io {
            name,
            op: Op::Read,
            flags: BioFlags::empty(),
            sector,
            sectors,
            io_prio: None,
        })
    }

    fn completed(&mut self, _moment: &mut Moment<'_>, ended: &Ended) {
        self.state[ended.task.index()].1 -= 1;
        self.ended.push(*ended);
    }
}

fn servers(servers: u32, depth: u32) -> Servers {
    Servers::constant(
        servers,
        Room { depth, end: Sector(1 << 40) },
        Nanos::from_micros(80),
        Nanos::ZERO,
    )
}

/// Four readers with 2 reads outstanding each, 10 reads each, on 4 servers of 80 µs: 8 are
/// outstanding, so that the servers are never idle: 40 reads take 10 × 80 µs. A read waits for one
/// other, but for the first four: 160 µs.
#[test]
fn servers_are_busy_while_readers_have_more_outstanding() {
    for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline] {
        let (readers, device) = (Readers::new(4, 2, 10), servers(4, 32));
        let mut sim = Simulation::new(&Setup::new(scheduler), readers, device, NoTrace)
            .expect("a setup without settings");
        sim.run().expect("the run ends");
        assert_eq!(sim.now().since_start(), Nanos::from_micros(800), "{scheduler}");
        let ended = &sim.workload().ended;
        assert_eq!(ended.len(), 40);
        let latencies = ended.iter().map(|io| io.completed.saturating_since(io.submitted));
        let short = latencies.filter(|latency| *latency == Nanos::from_micros(80)).count();
        assert_eq!(short, 4, "{scheduler}: only the first four found a free server");
        let time = sim.device_time();
        assert_eq!((time.busy, time.withheld), (Nanos::from_micros(800), Nanos::ZERO));
        assert_eq!(time.spent.overhead, Nanos::from_micros(40 * 80), "summed over commands");
    }
}

/// A read of 3,000 sectors is split where the device's limits say so, and is over with its last
/// part.
#[test]
fn long_io_is_split_and_completes_once() {
    let mut readers = Readers::new(1, 1, 2);
    readers.sectors = 3000;
    let mut sim =
        Simulation::new(&Setup::new(SchedulerKind::None), readers, servers(1, 32), NoTrace)
            .expect("a setup without settings");
    sim.run().expect("the run ends");
    let limit = sim.elevator().limits().max_sectors;
    let parts = u64::from(3000_u32.div_ceil(limit));
    assert!(parts > 1, "the limit is below 3,000 sectors");
    assert_eq!(sim.workload().ended.len(), 2);
    assert_eq!(sim.now().since_start(), Nanos::from_micros(2 * parts * 80));
}

/// A workload whose only task waits for nothing.
#[test]
fn workload_that_waits_for_ever_is_an_error() {
    let readers = Readers::new(1, 0, 1);
    let mut sim =
        Simulation::new(&Setup::new(SchedulerKind::None), readers, servers(1, 1), NoTrace)
            .expect("a setup without settings");
    let stuck = sim.run().expect_err("it waits for ever");
    assert_eq!(stuck, SimError::Stuck { at_ns: 0, outstanding: 0, tasks: 1 });
}

/// One task on one core keeps 64 reads outstanding on 64 servers: the core is the limit. A read
/// costs it 1 µs to submit, 1 µs to complete, 0.4 µs under the lock, and 0.1 µs for the wake-up if
/// the task waits. 10,000 reads take at least 10,000 × 2.4 µs, and at most 10,000 × 2.5 µs and the
/// time of one read.
#[test]
fn core_is_the_limit_where_the_device_is_faster() {
    let mut setup = Setup::new(SchedulerKind::None);
    setup.costs = Costs {
        submit: Nanos::new(1000),
        complete: Nanos::new(1000),
        wake: Nanos::new(100),
        varies_percent: 0,
        hold: Nanos::new(400),
        hold_after_wait: Nanos::new(400),
    };
    let readers = Readers::new(1, 64, 10_000);
    let mut sim = Simulation::new(&setup, readers, servers(64, 64), NoTrace)
        .expect("a setup without settings");
    sim.run().expect("the run ends");
    let took = sim.now().since_start().as_nanos();
    assert!((24_000_000..=25_100_000).contains(&took), "{took} ns");
    let cpu = sim.cpu_time();
    assert_eq!(cpu.held, Nanos::new(10_000 * 400));
    assert_eq!(cpu.spinning, Nanos::ZERO, "one core does not wait for itself");
}

/// Tasks on eight cores, whose work under the lock is 2 µs a read: no more than one read in 2 µs,
/// however many cores there are; and no fewer, however many tasks a core has: it waits for the
/// lock for one of them at a time.
#[test]
fn lock_is_the_limit_of_many_cores() {
    let mut setup = Setup::new(SchedulerKind::None);
    setup.cores = 8;
    setup.costs = Costs {
        submit: Nanos::new(500),
        complete: Nanos::new(500),
        wake: Nanos::ZERO,
        varies_percent: 0,
        hold: Nanos::new(2000),
        hold_after_wait: Nanos::new(2000),
    };
    for (tasks, depth, reads) in [(8, 16, 1000), (128, 1, 125)] {
        let readers = Readers::new(tasks, depth, reads);
        let mut sim = Simulation::new(&setup, readers, servers(256, 256), NoTrace)
            .expect("a setup without settings");
        sim.run().expect("the run ends");
        let lock = u64::from(tasks) * reads * 2000;
        let took = sim.now().since_start().as_nanos();
        assert!((lock..=lock + 300_000).contains(&took), "{took} ns, {lock} of them the lock's");
        let cpu = sim.cpu_time();
        assert_eq!(cpu.held, Nanos::new(lock));
        assert!(cpu.spinning > Nanos::new(3 * lock), "most of eight wait: {:?}", cpu.spinning);
        assert!(cpu.busy <= Nanos::new(8 * took), "{:?} in {took} ns", cpu.busy);
    }
}
