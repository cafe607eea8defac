//! Which members of a record are needed, and how values are put together from them.

use super::scan::{self, Kind, Node};
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
    names: Vec<Name>,
    /// Bit `n` is set when a name has `n` bytes; bit 63 when one has 63 or more.
    lengths: u64,
}

/// A name, and its first eight bytes as a number with zeros behind: most names differ there, or have no more.
#[derive(Debug, Clone)]
struct Name {
    bytes: Vec<u8>,
    head: u64,
}

impl Members {
    fn slot(&mut self, name: &str) -> usize {
        let name = name.as_bytes();
        self.names.iter().position(|known| known.bytes == name).unwrap_or_else(|| {
            self.lengths |= length_bit(name.len());
            self.names.push(Name { bytes: name.to_vec(), head: head(name, 0, name.len()) });
            self.names.len() - 1
        })
    }

    /// The slot of the name at `start..end` of `bytes`.
    #[inline]
    fn find(&self, bytes: &[u8], start: usize, end: usize) -> Option<usize> {
        let length = end - start;
        if self.lengths & length_bit(length) == 0 {
            return None;
        }
        let head = head(bytes, start, end);
        self.names.iter().position(|known| {
            known.head == head
                && known.bytes.len() == length
                && (length <= 8 || bytes.get(start..end) == Some(known.bytes.as_slice()))
        })
    }

    /// Fills `nodes` with the value of each needed member of `record`; of members with one name the last counts.
    #[inline]
    pub(super) fn read(&self, record: &[u8], nodes: &mut Vec<Node>) -> Result<(), scan::NotJson> {
        nodes.clear();
        nodes.resize(self.names.len(), Node::NULL);
        scan::scan_record(record, |name, value| {
            let slot = if name.kind == Kind::Text {
                self.find(record, name.start, name.end)
            } else {
                let plain = plain_name(record, name);
                self.find(&plain, 0, plain.len())
            };
            if let Some(node) = slot.and_then(|slot| nodes.get_mut(slot)) {
                *node = value;
            }
        })
    }
}

fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

/// The first eight bytes of `start..end` as a number; zeros stand for those behind the end.
#[inline]
fn head(bytes: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    if let Some(chunk) = bytes.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
        let unused_bits = 8 * 8_usize.saturating_sub(length);
        return if unused_bits == 64 { 0 } else { u64::from_le_bytes(*chunk) & (u64::MAX >> unused_bits) };
    }
    let mut head = [0; 8];
    head.iter_mut().zip(bytes.get(start..end).unwrap_or_default()).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(head)
}

#[cold]
fn plain_name(record: &[u8], name: Node) -> Vec<u8> {
    let mut plain = Vec::new();
    // The scanner has checked the escapes; a name that fails would match nothing.
    if scan::unescape(name.slice(record), |piece| plain.extend_from_slice(piece)).is_err() {
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
            let node = find(record, nodes, *slot, steps);
            return match node.kind {
                Kind::Text | Kind::Plain if node.end - node.start > limit => Extract::TooLong,
                Kind::Text | Kind::Plain => {
                    Extract::Found(Piece { in_buffer: false, start: node.start, end: node.end })
                }
                Kind::EscapedText => self.assemble(record, nodes, buffer, limit),
                Kind::Null | Kind::Object | Kind::Array => Extract::Missing,
            };
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
    match node.kind {
        Kind::Text | Kind::Plain => buffer.extend_from_slice(node.slice(record)),
        Kind::EscapedText => {
            return scan::unescape(node.slice(record), |piece| buffer.extend_from_slice(piece)).is_ok();
        }
        Kind::Null | Kind::Object | Kind::Array => return false,
    }
    true
}

#[inline]
fn find(record: &[u8], nodes: &[Node], slot: usize, steps: &[Step]) -> Node {
    let top = nodes.get(slot).copied().unwrap_or(Node::NULL);
    if steps.is_empty() { top } else { descend(record, top, steps) }
}

/// Walks from `node` along `steps` in a record that was accepted.
fn descend(record: &[u8], node: Node, steps: &[Step]) -> Node {
    let mut node = node;
    for step in steps {
        let mut next = Node::NULL;
        let walked = match (node.kind, step.index) {
            (Kind::Object, _) => scan::visit_members(record, node.start, &mut |name, value| {
                let same = if name.kind == Kind::Text {
                    name.slice(record) == step.name
                } else {
                    plain_name(record, name) == step.name
                };
                if same {
                    next = value;
                }
            }),
            (Kind::Array, Some(index)) => {
                let mut at = 0;
                scan::visit_elements(record, node.start, &mut |value| {
                    if at == index {
                        next = value;
                    }
                    at += 1;
                })
            }
            _ => return Node::NULL,
        };
        if walked.is_err() {
            return Node::NULL;
        }
        node = next;
    }
    node
}
