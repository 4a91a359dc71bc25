//! What the sections come to: jobs by fio's rules, with the mistakes that only show together.

mod parts;

use std::collections::HashMap;

use indexmap::IndexMap;
use paternoster::Nanos;

use super::ends;
use super::error::{Mistake, Mistakes, Place};
use super::files::Files;
use super::iolog::IoLog;
use super::job::{Job, Jobs, Note, Pattern, Reports, Run, used_sizes};
use super::keys::{self, Groups};
use super::logs::{LogKind, RunLogs};
use super::options::{self, MAX_JOBS};
use super::replay::Logs;
use super::sections::{GivenOption, Lines, Section};
use super::spec::{LogName, Spec};
use super::text::Text;
use super::used_files::{Use, UsedFiles};
use super::value::KbBase;
use super::{Surroundings, direct, replay, unused};
use parts::{io_prio, pacing, pattern, submission};
use paternoster_model::{Draws, Who};

/// A clone of a job section: what its files are named after, and where its mistakes are.
pub(in crate::fio) struct JobClone<'a> {
    pub(in crate::fio) name: &'a str,
    /// Among the clones of its section, from 0.
    pub(in crate::fio) number: u32,
    pub(in crate::fio) spec: &'a Spec,
    section: &'a Section,
}

impl JobClone<'_> {
    /// The size of the least block that it reads or writes.
    pub(in crate::fio) fn least_block(&self) -> u64 {
        self.blocks().min().expect("a job has a direction")
    }

    /// What a region has to hold for an I/O in each of its directions.
    pub(in crate::fio) fn needed(&self) -> u64 {
        self.blocks().max().expect("a job has a direction")
    }

    /// The least sizes of its directions.
    fn blocks(&self) -> impl Iterator<Item = u64> + use<> {
        let said = &self.spec.pattern;
        let used = used_sizes(said.mix, said.sizes_by_order);
        let sizes = said.sizes();
        used.iter().map(move |&index| sizes[index].min())
    }

    /// A mistake at the first of these options that was given, or else at the section.
    pub(in crate::fio) fn mistake(&self, options: &[&str], what: String) -> Mistake {
        Mistake { place: self.place(options), what }
    }

    /// The first of these options that was given, or else the section.
    pub(in crate::fio) fn place(&self, options: &[&str]) -> Place {
        let place = options.iter().find_map(|name| self.spec.places.get(name));
        place.unwrap_or(self.section.name.place()).clone()
    }
}

/// Makes jobs of the lines of a job file.
pub(in crate::fio) fn jobs(
    lines: &Lines,
    surroundings: &Surroundings<'_>,
    mistakes: &mut Mistakes,
) -> Jobs {
    let mut resolver = Resolver {
        surroundings,
        files: Files::new(surroundings.device_bytes),
        groups: Groups::default(),
        jobs: vec![],
        names: HashMap::new(),
        used: UsedFiles::new(surroundings.file_key),
        group_id: 0,
        stage: 0,
        notes: lines.notes.clone(),
        mistakes,
    };
    for file in &lines.files {
        resolver.used.add(file, Use::Jobs).expect("nothing is written so far");
    }
    for keys in &lines.prelude {
        resolver.groups.declare(keys, resolver.mistakes);
    }
    let mut global = Spec::new();
    let mut global_options = IndexMap::new();
    let mut are_globals_right = true;
    let mut sections = 0;
    for section in &lines.sections {
        if section.name.as_str() == "global" {
            are_globals_right &= resolver.apply(&mut global, section);
            global_options.extend(given(&section.options));
            continue;
        }
        let mut spec = global.clone();
        // What is wrong with options together shows only where each of them is right.
        if resolver.apply(&mut spec, section) && are_globals_right {
            resolver.section(sections, section, &spec);
        } else {
            resolver.know(section, &spec, vec![]);
        }
        sections += 1;
    }
    resolver.notes.sort();
    resolver.notes.dedup();
    Jobs {
        jobs: resolver.jobs,
        files: resolver.files.lay_out(resolver.mistakes),
        groups: resolver.groups.into_vec(),
        notes: resolver.notes,
        global_options,
    }
}

struct Resolver<'a> {
    surroundings: &'a Surroundings<'a>,
    files: Files,
    groups: Groups,
    jobs: Vec<Job>,
    /// The jobs of each section by name; none where two have it.
    names: HashMap<String, Option<Vec<usize>>>,
    used: UsedFiles<'a>,
    /// The reporting group of the last job.
    group_id: u32,
    /// The stage of the last job.
    stage: u32,
    notes: Vec<Note>,
    mistakes: &'a mut Mistakes,
}

impl Resolver<'_> {
    /// Puts what a section says into `spec`. Returns whether all of it is right.
    fn apply(&mut self, spec: &mut Spec, section: &Section) -> bool {
        let before = self.mistakes.count();
        // Sizes depend on it, wherever it stands.
        for option in section.options.iter().filter(|option| option.name.as_str() == "kb_base") {
            match option.value.as_ref().map(Text::as_str) {
                Some("1000") => spec.kb_base = KbBase::Decimal,
                _ => spec.kb_base = KbBase::Binary,
            }
        }
        for option in &section.options {
            let note = self.mistakes.keep(options::apply(spec, option));
            self.notes.extend(note.flatten());
        }
        keys::apply_all(spec, section, self.mistakes);
        section.is_whole && self.mistakes.count() == before
    }

    /// Makes the jobs of a section.
    fn section(&mut self, number: usize, section: &Section, spec: &Spec) {
        let name = job_name(section, spec);
        let first = self.jobs.len();
        let jobs = u64::try_from(first).expect("a length fits") + u64::from(spec.identity.numjobs);
        if jobs > MAX_JOBS.into() {
            let what = format!("{MAX_JOBS} jobs in all: no more are allowed");
            return self.mistakes.add(section.name.mistake(what));
        }
        if number > 0 && spec.run.stonewall {
            self.stage += 1;
        }
        if number > 0 && (spec.run.stonewall || spec.reports.new_group) {
            self.group_id += 1;
        }
        self.notes.extend(unused::notes(spec));
        let group = self.groups.add(spec, section.name.place(), self.mistakes);
        let clone = |number| JobClone { name, number, spec, section };
        let logs = Logs::read(spec, &clone(0), self.surroundings, &mut self.used, self.mistakes);
        self.notes.extend(Logs::left(spec, &clone(0)));
        for clone in (0..spec.identity.numjobs).map(clone) {
            if let Some(job) = self.job(&clone, &logs, number, group.clone()) {
                self.jobs.push(job);
            }
        }
        self.know(section, spec, (first..self.jobs.len()).collect());
    }

    /// Knows the jobs of a section by its name from now on.
    fn know(&mut self, section: &Section, spec: &Spec, jobs: Vec<usize>) {
        let known = self.names.entry(job_name(section, spec).to_owned());
        known.and_modify(|jobs| *jobs = None).or_insert(Some(jobs));
    }

    fn job(
        &mut self,
        clone: &JobClone<'_>,
        logs: &Logs,
        section: usize,
        group: String,
    ) -> Option<Job> {
        let JobClone { spec, .. } = *clone;
        let index = u64::try_from(self.jobs.len()).expect("a length fits");
        let seed = spec.pattern.seed.unwrap_or(self.surroundings.seed);
        let mut draws = Draws::new(seed, Who::Job, index);
        let source = self.source(clone, logs, &mut draws);
        let source = self.mistakes.keep(source);
        let pacing = self.mistakes.keep(pacing(clone));
        let log = source.as_ref().and_then(|source| source.as_ref()?.1.as_ref());
        let ends = ends::ends(clone, log).and_then(|ends| {
            ends::check_group(clone, &ends, &self.jobs, self.group_id)?;
            Ok(ends)
        });
        let ends = self.mistakes.keep(ends);
        let run = self.run(clone, &mut draws);
        let run = self.mistakes.keep(run);
        let (pattern, replay) = source??;
        let write_iolog = self.write_iolog(clone, &pattern);
        let write_iolog = self.mistakes.keep(write_iolog)?;
        let reports = self.reports(clone);
        self.use_logs(clone, &reports.logs);
        Some(Job {
            name: clone.name.to_owned(),
            description: spec.identity.description.clone(),
            options: given(&clone.section.options).collect(),
            place: clone.place(if spec.replays() { &["read_iolog"] } else { &["rw"] }),
            section,
            group,
            io_prio: io_prio(&spec.identity),
            pattern,
            replay,
            write_iolog,
            submission: submission(spec),
            pacing: pacing?,
            ends: ends?,
            run: run?,
            reports,
        })
    }

    /// What the job does: a pattern, or a log with a pattern that has its files; nothing where that
    /// log is wrong.
    fn source(
        &mut self,
        clone: &JobClone<'_>,
        logs: &Logs,
        draws: &mut Draws,
    ) -> Result<Option<(Pattern, Option<IoLog>)>, Mistake> {
        let JobClone { spec, .. } = *clone;
        if !spec.replays() {
            let work = self.files.work(&spec.target, clone, draws)?;
            let pattern = pattern(clone, work, draws)?;
            direct::check(clone, &pattern)?;
            return Ok(Some((pattern, None)));
        }
        let Some(log) = logs.of(clone) else { return Ok(None) };
        let (files, work) = replay::files(log, spec, clone, &mut self.files)?;
        let pattern = pattern(clone, work, draws)?;
        let index = |name: &str| files[log.files.get_index_of(name).expect("it is the log's")];
        let rules = spec.replay.rules.clone();
        let priorities = pattern.command_priorities.clone();
        let log = IoLog::new(log, rules, index, priorities, pattern.seed);
        Ok(Some((pattern, Some(log))))
    }

    /// Where the job writes a log of its I/O.
    fn write_iolog(
        &mut self,
        clone: &JobClone<'_>,
        pattern: &Pattern,
    ) -> Result<Option<String>, Mistake> {
        let JobClone { spec, .. } = *clone;
        let said = spec.replay.written.as_ref().filter(|_| !spec.replays());
        let Some(path) = said else { return Ok(None) };
        let wrong = |what| clone.mistake(&["write_iolog"], what);
        let mut names = pattern.regions.iter().map(|region| self.files.path(region.file));
        if let Some(name) = names.find(|name| name.contains(|c: char| c.is_ascii_whitespace())) {
            let what = format!("file {name:?}: a name in a log of I/O has no white space");
            return Err(wrong(what));
        }
        self.used.add(path, Use::IoLog(clone.name.to_owned())).map_err(wrong)?;
        Ok(Some(path.clone()))
    }

    /// Looks whether the job's logs of the run have files of their own.
    fn use_logs(&mut self, clone: &JobClone<'_>, logs: &RunLogs) {
        for (kind, path) in &logs.files {
            let option = match kind {
                LogKind::Iops => "write_iops_log",
                LogKind::Bandwidth => "write_bw_log",
                LogKind::Submission | LogKind::Completion | LogKind::Total => "write_lat_log",
            };
            let used = self.used.add(path, Use::RunLog(clone.name.to_owned(), *kind));
            self.mistakes.keep(used.map_err(|what| clone.mistake(&[option], what)));
        }
    }

    fn run(&self, clone: &JobClone<'_>, draws: &mut Draws) -> Result<Run, Mistake> {
        let JobClone { spec, .. } = *clone;
        let runtime = (spec.run.runtime > Nanos::ZERO).then_some(spec.run.runtime);
        // A log ends where it ends.
        if spec.run.time_based && runtime.is_none() && !spec.replays() {
            let what = "time_based needs a time: runtime=...".to_owned();
            return Err(clone.mistake(&["time_based"], what));
        }
        let wait_for = match &spec.run.wait_for {
            None => vec![],
            Some(name) => match self.names.get(name) {
                Some(Some(jobs)) => jobs.clone(),
                Some(None) => {
                    let what = format!("{name:?} is the name of two sections: one is allowed");
                    return Err(clone.mistake(&["wait_for"], what));
                }
                None => {
                    let what = format!("no section before this one is called {name:?}");
                    return Err(clone.mistake(&["wait_for"], what));
                }
            },
        };
        Ok(Run {
            stage: self.stage,
            wait_for,
            start_delay: draws.time_between(spec.run.start_delay),
            ramp_time: spec.run.ramp_time,
            runtime,
            exit: spec.run.exitall.then_some(spec.run.exit_what),
            exits_on_error: spec.run.exitall_on_error,
        })
    }

    fn reports(&self, clone: &JobClone<'_>) -> Reports {
        let JobClone { spec, .. } = *clone;
        let said = &spec.reports;
        let window = |sampled: Nanos, log: Option<&LogName>| match spec.logs.average {
            Nanos::ZERO => sampled,
            average => log.map_or(sampled, |_| sampled.min(average)),
        };
        Reports {
            is_told: said.is_told,
            group_id: self.group_id,
            grouped: said.group_reporting,
            percentiles: said.percentiles.clone(),
            slat_percentiles: said.slat_percentiles,
            clat_percentiles: said.clat_percentiles,
            lat_percentiles: said.lat_percentiles,
            bandwidth_window: window(said.bandwidth_window, spec.logs.bandwidth.as_ref()),
            iops_window: window(said.iops_window, spec.logs.iops.as_ref()),
            logs: RunLogs::new(spec, clone.name, self.jobs.len() + 1),
        }
    }
}

fn job_name<'a>(section: &'a Section, spec: &'a Spec) -> &'a str {
    spec.identity.name.as_deref().unwrap_or(section.name.as_str())
}

/// The options with a value by their first names, as fio's report has them.
fn given(options: &[GivenOption]) -> impl Iterator<Item = (String, String)> {
    options.iter().filter_map(|option| {
        let name = options::first_name(option.name.as_str())?;
        Some((name.to_owned(), option.value.as_ref()?.as_str().to_owned()))
    })
}
