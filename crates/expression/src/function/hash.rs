//! Hashes, as hexadecimal digits.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::value::ValueRef;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::{Call, Function, TypedCall, function, generated_text};
use crate::program::Expression;

pub(super) const TABLE: &[Function] = &[
    function("MD5", 1, 1, |name, arguments| generated_text(name, arguments, 32), hashed::<Md5>).of_bytes(),
    function("SHA", 1, 1, |name, arguments| generated_text(name, arguments, 40), hashed::<Sha1>).of_bytes(),
    function("SHA1", 1, 1, |name, arguments| generated_text(name, arguments, 40), hashed::<Sha1>).of_bytes(),
    function("SHA2", 2, 2, resolve_sha2, sha2).numbers_at(0b10).of_bytes(),
];

fn resolve_sha2(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 128)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn hashed<H: Digest>(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
    let hash = H::digest(bytes);
    call.build(|buffer| append_hexadecimal(&hash, buffer))
}

fn sha2(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(_), Some(bits)) = (call.text(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    match bits {
        224 => hashed::<Sha224>(call),
        0 | 256 => hashed::<Sha256>(call),
        384 => hashed::<Sha384>(call),
        512 => hashed::<Sha512>(call),
        _ => {
            let message = || "Incorrect parameters in the call to native function 'sha2'".into();
            call.scratch().note(ErrorCode::WrongFunctionParameters, message);
            Ok(ValueRef::Null)
        }
    }
}

fn append_hexadecimal(bytes: &[u8], buffer: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    buffer.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}
