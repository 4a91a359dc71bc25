//! What clients ask for and when, as the server counts it.

use std::time::{Duration, Instant};

use paternoster::Nanos;
use paternoster_load::{Load, LocalServer};
use paternoster_scene::Tenant;
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::{Detail, DiskStat};

/// A server of an empty disk in memory, and the clients of its only export.
struct Rig {
    server: LocalServer,
    load: Load,
}

impl Rig {
    fn new(tenant: Tenant) -> Self {
        let text = "[disks.d]\nbackend = \"memory\"\nsize = \"64M\"\nscheduler = \"none\"\n\
                    [exports.e]\ndisk = \"d\"\n";
        let server = LocalServer::from_toml(text).expect("a server");
        let mut load = server.connect(&[tenant.named("e")], 1).expect("clients");
        load.start().expect("they ask");
        Self { server, load }
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
        self.server.end().expect("it ends well");
    }
}

/// Commands of a kind that are done; those that became part of another's request are too.
fn completed(disk: &DiskStat, op: &str) -> u64 {
    let op = disk.groups[0].ops[op];
    op.completed + op.merged
}

#[test]
fn clients_ask_for_what_they_are_told_to() {
    let reads = || Tenant::reads(100, 2, 4);
    let writes = || Tenant { write_percent: 100, ..reads() };
    for (tenant, op, syncs) in [
        (reads(), "read", false),
        (Tenant { caches: true, ..reads() }, "read", false),
        (Tenant { fua: true, ..writes() }, "write", true),
        (Tenant { zeroes: true, ..writes() }, "write_zeroes", false),
        (Tenant { trim_percent: 100, ..reads() }, "discard", false),
    ] {
        let what = format!("{tenant:?}");
        let mut rig = Rig::new(tenant);
        let replies = rig.replies_beyond(8);
        assert!(replies > 8, "{what}: {replies}");
        let replies = replies + rig.pause();
        let disk = rig.disk();
        assert_eq!(completed(&disk, op), replies, "{what}");
        assert_eq!(disk.syncs > 0, syncs, "{what}");
        rig.end();
    }
}

#[test]
fn clients_that_pause_ask_nothing_and_go_on_as_they_were() {
    let thinks = Tenant { think: Nanos::from_millis(1), ..Tenant::reads(100, 3, 4) };
    let reconnects = Tenant { reconnects: Some(Nanos::ZERO), ..Tenant::reads(100, 3, 1) };
    for tenant in [Tenant::reads(100, 3, 4), thinks, reconnects] {
        let (depth, what) = (tenant.depth, format!("{tenant:?}"));
        let mut rig = Rig::new(tenant);
        assert!(rig.replies_beyond(0) > 0, "{what}");
        rig.pause();
        let paused = completed(&rig.disk(), "read");
        assert_eq!(rig.replies(20), 0, "{what}");
        assert_eq!(completed(&rig.disk(), "read"), paused, "{what}");
        rig.load.resume().expect("the server serves");
        // Each asks again, and none twice at once: a number may be outstanding once only.
        let all = u64::from(3 * depth);
        assert!(rig.replies_beyond(all - 1) >= all, "{what}");
        rig.end();
    }
}

/// It thinks for 1 to 3 ms each time, 2 on average: a reply in two milliseconds, and fewer on a
/// busy machine.
#[test]
fn client_thinks_for_as_long_as_it_is_told_to() {
    let [think, think_more] = [1, 2].map(Nanos::from_millis);
    let mut rig = Rig::new(Tenant { think, think_more, ..Tenant::reads(100, 1, 1) });
    let begin = Instant::now();
    let replies = u128::from(rig.replies(500));
    let millis = begin.elapsed().as_millis();
    assert!(replies > 0 && 10 * replies <= 6 * millis, "{replies} in {millis} ms");
    rig.end();
}

#[test]
fn tenant_whose_clients_cannot_do_what_it_says_is_refused() {
    let text = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";
    let server = LocalServer::from_toml(text).expect("a server");
    let reconnects = |depth, micros| Tenant {
        reconnects: Some(Nanos::from_micros(micros)),
        ..Tenant::reads(100, 1, depth).named("e")
    };
    for (tenant, said) in [
        (reconnects(2, 0), "tenant \"e\" reconnects with a depth of 2: 1 is allowed there"),
        (reconnects(1, 7), "clients end a connection at once, so `reconnects = \"0s\"` is allowed"),
    ] {
        let refused = server.connect(&[tenant], 1).err().expect(said).to_string();
        assert!(refused.contains(said), "{refused}");
    }
    server.end().expect("it ends well");
}
