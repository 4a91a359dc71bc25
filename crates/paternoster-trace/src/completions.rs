//! Which bios complete with a request: those that merged into it. Events name the first one alone.
//! Parts of one I/O have one name: what merged into one of them completes with the first that does.

use std::collections::HashMap;

use paternoster::{ElevatorEvent, Event};

/// The bios that have merged into others and not completed.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    /// By the user data of the request's first bio, in the order in which they merged.
    merged: HashMap<u64, Vec<u64>>,
}

impl Completions {
    /// Follows an event. Returns the user data of the bios that complete with it, in the order of
    /// lines: the request's own, then those merged into it, each followed by its own.
    pub fn follow(&mut self, event: Event) -> Vec<u64> {
        match event {
            Event::Elevator(ElevatorEvent::Merged { bio, into, .. }) => self.add(bio, into),
            Event::Elevator(ElevatorEvent::Absorbed { absorbed, into, .. }) => {
                self.add(absorbed, into);
            }
            Event::Elevator(ElevatorEvent::Completed { rq, .. }) => {
                let mut done = vec![];
                self.take(rq, &mut done);
                return done;
            }
            _ => {}
        }
        vec![]
    }

    fn add(&mut self, bio: u64, into: u64) {
        // Parts of one I/O have one name.
        if bio != into {
            self.merged.entry(into).or_default().push(bio);
        }
    }

    fn take(&mut self, rq: u64, done: &mut Vec<u64>) {
        done.push(rq);
        for merged in self.merged.remove(&rq).unwrap_or_default() {
            self.take(merged, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use paternoster::{
        AnyScheduler, Bio, Device, Elevator, Instant, IoPrio, Recorder, SchedulerKind, Sector,
        SectorCount,
    };

    use super::*;

    /// 1 and 3 are made requests, 2 merges into 1, which then absorbs 3.
    #[test]
    fn those_that_merged_complete_with_the_request() {
        let now = Instant::START;
        let scheduler = AnyScheduler::new(SchedulerKind::Bfq, Recorder::default());
        let mut elevator = Elevator::new(scheduler, Device::solid_state(1), now);
        let root = elevator.groups().root();
        let ioc = elevator.add_io_context(now, IoPrio::default(), root);
        for (name, sector) in [(1, 0), (3, 16), (2, 8)] {
            let bio = Bio::read(ioc, Sector(sector), SectorCount(8)).with_user_data(name);
            let _ = elevator.submit(now, bio);
        }
        let rq = elevator.dispatch(now).expect("there is one");
        let _ = elevator.complete(now, rq);
        let mut completions = Completions::default();
        let events = elevator.trace().take();
        let done: Vec<_> =
            events.into_iter().flat_map(|(_, event)| completions.follow(event)).collect();
        assert_eq!(done.first(), Some(&1));
        assert_eq!(done.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3]));
    }
}
