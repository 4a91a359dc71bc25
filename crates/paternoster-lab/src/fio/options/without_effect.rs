//! Options that change nothing in a model. Their values are not looked at.

use super::{OptionInfo, Support, other};

const DATA: Support = Support::NoEffect("a model keeps no data");
const MEMORY: Support = Support::NoEffect("the memory of jobs is not modelled");
const PROCESSORS: Support = Support::NoEffect("the processors of jobs are not modelled");
const CLOCK: Support = Support::NoEffect("virtual time costs nothing to read");
const FILES: Support = Support::NoEffect("the files and groups are there before the jobs start");
const DRAWS: Support =
    Support::NoEffect("draws are of a generator of the laboratory, and always repeat");
const ERRORS: Support = Support::NoEffect("no I/O of a model fails");
const USERS: Support = Support::NoEffect("there are no users");
const OUTPUT: Support = Support::NoEffect("the report has one form");
const LOGS: Support = Support::NoEffect("lines of logs are written as they come");
const EPOCH: Support = Support::NoEffect("virtual time has no date, so that option is refused");
const HISTOGRAMS: Support = Support::NoEffect("they are of `write_hist_log`, which is refused");

pub(super) static OPTIONS: &[OptionInfo] = &[
    other(DATA, "zero_buffers", &[], &[], "Writes zeroes."),
    other(DATA, "refill_buffers", &[], &[], "Writes new data each time."),
    other(DATA, "scramble_buffers", &[], &[], "Changes data a little each time."),
    other(DATA, "buffer_pattern", &[], &[], "Writes a pattern."),
    other(DATA, "buffer_compress_percentage", &[], &[], "How well data can be compressed."),
    other(DATA, "buffer_compress_chunk", &[], &[], "In what pieces."),
    other(DATA, "dedupe_percentage", &[], &[], "How many writes have equal data."),
    other(DATA, "dedupe_mode", &[], &[], "Equal to what."),
    other(DATA, "dedupe_working_set_percentage", &[], &[], "Among how many."),
    other(DATA, "dedupe_global", &[], &[], "Among all jobs."),
    other(MEMORY, "mem", &["iomem"], &[], "Where buffers are."),
    other(MEMORY, "mem_align", &["iomem_align"], &[], "How buffers are aligned."),
    other(MEMORY, "hugepage-size", &[], &[], "How large huge pages are."),
    other(MEMORY, "lockmem", &[], &[], "Pins memory."),
    other(MEMORY, "thp", &[], &[], "Maps huge pages."),
    other(PROCESSORS, "thread", &[], &[], "Threads instead of processes."),
    other(PROCESSORS, "threads", &[], &[], "What some of fio's examples say for `thread`."),
    other(PROCESSORS, "cpumask", &[], &[], "On which processors a job runs."),
    other(PROCESSORS, "cpus_allowed", &[], &[], "The same as a list."),
    other(PROCESSORS, "cpus_allowed_policy", &[], &[], "Whether clones share them."),
    other(PROCESSORS, "numa_cpu_nodes", &[], &[], "On which nodes a job runs."),
    other(PROCESSORS, "numa_mem_policy", &[], &[], "On which nodes its memory is."),
    other(PROCESSORS, "fixedbufs", &[], &[], "Maps buffers once."),
    other(PROCESSORS, "registerfiles", &[], &[], "Registers files once."),
    other(PROCESSORS, "nonvectored", &[], &[], "Calls without a vector."),
    other(PROCESSORS, "userspace_reap", &[], &[], "Takes completions without a call."),
    other(CLOCK, "clocksource", &[], &[], "Which clock is read."),
    other(CLOCK, "gtod_cpu", &[], &[], "Reads it on one processor."),
    other(FILES, "create_serialize", &[], &[], "Makes the files of jobs one after the other."),
    other(FILES, "create_fsync", &[], &[], "Syncs files when they are made."),
    other(FILES, "create_on_open", &[], &[], "Makes files when they are opened."),
    other(FILES, "allow_file_create", &[], &[], "Files may be made."),
    other(FILES, "allow_mounted_write", &[], &[], "A mounted device may be written."),
    other(FILES, "fallocate", &[], &[], "How space is reserved."),
    other(FILES, "overwrite", &[], &[], "Files are made before they are written."),
    other(FILES, "unlink", &[], &[], "Removes files at the end."),
    other(FILES, "unlink_each_loop", &[], &[], "Removes files after each loop."),
    other(FILES, "unique_filename", &[], &[], "Names files by the client."),
    other(FILES, "cgroup_nodelete", &[], &[], "Keeps groups at the end."),
    other(DRAWS, "random_generator", &[], &[], "How positions are drawn."),
    other(DRAWS, "softrandommap", &[], &[], "Goes on without a map of blocks."),
    other(DRAWS, "allrandrepeat", &[], &[], "All draws repeat."),
    other(ERRORS, "continue_on_error", &[], &[], "Goes on after errors."),
    other(ERRORS, "ignore_error", &[], &[], "Which errors are none."),
    other(ERRORS, "error_dump", &[], &[], "Reports each error."),
    other(ERRORS, "block_error_percentiles", &[], &[], "Counts trims until an error."),
    other(USERS, "uid", &[], &[], "As which user a job runs."),
    other(USERS, "gid", &[], &[], "As which group of users."),
    other(OUTPUT, "significant_figures", &[], &[], "How many digits a report shows."),
    other(OUTPUT, "unit_base", &[], &[], "Bits or bytes."),
    other(OUTPUT, "disk_util", &[], &[], "Reports how busy the device is."),
    other(LOGS, "log_entries", &[], &[], "How long a log is at first."),
    other(LOGS, "log_compression", &[], &[], "Compressed while it grows."),
    other(LOGS, "log_compression_cpus", &[], &[], "By which processors."),
    other(EPOCH, "log_alternate_epoch_clock_id", &[], &[], "The clock of `log_alternate_epoch`."),
    other(HISTOGRAMS, "log_hist_msec", &[], &[], "How often histograms are written."),
    other(HISTOGRAMS, "log_hist_coarseness", &[], &[], "How coarse they are."),
];
