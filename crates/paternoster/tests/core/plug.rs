//! How what was held in a plug enters an elevator: a chain is one request, its bios have a result
//! each, and it waits as a whole where it may not enter.

use paternoster::{
    AnyScheduler, Batch, Bio, BioFlags, Device, Driver, Elevator, ElevatorEvent, Event,
    FlushReason, Instant, IoPrio, IocId, Limits, MergeKind, MergeSite, Nanos, Op, Plug, PlugLimits,
    PlugRules, Recorder, SchedulerKind, Sector, SectorCount, Weight,
};

const NOW: Instant = Instant::START;

struct Scene {
    driver: Driver<AnyScheduler<Recorder>>,
    ioc: IocId,
}

impl Scene {
    fn new(kind: SchedulerKind, nr_requests: Option<u32>) -> Self {
        let scheduler = AnyScheduler::new(kind, Recorder::default());
        let mut elevator = Elevator::new(scheduler, Device::solid_state(1), NOW);
        elevator.set_nr_requests(nr_requests);
        let ioc = elevator.add_io_context(NOW, IoPrio::default(), elevator.groups().root());
        Self { driver: Driver::new(elevator), ioc }
    }

    fn read(&self, start: u64) -> Bio {
        Bio::read(self.ioc, Sector(start), SectorCount(8)).with_user_data(start)
    }

    /// Submits reads by way of a plug.
    fn submit(&mut self, starts: &[u64]) {
        let bios: Vec<_> = starts.iter().map(|&start| self.read(start)).collect();
        self.submit_bios(&bios);
    }

    fn submit_bios(&mut self, bios: &[Bio]) {
        let mut batches = vec![];
        let mut plug = Plug::new(PlugLimits::default(), |(), batch: Batch| batches.push(batch));
        for &bio in bios {
            plug.submit(NOW, (), bio, &PlugRules::default());
        }
        plug.flush(NOW + Nanos::from_micros(3), FlushReason::Wait);
        drop(plug);
        for batch in batches {
            self.driver.submit_batch(NOW, batch);
        }
    }

    /// Serves all that there is: the user data of each request, in the order of completion.
    fn serve(&mut self) -> Vec<Vec<u64>> {
        let (mut now, mut done) = (NOW, vec![]);
        loop {
            let mut started = None;
            self.driver.dispatch(now, |_, rq| started = Some(rq));
            self.driver.check();
            if let Some(rq) = started {
                now = now + Nanos::from_millis(1);
                done.push(self.driver.complete(now, rq).to_vec());
            } else if let Some(at) = self.driver.poll_timeout() {
                now = now.max(at);
                self.driver.handle_timeout(now);
            } else {
                return done;
            }
        }
    }

    fn events(&mut self) -> Vec<Event> {
        self.driver.trace().take().into_iter().map(|(_, event)| event).collect()
    }
}

#[test]
fn chain_is_one_request_under_every_scheduler() {
    for kind in SchedulerKind::ALL {
        let mut scene = Scene::new(kind, None);
        scene.submit(&[100, 108, 92, 500]);
        assert_eq!(scene.driver.elevator().queued(), 2, "{kind}");
        let mut done = scene.serve();
        done.sort();
        assert_eq!(done, [vec![100, 108, 92], vec![500]], "{kind}");
    }
}

#[test]
fn chain_is_counted_and_traced_bio_by_bio() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    scene.submit(&[100, 108, 92, 500]);
    let elevator = scene.driver.elevator();
    let stats = elevator.stats().group(elevator.groups().root());
    let reads = stats.op(Op::Read);
    assert_eq!((reads.bios, reads.merged, reads.bytes), (4, 2, 4 * 4096));

    let events = scene.events();
    assert!(matches!(
        events[0],
        Event::Elevator(ElevatorEvent::Unplugged { depth: 2, reason: FlushReason::Wait, age, .. })
            if age == Nanos::from_micros(3)
    ));
    let mut merges = vec![];
    let mut queued = vec![];
    for event in events {
        match event {
            Event::Elevator(ElevatorEvent::Merged { bio, into, kind, site, .. }) => {
                merges.push((bio, into, kind, site));
            }
            Event::Elevator(ElevatorEvent::Queued { bio, sectors, .. }) => {
                queued.push((bio, sectors.0));
            }
            _ => {}
        }
    }
    assert_eq!(queued, [(100, 8), (108, 8), (92, 8), (500, 8)]);
    assert_eq!(
        merges,
        [
            (108, 100, MergeKind::Back, MergeSite::Plug),
            (92, 100, MergeKind::Front, MergeSite::Plug),
        ]
    );
}

#[test]
fn chain_merges_as_a_whole_into_a_request_that_waits() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    scene.submit(&[100]);
    scene.submit(&[108, 116]);
    scene.submit(&[84, 92]);
    assert_eq!(scene.driver.elevator().queued(), 1);
    assert_eq!(scene.serve(), [[100, 108, 116, 84, 92]]);
}

/// The end that the trace names is the request's, though the last bios merged at the other end of
/// their chain.
#[test]
fn trace_says_at_which_end_of_the_request_a_whole_chain_merged() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    scene.submit(&[100]);
    scene.submit(&[84, 92]);
    scene.submit(&[116, 108]);
    let events = scene.events();
    let merges = events.iter().filter_map(|event| match event {
        Event::Elevator(ElevatorEvent::Merged { bio, into, kind, .. }) => {
            Some((*bio, *into, *kind))
        }
        _ => None,
    });
    let (front, back) = (MergeKind::Front, MergeKind::Back);
    assert_eq!(
        merges.collect::<Vec<_>>(),
        [(84, 100, front), (92, 100, front), (116, 100, back), (108, 100, back)]
    );
}

#[test]
fn each_bio_counts_with_its_own_synchrony_and_its_submitters_group() {
    let mut scene = Scene::new(SchedulerKind::Cfq, None);
    let group = scene.driver.administer(|elevator| {
        let root = elevator.groups().root();
        elevator.add_group(NOW, root, Weight::default())
    });
    let write = |start| Bio::write(scene.ioc, Sector(start), SectorCount(8));
    let bios = [write(0), write(8).with_flags(BioFlags::SYNC)];
    // The queue stays in the root until its next request is made.
    scene.submit_bios(&[write(100).with_flags(BioFlags::SYNC)]);
    let ioc = scene.ioc;
    scene.driver.administer(|elevator| elevator.move_to_group(NOW, ioc, group));
    scene.submit_bios(&bios);
    let of_group = scene.driver.elevator().stats().group(group);
    let of_op = of_group.op(Op::Write);
    assert_eq!((of_op.bios, of_op.bytes), (2, 2 * 4096));
    let synchronous = of_group.synchronous();
    assert_eq!((synchronous.bios, synchronous.bytes), (1, 4096));
}

#[test]
fn requeued_chain_comes_back_whole() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    scene.submit(&[100, 108, 92]);
    let mut started = None;
    scene.driver.dispatch(NOW, |_, rq| started = Some(rq));
    scene.driver.requeue(NOW, started.expect("it is dispatched"));
    assert_eq!(scene.serve(), [[100, 108, 92]]);
}

/// Scenario 5: a task that plugged on one thread goes on, and waits, on another.
#[test]
#[allow(clippy::disallowed_methods, reason = "the submitter is not the core")]
fn plug_moves_between_threads_with_its_submitter() {
    let scene = Scene::new(SchedulerKind::None, None);
    let (sender, receiver) = std::sync::mpsc::channel();
    let send = move |(), batch: Batch| sender.send(batch).expect("somebody listens");
    let mut plug = Plug::new(PlugLimits::default(), send);
    plug.submit(NOW, (), scene.read(0), &PlugRules::default());
    let task = std::thread::spawn(move || plug.flush(NOW, FlushReason::Wait));
    task.join().expect("it ends");
    assert_eq!(receiver.recv().expect("a batch").chains.len(), 1);
}

#[test]
fn chain_that_is_too_long_for_a_request_becomes_one_of_its_own() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    let limits = Limits::default().with_max_sectors(20);
    scene.driver.administer(|elevator| elevator.set_limits(limits));
    scene.submit(&[100]);
    scene.submit(&[108, 116]);
    assert_eq!(scene.serve(), [vec![100], vec![108, 116]]);
}

#[test]
fn chain_that_may_not_enter_waits_as_a_whole_and_is_counted_once() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, Some(1));
    scene.submit(&[100]);
    scene.submit(&[300, 308]);
    scene.submit(&[500, 508]);
    let waiting: Vec<_> = scene.driver.turned_away().map(|bio| bio.user_data).collect();
    assert_eq!(waiting, [300, 308, 500, 508]);
    assert!(scene.driver.turned_away().all(|bio| bio.flags.contains(BioFlags::RETRIED)));
    assert_eq!(scene.serve(), [vec![100], vec![300, 308], vec![500, 508]]);
    let queued = scene.events();
    let queued = queued
        .iter()
        .filter(|event| matches!(event, Event::Elevator(ElevatorEvent::Queued { .. })));
    assert_eq!(queued.count(), 5);
    let elevator = scene.driver.elevator();
    assert_eq!(elevator.stats().group(elevator.groups().root()).op(Op::Read).bios, 5);
}

#[test]
fn cancelled_chain_gives_back_each_of_its_bios() {
    let mut scene = Scene::new(SchedulerKind::Bfq, Some(1));
    scene.submit(&[100, 108]);
    scene.submit(&[300, 308]);
    let mut cancelled = scene.driver.cancel_queued(NOW);
    cancelled.sort_unstable();
    assert_eq!(cancelled, [100, 108, 300, 308]);
}

#[test]
fn flush_enters_alone_behind_the_bios_before_it() {
    let mut scene = Scene::new(SchedulerKind::MqDeadline, None);
    let write =
        |start, name| Bio::write(scene.ioc, Sector(start), SectorCount(8)).with_user_data(name);
    let bios = [write(0, 1), write(8, 2), Bio::flush(scene.ioc).with_user_data(3), write(16, 4)];
    scene.submit_bios(&bios);
    // It bypasses the scheduler; what came before it is one request, what comes after joins that.
    assert_eq!(scene.serve(), [vec![3], vec![1, 2, 4]]);
}
