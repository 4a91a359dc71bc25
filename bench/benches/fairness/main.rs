//! `cargo xtask bench fairness`: what a neighbour keeps of a disk that is attacked, under each
//! scheduler, as the table of `docs/fairness.md`.

mod attacks;

use std::time::Duration;

use anyhow::{Result, bail};
use attacks::{Rates, Service, attacks, baseline, fair, measure, measure_heavy, shows_shares};
use paternoster::SchedulerKind;

const SPAN: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let disk = baseline(SPAN)?;
    if !shows_shares(disk) {
        bail!("this machine is too busy: the disk does not do 97 % of 20,000 requests a second");
    }
    println!("The disk does {disk:.0} requests a second under none, 64 outstanding each.\n");
    println!("What the neighbour keeps, in % of half of that / what the disk then does / what the");
    println!("attacker gets, both in requests a second:\n");
    print_header();
    let mut all = vec![];
    for (name, attacker) in attacks() {
        print!("| {name} |");
        let mut row = vec![];
        for kind in SchedulerKind::ALL {
            let rates = measure(kind, &attacker, SPAN)?;
            let kept = 200.0 * rates.neighbour / disk;
            print!(" {kept:.0} % / {:.0} / {:.0} |", rates.of_disk(), rates.attacker);
            row.push(rates);
        }
        println!();
        all.push(row);
    }
    print_slowdown(&all, fair(SPAN)?);
    println!(
        "\nA tenant of weight 400 with one request outstanding, beside one of weight 100 with"
    );
    println!(
        "64: what it gets alone / beside it, in % of four fifths of that / what the disk does:\n"
    );
    println!("| it thinks | `cfq` | `bfq` |\n|---|---|---|");
    for ((_, attacker), thinks) in attacks().into_iter().zip(["0", "100 µs", "300 µs", "700 µs"])
    {
        print!("| {thinks} |");
        for kind in [SchedulerKind::Cfq, SchedulerKind::Bfq] {
            let (alone, rates) = measure_heavy(kind, &attacker, SPAN)?;
            let part = 100.0 * rates.attacker / (0.8 * alone);
            print!(" {alone:.0} / {:.0}, {part:.0} % / {:.0} |", rates.attacker, rates.of_disk());
        }
        println!();
    }
    Ok(())
}

fn print_header() {
    print!("| attacker |");
    for kind in SchedulerKind::ALL {
        print!(" `{kind}` |");
    }
    println!("\n|---|{}", "---|".repeat(SchedulerKind::ALL.len()));
}

/// The slowdown of the neighbour: a row for each attack, a cell for each scheduler.
fn print_slowdown(all: &[Vec<Rates>], fair: Service) {
    println!(
        "\nThe neighbour's slowdown against what it gets alone on a disk of half of the servers,"
    );
    println!(
        "{:.0} requests a second with a p99 of {:.2} ms: how many times fewer requests a second /",
        fair.rate,
        1e3 * fair.p99.as_secs_f64()
    );
    println!("how many times that p99:\n");
    print_header();
    for ((name, _), row) in attacks().into_iter().zip(all) {
        print!("| {name} |");
        for rates in row {
            let (fewer, longer) = rates.slowdown(fair);
            print!(" {fewer:.2} / {longer:.2} |");
        }
        println!();
    }
}
