//! Plan files: the workloads of a run and the limits of what the seed draws. The format is TOML; unknown keys
//! are errors.

use std::fmt;

use junctor_signals::crash_point::by_name;
use toml::{Table, Value};

/// A parsed plan file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of seeds in CI, which runs seeds 1 to this number.
    pub ci_seeds: u64,
    /// The limits of what the seed draws.
    pub world: WorldPlan,
    /// The ends and restarts of the nodes; `None` if they live as long as the run.
    pub restarts: Option<RestartPlan>,
    /// The workloads, which run at the same time.
    pub workloads: Vec<WorkloadPlan>,
}

/// The limits of what the seed draws for nodes, sockets and clients. In each `one_in`, 0 means never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldPlan {
    /// Maximum number of replicas, 1 to 3.
    pub chain_max: u8,
    /// Maximum number of node groups of a cluster, 1 to 3. Above 1, there are at least 2. 1 if the plan has
    /// no such key.
    pub groups_max: u8,
    /// The names of the placements to choose from; see [`crate::draw`].
    pub placements: Vec<String>,
    /// One in this many runs has rings of 4, 8 or 16 signals.
    pub tiny_rings_one_in: u64,
    /// One in this many socket reads breaks the connection.
    pub reset_one_in: u64,
    /// After one in this many writes to the server, the client disappears.
    pub vanish_one_in: u64,
    /// During one in this many time steps, the slow reader holds some partitions.
    pub hold_one_in: u64,
    /// In one in this many lives of a cluster, nodes with backups crash and are evicted. 0 if the plan has no
    /// such key.
    pub evict_one_in: u64,
    /// Whether every node may be evicted, and clients use all nodes. Otherwise the first node stays, and
    /// serves the clients. False if the plan has no such key.
    pub fails_over: bool,
    /// Whether the nodes are members of a cluster, whose sequencer numbers their commits. False if the plan
    /// has no such key.
    pub is_cluster: bool,
    /// Nodes that vote who is a member; `None` if the simulator stands for them.
    pub members: Option<MembersPlan>,
}

/// A cluster whose nodes vote who is a member, and its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersPlan {
    /// Maximum number of nodes that vote and hold nothing. There are more if fewer than three nodes would
    /// vote.
    pub management_max: u8,
    /// Maximum number of nodes that only serve clients.
    pub sql_max: u8,
    /// Maximum number of node groups that are added while the sessions run. The first group is never added.
    pub added_groups_max: u8,
    /// Maximum number of nodes that are added to each node group while the sessions run. If it is not 0,
    /// groups may begin with one node, and each group gets at least one more.
    pub added_replicas_max: u8,
    /// Maximum number of faults in a run.
    pub faults_max: u64,
    /// Whether groups are lost as a whole, and all nodes. Commits then wait for the disks.
    pub loses_groups: bool,
}

/// How nodes end and start again while the sessions run. In each `one_in`, 0 means never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartPlan {
    /// Whether nodes keep their data on disk. Otherwise every life begins empty.
    pub durable: bool,
    /// Maximum number of ends in a run.
    pub ends_max: u64,
    /// Maximum time from the start of the sessions in a life to the end of that life, in milliseconds.
    pub life_ms_max: u64,
    /// One in this many ends is a clean stop.
    pub stop_one_in: u64,
    /// One in this many crashes is a loss of power; the others kill the process.
    pub power_one_in: u64,
    /// One in this many lives is to end at a crash point.
    pub point_one_in: u64,
    /// One in this many lives is to end in the middle of an operation of the disk.
    pub disk_one_in: u64,
    /// One in this many lives has a slow disk.
    pub slow_one_in: u64,
    /// In one in this many lives an operation of the disk fails.
    pub fail_one_in: u64,
    /// In one in this many lives the disk is full for a while.
    pub full_one_in: u64,
    /// Before one in this many lives a bit of a stored file flips.
    pub rot_one_in: u64,
    /// The names of the crash points to choose from. None means all.
    pub points: Vec<String>,
    /// The crash points that the seeds of CI must hit, if nodes are durable.
    pub required_points: Vec<String>,
}

/// A workload entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadPlan {
    /// The name, see [`crate::workload::by_name`].
    pub name: String,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of rounds of each session.
    pub rounds: u32,
    /// Number of rows, or of the objects that the workload uses instead.
    pub rows: i64,
}

/// A rejected plan, as a message that names the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

/// The workloads that change the schema after their setup.
const CHANGES_SCHEMA: [&str; 6] =
    ["added_columns", "alteration", "failed_change", "foreign_key", "multi_valued", "schema_change"];

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Parses the text of a plan file.
    ///
    /// # Errors
    /// Names the first key that is missing, unknown or out of range.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let mut table: Table = text.parse().map_err(|error| PlanError(format!("{error}")))?;
        let mut keys = Keys { table: &mut table, prefix: "" };
        let ci_seeds = keys.number("ci_seeds", 1, 1_000)?;
        let world = WorldPlan::parse(&mut keys.table("world")?)?;
        let restarts = keys.optional_table("restarts")?;
        let restarts = restarts.map(|mut table| RestartPlan::parse(&mut table)).transpose()?;
        let workloads = keys.take("workload")?;
        let Value::Array(workloads) = workloads else { return Err(keys.invalid("workload", "a list of tables")) };
        let workloads: Result<Vec<_>, _> = workloads.into_iter().map(WorkloadPlan::parse).collect();
        keys.reject_unknown()?;
        let workloads = workloads?;
        if workloads.is_empty() {
            return Err(PlanError("'workload' must contain at least one table".to_owned()));
        }
        // Without voters, each node has the schema of the setup, and no node learns of the changes of
        // another.
        let changes_schema = |it: &&WorkloadPlan| CHANGES_SCHEMA.contains(&it.name.as_str());
        let is_shared = !world.fails_over || world.members.is_some();
        if let Some(WorkloadPlan { name, .. }) = workloads.iter().find(changes_schema).filter(|_| !is_shared) {
            return Err(PlanError(format!(
                "'workload.name': '{name}' needs 'world.members' in a world that fails over"
            )));
        }
        Ok(Self { ci_seeds, world, restarts, workloads })
    }

    /// Whether the nodes of the plan keep their data on disk.
    pub fn is_durable(&self) -> bool {
        self.restarts.as_ref().is_some_and(|restarts| restarts.durable)
    }

    /// The plan as the text of a plan file.
    pub fn to_text(&self) -> String {
        let world = &self.world;
        let mut text = format!(
            "ci_seeds = {}\n\n[world]\nchain_max = {}\ngroups_max = {}\nplacements = {:?}\ntiny_rings_one_in = {}\n\
             reset_one_in = {}\nvanish_one_in = {}\nhold_one_in = {}\nevict_one_in = {}\n\
             fails_over = {}\nis_cluster = {}\n",
            self.ci_seeds,
            world.chain_max,
            world.groups_max,
            world.placements,
            world.tiny_rings_one_in,
            world.reset_one_in,
            world.vanish_one_in,
            world.hold_one_in,
            world.evict_one_in,
            world.fails_over,
            world.is_cluster,
        );
        if let Some(members) = &world.members {
            let MembersPlan { management_max, sql_max, added_groups_max, added_replicas_max, .. } = members;
            let (faults_max, loses_groups) = (members.faults_max, members.loses_groups);
            text.push_str(&format!(
                "\n[world.members]\nmanagement_max = {management_max}\nsql_max = {sql_max}\n\
                 added_groups_max = {added_groups_max}\nadded_replicas_max = {added_replicas_max}\nfaults_max = {faults_max}\nloses_groups = {loses_groups}\n"
            ));
        }
        if let Some(restarts) = &self.restarts {
            text.push_str(&restarts.to_text());
        }
        for workload in &self.workloads {
            let WorkloadPlan { name, sessions, rounds, rows } = workload;
            text.push_str(&format!(
                "\n[[workload]]\nname = {name:?}\nsessions = {sessions}\nrounds = {rounds}\nrows = {rows}\n"
            ));
        }
        text
    }
}

impl WorldPlan {
    fn parse(table: &mut Table) -> Result<Self, PlanError> {
        let mut keys = Keys { table, prefix: "world." };
        let names = keys.take("placements")?;
        let name = |value: &Value| value.as_str().map(str::to_owned);
        let placements: Option<Vec<String>> = names.as_array().and_then(|names| names.iter().map(name).collect());
        let placements = placements.filter(|names| !names.is_empty());
        let plan = Self {
            placements: placements.ok_or_else(|| keys.invalid("placements", "a list of names"))?,
            chain_max: keys.number("chain_max", 1, 3)? as u8,
            groups_max: keys.optional_number("groups_max", 1, 3)? as u8,
            tiny_rings_one_in: keys.number("tiny_rings_one_in", 0, 1_000)?,
            reset_one_in: keys.number("reset_one_in", 0, 1_000_000)?,
            vanish_one_in: keys.number("vanish_one_in", 0, 1_000_000)?,
            hold_one_in: keys.number("hold_one_in", 0, 1_000_000)?,
            evict_one_in: keys.optional_number("evict_one_in", 0, 1_000)?,
            fails_over: keys.flag("fails_over")?,
            is_cluster: keys.flag("is_cluster")?,
            members: keys.optional_table("members")?.map(|mut table| MembersPlan::parse(&mut table)).transpose()?,
        };
        keys.reject_unknown()?;
        Ok(plan)
    }
}

impl MembersPlan {
    fn parse(table: &mut Table) -> Result<Self, PlanError> {
        let mut keys = Keys { table, prefix: "world.members." };
        let plan = Self {
            management_max: keys.number("management_max", 0, 3)? as u8,
            sql_max: keys.number("sql_max", 0, 3)? as u8,
            added_groups_max: keys.optional_number("added_groups_max", 0, 2)? as u8,
            added_replicas_max: keys.optional_number("added_replicas_max", 0, 2)? as u8,
            faults_max: keys.number("faults_max", 0, 1_000)?,
            loses_groups: keys.flag("loses_groups")?,
        };
        keys.reject_unknown()?;
        Ok(plan)
    }
}

impl RestartPlan {
    fn parse(table: &mut Table) -> Result<Self, PlanError> {
        let mut keys = Keys { table, prefix: "restarts." };
        let durable = keys.take("durable")?;
        let plan = Self {
            durable: durable.as_bool().ok_or_else(|| keys.invalid("durable", "true or false"))?,
            ends_max: keys.number("ends_max", 1, 1_000)?,
            life_ms_max: keys.number("life_ms_max", 1, 1_000_000)?,
            stop_one_in: keys.number("stop_one_in", 0, 1_000)?,
            power_one_in: keys.number("power_one_in", 0, 1_000)?,
            point_one_in: keys.number("point_one_in", 0, 1_000)?,
            disk_one_in: keys.number("disk_one_in", 0, 1_000)?,
            slow_one_in: keys.number("slow_one_in", 0, 1_000)?,
            fail_one_in: keys.number("fail_one_in", 0, 1_000)?,
            full_one_in: keys.number("full_one_in", 0, 1_000)?,
            rot_one_in: keys.number("rot_one_in", 0, 1_000)?,
            points: keys.crash_points("points")?,
            required_points: keys.crash_points("required_points")?,
        };
        keys.reject_unknown()?;
        Ok(plan)
    }

    /// A plan for unit tests.
    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        Self {
            durable: false,
            ends_max: 400,
            life_ms_max: 100,
            stop_one_in: 4,
            power_one_in: 2,
            point_one_in: 2,
            disk_one_in: 4,
            slow_one_in: 4,
            fail_one_in: 0,
            full_one_in: 0,
            rot_one_in: 0,
            points: Vec::new(),
            required_points: Vec::new(),
        }
    }

    fn to_text(&self) -> String {
        format!(
            "\n[restarts]\ndurable = {}\nends_max = {}\nlife_ms_max = {}\nstop_one_in = {}\npower_one_in = {}\n\
             point_one_in = {}\ndisk_one_in = {}\nslow_one_in = {}\nfail_one_in = {}\nfull_one_in = {}\n\
             rot_one_in = {}\npoints = {:?}\nrequired_points = {:?}\n",
            self.durable,
            self.ends_max,
            self.life_ms_max,
            self.stop_one_in,
            self.power_one_in,
            self.point_one_in,
            self.disk_one_in,
            self.slow_one_in,
            self.fail_one_in,
            self.full_one_in,
            self.rot_one_in,
            self.points,
            self.required_points,
        )
    }
}

impl WorkloadPlan {
    fn parse(value: Value) -> Result<Self, PlanError> {
        let Value::Table(mut table) = value else {
            return Err(PlanError("'workload' must be a list of tables".to_owned()));
        };
        let mut keys = Keys { table: &mut table, prefix: "workload." };
        let name = keys.take("name")?;
        let name = name.as_str().ok_or_else(|| keys.invalid("name", "a string"))?.to_owned();
        if crate::workload::by_name(&name, 1, 1, 1).is_none() {
            return Err(PlanError(format!("'workload.name': unknown workload '{name}'")));
        }
        let plan = Self {
            name,
            sessions: keys.number("sessions", 1, 1_000)? as usize,
            rounds: keys.number("rounds", 1, 1_000_000)? as u32,
            rows: keys.number("rows", 1, 1_000_000)? as i64,
        };
        keys.reject_unknown()?;
        Ok(plan)
    }
}

/// A TOML table. Each access removes the key, so that the rest are unknown keys.
struct Keys<'a> {
    table: &'a mut Table,
    prefix: &'static str,
}

impl Keys<'_> {
    fn take(&mut self, key: &str) -> Result<Value, PlanError> {
        self.table.remove(key).ok_or_else(|| PlanError(format!("'{}{key}' is missing", self.prefix)))
    }

    fn number(&mut self, key: &str, from: u64, to: u64) -> Result<u64, PlanError> {
        let number = self.take(key)?.as_integer().and_then(|number| u64::try_from(number).ok());
        let number = number.filter(|number| (from..=to).contains(number));
        number.ok_or_else(|| self.invalid(key, &format!("a number from {from} to {to}")))
    }

    /// A number, or `from` if the key is missing.
    fn optional_number(&mut self, key: &str, from: u64, to: u64) -> Result<u64, PlanError> {
        if self.table.contains_key(key) { self.number(key, from, to) } else { Ok(from) }
    }

    fn table(&mut self, key: &str) -> Result<Table, PlanError> {
        match self.take(key)? {
            Value::Table(table) => Ok(table),
            _ => Err(self.invalid(key, "a table")),
        }
    }

    fn optional_table(&mut self, key: &str) -> Result<Option<Table>, PlanError> {
        if self.table.contains_key(key) { self.table(key).map(Some) } else { Ok(None) }
    }

    /// True or false; false if the key is missing.
    fn flag(&mut self, key: &str) -> Result<bool, PlanError> {
        let Some(value) = self.table.remove(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.invalid(key, "true or false"))
    }

    /// A list of names of crash points.
    fn crash_points(&mut self, key: &str) -> Result<Vec<String>, PlanError> {
        let names = self.take(key)?;
        let name = |value: &Value| value.as_str().filter(|name| by_name(name).is_some()).map(str::to_owned);
        let names: Option<Vec<String>> = names.as_array().and_then(|names| names.iter().map(name).collect());
        names.ok_or_else(|| self.invalid(key, "a list of crash points"))
    }

    fn invalid(&self, key: &str, allowed: &str) -> PlanError {
        PlanError(format!("'{}{key}' must be {allowed}", self.prefix))
    }

    fn reject_unknown(&self) -> Result<(), PlanError> {
        match self.table.keys().next() {
            Some(key) => Err(PlanError(format!("unknown key '{}{key}'", self.prefix))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ci_seeds = 3\n[world]\nchain_max = 2\nplacements = [\"all_in_one\"]\ntiny_rings_one_in = 2\n\
        reset_one_in = 0\nvanish_one_in = 0\nhold_one_in = 5\n[[workload]]\nname = \"bank_transfer\"\nsessions = 4\n\
        rounds = 10\nrows = 8\n";

    #[test]
    fn a_plan_sets_what_runs_and_what_the_seed_may_vary() {
        let plan = Plan::parse(TEXT).unwrap();
        assert_eq!((plan.ci_seeds, plan.world.chain_max, plan.world.hold_one_in), (3, 2, 5));
        let workload = WorkloadPlan { name: "bank_transfer".to_owned(), sessions: 4, rounds: 10, rows: 8 };
        assert_eq!(plan.workloads, [workload]);
        assert_eq!(Plan::parse(&plan.to_text()), Ok(plan));
    }

    #[test]
    fn a_wrong_plan_is_refused_with_the_key() {
        let refusal = |from: &str, to: &str| Plan::parse(&TEXT.replace(from, to)).unwrap_err().0;
        assert_eq!(refusal("chain_max = 2", "chain_max = 4"), "'world.chain_max' must be a number from 1 to 3");
        assert_eq!(refusal("rows = 8", "rows = 8\nfoo = 1"), "unknown key 'workload.foo'");
        assert_eq!(refusal("hold_one_in = 5\n", ""), "'world.hold_one_in' is missing");
        assert_eq!(refusal("bank_transfer", "bank"), "'workload.name': unknown workload 'bank'");
        let fails_over = TEXT.replace("hold_one_in = 5\n", "hold_one_in = 5\nfails_over = true\n");
        assert!(Plan::parse(&fails_over).is_ok());
        let refused = Plan::parse(&fails_over.replace("bank_transfer", "alteration")).unwrap_err().0;
        assert_eq!(refused, "'workload.name': 'alteration' needs 'world.members' in a world that fails over");
    }

    #[test]
    fn a_plan_may_end_nodes_at_moments_and_crash_points() {
        let restarts = "[restarts]\ndurable = true\nends_max = 3\nlife_ms_max = 50\nstop_one_in = 4\npower_one_in = 2\n\
            point_one_in = 2\ndisk_one_in = 3\nslow_one_in = 4\n\
            fail_one_in = 0\nfull_one_in = 2\nrot_one_in = 3\npoints = [\"log.sync.before\"]\n\
            required_points = []\n[[workload]]";
        let text = TEXT.replace("[[workload]]", restarts);
        let plan = Plan::parse(&text).unwrap();
        let parsed = plan.restarts.clone().unwrap();
        assert_eq!(
            (parsed.durable, parsed.ends_max, parsed.points.as_slice()),
            (true, 3, &["log.sync.before".to_owned()][..])
        );
        assert_eq!(Plan::parse(&plan.to_text()), Ok(plan));
        let refused = Plan::parse(&text.replace("log.sync.before", "log.sink")).unwrap_err();
        assert_eq!(refused.0, "'restarts.points' must be a list of crash points");
    }
}
