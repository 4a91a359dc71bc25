//! Memory that a front-end takes away: a fault there ends the device, not the server.
//!
//! Whoever has given us a file can make it shorter, and then touching what we have mapped of it is
//! SIGBUS, which kills. So each mapping has a slot in a table, and the handler looks for the slot
//! that the fault is in:
//!
//! ```text
//!   fault ──▶ in a mapping of the table? ── yes ──▶ zeroes over all of it, and it is lost
//!                                       └── no ───▶ as if there were no handler
//! ```
//!
//! The access is then done again and finds zeroes. The owner of the device sees that its memory is
//! lost, and lets it go. A read that the kernel makes there raises no signal: it fails with EFAULT.
//!
//! This is one of two files that may have unsafe code: a signal's handler cannot be without.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Most mappings of the whole server.
pub(crate) const MAX_MAPPINGS: usize = 32_768;

/// A mapping; none has no bytes.
struct Slot {
    is_taken: AtomicBool,
    start: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
}

static SLOTS: [Slot; MAX_MAPPINGS] = [const {
    Slot {
        is_taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; MAX_MAPPINGS];

/// What was there for the signal before: std's handler, which tells of stacks that overflow.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping that is watched, for as long as this is there. It has to be dropped before the mapping
/// is undone.
#[derive(Debug)]
pub(crate) struct Watched {
    slot: usize,
}

impl Watched {
    /// Watches the mapping of so many bytes at `start`; none where there are too many.
    pub(crate) fn new(start: *const u8, len: usize) -> io::Result<Option<Self>> {
        install()?;
        let take = |slot: &Slot| !slot.is_taken.swap(true, Ordering::AcqRel);
        let Some(slot) = SLOTS.iter().position(take) else { return Ok(None) };
        let Slot { start: at, len: bytes, is_lost, .. } = &SLOTS[slot];
        is_lost.store(false, Ordering::Relaxed);
        at.store(start.expose_provenance(), Ordering::Relaxed);
        // The handler looks at the length first.
        bytes.store(len, Ordering::Release);
        Ok(Some(Self { slot }))
    }

    /// Returns whether it has been found to be no more.
    pub(crate) fn is_lost(&self) -> bool {
        SLOTS[self.slot].is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let slot = &SLOTS[self.slot];
        slot.len.store(0, Ordering::Release);
        slot.is_taken.store(false, Ordering::Release);
    }
}

/// Installs the handler, once in a process.
fn install() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    let mut before = MaybeUninit::uninit();
    // SAFETY: all of `sigaction` is valid as zeroes; the handler only does what is allowed in one
    // (loads and stores of atomics, mmap, sigaction, raise), and has the signature that SA_SIGINFO
    // wants.
    let before = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as usize;
        // On std's stack for signals, if the thread has one.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let before = before.assume_init();
        if before.sa_sigaction != action.sa_sigaction
            && libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) != 0
        {
            return Err(io::Error::last_os_error());
        }
        before
    };
    // Two threads may have come here at once, of which the second has found our handler.
    if before.sa_sigaction != handler as usize {
        BEFORE.get_or_init(|| before);
    }
    Ok(())
}

extern "C" fn handle(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes what it says of the signal.
    let is_fault = unsafe { (*info).si_code } > 0;
    if !is_fault {
        // A process has sent it, and there is no address.
        pass_on();
        // SAFETY: it may be called here. The signal comes again when this returns.
        unsafe { libc::raise(libc::SIGBUS) };
        return;
    }
    // SAFETY: as above; SIGBUS by a fault has an address.
    let addr = unsafe { (*info).si_addr() }.addr();
    if lose(addr).is_none() {
        pass_on();
    }
}

/// Maps zeroes over the mapping that has this address; none where there is none, or they cannot be
/// mapped.
fn lose(addr: usize) -> Option<()> {
    let has = |slot: &&Slot| {
        let len = slot.len.load(Ordering::Acquire);
        addr.checked_sub(slot.start.load(Ordering::Relaxed)).is_some_and(|offset| offset < len)
    };
    let slot = SLOTS.iter().find(has)?;
    let start = slot.start.load(Ordering::Relaxed);
    let start = NonNull::new(ptr::with_exposed_provenance_mut::<libc::c_void>(start))?;
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // First: another thread that finds the zeroes has to know whose they are.
    slot.is_lost.store(true, Ordering::SeqCst);
    // SAFETY: all of it is a mapping of a region, which whoever faulted holds on to; nothing but
    // copies and atomics of vm-memory and reads of the kernel's ever touch it, which expect that
    // its bytes change.
    let mapped =
        unsafe { mmap_anonymous(start.as_ptr(), slot.len.load(Ordering::Relaxed), prot, flags) };
    mapped.ok()?;
    Some(())
}

/// Has the fault happen again with the handler that was there before, or none.
fn pass_on() {
    // SAFETY: what is set is what `sigaction` gave, or the default, which is zeroes.
    unsafe {
        let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        let before = BEFORE.get().unwrap_or(&default);
        libc::sigaction(libc::SIGBUS, before, ptr::null_mut());
    }
}
