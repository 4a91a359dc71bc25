//! `paternoster ctl stat --watch` against a control plane in this process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paternoster_server::ctl::{
    self, Control, CtlServer, DecisionLines, DiskChange, GroupAnswer, GroupChange, GroupError,
    GroupQuestion, ReloadAnswer, ReloadError, ReloadMode, SettingError, SettingsAnswer, StatError,
    TraceError, TraceQuestion,
};
use paternoster_server::sockets::bind_unix;
use paternoster_server::stat::{Detail, DiskStat, GroupStat, OpStat, Stat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A disk on which two seconds pass between two readings, whatever a clock says, and in them a
/// group has ten reads of 1 KiB done, and something waiting for half a second; or all the time,
/// while another of its weight has ninety done.
#[derive(Default)]
struct Steady {
    readings: AtomicU64,
    is_short: bool,
}

impl Control for Steady {
    fn stat(&self, _: Detail) -> Result<Stat, StatError> {
        let reading = 1000 + self.readings.fetch_add(1, Ordering::Relaxed);
        let group = |path: &str, reads: u64, waited_ns: u64| {
            let completed = reading * reads;
            let bytes = completed << 10;
            let wait_ns = completed * 1_500_000;
            let read = OpStat { completed, bytes, wait_ns, ..OpStat::default() };
            GroupStat {
                path: path.to_owned(),
                weight: 400,
                leaf_weight: 400,
                backlogged_ns: reading * waited_ns,
                ops: [("read".to_owned(), read)].into(),
                ..GroupStat::default()
            }
        };
        let (name, elapsed_ns) = ("d".to_owned(), reading * 2_000_000_000);
        let groups = if self.is_short {
            vec![group("/gold", 10, 2_000_000_000), group("/hog", 90, 2_000_000_000)]
        } else {
            vec![group("/gold", 10, 500_000_000)]
        };
        let weights_apply = true;
        let disk = DiskStat { name, elapsed_ns, groups, weights_apply, ..DiskStat::default() };
        Ok(Stat::new(vec![disk]))
    }

    fn group(&self, _: &GroupQuestion) -> Result<GroupAnswer, GroupError> {
        unreachable!("nobody asks for it")
    }

    fn set_group(&self, _: &GroupChange) -> Result<GroupAnswer, GroupError> {
        unreachable!("nobody asks for it")
    }

    fn settings(&self) -> Result<SettingsAnswer, SettingError> {
        unreachable!("nobody asks for it")
    }

    fn change_settings(&self, _: &DiskChange) -> Result<SettingsAnswer, SettingError> {
        unreachable!("nobody asks for it")
    }

    fn trace(&self, _: &TraceQuestion) -> Result<DecisionLines, TraceError> {
        unreachable!("nobody asks for it")
    }

    fn reload(&self, _: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        unreachable!("nobody asks for it")
    }
}

struct Watching {
    child: Child,
    /// None once nobody reads.
    out: Option<BufReader<ChildStdout>>,
    _server: CtlServer,
    _dir: TempDir,
}

impl Watching {
    fn start(seconds: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = bind_unix(&dir.path().join("ctl"), 0o600).expect("a socket");
        let server = ctl::serve(listener, Arc::new(Steady::default())).expect("a server");
        let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
        command.current_dir(dir.path()).args(["ctl", "--ctl", "ctl", "stat", "--watch", seconds]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, out: Some(out), _server: server, _dir: dir }
    }

    fn lines(&mut self, count: usize) -> Vec<String> {
        let out = self.out.as_mut().expect("somebody reads");
        let lines = out.by_ref().lines().take(count);
        lines.map(|line| line.expect("UTF-8")).collect()
    }

    /// Waits until it has ended, which is no failure and said to nobody.
    fn end(mut self) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if begin.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                panic!("it does not end");
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("it is piped");
        stderr.read_to_string(&mut said).expect("UTF-8");
        assert_eq!((status.code(), said.as_str()), (Some(0), ""));
    }
}

#[test]
fn each_table_has_the_rates_of_its_interval_until_ctrl_c() {
    let mut watching = Watching::start("0.1");
    let shown = watching.lines(9);
    let tables = [&shown[..4], &shown[5..]];
    assert_eq!(shown[4], "", "an empty line between two");
    for table in tables {
        assert!(table[0].starts_with("disk d: "), "{shown:?}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = [
            "GROUP WEIGHT DEMAND CONNS READS/S BYTES/S WRITES/S BYTES/S WAIT SERVICE QUEUED \
             IN DEVICE",
            "/gold 400 25.0 % 0 5 5 KiB 0 0 B 1.5 ms 0.0 µs 0 0",
        ];
        assert_eq!(words(&table[2]), expected[0]);
        let row = words(&table[3]);
        assert_eq!(row, expected[1]);
    }
    let id = Pid::from_child(&watching.child);
    kill_process(id, Signal::INT).expect("it runs");
    watching.end();
}

#[test]
fn it_ends_when_nobody_reads_any_more() {
    let mut watching = Watching::start("0.1");
    watching.lines(1);
    watching.out = None;
    watching.end();
    // And does not wait for its interval to see that.
    let mut watching = Watching::start("3600");
    watching.out = None;
    watching.end();
}

/// On a terminal, which `script` makes. Afterwards the terminal is as it was.
#[test]
fn q_ends_top_on_a_terminal_and_the_keys_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let listener = bind_unix(&dir.path().join("ctl"), 0o600).expect("a socket");
    let _server = ctl::serve(listener, Arc::new(Steady::default())).expect("a server");
    let top = format!("{} top --ctl ctl -d 60; stty -a", env!("CARGO_BIN_EXE_paternoster"));
    let mut command = Command::new("script");
    command.current_dir(dir.path()).args(["--quiet", "--return", "--command", &top, "/dev/null"]);
    command.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("script runs");
    let mut keys = child.stdin.take().expect("it is piped");
    // The first screen would come after a minute.
    thread::sleep(Duration::from_millis(300));
    keys.write_all(b"x ").expect("it is read");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = out.lines().map(|line| line.expect("UTF-8"));
    assert!(lines.any(|line| line.contains("q: quit   space: refresh now")), "no keys are named");
    let begin = Instant::now();
    keys.write_all(b"q").expect("it is read");
    let rest = lines.collect::<Vec<_>>().join("\n");
    assert!(begin.elapsed() < Duration::from_secs(30), "{rest}");
    assert!(rest.contains(" icanon") && rest.contains(" echo "), "{rest}");
    assert!(child.wait().expect("a child").success(), "{rest}");
}

/// What `paternoster` shows of a tenant that is short of its share, on a terminal or a pipe.
fn shown(args: &str, variables: &[(&str, &str)], is_terminal: bool) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let listener = bind_unix(&dir.path().join("ctl"), 0o600).expect("a socket");
    let steady = Steady { is_short: true, ..Steady::default() };
    let _server = ctl::serve(listener, Arc::new(steady)).expect("a server");
    let asked = format!("{} {args}", env!("CARGO_BIN_EXE_paternoster"));
    let mut command = if is_terminal { Command::new("script") } else { Command::new("sh") };
    if is_terminal {
        command.args(["--quiet", "--return", "--command", &asked, "/dev/null"]);
    } else {
        command.args(["-c", &asked]);
    }
    command.current_dir(dir.path()).stdin(Stdio::null());
    // Under CI colours are shown whatever the terminal.
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    let output = command.env("TERM", "xterm").envs(variables.iter().copied()).output();
    let output = output.expect("it runs");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && shown.contains("/gold"), "{shown}");
    shown
}

#[test]
fn tenant_short_of_its_share_is_red_on_a_terminal_alone() {
    const RED: &str = "\x1b[31m";
    for args in ["top --ctl ctl --once -d 0.1", "ctl --ctl ctl stat"] {
        let shown_red = shown(args, &[], true);
        let red: Vec<_> = shown_red.lines().filter(|line| line.contains(RED)).collect();
        let [gold] = red[..] else { panic!("one is red: {shown_red:?}") };
        assert!(gold.contains("/gold ") && gold.trim_start().starts_with(RED), "{gold:?}");
        assert!(gold.trim_end().ends_with("\x1b[0m"), "{gold:?}");
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let plain = shown(args, &[(name, value)], true);
            assert!(!plain.contains(RED), "{name}: {plain:?}");
        }
        for variables in [&[][..], &[("CLICOLOR_FORCE", "1")]] {
            let piped = shown(args, variables, false);
            assert!(!piped.contains('\x1b'), "{piped:?}");
        }
    }
}
