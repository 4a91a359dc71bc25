//! A volume on a file comes to an owner that serves another, grows, is closed and goes.

use std::fs::File;
use std::ops::ControlFlow;

use paternoster::{AnyScheduler, Device, IocId, NoTrace, SchedulerKind};
use paternoster_disk::{
    Backend, Command, CommandOp, Completion, FileBackend, FileOptions, Front, FrontToken,
    GrowError, MemoryBackend, NoGrowth, Outcome, VolumeId, Waker,
};
use rustix::io::Errno;

use crate::support::front::{TestOwner, owner_of};
use crate::support::{elevator_with, read, within_a_minute, write};

const SMALL: u64 = 1 << 20;
const LARGE: u64 = 2 << 20;

/// What it has come to, and the answers so far: the first byte that was read, if any.
struct Story {
    ioc: IocId,
    file: File,
    backend: Option<Box<dyn Backend>>,
    volume: VolumeId,
    chapter: u32,
    answers: Vec<Result<Option<u8>, Errno>>,
    given_back: Option<Box<dyn Backend>>,
}

impl Story {
    fn put(&self, owner: &mut TestOwner, op: CommandOp) {
        owner.submit(Command { tag: 0.into(), volume: self.volume, ioc: self.ioc, op });
    }
}

impl Front<AnyScheduler<NoTrace>> for Story {
    fn started(&mut self, _: &mut TestOwner) {}

    fn ring_completed(&mut self, _: &mut TestOwner, _: Completion<FrontToken>) {
        unreachable!("it has nothing on the ring")
    }

    fn take_in(&mut self, _: &mut TestOwner) {}

    fn command_done(&mut self, _: &mut TestOwner, outcome: Outcome) {
        self.answers.push(outcome.result.map(|payload| payload.concat().first().copied()));
    }

    fn woken(&mut self, _: &mut TestOwner) {}

    fn round_over(&mut self, owner: &mut TestOwner) -> ControlFlow<()> {
        if !owner.engine().is_idle() {
            return ControlFlow::Continue(());
        }
        self.chapter += 1;
        match self.chapter {
            1 => {
                let backend = self.backend.take().expect("it comes once");
                self.volume = owner.add_volume(backend).expect("there is room");
                self.put(owner, write(SMALL - 4096, 4096, 7));
            }
            2 => {
                let grow = |owner: &mut TestOwner, size| owner.grow_volume(self.volume, size);
                let error = grow(owner, SMALL - 4096).expect_err("it is smaller");
                assert!(matches!(error, GrowError::Refused(NoGrowth::Smaller(SMALL))));
                let error = grow(owner, LARGE + 1).expect_err("not of whole blocks");
                assert!(matches!(error, GrowError::Backend(_)), "{error}");
                self.file.set_len(LARGE).expect("room");
                grow(owner, LARGE).expect("the file has grown");
                assert_eq!(owner.backend(self.volume).damage(), None);
                self.put(owner, write(LARGE - 4096, 4096, 9));
            }
            3 => self.put(owner, read(SMALL - 4096, 4096)),
            4 => self.put(owner, read(LARGE - 4096, 4096)),
            5 => {
                owner.close_volume(self.volume);
                self.put(owner, read(0, 4096));
                self.put(owner, CommandOp::Flush);
            }
            _ => {
                self.given_back = Some(owner.remove_volume(self.volume));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn volume_comes_grows_and_goes_while_another_is_served() {
    within_a_minute(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("volume.img");
        let file = File::create_new(&path).expect("a file");
        file.set_len(SMALL).expect("room");
        // Blocks, whatever the file system.
        let open = || FileBackend::open(&path, FileOptions::default());
        let backend = open().expect("it opens");
        let blocks = backend.capabilities().block > 1;
        let (elevator, connections) = elevator_with(SchedulerKind::Wfq, Device::solid_state(4), 1);
        let waker = Waker::new().expect("an event");
        let (owner, volume) = owner_of(elevator, Box::new(MemoryBackend::new(1 << 16)), waker);
        let mut story = Story {
            ioc: connections[0],
            file,
            backend: Some(Box::new(backend)),
            volume,
            chapter: 0,
            answers: Vec::new(),
            given_back: None,
        };
        assert!(blocks, "a file on which any byte can be written grows to any size");
        owner.run(&mut story).expect("the ring works");
        let read = [Ok(Some(7)), Ok(Some(9))];
        let expected = [Ok(None), Ok(None), read[0], read[1], Err(Errno::SHUTDOWN), Ok(None)];
        assert_eq!(story.answers, expected);
        assert!(open().is_err(), "it is locked until the back end is dropped");
        drop(story.given_back.take().expect("it has gone"));
        open().expect("nobody has it");
    });
}
