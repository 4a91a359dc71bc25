//! What tenants get of a server: a real one, asked by real clients.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use paternoster_load::{Habit, Load, TenantLoad, Window};
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};

use crate::scenes::{Disk, Scene, Tenant};
use crate::{COUNTED, EXPORT_MIB, WARM_UP};

/// What each tenant gets, in bytes a second.
pub(crate) fn measure(scene: &Scene, seed: u64) -> Result<Vec<f64>> {
    let window = window(scene, seed)?;
    let seconds = window.counted.as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // some ten thousands
    let rate = |replies: u64| replies as f64 / seconds;
    let got = window.tenants.iter().zip(scene.tenants);
    Ok(got.map(|(got, tenant)| rate(got.measured.replies) * f64::from(tenant.block)).collect())
}

/// The median time from a request to its reply, for the first tenant.
pub(crate) fn round_trip(scene: &Scene) -> Result<Duration> {
    let window = window(scene, 0)?;
    let latency = &window.tenants[0].measured.latency;
    Ok(Duration::from_nanos(latency.value_at_quantile(0.5)))
}

fn window(scene: &Scene, seed: u64) -> Result<Window> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("nbd.sock");
    let mut config = Config::from_toml(&config(scene), Path::new("predict.toml"))?;
    config.listen = vec![Listen::unix(socket.clone())];
    let server = Server::start(&config)?;
    let loads: Vec<_> = scene.tenants.iter().map(load).collect();
    let mut clients = Load::connect(&socket, &loads, seed)?;
    for (index, tenant) in scene.tenants.iter().enumerate() {
        clients.set_habit(index, Habit { think: tenant.think, ..Habit::default() });
    }
    clients.start()?;
    clients.run_for(WARM_UP)?;
    let window = clients.count(&server.control(), COUNTED, |_| {})?;
    clients.finish()?;
    server.shut_down()?;
    Ok(window)
}

fn load(tenant: &Tenant) -> TenantLoad {
    let &Tenant { name, connections, depth, block, write_percent, .. } = tenant;
    TenantLoad { export: name.to_owned(), connections, depth, block, write_percent }
}

/// The configuration of the server, but for its socket.
fn config(scene: &Scene) -> String {
    let Disk { servers, service_us, ns_per_kib } = scene.disk;
    let size = EXPORT_MIB * scene.tenants.len();
    let mut text = format!(
        "[disks.d]\nbackend = \"modelled\"\nsize = \"{size}M\"\nservers = {servers}\n\
         service_us = {service_us}\nns_per_kib = {}\nscheduler = \"{}\"\n[disks.d.tunables]\n",
        ns_per_kib, scene.scheduler
    );
    for (name, value) in scene.tunables {
        writeln!(text, "{name} = {value}").expect("a string takes it");
    }
    for (index, Tenant { name, weight, .. }) in scene.tenants.iter().enumerate() {
        let offset = EXPORT_MIB * index;
        write!(
            text,
            "[groups.\"/{name}\"]\nweight = {weight}\n\
             [exports.{name}]\ndisk = \"d\"\noffset = \"{offset}M\"\nsize = \"{EXPORT_MIB}M\"\n"
        )
        .expect("a string takes it");
    }
    text
}
