//! What a server may open from its start on, whatever becomes of it: Landlock.
//!
//! ```text
//!   images, pools, state_dir   read and written; made and removed where requests do that
//!   folders of sockets         sockets made and removed
//!   the configuration's folder, models, /proc, /sys, names of hosts    read
//!   TCP                        connect to the ports of far disks
//!   everything else            EACCES; also to signal other processes
//! ```
//!
//! It is entered when all sockets listen, as who has one that is in use is not seen from within,
//! and before any thread starts: it is that of a thread and of those that it starts. What is open
//! already is not asked about again. io_uring is no way around it: the kernel checks where a file
//! is opened, and our rings open none.
//!
//! Of an image its whole folder may be used, so that a reload can add another that lies there; and
//! what `sandbox_paths` says. A reload or a request that wants more is refused, and its error says
//! why. Images of a pool without a folder may be anywhere: then files are not restricted, unless
//! `sandbox_paths` does.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope, make_bitflags,
    path_beneath_rules,
};
use paternoster_disk::{CpuLatency, NbdPlace};

use crate::config::{BackendConfig, Config, DiskConfig, ListenAddress, PoolKind, Sandbox};
use crate::ctl;

/// The newest version of Landlock of which all is asked for; older ones do what they can.
const VERSION: ABI = ABI::V6;

/// Where names of hosts are looked up, and how fast a device is.
const READ: [&str; 13] = [
    "/proc",
    "/sys",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/services",
    "/lib",
    "/lib64",
    "/run/systemd/resolve",
    "/usr/lib",
];

/// The port of a name server that is asked by TCP.
const DNS: u16 = 53;

/// Whether this process is in one.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// The error, with why it may be where that is not seen: in a sandbox.
pub(crate) fn explained(error: &io::Error) -> String {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    if !is_denied || !ENTERED.load(Ordering::Relaxed) {
        return error.to_string();
    }
    format!(
        "{error}; this server may use what it was started with and nothing else (sandbox, \
         sandbox_paths): a restart lets it use what the file says then"
    )
}

/// Lets this thread, and those that it starts, use what the configuration says and nothing else.
/// `file` is where it was read.
pub(crate) fn enter(config: &Config, file: Option<&Path>) -> Result<()> {
    let needs = match config.keys.sandbox {
        Sandbox::Off => return Ok(()),
        Sandbox::Auto => false,
        Sandbox::Require => true,
    };
    make_directories(config);
    match Allowed::by(config, file).enforce() {
        Ok(Some(version)) => {
            ENTERED.store(true, Ordering::Relaxed);
            tracing::info!("sandbox: Landlock {version}{}", anywhere(config).unwrap_or_default());
        }
        Ok(None) if needs => bail!(
            "sandbox = \"require\": this kernel has no Landlock, or it is off (`lsm=`); \"auto\" \
             does without"
        ),
        Ok(None) => tracing::info!("no sandbox: this kernel has no Landlock, or it is off"),
        Err(error) if needs => return Err(error).context("sandbox = \"require\""),
        Err(error) => tracing::warn!("no sandbox: {error:#}"),
    }
    Ok(())
}

/// Says why files are not restricted, if they are not.
fn anywhere(config: &Config) -> Option<String> {
    let has_no_folder = |disk: &&DiskConfig| {
        disk.keys.pool_kind() == Some(PoolKind::Local) && disk.keys.path.is_none()
    };
    let pool = config.disks.iter().filter(|disk| disk.is_pool).find(has_no_folder)?;
    config.keys.sandbox_paths.is_none().then(|| {
        format!(
            ", but for files, as pool {:?} has no path: sandbox_paths restricts them",
            pool.name
        )
    })
}

/// Makes the directories that a start makes: what is beneath one can be allowed once it is there.
/// Where that fails the start says so.
fn make_directories(config: &Config) {
    if let Some(ListenAddress::Unix { path, .. }) = &config.ctl {
        let _ = ctl::make_directory(path);
    }
    if let Some(state) = &config.keys.state_dir {
        let _ = DirBuilder::new().mode(0o700).create(state);
    }
}

/// What is allowed.
#[derive(Debug, Default)]
struct Allowed {
    /// Files to read, also beneath these.
    read: BTreeSet<PathBuf>,
    /// Files to read and write, also beneath these; none is made there.
    write: BTreeSet<PathBuf>,
    /// Files to make and remove beneath these, too.
    keep: BTreeSet<PathBuf>,
    /// Sockets to make and remove in these.
    sockets: BTreeSet<PathBuf>,
    /// Ports to connect to; none where they are not known before.
    connect: Option<BTreeSet<u16>>,
}

impl Allowed {
    fn by(config: &Config, file: Option<&Path>) -> Self {
        let mut allowed = Self { connect: Some(BTreeSet::new()), ..Self::default() };
        allowed.read.extend(READ.into_iter().map(PathBuf::from));
        allowed.read.extend(file.map(folder));
        allowed.write.insert(CpuLatency::PATH.into());
        allowed.keep.extend(config.keys.state_dir.clone());
        allowed.write.extend(config.keys.sandbox_paths().into_iter().flatten());
        allowed.write.extend(anywhere(config).map(|_| "/".into()));
        allowed.sockets.extend(config.keys.vhost_user_dir.clone());
        for address in config.listen.iter().map(|listen| &listen.address).chain(&config.ctl) {
            match address {
                ListenAddress::Unix { path, .. } => _ = allowed.sockets.insert(folder(path)),
                ListenAddress::Tcp(_) | ListenAddress::Passed { .. } => {}
            }
        }
        let machines = config.exports.iter().filter_map(|export| export.keys.vhost_user.as_ref());
        allowed.sockets.extend(machines.map(|path| folder(path)));
        for disk in &config.disks {
            match (&disk.backend, disk.is_pool) {
                (BackendConfig::File { path, .. }, true) => _ = allowed.keep.insert(path.clone()),
                (backend, _) => allowed.add(backend),
            }
            disk.volumes.iter().for_each(|volume| allowed.add(&volume.backend));
            if disk.keys.pool_kind() == Some(PoolKind::Far) {
                allowed.connect = None;
            }
        }
        allowed
    }

    fn add(&mut self, backend: &BackendConfig) {
        match backend {
            BackendConfig::File { path, .. } => {
                // Behind links, as it is opened.
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let is_device =
                    fs::metadata(&path).is_ok_and(|seen| seen.file_type().is_block_device());
                self.write.insert(if is_device { path } else { folder(&path) });
            }
            BackendConfig::Nbd { options, .. } => {
                if let (NbdPlace::Tcp { port, .. }, Some(ports)) =
                    (&options.uri.place, &mut self.connect)
                {
                    ports.extend([*port, DNS]);
                }
            }
            // One that comes with the laboratory is no path.
            BackendConfig::Device { model, .. } => _ = self.read.insert(model.into()),
            BackendConfig::Memory { .. }
            | BackendConfig::Modelled { .. }
            | BackendConfig::NbdPool => {}
        }
    }

    /// Forbids all else. Returns the version of Landlock that does; none where there is none.
    fn enforce(&self) -> Result<Option<String>> {
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(VERSION))?
            .handle_access(AccessNet::BindTcp)?
            .scope(Scope::from_all(VERSION))?;
        if self.connect.is_some() {
            rules = rules.handle_access(AccessNet::ConnectTcp)?;
        }
        let status = self.add_to(rules.create()?)?.restrict_self()?;
        let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
            return Ok(None);
        };
        Ok(Some(format!("ABI {}", effective_abi as i32)))
    }

    fn add_to(&self, rules: RulesetCreated) -> Result<RulesetCreated> {
        let read: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let write = read | make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
        let entries =
            make_bitflags!(AccessFs::{MakeReg | MakeDir | RemoveFile | RemoveDir | Refer});
        let sockets = make_bitflags!(AccessFs::{MakeSock | RemoveFile | ReadDir});
        let rules = rules
            .add_rules(path_beneath_rules(&self.read, read))?
            .add_rules(path_beneath_rules(&self.write, write))?
            .add_rules(path_beneath_rules(&self.keep, write | entries))?
            .add_rules(path_beneath_rules(&self.sockets, sockets))?;
        let connect = self.connect.iter().flatten();
        let connect =
            connect.map(|&port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp)));
        // Whether an address is this machine's is tried by any free port of it.
        let rules = rules.add_rule(NetPort::new(0, AccessNet::BindTcp))?;
        Ok(rules.add_rules(connect)?)
    }
}

/// The folder that something is in.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => ".".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    const FILE: &str = "
unix = \"sockets/nbd.sock\"
ctl = \"none\"
state_dir = \"state\"
[disks.d]
path = \"images/a.img\"
[pools.p]
path = \"pool\"
[exports.e]
disk = \"d\"
";

    fn config(dir: &TempDir) -> Config {
        for made in ["sockets", "images", "state", "pool", "other"] {
            fs::create_dir(dir.path().join(made)).expect("a directory");
        }
        for image in ["images/a.img", "images/b.img", "pool/c.img", "other/d.img"] {
            File::create(dir.path().join(image)).and_then(|it| it.set_len(4096)).expect("a file");
        }
        Config::from_toml(FILE, &dir.path().join("c.toml")).expect("valid")
    }

    /// What a thread gets that may use no more than the configuration says.
    fn within<T: Send>(config: &Config, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let version = Allowed::by(config, None).enforce().expect("it can be entered");
                assert!(version.is_some(), "the kernel of a test has Landlock");
                work()
            });
            inside.join().expect("it ends")
        })
    }

    fn is_denied<T>(result: io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn writes(path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).open(path)
    }

    #[test]
    fn files_are_opened_and_made_where_the_configuration_says_and_nowhere_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = config(&dir);
        let at = |path: &str| dir.path().join(path);
        within(&config, || {
            for image in ["images/a.img", "images/b.img", "pool/c.img"] {
                writes(&at(image)).and_then(|it| it.set_len(8192)).expect("it is allowed");
            }
            for made in ["pool/new.img", "state/new"] {
                File::create(at(made)).expect("it is allowed");
                fs::rename(at(made), at(&format!("{made}er"))).expect("it is allowed");
                fs::remove_file(at(&format!("{made}er"))).expect("it is allowed");
            }
            UnixListener::bind(at("sockets/vm.sock")).expect("it is allowed");
            fs::read_to_string("/proc/self/status").expect("it is allowed");

            assert!(is_denied(writes(&at("other/d.img"))));
            assert!(is_denied(File::open("/etc/passwd")));
            assert!(is_denied(File::create(at("images/new.img"))));
            assert!(is_denied(fs::remove_file(at("images/b.img"))));
            assert!(is_denied(fs::remove_file(at("other/d.img"))));
            assert!(is_denied(UnixListener::bind(at("other/vm.sock"))));
        });
    }

    #[test]
    fn connections_are_made_to_far_disks_alone_unless_requests_name_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut config = config(&dir);
        within(&config, || {
            assert!(is_denied(TcpStream::connect(address)));
            assert!(is_denied(TcpListener::bind("127.0.0.1:10809")));
            TcpListener::bind("127.0.0.1:0").expect("any free port is allowed");
        });
        let uri = format!("nbd://{address}/e");
        let far = format!("{FILE}[disks.far]\nbackend = \"nbd\"\nuri = \"{uri}\"\nsize = 4096\n");
        drop(listener);
        config = Config::from_toml(&far, &dir.path().join("c.toml")).expect("valid");
        let listener = TcpListener::bind(address).expect("the port is free");
        within(&config, || TcpStream::connect(address).expect("it is allowed"));
        drop(listener);
    }
}
