//! The parameters of a run that the seed chooses: replicas, placements, rings, times and faults.

use std::fmt;

use junctor_cluster::member::Roles;
use junctor_kernel::simulated::{SimulationOptions, SocketFaults};
use junctor_kernel::{KernelLimits, Random};
use junctor_node::placement::{Module, Placement, PlacementPlan, SeparateThreads, ThreadConfig, Topology};

use crate::plan::{MembersPlan, WorldPlan};

/// Number of CPUs of a simulated machine. Threads are not bound to them.
const CPU_COUNT: u32 = 16;

/// Maximum number of attempts to draw a placement with the wanted number of ldm instances. After that, the
/// first node's placement is used.
const DRAWS_MAX: u32 = 50;

/// The drawn parameters.
#[derive(Clone, Debug)]
pub struct RunParameters {
    /// The `ThreadConfig` and placement of each node. Clients connect to the first one.
    pub nodes: Vec<(String, PlacementPlan)>,
    /// Number of replicas. As many nodes form a group.
    pub replicas: usize,
    /// The roles of the nodes of a cluster with voters; empty without.
    pub roles: Vec<Roles>,
    /// The options of the simulation while the sessions run.
    pub simulation: SimulationOptions,
    /// Maximum number of transactions that a node admits at a time.
    pub transactions_max: u32,
    /// Maximum time between two polls of a client, in microseconds.
    pub poll_us_max: u64,
    /// The seed of the clients.
    pub client_seed: u64,
    /// The seed of the slow reader.
    pub slow_reader_seed: u64,
    /// The seed of the ends of nodes.
    pub restart_seed: u64,
}

impl RunParameters {
    /// Draws the parameters within the limits of the plan.
    ///
    /// # Errors
    /// The plan names an unknown placement.
    pub fn new(seed: u64, world: &WorldPlan) -> Result<Self, String> {
        // A separate random sequence from the simulation's, so that changes to one do not alter the other.
        let mut random = Random::new(seed ^ 0x64_7261_7773);
        let (nodes, replicas) = draw_nodes(world, &mut random)?;
        let mut simulation = SimulationOptions::new(seed);
        simulation.limits = draw_limits(world, &mut random);
        simulation.service_ns_max = pick(&[300, 2_000, 20_000], &mut random);
        simulation.wake_ns_max = pick(&[100, 5_000, 50_000, 200_000], &mut random);
        simulation.link_ns_max = pick(&[1_000, 50_000, 500_000], &mut random);
        simulation.file_ns_max = pick(&[10_000, 2_000_000, 50_000_000], &mut random);
        simulation.sockets = SocketFaults {
            short_read_one_in: pick(&[0, 2, 10], &mut random),
            short_write_one_in: pick(&[0, 2, 10], &mut random),
            reset_one_in: world.reset_one_in,
            client_window_bytes: pick(&[200, 4_000, 1 << 20], &mut random) as usize,
        };
        let mut parameters = Self {
            nodes,
            replicas,
            roles: Vec::new(),
            simulation,
            transactions_max: pick(&[16, 4_096], &mut random) as u32,
            poll_us_max: pick(&[20, 200, 1_000], &mut random),
            client_seed: random.word(),
            slow_reader_seed: random.word(),
            restart_seed: random.word(),
        };
        parameters.simulation.has_direct_files = !random.one_in(3);
        if let Some(members) = &world.members {
            parameters.draw_roles(world, members, &mut random)?;
        }
        Ok(parameters)
    }
}

impl RunParameters {
    /// Adds the nodes without data. Data nodes have equal placements, because they need equal numbers of
    /// blocks. Nodes with lower numbers make the connections, so each kind may come first.
    fn draw_roles(&mut self, world: &WorldPlan, plan: &MembersPlan, random: &mut Random) -> Result<(), String> {
        let (all_data, first) = (self.nodes.len(), self.nodes[0].clone());
        let added_max = usize::from(plan.added_groups_max).min(all_data / self.replicas - 1);
        let added = self.replicas * added_max;
        let data = all_data - added;
        let sql = random.below(u64::from(plan.sql_max) + 1) as usize;
        let voting = data - usize::from(data.is_multiple_of(2));
        let management =
            (random.below(u64::from(plan.management_max) + 1) as usize).max(3_usize.saturating_sub(voting));
        let serves = sql == 0 || random.one_in(2);
        let added_to = self.draw_replicas(plan, all_data / self.replicas, random);
        let kinds = [
            (data, Roles { data: true, sql: serves, ..Roles::default() }),
            (added, Roles { data: true, sql: serves, added: true, ..Roles::default() }),
            (management, Roles { management: true, ..Roles::default() }),
            (sql, Roles { sql: true, ..Roles::default() }),
        ];
        // Added nodes come behind the other ones with data.
        let turn = [0, 2, 3][random.below(3) as usize];
        self.nodes.clear();
        for (count, roles) in kinds.into_iter().cycle().skip(turn).take(kinds.len()) {
            for _ in 0..count {
                self.nodes.push(if roles.data { first.clone() } else { draw_placement(world, random)? });
                self.roles.push(roles);
            }
        }
        for group in added_to {
            self.nodes.push(first.clone());
            let joins = Some(group);
            self.roles.push(Roles { data: true, sql: serves, added: true, joins, ..Roles::default() });
        }
        // Slower disks and networks only make elections slow.
        let simulation = &mut self.simulation;
        simulation.file_ns_max = simulation.file_ns_max.min(3_000_000);
        simulation.link_ns_max = simulation.link_ns_max.min(200_000);
        // Sessions last as long as some faults.
        self.poll_us_max = pick(&[2_000, 10_000], random);
        Ok(())
    }
}

impl RunParameters {
    /// The groups to which nodes are added as further replicas, one of each node. No group gets more than
    /// three nodes.
    fn draw_replicas(&self, plan: &MembersPlan, groups: usize, random: &mut Random) -> Vec<u8> {
        let mut added_to = Vec::new();
        let most = usize::from(plan.added_replicas_max).min(3_usize.saturating_sub(self.replicas));
        if most == 0 {
            return added_to;
        }
        for group in 0..groups {
            let count = 1 + random.below(most as u64) as usize;
            added_to.extend(std::iter::repeat_n(group as u8, count));
        }
        added_to
    }
}

impl fmt::Display for RunParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (config, _)) in self.nodes.iter().enumerate() {
            match self.roles.get(position) {
                Some(roles) => write!(formatter, "[{roles}: {config}] ")?,
                None => write!(formatter, "[{config}] ")?,
            }
        }
        let (simulation, limits) = (&self.simulation, &self.simulation.limits);
        write!(formatter, "replicas={} ", self.replicas)?;
        write!(formatter, "rings={} quota={} reads={} ", limits.ring_slots, limits.quota, limits.read_bytes)?;
        write!(formatter, "service={} wake={} ", simulation.service_ns_max, simulation.wake_ns_max)?;
        write!(formatter, "link={} file={} ", simulation.link_ns_max, simulation.file_ns_max)?;
        write!(formatter, "direct={} ", simulation.has_direct_files)?;
        let sockets = &simulation.sockets;
        write!(formatter, "short={}/{} ", sockets.short_read_one_in, sockets.short_write_one_in)?;
        write!(formatter, "window={} transactions={}", sockets.client_window_bytes, self.transactions_max)
    }
}

fn pick(choices: &[u64], random: &mut Random) -> u64 {
    choices[random.below(choices.len() as u64) as usize]
}

fn draw_limits(world: &WorldPlan, random: &mut Random) -> KernelLimits {
    let tiny = random.one_in(world.tiny_rings_one_in);
    let high_water = pick(&[500, 256 << 10], random) as usize;
    KernelLimits {
        ring_slots: if tiny { pick(&[4, 8, 16], random) as u32 } else { 0 },
        high_ring_slots: if tiny { 4 } else { 64 },
        quota: pick(&[1, 8, 75], random) as u32,
        trace_entries: 256,
        read_bytes: pick(&[40, 1_000, 16 << 10], random) as usize,
        send_high_water_bytes: high_water,
        send_low_water_bytes: high_water / 4,
        stall_ns: pick(&[50_000, 1_000_000], random),
        ..KernelLimits::default()
    }
}

/// The placements of all nodes, and how many form a group. Each other node has as many ldm instances as the
/// first one, as its partitions require.
fn draw_nodes(world: &WorldPlan, random: &mut Random) -> Result<(Vec<(String, PlacementPlan)>, usize), String> {
    let begins_small = world.members.as_ref().is_some_and(|members| members.added_replicas_max > 0);
    let chain_min = if world.fails_over && !begins_small { 2 } else { 1 };
    let chain = chain_min + random.below(u64::from(world.chain_max) + 1 - chain_min as u64) as usize;
    let first = draw_placement(world, random)?;
    let wanted = first.1.instance_count(Module::Ldm);
    let groups = match world.groups_max {
        0 | 1 => 1,
        groups => 2 + random.below(u64::from(groups) - 1) as usize,
    };
    let mut nodes = vec![first];
    while nodes.len() < chain * groups {
        let mut found = None;
        for _ in 0..DRAWS_MAX {
            let drawn = draw_placement(world, random)?;
            if drawn.1.instance_count(Module::Ldm) == wanted {
                found = Some(drawn);
                break;
            }
        }
        let next = found.unwrap_or_else(|| nodes[0].clone());
        nodes.push(next);
    }
    Ok((nodes, chain))
}

fn draw_placement(world: &WorldPlan, random: &mut Random) -> Result<(String, PlacementPlan), String> {
    let name = &world.placements[random.below(world.placements.len() as u64) as usize];
    let mut count = |from: u32, to: u32| from + random.below(u64::from(to - from + 1)) as u32;
    let config = match name.as_str() {
        "all_in_one" => Placement::all_in_one().thread_config,
        "receive" => Placement::receive(count(1, 4)).thread_config,
        "ldm_setup" => Placement::ldm_setup(count(1, 2), count(1, 3), count(1, 2)).thread_config,
        "work" => {
            let config = Placement::ldm_setup(count(1, 2), count(1, 2), count(1, 2)).thread_config;
            format!("{config},work={{count={}}}", count(1, 2))
        }
        "all_separate" => {
            let counts = [count(1, 2), count(1, 2), count(1, 2), count(1, 3), count(1, 2), count(1, 2)];
            let [recv, sql, tc, ldm, query, send] = counts;
            Placement::all_separate(SeparateThreads { recv, sql, tc, ldm, query, send }).thread_config
        }
        "random" => format!(
            "main={{count={}}},rep={{count={}}},io={{count={}}},recv={{count={}}},sql={{count={}}},tc={{count={}}},\
             ldm={{count={}}},query={{count={}}},send={{count={}}}",
            count(0, 1),
            count(0, 1),
            count(0, 1),
            count(1, 3),
            count(0, 2),
            count(0, 2),
            count(0, 3),
            count(0, 2),
            count(0, 2),
        ),
        other => return Err(format!("unknown placement '{other}'")),
    };
    let parsed = ThreadConfig::parse(&config).map_err(|error| error.render(&config))?;
    let plan = PlacementPlan::from_thread_config(&parsed, &Topology::uniform(CPU_COUNT), true);
    let plan = plan.map_err(|error| format!("{config}: {error}"))?;
    Ok((config, plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(placement: &str) -> WorldPlan {
        WorldPlan {
            chain_max: 3,
            groups_max: 1,
            placements: vec![placement.to_owned()],
            tiny_rings_one_in: 2,
            reset_one_in: 0,
            vanish_one_in: 0,
            hold_one_in: 0,
            evict_one_in: 0,
            fails_over: false,
            is_cluster: false,
            members: None,
        }
    }

    #[test]
    fn every_placement_can_be_drawn_and_backups_have_as_many_ldm_instances() {
        for placement in ["all_in_one", "receive", "ldm_setup", "work", "all_separate", "random"] {
            let mut chains = [0; 4];
            for seed in 0..50 {
                let draw = RunParameters::new(seed, &world(placement)).unwrap();
                chains[draw.nodes.len()] += 1;
                let counts: Vec<usize> = draw.nodes.iter().map(|(_, plan)| plan.instance_count(Module::Ldm)).collect();
                assert!(counts.iter().all(|&count| count == counts[0] && count > 0), "{counts:?}");
            }
            assert!(chains[1..].iter().all(|&count| count > 0), "{placement}: {chains:?}");
        }
        assert!(RunParameters::new(1, &world("nowhere")).is_err());
    }

    #[test]
    fn a_cluster_with_voters_has_at_least_three_and_equal_data_nodes() {
        let members = MembersPlan {
            management_max: 2,
            sql_max: 2,
            added_groups_max: 0,
            added_replicas_max: 0,
            faults_max: 1,
            loses_groups: false,
        };
        let plan = WorldPlan { fails_over: true, groups_max: 2, members: Some(members), ..world("random") };
        for seed in 0..50 {
            let draw = RunParameters::new(seed, &plan).unwrap();
            assert_eq!(draw.roles.len(), draw.nodes.len());
            let of_data = |(roles, _): &(&Roles, &(String, PlacementPlan))| roles.data;
            let data: Vec<_> = draw.roles.iter().zip(&draw.nodes).filter(of_data).collect();
            assert!(data.iter().all(|(_, node)| node.0 == data[0].1.0) && data.len() % draw.replicas == 0);
            let voting = data.len() + draw.roles.iter().filter(|roles| roles.management).count();
            assert!(voting >= 3 && draw.roles.iter().any(|roles| roles.sql), "{:?}", draw.roles);
        }
    }

    #[test]
    fn equal_seeds_draw_equally() {
        let drawn = |seed| RunParameters::new(seed, &world("random")).unwrap().to_string();
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
    }
}
