use crate::collation::{CharacterSet, CollationId, CollationLookupError};

const KNOWN: &[(u16, &str)] = &[
    (5, "latin1_german1_ci"),
    (8, "latin1_swedish_ci"),
    (11, "ascii_general_ci"),
    (15, "latin1_danish_ci"),
    (31, "latin1_german2_ci"),
    (33, "utf8mb3_general_ci"),
    (45, "utf8mb4_general_ci"),
    (46, "utf8mb4_bin"),
    (47, "latin1_bin"),
    (48, "latin1_general_ci"),
    (49, "latin1_general_cs"),
    (63, "binary"),
    (65, "ascii_bin"),
    (83, "utf8mb3_bin"),
    (94, "latin1_spanish_ci"),
    (192, "utf8mb3_unicode_ci"),
    (214, "utf8mb3_unicode_520_ci"),
    (224, "utf8mb4_unicode_ci"),
    (225, "utf8mb4_icelandic_ci"),
    (226, "utf8mb4_latvian_ci"),
    (227, "utf8mb4_romanian_ci"),
    (228, "utf8mb4_slovenian_ci"),
    (229, "utf8mb4_polish_ci"),
    (230, "utf8mb4_estonian_ci"),
    (231, "utf8mb4_spanish_ci"),
    (232, "utf8mb4_swedish_ci"),
    (233, "utf8mb4_turkish_ci"),
    (239, "utf8mb4_roman_ci"),
    (241, "utf8mb4_esperanto_ci"),
    (243, "utf8mb4_sinhala_ci"),
    (244, "utf8mb4_german2_ci"),
    (246, "utf8mb4_unicode_520_ci"),
    (247, "utf8mb4_vietnamese_ci"),
    (255, "utf8mb4_0900_ai_ci"),
    (256, "utf8mb4_de_pb_0900_ai_ci"),
    (257, "utf8mb4_is_0900_ai_ci"),
    (258, "utf8mb4_lv_0900_ai_ci"),
    (259, "utf8mb4_ro_0900_ai_ci"),
    (260, "utf8mb4_sl_0900_ai_ci"),
    (261, "utf8mb4_pl_0900_ai_ci"),
    (262, "utf8mb4_et_0900_ai_ci"),
    (263, "utf8mb4_es_0900_ai_ci"),
    (264, "utf8mb4_sv_0900_ai_ci"),
    (265, "utf8mb4_tr_0900_ai_ci"),
    (266, "utf8mb4_cs_0900_ai_ci"),
    (267, "utf8mb4_da_0900_ai_ci"),
    (268, "utf8mb4_lt_0900_ai_ci"),
    (269, "utf8mb4_sk_0900_ai_ci"),
    (270, "utf8mb4_es_trad_0900_ai_ci"),
    (271, "utf8mb4_la_0900_ai_ci"),
    (273, "utf8mb4_eo_0900_ai_ci"),
    (274, "utf8mb4_hu_0900_ai_ci"),
    (275, "utf8mb4_hr_0900_ai_ci"),
    (277, "utf8mb4_vi_0900_ai_ci"),
    (278, "utf8mb4_0900_as_cs"),
    (279, "utf8mb4_de_pb_0900_as_cs"),
    (280, "utf8mb4_is_0900_as_cs"),
    (281, "utf8mb4_lv_0900_as_cs"),
    (282, "utf8mb4_ro_0900_as_cs"),
    (283, "utf8mb4_sl_0900_as_cs"),
    (284, "utf8mb4_pl_0900_as_cs"),
    (285, "utf8mb4_et_0900_as_cs"),
    (286, "utf8mb4_es_0900_as_cs"),
    (287, "utf8mb4_sv_0900_as_cs"),
    (288, "utf8mb4_tr_0900_as_cs"),
    (289, "utf8mb4_cs_0900_as_cs"),
    (290, "utf8mb4_da_0900_as_cs"),
    (291, "utf8mb4_lt_0900_as_cs"),
    (292, "utf8mb4_sk_0900_as_cs"),
    (293, "utf8mb4_es_trad_0900_as_cs"),
    (294, "utf8mb4_la_0900_as_cs"),
    (296, "utf8mb4_eo_0900_as_cs"),
    (297, "utf8mb4_hu_0900_as_cs"),
    (298, "utf8mb4_hr_0900_as_cs"),
    (300, "utf8mb4_vi_0900_as_cs"),
    (303, "utf8mb4_ja_0900_as_cs"),
    (304, "utf8mb4_ja_0900_as_cs_ks"),
    (305, "utf8mb4_0900_as_ci"),
    (306, "utf8mb4_ru_0900_ai_ci"),
    (307, "utf8mb4_ru_0900_as_cs"),
    (308, "utf8mb4_zh_0900_as_cs"),
    (309, "utf8mb4_0900_bin"),
    (310, "utf8mb4_nb_0900_ai_ci"),
    (311, "utf8mb4_nb_0900_as_cs"),
    (312, "utf8mb4_nn_0900_ai_ci"),
    (313, "utf8mb4_nn_0900_as_cs"),
    (314, "utf8mb4_sr_latn_0900_ai_ci"),
    (315, "utf8mb4_sr_latn_0900_as_cs"),
    (316, "utf8mb4_bs_0900_ai_ci"),
    (317, "utf8mb4_bs_0900_as_cs"),
    (318, "utf8mb4_bg_0900_ai_ci"),
    (319, "utf8mb4_bg_0900_as_cs"),
    (320, "utf8mb4_gl_0900_ai_ci"),
    (321, "utf8mb4_gl_0900_as_cs"),
    (322, "utf8mb4_mn_cyrl_0900_ai_ci"),
    (323, "utf8mb4_mn_cyrl_0900_as_cs"),
];

#[test]
fn names_and_numbers_are_those_of_mysql() {
    assert_eq!(KNOWN.len(), CollationId::ALL.len());
    for &(number, name) in KNOWN {
        let collation = CollationId::from_number(number).unwrap();
        assert_eq!(collation.number(), number);
        assert_eq!(collation.name(), name);
        assert_eq!(collation.character_set().name(), name.split('_').next().unwrap());
        assert_eq!(collation.is_code_point_order(), name.ends_with("bin") || name == "binary");
        assert_eq!(collation.pads_with_spaces(), !name.contains("_0900_") && name != "binary");
        assert_eq!(CollationId::from_name(name), Ok(collation));
        assert_eq!(CollationId::from_name(&name.to_uppercase()), Ok(collation));
        assert!(CollationId::ALL.contains(&collation));
    }
    for character_set in CharacterSet::ALL {
        assert_eq!(CharacterSet::from_name(character_set.name()), Ok(character_set));
        assert_eq!(character_set.default_collation().character_set(), character_set);
        assert!(character_set.default_collation().is_default());
        assert_eq!(character_set.code_point_collation().character_set(), character_set);
        assert!(character_set.code_point_collation().is_code_point_order());
    }
    assert_eq!(CollationId::default().name(), "utf8mb4_0900_ai_ci");
}

#[test]
fn old_utf8_names_are_those_of_utf8mb3() {
    assert_eq!(CollationId::from_name("utf8_general_ci"), CollationId::from_number(33));
    assert_eq!(CollationId::from_name("UTF8_bin"), CollationId::from_number(83));
    assert_eq!(CharacterSet::from_name("UTF8"), Ok(CharacterSet::Utf8mb3));
}

#[test]
fn unsupported_names_of_mysql_are_distinguished_from_unknown_names() {
    assert_eq!(CollationId::from_number(28), Err(CollationLookupError::Unsupported));
    for name in ["gbk_chinese_ci", "utf16_unicode_ci", "latin2_bin", "utf8_swedish_ci"] {
        assert_eq!(CollationId::from_name(name), Err(CollationLookupError::Unsupported), "{name}");
    }
    assert_eq!(CharacterSet::from_name("utf16"), Err(CollationLookupError::Unsupported));
    assert_eq!(CollationId::from_number(9999), Err(CollationLookupError::Unknown));
    for name in ["klingon_ci", "latin1", "latin1_swedish", "", "é"] {
        assert_eq!(CollationId::from_name(name), Err(CollationLookupError::Unknown), "{name}");
    }
    assert_eq!(CharacterSet::from_name(""), Err(CollationLookupError::Unknown));
}
