//! A tenant's credit as one of several threads has it: dealt out by the owner of the disk, so that
//! what all threads hold together stays within the tenant's bound.
//!
//! ```text
//!   0              held           dealt
//!   ├── small ───────┤── to spare ──┤        dealt a part at a time
//!   ├── large ─────────────┤── spare ──┤     each is asked for, unless others have left as much
//!
//!   settle, each round:  ask for more, or give back ──▶ the owner's account of the tenant
//! ```
//!
//! While somebody of the tenant waits, on whichever thread, nothing is kept to spare: what is given
//! back here goes back to the owner, who deals it out in the order in which threads have asked.

use std::collections::VecDeque;

use super::account::Grant;
use super::connection::ConnectionId;
use super::credit::{Amount, Held};

/// Bytes for small amounts that are dealt, and kept to spare, at a time.
const PART: usize = 256 << 10;

/// Bytes for large amounts that are kept to spare at most: a client that streams asks for the next
/// command what it was given for the last.
const LARGE_SPARE: usize = 4 << 20;

/// What a thread has to say to the owner about a tenant's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreditMessage {
    /// A connection needs so much, which is large.
    AskLarge(ConnectionId, usize),
    /// So much is needed for small amounts, and more would be of use.
    Ask {
        /// Bytes; with none nobody waits, and the answer may be none.
        least: usize,
        /// Bytes, no fewer than `least`.
        wished: usize,
    },
    /// Nothing is needed any more of what was asked for small amounts.
    Withdraw,
    /// The connection needs it no more.
    Forget(ConnectionId),
    /// So much more is held than was asked for, or so much less.
    Change {
        /// In small amounts, bytes.
        small: isize,
        /// In large ones.
        large: isize,
    },
}

/// Who waits for a tenant's credit at the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Nobody.
    #[default]
    None,
    /// This thread alone.
    Here,
    /// Another thread, and maybe this one too.
    Elsewhere,
}

/// What one thread has of a tenant's credit.
#[derive(Debug)]
pub(crate) struct Lease {
    /// What rooms may hold on this thread.
    rooms_limit: usize,
    held: Held,
    /// What may be held in small amounts without asking.
    dealt: usize,
    /// What may be held in large ones.
    dealt_large: usize,
    /// What the owner has counted for this thread: small amounts, large ones.
    counted: [usize; 2],
    /// Connections that wait for small amounts, in order of arrival.
    waiting: VecDeque<(ConnectionId, Amount)>,
    /// Those that wait for large amounts, for which the owner has been asked.
    waiting_for_large: Vec<ConnectionId>,
    /// Whether the owner has been asked for more to deal out, and has not answered.
    has_asked: bool,
    /// Whether more to spare would be of use.
    wants_spare: bool,
    shortage: Shortage,
    messages: Vec<CreditMessage>,
}

impl Lease {
    /// Nothing is dealt yet.
    pub(crate) fn new(rooms_limit: usize) -> Self {
        Self {
            rooms_limit,
            held: Held::default(),
            dealt: 0,
            dealt_large: 0,
            counted: [0; 2],
            waiting: VecDeque::new(),
            waiting_for_large: Vec::new(),
            has_asked: false,
            wants_spare: false,
            shortage: Shortage::None,
            messages: Vec::new(),
        }
    }

    /// Takes so much for a connection, behind those that wait, or has it wait.
    pub(crate) fn take_or_wait(&mut self, id: ConnectionId, amount: Amount) -> Grant {
        let is_first = match amount {
            Amount::Large(_) => self.waiting_for_large.is_empty(),
            _ => self.waiting.is_empty(),
        };
        if is_first && self.fits(amount) {
            self.take(amount);
            return Grant::Taken;
        }
        if let Amount::Large(bytes) = amount {
            self.messages.push(CreditMessage::AskLarge(id, bytes));
            self.waiting_for_large.push(id);
        } else {
            self.waiting.push_back((id, amount));
        }
        Grant::Waits
    }

    /// Returns whether so much fits that nobody waits for.
    pub(crate) fn has_spare(&mut self, amount: Amount) -> bool {
        self.wants_spare |= self.held.small + amount.bytes() > self.dealt;
        self.waiting.is_empty() && self.fits(amount)
    }

    fn fits(&self, amount: Amount) -> bool {
        match amount {
            Amount::Small(bytes) => self.held.small + bytes <= self.dealt,
            Amount::Room(bytes) => {
                self.held.rooms + bytes <= self.rooms_limit && self.held.small + bytes <= self.dealt
            }
            Amount::Large(bytes) => self.held.large + bytes <= self.dealt_large,
        }
    }

    /// Takes credit for the next connection for which there is enough now. Returns both.
    pub(crate) fn call_next(&mut self) -> Option<(ConnectionId, Amount)> {
        let &(id, amount) = self.waiting.front()?;
        self.fits(amount).then(|| {
            self.waiting.pop_front();
            self.take(amount);
            (id, amount)
        })
    }

    /// Forgets a connection that is gone.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.waiting.retain(|&(other, _)| other != id);
        let before = self.waiting_for_large.len();
        self.waiting_for_large.retain(|&other| other != id);
        if self.waiting_for_large.len() < before {
            self.messages.push(CreditMessage::Forget(id));
        }
    }

    /// Returns those that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = ConnectionId> {
        let small = self.waiting.iter().map(|&(id, _)| id);
        small.chain(self.waiting_for_large.iter().copied())
    }

    /// Takes so much, whether it fits or not.
    pub(crate) fn take(&mut self, amount: Amount) {
        self.held.take(amount);
    }

    /// Gives back an amount that was taken.
    pub(crate) fn give_back(&mut self, amount: Amount) {
        self.held.give_back(amount);
        if self.shortage != Shortage::None {
            // The owner's to deal out, not ours to take again.
            self.dealt = self.dealt.min(self.held.small);
            self.dealt_large = self.dealt_large.min(self.held.large);
        }
    }

    /// The owner has dealt so much out to the thread.
    pub(crate) fn dealt(&mut self, bytes: usize) {
        self.has_asked = false;
        // What is given back and taken again meanwhile is not taken from this.
        self.dealt = self.dealt.max(self.held.small) + bytes;
        self.counted[0] += bytes;
    }

    /// The owner has counted a large amount for the connection. Returns whether that still waits
    /// for it, and has it then.
    pub(crate) fn large_dealt(&mut self, id: ConnectionId, bytes: usize) -> bool {
        self.counted[1] += bytes;
        self.dealt_large = self.dealt_large.max(self.held.large) + bytes;
        let place = self.waiting_for_large.iter().position(|&other| other == id);
        if let Some(place) = place {
            self.waiting_for_large.remove(place);
            self.held.large += bytes;
        }
        place.is_some()
    }

    pub(crate) fn shortage(&self) -> Shortage {
        self.shortage
    }

    pub(crate) fn set_shortage(&mut self, shortage: Shortage) {
        self.shortage = shortage;
    }

    /// Asks for more or gives back, and returns all that there is to be said to the owner.
    pub(crate) fn settle(&mut self, has_connections: bool) -> Vec<CreditMessage> {
        let spare = self.dealt.saturating_sub(self.held.small);
        let is_short = self.shortage != Shortage::None;
        let kept = match () {
            () if is_short || !has_connections => 0,
            () if spare > 2 * PART => PART,
            () => spare,
        };
        self.dealt = self.held.small + kept;
        let spare = self.dealt_large.saturating_sub(self.held.large);
        let kept = if is_short || !has_connections { 0 } else { spare.min(LARGE_SPARE) };
        self.dealt_large = self.held.large + kept;
        let [small, large] = self.counted;
        let small = difference(self.dealt, small);
        let large = difference(self.dealt_large, large);
        if (small, large) != (0, 0) {
            self.counted = [self.dealt, self.dealt_large];
            self.messages.push(CreditMessage::Change { small, large });
        }
        self.ask(is_short);
        std::mem::take(&mut self.messages)
    }

    /// Asks for what is needed, or no longer does.
    fn ask(&mut self, is_short: bool) {
        let first = self.waiting.front().map(|(_, amount)| amount.bytes());
        let wants_spare = std::mem::take(&mut self.wants_spare) && !is_short;
        if first.is_none() && self.has_asked && is_short {
            self.has_asked = false;
            self.messages.push(CreditMessage::Withdraw);
        } else if !self.has_asked && (first.is_some() || wants_spare) {
            self.has_asked = true;
            let least = first.unwrap_or(0);
            let wished = if is_short { least } else { least.max(PART) };
            self.messages.push(CreditMessage::Ask { least, wished });
        }
    }

    /// Returns whether nothing is held, and nobody waits.
    pub(crate) fn is_unused(&self) -> bool {
        self.held.is_nothing() && self.waiting().next().is_none()
    }

    /// Returns whether everybody is called for whom there is room.
    #[cfg(test)]
    pub(crate) fn has_called_all(&self) -> bool {
        self.waiting.front().is_none_or(|&(_, amount)| !self.fits(amount))
    }

    /// Returns whether these amounts are all that is held.
    #[cfg(test)]
    pub(crate) fn holds(&self, amounts: impl Iterator<Item = Amount>) -> bool {
        let [mut small, mut large] = [0, 0];
        for amount in amounts {
            match amount {
                Amount::Large(bytes) => large += bytes,
                other => small += other.bytes(),
            }
        }
        (small, large) == (self.held.small, self.held.large)
    }
}

/// What has to be added to `before` for it to be `now`.
fn difference(now: usize, before: usize) -> isize {
    let bytes = |bytes: usize| isize::try_from(bytes).expect("no more than there is memory");
    bytes(now) - bytes(before)
}
