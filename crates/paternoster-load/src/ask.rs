//! What the clients of a tenant ask for: the commands, and the blocks that they are about.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use paternoster_disk::MonotonicClock;
use paternoster_nbd::{Command, Request};

use crate::{Load, TenantLoad};

/// The commands of a tenant's clients, each about a block drawn anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// `READ` and `WRITE`, as many of each as the load says.
    #[default]
    ReadsAndWrites,
    /// `WRITE` with FUA: durable before the reply.
    DurableWrites,
    /// `TRIM`.
    Trims,
    /// `CACHE`: reads whose data nobody wants yet.
    Caches,
}

impl Load {
    /// Has the clients of a tenant, by its place among the loads, ask for that; before they start.
    ///
    /// # Panics
    ///
    /// Where there is no such tenant.
    pub fn set_asks(&mut self, tenant: usize, asks: Asks) {
        self.asks[tenant] = asks;
    }

    /// Puts the client's next request, of that number, behind what it has yet to send.
    pub(crate) fn ask(&mut self, index: usize, cookie: u64) -> Result<()> {
        let command = self.command(index);
        let client = &mut self.clients[index];
        client.transmission.encode(&Request { cookie, command }, &mut client.output)?;
        let number = usize::try_from(cookie).context("numbers are below the depth")?;
        client.sent_at[number] = MonotonicClock::monotonic_now();
        self.outstanding += 1;
        Ok(())
    }

    fn command(&mut self, index: usize) -> Command {
        let client = &self.clients[index];
        let &TenantLoad { block: len, write_percent, .. } = &self.tenants[client.tenant].0;
        let blocks = client.transmission.session().export.size / u64::from(len);
        let offset = self.random.u64(..blocks) * u64::from(len);
        match self.asks[client.tenant] {
            Asks::ReadsAndWrites if self.random.u32(..100) < write_percent => {
                Command::Write { offset, data: zeroes(len), fua: false }
            }
            Asks::ReadsAndWrites => Command::Read { offset, len, df: false },
            Asks::DurableWrites => Command::Write { offset, data: zeroes(len), fua: true },
            Asks::Trims => Command::Trim { offset, len, fua: false },
            Asks::Caches => Command::Cache { offset, len },
        }
    }
}

/// Data of a write; what it is does not matter.
fn zeroes(len: u32) -> Bytes {
    static ZEROES: [u8; 64 << 10] = [0; 64 << 10];
    match ZEROES.get(..len as usize) {
        Some(zeroes) => Bytes::from_static(zeroes),
        None => Bytes::from(vec![0; len as usize]),
    }
}
