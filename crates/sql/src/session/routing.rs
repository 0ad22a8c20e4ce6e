//! Read routing: the system variable that sets the rule, and the rows of `junctor_info.routing`.

use junctor_gateway::route::{ReadRule, RoutingRow};
use junctor_model::value::Value;

use crate::execute::{Engine, READ_ROUTING};

impl Engine {
    /// Applies the routing rule that the system variable names.
    pub(super) fn apply_read_routing(&mut self) {
        if let Value::Bytes(name) = self.globals.value_named(READ_ROUTING)
            && let Some(rule) = std::str::from_utf8(&name).ok().and_then(ReadRule::named)
        {
            self.gateway.route().set_rule(rule);
        }
    }

    /// The rows of `junctor_info.routing` of this block: one for each kind of read that has been routed.
    pub fn routing_rows(&mut self, instance: u16) -> Vec<Vec<Value>> {
        let route = self.gateway.route();
        let (thread, rule, rows) = (route.thread(), route.rule(), route.rows());
        rows.iter().map(|row| self.routing_row(instance, thread, rule, row)).collect()
    }

    fn routing_row(&self, instance: u16, thread: u16, rule: ReadRule, row: &RoutingRow) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let layout = self.gateway.catalog().dictionary.table(row.table);
        let figures = &row.figures;
        let measured = |mean: &junctor_gateway::route::estimate::Mean| match mean.samples() {
            0 => Value::Null,
            _ => Value::UInt(mean.value()),
        };
        vec![
            Value::UInt(u64::from(thread)),
            Value::UInt(u64::from(instance)),
            text(rule.name()),
            layout.map_or(Value::Null, |layout| text(&layout.definition.name)),
            text(row.operation),
            measured(&figures.here),
            measured(&figures.away),
            Value::UInt(u64::from(figures.here.samples())),
            Value::UInt(u64::from(figures.away.samples())),
            Value::UInt(figures.chosen[0]),
            Value::UInt(figures.chosen[1]),
            Value::UInt(figures.chosen[2]),
            Value::UInt(figures.explored),
            Value::UInt(figures.regret_ns / 1_000),
        ]
    }
}
