//! Scenes in real time: a server in this process, its modelled disk, and a client for each
//! connection.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use hdrhistogram::Histogram;
use paternoster::Nanos;
use paternoster_model::{Kind, Stages, device_names};
use paternoster_scene::{Outcome, Scene, Scheduler, Tenant, TenantOutcome, World};
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};

use crate::{Asks, Got, Habit, Load, TenantLoad, Window};

/// Bytes of a tenant's part of the disk.
pub const EXPORT_BYTES: u64 = 64 << 20;

/// The server and real clients as a world: it plays scenes in real time. The seed decides what the
/// clients ask for; random times of a device do not depend on it.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The name or the file of the device, where it is not made of plain servers: the server opens
    /// it itself.
    pub model: Option<String>,
}

impl World for Live {
    type Error = anyhow::Error;

    fn play(&mut self, scene: &Scene, scheduler: &Scheduler, seed: u64) -> Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("nbd.sock");
        let text = self.config(scene, scheduler)?;
        let mut config = Config::from_toml(&text, Path::new("scene"))?;
        config.listen = vec![Listen::unix(socket.clone())];
        let server = Server::start(&config)?;
        let loads: Vec<_> = scene.tenants.iter().map(load).collect();
        let mut clients = Load::connect(&socket, &loads, seed)?;
        for (index, tenant) in scene.tenants.iter().enumerate() {
            let [think, think_more] = [tenant.think, tenant.think_more].map(duration);
            clients.set_habit(index, Habit { think, think_more, reconnects: false });
            clients.set_asks(index, asks(tenant)?);
        }
        clients.start()?;
        clients.run_for(duration(scene.warm_up))?;
        let window = clients.count(&server.control(), duration(scene.counted), |_| {})?;
        clients.finish()?;
        server.shut_down()?;
        Ok(outcome(scene, window))
    }
}

impl Live {
    /// The configuration of the server, but for its socket.
    fn config(&self, scene: &Scene, scheduler: &Scheduler) -> Result<String> {
        let size = EXPORT_BYTES * scene.tenants.len() as u64;
        let device = self.device(scene)?;
        let mut text = format!("[disks.d]\nbackend = \"modelled\"\nsize = {size}\n{device}");
        let (kind, mut tunables) = (scheduler.kind, String::new());
        let _ = writeln!(text, "scheduler = \"{kind}\"");
        for (name, value) in &scheduler.tunables {
            // The server has a key of its own for the depth of a disk.
            let place = if name == "depth" { &mut text } else { &mut tunables };
            let _ = writeln!(place, "{name} = {value}");
        }
        let _ = writeln!(text, "[disks.d.tunables]\n{tunables}");
        for (index, Tenant { name, weight, .. }) in scene.tenants.iter().enumerate() {
            let offset = EXPORT_BYTES * index as u64;
            let _ = write!(
                text,
                "[groups.\"/{name}\"]\nweight = {weight}\n[exports.\"{name}\"]\ndisk = \"d\"\n\
                 offset = {offset}\nsize = {EXPORT_BYTES}\n"
            );
        }
        Ok(text)
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

fn load(tenant: &Tenant) -> TenantLoad {
    let Tenant { connections, depth, block, write_percent, .. } = *tenant;
    TenantLoad { export: tenant.name.clone(), connections, depth, block, write_percent }
}

fn asks(tenant: &Tenant) -> Result<Asks> {
    match (tenant.fua, tenant.write_percent) {
        (false, _) | (true, 0) => Ok(Asks::ReadsAndWrites),
        (true, 100) => Ok(Asks::DurableWrites),
        (true, percent) => bail!(
            "tenant {:?}: fua beside write_percent = {percent}: clients write with FUA or not at \
             all, so 100 is allowed",
            tenant.name
        ),
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
fn outcome(scene: &Scene, window: Window) -> Outcome {
    let service = scene.service().map(|law| duration(law.fixed).as_secs_f64());
    let tenant = |(got, tenant): (Got, &Tenant)| {
        let requests = got.measured.replies;
        // In reads without bytes, where the device's time for one is known.
        let cost = got.device.zip(service).map(|(took, one)| took.as_secs_f64() / one);
        let mut latency = Histogram::new(3).expect("three digits are allowed");
        latency.add(&got.measured.latency).expect("it grows");
        TenantOutcome {
            name: tenant.name.clone(),
            weight: tenant.weight,
            light: tenant.light,
            block: tenant.block,
            requests,
            cost: cost.unwrap_or(requests as f64),
            backlogged: got.demand,
            latency,
        }
    };
    let seconds = window.counted.as_secs_f64();
    let tenants: Vec<_> = window.tenants.into_iter().zip(&scene.tenants).map(tenant).collect();
    Outcome {
        seconds,
        requests: tenants.iter().map(|tenant| tenant.requests).sum(),
        cost: tenants.iter().map(|tenant| tenant.cost).sum(),
        tenants,
        seconds_errors: vec![],
        in_flight: None,
    }
}
