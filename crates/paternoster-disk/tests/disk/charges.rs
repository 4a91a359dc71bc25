//! What is charged though it is no request: a sync, to all who waited for it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use paternoster::scheduler::{
    Cx, GroupEvent, InsertAt, Scheduler, SortList, WaitingRequests, Work, tunable_methods, tunables,
};
use paternoster::{
    Device, Elevator, GroupId, Instant, IoPrio, IocId, Nanos, NoTrace, RequestId, Weight,
};
use paternoster_disk::{
    Capabilities, Command, CommandOp, Engine, Payload, Transfer, TransferId, Transferred, VolumeId,
};
use rustix::io::Errno;

use crate::support::one_volume;

const DISK: Capabilities = Capabilities::new(1 << 30, 4);

tunables! {
    struct Tunables of "noting";
    none: "requests", 0, 0, 0, "None.";
}

/// Serves by sector, and notes who is charged for what.
struct Noting {
    waiting: WaitingRequests,
    tunables: Tunables,
    trace: NoTrace,
    charged: Arc<Mutex<Vec<(GroupId, Work)>>>,
}

impl Scheduler for Noting {
    type Trace = NoTrace;

    fn name(&self) -> &'static str {
        "noting"
    }

    fn insert(&mut self, cx: &mut Cx, rq: RequestId, _: InsertAt) {
        self.waiting.insert(&mut cx.requests, rq, cx.now);
    }

    fn group_event(&mut self, _: &mut Cx, group: GroupId, event: GroupEvent) {
        if let GroupEvent::Worked(work) = event {
            self.charged.lock().expect("nobody has panicked").push((group, work));
        }
    }

    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        let rq = self.waiting.iter(&cx.requests).next()?;
        let next = SortList::after(&cx.requests, rq);
        self.waiting.remove(&mut cx.requests, rq, next);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    tunable_methods!(tunables: Tunables);

    fn trace(&mut self) -> &mut NoTrace {
        &mut self.trace
    }
}

/// An engine with two groups of one connection each, whose transfers the test ends.
struct Rig {
    engine: Engine<Noting>,
    volume: VolumeId,
    now: Instant,
    groups: [GroupId; 2],
    connections: [IocId; 2],
    in_device: Vec<TransferId>,
    charged: Arc<Mutex<Vec<(GroupId, Work)>>>,
}

impl Rig {
    fn new() -> Self {
        let charged = Arc::default();
        let scheduler = Noting {
            waiting: WaitingRequests::default(),
            tunables: Tunables::with_defaults(),
            trace: NoTrace,
            charged: Arc::clone(&charged),
        };
        let now = Instant::START;
        let mut elevator = Elevator::new(scheduler, Device::solid_state(4), now);
        let root = elevator.groups().root();
        let groups = [(); 2].map(|()| elevator.add_group(now, root, Weight::default()));
        let connections =
            groups.map(|group| elevator.add_io_context(now, IoPrio::default(), group));
        let (engine, volume) = one_volume(elevator, &DISK);
        Self { engine, volume, now, groups, connections, in_device: Vec::new(), charged }
    }

    fn submit(&mut self, connection: usize, op: CommandOp) {
        let ioc = self.connections[connection];
        self.engine.submit(self.now, Command { tag: 0.into(), volume: self.volume, ioc, op });
        self.step();
    }

    /// What has been in the device for longest is done after so long.
    fn end_after(&mut self, micros: u64, result: Result<u64, Errno>) {
        self.now = self.now + Nanos::from_micros(micros);
        let read = result.map_or(0, |bytes| usize::try_from(bytes).expect("small"));
        let data = Payload::from_elem(Bytes::from(vec![0; read]), 1);
        let transferred = Transferred::new(result, data);
        self.engine.transfer_done(self.now, self.in_device.remove(0), transferred);
        self.step();
    }

    fn step(&mut self) {
        let Self { engine, now, in_device, .. } = self;
        let mut start = |_, id, _: Transfer| in_device.push(id);
        while engine.step(|| *now, &mut start).is_continue() {}
    }

    /// Who has been charged since the last call: by group, and for what.
    fn charged(&mut self) -> Vec<(usize, Work)> {
        let charged = std::mem::take(&mut *self.charged.lock().expect("nobody has panicked"));
        let index = |group| self.groups.iter().position(|&other| other == group);
        charged.into_iter().map(|(of, work)| (index(of).expect("a group"), work)).collect()
    }
}

fn sync(micros: u64, waiters: u32) -> Work {
    Work::Sync { took: Nanos::from_micros(micros), waiters }
}

/// The first has a sync alone; the three that come meanwhile share the next.
#[test]
fn all_who_waited_for_a_sync_are_charged_their_part_of_it_when_it_ends() {
    let mut rig = Rig::new();
    rig.submit(0, CommandOp::Flush);
    for connection in [1, 0, 1] {
        rig.submit(connection, CommandOp::Flush);
    }
    assert_eq!(rig.charged(), [], "it has not ended");
    rig.end_after(300, Ok(0));
    assert_eq!(rig.charged(), [(0, sync(300, 1))]);
    rig.end_after(900, Ok(0));
    assert_eq!(rig.charged(), [(1, sync(900, 3)), (0, sync(900, 3)), (1, sync(900, 3))]);
}

/// The write itself is a request, and is charged as one.
#[test]
fn write_with_fua_is_charged_for_its_sync() {
    let mut rig = Rig::new();
    let data = Bytes::from_static(&[7; 512]);
    rig.submit(1, CommandOp::Write { offset: 0, data, fua: true });
    rig.end_after(100, Ok(512));
    assert_eq!(rig.charged(), []);
    rig.end_after(400, Ok(0));
    assert_eq!(rig.charged(), [(1, sync(400, 1))]);
}

/// It took the disk's time too. Who waited for the next one had none.
#[test]
fn failed_sync_is_charged_to_those_that_it_ran_for() {
    let mut rig = Rig::new();
    rig.submit(0, CommandOp::Flush);
    rig.submit(1, CommandOp::Flush);
    rig.end_after(500, Err(Errno::IO));
    assert_eq!(rig.charged(), [(0, sync(500, 1))]);
    let outcomes = std::iter::from_fn(|| rig.engine.poll_outcome());
    let errors: Vec<_> = outcomes.map(|outcome| outcome.result.err()).collect();
    assert_eq!(errors, [Some(Errno::IO); 2]);
}
