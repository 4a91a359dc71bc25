//! What has to be known of a trace of events before its requests are put together: when it begins,
//! which device it is of, and with which event requests arrive. The first events tell it; the rest
//! is compared with that.

use std::collections::{BTreeMap, VecDeque};

use crate::error::Error;
use crate::event::{Event, Events, Point};
use crate::findings::{Findings, Warning};

/// How many events are looked at, which is as many as are held back.
const FIRST: usize = 65_536;

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    /// The time of the first event, in ns.
    pub(crate) begin: u64,
    /// The device whose events are read.
    pub(crate) device: u64,
    /// The point at which a request arrives.
    pub(crate) arrival: Point,
    /// The point at which a request is done; none is in the trace.
    pub(crate) completion: Option<Point>,
    /// Dispatches are in the trace.
    pub(crate) issues: bool,
}

/// How many events of each point a device has.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    queued: u64,
    started: u64,
    inserted: u64,
    issued: u64,
    completed: u64,
    done: u64,
}

impl Counts {
    fn add(&mut self, point: Point) {
        match point {
            Point::Queued => self.queued += 1,
            Point::Started => self.started += 1,
            Point::Inserted => self.inserted += 1,
            Point::Issued => self.issued += 1,
            Point::Requeued => {}
            Point::Completed => self.completed += 1,
            Point::Done => self.done += 1,
        }
    }

    /// How many requests there are, and where they arrive.
    fn arrivals(self) -> (u64, Point) {
        match self {
            Self { queued: 1.., .. } => (self.queued, Point::Queued),
            Self { started: 1.., .. } => (self.started, Point::Started),
            Self { inserted: 1.., .. } => (self.inserted, Point::Inserted),
            _ => (self.issued, Point::Issued),
        }
    }
}

/// The events of all devices, counted.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    counts: BTreeMap<u64, Counts>,
    /// Of the device of the last event, which is not among those.
    last: (u64, Counts),
    /// One was asked for: nobody need be told of the others.
    is_asked: bool,
}

impl Devices {
    pub(crate) fn add(&mut self, event: &Event) {
        if self.last.0 != event.device {
            self.settle();
            self.last = (event.device, self.counts.remove(&event.device).unwrap_or_default());
        }
        self.last.1.add(event.point);
    }

    fn settle(&mut self) {
        let (device, counts) = self.last;
        self.counts.insert(device, counts);
    }

    /// The device with most requests. What stands on another one has each request a second time.
    fn most(&mut self) -> Option<u64> {
        self.settle();
        let most = |(_, counts): &(&u64, &Counts)| (counts.arrivals().0, counts.completed);
        let found = self.counts.iter().filter(|(_, counts)| counts.arrivals().0 > 0);
        found.max_by_key(most).map(|(&device, _)| device)
    }

    /// Says of what the trace was read and what was left out, at its end.
    pub(crate) fn tell(mut self, survey: Survey, findings: &mut Findings) {
        self.settle();
        let Survey { device, arrival, .. } = survey;
        let others = self.counts.iter().filter(|&(&other, _)| other != device);
        let others = others.filter(|(_, counts)| counts.arrivals().0 > 0).count();
        if others > 0 && !self.is_asked {
            let more = self.most().filter(|&most| most != device).map(Event::device_name);
            let device = Event::device_name(device);
            findings.warn(Warning::OtherDevices { device, others, more });
        }
        match arrival {
            Point::Started => findings.warn(Warning::ArrivalsAre { event: "starts of accounting" }),
            Point::Inserted => findings.warn(Warning::ArrivalsAre { event: "insertions" }),
            Point::Issued => findings.warn(Warning::ArrivalsAre { event: "dispatches" }),
            _ => {}
        }
    }
}

/// The events that were looked at, and what they tell.
pub(crate) struct Surveyed {
    pub(crate) survey: Survey,
    pub(crate) devices: Devices,
    /// They come before those that are still to be read.
    pub(crate) first: VecDeque<Event>,
}

impl Surveyed {
    /// Reads the first events; of the device that is asked for, if one is. None where there is no
    /// request.
    pub(crate) fn of(
        events: &mut dyn Events,
        asked: Option<u64>,
        findings: &mut Findings,
    ) -> Result<Option<Self>, Error> {
        let mut devices = Devices { is_asked: asked.is_some(), ..Devices::default() };
        let mut first = VecDeque::new();
        let mut arrivals = 0_u64;
        while first.len() < FIRST || arrivals == 0 {
            let Some(event) = events.next(findings)? else { break };
            devices.add(&event);
            if asked.is_some_and(|asked| asked != event.device) {
                continue;
            }
            let ends = [Point::Completed, Point::Done, Point::Requeued].contains(&event.point);
            arrivals += u64::from(!ends);
            if first.len() == FIRST {
                first.pop_front();
            }
            first.push_back(event);
        }
        let found = asked.or_else(|| devices.most());
        let Some(device) = found.filter(|_| arrivals > 0) else { return Ok(None) };
        devices.settle();
        let counts = devices.counts.get(&device).copied().unwrap_or_default();
        let survey = Survey {
            begin: events.tally().begin,
            device,
            arrival: counts.arrivals().1,
            completion: match counts {
                Counts { completed: 1.., .. } => Some(Point::Completed),
                Counts { done: 1.., .. } => Some(Point::Done),
                _ => None,
            },
            issues: counts.issued > 0,
        };
        Ok(Some(Self { survey, devices, first }))
    }
}
