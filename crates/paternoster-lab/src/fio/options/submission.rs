//! Options that say how a job hands I/O over, and how fast.

use super::{Given, OptionInfo, percent, simulated};
use crate::fio::error::Mistake;
use crate::fio::job::{Advice, Engine, RateProcess, ThinkTrigger, WriteSync};
use crate::fio::spec::{PrioritySplit, Spec};
use crate::fio::text::Text;
use crate::fio::value::{self, KbBase, PerDirection, TimeUnit};

/// How many I/Os a job may have under way.
const MAX_DEPTH: u32 = 65_536;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "ioengine",
        &[],
        "str",
        "The calls that it uses: psync (the default), sync, pvsync2, libaio or linuxaio, \
         io_uring, posixaio, mmap, null.",
        ioengine,
    ),
    simulated(
        "iodepth",
        &[],
        "int",
        "I/Os in flight, 1 (the default) to 65536; 1 if the call waits.",
        |spec, given| {
            spec.submission.depth = given.small(1, MAX_DEPTH)?;
            Ok(())
        },
    ),
    simulated(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        "int",
        "I/Os handed over with one call, 0 to 65536, 1 by default; 0 is `iodepth`.",
        |spec, given| batch(given, &mut spec.submission.batches.submit),
    ),
    simulated(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        "int",
        "Completions to wait for, 0 to 65536, 1 by default; 0 polls.",
        |spec, given| batch(given, &mut spec.submission.batches.complete_min),
    ),
    simulated(
        "iodepth_batch_complete_max",
        &[],
        "int",
        "Most completions reaped at once, 0 to 65536; `iodepth_batch_complete_min` if 0 or less.",
        |spec, given| batch(given, &mut spec.submission.batches.complete_max),
    ),
    simulated(
        "iodepth_low",
        &[],
        "int",
        "Depth to fall to, once `iodepth` was reached, before more I/O is made, 0 to 65536; \
         `iodepth` if 0.",
        |spec, given| batch(given, &mut spec.submission.batches.low),
    ),
    simulated("direct", &[], "bool", "Past the page cache; 0 is the default.", |spec, given| {
        spec.submission.direct = given.switch()?;
        Ok(())
    }),
    simulated("buffered", &[], "bool", "Through the page cache.", |spec, given| {
        spec.submission.direct = !given.switch()?;
        Ok(())
    }),
    simulated(
        "sync",
        &[],
        "str",
        "Whether each write waits until it is durable: none (the default), sync, dsync.",
        |spec, given| {
            spec.submission.write_sync = given.word(&[
                ("none", WriteSync::None),
                ("0", WriteSync::None),
                ("sync", WriteSync::Sync),
                ("1", WriteSync::Sync),
                ("dsync", WriteSync::DataSync),
            ])?;
            Ok(())
        },
    ),
    simulated(
        "invalidate",
        &[],
        "bool",
        "The page cache forgets the job's files when a loop begins, and writes what is dirty.",
        |spec, given| {
            spec.submission.invalidate = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "fadvise_hint",
        &[],
        "str",
        "What the kernel is told of buffered I/O: 0 nothing, 1 (the default) the job's order.",
        |spec, given| {
            spec.submission.advice = given.word(&[
                ("0", Some(Advice::None)),
                ("1", None),
                ("sequential", Some(Advice::Sequential)),
                ("random", Some(Advice::Random)),
            ])?;
            Ok(())
        },
    ),
    simulated(
        "cmdprio_percentage",
        &[],
        "int[,int]",
        "Percentage of I/Os with `cmdprio_class` and `cmdprio`.",
        |spec, given| for_two(given, &mut spec.submission.cmdprio_percentage, percent),
    ),
    simulated(
        "cmdprio_class",
        &[],
        "int[,int]",
        "Their class: 1 real time, 2 best effort, 3 idle.",
        |spec, given| for_two(given, &mut spec.submission.cmdprio_class, |t| class(t).map(Some)),
    ),
    simulated("cmdprio", &[], "int[,int]", "Their level, 0 to 7.", |spec, given| {
        for_two(given, &mut spec.submission.cmdprio, |text| byte(text, 7))
    }),
    simulated(
        "cmdprio_bssplit",
        &[],
        "str[,str]",
        "Percentage of the I/Os of a size with these, or with a class and level: \
         `4k/20:64k/5/3/0`.",
        |spec, given| {
            let base = given.base;
            for_two(given, &mut spec.submission.cmdprio_bssplit, |text| priority_split(text, base))
        },
    ),
    simulated(
        "thinktime",
        &[],
        "time",
        "How long the job pauses between blocks of I/O.",
        |spec, given| {
            spec.pacing.thinktime = given.time(TimeUnit::Micro)?;
            Ok(())
        },
    ),
    simulated(
        "thinktime_spin",
        &[],
        "time",
        "Part of the pause in which the processor is busy.",
        |spec, given| {
            spec.pacing.thinktime_spin = given.time(TimeUnit::Micro)?;
            Ok(())
        },
    ),
    simulated("thinktime_blocks", &[], "int", "Number of I/Os before a pause.", |spec, given| {
        spec.pacing.thinktime_blocks = given.small(0, u32::MAX)?.max(1);
        Ok(())
    }),
    simulated(
        "thinktime_blocks_type",
        &[],
        "str",
        "What counts as one: complete or issue.",
        |spec, given| {
            let words = [("complete", ThinkTrigger::Complete), ("issue", ThinkTrigger::Issue)];
            spec.pacing.thinktime_trigger = given.word(&words)?;
            Ok(())
        },
    ),
    simulated(
        "thinktime_iotime",
        &[],
        "time",
        "Also pauses after this time of I/O.",
        |spec, given| {
            spec.pacing.thinktime_iotime = given.time(TimeUnit::Second)?;
            Ok(())
        },
    ),
    simulated(
        "rate",
        &[],
        "int[,int][,int]",
        "Most bytes a second, of each direction separately.",
        |spec, given| rates(given, &mut spec.pacing.rate),
    ),
    simulated(
        "rate_iops",
        &[],
        "int[,int][,int]",
        "Most I/Os of the least size a second.",
        |spec, given| rates(given, &mut spec.pacing.rate_iops),
    ),
    simulated(
        "rate_process",
        &[],
        "str",
        "How moments are chosen with a rate: linear, or poisson, which takes all I/Os as of the \
         least size.",
        |spec, given| {
            let words = [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];
            spec.pacing.rate_process = given.word(&words)?;
            Ok(())
        },
    ),
    simulated(
        "rate_ignore_thinktime",
        &[],
        "bool",
        "What was missed while thinking is not caught up.",
        |spec, given| {
            spec.pacing.rate_ignore_thinktime = given.switch()?;
            Ok(())
        },
    ),
];

/// The engines of fio that hand nothing to a local block device in a way that is modelled.
const OTHER_ENGINES: &[&str] = &[
    "vsync",
    "pvsync",
    "io_uring_cmd",
    "splice",
    "sg",
    "libzbc",
    "net",
    "netsplice",
    "cpuio",
    "rdma",
    "falloc",
    "ftruncate",
    "e4defrag",
    "rados",
    "rbd",
    "http",
    "gfapi",
    "gfapi_async",
    "libhdfs",
    "mtd",
    "pmemblk",
    "dev-dax",
    "filecreate",
    "filestat",
    "filedelete",
    "libpmem",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "libiscsi",
    "nbd",
    "libcufile",
    "dfs",
    "nfs",
    "exec",
    "xnvme",
    "solarisaio",
    "windowsaio",
];

fn ioengine(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let text = given.text()?;
    let name = text.as_str();
    let engines = [
        ("sync", Engine::Sync),
        ("psync", Engine::Psync),
        ("pvsync2", Engine::Pvsync2),
        ("libaio", Engine::Libaio),
        ("linuxaio", Engine::Libaio),
        ("io_uring", Engine::IoUring),
        ("posixaio", Engine::PosixAio),
        ("mmap", Engine::Mmap),
        ("null", Engine::Null),
    ];
    if OTHER_ENGINES.contains(&name) || name.starts_with("external:") {
        let names: Vec<_> = engines.iter().map(|&(name, _)| name).collect();
        let what = format!("ioengine={name} is not simulated: {} are", names.join(", "));
        return Err(text.mistake(what));
    }
    spec.submission.engine = value::word(text, &engines)?;
    Ok(())
}

/// A number of I/Os, where 0 has a meaning of its own.
fn batch(given: &Given<'_>, ios: &mut u32) -> Result<(), Mistake> {
    *ios = given.small(0, MAX_DEPTH)?;
    Ok(())
}

/// A rate of 0 is none.
fn rates(given: &Given<'_>, rates: &mut PerDirection<Option<u64>>) -> Result<(), Mistake> {
    let base = given.base;
    given.per_direction(rates, |text| {
        let rate = value::size(text, base, 0, u64::MAX)?;
        Ok((rate > 0).then_some(rate))
    })
}

/// Values for reads and writes, where trims have none.
fn for_two<T: Clone>(
    given: &Given<'_>,
    values: &mut [T; 2],
    read: impl Fn(&Text) -> Result<T, Mistake>,
) -> Result<(), Mistake> {
    if let Some(third) = given.text()?.split(',').get(2) {
        return Err(third.mistake("a third value: one for reads and writes is allowed"));
    }
    let [reads, writes] = values.clone();
    let mut three = [reads, writes.clone(), writes];
    given.per_direction(&mut three, read)?;
    let [reads, writes, _] = three;
    *values = [reads, writes];
    Ok(())
}

/// `4k/20:64k/5/3/0`: a size, percent, and maybe a class and a level.
fn priority_split(text: &Text, base: KbBase) -> Result<Vec<PrioritySplit>, Mistake> {
    let mut split: Vec<PrioritySplit> = vec![];
    for piece in text.split(':') {
        let parts = piece.split('/');
        let (size, part, priority) = match &parts[..] {
            [size, part] => (size, part, None),
            [size, part, of, level] => (size, part, Some((class(of)?, byte(level, 7)?))),
            _ => {
                let what = "a part is size/percent or size/percent/class/level, such as 4k/20";
                return Err(piece.mistake(what));
            }
        };
        let bytes = value::size(size, base, 1, u64::MAX)?;
        let percent = percent(part)?;
        let of_size = split.iter().filter(|other| other.bytes == bytes);
        let sum: u32 = of_size.map(|other| u32::from(other.percent)).sum();
        let sum = sum + u32::from(percent);
        if sum > 100 {
            let what =
                format!("the parts of {bytes} bytes add up to {sum} percent: 100 is allowed");
            return Err(piece.mistake(what));
        }
        split.push(PrioritySplit { bytes, percent, priority });
    }
    Ok(split)
}

/// A class that commands may have.
fn class(text: &Text) -> Result<u8, Mistake> {
    value::word(text, &[("1", 1), ("2", 2), ("3", 3)])
}

fn byte(text: &Text, max: u8) -> Result<u8, Mistake> {
    let number = value::small(text, 0, max.into())?;
    Ok(u8::try_from(number).expect("its range is that of the type"))
}
