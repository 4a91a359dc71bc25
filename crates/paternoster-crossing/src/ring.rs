//! A ring of one producer and one consumer: `rtrb`'s, or under the model checker one that keeps
//! what `rtrb` promises and no more.

#[cfg(not(feature = "model"))]
pub(crate) use rtrb::{Consumer, Producer, PushError};

/// Makes a ring that holds so many.
#[cfg(not(feature = "model"))]
pub(crate) fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    rtrb::RingBuffer::new(capacity)
}

#[cfg(feature = "model")]
pub(crate) use specified::{Consumer, Producer, PushError, ring};

/// The promise: a consumer that sees that something was put, by an acquiring load of what the
/// producer has stored with release, sees what it is; and the other way round for what was taken.
/// The locks of the slots stand for memory that is not atomic. Who has not seen the other move
/// touches none of them, so that nothing but this crate's fences orders a look at an empty ring.
#[cfg(feature = "model")]
mod specified {
    use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

    struct Shared<T> {
        slots: Vec<Mutex<Option<T>>>,
        /// Entries that were ever put.
        put: AtomicUsize,
        /// Entries that were ever taken.
        taken: AtomicUsize,
        /// Whether one of the two is gone.
        abandoned: AtomicBool,
    }

    pub(crate) struct Producer<T>(Arc<Shared<T>>);

    pub(crate) struct Consumer<T>(Arc<Shared<T>>);

    pub(crate) enum PushError<T> {
        Full(T),
    }

    pub(crate) fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let shared = Arc::new(Shared {
            slots: (0..capacity).map(|_| Mutex::new(None)).collect(),
            put: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        });
        (Producer(shared.clone()), Consumer(shared))
    }

    impl<T> Producer<T> {
        pub(crate) fn is_abandoned(&self) -> bool {
            self.0.abandoned.load(Ordering::Acquire)
        }

        pub(crate) fn push(&mut self, entry: T) -> Result<(), PushError<T>> {
            let Shared { slots, put, taken, .. } = &*self.0;
            let number = put.load(Ordering::Relaxed);
            if number - taken.load(Ordering::Acquire) == slots.len() {
                return Err(PushError::Full(entry));
            }
            *slots[number % slots.len()].lock().expect("nobody panics") = Some(entry);
            put.store(number + 1, Ordering::Release);
            Ok(())
        }
    }

    impl<T> Drop for Producer<T> {
        fn drop(&mut self) {
            self.0.abandoned.store(true, Ordering::Release);
        }
    }

    impl<T> Drop for Consumer<T> {
        fn drop(&mut self) {
            self.0.abandoned.store(true, Ordering::Release);
        }
    }

    impl<T> Consumer<T> {
        pub(crate) fn slots(&self) -> usize {
            self.0.put.load(Ordering::Acquire) - self.0.taken.load(Ordering::Relaxed)
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.slots() == 0
        }

        pub(crate) fn is_abandoned(&self) -> bool {
            self.0.abandoned.load(Ordering::Acquire)
        }

        pub(crate) fn pop(&mut self) -> Result<T, ()> {
            if self.is_empty() {
                return Err(());
            }
            let Shared { slots, taken, .. } = &*self.0;
            let number = taken.load(Ordering::Relaxed);
            let entry = slots[number % slots.len()].lock().expect("nobody panics").take();
            taken.store(number + 1, Ordering::Release);
            Ok(entry.expect("it was put"))
        }
    }
}
