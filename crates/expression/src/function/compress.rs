//! COMPRESS and its reverse: four bytes with the length of the text, then the text in the format of zlib.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function};
use crate::program::Expression;
use crate::result_type::{Coercibility, ResultType};
use crate::scratch::STRING_BYTES_MAX;

pub(super) const TABLE: &[Function] = &[
    function("COMPRESS", 1, 1, resolve_compress, compress).of_bytes(),
    function("UNCOMPRESS", 1, 1, resolve_uncompress, uncompress).of_bytes(),
    function("UNCOMPRESSED_LENGTH", 1, 1, resolve_length, uncompressed_length).of_bytes(),
];

/// Bytes of the length in front.
const HEADER: usize = 4;

fn resolve_compress(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments[0].result.bytes_max();
    let length = length.saturating_add(length / 1000).saturating_add(32);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length);
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn resolve_uncompress(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, STRING_BYTES_MAX as u32);
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn resolve_length(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::integer(false, 10).with_nullable(true);
    Ok(TypedCall { arguments, result })
}

/// The empty string stays empty. A space at the end, which CHAR columns would remove, is followed by a point.
fn compress(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    if text.is_empty() {
        return Ok(ValueRef::Bytes(b""));
    }
    let built = call.scratch().build(|buffer| {
        buffer.extend_from_slice(&(text.len() as u32 & 0x3FFF_FFFF).to_le_bytes());
        let mut encoder = ZlibEncoder::new(&mut *buffer, Compression::default());
        let written = encoder.write_all(text).and_then(|()| encoder.finish().map(|_| ()));
        written.map_err(|error| Error::new(ErrorCode::OutOfResources, error.to_string()))?;
        if buffer.last() == Some(&b' ') {
            buffer.push(b'.');
        }
        Ok(true)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

/// NULL and a warning for data that COMPRESS did not make.
fn uncompress(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(data) = call.text(0)? else { return Ok(ValueRef::Null) };
    if data.is_empty() {
        return Ok(ValueRef::Bytes(b""));
    }
    let Some(length) = claimed_length(data) else { return damaged(call) };
    if length > STRING_BYTES_MAX {
        let message = || {
            let limit = STRING_BYTES_MAX;
            format!(
                "Uncompressed data size too large; the maximum size is {limit} (probably, length of uncompressed data was corrupted)"
            )
        };
        call.scratch().note(ErrorCode::UncompressedTooLong, message);
        return Ok(ValueRef::Null);
    }
    let mut is_whole = false;
    let built = call.scratch().build(|buffer| {
        let mut decoder = ZlibDecoder::new(&data[HEADER..]).take(length as u64 + 1);
        is_whole = decoder.read_to_end(buffer).is_ok() && buffer.len() <= length;
        Ok(is_whole)
    })?;
    match built {
        Some(text) => Ok(ValueRef::Bytes(text)),
        None => damaged(call),
    }
}

fn uncompressed_length(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(data) = call.text(0)? else { return Ok(ValueRef::Null) };
    if data.is_empty() {
        return Ok(ValueRef::Int(0));
    }
    match claimed_length(data) {
        Some(length) => Ok(ValueRef::Int(length as i64)),
        None => damaged(call),
    }
}

fn claimed_length(data: &[u8]) -> Option<usize> {
    let header = data.first_chunk::<HEADER>().filter(|_| data.len() > HEADER)?;
    Some((u32::from_le_bytes(*header) & 0x3FFF_FFFF) as usize)
}

#[cold]
fn damaged(call: Call<'_>) -> Result<ValueRef<'_>> {
    call.scratch().note(ErrorCode::CompressedDataDamaged, || "ZLIB: Input data corrupted".into());
    Ok(ValueRef::Null)
}
