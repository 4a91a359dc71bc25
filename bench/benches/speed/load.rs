//! What the bench simulates: random reads of 4 KiB in a closed loop, 128 outstanding, spread
//! evenly over tasks, each of which has a group of its own where there are groups.

use std::fmt;

use paternoster::{
    AnyScheduler, BioFlags, Instant, IoPrio, NoTrace, Op, SchedulerKind, Sector, SectorCount,
    Weight, Weights,
};
use paternoster_lab::sim::{
    Action, Ended, GroupSetup, Io, Moment, Setup, Simulation, TaskId, TaskSetup, Workload,
};
use paternoster_model::{Model, open_device};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Reads outstanding at any time.
const OUTSTANDING: u32 = 128;
/// Sectors of a read.
const SECTORS: u32 = 8;

/// A scheduler over a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) scheduler: SchedulerKind,
    pub(crate) device: &'static str,
    pub(crate) tasks: u32,
    pub(crate) grouping: Grouping,
}

/// Where tasks are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grouping {
    /// All in the root.
    Root,
    /// Each in a group of its own.
    Own,
}

impl Config {
    /// The drive takes 1023 commands, so that no read waits in the scheduler; the servers take 32
    /// and the disk 31.
    pub(crate) fn all() -> [Self; 7] {
        use SchedulerKind::{Bfq, Cfq, Kyber, MqDeadline, None};
        let one_task =
            |scheduler, device| Self { scheduler, device, tasks: 1, grouping: Grouping::Root };
        let drive = |scheduler| one_task(scheduler, "nvme-980pro");
        let servers = |scheduler| one_task(scheduler, "servers-16x80us");
        let disk = |scheduler| {
            let (device, grouping) = ("hdd-7200", Grouping::Own);
            Self { scheduler, device, tasks: 64, grouping }
        };
        [
            drive(None),
            drive(MqDeadline),
            drive(Kyber),
            servers(MqDeadline),
            servers(Kyber),
            disk(Cfq),
            disk(Bfq),
        ]
    }

    /// Its simulation, at its beginning.
    pub(crate) fn simulation(self) -> Reading {
        let model = open_device(self.device, 1).expect("it comes with the laboratory");
        let mut setup = Setup::new(self.scheduler);
        if let Grouping::Own = self.grouping {
            let weights = Weights::from(Weight::default());
            let group = |task| GroupSetup { path: format!("/{task}"), weights };
            setup.groups = (0..self.tasks).map(group).collect();
        }
        let reads = Reads::new(self, model.end());
        Simulation::new(&setup, reads, model, NoTrace).expect("a good setup")
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheduler, device, tasks, grouping } = self;
        match grouping {
            Grouping::Root => write!(f, "{scheduler}, {device}"),
            Grouping::Own => write!(f, "{scheduler}, {device}, {tasks} groups"),
        }
    }
}

/// A simulation of them.
pub(crate) type Reading = Simulation<Reads, Box<dyn Model + Send>, AnyScheduler<NoTrace>>;

/// Tasks that read.
pub(crate) struct Reads {
    config: Config,
    /// What each has outstanding.
    outstanding: Vec<u32>,
    /// The places at which a read may begin.
    places: u64,
    random: Xoshiro256PlusPlus,
    pub(crate) completed: u64,
}

impl Reads {
    fn new(config: Config, end: Sector) -> Self {
        Self {
            config,
            outstanding: vec![0; config.tasks as usize],
            places: end.0 / u64::from(SECTORS),
            random: Xoshiro256PlusPlus::seed_from_u64(1),
            completed: 0,
        }
    }
}

impl Workload for Reads {
    fn tasks(&self) -> Vec<TaskSetup> {
        let task = |task: u32| TaskSetup {
            group: match self.config.grouping {
                Grouping::Root => None,
                Grouping::Own => Some(task as usize),
            },
            io_prio: IoPrio::default(),
            start: Instant::START,
        };
        (0..self.config.tasks).map(task).collect()
    }

    fn next(&mut self, _moment: &mut Moment<'_>, task: TaskId) -> Action {
        let outstanding = &mut self.outstanding[task.index()];
        if *outstanding == OUTSTANDING / self.config.tasks {
            return Action::Wait;
        }
        *outstanding += 1;
        // The upper half of the product of a random number of 64 bits and the places.
        let place = (u128::from(self.random.next_u64()) * u128::from(self.places)) >> 64;
        let place = u64::try_from(place).expect("it is less than the places");
        Action::Submit(Io {
            name: 0,
            op: Op::Read,
            flags: BioFlags::empty(),
            sector: Sector(place * u64::from(SECTORS)),
            sectors: SectorCount(SECTORS),
            io_prio: None,
        })
    }

    fn completed(&mut self, _moment: &mut Moment<'_>, ended: &Ended) {
        self.outstanding[ended.task.index()] -= 1;
        self.completed += 1;
    }
}

/// Has so many reads more complete.
pub(crate) fn serve(sim: &mut Reading, reads: u64) {
    let end = sim.workload().completed + reads;
    while sim.workload().completed < end {
        assert!(sim.step().expect("it goes on"), "the tasks never end");
    }
}
