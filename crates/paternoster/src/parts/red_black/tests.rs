//! The tree beside a naive one, and beside the shapes of the textbook.

use super::*;
use proptest::prelude::*;

/// Nodes by index; the index is the key.
struct Keys(Vec<TreeLinks<usize>>);

impl Nodes<usize> for Keys {
    fn links(&self, key: usize) -> &TreeLinks<usize> {
        &self.0[key]
    }
    fn links_mut(&mut self, key: usize) -> &mut TreeLinks<usize> {
        &mut self.0[key]
    }
}

/// Nodes by index, each with a value and with the least value below it.
struct Values {
    links: Vec<TreeLinks<usize>>,
    own: Vec<u32>,
    least: Vec<u32>,
}

impl Nodes<usize> for Values {
    const SUMMARIZED: bool = true;

    fn links(&self, key: usize) -> &TreeLinks<usize> {
        &self.links[key]
    }
    fn links_mut(&mut self, key: usize) -> &mut TreeLinks<usize> {
        &mut self.links[key]
    }
    fn summarize(&mut self, key: usize) -> bool {
        let children = self.links[key].child.into_iter().flatten();
        let below = children.map(|child| self.least[child]).min();
        let least = self.own[key].min(below.unwrap_or(u32::MAX));
        std::mem::replace(&mut self.least[key], least) != least
    }
}

impl Values {
    /// The least value below `node`, by looking at all; each summary on the way is that.
    fn checked_least(&self, node: usize) -> u32 {
        let children = self.links[node].child.into_iter().flatten();
        let least = children.map(|child| self.checked_least(child)).min();
        let least = self.own[node].min(least.unwrap_or(u32::MAX));
        assert_eq!(self.least[node], least, "the summary of {node}");
        least
    }
}

/// A key's place: how the search for it went.
fn place(tree: &Tree<usize>, nodes: &impl Nodes<usize>, key: usize) -> Option<(usize, Branch)> {
    let mut below = None;
    let mut node = tree.root();
    while let Some(parent) = node {
        let branch = if key < parent { Branch::Left } else { Branch::Right };
        below = Some((parent, branch));
        node = Tree::child(nodes, parent, branch);
    }
    below
}

struct Numbers {
    tree: Tree<usize>,
    keys: Keys,
}

impl Numbers {
    fn up_to(limit: usize) -> Self {
        Self { tree: Tree::default(), keys: Keys(vec![TreeLinks::default(); limit + 1]) }
    }

    fn insert(&mut self, key: usize) {
        let below = place(&self.tree, &self.keys, key);
        self.tree.insert_below(&mut self.keys, key, below);
        self.tree.check(&self.keys);
    }

    fn remove(&mut self, key: usize) {
        self.tree.remove(&mut self.keys, key);
        self.tree.check(&self.keys);
    }

    /// All keys, by steps from the outermost one of a side.
    fn from(&self, side: Branch) -> Vec<usize> {
        let first = self.tree.outermost(&self.keys, side);
        let next = |&key: &usize| Tree::neighbour(&self.keys, key, side.other());
        std::iter::successors(first, next).collect()
    }

    /// The shape: a node, its colour, and in brackets what is below it.
    fn shape(&self) -> String {
        self.shape_below(self.tree.root())
    }

    fn shape_below(&self, node: Option<usize>) -> String {
        let Some(key) = node else { return "-".to_owned() };
        let TreeLinks { child, red, .. } = self.keys.0[key];
        let colour = if red { "r" } else { "b" };
        match child {
            [None, None] => format!("{key}{colour}"),
            [left, right] => {
                let (left, right) = (self.shape_below(left), self.shape_below(right));
                format!("{key}{colour}({left} {right})")
            }
        }
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
        keys in proptest::collection::vec(0_usize..64, 0..400),
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
            prop_assert_eq!(tree.from(Branch::Left), model.iter().copied().collect::<Vec<_>>());
            let backwards = model.iter().rev().copied().collect::<Vec<_>>();
            prop_assert_eq!(tree.from(Branch::Right), backwards);
        }
    }

    #[test]
    fn summaries_are_those_of_all_that_hangs_below(
        steps in proptest::collection::vec((0_usize..64, 0_u32..1000), 0..400),
    ) {
        let (links, own) = (vec![TreeLinks::default(); 64], vec![0; 64]);
        let mut nodes = Values { links, least: own.clone(), own };
        let mut tree = Tree::default();
        let mut present = [false; 64];
        for (key, value) in steps {
            present[key] = !present[key];
            if present[key] {
                nodes.own[key] = value;
                let below = place(&tree, &nodes, key);
                tree.insert_below(&mut nodes, key, below);
            } else {
                tree.remove(&mut nodes, key);
            }
            tree.check(&nodes);
            if let Some(root) = tree.root() {
                nodes.checked_least(root);
            }
        }
    }
}
