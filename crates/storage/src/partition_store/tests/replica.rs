//! Replicas: row ids that a primary chose, and digests.

use super::*;

#[test]
fn a_backup_takes_the_row_ids_of_its_primary() {
    let (mut store, mut backup) = (store(), store());
    let layout = store.layout().clone();
    for id in (0..50).rev() {
        insert(&mut store, id, id, FIRST).unwrap();
    }
    for id in 0..50 {
        let (key, hash) = integer_key(id);
        let row = store.find_primary(&key, hash).unwrap();
        let image = row_image(&layout, id, &values(id));
        assert_eq!(backup.insert_at(row, HashedKey { hash, key: &key }, &image, writer(FIRST, ONE)), Ok(row));
        backup.check().unwrap();
    }
    let (key, hash) = integer_key(90);
    let image = row_image(&layout, 90, &values(90));
    assert_eq!(
        backup.insert_at(RowId(3), HashedKey { hash, key: &key }, &image, writer(FIRST, ONE)),
        Err(WriteError::Uncommitted(RowId(3)))
    );
}

#[test]
fn a_version_that_only_the_primary_has_given_up_raises_the_floor_of_the_backup() {
    for is_purged in [false, true] {
        let mut backup = store();
        let layout = backup.layout().clone();
        let row = insert(&mut backup, 1, 1, FIRST).unwrap();
        backup.commit(row, FIRST, CommitNumber(1));
        backup.delete(row, writer(SECOND, ONE)).unwrap();
        backup.commit(row, SECOND, CommitNumber(5));
        if is_purged {
            backup.purge_step(CommitNumber(5), 0);
        }
        let (key, hash) = integer_key(2);
        let image = row_image(&layout, 2, &values(2));
        assert_eq!(backup.insert_at(row, HashedKey { hash, key: &key }, &image, writer(FIRST, ONE)), Ok(row));
        assert_eq!(backup.snapshot_floor(), CommitNumber(if is_purged { 0 } else { 5 }));
        backup.check().unwrap();
    }
}

#[test]
fn replicas_with_the_same_rows_have_equal_digests() {
    let (mut store, mut replica) = (store(), store());
    let layout = store.layout().clone();
    let rows: Vec<RowId> = (0..3).map(|id| insert(&mut store, id, id, FIRST).unwrap()).collect();
    rows.iter().for_each(|row| store.commit(*row, FIRST, CommitNumber(1)));
    store.update(rows[0], &row_image(&layout, 0, &values(50)), writer(SECOND, ONE)).unwrap();
    store.delete(rows[1], writer(SECOND, ONE)).unwrap();
    rows.iter().for_each(|row| store.commit(*row, SECOND, CommitNumber(2)));
    // The replica gets the rows in another order, and in one commit.
    for (id, k) in [(2, 2), (0, 50)] {
        let (key, hash) = integer_key(id);
        let row = replica.insert_at(
            rows[id as usize],
            HashedKey { hash, key: &key },
            &row_image(&layout, id, &values(k)),
            writer(FIRST, ONE),
        );
        replica.commit(row.unwrap(), FIRST, CommitNumber(9));
    }
    assert_eq!(store.digest(CommitNumber(2)), replica.digest(CommitNumber(9)));
    assert_ne!(store.digest(CommitNumber(1)), store.digest(CommitNumber(2)));
}

#[test]
fn a_backup_follows_its_primary_through_ids_that_are_used_again() {
    let (mut primary, mut backup) = (store(), store());
    let layout = primary.layout().clone();
    let mut number = 0;
    // The primary purges immediately and the backup never. The primary therefore reuses row ids and keys in
    // pairs that differ from the deleted rows, which the backup still has.
    for id in [1, 2, -1, 3, -2, 1, 4, -4, -3, 4, 3, -1, 2, 1] {
        number += 1;
        let (transaction, commit) = (TransactionId(number), CommitNumber(number));
        let (key, hash) = integer_key(i32::abs(id));
        let row = match id {
            1.. => {
                let image = row_image(&layout, id, &values(number as i32));
                let row = primary.insert(HashedKey { hash, key: &key }, &image, writer(transaction, ONE)).unwrap();
                assert_eq!(
                    backup.insert_at(row, HashedKey { hash, key: &key }, &image, writer(transaction, ONE)),
                    Ok(row)
                );
                row
            }
            _ => {
                let row = primary.find_primary(&key, hash).unwrap();
                primary.delete(row, writer(transaction, ONE)).unwrap();
                backup.delete(row, writer(transaction, ONE)).unwrap();
                row
            }
        };
        primary.commit(row, transaction, commit);
        backup.commit(row, transaction, commit);
        primary.purge_step(commit, 100);
        backup.check().unwrap();
        assert_eq!(primary.digest(commit), backup.digest(commit));
    }
}
