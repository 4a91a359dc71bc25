//! What a service manager is told, such as systemd of a unit with `Type=notify`: `sd_notify(3)`.
//!
//! | when | what |
//! |---|---|
//! | clients can connect | `READY=1` |
//! | the configuration's file is read again | `RELOADING=1` with the time, then `READY=1` |
//! | the end begins | `STOPPING=1` |
//! | the next server is to go on | `FDSTORE=1` for each descriptor, then `BARRIER=1` |
//! | this one has gone on | `FDSTOREREMOVE=1` for each |
//!
//! `STATUS=` says it in words, each time. Without `NOTIFY_SOCKET` nobody is told. A manager that
//! does not hear is a warning in the log: it will do what it does when nothing comes.

use std::io;
use std::os::fd::AsFd as _;

use paternoster_disk::Fd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PipeFlags;
use sd_notify::NotifyState;

use crate::ctl::{ReloadAnswer, ReloadError};

/// Tells the service manager of this process, if it is one's to tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceManager {
    is_told: bool,
}

impl ServiceManager {
    /// The manager of a process that is a server and nothing else.
    pub(crate) const OF_PROCESS: Self = Self { is_told: true };

    /// Clients can connect.
    pub(crate) fn ready(self, exports: usize) {
        let plural = if exports == 1 { "" } else { "s" };
        self.tell(|| {
            let status = format!("serves {exports} export{plural}");
            sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)])
        });
    }

    /// Does a reload, before and behind which the manager is told.
    pub(crate) fn around_reload(
        self,
        reload: impl FnOnce() -> Result<ReloadAnswer, ReloadError>,
    ) -> Result<ReloadAnswer, ReloadError> {
        self.tell(|| {
            let now = NotifyState::monotonic_usec_now()?;
            let status = NotifyState::Status("reads its file again");
            sd_notify::notify(&[NotifyState::Reloading, now, status])
        });
        let result = reload();
        self.tell(|| {
            let status = match &result {
                Ok(answer) => format!("has read its file again: {} changed", answer.changed.len()),
                Err(_) => "has refused its file, and serves as before: see its log".to_owned(),
            };
            sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)])
        });
        result
    }

    /// The end begins, for that reason.
    pub(crate) fn stopping(self, why: &str) {
        self.tell(|| {
            let status = format!("{why}: shutting down");
            sd_notify::notify(&[NotifyState::Stopping, NotifyState::Status(&status)])
        });
    }

    /// Whether there is one.
    pub(crate) fn is_there(self) -> bool {
        self.is_told && std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// Leaves a descriptor to it, by that name, also one whose other end hangs up.
    pub(crate) fn store(name: &str, descriptor: &Fd) -> io::Result<()> {
        let kept = NotifyState::Custom("FDPOLL=0");
        let state = [NotifyState::FdStore, NotifyState::FdName(name), kept];
        sd_notify::notify_with_fds(&state, &[descriptor.as_fd()])
    }

    /// Has it forget descriptors that it has passed to this server.
    pub(crate) fn forget(self, names: &[String]) {
        for name in names {
            let state = [NotifyState::FdStoreRemove, NotifyState::FdName(name)];
            self.tell(|| sd_notify::notify(&state));
        }
    }

    /// Waits until it has heard all that it was told.
    pub(crate) fn wait_until_heard() -> io::Result<()> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        sd_notify::notify_with_fds(&[NotifyState::Custom("BARRIER=1")], &[theirs.as_fd()])?;
        drop(theirs);
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let mut polled = [PollFd::new(&ours, PollFlags::empty())];
        match poll(&mut polled, Some(&patience))? {
            0 => Err(io::Error::other("it does not answer")),
            _ => Ok(()),
        }
    }

    fn tell(self, tell: impl FnOnce() -> io::Result<()>) {
        if !self.is_told {
            return;
        }
        if let Err(error) = tell() {
            tracing::warn!("the service manager at NOTIFY_SOCKET was not told: {error}");
        }
    }
}
