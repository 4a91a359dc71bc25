//! The moments that an owner gives to what comes.

use std::ops::ControlFlow;
use std::time::Duration;

use paternoster::{AnyScheduler, Device, Instant, Nanos, NoTrace, SchedulerKind};
use paternoster_disk::{Completion, Front, FrontToken, MemoryBackend, Outcome, Token};

use crate::owner::{stop_when, submit, waker};
use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, read, within_a_minute};

/// Notes the moments at which it was called in the round that brought it a completion.
#[derive(Default)]
struct Moments {
    taken_in: Vec<Instant>,
    afterwards: Option<Instant>,
}

impl Front<AnyScheduler<NoTrace>> for Moments {
    fn started(&mut self, owner: &mut TestOwner) {
        for key in 0..2 {
            owner.ring().nop(Token::Front(FrontToken { key, operation: 0 }));
        }
    }

    fn ring_completed(&mut self, owner: &mut TestOwner, _: Completion<FrontToken>) {
        self.taken_in.push(owner.now());
        std::thread::sleep(Duration::from_millis(1));
    }

    fn take_in(&mut self, owner: &mut TestOwner) {
        if !self.taken_in.is_empty() {
            self.taken_in.push(owner.now());
            submit(owner, 0, read(0, 512));
        }
    }

    fn command_done(&mut self, owner: &mut TestOwner, _: Outcome) {
        self.afterwards = Some(owner.now());
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, _: &mut TestOwner) -> ControlFlow<()> {
        stop_when(self.afterwards.is_some())
    }
}

/// The clock is read once for them, and anew for what becomes of them.
#[test]
fn all_that_a_round_takes_in_has_the_moment_at_which_it_began() {
    within_a_minute(|| {
        let (elevator, _) = elevator_with(SchedulerKind::None, Device::solid_state(4), 1);
        let (owner, _) = owner_of(elevator, Box::new(MemoryBackend::new(1 << 20)), waker());
        let mut front = Moments::default();
        owner.run(&mut front).expect("the ring works");
        let Moments { taken_in, afterwards } = front;
        assert!(
            taken_in.len() >= 2 && taken_in.iter().all(|&at| at == taken_in[0]),
            "{taken_in:?}"
        );
        assert!(afterwards >= Some(taken_in[0] + Nanos::from_millis(1)), "{afterwards:?}");
    });
}
