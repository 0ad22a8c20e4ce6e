//! The nodes of an XML text.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Maximum number of nodes, which bounds the memory of a call.
const NODES_MAX: usize = 1 << 20;
/// Maximum number of elements in one another.
const DEPTH_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Root,
    Element,
    Attribute,
    Text,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: NodeKind,
    /// The number of the element around it; that of the root for the root.
    pub parent: u32,
    /// The bytes that the node takes.
    pub range: Range<usize>,
    /// The bytes of its name; for a text and the value of an attribute, those of its text.
    pub name: Range<usize>,
    /// The number of the first node behind it that is not in it.
    pub end: u32,
}

/// A text and its nodes, in the order of the text. An attribute contains its value as a text.
pub(super) struct Document<'t> {
    pub text: &'t [u8],
    nodes: Vec<Node>,
}

impl<'t> Document<'t> {
    /// Reads a text. The error is what is wrong, and where.
    pub fn read(text: &'t [u8]) -> Result<Document<'t>, String> {
        let root = Node { kind: NodeKind::Root, parent: 0, range: 0..text.len(), name: 0..0, end: 1 };
        let mut document = Document { text, nodes: vec![root] };
        let mut reader = Reader::from_reader(text);
        let mut open = vec![0];
        // The bytes of the text that has begun.
        let mut begun: Option<Range<usize>> = None;
        loop {
            let start = reader.buffer_position() as usize;
            let event = reader.read_event().map_err(|error| document.defect(start, &error.to_string()))?;
            let end = reader.buffer_position() as usize;
            let parent = open.last().copied().unwrap_or(0);
            if let Event::Text(_) | Event::GeneralRef(_) = event {
                begun = Some(begun.map_or(start, |begun| begun.start)..end);
                continue;
            }
            if let Some(range) = begun.take() {
                document.add(NodeKind::Text, parent, range.clone(), range)?;
            }
            match event {
                Event::Start(tag) => {
                    if open.len() > DEPTH_MAX {
                        return Err(document.defect(start, "too many elements in one another"));
                    }
                    open.push(document.add_element(parent, start..end, &tag)?);
                }
                Event::Empty(tag) => {
                    let number = document.add_element(parent, start..end, &tag)?;
                    document.close(number, end);
                }
                Event::End(_) => {
                    // The reader accepts no end without a start.
                    let number = open.pop().unwrap_or(0);
                    document.close(number, end);
                }
                Event::CData(_) => {
                    let inside = start + b"<![CDATA[".len()..end - b"]]>".len();
                    document.add(NodeKind::Text, parent, start..end, inside)?;
                }
                Event::Eof => break,
                _ => {}
            }
        }
        if open.len() > 1 {
            return Err(document.defect(text.len(), "unexpected END-OF-INPUT"));
        }
        document.close(0, text.len());
        Ok(document)
    }

    pub fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// The nodes in a node, with those in them.
    pub fn inside(&self, number: u32) -> Range<u32> {
        number + 1..self.node(number).end
    }

    /// The nodes directly in a node.
    pub fn children(&self, number: u32) -> impl Iterator<Item = u32> {
        let Range { start, end } = self.inside(number);
        let mut next = start;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.node(child).end;
            Some(child)
        })
    }

    pub fn name(&self, number: u32) -> &'t [u8] {
        &self.text[self.node(number).name.clone()]
    }

    /// The texts directly in a node; that of a text itself.
    pub fn texts(&self, number: u32) -> impl Iterator<Item = &'t [u8]> {
        let is_text = self.node(number).kind == NodeKind::Text;
        let own = is_text.then(|| self.name(number));
        let children = self.children(number).filter(|child| self.node(*child).kind == NodeKind::Text);
        own.into_iter().chain(children.map(|child| self.name(child)))
    }

    /// Appends the texts directly in nodes, with spaces between them.
    pub fn append_texts(&self, nodes: &[u32], out: &mut Vec<u8>) {
        let start = out.len();
        for text in nodes.iter().flat_map(|node| self.texts(*node)) {
            if out.len() > start {
                out.push(b' ');
            }
            out.extend_from_slice(text);
        }
    }

    fn add(&mut self, kind: NodeKind, parent: u32, range: Range<usize>, name: Range<usize>) -> Result<u32, String> {
        if self.nodes.len() >= NODES_MAX {
            return Err(self.defect(range.start, "too many nodes"));
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(Node { kind, parent, range, name, end: number + 1 });
        Ok(number)
    }

    /// Adds an element with its attributes.
    fn add_element(&mut self, parent: u32, range: Range<usize>, tag: &BytesStart<'_>) -> Result<u32, String> {
        let start = range.start;
        let name = start + 1..start + 1 + tag.name().as_ref().len();
        let element = self.add(NodeKind::Element, parent, range, name)?;
        // The bytes of the tag behind the `<`.
        let place = |part: &[u8]| part.as_ptr() as usize - tag.as_ptr() as usize + start + 1;
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| self.defect(start, &error.to_string()))?;
            let (key, value) = (attribute.key.as_ref(), &*attribute.value);
            let (name, inside) = (place(key)..place(key) + key.len(), place(value)..place(value) + value.len());
            // The value is in quotes.
            let number = self.add(NodeKind::Attribute, element, name.start..inside.end + 1, name)?;
            self.add(NodeKind::Text, number, inside.clone(), inside)?;
            self.nodes[number as usize].end += 1;
        }
        Ok(element)
    }

    /// Ends a node with the last one that has been read.
    fn close(&mut self, number: u32, end: usize) {
        let count = self.nodes.len() as u32;
        let node = &mut self.nodes[number as usize];
        (node.range.end, node.end) = (end, count);
    }

    fn defect(&self, at: usize, what: &str) -> String {
        let before = &self.text[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let position = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        format!("parse error at line {line} pos {position}: {what}")
    }
}
