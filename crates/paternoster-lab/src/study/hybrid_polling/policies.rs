//! The policies that are compared, by name, and the rows of the post.

use paternoster::Nanos;
use paternoster::poll::{AutoTunables, Completions, OfMean, PollPolicy, Ppm};
use serde::Deserialize;

/// A policy, and whether the device's own times of completion are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) policy: PollPolicy,
    pub(super) completions: Completions,
}

const fn of_mean(part: u32, use_min: bool) -> PollPolicy {
    PollPolicy::OfMean(OfMean { part: Ppm(part), use_min, adjust: Nanos::ZERO })
}

const fn noticed(name: &'static str, policy: PollPolicy) -> Way {
    Way { name, policy, completions: Completions::Noticed }
}

const AUTO: PollPolicy = PollPolicy::Auto(AutoTunables::DEFAULT);

/// Those that every device is waited for with. No queue has interrupts but under `interrupt`.
pub(super) const WAYS: [Way; 7] = [
    noticed("classic", PollPolicy::Classic),
    noticed("mean/2", of_mean(500_000, false)),
    noticed("0.6 mean", of_mean(600_000, false)),
    noticed("3/4 mean", of_mean(750_000, false)),
    noticed("io_uring", PollPolicy::IoUring),
    noticed("auto", AUTO),
    noticed("interrupt", PollPolicy::Interrupt),
];

/// What is shown on the post's device besides.
pub(super) const MORE: [Way; 3] = [
    Way { name: "auto, stamped", policy: AUTO, completions: Completions::Stamped },
    noticed("min", of_mean(500_000, true)),
    Way { name: "min, stamped", policy: of_mean(500_000, true), completions: Completions::Stamped },
];

/// A row of the post's table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PostRow {
    delay_us: i64,
    use_min: String,
    adjust_ns: u64,
    pub(super) latency_us: f64,
    pub(super) load_percent: f64,
    fitted: String,
}

impl PostRow {
    /// Its name in reports.
    pub(super) fn name(&self) -> String {
        let Self { delay_us, adjust_ns, .. } = self;
        let min = if self.uses_min() { format!(" min adjust={adjust_ns}") } else { String::new() };
        format!("io_poll_delay={delay_us}{min}")
    }

    pub(super) fn is_fitted(&self) -> bool {
        self.fitted == "yes"
    }

    fn uses_min(&self) -> bool {
        self.use_min == "yes"
    }

    /// The post's queue had interrupts: its estimates did not run away.
    pub(super) fn way(&self) -> Way {
        let adjust = Nanos::new(self.adjust_ns);
        let policy = PollPolicy::hybrid(self.delay_us, self.uses_min(), adjust);
        let policy = policy.expect("the post's delays are allowed");
        Way { name: "post", policy, completions: Completions::Stamped }
    }
}

/// The rows of the post.
///
/// # Panics
///
/// If the table that comes with the laboratory is none.
pub(super) fn post_rows() -> Vec<PostRow> {
    let text = include_str!("../../../posts/hybrid-polling.csv");
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("a table of a post")).collect()
}
