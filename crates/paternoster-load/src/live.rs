//! Scenes in real time: a server in this process, its modelled disk, and a client for each
//! connection.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use paternoster::Nanos;
use paternoster_model::{Kind, Stages, device_names};
use paternoster_scene::{Outcome, Scene, Scheduler, Tenant, World};
use paternoster_server::ctl::{Control as _, RecordQuestion};

use crate::{LocalServer, Measured};

/// The server and real clients as a world: it plays scenes in real time. The seed decides what the
/// clients ask for; random times of a device do not depend on it.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The name or the file of the device, where it is not made of plain servers: the server opens
    /// it itself.
    pub model: Option<String>,
    /// How many tenants, the last ones, are machines that attach by shared memory, a queue for each
    /// connection; the others are clients of NBD.
    pub machines: usize,
    /// Where the server records what the tenants ask for: the path of its files, without what they
    /// end in.
    pub recorded: Option<PathBuf>,
}

impl World for Live {
    type Error = anyhow::Error;

    fn play(&mut self, scene: &Scene, scheduler: &Scheduler, seed: u64) -> Result<Outcome> {
        self.watch(scene, scheduler, seed, |_| {})
    }
}

impl Live {
    /// Bytes of a tenant's part of the disk.
    pub const EXPORT_BYTES: u64 = 64 << 20;

    /// Plays a scene; `progress` gets what each tenant got in a part of the counted time.
    pub fn watch(
        &self,
        scene: &Scene,
        scheduler: &Scheduler,
        seed: u64,
        progress: impl FnMut(&[Measured]),
    ) -> Result<Outcome> {
        scene.check(&*scene.device.open(seed)?, Self::EXPORT_BYTES)?;
        let sizes = vec![Self::EXPORT_BYTES; scene.tenants.len()];
        let size: u64 = sizes.iter().sum();
        let device = self.device(scene)?;
        let disk = format!("backend = \"modelled\"\nsize = {size}\n{device}");
        let config = server_toml(Layout::Ranges, &disk, scheduler, &scene.tenants, &sizes);
        let first = scene.tenants.len().saturating_sub(self.machines);
        let (of_nbd, machines) = scene.tenants.split_at(first);
        let sockets = machines.iter().map(|machine| machine.name.as_str());
        let server = LocalServer::with_machines(&config, &sockets.collect::<Vec<_>>())?;
        let mut clients = server.connect(of_nbd, seed)?;
        for (machine, number) in machines.iter().zip(1..) {
            let seed = seed.wrapping_add(number);
            clients.attach(&server.socket_of(&machine.name), machine, seed)?;
        }
        let control = server.control();
        if let Some(out) = &self.recorded {
            let out = out.to_str().context("a path in UTF-8")?.to_owned();
            let what = RecordQuestion { disk: "d".to_owned(), out, ..RecordQuestion::default() };
            control.start_recording(&what)?;
        }
        let [warm_up, counted] = [scene.warm_up, scene.counted].map(duration);
        let mut outcome = clients.play(&control, warm_up, counted, progress)?;
        if self.recorded.is_some() {
            let ended = control.stop_recording("d")?;
            ensure!(ended.disks.iter().all(|one| one.lost == 0), "requests are lost: {ended:?}");
        }
        clients.finish()?;
        server.end()?;
        if let Some(law) = scene.service() {
            outcome.price(law.fixed);
        }
        Ok(outcome)
    }

    /// The keys of the disk that say how fast it is.
    fn device(&self, scene: &Scene) -> Result<String> {
        if let Some(model) = &self.model {
            let is_named = device_names().contains(&model.as_str());
            let file = if is_named { model.into() } else { std::path::absolute(model)? };
            return Ok(format!("model = {:?}\n", file.display().to_string()));
        }
        let servers = match &scene.device.kind {
            Kind::Servers(parameters) if scene.device.stages == Stages::default() => {
                let servers = parameters.constant();
                // In whole µs, and with the room that a server's disk has.
                let is_served = |servers: &u32| {
                    let nanos = parameters.service.fixed.as_nanos();
                    nanos >= 1000 && nanos % 1000 == 0 && parameters.room.depth >= 2 * servers
                };
                servers.filter(is_served).map(|servers| (servers, parameters.service))
            }
            _ => None,
        };
        let Some((servers, service)) = servers else {
            bail!(
                "scene {:?}: a server takes a device by its name or its file, or servers whose \
                 times do not vary, in whole us, with a depth of twice their number or more",
                scene.name
            );
        };
        let micros = service.fixed.as_nanos() / 1000;
        let per_kib = service.per_kib.as_nanos();
        Ok(format!("servers = {servers}\nservice_us = {micros}\nns_per_kib = {per_kib}\n"))
    }
}

/// What each tenant of a disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A range of it; they lie one behind the other.
    Ranges,
    /// A volume of it, which is a pool.
    Volumes,
}

/// The configuration of a server, but for its socket: a disk of those keys. Each tenant has a group
/// and an export of its size.
pub fn server_toml(
    layout: Layout,
    disk: &str,
    scheduler: &Scheduler,
    tenants: &[Tenant],
    sizes: &[u64],
) -> String {
    let (kind, mut tunables) = (scheduler.kind, String::new());
    let table = match layout {
        Layout::Ranges => "disks",
        Layout::Volumes => "pools",
    };
    let mut text = format!("[{table}.d]\n{disk}scheduler = \"{kind}\"\n");
    for (name, value) in &scheduler.tunables {
        // The server has a key of its own for the depth of a disk.
        let place = if name == "depth" { &mut text } else { &mut tunables };
        let _ = writeln!(place, "{name} = {value}");
    }
    let _ = writeln!(text, "[{table}.d.tunables]\n{tunables}");
    let mut offset = 0;
    for (Tenant { name, weight, .. }, size) in tenants.iter().zip(sizes) {
        let _ = writeln!(text, "[groups.\"/{name}\"]\nweight = {weight}");
        let _ = match layout {
            Layout::Ranges => writeln!(
                text,
                "[exports.\"{name}\"]\ndisk = \"d\"\noffset = {offset}\nsize = {size}"
            ),
            Layout::Volumes => {
                writeln!(text, "[volumes.\"{name}\"]\npool = \"d\"\nsize = {size}")
            }
        };
        offset += size;
    }
    text
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
