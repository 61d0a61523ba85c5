//! Macros for methods of builders that do the same under different names.

/// Methods that set the field with the same name. Each has documentation, a name, an argument and the field's new
/// value.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) = $value:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $argument: $type) -> Self {
            self.$name = $value;
            self
        }
    )+};
}

/// Methods of an augmentation that add an op. Each has documentation, a name, arguments and the op.
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
