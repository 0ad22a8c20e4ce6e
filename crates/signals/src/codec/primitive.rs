//! Numbers, text, lists and the like.

use std::ops::Range;
use std::sync::Arc;

use junctor_kernel::DecodeError;

use super::page::Page;
#[cfg(test)]
use super::sample::Draw;
use super::wire::{Reader, Result, Wire, Writer};

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Wire for $type {
            #[inline(always)]
            fn encode(&self, writer: &mut Writer<'_>) {
                writer.put(&self.to_le_bytes());
            }

            #[inline(always)]
            fn decode(reader: &mut Reader<'_>) -> Result<$type> {
                reader.take().map($type::from_le_bytes)
            }

            fn describe(_page: &mut Page) -> String {
                stringify!($type).into()
            }

            #[cfg(test)]
            fn sample(draw: &mut Draw) -> $type {
                draw.number() as $type
            }
        }
    )*};
}

numbers! { u16 u32 u64 }

impl Wire for u8 {
    #[inline(always)]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&[*self]);
    }

    #[inline(always)]
    fn decode(reader: &mut Reader<'_>) -> Result<u8> {
        reader.take().map(|[byte]| byte)
    }

    fn encode_all(items: &[u8], writer: &mut Writer<'_>) {
        writer.bytes(items);
    }

    fn decode_all(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
        reader.bytes().map(<[u8]>::to_vec)
    }

    fn describe(_page: &mut Page) -> String {
        "u8".into()
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> u8 {
        draw.number() as u8
    }
}

impl Wire for bool {
    #[inline(always)]
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&[u8::from(*self)]);
    }

    #[inline(always)]
    fn decode(reader: &mut Reader<'_>) -> Result<bool> {
        match reader.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [tag] => Err(DecodeError::UnknownTag { name: "bool", tag: tag.into() }),
        }
    }

    fn describe(_page: &mut Page) -> String {
        "bool".into()
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> bool {
        draw.below(2) == 1
    }
}

impl Wire for char {
    fn encode(&self, writer: &mut Writer<'_>) {
        u32::from(*self).encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<char> {
        char::from_u32(u32::decode(reader)?).ok_or(DecodeError::Invalid("char"))
    }

    fn describe(_page: &mut Page) -> String {
        "char".into()
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> char {
        ['\\', 'a', 'é', '\u{10FFFF}'][draw.below(4) as usize]
    }
}

impl Wire for Box<str> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bytes(self.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Box<str>> {
        std::str::from_utf8(reader.bytes()?).map(Box::from).map_err(|_| DecodeError::Invalid("text"))
    }

    fn describe(_page: &mut Page) -> String {
        "text".into()
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Box<str> {
        (0..draw.length()).map(|_| char::sample(draw)).collect::<String>().into()
    }
}

impl<T: Wire> Wire for Option<T> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        self.is_some().encode(writer);
        if let Some(value) = self {
            value.encode(writer);
        }
    }

    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Option<T>> {
        Ok(if bool::decode(reader)? { Some(T::decode(reader)?) } else { None })
    }

    fn describe(page: &mut Page) -> String {
        format!("{}?", T::describe(page))
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Option<T> {
        bool::sample(draw).then(|| T::sample(draw))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        T::encode_all(self, writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        T::decode_all(reader)
    }

    fn describe(page: &mut Page) -> String {
        match T::describe(page).as_str() {
            "u8" => "bytes".into(),
            item => format!("list of {item}"),
        }
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Vec<T> {
        (0..draw.length()).map(|_| T::sample(draw)).collect()
    }
}

impl<T: Wire> Wire for Box<[T]> {
    fn encode(&self, writer: &mut Writer<'_>) {
        T::encode_all(self, writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Box<[T]>> {
        T::decode_all(reader).map(Vec::into_boxed_slice)
    }

    fn describe(page: &mut Page) -> String {
        Vec::<T>::describe(page)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Box<[T]> {
        Vec::sample(draw).into()
    }
}

impl<T: Wire> Wire for Arc<[T]> {
    fn encode(&self, writer: &mut Writer<'_>) {
        T::encode_all(self, writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Arc<[T]>> {
        T::decode_all(reader).map(Arc::from)
    }

    fn describe(page: &mut Page) -> String {
        Vec::<T>::describe(page)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Arc<[T]> {
        Vec::sample(draw).into()
    }
}

impl<T: Wire> Wire for Arc<T> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        T::encode_shared(self, writer);
    }

    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Arc<T>> {
        T::decode_shared(reader)
    }

    fn describe(page: &mut Page) -> String {
        T::describe(page)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Arc<T> {
        Arc::new(T::sample(draw))
    }
}

impl<T: Wire> Wire for Box<T> {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        (**self).encode(writer);
    }

    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Box<T>> {
        T::decode(reader).map(Box::new)
    }

    fn describe(page: &mut Page) -> String {
        T::describe(page)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Box<T> {
        Box::new(T::sample(draw))
    }
}

impl<T: Wire, const COUNT: usize> Wire for [T; COUNT] {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.iter().for_each(|item| item.encode(writer));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<[T; COUNT]> {
        let items: Vec<T> = (0..COUNT).map(|_| T::decode(reader)).collect::<Result<_>>()?;
        // The list has just been made with this length.
        items.try_into().map_err(|_| DecodeError::Invalid("list"))
    }

    fn describe(page: &mut Page) -> String {
        format!("{COUNT} of {}", T::describe(page))
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> [T; COUNT] {
        std::array::from_fn(|_| T::sample(draw))
    }
}

impl<T: Wire> Wire for Range<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.start.encode(writer);
        self.end.encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Range<T>> {
        Ok(T::decode(reader)?..T::decode(reader)?)
    }

    fn describe(page: &mut Page) -> String {
        format!("range of {}", T::describe(page))
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Range<T> {
        T::sample(draw)..T::sample(draw)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.0.encode(writer);
        self.1.encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<(A, B)> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }

    fn describe(page: &mut Page) -> String {
        format!("({}, {})", A::describe(page), B::describe(page))
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> (A, B) {
        (A::sample(draw), B::sample(draw))
    }
}
