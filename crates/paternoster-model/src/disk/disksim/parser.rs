//! The form of a DiskSim parameter file.
//!
//! ```text
//!   file     = item …
//!   item     = TYPE NAME block | source FILE | instantiate [ NAME, … ] as NAME | topology node
//!   block    = { KEY = value, … }          a key may have several words
//!   value    = words | [ value, … ] | TYPE block
//!   node     = TYPE NAME [ node, … ]
//! ```
//!
//! Commas may end a list, and are not needed between nodes.

use super::lexer::{Token, tokens};

/// Deeper lists and blocks are refused.
const DEEPEST: u32 = 32;

/// What stands at the top of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Block(Block),
    /// Another file, which is read as if it stood here.
    Source(Text),
    /// Names of devices, and the block that each of them is like.
    Instantiate {
        names: Vec<Text>,
        like: Text,
    },
    Topology(Node),
}

/// Words, and where the first begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) at: usize,
}

/// A block of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) kind: Text,
    /// Empty where it stands as a value.
    pub(super) name: String,
    pub(super) entries: Vec<(Text, Value)>,
}

/// What a key is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Words(Text),
    List { values: Vec<Value>, at: usize },
    Block(Block),
}

/// A device and those below it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) below: Vec<Node>,
}

/// Something else stands there than may.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) message: String,
}

type Parsed<T> = Result<T, SyntaxError>;

/// Parses a file.
pub(super) fn parse(text: &str) -> Parsed<Vec<Item>> {
    let mut parser = Parser { tokens: tokens(text), next: 0, end: text.len(), depth: 0 };
    let mut items = Vec::new();
    while parser.peek().is_some() {
        items.push(parser.item()?);
    }
    Ok(items)
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    /// Bytes of the text.
    end: usize,
    /// How deep in lists and blocks it is.
    depth: u32,
}

impl<'t> Parser<'t> {
    fn item(&mut self) -> Parsed<Item> {
        let kind = self.word("a block, source, instantiate or topology")?;
        match kind.text.as_str() {
            "source" => Ok(Item::Source(self.word("a file")?)),
            "instantiate" => {
                self.sign("[")?;
                let names = self.list("]", Self::words)?;
                match self.word("as")? {
                    word if word.text == "as" => {}
                    word => return Err(wrong(word.at, &word.text, "as")),
                }
                Ok(Item::Instantiate { names, like: self.word("the name of a block")? })
            }
            "topology" => Ok(Item::Topology(self.node()?)),
            _ => {
                let name = self.word("a name")?.text;
                Ok(Item::Block(self.block(kind, name)?))
            }
        }
    }

    /// A block whose `{` is next.
    fn block(&mut self, kind: Text, name: String) -> Parsed<Block> {
        self.sign("{")?;
        let entries = self.list("}", |parser| {
            let key = parser.words()?;
            parser.sign("=")?;
            Ok((key, parser.value()?))
        })?;
        Ok(Block { kind, name, entries })
    }

    fn value(&mut self) -> Parsed<Value> {
        if let Some(token) = self.peek().filter(|token| token.text == "[") {
            self.next += 1;
            return Ok(Value::List { values: self.list("]", Self::value)?, at: token.at });
        }
        let words = self.words()?;
        match self.peek() {
            Some(token) if token.text == "{" => Ok(Value::Block(self.block(words, String::new())?)),
            _ => Ok(Value::Words(words)),
        }
    }

    fn node(&mut self) -> Parsed<Node> {
        self.word("a type of device")?;
        let name = self.word("the name of a device")?.text;
        self.sign("[")?;
        Ok(Node { name, below: self.list("]", Self::node)? })
    }

    /// What `one` reads, again and again, with commas between, until `close`.
    fn list<T>(
        &mut self,
        close: &str,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.depth += 1;
        let mut list = Vec::new();
        loop {
            let Some(token) = self.peek() else { return Err(self.ended(close)) };
            if self.depth > DEEPEST {
                let allowed = format!("at most {DEEPEST} lists and blocks in one another");
                return Err(wrong(token.at, "one more", &allowed));
            }
            if token.text == close {
                self.next += 1;
                self.depth -= 1;
                return Ok(list);
            }
            list.push(one(self)?);
            match self.peek() {
                Some(token) if token.text == "," => self.next += 1,
                Some(token) if token.is_sign() && token.text != close => {
                    return Err(wrong(token.at, token.text, &format!("`,` or `{close}`")));
                }
                _ => {}
            }
        }
    }

    /// Words up to the next sign, at least one.
    fn words(&mut self) -> Parsed<Text> {
        let mut words = self.word("a word")?;
        while let Some(token) = self.peek().filter(|token| !token.is_sign()) {
            self.next += 1;
            words.text.push(' ');
            words.text.push_str(token.text);
        }
        Ok(words)
    }

    fn word(&mut self, allowed: &str) -> Parsed<Text> {
        match self.peek() {
            Some(token) if !token.is_sign() => {
                self.next += 1;
                Ok(Text { text: token.text.to_owned(), at: token.at })
            }
            Some(token) => Err(wrong(token.at, token.text, allowed)),
            None => Err(self.ended(allowed)),
        }
    }

    fn sign(&mut self, sign: &str) -> Parsed<()> {
        match self.peek() {
            Some(token) if token.text == sign => {
                self.next += 1;
                Ok(())
            }
            Some(token) => Err(wrong(token.at, token.text, &format!("`{sign}`"))),
            None => Err(self.ended(sign)),
        }
    }

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).copied()
    }

    fn ended(&self, allowed: &str) -> SyntaxError {
        let message = format!("the file ends where {allowed} must be");
        SyntaxError { at: self.end, message }
    }
}

fn wrong(at: usize, found: &str, allowed: &str) -> SyntaxError {
    SyntaxError { at, message: format!("`{found}` stands where {allowed} must be") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        let error = parse(text).expect_err(text);
        (error.at, error.message)
    }

    #[test]
    fn file_has_blocks_with_values_of_three_kinds() {
        let items = parse("disk A { Block count = 12, Seek = f { x = [ 1, two 2, ], }, }").unwrap();
        let [Item::Block(disk)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((disk.kind.text.as_str(), disk.name.as_str()), ("disk", "A"));
        let [(count, Value::Words(twelve)), (seek, Value::Block(f))] = &disk.entries[..] else {
            panic!("{disk:?}")
        };
        assert_eq!((count.text.as_str(), twelve.text.as_str()), ("Block count", "12"));
        assert_eq!((seek.text.as_str(), f.kind.text.as_str()), ("Seek", "f"));
        let [(_, Value::List { values, at: 42 })] = &f.entries[..] else { panic!("{f:?}") };
        let [Value::Words(one), Value::Words(two)] = &values[..] else { panic!("{values:?}") };
        assert_eq!((one.text.as_str(), two.text.as_str()), ("1", "two 2"));
    }

    #[test]
    fn file_says_what_it_is_made_of_and_how_that_is_connected() {
        let text = "source a.diskspecs\ninstantiate [ b0, b1 ] as BUS\n\
                    topology driver d [ bus b0 [ disk x [] disk y [] ] ]";
        let items = parse(text).unwrap();
        let [Item::Source(file), Item::Instantiate { names, like }, Item::Topology(node)] =
            &items[..]
        else {
            panic!("{items:?}")
        };
        assert_eq!((file.text.as_str(), like.text.as_str()), ("a.diskspecs", "BUS"));
        assert_eq!(names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>(), ["b0", "b1"]);
        assert_eq!((node.name.as_str(), node.below[0].below.len()), ("d", 2));
    }

    #[test]
    fn refusal_says_where_what_was_found_and_what_may_be() {
        let (at, message) = refused("disk A { x = 1, y 2 }");
        assert_eq!((at, message.as_str()), (20, "`}` stands where `=` must be"));
        let (at, message) = refused("disk A { x = ");
        assert_eq!((at, message.as_str()), (13, "the file ends where a word must be"));
        let (at, message) = refused("disk { x = 1 }");
        assert_eq!((at, message.as_str()), (5, "`{` stands where a name must be"));
    }

    #[test]
    fn endless_nesting_is_refused() {
        let (_, message) = refused(&format!("disk A {{ x = {}", "[".repeat(100_000)));
        assert!(message.contains("at most 32"), "{message}");
    }
}
