//! Several sockets, each with the exports that it offers: what a file says of them, and what
//! clients of each then see.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use bytes::BytesMut;
use paternoster_nbd::client::{ClientOptions, Handshake, Progress, Replies, Target};
use paternoster_server::Server;
use paternoster_server::config::{
    Config, ConfigError, Listen, ListenAddress, ListenTls, VhostMemory,
};
use tempfile::TempDir;

/// Two exports, and one more that anybody may read.
const EXPORTS: &str = r#"
ctl = "none"
[disks.d]
backend = "memory"
size = "4M"
[exports.gold]
disk = "d"
size = "1M"
[exports.free]
disk = "d"
offset = "1M"
size = "1M"
[exports.common]
disk = "d"
offset = "2M"
read_only = true
"#;

fn read(dir: &TempDir, listen: &str) -> Result<Config, ConfigError> {
    Config::from_toml(&format!("{EXPORTS}{listen}"), &dir.path().join("c.toml"))
}

fn refusal(listen: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    read(&dir, listen).expect_err("a mistake").to_string()
}

/// The exports that a client of the socket is told of, and whether it may enter `name`.
fn seen(socket: &Path, name: &str) -> (Vec<String>, bool) {
    let listed = match ask(socket, Target::List) {
        Some(Progress::Listed(exports)) => exports.into_iter().map(|listed| listed.name).collect(),
        other => panic!("{other:?}"),
    };
    let entered = ask(socket, Target::Go(name.to_owned()));
    (listed, matches!(entered, Some(Progress::Entered(_))))
}

/// What comes of it; none where the server has refused.
fn ask(socket: &Path, target: Target) -> Option<Progress> {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let mut handshake = Handshake::new(ClientOptions { target, replies: Replies::Simple });
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    loop {
        let progress = handshake.receive(&mut input, &mut output).ok()?;
        stream.write_all(&output.split()).expect("it is taken");
        if !matches!(progress, Progress::NeedMore) {
            return Some(progress);
        }
        let mut bytes = [0; 4096];
        let received = stream.read(&mut bytes).expect("an answer");
        assert!(received > 0, "the server has closed the connection");
        input.extend_from_slice(&bytes[..received]);
    }
}

#[test]
fn each_socket_shows_and_admits_to_what_it_offers_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let listen = r#"
[[listen]]
unix = "gold.sock"
exports = ["gold", "common"]
[[listen]]
unix = "free.sock"
unix_mode = "0660"
exports = ["free"]
[[listen]]
unix = "all.sock"
"#;
    let config = read(&dir, listen).expect("valid");
    let offered: Vec<_> = config.listen.iter().map(|listen| listen.exports.clone()).collect();
    assert_eq!(offered, [Some(vec![0, 2]), Some(vec![1]), None]);
    let server = Server::start(&config).expect("a server");
    let socket = |name: &str| dir.path().join(name);
    let cases: [(&str, &[&str], &str, &str); 3] = [
        ("gold.sock", &["gold", "common"], "common", "free"),
        // Of one export alone, that is the default export.
        ("free.sock", &["free"], "", "gold"),
        ("all.sock", &["gold", "free", "common"], "free", "silver"),
    ];
    for (name, all, entered, refused) in cases {
        let names: Vec<_> = all.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(seen(&socket(name), entered), (names.clone(), true), "{name}");
        assert_eq!(seen(&socket(name), refused), (names, false), "{name}");
    }
    let at = |export: &str, name: &str| {
        format!("nbd+unix:///{export}?socket={}", socket(name).display())
    };
    let uris = [
        at("gold", "gold.sock"),
        at("gold", "all.sock"),
        at("free", "free.sock"),
        at("free", "all.sock"),
        at("common", "gold.sock"),
        at("common", "all.sock"),
    ];
    assert_eq!(server.uris(), uris);
    server.shut_down().expect("a good end");
    assert!(!socket("gold.sock").exists() && !socket("all.sock").exists());
}

#[test]
fn sockets_of_the_file_and_of_the_list_stand_side_by_side() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!("unix = \"a.sock\"\n{EXPORTS}[[listen]]\ntcp = \"127.0.0.1:0\"\n");
    let config = Config::from_toml(&text, &dir.path().join("c.toml")).expect("valid");
    let tcp = ListenAddress::Tcp("127.0.0.1:0".parse().expect("an address"));
    let unix = Listen::unix(dir.path().join("a.sock"));
    assert_eq!(config.listen, [unix, Listen { address: tcp, exports: None, tls: ListenTls::Off }]);
    let server = Server::start(&config).expect("a server");
    assert_eq!(server.uris().len(), 6, "each export on each socket");
    let on_tcp = server.uris().iter().filter(|uri| uri.starts_with("nbd://127.0.0.1:"));
    assert!(on_tcp.clone().count() == 3 && !on_tcp.clone().any(|uri| uri.contains(":0/")));
    server.shut_down().expect("a good end");
}

#[test]
fn what_a_list_of_sockets_cannot_be_is_refused_with_its_line() {
    // EXPORTS has 15 lines and an empty one before them.
    let cases: [(&str, &[&str]); 16] = [
        ("[[listen]]\nexports = [\"gold\"]\n", &["c.toml:17", "none of unix, tcp and fd"]),
        ("[[listen]]\nfd = \"a\"\nunix = \"a\"\n", &["c.toml:18", "unix and fd"]),
        ("[[listen]]\nfd = \"a:b\"\n", &["c.toml:18", "\"a:b\"", "none of them a colon"]),
        ("[[listen]]\nfd = \"\"\n", &["c.toml:18", "1 to 255 printable"]),
        ("[[listen]]\nfd = \"a\"\nunix_mode = 0\n", &["c.toml:19", "of no use without unix"]),
        (
            "[[listen]]\nfd = \"a\"\n[[listen]]\nfd = \"a\"\n",
            &["c.toml:20", "fd:a is listened on already"],
        ),
        ("[[listen]]\nunix = \"a\"\ntcp = \"[::1]:1\"\n", &["c.toml:19", "unix and tcp"]),
        ("[[listen]]\nunix = \"a\"\nexports = []\n", &["c.toml:19", "at least one"]),
        ("[[listen]]\nunix = \"a\"\nexports = [7]\n", &["c.toml:19", "an array of texts"]),
        (
            "[[listen]]\nunix = \"a\"\nexports = [\"silver\"]\n",
            &["c.toml:19", "no export \"silver\"", "\"gold\", \"free\", \"common\""],
        ),
        ("[[listen]]\nunix = \"a\"\nexports = [\"free\", \"free\"]\n", &["offered twice"]),
        (
            "[[listen]]\nunix = \"a\"\nexports = [\"free\", \"gold\"]\n",
            &["no socket offers export \"common\""],
        ),
        (
            "[[listen]]\nunix = \"a\"\n[[listen]]\nunix = \"a\"\n",
            &["c.toml:20", "listened on already"],
        ),
        (
            "[[listen]]\ntcp = \"[::1]:1\"\n[[listen]]\ntcp = \"[::1]:1\"\n",
            &["c.toml:20", "[::1]:1 is listened on already"],
        ),
        ("[[listen]]\nunix = \"a\"\nport = 7\n", &["c.toml:19", "unknown key `port`", "`exports`"]),
        ("[listen]\nunix = \"a\"\n", &["c.toml:17", "an array of tables is allowed"]),
    ];
    for (listen, words) in cases {
        let refused = refusal(listen);
        assert!(words.iter().all(|word| refused.contains(word)), "{listen}: {refused}");
        assert_eq!(refused.lines().count(), 1, "one mistake is told once: {refused}");
    }
}

#[test]
fn control_and_metrics_are_none_of_the_sockets_of_clients() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = |head: &str| {
        let exports = EXPORTS.replace("ctl = \"none\"", head);
        format!("{exports}[[listen]]\nunix = \"a\"\n[[listen]]\ntcp = \"[::1]:7\"\n")
    };
    let refused = |head: &str| {
        let read = Config::from_toml(&text(head), &dir.path().join("c.toml"));
        read.expect_err("a mistake").to_string()
    };
    assert!(refused("ctl = \"a\"").contains("ctl needs one of its own"));
    assert!(refused("ctl = \"none\"\nmetrics = \"[::1]:7\"").contains("metrics need an address"));
}

#[test]
fn socket_of_a_virtual_machine_is_one_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let read = |a: &str, b: &str| {
        let text = format!(
            "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n\
             [disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
             [exports.a]\ndisk = \"d\"\nread_only = true\n{a}\n\
             [exports.b]\ndisk = \"d\"\nread_only = true\n{b}\n"
        );
        Config::from_toml(&text, &dir.path().join("c.toml"))
    };
    let mode =
        "vhost_user = \"a.vhost\"\nvhost_user_mode = \"0660\"\nvhost_user_memory = \"sealed\"";
    let config = read(mode, "vhost_user = \"b.vhost\"").expect("two sockets");
    let keys = config.exports.iter().map(|export| &export.keys);
    let modes: Vec<_> = keys.map(|keys| (keys.vhost_user_mode, keys.vhost_user_memory)).collect();
    assert_eq!(modes, [(0o660, VhostMemory::Sealed), (0o600, VhostMemory::Any)]);
    for (a, b, word) in [
        ("vhost_user = \"x\"", "vhost_user = \"x\"", "/x\" is that of export \"a\" too"),
        ("", "vhost_user = \"nbd.sock\"", "/nbd.sock\" is one of clients too"),
        ("vhost_user = \"ctl.sock\"", "", "/ctl.sock\" is the control socket too"),
        ("vhost_user = \"\"", "", "0 bytes"),
        ("", "vhost_user_mode = \"0660\"", "vhost_user_mode is of no use without vhost_user"),
        ("vhost_user_memory = \"any\"", "", "vhost_user_memory is of no use without vhost_user"),
        (
            "vhost_user = \"x\"\nvhost_user_memory = \"some\"",
            "",
            "\"any\" or \"sealed\" is allowed",
        ),
    ] {
        let refused = read(a, b).expect_err("a mistake").to_string();
        assert!(refused.contains(word), "{word}: {refused}");
        assert_eq!(refused.lines().count(), 1, "one mistake is told once: {refused}");
    }
}
