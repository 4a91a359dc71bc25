//! What the options of a section say, before sizes and names are made out of it for each job.

use std::collections::BTreeMap;

use paternoster::Nanos;

use super::ends::{SteadyCriterion, SteadyRate, SteadyState};
use super::error::Place;
use super::iolog::Rules;
use super::job::{
    Advice, BlockSizes, Coverage, DataDirection, Distribution, Engine, ExitWhat, FileService,
    IoMix, Order, RateProcess, Sequencer, ThinkTrigger, WriteSync,
};
use super::value::{Extent, KbBase, PerDirection};

/// The settings of a job section, in fio's words and with fio's defaults.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) kb_base: KbBase,
    pub(super) identity: Identity,
    pub(super) target: Target,
    pub(super) replay: ReplaySpec,
    pub(super) pattern: PatternSpec,
    pub(super) submission: SubmissionSpec,
    pub(super) pacing: PacingSpec,
    pub(super) ends: EndsSpec,
    pub(super) run: RunSpec,
    pub(super) reports: ReportsSpec,
    pub(super) logs: LogsSpec,
    /// Where each option that was given stands, by its first name; an extension key has `lab:`.
    pub(super) places: BTreeMap<&'static str, Place>,
}

/// Who the job is.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) numjobs: u32,
    pub(super) prio: Option<u8>,
    pub(super) prioclass: Option<u8>,
    pub(super) nice: i8,
    pub(super) group: Option<String>,
    pub(super) weight: Option<u32>,
    pub(super) leaf_weight: Option<u32>,
}

/// What it reads and writes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) directory: Vec<String>,
    pub(super) filename: Vec<String>,
    pub(super) filename_format: String,
    pub(super) nrfiles: u32,
    pub(super) file_service: FileService,
    pub(super) filesize: Option<(u64, u64)>,
    pub(super) size: Option<Extent>,
    pub(super) io_size: Option<Extent>,
    pub(super) offset: Extent,
    pub(super) offset_increment: Extent,
    pub(super) offset_align: u64,
    pub(super) at: Option<Extent>,
}

/// Which log it replays, and how; and which it writes.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplaySpec {
    /// For clones in turns; none where nothing is replayed.
    pub(super) logs: Vec<String>,
    pub(super) rules: Rules,
    pub(super) written: Option<String>,
}

/// In what order and what sizes.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub(super) struct PatternSpec {
    pub(super) mix: IoMix,
    pub(super) order: Order,
    pub(super) modifier: Option<i64>,
    pub(super) sequencer: Sequencer,
    pub(super) percent_reads: u8,
    /// `bs`, which holds where neither of the next two is given, whatever their order.
    pub(super) block: PerDirection<u64>,
    /// `bsrange`, from the least to the greatest.
    pub(super) ranges: PerDirection<Option<(u64, u64)>>,
    /// `bssplit`, which holds before `bsrange`.
    pub(super) splits: PerDirection<Option<Vec<(u64, u8)>>>,
    pub(super) unaligned: bool,
    pub(super) sizes_by_order: bool,
    pub(super) align: PerDirection<Option<u64>>,
    pub(super) distribution: Distribution,
    pub(super) percent_random: PerDirection<u8>,
    pub(super) coverage: Coverage,
    pub(super) repeat: bool,
    pub(super) seed: Option<u64>,
    pub(super) fsync: u32,
    pub(super) fdatasync: u32,
    pub(super) end_fsync: bool,
    pub(super) fsync_on_close: bool,
    pub(super) number_ios: Option<u64>,
    pub(super) loops: u32,
}

/// How it is handed to the kernel.
#[derive(Clone, Debug)]
pub(super) struct SubmissionSpec {
    pub(super) engine: Engine,
    pub(super) depth: u32,
    pub(super) batches: BatchSpec,
    pub(super) direct: bool,
    pub(super) write_sync: WriteSync,
    pub(super) invalidate: bool,
    /// The order of the job where absent.
    pub(super) advice: Option<Advice>,
    pub(super) cmdprio_percentage: [u8; 2],
    pub(super) cmdprio_class: [Option<u8>; 2],
    pub(super) cmdprio: [u8; 2],
    pub(super) cmdprio_bssplit: [Vec<PrioritySplit>; 2],
}

/// In what batches it is handed over and taken back. 0 has a meaning of its own in each.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSpec {
    pub(super) submit: u32,
    pub(super) low: u32,
    pub(super) complete_min: u32,
    pub(super) complete_max: u32,
}

/// A part of the I/Os of a size, `cmdprio_bssplit`.
#[derive(Clone, Debug)]
pub(super) struct PrioritySplit {
    pub(super) bytes: u64,
    pub(super) percent: u8,
    /// Class and level; those of `cmdprio_class` and `cmdprio` where absent.
    pub(super) priority: Option<(u8, u8)>,
}

/// How fast.
#[derive(Clone, Debug)]
pub(super) struct PacingSpec {
    pub(super) thinktime: Nanos,
    pub(super) thinktime_spin: Nanos,
    pub(super) thinktime_blocks: u32,
    pub(super) thinktime_trigger: ThinkTrigger,
    pub(super) thinktime_iotime: Nanos,
    pub(super) rate: PerDirection<Option<u64>>,
    pub(super) rate_iops: PerDirection<Option<u64>>,
    pub(super) rate_process: RateProcess,
    pub(super) rate_ignore_thinktime: bool,
}

/// What ends it beside its work and its runtime; 0 is none.
#[derive(Clone, Debug)]
pub(super) struct EndsSpec {
    pub(super) max_latency: PerDirection<Nanos>,
    pub(super) rate_min: PerDirection<u64>,
    pub(super) rate_iops_min: PerDirection<u64>,
    /// In milliseconds.
    pub(super) rate_cycle: u32,
    pub(super) steady: SteadyState,
    pub(super) steady_duration: Nanos,
    pub(super) steady_interval: Nanos,
    pub(super) steady_ramp: Nanos,
    pub(super) latency_target: Nanos,
    pub(super) latency_window: Nanos,
    pub(super) latency_percentile: f64,
    pub(super) latency_run: bool,
}

/// When it starts and ends.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub(super) struct RunSpec {
    pub(super) runtime: Nanos,
    pub(super) time_based: bool,
    pub(super) start_delay: (Nanos, Nanos),
    pub(super) ramp_time: Nanos,
    pub(super) stonewall: bool,
    pub(super) wait_for: Option<String>,
    pub(super) exitall: bool,
    pub(super) exitall_on_error: bool,
    pub(super) exit_what: ExitWhat,
}

/// What is told of it.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub(super) struct ReportsSpec {
    pub(super) is_told: bool,
    pub(super) group_reporting: bool,
    pub(super) new_group: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) slat_percentiles: bool,
    pub(super) clat_percentiles: bool,
    pub(super) lat_percentiles: bool,
    pub(super) bandwidth_window: Nanos,
    pub(super) iops_window: Nanos,
}

/// Which logs it writes.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub(super) struct LogsSpec {
    pub(super) bandwidth: Option<LogName>,
    pub(super) latency: Option<LogName>,
    pub(super) iops: Option<LogName>,
    pub(super) per_job: bool,
    pub(super) average: Nanos,
    pub(super) most: bool,
    pub(super) offset: bool,
    pub(super) priority: bool,
    /// What is measured.
    pub(super) total: bool,
    pub(super) completion: bool,
    pub(super) submission: bool,
    pub(super) bandwidths: bool,
}

/// With what the name of a log begins.
#[derive(Clone, Debug)]
pub(super) enum LogName {
    /// The name of the job.
    Job,
    Given(String),
}

impl Spec {
    /// The size that is the default of `bs`.
    pub(super) const BLOCK: u64 = 4096;

    /// What fio does where nothing is said.
    pub(super) fn new() -> Self {
        Self {
            kb_base: KbBase::default(),
            identity: Identity::new(),
            target: Target::new(),
            replay: ReplaySpec::default(),
            pattern: PatternSpec::new(),
            submission: SubmissionSpec::new(),
            pacing: PacingSpec::new(),
            ends: EndsSpec::new(),
            run: RunSpec::new(),
            reports: ReportsSpec::new(),
            logs: LogsSpec::new(),
            places: BTreeMap::new(),
        }
    }

    /// Whether it replays a log.
    pub(super) fn replays(&self) -> bool {
        !self.replay.logs.is_empty()
    }
}

impl Identity {
    fn new() -> Self {
        Self {
            name: None,
            description: None,
            numjobs: 1,
            prio: None,
            prioclass: None,
            nice: 0,
            group: None,
            weight: None,
            leaf_weight: None,
        }
    }
}

impl Target {
    fn new() -> Self {
        Self {
            directory: vec![],
            filename: vec![],
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            nrfiles: 1,
            file_service: FileService::RoundRobin { ios: 1 },
            filesize: None,
            size: None,
            io_size: None,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            offset_align: 0,
            at: None,
        }
    }
}

impl PatternSpec {
    fn new() -> Self {
        Self {
            mix: IoMix::Only(DataDirection::Read),
            order: Order::Sequential,
            modifier: None,
            sequencer: Sequencer::Sequential,
            percent_reads: 50,
            block: [Spec::BLOCK; 3],
            ranges: [None; 3],
            splits: [const { None }; 3],
            unaligned: false,
            sizes_by_order: false,
            align: [None; 3],
            distribution: Distribution::Uniform,
            percent_random: [100; 3],
            coverage: Coverage::EachOnce,
            repeat: true,
            seed: None,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fsync_on_close: false,
            number_ios: None,
            loops: 1,
        }
    }
}

impl PatternSpec {
    /// How large the I/Os of each direction are. As in fio, `bs` does not end `bsrange` or
    /// `bssplit`, wherever it stands; and without `bs_unaligned` the sizes of a split are multiples
    /// of its least one, rounded down.
    pub(super) fn sizes(&self) -> PerDirection<BlockSizes> {
        std::array::from_fn(|direction| {
            if let Some(parts) = &self.splits[direction] {
                let least = parts.iter().map(|&(size, _)| size).min().unwrap_or(1);
                let step = if self.unaligned { 1 } else { least };
                let parts = parts.iter().map(|&(size, percent)| (size / step * step, percent));
                return BlockSizes::Split(parts.collect());
            }
            match self.ranges[direction] {
                Some((min, max)) if min < max => {
                    let step = if self.unaligned { 1 } else { min };
                    BlockSizes::Range { min, max, step }
                }
                Some((size, _)) => BlockSizes::Fixed(size),
                None => BlockSizes::Fixed(self.block[direction]),
            }
        })
    }
}

impl SubmissionSpec {
    fn new() -> Self {
        Self {
            engine: Engine::Psync,
            depth: 1,
            batches: BatchSpec { submit: 1, low: 0, complete_min: 1, complete_max: 0 },
            direct: false,
            write_sync: WriteSync::None,
            invalidate: true,
            advice: None,
            cmdprio_percentage: [0; 2],
            cmdprio_class: [None; 2],
            cmdprio: [0; 2],
            cmdprio_bssplit: [vec![], vec![]],
        }
    }
}

impl PacingSpec {
    fn new() -> Self {
        Self {
            thinktime: Nanos::ZERO,
            thinktime_spin: Nanos::ZERO,
            thinktime_blocks: 1,
            thinktime_trigger: ThinkTrigger::Complete,
            thinktime_iotime: Nanos::ZERO,
            rate: [None; 3],
            rate_iops: [None; 3],
            rate_process: RateProcess::Linear,
            rate_ignore_thinktime: false,
        }
    }
}

impl EndsSpec {
    fn new() -> Self {
        Self {
            max_latency: [Nanos::ZERO; 3],
            rate_min: [0; 3],
            rate_iops_min: [0; 3],
            rate_cycle: 1000,
            // Its times are below.
            steady: SteadyState {
                rate: SteadyRate::Ios,
                criterion: SteadyCriterion::Slope,
                limit: 0.01,
                is_percent: true,
                checks: 1,
                interval: Nanos::ZERO,
                ramp: Nanos::ZERO,
            },
            steady_duration: Nanos::ZERO,
            steady_interval: Nanos::from_secs(1),
            steady_ramp: Nanos::ZERO,
            latency_target: Nanos::ZERO,
            latency_window: Nanos::ZERO,
            latency_percentile: 100.0,
            latency_run: false,
        }
    }
}

impl RunSpec {
    fn new() -> Self {
        Self {
            runtime: Nanos::ZERO,
            time_based: false,
            start_delay: (Nanos::ZERO, Nanos::ZERO),
            ramp_time: Nanos::ZERO,
            stonewall: false,
            wait_for: None,
            exitall: false,
            exitall_on_error: false,
            exit_what: ExitWhat::Group,
        }
    }
}

impl ReportsSpec {
    /// The percentiles that fio tells of.
    const PERCENTILES: [f64; 17] = [
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];

    fn new() -> Self {
        Self {
            is_told: true,
            group_reporting: false,
            new_group: false,
            percentiles: Self::PERCENTILES.to_vec(),
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            bandwidth_window: Nanos::from_millis(500),
            iops_window: Nanos::from_millis(500),
        }
    }
}

impl LogsSpec {
    /// Whether an I/O has a line in a log of I/Os that is not averaged: where something is
    /// measured of it.
    pub(super) fn has_iops(&self) -> bool {
        self.bandwidths || self.submission || self.completion
    }

    fn new() -> Self {
        Self {
            bandwidth: None,
            latency: None,
            iops: None,
            per_job: true,
            average: Nanos::ZERO,
            most: false,
            offset: false,
            priority: false,
            total: true,
            completion: true,
            submission: true,
            bandwidths: true,
        }
    }

    /// Whether there is a log of any kind.
    pub(super) fn has_any(&self) -> bool {
        self.bandwidth.is_some() || self.latency.is_some() || self.iops.is_some()
    }
}
