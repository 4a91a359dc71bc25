//! Modelled disks and pools: how fast each is, by servers or by a device of the laboratory.

use paternoster::Nanos;
use paternoster_model::{Model as _, Op, open_device};

use super::disk::{BackendConfig, Behind, OfKind};
use super::error::Problem;
use super::keys::{DiskKeys, ExportKeys, Object};
use super::mistakes::Mistakes;

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// The keys that a device of the laboratory says itself.
const OF_SERVERS: [&str; 4] = ["servers", "service_us", "ns_per_kib", "sync_us"];

/// A modelled device.
pub(super) struct Modelled {
    /// A disk of no bytes on it; none if something is wrong.
    backend: Option<BackendConfig>,
    pub(super) rotational: bool,
    /// The most bytes that it has.
    bytes: u64,
}

impl Modelled {
    /// The device that a disk or pool says, as far as that is right.
    pub(super) fn of(of: OfKind<'_>, is_written: bool, mistakes: &mut Mistakes) -> Self {
        of.refuse_others(mistakes);
        match &of.draft.keys.model {
            None => {
                // A model that is wrong is none of servers.
                let has_servers = of.draft.states.model.is_missing();
                let backend = has_servers.then(|| servers(of, mistakes)).flatten();
                Self { backend, rotational: false, bytes: u64::MAX }
            }
            Some(model) => {
                for key in OF_SERVERS {
                    let (what, disk) = (of.draft.kind, of.draft.name.value.clone());
                    let problem = Problem::BesideModel { what, disk, key };
                    mistakes.note(of.draft.state(key).refuse(problem));
                }
                Self::of_device(of.draft, model, is_written, mistakes)
            }
        }
    }

    fn of_device(
        draft: &Object<DiskKeys>,
        model: &str,
        is_written: bool,
        mistakes: &mut Mistakes,
    ) -> Self {
        let device = match open_device(model, 1) {
            Ok(device) => device,
            Err(error) => {
                let problem = Problem::BadModel { error: Box::new(error) };
                mistakes.note(draft.states.model.refuse(problem));
                return Self { backend: None, rotational: false, bytes: u64::MAX };
            }
        };
        let used = if is_written { &[Op::Read, Op::Write][..] } else { &[Op::Read] };
        let model = model.to_owned();
        if let Some(op) = used.iter().find(|op| !device.takes(**op)) {
            let op = if *op == Op::Write { "writes" } else { "reads" };
            let model = model.clone();
            mistakes.note(draft.states.model.refuse(Problem::ModelTakesNo { model, op }));
        }
        let (rotational, bytes) = (device.rotational(), device.end().0.saturating_mul(SECTOR));
        Self { backend: Some(BackendConfig::Device { size: 0, model }), rotational, bytes }
    }

    /// What stands behind a pool.
    pub(super) fn pool(&self) -> Option<BackendConfig> {
        self.backend.clone()
    }

    /// What stands behind a disk, or a volume, of so many bytes.
    pub(super) fn behind(&self, size: Option<u64>) -> Behind {
        let backend = self.backend.as_ref().zip(size).map(|(of, size)| of.with_size(size));
        Behind::no_file(backend, size, self.rotational)
    }

    /// What stands behind a volume, which has to say how large it is.
    pub(super) fn volume(&self, volume: &Object<ExportKeys>, mistakes: &mut Mistakes) -> Behind {
        if volume.states.size.is_missing() && !volume.has_gaps {
            let volume_name = volume.name.value.clone();
            let problem = Problem::NoVolumeKey { volume: volume_name, key: "size" };
            mistakes.add(&volume.name.place, problem);
        }
        self.behind(volume.keys.size)
    }

    /// Refuses more bytes than a device of the laboratory has.
    pub(super) fn check_bytes(&self, bytes: u64) -> Result<(), Problem> {
        match &self.backend {
            Some(BackendConfig::Device { model, .. }) if bytes > self.bytes => {
                Err(Problem::ModelTooSmall { model: model.clone(), bytes: self.bytes })
            }
            _ => Ok(()),
        }
    }
}

/// A disk of no bytes, on servers.
fn servers(of: OfKind<'_>, mistakes: &mut Mistakes) -> Option<BackendConfig> {
    let Object { keys, states, .. } = of.draft;
    let servers = of.required("servers", keys.servers, &states.servers, mistakes);
    let service = of.required("service_us", keys.service_us, &states.service_us, mistakes);
    Some(BackendConfig::Modelled {
        size: 0,
        servers: servers?,
        service: Nanos::from_micros(service?.into()),
        per_kib: Nanos::new(keys.ns_per_kib.into()),
        sync: Nanos::from_micros(keys.sync_us.into()),
    })
}
