//! Other people's clients within TLS, with certificates that GnuTLS has made: what they are
//! answered who show a good one, and who do not.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{
    Served, check_found, eventually, noise, paternoster, run, temp_dir, tool, tool_command,
};

const SIZE: usize = 32 << 20;

/// Root reads other files as a client of TLS; this one those of its home.
const NOBODY: u32 = 65534;

/// A kind of keys, as certtool makes them.
type KeyKind = [&'static str; 3];
const P256: KeyKind = ["--key-type=ecdsa", "--curve=secp256r1", "--no-text"];
const RSA: KeyKind = ["--key-type=rsa", "--bits=3072", "--no-text"];

/// Folders with what libnbd and QEMU look for: an authority's certificate, and a certificate and
/// its key.
struct Folders {
    dir: TempDir,
    keys: KeyKind,
}

impl Folders {
    /// Those of the server and of a client that may enter.
    fn new(keys: KeyKind) -> Self {
        let folders = Self { dir: temp_dir(), keys };
        // Another user finds his way to his own.
        fs::set_permissions(folders.dir.path(), Permissions::from_mode(0o755)).expect("ours");
        folders.authority("ours");
        let of_server = "dns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\n";
        folders.sign("ours", "server", "server", of_server);
        folders.client("ours", "right", "gold", "serial = 100\n");
        folders
    }

    fn certtool(&self, args: &[&str]) {
        run("gnutls-bin", "certtool", args, self.dir.path());
    }

    fn key(&self, file: &str) {
        let file = format!("--outfile={file}");
        self.certtool(&[&["--generate-privkey", &file], &self.keys[..]].concat());
    }

    /// What certtool is to make.
    fn template(&self, text: &str) -> &'static str {
        let whole = format!("signing_key\n{text}");
        fs::write(self.dir.path().join("template"), whole).expect("a file");
        "--template=template"
    }

    fn authority(&self, name: &str) {
        fs::create_dir(self.dir.path().join(name)).expect("a folder");
        self.key(&format!("{name}/ca-key.pem"));
        let rights = "ca\ncert_signing_key\ncrl_signing_key\n";
        let template = self.template(&format!("cn = {name}\nexpiration_days = 30\n{rights}"));
        let [key, made] = [format!("--load-privkey={name}/ca-key.pem"), certificate(name)];
        self.certtool(&["--generate-self-signed", &key, template, &made]);
    }

    /// A folder with a certificate that an authority has signed.
    fn sign(&self, authority: &str, folder: &str, who: &str, names: &str) {
        let dir = self.dir.path();
        fs::create_dir(dir.join(folder)).expect("a folder");
        fs::copy(dir.join("ours/ca-cert.pem"), dir.join(folder).join("ca-cert.pem")).expect("ours");
        self.key(&format!("{folder}/{who}-key.pem"));
        let mut text = format!("cn = {who}\n{names}");
        if !names.contains("expiration_date") {
            text.write_str("expiration_days = 30\n").expect("a string");
        }
        let template = self.template(&text);
        let key = format!("--load-privkey={folder}/{who}-key.pem");
        let made = format!("--outfile={folder}/{who}-cert.pem");
        let [by, its_key] = signed_by(authority);
        self.certtool(&["--generate-certificate", &key, &by, &its_key, template, &made]);
    }

    fn client(&self, authority: &str, folder: &str, tenant: &str, more: &str) {
        let names = format!("uri = spiffe://example/{tenant}\ntls_www_client\n{more}");
        self.sign(authority, folder, "client", &names);
    }

    /// Those of clients that may not enter.
    fn add_wrong_ones(&self) {
        self.authority("foreign");
        fs::create_dir(self.dir.path().join("none")).expect("a folder");
        let [ours, copy] = ["ours", "none"].map(|of| self.dir.path().join(of).join("ca-cert.pem"));
        fs::copy(ours, copy).expect("a copy");
        self.client("foreign", "strange", "gold", "");
        let over = "activation_date = \"2001-01-01 00:00:00\"\n\
                    expiration_date = \"2001-02-01 00:00:00\"\n";
        self.client("ours", "expired", "gold", over);
        self.client("ours", "revoked", "gold", "serial = 101\n");
        self.client("ours", "other", "bronze", "serial = 102\n");
    }

    /// A server of two tenants, on both kinds of sockets, to whom this one is revoked.
    fn serve(&self, revoked: Option<&str>) -> Served {
        let dir = temp_dir();
        let disk = format!("backend = \"memory\"\nsize = {}", 2 * SIZE);
        self.configure(dir.path(), revoked, &disk);
        let served = Served::start(dir, &["c.toml"], 4);
        assert!(served.uris.iter().all(|uri| uri.starts_with("nbds")), "{:?}", served.uris);
        served
    }

    /// The file of such a server, with that disk.
    fn configure(&self, dir: &Path, revoked: Option<&str>, disk: &str) {
        let template = self.template("crl_next_update = 30\ncrl_number = 1\n");
        let [by, its_key] = signed_by("ours");
        let mut args = vec!["--generate-crl", &by, &its_key, template, "--outfile=crl.pem"];
        let revoked = revoked.map(|folder| format!("--load-certificate={folder}/client-cert.pem"));
        args.extend(revoked.as_deref());
        self.certtool(&args);
        let toml = format!(
            r#"
[tls]
certificate = "TLS/server/server-cert.pem"
key = "TLS/server/server-key.pem"
client_ca = "TLS/ours/ca-cert.pem"
crl = "TLS/crl.pem"
[[listen]]
unix = "tls.sock"
tls = "require"
[[listen]]
tcp = "127.0.0.1:0"
tls = "require"
[disks.d]
{disk}
[groups."/gold"]
identities = ["uri:spiffe://example/gold"]
[exports.vm1]
disk = "d"
size = {SIZE}
group = "/gold"
[exports.others]
disk = "d"
offset = {SIZE}
"#
        );
        let toml = toml.replace("TLS", self.dir.path().to_str().expect("UTF-8"));
        fs::write(dir.join("c.toml"), toml).expect("a file");
    }
}

fn certificate(authority: &str) -> String {
    format!("--outfile={authority}/ca-cert.pem")
}

fn signed_by(authority: &str) -> [String; 2] {
    let of = |what, name| format!("--load-ca-{what}={authority}/ca-{name}.pem");
    [of("certificate", "cert"), of("privkey", "key")]
}

/// A client that may have to be refused: what it shows is in a folder.
struct Client {
    /// Where the server is, and on which port.
    dir: PathBuf,
    port: String,
    folder: PathBuf,
    /// Whether it connects by the unix socket.
    socket: bool,
}

impl Client {
    fn of(served: &Served, folder: PathBuf, socket: bool) -> Self {
        let tcp = served.uris.iter().find_map(|uri| uri.strip_prefix("nbds://127.0.0.1:"));
        let port = tcp.and_then(|rest| rest.split('/').next()).expect("it listens there");
        Self { dir: served.dir.path().to_owned(), port: port.to_owned(), folder, socket }
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn port(&self) -> &str {
        &self.port
    }

    /// As libnbd has it.
    fn uri(&self) -> String {
        let folder = self.folder.display();
        if self.socket {
            let socket = self.dir.join("tls.sock");
            let socket = socket.display();
            format!("nbds+unix:///vm1?socket={socket}&tls-certificates={folder}")
        } else {
            format!("nbds://localhost:{}/vm1?tls-certificates={folder}", self.port())
        }
    }

    /// As QEMU has it: how TLS is made, and where the export is.
    fn of_qemu(&self, priority: &str) -> [String; 2] {
        let folder = self.folder.display();
        let tls = format!("tls-creds-x509,id=t,dir={folder},endpoint=client,priority={priority}");
        let place = if self.socket {
            let socket = self.dir.join("tls.sock");
            format!("server.type=unix,server.path={},tls-hostname=localhost", socket.display())
        } else {
            format!("server.type=inet,server.host=localhost,server.port={}", self.port())
        };
        [tls, format!("driver=nbd,export=vm1,tls-creds=t,{place}")]
    }

    fn nbdinfo(&self) -> Output {
        tool("libnbd-bin", "nbdinfo", ["--size", &self.uri()], self.dir())
    }

    fn nbdcopy(&self) -> Output {
        tool("libnbd-bin", "nbdcopy", ["--connections=2", &self.uri(), "back.img"], self.dir())
    }

    fn qemu_img(&self) -> Output {
        let [tls, place] = self.of_qemu("NORMAL");
        tool(
            "qemu-utils",
            "qemu-img",
            ["map", "--object", &tls, "--image-opts", &place],
            self.dir(),
        )
    }

    fn qemu_io(&self) -> Output {
        self.qemu_io_by("NORMAL")
    }

    /// With other versions of TLS, as GnuTLS names them.
    fn qemu_io_by(&self, priority: &str) -> Output {
        let [tls, place] = self.of_qemu(priority);
        let did = "write -P 0x55 1M 300k;read -P 0x55 1M 300k;flush";
        let did = did.split(';').flat_map(|command| ["-c", command]);
        let args = ["--object", &tls, "--image-opts", &place].into_iter().chain(did);
        tool("qemu-utils", "qemu-io", args, self.dir())
    }

    /// Lists; it has no unix socket's name to check a certificate by.
    fn qemu_nbd(&self) -> Output {
        let [tls, _] = self.of_qemu("NORMAL");
        let port = self.port();
        let args = ["-L", "-b", "localhost", "-p", port, "--object", &tls, "--tls-creds", "t"];
        tool("qemu-utils", "qemu-nbd", args, self.dir())
    }

    /// Its plugin is a client, of which it makes an export in the clear.
    fn nbdkit(&self) -> Output {
        let (folder, port) = (self.folder.display(), self.port());
        let tls = [format!("tls-certificates={folder}"), format!("port={port}")];
        let [tls, port] = &tls;
        let more =
            ["hostname=localhost", "export=vm1", "tls=require", "--run", "nbdinfo --size $uri"];
        let args = [&["-U", "-", "nbd", tls, port][..], &more].concat();
        tool("nbdkit", "nbdkit", args, self.dir())
    }

    /// It finds its certificate in its home alone; and that of root is the machine's.
    fn fio(&self) -> Output {
        let home = self.folder.join("home");
        if !home.exists() {
            let own = home.join(".pki/libnbd");
            fs::create_dir_all(&own).expect("a folder");
            for file in ["ca-cert.pem", "client-cert.pem", "client-key.pem"] {
                let copied = fs::copy(self.folder.join(file), own.join(file));
                if copied.is_ok() && fs::metadata("/proc/self").expect("ours").uid() == 0 {
                    chown(own.join(file), Some(NOBODY), None).expect("root may");
                }
            }
        }
        let uri = format!("--uri=nbds://localhost:{}/vm1", self.port());
        let work = ["--rw=randwrite", "--bsrange=512-64k", "--size=4M", "--iodepth=16"];
        let check = ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"];
        let args = [&["--name=v", "--ioengine=nbd", &uri][..], &work, &check].concat();
        let mut command = tool_command("fio", &home);
        command.args(args).env("HOME", &home);
        if fs::metadata("/proc/self").expect("ours").uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("timeout runs");
        check_found("fio", "fio", output.status);
        output
    }
}

/// What each does, and whether it knows unix sockets.
type Peer = (&'static str, fn(&Client) -> Output, bool);

const PEERS: [Peer; 7] = [
    ("nbdinfo", Client::nbdinfo, true),
    ("nbdcopy", Client::nbdcopy, true),
    ("qemu-img", Client::qemu_img, true),
    ("qemu-io", Client::qemu_io, true),
    ("qemu-nbd", Client::qemu_nbd, false),
    ("nbdkit", Client::nbdkit, false),
    ("fio", Client::fio, false),
];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn clients_of_others_enter_by_their_certificates() {
    for keys in [P256, RSA] {
        let folders = Folders::new(keys);
        let served = folders.serve(None);
        let folder = folders.dir.path().join("right");
        for socket in [false, true] {
            let client = Client::of(&served, folder.clone(), socket);
            for (name, peer, _) in PEERS.iter().filter(|peer| peer.2 || !socket) {
                let output = peer(&client);
                assert!(output.status.success(), "{keys:?}, {name}: {}", said(&output));
            }
            for versions in ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"] {
                let output = client.qemu_io_by(versions);
                let did = said(&output);
                assert!(output.status.success() && !did.contains("failed"), "{versions}: {did}");
            }
        }
        assert!(
            served.log().contains("identity=\"uri:spiffe://example/gold\""),
            "{}",
            served.log()
        );
        served.end();
    }
}

#[test]
fn what_is_written_within_tls_is_read_within_tls() {
    let folders = Folders::new(P256);
    let served = folders.serve(None);
    fs::write(served.path("src.img"), noise(SIZE, 3)).expect("an image");
    for socket in [false, true] {
        let client = Client::of(&served, folders.dir.path().join("right"), socket);
        let (uri, dir) = (client.uri(), client.dir());
        let many = ["--connections=4", "--requests=64"];
        run("libnbd-bin", "nbdcopy", &[&many[..], &["src.img", &uri]].concat(), dir);
        File::create(served.path("back.img")).expect("a file");
        run("libnbd-bin", "nbdcopy", &[&many[..], &[&uri, "back.img"]].concat(), dir);
        run("diffutils", "cmp", &["src.img", "back.img"], dir);
        let [tls, place] = client.of_qemu("NORMAL");
        let args = [
            "compare",
            "--object",
            &tls,
            "--image-opts",
            &place,
            "driver=raw,file.filename=src.img",
        ];
        assert_eq!(run("qemu-utils", "qemu-img", &args, dir), "Images are identical.\n");
    }
    served.end();
}

/// Of each the line of the log, as the server says it to one of them at least: QEMU looks itself at
/// what it would show.
#[test]
fn clients_of_others_that_show_nothing_good_are_refused() {
    let folders = Folders::new(P256);
    folders.add_wrong_ones();
    for (folder, why) in [
        ("none", "why=\"no certificate was shown\""),
        ("strange", "why=\"no certificate was shown\""),
        ("expired", "why=\"its certificate has expired\""),
        ("revoked", "why=\"its certificate is revoked\""),
        (
            "other",
            "why=\"the certificate is of no tenant: its names are uri:spiffe://example/bronze",
        ),
    ] {
        let served = folders.serve(Some("revoked"));
        let folder = folders.dir.path().join(folder);
        for (name, peer, _) in PEERS {
            let client = Client::of(&served, folder.clone(), false);
            let output = peer(&client);
            let did = said(&output);
            // A list is empty to whom nothing belongs.
            let lists_nothing = name == "qemu-nbd" && did.contains("exports available: 0");
            assert!(!output.status.success() || lists_nothing, "{why}, {name}: {did}");
            assert!(!did.contains("others"), "{why}, {name}: {did}");
        }
        let log = served.log();
        assert!(log.contains(why) && !log.contains("a client has connected"), "{why}\n{log}");
        served.end();
    }
}

/// A server in front of that one, or why there is none.
fn in_front_of(uri: &str) -> Result<Served, String> {
    let dir = temp_dir();
    let toml = format!(
        "unix = \"front.sock\"\n[disks.far]\nbackend = \"nbd\"\nuri = {uri:?}\n\
         [exports.vm]\ndisk = \"far\"\n"
    );
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let checked = paternoster(dir.path()).args(["serve", "--check", "c.toml"]).output();
    let checked = checked.expect("the binary runs");
    if checked.status.success() {
        Ok(Served::start(dir, &["c.toml"], 1))
    } else {
        Err(said(&checked))
    }
}

#[test]
fn far_server_is_used_within_tls() {
    let folders = Folders::new(P256);
    folders.add_wrong_ones();
    let behind = folders.serve(None);
    let right = folders.dir.path().join("right");
    let kit_socket = behind.path("kit.sock");
    let mut kit = Command::new("nbdkit");
    kit.args(["--foreground", "--tls=require", "--tls-verify-peer", "--unix"]).arg(&kit_socket);
    kit.arg(format!("--tls-certificates={}", folders.dir.path().join("server").display()));
    let kit = kit.args(["memory", "32M"]).stdin(Stdio::null()).spawn();
    let mut kit = kit.expect("nbdkit starts: install the Debian package nbdkit");
    eventually("nbdkit listens", || kit_socket.exists());
    let ours = |socket| Client::of(&behind, right.clone(), socket).uri();
    let named = |uri: String| format!("{uri}&tls-hostname=localhost");
    let certificates = right.display();
    let of_kit = format!("nbds+unix:///?socket={}", kit_socket.display());
    for uri in
        [ours(false), named(ours(true)), named(format!("{of_kit}&tls-certificates={certificates}"))]
    {
        let served = in_front_of(&uri).expect("it can be used");
        fs::write(served.path("src.img"), noise(SIZE, 5)).expect("an image");
        let dir = served.dir.path();
        let many = ["--connections=2", "--requests=64"];
        run("libnbd-bin", "nbdcopy", &[&many[..], &["src.img", served.uri()]].concat(), dir);
        run("libnbd-bin", "nbdcopy", &[&many[..], &[served.uri(), "back.img"]].concat(), dir);
        run("diffutils", "cmp", &["src.img", "back.img"], dir);
        served.end();
    }
    kit.kill().and_then(|()| kit.wait()).expect("it ends");

    let refused = |uri: String| in_front_of(&uri).err().expect("it cannot be used");
    let by = |folder: &str| ours(false).replace("/right", &format!("/{folder}"));
    let foreign = refused(by("foreign"));
    assert!(foreign.contains("TLS: invalid peer certificate: UnknownIssuer"), "{foreign}");
    let other_name = refused(format!("{}&tls-hostname=elsewhere", ours(false)));
    assert!(other_name.contains("certificate not valid for name \"elsewhere\""), "{other_name}");
    let other = refused(by("other"));
    assert!(other.contains("the server has no such export"), "{other}");
    let absent = refused(by("absent"));
    assert!(absent.contains("absent/ca-cert.pem: No such file"), "{absent}");
    let clear =
        refused(ours(false).replace("nbds", "nbd").split('?').next().unwrap_or("").to_owned());
    assert!(clear.contains("nbds:// with tls-certificates=FOLDER is needed"), "{clear}");
    let none = refused(by("none"));
    assert!(none.contains("TLS: received fatal alert: CertificateRequired"), "{none}");
    let relative = refused("nbds://localhost/vm1?tls-certificates=tls".to_owned());
    assert!(relative.contains("tls-certificates \"tls\" is relative"), "{relative}");
    behind.end();
}

/// The connection that is made anew reads the files anew: here they are links in a folder of their
/// own, which are renewed meanwhile, and the server is in a sandbox.
#[test]
fn far_server_that_comes_back_is_used_within_tls_again() {
    let folders = Folders::new(P256);
    let mut behind = folders.serve(None);
    let linked = folders.dir.path().join("linked");
    fs::create_dir(&linked).expect("a folder");
    let link = |file: &str, to: &str| {
        let _ = fs::remove_file(linked.join(file));
        let to = folders.dir.path().join(to).join(file);
        std::os::unix::fs::symlink(to, linked.join(file)).expect("a link");
    };
    for file in ["ca-cert.pem", "client-cert.pem", "client-key.pem"] {
        link(file, "right");
    }
    let uri = Client::of(&behind, linked.clone(), true).uri() + "&tls-hostname=localhost";
    let served = in_front_of(&uri).expect("it can be used");
    let qemu_io = |command: &str| {
        run("qemu-utils", "qemu-io", &["-f", "raw", "-c", command, served.uri()], served.dir.path())
    };
    qemu_io("write -P 1 0 64k");
    folders.client("ours", "renewed", "gold", "serial = 103\n");
    for file in ["client-cert.pem", "client-key.pem"] {
        let renewed = folders.dir.path().join("renewed").join(file);
        fs::rename(renewed, folders.dir.path().join("right").join(file)).expect("it is renewed");
    }
    behind.signal(rustix::process::Signal::KILL);
    behind.wait(std::time::Duration::from_secs(10));
    let dir = behind.leave();
    let again = Served::start(dir, &["c.toml"], 4);
    let did = qemu_io("write -P 7 0 64k");
    assert!(did.contains("wrote 65536/65536"), "{did}");
    let did = qemu_io("read -P 7 0 64k");
    assert!(did.contains("read 65536/65536") && !did.contains("failed"), "{did}");
    served.end();
    again.end();
}

/// Nobody gives its keys away: the client is closed, and connects to the next server.
#[test]
fn client_within_tls_connects_again_to_the_server_that_takes_over() {
    let folders = Folders::new(P256);
    let dir = temp_dir();
    let image = File::create(dir.path().join("disk.img")).expect("an image");
    image.set_len(2 * SIZE as u64).expect("room");
    folders.configure(dir.path(), None, "path = \"disk.img\"");
    let served = Served::start(dir, &["c.toml"], 4);
    let client = Client::of(&served, folders.dir.path().join("right"), true);
    let [tls, place] = client.of_qemu("NORMAL");
    let place = format!("{place},reconnect-delay=20");
    let mut qemu_io = tool_command("qemu-io", client.dir());
    qemu_io.args(["--object", &tls, "--image-opts", &place, "-c", "write -P 7 0 4k"]);
    qemu_io.args(["-c", "sleep 2000", "-c", "read -P 7 0 4k"]);
    let qemu_io = qemu_io.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    eventually("it has written", || served.log().contains("a client has connected"));
    let (next, log) = served.hand_over("c.toml");
    assert!(log.contains("identity=\"uri:spiffe://example/gold\""), "{log}");
    let output = qemu_io.wait_with_output().expect("it ends");
    let did = said(&output);
    assert!(output.status.success() && did.contains("read 4096/4096"), "{did}");
    assert!(next.log().contains("identity=\"uri:spiffe://example/gold\""), "{}", next.log());
    next.end();
}
