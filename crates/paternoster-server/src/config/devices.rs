//! What is to be said of the devices that disks are on: that two disks are on one, so that nothing
//! is shared by weight between them, and that a virtual one claims to rotate and is not believed.

use std::collections::{BTreeMap, BTreeSet};

use super::{BackendConfig, DiskConfig};

/// Returns the devices that the files of a disk are on, and none of them if they are unknown; of a
/// pool on other servers what it says that these have in common; none for another back end.
pub(crate) fn of(disk: &DiskConfig) -> Option<BTreeSet<String>> {
    let mut all = disk.keys.device.clone().map(|device| BTreeSet::from([device]));
    let volumes = disk.volumes.iter().map(|volume| &volume.backend);
    for on in volumes.chain(disk.volumes.is_empty().then_some(&disk.backend)).filter_map(of_volume)
    {
        all.get_or_insert_default().extend(on);
    }
    all
}

fn of_volume(backend: &BackendConfig) -> Option<BTreeSet<String>> {
    match backend {
        BackendConfig::File { path, .. } => Some(paternoster_disk::devices_of(path)),
        BackendConfig::Memory { .. }
        | BackendConfig::Modelled { .. }
        | BackendConfig::Device { .. }
        | BackendConfig::Nbd { .. }
        | BackendConfig::NbdPool => None,
    }
}

/// The device of a pool: that of its first volume whose device is known.
#[derive(Default)]
pub(crate) struct OneDevice(BTreeSet<String>);

impl OneDevice {
    /// That of a pool which is on those devices; empty if they are unknown.
    pub(crate) fn of(pool: BTreeSet<String>) -> Self {
        Self(pool)
    }

    /// A volume is on those devices, of which there are none if they are unknown. Where none is the
    /// pool's: what it is on, and what the pool is on.
    pub(crate) fn add(&mut self, on: BTreeSet<String>) -> Result<(), [String; 2]> {
        if self.0.is_empty() {
            self.0 = on;
            return Ok(());
        }
        if on.is_empty() || !on.is_disjoint(&self.0) {
            return Ok(());
        }
        Err([on, self.0.clone()].map(|devices| list(devices.into_iter().collect())))
    }
}

/// Returns a sentence about the first volume of a pool that is on another device.
pub(crate) fn apart(pool: &DiskConfig) -> Option<String> {
    let mut device = OneDevice::default();
    pool.volumes.iter().find_map(|volume| {
        let on = of_volume(&volume.backend).unwrap_or_default();
        let [on, of_pool] = device.add(on).err()?;
        Some(apart_from(&pool.name, &volume.name, &on, &of_pool))
    })
}

/// That a volume is on another device than its pool.
pub(crate) fn apart_from(pool: &str, volume: &str, on: &str, of_pool: &str) -> String {
    format!(
        "pool {pool:?}: volume {volume:?} is on {on}, and the pool is on {of_pool}: one depth and \
         one share are used for devices that differ"
    )
}

/// Returns a sentence about a disk that claims to rotate and is not believed, where nothing else is
/// set.
pub(crate) fn claims_to_rotate(disk: &DiskConfig) -> Option<String> {
    let BackendConfig::File { path, .. } = &disk.backend else { return None };
    let seen = std::fs::metadata(path).ok().filter(|_| disk.keys.rotational.is_none())?;
    let device = paternoster_disk::is_rotational(path, &seen).disbelieved?;
    Some(claim(disk.what(), &disk.name, &device))
}

fn claim(what: &str, disk: &str, device: &str) -> String {
    format!(
        "{what} {disk:?}: {device} is a virtio device and says that it rotates, as virtio says of \
         most disks: that is not believed; write rotational = true below [{what}s.{disk}] if it \
         does rotate, or rotational = false to silence this"
    )
}

/// Returns a sentence for each disk or pool, by its place, that has a device in common with another
/// one: of all that are on one device, or that another one of them links (a disk on two devices,
/// and each of those). Of each comes what it is, its name, and its devices.
pub(crate) fn shared(
    disks: impl Iterator<Item = (&'static str, String, BTreeSet<String>)>,
) -> BTreeMap<usize, String> {
    let (names, devices): (Vec<_>, Vec<_>) =
        disks.map(|(what, name, devices)| ((what, name), devices)).unzip();
    let mut together: Vec<(BTreeSet<usize>, BTreeSet<&str>)> = Vec::new();
    for (disk, on) in devices.iter().enumerate() {
        let on: BTreeSet<_> = on.iter().map(String::as_str).collect();
        let meets = |(_, others): &(_, BTreeSet<&str>)| !others.is_disjoint(&on);
        let (met, others): (Vec<_>, Vec<_>) = together.into_iter().partition(meets);
        let (mut disks, mut all) = (BTreeSet::from([disk]), on);
        for (more, beside) in met {
            disks.extend(more);
            all.extend(beside);
        }
        together = others;
        together.push((disks, all));
    }
    let several = together.into_iter().filter(|(disks, _)| disks.len() > 1);
    let sentences = several.flat_map(|(disks, _)| {
        let common = common_devices(&disks, &devices);
        let are_disks = disks.iter().all(|&disk| names[disk].0 == "disk");
        let called = |&disk: &usize| match &names[disk] {
            (_, name) if are_disks => format!("{name:?}"),
            (what, name) => format!("{what} {name:?}"),
        };
        let [on_it, common] =
            [disks.iter().map(called).collect(), common.into_iter().map(str::to_owned).collect()]
                .map(list);
        let all = if are_disks { "disks " } else { "" };
        let sentence = format!(
            "{all}{on_it} are on the same device ({common}): a weight holds on each for itself, \
             and nothing is shared by weight between them; tenants that are to share the device \
             need volumes of one pool, or ranges of one disk"
        );
        disks.into_iter().map(move |disk| (disk, sentence.clone()))
    });
    sentences.collect()
}

/// The devices that two of the disks are on.
fn common_devices<'a>(
    disks: &BTreeSet<usize>,
    devices: &'a [BTreeSet<String>],
) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let all = disks.iter().flat_map(|&disk| &devices[disk]).map(String::as_str);
    all.filter(|device| !seen.insert(*device)).collect()
}

/// A list of several with an "and".
fn list(mut items: Vec<String>) -> String {
    let last = items.pop().unwrap_or_default();
    if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(disks: &[(&str, &[&str])]) -> BTreeMap<usize, String> {
        said_of(&disks.iter().map(|&(name, on)| (("disk", name), on)).collect::<Vec<_>>())
    }

    fn said_of(disks: &[((&'static str, &str), &[&str])]) -> BTreeMap<usize, String> {
        shared(disks.iter().map(|&((what, name), on)| {
            (what, name.to_owned(), on.iter().map(|&name| name.to_owned()).collect())
        }))
    }

    #[test]
    fn claim_to_rotate_is_told_with_the_lines_that_say_what_is_so() {
        let claim = claim("disk", "a", "vda");
        for part in ["disk \"a\": vda ", "rotational = true below [disks.a]", "rotational = false"]
        {
            assert!(claim.contains(part), "no {part}: {claim}");
        }
    }

    #[test]
    fn volume_on_another_device_than_its_pool_is_told_with_both() {
        let mut device = OneDevice::default();
        let mut add = |on: &[&str]| device.add(on.iter().map(|&name| name.to_owned()).collect());
        for on in [&[][..], &["sda", "sdb"], &["sdb"], &[]] {
            assert_eq!(add(on), Ok(()), "{on:?}");
        }
        assert_eq!(add(&["sdc"]), Err(["sdc", "sda and sdb"].map(str::to_owned)));
    }

    #[test]
    fn disks_on_one_device_are_named_with_it() {
        let said = said(&[
            ("a", &["nvme0n1"]),
            ("other", &["sda"]),
            ("b", &["nvme0n1"]),
            ("c", &["nvme0n1"]),
        ]);
        let start = "disks \"a\", \"b\" and \"c\" are on the same device (nvme0n1): a weight holds";
        assert_eq!(said.keys().copied().collect::<Vec<_>>(), [0, 2, 3]);
        assert!(said.values().all(|sentence| sentence.starts_with(start)), "{said:?}");
    }

    #[test]
    fn pool_is_called_one() {
        let said = said_of(&[(("disk", "a"), &["sda"]), (("pool", "fast"), &["sda"])]);
        let start = "disk \"a\" and pool \"fast\" are on the same device (sda): a weight holds";
        assert!(said[&1].starts_with(start), "{said:?}");
    }

    #[test]
    fn disk_on_several_devices_meets_those_of_each() {
        let said = said(&[("a", &["sda"]), ("b", &["sdb", "sdc"]), ("mirror", &["sda", "sdb"])]);
        let start = "disks \"a\", \"b\" and \"mirror\" are on the same device (sda and sdb): ";
        assert_eq!(said.len(), 3);
        assert!(said[&1].starts_with(start), "{said:?}");
    }

    #[test]
    fn disks_whose_devices_differ_or_are_unknown_are_not_named() {
        assert_eq!(said(&[("a", &["sda"]), ("b", &["sdb"])]), BTreeMap::new());
        assert_eq!(said(&[("a", &[]), ("b", &[])]), BTreeMap::new());
    }
}
