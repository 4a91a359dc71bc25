//! What schedulers tell of their queues.

mod rig;

use paternoster::{
    BudgetDump, Device, IoPrio, QueueDump, QueueName, SchedulerKind, SectorCount, SliceDump, Ticks,
    TurnDump, Workload,
};
use rig::*;

/// A reader of a group's, which has two requests waiting and one in the device, and a writer at the
/// root.
fn reader_and_writer(rig: Rig) -> Rig {
    let mut rig = rig
        .without_merging()
        .group("/g", 300)
        .task("reader", "be/4", "/g")
        .task("writer", "be/6", ROOT);
    rig.run(&[
        Submit("r0", read(0..8).by("reader")),
        Submit("r1", read(8..16).by("reader")),
        Submit("r2", read(16..24).by("reader")),
        Expect(dispatched("r0")),
        Submit("w0", write(9000..9008).by("writer")),
    ]);
    rig
}

fn two_queues(rig: &Rig) -> [QueueDump; 2] {
    rig.queues().try_into().expect("two queues")
}

fn budget(queue: &QueueDump) -> BudgetDump {
    match queue.turn {
        TurnDump::Budget(budget) => budget,
        turn => panic!("{turn:?}"),
    }
}

fn slice(queue: &QueueDump) -> SliceDump {
    match queue.turn {
        TurnDump::Slice(slice) => slice,
        turn => panic!("{turn:?}"),
    }
}

/// What both schedulers say alike.
fn check_common(rig: &Rig) -> [QueueDump; 2] {
    let queues = two_queues(rig);
    let [reader, writer] = &queues;
    assert_eq!(reader.name, QueueName { ioc: rig.task_id("reader"), sync: true });
    assert_eq!((reader.group, reader.io_prio), (rig.group_id("/g"), IoPrio::default()));
    assert_eq!((reader.in_service, reader.busy, reader.waited_for), (true, true, false));
    assert_eq!((reader.queued, reader.in_flight), (2, 1));
    assert_eq!(writer.name, QueueName { ioc: rig.task_id("writer"), sync: false });
    assert_eq!(writer.group, rig.group_id(ROOT));
    assert_eq!(writer.io_prio.to_string(), "be/6");
    assert_eq!((writer.in_service, writer.busy), (false, true));
    assert_eq!((writer.queued, writer.in_flight), (1, 0));
    assert!(!reader.shared && !reader.seeky);
    queues
}

#[test]
fn bfq_tells_budget_weight_and_raising_of_each_queue() {
    let mut rig = reader_and_writer(Rig::new(SchedulerKind::Bfq).set("low_latency", 0));
    let [reader, writer] = check_common(&rig);
    let told = budget(&reader);
    assert_eq!((told.weight, told.service), (40, SectorCount(8)));
    assert!(told.budget >= told.service && told.max_budget > SectorCount(0));
    assert_eq!((told.waker, told.think_time, told.injection_base), (None, None, None));
    assert!(told.thinks_briefly && !told.soft_rt && !told.in_large_burst);
    assert_eq!((budget(&writer).weight, budget(&writer).raising), (20, 1));

    rig.run(&[Complete("r0"), Serve(&["r1", "r2"])]);
    let [reader, _] = two_queues(&rig);
    assert!(reader.waited_for, "{reader:?}");
    assert_eq!(budget(&reader).service, SectorCount(24));
    assert_eq!(rig.number("busy_queues"), Some(2));
}

/// What somebody begins to use is raised thirtyfold; the weight follows as it is scheduled.
#[test]
fn bfq_tells_by_how_much_and_since_when_a_queue_is_raised() {
    let mut rig = Rig::new(SchedulerKind::Bfq).without_merging();
    rig.run(&[Advance(ms(5000)), Submit("a", read(0..8)), Expect(dispatched("a"))]);
    let [queue]: [QueueDump; 1] = rig.queues().try_into().expect("one queue");
    let told = budget(&queue);
    assert_eq!((told.weight, told.raising, told.soft_rt), (1200, 30, false));
    assert_eq!(told.raised_since, Device::disk(1).hz.jiffies(rig.now));
    assert!(told.raised_for >= Ticks::new(3000), "{told:?}");
    assert_eq!(rig.number("raised_busy_queues"), Some(1));
}

#[test]
fn cfq_tells_slice_and_window_of_each_queue() {
    let mut rig = reader_and_writer(Rig::cfq());
    let [reader, writer] = check_common(&rig);
    let told = slice(&reader);
    assert_eq!((told.workload, told.idle_window), (Workload::Sync, true));
    assert_eq!((told.slice, told.sent), (None, 1), "a slice begins with the first completion");
    assert_eq!(slice(&writer).workload, Workload::Async);

    rig.run(&[Complete("r0"), Serve(&["r1", "r2"])]);
    let [reader, _] = two_queues(&rig);
    assert!(reader.waited_for, "{reader:?}");
    assert_eq!(slice(&reader).sent, 3);
    assert!(slice(&reader).slice.is_some());
}

#[test]
fn schedulers_without_queues_tell_none() {
    for kind in [SchedulerKind::None, SchedulerKind::MqDeadline] {
        let mut rig = Rig::new(kind);
        rig.run(&[Submit("a", read(0..8))]);
        assert_eq!(rig.queues(), []);
    }
}
