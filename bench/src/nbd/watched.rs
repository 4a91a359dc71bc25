//! A server under one load, with what it and its client cost.
//!
//! ```text
//!   fio      ├─ starts ─┼─ ramp, 0.5 s ─┼─ measured, --seconds ─┤
//!   counters               first ├─────────────────┤ second           all of it the same load
//! ```
//!
//! Between the readings there were as many requests as fio had a second, times the seconds.

use super::fio::{Client, Sample, sample};
use super::servers::Server;
use super::{DISK_SIZE, RAMP};
use crate::counters::{Counted, Counters};
use anyhow::{Result, bail};
use std::thread::sleep;
use std::time::Duration;

/// From fio's start to the first reading: it is connected then.
const BEFORE: Duration = Duration::from_millis(700);
/// From the second reading until fio would end if it had started at once.
const AFTER: Duration = Duration::from_millis(100);
/// What fio takes beside the time that it is told, about; only to say how long all takes.
pub(super) const AROUND_FIO: Duration = Duration::from_millis(400);

/// What was measured of a server and its client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) sample: Sample,
    /// Between the readings, of the server.
    pub(super) server: Counted,
    /// And of the client.
    pub(super) client: Counted,
}

impl Watched {
    /// Microseconds of a request on processors, of the server.
    pub(super) fn server_us(&self) -> f64 {
        self.of_a_request(self.server)
    }

    /// Likewise of the client.
    pub(super) fn client_us(&self) -> f64 {
        self.of_a_request(self.client)
    }

    fn of_a_request(&self, counted: Counted) -> f64 {
        counted.on_cpu_us / (self.sample.iops * counted.seconds)
    }
}

/// Measures a server under a load with these options of fio, which last so many seconds after the
/// ramp.
pub(super) fn watch(server: &Server, options: &[String], seconds: u32) -> Result<Watched> {
    let span = RAMP + Duration::from_secs(seconds.into());
    let mut fio = Client::start(&server.uri, DISK_SIZE as u64, options)?;
    let read = |fio: &Client| anyhow::Ok([server.pid(), fio.pid()].map(Counters::read));
    sleep(BEFORE);
    let [server_before, client_before] = read(&fio)?;
    sleep(span.saturating_sub(BEFORE + AFTER));
    let [server_after, client_after] = read(&fio)?;
    if !fio.is_at_work()? {
        fio.report()?;
        bail!("fio ended before it was told to");
    }
    Ok(Watched {
        sample: sample(&fio.report()?)?,
        server: server_after?.since(&server_before?)?,
        client: client_after?.since(&client_before?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_a_request() {
        let counted = |seconds, on_cpu_us| Counted {
            seconds,
            on_cpu_us,
            sleeps: 0.0,
            ipis: None,
            timers: None,
        };
        let sample = Sample { iops: 20_000.0, p99_us: 1.0 };
        let (server, client) = (counted(0.5, 100_000.0), counted(2.0, 200_000.0));
        // Half a second and two seconds of 20,000 requests a second.
        let watched = Watched { sample, server, client };
        let (server, client) = (watched.server_us(), watched.client_us());
        assert!((server - 10.0).abs() < 1e-9 && (client - 5.0).abs() < 1e-9, "{server}, {client}");
    }
}
