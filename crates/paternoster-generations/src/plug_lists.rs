//! Lists of plugged queues: circular, each queue on one of them at most, and taken off without a
//! look at which.
//!
//! ```text
//!   nodes   0 … queues − 1      the queues
//!           queues …            heads: list 0, list 1, …; a list that is empty is its head alone
//! ```

/// So many lists of so many queues.
#[derive(Debug)]
pub(crate) struct PlugLists {
    next: Vec<usize>,
    previous: Vec<usize>,
    queues: usize,
}

impl PlugLists {
    pub(crate) fn new(queues: usize, lists: usize) -> Self {
        let alone: Vec<_> = (0..queues + lists).collect();
        Self { next: alone.clone(), previous: alone, queues }
    }

    /// Puts a queue that is on no list at the end of one.
    pub(crate) fn push(&mut self, list: usize, queue: usize) {
        let head = self.queues + list;
        let before = self.previous[head];
        self.link(before, queue);
        self.link(queue, head);
    }

    /// Takes a queue off the list that it is on, if it is on one.
    pub(crate) fn remove(&mut self, queue: usize) {
        let (before, behind) = (self.previous[queue], self.next[queue]);
        self.link(before, behind);
        self.link(queue, queue);
    }

    /// The first queue of a list.
    pub(crate) fn first(&self, list: usize) -> Option<usize> {
        let first = self.next[self.queues + list];
        (first < self.queues).then_some(first)
    }

    /// Moves all of a list to the end of another.
    pub(crate) fn move_all(&mut self, from: usize, to: usize) {
        let (from, to) = (self.queues + from, self.queues + to);
        let (first, last) = (self.next[from], self.previous[from]);
        if first == from {
            return;
        }
        let before = self.previous[to];
        self.link(before, first);
        self.link(last, to);
        self.link(from, from);
    }

    fn link(&mut self, before: usize, behind: usize) {
        self.next[before] = behind;
        self.previous[behind] = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(lists: &mut PlugLists, list: usize) -> Vec<usize> {
        let mut queues = vec![];
        while let Some(queue) = lists.first(list) {
            lists.remove(queue);
            queues.push(queue);
        }
        queues
    }

    #[test]
    fn queues_leave_in_their_order_from_whichever_list_they_are_on() {
        let mut lists = PlugLists::new(5, 2);
        for queue in [3, 0, 4] {
            lists.push(0, queue);
        }
        lists.push(1, 1);
        lists.move_all(0, 1);
        assert_eq!(lists.first(0), None);
        lists.push(0, 2);
        lists.remove(0);
        lists.remove(0);
        assert_eq!(drained(&mut lists, 1), [1, 3, 4]);
        lists.move_all(1, 0);
        assert_eq!(drained(&mut lists, 0), [2]);
    }
}
