//! The table of a scheduler's queues, which `ctl stat --verbose` adds to that of the groups.

use paternoster_server::stat::{BudgetStat, QueueStat, SliceStat};

use super::columns::Columns;
use super::units::{Bytes, NONE, Time, or_none};

/// The queues, a line each, or that there are none. The columns that all queues have, then those of
/// their scheduler.
pub(super) fn show(queues: &[QueueStat]) -> String {
    if queues.is_empty() {
        return "  no queues\n".to_owned();
    }
    let mut table = Columns::of(queues);
    table.words("QUEUE", |queue| {
        format!("{}{}", queue.connection, if queue.sync { "" } else { " async" })
    });
    table.words("GROUP", |queue| queue.group.clone());
    table.words("PRIO", |queue| queue.io_prio.clone());
    table.words("STATE", state);
    table.numbers("QUEUED", |queue| queue.queued);
    table.numbers("IN DEVICE", |queue| queue.in_device);
    if queues.iter().any(|queue| queue.budget.is_some()) {
        let mut numbers = |heading, cell: fn(&BudgetStat) -> String| {
            table.numbers(heading, |queue| queue.budget.as_ref().map_or_else(String::new, cell));
        };
        numbers("WEIGHT", |budget| budget.weight.to_string());
        numbers("RAISED", raised);
        numbers("BUDGET", |budget| {
            format!("{} of {}", Bytes(budget.service_bytes), Bytes(budget.budget_bytes))
        });
        numbers("INJECT", |budget| budget.injection_limit.to_string());
        numbers("THINK", |budget| or_none(budget.think_time_ns.map(Time)));
        numbers("WAKER", |budget| or_none(budget.waker.as_ref()));
    } else {
        let mut numbers = |heading, cell: fn(&SliceStat) -> String| {
            table.numbers(heading, |queue| queue.slice.as_ref().map_or_else(String::new, cell));
        };
        numbers("SLICE", |slice| or_none(slice.slice_ns.map(Time)));
        numbers("DISPATCHED", |slice| slice.sent.to_string());
    }
    table.show(|_| false)
}

/// The raising factor, the time since then, and the time for which it lasts.
fn raised(budget: &BudgetStat) -> String {
    if budget.raising <= 1 {
        return NONE.to_owned();
    }
    let BudgetStat { raising, raised_ns, raised_span_ns, .. } = *budget;
    format!("by {raising}, {} of {}", Time(raised_ns), Time(raised_span_ns))
}

/// What there is to say of a queue, in words.
fn state(queue: &QueueStat) -> String {
    let budget = queue.budget.as_ref();
    let has_idle_window = queue.slice.as_ref().is_some_and(|slice| slice.idle_window);
    let words = [
        (queue.in_service, "in service"),
        (queue.busy && !queue.in_service, "busy"),
        (queue.waited_for, "idling"),
        (budget.is_some_and(|budget| budget.thinks_briefly), "short think time"),
        (has_idle_window, "idle window"),
        (queue.seeky, "seeky"),
        (queue.shared, "shared"),
        (budget.is_some_and(|budget| budget.in_large_burst), "burst"),
    ];
    let true_ones = words.into_iter().filter_map(|(holds, word)| holds.then_some(word));
    let words: Vec<_> = true_ones.collect();
    if words.is_empty() { NONE.to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(connection: &str) -> QueueStat {
        QueueStat {
            group: "/gold".to_owned(),
            connection: connection.to_owned(),
            io_prio: "be/4".to_owned(),
            sync: true,
            ..QueueStat::default()
        }
    }

    #[test]
    fn queues_of_bfq_are_shown_by_weight_and_budget() {
        let raised = BudgetStat {
            weight: 1200,
            raising: 30,
            raised_ns: 1_230_000_000,
            raised_span_ns: 3_750_000_000,
            budget_bytes: 8 << 20,
            service_bytes: 1536,
            injection_limit: 1,
            thinks_briefly: true,
            ..BudgetStat::default()
        };
        let raised =
            QueueStat { in_service: true, busy: true, budget: Some(raised), ..queue("vm1#1") };
        let woken = BudgetStat {
            weight: 40,
            raising: 1,
            waker: Some("vm1#1".to_owned()),
            think_time_ns: Some(150_000),
            ..BudgetStat::default()
        };
        let woken = QueueStat { sync: false, queued: 3, budget: Some(woken), ..queue("vm2#12") };
        let expected = [
            "QUEUE GROUP PRIO STATE QUEUED IN DEVICE WEIGHT RAISED BUDGET INJECT THINK WAKER",
            "vm1#1 /gold be/4 in service, short think time 0 0 1200 by 30, 1.2 s of 3.7 s \
             1.5 KiB of 8 MiB 1 - -",
            "vm2#12 async /gold be/4 - 3 0 40 - 0 B of 0 B 0 150.0 µs vm1#1",
        ];
        // The whole table is wider than this page.
        let shown = show(&[raised, woken]);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(shown.lines().map(words).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn queues_of_cfq_are_shown_by_slice() {
        let slice = SliceStat { idle_window: true, slice_ns: Some(100_000_000), sent: 7 };
        let queue = QueueStat { busy: true, seeky: true, slice: Some(slice), ..queue("vm1#1") };
        let expected = "  \
QUEUE  GROUP  PRIO  STATE                     QUEUED  IN DEVICE     SLICE  DISPATCHED
  vm1#1  /gold  be/4  busy, idle window, seeky       0          0  100.0 ms           7
";
        assert_eq!(show(&[queue]), expected);
        assert_eq!(show(&[]), "  no queues\n");
    }
}
