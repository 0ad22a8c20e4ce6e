use proptest::prelude::*;

use super::*;

#[test]
fn an_empty_password_makes_a_local_account() {
    let mut accounts = Accounts::empty();
    accounts.insert("anna", Account::with_password(b""));
    let [near, far] = ["127.0.0.1", "10.0.0.1"].map(|address| Peer::new(address.parse().unwrap()));
    assert!(accounts.candidate(b"anna", near).account.is_some());
    assert!(accounts.candidate(b"anna", far).account.is_none());
}

proptest! {
    #[test]
    fn challenges_survive_zero_terminated_and_seven_bit_transport(random: [u8; CHALLENGE_BYTES]) {
        prop_assert!(challenge_from_random(random).iter().all(|byte| (1..128).contains(byte)));
    }
}
