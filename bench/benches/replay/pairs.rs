//! Under which scheduler each scene is recorded, and which other is predicted.

/// A scene, the scheduler of its recording, and another.
pub(crate) struct Pair {
    pub(crate) scene: &'static str,
    pub(crate) recorded: &'static str,
    pub(crate) other: &'static str,
}

/// All of them: each scheduler is recorded and predicted in several scenes, and three are predicted
/// from one recording in each, so that their order can be compared.
pub(crate) fn pairs() -> Vec<Pair> {
    let of_scenes = [
        ("demo", "none", ["wfq", "cfq", "bfq"]),
        ("demo", "wfq", ["none", "mq-deadline", "cfq"]),
        ("sizes", "bfq", ["wfq", "none", "cfq"]),
        ("bytes", "cfq", ["bfq", "wfq", "none"]),
        ("short", "mq-deadline", ["wfq", "cfq", "bfq"]),
        ("deadlines", "wfq", ["mq-deadline", "bfq", "none"]),
    ];
    let pairs = of_scenes
        .into_iter()
        .flat_map(|(scene, recorded, others)| others.map(|other| Pair { scene, recorded, other }));
    pairs.collect()
}
