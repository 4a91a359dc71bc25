//! How a disk's thread has waited, in words.

use std::fmt::Write as _;

use paternoster_server::stat::{PollClassStat, PollStat};

use super::units::{Time, percent, ratio};

/// Lines: what a command took, what came of looks for clients, and how each class of reads and
/// writes is waited for. Of what never happened nothing is said.
pub(super) fn in_words(of: &PollStat, waits: u64) -> Vec<String> {
    let PollStat { mode, commands, cpu_ns, looks, found, looked_ns, next_ns, crowded, .. } = of;
    let mut lines = Vec::new();
    if *commands > 0 {
        let cpu = Time(cpu_ns / commands);
        let [sleeps, interrupts] = [waits, of.interrupts].map(|count| ratio(count, *commands, 2));
        lines.push(format!(
            "poll={mode}: {sleeps} sleeps and {interrupts} interrupts a command, and {cpu} of CPU"
        ));
    }
    if *looks > 0 {
        lines.push(format!(
            "looked {looks} times before it slept, for {}: something came in {}; the next look \
             takes up to {}",
            Time(*looked_ns),
            percent(*found, *looks),
            Time(*next_ns)
        ));
    }
    if of.sleeps > 0 || of.polls > 0 {
        let PollStat { sleeps, slept_ns, woken_early, missed, polls, polled_ns, .. } = of;
        lines.push(format!(
            "waited for completions by {sleeps} timed sleeps of {} together, of which {} missed \
             and {} ended early, and by {polls} polls of {}",
            Time(*slept_ns),
            percent(*missed, *sleeps),
            percent(*woken_early, *sleeps),
            Time(*polled_ns)
        ));
    }
    if *crowded > 0 {
        lines.push(format!("another thread had the processor in {crowded} looks and polls"));
    }
    if let Some(cost) = of.sleep_cost_ns.filter(|_| !of.classes.is_empty()) {
        let late = of.overshoots.iter().map(|late| {
            let from = if late.from_ns == 0 { "short ones".to_owned() } else { from(late.from_ns) };
            format!("{from} end {} late, 1 % {}", Time(late.p50_ns), Time(late.p99_ns))
        });
        let late: Vec<_> = late.collect();
        lines.push(format!("a sleep takes {} of CPU; {}", Time(cost), late.join("; ")));
    }
    lines.extend(of.classes.iter().filter(|class| class.ios > 0).map(class));
    lines
}

fn from(from_ns: u64) -> String {
    format!("those from {} on", Time(from_ns))
}

fn class(of: &PollClassStat) -> String {
    let PollClassStat { class, choice, ios, slept_for, misses, mean_ns, .. } = of;
    let choice = match (of.sleep_ns, &of.why) {
        (Some(sleep), _) => format!("sleep {}, then poll", Time(sleep)),
        (None, Some(why)) => format!("poll ({why})"),
        (None, None) => choice.clone(),
    };
    let mut text = format!("{class}: {choice}; mean {}, {ios} done", Time(*mean_ns));
    if *slept_for > 0 {
        let _ = write!(text, ", {} of those slept for missed", percent(*misses, *slept_for));
    }
    text
}

#[cfg(test)]
mod tests {
    use paternoster_server::stat::OvershootStat;

    use super::*;

    #[test]
    fn disk_that_had_no_commands_has_nothing_to_say() {
        let never = PollStat { mode: "auto".to_owned(), ..PollStat::default() };
        assert_eq!(in_words(&never, 193), [""; 0]);
    }

    #[test]
    fn all_that_happened_is_told() {
        let of = PollStat {
            mode: "auto".to_owned(),
            commands: 2000,
            cpu_ns: 20_000_000,
            interrupts: 500,
            looks: 1000,
            found: 900,
            looked_ns: 12_000_000,
            next_ns: 24_000,
            crowded: 3,
            sleeps: 800,
            slept_ns: 40_000_000,
            woken_early: 40,
            missed: 16,
            polls: 1000,
            polled_ns: 30_000_000,
            sleep_cost_ns: Some(13_000),
            overshoots: vec![OvershootStat { from_ns: 20_000, p50_ns: 14_000, p99_ns: 35_000 }],
            classes: vec![PollClassStat {
                class: "read (4096 Bytes)".to_owned(),
                choice: "sleep".to_owned(),
                sleep_ns: Some(50_000),
                mean_ns: 80_000,
                ios: 1000,
                slept_for: 800,
                misses: 16,
                ..PollClassStat::default()
            }],
        };
        let expected = [
            "poll=auto: 0.50 sleeps and 0.25 interrupts a command, and 10.0 µs of CPU",
            "looked 1000 times before it slept, for 12.0 ms: something came in 90.0 %; the next \
             look takes up to 24.0 µs",
            "waited for completions by 800 timed sleeps of 40.0 ms together, of which 2.0 % missed \
             and 5.0 % ended early, and by 1000 polls of 30.0 ms",
            "another thread had the processor in 3 looks and polls",
            "a sleep takes 13.0 µs of CPU; those from 20.0 µs on end 14.0 µs late, 1 % 35.0 µs",
            "read (4096 Bytes): sleep 50.0 µs, then poll; mean 80.0 µs, 1000 done, 2.0 % of those \
             slept for missed",
        ];
        assert_eq!(in_words(&of, 1000), expected);
    }
}
