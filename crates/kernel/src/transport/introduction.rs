//! The introduction of a node: bytes that a node with the cluster's key gets before it has links. A question
//! takes the place of a hello; the answer follows on the same connection, which ends then.

use super::hello::{ClusterKey, Kind, Nonce, PREFIX_BYTES, PROOF_BYTES, Refusal, kind, prefix, prove, verify};

const QUESTION_BYTES: usize = PREFIX_BYTES + 32 + PROOF_BYTES;
const LENGTH_BYTES: usize = 4;
/// Maximum length of an introduction in bytes.
pub const INTRODUCTION_BYTES_MAX: usize = 64 << 10;

/// The question of a node. The nonce makes the answer fresh. A listener that repeats a question gets the
/// answer that it has heard already.
pub fn question(key: &ClusterKey, nonce: &Nonce) -> Vec<u8> {
    let mut message = prefix(Kind::Question, QUESTION_BYTES, (0, 0));
    message.extend_from_slice(nonce);
    prove(key, &mut Vec::new(), message)
}

/// Whether the first message of a connection is a question.
pub(crate) fn is_question(message: &[u8]) -> bool {
    kind(message) == Some(Kind::Question)
}

/// The answer to a question.
///
/// # Errors
/// The question is malformed, or its author does not have the key.
pub fn answer(key: &ClusterKey, question: &[u8], introduction: &[u8]) -> Result<Vec<u8>, Refusal> {
    if !is_question(question) || question.len() != QUESTION_BYTES || introduction.len() > INTRODUCTION_BYTES_MAX {
        return Err(Refusal::Malformed);
    }
    let mut transcript = Vec::new();
    verify(key, &mut transcript, question)?;
    let mut answer = (introduction.len() as u32).to_le_bytes().to_vec();
    answer.extend_from_slice(introduction);
    Ok(prove(key, &mut transcript, answer))
}

/// The introduction in the answer to a question.
///
/// # Errors
/// The answer is malformed, or is not that of a node with the key to this question.
pub fn read_answer<'a>(key: &ClusterKey, question: &[u8], answer: &'a [u8]) -> Result<&'a [u8], Refusal> {
    let length = answer.first_chunk::<LENGTH_BYTES>().map(|length| u32::from_le_bytes(*length) as usize);
    match length.filter(|length| answer.len() == LENGTH_BYTES + length + PROOF_BYTES) {
        Some(length) => {
            verify(key, &mut question.to_vec(), answer)?;
            Ok(&answer[LENGTH_BYTES..LENGTH_BYTES + length])
        }
        None => Err(Refusal::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ClusterKey = ClusterKey([7; 32]);

    #[test]
    fn a_node_with_the_key_is_introduced() {
        let question = question(&KEY, &[1; 32]);
        let answer = answer(&KEY, &question, b"nodes").unwrap();
        assert_eq!(read_answer(&KEY, &question, &answer), Ok(&b"nodes"[..]));
    }

    #[test]
    fn strangers_and_answers_to_other_questions_are_refused() {
        let (own, other) = (question(&KEY, &[1; 32]), question(&KEY, &[2; 32]));
        let stranger = ClusterKey([8; 32]);
        assert_eq!(answer(&KEY, &question(&stranger, &[1; 32]), b"nodes"), Err(Refusal::Key));
        assert_eq!(answer(&KEY, &own[..own.len() - 1], b"nodes"), Err(Refusal::Malformed));
        let answer = answer(&KEY, &other, b"nodes").unwrap();
        assert_eq!(read_answer(&KEY, &own, &answer), Err(Refusal::Key));
        for length in 0..answer.len() {
            assert_eq!(read_answer(&KEY, &other, &answer[..length]), Err(Refusal::Malformed));
        }
        for position in 0..answer.len() {
            let mut damaged = answer.clone();
            damaged[position] ^= 1;
            assert!(read_answer(&KEY, &other, &damaged).is_err());
        }
    }
}
