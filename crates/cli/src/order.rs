//! `--order` and `--window`: the order in which samples are read.

use clap::ValueEnum;
use packds_reader::plan::Order;

use crate::failure::Failure;

/// The name of an order.
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
    /// The order with this window. A window without an order means `window`.
    pub(crate) fn with_window(self, chunks: Option<u32>) -> Result<Order, Failure> {
        let order = match self {
            Self::Auto if chunks.is_none() => Order::Auto,
            Self::Auto | Self::Window => Order::Window { chunks },
            Self::Sequential => Order::Sequential,
            Self::Random => Order::Random,
            Self::Chunks => Order::Chunks,
        };
        if chunks.is_some() && !matches!(order, Order::Window { .. }) {
            return Err(Failure::not_run("--window requires --order window")
                .hint("drop --window, or drop --order"));
        }
        Ok(order)
    }
}
