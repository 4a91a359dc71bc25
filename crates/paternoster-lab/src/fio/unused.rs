//! Options that say nothing because of what others say: fio ignores them, and so they are noted.

use super::job::{IoMix, Note, Order};
use super::spec::Spec;

/// When an option says nothing, and why.
struct Unused {
    option: &'static str,
    why: &'static str,
    says_nothing: fn(&Spec) -> bool,
}

static UNUSED: &[Unused] = &[
    Unused {
        option: "iodepth",
        why: "the calls of the ioengine wait, so one I/O is under way",
        says_nothing: |spec| spec.submission.engine.waits() && spec.submission.depth > 1,
    },
    Unused { option: "rwmixread", why: NO_MIX, says_nothing: has_no_mix },
    Unused { option: "rwmixwrite", why: NO_MIX, says_nothing: has_no_mix },
    Unused { option: "percentage_random", why: NOT_RANDOM, says_nothing: is_sequential },
    Unused { option: "random_distribution", why: NOT_RANDOM, says_nothing: is_sequential },
    Unused { option: "norandommap", why: NOT_RANDOM, says_nothing: is_sequential },
    Unused { option: "ba", why: NOT_RANDOM, says_nothing: is_sequential },
    Unused { option: "thinktime_spin", why: NO_THINKING, says_nothing: does_not_think },
    Unused { option: "thinktime_blocks", why: NO_THINKING, says_nothing: does_not_think },
    Unused { option: "thinktime_blocks_type", why: NO_THINKING, says_nothing: does_not_think },
    Unused { option: "thinktime_iotime", why: NO_THINKING, says_nothing: does_not_think },
    Unused { option: "rate_ignore_thinktime", why: NO_THINKING, says_nothing: does_not_think },
    Unused {
        option: "exit_what",
        why: "exitall is not set",
        says_nothing: |spec| !spec.run.exitall,
    },
    Unused {
        option: "rw_sequencer",
        why: "no number stands behind rw=rand...:",
        says_nothing: |spec| spec.pattern.modifier.is_none() || is_sequential(spec),
    },
    Unused {
        option: "rate_process",
        why: "there is no rate",
        says_nothing: |spec| {
            spec.pacing.rate.iter().chain(&spec.pacing.rate_iops).all(Option::is_none)
        },
    },
    Unused { option: "fsync", why: TRIMS, says_nothing: trims_first },
    Unused { option: "fdatasync", why: TRIMS, says_nothing: trims_first },
    Unused { option: "cmdprio", why: NO_COMMANDS, says_nothing: has_no_commands },
    Unused { option: "cmdprio_class", why: NO_COMMANDS, says_nothing: has_no_commands },
    Unused {
        option: "nrfiles",
        why: "filename names the files",
        says_nothing: |spec| !spec.target.filename.is_empty(),
    },
];

const NO_MIX: &str = "rw is no mix of reads and writes";
const NOT_RANDOM: &str = "the job is sequential";
const NO_THINKING: &str = "thinktime is not set";
const TRIMS: &str = "fio does not sync among trims and writes";
const NO_COMMANDS: &str = "cmdprio_percentage is not set";

/// The notes of a section.
pub(super) fn notes(spec: &Spec) -> impl Iterator<Item = Note> {
    UNUSED.iter().filter_map(|unused| {
        let place = spec.places.get(unused.option)?.clone();
        let note = Note { place, option: unused.option.to_owned(), why: unused.why };
        (unused.says_nothing)(spec).then_some(note)
    })
}

fn has_no_mix(spec: &Spec) -> bool {
    !matches!(spec.pattern.mix, IoMix::ReadsAndWrites { .. })
}

fn is_sequential(spec: &Spec) -> bool {
    spec.pattern.order == Order::Sequential
}

fn does_not_think(spec: &Spec) -> bool {
    spec.pacing.thinktime == paternoster::Nanos::ZERO
}

fn has_no_commands(spec: &Spec) -> bool {
    spec.submission.cmdprio_percentage == [0; 2]
}

fn trims_first(spec: &Spec) -> bool {
    spec.pattern.mix == IoMix::TrimsAndWrites
}
