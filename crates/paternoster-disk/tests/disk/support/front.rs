//! A front that plays a script on the real loop of an owner, and the disk behind it.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use paternoster::{AnyScheduler, Device, IocId, NoTrace, SchedulerKind};
use paternoster_disk::{
    Backend, Command, CommandOp, Completion, Front, FrontToken, MonotonicClock, Notice, Outcome,
    Owner, VolumeId, Waker,
};
use rustix::io::Errno;

use super::{TestElevator, elevator_with, merges, new_ring, one_volume};

/// An owner of the kind that is tested.
pub(crate) type TestOwner = Owner<AnyScheduler<NoTrace>>;

/// An owner of a disk of one volume, on a clock that starts now.
pub(crate) fn owner_of(
    elevator: TestElevator,
    backend: Box<dyn Backend>,
    waker: Waker,
) -> (TestOwner, VolumeId) {
    let (engine, volume) = one_volume(elevator, &backend.capabilities());
    let (backends, clock) = ([(volume, backend)], MonotonicClock::start());
    (Owner::new(engine, backends, new_ring(), clock, waker).expect("a ring"), volume)
}

/// What commands answered, in the order in which they were scripted: the bytes read, or an error.
pub(crate) type Answers = Vec<Result<Vec<u8>, Errno>>;

/// Commands that a connection has in flight.
const DEPTH: usize = 8;
/// Connections, half of them of each of two tenants.
const CONNECTIONS: usize = 8;

/// Plays one phase after the other.
struct Script<F> {
    volume: VolumeId,
    connections: Vec<IocId>,
    phases: VecDeque<Vec<CommandOp>>,
    /// What each connection has still to submit in this phase, with the tag.
    waiting: Vec<VecDeque<(u64, CommandOp)>>,
    in_flight: usize,
    answers: Vec<Answers>,
    merges: u64,
    notices: Vec<Notice>,
    before: F,
}

/// Plays the phases against the back end: what each answered, and how many bios merged.
pub(crate) fn play(
    backend: Box<dyn Backend>,
    kind: SchedulerKind,
    phases: Vec<Vec<CommandOp>>,
) -> (Vec<Answers>, u64) {
    play_after(backend, kind, phases, |_| {})
}

/// The same; before each phase, and once at the end, something else is done. It is given what was
/// answered so far.
pub(crate) fn play_after(
    backend: Box<dyn Backend>,
    kind: SchedulerKind,
    phases: Vec<Vec<CommandOp>>,
    before: impl FnMut(&[Answers]),
) -> (Vec<Answers>, u64) {
    let script = run(backend, kind, phases, before);
    (script.answers, script.merges)
}

/// The same; returns what was answered, and what the back end had to say.
pub(crate) fn play_told(
    backend: Box<dyn Backend>,
    phases: Vec<Vec<CommandOp>>,
    before: impl FnMut(&[Answers]),
) -> (Vec<Answers>, Vec<Notice>) {
    let script = run(backend, SchedulerKind::None, phases, before);
    (script.answers, script.notices)
}

fn run<F: FnMut(&[Answers])>(
    backend: Box<dyn Backend>,
    kind: SchedulerKind,
    phases: Vec<Vec<CommandOp>>,
    before: F,
) -> Script<F> {
    let device = Device::solid_state(backend.capabilities().depth.unshared);
    let (elevator, connections) = elevator_with(kind, device, CONNECTIONS / 2);
    let (owner, volume) = owner_of(elevator, backend, Waker::new().expect("an event"));
    let waiting = vec![VecDeque::new(); CONNECTIONS];
    let phases = phases.into();
    let (answers, notices) = (Vec::new(), Vec::new());
    let (in_flight, merges) = (0, 0);
    let mut script = Script {
        volume,
        connections,
        phases,
        waiting,
        in_flight,
        answers,
        merges,
        notices,
        before,
    };
    owner.run(&mut script).expect("the ring works");
    script
}

/// Plays one phase.
pub(crate) fn play_one(backend: Box<dyn Backend>, commands: Vec<CommandOp>) -> Answers {
    let (mut answers, _) = play(backend, SchedulerKind::Cfq, vec![commands]);
    answers.remove(0)
}

/// Plays commands each of which waits for the one before.
pub(crate) fn play_in_turn(backend: Box<dyn Backend>, commands: Vec<CommandOp>) -> Answers {
    let phases = commands.into_iter().map(|command| vec![command]).collect();
    play(backend, SchedulerKind::Cfq, phases).0.into_iter().flatten().collect()
}

impl<F: FnMut(&[Answers])> Script<F> {
    fn begin_phase(&mut self, owner: &mut TestOwner, phase: Vec<CommandOp>) {
        self.answers.push(vec![Err(Errno::INPROGRESS); phase.len()]);
        for (tag, op) in (0u64..).zip(phase) {
            self.waiting[connection_of(tag)].push_back((tag, op));
        }
        for connection in 0..CONNECTIONS {
            for _ in 0..DEPTH {
                self.submit_next(owner, connection);
            }
        }
    }

    fn submit_next(&mut self, owner: &mut TestOwner, connection: usize) {
        let Some((tag, op)) = self.waiting[connection].pop_front() else { return };
        self.in_flight += 1;
        let (volume, ioc) = (self.volume, self.connections[connection]);
        owner.submit(Command { tag: tag.into(), volume, ioc, op });
    }
}

/// Whose command that is: of two neighbours one connection's, then the next one's.
fn connection_of(tag: u64) -> usize {
    usize::try_from(tag / 2).expect("a count") % CONNECTIONS
}

impl<F: FnMut(&[Answers])> Front<AnyScheduler<NoTrace>> for Script<F> {
    fn started(&mut self, _: &mut TestOwner) {}

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring")
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, owner: &mut TestOwner, outcome: Outcome) {
        let tag = usize::try_from(outcome.tag.key).expect("a count");
        let answers = self.answers.last_mut().expect("a phase is in flight");
        assert_eq!(answers[tag], Err(Errno::INPROGRESS), "a command is answered once");
        answers[tag] = outcome.result.map(|payload| payload.concat());
        self.in_flight -= 1;
        self.submit_next(owner, connection_of(outcome.tag.key));
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        self.notices.extend(owner.take_notices().into_iter().map(|(_, notice)| notice));
        if self.in_flight > 0 {
            return ControlFlow::Continue(());
        }
        (self.before)(&self.answers);
        let Some(phase) = self.phases.pop_front() else {
            self.merges = merges(owner.engine().elevator());
            assert!(owner.engine().is_idle());
            return ControlFlow::Break(());
        };
        self.begin_phase(owner, phase);
        ControlFlow::Continue(())
    }
}
