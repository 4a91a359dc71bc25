//! Follows what a disk's scheduler decides: reads its recording again and again, and puts it into
//! words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use paternoster::{GroupId, IocId, ShareOf, TimedEvents};
use paternoster_trace::sidecar::Party;
use paternoster_trace::{Decisions, Parties, dropped};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::config::is_in;
use crate::control::PATIENCE;
use crate::messages::OwnerHandle;
use crate::recording::{Paths, Recorded};

/// The time between two readings.
const INTERVAL: Duration = Duration::from_millis(50);

/// How nice who writes of a disk is to who serves its clients.
const NICE: i32 = 15;

/// Makes this thread nice, as one that writes of a disk is.
pub(crate) fn be_nice() {
    // Of this thread alone, in Linux. Where it is refused, it writes all the same.
    let _ = setpriority_process(Some(gettid()), NICE);
}

/// The lines of a disk's decisions: those of an interval at a time, for as long as its owner runs.
#[derive(Debug)]
pub(crate) struct Following {
    reader: Reader,
    decisions: Decisions<Called>,
    /// Room for the events of the next interval.
    room: TimedEvents,
    /// Where the owner has not answered yet.
    pending: Option<mpsc::Receiver<Recorded>>,
}

/// Whoever reads the recording, which ends when this is dropped.
#[derive(Debug)]
struct Reader {
    owner: OwnerHandle,
    /// The owner sees by it that the reader is there.
    presence: Option<Arc<()>>,
}

/// What groups and clients are called, and whose lines are wanted.
#[derive(Debug)]
struct Called {
    /// Those of this group and of groups below it, beside those of none; all where it is none.
    wanted: Option<String>,
    paths: Paths,
    /// Those that are gone too: what they asked for may be told of later.
    clients: HashMap<IocId, Party>,
}

impl Parties for Called {
    fn group(&self, group: GroupId) -> Cow<'_, str> {
        self.paths.get(&group).map_or("gone", String::as_str).into()
    }

    fn task(&self, ioc: IocId) -> Cow<'_, str> {
        self.clients.get(&ioc).map_or("gone", |client| &client.name).into()
    }

    fn tenant(&self, of: ShareOf) -> Option<Cow<'_, str>> {
        let path = match of {
            ShareOf::Context(ioc) => self.clients.get(&ioc).map(|client| &client.group),
            ShareOf::Group(group) | ShareOf::OwnRequests(group) => self.paths.get(&group),
            _ => None,
        };
        path.map(|path| path.as_str().into())
    }

    fn wants(&self, tenant: Option<&str>) -> bool {
        match (&self.wanted, tenant) {
            (Some(wanted), Some(tenant)) => is_in(tenant, wanted),
            _ => true,
        }
    }
}

impl Following {
    /// Has the owner record from now on; `wanted` is the group whose lines are wanted, if not all
    /// are. Returns nothing where somebody else reads already, and an
    /// error where the owner does not answer.
    pub(crate) fn begin(
        owner: OwnerHandle,
        wanted: Option<String>,
    ) -> Result<Option<Self>, RecvTimeoutError> {
        let presence = Arc::new(());
        let answer = owner.begin_recording(Arc::downgrade(&presence));
        // First, so that a recording that begins late ends too.
        let reader = Reader { owner, presence: Some(presence) };
        let begun = answer.recv_timeout(PATIENCE)?;
        Ok(begun.map(|paths| {
            let decisions = Decisions::new(Called { wanted, paths, clients: HashMap::new() });
            Self { reader, decisions, room: TimedEvents::new(), pending: None }
        }))
    }

    fn tell(&mut self, recorded: &Recorded) -> String {
        let mut text = String::new();
        let mut push = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        let called = self.decisions.parties_mut();
        called.clients.extend(recorded.clients.iter().cloned());
        called.paths.extend(recorded.groups.iter().map(|(group, path)| (*group, path.clone())));
        if let Some(&(at, _)) = recorded.events.front().filter(|_| recorded.lost > 0) {
            self.decisions.forget();
            push(&dropped(at, recorded.lost));
        }
        for &(at, event) in &recorded.events {
            self.decisions.tell(at, event, &mut push);
        }
        text
    }
}

impl Iterator for Following {
    type Item = String;

    /// Waits for an interval; longer for an owner that does not answer, and then there is nothing.
    fn next(&mut self) -> Option<String> {
        let answer = self.pending.take().unwrap_or_else(|| {
            thread::sleep(INTERVAL);
            let room = std::mem::take(&mut self.room);
            self.reader.owner.take_recorded(room)
        });
        let recorded = match answer.recv_timeout(PATIENCE) {
            Ok(recorded) => recorded,
            Err(RecvTimeoutError::Timeout) => {
                self.pending = Some(answer);
                return Some(String::new());
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let text = self.tell(&recorded);
        self.room = recorded.events;
        Some(text)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.presence = None;
        self.owner.end_recording();
    }
}
