//! Whether a context waits for replies, or has a timer.
//!
//! Over the requests that claim a reply: x is how long the request took whose reply that is, y the
//! time from the arrival of that one to its own. Who waits asks later by what the other took: the
//! slope of y over x is 1. A timer does not care: it is 0. Who asks at random times looks like one
//! who waits and thinks at random.
//!
//! ```text
//!   y │            ·  ○       ○ the medians of the third with the shortest x, and of that with the
//!     │     ·   · ·             longest: thoughts have long tails, which would carry off a line by
//!     │  ○ ·  ·                 least squares
//!     └───────────────── x
//! ```

use paternoster_intake::Request;
use paternoster_scene::statistics::median;

use super::claims::Due;

/// Contexts of fewer requests than that tell nothing: they count as ones that wait.
const ENOUGH: usize = 200;
const CLOSED_FROM: f64 = 0.7;
const OPEN_BELOW: f64 = 0.3;

/// How a context comes to its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It waits for replies.
    Closed,
    /// It has a timer.
    Open,
    /// It cannot be told.
    Between,
}

impl Nature {
    pub(super) fn of(requests: &[&Request], due: &[Due]) -> Self {
        if requests.len() < ENOUGH {
            return Self::Closed;
        }
        match slope(requests, due) {
            Some(slope) if slope < OPEN_BELOW => Self::Open,
            Some(slope) if slope <= CLOSED_FROM => Self::Between,
            // Where all take the same time, there is no slope.
            _ => Self::Closed,
        }
    }
}

/// The slope from the third of the points with the least x to that with the greatest; none where
/// their x are the same.
#[allow(clippy::cast_precision_loss, reason = "a slope needs no more than 53 bits")]
fn slope(requests: &[&Request], due: &[Due]) -> Option<f64> {
    let mut points = Vec::new();
    for (request, due) in requests.iter().zip(due) {
        let &Due::Reply { of, .. } = due else { continue };
        let claimed = requests[of as usize];
        let latency = claimed.completed?.saturating_sub(claimed.arrived);
        points.push((latency, request.arrived - claimed.arrived));
    }
    points.sort_unstable();
    let third = points.len().div_ceil(3);
    let medians = |points: &[(u64, u64)]| {
        let x = median(points.iter().map(|point| point.0 as f64))?;
        Some((x, median(points.iter().map(|point| point.1 as f64))?))
    };
    let (x_low, y_low) = medians(points.get(..third)?)?;
    let (x_high, y_high) = medians(&points[points.len() - third..])?;
    (x_high > x_low).then(|| (y_high - y_low) / (x_high - x_low))
}
