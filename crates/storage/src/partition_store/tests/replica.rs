//! Replicas: row ids that a primary chose, redo, digests.

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
fn redo_of_a_commit_has_the_last_state_of_each_row() {
    let (mut store, mut replica) = (store(), store());
    let layout = store.layout().clone();
    let rows: Vec<RowId> = (0..3).map(|id| insert(&mut store, id, id, FIRST).unwrap()).collect();
    rows.iter().for_each(|row| store.commit(*row, FIRST, CommitNumber(1)));
    store.update(rows[0], &row_image(&layout, 0, &values(50)), writer(SECOND, ONE)).unwrap();
    store.delete(rows[1], writer(SECOND, ONE)).unwrap();
    let passing = insert(&mut store, 8, 8, SECOND).unwrap();
    store.delete(passing, writer(SECOND, TWO)).unwrap();
    let (mut redo, mut scratch) = (RedoBuffer::new(), Vec::new());
    redo.begin(RedoHeader {
        commit_number: CommitNumber(2),
        transaction: SECOND,
        participant_count: 1,
        partition: PartitionId::default(),
        schema_version: SchemaVersion(1),
    });
    for row in [rows[0], rows[1], rows[2], passing] {
        store.append_redo(row, SECOND, &mut redo, &mut scratch);
        store.commit(row, SECOND, CommitNumber(2));
    }
    let bytes = redo.take(Vec::new());
    let record = RedoRecords::new(&bytes).next().unwrap().unwrap();
    let image = row_image(&layout, 0, &values(50));
    let expected = [
        RedoOperation::Put { row: rows[0], image: &image },
        RedoOperation::Delete { row: rows[1], key: &integer_key(1).0 },
    ];
    assert_eq!(record.operations().collect::<Vec<_>>(), expected);
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
    // The primary purges immediately and the backup never, so ids and keys are reused in different pairs.
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
