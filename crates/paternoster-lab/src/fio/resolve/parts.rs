//! The parts of a job that follow from what its section says, and from nothing else.

use paternoster::{IoPrio, Nanos};

use super::JobClone;
use crate::fio::command_priority::CommandPriorities;
use crate::fio::error::Mistake;
use crate::fio::files::Work;
use crate::fio::job::{
    Advice, Batches, BlockSizes, DataDirection, Engine, IoMix, Modifier, Order, Pacing, Pattern,
    Sequencer, Submission, Syncs, ThinkTime, used_sizes,
};
use crate::fio::spec::{BatchSpec, Identity, PatternSpec, Spec, SubmissionSpec};
use crate::fio::value::PerDirection;
use paternoster_model::Draws;

/// The largest read or write.
const MAX_TRANSFER: u64 = 1 << 30;

pub(super) fn submission(spec: &Spec) -> Submission {
    let said = &spec.submission;
    let order = match spec.pattern.order {
        Order::Sequential => Advice::Sequential,
        Order::Random => Advice::Random,
    };
    let (depth, batches) = batches(said);
    Submission {
        engine: said.engine,
        depth,
        batches,
        direct: said.direct,
        write_sync: said.write_sync,
        invalidate: said.invalidate,
        advice: said.advice.unwrap_or(order),
    }
}

/// The depth, and the batches. fio 3.33 was seen to keep one I/O under way where it polls and
/// nothing says how many it takes back.
fn batches(said: &SubmissionSpec) -> (u32, Batches) {
    let BatchSpec { submit, low, complete_min, complete_max } = said.batches;
    let polls = complete_min == 0 && said.engine != Engine::Null;
    if said.engine.waits() || (polls && complete_max == 0) {
        return (1, Batches { polls: polls && !said.engine.waits(), ..Batches::SINGLE });
    }
    let or_depth = |ios: u32| if ios == 0 { said.depth } else { ios.min(said.depth) };
    let complete_min = complete_min.clamp(1, said.depth);
    let batches = Batches {
        submit: if said.engine == Engine::PosixAio { 1 } else { or_depth(submit) },
        low: or_depth(low),
        complete_min,
        complete_max: complete_max.min(said.depth).max(complete_min),
        polls,
    };
    (said.depth, batches)
}

pub(super) fn pacing(clone: &JobClone<'_>) -> Result<Pacing, Mistake> {
    let JobClone { spec, .. } = *clone;
    let said = &spec.pacing;
    let sizes = spec.pattern.sizes();
    let mut rates: PerDirection<Option<u64>> = [None; 3];
    for (direction, rate) in rates.iter_mut().enumerate() {
        *rate = match (said.rate[direction], said.rate_iops[direction]) {
            (Some(_), Some(_)) => {
                let what = "rate and rate_iops: one of them is allowed".to_owned();
                return Err(clone.mistake(&["rate_iops"], what));
            }
            // A log has its own pace.
            _ if spec.replays() => None,
            (Some(bytes), None) => Some(bytes),
            (None, ios) => ios.map(|ios| ios.saturating_mul(sizes[direction].min())),
        };
    }
    let after = (said.thinktime_iotime > Nanos::ZERO).then_some(said.thinktime_iotime);
    let counts = after.is_none() || spec.places.contains_key("thinktime_blocks");
    let think = (said.thinktime > Nanos::ZERO).then_some(ThinkTime {
        pause: said.thinktime,
        spin: said.thinktime_spin.min(said.thinktime),
        ios: counts.then_some(said.thinktime_blocks),
        trigger: said.thinktime_trigger,
        after,
    });
    Ok(Pacing {
        think,
        rate_bytes_per_s: rates,
        least_bytes: sizes.map(|sizes| sizes.min()),
        rate_process: said.rate_process,
        rate_ignores_think: said.rate_ignore_thinktime,
    })
}

/// What a job with that work does.
pub(super) fn pattern(
    clone: &JobClone<'_>,
    work: Work,
    draws: &mut Draws,
) -> Result<Pattern, Mistake> {
    let JobClone { spec, .. } = *clone;
    let said = &spec.pattern;
    let sizes = said.sizes();
    check_transfers(clone, &sizes)?;
    let mix = match said.mix {
        IoMix::ReadsAndWrites { .. } => IoMix::ReadsAndWrites { reads: said.percent_reads },
        other => other,
    };
    Ok(Pattern {
        mix,
        order: said.order,
        modifier: modifier(said),
        sizes,
        sizes_by_order: said.sizes_by_order,
        align: said.align,
        distribution: said.distribution.clone(),
        percent_random: said.percent_random,
        coverage: said.coverage,
        regions: work.regions,
        file_service: spec.target.file_service,
        io_bytes: work.io_bytes,
        loops: said.loops,
        is_endless: spec.run.time_based,
        number_ios: said.number_ios,
        syncs: Syncs {
            fsync: said.fsync,
            fdatasync: said.fdatasync,
            at_end: said.end_fsync,
            at_close: said.fsync_on_close,
        },
        repeat: said.repeat,
        seed: draws.bits(),
        command_priorities: CommandPriorities::of(clone)?,
    })
}

/// Only a trim may be larger than what memory is there for.
fn check_transfers(clone: &JobClone<'_>, sizes: &PerDirection<BlockSizes>) -> Result<(), Mistake> {
    let said = &clone.spec.pattern;
    if said.mix == IoMix::Only(DataDirection::Trim) || clone.spec.replays() {
        return Ok(());
    }
    let used = used_sizes(said.mix, said.sizes_by_order);
    match used.iter().map(|&index| sizes[index].max()).find(|&bytes| bytes > MAX_TRANSFER) {
        Some(bytes) => {
            let what = format!(
                "an I/O of {bytes} bytes: a read or a write has {MAX_TRANSFER} at most, only a \
                 trim may have more"
            );
            Err(clone.mistake(&["bssplit", "bsrange", "bs"], what))
        }
        None => Ok(()),
    }
}

/// As fio sets it: best effort where only a level is given, level 0 where only a class is. Where
/// neither is, Linux takes it from the nice value.
pub(super) fn io_prio(said: &Identity) -> Option<IoPrio> {
    let level = said.prio.unwrap_or(0);
    match (said.prioclass, said.prio) {
        (Some(1), _) => IoPrio::rt(level),
        (Some(3), _) => Some(IoPrio::IDLE),
        (Some(2), _) | (_, Some(_)) => IoPrio::be(level),
        (_, None) if said.nice != 0 => {
            let level = (i16::from(said.nice) + 20) / 5;
            IoPrio::be(u8::try_from(level).expect("nice is -20 to 19"))
        }
        (_, None) => None,
    }
}

fn modifier(said: &PatternSpec) -> Option<Modifier> {
    let number = said.modifier?;
    let ios = number.unsigned_abs();
    Some(match (said.order, said.sequencer) {
        (Order::Sequential, _) => Modifier::Holes(number),
        (Order::Random, Sequencer::Sequential) => Modifier::Runs(ios),
        (Order::Random, Sequencer::Identical) => Modifier::Repeats(ios),
    })
}
