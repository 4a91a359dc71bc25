//! The workload of a replay: which request is next, and when.
//!
//! ```text
//!   stream   requests in one order, with replies of their own     ┐ by dependency: a stream for
//!   task     who submits: a context of the trace, an I/O context  ┘ each context, or each group
//! ```
//!
//! What is due is a *turn*, and the next request has it: where two replies come in another order
//! than they did, or one thinks longer, requests keep their order, and nobody waits for another's
//! thought. The task of the next request waits for the next turn, and the other tasks of its stream
//! for a request of theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::{Instant, IoPrio, Nanos, Op, Sector, SectorCount};
use paternoster_intake::Request;

use super::claims::Due;
use super::recording::Recording;
use super::run::End;
use crate::sim::{Action, Ended, Io, Moment, TaskId, TaskSetup, Workload};

const SECTOR: u64 = SectorCount::SECTOR_BYTES as u64;

/// Requests that depend on each other's replies alone.
#[derive(Debug)]
pub(super) struct Stream {
    /// The requests, by the contexts that submit them and their numbers there.
    pub(super) order: Vec<(u32, u32)>,
    pub(super) due: Vec<Due>,
    /// Whether a reply is known by the request that it is of, and not by how many were before.
    pub(super) by_request: bool,
    /// The contexts that submit them.
    pub(super) tasks: Vec<u32>,
    /// Whether it asks by the clock.
    pub(super) is_open: bool,
    /// Whether it would have gone on behind the end of the recording.
    pub(super) goes_on: bool,
}

/// How far a stream has come.
#[derive(Debug)]
struct Progress {
    stream: Stream,
    /// The turns that a reply gives, by its number or by the request that it is of.
    given: Vec<Option<u32>>,
    /// When the turns are that are known. A turn is anybody's: the request that has it is the next.
    turns: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The next request.
    next: usize,
    /// When the requests began.
    begun: Instant,
    answered: usize,
    /// How many replies its requests claim.
    claimed: usize,
    outstanding: usize,
    /// Its requests begin again when all are answered.
    begins_again: bool,
}

impl Progress {
    fn new(stream: Stream) -> Self {
        let (mut given, mut claimed) = (Vec::new(), 0);
        for (turn, due) in (0..).zip(&stream.due) {
            let &Due::Reply { number, of, .. } = due else { continue };
            claimed = claimed.max(number as usize + 1);
            let reply = if stream.by_request { of } else { number } as usize;
            if given.len() <= reply {
                given.resize(reply + 1, None);
            }
            given[reply] = Some(turn);
        }
        let mut progress = Self {
            stream,
            given,
            turns: BinaryHeap::new(),
            next: 0,
            begun: Instant::START,
            answered: 0,
            claimed,
            outstanding: 0,
            begins_again: false,
        };
        progress.follow(0, Instant::START);
        progress
    }

    /// What was before the first request is not repeated.
    fn begin_again(&mut self, now: Instant) {
        self.begins_again = false;
        (self.next, self.answered, self.begun) = (0, 0, now);
        self.turns.clear();
        self.turns.push(Reverse((now, 0)));
    }

    /// Puts a turn on the list that follows one that is now, unless it needs a reply.
    fn follow(&mut self, turn: u32, now: Instant) {
        let at = match self.stream.due.get(turn as usize) {
            Some(Due::Burst { gap }) => now + *gap,
            Some(Due::Clock(at)) => (self.begun + *at).max(now),
            Some(Due::Reply { .. }) | None => return,
        };
        self.turns.push(Reverse((at, turn)));
    }

    /// The request in that place has its reply, which the recording has or lacks.
    fn answer(&mut self, place: usize, is_recorded: bool, now: Instant) {
        self.outstanding -= 1;
        if !is_recorded {
            return;
        }
        let reply = if self.stream.by_request { place } else { self.answered };
        self.answered += 1;
        let Some(&Some(turn)) = self.given.get(reply) else { return };
        if let Due::Reply { think, .. } = self.stream.due[turn as usize] {
            self.turns.push(Reverse((now + think, turn)));
        }
    }

    /// The context of the next request; none if there is none left.
    fn asker(&self) -> Option<u32> {
        self.stream.order.get(self.next).map(|&(context, _)| context)
    }

    /// When the next turn is; none before a reply that it needs.
    fn due(&self) -> Option<Instant> {
        self.turns.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next turn. Returns the place of its request.
    fn take(&mut self, now: Instant) -> usize {
        if let Some(Reverse((_, turn))) = self.turns.pop() {
            self.follow(turn + 1, now);
        }
        self.next += 1;
        self.outstanding += 1;
        self.next - 1
    }
}

/// All streams, and what has become of their requests.
#[derive(Debug)]
pub(super) struct Streams<'a> {
    recording: &'a Recording,
    progress: Vec<Progress>,
    /// The index of the stream of each context.
    of_context: Vec<usize>,
    /// What was submitted by each context; the index there is an I/O's name.
    submitted: Vec<Vec<Request>>,
    /// The place in its stream of each of these.
    places: Vec<Vec<u32>>,
    limits: Limits,
    waiting: usize,
    end: Option<End>,
}

/// When a replay ends at the latest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Streams begin again until this time, instead of ending the replay.
    pub(super) repeated_until: Option<Nanos>,
    /// The replay ends where so many requests wait for their replies.
    pub(super) backlog: usize,
}

impl<'a> Streams<'a> {
    pub(super) fn new(recording: &'a Recording, streams: Vec<Stream>, limits: Limits) -> Self {
        let mut of_context = vec![0; recording.contexts.len()];
        for (index, stream) in streams.iter().enumerate() {
            for &(context, _) in &stream.order {
                of_context[context as usize] = index;
            }
        }
        let progress = streams.into_iter().map(Progress::new);
        Self {
            recording,
            progress: progress.collect(),
            of_context,
            submitted: vec![Vec::new(); recording.contexts.len()],
            places: vec![Vec::new(); recording.contexts.len()],
            limits,
            waiting: 0,
            end: None,
        }
    }

    /// What was submitted by each context, and why no more was.
    pub(super) fn into_submitted(self) -> (Vec<Vec<Request>>, End) {
        (self.submitted, self.end.unwrap_or(End::All))
    }

    /// The stream of that context has come to its end, or begins again.
    fn run_out(&mut self, moment: &mut Moment<'_>, context: u32) -> Action {
        let now = moment.now;
        let progress = &mut self.progress[self.of_context[context as usize]];
        match self.limits.repeated_until {
            // Who has ended does not begin again, nor who takes no time.
            Some(_) if progress.stream.goes_on && now > progress.begun => {
                progress.begins_again = true;
                if progress.outstanding > 0 {
                    return Action::Wait;
                }
                progress.begin_again(now);
                self.next(moment, TaskId(context))
            }
            _ => Action::Exit,
        }
    }

    fn submit(&mut self, moment: &mut Moment<'_>, context: u32) -> Action {
        let now = moment.now;
        let index = self.of_context[context as usize];
        let progress = &mut self.progress[index];
        let place = progress.take(now);
        let (_, number) = progress.stream.order[place];
        let recorded = &self.recording.contexts[context as usize].requests[number as usize];
        let submitted = &mut self.submitted[context as usize];
        let name = submitted.len() as u64;
        let arrived = now.since_start().as_nanos();
        let Request { context: of, op, offset, len, .. } = *recorded;
        let new = Request::new(arrived, of, op, offset, len);
        submitted.push(Request { flags: recorded.flags, ahead: recorded.ahead, ..new });
        self.places[context as usize].push(u32::try_from(place).expect("a stream has fewer"));
        match progress.asker() {
            Some(next) if next != context => moment.wake(TaskId(next)),
            Some(_) => {}
            // All of its tasks end, or wait for its next pass.
            None => progress.stream.tasks.iter().for_each(|&task| moment.wake(TaskId(task))),
        }
        self.waiting += usize::from(progress.stream.is_open);
        if self.waiting > self.limits.backlog {
            let (at, waiting) = (now.since_start(), self.waiting);
            self.end.get_or_insert(End::Backlog { at, waiting });
        }
        Action::Submit(io(recorded, name))
    }
}

/// The sectors of a request; it may begin and end within one. A flush has none.
fn io(request: &Request, name: u64) -> Io {
    let first = request.offset / SECTOR;
    let end = request.offset.saturating_add(request.len).div_ceil(SECTOR);
    let sectors = u32::try_from(end - first).unwrap_or(u32::MAX);
    let (sector, sectors) = if request.op == Op::Flush { (0, 0) } else { (first, sectors) };
    Io {
        name,
        op: request.op,
        flags: request.flags,
        sector: Sector(sector),
        sectors: SectorCount(sectors),
        io_prio: None,
    }
}

impl Workload for Streams<'_> {
    fn tasks(&self) -> Vec<TaskSetup> {
        let tasks = self.recording.contexts.iter().map(|context| TaskSetup {
            group: context.group,
            io_prio: IoPrio::default(),
            start: Instant::START,
        });
        tasks.collect()
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        if let Some(until) = self.limits.repeated_until
            && moment.now >= Instant::START + until
        {
            self.end.get_or_insert(End::Repeated { at: until });
            return Action::Exit;
        }
        let progress = &self.progress[self.of_context[task.index()]];
        match progress.asker() {
            None => self.run_out(moment, task.0),
            Some(context) if context != task.0 => Action::Wait,
            Some(_) => match progress.due() {
                None => Action::Wait,
                Some(due) if due > moment.now => Action::WaitUntil(due),
                Some(_) => self.submit(moment, task.0),
            },
        }
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let context = ended.task.index();
        let name = usize::try_from(ended.io.name).expect("it is an index");
        self.submitted[context][name].completed = Some(moment.now.since_start().as_nanos());
        let place = self.places[context][name] as usize;
        let progress = &mut self.progress[self.of_context[context]];
        let (_, number) = progress.stream.order[place];
        let recorded = &self.recording.contexts[context].requests[number as usize];
        let is_recorded = recorded.completed.is_some();
        progress.answer(place, is_recorded, moment.now);
        self.waiting -= usize::from(progress.stream.is_open);
        // A request would follow that the recording does not have.
        let is_more = !is_recorded || progress.answered > progress.claimed;
        let asks_for_more = progress.asker().is_none() && is_more && progress.stream.goes_on;
        if asks_for_more && self.limits.repeated_until.is_none() {
            self.end.get_or_insert(End::RanOut { context, at: moment.now.since_start() });
        }
        if progress.begins_again && progress.outstanding == 0 {
            progress.begin_again(moment.now);
        }
        if let Some(next) = progress.asker() {
            moment.wake(TaskId(next));
        }
    }

    fn has_ended(&self) -> bool {
        self.end.is_some()
    }
}
