//! Macros that define builder methods of the same form.

/// Defines methods that set the field of the same name. Each method has documentation, a name, an argument and the
/// field's new value.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) = $value:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $argument: $type) -> Self {
            self.$name = $value;
            self
        }
    )+};
}

/// Defines the methods of `Augment` that add an op. Each has documentation, a name, arguments and the op.
macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+) = $op:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $($argument: $type),+) -> Self {
            self.ops.push($op);
            self
        }
    )+};
}

pub(crate) use {ops, setters};
