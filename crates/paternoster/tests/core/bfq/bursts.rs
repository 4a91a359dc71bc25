//! Bursts: queues that come to life together are not raised.

use crate::bfq::{FAR, disk, fast};
use crate::rig::*;

const TASKS: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];

fn with_tasks(rig: Rig) -> Rig {
    TASKS.iter().fold(rig, |rig, task| rig.task(task, "be/4", ROOT))
}

fn read_of(n: usize) -> Io {
    let start = n as u64 * FAR;
    read(start..start + 8).by(TASKS[n])
}

/// Each exits before the next begins. None is merged, since the queue of a task that exits is no
/// merge candidate. And that they are gone does not make the burst smaller, as in Linux.
#[test]
fn eighth_of_a_series_of_short_processes_is_not_raised() {
    let mut rig = with_tasks(fast(1));
    for (n, task) in TASKS.into_iter().enumerate() {
        let emitted =
            if n < 7 { ", budget 1024, weight 1200" } else { ", budget 10922, weight 40" };
        let emitted: &'static str = format!("in service {task}{emitted}").leak();
        rig.run(&[
            Submit(task, read_of(n)),
            Expect(NotEmitted("merged")),
            Expect(if n == 7 { Emitted("large burst") } else { NotEmitted("large burst") }),
            Expect(dispatched(task)),
            Expect(Emitted(emitted)),
            Complete(task),
            Exit(task),
            Advance(ms(1)),
        ]);
    }
}

/// The eighth makes the burst large. The seven before it are raised, and each is until a request
/// of it is dispatched.
#[test]
fn queues_of_a_large_burst_are_raised_until_they_are_next_served() {
    let mut rig = with_tasks(disk(0));
    for (n, task) in TASKS.into_iter().enumerate() {
        let emitted: &'static str = format!("raised {task}: 30").leak();
        rig.run(&[
            Submit(task, read_of(n)),
            Expect(if n == 7 { Emitted("large burst") } else { NotEmitted("large burst") }),
            Expect(if n < 7 { Emitted(emitted) } else { NotEmitted(emitted) }),
            Advance(ms(1)),
        ]);
    }
    rig.run(&[SetDepth(1), Expect(NotEmitted("raised"))]);
    let mut served = vec![];
    while let Some(task) = rig.serve_up_to(1).pop() {
        let ended = format!("raised {task}: 1, for 0 ms");
        let emitted: Vec<_> = rig.events().iter().filter_map(|event| rig.line_of(event)).collect();
        let number: usize = task.parse().expect("a number");
        assert_eq!(emitted.contains(&ended), number <= 7, "{task}: {emitted:?}");
        served.push(task);
        if rig.elevator.queued() > 0 {
            // The device may idle for the queue that was served.
            rig.run(&[Advance(ms(20)), TimerFires]);
        }
    }
    assert_eq!(served.len(), 10);
}

/// From the queue before it.
#[test]
fn burst_goes_on_for_queues_within_180_ms() {
    for (gap, large) in [(180, true), (181, false)] {
        let mut rig = with_tasks(disk(0));
        for (n, task) in TASKS.into_iter().take(8).enumerate() {
            rig.run(&[Submit(task, read_of(n))]);
            let gap = if n == 6 { gap } else { 1 };
            rig.run(&[Advance(ms(gap))]);
        }
        rig.run(&[Expect(if large { Emitted("large burst") } else { NotEmitted("large burst") })]);
    }
}

/// Of another group, they are another burst.
#[test]
fn burst_is_of_one_group() {
    let mut rig = with_tasks(disk(0)).group("/g", 100).task("other", "be/4", "/g");
    for (n, task) in TASKS.into_iter().enumerate() {
        if n == 4 {
            rig.run(&[Submit("other", read(0..8).by("other"))]);
        }
        rig.run(&[Submit(task, read_of(n))]);
    }
    rig.run(&[Expect(NotEmitted("large burst"))]);
}

/// More than 10 s after its service ended. Before that, a queue is raised no more, however long it
/// was idle.
#[test]
fn queue_outlives_its_burst_by_being_idle_for_10_s() {
    // The last one exits from its service, which ends at once, at 10 ms; the first at 32 ms.
    for (idle, raised) in [(10_000, false), (10_001, true)] {
        let mut rig = with_tasks(fast(1));
        for (n, task) in TASKS.into_iter().take(9).enumerate() {
            rig.run(&[Submit(task, read_of(n)), Expect(dispatched(task)), Complete(task)]);
            if n < 8 {
                rig.run(&[Exit(task)]);
            }
        }
        rig.run(&[
            Expect(Emitted("idles 9: 8 ms")),
            Advance(ms(8)),
            TimerFires,
            Expect(Emitted("expired 9: TooIdle")),
            Advance(ms(idle)),
            Submit("9", read_of(8)),
            // The burst was read before it is forgotten: only the next time it is raised.
            Expect(NotEmitted("raised")),
            Serve(&["9"]),
            Advance(ms(8)),
            TimerFires,
            Expect(Emitted("expired 9: TooIdle")),
            Advance(ms(2001)),
            Submit("9", read_of(8)),
            Expect(if raised { Emitted("raised 9: 30") } else { NotEmitted("raised") }),
        ]);
    }
}
