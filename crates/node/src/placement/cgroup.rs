//! The CPU time that control groups of version 1 and 2 grant.

use std::path::{Component, Path, PathBuf};

use super::topology::read_text;

/// Maximum nesting of groups that is examined.
const DEPTH_MAX: usize = 64;

/// Larger quotas, in thousandths of a CPU, are ignored as nonsense.
const QUOTA_MILLI_MAX: u64 = 100_000_000;

/// The smallest quota of the process's group and the groups above it, in thousandths of a CPU, at least 1.
/// Files that are absent mean no quota; files that make no sense are ignored with a notice.
pub(super) fn cpu_quota_milli(root: &Path, notices: &mut Vec<String>) -> Option<u64> {
    let own_groups = read_text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut smallest: Option<u64> = None;
    let mut consider = |quota: Result<Option<u64>, String>| match quota {
        Ok(Some(milli)) => smallest = Some(smallest.map_or(milli, |least| least.min(milli))),
        Ok(None) => {}
        Err(notice) => notices.push(notice),
    };
    let mount = root.join("sys/fs/cgroup");
    let version_2_path = group_path(&own_groups, |controllers| controllers.is_empty());
    for tree in [mount.clone(), mount.join("unified")] {
        for folder in group_and_above(&tree, &version_2_path) {
            consider(version_2_quota(&folder));
        }
    }
    let version_1_path = group_path(&own_groups, |controllers| controllers.split(',').any(|name| name == "cpu"));
    for tree in [mount.join("cpu"), mount.join("cpu,cpuacct")] {
        for folder in group_and_above(&tree, &version_1_path) {
            consider(version_1_quota(&folder));
        }
    }
    smallest
}

/// The path of the first line `number:controllers:path` whose controllers are wanted; the root group if none
/// is.
fn group_path(own_groups: &str, wanted: impl Fn(&str) -> bool) -> PathBuf {
    let path = own_groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        wanted(controllers).then_some(path)
    });
    // Only ordinary names are kept: a group outside the visible namespace is written with `..`.
    let components = Path::new(path.unwrap_or("/")).components();
    components.filter(|component| matches!(component, Component::Normal(_))).take(DEPTH_MAX).collect()
}

fn group_and_above(tree: &Path, group: &Path) -> Vec<PathBuf> {
    group.ancestors().map(|ancestor| tree.join(ancestor)).collect()
}

/// `cpu.max` holds the quota or `max`, and the period, both in microseconds.
fn version_2_quota(folder: &Path) -> Result<Option<u64>, String> {
    let path = folder.join("cpu.max");
    let Some(text) = read_text(&path) else { return Ok(None) };
    let mut words = text.split_whitespace();
    let quota = words.next().unwrap_or_default();
    if quota == "max" {
        return Ok(None);
    }
    let period = words.next().unwrap_or("100000");
    quota_milli(quota.parse().ok(), period.parse().ok()).map(Some).ok_or_else(|| ignored_quota_message("cpu.max"))
}

/// The quota is -1 when there is none.
fn version_1_quota(folder: &Path) -> Result<Option<u64>, String> {
    let Some(quota) = read_text(&folder.join("cpu.cfs_quota_us")) else { return Ok(None) };
    if quota.trim() == "-1" {
        return Ok(None);
    }
    let period = read_text(&folder.join("cpu.cfs_period_us")).unwrap_or_default();
    let milli = quota_milli(quota.trim().parse().ok(), period.trim().parse().ok());
    milli.map(Some).ok_or_else(|| ignored_quota_message("cpu.cfs_quota_us"))
}

fn quota_milli(quota_us: Option<u64>, period_us: Option<u64>) -> Option<u64> {
    let (quota_us, period_us) = (quota_us.filter(|&us| us > 0)?, period_us.filter(|&us| us > 0)?);
    Some((quota_us.checked_mul(1_000)? / period_us).clamp(1, QUOTA_MILLI_MAX))
}

fn ignored_quota_message(file: &str) -> String {
    format!("the control group file {file} makes no sense; its quota is ignored")
}
