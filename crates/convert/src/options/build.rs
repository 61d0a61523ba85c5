//! The options of building a shard.

use packds_system::Opt;

use super::spec::{Declared, OptionSpec, put, whole};
use crate::distributed::BuildOptions;

type BuildSpec = OptionSpec<BuildOptions>;

impl Declared for BuildOptions {
    const OPTIONS: &'static [BuildSpec] = &[BuildSpec::value(
        Opt::new("jobs"),
        "N",
        |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)),
        "Decoding threads; 0 = one per core",
    )
    .short('j')
    .default(|o| o.jobs.to_string())];
}
