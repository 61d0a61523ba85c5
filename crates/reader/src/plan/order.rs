//! Orders: their names, and what each of them shuffles. `epoch` computes them. The rest of the crate uses only these
//! properties, not the names of orders.

use super::error::PlanError;

/// The order in which an epoch visits samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Order {
    /// [`Random`](Self::Random) if the dataset fits in memory, otherwise [`Window`](Self::Window) with the default
    /// size.
    #[default]
    Auto,
    /// File order.
    Sequential,
    /// All samples are shuffled together.
    Random,
    /// Chunks are shuffled. The samples of each chunk stay in file order.
    Chunks,
    /// Chunks are shuffled, and the samples of several chunks are shuffled together.
    Window {
        /// Number of chunks, over all ranks. `None` means 64, or fewer if two windows of 64 chunks do not fit in
        /// memory.
        chunks: Option<u32>,
    },
}

packds_system::named!(Order {
    Auto = "auto",
    Sequential = "sequential",
    Random = "random",
    Chunks = "chunks",
    Window { chunks: None } = "window",
});

impl Order {
    /// The resolved order. `None` for [`Auto`](Self::Auto), which depends on the dataset.
    pub const fn kind(self) -> Option<OrderKind> {
        match self {
            Self::Auto => None,
            Self::Sequential => Some(OrderKind::Sequential),
            Self::Random => Some(OrderKind::Random),
            Self::Chunks => Some(OrderKind::Chunks),
            Self::Window { .. } => Some(OrderKind::Window),
        }
    }

    /// The order with this window. If only a window is given, the order is [`Window`](Self::Window).
    ///
    /// # Errors
    /// [`PlanError::OtherOrder`] if another order was chosen.
    pub fn with_window(self, chunks: Option<u32>) -> Result<Self, PlanError> {
        match (self, chunks) {
            (order, None) => Ok(order),
            (Self::Auto | Self::Window { .. }, _) => Ok(Self::Window { chunks }),
            (order, Some(_)) => Err(PlanError::OtherOrder { order: order.name() }),
        }
    }
}

/// A resolved [`Order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
    /// File order.
    Sequential,
    /// All samples are shuffled together.
    Random,
    /// Chunks are shuffled. The samples of each chunk stay in file order.
    Chunks,
    /// Chunks are shuffled, and the samples of several chunks are shuffled together.
    Window,
}

// These names are used in states and reports.
packds_system::named!(OrderKind { Sequential = "sequential", Random = "random", Chunks = "chunks", Window = "window" });

/// Which samples an order shuffles together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffled {
    /// None: the samples of a chunk stay in file order.
    Nothing,
    /// The samples of a window of chunks.
    Windows,
    All,
}

impl OrderKind {
    pub(crate) const fn shuffled(self) -> Shuffled {
        match self {
            Self::Sequential | Self::Chunks => Shuffled::Nothing,
            Self::Window => Shuffled::Windows,
            Self::Random => Shuffled::All,
        }
    }

    /// Whether every epoch has the same order.
    pub const fn is_fixed(self) -> bool {
        matches!(self, Self::Sequential)
    }

    /// Whether the samples of each chunk stay in file order.
    pub(crate) const fn in_file_order(self) -> bool {
        matches!(self, Self::Sequential | Self::Chunks)
    }

    /// Whether several parts of an epoch can be read in parallel.
    pub(crate) const fn has_lanes(self) -> bool {
        matches!(self, Self::Chunks | Self::Window)
    }
}
