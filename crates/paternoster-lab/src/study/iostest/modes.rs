//! What post 3 claims, as a table: that groups below groups cost no throughput. Each of its
//! settings is run in each way in which CFQ can have groups share a device.

use paternoster::{Hierarchy, Kernel};

use super::Iostest;
use super::post::{self, Setting};
use crate::report::PageTable;
use crate::study::collect::{Answers, CollectError};
use crate::study::task::{JobsWork, Task, TaskName, Work};

/// The kernel whose CFQ has all of them.
const KERNEL: Kernel = Kernel::V4_20;

/// What that kernel has no tunable for.
const WITHOUT: &str = "group_isolation";

impl Iostest {
    /// The runs of each setting in each way.
    pub(super) fn mode_tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for setting in post::settings(&self.rows) {
            for mode in Hierarchy::ALL {
                let run = |run| self.mode_task(&setting, mode, run);
                tasks.extend((0..self.file.runs).map(run));
            }
        }
        tasks
    }

    fn mode_task(&self, setting: &Setting, mode: Hierarchy, run: u32) -> Task {
        let Task { version, name, work } = self.task(setting, None, run);
        let Work::Jobs(mut work) = work else { unreachable!("iostest runs jobs") };
        work.tunables.retain(|(name, _)| name != WITHOUT);
        let (kernel, hierarchy) = (Some(KERNEL.to_string()), Some(mode.to_string()));
        let work = Work::Jobs(JobsWork { kernel, hierarchy, ..work });
        Task { version, name: TaskName { row: row(setting, mode), ..name }, work }
    }

    /// The totals side by side, and how much less than the best of a setting any of them is.
    pub(super) fn mode_table(&self, answers: &Answers<'_>) -> Result<PageTable, CollectError> {
        let mut rows = Vec::new();
        let mut worst: Option<(f64, String)> = None;
        for setting in post::settings(&self.rows) {
            let total = |mode| self.total(answers, &setting, mode);
            let totals = Hierarchy::ALL.into_iter().map(total).collect::<Result<Vec<_>, _>>()?;
            let best = totals.iter().fold(0.0, |best: f64, &total| best.max(total));
            let mut cells = vec![setting.name()];
            cells.extend(totals.iter().map(|total| format!("{total:.0}")));
            let mut most: f64 = 0.0;
            for (mode, total) in Hierarchy::ALL.into_iter().zip(&totals) {
                let loss = 100.0 * (1.0 - total / best);
                most = most.max(loss);
                if worst.as_ref().is_none_or(|(worst, _)| loss > *worst) {
                    worst = Some((loss, format!("{mode} in {}", setting.name())));
                }
            }
            cells.push(format!("{most:.1} %"));
            rows.push(cells);
        }
        let (loss, place) = worst.expect("the post has settings");
        let note = format!(
            "The post's kernel has one of these ways and its patches add another; here all are of \
             Linux {KERNEL}. No way loses more than {loss:.1} % of the best total of a setting \
             ({place})."
        );
        let modes = Hierarchy::ALL.map(|mode| mode.to_string());
        let first = ["kB/s, means of all runs".to_owned()];
        let columns = first.into_iter().chain(modes).chain(["greatest loss".to_owned()]);
        Ok(PageTable {
            title: "Throughput in each way to share the device".to_owned(),
            notes: vec![note],
            columns: columns.collect(),
            rows,
        })
    }

    /// What all groups got together.
    fn total(
        &self,
        answers: &Answers<'_>,
        setting: &Setting,
        mode: Hierarchy,
    ) -> Result<f64, CollectError> {
        let groups = self.groups(setting);
        let figure = |group| format!("/{group}");
        let of = |group| answers.mean(&row(setting, mode), self.file.runs, &figure(group));
        groups.iter().map(of).sum()
    }
}

/// The name of such a run.
fn row(setting: &Setting, mode: Hierarchy) -> String {
    format!("{} {mode}", setting.name())
}
