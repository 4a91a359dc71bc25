//! The output of `ctl weight`: the weights in force, a line a disk.

use std::fmt::Write as _;

use paternoster_server::ctl::WeightAnswer;

/// The group's weights on each disk.
pub(super) fn show(group: &str, answer: &WeightAnswer) -> String {
    let mut text = String::new();
    for disk in &answer.disks {
        let of_disk = |is: bool| if is { " (of this disk)" } else { "" };
        let _ = writeln!(
            text,
            "disk {}: {group} has weight {}{}, leaf weight {}{}{}",
            disk.disk,
            disk.weight,
            of_disk(disk.weight_of_disk),
            disk.leaf_weight,
            of_disk(disk.leaf_weight_of_disk),
            if disk.weights_apply { "" } else { "; no effect under the disk's scheduler" },
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use paternoster_server::ctl::WeightsInForce;

    use super::*;

    #[test]
    fn disk_is_a_line_that_says_whose_weight_holds() {
        let own = WeightsInForce {
            disk: "a".to_owned(),
            weight: 300,
            leaf_weight: 50,
            weights_apply: true,
            ..WeightsInForce::default()
        };
        let of_disk = WeightsInForce {
            disk: "b".to_owned(),
            weight: 7,
            weight_of_disk: true,
            weights_apply: false,
            ..own.clone()
        };
        let expected = "\
disk a: /g has weight 300, leaf weight 50
disk b: /g has weight 7 (of this disk), leaf weight 50; no effect under the disk's scheduler
";
        assert_eq!(show("/g", &WeightAnswer::new(vec![own, of_disk])), expected);
    }
}
