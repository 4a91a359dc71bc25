//! Whether schedulers stand in the right order by a tenant's 99th percentile.

use std::collections::BTreeMap;

use paternoster::Nanos;
use paternoster_lab::replay::Figures;

use crate::report::{Predicted, middle};

/// What of two has to differ for their order to count, as a part of the smaller.
const APART: f64 = 0.2;

/// The 99th percentiles of tenants by what was recorded: predicted and measured, by scheduler.
#[derive(Default)]
pub(crate) struct Orders(BTreeMap<(String, String, usize), Vec<[u64; 2]>>);

impl Orders {
    /// Adds those of a pair.
    pub(crate) fn add(
        &mut self,
        scene: &str,
        recorded: &str,
        predicted: &Predicted,
        live: &[Vec<Figures>],
    ) {
        for (index, (figures, _)) in predicted.tenants.iter().enumerate() {
            let measured = middle(live, index);
            let of = [figures.p99, measured.p99].map(Nanos::as_nanos);
            let key = (scene.to_owned(), recorded.to_owned(), index);
            self.0.entry(key).or_default().push(of);
        }
    }

    /// How many pairs that are apart stand in the right order.
    pub(crate) fn summary(&self) -> String {
        let (mut right, mut all) = (0, 0);
        for schedulers in self.0.values() {
            for (at, [one, one_live]) in schedulers.iter().enumerate() {
                for [other, other_live] in &schedulers[at + 1..] {
                    #[allow(clippy::cast_precision_loss, reason = "seconds in ns, below 2^53")]
                    let ratio = *one_live as f64 / *other_live as f64;
                    if (ratio.max(1.0 / ratio) - 1.0) > APART {
                        all += 1;
                        right += u32::from((one < other) == (one_live < other_live));
                    }
                }
            }
        }
        format!(
            "order by p99 of two schedulers that differ by more than {:.0} %: right in {right} of \
             {all} (bar 90 %)",
            100.0 * APART
        )
    }
}
