//! What clients ask for and when, as the server counts it.

use std::path::Path;
use std::time::{Duration, Instant};

use paternoster_load::{Asks, Habit, Load, TenantLoad};
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::{Detail, DiskStat};
use tempfile::TempDir;

/// A server of an empty disk in memory, and the clients of its only export.
struct Rig {
    server: Server,
    load: Load,
    _dir: TempDir,
}

impl Rig {
    fn new(connections: u32, depth: u32, asks: Asks, habit: Habit) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "[disks.d]\nbackend = \"memory\"\nsize = \"64M\"\nscheduler = \"none\"\n\
                    [exports.e]\ndisk = \"d\"\n";
        let mut config = Config::from_toml(text, Path::new("c.toml")).expect("it is valid");
        let socket = dir.path().join("nbd.sock");
        config.listen = vec![Listen::unix(socket.clone())];
        let server = Server::start(&config).expect("a server");
        let export = "e".to_owned();
        let tenant = TenantLoad { export, connections, depth, block: 4096, write_percent: 0 };
        let mut load = Load::connect(&socket, &[tenant], 1).expect("clients");
        load.set_asks(0, asks);
        load.set_habit(0, habit);
        load.start().expect("they ask");
        Self { server, load, _dir: dir }
    }

    /// Replies within that long.
    fn replies(&mut self, millis: u64) -> u64 {
        self.load.run_for(Duration::from_millis(millis)).expect("the server serves");
        self.load.take_measured()[0].replies
    }

    /// Replies until there are more than `most`, for at most ten seconds.
    fn replies_beyond(&mut self, most: u64) -> u64 {
        let mut replies = 0;
        for _ in 0..1000 {
            replies += self.replies(10);
            if replies > most {
                break;
            }
        }
        replies
    }

    fn pause(&mut self) -> u64 {
        self.load.pause().expect("the server serves");
        self.load.take_measured()[0].replies
    }

    fn disk(&self) -> DiskStat {
        self.server.control().stat(Detail::Groups).expect("an answer").disks.remove(0)
    }

    fn end(self) {
        self.load.finish().expect("the server serves");
        self.server.shut_down().expect("it ends well");
    }
}

/// Commands of a kind that are done; those that became part of another's request are too.
fn completed(disk: &DiskStat, op: &str) -> u64 {
    let op = disk.groups[0].ops[op];
    op.completed + op.merged
}

#[test]
fn clients_ask_for_what_they_are_told_to() {
    for (asks, op, syncs) in [
        (Asks::ReadsAndWrites, "read", false),
        (Asks::Caches, "read", false),
        (Asks::DurableWrites, "write", true),
        (Asks::Trims, "discard", false),
    ] {
        let mut rig = Rig::new(2, 4, asks, Habit::default());
        let replies = rig.replies_beyond(8);
        assert!(replies > 8, "{asks:?}: {replies}");
        let replies = replies + rig.pause();
        let disk = rig.disk();
        assert_eq!(completed(&disk, op), replies, "{asks:?}");
        assert_eq!(disk.syncs > 0, syncs, "{asks:?}");
        rig.end();
    }
}

#[test]
fn clients_that_pause_ask_nothing_and_go_on_as_they_were() {
    let thinks = Habit { think: Duration::from_millis(1), ..Habit::default() };
    let reconnects = Habit { reconnects: true, ..Habit::default() };
    for (depth, habit) in [(4, Habit::default()), (4, thinks), (1, reconnects)] {
        let mut rig = Rig::new(3, depth, Asks::ReadsAndWrites, habit);
        assert!(rig.replies_beyond(0) > 0, "{habit:?}");
        rig.pause();
        let paused = completed(&rig.disk(), "read");
        assert_eq!(rig.replies(20), 0, "{habit:?}");
        assert_eq!(completed(&rig.disk(), "read"), paused, "{habit:?}");
        rig.load.resume().expect("the server serves");
        // Each asks again, and none twice at once: a number may be outstanding once only.
        let all = u64::from(3 * depth);
        assert!(rig.replies_beyond(all - 1) >= all, "{habit:?}");
        rig.end();
    }
}

/// It thinks for 1 to 3 ms each time, 2 on average: a reply in two milliseconds, and fewer on a
/// busy machine.
#[test]
fn client_thinks_for_as_long_as_it_is_told_to() {
    let [think, think_more] = [1, 2].map(Duration::from_millis);
    let habit = Habit { think, think_more, ..Habit::default() };
    let mut rig = Rig::new(1, 1, Asks::ReadsAndWrites, habit);
    let begin = Instant::now();
    let replies = u128::from(rig.replies(500));
    let millis = begin.elapsed().as_millis();
    assert!(replies > 0 && 10 * replies <= 6 * millis, "{replies} in {millis} ms");
    rig.end();
}
