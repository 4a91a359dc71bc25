//! What becomes of requests that wait when the server is stopped.

use super::draft::{At, Draft};
use super::error::Problem;
use super::mistakes::Mistakes;

/// What becomes of requests that wait when the server is stopped. What is in a device finishes and
/// is answered, whichever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtStop {
    /// `close`: they get no answer. Clients that reconnect send them again, to the next server.
    #[default]
    Close,
    /// `refuse`: they get ESHUTDOWN.
    Refuse,
}

impl AtStop {
    /// Returns what is written to choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Refuse => "refuse",
        }
    }
}

pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<AtStop> {
    draft.at_stop.check_or(AtStop::default(), mistakes, |found: &At<String>| {
        let choices = [AtStop::Close, AtStop::Refuse];
        match choices.into_iter().find(|choice| choice.name() == found.value) {
            Some(choice) => Ok(choice),
            None => found.refuse(Problem::UnknownAtStop { found: found.value.clone() }),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn waiting_requests_are_closed_unless_the_file_says_refuse_and_other_words_are_refused() {
        let of = |line: &str| {
            let disk =
                "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";
            Config::from_toml(&format!("{line}\n{disk}"), Path::new("c.toml"))
        };
        for (line, choice) in [
            ("", AtStop::Close),
            ("at_stop = \"close\"", AtStop::Close),
            ("at_stop = \"refuse\"", AtStop::Refuse),
        ] {
            assert_eq!(of(line).expect("allowed").at_stop, choice, "{line}");
        }
        let refused = of("at_stop = \"wait\"").expect_err("there is none").to_string();
        let words = "c.toml:1: at_stop = \"wait\": \"close\" or \"refuse\" is allowed";
        assert!(refused.contains(words), "{refused}");
    }
}
