//! What a server may open from its start on, whatever becomes of it: Landlock.
//!
//! ```text
//!   images, pools, state_dir   read and written; made and removed where requests do that
//!   folders of sockets         sockets made, files removed
//!   folders of the configuration and of the files of TLS, models, /proc, /sys
//!                              read; where names of hosts are looked up, if a disk is behind one
//!   TCP                        connect to the ports of far disks
//!   everything else            EACCES; also to signal other processes
//! ```
//!
//! It is entered when all sockets listen, as who has one that is in use is not seen from within,
//! and before any thread starts: it is that of a thread and of those that it starts. What is open
//! already is not asked about again. docs/operations.md says what Landlock does not see.
//!
//! A rule is of a file, not of its name: where another may be put into its place, the folder is
//! allowed. So it is with an image, and a reload can add another that lies there; and with what
//! `sandbox_paths` says. A reload or a request that wants more is refused, and its error says why.
//! Images of a pool without a folder may be anywhere: then files are not restricted, unless
//! `sandbox_paths` does.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope, make_bitflags,
    path_beneath_rules,
};
use paternoster_disk::{CpuLatency, NbdPlace};
use rustix::io::Errno;

use crate::catalogue::make_state_dir;
use crate::config::{BackendConfig, Config, DiskConfig, ListenAddress, PoolKind, Sandbox};
use crate::ctl;

/// The newest version of Landlock of which all is asked for; older ones do what they can.
const VERSION: ABI = ABI::V6;

/// What is known of processes and devices.
const READ: [&str; 2] = ["/proc", "/sys"];
/// Where names of hosts are looked up.
const LOOKUP: [&str; 4] = ["/etc", "/lib", "/lib64", "/usr/lib"];
/// The list of name servers, which may be a link.
const NAME_SERVERS: &str = "/etc/resolv.conf";
/// The port of a name server that is asked by TCP.
const DNS: u16 = 53;

/// Whether this process is in one.
static ENTERED: AtomicBool = AtomicBool::new(false);
/// Whether it serves, so that what is refused is more than it was started with.
static SERVES: AtomicBool = AtomicBool::new(false);

/// The error, with why it may be where that is not seen: in a sandbox.
pub(crate) fn explained(error: &io::Error) -> String {
    let is_denied = Errno::from_io_error(error) == Some(Errno::ACCESS);
    let is = |state: &AtomicBool| state.load(Ordering::Relaxed);
    match (is_denied && is(&ENTERED), is(&SERVES)) {
        (false, _) => error.to_string(),
        (true, true) => format!(
            "{error}; this server may use what it was started with and nothing else (sandbox, \
             sandbox_paths): a restart lets it use what the file says then"
        ),
        // It may as well be its user's.
        (true, false) => format!(
            "{error}; where its user may use it, the sandbox does not let it: sandbox_paths does"
        ),
    }
}

/// The server has started.
pub(crate) fn serves() {
    SERVES.store(true, Ordering::Relaxed);
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
    let allowed = Allowed::by(config, file);
    match allowed.enforce() {
        Ok(Some(version)) => {
            ENTERED.store(true, Ordering::Relaxed);
            let (lacks, but) = (lacks(version), allowed.anywhere.unwrap_or_default());
            tracing::info!("sandbox: Landlock ABI {}{lacks}{but}", version as i32);
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

/// What an older version does not restrict.
fn lacks(version: ABI) -> &'static str {
    match version as i32 {
        ..3 => ", which restricts neither that files are cut, nor the network, nor signals",
        3 => ", which restricts neither the network nor signals",
        4..6 => ", which does not restrict signals",
        6.. => "",
    }
}

/// Makes the directories that a start makes: what is beneath one can be allowed once it is there.
/// Where that fails the start says so.
fn make_directories(config: &Config) {
    if let Some(ListenAddress::Unix { path, .. }) = &config.ctl {
        let _ = ctl::make_directory(path);
    }
    if let Some(state) = &config.keys.state_dir {
        let _ = make_state_dir(state);
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
    /// Sockets to make and files to remove beneath these.
    sockets: BTreeSet<PathBuf>,
    /// Ports to connect to; none where they are not known before.
    connect: Option<BTreeSet<u16>>,
    /// Why all files may be used, if they may.
    anywhere: Option<String>,
}

impl Allowed {
    fn by(config: &Config, file: Option<&Path>) -> Self {
        let mut allowed = Self { connect: Some(BTreeSet::new()), ..Self::default() };
        allowed.read.extend(READ.map(PathBuf::from));
        for file in file.into_iter().filter(|file| file.is_file()) {
            allowed.read.extend([folder(file), folder(&behind_links(file))]);
        }
        // They are read again, and who renews them puts others into their places.
        for file in config.tls.paths() {
            allowed.read.extend([folder(file), folder(&behind_links(file))]);
        }
        allowed.write.insert(CpuLatency::PATH.into());
        allowed.keep.extend(config.keys.state_dir.clone());
        allowed.sockets.extend(config.keys.vhost_user_dir.clone());
        for address in config.listen.iter().map(|listen| &listen.address).chain(&config.ctl) {
            match address {
                ListenAddress::Unix { path, .. } => _ = allowed.sockets.insert(folder(path)),
                ListenAddress::Tcp(_) | ListenAddress::Passed { .. } => {}
            }
        }
        let machines = config.exports.iter().filter_map(|export| export.keys.vhost_user.as_ref());
        allowed.sockets.extend(machines.map(|path| folder(path)));
        let exports = config.exports_by_volume();
        for (number, disk) in config.disks.iter().enumerate() {
            for (volume, of) in disk.volumes.iter().enumerate() {
                let of_volume = exports.get(&(number, volume)).into_iter().flatten();
                let is_written = of_volume.into_iter().any(|export| !export.keys.read_only);
                allowed.allow(&of.backend, is_written);
            }
            if disk.is_pool {
                allowed.allow_pool(disk);
            }
        }
        match config.keys.sandbox_paths() {
            Some(paths) => allowed.allow_paths(paths),
            None => allowed.anywhere = has_no_folder(config),
        }
        if allowed.anywhere.is_some() {
            // Its images are there before they are its volumes.
            allowed.write.insert("/".into());
        }
        allowed
    }

    fn allow(&mut self, backend: &BackendConfig, is_written: bool) {
        match backend {
            BackendConfig::File { path, .. } => {
                let path = behind_links(path);
                let is_device =
                    fs::metadata(&path).is_ok_and(|seen| seen.file_type().is_block_device());
                let of = if is_written { &mut self.write } else { &mut self.read };
                of.insert(if is_device { path } else { folder(&path) });
            }
            BackendConfig::Nbd { options, .. } => {
                if let Some(tls) = &options.uri.tls {
                    self.read.extend([tls.certificates.clone(), behind_links(&tls.certificates)]);
                    // Who renews them may have links there.
                    self.read.extend(tls.files().iter().map(|file| folder(&behind_links(file))));
                }
                if let NbdPlace::Tcp { port, .. } = options.uri.place {
                    self.look_up_names();
                    self.connect.iter_mut().for_each(|ports| ports.extend([port, DNS]));
                }
            }
            // It may be of several files. One that comes with the laboratory is none.
            BackendConfig::Device { model, .. } if Path::new(model).is_file() => {
                self.read.insert(folder(&behind_links(Path::new(model))));
            }
            BackendConfig::Device { .. }
            | BackendConfig::Memory { .. }
            | BackendConfig::Modelled { .. }
            | BackendConfig::NbdPool => {}
        }
    }

    /// What its volumes need that come later.
    fn allow_pool(&mut self, pool: &DiskConfig) {
        self.keep.extend(pool.keys.path.clone());
        if pool.keys.pool_kind() == Some(PoolKind::Far) {
            self.look_up_names();
            self.connect = None;
        }
        if !matches!(pool.backend, BackendConfig::File { .. }) {
            self.allow(&pool.backend, true);
        }
    }

    fn look_up_names(&mut self) {
        self.read.extend(LOOKUP.map(PathBuf::from));
        self.read.insert(folder(&behind_links(Path::new(NAME_SERVERS))));
    }

    /// What the file allows beyond what it says.
    fn allow_paths(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if !path.exists() {
                let path = path.display();
                tracing::warn!("sandbox_paths: {path} is not there now: name a folder that is");
            }
            self.keep.insert(path.clone());
            self.sockets.insert(path);
        }
    }

    /// Forbids all else. Returns the version of Landlock that does; none where there is none.
    fn enforce(&self) -> Result<Option<ABI>> {
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(VERSION))?
            .handle_access(AccessNet::BindTcp)?
            .scope(Scope::from_all(VERSION))?;
        if self.connect.is_some() {
            rules = rules.handle_access(AccessNet::ConnectTcp)?;
        }
        let status = self.add_to(rules.create()?)?.restrict_self()?;
        Ok(match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Some(effective_abi),
            _ => None,
        })
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

/// Says why files are not restricted where the file does not say which may come.
fn has_no_folder(config: &Config) -> Option<String> {
    let is_without = |disk: &&DiskConfig| {
        disk.keys.pool_kind() == Some(PoolKind::Local) && disk.keys.path.is_none()
    };
    let pool = config.disks.iter().filter(|disk| disk.is_pool).find(is_without)?;
    let name = &pool.name;
    Some(format!(", but for files, as pool {name:?} has no path: sandbox_paths restricts them"))
}

/// The folder that something is in.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => ".".into(),
    }
}

/// The file that is opened by that path.
fn behind_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
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
        within_beside(config, None, work)
    }

    /// The same of what was read from a file.
    fn within_beside<T: Send>(
        config: &Config,
        file: Option<&Path>,
        work: impl FnOnce() -> T + Send,
    ) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let version = Allowed::by(config, file).enforce().expect("it can be entered");
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

    /// By a new file in place of the old one, as editors write it, also behind a link.
    #[test]
    fn configuration_is_read_again_when_it_has_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = config(&dir);
        let at = |path: &str| dir.path().join(path);
        fs::write(at("other/c.toml"), FILE).expect("a file");
        fs::create_dir(at("etc")).expect("a directory");
        std::os::unix::fs::symlink(at("other/c.toml"), at("etc/c.toml")).expect("a link");
        let (enters, entered) = std::sync::mpsc::channel();
        let (goes_on, may_go_on) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let (config, at) = (&config, &at);
            scope.spawn(move || {
                within_beside(config, Some(&at("etc/c.toml")), move || {
                    enters.send(()).expect("it is waited for");
                    may_go_on.recv().expect("it is changed");
                    assert_eq!(fs::read_to_string(at("etc/c.toml")).expect("allowed"), "new");
                    assert!(is_denied(writes(&at("other/c.toml"))));
                });
            });
            entered.recv().expect("it enters");
            fs::write(at("other/new"), "new").expect("a file");
            fs::rename(at("other/new"), at("other/c.toml")).expect("it is there");
            goes_on.send(()).expect("it waits");
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
