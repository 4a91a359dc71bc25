//! Devices by name or by file.
//!
//! ```text
//!   nvme-980pro        a file that comes with the laboratory
//!   disk.toml          a file of parameters, whose `kind` says what it describes
//!   atlas10k.parv      a disk as DiskSim describes it (or .diskspecs)
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::array::ArrayParameters;
use crate::batch::BatchParameters;
use crate::channels::ChannelsParameters;
use crate::disk::{LayoutError, Parameters, disksim};
use crate::flash::FlashParameters;
use crate::parameter_file::{Keys, ParameterError, Spot};
use crate::servers::ServersParameters;
use crate::slices::SlicesParameters;
use crate::ssd::SsdParameters;
use crate::table::TableParameters;
use crate::volume::VolumeParameters;
use crate::{Described, Kind, Model, Stages, read_input};

/// The files that come with the laboratory, by name.
const DEVICES: &[(&str, &str)] = &[
    ("hdd-7200", include_str!("../devices/hdd-7200.toml")),
    ("hdd-7200-1tb", include_str!("../devices/hdd-7200-1tb.toml")),
    ("nvme-980pro", include_str!("../devices/nvme-980pro.toml")),
    ("optane-p4800x", include_str!("../devices/optane-p4800x.toml")),
    ("raid5-12-sata", include_str!("../devices/raid5-12-sata.toml")),
    ("sata-7200-2010", include_str!("../devices/sata-7200-2010.toml")),
    ("ssd-plextor-m5s", include_str!("../devices/ssd-plextor-m5s.toml")),
    ("servers-16x80us", include_str!("../devices/servers-16x80us.toml")),
    ("table-980pro", include_str!("../devices/table-980pro.toml")),
];

/// Files by their names, each with its text if it is text.
pub type DeviceTexts = Vec<(String, Option<String>)>;

/// The error of a device that cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Neither a name nor a file.
    #[error(
        "there is no device {name:?} and no such file; devices are: {}",
        device_names().join(", ")
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Its file is wrong.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Its layout is impossible.
    #[error("{}: {problem}", path.display())]
    Layout {
        /// Its file.
        path: PathBuf,
        /// What is impossible.
        problem: LayoutError,
    },
}

/// Makes the device of that name, or of that file; its random times are drawn with that seed.
pub fn open_device(name: &str, seed: u64) -> Result<Box<dyn Model + Send>, DeviceError> {
    made(Path::new(name), &describe_device(name)?, seed)
}

/// The device of that name, or of that file, as it is described.
pub fn describe_device(name: &str) -> Result<Described, DeviceError> {
    described(name, device_text(name)?.as_deref())
}

/// The same, with the files that describe it: its own and, of an array, its disk's; each by its
/// name, with its text if it is text. Its own is read once.
pub fn read_device(
    name: &str,
    seed: u64,
) -> Result<(Box<dyn Model + Send>, DeviceTexts), DeviceError> {
    let own = device_text(name)?;
    let device = made(Path::new(name), &described(name, own.as_deref())?, seed)?;
    let member = own.as_deref().and_then(member_of);
    let mut texts = vec![(name.to_owned(), own)];
    if let Some(member) = member {
        let beside = Path::new(name).with_file_name(&member).display().to_string();
        let member = if device_file(&member).is_some() { member } else { beside };
        let text = device_text(&member)?;
        texts.push((member, text));
    }
    Ok((device, texts))
}

/// The file that describes a device; none where it is not text.
fn device_text(name: &str) -> Result<Option<String>, DeviceError> {
    if let Some(text) = device_file(name) {
        return Ok(Some(text.to_owned()));
    }
    let path = Path::new(name);
    if !path.exists() && !is_disksim(path) {
        return Err(DeviceError::Unknown { name: name.to_owned() });
    }
    let bytes = read_input(path).map_err(|error| unreadable(path, error))?;
    Ok(String::from_utf8(bytes).ok())
}

/// What this text describes.
fn described(name: &str, text: Option<&str>) -> Result<Described, DeviceError> {
    let path = Path::new(name);
    match text {
        _ if is_disksim(path) => Ok(Kind::Disk(Box::new(disksim::read(path)?)).into()),
        Some(text) => Ok(describe_text(path, text)?),
        None => Err(unreadable(path, ErrorKind::InvalidData.into()).into()),
    }
}

/// Makes a device whose file is called `path`.
fn made(path: &Path, device: &Described, seed: u64) -> Result<Box<dyn Model + Send>, DeviceError> {
    let impossible = |problem| DeviceError::Layout { path: path.to_owned(), problem };
    device.open(seed).map_err(impossible)
}

fn is_disksim(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("parv" | "diskspecs"))
}

fn unreadable(path: &Path, error: std::io::Error) -> ParameterError {
    ParameterError { at: Spot::whole(path), problem: error.into() }
}

/// The disk that the file of an array names.
fn member_of(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let device = table.get("member")?.get("device")?;
    Some(device.get("value").unwrap_or(device).as_str()?.to_owned())
}

/// The file of the device of that name that comes with the laboratory, with the disk of an array
/// described in it and not named.
pub fn whole_device_file(name: &str) -> Option<String> {
    let text = device_file(name)?;
    let Some(disk) = member_of(text).as_deref().and_then(device_file) else {
        return Some(text.to_owned());
    };
    let parsed = |text: &str| text.parse::<toml::Table>().expect("its files are TOML");
    let mut whole = parsed(text);
    whole.insert("member".to_owned(), parsed(disk).into());
    Some(whole.to_string())
}

/// The names of the devices that come with the laboratory.
pub fn device_names() -> Vec<&'static str> {
    DEVICES.iter().map(|(name, _)| *name).collect()
}

/// The file of that name that comes with the laboratory.
pub(crate) fn device_file(name: &str) -> Option<&'static str> {
    DEVICES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// Makes the device that a file of parameters describes, which messages call `path`.
pub fn open_device_text(
    path: &Path,
    text: &str,
    seed: u64,
) -> Result<Box<dyn Model + Send>, DeviceError> {
    made(path, &describe_text(path, text)?, seed)
}

/// Reads the keys of a kind of device, after its name.
type ReadKind = fn(&mut Keys<'_>, String) -> Result<Kind, ParameterError>;

/// The kinds by their names in files.
const KINDS: [(&str, ReadKind); 10] = [
    ("array", |keys, _| Ok(Kind::Array(Box::new(ArrayParameters::read(keys)?)))),
    ("batch", |keys, _| Ok(Kind::Batch(BatchParameters::read(keys)?))),
    ("channels", |keys, _| Ok(Kind::Channels(ChannelsParameters::read(keys)?))),
    ("disk", |keys, name| Ok(Kind::Disk(Box::new(Parameters::read(keys, name)?)))),
    ("flash", |keys, _| Ok(Kind::Flash(FlashParameters::read(keys)?))),
    ("servers", |keys, _| Ok(Kind::Servers(ServersParameters::read(keys)?))),
    ("slices", |keys, _| Ok(Kind::Slices(SlicesParameters::read(keys)?))),
    ("ssd", |keys, _| Ok(Kind::Ssd(Box::new(SsdParameters::read(keys)?)))),
    ("table", |keys, _| Ok(Kind::Table(Box::new(TableParameters::read(keys)?)))),
    ("volume", |keys, _| Ok(Kind::Volume(VolumeParameters::read(keys)?))),
];

/// What the text of a file of parameters describes; `path` is what errors call it.
pub fn describe_text(path: &Path, text: &str) -> Result<Described, ParameterError> {
    let mut keys = Keys::open(path, text)?;
    let device = Described::read(&mut keys)?;
    keys.end()?;
    Ok(device)
}

impl Described {
    /// Reads a table that describes a device as its file does.
    pub fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let read = keys.one_of("kind", &KINDS)?;
        let name = keys.description()?;
        let stages = if keys.has("stages") {
            keys.table("stages", Stages::read)?
        } else {
            Stages::default()
        };
        let kind = read(keys, name)?;
        Ok(Self { kind, stages })
    }
}

/// The disk of that name, or of a file beside the file that names it.
pub(crate) fn disk_parameters(name: &str, named_by: &Path) -> Result<Parameters, ParameterError> {
    if let Some(text) = device_file(name) {
        return Parameters::from_toml(Path::new(name), text);
    }
    let path = named_by.with_file_name(name);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parv" | "diskspecs") => disksim::read(&path),
        _ => Parameters::read_toml(&path),
    }
}

/// Whether there is a device of that name, or a file beside the file that names it.
pub(crate) fn is_there(name: &str, named_by: &Path) -> bool {
    device_file(name).is_some() || named_by.with_file_name(name).exists()
}

#[cfg(test)]
mod tests {
    use paternoster::Instant;

    use super::*;
    use crate::tests::{ends, read};

    #[test]
    fn every_device_that_comes_along_can_be_made() {
        for name in device_names() {
            let device = open_device(name, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(device.depth() > 0 && device.end().0 > 0, "{name}");
        }
    }

    #[test]
    fn array_is_described_by_its_file_and_by_its_disks() {
        let texts = |name| read_device(name, 1).expect("it comes along").1;
        let array = texts("raid5-12-sata");
        let names: Vec<_> = array.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["raid5-12-sata", "hdd-7200-1tb"]);
        assert!(array[1].1.as_deref().is_some_and(|text| text.contains("kind = \"disk\"")));
        assert_eq!(texts("hdd-7200").len(), 1);
    }

    /// A file of a kind, with the first times by hand: two reads of 4 KiB that come at once.
    fn assert_ends(keys: &str, expected: [u64; 2]) {
        let text = format!("name = \"n\"\nabout = \"a\"\nvalid = \"v\"\n{keys}");
        let device = open_device_text(Path::new("d.toml"), &text, 1);
        let mut device = device.unwrap_or_else(|error| panic!("{keys}: {error}"));
        for tag in 0..2 {
            device.submit(Instant::START, read(tag));
        }
        let ends: Vec<_> = ends(&mut device).into_iter().map(|(_, us)| us).collect();
        assert_eq!(ends, expected, "{keys}");
    }

    /// One server after the other; a bus of 5 µs a KiB; 10,000 IOPS; one in each millisecond; a
    /// turn of 10 µs and 2 each; answers that come 30 µs later, and none from 100 to 200 µs.
    #[test]
    fn kinds_whose_times_have_a_law_are_read_from_files() {
        const ONE: &str = "kind = \"servers\"\nservers = 1\ndepth = 8\nsectors = 1000\n";
        assert_ends(&format!("{ONE}service_us = 50\nns_per_kib = 1000"), [54, 108]);
        assert_ends("kind = \"channels\"\nchannels = 1\nservice_us = 50", [50, 100]);
        let flash = "kind = \"flash\"\nchannels = 1\nservice_us = 50\nbus_ns_per_kib = 5000";
        assert_ends(flash, [70, 120]);
        assert_ends("kind = \"volume\"\niops = 10_000\nservice_us = 500", [500, 600]);
        let slices = "kind = \"slices\"\ncommands = 1\nslice_ms = 1\nservice_us = 10";
        assert_ends(slices, [10, 1010]);
        assert_ends("kind = \"batch\"\nturn_us = 10\ncommand_us = 2", [14, 14]);
        let stages = "[stages]\nlatency_us = 30\npauses = { every_ms = 0.2, pause_ms = 0.1 }";
        assert_ends(&format!("{ONE}service_us = 50\n{stages}"), [80, 200]);
        let laws = "servers = [1, 2]\nevery_ms = 1\nspread = { law = \"rare\", percent = 0, \
                    times = 9 }\npace = { from_ms = 0, times = 2 }\ncrowd = { beyond = 9, \
                    percent_each = 5 }\nwrite_times = 3\nfua_us = 7\nservice_us = 50";
        let laws = format!("{}{laws}", ONE.replace("servers = 1\n", ""));
        assert_ends(&laws, [100, 200]);
    }

    #[test]
    fn law_that_there_is_not_is_refused_with_those_that_there_are() {
        let text = "kind = \"channels\"\nname = \"n\"\nabout = \"a\"\nvalid = \"v\"\n\
                    channels = 1\nservice_us = 50\nspread = { law = \"normal\" }";
        let error = describe_text(Path::new("d.toml"), text).expect_err("it is wrong").to_string();
        let said = "d.toml:7:18: `spread.law` is \"normal\", which must be one of \"log-normal\", \
                    \"rare\", \"pareto\"";
        assert_eq!(error, said);
    }

    #[test]
    fn unknown_device_is_told_which_there_are() {
        let error = open_device("floppy", 1).err().expect("there is none").to_string();
        let known = "there is no device \"floppy\" and no such file; devices are: hdd-7200, ";
        assert!(error.starts_with(known), "{error}");
    }
}
