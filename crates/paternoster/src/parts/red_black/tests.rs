//! The tree beside a naive one, and beside the shapes of the textbook.

use super::*;
use proptest::prelude::*;

/// Nodes by index; the index is the key.
struct Keys(Vec<TreeLinks>);

impl Nodes for Keys {
    fn links(&self, node: Slot) -> &TreeLinks {
        &self.0[node.index()]
    }
    fn links_mut(&mut self, node: Slot) -> &mut TreeLinks {
        &mut self.0[node.index()]
    }
}

/// Nodes by index, each with a value and with the least value below it. The empty node's is the
/// greatest.
struct Values {
    links: Vec<TreeLinks>,
    own: Vec<u32>,
    least: Vec<u32>,
}

impl Nodes for Values {
    const SUMMARIZED: bool = true;

    fn links(&self, node: Slot) -> &TreeLinks {
        &self.links[node.index()]
    }
    fn links_mut(&mut self, node: Slot) -> &mut TreeLinks {
        &mut self.links[node.index()]
    }
    fn summarize(&mut self, node: Slot) -> bool {
        let below = self.links[node.index()].child.map(|child| self.least[child.index()]);
        let least = self.own[node.index()].min(below[0]).min(below[1]);
        std::mem::replace(&mut self.least[node.index()], least) != least
    }
    fn inherit_summary(&mut self, heir: Slot, node: Slot) {
        self.least[heir.index()] = self.least[node.index()];
    }
}

impl Values {
    /// The least value below `node`, by looking at all; each summary on the way is that.
    fn checked_least(&self, node: Slot) -> u32 {
        if node.is_none() {
            return u32::MAX;
        }
        let below = self.links[node.index()].child.map(|child| self.checked_least(child));
        let least = self.own[node.index()].min(below[0]).min(below[1]);
        assert_eq!(self.least[node.index()], least, "the summary of {node:?}");
        least
    }
}

/// A key's place: how the search for it went.
fn place(tree: &Tree, nodes: &impl Nodes, key: u32) -> Place {
    let mut place = Place::ROOT;
    let mut node = tree.root();
    while node.is_some() {
        place = Place { parent: node, side: Branch::right_if(key as usize >= node.index()) };
        node = nodes.links(node).child(place.side);
    }
    place
}

struct Numbers {
    tree: Tree,
    keys: Keys,
}

impl Numbers {
    fn up_to(limit: usize) -> Self {
        Self { tree: Tree::default(), keys: Keys(vec![TreeLinks::default(); limit + 1]) }
    }

    fn insert(&mut self, key: u32) {
        let place = place(&self.tree, &self.keys, key);
        self.tree.insert_below(&mut self.keys, Slot::new(key), place);
        self.tree.check(&self.keys);
    }

    fn remove(&mut self, key: u32) {
        self.tree.remove(&mut self.keys, Slot::new(key));
        self.tree.check(&self.keys);
    }

    /// All keys, by steps from the outermost one of a side.
    fn from(&self, side: Branch) -> Vec<usize> {
        let some = |node: Slot| node.is_some().then_some(node);
        let first = some(self.tree.outermost(&self.keys, side));
        let next = |&node: &Slot| some(Tree::neighbour(&self.keys, node, side.other()));
        std::iter::successors(first, next).map(Slot::index).collect()
    }

    /// The shape: a node, its colour, and in brackets what is below it.
    fn shape(&self) -> String {
        self.shape_below(self.tree.root())
    }

    fn shape_below(&self, node: Slot) -> String {
        if node.is_none() {
            return "-".to_owned();
        }
        let links = &self.keys.0[node.index()];
        let here = format!("{}{}", node.index(), if links.is_red() { "r" } else { "b" });
        if links.child == [Slot::NONE; 2] {
            return here;
        }
        let [left, right] = links.child.map(|child| self.shape_below(child));
        format!("{here}({left} {right})")
    }
}

/// Worked out by hand with the textbook's cases.
///
/// The last four insertions: 7 turns about 6 (its parent red, no uncle); 8 finds a red uncle
/// (5), which makes 6 red below the red 4, so that the tree turns about 4; 9 turns about 8;
/// 10 finds a red uncle (7), then another (2), and the root is made black again.
#[test]
fn ascending_keys_give_the_textbooks_shapes() {
    let mut tree = Numbers::up_to(10);
    let mut shapes = vec![];
    for key in 1..=10 {
        tree.insert(key);
        shapes.push(tree.shape());
    }
    let expected = [
        "1b",
        "1b(- 2r)",
        "2b(1r 3r)",
        "2b(1b 3b(- 4r))",
        "2b(1b 4b(3r 5r))",
        "2b(1b 4r(3b 5b(- 6r)))",
        "2b(1b 4r(3b 6b(5r 7r)))",
        "4b(2r(1b 3b) 6r(5b 7b(- 8r)))",
        "4b(2r(1b 3b) 6r(5b 8b(7r 9r)))",
        "4b(2b(1b 3b) 6b(5b 8r(7b 9b(- 10r))))",
    ];
    assert_eq!(shapes, expected);
}

/// 1: its sibling 3 has no red child and becomes red; 2 lacks a black node now, and its
/// sibling 6 has a red child on the far side: one turn about 4.
/// 4: its successor 5 takes its place; the sibling 2 has a red child on the near side: two
/// turns bring 3 up. 6: the successor 7 takes its place; 9 comes up for the missing black.
#[test]
fn removed_keys_leave_the_textbooks_shapes() {
    let mut tree = Numbers::up_to(10);
    (1..=10).for_each(|key| tree.insert(key));
    tree.remove(1);
    assert_eq!(tree.shape(), "6b(4b(2b(- 3r) 5b) 8b(7b 9b(- 10r)))");
    tree.remove(4);
    assert_eq!(tree.shape(), "6b(3b(2b 5b) 8b(7b 9b(- 10r)))");
    tree.remove(6);
    assert_eq!(tree.shape(), "7b(3b(2b 5b) 9b(8b 10b))");
}

proptest! {
    #[test]
    fn any_tree_holds_what_a_sorted_set_holds(
        keys in proptest::collection::vec(1_u32..65, 0..400),
    ) {
        let mut tree = Numbers::up_to(64);
        let mut model = std::collections::BTreeSet::new();
        for key in keys {
            if model.insert(key) {
                tree.insert(key);
            } else {
                model.remove(&key);
                tree.remove(key);
            }
            let ascending: Vec<_> = model.iter().map(|&key| key as usize).collect();
            let backwards: Vec<_> = ascending.iter().rev().copied().collect();
            prop_assert_eq!(tree.from(Branch::Left), ascending);
            prop_assert_eq!(tree.from(Branch::Right), backwards);
        }
    }

    #[test]
    fn summaries_are_those_of_all_that_hangs_below(
        steps in proptest::collection::vec((1_u32..65, 0_u32..1000), 0..400),
    ) {
        let (links, own) = (vec![TreeLinks::default(); 65], vec![u32::MAX; 65]);
        let mut nodes = Values { links, least: own.clone(), own };
        let mut tree = Tree::default();
        let mut present = [false; 65];
        for (key, value) in steps {
            let node = Slot::new(key);
            present[node.index()] = !present[node.index()];
            if present[node.index()] {
                nodes.own[node.index()] = value;
                nodes.least[node.index()] = value;
                let place = place(&tree, &nodes, key);
                let mut above = place.parent;
                while above.is_some() {
                    let least = &mut nodes.least[above.index()];
                    *least = value.min(*least);
                    above = nodes.links(above).parent();
                }
                tree.insert_below(&mut nodes, node, place);
            } else {
                tree.remove(&mut nodes, node);
            }
            tree.check(&nodes);
            nodes.checked_least(tree.root());
        }
    }
}
