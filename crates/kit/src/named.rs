// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enums whose variants have names in files and on command lines.

/// An enum without data, each variant with its name: it gets `ALL`, `WORDS`, `name` and `by_name`.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $T:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $T {
            $($(#[$doc])* $variant,)+
        }

        impl $T {
            /// All variants, in order.
            pub const ALL: [$T; [$($name),+].len()] = [$($T::$variant),+];

            /// Each with its name.
            pub const WORDS: [(&str, $T); [$($name),+].len()] = [$(($name, $T::$variant)),+];

            /// Name in messages, files and command lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $($T::$variant => $name,)+
                }
            }

            /// The variant with this name.
            pub fn by_name(name: &str) -> Option<$T> {
                $T::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
