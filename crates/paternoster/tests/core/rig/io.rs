//! Bios as tests write them: `read(0..8)`, `write(100..108).by("task").sync()`.

use std::ops::Range;

use paternoster::{Bio, BioFlags, IocId, Op, Sector, SectorCount};

use super::MAIN;

/// A bio without its name.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    op: Op,
    flags: BioFlags,
    start: u64,
    sectors: u32,
    segments: u16,
    pub task: &'static str,
}

pub fn read(range: Range<u64>) -> Io {
    Io::over(Op::Read, &range)
}

pub fn write(range: Range<u64>) -> Io {
    Io::over(Op::Write, &range)
}

pub fn discard(range: Range<u64>) -> Io {
    Io::over(Op::Discard, &range)
}

pub fn zeroes(range: Range<u64>) -> Io {
    Io::over(Op::WriteZeroes, &range)
}

pub fn flush() -> Io {
    Io::new(Op::Flush, 0, 0)
}

impl Io {
    pub const fn new(op: Op, start: u64, sectors: u32) -> Self {
        Self { op, flags: BioFlags::empty(), start, sectors, segments: 1, task: MAIN }
    }

    fn over(op: Op, range: &Range<u64>) -> Self {
        let sectors = u32::try_from(range.end - range.start).expect("a range of 32 bits");
        Self::new(op, range.start, sectors)
    }

    pub fn by(self, task: &'static str) -> Self {
        Self { task, ..self }
    }

    pub fn sync(self) -> Self {
        self.flag(BioFlags::SYNC)
    }

    pub fn flag(self, flag: BioFlags) -> Self {
        Self { flags: self.flags | flag, ..self }
    }

    pub fn segments(self, segments: u16) -> Self {
        Self { segments, ..self }
    }

    pub fn bio(&self, ioc: IocId, user_data: u64) -> Bio {
        Bio::new(self.op, ioc, Sector(self.start), SectorCount(self.sectors))
            .with_flags(self.flags)
            .with_segments(self.segments)
            .with_user_data(user_data)
    }
}
