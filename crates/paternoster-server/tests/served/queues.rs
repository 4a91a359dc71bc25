//! The queues of a disk's scheduler, by the connections whose they are.

use paternoster_server::stat::{Detail, QueueStat};

use crate::support::Rig;

/// `a` and `b` of one group, `c` of its own.
fn start(scheduler: &str) -> Rig {
    Rig::start(&format!(
        r#"
[disks.d]
backend = "memory"
size = "3M"
scheduler = "{scheduler}"
[groups."/org/db"]
weight = 300
[exports.a]
disk = "d"
size = "1M"
group = "/org/db"
[exports.b]
disk = "d"
offset = "1M"
size = "1M"
group = "/org/db"
ioprio = "be/2"
[exports.c]
disk = "d"
offset = "2M"
"#
    ))
}

fn queues(rig: &Rig) -> Vec<QueueStat> {
    let stat = rig.detailed_stat(Detail::Queues);
    stat.disks[0].queues.clone().expect("they were asked for")
}

/// A line a queue that serves reads: connection, group and priority.
fn lines(queues: &[QueueStat]) -> Vec<String> {
    let sync = queues.iter().filter(|queue| queue.sync);
    let line = |QueueStat { connection, group, io_prio, .. }: &QueueStat| {
        format!("{connection} {group} {io_prio}")
    };
    sync.map(line).collect()
}

#[test]
fn queues_are_told_by_connection_and_group_while_there_are_clients() {
    for scheduler in ["cfq", "bfq"] {
        let rig = start(scheduler);
        assert_eq!(queues(&rig), []);
        let mut clients = ["c", "a", "b", "a"].map(|export| rig.client(export));
        for (round, client) in clients.iter_mut().enumerate() {
            // One after the other and far apart, so that no queues merge.
            client.read(round as u64 * 65536, 4096);
        }
        let told = queues(&rig);
        let expected = ["a#2 /org/db be/4", "b#3 /org/db be/2", "a#4 /org/db be/4", "c#1 /c be/4"];
        let mut sorted = lines(&told);
        sorted.sort_by_key(|line| line.contains("c#1"));
        assert_eq!(sorted.len(), expected.len(), "{sorted:?}");
        for line in expected {
            assert!(sorted.iter().any(|told| told == line), "no {line}: {sorted:?}");
        }
        for queue in &told {
            assert_eq!((queue.queued, queue.in_device), (0, 0), "{queue:?}");
            assert_eq!(queue.slice.is_some(), scheduler == "cfq", "{queue:?}");
            assert_eq!(queue.budget.is_some(), scheduler == "bfq", "{queue:?}");
        }
        assert_eq!(rig.stat().disks[0].queues, None, "nobody asked for them");
        drop(clients);
        rig.until_empty();
        assert_eq!(lines(&queues(&rig)), [""; 0], "they end with their connections");
        rig.end();
    }
}

#[test]
fn bfq_tells_weights_by_priority_and_raising() {
    let rig = start("bfq");
    let mut clients = ["a", "b"].map(|export| rig.client(export));
    for client in &mut clients {
        client.read(0, 4096);
    }
    let weights: Vec<_> = queues(&rig)
        .iter()
        .map(|queue| {
            let budget = queue.budget.as_ref().expect("it has budgets");
            assert!(budget.max_budget_bytes > 0, "{queue:?}");
            (queue.io_prio.clone(), budget.weight / budget.raising, budget.soft_rt)
        })
        .collect();
    assert_eq!(weights, [("be/4".to_owned(), 40, false), ("be/2".to_owned(), 60, false)]);
    rig.end();
}
