//! What crosses between connection threads and the thread of a disk, in words.

use paternoster_server::stat::ThreadsStat;

use super::units::ratio;

/// How many commands cross at a time, and how many wake-ups a command takes.
pub(super) fn in_words(of: &ThreadsStat) -> String {
    let ThreadsStat { threads, commands, batches, owner_woken, threads_woken } = *of;
    format!(
        "{threads} connection threads: {} commands a batch; {} wake-ups of the disk's thread a \
         command, {} of theirs",
        ratio(commands, batches, 1),
        ratio(owner_woken, commands, 2),
        ratio(threads_woken, commands, 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_told_for_each_command() {
        let mut of = ThreadsStat {
            threads: 2,
            commands: 1000,
            batches: 125,
            owner_woken: 130,
            threads_woken: 40,
        };
        let expected = "2 connection threads: 8.0 commands a batch; 0.13 wake-ups of the disk's \
                        thread a command, 0.04 of theirs";
        assert_eq!(in_words(&of), expected);
        of = ThreadsStat { threads: 2, ..ThreadsStat::default() };
        assert!(in_words(&of).contains(": - commands a batch; - wake-ups"), "{}", in_words(&of));
    }
}
