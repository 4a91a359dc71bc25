//! The lines of a run whose requests have no names of their own: each is called by its task and its
//! number among those of the task that have arrived, `db.17`.

use std::borrow::Cow;
use std::collections::HashMap;

use paternoster::{ElevatorEvent, Event, GroupId, Instant, IocId, ShareOf};

use crate::about::about;
use crate::completions::Completions;
use crate::line::{completed, line};
use crate::names::{Names, Parties};

/// What a request is called that arrived before the record began, or before a gap in it.
const EARLIER: &str = "earlier";

/// Tells of the events of one elevator, in their order.
#[derive(Clone, Debug)]
pub struct Decisions<P> {
    requests: Requests<P>,
    completions: Completions,
}

/// What groups, tasks and requests are called.
#[derive(Clone, Debug)]
struct Requests<P> {
    parties: P,
    /// By the user data of their bios.
    outstanding: HashMap<u64, Request>,
    /// How many requests of each task have arrived.
    arrived: HashMap<IocId, u64>,
}

/// A request, or the parts of an I/O that was split.
#[derive(Clone, Debug)]
struct Request {
    name: String,
    ioc: IocId,
    /// Parts that have not completed.
    left: u32,
}

impl<P: Parties> Parties for Requests<P> {
    fn group(&self, group: GroupId) -> Cow<'_, str> {
        self.parties.group(group)
    }

    fn task(&self, ioc: IocId) -> Cow<'_, str> {
        self.parties.task(ioc)
    }

    fn tenant(&self, of: ShareOf) -> Option<Cow<'_, str>> {
        self.parties.tenant(of)
    }

    fn wants(&self, tenant: Option<&str>) -> bool {
        self.parties.wants(tenant)
    }
}

impl<P: Parties> Names for Requests<P> {
    fn request(&self, bio: u64) -> Cow<'_, str> {
        self.outstanding.get(&bio).map_or(EARLIER, |request| &request.name).into()
    }

    fn submitter(&self, bio: u64) -> Option<IocId> {
        self.outstanding.get(&bio).map(|request| request.ioc)
    }
}

impl<P: Parties> Decisions<P> {
    /// Nothing has been told yet.
    pub fn new(parties: P) -> Self {
        let requests = Requests { parties, outstanding: HashMap::new(), arrived: HashMap::new() };
        Self { requests, completions: Completions::default() }
    }

    /// The names of groups and tasks, for more of them.
    pub fn parties_mut(&mut self) -> &mut P {
        &mut self.requests.parties
    }

    /// Hands over the lines of an event.
    pub fn tell(&mut self, now: Instant, event: Event, to: &mut dyn FnMut(&str)) {
        if let Event::Elevator(ElevatorEvent::Queued { bio, ioc, .. }) = event {
            self.arrive(bio, ioc);
        }
        if let Some(line) = line(now, event, &self.requests) {
            to(&line);
        }
        for bio in self.completions.follow(event) {
            let whose = about(event, &self.requests);
            let tenant = whose.and_then(|whose| self.requests.tenant(whose));
            if self.requests.wants(tenant.as_deref()) {
                to(&completed(now, &self.requests.request(bio), tenant.as_deref()));
            }
            self.leave(bio);
        }
    }

    /// Some events are missing: what was outstanding is called `earlier` from now on.
    pub fn forget(&mut self) {
        self.requests.outstanding.clear();
        self.completions = Completions::default();
    }

    fn arrive(&mut self, bio: u64, ioc: IocId) {
        let Requests { parties, outstanding, arrived } = &mut self.requests;
        let request = outstanding.entry(bio).or_insert_with(|| {
            let number = arrived.entry(ioc).or_default();
            let name = format!("{}.{number}", parties.task(ioc));
            *number += 1;
            Request { name, ioc, left: 0 }
        });
        request.left += 1;
    }

    /// One part of a request has completed.
    fn leave(&mut self, bio: u64) {
        let Some(request) = self.requests.outstanding.get_mut(&bio) else { return };
        request.left -= 1;
        if request.left == 0 {
            self.requests.outstanding.remove(&bio);
        }
    }
}
