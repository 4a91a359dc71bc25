//! The logs that a job writes while it runs: which, and of what their lines are.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use paternoster::{IoClass, IoPrio, Nanos};

use super::job::Jobs;
use super::spec::{LogName, Spec};

/// The logs of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub struct RunLogs {
    /// Which there are, each with its path, in the order of [`LogKind`].
    pub files: Vec<(LogKind, String)>,
    /// Over what time values are averaged, `log_avg_msec`; 0, a line for each I/O.
    pub average: Nanos,
    /// The most of that time instead of the average of its latencies, `log_max_value`.
    pub most: bool,
    /// Each line has the position of the I/O in its file, `log_offset`.
    pub offset: bool,
    /// Each line has the priority of the I/O, `log_prio`, and not only whether it is real time.
    pub priority: bool,
    /// What `prio` and `prioclass` say. The I/O of the job has it, if not one of its own.
    pub io_prio: IoPriority,
    /// Where it is not averaged, the log of the bandwidth has lines: none with
    /// `disable_bw_measurement`.
    pub has_bandwidth: bool,
    /// The same of I/Os a second: none where submissions and completions are not measured either.
    pub has_iops: bool,
}

impl RunLogs {
    /// The logs of a job of that name, the `number`th of its file from 1 on.
    pub(super) fn new(spec: &Spec, job: &str, number: usize) -> Self {
        let said = &spec.logs;
        let kinds = [
            (LogKind::Iops, said.iops.as_ref(), true),
            (LogKind::Bandwidth, said.bandwidth.as_ref(), true),
            (LogKind::Submission, said.latency.as_ref(), said.submission),
            (LogKind::Completion, said.latency.as_ref(), said.completion),
            (LogKind::Total, said.latency.as_ref(), said.total),
        ];
        let files = kinds.into_iter().filter(|(.., is_measured)| *is_measured);
        let files = files.filter_map(|(kind, name, _)| {
            let name = match name? {
                LogName::Job => job,
                LogName::Given(name) => name,
            };
            let number = if said.per_job { format!(".{number}") } else { String::new() };
            Some((kind, format!("{name}_{}{number}.log", kind.name())))
        });
        // A level without a class is of best effort.
        let class = spec.identity.prioclass.or(spec.identity.prio.map(|_| 2));
        Self {
            files: files.collect(),
            average: said.average,
            most: said.most,
            offset: said.offset,
            priority: said.priority,
            io_prio: IoPriority::new(class.unwrap_or(0), spec.identity.prio.unwrap_or(0)),
            has_bandwidth: said.bandwidths,
            has_iops: said.has_iops(),
        }
    }
}

/// What a log tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogKind {
    /// Of each I/O 1, or I/Os a second where they are averaged.
    Iops,
    /// Of each I/O its bytes divided by its completion latency, in 1000 bytes a second; KiB a
    /// second where they are averaged.
    Bandwidth,
    /// The time from the making of an I/O to the end of its submission, in ns.
    Submission,
    /// From there to its completion, in ns.
    Completion,
    /// Both together, in ns.
    Total,
}

impl LogKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Iops, Self::Bandwidth, Self::Submission, Self::Completion, Self::Total];

    /// What it is called in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Bandwidth => "bw",
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Total => "lat",
        }
    }
}

/// An I/O priority as Linux encodes it: the class above 13 bits of the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoPriority(pub u16);

impl IoPriority {
    const CLASS_SHIFT: u32 = 13;
    const REAL_TIME: u16 = 1;

    /// The priority of a class, 0 to 3, and a level, 0 to 7.
    pub(super) fn new(class: u8, level: u8) -> Self {
        Self(u16::from(class) << Self::CLASS_SHIFT | u16::from(level))
    }

    /// Whether its class is real time.
    pub fn is_real_time(self) -> bool {
        self.0 >> Self::CLASS_SHIFT == Self::REAL_TIME
    }
}

impl From<IoPrio> for IoPriority {
    fn from(prio: IoPrio) -> Self {
        let class = match prio.class() {
            IoClass::Rt => 1,
            IoClass::Be => 2,
            // It has no levels.
            IoClass::Idle => return Self::new(3, 0),
        };
        Self::new(class, prio.level())
    }
}

impl Display for IoPriority {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl Jobs {
    /// The paths of the files that the jobs write, each once. A relative one is meant from where
    /// the command is run.
    pub fn written_files(&self) -> BTreeSet<&str> {
        let files = self.jobs.iter().flat_map(|job| &job.reports.logs.files);
        let iologs = self.jobs.iter().filter_map(|job| job.write_iolog.as_deref());
        files.map(|(_, path)| path.as_str()).chain(iologs).collect()
    }
}
