//! How many threads serve clients, and whether they hold bios back.

use std::thread::available_parallelism;

use super::draft::{At, Bounds, Draft, Key};
use super::error::Problem;
use super::mistakes::Mistakes;

const THREADS: Bounds = Bounds { key: "threads", min: 1, max: 64, unit: "threads" };

/// So few processors have none to spare for connection threads.
const FEW_PROCESSORS: usize = 4;

/// Connection threads where nothing is written, at most.
const DEFAULT_MAX: usize = 4;

/// Connection threads where nothing is written: half of the processors, up to four; one below four
/// processors, where the owner of a disk serves its clients itself.
pub(super) fn default_threads() -> usize {
    default_for(available_parallelism().map_or(1, usize::from))
}

fn default_for(processors: usize) -> usize {
    if processors < FEW_PROCESSORS { 1 } else { (processors / 2).min(DEFAULT_MAX) }
}

pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<usize> {
    draft.threads.check_or(default_threads(), mistakes, |found| {
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

    use super::*;
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
    fn owners_serve_clients_themselves_below_four_processors() {
        let defaults = [1, 2, 3, 4, 6, 8, 64].map(default_for);
        assert_eq!(defaults, [1, 1, 1, 2, 3, 4, 4]);
    }
}
