//! AES_ENCRYPT and AES_DECRYPT in the modes of `block_encryption_mode`.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, Setting, TypedCall, function};
use crate::program::Expression;
use crate::result_type::{Coercibility, ResultType};

/// The arguments are text, key and, for modes that need one, initialization vector. The value of
/// `block_encryption_mode` follows.
pub(super) const TABLE: &[Function] = &[
    function("AES_ENCRYPT", 2, 3, resolve, encrypt).with(MODE),
    function("AES_DECRYPT", 2, 3, resolve, decrypt).with(MODE),
];

const MODE: &[Setting] = &[Setting::Variable("block_encryption_mode")];
/// Bytes of a block.
const BLOCK: usize = 16;

type Block = [u8; BLOCK];

/// A mode of operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    Cfb1,
    Cfb8,
    Cfb128,
    Ofb,
}

/// A cipher with its key.
enum Cipher {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments[0].result.bytes_max().saturating_add(BLOCK as u32);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length).with_nullable(true);
    Ok(TypedCall { arguments, result })
}

impl Cipher {
    /// The key is folded to the length of the cipher's key by exclusive or.
    fn new(bits: u32, key: &[u8]) -> Cipher {
        let mut folded = [0u8; 32];
        let bytes = bits as usize / 8;
        key.iter().enumerate().for_each(|(at, byte)| folded[at % bytes] ^= byte);
        match bits {
            256 => Cipher::Aes256(Aes256::new(&Array::from(folded))),
            192 => {
                let mut key = [0; 24];
                key.copy_from_slice(&folded[..24]);
                Cipher::Aes192(Aes192::new(&Array::from(key)))
            }
            _ => {
                let mut key = [0; 16];
                key.copy_from_slice(&folded[..16]);
                Cipher::Aes128(Aes128::new(&Array::from(key)))
            }
        }
    }

    fn encrypted(&self, block: Block) -> Block {
        let mut block = Array::from(block);
        match self {
            Cipher::Aes128(cipher) => cipher.encrypt_block(&mut block),
            Cipher::Aes192(cipher) => cipher.encrypt_block(&mut block),
            Cipher::Aes256(cipher) => cipher.encrypt_block(&mut block),
        }
        block.into()
    }

    fn decrypted(&self, block: Block) -> Block {
        let mut block = Array::from(block);
        match self {
            Cipher::Aes128(cipher) => cipher.decrypt_block(&mut block),
            Cipher::Aes192(cipher) => cipher.decrypt_block(&mut block),
            Cipher::Aes256(cipher) => cipher.decrypt_block(&mut block),
        }
        block.into()
    }

    /// Cipher feedback with units of `unit` bytes. Decryption feeds the input back, encryption the output.
    fn feedback(&self, mut register: Block, (unit, decrypts): (usize, bool), data: &[u8], out: &mut Vec<u8>) {
        for part in data.chunks(unit) {
            let mask = self.encrypted(register);
            let result: Vec<u8> = part.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
            let fed = if decrypts { part } else { &result };
            register.copy_within(fed.len().., 0);
            register[BLOCK - fed.len()..].copy_from_slice(fed);
            out.extend_from_slice(&result);
        }
    }

    /// Cipher feedback bit by bit.
    fn bit_feedback(&self, register: Block, decrypts: bool, data: &[u8], out: &mut Vec<u8>) {
        let mut register = u128::from_be_bytes(register);
        for byte in data {
            let mut result = 0;
            for bit in (0..8).rev() {
                let mask = self.encrypted(register.to_be_bytes())[0] >> 7;
                let given = byte >> bit & 1;
                let made = given ^ mask;
                register = register << 1 | u128::from(if decrypts { given } else { made });
                result = result << 1 | made;
            }
            out.push(result);
        }
    }

    fn output_feedback(&self, mut register: Block, data: &[u8], out: &mut Vec<u8>) {
        for part in data.chunks(BLOCK) {
            register = self.encrypted(register);
            out.extend(part.iter().zip(register).map(|(byte, mask)| byte ^ mask));
        }
    }
}

/// The inputs of a call, but the text.
struct Inputs {
    cipher: Cipher,
    mode: Mode,
    vector: Block,
}

/// `None` if an argument is NULL. Errors: 1582 without an initialization vector where the mode needs one,
/// 1882 for one that is too short.
fn inputs(call: Call<'_>, name: &str) -> Result<Option<Inputs>> {
    let settings = call.count() - 1;
    let Some(mode_name) = call.text(settings)? else { return Ok(None) };
    let mode_name = String::from_utf8_lossy(mode_name);
    let mut parts = mode_name.split('-').skip(1);
    let bits = parts.next().and_then(|bits| bits.parse().ok()).unwrap_or(128);
    let mode = match parts.next() {
        Some("cbc") => Mode::Cbc,
        Some("cfb1") => Mode::Cfb1,
        Some("cfb8") => Mode::Cfb8,
        Some("cfb128") => Mode::Cfb128,
        Some("ofb") => Mode::Ofb,
        _ => Mode::Ecb,
    };
    let Some(key) = call.text(1)? else { return Ok(None) };
    let mut vector = [0; BLOCK];
    match (mode, settings) {
        (Mode::Ecb, 3) => {
            call.scratch().note(ErrorCode::OptionIgnored, || "<IV> option ignored".into());
        }
        (Mode::Ecb, _) => {}
        (_, 3) => {
            let given = call.text(2)?.unwrap_or_default();
            let Some(first) = given.first_chunk::<BLOCK>() else {
                let message = format!(
                    "The initialization vector supplied to {name} is too short. Must be at least 16 bytes long"
                );
                return Err(Error::new(ErrorCode::ShortInitializationVector, message));
            };
            vector = *first;
        }
        _ => return Err(super::wrong_count(name)),
    }
    Ok(Some(Inputs { cipher: Cipher::new(bits, key), mode, vector }))
}

fn encrypt(call: Call<'_>) -> Result<ValueRef<'_>> {
    let inputs = inputs(call, "aes_encrypt")?;
    let (Some(inputs), Some(text)) = (inputs, call.text(0)?) else { return Ok(ValueRef::Null) };
    let Inputs { cipher, mode, mut vector } = inputs;
    call.build(|buffer| match mode {
        Mode::Ecb | Mode::Cbc => {
            let missing = BLOCK - text.len() % BLOCK;
            let (blocks, rest) = text.as_chunks::<BLOCK>();
            let mut last = [missing as u8; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            for block in blocks.iter().chain([&last]) {
                let mut block = *block;
                if mode == Mode::Cbc {
                    block.iter_mut().zip(vector).for_each(|(byte, mask)| *byte ^= mask);
                }
                vector = cipher.encrypted(block);
                buffer.extend_from_slice(&vector);
            }
        }
        Mode::Cfb1 => cipher.bit_feedback(vector, false, text, buffer),
        Mode::Cfb8 => cipher.feedback(vector, (1, false), text, buffer),
        Mode::Cfb128 => cipher.feedback(vector, (BLOCK, false), text, buffer),
        Mode::Ofb => cipher.output_feedback(vector, text, buffer),
    })
}

/// NULL for data that the key does not decrypt.
fn decrypt(call: Call<'_>) -> Result<ValueRef<'_>> {
    let inputs = inputs(call, "aes_decrypt")?;
    let (Some(inputs), Some(data)) = (inputs, call.text(0)?) else { return Ok(ValueRef::Null) };
    let Inputs { cipher, mode, mut vector } = inputs;
    let built = call.scratch().build(|buffer| {
        match mode {
            Mode::Ecb | Mode::Cbc => {
                let (blocks, rest) = data.as_chunks::<BLOCK>();
                if !rest.is_empty() || blocks.is_empty() {
                    return Ok(false);
                }
                for block in blocks {
                    let mut clear = cipher.decrypted(*block);
                    if mode == Mode::Cbc {
                        clear.iter_mut().zip(vector).for_each(|(byte, mask)| *byte ^= mask);
                        vector = *block;
                    }
                    buffer.extend_from_slice(&clear);
                }
                let padding = usize::from(buffer.last().copied().unwrap_or(0));
                let is_valid = (1..=BLOCK).contains(&padding)
                    && buffer[buffer.len() - padding..].iter().all(|byte| usize::from(*byte) == padding);
                if !is_valid {
                    return Ok(false);
                }
                buffer.truncate(buffer.len() - padding);
            }
            Mode::Cfb1 => cipher.bit_feedback(vector, true, data, buffer),
            Mode::Cfb8 => cipher.feedback(vector, (1, true), data, buffer),
            Mode::Cfb128 => cipher.feedback(vector, (BLOCK, true), data, buffer),
            Mode::Ofb => cipher.output_feedback(vector, data, buffer),
        }
        Ok(true)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 16] =
        [0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c];
    const CLEAR: Block =
        [0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a];

    fn vector() -> Block {
        std::array::from_fn(|at| at as u8)
    }

    /// The examples of NIST SP 800-38A, F.1.1, F.3.1, F.3.7 and F.3.13.
    #[test]
    fn the_modes_agree_with_the_examples_of_the_standard() {
        let cipher = Cipher::new(128, &KEY);
        assert_eq!(cipher.encrypted(CLEAR)[..4], [0x3a, 0xd7, 0x7b, 0xb4]);
        assert_eq!(cipher.decrypted(cipher.encrypted(CLEAR)), CLEAR);
        let mut out = Vec::new();
        cipher.bit_feedback(vector(), false, &CLEAR[..2], &mut out);
        assert_eq!(out, [0x68, 0xb3]);
        out.clear();
        cipher.feedback(vector(), (1, false), &CLEAR[..4], &mut out);
        assert_eq!(out, [0x3b, 0x79, 0x42, 0x4c]);
        out.clear();
        cipher.feedback(vector(), (BLOCK, false), &CLEAR, &mut out);
        assert_eq!(out[..4], [0x3b, 0x3f, 0xd9, 0x2e]);
        let encrypted = out.clone();
        out.clear();
        cipher.feedback(vector(), (BLOCK, true), &encrypted, &mut out);
        assert_eq!(out, CLEAR);
        out.clear();
        cipher.output_feedback(vector(), &CLEAR, &mut out);
        assert_eq!(out[..4], [0x3b, 0x3f, 0xd9, 0x2e]);
    }

    #[test]
    fn a_long_key_is_folded() {
        let mut twice = KEY.to_vec();
        twice.extend_from_slice(&[0; 16]);
        assert_eq!(Cipher::new(128, &twice).encrypted(CLEAR), Cipher::new(128, &KEY).encrypted(CLEAR));
    }
}
