//! Who issues bios: I/O contexts, each with its I/O priority and its group.
//!
//! Linux keeps an I/O context for each task, or for threads that share one. A scheduler makes a
//! queue for each. In the server each connection has one.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::arena::{Arena, GroupId, IocId};

/// The class of an I/O priority; a lower number is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IoClass {
    /// Real time: served before the others.
    Rt = 0,
    /// Best effort: the default.
    Be = 1,
    /// Idle: served when no other class is busy.
    Idle = 2,
}

impl IoClass {
    /// The number of classes.
    pub const COUNT: usize = 3;
    /// All of them, the most urgent first.
    pub const ALL: [Self; Self::COUNT] = [Self::Rt, Self::Be, Self::Idle];
}

/// An I/O priority: class and level, as `ionice` sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IoPrio {
    class: IoClass,
    level: u8,
}

impl IoPrio {
    /// The number of levels in a class.
    pub const LEVELS: u8 = 8;
    /// The idle class; Linux gives it the lowest level.
    pub const IDLE: Self = Self { class: IoClass::Idle, level: Self::LEVELS - 1 };

    /// Real time at `level`, 0 (most) to 7.
    pub const fn rt(level: u8) -> Option<Self> {
        Self::leveled(IoClass::Rt, level)
    }

    /// Best effort at `level`, 0 (most) to 7.
    pub const fn be(level: u8) -> Option<Self> {
        Self::leveled(IoClass::Be, level)
    }

    const fn leveled(class: IoClass, level: u8) -> Option<Self> {
        if level < Self::LEVELS { Some(Self { class, level }) } else { None }
    }

    /// The number of async slots of a group: one for each level of RT and of BE, and one for IDLE.
    pub(crate) const ASYNC_SLOTS: usize = 2 * Self::LEVELS as usize + 1;

    /// Returns the async slot that asynchronous requests of this priority share.
    pub(crate) fn async_slot(self) -> usize {
        match self.class {
            IoClass::Rt => self.level.into(),
            IoClass::Be => (Self::LEVELS + self.level).into(),
            IoClass::Idle => Self::ASYNC_SLOTS - 1,
        }
    }

    /// Returns it raised to best effort and to level 4, where it is below.
    pub(crate) fn boosted(self) -> Self {
        let Self { class, level } = Self::default();
        Self { class: self.class.min(class), level: self.level.min(level) }
    }

    /// The class.
    #[inline]
    pub const fn class(self) -> IoClass {
        self.class
    }

    /// The level in the class, 0 (most) to 7.
    #[inline]
    pub const fn level(self) -> u8 {
        self.level
    }
}

impl Default for IoPrio {
    /// `be/4`: the priority of a task of nice value 0 in Linux, if none is set.
    fn default() -> Self {
        Self { class: IoClass::Be, level: 4 }
    }
}

impl fmt::Display for IoPrio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            IoClass::Rt => write!(f, "rt/{}", self.level),
            IoClass::Be => write!(f, "be/{}", self.level),
            IoClass::Idle => f.write_str("idle"),
        }
    }
}

/// A text that names no I/O priority.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no I/O priority; rt/0 to rt/7, be/0 to be/7, idle and none are")]
pub struct ParseIoPrioError(String);

impl FromStr for IoPrio {
    type Err = ParseIoPrioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level = |digits: &str| match digits.as_bytes() {
            [digit @ b'0'..=b'7'] => Some(digit - b'0'),
            _ => None,
        };
        let prio = match text.split_once('/') {
            None if text == "idle" => Some(Self::IDLE),
            None if text == "none" => Some(Self::default()),
            Some(("rt", digits)) => level(digits).and_then(Self::rt),
            Some(("be", digits)) => level(digits).and_then(Self::be),
            _ => None,
        };
        prio.ok_or_else(|| ParseIoPrioError(text.to_owned()))
    }
}

/// One I/O context.
#[derive(Clone, Debug)]
pub struct IoContext {
    /// The I/O priority of its next requests.
    pub io_prio: IoPrio,
    /// The group of its next requests.
    pub group: GroupId,
    /// How many of its requests exist.
    requests: u32,
    /// Whether it has exited. Its key is freed with its last request.
    exited: bool,
}

/// The I/O contexts of one elevator.
#[derive(Debug, Default)]
pub struct IoContexts {
    slots: Arena<IocId, IoContext>,
}

impl IoContexts {
    /// Returns whether the context still exists and has not exited. This alone may be asked with a
    /// stale key.
    #[inline]
    pub fn alive(&self, ioc: IocId) -> bool {
        self.slots.get(ioc).is_some_and(|context| !context.exited)
    }

    #[inline]
    fn assert_exists(&self, ioc: IocId) {
        assert!(self.slots.contains_key(ioc), "the I/O context is gone");
    }

    pub(crate) fn add(&mut self, io_prio: IoPrio, group: GroupId) -> IocId {
        self.slots.insert(IoContext { io_prio, group, requests: 0, exited: false })
    }

    /// The I/O context; panics where it is gone.
    #[inline]
    pub(crate) fn get_mut(&mut self, ioc: IocId) -> &mut IoContext {
        self.assert_exists(ioc);
        &mut self.slots[ioc]
    }

    /// A request is made for it.
    #[inline]
    pub(crate) fn request_made(&mut self, ioc: IocId) -> &IoContext {
        let context = &mut self.slots[ioc];
        context.requests += 1;
        context
    }

    /// A request is freed; its context's key may go with it.
    #[inline]
    pub(crate) fn request_freed(&mut self, ioc: IocId) {
        self.slots[ioc].requests -= 1;
        self.free_if_unused(ioc);
    }

    /// The context exits; its key may go at once.
    pub(crate) fn exit(&mut self, ioc: IocId) {
        let context = self.get_mut(ioc);
        assert!(!context.exited, "an I/O context exits once");
        context.exited = true;
        self.free_if_unused(ioc);
    }

    /// Returns the contexts that have exited and still have requests.
    pub(crate) fn exited(&self) -> Vec<IocId> {
        let exited = self.slots.iter().filter(|(_, context)| context.exited);
        exited.map(|(ioc, _)| ioc).collect()
    }

    #[inline]
    fn free_if_unused(&mut self, ioc: IocId) {
        let context = &self.slots[ioc];
        if context.exited && context.requests == 0 {
            self.slots.remove(ioc);
        }
    }

    /// Returns whether any context, exited or not, belongs to `group`.
    pub(crate) fn any_in(&self, group: GroupId) -> bool {
        self.slots.values().any(|context| context.group == group)
    }
}

impl std::ops::Index<IocId> for IoContexts {
    type Output = IoContext;
    /// The I/O context; panics where it is gone.
    #[inline]
    fn index(&self, ioc: IocId) -> &IoContext {
        self.assert_exists(ioc);
        &self.slots[ioc]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_written_as_ionice_users_write_them() {
        for text in ["rt/0", "rt/7", "be/0", "be/4", "be/7", "idle"] {
            assert_eq!(text.parse::<IoPrio>().expect(text).to_string(), text);
        }
        assert_eq!("none".parse(), Ok(IoPrio::default()));
    }

    #[test]
    fn what_is_no_priority_is_refused_with_what_is_allowed() {
        for text in ["", "be", "be/8", "be/-1", "be/44", "idle/3", "RT/1"] {
            let error = text.parse::<IoPrio>().expect_err(text);
            assert!(error.to_string().contains("rt/0 to rt/7"), "{error}");
        }
    }
}
