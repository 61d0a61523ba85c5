//! `--order` and `--window`: in which order samples are read.

use clap::ValueEnum;
use packds_reader::plan::Order;

use crate::failure::Failure;

/// An order by its name.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum OrderName {
    #[default]
    Auto,
    Sequential,
    Random,
    Chunks,
    Window,
}

impl OrderName {
    /// The order that mixes so many chunks; a window alone means the order of that name.
    pub(crate) fn with_window(self, chunks: Option<u32>) -> Result<Order, Failure> {
        let order = match self {
            Self::Auto if chunks.is_none() => Order::Auto,
            Self::Auto | Self::Window => Order::Window { chunks },
            Self::Sequential => Order::Sequential,
            Self::Random => Order::Random,
            Self::Chunks => Order::Chunks,
        };
        if chunks.is_some() && !matches!(order, Order::Window { .. }) {
            return Err(
                Failure::not_run("--window is for --order window: other orders have none")
                    .hint("leave out --window or --order"),
            );
        }
        Ok(order)
    }
}
