//! The habits of clients: after a reply they ask at once, think for a time, or reconnect.

use std::cmp::Reverse;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use paternoster::Nanos;
use paternoster_disk::MonotonicClock;
use paternoster_scene::Tenant;
use rustix::net::Shutdown;

use crate::{Client, Load};

/// Refuses a tenant whose clients cannot do what it says.
pub(crate) fn check(tenant: &Tenant) -> Result<()> {
    tenant.check()?;
    ensure!(
        tenant.reconnects.is_none_or(|later| later == Nanos::ZERO),
        "tenant {:?} reconnects later than at its answer: clients end a connection at once, so \
         `reconnects = \"0s\"` is allowed",
        tenant.name
    );
    Ok(())
}

impl Load {
    /// The client asks again, now or when it has thought; while the load pauses, after that.
    pub(crate) fn ask_again(&mut self, index: usize, cookie: u64) -> Result<()> {
        let &Tenant { think, think_more, .. } = self.tenant_of(index);
        let reconnects = self.is_over(index);
        if self.asking && think == Nanos::ZERO && think_more == Nanos::ZERO && !reconnects {
            return self.ask(index, cookie);
        }
        if reconnects {
            let socket = &self.clients[index].socket;
            rustix::net::shutdown(socket, Shutdown::Both).context("a connection is lost")?;
        }
        let think = think.as_nanos() + self.random.u64(..=think_more.as_nanos());
        self.due.push(Reverse((MonotonicClock::monotonic_now() + think, index, cookie)));
        Ok(())
    }

    /// Returns whether the connection ends with its reply.
    pub(crate) fn is_over(&self, index: usize) -> bool {
        self.tenant_of(index).reconnects.is_some()
    }

    /// When the next client has thought.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Has those ask that have thought.
    pub(crate) fn ask_due(&mut self) -> Result<()> {
        let now = MonotonicClock::monotonic_now();
        while self.asking && self.next_due().is_some_and(|at| at <= now) {
            let Reverse((_, index, cookie)) = self.due.pop().expect("it was looked at");
            if self.is_over(index) {
                self.connect_anew(index)?;
            }
            self.ask(index, cookie)?;
            self.send(index);
        }
        Ok(())
    }

    fn connect_anew(&mut self, index: usize) -> Result<()> {
        let tenant = self.clients[index].tenant;
        let socket: &Path = &self.socket;
        self.clients[index] = Client::connect(socket, tenant, &self.tenants[tenant].0)?;
        self.receive(index, bytes::BytesMut::new());
        Ok(())
    }

    fn tenant_of(&self, index: usize) -> &Tenant {
        &self.tenants[self.clients[index].tenant].0
    }
}
