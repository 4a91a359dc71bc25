//! The machine around the block layer: its cores, what I/O costs them behind each scheduler, its
//! clock, and its page cache.
//!
//! ```text
//!   ten-cores      a file that comes with the laboratory, hosts/ten-cores.toml
//!   host.toml      a file of parameters
//! ```
//!
//! What a device was measured to take includes what the machine took that it was measured on. A
//! device's file says for which host its times hold.

mod from_toml;

use std::path::Path;

use paternoster::{Hz, Nanos, SchedulerKind};
use thiserror::Error;

use crate::sim::{Costs, Setup};
use crate::threads::PageCacheParameters;
use paternoster_model::Model;
use paternoster_model::parameter_file::{ParameterError, Spot};

pub use from_toml::CORES;

/// The files that come with the laboratory, by name.
const HOSTS: [(&str, &str); 3] = [
    ("free", include_str!("../../hosts/free.toml")),
    ("notebook-2011", include_str!("../../hosts/notebook-2011.toml")),
    ("ten-cores", include_str!("../../hosts/ten-cores.toml")),
];

/// A machine: its processors, the clock of its kernel, and its page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its cores.
    pub cores: u32,
    /// Ticks a second of its kernel's clock.
    pub hz: Hz,
    /// What an I/O costs without a scheduler.
    pub io: IoCosts,
    /// What each scheduler adds, in the order of [`SchedulerKind::ALL`].
    pub schedulers: [SchedulerCosts; SchedulerKind::ALL.len()],
    /// Its page cache, and the journal of its file system.
    pub page_cache: PageCacheParameters,
}

/// What an I/O costs without a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCosts {
    /// Time of the core to submit it.
    pub submit: Nanos,
    /// Time of the core to complete it.
    pub complete: Nanos,
    /// Further time of the core to wake its task, if that waits.
    pub wake: Nanos,
    /// By how many percent these vary around their mean, at most 100.
    pub varies_percent: u32,
}

/// What a scheduler adds to the costs of an I/O, half of it when it comes and half when it
/// completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerCosts {
    /// Time of the core without the lock.
    pub unlocked: Nanos,
    /// How long the lock is held.
    pub hold: Nanos,
    /// The same where the lock was waited for.
    pub hold_after_wait: Nanos,
    /// How much longer it is held on a device where the scheduler merges queues: of BFQ, which
    /// does so on some.
    pub queue_merging: Nanos,
}

/// The error of a host that cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Neither a name nor a file.
    #[error("there is no host {name:?} and no such file; hosts are: {}", host_names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Its file is wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
}

/// The text of the file that describes the host of that name, or of that file.
pub fn host_text(name: &str) -> Result<String, HostError> {
    if let Some(text) = host_file(name) {
        return Ok((*text).to_owned());
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(HostError::Unknown { name: name.to_owned() });
    }
    let text = paternoster_model::read_input_text(path)
        .map_err(|error| ParameterError { at: Spot::whole(path), problem: error.into() })?;
    Ok(text)
}

impl Host {
    /// The host of that name, or of that file.
    pub fn open(name: &str) -> Result<Self, HostError> {
        Ok(Self::from_toml(Path::new(name), &host_text(name)?)?)
    }

    /// Has a simulation over that device run on this host.
    pub fn set_up(&self, setup: &mut Setup, device: &dyn Model) {
        setup.cores = self.cores;
        setup.hz = self.hz;
        let scheduler = self.scheduler(setup.scheduler);
        let IoCosts { submit, complete, wake, varies_percent } = self.io;
        let half = Nanos::new(scheduler.unlocked.as_nanos() / 2);
        let merges = match setup.set_word("merging").as_deref() {
            Some("never") => false,
            Some("everywhere") => true,
            _ => device.rotational(),
        };
        let merging = if merges { scheduler.queue_merging } else { Nanos::ZERO };
        setup.costs = Costs {
            submit: submit + half,
            complete: complete + half,
            wake,
            varies_percent,
            hold: scheduler.hold + merging,
            hold_after_wait: scheduler.hold_after_wait + merging,
        };
    }

    /// What that scheduler adds.
    fn scheduler(&self, kind: SchedulerKind) -> SchedulerCosts {
        let index = SchedulerKind::ALL.iter().position(|other| *other == kind);
        self.schedulers[index.expect("all of them are listed")]
    }
}

/// The file of that name that comes with the laboratory.
pub(crate) fn host_file(name: &str) -> Option<&'static str> {
    HOSTS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// The names of the hosts that come with the laboratory.
pub fn host_names() -> Vec<&'static str> {
    HOSTS.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use paternoster::{Sector, SectorCount};

    use super::*;
    use crate::JournalPlace;
    use crate::cache::Throttling;
    use crate::threads::WritebackGroup;
    use paternoster_model::open_device;

    fn costs(host: &str, scheduler: SchedulerKind, device: &str) -> Costs {
        let host = Host::open(host).unwrap_or_else(|error| panic!("{host}: {error}"));
        let mut setup = Setup::new(scheduler);
        host.set_up(&mut setup, open_device(device, 1).expect("it comes along").as_ref());
        setup.costs
    }

    /// `free` is what a simulation has without a host.
    #[test]
    fn every_host_that_comes_along_can_be_opened_and_one_costs_nothing() {
        for name in host_names() {
            Host::open(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for scheduler in SchedulerKind::ALL {
            assert!(costs("free", scheduler, "hdd-7200").are_none(), "{scheduler}");
        }
        let free = Host::open("free").expect("it comes along");
        assert_eq!(free.page_cache, PageCacheParameters::default());
        assert_eq!(free.hz, Setup::new(SchedulerKind::None).hz);
    }

    #[test]
    fn page_cache_of_an_old_kernel_and_a_journal_can_be_said() {
        let text = include_str!("../../hosts/free.toml")
            .replace("\"sleeps\"\ngroup = \"root\"", "\"writes-back\"\ngroup = \"owner\"")
            .replace("value = 30", "value = 0.5")
            .replace("# [page", "[page")
            .replace("# start", "start")
            .replace("# sectors", "sectors");
        let host = Host::from_toml(Path::new("old.toml"), &text).expect("a good file").page_cache;
        assert_eq!(host.throttling, Throttling::WritesBack);
        assert_eq!(host.writeback_group, WritebackGroup::Owner);
        assert_eq!(host.writeback.expire, Nanos::from_millis(500));
        let place = JournalPlace { start: Sector(2048), sectors: SectorCount(262_144) };
        assert_eq!(host.journal, Some(place));
    }

    #[test]
    fn bfq_holds_its_lock_longer_where_it_merges_queues() {
        let [disk, solid_state] = ["hdd-7200", "nvme-980pro"]
            .map(|device| costs("notebook-2011", SchedulerKind::Bfq, device).hold);
        assert_eq!(solid_state, Nanos::new(1900));
        assert_eq!(disk, Nanos::new(2100));
    }

    #[test]
    fn mistakes_are_named_by_file_line_and_column() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("host.toml");
        std::fs::write(&path, "kind = \"host\"\nname = \"h\"\ncores = 0\n").expect("a file");
        let error = Host::open(path.to_str().expect("a name in UTF-8")).expect_err("it is wrong");
        let text = error.to_string();
        assert!(text.contains("host.toml:3:9: `cores` is 0"), "{text}");
        let unknown = Host::open("mainframe").expect_err("there is none").to_string();
        assert!(unknown.contains("hosts are: free, notebook-2011, ten-cores"), "{unknown}");
    }
}
