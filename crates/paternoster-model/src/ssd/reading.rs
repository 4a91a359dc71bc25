//! Reads: the dies of their chunks.

use std::ops::Range;

use paternoster::{Instant, Nanos};

use super::draw::happens;
use super::{Ssd, SsdParameters, Varying};
use crate::random::Draws;

impl Ssd {
    /// Reads the chunks. Returns when the last one has been read, and how long a die took for one
    /// at most.
    pub(super) fn read_chunks(
        &mut self,
        from: Instant,
        chunks: Range<u64>,
        draws: &mut Draws,
    ) -> (Instant, Nanos) {
        let (mut end, mut longest) = (from, Nanos::ZERO);
        let SsdParameters { read, joined_read, .. } = self.parameters;
        let each = if chunks.end - chunks.start > 1 { joined_read } else { read };
        for chunk in chunks {
            let service = self.draw_read(each, draws);
            let die = self.die_of(chunk);
            end = end.max(self.read_chunk(die, from, service));
            longest = longest.max(service);
        }
        (end, longest)
    }

    /// How long a die reads a chunk this time.
    fn draw_read(&mut self, read: Varying, draws: &mut Draws) -> Nanos {
        let SsdParameters { idle_hits, idle_hit, .. } = self.parameters;
        if std::mem::take(&mut self.found_idle) && happens(draws, idle_hits) {
            return idle_hit;
        }
        if self.parameters.rare_reads > 0 && happens(draws, self.parameters.rare_reads) {
            return self.parameters.rare_read;
        }
        read.draw(draws)
    }

    /// The die reads a chunk, from `from` on, in so long. Returns when it has.
    fn read_chunk(&mut self, index: usize, from: Instant, service: Nanos) -> Instant {
        let each = self.parameters.program;
        let die = &mut self.dies[index];
        let ended = die.settle(from, each);
        let blocked =
            if self.parameters.suspends { Nanos::ZERO } else { die.finish_program(from, each) };
        let end = die.read(from, service, blocked);
        if ended > 0 {
            self.buffer.programmed(ended);
            self.admit(from);
        }
        end
    }
}
