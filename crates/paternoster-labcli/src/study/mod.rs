//! `paternoster-lab study`: published measurements, and what the laboratory makes of the same.

mod forecast;
mod measure;
mod measured_text;
mod measuring;
mod moving;
mod polling_live;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::Subcommand;
use paternoster_lab::report::studies_page;
use paternoster_lab::study::{
    self, Answer, Extent, Study, StudyReport, Task, TaskError, TaskName, VERSION, collect, plan,
    studies,
};
use paternoster_lab::told_with_place;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::Serialize;

use crate::command_line;
use crate::out_file::OutFile;
use crate::progress::RunCount;
use measuring::{Measurements, MeasuringOptions, Wanted};
use paternoster_cli::output;

/// Set published measurements beside what the laboratory makes of the same.
///
/// Prints every figure of the post beside ours, the errors of those that no parameter was fitted
/// to, and how much the answer moves with each uncertain parameter.
///
/// `plugging`, if named, also measures hand-overs from submitters to a device's driver, from Linux
/// 2.6.0 to this project's, with real threads and locks on this machine, over a null device; the
/// cells below that are of a model of the locks, in virtual time. `hybrid-polling --live` measures
/// ways to wait for a device, and simulates none.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    step: Option<Step>,
    // Its help names all studies.
    #[arg(value_name = "NAME", help = names_help())]
    names: Vec<String>,
    /// Leave out how much the answer moves with each parameter.
    #[arg(long)]
    cells_only: bool,
    #[command(flatten)]
    format: Format,
    /// Run nothing, but write a file for each run into this new directory, which holds one plan.
    /// `run-task` runs one, on any machine, and `collect` makes the report.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "html"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    measuring: MeasuringOptions,
}

#[derive(Debug, clap::Args)]
struct Format {
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Also write a self-contained HTML page with charts.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Run a file of `--plan`, and write the answer beside it, as NAME.answer.json.
    RunTask {
        /// The file, NAME.task.json.
        file: PathBuf,
    },
    /// Make the report from the tasks in a directory and their answers.
    Collect {
        /// The directory.
        dir: PathBuf,
        #[command(flatten)]
        format: Format,
    },
}

const TASK: &str = ".task.json";
const ANSWER: &str = ".answer.json";

/// How many missing answers are named.
const NAMED: usize = 5;

impl Format {
    /// Opens the page, before anything runs of which it tells.
    fn open_page(&self) -> Result<Option<OutFile>> {
        self.html.as_deref().map(OutFile::open).transpose()
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.step {
        Some(Step::RunTask { file }) => run_task(file)?,
        Some(Step::Collect { dir, format }) => collect_dir(dir, format)?,
        None => {
            let left_out_by = match &args.plan {
                _ if args.cells_only => Some("--cells-only"),
                plan => plan.as_ref().map(|_| "--plan"),
            };
            let wanted = args.measuring.wanted(&args.names, left_out_by)?;
            let chosen = chosen(&args.names, &wanted)?;
            // Before the plan, which takes a second where all is asked for.
            let page = args.format.open_page()?;
            let extent = if args.cells_only { Extent::Cells } else { Extent::Whole };
            let tasks: Vec<_> =
                chosen.iter().flat_map(|study| plan(study.as_ref(), extent)).collect();
            if let Some(dir) = &args.plan {
                write_plan(&tasks, dir)?;
            } else {
                run_here(&chosen, &tasks, &args.format, page, &wanted)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn study_names() -> Vec<&'static str> {
    studies().iter().map(|study| study.name()).collect()
}

fn names_help() -> String {
    format!("The studies ({}), or `all`", study_names().join(", "))
}

/// The studies of these names, in the order of their posts; all of them where there is none. What
/// is measured instead is not among them.
fn chosen(names: &[String], wanted: &Wanted<'_>) -> Result<Vec<Box<dyn Study>>> {
    let mut studies = studies();
    let known = study_names();
    for (index, name) in names.iter().enumerate() {
        ensure!(
            name == "all" || known.contains(&name.as_str()),
            "there is no study {name:?}; there are: {}",
            known.join(", ")
        );
        ensure!(!names[..index].contains(name), "the study {name} twice: once is allowed");
    }
    if !names.is_empty() && !names.iter().any(|name| name == "all") {
        studies.retain(|study| names.iter().any(|name| name == study.name()));
    }
    studies.retain(|study| !wanted.replaces(study.name()));
    Ok(studies)
}

fn run_here(
    studies: &[Box<dyn Study>],
    tasks: &[Task],
    format: &Format,
    page: Option<OutFile>,
    wanted: &Wanted<'_>,
) -> Result<()> {
    // First, while nothing else runs.
    let measured = wanted.measure()?;
    let count = RunCount::new(tasks.len())?;
    let answers: Result<Vec<Answer>, TaskError> =
        tasks.par_iter().map(|task| task.run().inspect(|_| count.inc())).collect();
    count.clear();
    print(&reports(studies, &answers?)?, &measured, format, page)
}

fn reports(studies: &[Box<dyn Study>], answers: &[Answer]) -> Result<Vec<StudyReport>> {
    let reports = studies.iter().map(|study| collect(study.as_ref(), answers));
    Ok(reports.collect::<Result<_, _>>()?)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Whole<'a> {
    version: u32,
    studies: &'a [StudyReport],
    #[serde(flatten)]
    measured: &'a Measurements,
}

/// Prints the reports, and then writes the page, so that one in /dev/stdout comes behind.
fn print(
    reports: &[StudyReport],
    measured: &Measurements,
    format: &Format,
    page: Option<OutFile>,
) -> Result<()> {
    let text = if format.json {
        let whole = Whole { version: VERSION, studies: reports, measured };
        serde_json::to_string_pretty(&whole)? + "\n"
    } else {
        std::iter::once(measured.text()).chain(reports.iter().map(study::text)).collect()
    };
    output::print(text.as_bytes())?;
    match page {
        Some(page) => {
            let tables = measured.page_tables();
            page.write(studies_page(&command_line::given(), reports, &tables).as_bytes())
        }
        None => Ok(()),
    }
}

fn write_plan(tasks: &[Task], dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    ensure!(
        files(dir, TASK)?.is_empty(),
        "{} has tasks already; an empty directory is allowed",
        dir.display()
    );
    for (number, task) in tasks.iter().enumerate() {
        let path = dir.join(format!("{}-{number:05}{TASK}", task.name.study));
        OutFile::open(&path)?.write(&serde_json::to_vec_pretty(task)?)?;
    }
    let count = tasks.len();
    output::print(format!("{count} tasks in {}\n", dir.display()).as_bytes())
}

fn run_task(file: &Path) -> Result<()> {
    let answer_path = answer_of(file)?;
    let task: Task = read(file)?;
    let answer_file = OutFile::open(&answer_path)?;
    let answer = task.run().with_context(|| file.display().to_string())?;
    let instead = if answer_path.exists() { ", instead of the one that was there" } else { "" };
    answer_file.write(&serde_json::to_vec_pretty(&answer)?)?;
    output::print(format!("answer in {}{instead}\n", answer_path.display()).as_bytes())
}

fn collect_dir(dir: &Path, format: &Format) -> Result<()> {
    let page = format.open_page()?;
    let planned = planned()?;
    let mut tasks: Vec<(PathBuf, Task)> = Vec::new();
    for file in files(dir, TASK)? {
        let task: Task = read(&file)?;
        ensure!(
            planned.get(&key(&task.name)?) == Some(&task),
            "{} is no task of this version's studies, which have changed since it was planned",
            file.display()
        );
        tasks.push((file, task));
    }
    check_answers(&tasks)?;
    let mut answers: Vec<Answer> = Vec::new();
    for (file, task) in tasks {
        let answer_file = answer_of(&file)?;
        let answer: Answer = read(&answer_file)?;
        ensure!(
            answer.name == task.name && answer.version == VERSION,
            "{} answers another task than {}",
            answer_file.display(),
            file.display()
        );
        answers.push(answer);
    }
    let mut studies = studies();
    studies.retain(|study| answers.iter().any(|answer| answer.name.study == study.name()));
    if studies.is_empty() {
        bail!("{} has no tasks; `study NAME --plan DIR` writes them", dir.display());
    }
    print(&reports(&studies, &answers)?, &Measurements::default(), format, page)
}

/// Each task has an answer; those that have none are named, the first of them.
fn check_answers(tasks: &[(PathBuf, Task)]) -> Result<()> {
    let answers: Vec<_> = tasks.iter().map(|(file, _)| answer_of(file)).collect::<Result<_>>()?;
    let missing: Vec<_> = answers.iter().filter(|answer| !answer.exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = missing.iter().take(NAMED).map(|it| it.display().to_string()).collect();
    let more = match missing.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (count, all) = (missing.len(), tasks.len());
    let named = named.join(", ");
    bail!("{count} of {all} answers are missing, which `study run-task` makes: {named}{more}");
}

/// All tasks of all studies, by their names.
fn planned() -> Result<HashMap<String, Task>> {
    let tasks = studies().into_iter().flat_map(|study| plan(study.as_ref(), Extent::Whole));
    tasks.map(|task| Ok((key(&task.name)?, task))).collect()
}

fn key(name: &TaskName) -> Result<String> {
    Ok(serde_json::to_string(name)?)
}

/// The files of the directory whose names end so, in order.
fn files(dir: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut files = list().with_context(|| format!("cannot read {}", dir.display()))?;
    files.retain(|path| path.to_string_lossy().ends_with(end));
    files.sort();
    Ok(files)
}

fn answer_of(task: &Path) -> Result<PathBuf> {
    let name = task.file_name().and_then(|name| name.to_str()).and_then(|it| it.strip_suffix(TASK));
    let name =
        name.with_context(|| format!("{}: the name of a task ends with {TASK}", task.display()))?;
    Ok(task.with_file_name(format!("{name}{ANSWER}")))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = paternoster_model::read_input(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| anyhow!("{}", told_with_place(path, &error)))
}
