//! What schedulers report of their queues.

use crate::rig::*;
use paternoster::scheduler::{BudgetDump, QueueDump, ServiceDump, SliceDump};
use paternoster::{Device, IoPrio, QueueName, SchedulerKind, SectorCount, Ticks, Workload};

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
    match queue.service {
        ServiceDump::Budget(budget) => budget,
        other => panic!("{other:?}"),
    }
}

fn slice(queue: &QueueDump) -> SliceDump {
    match queue.service {
        ServiceDump::Slice(slice) => slice,
        other => panic!("{other:?}"),
    }
}

/// What both schedulers say alike.
fn check_common(rig: &Rig) -> [QueueDump; 2] {
    let queues = two_queues(rig);
    let [reader, writer] = &queues;
    assert_eq!(reader.name, QueueName { ioc: rig.task_id("reader"), sync: true });
    assert_eq!((reader.group, reader.io_prio), (rig.group_id("/g"), IoPrio::default()));
    assert_eq!((reader.in_service, reader.busy, reader.idling), (true, true, false));
    assert_eq!((reader.queued, reader.in_flight), (2, 1));
    assert_eq!(writer.name, QueueName { ioc: rig.task_id("writer"), sync: false });
    assert_eq!(writer.group, rig.group_id(ROOT));
    assert_eq!(writer.io_prio.to_string(), "be/6");
    assert_eq!((writer.in_service, writer.busy), (false, true));
    assert_eq!((writer.queued, writer.in_flight), (1, 0));
    assert!(!reader.shared && !reader.seeky);
    queues
}

/// A new queue is granted two thirds of 16384 sectors, more than its first request has.
#[test]
fn bfq_reports_budget_weight_and_raising_of_each_queue() {
    let mut rig = reader_and_writer(Rig::new(SchedulerKind::Bfq).set("low_latency", 0));
    let [reader, writer] = check_common(&rig);
    let emitted = budget(&reader);
    assert_eq!((emitted.weight, emitted.service), (40, SectorCount(8)));
    assert_eq!((emitted.budget, emitted.max_budget), (SectorCount(10_922), SectorCount(10_922)));
    assert_eq!((emitted.raising, emitted.injection_limit), (1, 0));
    assert_eq!((emitted.waker, emitted.think_time, emitted.injection_base), (None, None, None));
    assert!(emitted.short_think_time && !emitted.soft_rt && !emitted.in_large_burst);
    assert_eq!((budget(&writer).weight, budget(&writer).raising), (20, 1));

    rig.run(&[Complete("r0"), Serve(&["r1", "r2"])]);
    let [reader, _] = two_queues(&rig);
    assert!(reader.idling, "{reader:?}");
    assert_eq!(budget(&reader).service, SectorCount(24));
    assert_eq!(rig.number("busy_queues"), Some(2));
}

/// What somebody begins to use is raised thirtyfold; the weight follows as it is scheduled. The
/// reference disk takes 7000 ms at 14000, and this one is taken for two thirds as fast: 9333.
#[test]
fn bfq_reports_by_how_much_and_since_when_a_queue_is_raised() {
    let mut rig = Rig::new(SchedulerKind::Bfq).without_merging();
    rig.run(&[Advance(ms(5000)), Submit("a", read(0..8)), Expect(dispatched("a"))]);
    let [queue]: [QueueDump; 1] = rig.queues().try_into().expect("one queue");
    let emitted = budget(&queue);
    assert_eq!((emitted.weight, emitted.raising, emitted.soft_rt), (1200, 30, false));
    assert_eq!(emitted.raised_since, Device::disk(1).hz.jiffies(rig.now));
    assert_eq!(emitted.raised_for, Ticks::new(14_000 * 7000 / 9333));
    assert_eq!(rig.number("raised_busy_queues"), Some(1));
}

/// The only sync queue of a group that has three quarters of 300 ms gets its 100 ms.
#[test]
fn cfq_reports_slice_and_window_of_each_queue() {
    let mut rig = reader_and_writer(Rig::cfq());
    let [reader, writer] = check_common(&rig);
    let emitted = slice(&reader);
    assert_eq!((emitted.workload, emitted.idle_window), (Workload::Sync, true));
    assert_eq!(
        (emitted.slice, emitted.dispatched),
        (None, 1),
        "a slice begins with the first completion"
    );
    assert_eq!(slice(&writer).workload, Workload::Async);

    rig.run(&[Complete("r0"), Serve(&["r1", "r2"])]);
    let [reader, _] = two_queues(&rig);
    assert!(reader.idling, "{reader:?}");
    assert_eq!(slice(&reader).dispatched, 3);
    assert_eq!(slice(&reader).slice, Some(ms(100)));
}

#[test]
fn schedulers_without_queues_report_none() {
    for kind in [SchedulerKind::None, SchedulerKind::MqDeadline, SchedulerKind::Kyber] {
        let mut rig = Rig::new(kind);
        rig.run(&[Submit("a", read(0..8))]);
        assert_eq!(rig.queues(), []);
    }
}
