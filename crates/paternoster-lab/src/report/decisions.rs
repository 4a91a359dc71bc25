//! Every decision of a run, line by line, in the words of `oracle/FORMAT.md`. Tasks are jobs, and a
//! request is called by its job and its number among those of the job that have arrived: `db.17`.

use std::borrow::Cow;
use std::collections::HashMap;

use paternoster::{Event, GroupId, Instant, IocId};
use paternoster_trace::{Completions, completed, line};

use super::names::Names;

/// What is needed to tell of the events of a run.
#[derive(Debug)]
pub(super) struct Decisions {
    requests: Requests,
    completions: Completions,
    /// How many requests of each job have arrived.
    arrived: Vec<u64>,
}

/// A request, or the parts of an I/O that was split.
#[derive(Clone, Debug)]
struct Request {
    name: String,
    /// Parts that have not completed.
    left: u32,
}

/// What jobs and requests are called.
#[derive(Debug)]
struct Requests {
    names: Names,
    /// By the user data of their bios.
    outstanding: HashMap<u64, Request>,
}

impl paternoster_trace::Names for Requests {
    fn request(&self, bio: u64) -> Cow<'_, str> {
        let request = self.outstanding.get(&bio);
        request.map_or("a request that is gone", |request| &request.name).into()
    }

    fn group(&self, group: GroupId) -> Cow<'_, str> {
        self.names.group(group).into()
    }

    fn task(&self, ioc: IocId) -> Cow<'_, str> {
        let job = self.names.by_context.get(&ioc);
        job.map_or("a job that is gone", |&job| &self.names.jobs[job]).into()
    }
}

impl Decisions {
    pub(super) fn new(names: Names) -> Self {
        let arrived = vec![0; names.jobs.len()];
        let requests = Requests { names, outstanding: HashMap::new() };
        Self { requests, completions: Completions::default(), arrived }
    }

    /// Tells of an event. `job_of` says whose the bio of that user data is.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        event: Event,
        job_of: impl Fn(u64) -> usize,
        to: &mut dyn FnMut(&str),
    ) {
        if let Event::Queued { bio, .. } = event {
            self.arrive(bio, job_of(bio));
        }
        if let Some(line) = line(now, event, &self.requests) {
            to(&line);
        }
        for bio in self.completions.follow(event) {
            if let Some(name) = self.leave(bio) {
                to(&completed(now, &name));
            }
        }
    }

    fn arrive(&mut self, bio: u64, job: usize) {
        let number = &mut self.arrived[job];
        let request = self.requests.outstanding.entry(bio).or_insert_with(|| {
            let name = format!("{}.{number}", self.requests.names.jobs[job]);
            *number += 1;
            Request { name, left: 0 }
        });
        request.left += 1;
    }

    /// One part of a request has completed. Returns its name; none of one that has never arrived.
    fn leave(&mut self, bio: u64) -> Option<String> {
        let request = self.requests.outstanding.get_mut(&bio)?;
        request.left -= 1;
        let name = request.name.clone();
        if request.left == 0 {
            self.requests.outstanding.remove(&bio);
        }
        Some(name)
    }
}
