//! Which members of a record are needed, and how values are put together from them.

use super::scan::{self, Node, Text};
use super::template::{Part, Template};

/// A place in the record or in the decoder's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    in_buffer: bool,
    start: usize,
    end: usize,
}

impl Piece {
    pub(super) const EMPTY: Self = Self { in_buffer: false, start: 0, end: 0 };

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes at this place.
    pub(super) fn resolve<'a>(self, record: &'a [u8], buffer: &'a [u8]) -> &'a [u8] {
        let bytes = if self.in_buffer { buffer } else { record };
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// What a recipe gives for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extract {
    /// A value, maybe the empty text.
    Found(Piece),
    /// A field that the template names is not there, is null, or is no text, number or truth value.
    Missing,
    /// The value is longer than the limit.
    TooLong,
}

/// The names of the members that any template needs, each with its slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    names: Vec<Vec<u8>>,
    /// Bit `n` is set when a name has `n` bytes; bit 63 when one has 63 or more.
    lengths: u64,
}

impl Members {
    fn slot(&mut self, name: &str) -> usize {
        let name = name.as_bytes();
        self.find(name).unwrap_or_else(|| {
            self.lengths |= length_bit(name.len());
            self.names.push(name.to_vec());
            self.names.len() - 1
        })
    }

    #[inline]
    fn find(&self, name: &[u8]) -> Option<usize> {
        if self.lengths & length_bit(name.len()) == 0 {
            return None;
        }
        self.names.iter().position(|known| known == name)
    }

    /// Fills `nodes` with the value of each needed member of `record`; of members with one name the last counts.
    #[inline]
    pub(super) fn read(&self, record: &[u8], nodes: &mut Vec<Node>) -> Result<(), scan::NotJson> {
        nodes.clear();
        nodes.resize(self.names.len(), Node::Null);
        scan::scan_record(record, |name, value| {
            let slot = if name.escaped { self.find(&plain_name(record, name)) } else { self.find(slice(record, name)) };
            if let Some(node) = slot.and_then(|slot| nodes.get_mut(slot)) {
                *node = value;
            }
        })
    }
}

fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

fn slice(record: &[u8], text: Text) -> &[u8] {
    record.get(text.start..text.end).unwrap_or_default()
}

#[cold]
fn plain_name(record: &[u8], name: Text) -> Vec<u8> {
    let mut plain = Vec::new();
    // The scanner has checked the escapes; a name that fails would match nothing.
    if scan::unescape(slice(record, name), |piece| plain.extend_from_slice(piece)).is_err() {
        plain.clear();
    }
    plain
}

/// How to make one value from the needed members.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    parts: Vec<RecipePart>,
}

#[derive(Debug, Clone)]
enum RecipePart {
    Literal(Vec<u8>),
    Pointer { slot: usize, steps: Vec<Step> },
}

/// A step below the top level: a member's name, and an element's index if it reads as one.
#[derive(Debug, Clone)]
struct Step {
    name: Vec<u8>,
    index: Option<usize>,
}

impl Step {
    fn new(name: &str) -> Self {
        let is_index = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        Self { name: name.as_bytes().to_vec(), index: name.parse().ok().filter(|_| is_index) }
    }
}

impl Recipe {
    pub(super) fn new(template: &Template, members: &mut Members) -> Self {
        let part = |part: &Part| match part {
            Part::Literal(text) => RecipePart::Literal(text.clone()),
            Part::Pointer(steps) => RecipePart::Pointer {
                slot: members.slot(steps.first().map_or("", String::as_str)),
                steps: steps.iter().skip(1).map(|step| Step::new(step)).collect(),
            },
        };
        Self { parts: template.parts().iter().map(part).collect() }
    }

    /// The value for `record`, whose needed members are `nodes`; at most `limit` bytes. Appends to `buffer` what does not
    /// stand in the record as it is.
    #[inline]
    pub(super) fn extract(&self, record: &[u8], nodes: &[Node], buffer: &mut Vec<u8>, limit: usize) -> Extract {
        if let [RecipePart::Pointer { slot, steps }] = self.parts.as_slice() {
            let (start, end) = match find(record, nodes, *slot, steps) {
                Node::Text(Text { escaped: true, .. }) => return self.assemble(record, nodes, buffer, limit),
                Node::Text(Text { start, end, .. }) | Node::Plain { start, end } => (start, end),
                _ => return Extract::Missing,
            };
            if end - start > limit {
                return Extract::TooLong;
            }
            return Extract::Found(Piece { in_buffer: false, start, end });
        }
        self.assemble(record, nodes, buffer, limit)
    }

    fn assemble(&self, record: &[u8], nodes: &[Node], buffer: &mut Vec<u8>, limit: usize) -> Extract {
        let begin = buffer.len();
        for part in &self.parts {
            match part {
                RecipePart::Literal(text) => buffer.extend_from_slice(text),
                RecipePart::Pointer { slot, steps } => {
                    if !append(record, find(record, nodes, *slot, steps), buffer) {
                        buffer.truncate(begin);
                        return Extract::Missing;
                    }
                }
            }
            if buffer.len() - begin > limit {
                buffer.truncate(begin);
                return Extract::TooLong;
            }
        }
        Extract::Found(Piece { in_buffer: true, start: begin, end: buffer.len() })
    }
}

fn append(record: &[u8], node: Node, buffer: &mut Vec<u8>) -> bool {
    match node {
        Node::Text(text) if text.escaped => {
            return scan::unescape(slice(record, text), |piece| buffer.extend_from_slice(piece)).is_ok();
        }
        Node::Text(Text { start, end, .. }) | Node::Plain { start, end } => {
            buffer.extend_from_slice(record.get(start..end).unwrap_or_default());
        }
        Node::Null | Node::Object { .. } | Node::Array { .. } => return false,
    }
    true
}

#[inline]
fn find(record: &[u8], nodes: &[Node], slot: usize, steps: &[Step]) -> Node {
    let top = nodes.get(slot).copied().unwrap_or(Node::Null);
    if steps.is_empty() { top } else { descend(record, top, steps) }
}

/// Walks from `node` along `steps` in a record that was accepted.
fn descend(record: &[u8], node: Node, steps: &[Step]) -> Node {
    let mut node = node;
    for step in steps {
        let mut next = Node::Null;
        let walked = match (node, step.index) {
            (Node::Object { start }, _) => scan::visit_members(record, start, &mut |name, value| {
                let same =
                    if name.escaped { plain_name(record, name) == step.name } else { slice(record, name) == step.name };
                if same {
                    next = value;
                }
            }),
            (Node::Array { start }, Some(index)) => {
                let mut at = 0;
                scan::visit_elements(record, start, &mut |value| {
                    if at == index {
                        next = value;
                    }
                    at += 1;
                })
            }
            _ => return Node::Null,
        };
        if walked.is_err() {
            return Node::Null;
        }
        node = next;
    }
    node
}
