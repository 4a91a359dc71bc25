//! A process that does not outlive the run that started it.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A process that is killed and waited for when this is dropped, so that also a run that fails
/// leaves nothing behind.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Deref for KilledOnDrop {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for KilledOnDrop {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself, and then neither has an effect.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, test_kill_process};

    use super::*;

    #[test]
    fn process_is_gone_with_it() {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let process = KilledOnDrop(child);
        let pid = Pid::from_child(&process);
        assert!(test_kill_process(pid).is_ok());
        drop(process);
        assert!(test_kill_process(pid).is_err());
    }
}
