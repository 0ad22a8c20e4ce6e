//! The metrics of a node in the text format of Prometheus. They are read with statements over a connection in
//! memory, so each is a column of a table of `junctor_info`, or a row of SHOW STATUS.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use junctor_client::{Connection, Options, Rows, ValueRef};
use junctor_front::INTERNAL_LISTENER;

use crate::memory_transport::MemoryTransport;

/// Tables: the prefix of the metrics, the query, and how many of its first columns are labels.
const TABLES: &[(&str, &str, usize)] = &[
    (
        "memory",
        "SELECT ldm_instance, SUM(live_rows) AS live_rows, SUM(row_versions) AS row_versions, \
         SUM(row_bytes) AS row_bytes, SUM(overflow_bytes) AS overflow_bytes, \
         SUM(hash_index_bytes) AS hash_index_bytes, SUM(ordered_index_bytes) AS ordered_index_bytes \
         FROM junctor_info.memoryusage GROUP BY ldm_instance",
        1,
    ),
    (
        "log_space",
        "SELECT log_type, used_bytes, limit_bytes, reserved_bytes, written_bytes, has_waiting_commits \
         FROM junctor_info.logspaces",
        1,
    ),
    (
        "checkpoint",
        "SELECT generation, partitions, files, written_bytes, left_bytes, bytes_per_second, duration_ms \
         FROM junctor_info.checkpoints ORDER BY generation DESC LIMIT 1",
        0,
    ),
    ("node", "SELECT node_id, state, is_leader, is_sequencer, is_durable, is_voter FROM junctor_info.nodes", 2),
    (
        "node_group",
        "SELECT node_group, state, data_nodes, serving_nodes, durable_nodes FROM junctor_info.node_groups",
        2,
    ),
    (
        "thread_pool",
        "SELECT group_id, connections, slots, slots_in_use, running_statements, idle_transactions, queue_length, \
         is_stalled FROM junctor_info.thread_pool_groups",
        1,
    ),
    (
        "route",
        "SELECT thread_id, SUM(chosen_here) AS chosen_here, SUM(chosen_owner) AS chosen_owner, \
         SUM(chosen_query) AS chosen_query FROM junctor_info.routing GROUP BY thread_id",
        1,
    ),
];

/// One reading of the metrics.
#[derive(Debug, Default)]
pub struct Scrape {
    /// By name: the kind, the meaning, and the lines.
    metrics: BTreeMap<String, (&'static str, String, String)>,
    failed_queries: u32,
}

impl Scrape {
    /// Reads all metrics.
    pub async fn read(connector: &junctor_kernel::Connector, is_ready: bool) -> Scrape {
        let mut scrape = Scrape::default();
        scrape.add("junctor_ready", ("gauge", "Whether the node serves clients."), "", &u8::from(is_ready).to_string());
        if is_ready && scrape.read_tables(connector).await.is_err() {
            scrape.failed_queries += 1;
        }
        let failed = scrape.failed_queries.to_string();
        scrape.add("junctor_scrape_failed_queries", ("gauge", "Queries of this reading that failed."), "", &failed);
        scrape
    }

    async fn read_tables(&mut self, connector: &junctor_kernel::Connector) -> junctor_client::Result<()> {
        let stream =
            connector.connect(INTERNAL_LISTENER).map_err(|error| junctor_client::Error::not_connected(&error))?;
        let connection = Connection::open(Box::new(MemoryTransport(stream)), &Options::new("root")).await?;
        let counters = "SELECT module, instance, name, value, description FROM junctor_info.counters";
        match connection.query(counters, &[]).await {
            Ok(rows) => self.add_counters(&rows),
            Err(_) => self.failed_queries += 1,
        }
        match connection.query("SHOW GLOBAL STATUS", &[]).await {
            Ok(rows) => self.add_status(&rows),
            Err(_) => self.failed_queries += 1,
        }
        for (prefix, query, labels) in TABLES {
            match connection.query(query, &[]).await {
                Ok(rows) => self.add_table(prefix, *labels, &rows),
                Err(_) => self.failed_queries += 1,
            }
        }
        Ok(())
    }

    fn add_counters(&mut self, rows: &Rows) {
        for row in rows.iter() {
            let values: Option<Vec<String>> = (0..5).map(|column| text_of(row.value(column).ok()?)).collect();
            let Some([module, instance, name, value, meaning]) = values.as_deref() else { continue };
            let labels = format!("instance=\"{}\"", escape(instance));
            self.add(&format!("junctor_{module}_{name}_total"), ("counter", meaning), &labels, value);
        }
    }

    fn add_status(&mut self, rows: &Rows) {
        for row in rows.iter() {
            let values: Option<Vec<String>> = (0..2).map(|column| text_of(row.value(column).ok()?)).collect();
            let Some([name, value]) = values.as_deref() else { continue };
            // Texts, such as the cipher, are no metrics.
            if value.parse::<f64>().is_ok() {
                let metric = format!("junctor_status_{}", name.to_ascii_lowercase());
                self.add(&metric, ("gauge", "As in SHOW GLOBAL STATUS."), "", value);
            }
        }
    }

    fn add_table(&mut self, prefix: &str, label_count: usize, rows: &Rows) {
        for row in rows.iter() {
            let names = rows.columns().iter().map(|column| column.name().to_owned());
            let mut labels = Vec::new();
            for (position, name) in names.enumerate() {
                let Some(text) = row.value(position).ok().and_then(text_of) else { continue };
                if position < label_count {
                    labels.push(format!("{name}=\"{}\"", escape(&text)));
                } else if text.parse::<f64>().is_ok() {
                    let meaning = format!("As in the table of junctor_info for {prefix}.");
                    self.add(&format!("junctor_{prefix}_{name}"), ("gauge", &meaning), &labels.join(","), &text);
                }
            }
        }
    }

    fn add(&mut self, name: &str, (kind, meaning): (&'static str, &str), labels: &str, value: &str) {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.chars().all(is_name) {
            return;
        }
        let entry = self.metrics.entry(name.to_owned());
        let (_, _, lines) = entry.or_insert_with(|| (kind, meaning.replace(['\\', '\n'], " "), String::new()));
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        // Writing to memory cannot fail.
        let _ = writeln!(lines, "{name}{braced} {value}");
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, (kind, meaning, lines)) in &self.metrics {
            let _ = write!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}\n{lines}");
        }
        text
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Int(number) => Some(number.to_string()),
        ValueRef::UInt(number) => Some(number.to_string()),
        ValueRef::Double(number) => Some(number.to_string()),
        ValueRef::Float(number) => Some(number.to_string()),
        ValueRef::Decimal(number) => {
            let mut text = Vec::new();
            number.append_text(&mut text);
            String::from_utf8(text).ok()
        }
        ValueRef::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Temporal(_) | ValueRef::Bit(_) | ValueRef::Choice(_) | ValueRef::Json(_) => None,
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_one_head_and_a_line_for_each_label() {
        let mut scrape = Scrape::default();
        for instance in ["0", "1\"\\"] {
            let labels = format!("instance=\"{}\"", escape(instance));
            scrape.add("junctor_recv_signals_total", ("counter", "Signals."), &labels, "7");
        }
        scrape.add("not a name", ("gauge", ""), "", "1");
        let expected = "# HELP junctor_recv_signals_total Signals.\n# TYPE junctor_recv_signals_total counter\n\
                        junctor_recv_signals_total{instance=\"0\"} 7\n\
                        junctor_recv_signals_total{instance=\"1\\\"\\\\\"} 7\n";
        assert_eq!(scrape.text(), expected);
    }
}
