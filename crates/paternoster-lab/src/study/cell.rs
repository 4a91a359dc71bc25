//! A cell: one published figure, and ours beside it.

use serde::Serialize;

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The throughput of all groups, or of the device.
    Total,
    /// The throughput of a group.
    Group,
    /// What part of the total a group has.
    Share,
    /// By what a setting multiplies a total.
    Effect,
    /// The cost of something, as a multiple of something else's.
    Cost,
    /// A latency.
    Latency,
    /// How much of a CPU is used.
    Load,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Total,
        Self::Group,
        Self::Share,
        Self::Effect,
        Self::Cost,
        Self::Latency,
        Self::Load,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Group => "group",
            Self::Share => "share",
            Self::Effect => "effect",
            Self::Cost => "cost",
            Self::Latency => "latency",
            Self::Load => "load",
        }
    }

    /// The unit of errors of such figures.
    pub const fn error_unit(self) -> &'static str {
        match self {
            Self::Share | Self::Load => "points",
            Self::Latency => "µs",
            _ => "%",
        }
    }

    /// Whether reports say how much such figures move with each parameter.
    pub(super) const fn is_main(self) -> bool {
        matches!(self, Self::Total | Self::Latency | Self::Load)
    }
}

/// A published figure beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What it is, as `bsr slice_idle=8 NR=2 total`.
    pub id: String,
    /// What was published.
    pub seed: f64,
    /// What the laboratory says.
    pub ours: f64,
    /// The unit of both; `%` is percent of a total.
    pub unit: &'static str,
    /// Whether parameters were fitted to it.
    pub calibrated: bool,
    /// What it is of.
    pub kind: Kind,
    /// Whether it counts in the errors.
    pub counted: bool,
}

impl Cell {
    /// How far ours is off, in [`Kind::error_unit`]: in percent of what was published, or the
    /// difference of shares, latencies and loads.
    pub fn error(&self) -> f64 {
        match self.kind {
            Kind::Share | Kind::Latency | Kind::Load => self.ours - self.seed,
            _ => 100.0 * (self.ours / self.seed - 1.0),
        }
    }

    /// Whether it is a prediction that counts.
    pub fn is_predicted(&self) -> bool {
        self.counted && !self.calibrated
    }
}
