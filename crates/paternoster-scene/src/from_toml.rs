//! Scenes from TOML files. All mistakes of a file are told at once.
//!
//! ```toml
//! name = "web and backup"
//! about = "a web server beside a nightly backup"
//! device = "nvme-980pro"          # a name, a file beside this one, or a table
//! schedulers = ["cfq", "wfq"]     # each with its tunables, as "cfq:slice_idle=0,quantum=16"
//! counted = "4s"
//!
//! [[tenants]]
//! name = "web"
//! weight = 300
//! connections = 4
//! depth = 8
//! ```

use std::fmt;
use std::path::Path;

use paternoster::Nanos;
use paternoster_model::parameter_file::{Keys, ParameterError, Problem, Spot};
use paternoster_model::{Described, Model as _, describe_device, device_names, read_input_text};

use crate::scene::{Scene, Tenant};
use crate::scheduler::Scheduler;

/// A scene, and under what it is to be played.
#[derive(Clone, Debug)]
pub struct SceneFile {
    /// The scene.
    pub scene: Scene,
    /// The schedulers, one after the other.
    pub schedulers: Vec<Scheduler>,
    /// The name or the file of the device, where the scene has no table of it.
    pub model: Option<String>,
}

/// A thing that is wrong with a file.
pub type Mistake = ParameterError;

/// What is wrong with a file: at least one mistake, a line each, in the order of the file.
#[derive(Debug)]
pub struct Mistakes(pub Vec<Mistake>);

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The schedulers of a file that names none.
const SCHEDULERS: [&str; 3] = ["none", "cfq", "wfq"];
/// Most tenants of a scene, and most requests outstanding on a connection.
const MOST: u32 = 1000;
/// What a tenant may be called.
const NAME: &str = "a name of letters, digits, `-`, `_`, `.` and spaces";
/// Most requests that all tenants of a scene keep outstanding.
const OUTSTANDING_MAX: u64 = 100_000;
/// Most bytes of a request.
const BLOCK_MAX: u32 = 32 << 20;
impl SceneFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Mistakes> {
        let unreadable = |error: std::io::Error| {
            Mistakes(vec![ParameterError { at: Spot::whole(path), problem: error.into() }])
        };
        Self::from_toml(path, &read_input_text(path).map_err(unreadable)?)
    }

    /// Reads the text of a file, which mistakes call `path`.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, Mistakes> {
        let mut found = Found(vec![]);
        let mut keys = Keys::open(path, text).map_err(|mistake| Mistakes(vec![mistake]))?;
        let name = found.note(keys.text("name"));
        let about = if keys.has("about") { found.note(keys.text("about")) } else { None };
        let device = found.note(device(&mut keys));
        let schedulers = found.schedulers(&mut keys);
        let [warm_up, counted] = Scene::SPANS;
        let warm_up =
            found.or(&mut keys, "warm_up", warm_up, |keys, key| keys.duration(key, Nanos::ZERO));
        let counted = found.or(&mut keys, "counted", counted, |keys, key| {
            keys.duration(key, Nanos::from_millis(1))
        });
        let end = device.as_ref().map(|(device, _)| device.open(1).map(|device| device.end().0));
        let end =
            end.and_then(|end| found.note(end.map_err(|no| keys.refuse(Problem::Layout(no)))));
        let mut tenants = vec![];
        for table in found.note(keys.each_table("tenants")).unwrap_or_default() {
            found.tenants(table, end, &mut tenants);
        }
        found.0.extend(keys.ends());
        let made = || {
            let (name, about) = (name?, about.unwrap_or_default());
            let ((device, model), warm_up, counted) = (device?, warm_up?, counted?);
            let scene = Scene { name, about, device, tenants, warm_up, counted };
            Some(Self { scene, schedulers: schedulers?, model })
        };
        match made() {
            Some(file) if found.0.is_empty() => Ok(file),
            _ => {
                found.0.sort_by_key(|mistake| mistake.at.position);
                Err(Mistakes(found.0))
            }
        }
    }
}

/// The mistakes that have been found.
struct Found(Vec<Mistake>);

impl Found {
    /// What is right; a mistake is kept.
    fn note<T>(&mut self, read: Result<T, Mistake>) -> Option<T> {
        read.map_err(|mistake| self.0.push(mistake)).ok()
    }

    /// The schedulers, or those of a file that names none.
    fn schedulers(&mut self, keys: &mut Keys<'_>) -> Option<Vec<Scheduler>> {
        if !keys.has("schedulers") {
            return SCHEDULERS.iter().map(|word| word.parse().ok()).collect();
        }
        let words = self.note(keys.texts_at("schedulers"))?;
        let parsed = words.into_iter().map(|(word, span)| {
            let scheduler = word.parse::<Scheduler>();
            scheduler.map_err(|error| keys.refuse_at(&span, Problem::Syntax(error.to_string())))
        });
        let parsed: Vec<_> = parsed.map(|scheduler| self.note(scheduler)).collect();
        parsed.into_iter().collect()
    }

    /// What a key says, or `default` if it is not there.
    fn or<T>(
        &mut self,
        keys: &mut Keys<'_>,
        key: &'static str,
        default: T,
        read: impl FnOnce(&mut Keys<'_>, &'static str) -> Result<T, Mistake>,
    ) -> Option<T> {
        if !keys.has(key) {
            return Some(default);
        }
        self.note(read(keys, key))
    }

    /// Adds the tenants of a table to those before: as many of a kind as it says, unless something
    /// is wrong with them, or they find no room on a device up to that sector.
    fn tenants(&mut self, mut keys: Keys<'_>, end: Option<u64>, others: &mut Vec<Tenant>) {
        let count = self.or(&mut keys, "count", 1, |keys, key| keys.small(key, 1..=MOST));
        let tenant = self.tenant(&mut keys);
        if let (Some(tenant), Some(count)) = (tenant, count) {
            let name = |number| match count {
                1 => tenant.name.clone(),
                _ => format!("{}{number}", tenant.name),
            };
            let own = (1..=count).map(|number| tenant.clone().named(name(number)));
            let own: Vec<_> = own.collect();
            if self.note(check_fit(&keys, &own, others, end)).is_some() {
                others.extend(own);
            }
        }
        self.0.extend(keys.ends());
    }

    /// The tenant of a table, of which all keys are read even where something is wrong.
    fn tenant(&mut self, keys: &mut Keys<'_>) -> Option<Tenant> {
        let name =
            self.note(keys.word("name", NAME, |name| is_name(name).then(|| name.to_owned())));
        let weight = self.or(keys, "weight", 100, |keys, key| keys.small(key, 1..=1000));
        let connections = self.note(keys.small("connections", 1..=MOST));
        let depth = self.note(keys.small("depth", 1..=MOST));
        let block = self.or(keys, "block", 4096, block);
        let percent = |keys: &mut Keys<'_>, key| keys.small(key, 0..=100);
        let trim_percent = self.or(keys, "trim_percent", 0, percent);
        let write_percent = self.or(keys, "write_percent", 0, percent);
        let fua = self.or(keys, "fua", false, flag);
        let zeroes = self.or(keys, "zeroes", false, flag);
        let caches = self.or(keys, "caches", false, flag);
        let duration = |keys: &mut Keys<'_>, key| keys.duration(key, Nanos::ZERO);
        let think = self.or(keys, "think", Nanos::ZERO, duration);
        let more = self.or(keys, "think_more", Nanos::ZERO, duration);
        let reconnects =
            self.or(keys, "reconnects", None, |keys, key| duration(keys, key).map(Some));
        let light = self.or(keys, "light", false, flag);
        let tenant = Tenant {
            name: name?,
            weight: weight?,
            connections: connections?,
            depth: depth?,
            block: block?,
            trim_percent: trim_percent?,
            write_percent: write_percent?,
            fua: fua?,
            zeroes: zeroes?,
            caches: caches?,
            think: think?,
            think_more: more?,
            reconnects: reconnects?,
            light: light?,
        };
        self.note(check_habits(keys, &tenant))?;
        Some(tenant)
    }
}

/// The device, and what it is called where it is not a table.
fn device(keys: &mut Keys<'_>) -> Result<(Described, Option<String>), Mistake> {
    if keys.is_table("device") {
        return Ok((keys.table("device", Described::read)?, None));
    }
    let allowed = "a device of the laboratory, a file of its parameters, or a table of them";
    let (name, span) = keys.text_at("device", allowed)?;
    let file = keys.path().with_file_name(&name).display().to_string();
    let called = if device_names().contains(&name.as_str()) { name } else { file };
    match describe_device(&called) {
        Ok(device) => Ok((device, Some(called))),
        Err(error) => Err(keys.refuse_at(&span, Problem::Syntax(format!("`device`: {error}")))),
    }
}

/// Whether groups and exports can be called so.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    !name.trim_matches(['.', ' ']).is_empty() && name.chars().all(is_plain)
}

/// Refuses tenants of a table whose names are taken, that the device has no room for, or that keep
/// too much outstanding beside the others.
fn check_fit(
    keys: &Keys<'_>,
    own: &[Tenant],
    others: &[Tenant],
    end: Option<u64>,
) -> Result<(), Mistake> {
    let refuse = |what: &str, found: String, allowed: String| {
        Err(keys.refuse(Problem::Unexpected { what: what.to_owned(), found, allowed }))
    };
    let taken = own.iter().find(|tenant| others.iter().any(|other| other.name == tenant.name));
    if let Some(Tenant { name, .. }) = taken {
        return refuse("`name`", format!("{name:?}"), "one that no other tenant has".to_owned());
    }
    let (block, sectors) = (own[0].block, u64::from(own[0].sectors().0));
    if let Some(end) = end.filter(|end| sectors > *end) {
        let allowed = format!("within the device, which has {} bytes", 512 * u128::from(end));
        return refuse("`block`", format!("{block} bytes"), allowed);
    }
    let all = own.iter().chain(others);
    let each = all.map(|tenant| u64::from(tenant.connections) * u64::from(tenant.depth));
    let outstanding: u64 = each.sum();
    if outstanding > OUTSTANDING_MAX {
        let (found, allowed) =
            (format!("{outstanding} requests"), format!("at most {OUTSTANDING_MAX}"));
        return refuse("what the tenants so far keep outstanding", found, allowed);
    }
    Ok(())
}

/// Refuses what a tenant cannot do at once: its keys would have no effect.
fn check_habits(keys: &Keys<'_>, tenant: &Tenant) -> Result<(), Mistake> {
    let refuse = |what: &str, found: String, allowed: &str| {
        let (what, allowed) = (what.to_owned(), allowed.to_owned());
        Err(keys.refuse(Problem::Unexpected { what, found, allowed }))
    };
    let Tenant { depth, write_percent, fua, zeroes, caches, reconnects, .. } = *tenant;
    let [reads, writes, _] = tenant.does();
    if reconnects.is_some() && depth > 1 {
        return refuse("`depth`", depth.to_string(), "1 where each request has its connection");
    }
    if write_percent > 0 && !writes {
        return refuse("`write_percent`", write_percent.to_string(), "0 where all requests trim");
    }
    for (key, is_set, has_effect, what) in [
        ("`fua`", fua, writes && !zeroes, "false where no data is written"),
        ("`zeroes`", zeroes, writes, "false where nothing is written"),
        ("`caches`", caches, reads, "false where nothing is read"),
    ] {
        if is_set && !has_effect {
            return refuse(key, "true".to_owned(), what);
        }
    }
    Ok(())
}

/// True or false.
fn flag(keys: &mut Keys<'_>, key: &'static str) -> Result<bool, Mistake> {
    keys.flag(key)
}

/// The bytes of a request: whole sectors, in a text with `K` or `M`.
fn block(keys: &mut Keys<'_>, key: &'static str) -> Result<u32, Mistake> {
    const ALLOWED: &str = "a size from \"512\" to \"32M\" in whole sectors, for example \"4K\"";
    keys.word(key, ALLOWED, |text| {
        let (number, unit) = match text.as_bytes().last()? {
            b'K' => (&text[..text.len() - 1], 1 << 10),
            b'M' => (&text[..text.len() - 1], 1 << 20),
            _ => (text, 1),
        };
        let bytes = number.parse::<u32>().ok()?.checked_mul(unit)?;
        (bytes > 0 && bytes <= BLOCK_MAX && bytes % 512 == 0).then_some(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SceneFile, String> {
        SceneFile::from_toml(Path::new("s.toml"), text).map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn tenants_of_a_kind_are_numbered_and_what_is_not_written_is_the_default() {
        let text = "name = \"s\"\ndevice = \"hdd-7200\"\n[[tenants]]\nname = \"a\"\n\
                    connections = 2\ndepth = 3\n[[tenants]]\nname = \"b\"\ncount = 2\n\
                    connections = 1\ndepth = 1\nblock = \"64K\"\nwrite_percent = 30\n\
                    fua = true\nthink = \"2ms\"\n\
                    think_more = \"500us\"\nlight = true\nweight = 7\n";
        let SceneFile { scene, schedulers, model } = read(text).expect("it is right");
        let names: Vec<_> = scene.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        assert_eq!(names, ["a", "b1", "b2"]);
        assert_eq!(scene.tenants[0], Tenant::reads(100, 2, 3).named("a"));
        let other = Tenant {
            name: "b1".to_owned(),
            block: 65_536,
            write_percent: 30,
            fua: true,
            think: Nanos::from_millis(2),
            think_more: Nanos::from_micros(500),
            light: true,
            ..Tenant::reads(7, 1, 1)
        };
        assert_eq!(scene.tenants[1], other);
        assert_eq!((scene.warm_up, scene.counted), (Nanos::from_secs(1), Nanos::from_secs(4)));
        assert_eq!(schedulers.iter().map(ToString::to_string).collect::<Vec<_>>(), SCHEDULERS);
        assert_eq!(model.as_deref(), Some("hdd-7200"));
    }

    /// 1000 sectors are 512,000 bytes, and 1000 tenants of 10 × 11 keep 110,000 outstanding.
    #[test]
    fn tenants_have_to_fit_the_device_and_the_laboratory() {
        let device = "[device]\nkind = \"servers\"\nname = \"d\"\nabout = \"a\"\nvalid = \"v\"\n\
                      servers = 1\ndepth = 8\nsectors = 1000\nservice_us = 1\n";
        let refused = |tenant: &str| {
            let tenant =
                format!("[[tenants]]\nname = \"t\"\nconnections = 10\ndepth = 11\n{tenant}");
            read(&format!("name = \"s\"\n{device}{tenant}")).expect_err("it does not fit")
        };
        let large = refused("block = \"1M\"\n");
        let said = "s.toml:11:1: `block` is 1048576 bytes, which must be within the device, \
                    which has 512000 bytes";
        assert!(large.ends_with(said), "{large}");
        let twice = refused("[[tenants]]\nname = \"t\"\nconnections = 1\ndepth = 1\n");
        let said = "s.toml:15:1: `name` is \"t\", which must be one that no other tenant has";
        assert_eq!(twice, said);
        let slash = refused("[[tenants]]\nname = \"a/b\"\nconnections = 1\ndepth = 1\n");
        assert!(slash.contains("`tenants.name` is \"a/b\", which must be a name of"), "{slash}");
        let many = refused("count = 1000\n");
        assert!(many.contains("is 110000 requests, which must be at most 100000"), "{many}");
    }

    #[test]
    fn keys_of_a_tenant_that_would_have_no_effect_are_refused() {
        let read = |depth, keys: &str| {
            let tenant = format!("[[tenants]]\nname = \"t\"\nconnections = 1\n{keys}");
            read(&format!("name = \"s\"\ndevice = \"hdd-7200\"\n{tenant}depth = {depth}\n"))
        };
        let keys = "trim_percent = 40\nreconnects = \"30us\"\ncaches = true\n\
                    write_percent = 30\nzeroes = true\n";
        let file = read(1, keys).expect("it is right");
        let tenant = Tenant {
            trim_percent: 40,
            write_percent: 30,
            zeroes: true,
            caches: true,
            reconnects: Some(Nanos::from_micros(30)),
            ..Tenant::reads(100, 1, 1).named("t")
        };
        assert_eq!(file.scene.tenants, [tenant]);
        for (depth, keys, said) in [
            (2, "reconnects = \"0us\"\n", "`depth` is 2, which must be 1 where each request"),
            (1, "trim_percent = 100\nwrite_percent = 1\n", "`write_percent` is 1, which must be 0"),
            (1, "fua = true\n", "`fua` is true, which must be false where no data is written"),
            (1, "zeroes = true\n", "`zeroes` is true, which must be false where nothing is"),
            (1, "caches = true\nwrite_percent = 100\n", "`caches` is true, which must be false"),
        ] {
            let mistakes = read(depth, keys).expect_err(said);
            assert!(mistakes.contains(said), "{mistakes}");
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once_each_with_its_line() {
        let text = "name = 7\ndevice = \"floppy\"\nschedulers = [\"sfq\"]\ncounted = \"4\"\n\
                    colour = 1\n[[tenants]]\nname = \"a\"\nconnections = 0\ndepth = 1\n\
                    block = \"1000\"\nweigth = 5\n[[tenants]]\ndepth = 1\nconnections = 1\n";
        let said = read(text).expect_err("it is wrong");
        let begins = [
            "s.toml:1:8: `name` is 7, which must be a text in quotes",
            "s.toml:2:10: `device`: there is no device",
            "s.toml:3:15: there is no scheduler \"sfq\"",
            "s.toml:4:11: `counted` is \"4\", which must be a duration from 1000 us to a day",
            "s.toml:5:1: unknown key `colour`; there are `name`,",
            "s.toml:8:15: `tenants.connections` is 0",
            "s.toml:10:9: `tenants.block` is \"1000\", which must be a size",
            "s.toml:11:1: unknown key `tenants.weigth`",
            "s.toml:12:1: `tenants.name` is missing",
        ];
        let lines: Vec<_> = said.lines().collect();
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}\nnot {begin}");
        }
        assert_eq!(lines.len(), begins.len(), "{said}");
    }
}
