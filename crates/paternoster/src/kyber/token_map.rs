//! The tokens of a domain, by number. Only *depth* of them may be taken, but no token that is out
//! is ever called back.
//!
//! ```text
//!   words      0                1                2                3
//!   numbers    0 … W−1          W … 2W−1         2W … 3W−1        3W … 4W−1
//!                     ▲ hint               ▲ depth
//!   marks      taken      not to be taken again before its word is swept
//!              returned   its request is done: a sweep clears both marks
//! ```
//!
//! As long as the depth was never lowered, only the count matters: there is a token if fewer than
//! *depth* are out. After that it matters which numbers are out. A token beyond the depth stays
//! with its request and does not count, so that for a while a domain has more requests in flight
//! than its depth. How many more depends on the numbers that were given before. This is the order
//! in which Linux gives them, except that a new place to begin is 0 where Linux draws one.

/// The words of a map.
const WORDS: u32 = 4;
/// The numbers of a word at most.
const LARGEST_WORD: u32 = u64::BITS;

/// Returns how many numbers a word has in a map of `numbers`: 64, or the greatest power of two of
/// which four fit.
pub(super) const fn word_size(numbers: u32) -> u32 {
    let mut size = LARGEST_WORD;
    while size > 1 && WORDS * size > numbers {
        size /= 2;
    }
    size
}

/// The marks of the numbers of one word.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    taken: u64,
    returned: u64,
}

impl Word {
    /// Frees every number that was returned, those beyond the depth included.
    fn sweep(&mut self) {
        self.taken &= !self.returned;
        self.returned = 0;
    }

    /// Takes the lowest of the numbers `allowed` that is free.
    fn take_lowest(&mut self, allowed: u64) -> Option<u32> {
        let mut free = allowed & !self.taken;
        if free == 0 {
            self.sweep();
            free = allowed & !self.taken;
        }
        if free == 0 {
            return None;
        }
        self.taken |= free & free.wrapping_neg();
        Some(free.trailing_zeros())
    }

    /// How many of its numbers are out.
    fn out(&self) -> u32 {
        (self.taken & !self.returned).count_ones()
    }
}

/// The tokens of a domain.
#[derive(Debug)]
pub(super) struct TokenMap {
    words: [Word; WORDS as usize],
    /// The numbers of a word are 2 to the power of this.
    word_bits: u32,
    /// How many numbers there are.
    numbers: u32,
    /// Numbers below this may be taken.
    depth: u32,
    /// The next search begins in the word of this number.
    hint: u32,
}

impl TokenMap {
    /// Makes a map of `numbers`, four words of a power of two, all free.
    pub(super) fn new(numbers: u32) -> Self {
        let size = word_size(numbers);
        assert_eq!(numbers, WORDS * size, "the numbers fill the words");
        Self {
            words: Default::default(),
            word_bits: size.trailing_zeros(),
            numbers,
            depth: numbers,
            hint: 0,
        }
    }

    /// How many requests may have a token, unless the depth was lowered of late.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// How many numbers there are: the greatest depth.
    pub(super) fn numbers(&self) -> u32 {
        self.numbers
    }

    /// How many tokens are out.
    pub(super) fn out(&self) -> u32 {
        self.words.iter().map(Word::out).sum()
    }

    /// Takes a token: the lowest free number of the first word that has one, from the hint's on.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u8> {
        if self.hint >= self.depth {
            self.hint = 0;
        }
        let words = self.words_of(self.depth);
        let mut word = self.hint >> self.word_bits;
        for _ in 0..words {
            if let Some(number) = self.take_of(word) {
                self.move_hint_past(number);
                return Some(u8::try_from(number).expect("there are 256 numbers at most"));
            }
            word = if word + 1 < words { word + 1 } else { 0 };
        }
        self.hint = 0;
        None
    }

    /// Returns a token.
    #[inline]
    pub(super) fn give_back(&mut self, token: u8) {
        let number = u32::from(token);
        let mark = 1 << (number & (self.word_size() - 1));
        let word = &mut self.words[(number >> self.word_bits) as usize];
        debug_assert!(word.taken & !word.returned & mark != 0, "a token that is out is returned");
        word.returned |= mark;
        if number < self.depth {
            self.hint = number;
        }
    }

    /// Changes the depth. The words of the old depth are swept, the others later, once a search
    /// finds them full. The hint stays.
    pub(super) fn set_depth(&mut self, depth: u32) {
        debug_assert!((1..=self.numbers).contains(&depth), "a domain can always dispatch");
        for word in 0..self.words_of(self.depth) {
            self.words[word as usize].sweep();
        }
        self.depth = depth;
    }

    #[inline]
    fn word_size(&self) -> u32 {
        1 << self.word_bits
    }

    /// How many words the numbers below `depth` are in.
    #[inline]
    fn words_of(&self, depth: u32) -> u32 {
        (depth + self.word_size() - 1) >> self.word_bits
    }

    /// Takes the lowest free number of a word.
    #[inline]
    fn take_of(&mut self, word: u32) -> Option<u32> {
        let first = word << self.word_bits;
        let allowed = (self.depth - first).min(self.word_size());
        let allowed = u64::MAX >> (u64::BITS - allowed);
        Some(first + self.words[word as usize].take_lowest(allowed)?)
    }

    /// A search that took the number of its hint goes on behind it the next time.
    #[inline]
    fn move_hint_past(&mut self, number: u32) {
        if number == self.hint {
            self.hint = if number + 2 < self.depth { number + 1 } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn take_all<const N: usize>(map: &mut TokenMap) -> [Option<u8>; N] {
        std::array::from_fn(|_| map.take())
    }

    fn with_taken(numbers: u32, taken: u8) -> TokenMap {
        let mut map = TokenMap::new(numbers);
        for number in 0..taken {
            assert_eq!(map.take(), Some(number));
        }
        map
    }

    #[test]
    fn map_has_four_words() {
        let sizes = [256, 128, 64, 16].map(word_size);
        assert_eq!(sizes, [64, 32, 16, 4]);
        assert_eq!([1024, 100, 6, 4, 3, 1].map(word_size), [64, 16, 1, 1, 1, 1]);
    }

    /// A word of 16, and the numbers 0 to 19 are out. 3 is given again at once, as word 0 is full
    /// and therefore swept. Word 1 has numbers that were never taken, so 18 waits for its sweep.
    #[test]
    fn lowest_free_number_of_the_hints_word_is_taken_and_full_words_are_swept() {
        let mut map = with_taken(64, 20);
        assert_eq!(map.hint, 20);
        map.give_back(3);
        assert_eq!((map.take(), map.hint), (Some(3), 4));
        map.give_back(5);
        map.give_back(18);
        assert_eq!(map.hint, 18);
        assert_eq!((take_all(&mut map), map.hint), ([Some(20), Some(21)], 18));
        map.give_back(7);
        assert_eq!((take_all(&mut map), map.hint), ([Some(5), Some(7)], 8));
    }

    /// 0 to 23 are out when the depth becomes 16, so none is left. 20 lies beyond; 9 does not. When
    /// the depth becomes 20, only word 0, of the old depth, is swept.
    #[test]
    fn token_beyond_a_lowered_depth_is_free_only_when_a_greater_depth_sweeps_its_word() {
        let mut map = with_taken(64, 24);
        map.set_depth(16);
        assert_eq!((map.take(), map.hint), (None, 0));
        map.give_back(20);
        assert_eq!(map.take(), None);
        map.give_back(9);
        assert_eq!((map.hint, map.take(), map.hint), (9, Some(9), 10));
        map.give_back(2);
        map.give_back(21);
        assert_eq!(map.hint, 2);
        map.set_depth(20);
        assert_eq!((map.take(), map.hint), (Some(2), 3));
        assert_eq!(map.take(), None, "0 to 19 are out, and so are 22 and 23, uncounted");
        assert_eq!(map.out(), 22);
    }

    /// 16 numbers in words of 4. With a depth of 6 the last word that may be taken of has two.
    #[test]
    fn hint_returns_to_the_start_at_the_last_number_but_one() {
        let mut map = TokenMap::new(16);
        map.set_depth(6);
        let hints: [u32; 6] = std::array::from_fn(|_| {
            map.take();
            map.hint
        });
        assert_eq!(hints, [1, 2, 3, 4, 0, 0], "5, which is no hint, does not move it");
        assert_eq!(map.take(), None);
    }

    proptest! {
        /// As long as the depth does not fall, the map is a counter; whatever happens, no number is
        /// out twice, and with none out there is one to take.
        #[test]
        fn any_map_gives_a_token_if_and_only_if_fewer_than_its_depth_are_out_below_it(
            numbers in prop_oneof![Just(16_u32), Just(64), Just(128), Just(256)],
            steps in proptest::collection::vec((0_u8..20, any::<u16>()), 0..400),
        ) {
            let mut map = TokenMap::new(numbers);
            let mut out = BTreeSet::new();
            for (what, pick) in steps {
                match what {
                    0 => map.set_depth(1 + u32::from(pick) % numbers),
                    1..9 if !out.is_empty() => {
                        let token = *out.iter().nth(usize::from(pick) % out.len()).expect("one");
                        out.remove(&token);
                        map.give_back(token);
                    }
                    _ => {
                        let below = out.iter().filter(|&&token| u32::from(token) < map.depth());
                        let has_one = below.count() < map.depth() as usize;
                        let token = map.take();
                        prop_assert_eq!(token.is_some(), has_one);
                        if let Some(token) = token {
                            prop_assert!(u32::from(token) < map.depth());
                            prop_assert!(out.insert(token), "{} is out already", token);
                        }
                    }
                }
                prop_assert_eq!(map.out() as usize, out.len());
            }
        }
    }
}
