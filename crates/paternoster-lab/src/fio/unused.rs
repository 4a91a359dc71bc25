//! Options that say nothing because of what others say: fio ignores them, and so they are noted.

use paternoster::Nanos;

use super::job::{DataDirection, Engine, IoMix, Note, Order};
use super::spec::{BatchSpec, Spec, SubmissionSpec};
use super::value::PerDirection;

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
    Unused {
        option: "iodepth",
        why: "iodepth_batch_complete_min=0 without iodepth_batch_complete_max keeps one I/O under \
              way, as in fio",
        says_nothing: |spec| polls_for_one(spec) && spec.submission.depth > 1,
    },
    Unused { option: "iodepth_batch", why: ONE_UNDER_WAY, says_nothing: has_one_under_way },
    Unused { option: "iodepth_batch_complete_min", why: ONE_UNDER_WAY, says_nothing: has_one },
    Unused { option: "iodepth_batch_complete_max", why: ONE_UNDER_WAY, says_nothing: has_one },
    Unused { option: "iodepth_low", why: ONE_UNDER_WAY, says_nothing: has_one_under_way },
    Unused {
        option: "iodepth_batch",
        why: "posixaio hands over each I/O by itself",
        says_nothing: |spec| spec.submission.engine == Engine::PosixAio,
    },
    Unused { option: "iodepth_batch_complete_min", why: AT_ONCE, says_nothing: is_null },
    Unused { option: "iodepth_batch_complete_max", why: AT_ONCE, says_nothing: is_null },
    Unused { option: "iodepth_low", why: AT_ONCE, says_nothing: is_null },
    Unused {
        option: "iodepth_batch_complete_max",
        why: "it is below iodepth_batch_complete_min, and so is that",
        says_nothing: |spec| {
            let BatchSpec { complete_min, complete_max, .. } = spec.submission.batches;
            (1..complete_min).contains(&complete_max)
        },
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
    Unused {
        option: "rate",
        why: OTHER_DIRECTIONS,
        says_nothing: |spec| is_of_others(spec, spec.pacing.rate.map(|rate| rate.is_some())),
    },
    Unused {
        option: "rate_iops",
        why: OTHER_DIRECTIONS,
        says_nothing: |spec| is_of_others(spec, spec.pacing.rate_iops.map(|rate| rate.is_some())),
    },
    Unused {
        option: "max_latency",
        why: OTHER_DIRECTIONS,
        says_nothing: |spec| {
            is_of_others(spec, spec.ends.max_latency.map(|most| most > Nanos::ZERO))
        },
    },
    Unused {
        option: "rate_min",
        why: OTHER_DIRECTIONS,
        says_nothing: |spec| is_of_others(spec, spec.ends.rate_min.map(|least| least > 0)),
    },
    Unused {
        option: "rate_iops_min",
        why: OTHER_DIRECTIONS,
        says_nothing: |spec| is_of_others(spec, spec.ends.rate_iops_min.map(|least| least > 0)),
    },
    Unused {
        option: "exitall_on_error",
        why: "the job has no max_latency, rate_min or rate_iops_min by which it could fail",
        says_nothing: cannot_fail,
    },
    Unused { option: "steadystate", why: NO_DURATION, says_nothing: is_never_steady },
    Unused { option: "steadystate_ramp_time", why: NO_DURATION, says_nothing: is_never_steady },
    Unused {
        option: "steadystate_check_interval",
        why: NO_DURATION,
        says_nothing: is_never_steady,
    },
    Unused { option: "latency_window", why: NO_TARGET, says_nothing: has_no_target },
    Unused { option: "latency_percentile", why: NO_TARGET, says_nothing: has_no_target },
    Unused { option: "latency_run", why: NO_TARGET, says_nothing: has_no_target },
    Unused {
        option: "rate_cycle",
        why: "there is no least rate",
        says_nothing: |spec| spec.ends.rate_min == [0; 3] && spec.ends.rate_iops_min == [0; 3],
    },
    Unused { option: "fsync", why: TRIMS, says_nothing: trims_first },
    Unused { option: "fdatasync", why: TRIMS, says_nothing: trims_first },
    Unused { option: "cmdprio", why: NO_COMMANDS, says_nothing: has_no_commands },
    Unused { option: "cmdprio_class", why: NO_COMMANDS, says_nothing: has_no_commands },
    Unused { option: "per_job_logs", why: NO_LOGS, says_nothing: has_no_logs },
    Unused { option: "log_avg_msec", why: NO_LOGS, says_nothing: has_no_logs },
    Unused { option: "log_offset", why: NO_LOGS, says_nothing: has_no_logs },
    Unused { option: "log_prio", why: NO_LOGS, says_nothing: has_no_logs },
    Unused {
        option: "log_max_value",
        why: "no latencies are logged that log_avg_msec averages",
        says_nothing: |spec| has_no_latencies(spec) || spec.logs.average == Nanos::ZERO,
    },
    Unused { option: "disable_lat", why: NO_LATENCIES, says_nothing: has_no_latencies },
    Unused {
        option: "disable_clat",
        why: NO_LATENCIES,
        says_nothing: |spec| has_no_latencies(spec) && !has_no_lines_of_iops(spec),
    },
    Unused {
        option: "disable_slat",
        why: NO_LATENCIES,
        says_nothing: |spec| has_no_latencies(spec) && !has_no_lines_of_iops(spec),
    },
    Unused {
        option: "disable_bw_measurement",
        why: "no log loses a line by it",
        says_nothing: |spec| !logs_each_bandwidth(spec) && !has_no_lines_of_iops(spec),
    },
    Unused {
        option: "gtod_reduce",
        why: "no log loses a line by it",
        says_nothing: |spec| {
            has_no_latencies(spec) && !logs_each_bandwidth(spec) && !logs_each_io(spec)
        },
    },
    Unused {
        option: "write_bw_log",
        why: "its file stays empty, by disable_bw_measurement or gtod_reduce",
        says_nothing: |spec| logs_each_bandwidth(spec) && !spec.logs.bandwidths,
    },
    Unused {
        option: "write_iops_log",
        why: "its file stays empty, by gtod_reduce or by disable_bw_measurement, disable_clat and \
              disable_slat together",
        says_nothing: has_no_lines_of_iops,
    },
    Unused {
        option: "write_lat_log",
        why: "it has no files, by gtod_reduce or by disable_lat, disable_clat and disable_slat \
              together",
        says_nothing: |spec| {
            let said = &spec.logs;
            said.latency.is_some() && !said.total && !said.completion && !said.submission
        },
    },
    Unused {
        option: "rw",
        why: "the log of read_iolog says what is done, and the kernel is not told of an order",
        says_nothing: |spec| {
            let said = &spec.submission;
            let is_cached = !said.direct || said.engine == Engine::Mmap;
            spec.replays() && (!is_cached || said.advice.is_some())
        },
    },
    Unused {
        option: "write_iolog",
        why: "read_iolog overrides it, as in fio",
        says_nothing: Spec::replays,
    },
    Unused {
        option: "nrfiles",
        why: "filename names the files",
        says_nothing: |spec| !spec.target.filename.is_empty(),
    },
];

const ONE_UNDER_WAY: &str = "one I/O is under way at a time";
const AT_ONCE: &str = "what is handed to ioengine=null is complete";
const OTHER_DIRECTIONS: &str = "it is of directions that rw does not have";
const NO_MIX: &str = "rw is no mix of reads and writes";
const NOT_RANDOM: &str = "the job is sequential";
const NO_THINKING: &str = "thinktime is not set";
const NO_DURATION: &str = "steadystate_duration is not set";
const NO_TARGET: &str = "latency_target is not set";
const TRIMS: &str = "fio does not sync among trims and writes";
const NO_COMMANDS: &str = "neither cmdprio_percentage nor cmdprio_bssplit is set";
const NO_LOGS: &str = "no log is written";
const NO_LATENCIES: &str = "no latencies are logged";

/// What says nothing where a log is replayed.
static BY_THE_LOG: &[&str] = &[
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bsrange",
    "bssplit",
    "bs_unaligned",
    "bs_is_seq_rand",
    "ba",
    "random_distribution",
    "percentage_random",
    "norandommap",
    "randrepeat",
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "number_ios",
    "loops",
    "time_based",
    "filename",
    "filename_format",
    "nrfiles",
    "file_service_type",
    "filesize",
    "size",
    "io_size",
    "offset",
    "offset_increment",
    "offset_align",
    "rate",
    "rate_iops",
    "rate_process",
    "rate_ignore_thinktime",
];

/// What only says something where one is.
static OF_REPLAYS: &[&str] = &[
    "replay_no_stall",
    "replay_time_scale",
    "replay_scale",
    "replay_align",
    "replay_skip",
    "replay_redirect",
];

const BY_LOG: &str = "the log of read_iolog says what is done, and when";
const NO_LOG: &str = "read_iolog is not set";

/// The notes of a section.
pub(super) fn notes(spec: &Spec) -> impl Iterator<Item = Note> {
    let note = |option: &str, why| {
        let place = spec.places.get(option)?.clone();
        Some(Note { place, option: option.to_owned(), why })
    };
    let (by_log, why) = if spec.replays() { (BY_THE_LOG, BY_LOG) } else { (OF_REPLAYS, NO_LOG) };
    let noted = by_log.iter().filter_map(move |option| note(option, why));
    let unused = UNUSED.iter().filter(|unused| !by_log.contains(&unused.option));
    noted.chain(unused.filter_map(move |unused| {
        (unused.says_nothing)(spec).then(|| note(unused.option, unused.why)).flatten()
    }))
}

fn is_null(spec: &Spec) -> bool {
    spec.submission.engine == Engine::Null
}

/// Whether it polls, and nothing says how many completions it takes back.
fn polls_for_one(spec: &Spec) -> bool {
    let SubmissionSpec { engine, batches, .. } = &spec.submission;
    let polls = batches.complete_min == 0 && *engine != Engine::Null && !engine.waits();
    polls && batches.complete_max == 0
}

/// Whether no batch can have two I/Os.
fn has_one_under_way(spec: &Spec) -> bool {
    has_one(spec) || polls_for_one(spec)
}

/// The same, wherever completions are looked for.
fn has_one(spec: &Spec) -> bool {
    let SubmissionSpec { engine, depth, batches, .. } = &spec.submission;
    // Of the page cache only trims are no calls that wait; a log may have them.
    let waits_in_calls = !spec.submission.direct
        && *engine != Engine::Null
        && !spec.replays()
        && !spec.pattern.mix.has(DataDirection::Trim);
    engine.waits() || waits_in_calls || (*depth == 1 && batches.complete_min > 0)
}

fn has_no_mix(spec: &Spec) -> bool {
    !matches!(spec.pattern.mix, IoMix::ReadsAndWrites { .. })
}

fn is_sequential(spec: &Spec) -> bool {
    spec.pattern.order == Order::Sequential
}

fn does_not_think(spec: &Spec) -> bool {
    spec.pacing.thinktime == Nanos::ZERO
}

fn is_never_steady(spec: &Spec) -> bool {
    spec.ends.steady_duration == paternoster::Nanos::ZERO
}

fn has_no_target(spec: &Spec) -> bool {
    spec.ends.latency_target == paternoster::Nanos::ZERO
}

fn has_no_commands(spec: &Spec) -> bool {
    let said = &spec.submission;
    said.cmdprio_percentage == [0; 2] && said.cmdprio_bssplit.iter().all(Vec::is_empty)
}

fn has_no_logs(spec: &Spec) -> bool {
    !spec.logs.has_any()
}

fn has_no_latencies(spec: &Spec) -> bool {
    spec.logs.latency.is_none()
}

/// Whether it is of no direction that the job has, but of another.
fn is_of_others(spec: &Spec, has: PerDirection<bool>) -> bool {
    !spec.replays() && has.contains(&true) && !is_of_the_job(spec, has)
}

/// Whether it is of a direction of the job; a log may have any.
fn is_of_the_job(spec: &Spec, has: PerDirection<bool>) -> bool {
    DataDirection::ALL.into_iter().any(|direction| {
        has[direction as usize] && (spec.replays() || spec.pattern.mix.has(direction))
    })
}

fn cannot_fail(spec: &Spec) -> bool {
    let said = &spec.ends;
    let latencies = said.max_latency.map(|most| most > Nanos::ZERO);
    let rates = said.rate_min.map(|least| least > 0);
    let ios = said.rate_iops_min.map(|least| least > 0);
    spec.run.exitall_on_error
        && [latencies, rates, ios].into_iter().all(|has| !is_of_the_job(spec, has))
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

fn trims_first(spec: &Spec) -> bool {
    spec.pattern.mix == IoMix::TrimsAndWrites
}
