//! The state of groups and volumes, a page at a time.

use std::collections::BTreeMap;

use paternoster_nbd::Command;
use paternoster_server::ctl::{CatalogueError, Control as _, StatPage, StatQuestion};
use paternoster_server::stat::{Detail, DiskStat, GroupStat};
use serde_json::json;

use crate::support::Rig;

const DISKS: &str = r#"
metrics_volumes = true
[pools.fast]
path = "DIR"
scheduler = "wfq"
[disks.d]
backend = "memory"
size = "1M"
[exports.x]
disk = "d"
group = "/gold/x"
"#;

/// Five volumes, each with a group of its own, and one in another.
fn volumes() -> Rig {
    let rig = Rig::start(DISKS);
    for name in ["vm1", "vm2", "vm3", "vm4", "vm5"] {
        rig.control().put_volume(name, &json!({"pool": "fast", "size": "1M"}), false).expect(name);
    }
    let body = json!({"pool": "fast", "size": "1M", "group": "/gold/y"});
    rig.control().put_volume("y", &body, false).expect("it can be made");
    rig
}

fn ask(rig: &Rig, question: &StatQuestion) -> StatPage {
    rig.control().stat_page(question).expect("every disk answers")
}

fn paths(disk: &DiskStat) -> Vec<&str> {
    disk.groups.iter().map(|group| group.path.as_str()).collect()
}

#[test]
fn pages_together_are_the_whole_state() {
    let rig = volumes();
    let whole = rig.control().stat(Detail::Groups).expect("every disk answers");
    let mut question = StatQuestion { limit: Some(3), ..StatQuestion::default() };
    let mut found = [Vec::new(), Vec::new()];
    let mut pages = 0;
    loop {
        let page = ask(&rig, &question);
        pages += 1;
        for (found, disk) in found.iter_mut().zip(&page.stat.disks) {
            found.extend(paths(disk).into_iter().map(str::to_owned));
        }
        let [fast, of_whole] = [&page.stat, &whole].map(|stat| &stat.disks[0]);
        assert_eq!((fast.size_bytes, &fast.name), (of_whole.size_bytes, &of_whole.name));
        let Some(next) = page.next else { break };
        question.after = Some(next);
    }
    // "/gold", "/gold/x", "/gold/y", and one of each of the five.
    assert_eq!(pages, 3);
    for (found, disk) in found.iter().zip(&whole.disks) {
        let mut of_whole = paths(disk);
        of_whole.sort_unstable();
        assert_eq!(*found, of_whole, "{}", disk.name);
    }
    rig.end();
}

#[test]
fn page_is_of_a_pool_or_of_groups_below_one() {
    let rig = volumes();
    let of = |pool: Option<&str>, group: Option<&str>| {
        let [pool, group] = [pool, group].map(|name| name.map(str::to_owned));
        ask(&rig, &StatQuestion { pool, group, ..StatQuestion::default() })
    };
    let page = of(Some("d"), None);
    let [d] = &page.stat.disks[..] else { panic!("{page:?}") };
    assert_eq!((d.name.as_str(), paths(d)), ("d", vec!["/gold", "/gold/x"]));
    let page = of(Some("fast"), Some("/gold"));
    assert_eq!(paths(&page.stat.disks[0]), ["/gold", "/gold/y"]);
    assert_eq!(paths(&of(None, Some("/none")).stat.disks[0]), [""; 0]);
    let refused = |question: &StatQuestion| rig.control().stat_page(question).expect_err("no");
    let pool = StatQuestion { pool: Some("fsat".to_owned()), ..StatQuestion::default() };
    let known = "\"fast\", \"d\"".to_owned();
    assert_eq!(refused(&pool), CatalogueError::NoSuchDisk { disk: "fsat".to_owned(), known });
    let none = StatQuestion { limit: Some(0), ..StatQuestion::default() };
    assert!(refused(&none).to_string().contains("1 to 1000"));
    rig.end();
}

#[test]
fn volumes_of_a_page_say_what_they_were_asked_for() {
    let rig = volumes();
    let mut client = rig.client("vm2");
    client.write(0, &[1; 4096]);
    client.read(0, 512);
    client.read(0, 512);
    client.call(Command::Flush).expect("it is durable");
    let group = Some("/vm2".to_owned());
    let question = StatQuestion { group, volumes: true, ..StatQuestion::default() };
    let page = ask(&rig, &question);
    let [vm2] = &page.stat.disks[0].volumes[..] else { panic!("{page:?}") };
    assert_eq!((vm2.name.as_str(), vm2.connections), ("vm2", 1));
    assert_eq!((vm2.reads, vm2.read_bytes, vm2.writes, vm2.written_bytes), (2, 1024, 1, 4096));
    assert_eq!((vm2.syncs, vm2.sync_failed), (1, false));
    let whole = rig.control().stat(Detail::Groups).expect("every disk answers");
    assert!(whole.disks[0].volumes.is_empty(), "nobody has asked for them");
    let mut metrics = whole;
    rig.control().add_volumes(&mut metrics).expect("every disk answers");
    let names: Vec<_> = metrics.disks[0].volumes.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["vm1", "vm2", "vm3", "vm4", "vm5", "y"]);
    let mine = metrics.disks[0].volumes.iter().find(|of| of.name == "vm2");
    assert_eq!(mine.map(|of| of.reads), Some(2));
    assert_eq!(page.stat.disks[0].syncs, 1, "all of the pool");
    drop(client);
    rig.end();
}

/// An owner that tells of thousands at once serves nobody meanwhile.
#[test]
fn metrics_have_the_groups_of_all_also_where_they_are_many() {
    let rig = volumes();
    for number in 0..70 {
        let body = json!({"pool": "fast", "size": "1M", "weight": 100 + number});
        rig.control().put_volume(&format!("more{number}"), &body, false).expect("it can be made");
    }
    let mut client = rig.served_client("more7");
    client.read(4096, 4096);
    let [parts, whole] =
        [rig.control().stat_in_parts(), rig.control().stat(Detail::Groups)].map(|stat| {
            let groups = stat.expect("every disk answers").disks.remove(0).groups;
            let of = |group: GroupStat| (group.path, (group.weight, group.connections, group.ops));
            groups.into_iter().map(of).collect::<BTreeMap<_, _>>()
        });
    assert_eq!(parts.len(), 77);
    assert_eq!(parts, whole);
    rig.end();
}
