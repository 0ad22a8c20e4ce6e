//! The check of a password against the stored forms of an account, in steps.

use junctor_model::password::caching_sha2::{Checked, PASSWORD_BYTES_MAX, PasswordCheck};

use super::accounts::{Accounts, Candidate};

/// Rounds of a check between two turns of the thread: about 50 microseconds.
const ROUNDS_PER_STEP: u32 = 128;

/// The checks of a password against the stored forms of an account.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    current: PasswordCheck,
    /// The check against the retained password.
    next: Option<PasswordCheck>,
}

impl PasswordChecks {
    /// Begins the check of a password. `None` if no account can have it, or the account of the candidate has
    /// another method than `caching_sha2_password`.
    pub fn new(candidate: &Candidate, password: &[u8]) -> Option<PasswordChecks> {
        match candidate.stored() {
            [Some(stored), second] if password.len() <= PASSWORD_BYTES_MAX => Some(PasswordChecks {
                current: stored.check(password),
                next: second.map(|second| second.check(password)),
            }),
            _ => None,
        }
    }

    /// Takes the next step. Returns whether the password is right, once that is known. A right one is noted
    /// for the fast way.
    pub fn step(&mut self, candidate: &Candidate, accounts: &Accounts) -> Option<bool> {
        match self.current.step(ROUNDS_PER_STEP)? {
            Checked::Right(verifier) => {
                accounts.keep_verifier(candidate, self.current.stored(), verifier);
                Some(true)
            }
            // Only an account with a retained password has a second check.
            Checked::Wrong => {
                let Some(next) = self.next.take() else { return Some(false) };
                self.current = next;
                None
            }
        }
    }
}
