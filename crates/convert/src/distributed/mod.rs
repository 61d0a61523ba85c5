//! Conversion on many machines, in three steps that can be repeated: a plan of a set, its shards one by one on any
//! machine, and the manifest that makes the shards a set. The machines need no coordinator, because the bytes of a shard
//! follow from the plan alone.

mod build;
mod commit;
mod plan_file;
mod planned;
mod settled;

pub use self::build::{BuildOptions, BuildReport};
pub use self::commit::{Commit, CommitReport};
pub use self::plan_file::ShardPlan;
pub use self::planned::{PlanReport, list_to_plan, plan_shards};
