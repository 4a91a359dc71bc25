//! The owners of disks: each has a thread of its own, and comes and goes while others serve.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};
use paternoster::{Device, Instant, Nanos, PlugLimits};
use paternoster_disk::{
    Backend, BusyDepth, Capabilities, CpuLatency, Engine, IoEngine, MonotonicClock, Owner, Ring,
    VolumeId, VolumePlace, Waker, is_rotational,
};

use crate::acquire::Acquired;
use crate::admission::Descriptors;
use crate::announce;
use crate::catalogue::{Groups, ServedVolume};
use crate::clients::Export;
use crate::common::Common;
use crate::config::{AtStop, BackendConfig, Config, DiskConfig, devices_of};
use crate::connections::{Connections, DiskLabel, Scheduler, Tenants, Volumes, nbd};
use crate::depth::Depth;
use crate::export_table::{Entry, Told};
use crate::messages::{NewExport, OwnerHandle};
use crate::threads::{Plugged, ThreadHandle};
use crate::tuned;
use crate::vhost::VhostSocket;
use crate::watched::{Watchers, join, spawn};

/// The owners that run, and what others are started with.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// None when the server ends: no other comes then.
    starter: Mutex<Option<Starter>>,
    running: Mutex<Vec<Running>>,
}

/// What all owners are started with.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) io: IoEngine,
    pub(crate) threads: Vec<ThreadHandle>,
    pub(crate) watch: Watchers,
    pub(crate) payload_timeout: Nanos,
}

/// An owner that runs.
#[derive(Debug)]
struct Running {
    /// The number of its disk.
    number: usize,
    handle: OwnerHandle,
    thread: JoinHandle<io::Result<()>>,
    /// Set when a reload has it end: what is wrong then is the reload's, and not the server's end.
    is_leaving: Arc<AtomicBool>,
    failure: mpsc::Receiver<io::Error>,
    /// What the kernel is asked for while it serves.
    _latency: Option<CpuLatency>,
    _room: Option<Descriptors>,
}

/// How an owner is told that a reload has it end, and tells what is wrong then.
struct Leaving {
    is_leaving: Arc<AtomicBool>,
    failure: mpsc::Receiver<io::Error>,
}

/// An owner that has been started, and what it serves.
pub(crate) struct Started {
    /// By their indices in the configuration.
    pub(crate) exports: BTreeMap<usize, Arc<Export>>,
    /// Where virtual machines attach to them.
    pub(crate) sockets: BTreeMap<usize, VhostSocket>,
    pub(crate) served: ServedDisk,
}

/// A disk that an owner serves.
#[derive(Debug)]
pub(crate) struct ServedDisk {
    pub(crate) handle: OwnerHandle,
    /// In the order of the configuration.
    pub(crate) volumes: Vec<ServedVolume>,
    pub(crate) common: Common,
}

/// A disk of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct OfConfig<'c> {
    pub(crate) config: &'c Config,
    /// Its index.
    pub(crate) index: usize,
    /// The number by which the server knows it.
    pub(crate) number: usize,
}

impl Started {
    /// The exports as clients enter them, by their indices in the configuration.
    pub(crate) fn entries(&self, config: &Config, groups: &Groups) -> BTreeMap<usize, Entry> {
        let entry = |(&index, export): (&usize, &Arc<Export>)| {
            let of = &config.exports[index];
            let told = Told {
                name: &of.name,
                description: of.keys.description.as_deref(),
                size: of.size,
                read_only: of.keys.read_only,
                flushes: self.served.volumes[of.volume].flushes,
            };
            let (info, export, owner) =
                (told.info(), Arc::clone(export), self.served.handle.clone());
            let room = groups.room(&config.groups[of.group].path);
            (index, Entry { info, export, owner, room, is_leaving: false, listening: None })
        };
        self.exports.iter().map(entry).collect()
    }
}

impl<'c> OfConfig<'c> {
    pub(crate) fn disk(self) -> &'c DiskConfig {
        &self.config.disks[self.index]
    }

    /// Whether one of its volumes, an index, is open for writing.
    fn writes(self, volume: usize) -> bool {
        let mut exports = self.config.exports.iter();
        let is_written = exports.any(|export| {
            (export.disk, export.volume) == (self.index, volume) && !export.keys.read_only
        });
        let backend = &self.disk().volumes[volume].backend;
        is_written || !matches!(backend, BackendConfig::File { .. } | BackendConfig::Nbd { .. })
    }
}

impl Owners {
    pub(crate) fn new(starter: Starter) -> Self {
        Self { starter: Mutex::new(Some(starter)), running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the owner of a disk with what has been acquired for it, and has it serve what the
    /// configuration says.
    pub(crate) fn start(
        &self,
        of: OfConfig<'_>,
        acquired: Acquired,
        groups: &Groups,
    ) -> Result<Started> {
        let mut starter = self.starter.lock().unwrap_or_else(PoisonError::into_inner);
        let starter = starter.as_mut().context("the server ends")?;
        let Acquired { backends, common, latency, sockets, room } = acquired;
        let (mut owner, thread, leaving) = starter.start(of, backends, common, groups)?;
        owner.sockets = sockets;
        let (number, handle) = (of.number, owner.served.handle.clone());
        let Leaving { is_leaving, failure } = leaving;
        self.running().push(Running {
            number,
            handle,
            thread,
            is_leaving,
            failure,
            _latency: latency,
            _room: room,
        });
        Ok(owner)
    }

    /// Returns whether no owner starts any more.
    pub(crate) fn are_ending(&self) -> bool {
        self.starter.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Has the owner of the disk of that number end.
    pub(crate) fn begin_to_end(&self, number: usize) {
        for one in self.running().iter().filter(|one| one.number == number) {
            one.is_leaving.store(true, Ordering::Relaxed);
            one.handle.shut_down(AtStop::Close);
        }
    }

    /// Returns whether the owner of the disk of that number has ended.
    pub(crate) fn has_ended(&self, number: usize) -> bool {
        let running = self.running();
        running.iter().filter(|one| one.number == number).all(|one| one.thread.is_finished())
    }

    /// Forgets an owner that has ended. An error where its last flush failed.
    pub(crate) fn forget(&self, number: usize) -> Result<()> {
        let one = {
            let mut running = self.running();
            let at = running.iter().position(|one| one.number == number);
            at.map(|at| running.swap_remove(at))
        };
        let Some(one) = one else { return Ok(()) };
        join(one.thread)?;
        one.failure.try_recv().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Has all owners end, and no other start.
    pub(crate) fn begin_shutdown(&self, at_stop: AtStop) {
        drop(self.starter.lock().unwrap_or_else(PoisonError::into_inner).take());
        for one in &*self.running() {
            one.handle.shut_down(at_stop);
        }
    }

    /// The names of threads that have not ended.
    pub(crate) fn stuck(&self) -> Vec<String> {
        let running = self.running();
        let stuck = running.iter().filter(|one| !one.thread.is_finished());
        stuck.filter_map(|one| one.thread.thread().name().map(str::to_owned)).collect()
    }

    /// The threads of those that have ended, or are ending.
    pub(crate) fn take_threads(&self) -> Vec<JoinHandle<io::Result<()>>> {
        self.running().drain(..).map(|one| one.thread).collect()
    }
}

impl Starter {
    fn start(
        &mut self,
        of: OfConfig<'_>,
        backends: Vec<Box<dyn Backend>>,
        common: Common,
        groups: &Groups,
    ) -> Result<(Started, JoinHandle<io::Result<()>>, Leaving)> {
        let (disk, io) = (of.disk(), self.io);
        let capabilities: Vec<_> = backends.iter().map(|backend| backend.capabilities()).collect();
        let elevator = tuned::elevator(disk, device(disk, &capabilities, &common))?;
        announce::disk(disk, &backends, io, &elevator);
        let notices = ThreadHandle::notices(&self.threads);
        let sync_depth = usize::try_from(disk.keys.sync_depth).unwrap_or(usize::MAX);
        let mut engine = Engine::new(elevator).with_sync_depth(sync_depth);
        let mut volumes = Vec::new();
        for (volume, capabilities) in disk.volumes.iter().zip(&capabilities) {
            let named = || format!("{} {:?}", disk.what_of_volume(), volume.name);
            let id = engine.add_volume(capabilities).with_context(named)?;
            volumes.push((id, engine.place(id)));
        }
        let mut tenants = Tenants::new(&notices);
        let exports = add_exports(of, &mut engine, &volumes, groups, &mut tenants);
        let ids = || volumes.iter().map(|&(id, _)| id);
        let label = DiskLabel {
            config: disk.clone(),
            volumes: Volumes::new(disk.is_pool, ids().zip(&disk.volumes)),
            devices: devices_of(disk),
        };
        let (sender, inbox) = mpsc::channel();
        let waker = Waker::new()?;
        let handle = OwnerHandle::new(sender, waker.clone());
        let limits = if disk.keys.plug { PlugLimits::default() } else { PlugLimits::OFF };
        let plugged = Plugged { limits, rules: engine.elevator().plug_rules() };
        let threads = &mut self.threads[..];
        let transport = nbd(&waker, threads, &notices, plugged, self.payload_timeout);
        let mut connections = Connections::new(label, tenants, inbox, transport);
        let (policy, beside) = (disk.keys.polling.policy(), self.threads.len());
        let backends: Vec<_> = ids().zip(backends).collect();
        let (ready, is_ready) = mpsc::channel();
        let (failed, failure) = mpsc::channel();
        let is_leaving = Arc::new(AtomicBool::new(false));
        let leaves = Arc::clone(&is_leaving);
        let thread = spawn(&format!("disk {}", disk.name), &self.watch, move || {
            let clock = MonotonicClock::start();
            let ring = match Ring::new(io) {
                Ok(ring) => ring,
                Err(error) => {
                    // Whoever starts it hears of that.
                    let _ = ready.send(error);
                    return Ok(());
                }
            };
            drop(ready);
            let served = || {
                let owner = Owner::new(engine, backends, ring, clock, waker)?;
                owner.with_polling(policy, beside).run(&mut connections)?;
                connections.ended()
            };
            match served() {
                Err(error) if leaves.load(Ordering::Relaxed) => {
                    // The reload that has it end asks.
                    let _ = failed.send(error);
                    Ok(())
                }
                ended => ended,
            }
        })?;
        if let Ok(error) = is_ready.recv() {
            return Err(anyhow!(crate::rings::explained(error)));
        }
        let served = volumes.into_iter().zip(capabilities).enumerate();
        let served = served.map(|(volume, ((id, _), capabilities))| {
            let Capabilities { flushes, size, .. } = capabilities;
            ServedVolume { id, flushes, size, writes: of.writes(volume) }
        });
        let served = ServedDisk { handle, volumes: served.collect(), common };
        let started = Started { exports, sockets: BTreeMap::new(), served };
        Ok((started, thread, Leaving { is_leaving, failure }))
    }
}

/// What a scheduler is told of the device of a disk.
fn device(disk: &DiskConfig, volumes: &[Capabilities], common: &Common) -> Device {
    let of_none = if volumes.is_empty() { common.capabilities() } else { None };
    let volumes = of_none.as_ref().map_or(volumes, std::slice::from_ref);
    let kind = disk.scheduler.kind();
    let busy = BusyDepth::of_all(volumes.iter().map(|one| one.depth));
    let depth = |busy| Depth::in_force(kind, disk.keys.depth, busy).bound();
    let rotates = || match volumes {
        [] => disk.keys.path.as_deref().is_some_and(rotates),
        _ => volumes.iter().any(|one| one.rotational),
    };
    if disk.keys.rotational.unwrap_or_else(rotates) {
        return Device::disk(depth(busy.of_rotational()));
    }
    // What does not seek has always something to do at once. Linux finds that out, and is wrong
    // about a disk that is given few; what groups were charged then counts no more.
    Device::solid_state(depth(busy)).with_native_queueing(true)
}

/// Whether the device of a directory rotates.
fn rotates(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|seen| is_rotational(directory, &seen).yes)
}

/// Adds the tenants of a disk and its exports, which has those volumes, in the order of the
/// configuration.
fn add_exports(
    of: OfConfig<'_>,
    engine: &mut Engine<Scheduler>,
    volumes: &[(VolumeId, VolumePlace)],
    groups: &Groups,
    tenants: &mut Tenants,
) -> BTreeMap<usize, Arc<Export>> {
    let OfConfig { config, index, number } = of;
    let now = Instant::START;
    engine.administer(|elevator| {
        let root = elevator.groups().root();
        elevator.set_group_limits(now, root, config.root);
        for group in config.groups_on(index) {
            for tenant in groups.tenants(&config.groups[group].path, number) {
                tenants.add(elevator, now, &tenant);
            }
        }
        let exports = config.exports.iter().enumerate().filter(|(_, export)| export.disk == index);
        let exports = exports.map(|(of_config, export)| {
            let (volume, place) = volumes[export.volume];
            let (name, offset) = (export.name.clone(), export.offset);
            let io_prio = export.keys.ioprio;
            let lineage = groups.tenants(&config.groups[export.group].path, number);
            let is_offered = export.keys.export;
            let new = NewExport { name, volume, offset, io_prio, is_offered, lineage };
            (of_config, tenants.add_export(elevator, now, new, place))
        });
        exports.collect()
    })
}
