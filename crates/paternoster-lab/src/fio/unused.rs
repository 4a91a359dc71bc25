//! Options that change nothing because of what other options say: fio ignores them, and so each is
//! noted, with the first reason here that holds.

use paternoster::Nanos;

use super::job::{DataDirection, Engine, IoMix, Note, Order};
use super::spec::{Spec, SubmissionSpec};
use super::value::PerDirection;

/// The names of options, why these change nothing, and when that is so.
type Unused = (&'static str, &'static str, fn(&Spec) -> bool);

const ONE_UNDER_WAY: &str = "one I/O is under way at a time";
const OTHER_DIRECTIONS: &str = "it is of directions that rw does not have";
const NO_LINE: &str = "it removes no line from any log";

static UNUSED: &[Unused] = &[
    (
        "rw_sequencer rwmixread rwmixwrite bs bsrange bssplit bs_unaligned bs_is_seq_rand ba \
         random_distribution percentage_random norandommap randrepeat fsync fdatasync end_fsync \
         fsync_on_close number_ios loops time_based filename filename_format nrfiles \
         file_service_type filesize size io_size offset offset_increment offset_align rate \
         rate_iops rate_process rate_ignore_thinktime",
        "the log of read_iolog says what is done, and when",
        Spec::replays,
    ),
    (
        "replay_no_stall replay_time_scale replay_scale replay_align replay_skip \
         replay_redirect",
        "read_iolog is not set",
        |spec| !spec.replays(),
    ),
    (
        "rw",
        "the log of read_iolog says what is done, and the kernel is not told of an order",
        |spec| {
            let said = &spec.submission;
            let is_cached = !said.direct || said.engine == Engine::Mmap;
            spec.replays() && (!is_cached || said.advice.is_some())
        },
    ),
    ("write_iolog", "read_iolog overrides it, as in fio", Spec::replays),
    ("nrfiles", "filename names the files", |spec| !spec.target.filename.is_empty()),
    ("iodepth", "the calls of the ioengine wait, so one I/O is under way", |spec| {
        spec.submission.engine.waits() && spec.submission.depth > 1
    }),
    (
        "iodepth",
        "iodepth_batch_complete_min=0 without iodepth_batch_complete_max keeps one I/O under way, \
         as in fio",
        |spec| polls_for_one(spec) && spec.submission.depth > 1,
    ),
    ("iodepth_batch", "posixaio hands over each I/O by itself", |spec| {
        spec.submission.engine == Engine::PosixAio
    }),
    (
        "iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low",
        "what is handed to ioengine=null is complete",
        |spec| spec.submission.engine == Engine::Null,
    ),
    ("iodepth_batch iodepth_low", ONE_UNDER_WAY, |it| has_one(it) || polls_for_one(it)),
    ("iodepth_batch_complete_min iodepth_batch_complete_max", ONE_UNDER_WAY, has_one),
    (
        "iodepth_batch_complete_max",
        "it is below iodepth_batch_complete_min, and so is that",
        |spec| {
            let batches = &spec.submission.batches;
            (1..batches.complete_min).contains(&batches.complete_max)
        },
    ),
    ("rwmixread rwmixwrite", "rw is no mix of reads and writes", |spec| {
        !matches!(spec.pattern.mix, IoMix::ReadsAndWrites { .. })
    }),
    (
        "percentage_random random_distribution norandommap ba",
        "the job is sequential",
        is_sequential,
    ),
    ("rw_sequencer", "no number stands behind rw=rand...:", |spec| {
        spec.pattern.modifier.is_none() || is_sequential(spec)
    }),
    ("fsync fdatasync", "fio does not sync among trims and writes", |spec| {
        spec.pattern.mix == IoMix::TrimsAndWrites
    }),
    (
        "thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime \
         rate_ignore_thinktime",
        "thinktime is not set",
        |spec| spec.pacing.thinktime == Nanos::ZERO,
    ),
    ("rate_process", "there is no rate", |spec| {
        spec.pacing.rate.iter().chain(&spec.pacing.rate_iops).all(Option::is_none)
    }),
    ("rate", OTHER_DIRECTIONS, |spec| is_of_others(spec, &spec.pacing.rate, &None)),
    ("rate_iops", OTHER_DIRECTIONS, |spec| is_of_others(spec, &spec.pacing.rate_iops, &None)),
    ("max_latency", OTHER_DIRECTIONS, |it| is_of_others(it, &it.ends.max_latency, &Nanos::ZERO)),
    ("rate_min", OTHER_DIRECTIONS, |spec| is_of_others(spec, &spec.ends.rate_min, &0)),
    ("rate_iops_min", OTHER_DIRECTIONS, |spec| is_of_others(spec, &spec.ends.rate_iops_min, &0)),
    ("rate_cycle", "there is no least rate", |spec| {
        spec.ends.rate_min == [0; 3] && spec.ends.rate_iops_min == [0; 3]
    }),
    ("exit_what", "exitall is not set", |spec| !spec.run.exitall),
    (
        "exitall_on_error",
        "the job has no max_latency, rate_min or rate_iops_min by which it could fail",
        |spec| spec.run.exitall_on_error && !can_fail(spec),
    ),
    (
        "steadystate steadystate_ramp_time steadystate_check_interval",
        "steadystate_duration is not set",
        |spec| spec.ends.steady_duration == Nanos::ZERO,
    ),
    ("latency_window latency_percentile latency_run", "latency_target is not set", |spec| {
        spec.ends.latency_target == Nanos::ZERO
    }),
    ("cmdprio cmdprio_class", "neither cmdprio_percentage nor cmdprio_bssplit is set", |spec| {
        let SubmissionSpec { cmdprio_percentage, cmdprio_bssplit, .. } = &spec.submission;
        *cmdprio_percentage == [0; 2] && cmdprio_bssplit.iter().all(Vec::is_empty)
    }),
    ("per_job_logs log_avg_msec log_offset log_prio", "no log is written", |spec| {
        !spec.logs.has_any()
    }),
    ("log_max_value", "no latencies are logged that log_avg_msec averages", |spec| {
        has_no_latencies(spec) || spec.logs.average == Nanos::ZERO
    }),
    ("disable_lat", "no latencies are logged", has_no_latencies),
    ("disable_clat disable_slat", "no latencies are logged", |spec| {
        has_no_latencies(spec) && !has_no_lines_of_iops(spec)
    }),
    ("disable_bw_measurement", NO_LINE, |spec| {
        !logs_each_bandwidth(spec) && !has_no_lines_of_iops(spec)
    }),
    ("gtod_reduce", NO_LINE, |spec| {
        has_no_latencies(spec) && !logs_each_bandwidth(spec) && !logs_each_io(spec)
    }),
    ("write_bw_log", "its file stays empty, by disable_bw_measurement or gtod_reduce", |spec| {
        logs_each_bandwidth(spec) && !spec.logs.bandwidths
    }),
    (
        "write_iops_log",
        "its file stays empty, by gtod_reduce or by disable_bw_measurement, disable_clat and \
         disable_slat together",
        has_no_lines_of_iops,
    ),
    (
        "write_lat_log",
        "it has no files, by gtod_reduce or by disable_lat, disable_clat and disable_slat together",
        |spec| {
            let said = &spec.logs;
            said.latency.is_some() && !said.total && !said.completion && !said.submission
        },
    ),
];

/// The notes of a section.
pub(super) fn notes(spec: &Spec) -> impl Iterator<Item = Note> {
    spec.places.iter().filter_map(|(&option, place)| {
        let is_why =
            |unused: &&Unused| unused.0.split(' ').any(|name| name == option) && unused.2(spec);
        let (_, why, _) = *UNUSED.iter().find(is_why)?;
        Some(Note { place: place.clone(), option: option.to_owned(), why })
    })
}

/// Whether it polls, and nothing says how many completions it takes back.
fn polls_for_one(spec: &Spec) -> bool {
    let SubmissionSpec { engine, batches, .. } = &spec.submission;
    let polls = batches.complete_min == 0 && *engine != Engine::Null && !engine.waits();
    polls && batches.complete_max == 0
}

/// Whether one I/O is under way at a time, wherever completions are looked for.
fn has_one(spec: &Spec) -> bool {
    let SubmissionSpec { engine, depth, batches, direct, .. } = &spec.submission;
    // Of the page cache only trims are no calls that wait; a log may have them.
    let waits_in_calls = !direct
        && *engine != Engine::Null
        && !spec.replays()
        && !spec.pattern.mix.has(DataDirection::Trim);
    engine.waits() || waits_in_calls || (*depth == 1 && batches.complete_min > 0)
}

fn is_sequential(spec: &Spec) -> bool {
    spec.pattern.order == Order::Sequential
}

/// Whether some direction has a value that is not `none`, but no direction of the job.
fn is_of_others<T: PartialEq>(spec: &Spec, values: &PerDirection<T>, none: &T) -> bool {
    !spec.replays() && values.iter().any(|it| it != none) && !is_of_the_job(spec, values, none)
}

/// Whether a direction of the job has such a value; a log may have any direction.
fn is_of_the_job<T: PartialEq>(spec: &Spec, values: &PerDirection<T>, none: &T) -> bool {
    DataDirection::ALL.into_iter().any(|direction| {
        values[direction as usize] != *none && (spec.replays() || spec.pattern.mix.has(direction))
    })
}

fn can_fail(spec: &Spec) -> bool {
    let said = &spec.ends;
    is_of_the_job(spec, &said.max_latency, &Nanos::ZERO)
        || is_of_the_job(spec, &said.rate_min, &0)
        || is_of_the_job(spec, &said.rate_iops_min, &0)
}

fn has_no_latencies(spec: &Spec) -> bool {
    spec.logs.latency.is_none()
}

/// Whether there is a log of the bandwidth that is not averaged.
fn logs_each_bandwidth(spec: &Spec) -> bool {
    spec.logs.bandwidth.is_some() && !is_averaged(spec, spec.reports.bandwidth_window)
}

/// Whether there is a log of I/Os that is not averaged.
fn logs_each_io(spec: &Spec) -> bool {
    spec.logs.iops.is_some() && !is_averaged(spec, spec.reports.iops_window)
}

/// Whether values of windows that long are averaged.
fn is_averaged(spec: &Spec, window: Nanos) -> bool {
    spec.logs.average.min(window) > Nanos::ZERO
}

/// Whether there is a log of I/Os, and nothing is measured that has a line in it.
fn has_no_lines_of_iops(spec: &Spec) -> bool {
    logs_each_io(spec) && !spec.logs.has_iops()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::options;

    #[test]
    fn every_name_is_that_of_an_option_that_is_simulated() {
        let names = UNUSED.iter().flat_map(|(names, ..)| names.split(' '));
        for name in names {
            assert_eq!(options::first_name(name), Some(name));
        }
    }
}
