//! What a tenant holds of its credit, and who waits for some.
//!
//! Small amounts and large ones have a queue each, so that short commands go on while a payload
//! waits for room, and the payload has its turn.

use std::collections::VecDeque;

use super::credit::{Amount, Credit, Held};

/// What became of a request for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// The credit is taken.
    Taken,
    /// Whoever asked waits for it.
    Waits,
}

/// The credit of one tenant, and those who wait for some; `W` names one.
#[derive(Debug)]
pub(super) struct Account<W> {
    credit: Credit,
    /// Those who wait, and for how much, in order of arrival: for small amounts and for large ones.
    waiting: [VecDeque<(W, Amount)>; 2],
}

impl<W: Copy + Eq> Account<W> {
    /// An account of which nothing is held.
    pub(super) fn new(credit: Credit) -> Self {
        Self { credit, waiting: [const { VecDeque::new() }; 2] }
    }

    /// Takes so much, behind those that wait. If that does not fit now, `who` waits, and is called
    /// when it has been taken.
    pub(super) fn take_or_wait(&mut self, who: W, amount: Amount) -> Grant {
        if self.queue(amount).is_empty() && self.has_room(amount) {
            self.credit.take(amount);
            Grant::Taken
        } else {
            self.queue(amount).push_back((who, amount));
            Grant::Waits
        }
    }

    /// Returns whether so much fits, for whoever comes first of those that want amounts of its
    /// kind.
    fn has_room(&self, amount: Amount) -> bool {
        let [_, large] = &self.waiting;
        match amount {
            Amount::Small(bytes) if !large.is_empty() => self.credit.fits_in_quarter(bytes),
            _ => self.credit.fits(amount),
        }
    }

    /// Returns whether so much fits that nobody waits for.
    pub(super) fn has_spare(&self, amount: Amount) -> bool {
        !self.anyone_waits() && self.credit.fits(amount)
    }

    /// Takes credit for the next one for whom there is enough now. Returns both.
    pub(super) fn call_next(&mut self) -> Option<(W, Amount)> {
        let (who, amount) = self.waiting[self.next_fits()?].pop_front()?;
        self.credit.take(amount);
        Some((who, amount))
    }

    /// Returns the queue whose first may be called.
    fn next_fits(&self) -> Option<usize> {
        let fits = |queue: &VecDeque<(_, Amount)>| {
            queue.front().is_some_and(|&(_, amount)| self.has_room(amount))
        };
        self.waiting.iter().position(fits)
    }

    /// Removes whoever is gone from those that wait. Returns whether it waited.
    pub(super) fn forget(&mut self, who: W) -> bool {
        let before = self.waiting().count();
        self.waiting.iter_mut().for_each(|queue| queue.retain(|&(other, _)| other != who));
        self.waiting().count() < before
    }

    /// Returns whether somebody waits.
    pub(super) fn anyone_waits(&self) -> bool {
        self.waiting.iter().any(|queue| !queue.is_empty())
    }

    /// Returns those that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = W> {
        self.waiting.iter().flatten().map(|&(who, _)| who)
    }

    /// Returns whether everybody is called for whom there is room.
    #[cfg(test)]
    pub(super) fn has_called_all(&self) -> bool {
        self.next_fits().is_none()
    }

    /// Takes so much, whether it fits or not.
    pub(super) fn take(&mut self, amount: Amount) {
        self.credit.take(amount);
    }

    /// Counts that `now` is held of what was `before`, whether it fits or not.
    pub(super) fn replace(&mut self, before: Held, now: Held) {
        self.credit.replace(before, now);
    }

    fn queue(&mut self, amount: Amount) -> &mut VecDeque<(W, Amount)> {
        &mut self.waiting[usize::from(matches!(amount, Amount::Large(_)))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn give_back(account: &mut Account<i32>, amount: Amount) {
        let mut held = Held::default();
        held.take(amount);
        account.replace(held, Held::default());
    }

    /// Small ones that came and went kept a large one waiting for ever.
    #[test]
    fn large_amount_has_its_turn_though_small_ones_never_end() {
        let mut account = Account::new(Credit::new(64 * MIB));
        let mut numbers = 0..;
        let mut number = || numbers.next().expect("there is no end");
        let small = Amount::Small(MIB);
        for _ in 0..64 {
            assert_eq!(account.take_or_wait(number(), small), Grant::Taken);
        }
        let (large, amount) = (number(), Amount::Large(32 * MIB));
        assert_eq!(account.take_or_wait(large, amount), Grant::Waits);
        let mut given_back = 0;
        loop {
            give_back(&mut account, small);
            given_back += 1;
            account.take_or_wait(number(), small);
            if let Some(called) = account.call_next() {
                assert_eq!(called, (large, amount));
                break;
            }
            assert!(given_back < 64, "the large one has waited for all of them");
        }
        // Who had to stand back is called again.
        give_back(&mut account, amount);
        assert!(account.call_next().is_some_and(|(_, amount)| amount == small));
    }
}
