//! Reads: from the cache, or from the disks into it; and what is read ahead.

use std::ops::Range;

use paternoster::{Instant, Nanos, Sector};

use super::cache::overlap;
use super::members::Purpose;
use super::{Array, Due, range};
use crate::Spent;

impl Array {
    /// The front end has decoded a read of `range`.
    pub(super) fn read(&mut self, now: Instant, tag: u32, range: Range<Sector>) {
        let ahead = self.streams.read(&range);
        self.cache.want(range.clone());
        self.fetch(now, &range);
        if self.cache.holds(&range) {
            self.cache.release(&range);
            self.deliver(now, tag);
        } else {
            self.command(tag).waits_since = now;
            self.reading.push(tag);
        }
        let ahead = ahead.map(|ahead| ahead.start..ahead.end.min(self.end));
        if let Some(ahead) = ahead.filter(|ahead| ahead.start < ahead.end) {
            self.fetch(now, &ahead);
        }
    }

    /// Has the disks read what of `range` is neither in the cache nor on its way there.
    fn fetch(&mut self, now: Instant, range: &Range<Sector>) {
        for missing in self.cache.fetch(range) {
            for piece in self.parameters.striping.pieces(missing) {
                let Range { start: first, end } = piece.in_array;
                self.members.read(now, &piece, Purpose::Fill { first, end });
            }
        }
    }

    /// The data of a read are at hand: the link moves them to the host.
    fn deliver(&mut self, now: Instant, tag: u32) {
        let done = self.transfer(now, tag);
        self.schedule(done, Due::Done(tag));
    }

    /// The disks have read `arrived` into the cache: reads that waited for it go on.
    pub(super) fn arrived(&mut self, now: Instant, arrived: Range<Sector>, by: Spent) {
        self.cache.arrived(arrived.clone());
        for tag in std::mem::take(&mut self.reading) {
            let in_array = *self.command(tag);
            let wanted = range(&in_array.command).expect("a read that waits has sectors");
            if overlap(&wanted, &arrived) && self.cache.holds(&wanted) {
                self.cache.release(&wanted);
                let span = now.saturating_since(in_array.waits_since);
                spend(&mut self.command(tag).spent, by, span);
                self.deliver(now, tag);
            } else {
                self.reading.push(tag);
            }
        }
    }
}

/// Adds what a disk spent to what a command did, but no more than the command waited in all.
fn spend(spent: &mut Spent, by: Spent, waited: Nanos) {
    let mut left = waited;
    let mut part = |span: Nanos| {
        let part = span.min(left);
        left = left.saturating_sub(part);
        part
    };
    spent.transfer += part(by.transfer);
    spent.rotation += part(by.rotation);
    spent.seek += part(by.seek);
    spent.overhead += part(by.overhead);
}
