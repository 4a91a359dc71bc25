//! What real NBD clients get of a disk that is shared, and how far off that is.

use std::fmt;

use paternoster_load::{STARVED, judges_figures};
use paternoster_scene::TenantOutcome;

/// The least part of the time with a request waiting of a tenant that asks all the time.
pub(crate) const DEMAND: f64 = 0.98;

/// A file of two tenants of `d`, a modelled disk of four servers, each with a half of it; `/b` is
/// also on `e`, a disk in memory, by its group `/b/c`. `d` and `e` are further lines of the disks,
/// `group` is a table.
pub(crate) fn two_tenants(d: &str, e: &str, group: &str) -> String {
    format!(
        r#"
[disks.d]
backend = "modelled"
size = "128M"
servers = 4
{d}
[disks.e]
backend = "memory"
size = "1M"
{e}
{group}
[exports.a]
disk = "d"
size = "64M"
[exports.b]
disk = "d"
offset = "64M"
[exports.c]
disk = "e"
group = "/b/c"
"#
    )
}

/// Replies, as a number to make parts of.
pub(crate) fn replies<'a>(tenants: impl IntoIterator<Item = &'a TenantOutcome>) -> f64 {
    #[allow(clippy::cast_precision_loss)] // some thousands
    tenants.into_iter().map(|got| got.requests as f64).sum()
}

/// What somebody got of what there was, and should have got; in parts of 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) entitled: f64,
    pub(crate) got: f64,
}

impl Share {
    /// Returns whether it is within `tolerance`, which is in parts of what it should be. Where
    /// safety alone is judged, whether neither it nor all others together are starved.
    pub(crate) fn holds(self, tolerance: f64) -> bool {
        if judges_figures() {
            return self.error().abs() <= tolerance;
        }
        let others = (1.0 - self.got, 1.0 - self.entitled);
        self.got >= STARVED * self.entitled && others.0 >= STARVED * others.1
    }

    fn error(self) -> f64 {
        self.got / self.entitled - 1.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entitled, got } = self;
        let [entitled, got, error] = [*entitled, *got, self.error()].map(|part| part * 100.0);
        write!(f, "entitled {entitled:5.2} %, got {got:5.2} % ({error:+.1} %)")
    }
}
