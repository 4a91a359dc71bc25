//! `ctl why`: where a tenant's time went in a span of seconds, in a few lines.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use paternoster_server::ctl::fetch_stat;
use paternoster_server::stat::{Behind, Detail, Stat, Why, WhyAnswer};

use super::units::{Bytes, NONE, Time, per_second, percent};

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) tenant: &'a str,
    pub(super) disk: Option<&'a str>,
    pub(super) span: Duration,
}

/// Reads twice, a span apart, and says why the tenant waited in between.
pub(super) fn ask(socket: &Path, question: &Question<'_>) -> anyhow::Result<WhyAnswer> {
    let before = fetch_stat(socket, Detail::Groups)?.stat;
    // Before anybody waits for nothing.
    check(&before, question)?;
    std::thread::sleep(question.span);
    let stat = fetch_stat(socket, Detail::Groups)?.stat.since(&before);
    Ok(stat.why(question.tenant, question.disk))
}

/// Whether there is such a tenant.
fn check(stat: &Stat, &Question { tenant, disk, .. }: &Question<'_>) -> anyhow::Result<()> {
    if let Some(disk) = disk
        && !stat.disks.iter().any(|found| found.name == disk)
    {
        let known = quoted(stat.disks.iter().map(|disk| disk.name.as_str()));
        bail!("there is no disk {disk:?}; there are: {known}");
    }
    if !stat.why(tenant, disk).disks.is_empty() {
        return Ok(());
    }
    let disks = stat.disks.iter().filter(|found| disk.is_none_or(|disk| disk == found.name));
    let mut known: Vec<_> =
        disks.flat_map(|disk| &disk.groups).map(|group| group.path.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let place = disk.map(|disk| format!(" on disk {disk:?}")).unwrap_or_default();
    bail!("there is no tenant {tenant:?}{place}; there are: {}", quoted(known));
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

/// The answer for people.
pub(super) fn show(answer: &WhyAnswer) -> String {
    answer.disks.iter().map(show_disk).collect::<Vec<_>>().join("\n")
}

/// The most groups that are named in a line.
const NAMED: usize = 4;

fn show_disk(why: &Why) -> String {
    let Why { disk, tenant, scheduler, elapsed_ns, time, .. } = why;
    let mut text = format!("{tenant} on disk {disk} under {scheduler}, {}:", Time(*elapsed_ns));
    let part = |share: Option<f64>| share.map_or_else(|| NONE.to_owned(), share_percent);
    let (due, had) = (part(why.entitled), part(why.achieved));
    let _ = writeln!(text, " due {due}, had {had}");
    let waited = percent(time.waited_ns(), *elapsed_ns);
    let _ = writeln!(text, "  {waited:>7}  a request of it waited for the disk");
    let of = |behind: &[Behind]| names(behind, *elapsed_ns);
    let lines = [
        (true, time.turn_ns, format!("its turn had not come: behind {}", of(&why.behind))),
        (true, time.busy_ns, "the disk was busy with its own requests".to_owned()),
        (
            true,
            time.idle_window_ns,
            format!("idle window: the disk idled for {}", of(&why.idled_for)),
        ),
        (true, time.cap_ns, "held by a cap".to_owned()),
        (true, time.target_ns, "held back for the latency target of another".to_owned()),
        (true, time.server_ns, "the server was at work".to_owned()),
        (false, time.too_few_ns, too_few(why)),
        (false, time.memory_ns, "none waited: it has used its memory (`memory`)".to_owned()),
        (false, time.unread_ns, "none waited: its client does not read the replies".to_owned()),
        (false, time.nothing_ns, "it asked for nothing".to_owned()),
    ];
    for (waits, nanos, what) in lines {
        if nanos > 0 {
            let indent = if waits { "  " } else { "" };
            let _ = writeln!(text, "  {:>7}  {indent}{what}", percent(nanos, *elapsed_ns));
        }
    }
    text.push_str(&served(why));
    text
}

/// Why none waited, though it had requests: with the number that its weight needs, if it is known.
fn too_few(why: &Why) -> String {
    match (why.needs_outstanding, why.outstanding) {
        (Some(needs), Some(had)) if had < f64::from(needs) => format!(
            "none waited: too few outstanding for its weight, needs {needs}, had {had:.1} on \
             average"
        ),
        _ => "none waited: too few outstanding, all of them were in the disk".to_owned(),
    }
}

/// Who was served meanwhile.
fn served(why: &Why) -> String {
    let each = why.served.iter().take(NAMED).map(|served| {
        let rate = |count| per_second(count, why.elapsed_ns).unwrap_or_default();
        format!(
            "{} {} ({} requests/s, {}/s)",
            served.tenant,
            share_percent(served.achieved),
            rate(served.requests),
            Bytes(rate(served.bytes)),
        )
    });
    let each: Vec<_> = each.collect();
    match why.served.len().saturating_sub(NAMED) {
        _ if each.is_empty() => "  served: nobody\n".to_owned(),
        0 => format!("  served: {}\n", each.join(", ")),
        more => format!("  served: {}, and {more} more\n", each.join(", ")),
    }
}

/// Whose time it was, each with its part of the span.
fn names(behind: &[Behind], elapsed_ns: u64) -> String {
    let named = behind.iter().take(NAMED);
    let named =
        named.map(|behind| format!("{} {}", behind.tenant, percent(behind.time_ns, elapsed_ns)));
    let named: Vec<_> = named.collect();
    match behind.len().saturating_sub(NAMED) {
        _ if named.is_empty() => "others".to_owned(),
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

/// A share from 0 to 1, as percent.
pub(crate) fn share_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use paternoster_server::stat::{DiskStat, GroupStat, OpStat, TimeStat};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn group(path: &str, reads: u64, time: TimeStat) -> GroupStat {
        let read = OpStat { completed: reads, bytes: reads << 14, ..OpStat::default() };
        let ops = [("read".to_owned(), read)].into();
        GroupStat {
            path: path.to_owned(),
            weight: 100,
            leaf_weight: 100,
            ops,
            time,
            ..Default::default()
        }
    }

    fn stat() -> Stat {
        let victim = TimeStat {
            turn_ns: SECOND,
            busy_ns: SECOND / 4,
            idle_window_ns: SECOND / 2,
            too_few_ns: SECOND / 4,
            ..TimeStat::default()
        };
        let other = TimeStat { went_first_ns: 7, idled_ns: 9, ..TimeStat::default() };
        let disk = DiskStat {
            name: "d".to_owned(),
            scheduler: "cfq".to_owned(),
            elapsed_ns: 2 * SECOND,
            weights_apply: true,
            groups: vec![group("/v", 100, victim), group("/a", 300, other)],
            ..DiskStat::default()
        };
        Stat::new(vec![disk])
    }

    #[test]
    fn parts_are_of_the_span_and_name_whom_the_tenant_waited_for() {
        let expected = "\
/v on disk d under cfq, 2.0 s: due 50.0 %, had 25.0 %
   87.5 %  a request of it waited for the disk
   50.0 %    its turn had not come: behind /a 50.0 %
   12.5 %    the disk was busy with its own requests
   25.0 %    idle window: the disk idled for /a 25.0 %
   12.5 %  none waited: too few outstanding, all of them were in the disk
  served: /a 75.0 % (150 requests/s, 2.3 MiB/s), /v 25.0 % (50 requests/s, 800 KiB/s)
";
        assert_eq!(show(&stat().why("/v", None)), expected);
    }

    #[test]
    fn too_little_outstanding_is_told_with_what_the_weight_needs() {
        let mut stat = stat();
        let told = |stat: &Stat| {
            let shown = show(&stat.why("/v", None));
            let line = shown.lines().find(|line| line.contains("none waited"));
            line.expect("it has too few").trim_start().to_owned()
        };
        let victim = &mut stat.disks[0].groups[0];
        (victim.needs_outstanding, victim.outstanding_ns) = (Some(12), Some(7 * SECOND));
        let expected = "12.5 %  none waited: too few outstanding for its weight, needs 12, had 3.5 \
                        on average";
        assert_eq!(told(&stat), expected);
        // It had as many, though not all the time.
        stat.disks[0].groups[0].outstanding_ns = Some(24 * SECOND);
        let expected = "12.5 %  none waited: too few outstanding, all of them were in the disk";
        assert_eq!(told(&stat), expected);
    }

    #[test]
    fn names_that_there_are_not_are_told_with_those_that_there_are() {
        let ask = |tenant, disk| {
            let question = Question { tenant, disk, span: Duration::ZERO };
            check(&stat(), &question).err().map(|error| error.to_string())
        };
        assert_eq!(ask("/v", None), None);
        let expected = "there is no tenant \"/w\" on disk \"d\"; there are: \"/a\", \"/v\"";
        assert_eq!(ask("/w", Some("d")).as_deref(), Some(expected));
        let expected = "there is no disk \"e\"; there are: \"d\"";
        assert_eq!(ask("/v", Some("e")).as_deref(), Some(expected));
    }
}
