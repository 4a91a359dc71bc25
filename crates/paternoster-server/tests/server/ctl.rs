//! The control plane over a real socket, with a server's state made up.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paternoster_server::ctl::{
    self, Change, Control, CtlError, CtlServer, DecisionLines, DiskChange, GroupAnswer,
    GroupChange, GroupError, GroupInForce, GroupQuestion, ReloadAnswer, ReloadError, ReloadMode,
    SettingError, Settings, SettingsAnswer, SettingsInForce, StatError, TraceError, TraceQuestion,
};
use paternoster_server::sockets::bind_unix;
use paternoster_server::stat::{
    BudgetStat, Detail, DiskStat, GroupStat, ModelledStat, OpStat, QueueStat, Stat,
};

struct Fixed(Result<Stat, StatError>);

impl Control for Fixed {
    fn stat(&self, detail: Detail) -> Result<Stat, StatError> {
        let mut stat = self.0.clone()?;
        if detail == Detail::Queues {
            stat.disks.iter_mut().for_each(|disk| disk.queues = Some(vec![queue()]));
        }
        Ok(stat)
    }

    fn group(&self, question: &GroupQuestion) -> Result<GroupAnswer, GroupError> {
        let disk = question.disk.clone().unwrap_or_default();
        let settings = [("asked".to_owned(), question.group.clone().into())].into();
        Ok(GroupAnswer::new(vec![GroupInForce { disk, settings, ..Default::default() }]))
    }

    fn set_group(&self, change: &GroupChange) -> Result<GroupAnswer, GroupError> {
        if change.group != "/gold" {
            let (group, known) = (change.group.clone(), "\"/gold\"".to_owned());
            return Err(GroupError::UnknownGroup { group, known });
        }
        let disk = change.disk.clone().unwrap_or_default();
        let settings = change.set.clone();
        let in_force = GroupInForce { disk, settings, ..Default::default() };
        Ok(GroupAnswer::new(vec![in_force]))
    }

    fn settings(&self) -> Result<SettingsAnswer, SettingError> {
        Ok(settings("cfq"))
    }

    fn change_settings(&self, change: &DiskChange) -> Result<SettingsAnswer, SettingError> {
        let Settings(set) = &change.set;
        match set.as_slice() {
            [(name, value)] if name == "scheduler" => Ok(settings(value.as_str().expect("text"))),
            _ => Err(SettingError::Nothing),
        }
    }

    /// A line each 20 ms, without end.
    fn trace(&self, question: &TraceQuestion) -> Result<DecisionLines, TraceError> {
        let TraceQuestion { disk, group, .. } = question.clone();
        if group.is_some() {
            return Err(TraceError::Busy { disk });
        }
        let line = move |number| {
            std::thread::sleep(Duration::from_millis(20));
            format!("{disk:?} {number}\n")
        };
        Ok(Box::new((0..).map(line)))
    }

    fn reload(&self, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        match &self.0 {
            Ok(_) => Ok(reloaded(mode)),
            Err(_) => Err(ReloadError::Unusable("c.toml:3: one\nc.toml:7: two".to_owned())),
        }
    }
}

fn reloaded(mode: ReloadMode) -> ReloadAnswer {
    let change = |place: &str, what: &str, to: u32| Change {
        place: place.to_owned(),
        what: what.to_owned(),
        from: serde_json::Value::Null,
        to: to.into(),
    };
    let changed = vec![change("group \"/gold\"", "weight_device.d", 7)];
    ReloadAnswer::new(mode, changed, vec![change("", "payload_timeout", 60)])
}

fn settings(scheduler: &str) -> SettingsAnswer {
    let keys = [("scheduler", serde_json::Value::from(scheduler)), ("depth", 3.into())];
    let in_force = SettingsInForce {
        disk: "d".to_owned(),
        settings: keys.into_iter().collect(),
        tunables: [("quantum".to_owned(), 8)].into(),
        at_start: [("plug", "on".into())].into_iter().collect(),
    };
    SettingsAnswer::new(vec![in_force])
}

fn change(group: &str) -> GroupChange {
    GroupChange::one(group, "weight", 300)
}

fn queue() -> QueueStat {
    let budget = BudgetStat { weight: 1200, raising: 30, ..BudgetStat::default() };
    QueueStat { connection: "vm1#3".to_owned(), budget: Some(budget), ..QueueStat::default() }
}

fn state() -> Stat {
    let read = OpStat { bios: 5, bytes: 20480, merged: 1, dispatched: 4, ..OpStat::default() };
    let group = GroupStat {
        path: "/gold".to_owned(),
        weight: 400,
        leaf_weight: 30,
        exports: vec!["vm1".to_owned()],
        connections: 2,
        ops: BTreeMap::from([("read".to_owned(), read)]),
        ..GroupStat::default()
    };
    let below = GroupStat { path: "/gold/db".to_owned(), weight: 7, ..GroupStat::default() };
    let modelled =
        Some(ModelledStat { servers: Some(4), service_ns: Some(200_000), ..Default::default() });
    let disk = DiskStat {
        name: "d".to_owned(),
        modelled,
        groups: vec![group, below],
        ..Default::default()
    };
    Stat::new(vec![disk])
}

/// A control plane that answers so.
struct Rig {
    dir: tempfile::TempDir,
    server: CtlServer,
}

impl Rig {
    fn new(answer: Result<Stat, StatError>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = bind_unix(&dir.path().join("ctl"), 0o600).expect("a socket");
        let server = ctl::serve(listener, Arc::new(Fixed(answer))).expect("a server");
        Self { dir, server }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("ctl")
    }

    /// Sends these bytes and reads until the server closes.
    fn talk(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.path()).expect("a connection");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("UTF-8");
        answer
    }
}

/// A socket on which somebody says this to whoever connects: HTTP once asked, else at once.
fn says(dir: &Path, text: &'static [u8]) -> PathBuf {
    let path = dir.join("other");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut question = [0; 1000];
        if text.starts_with(b"HTTP") {
            let _ = stream.read(&mut question);
            let _ = stream.write_all(text);
        } else {
            let _ = stream.write_all(text);
            let _ = stream.read(&mut question);
        }
    });
    path
}

#[test]
fn what_the_source_says_arrives() {
    let rig = Rig::new(Ok(state()));
    for _ in 0..3 {
        let answer = ctl::fetch_stat(&rig.path(), Detail::Groups).expect("an answer");
        assert_eq!(answer.stat, state());
        let json: serde_json::Value = serde_json::from_str(&answer.json).expect("JSON");
        assert_eq!(json["version"], 1);
        let groups = &json["disks"][0]["groups"];
        assert_eq!(groups[0]["ops"]["read"]["bytes"], 20480);
        assert_eq!(
            (&groups[0]["leaf_weight"], &groups[1]["path"]),
            (&30.into(), &"/gold/db".into())
        );
    }
    rig.server.stop();
}

#[test]
fn queues_are_told_to_those_who_ask_for_them() {
    let rig = Rig::new(Ok(state()));
    let brief = ctl::fetch_stat(&rig.path(), Detail::Groups).expect("an answer");
    assert!(!brief.json.contains("queues"), "{}", brief.json);
    let verbose = ctl::fetch_stat(&rig.path(), Detail::Queues).expect("an answer");
    assert_eq!(verbose.stat.disks[0].queues, Some(vec![queue()]));
    let json: serde_json::Value = serde_json::from_str(&verbose.json).expect("JSON");
    let told = &json["disks"][0]["queues"][0];
    assert_eq!((&told["connection"], &told["budget"]["raising"]), (&"vm1#3".into(), &30.into()));
    assert!(told.get("slice").is_none(), "{told}");

    let get = |query| {
        rig.talk(&format!("GET /v1/stat?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    };
    assert!(get("verbose=true").contains("vm1#3"));
    assert!(!get("verbose=false").contains("vm1#3"));
    let refused = get("verbose=1");
    let expected = "verbose: provided string was not `true` or `false`";
    assert!(refused.contains(" 400 ") && refused.contains(expected), "{refused}");
    let both = get("verbose=true&limit=5");
    assert!(both.contains(" 422 ") && both.contains("verbose=true is of the whole"), "{both}");
    let unknown = get("page=5");
    assert!(unknown.contains(" 400 ") && unknown.contains("limit, after and volumes"), "{unknown}");
}

#[test]
fn any_http_client_is_answered() {
    let rig = Rig::new(Ok(state()));
    let get = |path, rest| rig.talk(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n{rest}\r\n"));
    let answer = get("/v1/stat", "Connection: close\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/json"), "{answer}");
    let answer = get("/v2/stat", "Connection: close\r\n");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(
        answer.contains(
            r#""error": "there is no \"/v2/stat\"; there are: /v1/stat, /v1/groups/settings, "#
        ),
        "{answer}"
    );
    let answer = rig.talk("POST /v1/stat HTTP/1.0\r\n\r\n");
    assert!(answer.contains(" 405 ") && answer.contains("GET is allowed"), "{answer}");
    assert!(answer.contains("allow: GET"), "{answer}");
    assert!(rig.talk("what?\r\n\r\n").contains(" 400 "));
}

#[test]
fn change_of_weights_arrives_and_so_does_the_answer() {
    let rig = Rig::new(Ok(state()));
    let wanted = GroupChange { disk: Some("slow".to_owned()), ..change("/gold") };
    let answer = ctl::set_group(&rig.path(), &wanted).expect("an answer");
    let settings = [("weight".to_owned(), 300.into())].into();
    let in_force = GroupInForce { disk: "slow".to_owned(), settings, ..Default::default() };
    assert_eq!(answer, GroupAnswer::new(vec![in_force]));

    let refused = ctl::set_group(&rig.path(), &change("/gild")).expect_err("no such group");
    assert!(matches!(refused, CtlError::Status { status: 404, .. }), "{refused}");
    let words = "says: there is no group \"/gild\"; there are: \"/gold\"";
    assert!(refused.to_string().contains(words), "{refused}");
}

#[test]
fn settings_are_asked_for_and_changed_and_refused() {
    let rig = Rig::new(Ok(state()));
    let path = rig.path();
    assert_eq!(ctl::fetch_settings(&path).expect("an answer"), settings("cfq"));
    let change = |set: &[(&str, serde_json::Value)]| {
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        ctl::change_settings(&path, &DiskChange { disk: "d".to_owned(), set: Settings(set) })
    };
    let answer = change(&[("scheduler", "bfq".into())]).expect("an answer");
    assert_eq!(answer, settings("bfq"));
    let refused = change(&[]).expect_err("nothing is set").to_string();
    assert!(refused.contains("says: nothing is set; NAME=VALUE is allowed"), "{refused}");

    let send = |method: &str, body: &str| {
        rig.talk(&format!(
            "{method} /v1/disks/settings HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    for (body, words) in [
        ("{", "EOF"),
        (r#"{"disk": "d"}"#, "missing field `set`"),
        (r#"{"disk": "d", "set": ["depth", 4]}"#, "expected an object of names and values"),
        (r#"{"disk": "d", "set": {}, "depth": 4}"#, "unknown field `depth`"),
    ] {
        let refused = send("PUT", body);
        assert!(refused.contains(" 400 ") && refused.contains(words), "{refused}");
        assert!(refused.contains("a JSON object with disk is allowed"), "{refused}");
    }
    let refused = send("POST", "");
    assert!(refused.contains(" 405 ") && refused.contains("GET and PUT are allowed"), "{refused}");
    assert!(refused.contains("allow: GET, HEAD, PUT\r\n"), "{refused}");
}

#[test]
fn trace_goes_on_until_its_time_is_over_or_nobody_reads() {
    let rig = Rig::new(Ok(state()));
    let asked = |seconds| TraceQuestion { disk: "a b&c".to_owned(), group: None, seconds };
    let mut text = Vec::new();
    let whole = ctl::follow_trace(&rig.path(), &asked(Some(0.3)), |lines| {
        text.extend_from_slice(lines);
        ControlFlow::Continue(())
    });
    whole.expect("it ends by itself");
    let text = String::from_utf8(text).expect("UTF-8");
    let numbered = text.lines().enumerate().all(|(n, line)| line == format!("\"a b&c\" {n}"));
    assert!(numbered && (2..=16).contains(&text.lines().count()), "{text}");

    let mut left = 3;
    let some = ctl::follow_trace(&rig.path(), &asked(None), |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    some.expect("the reader ends it");
    rig.server.stop();
}

#[test]
fn trace_that_cannot_be_is_refused_in_json() {
    let rig = Rig::new(Ok(state()));
    let get = |query| rig.talk(&format!("GET /v1/trace{query} HTTP/1.0\r\n\r\n"));
    for (query, status, words) in [
        ("", 400, "missing field `disk`: ?disk=NAME is allowed, and with it group and seconds"),
        ("?disk=d&dsik=d", 400, "unknown field `dsik`"),
        ("?disk=d&seconds=x", 400, "invalid float literal"),
        ("?disk=d&seconds=0", 400, "seconds=0: 0.1 to 86400 is allowed"),
        ("?disk=d&seconds=NaN", 400, "seconds=NaN: 0.1 to 86400 is allowed"),
        ("?disk=d&group=/x", 409, "disk \\\"d\\\" is traced already; one trace at a time is"),
    ] {
        let refused = get(query);
        assert!(refused.contains(&format!(" {status} ")), "{refused}");
        assert!(refused.contains(words) && refused.contains("\"version\": 1"), "{refused}");
    }
    let refused = rig.talk("HEAD /v1/trace?disk=d HTTP/1.0\r\n\r\n");
    assert!(refused.contains(" 405 ") && refused.contains("allow: GET\r\n"), "{refused}");
}

#[test]
fn file_is_read_again_and_what_it_changes_is_answered() {
    let rig = Rig::new(Ok(state()));
    for mode in [ReloadMode::Apply, ReloadMode::DryRun] {
        assert_eq!(ctl::reload(&rig.path(), mode).expect("an answer"), reloaded(mode));
    }
    let send = |method: &str, query: &str| {
        let head = format!("{method} /v1/reload{query} HTTP/1.1\r\nHost: x\r\n");
        rig.talk(&format!("{head}Connection: close\r\nContent-Length: 0\r\n\r\n"))
    };
    for (query, dry_run) in [("", "false"), ("?dry_run=false", "false"), ("?dry_run=true", "true")]
    {
        let answer = send("POST", query);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(&format!("\"dry_run\": {dry_run}")), "{query}: {answer}");
        assert!(answer.contains(r#""where": "group \"/gold\"""#), "{answer}");
    }
    for query in ["?dry_run", "?dry_run=1", "?dry_runs=true", "?verbose=true"] {
        let refused = send("POST", query);
        assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
        assert!(refused.contains("dry_run=true or dry_run=false is allowed"), "{refused}");
    }
    let refused = send("GET", "");
    assert!(refused.contains(" 405 ") && refused.contains("POST is allowed"), "{refused}");
    assert!(refused.contains("allow: POST\r\n"), "{refused}");
}

#[test]
fn file_with_mistakes_is_status_422_with_all_of_them() {
    let rig = Rig::new(Err(StatError("nothing".to_owned())));
    let refused = ctl::reload(&rig.path(), ReloadMode::Apply).expect_err("it has mistakes");
    let CtlError::Status { status: 422, message, .. } = refused else { panic!("{refused}") };
    let expected = "nothing has changed, as the file cannot be used:\n\
                    c.toml:3: one\nc.toml:7: two";
    assert_eq!(message, expected);
}

#[test]
fn source_without_an_answer_is_status_503_with_its_reason() {
    let rig = Rig::new(Err(StatError("disk d does not answer".to_owned())));
    let refused = ctl::fetch_stat(&rig.path(), Detail::Groups).expect_err("refused");
    assert!(matches!(refused, CtlError::Status { status: 503, .. }), "{refused}");
    assert!(refused.to_string().contains("disk d does not answer"), "{refused}");
}

#[test]
fn stopping_does_not_wait_for_silent_connections() {
    let rig = Rig::new(Ok(state()));
    let _silent = UnixStream::connect(rig.path()).expect("a connection");
    ctl::fetch_stat(&rig.path(), Detail::Groups).expect("an answer");
    let begin = Instant::now();
    rig.server.stop();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    let path = rig.dir.path().join("ctl");
    let refused = ctl::fetch_stat(&path, Detail::Groups).expect_err("nobody listens");
    assert!(matches!(refused, CtlError::Refused { .. }), "{refused}");
}

#[test]
fn errors_name_the_socket_and_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |path: &Path| ctl::fetch_stat(path, Detail::Groups).expect_err("no answer");

    let missing = refused(&dir.path().join("none")).to_string();
    assert!(missing.contains("/none\"") && missing.contains("--ctl PATH"), "{missing}");

    let dead = dir.path().join("dead");
    drop(UnixListener::bind(&dead).expect("a socket"));
    let dead = refused(&dead).to_string();
    assert!(dead.contains("/dead\"") && dead.contains("start it again"), "{dead}");

    let file = dir.path().join("disk.img");
    std::fs::write(&file, "").expect("a file");
    let file = refused(&file).to_string();
    assert!(file.contains("/disk.img\" is not a socket") && file.contains("--ctl PATH"), "{file}");

    let long = refused(&dir.path().join("x".repeat(200)));
    assert!(matches!(long, CtlError::Connect { .. }), "{long}");
}

#[test]
fn answers_that_are_none_are_refused() {
    let cases: [(&[u8], &str); 6] = [
        (b"NBDMAGICIHAVEOPT\0\x03", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\noops", "is it paternoster?"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"version\":2}", "in version 2"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", "says: oops"),
    ];
    for (sent, words) in cases {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = ctl::fetch_stat(&says(dir.path(), sent), Detail::Groups)
            .expect_err("no answer")
            .to_string();
        assert!(refused.contains(words), "no {words}\n{refused}");
    }
}

#[test]
fn fields_of_other_servers_are_kept_in_the_json_and_do_no_harm() {
    let dir = tempfile::tempdir().expect("a directory");
    let sent =
        b"HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{\"version\":1,\"new\":0,\"disks\":[{}]}";
    let answer = ctl::fetch_stat(&says(dir.path(), sent), Detail::Groups).expect("an answer");
    assert!(answer.json.contains("\"new\":0"));
    assert_eq!(answer.stat, Stat::new(vec![DiskStat::default()]));
}

#[test]
fn change_of_a_group_that_is_none_is_refused_in_json() {
    let rig = Rig::new(Ok(state()));
    let send = |method: &str, body: &str| {
        rig.talk(&format!(
            "{method} /v1/groups/settings HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let plain = send("PUT", r#"{"group": "/gold", "set": {"riops": 7}}"#);
    assert!(plain.contains(" 200 ") && plain.contains("\"riops\": 7"), "{plain}");
    let unknown = send("PUT", r#"{"group": "/x", "set": {"riops": 7}}"#);
    assert!(unknown.contains(" 404 ") && unknown.contains("there is no group"), "{unknown}");
    for (body, words) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("7", "invalid type"),
        (r#"{"group": "/gold"}"#, "missing field `set`"),
        (r#"{"group": "/gold", "set": {}, "riops": 8}"#, "unknown field `riops`"),
        (r#"{"group": "/gold", "set": 7}"#, "invalid type"),
        (r#"{"group": "/gold", "set": {"riops": 1, "riops": 2}}"#, "riops is set twice"),
        (r#"{"group": 7, "set": {}}"#, "expected a string"),
    ] {
        let refused = send("PUT", body);
        assert!(refused.contains(" 400 ") && refused.contains("\"version\": 1"), "{refused}");
        assert!(refused.contains(words) && refused.contains("group and set"), "{refused}");
    }
    let refused = send("GET", "");
    assert!(refused.contains(" 400 ") && refused.contains("group=PATH is allowed"), "{refused}");
    let refused = send("POST", "");
    assert!(
        refused.contains(" 405 ") && refused.contains("allow: GET, HEAD, PUT\r\n"),
        "{refused}"
    );
    let (group, disk) = ("/a b&c/\"d\"".to_owned(), Some("é".to_owned()));
    let question = GroupQuestion { group: group.clone(), disk };
    let answer = ctl::fetch_group(&rig.path(), &question).expect("an answer");
    assert_eq!((&*answer.disks[0].disk, &answer.disks[0].settings["asked"]), ("é", &group.into()));
}
