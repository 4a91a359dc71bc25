//! By what operations on disks and sockets are carried out: by io_uring, by threads, or by that
//! which this machine permits.

use paternoster_disk::IoEngine;

use super::draft::{At, Draft};
use super::error::Problem;
use super::mistakes::Mistakes;
use super::scheduler::AUTO;

/// Who chooses the engine of the server's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// `auto`, also where nothing was written: io_uring where the machine permits it, else threads.
    #[default]
    Auto,
    /// It was named.
    Named(IoEngine),
}

impl EngineChoice {
    /// Returns what is written to choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Named(engine) => engine.name(),
        }
    }

    fn named(name: &str) -> Option<Self> {
        let named = IoEngine::ALL.into_iter().map(Self::Named);
        [Self::Auto].into_iter().chain(named).find(|choice| choice.name() == name)
    }
}

pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<EngineChoice> {
    draft.engine.check_or(EngineChoice::Auto, mistakes, |found: &At<String>| {
        match EngineChoice::named(&found.value) {
            Some(choice) => Ok(choice),
            None => found.refuse(Problem::UnknownEngine { found: found.value.clone() }),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn engine_is_chosen_by_its_name_and_any_other_is_refused_with_those_that_there_are() {
        let of = |line: &str| {
            let disk =
                "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";
            Config::from_toml(&format!("{line}\n{disk}"), Path::new("c.toml"))
        };
        for (line, choice) in [
            ("", EngineChoice::Auto),
            ("engine = \"auto\"", EngineChoice::Auto),
            ("engine = \"io_uring\"", EngineChoice::Named(IoEngine::IoUring)),
            ("engine = \"threads\"", EngineChoice::Named(IoEngine::Threads)),
        ] {
            assert_eq!(of(line).expect("allowed").engine, choice, "{line}");
        }
        let refused = of("engine = \"libaio\"").expect_err("there is none").to_string();
        let words = "engine = \"libaio\": \"auto\", \"io_uring\" or \"threads\" is allowed";
        assert!(refused.contains(words), "{refused}");
    }
}
