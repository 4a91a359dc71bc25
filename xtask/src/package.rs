//! `cargo xtask package`: the server as a package of Debian, which is then looked at and tried.
//!
//! ```text
//!   build ──▶ manual pages, completions, unit ──▶ cargo deb ──▶ lintian
//!                                                     └────────▶ installed in a Debian 12, serves,
//!                                 queries of the dashboard ◀──── is scraped, and removed: images
//!                                                                stay
//! ```
//!
//! What the package has is in `[package.metadata.deb]` of crates/paternoster-cli, and in
//! packaging/. Who makes it is whom Debian's variables say: `DEBFULLNAME` and `DEBEMAIL`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::debian::{self, Debian, Shared};
use crate::{audit, cargo, dashboard, packages};

/// The release that it is tried in.
const SUITE: &str = "bookworm";
/// The version of cargo-deb, which makes packages.
const CARGO_DEB: &str = "3.8.0";
/// Where completions of each shell go.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// Where the package is in the Debian.
const SRV: &str = "/srv";

/// Installs it as root in a Debian without systemd. The server runs as its user.
const INSTALLATION: &str = r#"
apt-get update -qq
apt-get install -qq -y --no-install-recommends ./paternoster.deb > /dev/null
cd /
paternoster --version
test "$(stat -c %U:%a /var/lib/paternoster)" = paternoster:750
test -s /usr/share/man/man1/paternoster-serve.1.gz
grep -q '^ExecStart=/usr/bin/paternoster ' /lib/systemd/system/paternoster.service
install -d -o paternoster -g paternoster /run/paternoster
as_user="setpriv --reuid paternoster --regid paternoster --clear-groups"
$as_user paternoster serve --check=start /etc/paternoster/paternoster.toml
$as_user paternoster serve /etc/paternoster/paternoster.toml & server=$!
until test -S /run/paternoster/ctl.sock; do kill -0 "$server"; sleep 0.1; done
paternoster ctl volume create vm1 --pool images --size 1M
paternoster ctl stat > /dev/null
kill "$server"
wait "$server"
"#;

/// Removes it.
const REMOVAL: &str = r"
apt-get purge -qq -y paternoster > /dev/null
test ! -e /usr/bin/paternoster && test ! -e /etc/paternoster
test -e /var/lib/paternoster/images/vm1.img
";

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Make the package, and neither look at it nor try it, which needs root
    #[arg(long)]
    only: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::require(&["dpkg-dev", "binutils"])?;
    if !args.only {
        packages::require(&["lintian", "curl"])?;
        debian::require("it")?;
        audit::check_without_advisories()?;
    }
    // As crates/paternoster-cli/Cargo.toml has it, wherever cargo builds.
    let dir = std::path::absolute("target/package")?;
    prepare(&dir)?;
    let package = make(&dir)?;
    println!("{}", package.display());
    if args.only {
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root", "--info"]);
    cargo::run(lintian.arg(&package))?;
    let debian = Debian::install(dir.join(SUITE), SUITE, &dashboard::PACKAGES)?;
    let shared = Shared { from: &dir, at: SRV, options: "ro" };
    cargo::run(&mut debian.shell(&shared, &format!("cd {SRV}\n{INSTALLATION}")))?;
    dashboard::check(&debian, &shared)?;
    cargo::run(&mut debian.shell(&shared, REMOVAL))?;
    debian.remove()?;
    println!("the package is installed, serves and is removed");
    Ok(())
}

/// Builds the program, and makes of it and of packaging/ what the package has beside it.
fn prepare(dir: &Path) -> Result<()> {
    let program = cargo::paternoster()?;
    crate::oracle::make_empty(dir)?;
    cargo::run(Command::new(&program).arg("man").arg(dir.join("man")))?;
    for shell in SHELLS {
        let output = Command::new(&program).args(["completions", shell]).output();
        let output = output.context("the program does not start")?;
        ensure!(output.status.success(), "no completions for {shell}: {}", output.status);
        write(&dir.join(format!("paternoster.{shell}")), &output.stdout)?;
    }
    let unit = fs::read_to_string("packaging/systemd/paternoster.service").context("the unit")?;
    let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
    write(&dir.join("paternoster.service"), unit.as_bytes())?;
    let git = ["-c", "safe.directory=*", "log", "-1", "--format=%cD"];
    let when = Command::new("git").args(git).output().context("git does not start")?;
    ensure!(when.status.success(), "git log failed: {}", when.status);
    let (version, when) = (env!("CARGO_PKG_VERSION"), String::from_utf8_lossy(&when.stdout));
    let changelog = format!(
        "paternoster ({version}-1) unstable; urgency=medium\n\n  \
         * CHANGELOG.md of the sources says what is new.\n\n -- {}  {when}",
        maintainer()
    );
    write(&dir.join("changelog"), changelog.as_bytes())
}

/// Who makes the package.
fn maintainer() -> String {
    let of = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let name = of("DEBFULLNAME", "The paternoster authors");
    format!("{name} <{}>", of("DEBEMAIL", "paternoster@example.org"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Makes the package. Returns where it is.
fn make(dir: &Path) -> Result<PathBuf> {
    let package = dir.join("paternoster.deb");
    let mut deb = Command::new(cargo::tool("cargo-deb", CARGO_DEB)?);
    deb.args([
        "deb",
        "--quiet",
        "--strip",
        "--no-build",
        "-p",
        "paternoster-cli",
        "--maintainer",
        &maintainer(),
    ]);
    deb.arg("--output").arg(&package);
    cargo::run(&mut deb)?;
    Ok(package)
}
