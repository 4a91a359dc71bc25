//! TLS: who enters what by which certificate, and that nobody hears of what is another's.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use bytes::BytesMut;
use paternoster_nbd::client::{ClientOptions, Handshake, Progress, Replies, Target};
use paternoster_nbd::proto::rep;
use paternoster_server::config::Config;
use paternoster_server::ctl::{Change, Control as _, GroupChange, ReloadMode, RemovalQuestion};
use serde_json::json;

use crate::certificates::{Authority, Pair, client_tls, relay};
use crate::support::{Client, PATIENCE, Rig, refusal, rest, whole};

const GOLD: &str = "spiffe://host/gold";

/// Two tenants and a socket that asks for certificates.
const TWO: &str = r#"
[tls]
certificate = "DIR/server.pem"
key = "DIR/server-key.pem"
client_ca = "DIR/ca.pem"
crl = "DIR/crl.pem"
[[listen]]
unix = "DIR/tls.sock"
tls = "require"
[disks.d]
backend = "memory"
size = "16M"
[groups."/gold"]
identities = ["uri:spiffe://host/gold"]
[groups."/silver"]
identities = ["dns:silver.example"]
[exports.first]
disk = "d"
size = "8M"
group = "/gold/vm1"
[exports.second]
disk = "d"
offset = "8M"
group = "/silver"
"#;

/// A server of that file, and who signs its clients' certificates.
fn start(toml: &str) -> (Rig, Authority) {
    let authority = Authority::new();
    (Rig::prepared(toml, |dir| lay_out(dir, &authority)), authority)
}

/// The files of TLS; the certificate of number 13 is revoked.
fn lay_out(dir: &Path, authority: &Authority) {
    let Pair { certificate, key } = authority.signs(&["localhost"], 2);
    for (name, text) in [
        ("server.pem", &certificate),
        ("server-key.pem", &key),
        ("ca.pem", &authority.pem()),
        ("crl.pem", &authority.revokes(&[13])),
    ] {
        let mut file = fs::File::options();
        let file = file.write(true).create(true).truncate(true).mode(0o600).open(dir.join(name));
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
    }
}

/// A connection to the socket that requires TLS.
fn connect(rig: &Rig) -> UnixStream {
    let stream = UnixStream::connect(rig.dir.path().join("tls.sock")).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// How a client's handshake ends that shows this, and what it goes on with.
fn shake(
    rig: &Rig,
    authority: &Authority,
    shown: Option<&Pair>,
    target: Target,
) -> (Result<Progress, String>, UnixStream) {
    let options = ClientOptions { target, replies: Replies::StructuredWithAllocation };
    let mut handshake = Handshake::new(options).within_tls();
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut stream = connect(rig);
    loop {
        let progress = handshake.receive(&mut input, &mut output);
        // Where the server has hung up, that is read next.
        let _ = stream.write_all(&output.split());
        match progress {
            Ok(Progress::StartTls) => {
                stream = relay(client_tls(&authority.pem(), shown), stream, 1 << 20);
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            }
            Ok(Progress::NeedMore) => {
                let mut chunk = [0; 4096];
                match stream.read(&mut chunk) {
                    Ok(read @ 1..) => input.extend_from_slice(&chunk[..read]),
                    _ => return (Err("the server has hung up".to_owned()), stream),
                }
            }
            progress => return (progress.map_err(|error| error.to_string()), stream),
        }
    }
}

/// A client that has entered this export.
fn enter(rig: &Rig, authority: &Authority, shown: &Pair, export: &str) -> Client {
    let (ended, stream) = shake(rig, authority, Some(shown), Target::Go(export.to_owned()));
    match ended {
        Ok(Progress::Entered(session)) => Client::of(stream, session),
        other => panic!("{other:?}"),
    }
}

/// The exports that a client sees.
fn listed(rig: &Rig, authority: &Authority, shown: Option<&Pair>) -> Result<Vec<String>, String> {
    match shake(rig, authority, shown, Target::List).0? {
        Progress::Listed(listed) => Ok(listed.into_iter().map(|export| export.name).collect()),
        other => panic!("{other:?}"),
    }
}

/// Why a client does not enter.
fn refused(rig: &Rig, authority: &Authority, shown: &Pair, export: &str) -> String {
    shake(rig, authority, Some(shown), Target::Go(export.to_owned())).0.expect_err("it is refused")
}

#[test]
fn certificate_decides_what_is_seen_and_entered() {
    let (rig, authority) = start(TWO);
    let gold = authority.signs(&[GOLD], 3);
    let silver = authority.signs(&["other.example", "Silver.example"], 4);
    let nobody = authority.signs(&["spiffe://host/bronze"], 5);
    let seen = |shown| listed(&rig, &authority, Some(shown)).expect("it is let in");
    // The group of the first is below that of the identity.
    assert_eq!((seen(&gold), seen(&silver)), (vec!["first".to_owned()], vec!["second".to_owned()]));
    assert_eq!(seen(&nobody), Vec::<String>::new());
    enter(&rig, &authority, &gold, "first").check_served(1);
    // The only one that it may enter is its default export.
    enter(&rig, &authority, &silver, "").check_served(2);
    // One of others gets the answer of one that there is not, but for its name.
    let [others, none] =
        ["second", "absent"].map(|export| refused(&rig, &authority, &gold, export));
    assert_eq!(others.replace("second", "absent"), none);
    assert!(none.contains("no such export"), "{none}");
    let unknown = refused(&rig, &authority, &nobody, "first");
    assert_eq!(unknown.replace("first", "absent"), none);
    // On the socket beside it, which asks for nothing, anybody enters.
    rig.client("second").check_served(3);
    rig.until_empty();
    rig.end();
}

#[test]
fn who_shows_no_good_certificate_sees_nothing() {
    let (rig, authority) = start(TWO);
    let good = authority.signs(&[GOLD], 12);
    assert_eq!(listed(&rig, &authority, Some(&good)), Ok(vec!["first".to_owned()]));
    let shown =
        |pair: Option<&Pair>| listed(&rig, &authority, pair).expect_err("it is turned away");
    let hung_up = "the server has hung up";
    assert_eq!(shown(None), hung_up);
    assert_eq!(shown(Some(&Authority::new().signs(&[GOLD], 3))), hung_up);
    assert_eq!(shown(Some(&authority.signed_long_ago(&[GOLD]))), hung_up);
    assert_eq!(shown(Some(&authority.signs(&[GOLD], 13))), hung_up);
    rig.until_empty();
    rig.end();
}

#[test]
fn who_does_not_begin_tls_learns_nothing() {
    let (rig, _) = start(TWO);
    for export in ["first", "absent"] {
        let (reply, message) = refusal(connect(&rig), export);
        assert_eq!(reply, rep::ERR_TLS_REQD);
        assert!(message.contains("TLS is required here") && !message.contains(export), "{message}");
    }
    // Nor does who goes on in the clear behind STARTTLS.
    let mut stream = connect(&rig);
    let starttls = b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0";
    let list = b"IHAVEOPT\0\0\0\x03\0\0\0\0";
    stream.write_all(&[&starttls[..], list].concat()).expect("taken");
    assert_eq!(rest(&mut stream).len(), 18, "the greeting and nothing else");
    rig.until_empty();
    rig.end();
}

/// The relay has new keys be used after each MiB.
#[test]
fn every_length_is_read_and_written_while_keys_change() {
    let (rig, authority) = start(TWO);
    let gold = authority.signs(&[GOLD], 3);
    let mut clients = [(); 3].map(|()| enter(&rig, &authority, &gold, "first"));
    let mut random = fastrand::Rng::with_seed(11);
    let lens = [1, 16, 512, 4096, 16_384, 16_385, 65_536, 100_000, 1 << 20, 3 << 20];
    for (turn, len) in lens.iter().chain(lens.iter().rev()).enumerate() {
        let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(*len).collect();
        let offset = random.u64(..=(8 << 20) - data.len() as u64);
        clients[turn % 3].write(offset, &data);
        let len = u32::try_from(*len).expect("short");
        assert!(clients[(turn + 1) % 3].read(offset, len) == data, "turn {turn}");
    }
    drop(clients);
    rig.until_empty();
    rig.end();
}

/// Another certificate and other identities hold for those who come then.
#[test]
fn reload_changes_who_may_enter() {
    let (rig, authority) = start(&format!("ctl = \"none\"\n{TWO}"));
    let dir = rig.dir.path();
    let file = dir.join("test.toml");
    let text = whole(dir, &format!("ctl = \"none\"\n{TWO}"));
    fs::write(&file, &text).expect("a file");
    let control = rig.control().with_file(file.clone());
    let changes = |mode| -> Vec<String> {
        let answer = control.reload(mode).expect("it is right");
        answer.changed.iter().map(ToString::to_string).collect()
    };
    assert_eq!(changes(ReloadMode::Apply), [""; 0]);

    let gold = authority.signs(&[GOLD], 3);
    let mut before = enter(&rig, &authority, &gold, "first");
    fs::write(&file, text.replace("uri:spiffe://host/gold", "uri:spiffe://host/new"))
        .expect("a file");
    let expected = ["group \"/gold\": identities [\"uri:spiffe://host/gold\"] -> \
                     [\"uri:spiffe://host/new\"]"];
    assert_eq!(changes(ReloadMode::DryRun), expected);
    assert_eq!(listed(&rig, &authority, Some(&gold)), Ok(vec!["first".to_owned()]));
    assert_eq!(changes(ReloadMode::Apply), expected);
    assert_eq!(listed(&rig, &authority, Some(&gold)), Ok(vec![]));
    let new = authority.signs(&["spiffe://host/new"], 6);
    assert_eq!(listed(&rig, &authority, Some(&new)), Ok(vec!["first".to_owned()]));
    before.check_served(4);

    // Another authority, another server's certificate.
    let other = Authority::new();
    lay_out(dir, &other);
    let files: Vec<_> = changes(ReloadMode::Apply);
    for key in ["certificate", "key", "client_ca", "crl"] {
        assert!(files.iter().any(|line| line.starts_with(&format!("tls: {key} \""))), "{files:?}");
    }
    assert_eq!(
        listed(&rig, &other, Some(&other.signs(&["spiffe://host/new"], 6))).map(|all| all.len()),
        Ok(1)
    );
    listed(&rig, &authority, Some(&new)).expect_err("another authority signs now");
    before.check_served(5);
    drop(before);
    fs::write(dir.join("server.pem"), "nothing").expect("a file");
    let wrong = control.reload(ReloadMode::Apply).expect_err("it is no certificate").to_string();
    assert!(wrong.contains("there is no certificate in PEM in it; one is needed"), "{wrong}");
    rig.until_empty();
    rig.end();
}

#[test]
fn what_is_wrong_with_the_files_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    lay_out(dir.path(), &authority);
    let other = authority.signs(&["localhost"], 7);
    fs::write(dir.path().join("other.pem"), other.certificate).expect("a file");
    fs::write(dir.path().join("open.pem"), &other.key).expect("a file");
    let mode = fs::Permissions::from_mode(0o644);
    fs::set_permissions(dir.path().join("open.pem"), mode).expect("a mode");
    let cases = [
        ("DIR/server.pem", "DIR/other.pem", "it is not the key of that certificate"),
        ("DIR/server-key.pem", "DIR/open.pem", "its mode is 0644, so that others may use it"),
        (
            "DIR/server-key.pem",
            "DIR/server.pem",
            "there is no unencrypted private key in PEM in it; one is needed",
        ),
        ("DIR/ca.pem", "DIR/none.pem", "No such file"),
        ("DIR/crl.pem", "DIR/ca.pem", "there is no revocation list in PEM in it"),
        ("client_ca = \"DIR/ca.pem\"\n", "", "crl is of no use without client_ca under [tls]"),
        ("client_ca = \"DIR/ca.pem\"\n", "", "identities is of no use without client_ca"),
        ("tls = \"require\"", "", "[tls] is of no use: no [[listen]] has tls = \"require\""),
        ("certificate = \"DIR/server.pem\"\n", "", "missing key `certificate`"),
        (
            "dns:silver.example",
            "cn:silver",
            "identities = \"cn:silver\": \"uri:URI\", \"dns:NAME\"",
        ),
    ];
    for (found, replaced, said) in cases {
        assert!(TWO.contains(found), "{found}");
        let text = whole(dir.path(), &TWO.replace(found, replaced));
        let wrong = Config::from_toml(&text, Path::new("test.toml")).expect_err(said).to_string();
        assert!(wrong.contains(said), "{said}\n{wrong}");
    }
    let without = TWO.split("[[listen]]").nth(1).expect("there is one");
    let text = whole(dir.path(), &format!("[[listen]]{without}"));
    let wrong = Config::from_toml(&text, Path::new("test.toml")).expect_err("none").to_string();
    assert!(wrong.contains("tls = \"require\" needs certificate and key under [tls]"), "{wrong}");
}

/// An export that is otherwise than the file means, until a restart, is nobody else's meanwhile.
#[test]
fn reload_lets_nobody_new_enter_what_waits_for_a_restart() {
    let (rig, authority) = start(TWO);
    let dir = rig.dir.path();
    let file = dir.join("test.toml");
    let control = rig.control().with_file(file.clone());
    let text = whole(dir, TWO);
    let text = text.replacen("size = \"8M\"", "size = \"4M\"", 1);
    fs::write(&file, text.replace("uri:spiffe://host/gold", "uri:spiffe://host/new"))
        .expect("a file");
    let answer = control.reload(ReloadMode::Apply).expect("it is right");
    let lines = |changes: &[Change]| changes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let group = "group \"/gold\": identities";
    let taken = format!("{group} [\"uri:spiffe://host/gold\"] -> []");
    assert_eq!(lines(&answer.changed), [taken]);
    let later = lines(&answer.needs_restart);
    assert!(later.contains(&format!("{group} [] -> [\"uri:spiffe://host/new\"]")), "{later:?}");
    for names in [GOLD, "spiffe://host/new"] {
        let shown = authority.signs(&[names], 3);
        assert_eq!(listed(&rig, &authority, Some(&shown)), Ok(vec![]), "{names}");
    }
    rig.end();
}

/// Without its files a socket that requires TLS would turn everybody away until the restart.
#[test]
fn files_of_tls_stay_as_long_as_a_socket_requires_it() {
    let (rig, authority) = start(TWO);
    let dir = rig.dir.path();
    let file = dir.join("test.toml");
    let control = rig.control().with_file(file.clone());
    let without = TWO.split("[disks.d]").nth(1).expect("a disk");
    let without = without.lines().filter(|line| !line.starts_with("identities"));
    let without = without.collect::<Vec<_>>().join("\n");
    fs::write(&file, whole(dir, &format!("[disks.d]{without}"))).expect("a file");
    let answer = control.reload(ReloadMode::Apply).expect("it is right");
    let later: Vec<_> = answer.needs_restart.iter().map(ToString::to_string).collect();
    assert!(later.iter().any(|line| line.starts_with("tls: client_ca \"")), "{later:?}");
    // Whoever shows a certificate is let in, and is nobody now.
    let gold = authority.signs(&[GOLD], 3);
    assert_eq!(listed(&rig, &authority, Some(&gold)), Ok(vec![]));
    listed(&rig, &authority, None).expect_err("it has to show one");
    rig.end();
}

/// By every option, and as the default export.
#[test]
fn no_option_tells_of_what_is_another_s() {
    let (rig, authority) = start(TWO);
    let gold = authority.signs(&[GOLD], 3);
    let both = authority.signs(&[GOLD, "silver.example"], 4);
    let ended = |shown, target| shake(&rig, &authority, Some(shown), target).0;
    for target in [Target::Info, Target::Go] {
        let [others, none] =
            ["second", "absent"].map(|name| ended(&gold, target(name.to_owned())).expect_err(name));
        assert_eq!(others.replace("second", "absent"), none);
        ended(&gold, target("first".to_owned())).expect("it is its own");
        ended(&gold, target(String::new())).expect("it has one");
        // Of two none is the default.
        ended(&both, target(String::new())).expect_err("there are two");
        ended(&both, target("second".to_owned())).expect("it is its own too");
    }
    // By name a server has no way to say why.
    for (name, enters) in [("first", true), ("second", false), ("absent", false)] {
        assert_eq!(ended(&gold, Target::ExportName(name.to_owned())).is_ok(), enters, "{name}");
    }
    rig.until_empty();
    rig.end();
}

/// ABORT in one record with what is asked before: the answers come before the end.
#[test]
fn answers_come_before_the_end_of_tls() {
    let (rig, authority) = start(TWO);
    let gold = authority.signs(&[GOLD], 3);
    let (_, stream) = shake(&rig, &authority, Some(&gold), Target::Info("first".to_owned()));
    drop(stream);
    let mut raw = connect(&rig);
    let mut greeting_and_ack = [0; 18 + 20];
    raw.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0").expect("taken");
    raw.read_exact(&mut greeting_and_ack).expect("an answer");
    let mut within = relay(client_tls(&authority.pem(), Some(&gold)), raw, 1 << 20);
    within.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let list = b"IHAVEOPT\0\0\0\x03\0\0\0\0";
    let abort = b"IHAVEOPT\0\0\0\x02\0\0\0\0";
    within.write_all(&[&list[..], abort].concat()).expect("taken");
    let answers = rest(&mut within);
    assert!(answers.windows(5).any(|part| part == b"first"), "{answers:?}");
    assert!(answers.ends_with(b"\0\0\0\x02\0\0\0\x01\0\0\0\0"), "ABORT is acknowledged");
    rig.end();
}

const POOL: &str = r#"
[tls]
certificate = "DIR/server.pem"
key = "DIR/server-key.pem"
client_ca = "DIR/ca.pem"
[[listen]]
unix = "DIR/tls.sock"
tls = "require"
[pools.p]
path = "DIR"
"#;

#[test]
fn identities_by_request_hold_and_go() {
    let (rig, authority) = start(POOL);
    let control = rig.control();
    let gold = authority.signs(&[GOLD], 3);
    let silver = authority.signs(&["silver.example"], 4);
    let seen = |shown: &Pair| listed(&rig, &authority, Some(shown)).expect("it is let in");
    let nothing = Vec::<String>::new();
    let of_gold = json!({"identities": [format!("uri:{GOLD}")]});
    control.put_group("/gold", &of_gold).expect("it can be made");
    let in_group = json!({"pool": "p", "size": "1M", "group": "/gold/vms"});
    control.put_volume("vm1", &in_group, false).expect("it can be made");
    let own = json!({"pool": "p", "size": "1M", "identities": ["dns:Silver.example"]});
    let made = control.put_volume("vm2", &own, false).expect("it can be made");
    assert_eq!(made.shown.identities, Some(json!(["dns:silver.example"])));
    assert!(made.shown.uris.iter().any(|uri| uri.starts_with("nbds+unix:///vm2")));
    assert_eq!((seen(&gold), seen(&silver)), (vec!["vm1".to_owned()], vec!["vm2".to_owned()]));
    enter(&rig, &authority, &silver, "vm2").check_served(1);
    let declared = control.export_config();
    assert!(declared.contains("identities = [\"dns:silver.example\"]"), "{declared}");

    // It is another's, then nobody's; a group that is made anew has none of the old one.
    control.patch_volume("vm2", &json!({"identities": [format!("uri:{GOLD}")]})).expect("it can");
    assert_eq!((seen(&gold).len(), seen(&silver)), (2, nothing.clone()));
    control.patch_volume("vm2", &json!({"identities": null})).expect("it can");
    assert_eq!(seen(&gold), ["vm1"]);
    control.patch_group("/gold", &json!({"identities": []})).expect("it can");
    assert_eq!(seen(&gold), nothing);
    control.patch_group("/gold", &of_gold).expect("it can");
    control.remove_volume("vm1", &RemovalQuestion::default()).expect("nobody uses it");
    control.remove_group("/gold").expect("it is empty");
    control.put_volume("vm4", &in_group, false).expect("it can be made");
    assert_eq!(seen(&gold), nothing);

    // Disks know nothing of them, and a volume in a group has that one's.
    let change = GroupChange::one("/vm2", "identities", json!([]));
    let refused = control.set_group(&change).expect_err("not there").to_string();
    assert!(refused.contains("identities: PATCH /v1/groups/PATH"), "{refused}");
    let both = json!({"pool": "p", "size": "1M", "group": "/g", "identities": ["dns:x"]});
    let refused = control.put_volume("vm3", &both, false).expect_err("it has two").to_string();
    assert!(refused.contains("has identities and a group"), "{refused}");
    rig.until_empty();
    rig.end();
    let rig = Rig::start("[pools.p]\npath = \"DIR\"\n");
    let refused = rig.control().put_group("/gold", &of_gold).expect_err("nobody shows any");
    assert!(refused.to_string().contains("client_ca under [tls]"), "{refused}");
    rig.end();
}
