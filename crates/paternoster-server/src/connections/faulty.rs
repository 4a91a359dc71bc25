//! A disk on a device that fails, served on a thread of its own, for tests.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;

use paternoster::{AnyScheduler, Device, Elevator, Instant, Nanos, SchedulerKind};
use paternoster_disk::{
    Backend, Buffers, Capabilities, Engine, Extent, IoEngine, MonotonicClock, Owner, Ring, Token,
    Transfer, TransferDone, TransferId, Transferred, Waker,
};
use rustix::io::Errno;

use super::shutdown::Patience;
use super::{Connections, DiskLabel, DiskOwner, Tenants};
use crate::clients::Clients;
use crate::config::AtStop;
use crate::messages::OwnerHandle;
use crate::recording::Sink;

/// A device that never completes a write, and whose syncs all have the same result.
#[derive(Debug)]
struct FaultyDevice {
    sync: Result<u64, Errno>,
    /// The sync that is done, and when it was started.
    done: Option<(Instant, TransferDone)>,
}

impl Backend for FaultyDevice {
    fn identity(&self) -> Option<String> {
        Some("the medium".to_owned())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1 << 20, 4)
    }

    fn start(&mut self, _: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        if matches!(transfer, Transfer::Sync { .. }) {
            let transferred = Transferred::new(self.sync, Buffers::new());
            self.done = Some((now, TransferDone { id, transferred }));
        }
    }

    fn take_done(&mut self, _: Instant) -> Option<TransferDone> {
        self.done.take().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.done.as_ref().map(|&(started, _)| started)
    }

    fn extents(&self, _: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }
}

/// A disk on such a device, without exports.
pub(super) struct Faulty {
    pub(super) handle: OwnerHandle,
    thread: thread::JoinHandle<io::Result<()>>,
}

impl Faulty {
    /// Serves the disk; `prepare` runs on its thread before the first round.
    pub(super) fn serve(
        sync: Result<u64, Errno>,
        patience: Patience,
        prepare: impl FnOnce(&mut DiskOwner) + Send + 'static,
    ) -> Self {
        let device = Device::solid_state(4);
        let elevator = Elevator::new(
            AnyScheduler::new(SchedulerKind::None, Sink::default()),
            device,
            Instant::START,
        );
        let backend: Box<dyn Backend> = Box::new(FaultyDevice { sync, done: None });
        let mut engine = Engine::new(elevator);
        let volume = engine.add_volume(&backend.capabilities()).expect("there is room");
        let label = DiskLabel::in_memory(SchedulerKind::None, volume);
        let (sender, inbox) = mpsc::channel();
        let waker = Waker::new().expect("an event");
        let handle = OwnerHandle::new(sender, waker.clone());
        let transport = Box::new(Clients::of_all(Nanos::ZERO));
        let tenants = Tenants::new(&Arc::default());
        let mut connections = Connections::new(label, tenants, inbox, transport);
        connections.patience = patience;
        let thread = thread::spawn(move || {
            let (ring, clock) = (Ring::new(IoEngine::fastest())?, MonotonicClock::start());
            let mut owner = Owner::new(engine, [(volume, backend)], ring, clock, waker)?;
            prepare(&mut owner);
            owner.run(&mut connections)?;
            connections.ended()
        });
        Self { handle, thread }
    }

    /// Shuts the disk down, and returns how its end was.
    pub(super) fn end(self) -> io::Result<()> {
        self.handle.shut_down(AtStop::Close);
        self.thread.join().expect("the owner does not panic")
    }
}
