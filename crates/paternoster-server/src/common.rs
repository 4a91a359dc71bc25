//! Opens what stands behind a disk or a volume: a file, memory, a model of a device, another
//! server.
//!
//! The volumes of a pool have something in common there: those on other servers a thread that
//! connects again, modelled ones their device. A disk has it for itself.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use paternoster_disk::{
    Backend, Capabilities, FileBackend, FileOptions, MemoryBackend, ModelledDevice, NbdBackend,
    NbdDialer, NbdOptions, NbdPlace, ServersTime,
};
use paternoster_model::{Model as _, describe_device};

use crate::config::{BackendConfig, FAR_SILENT};
use crate::passed::Passed;
use crate::sockets::Patience;

/// What the volumes of a pool have in common behind them, or a disk has behind it.
#[derive(Clone, Debug)]
pub(crate) enum Common {
    /// The file system of their files, or nothing.
    Nothing,
    /// The device that their transfers wait for.
    Device(ModelledDevice),
    /// What makes their connections, and which of their servers was silent.
    Far(NbdDialer, Arc<Mutex<Option<Silent>>>),
}

/// A server that has not answered, and when that was known.
#[derive(Clone, Debug)]
pub(crate) struct Silent {
    place: NbdPlace,
    since: Instant,
}

/// How long a silent server is not asked for another volume: a thousand of them would each take as
/// long to fail.
const UNASKED: Duration = Duration::from_secs(2);

impl Common {
    /// Makes what a disk or pool of that kind needs.
    pub(crate) fn of(backend: &BackendConfig) -> Result<Self> {
        Ok(match backend {
            BackendConfig::File { .. } | BackendConfig::Memory { .. } => Self::Nothing,
            &BackendConfig::Modelled { servers, service, per_kib, sync, .. } => {
                let time = ServersTime { servers, fixed: service, per_kib, sync };
                Self::Device(ModelledDevice::of_servers(time))
            }
            BackendConfig::Device { size, model } => {
                let device = describe_device(model).context("cannot open its model")?;
                let bytes = device.open(1)?.end().0.saturating_mul(512);
                if *size > bytes {
                    bail!("model {model:?} has {bytes} bytes now, fewer than size");
                }
                Self::Device(ModelledDevice::new(Some(model), &device)?)
            }
            BackendConfig::Nbd { .. } | BackendConfig::NbdPool => {
                Self::Far(NbdDialer::new()?, Arc::default())
            }
        })
    }

    /// Opens what stands behind a volume, or takes its image from the server before. One that
    /// somebody else has locked is tried again, if there is patience.
    pub(crate) fn open(
        &self,
        backend: &BackendConfig,
        read_only: bool,
        passed: &Passed,
        patience: Patience,
    ) -> Result<Box<dyn Backend>> {
        Ok(match (backend, self) {
            (&BackendConfig::File { ref path, cache }, _) => {
                let options = FileOptions { read_only, cache };
                let opened = open_image(path, options, passed, patience);
                Box::new(opened.with_context(|| format!("cannot open {}", path.display()))?)
            }
            (BackendConfig::Memory { size }, _) => Box::new(MemoryBackend::new(in_memory(*size)?)),
            (
                BackendConfig::Modelled { size, .. } | BackendConfig::Device { size, .. },
                Self::Device(device),
            ) => {
                let volume = device.volume(in_memory(*size)?);
                Box::new(volume.context("its model has not so many bytes left in a row")?)
            }
            (BackendConfig::Nbd { options, size, .. }, Self::Far(dialer, silent)) => {
                Box::new(open_far((options, *size, read_only), dialer, silent)?)
            }
            (other, _) => bail!("a pool has no {} volume beside others", other.kind()),
        })
    }

    /// What volumes will be able to do, where that is known before there is one.
    pub(crate) fn capabilities(&self) -> Option<Capabilities> {
        match self {
            Self::Device(device) => Some(device.capabilities(0)),
            Self::Nothing | Self::Far(..) => None,
        }
    }
}

/// Bytes of memory, if there are so many.
fn in_memory(size: u64) -> Result<usize> {
    // Asked for first: a disk that does not fit would end the process.
    let fits = |bytes: &usize| Vec::<u8>::new().try_reserve_exact(*bytes).is_ok();
    let bytes = usize::try_from(size).ok().filter(fits);
    bytes.with_context(|| format!("there is no memory of {size} bytes"))
}

fn open_image(
    path: &Path,
    options: FileOptions,
    passed: &Passed,
    patience: Patience,
) -> io::Result<FileBackend> {
    match passed.inherited.file(path) {
        Some(open) => FileBackend::open_or_adopt(path, options, Some(open)),
        None => patience.lock(|| FileBackend::open(path, options)),
    }
}

/// Connects to another server, which has to have so many bytes: exports are laid out for them.
fn open_far(
    (options, size, read_only): (&NbdOptions, u64, bool),
    dialer: &NbdDialer,
    silent: &Mutex<Option<Silent>>,
) -> Result<NbdBackend> {
    let (uri, begun) = (&options.uri, Instant::now());
    let silent = || silent.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |of: &Silent| of.place == uri.place && of.since.elapsed() < UNASKED;
    if silent().as_ref().is_some_and(is_it) {
        bail!("{uri} cannot be used: its server has not answered a moment ago");
    }
    let opened = NbdBackend::open(options.clone(), dialer);
    if opened.is_err() && begun.elapsed() >= FAR_SILENT {
        *silent() = Some(Silent { place: uri.place.clone(), since: Instant::now() });
    }
    let backend = opened.with_context(|| format!("{uri} cannot be used"))?;
    let far = backend.opened();
    if far.size() < size {
        bail!("{uri} has {} bytes, where {size} were expected", far.size());
    }
    if far.is_read_only() && !read_only {
        bail!("{uri} is read-only, and clients may write: read_only = true is needed");
    }
    Ok(backend)
}
