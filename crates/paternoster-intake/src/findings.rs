//! What a reader finds besides requests: the names of contexts, and what a user should know.

use std::collections::HashMap;
use std::fmt;

use crate::companion::Recorded;
use crate::request::ContextId;

/// Something about a trace that makes what is computed from it doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Times that are before the one of the record before.
    TimesGoBack {
        /// How many.
        count: u64,
        /// By how much at most, in ns.
        worst_ns: u64,
    },
    /// Completions of requests of which no dispatch was seen, and the reverse.
    Unpaired {
        /// Completions without a dispatch.
        completions: u64,
        /// Dispatches without a completion.
        dispatches: u64,
    },
    /// So many requests were outstanding when the trace began: their completions alone were seen.
    BegunInTheMiddle {
        /// How many.
        outstanding: u64,
    },
    /// The numbers of events jump: the tracer has lost some.
    LostEvents {
        /// How many numbers are missing.
        count: u64,
    },
    /// There is no file of a processor with a lower number than another.
    LostCpu {
        /// Its number.
        cpu: u32,
    },
    /// The last record is not whole.
    CutRecord {
        /// Its bytes.
        bytes: u64,
    },
    /// Nothing happens for much longer than otherwise.
    Gap {
        /// How many times.
        count: u64,
        /// The longest time, in ns.
        longest_ns: u64,
    },
    /// Requests have the time of the one before: the clock is coarse.
    CoarseClock {
        /// How many.
        count: u64,
    },
    /// Offsets or lengths that are not whole sectors.
    PartsOfSectors {
        /// How many requests have some.
        count: u64,
    },
    /// Other devices were traced too, and are left out.
    OtherDevices {
        /// The device that is read.
        device: String,
        /// How many others there are.
        others: usize,
        /// One that has more requests, which was not seen in time.
        more: Option<String>,
    },
    /// The format has several units of time.
    UnitAssumed {
        /// The one that is assumed.
        unit: &'static str,
        /// Why.
        because: &'static str,
    },
    /// Arrivals were not traced: a request arrives here with a later event of its way.
    ArrivalsAre {
        /// What stands for them.
        event: &'static str,
    },
    /// The format has whole seconds: arrivals are spread evenly in each.
    SpreadInSeconds,
    /// Requests reached behind the end of the device, and were moved.
    Moved {
        /// How many.
        count: u64,
        /// The size of the device in bytes.
        size: u64,
    },
    /// Requests that have no length and are no flushes are left out.
    Empty {
        /// How many.
        count: u64,
    },
    /// Events of requests whose operation is not known are left out.
    UnknownOperations {
        /// How many.
        count: u64,
    },
    /// The server has left out requests of its recording, as it could not follow.
    LostRequests {
        /// How many.
        count: u64,
    },
    /// Requests that the sidecar of a recording does not have.
    NotInSidecar {
        /// How many.
        count: u64,
    },
    /// Requests that end before they arrive: they are taken to take no time.
    EndsBeforeArrival {
        /// How many.
        count: u64,
    },
    /// Lines that hold no request.
    LinesLeftOut {
        /// How many.
        count: u64,
    },
}

impl Warning {
    /// A word for it, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TimesGoBack { .. } => "times-go-back",
            Self::Unpaired { .. } => "unpaired",
            Self::BegunInTheMiddle { .. } => "begun-in-the-middle",
            Self::LostEvents { .. } => "lost-events",
            Self::LostCpu { .. } => "lost-cpu",
            Self::CutRecord { .. } => "cut-record",
            Self::Gap { .. } => "gap",
            Self::CoarseClock { .. } => "coarse-clock",
            Self::PartsOfSectors { .. } => "parts-of-sectors",
            Self::OtherDevices { .. } => "other-devices",
            Self::UnitAssumed { .. } => "unit-assumed",
            Self::ArrivalsAre { .. } => "arrivals",
            Self::SpreadInSeconds => "spread-in-seconds",
            Self::Moved { .. } => "moved",
            Self::Empty { .. } => "empty",
            Self::UnknownOperations { .. } => "unknown-operations",
            Self::LostRequests { .. } => "lost-requests",
            Self::NotInSidecar { .. } => "not-in-sidecar",
            Self::EndsBeforeArrival { .. } => "ends-before-arrival",
            Self::LinesLeftOut { .. } => "lines-left-out",
        }
    }

    /// Where it is a number of something: that, and what.
    fn counted(&self) -> Option<(u64, &'static str)> {
        Some(match *self {
            Self::CoarseClock { count } => {
                (count, "requests have the time of the one before: the clock is coarse")
            }
            Self::PartsOfSectors { count } => {
                (count, "requests do not begin and end with whole sectors of 512 bytes")
            }
            Self::Empty { count } => {
                (count, "requests of 0 bytes that are no flushes are left out")
            }
            Self::UnknownOperations { count } => {
                (count, "events are left out whose operation is not known")
            }
            Self::EndsBeforeArrival { count } => {
                (count, "requests end before they arrive: they are taken to take no time")
            }
            Self::LostRequests { count } => {
                (count, "requests were left out of the recording: it is not whole")
            }
            Self::NotInSidecar { count } => {
                (count, "requests are not in the sidecar: nothing is known of their replies")
            }
            Self::LinesLeftOut { count } => (count, "lines hold no request"),
            _ => return None,
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((count, what)) = self.counted() {
            return write!(f, "{count} {what}");
        }
        match self {
            Self::TimesGoBack { count, worst_ns } => {
                write!(f, "{count} times go back, by {worst_ns} ns at most; requests are sorted")
            }
            Self::Unpaired { completions, dispatches } => write!(
                f,
                "{completions} completions without a dispatch, {dispatches} dispatches without a \
                 completion: events are missing"
            ),
            Self::BegunInTheMiddle { outstanding } => {
                write!(f, "the trace begins with {outstanding} requests outstanding")
            }
            Self::LostEvents { count } => {
                write!(f, "the tracer has lost {count} events: their numbers are missing")
            }
            Self::LostCpu { cpu } => {
                write!(f, "there is no file of CPU {cpu}: its events are missing")
            }
            Self::CutRecord { bytes } => {
                write!(f, "the last record is cut: {bytes} bytes of it are left out")
            }
            Self::Gap { count, longest_ns } => write!(
                f,
                "{count} times nothing happens for more than ten times the 99th percentile of \
                 times between arrivals, for {longest_ns} ns at most: events may be missing"
            ),
            Self::OtherDevices { device, others, more } => {
                write!(f, "device {device} is read; {others} others are left out (--device)")?;
                let Some(more) = more else { return Ok(()) };
                write!(f, ", of which {more} has more requests")
            }
            Self::UnitAssumed { unit, because } => {
                write!(f, "times are taken to be in {unit}, as {because} (--unit)")
            }
            Self::ArrivalsAre { event } => write!(
                f,
                "the trace has no arrivals: {event} stand for them, in the order and with the \
                 merging of the scheduler that was traced"
            ),
            Self::SpreadInSeconds => {
                write!(f, "times are whole seconds: arrivals are spread evenly in each")
            }
            Self::Moved { count, size } => {
                write!(f, "{count} requests are moved, so that all end within {size} bytes")
            }
            _ => unreachable!("it is counted"),
        }
    }
}

/// What a reader has found so far.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    warnings: Vec<Warning>,
    contexts: HashMap<Vec<u8>, ContextId>,
    names: Vec<String>,
    recorded: Option<Recorded>,
}

impl Findings {
    /// What a recording of the server says of itself, once all of it was read.
    pub fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_ref()
    }

    pub(crate) fn set_recorded(&mut self, recorded: Recorded) {
        self.recorded = Some(recorded);
    }

    /// The warnings.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The names of contexts, by their numbers.
    pub fn contexts(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// The context of that name.
    pub(crate) fn context(&mut self, name: &[u8]) -> ContextId {
        if let Some(&known) = self.contexts.get(name) {
            return known;
        }
        let id = ContextId(u32::try_from(self.names.len()).expect("fewer than 2^32 contexts"));
        self.contexts.insert(name.to_owned(), id);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        id
    }
}
