//! What a simulated workload is asked: what each of its tasks does next.
//!
//! ```text
//!   next ──▶ Submit     asked again at once
//!            SubmitAll  the same; what it submits travels as one
//!            Sleep      asked again at that time
//!            Work       asked again when its core has done that
//!            Wait       asked again when an I/O of the task completes, or another task wakes it
//!            WaitFor    asked again when so many have, or another task wakes it
//!            WaitUntil  as Wait, and asked again at that time
//!            Poll       as Wait, and awake
//!            Reconnect  asked again at once, with an I/O context of its own
//!            Exit       never asked again
//! ```

use paternoster::{BioFlags, Instant, IoPrio, Nanos, Op, Sector, SectorCount};

/// A task of a workload: something that submits I/O one after the other, as a thread does. Its
/// number counts from 0 in the order of [`Workload::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The index of what is kept of it.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSetup {
    /// The index of its group among the groups of the [`Setup`](super::Setup); the root has none.
    pub group: Option<usize>,
    /// At what priority it submits.
    pub io_prio: IoPrio,
    /// When it is first asked.
    pub start: Instant,
}

/// An I/O that a task submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The workload's own name for it.
    pub name: u64,
    /// Its operation.
    pub op: Op,
    /// Its flags.
    pub flags: BioFlags,
    /// Its first sector.
    pub sector: Sector,
    /// Its length; 0 for a flush. One that is longer than the device takes is split.
    pub sectors: SectorCount,
    /// A priority of its own, instead of its task's.
    pub io_prio: Option<IoPrio>,
}

/// An I/O that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The task that submitted it.
    pub task: TaskId,
    /// What it was.
    pub io: Io,
    /// When its task submitted it.
    pub submitted: Instant,
    /// When it entered the scheduler.
    pub entered: Instant,
    /// When its last part completed.
    pub completed: Instant,
    /// How long cores were busy for it, with its task's wake-up.
    pub cpu: Nanos,
}

/// What a task does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It submits an I/O.
    Submit(Io),
    /// It submits these with one call, through a plug: neighbours merge, and all enter the
    /// scheduler before anything is dispatched.
    SubmitAll(Vec<Io>),
    /// It sleeps until then, whatever completes meanwhile.
    Sleep(Instant),
    /// Its core works for it so long, whatever completes meanwhile; where I/O costs nothing, each
    /// task has a core of its own for that.
    Work(Nanos),
    /// It waits for an I/O of its own, or for a wake-up.
    Wait,
    /// It waits until so many of its I/Os have completed, or for a wake-up.
    WaitFor(u32),
    /// It waits until then, for an I/O of its own, or for a wake-up.
    WaitUntil(Instant),
    /// It looks again and again whether an I/O of its own has completed: nobody has to wake it.
    /// What else its core has to do is not delayed by that.
    Poll,
    /// Its I/O context ends then, and it goes on with a new one.
    Reconnect(Instant),
    /// It ends, and its I/O context with the last I/O that it has outstanding.
    Exit,
}

/// What a workload can see and do while it is asked.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The time.
    pub now: Instant,
    pub(super) woken: &'a mut Vec<TaskId>,
}

impl<'a> Moment<'a> {
    /// A moment, and where it notes the tasks that are woken in it.
    pub(crate) fn new(now: Instant, woken: &'a mut Vec<TaskId>) -> Self {
        Self { now, woken }
    }

    /// Has a task asked again that waits. For one that does not wait it means nothing.
    pub fn wake(&mut self, task: TaskId) {
        self.woken.push(task);
    }
}

/// The tasks of a simulation, and what each does next.
pub trait Workload {
    /// The tasks as they begin.
    fn tasks(&self) -> Vec<TaskSetup>;

    /// The task whose I/O context it submits with, as the threads of a process may share one:
    /// itself, or one before it.
    fn context_of(&self, task: TaskId) -> TaskId {
        task
    }

    /// What the task does next.
    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action;

    /// An I/O has completed. Its task is asked next if it waits.
    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended);

    /// Whether the simulation ends here, whatever is outstanding. If not, it ends when all tasks
    /// have, and nothing is.
    fn has_ended(&self) -> bool {
        false
    }
}
