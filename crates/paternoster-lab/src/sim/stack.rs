//! What every run in virtual time has below it: a scheduler and a modelled device, with the
//! requests that are in the device; and what happens next.
//!
//! ```text
//!             bios ──▶ ┌────────┐ next_command ──▶ ┌───────┐
//!   the run            │ Driver │                  │ Model │
//!      bios ended ◀─── └────────┘ ◀───────── leave └───────┘
//! ```

use paternoster::scheduler::Scheduler;
use paternoster::{BioFlags, Driver, Instant, Op, Request, RequestId};
use paternoster_model::{self, Chance, Command, Model, op_of_zeroes};
use slab::Slab;

/// Later than anything is due.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// A scheduler over a device.
#[derive(Debug)]
pub(crate) struct Stack<M, S: Scheduler> {
    pub(crate) driver: Driver<S>,
    pub(crate) device: M,
    /// The requests in the device, by the tags of their commands.
    in_device: Slab<RequestId>,
}

/// What happens next. What is due at one time happens in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// The device completes a command, or goes on by itself.
    Device,
    /// The scheduler's timer expires.
    Timer,
    /// Something that the run itself knows of.
    Other,
}

impl<M: Model, S: Scheduler> Stack<M, S> {
    pub(crate) fn new(driver: Driver<S>, device: M) -> Self {
        Self { driver, device, in_device: Slab::new() }
    }

    /// What happens next, and when, if the run itself has something at `other`; nothing where
    /// nothing ever will. What is late happens now.
    pub(crate) fn next(&self, now: Instant, other: Option<Instant>) -> Option<(Instant, Next)> {
        let all = [
            (self.device.poll_timeout(), Next::Device),
            (self.driver.poll_timeout(), Next::Timer),
            (other, Next::Other),
        ];
        let due = all.into_iter().filter_map(|(at, next)| Some((at?.max(now), next)));
        due.filter(|&(at, _)| at < NEVER).min()
    }

    /// The next request that may start, as the command to be given to the device, with its chance.
    pub(crate) fn next_command(
        &mut self,
        now: Instant,
        chance: impl Fn(&Request) -> Chance,
    ) -> Option<Command> {
        let rq = self.driver.dispatch_next(now)?;
        let tag = u32::try_from(self.in_device.insert(rq)).expect("requests are counted in u32");
        let zeroes = op_of_zeroes(&self.device);
        let request = self.driver.elevator().request(rq);
        Some(Command { chance: chance(request), ..command(tag, request, zeroes) })
    }

    /// The request of a command that is in the device.
    pub(crate) fn request(&self, tag: u32) -> RequestId {
        self.in_device[tag as usize]
    }

    /// The request leaves the device.
    pub(crate) fn leave(&mut self, tag: u32) -> RequestId {
        self.in_device.remove(tag as usize)
    }
}

/// The command for a request, without its chance; zeroes are written by that operation.
fn command(tag: u32, request: &Request, zeroes: paternoster_model::Op) -> Command {
    let op = match request.op {
        Op::Read => paternoster_model::Op::Read,
        Op::Write => paternoster_model::Op::Write,
        Op::Discard => paternoster_model::Op::Discard,
        Op::WriteZeroes => zeroes,
        Op::Flush => paternoster_model::Op::Flush,
        other => unreachable!("{other:?}: a model knows all operations of the core"),
    };
    let durable = request.flags.contains(BioFlags::FUA);
    let (sector, sectors) = (request.sector, request.sectors);
    Command { tag, op, durable, sector, sectors, chance: Chance::default() }
}
