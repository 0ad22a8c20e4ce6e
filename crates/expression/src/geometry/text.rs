//! Well-known text.

use junctor_model::geometry::{DEPTH_MAX, GeometryKind, Point, Ring, Shape};
use junctor_model::row_encoding::append_double;

/// The rest of a text.
struct Reader<'t> {
    text: &'t [u8],
}

/// The shape of a text; `None` for a text that is none.
pub(crate) fn read(text: &[u8]) -> Option<Shape> {
    let mut reader = Reader { text };
    let shape = reader.shape(0)?;
    reader.skip_blanks();
    reader.text.is_empty().then_some(shape)
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    /// Whether `wanted` follows, which is then skipped.
    fn accept(&mut self, wanted: u8) -> bool {
        self.skip_blanks();
        let rest = self.text.strip_prefix(&[wanted]);
        if let Some(rest) = rest {
            self.text = rest;
        }
        rest.is_some()
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.accept(wanted).then_some(())
    }

    fn take_while(&mut self, belongs: fn(&u8) -> bool) -> &[u8] {
        self.skip_blanks();
        let end = self.text.iter().position(|byte| !belongs(byte)).unwrap_or(self.text.len());
        let (head, rest) = self.text.split_at(end);
        self.text = rest;
        head
    }

    fn coordinate(&mut self) -> Option<f64> {
        let digits = self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
        let number: f64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn point(&mut self) -> Option<Point> {
        Some(Point { x: self.coordinate()?, y: self.coordinate()? })
    }

    /// Elements with commas between them, in parentheses.
    fn list<T>(&mut self, read: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.expect(b'(')?;
        let mut list = vec![read(self)?];
        while self.accept(b',') {
            list.push(read(self)?);
        }
        self.expect(b')')?;
        Some(list)
    }

    fn line(&mut self) -> Option<Vec<Point>> {
        self.list(Self::point).filter(|line| line.len() >= 2)
    }

    fn ring(&mut self) -> Option<Ring> {
        self.list(Self::point).filter(|ring| ring.len() >= 4 && ring.first() == ring.last())
    }

    fn bracketed_point(&mut self) -> Option<Point> {
        self.expect(b'(')?;
        let point = self.point()?;
        self.expect(b')')?;
        Some(point)
    }

    /// A point of a MULTIPOINT, which may be in parentheses.
    fn element_point(&mut self) -> Option<Point> {
        self.skip_blanks();
        match self.text.first() {
            Some(b'(') => self.bracketed_point(),
            _ => self.point(),
        }
    }

    fn shape(&mut self, depth: u32) -> Option<Shape> {
        let word = self.take_while(|byte| byte.is_ascii_alphabetic()).to_ascii_lowercase();
        let name = std::str::from_utf8(&word).ok()?;
        let kind =
            if name == "geometrycollection" { Some(GeometryKind::Collection) } else { GeometryKind::of_name(name) };
        Some(match kind? {
            GeometryKind::Geometry => return None,
            GeometryKind::Point => Shape::Point(self.bracketed_point()?),
            GeometryKind::LineString => Shape::LineString(self.line()?),
            GeometryKind::Polygon => Shape::Polygon(self.list(Self::ring)?),
            GeometryKind::MultiPoint => Shape::MultiPoint(self.list(Self::element_point)?),
            GeometryKind::MultiLineString => Shape::MultiLineString(self.list(Self::line)?),
            GeometryKind::MultiPolygon => Shape::MultiPolygon(self.list(|reader| reader.list(Self::ring))?),
            GeometryKind::Collection => Shape::Collection(self.elements(depth)?),
        })
    }

    /// The elements of a collection: EMPTY, or a list in parentheses, which may be empty.
    fn elements(&mut self, depth: u32) -> Option<Vec<Shape>> {
        if depth >= DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        if self.text.first() != Some(&b'(') {
            let is_empty = self.take_while(|byte| byte.is_ascii_alphabetic()).eq_ignore_ascii_case(b"EMPTY");
            return is_empty.then(Vec::new);
        }
        self.expect(b'(')?;
        if self.accept(b')') {
            return Some(Vec::new());
        }
        let mut elements = vec![self.shape(depth + 1)?];
        while self.accept(b',') {
            elements.push(self.shape(depth + 1)?);
        }
        self.expect(b')')?;
        Some(elements)
    }
}

/// Appends the text of a shape.
pub(crate) fn append(shape: &Shape, out: &mut Vec<u8>) {
    let name = match shape {
        Shape::Collection(_) => "GEOMETRYCOLLECTION".to_owned(),
        shape => shape.kind().name().to_ascii_uppercase(),
    };
    out.extend_from_slice(name.as_bytes());
    match shape {
        Shape::Point(point) => append_list(&[*point], out, append_point),
        Shape::LineString(line) => append_list(line, out, append_point),
        Shape::Polygon(rings) | Shape::MultiLineString(rings) => append_lines(rings, out),
        Shape::MultiPoint(points) => {
            append_list(points, out, |point, out| append_list(&[*point], out, append_point));
        }
        Shape::MultiPolygon(polygons) => append_list(polygons, out, |rings, out| append_lines(rings, out)),
        Shape::Collection(elements) if elements.is_empty() => out.extend_from_slice(b" EMPTY"),
        Shape::Collection(elements) => append_list(elements, out, append),
    }
}

fn append_list<T>(list: &[T], out: &mut Vec<u8>, append: fn(&T, &mut Vec<u8>)) {
    for (position, element) in list.iter().enumerate() {
        out.push(if position == 0 { b'(' } else { b',' });
        append(element, out);
    }
    out.push(b')');
}

fn append_lines(lines: &[Vec<Point>], out: &mut Vec<u8>) {
    append_list(lines, out, |line, out| append_list(line, out, append_point));
}

fn append_point(point: &Point, out: &mut Vec<u8>) {
    append_double(point.x, out);
    out.push(b' ');
    append_double(point.y, out);
}
