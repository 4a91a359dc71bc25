//! How steps are done.

use paternoster::scheduler::{Scheduler, Work};
use paternoster::{
    AnyScheduler, Completed, DeviceWeights, ElevatorEvent, Event, MergeKind, Recorder, RequestId,
    Submitted, Weight, Weights,
};

use super::Step::*;
use super::expect::equal;
use super::{Io, Outcome, Rig, Step};

impl Rig {
    pub(super) fn step(&mut self, step: &Step) -> Outcome {
        let now = self.now;
        match *step {
            TimerFires => self.elevator.handle_timeout(self.now),
            Advance(span) => self.now = now + span,
            Submit(bio, io) => return own_request(self.submit(bio, io)),
            BackMerge(bio, io, into) => {
                let submitted = self.submit(bio, io);
                return self.merged(submitted, bio, MergeKind::Back, into);
            }
            FrontMerge(bio, io, into) => {
                let submitted = self.submit(bio, io);
                return self.merged(submitted, bio, MergeKind::Front, into);
            }
            TurnAway(bio, io) => match self.submit(bio, io) {
                Submitted::Later(_) => {}
                other => return Err(format!("{other:?}")),
            },
            Retry(bio, io) => return own_request(self.retry(bio, io)),
            Serve(names) => return self.serve(names),
            Complete(bio) => return self.complete(bio),
            Requeue(bio) => {
                let rq = self.request(bio)?;
                self.elevator.requeue(now, rq);
            }
            Cancel(bios) => return self.cancel(bios),
            Expect(expected) => return self.expect(expected),
            _ => self.administrate(step),
        }
        Ok(())
    }

    /// Charges a group for work that was no request.
    pub fn charge(&mut self, group: &str, work: Work) {
        self.elevator.charge(self.now, self.groups[group], work);
    }

    pub(super) fn administrate(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Set(tunable, value) => {
                self.elevator.set_tunable(now, tunable, value).expect("a tunable of the scheduler");
            }
            SetNoMerges(nomerges) => self.elevator.set_nomerges(nomerges),
            SetLimits(limits) => self.elevator.set_limits(limits),
            SetScanDepth(requests) => self.elevator.set_scan_depth(requests),
            SetNrRequests(requests) => self.elevator.set_nr_requests(requests),
            SetDepth(queue_depth) => self.elevator.set_depth(queue_depth),
            SetPriority(task, io_prio) => {
                let io_prio = io_prio.parse().expect("an I/O priority");
                self.elevator.set_io_priority(now, self.tasks[task], io_prio);
            }
            SetWeight(group, weight) => self.administrate(&SetWeights(group, weight, weight)),
            SetWeights(group, weight, leaf) => {
                let [weight, leaf] = [weight, leaf].map(|w| Weight::new(w).expect("a weight"));
                self.elevator.set_weight(now, self.groups[group], Weights { weight, leaf });
            }
            SetDeviceWeights(group, weight, leaf) => {
                let [weight, leaf] =
                    [weight, leaf].map(|w| w.map(|w| Weight::new(w).expect("a weight")));
                let weights = DeviceWeights { weight, leaf };
                self.elevator.set_device_weights(now, self.groups[group], weights);
            }
            Move(task, group) => {
                self.elevator.move_to_group(now, self.tasks[task], self.groups[group]);
            }
            Exit(task) => self.elevator.exit_io_context(now, self.tasks[task]),
            RemoveGroup(group) => self.elevator.remove_group(now, self.groups[group]),
            SetHierarchy(hierarchy) => {
                self.elevator.set_hierarchy(now, hierarchy).expect("it can be chosen");
            }
            SwitchTo(kind) => {
                self.collect_events();
                let scheduler = AnyScheduler::new(kind, Recorder::default());
                let mut old = self.elevator.switch(now, scheduler);
                self.events.extend(old.trace().take());
                self.kinds.push(kind);
            }
            _ => unreachable!("step does the others"),
        }
    }

    pub(super) fn retry(&mut self, name: &str, io: Io) -> Submitted {
        let index = self.bios.iter().position(|bio| bio == name).expect("it was turned away");
        let bio = io.bio(self.tasks[io.task], index as u64);
        let submitted = self.elevator.submit(self.now, bio);
        self.note(bio.user_data, submitted);
        submitted
    }

    /// Keeps which request holds which bio, as the trace says.
    pub(super) fn note(&mut self, bio: u64, submitted: Submitted) {
        if let Submitted::Queued(rq) = submitted {
            self.requests.insert(bio, rq);
        }
        for event in self.collect_events() {
            match event {
                Event::Elevator(ElevatorEvent::Merged { bio, into, .. }) => {
                    self.requests.insert(bio, self.requests[&into]);
                }
                Event::Elevator(ElevatorEvent::Absorbed { absorbed, into, .. }) => {
                    let (absorbed_rq, into) =
                        (self.requests.get(&absorbed).copied(), self.requests[&into]);
                    self.requests.insert(absorbed, into);
                    for rq in self.requests.values_mut().filter(|rq| Some(**rq) == absorbed_rq) {
                        *rq = into;
                    }
                }
                _ => {}
            }
        }
        if let Submitted::Merged { into, .. } = submitted {
            assert_eq!(self.requests[&bio], into, "the trace and the answer agree");
        }
    }

    /// Takes the events since the last call, and keeps them for the test too.
    pub(super) fn collect_events(&mut self) -> Vec<Event> {
        let new = self.elevator.trace().take();
        self.events.extend(&new);
        new.into_iter().map(|(_, event)| event).collect()
    }

    fn merged(
        &mut self,
        submitted: Submitted,
        bio: &str,
        expected: MergeKind,
        into: &str,
    ) -> Outcome {
        match submitted {
            Submitted::Merged { kind, .. } if kind == expected => self.same(bio, into, true),
            other => Err(format!("{other:?}")),
        }
    }

    fn serve(&mut self, names: &[&str]) -> Outcome {
        for (index, name) in names.iter().enumerate() {
            self.expect_dispatched(name).map_err(|instead| format!("at {index}: {instead}"))?;
            self.complete(name)?;
        }
        Ok(())
    }

    pub(super) fn complete(&mut self, bio: &str) -> Outcome {
        let rq = self.request(bio)?;
        self.complete_request(rq);
        Ok(())
    }

    pub(super) fn complete_request(&mut self, rq: RequestId) {
        let Completed { user_data, wake_waiters, .. } = self.elevator.complete(self.now, rq);
        self.done = self.names(&user_data);
        for bio in &user_data {
            self.requests.remove(bio);
        }
        self.waiters_called = wake_waiters;
    }

    fn cancel(&mut self, expected: &[&str]) -> Outcome {
        let cancelled = self.elevator.cancel_queued(self.now);
        let cancelled: Vec<u64> = cancelled.into_iter().flat_map(|bios| bios.user_data).collect();
        for bio in &cancelled {
            self.requests.remove(bio);
        }
        equal(&self.names(&cancelled)[..], expected)
    }
}

fn own_request(submitted: Submitted) -> Outcome {
    match submitted {
        Submitted::Queued(_) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
