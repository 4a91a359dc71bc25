//! How what a step expects is compared with what is.

use paternoster::Instant;

use super::{Expected, Outcome, Rig};

impl Rig {
    pub(super) fn expect(&mut self, expected: Expected) -> Outcome {
        match expected {
            Expected::Dispatched(bio) => self.expect_dispatched(bio),
            Expected::Nothing => match self.dispatch() {
                None => Ok(()),
                Some(name) => Err(format!("{name} is dispatched")),
            },
            Expected::Done(bios) => equal(&self.done[..], bios),
            Expected::WaitersCalled(called) => equal(&self.waiters_called, &called),
            Expected::Together(a, b) => self.same(a, b, true),
            Expected::Apart(a, b) => self.same(a, b, false),
            Expected::Sectors(bio, start, end) => {
                let rq = self.elevator.request(self.request(bio)?);
                equal(&(rq.sector.0, rq.end().0), &(start, end))
            }
            Expected::Deadline(bio, deadline) => {
                let rq = self.elevator.request(self.request(bio)?);
                equal(&rq.deadline.since_start(), &deadline)
            }
            Expected::Timeout(at) => {
                equal(&self.elevator.poll_timeout().map(Instant::since_start), &at)
            }
            Expected::Number(name, value) => equal(&self.number(name), &Some(value)),
            Expected::Waiting(requests) => equal(&self.elevator.queued(), &requests),
            Expected::Emitted(line) => self.expect_emitted(line),
            Expected::NotEmitted(line) => self.expect_not_emitted(line),
        }
    }

    pub(super) fn expect_dispatched(&mut self, bio: &str) -> Outcome {
        let expected = self.request(bio)?;
        match self.elevator.dispatch(self.now) {
            Some(rq) if rq == expected => Ok(()),
            Some(rq) => {
                Err(format!("{:?} instead", self.names(self.elevator.request(rq).user_data())))
            }
            None => Err(format!("nothing instead of {bio}")),
        }
    }

    pub(super) fn same(&self, a: &str, b: &str, wanted: bool) -> Outcome {
        let same = self.request(a)? == self.request(b)?;
        if same == wanted {
            return Ok(());
        }
        Err(format!("they are {}", if same { "one request" } else { "different requests" }))
    }
}

pub(super) fn equal<A, B>(found: &A, expected: &B) -> Outcome
where
    A: ?Sized + PartialEq<B> + std::fmt::Debug,
    B: ?Sized + std::fmt::Debug,
{
    if found == expected { Ok(()) } else { Err(format!("{found:?}, not {expected:?}")) }
}
