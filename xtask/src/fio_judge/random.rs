//! A random job file over the options that the laboratory simulates.

use fastrand::Rng;

/// A job file, and what is to be equal of it.
pub(super) struct Judged {
    pub(super) text: String,
    pub(super) what: What,
}

/// What does not depend on the numbers that are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// All: nothing is drawn.
    Sequence,
    /// Directions, sizes, positions as a whole; how many there are where `same_count`.
    Whole {
        /// One size for all, so that the number of I/Os is not drawn.
        same_count: bool,
        /// Each block is visited once in a pass, so that the number of positions is not drawn.
        covers: bool,
        /// Bytes end it: not a number of I/Os of drawn sizes, and no part of a block stays
        /// unvisited because the I/O that visited the rest was drawn to end inside it.
        same_bytes: bool,
    },
    /// The sizes of each direction only. fio's map of visited blocks has one unit for reads and
    /// writes of different least sizes, is full too early, and ends the job.
    Sizes,
    /// How many I/Os there are in its time, of each direction where that is not drawn.
    Pace { each_direction: bool },
}

/// The file of that number; with rates and pauses among them only if `with_clock`.
pub(super) fn job(seed: u64, index: u32, with_clock: bool) -> Judged {
    let mut rng = Rng::with_seed(seed.wrapping_mul(1 << 32).wrapping_add(index.into()));
    let rng = &mut rng;
    let mut job = Lines(vec![]);
    let what = match rng.u8(..if with_clock { 10 } else { 9 }) {
        0..4 => sequential(rng, &mut job),
        4..9 => random(rng, &mut job),
        _ => paced(rng, &mut job),
    };
    let lines = job.0.join("\n");
    Judged { text: format!("[j]\nioengine=null\nwrite_iolog=io.log\n{lines}\n"), what }
}

struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }
}

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

/// What ends it: loops, `io_size`, `number_ios`.
fn ends(rng: &mut Rng, job: &mut Lines, size: u64) {
    if rng.u8(..3) == 0 {
        job.add(format!("loops={}", rng.u8(2..5)));
    }
    if rng.u8(..3) == 0 {
        job.add(format!("io_size={}k", rng.u64(1..=3 * size)));
    }
    if rng.u8(..3) == 0 {
        job.add(format!("number_ios={}", rng.u64(1..size / 2)));
    }
}

/// Several files, and which of them is next.
fn files(rng: &mut Rng, job: &mut Lines) {
    if rng.u8(..4) == 0 {
        job.add(format!("nrfiles={}", rng.u8(2..4)));
        job.add(format!(
            "file_service_type={}",
            one(rng, &["roundrobin", "roundrobin:3", "sequential"])
        ));
    }
}

/// In one direction, blocks of one size: nothing is drawn.
fn sequential(rng: &mut Rng, job: &mut Lines) -> What {
    let rw = one(rng, &["read", "write", "trim", "trimwrite"]);
    let modifier = match rng.u8(..4) {
        0 => format!(":{}k", rng.u8(1..20)),
        // With a step of -1k, fio 3.33 does not end a job of trims and writes.
        1 => format!(":-{}k", rng.u8(2..20)),
        _ => String::new(),
    };
    job.add(format!("rw={rw}{modifier}"));
    let size = rng.u64(40..200);
    job.add(format!("size={size}{}", one(rng, &["k", "ki", "Ki", "kb"])));
    // Back from the start is back from the end, behind which a larger block would lie.
    let bs = if modifier.contains('-') { "1k" } else { one(rng, &["1k", "2k", "4k", "6k", "12k"]) };
    job.add(format!("bs={bs}"));
    // With an offset, fio 3.33 takes the first step back from a file without it.
    if rng.u8(..4) == 0 && !modifier.contains('-') {
        job.add(format!("offset={}k", rng.u8(1..100)));
    }
    // fio 3.33 multiplies `number_ios` of these by `loops` twice.
    if rw != "trimwrite" {
        ends(rng, job, size);
    }
    files(rng, job);
    for sync in ["fsync", "fdatasync"] {
        if rng.u8(..5) == 0 {
            job.add(format!("{sync}={}", rng.u8(1..6)));
        }
    }
    // fio 3.33 syncs twice at the end of a job that ends before its last loop, and files that it
    // has not written yet.
    let ends_early = ["loops=", "nrfiles="];
    let ends_early =
        job.0.iter().any(|line| ends_early.iter().any(|start| line.starts_with(start)));
    for sync in ["end_fsync=1", "fsync_on_close=1"] {
        if rng.u8(..5) == 0 && !ends_early {
            job.add(sync);
        }
    }
    What::Sequence
}

/// Something is drawn: positions, directions, sizes.
fn random(rng: &mut Rng, job: &mut Lines) -> What {
    let rw = one(rng, &["randread", "randwrite", "randtrim", "randrw", "rw", "read", "write"]);
    let (is_random, is_mix) = (rw.starts_with("rand"), rw.contains("rw"));
    job.add(format!("rw={rw}"));
    if is_mix {
        job.add(format!("rwmixread={}", rng.u8(0..=10) * 10));
    }
    let size = rng.u64(4..12) * 1024;
    job.add(format!("size={size}k"));
    // Sequential I/O of one size in one direction is above.
    let (sizes, by_direction) = sizes(rng, is_mix, is_random || is_mix);
    let is_fixed = sizes.iter().all(|line| line.starts_with("bs="));
    for line in sizes {
        job.add(line);
    }
    let is_again = is_random && rng.bool();
    if is_again {
        job.add("norandommap");
        if rng.u8(..3) == 0 {
            let zones =
                ["zoned:60/10:30/20:10/70", "zoned:50/20:50", "zoned:70/10:30/", "zipf:1.1"];
            job.add(format!("random_distribution={}", one(rng, &zones)));
        }
    }
    if rng.u8(..3) == 0 {
        job.add("randrepeat=0");
    }
    ends(rng, job, size);
    if is_mix && by_direction && is_random && !is_again {
        return What::Sizes;
    }
    let said = |option: &str| job.0.iter().any(|line| line.starts_with(option));
    let cuts_blocks = said("bs_unaligned") || said("bsrange");
    // A pass ends when one direction has reached the end of the file.
    let is_early = is_mix && !is_random;
    What::Whole {
        same_count: is_fixed && !by_direction && (is_random || !is_mix),
        covers: is_random && !is_again && is_fixed,
        same_bytes: !(said("number_ios") || is_early || cuts_blocks && is_random && !is_again),
    }
}

/// Lines that say how large I/Os are, and whether directions differ.
fn sizes(rng: &mut Rng, is_mix: bool, may_be_fixed: bool) -> (Vec<String>, bool) {
    let ranges = ["4k-16k", "4k-9k", "1k-5k", "3k-10k"];
    let splits = [
        "4k/50:16k/50",
        "1k/10:4k/60:64k/30",
        "4k/50:6k/50",
        "3k/30:10k/30:17k/40",
        "512/20:1k/20:8k",
        "8k/",
    ];
    match rng.u8(if may_be_fixed { 0 } else { 2 }..7) {
        0 => (vec![format!("bs={}", one(rng, &["1k", "4k", "4Ki", "8k"]))], false),
        1 if is_mix => (vec![format!("bs={}", one(rng, &["4k,16k", "8k,64k", "16k,4k"]))], true),
        1 => (vec!["bs=4k,4k".to_owned()], false),
        2 => (vec![format!("bsrange={}", one(rng, &ranges))], false),
        3 => (vec![format!("bsrange={}", one(rng, &ranges)), "bs_unaligned=1".to_owned()], false),
        4 => (vec![format!("bssplit={}", one(rng, &splits)), "bs=2k".to_owned()], false),
        5 => (vec!["bs=2k".to_owned(), format!("bssplit = {}", one(rng, &splits))], false),
        _ => (vec![format!("bssplit={}", one(rng, &splits)), "bs_unaligned".to_owned()], false),
    }
}

/// A rate, or pauses.
fn paced(rng: &mut Rng, job: &mut Lines) -> What {
    let rw = one(rng, &["read", "randwrite", "randrw", "rw"]);
    job.add(format!("rw={rw}"));
    job.add("size=64m");
    let rate = rng.u32(50..150);
    match rng.u8(..4) {
        0 => job.add(format!("rate={}k", 4 * rate)),
        1 if rw.contains("rw") => {
            job.add(format!("rate_iops={rate},{}", rng.u32(50..150)));
            job.add(format!("rwmixread={}", one(rng, &["20", "50", "80"])));
        }
        _ => job.add(format!("rate_iops={rate}")),
    }
    let pauses = rng.u8(..3) == 0;
    if pauses {
        let pause = rng.u32(3..60);
        job.add(format!("thinktime={pause}ms\nthinktime_blocks={}", rng.u8(1..8)));
        if !rw.contains("rw") && rng.bool() {
            job.add("rate_ignore_thinktime=1");
        }
    }
    job.add("runtime=1\ntime_based");
    // Behind a pause both directions are due, and one is drawn.
    What::Pace { each_direction: !(pauses && rw.contains("rw")) }
}
