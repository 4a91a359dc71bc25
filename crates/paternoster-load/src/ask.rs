//! What the clients of a tenant ask for: the commands, and the blocks that they are about.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use paternoster_disk::MonotonicClock;
use paternoster_nbd::{Command, Request};
use paternoster_scene::Ask;

use crate::Load;

impl Load {
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

    /// A command of the client's tenant, about a block drawn anew.
    fn command(&mut self, index: usize) -> Command {
        let client = &self.clients[index];
        let tenant = &self.tenants[client.tenant].0;
        let len = tenant.block;
        let blocks = client.transmission.session().export.size / u64::from(len);
        let offset = self.random.u64(..blocks) * u64::from(len);
        match tenant.next_ask(|percent| self.random.u32(..100) < percent) {
            Ask::Read => Command::Read { offset, len, df: false },
            Ask::Cache => Command::Cache { offset, len },
            Ask::Write { fua } => Command::Write { offset, data: zeroes(len), fua },
            Ask::Zeroes => {
                Command::WriteZeroes { offset, len, fua: false, no_hole: false, fast: false }
            }
            Ask::Trim => Command::Trim { offset, len, fua: false },
        }
    }
}

/// Data of a write; what it is does not matter.
pub(crate) fn zeroes(len: u32) -> Bytes {
    static ZEROES: [u8; 64 << 10] = [0; 64 << 10];
    match ZEROES.get(..len as usize) {
        Some(zeroes) => Bytes::from_static(zeroes),
        None => Bytes::from(vec![0; len as usize]),
    }
}
