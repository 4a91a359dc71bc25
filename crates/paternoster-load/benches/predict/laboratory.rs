//! What the laboratory predicts of a scene: its clients are the jobs of a job file of fio, a job
//! for each connection, and its disk a device of the kind `servers`.
//!
//! The scheduler is set up as the server does it for a modelled disk. What a request costs beside
//! the disk is time between its making and its coming to the scheduler.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use paternoster::{Instant, Medium, Nanos, NoTrace, Sector, fitted_tunables};
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::result::JobResult;
use paternoster_lab::sim::{GroupSetup, Setup, Simulation};
use paternoster_lab::threads::{PageCacheParameters, Threads};
use paternoster_model::{Behind, Lateness, Model as _, Room, Servers};

use crate::costs::Costs;
use crate::scenes::{Disk, Scene, Tenant};
use crate::{COUNTED, EXPORT_MIB, WARM_UP};

/// What each tenant gets, in bytes a second.
pub(crate) fn predict(scene: &Scene, costs: Costs, seed: u64) -> Result<Vec<f64>> {
    let device = device(scene);
    let surroundings = Surroundings::without_files(device.end().0 * 512, seed);
    let jobs = Jobs::parse(scene.name, job_file(scene).as_bytes(), &surroundings)?;
    let threads = Threads::new(&jobs, PageCacheParameters::default());
    let owned = Behind::new(Lateness(nanos(costs.lateness)), device);
    let mut sim = Simulation::new(&setup(scene, &jobs, costs), threads, owned, NoTrace)?;
    let end = Instant::START + nanos(WARM_UP) + nanos(COUNTED);
    while sim.now() < end {
        sim.step()?;
    }
    let results = sim.workload().results();
    let of_tenant = |tenant: &Tenant| {
        let jobs = jobs.jobs.iter().zip(&results);
        let own = jobs.filter(|(job, _)| job.group == path(tenant));
        own.map(|(_, result)| bytes(result)).sum::<f64>() / COUNTED.as_secs_f64()
    };
    Ok(scene.tenants.iter().map(of_tenant).collect())
}

fn bytes(result: &JobResult) -> f64 {
    let bytes: u64 = result.directions.iter().map(|direction| direction.bytes).sum();
    #[allow(clippy::cast_precision_loss)] // some hundred MiB
    let bytes = bytes as f64;
    bytes
}

fn nanos(span: Duration) -> Nanos {
    Nanos::new(u64::try_from(span.as_nanos()).expect("some seconds"))
}

fn path(tenant: &Tenant) -> String {
    format!("/{}", tenant.name)
}

fn device(scene: &Scene) -> Servers {
    let Disk { servers, service_us, ns_per_kib } = scene.disk;
    let mib = EXPORT_MIB * scene.tenants.len();
    let room = Room { depth: 2 * servers, end: Sector((mib as u64) << 11) };
    let fixed = Nanos::from_micros(service_us.into());
    Servers::constant(servers, room, fixed, Nanos::new(ns_per_kib.into()))
}

/// As the server sets up a scheduler for a modelled disk.
fn setup(scene: &Scene, jobs: &Jobs, costs: Costs) -> Setup {
    let mut setup = Setup::new(scene.scheduler);
    let fitted = fitted_tunables(scene.scheduler, Medium::NotRotational).iter();
    let tunables = fitted.chain(scene.tunables).map(|&(name, value)| (name.to_owned(), value));
    setup.tunables = tunables.collect();
    setup.native_queueing = Some(true);
    setup.nr_requests = None;
    setup.way = nanos(costs.way);
    let groups = jobs.groups.iter().map(|group| {
        let weights = group.weight.unwrap_or_default().into();
        GroupSetup { path: group.path.clone(), weights }
    });
    setup.groups = groups.collect();
    setup
}

/// The clients. They ask for longer than is counted: at the end of its runtime a job of fio waits
/// for what it has outstanding, and counts that too.
fn job_file(scene: &Scene) -> String {
    let mut text = format!(
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/d\nnorandommap\ntime_based\n\
         ramp_time={}ms\nruntime={}ms\n",
        WARM_UP.as_millis(),
        2 * COUNTED.as_millis()
    );
    for (index, tenant) in scene.tenants.iter().enumerate() {
        let &Tenant { name, weight, connections, depth, block, write_percent, think } = tenant;
        write!(
            text,
            "[{name}]\n; lab: group=/{name} weight={weight}\nrw=randrw\nrwmixread={}\nbs={block}\n\
             iodepth={depth}\nnumjobs={connections}\noffset={}m\nsize={EXPORT_MIB}m\n",
            100 - write_percent,
            EXPORT_MIB * index
        )
        .expect("a string takes it");
        if think > Duration::ZERO {
            let micros = think.as_micros();
            writeln!(text, "thinktime={micros}us\nthinktime_blocks_type=complete")
                .expect("a string takes it");
        }
    }
    text
}
