//! Which of many comparisons tell their two apart: with each that is looked at, one more may differ
//! by chance, so that all are judged together (Holm 1979).

/// How often any comparison may be told apart where none differs.
const ERROR: f64 = 0.05;

/// Whether each tells its two apart, by how likely its difference is where there is none; as many
/// were planned, of which some may have come to nothing.
///
/// The least `p` is held against 5 % of all that were planned, the next against 5 % of the others,
/// and so on to the first that fails.
pub fn told_apart(p: &[f64], planned: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&one, &other| p[one].total_cmp(&p[other]));
    let mut told = vec![false; p.len()];
    let others = (1..=planned.max(p.len())).rev();
    for (index, others) in order.into_iter().zip(others) {
        #[allow(clippy::cast_precision_loss, reason = "there are far fewer than 2^53")]
        let allowed = ERROR / others as f64;
        // Whatever is no number tells nothing apart.
        let is_told = p[index] <= allowed;
        if !is_told {
            break;
        }
        told[index] = true;
    }
    told
}

#[cfg(test)]
mod tests {
    use paternoster_model::{Draws, Who};

    use super::*;
    use crate::compare::interval::p as p_of;

    /// Of four: 0.05/4 = 0.0125, then 0.0167, then 0.025, where 0.03 fails, and so does what is
    /// behind it, though 0.04 is below 0.05/1.
    #[test]
    fn each_is_held_against_what_is_left() {
        assert_eq!(told_apart(&[0.04, 0.01, 0.03, 0.015], 4), [false, true, false, true]);
        assert_eq!(told_apart(&[0.01], 5), [true], "0.05/5 is just enough");
        assert_eq!(told_apart(&[0.011], 5), [false]);
        assert_eq!(told_apart(&[], 0), [false; 0]);
    }

    /// Twelve equal pairs: 5 % of 400 repeats, which are 20, claim a difference if all is right,
    /// with a deviation of 4.4. The test allows two deviations more.
    #[test]
    fn of_twelve_equal_pairs_one_is_rarely_told_apart() {
        let mut draws = Draws::new(3, Who::Tenants, 0);
        let mut claimed = 0;
        for _ in 0..400 {
            let p = [0; 12].map(|_| {
                let normal = |_| (0..12).map(|_| draws.unit()).sum::<f64>() - 6.0;
                let differences = [0; 10].map(normal);
                let mean = differences.iter().sum::<f64>() / 10.0;
                p_of(mean, differences.iter().map(|it| (it - mean).powi(2)).sum(), 10.0)
            });
            claimed += u32::from(told_apart(&p, 12).contains(&true));
        }
        assert!(claimed <= 29, "{claimed} of 400");
    }
}
