//! What a first reading of a trace of events finds, which the second one has to know beforehand:
//! when it begins, which device it is of, and with which event requests arrive.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::event::{Event, Events, Point};
use crate::findings::{Findings, Warning};

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// The time of the first event, in ns.
    pub(crate) begin: u64,
    /// The device whose events are read.
    pub(crate) device: u64,
    /// The point at which a request arrives.
    pub(crate) arrival: Point,
    /// Completions are in the trace.
    pub(crate) completes: bool,
    /// Dispatches are in the trace.
    pub(crate) issues: bool,
}

/// How many events of each point a device has.
#[derive(Clone, Copy, Default)]
struct Counts {
    queued: u64,
    inserted: u64,
    issued: u64,
    completed: u64,
}

impl Counts {
    /// How many requests there are, and where they arrive.
    fn arrivals(self) -> (u64, Point) {
        match self {
            Self { queued: 1.., .. } => (self.queued, Point::Queued),
            Self { inserted: 1.., .. } => (self.inserted, Point::Inserted),
            _ => (self.issued, Point::Issued),
        }
    }
}

impl Survey {
    /// Reads all events. None where there is no request.
    pub(crate) fn of(
        events: &mut dyn Events,
        asked: Option<u64>,
        findings: &mut Findings,
    ) -> Result<Option<Self>, Error> {
        let mut devices = BTreeMap::<u64, Counts>::new();
        let mut numbers = BTreeMap::<u32, u64>::new();
        let (mut begin, mut lost) = (u64::MAX, 0);
        // What a reader says of lines and records, the second reading says again.
        let mut said_again = Findings::default();
        while let Some(event) = events.next(&mut said_again)? {
            begin = begin.min(event.time);
            if let Some(number) = event.number {
                // A number of 0 is a note's.
                let highest = numbers.entry(number.cpu).or_insert(number.sequence);
                lost += number.sequence.saturating_sub(highest.saturating_add(1));
                *highest = number.sequence.max(*highest);
            }
            let of_device = devices.entry(event.device).or_default();
            match event.point {
                Point::Queued => of_device.queued += 1,
                Point::Inserted => of_device.inserted += 1,
                Point::Issued => of_device.issued += 1,
                Point::Completed => of_device.completed += 1,
                Point::Other => {}
            }
        }
        if lost > 0 {
            findings.warn(Warning::LostEvents { count: lost });
        }
        // A device that stands on another has each request a second time.
        let most = |(_, counts): &(&u64, &Counts)| (counts.arrivals().0, counts.completed);
        let found = match asked {
            Some(device) => devices.get_key_value(&device),
            None => devices.iter().filter(|(_, counts)| counts.arrivals().0 > 0).max_by_key(most),
        };
        let Some((&device, &counts)) = found else { return Ok(None) };
        let others = devices.values().filter(|counts| counts.arrivals().0 > 0).count() - 1;
        if others > 0 && asked.is_none() {
            let device = Event::device_name(device);
            findings.warn(Warning::OtherDevices { device, others });
        }
        let arrival = counts.arrivals().1;
        match arrival {
            Point::Inserted => findings.warn(Warning::ArrivalsAre { event: "insertions" }),
            Point::Issued => findings.warn(Warning::ArrivalsAre { event: "dispatches" }),
            _ => {}
        }
        let (completes, issues) = (counts.completed > 0, counts.issued > 0);
        Ok(Some(Self { begin, device, arrival, completes, issues }))
    }
}
