//! Objects of the platform file, each of whose fields is stated once.

/// Declares the type of an object, its JSON Schema, and how it is read.
///
/// A field is `name: Type = how("nameInTheFile")`. What is `required` must be there, what is
/// `optional` is an `Option`, and what is `defaulted` has a `Default` that stands for its absence.
macro_rules! document {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:ident),*)])*
        $(#[schemars($($schema:tt)*)])*
        $document:ident, $noun:literal {
            $(
                $(#[doc = $doc_of_field:literal])*
                $(#[schemars($($schema_of_field:tt)*)])*
                $field:ident: $type:ty = $how:ident($name:tt),
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug $($(, $derive)*)*)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[cfg_attr(test, schemars($($schema)*))])*
        #[cfg_attr(test, schemars(deny_unknown_fields))]
        #[cfg_attr(test, schemars(extend(
            "required" = crate::schema::required(&[$((stringify!($how), $name)),*])
        )))]
        pub(crate) struct $document {
            $(
                $(#[doc = $doc_of_field])*
                $(#[cfg_attr(test, schemars($($schema_of_field)*))])*
                #[cfg_attr(test, schemars(rename = $name))]
                pub(crate) $field: $type,
            )*
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
