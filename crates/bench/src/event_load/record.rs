//! Figures of runs as a JSON array of flat records.

use serde_json::Value;

/// Names and values of the fields, in order.
pub type Record = Vec<(&'static str, Value)>;

/// Formats records as a JSON array, one record per line. A number that is not finite becomes null.
pub fn json(records: &[Record]) -> String {
    let line = |record: &Record| {
        let fields = record.iter().map(|(name, value)| format!("{}: {value}", Value::from(*name)));
        format!("  {{{}}}", fields.collect::<Vec<_>>().join(", "))
    };
    let lines: Vec<String> = records.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_unchanged() {
        let records =
            [vec![("a", Value::from("x\"\\\n")), ("b", Value::from(1.5))], vec![("c", Value::from(f64::NAN))]];
        let read: Value = serde_json::from_str(&json(&records)).expect("JSON");
        assert_eq!((&read[0]["a"], &read[0]["b"], &read[1]["c"]), (&records[0][0].1, &Value::from(1.5), &Value::Null));
        assert_eq!(serde_json::from_str::<Value>(&json(&[])).expect("JSON"), Value::Array(Vec::new()));
    }
}
