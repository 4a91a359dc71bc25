//! What is replayed: the requests of each context of a trace, and whose they are.

use paternoster::{BioFlags, Op, Weight};
use paternoster_intake::{Error, Findings, Recorded, Request, Trace};

use super::group_file::{NamedGroup, add_group};
use crate::sim::GroupSetup;

/// A context of a trace: a process, a connection or a volume.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its name in the trace.
    pub name: String,
    /// The index of its group among those of the recording; none is the root.
    pub group: Option<usize>,
    /// Its requests, in the order of their arrival.
    pub requests: Vec<Request>,
}

impl Context {
    /// Whether it would have gone on behind the end of the recording, when the last request of all
    /// arrived: its own last request has no reply, or it has been silent no longer than it was
    /// between two requests.
    pub(super) fn goes_on(&self, end: u64) -> bool {
        let gaps = self.requests.windows(2).map(|pair| pair[1].arrived - pair[0].arrived);
        let (Some(longest), Some(last)) = (gaps.max(), self.requests.last()) else { return false };
        let done = |request: &Request| request.completed.unwrap_or(request.arrived);
        let active = self.requests.iter().map(done).max().unwrap_or(0);
        last.completed.is_none() || end.saturating_sub(active) <= longest
    }
}

/// A trace that can be replayed. It is in memory: some 80 bytes a request.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Who asked.
    pub contexts: Vec<Context>,
    /// The groups, parents before their children.
    pub groups: Vec<GroupSetup>,
    /// The time of the last arrival or completion, in ns since the start.
    pub end: u64,
}

impl Recording {
    /// Reads a trace. Its contexts are of the groups that a recording of the server has for them;
    /// else of the root, until groups are given.
    pub fn read(mut trace: Trace) -> Result<(Self, Findings), Error> {
        let mut recording = Self::default();
        while let Some(request) = trace.next_request()? {
            let contexts = trace.findings().contexts();
            for name in &contexts[recording.contexts.len()..] {
                let (name, requests) = (name.clone(), Vec::new());
                recording.contexts.push(Context { name, group: None, requests });
            }
            let context = &mut recording.contexts[request.context.0 as usize];
            context.requests.push(request);
            let last = request.completed.unwrap_or(0).max(request.arrived);
            recording.end = recording.end.max(last);
        }
        let findings = trace.finish();
        if findings.recorded().is_some() {
            let contexts = recording.contexts.iter_mut();
            contexts.flat_map(|context| &mut context.requests).for_each(as_served);
        }
        if let Some(recorded) = findings.recorded() {
            recording.name_parties(recorded);
        }
        Ok((recording, findings))
    }

    /// Gives contexts the names and groups that the server had for them. What cannot be a group is
    /// of the root.
    fn name_parties(&mut self, recorded: &Recorded) {
        let mut groups = Vec::new();
        let mut paths = vec![None; self.contexts.len()];
        for (context, path) in self.contexts.iter_mut().zip(&mut paths) {
            let number: Option<u32> = context.name.parse().ok();
            let by_number = number.and_then(|number| recorded.parties.get(&number));
            let of_it = || recorded.parties.values().find(|party| party.name == context.name);
            let Some(party) = by_number.or_else(of_it) else { continue };
            context.name.clone_from(&party.name);
            let weight = Weight::new(party.weight).ok();
            if party.group != "/" && add_group(&mut groups, &party.group, weight).is_ok() {
                *path = Some(party.group.as_str());
            }
        }
        self.groups = groups.iter().map(NamedGroup::setup).collect();
        for (context, path) in self.contexts.iter_mut().zip(paths) {
            context.group = path.and_then(|path| self.groups.iter().position(|it| it.path == path));
        }
    }

    /// How many requests there are.
    pub fn requests(&self) -> usize {
        self.contexts.iter().map(|context| context.requests.len()).sum()
    }

    /// The requests that were outstanding at the end of the recording, or whose end it lacks.
    pub fn cut(&self) -> usize {
        let all = self.contexts.iter().flat_map(|context| &context.requests);
        all.filter(|request| request.completed.is_none()).count()
    }

    /// Whether completions were recorded, and so what the requests got: those of half of them.
    pub fn has_completions(&self) -> bool {
        2 * self.cut() <= self.requests()
    }

    /// When the last request arrived.
    pub(super) fn last_arrival(&self) -> u64 {
        let all = self.contexts.iter().filter_map(|context| context.requests.last());
        all.map(|request| request.arrived).max().unwrap_or(0)
    }

    /// The groups that have contexts, by their indices; the root is none, and comes first.
    pub fn parties(&self) -> Vec<Option<usize>> {
        let all = std::iter::once(None).chain((0..self.groups.len()).map(Some));
        all.filter(|party| self.contexts.iter().any(|context| context.group == *party)).collect()
    }

    /// The path of a group.
    pub fn path(&self, group: Option<usize>) -> &str {
        group.map_or("/", |group| &self.groups[group].path)
    }
}

/// Gives a request of the server the flags with which that asks its scheduler: who writes goes on,
/// and what is durable when it completes does not pass the scheduler by.
fn as_served(request: &mut Request) {
    let flags = &mut request.flags;
    match request.op {
        Op::Write if flags.contains(BioFlags::FUA) => *flags = BioFlags::SYNC | BioFlags::NO_MERGE,
        Op::Write => *flags |= BioFlags::SYNC | BioFlags::IDLE,
        Op::WriteZeroes => *flags = BioFlags::SYNC,
        Op::Discard => *flags = BioFlags::empty(),
        _ if request.ahead => *flags |= BioFlags::NO_MERGE,
        _ => {}
    }
}
