use junctor_model::collation::CollationId;

use super::document::Document;
use super::evaluate::{Evaluation, Found, append_number};
use super::path::parse;

/// The answer of EXTRACTVALUE.
fn extract(text: &str, path: &str) -> String {
    let path = match parse(path.as_bytes()) {
        Ok(path) => path,
        Err(error) => return error.message.to_string(),
    };
    let document = match Document::read(text.as_bytes()) {
        Ok(document) => document,
        Err(defect) => return defect,
    };
    let mut out = Vec::new();
    match Evaluation::new(&document, CollationId::UTF8MB4_0900_AI_CI).run(&path) {
        Ok(Found::Nodes(nodes)) => document.append_texts(&nodes, &mut out),
        Ok(Found::Number(number)) => append_number(number, &mut out),
        Ok(Found::Text(text)) => out = text,
        Ok(Found::Truth(truth)) => out.push(b'0' + u8::from(truth)),
        Err(error) => return error.message.to_string(),
    }
    String::from_utf8(out).expect("it is text")
}

#[test]
fn paths_find_texts_as_in_mysqls_manual() {
    let text = "<a>ccc<b>ddd</b></a>";
    for (path, expected) in
        [("/a", "ccc"), ("/a/b", "ddd"), ("//b", "ddd"), ("/b", ""), ("count(/b)", "0"), ("a/b", "ddd")]
    {
        assert_eq!(extract(text, path), expected, "{path}");
    }
    assert_eq!(extract("<a><b/></a>", "/a/b"), "");
    assert_eq!(extract("<a>ccc<b>ddd</b><b>eee</b></a>", "//b"), "ddd eee");
    assert_eq!(extract("<a><b>x</b><b>y</b></a>", "//b[2]"), "y");
    assert_eq!(extract("<a>1</a><b>2</b>", "/b"), "2");
}

#[test]
fn steps_axes_predicates_and_functions_work() {
    let text =
        "<r><p id='1' k=\"x\">one<q>1</q></p><p id='2'>two<q>2</q><q>3</q></p><!-- no --><s><![CDATA[<z>]]></s></r>";
    for (path, expected) in [
        ("/r/p/@id", "1 2"),
        ("/r/p[@id='2']", "two"),
        ("/r/p[@id=2]/q", "2 3"),
        ("/r/p[2]/q[last()]", "3"),
        ("/r/p[position()=1]", "one"),
        ("//q[.='2']/..", "two"),
        ("//q[. > 1]", "2 3"),
        ("/r/p[q=3]/@id", "2"),
        ("/r/*[2]", "two"),
        ("/r/s", "<z>"),
        ("/r/p/text()", "one two"),
        ("//q/parent::p", "one two"),
        ("//q/ancestor::p[1]/@id", "1 2"),
        ("/descendant::q[1]", "1"),
        ("/r/self::r/child::s", "<z>"),
        ("/r/p[1] | //q[.=3]", "one 3"),
        ("count(//q)", "3"),
        ("count(//q) + 1", "4"),
        ("sum(//q)", "6"),
        ("sum(//q) div 4", "1.5"),
        ("7 mod 4", "3"),
        ("-(1 - 3) * 2", "4"),
        ("count(//q) = 3 and not(false())", "1"),
        ("count(//q) > 3 or //zz", "0"),
        ("concat(/r/p[1], '-', 2)", "one-2"),
        ("contains(/r/p[1], 'n')", "1"),
        ("substring('hello', 2, 3)", "ell"),
        ("string-length('äö')", "2"),
        ("round(2.5) + floor(1.7) + ceiling(1.2)", "6"),
        ("/r/p[contains(@k, 'x')]/q", "1"),
        ("/r/p[not(@k)]/@id", "2"),
    ] {
        assert_eq!(extract(text, path), expected, "{path}");
    }
}

#[test]
fn wrong_paths_and_texts_are_named() {
    for (path, expected) in [
        ("/a[", "XPATH syntax error: ''"),
        ("/a]", "XPATH syntax error: ']'"),
        ("starts-with('a', 'b')", "XPATH syntax error: 'starts-with('a', 'b')'"),
        ("/a = /b", "XPATH error: comparison of two nodesets is not supported"),
        ("", "XPATH syntax error: ''"),
        ("count(1)", "XPATH syntax error: ''"),
    ] {
        assert_eq!(extract("<a/>", path), expected, "{path}");
    }
    assert_eq!(extract("<a>", "/a"), "parse error at line 1 pos 3: unexpected END-OF-INPUT");
    for text in ["<a></b>", "</a>", "<a", "<a b='1>"] {
        assert!(extract(text, "/a").starts_with("parse error at line 1 pos "), "{text}");
    }
}

#[test]
fn deep_and_long_inputs_end() {
    let deep = "(".repeat(1000);
    assert!(extract("<a/>", &deep).starts_with("XPATH syntax error"));
    assert!(extract("<a/>", &"-".repeat(10_000)).starts_with("XPATH syntax error"));
    let nested = "<a>".repeat(3000) + &"</a>".repeat(3000);
    assert!(extract(&nested, "//a").starts_with("parse error"));
    let wide = format!("<r>{}</r>", "<a/>".repeat(3000));
    assert_eq!(
        extract(&wide, "count(//*[//*[//*]])"),
        "This version of Junctor doesn't yet support 'so long a search in XML'"
    );
}
