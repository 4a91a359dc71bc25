//! How many threads serve clients, and whether they hold bios back.

use super::draft::{At, Bounds, Draft, Key};
use super::error::Problem;
use super::mistakes::Mistakes;

const THREADS: Bounds = Bounds { key: "threads", min: 1, max: 64, unit: "threads" };

/// Connection threads where nothing is written: none, the owner of a disk serves its clients. No
/// machine has shown that more pay.
const DEFAULT: usize = 1;

pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<usize> {
    draft.threads.check_or(DEFAULT, mistakes, |found| {
        THREADS.check(found).map(|threads| usize::try_from(threads).expect("there are few"))
    })
}

/// Whether connection threads hold bios of a disk back in plugs.
pub(super) fn check_plug(plug: &Key<String>, mistakes: &mut Mistakes) -> Option<bool> {
    plug.check_or(true, mistakes, |found: &At<String>| match found.value.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => found.refuse(Problem::UnknownPlug { found: found.value.clone() }),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;

    fn config(plug: &str) -> Result<Config, crate::config::ConfigError> {
        let toml = format!(
            "threads = 1\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\nplug = {plug}\n\
             [exports.e]\ndisk = \"d\"\n"
        );
        Config::from_toml(&toml, Path::new("c.toml"))
    }

    #[test]
    fn plug_is_on_or_off_and_off_is_told_to_have_no_effect_where_nothing_is_plugged() {
        assert_eq!(config("\"on\"").expect("allowed").notices(), [""; 0]);
        let expected = "disk \"d\": plug has no effect with threads = 1, where nothing is plugged";
        assert_eq!(config("\"off\"").expect("allowed").notices(), [expected]);
        let refused = config("\"yes\"").expect_err("neither").to_string();
        assert!(refused.contains("plug = \"yes\": \"on\" or \"off\" is allowed"), "{refused}");
    }

    #[test]
    fn owners_serve_clients_themselves_on_every_machine_unless_told() {
        let toml = "[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n[exports.e]\ndisk = \"d\"\n";
        let config = Config::from_toml(toml, Path::new("c.toml")).expect("allowed");
        assert_eq!((config.threads, config.connection_threads()), (1, 0));
    }
}
