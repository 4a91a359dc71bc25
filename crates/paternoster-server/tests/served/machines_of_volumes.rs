//! Virtual machines that attach by shared memory to what is made by request.

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

use paternoster_load::{Ask, Machine, Shape};
use paternoster_server::ctl::{CatalogueError, Control as _, Data, RemovalQuestion};
use paternoster_vhost::proto::request;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Rig, start_in};

/// The status of a request that is done, and of one that failed.
const OK: u8 = 0;
const IO_ERR: u8 = 1;

/// The message that a device is configured in another way.
const CONFIG_CHANGE: u32 = 2;

const POOL: &str = r#"
vhost_user_dir = "DIR/vms"
state_dir = "DIR/state"
[pools.fast]
path = "DIR/images"
"#;

fn pool(toml: &str) -> Rig {
    Rig::prepared(toml, |dir| {
        for name in ["images", "vms"] {
            fs::create_dir(dir.join(name)).expect("a directory");
        }
    })
}

impl Rig {
    fn vm(&self, name: &str) -> PathBuf {
        self.dir.path().join("vms").join(name)
    }

    fn attach(&self, name: &str) -> Machine {
        Machine::attach(&self.vm(name), Shape::default()).expect("it attaches")
    }

    fn patched(&self, patch: &Value) -> Result<Option<PathBuf>, CatalogueError> {
        self.control().patch_volume("vm7", patch).map(|volume| volume.vhost_user)
    }
}

#[test]
fn volume_that_is_made_by_request_has_its_socket_over_changes_and_restarts() {
    let rig = pool(POOL);
    let body =
        json!({"pool": "fast", "size": "8M", "vhost_user": "a.sock", "vhost_user_mode": "0660"});
    let volume = rig.control().put_volume("vm7", &body, true).expect("it is made").shown;
    assert_eq!(volume.vhost_user, Some(rig.vm("a.sock")));
    let mode = fs::metadata(rig.vm("a.sock")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut machine = rig.attach("a.sock");
    assert_eq!(machine.do_one(&Ask::Write(8, &[7; 512])).expect("done").0, OK);
    let in_use = rig.patched(&json!({"vhost_user": "b.sock"})).expect_err("a machine has it");
    assert!(in_use.to_string().contains("vhost_user changes without clients alone"), "{in_use}");
    drop(machine);
    rig.until_empty();

    // Its socket stays when it goes from its owner and comes back for something else.
    assert_eq!(rig.patched(&json!({"ioprio": "idle"})), Ok(Some(rig.vm("a.sock"))));
    let mut machine = rig.attach("a.sock");
    assert_eq!(machine.do_one(&Ask::Read(8, 512)).expect("done"), (OK, vec![7; 512]));
    drop(machine);
    rig.until_empty();
    assert_eq!(rig.patched(&json!({"vhost_user": "b.sock"})), Ok(Some(rig.vm("b.sock"))));
    assert!(!rig.vm("a.sock").exists());

    let rig = rig.restarted(POOL);
    assert_eq!(rig.server.machines(), [format!("vhost-user {}", rig.vm("b.sock").display())]);
    let mut machine = rig.attach("b.sock");
    assert_eq!(machine.do_one(&Ask::Read(8, 512)).expect("done"), (OK, vec![7; 512]));
    drop(machine);
    rig.until_empty();
    let half = rig.patched(&json!({"vhost_user": null})).expect_err("its mode is left");
    assert!(half.to_string().contains("vhost_user_mode is of no use without"), "{half}");
    let off = json!({"vhost_user": null, "vhost_user_mode": null});
    assert_eq!(rig.patched(&off), Ok(None));
    assert!(!rig.vm("b.sock").exists());
    assert_eq!(rig.patched(&json!({"vhost_user": "c.sock"})), Ok(Some(rig.vm("c.sock"))));
    let question = RemovalQuestion { drain: None, data: Data::Delete, wait: None };
    rig.control().remove_volume("vm7", &question).expect("it is removed");
    assert!(!rig.vm("c.sock").exists());
    rig.end();
}

/// Nothing else happens on its disk.
#[test]
fn volume_is_removed_from_under_a_machine() {
    let rig = pool(POOL);
    let body = json!({"pool": "fast", "size": "8M", "vhost_user": "vm7"});
    rig.control().put_volume("vm7", &body, true).expect("it is made");
    let machine = rig.attach("vm7");
    let (drain, wait) = (Some("0s".to_owned()), Some("20s".to_owned()));
    let question = RemovalQuestion { drain, data: Data::Delete, wait };
    assert_eq!(rig.control().remove_volume("vm7", &question), Ok(()));
    drop(machine);
    rig.end();
}

#[test]
fn machine_is_told_of_another_size_and_may_use_it() {
    let rig = pool(POOL);
    let body = json!({"pool": "fast", "size": "8M", "vhost_user": "vm7"});
    rig.control().put_volume("vm7", &body, true).expect("it is made");
    let mut machine = rig.attach("vm7");
    let (mut told, channel) = UnixStream::pair().expect("a pair");
    told.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let channel = OwnedFd::from(channel);
    let tell = machine.front_end.tell(request::SET_BACKEND_REQ_FD, &[], &[&channel]);
    tell.expect("it is obeyed");
    let at_end = Ask::Write((8 << 20) / 512, &[9; 512]);
    assert_eq!(machine.do_one(&at_end).expect("done").0, IO_ERR);
    assert_eq!(rig.patched(&json!({"size": "16M"})), Ok(Some(rig.vm("vm7"))));
    let mut header = [0; 12];
    told.read_exact(&mut header).expect("it is told");
    assert_eq!(header, [CONFIG_CHANGE, 1, 0].map(u32::to_ne_bytes).concat()[..]);
    machine.read_config().expect("it is answered");
    assert_eq!(machine.size(), 16 << 20);
    assert_eq!(machine.do_one(&at_end).expect("done").0, OK);
    // One that does not want to be told finds it when it asks.
    drop(machine);
    rig.until_empty();
    let mut machine = rig.attach("vm7");
    assert_eq!(rig.patched(&json!({"size": "24M"})), Ok(Some(rig.vm("vm7"))));
    let until = Instant::now() + PATIENCE;
    while machine.size() < 24 << 20 {
        assert!(until > Instant::now(), "{}", machine.size());
        machine.read_config().expect("it is answered");
    }
    drop(machine);
    rig.end();
}

#[test]
fn request_names_a_socket_and_never_a_path() {
    let rig = pool(POOL);
    let control = rig.control();
    let make = |name: &str, more: &Value| {
        let mut body = json!({"pool": "fast", "size": "1M"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        control.put_volume(name, &body, true).map(|put| put.shown.vhost_user)
    };
    for name in ["/run/a.sock", "../a.sock", "b/a.sock", "..", ".a", "", "ä"] {
        let refused = make("vm7", &json!({"vhost_user": name})).expect_err(name).to_string();
        assert!(refused.contains("the name of a socket is 1 to 128"), "{refused}");
    }
    for (more, said) in [
        (json!({"vhost_user_mode": "0660"}), "vhost_user_mode is of no use without vhost_user"),
        (
            json!({"vhost_user": "a", "vhost_user_memory": "some"}),
            "\"any\" or \"sealed\" is allowed",
        ),
        (json!({"vhost_user": "a", "vhost_user_mode": "999"}), "vhost_user_mode = \"999\": "),
    ] {
        let refused = make("vm7", &more).expect_err(said).to_string();
        assert!(refused.contains(said), "{refused}");
    }
    // Whoever has a socket keeps it.
    assert_eq!(make("vm7", &json!({"vhost_user": "a"})), Ok(Some(rig.vm("a"))));
    let taken = make("vm8", &json!({"vhost_user": "a"})).expect_err("it is taken").to_string();
    assert!(taken.contains("is that of volume \"vm7\""), "{taken}");
    let long = make("vm8", &json!({"vhost_user": "a".repeat(108)})).expect_err("it is too long");
    assert!(long.to_string().contains("107 at most"), "{long}");
    assert!(control.volume("vm8").is_err() && !rig.dir.path().join("images/vm8.img").exists());
    drop(rig.attach("a"));

    let body = json!({"volume": "vm7", "read_only": true, "vhost_user": "backup"});
    let export = control.put_export("backup", &body, true).expect("it is made").shown;
    assert_eq!(export.vhost_user, Some(rig.vm("backup")));
    let file: toml::Table = rig.control().export_config().parse().expect("it is TOML");
    let said = |path: [&str; 2]| file[path[0]][path[1]]["vhost_user"].as_str().map(PathBuf::from);
    assert_eq!(said(["volumes", "vm7"]), Some(rig.vm("a")));
    assert_eq!(said(["exports", "backup"]), Some(rig.vm("backup")));
    let mut machine = rig.attach("backup");
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("done"), (OK, vec![0; 512]));
    assert_eq!(machine.do_one(&Ask::Write(0, &[1; 512])).expect("done").0, IO_ERR);
    drop(machine);
    rig.end();

    let rig = pool(&POOL.replace("vhost_user_dir", "# vhost_user_dir"));
    let body = json!({"pool": "fast", "size": "1M", "vhost_user": "a"});
    let refused = rig.control().put_volume("vm7", &body, true).expect_err("no directory");
    assert!(refused.to_string().contains("the server has no vhost_user_dir"), "{refused}");
    let Rig { dir, server } = rig;
    server.shut_down().expect("no thread failed");
    fs::remove_dir(dir.path().join("vms")).expect("it is empty");
    let refused = start_in(dir.path(), POOL).map(drop).expect_err("there is no directory");
    assert!(format!("{refused:#}").contains("vhost_user_dir"), "{refused:#}");
}

/// What is in memory is all that there is of it.
#[test]
fn volume_in_memory_keeps_its_bytes_where_its_socket_cannot_be() {
    let modelled = "backend = \"modelled\"\nservers = 4\nservice_us = 100";
    let toml = POOL.replace("path = \"DIR/images\"", modelled);
    let rig = pool(&toml);
    let body = json!({"pool": "fast", "size": "1M", "vhost_user": "a"});
    rig.control().put_volume("vm7", &body, true).expect("it is made");
    let mut machine = rig.attach("a");
    assert_eq!(machine.do_one(&Ask::Write(8, &[7; 512])).expect("done").0, OK);
    drop(machine);
    rig.until_empty();
    fs::write(rig.vm("b"), "not ours").expect("a file");
    let refused = rig.patched(&json!({"vhost_user": "b"})).expect_err("it stays as it is");
    assert!(refused.to_string().contains("is not a socket"), "{refused}");
    let mut machine = rig.attach("a");
    assert_eq!(machine.do_one(&Ask::Read(8, 512)).expect("done"), (OK, vec![7; 512]));
    drop(machine);
    rig.end();
}

#[test]
fn sockets_that_have_gone_leave_nothing_behind() {
    let rig = pool(POOL);
    let question = RemovalQuestion { drain: None, data: Data::Delete, wait: None };
    let body = json!({"pool": "fast", "size": "1M", "vhost_user": "a", "durable": false});
    let once = || {
        rig.control().put_volume("vm7", &body, true).expect("it is made");
        drop(rig.attach("a"));
        rig.until_empty();
        rig.control().remove_volume("vm7", &question).expect("it is removed");
    };
    // Of this server alone: other tests have theirs in this process.
    let dir = rig.dir.path().join("vms").display().to_string();
    let listening = || {
        let sockets = fs::read_to_string("/proc/net/unix").expect("it is there");
        sockets.lines().filter(|line| line.contains(&dir)).count()
    };
    (0..10).for_each(|_| once());
    let until = Instant::now() + PATIENCE;
    while listening() > 0 {
        assert!(Instant::now() < until, "{} sockets are still there", listening());
    }
    rig.end();
}

/// A server that lacks what was made needs would leave it out.
#[test]
fn server_without_the_directory_of_sockets_that_it_needs_does_not_start() {
    let rig = pool(POOL);
    let body = json!({"pool": "fast", "size": "1M", "vhost_user": "a"});
    rig.control().put_volume("vm7", &body, true).expect("it is made");
    let dir = rig.stopped();
    assert!(!dir.path().join("vms/a").exists(), "its file goes with the server");
    let without = POOL.replace("vhost_user_dir", "# vhost_user_dir");
    let refused = start_in(dir.path(), &without).map(drop).expect_err("it lacks that");
    assert!(format!("{refused:#}").contains("volume \"vm7\" was made by request: vhost_user"));
}
