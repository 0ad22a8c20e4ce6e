use crate::collation::{CharacterSet, CollationId, CollationLookupError};

#[test]
fn names_and_numbers_are_those_of_mysql() {
    let known = [
        (255, "utf8mb4_0900_ai_ci", CharacterSet::Utf8mb4),
        (45, "utf8mb4_general_ci", CharacterSet::Utf8mb4),
        (46, "utf8mb4_bin", CharacterSet::Utf8mb4),
        (63, "binary", CharacterSet::Binary),
    ];
    assert_eq!(known.len(), CollationId::ALL.len());
    for (number, name, character_set) in known {
        let collation = CollationId::from_number(number).unwrap();
        assert_eq!(collation.number(), number);
        assert_eq!(collation.name(), name);
        assert_eq!(collation.character_set(), character_set);
        assert_eq!(CollationId::from_name(name), Ok(collation));
        assert_eq!(CollationId::from_name(&name.to_uppercase()), Ok(collation));
        assert!(CollationId::ALL.contains(&collation));
    }
    for character_set in CharacterSet::ALL {
        assert_eq!(CharacterSet::from_name(character_set.name()), Ok(character_set));
        assert_eq!(character_set.default_collation().character_set(), character_set);
    }
    assert_eq!(CollationId::default().name(), "utf8mb4_0900_ai_ci");
}

#[test]
fn old_utf8_names_give_their_utf8mb4_counterparts() {
    assert_eq!(CollationId::from_number(33), Ok(CollationId::UTF8MB4_GENERAL_CI));
    assert_eq!(CollationId::from_name("utf8_general_ci"), Ok(CollationId::UTF8MB4_GENERAL_CI));
    assert_eq!(CollationId::from_name("utf8mb3_bin"), Ok(CollationId::UTF8MB4_BIN));
    assert_eq!(CharacterSet::from_name("UTF8"), Ok(CharacterSet::Utf8mb4));
}

#[test]
fn unsupported_names_of_mysql_are_distinguished_from_unknown_names() {
    assert_eq!(CollationId::from_number(8), Err(CollationLookupError::Unsupported));
    assert_eq!(CollationId::from_name("latin1_swedish_ci"), Err(CollationLookupError::Unsupported));
    assert_eq!(CollationId::from_name("ascii_general_ci"), Err(CollationLookupError::Unsupported));
    assert_eq!(CharacterSet::from_name("latin1"), Err(CollationLookupError::Unsupported));
    assert_eq!(CollationId::from_number(9999), Err(CollationLookupError::Unknown));
    assert_eq!(CollationId::from_name("klingon_ci"), Err(CollationLookupError::Unknown));
    assert_eq!(CharacterSet::from_name(""), Err(CollationLookupError::Unknown));
}
