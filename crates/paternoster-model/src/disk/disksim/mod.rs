//! DiskSim's parameter files, read into the parameters of our own model.
//!
//! ```text
//!   NAME.parv ─ source ─▶ NAME.diskspecs ─ Model = source ─▶ NAME.model
//!     buses, topology       disksim_disk                       dm_disk
//!                                                               └ Full seek curve = ─▶ NAME.seek
//! ```
//!
//! Files are looked for beside the one that names them. A disk's own file does not say how fast its
//! bus is: read the file that has the whole system where there is one. Where only the disk's file
//! is given, the first file beside it that ends in `.parv` and sources it says so.
//!
//! Values that have no effect on one disk alone are not looked at, such as statistics, generators
//! and the queues of controllers.

mod disk;
mod fields;
mod lexer;
mod model;
mod parser;
mod seek_file;

use std::path::Path;

use super::link::Link;
use super::parameters::Parameters;
use super::units::Millis;
use crate::parameter_file::{ParameterError, Problem, Spot};
use fields::{Fields, Source};
use parser::{Item, Node, Text};

/// More files than any system is made of.
const MOST_FILES: usize = 64;

/// Reads the disk that `path` describes: a system's file or a disk's own.
pub fn read(path: &Path) -> Result<Parameters, ParameterError> {
    let files = Files::load(path)?;
    if files.has_topology() {
        return files.disk(None);
    }
    let system = systems_beside(path).into_iter().find_map(|system| {
        let system = Files::load(&system).ok()?;
        (system.has_topology() && system.sources(path)).then_some(system)
    });
    files.disk(system.as_ref())
}

/// The files beside `path` that end in `.parv`, by name.
fn systems_beside(path: &Path) -> Vec<std::path::PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == "parv"));
    paths.sort();
    paths
}

/// Reads the file `name`, which the value of `what` at byte `at` of `from` names.
fn beside(from: &Source, what: &str, name: &str, at: usize) -> Result<Source, ParameterError> {
    let name = name.trim_matches('"');
    let folder = from.path.parent().unwrap_or(Path::new(""));
    Source::read(&folder.join(name)).map_err(|error| {
        let why = error.problem;
        from.unexpected(at, what, name, &format!("a file beside this one, which {why}"))
    })
}

fn items(source: &Source) -> Result<Vec<Item>, ParameterError> {
    parser::parse(&source.text)
        .map_err(|error| source.error(error.at, Problem::Syntax(error.message)))
}

/// A file and those that it sources.
struct Files {
    files: Vec<(Source, Vec<Item>)>,
}

impl Files {
    fn load(path: &Path) -> Result<Self, ParameterError> {
        let source = Source::read(path)?;
        let items_of_first = items(&source)?;
        let mut files = vec![(source, items_of_first)];
        let mut next = 0;
        while let Some((source, own)) = files.get(next) {
            let mut found = Vec::new();
            for item in own {
                if let Item::Source(Text { text, at }) = item {
                    if files.len() + found.len() >= MOST_FILES {
                        let allowed = format!("one of at most {MOST_FILES} files");
                        return Err(source.unexpected(*at, "source", text, &allowed));
                    }
                    let file = beside(source, "source", text, *at)?;
                    let items = items(&file)?;
                    found.push((file, items));
                }
            }
            files.extend(found);
            next += 1;
        }
        Ok(Self { files })
    }

    /// The disk, whose buses are those of `system`, or of these files themselves.
    fn disk(&self, system: Option<&Self>) -> Result<Parameters, ParameterError> {
        let disks: Vec<_> =
            self.blocks().filter(|disk| disk.block.kind.text == "disksim_disk").collect();
        let used = |disk: &&Fields<'_>| !self.devices_like(&disk.block.name).is_empty();
        let instantiated: Vec<_> = disks.iter().filter(used).collect();
        let disk = match (&instantiated[..], &disks[..]) {
            ([disk, ..], _) => **disk,
            ([], [disk]) => *disk,
            ([], disks) => {
                let names: Vec<_> =
                    disks.iter().map(|disk| format!("`{}`", disk.block.name)).collect();
                let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let problem = Problem::Unexpected {
                    what: "the disk".to_owned(),
                    found,
                    allowed: "one block `disksim_disk NAME { … }`, or one that is instantiated"
                        .to_owned(),
                };
                return Err(ParameterError { at: Spot::whole(&self.files[0].0.path), problem });
            }
        };
        let bus = system.unwrap_or(self).bus_of(&disk.block.name)?;
        self.with_model(disk, |model| disk::disk(disk, model, bus))
    }

    /// Calls `read` with the block that the disk's `Model` is, names, or has in another file.
    fn with_model<T>(
        &self,
        disk: Fields<'_>,
        read: impl FnOnce(Fields<'_>) -> Result<T, ParameterError>,
    ) -> Result<T, ParameterError> {
        const KEY: &str = "Model";
        const ALLOWED: &str = "`source FILE`, the name of a block `dm_disk`, or such a block";
        if let Ok(block) = disk.block(KEY, "dm_disk") {
            return read(block);
        }
        let (text, at) = disk.text(KEY, ALLOWED)?;
        if let Some(name) = text.strip_prefix("source ") {
            let source = beside(disk.source, KEY, name, at)?;
            let items = items(&source)?;
            let found = items.iter().find_map(|item| match item {
                Item::Block(block) if block.kind.text == "dm_disk" => Some(block),
                _ => None,
            });
            let Some(block) = found else {
                let what = "the block `dm_disk NAME { … }`".to_owned();
                let problem = Problem::Missing { what, allowed: "required".to_owned() };
                return Err(ParameterError { at: Spot::whole(&source.path), problem });
            };
            return read(Fields { source: &source, block });
        }
        let mut blocks = self.blocks();
        match blocks.find(|own| own.block.kind.text == "dm_disk" && own.block.name == text) {
            Some(block) => read(block),
            None => Err(disk.refuse(KEY, ALLOWED)),
        }
    }

    fn has_topology(&self) -> bool {
        self.topology().is_some()
    }

    fn topology(&self) -> Option<&Node> {
        self.items().find_map(|item| match item {
            Item::Topology(node) => Some(node),
            _ => None,
        })
    }

    /// Whether one of these files is the one at `path`, by its name.
    fn sources(&self, path: &Path) -> bool {
        self.files.iter().any(|(source, _)| source.path.file_name() == path.file_name())
    }

    /// The slowest of what is between a disk like `name` and the host; no time if nobody says.
    fn bus_of(&self, name: &str) -> Result<Link, ParameterError> {
        let mut link = Link { read_sector: Millis::ZERO, write_sector: Millis::ZERO };
        let devices = self.devices_like(name);
        let Some(device) = devices.first() else { return Ok(link) };
        let mut way = Vec::new();
        if let Some(top) = self.topology() {
            way_to(top, device, &mut way);
        }
        for on_the_way in way {
            let Some(block) = self.block_of(on_the_way) else { continue };
            let (read, write) = match block.block.kind.text.as_str() {
                "disksim_bus" => ("Read block transfer time", "Write block transfer time"),
                "disksim_ctlr" => ("Bulk sector transfer time", "Bulk sector transfer time"),
                _ => continue,
            };
            link.read_sector = link.read_sector.max(block.time(read)?);
            link.write_sector = link.write_sector.max(block.time(write)?);
        }
        Ok(link)
    }

    /// The block that `device` is like.
    fn block_of(&self, device: &str) -> Option<Fields<'_>> {
        let like = self.items().find_map(|item| match item {
            Item::Instantiate { names, like } if has(names, device) => Some(like.text.as_str()),
            _ => None,
        })?;
        self.blocks().find(|own| own.block.name == like)
    }

    /// The devices that are like the block of this name.
    fn devices_like(&self, name: &str) -> Vec<&str> {
        let names = self.items().filter_map(|item| match item {
            Item::Instantiate { names, like } if like.text == name => Some(names),
            _ => None,
        });
        names.flatten().map(|name| name.text.as_str()).collect()
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.files.iter().flat_map(|(_, items)| items)
    }

    fn blocks(&self) -> impl Iterator<Item = Fields<'_>> {
        self.files.iter().flat_map(|(source, items)| {
            items.iter().filter_map(move |item| match item {
                Item::Block(block) => Some(Fields { source, block }),
                _ => None,
            })
        })
    }
}

fn has(names: &[Text], name: &str) -> bool {
    names.iter().any(|own| own.text == name)
}

/// Adds to `way` the names of the devices above `device`. Returns whether it was found.
fn way_to<'n>(node: &'n Node, device: &str, way: &mut Vec<&'n str>) -> bool {
    if node.name == device {
        return true;
    }
    way.push(&node.name);
    if node.below.iter().any(|below| way_to(below, device, way)) {
        return true;
    }
    way.pop();
    false
}
