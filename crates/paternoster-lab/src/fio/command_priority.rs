//! The priorities that single I/Os have: `cmdprio_percentage` and `cmdprio_bssplit`.

use paternoster::IoPrio;

use super::IoOp;
use super::error::Mistake;
use super::job::Engine;
use super::resolve::JobClone;
use super::spec::{PrioritySplit, SubmissionSpec};
use paternoster_model::Draws;

/// Which I/Os have a priority of their own. Trims have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPriorities {
    /// Of reads and of writes: at most 100 percent of each size.
    parts: [Vec<Part>; 2],
}

/// A part of the I/Os of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Of those of that many bytes; of all where absent.
    bytes: Option<u64>,
    /// How many percent of them.
    percent: u8,
    io_prio: IoPrio,
}

impl CommandPriorities {
    /// What the options of a job come to.
    pub(super) fn of(clone: &JobClone<'_>) -> Result<Self, Mistake> {
        let said = &clone.spec.submission;
        let has_split = said.cmdprio_bssplit.iter().any(|split| !split.is_empty());
        if has_split && said.cmdprio_percentage != [0; 2] {
            let what = "cmdprio_percentage and cmdprio_bssplit: one of them is allowed".to_owned();
            return Err(clone.mistake(&["cmdprio_bssplit"], what));
        }
        let parts = [0, 1].map(|direction| parts(said, direction));
        let takes_them = matches!(said.engine, Engine::Libaio | Engine::IoUring);
        if !takes_them && parts.iter().any(|parts| !parts.is_empty()) {
            let what = "only ioengine=libaio and ioengine=io_uring have priorities of commands";
            let options = ["cmdprio_percentage", "cmdprio_bssplit"];
            return Err(clone.mistake(&options, what.to_owned()));
        }
        Ok(Self { parts })
    }

    /// Draws the priority of an I/O, if it has one of its own.
    pub(super) fn draw(&self, op: IoOp, bytes: u64, draws: &mut Draws) -> Option<IoPrio> {
        let [reads, writes] = &self.parts;
        let of_direction = match op {
            IoOp::Read => reads,
            IoOp::Write => writes,
            IoOp::Trim | IoOp::Sync | IoOp::DataSync => return None,
        };
        let is_of_size = |part: &&Part| part.bytes.is_none_or(|of| of == bytes);
        let mut of_size = of_direction.iter().filter(is_of_size).peekable();
        of_size.peek()?;
        let percent = draws.below(100);
        let mut below = 0;
        let part = of_size.find(|part| {
            below += u64::from(part.percent);
            percent < below
        })?;
        Some(part.io_prio)
    }
}

/// The parts of a direction, 0 for reads and 1 for writes.
fn parts(said: &SubmissionSpec, direction: usize) -> Vec<Part> {
    let percent = said.cmdprio_percentage[direction];
    if percent > 0 {
        return vec![Part { bytes: None, percent, io_prio: io_prio(said, direction, None) }];
    }
    let part = |&PrioritySplit { bytes, percent, priority }: &PrioritySplit| Part {
        bytes: Some(bytes),
        percent,
        io_prio: io_prio(said, direction, priority),
    };
    said.cmdprio_bssplit[direction].iter().map(part).collect()
}

/// The priority of a direction, or the given class and level.
fn io_prio(said: &SubmissionSpec, direction: usize, priority: Option<(u8, u8)>) -> IoPrio {
    let common = (said.cmdprio_class[direction].unwrap_or(1), said.cmdprio[direction]);
    let (class, level) = priority.unwrap_or(common);
    let io_prio = match class {
        1 => IoPrio::rt(level),
        2 => IoPrio::be(level),
        _ => Some(IoPrio::IDLE),
    };
    io_prio.expect("a level is at most 7")
}
