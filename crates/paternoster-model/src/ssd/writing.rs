//! Writes: into the buffer when there is room, and from there to the dies; and who waits for that.

use paternoster::Instant;

use super::{Due, Ssd};

impl Ssd {
    /// A write has entered the buffer: its chunks are programmed in turn, and it is done, unless it
    /// has to be durable.
    pub(super) fn entered(&mut self, at: Instant, tag: u32, chunks: u32) {
        for _ in 0..chunks {
            let die = self.next_die as usize;
            self.next_die = (self.next_die + 1) % self.parameters.dies.max(1);
            let ended = self.dies[die].settle(at, self.parameters.program);
            self.buffer.programmed(ended);
            self.dies[die].program();
            self.expect_program(die);
        }
        let done = at + self.parameters.buffered + self.parameters.fixed;
        if !self.commands[tag as usize].durable || self.buffer.sync(tag) {
            self.schedule(done, Due::Done(tag));
        }
    }

    /// Puts the end of the die's first program on the agenda, if it is not there.
    fn expect_program(&mut self, die: usize) {
        if self.programs[die] {
            return;
        }
        if let Some(end) = self.dies[die].program_end(self.parameters.program) {
            self.programs[die] = true;
            self.schedule(end, Due::Program(u32::try_from(die).expect("dies are counted in u32")));
        }
    }

    /// A program of the die has ended, unless a read came meanwhile.
    pub(super) fn program_due(&mut self, at: Instant, die: usize) {
        self.programs[die] = false;
        let ended = self.dies[die].settle(at, self.parameters.program);
        self.expect_program(die);
        self.buffer.programmed(ended);
        self.admit(at);
    }

    /// Has everything go on that waited for the buffer.
    pub(super) fn admit(&mut self, at: Instant) {
        while let Some((tag, chunks)) = self.buffer.take_write() {
            self.entered(at, tag, chunks);
        }
        while let Some(tag) = self.buffer.take_durable() {
            let flush = self.commands[tag as usize].flush;
            self.schedule(at + flush + self.parameters.fixed, Due::Done(tag));
        }
    }
}
