//! `paternoster ctl` against a control plane in this process.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use paternoster_server::ctl::{
    self, Change, Control, DecisionLines, DiskChange, GroupAnswer, GroupChange, GroupError,
    GroupInForce, GroupQuestion, ReloadAnswer, ReloadError, ReloadMode, SettingError,
    SettingsAnswer, SettingsInForce, StatError, TraceError, TraceQuestion,
};
use paternoster_server::sockets::bind_unix;
use paternoster_server::stat::{Detail, DiskStat, GroupStat, QueueStat, Stat};

struct OneDisk;

impl Control for OneDisk {
    fn stat(&self, detail: Detail) -> Result<Stat, StatError> {
        let group = GroupStat { path: "/gold".to_owned(), weight: 400, ..Default::default() };
        let name = "disk0".to_owned();
        let queue = || QueueStat { connection: "vm1#3".to_owned(), ..Default::default() };
        let queues = (detail == Detail::Queues).then(|| vec![queue()]);
        Ok(Stat::new(vec![DiskStat { name, groups: vec![group], queues, ..Default::default() }]))
    }

    fn group(&self, _: &GroupQuestion) -> Result<GroupAnswer, GroupError> {
        unreachable!("nobody asks for it")
    }

    fn set_group(&self, change: &GroupChange) -> Result<GroupAnswer, GroupError> {
        assert_eq!(change.group, "/gold");
        let asked = serde_json::to_string(&change.set).expect("string keys");
        let Some(disk) = &change.disk else { return Err(GroupError::Refused(asked)) };
        let disk = format!("{disk} was asked for {asked}");
        let settings = [("weight", 0), ("leaf_weight", 0)];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.into())).into();
        let limits = [("riops".to_owned(), 7)].into();
        Ok(GroupAnswer::new(vec![GroupInForce { disk, settings, limits, ..Default::default() }]))
    }

    fn settings(&self) -> Result<SettingsAnswer, SettingError> {
        let keys: [(&str, serde_json::Value); 6] = [
            ("scheduler", "cfq".into()),
            ("scheduler_auto", true.into()),
            ("hierarchy", "flat".into()),
            ("depth", 3.into()),
            ("poll", "hybrid".into()),
            ("io_poll_delay", (-1).into()),
        ];
        Ok(SettingsAnswer::new(vec![SettingsInForce {
            disk: "disk0".to_owned(),
            settings: keys.into_iter().collect(),
            tunables: [("quantum".to_owned(), 8)].into(),
            at_start: [("plug", "on".into())].into_iter().collect(),
        }]))
    }

    fn change_settings(&self, change: &DiskChange) -> Result<SettingsAnswer, SettingError> {
        // The order is that of the command line.
        let asked = serde_json::to_string(&change.set).expect("string keys");
        assert_eq!(asked, r#"{"slice_idle":4,"scheduler":"bfq","depth":16}"#);
        self.settings()
    }

    /// Two lines, the second in two pieces.
    fn trace(&self, question: &TraceQuestion) -> Result<DecisionLines, TraceError> {
        let TraceQuestion { disk, group, .. } = question.clone();
        let disk = match group {
            Some(group) => return Err(TraceError::UnknownGroup { group, disk, known: "/".into() }),
            None => disk,
        };
        let first = format!(r#"{{"t":5,"tenant":"/gold","ev":"D","rq":"{disk}#1.0"}}"#);
        let (second, rest) = (r#"{"t":1000000006,"ev":"hw_t"#, "ag\",\"from\":-1,\"to\":1}\n");
        Ok(Box::new([format!("{first}\n{second}"), rest.to_owned()].into_iter()))
    }

    /// A dry run is answered; there is no file for another.
    fn reload(&self, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        if mode == ReloadMode::Apply {
            return Err(ReloadError::NoFile);
        }
        let (place, what) = ("disk \"disk0\"".to_owned(), "depth".to_owned());
        let changed = vec![Change { place, what, from: 3.into(), to: 4.into() }];
        Ok(ReloadAnswer::new(mode, changed, Vec::new()))
    }
}

fn ask(socket: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
    command.args(["ctl", "--ctl"]).arg(socket).args(args).output().expect("the binary runs")
}

#[test]
fn stat_is_a_table_or_the_json() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let table = ask(&path, &["stat"]);
    let shown = String::from_utf8(table.stdout).expect("UTF-8");
    assert_eq!(table.status.code(), Some(0));
    assert!(shown.starts_with("disk disk0: ") && shown.contains("/gold     400"), "{shown}");

    let json = ask(&path, &["stat", "--json"]);
    let stat: Stat = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(stat, OneDisk.stat(Detail::Groups).expect("fixed"));

    let table = ask(&path, &["stat", "--verbose"]);
    let shown = String::from_utf8(table.stdout).expect("UTF-8");
    assert!(shown.contains("/gold     400") && shown.contains("vm1#3"), "{shown}");
    let json = ask(&path, &["stat", "--verbose", "--json"]);
    let stat: Stat = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(stat, OneDisk.stat(Detail::Queues).expect("fixed"));
    assert_eq!(ask(&path, &["stat", "--verbose", "--blkio"]).status.code(), Some(2));
    server.stop();
}

#[test]
fn weight_sends_what_is_written_and_shows_what_is_in_force() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let set = ask(&path, &["weight", "/gold", "300", "--leaf", "default", "--disk", "vda"]);
    let shown = String::from_utf8(set.stdout).expect("UTF-8");
    assert_eq!(set.status.code(), Some(0));
    let asked = r#"disk vda was asked for {"leaf_weight":"default","weight":300}: /gold has"#;
    assert!(shown.starts_with(asked), "{shown}");

    let refused = ask(&path, &["weight", "/gold", "many"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains(r#"says: {"weight":"many"}"#), "{said}");
    assert_eq!(ask(&path, &["weight", "/gold"]).status.code(), Some(2));
    server.stop();
}

#[test]
fn limit_sends_what_is_written_and_shows_what_is_in_force() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let set = ask(&path, &["limit", "/gold", "wbps=10M", "riops=7", "--disk", "vda"]);
    let shown = String::from_utf8(set.stdout).expect("UTF-8");
    let expected = "disk vda was asked for {\"riops\":7,\"wbps\":\"10M\"}: /gold has riops 7\n";
    assert_eq!((set.status.code(), shown.as_str()), (Some(0), expected));

    let refused = ask(&path, &["limit", "/gold", "riops=many"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("says: {\"riops\":\"many\"}"), "{said}");
    assert_eq!(ask(&path, &["limit", "/gold"]).status.code(), Some(2));

    // What begins with a slash is a group, of which all of that is set, and shown.
    let set = ask(&path, &["set", "/gold", "riops=7", "--disk", "vda"]);
    let shown = String::from_utf8(set.stdout).expect("UTF-8");
    assert_eq!((set.status.code(), shown.as_str()), (Some(0), "leaf_weight=0\nweight=0\n"));
    let set = ask(&path, &["set", "/gold", "weight_device.e=5", "riops=7"]);
    let said = String::from_utf8(set.stderr).expect("UTF-8");
    assert!(said.contains(r#"says: {"riops":7,"weight_device":{"e":5}}"#), "{said}");
    let refused = ask(&path, &["set", "vda", "depth=5", "--disk", "vda"]);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("--disk is allowed beside a group"), "{said}");
    server.stop();
}

#[test]
fn settings_are_lines_as_they_are_set() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let said = |args: &[&str]| {
        let output = ask(&path, args);
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.code(), String::from_utf8(text).expect("UTF-8"))
    };
    let all = "scheduler=cfq\nscheduler_auto=1\nhierarchy=flat\ndepth=3\npoll=hybrid\n\
               io_poll_delay=-1\nquantum=8\n";
    let all = all.to_owned();
    assert_eq!(said(&["get", "disk0"]), (Some(0), all.clone()));
    assert_eq!(said(&["get", "disk0", "quantum"]), (Some(0), "8\n".to_owned()));
    let set = ["set", "disk0", "slice_idle=4", "scheduler=bfq", "depth=16"];
    assert_eq!(said(&set), (Some(0), all));
    let refused = "paternoster: there is no disk \"vda\"; there are: \"disk0\"\n".to_owned();
    assert_eq!(said(&["get", "vda"]), (Some(1), refused));
    assert_eq!(said(&["set", "disk0"]).0, Some(2), "there is nothing to set");
    server.stop();
}

#[test]
fn trace_is_shown_in_words_or_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let words = ask(&path, &["trace", "disk0"]);
    let expected = "    0.000000005 /gold disk0#1.0 D\n    1.000000006 - - hw_tag from=-1 to=1\n";
    assert_eq!(String::from_utf8_lossy(&words.stdout), expected);
    let json = ask(&path, &["trace", "disk0", "--json"]);
    let lines = String::from_utf8_lossy(&json.stdout);
    assert!(
        lines.ends_with(
            "\"rq\":\"disk0#1.0\"}\n{\"t\":1000000006,\"ev\":\"hw_tag\",\"from\":-1,\"to\":1}\n"
        ),
        "{lines}"
    );
    let refused = ask(&path, &["trace", "disk0", "--group", "/x"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    let expected = "says: there is no group \"/x\" on disk \"disk0\"; there are: /";
    assert!(error.contains(expected) && !refused.status.success(), "{error}");
    server.stop();
}

#[test]
fn reload_sends_whether_it_is_a_dry_run_and_shows_the_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ctl.sock");
    let listener = bind_unix(&path, 0o600).expect("a socket");
    let server = ctl::serve(listener, Arc::new(OneDisk)).expect("a server");

    let dry_run = ask(&path, &["reload", "--dry-run"]);
    assert_eq!(dry_run.status.code(), Some(0), "{dry_run:?}");
    assert_eq!(dry_run.stdout, b"would change: disk \"disk0\": depth 3 -> 4\n");

    let refused = ask(&path, &["reload"]);
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &b""[..]));
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("says: the server was started without a file"), "{said}");
    assert_eq!(ask(&path, &["reload", "c.toml"]).status.code(), Some(2), "it knows its file");
    server.stop();
}

#[test]
fn without_a_server_the_error_names_socket_and_next_step() {
    let output = ask(Path::new("/nowhere/ctl.sock"), &["stat"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.starts_with("paternoster: there is no control socket \"/nowhere/ctl.sock\""));
    assert!(said.contains("--ctl PATH"), "{said}");
}

#[test]
fn question_is_needed() {
    assert_eq!(ask(Path::new("s"), &[]).status.code(), Some(2));
}
