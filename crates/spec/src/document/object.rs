//! Objects of the platform file, each of whose fields is stated once.

/// Declares the type of an object, its JSON Schema, and how it is read.
///
/// A field is `name: Type = how("nameInTheFile")`. What is `required` must be there, what is
/// `optional` is an `Option`, and what is `defaulted` has a `Default` that stands for its absence.
macro_rules! document {
    (
        $(#[$attribute:meta])*
        $document:ident, $noun:literal {
            $($(#[$of_field:meta])* $field:ident: $type:ty = $how:ident($name:tt),)*
        }
    ) => {
        #[derive(Debug, schemars::JsonSchema)]
        $(#[$attribute])*
        #[schemars(deny_unknown_fields)]
        #[schemars(extend("required" = crate::schema::required(&[$((stringify!($how), $name)),*])))]
        pub(crate) struct $document {
            $($(#[$of_field])* #[schemars(rename = $name)] pub(crate) $field: $type,)*
        }

        impl crate::decode::Decode for $document {
            fn decode(
                node: crate::yaml::Node<'_>,
                problems: &mut crate::diagnostic::Diagnostics,
            ) -> Option<Self> {
                let mut fields = crate::decode::Fields::open(node, $noun, problems)?;
                // All of them before the first that is missing ends it: each is reported.
                $(let $field = document!(@$how fields, $name, problems);)*
                fields.finish(problems);
                Some($document { $($field: $field?,)* })
            }
        }
    };
    (@required $fields:ident, $name:tt, $problems:ident) => {
        $fields.required($name, $problems)
    };
    (@optional $fields:ident, $name:tt, $problems:ident) => {
        Some($fields.optional($name, $problems))
    };
    (@defaulted $fields:ident, $name:tt, $problems:ident) => {
        Some($fields.optional($name, $problems).unwrap_or_default())
    };
}

pub(crate) use document;
