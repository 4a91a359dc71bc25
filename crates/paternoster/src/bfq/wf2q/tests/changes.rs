//! When changes of weight, class and raising count, and what is counted by that.

use crate::arena::Arena;

use crate::arena::GroupId;
use crate::bfq::wf2q::tests::Field;
use crate::bfq::wf2q::tree::Greedy;
use crate::bfq::wf2q::{ActivationKind, Leaving, QueueId, Service};
use crate::io_context::{IoClass, IoPrio};
use crate::request::SectorCount;

const BUDGET: SectorCount = SectorCount(1000);
/// What a queue of the default level, 4 of 8, weighs: 10 for each level below the lowest.
const DEFAULT_WEIGHT: u32 = 40;

type Server = Field<Greedy>;

impl Server {
    fn weight_sum(&self, class: IoClass) -> u64 {
        self.wf2q.servers[self.root].classes[class as usize].weight_sum
    }

    /// A queue of the default level that wants service.
    fn active(&mut self) -> QueueId {
        let queue = self.add(DEFAULT_WEIGHT, 1);
        self.activate(queue, BUDGET, ActivationKind::New);
        queue
    }

    fn reinsert(&mut self, queue: QueueId) {
        let retired = self.wf2q.reinsert(queue, Service::GoesOn, self.now);
        self.let_go(&retired);
    }
}

#[test]
fn weight_counts_from_when_the_queue_is_put_on_its_tree_again() {
    let mut server = Server::new();
    let queue = server.active();
    server.wf2q.set_weight(queue, 70);
    assert_eq!(server.wf2q.weight(queue), 40);
    assert_eq!(server.weight_sum(IoClass::Be), 40);
    server.reinsert(queue);
    assert_eq!(server.wf2q.weight(queue), 70);
    assert_eq!(server.weight_sum(IoClass::Be), 70);
    server.wf2q.check();
}

#[test]
fn weights_are_from_1_to_1000() {
    let mut server = Server::new();
    let queue = server.active();
    for (asked, given) in [(0, 1), (5000, 1000)] {
        server.wf2q.set_weight(queue, asked);
        server.reinsert(queue);
        assert_eq!(server.wf2q.weight(queue), given);
    }
}

/// Its timestamps go on by the new weight at once, but a queue changes its tree only off every one.
#[test]
fn raising_is_settled_in_the_middle_of_a_service_and_the_class_is_not() {
    let mut server = Server::new();
    let queue = server.active();
    server.wf2q.reprioritise(queue, IoPrio::rt(0).expect("a level"));
    server.wf2q.set_raising_factor(queue, 30);
    assert_eq!(server.wf2q.weight(queue), 40);
    server.wf2q.settle_raising(queue);
    // Level 0 weighs 80.
    assert_eq!(server.wf2q.weight(queue), 80 * 30);
    assert_eq!(server.wf2q.class_of(queue), IoClass::Be);
    assert_eq!(server.weight_sum(IoClass::Be), 80 * 30);
    server.reinsert(queue);
    assert_eq!(server.wf2q.class_of(queue), IoClass::Rt);
    assert_eq!([IoClass::Rt, IoClass::Be].map(|class| server.weight_sum(class)), [2400, 0]);
    server.wf2q.check();
}

/// A change of weight alone waits for the tree; only raising that began or ended is settled.
#[test]
fn nothing_is_settled_for_a_queue_that_is_raised_as_it_was() {
    let mut server = Server::new();
    let queue = server.active();
    server.wf2q.set_weight(queue, 70);
    server.wf2q.settle_raising(queue);
    assert_eq!(server.wf2q.weight(queue), 40);
}

#[test]
fn weights_matter_to_all_but_the_lightest_queue_of_those_not_raised() {
    let mut server = Server::new();
    let [light, heavy] = [40, 70].map(|weight| {
        let queue = server.add(weight, 1);
        server.activate(queue, BUDGET, ActivationKind::New);
        server.wf2q.count_weight(queue);
        queue
    });
    assert!(!server.wf2q.weights_matter_for(light));
    assert!(server.wf2q.weights_matter_for(heavy));
    // Once raised it is not counted, and those that are left are of one weight.
    server.wf2q.set_raising_factor(light, 30);
    assert!(server.wf2q.weights_matter_for(heavy), "it is raised once that is applied");
    server.wf2q.settle_raising(light);
    assert!(!server.wf2q.weights_matter_for(heavy));
    server.wf2q.check();
    server.wf2q.set_raising_factor(light, 1);
    server.wf2q.settle_raising(light);
    assert!(server.wf2q.weights_matter_for(heavy), "it counts again");
    server.wf2q.check();
}

#[test]
fn groups_are_pending_until_their_last_queue_has_left() {
    let mut server = Server::new();
    let mut groups = Arena::<GroupId, ()>::default();
    // Another than the root.
    let group = [groups.insert(()), groups.insert(())][1];
    server.wf2q.add_group(group, server.root, 100);
    let queue = server.wf2q.add_queue(group, IoPrio::default());
    assert!(!server.wf2q.weights_matter_for(queue));
    server.activate(queue, BUDGET, ActivationKind::New);
    assert!(server.wf2q.weights_matter_for(queue), "its group has I/O pending");
    let now = server.now;
    let retired = server.wf2q.deactivate(queue, Leaving::KeepOnIdleTree, Service::GoesOn, now);
    server.let_go(&retired);
    assert!(server.wf2q.weights_matter_for(queue), "requests of it may be in the device");
    server.wf2q.drop_pending(queue);
    assert!(!server.wf2q.weights_matter_for(queue));
    server.wf2q.check();
}

#[test]
fn queue_that_retires_is_given_once_and_not_kept() {
    let mut server = Server::new();
    let queue = server.active();
    assert!(server.wf2q.keeps(queue));
    let retired = server.wf2q.deactivate(queue, Leaving::Retire, Service::GoesOn, server.now);
    assert!(!server.wf2q.keeps(queue));
    assert_eq!(server.wf2q.next_retired(&retired), Some(queue));
    assert_eq!(server.wf2q.next_retired(&retired), None);
}

/// Who serves it frees it, once it has left service.
#[test]
fn queue_in_service_does_not_retire_by_going_idle() {
    let mut server = Server::new();
    let queue = server.active();
    let (next, retired) = server.wf2q.serve_next(server.root, server.now);
    assert_eq!(next, queue);
    server.let_go(&retired);
    let retired = server.wf2q.deactivate(queue, Leaving::Retire, Service::Ends, server.now);
    assert_eq!(server.wf2q.next_retired(&retired), None);
    assert!(!server.wf2q.keeps(queue));
}
