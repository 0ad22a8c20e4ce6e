//! The macros that declare layouts.

/// Declares the layout of a structure: its fields in the order in which they are sent. A field may have a
/// form in brackets:
/// - `[buffer]`: bytes in a buffer, which comes from the pool of the receiver and returns to the sender's;
/// - `[buffer with FIELD]`: sent only if that earlier field is `Some`, and empty otherwise;
/// - `[returned]`: an input buffer in a reply. It is not sent, and goes to the sender's pool;
/// - `[since VERSION]`: sent from this version of the link on, and the default on earlier links.
///
/// `check FUNCTION` lets the function complete or refuse a decoded value. `defined` declares a type whose
/// shared values a link defines once.
macro_rules! layout {
    (defined $name:ident { $($field:ident $([$($form:tt)*])?),* $(,)? } $(check $check:path)?) => {
        impl $crate::codec::Wire for $name {
            layout! { @methods $name { $($field $([$($form)*])?),* } $(check $check)? }

            #[inline]
            fn encode_shared(shared: &std::sync::Arc<$name>, writer: &mut $crate::codec::Writer<'_>) {
                $crate::codec::definition::encode_reference(shared, writer);
            }

            #[inline]
            fn decode_shared(
                reader: &mut $crate::codec::Reader<'_>,
            ) -> $crate::codec::Result<std::sync::Arc<$name>> {
                $crate::codec::definition::decode_reference(reader)
            }
        }
    };
    ($name:ident { $($field:ident $([$($form:tt)*])?),* $(,)? } $(check $check:path)?) => {
        impl $crate::codec::Wire for $name {
            layout! { @methods $name { $($field $([$($form)*])?),* } $(check $check)? }
        }
    };
    (@methods $name:ident { $($field:ident $([$($form:tt)*])?),* } $(check $check:path)?) => {
        #[inline]
        fn encode(&self, writer: &mut $crate::codec::Writer<'_>) {
            let $name { $($field),* } = self;
            $(field!(encode writer $field $($($form)*)?);)*
            let _ = writer;
        }

        #[inline]
        fn decode(reader: &mut $crate::codec::Reader<'_>) -> $crate::codec::Result<$name> {
            $(let $field = field!(decode reader $($($form)*)?);)*
            let _ = reader;
            let value = $name { $($field),* };
            $(let mut value = value; $check(&mut value)?;)?
            Ok(value)
        }

        fn recycle(self, buffers: &mut junctor_kernel::BufferPool) {
            let $name { $($field),* } = self;
            $(field!(recycle buffers $field $($($form)*)?);)*
            let _ = buffers;
        }

        fn describe(page: &mut $crate::codec::page::Page) -> String {
            page.add(stringify!($name), |page| {
                let types = $crate::codec::page::types_of(page, |value: &$name| {
                    let $name { $($field),* } = value;
                    Some(($(std::ptr::from_ref($field),)*))
                });
                let fields: &[(&str, &str)] = &[$((stringify!($field), concat!($(stringify!($($form)*))?))),*];
                page.fields(fields, types)
            })
        }

        #[cfg(test)]
        fn sample(draw: &mut $crate::codec::sample::Draw) -> $name {
            #[allow(unused_mut, reason = "a structure may have no fields")]
            let mut one = || {
                $(let $field = field!(sample draw $($($form)*)?);)*
                let _ = &draw;
                $name { $($field),* }
            };
            let value = one();
            $(
                let mut value = value;
                while $check(&mut value).is_err() {
                    value = one();
                }
            )?
            value
        }
    };
}

/// One step for one field of a structure.
macro_rules! field {
    (encode $writer:ident $field:ident) => {
        $crate::codec::Wire::encode($field, $writer)
    };
    (encode $writer:ident $field:ident buffer) => {
        $writer.bytes($field)
    };
    (encode $writer:ident $field:ident buffer with $other:ident) => {
        if Option::is_some($other) {
            $writer.bytes($field)
        }
    };
    (encode $writer:ident $field:ident returned) => {
        let _ = $field;
    };
    (encode $writer:ident $field:ident since $version:literal) => {
        if $writer.version() >= $version {
            $crate::codec::Wire::encode($field, $writer)
        }
    };

    (decode $reader:ident) => {
        $crate::codec::Wire::decode($reader)?
    };
    (decode $reader:ident buffer) => {
        $reader.buffer()?
    };
    (decode $reader:ident buffer with $other:ident) => {
        if Option::is_some(&$other) { $reader.buffer()? } else { junctor_kernel::Buffer::new() }
    };
    (decode $reader:ident returned) => {
        junctor_kernel::Buffer::new()
    };
    (decode $reader:ident since $version:literal) => {
        if $reader.version() >= $version { $crate::codec::Wire::decode($reader)? } else { Default::default() }
    };

    (recycle $buffers:ident $field:ident) => {
        $crate::codec::Wire::recycle($field, $buffers)
    };
    (recycle $buffers:ident $field:ident buffer $($form:tt)*) => {
        $buffers.give($field)
    };
    (recycle $buffers:ident $field:ident returned) => {
        $buffers.give($field)
    };
    (recycle $buffers:ident $field:ident since $version:literal) => {
        $crate::codec::Wire::recycle($field, $buffers)
    };

    (sample $draw:ident) => {
        $crate::codec::Wire::sample($draw)
    };
    (sample $draw:ident buffer) => {
        $crate::codec::Wire::sample($draw)
    };
    (sample $draw:ident buffer with $other:ident) => {
        if Option::is_some(&$other) { $crate::codec::Wire::sample($draw) } else { junctor_kernel::Buffer::new() }
    };
    (sample $draw:ident returned) => {
        junctor_kernel::Buffer::new()
    };
    (sample $draw:ident since $version:literal) => {
        $crate::codec::Wire::sample($draw)
    };
}

/// Declares the tags of an enum: `TAG Variant { fields }` or `TAG Variant(names of the values)`, each with
/// its values in the order in which they are sent. `since VERSION` after a variant keeps it from links of
/// earlier versions. A tag is never used again for another variant.
macro_rules! choices {
    ($name:ident {
        $($tag:literal $variant:ident $({ $($field:ident),* $(,)? })? $(($($item:ident),*))? $(since $since:literal)?;)*
    }) => {
        impl $crate::codec::Wire for $name {
            #[inline]
            fn encode(&self, writer: &mut $crate::codec::Writer<'_>) {
                match self {$(
                    $name::$variant $({ $($field),* })? $(($($item),*))? => {
                        $(writer.needs(concat!(stringify!($name), "::", stringify!($variant)), $since);)?
                        writer.put(&[$tag]);
                        $($($crate::codec::Wire::encode($field, writer);)*)?
                        $($($crate::codec::Wire::encode($item, writer);)*)?
                    }
                )*}
            }

            #[inline]
            fn decode(reader: &mut $crate::codec::Reader<'_>) -> $crate::codec::Result<$name> {
                let [tag] = reader.take()?;
                Ok(match tag {
                    $($tag $(if reader.version() >= $since)? => {
                        $($(let $field = $crate::codec::Wire::decode(reader)?;)*)?
                        $($(let $item = $crate::codec::Wire::decode(reader)?;)*)?
                        $name::$variant $({ $($field),* })? $(($($item),*))?
                    })*
                    _ => {
                        let (name, tag) = (stringify!($name), u32::from(tag));
                        return Err(junctor_kernel::DecodeError::UnknownTag { name, tag });
                    }
                })
            }

            fn describe(page: &mut $crate::codec::page::Page) -> String {
                page.add(stringify!($name), |page| {
                    let mut choices = String::new();
                    $(
                        #[allow(unreachable_patterns, reason = "an enum may have one variant")]
                        let types = $crate::codec::page::types_of(page, |value: &$name| match value {
                            $name::$variant $({ $($field),* })? $(($($item),*))? => Some((
                                $($(std::ptr::from_ref($field),)*)?
                                $($(std::ptr::from_ref($item),)*)?
                            )),
                            _ => None,
                        });
                        let fields: &[(&str, &str)] =
                            &[$($((stringify!($field), ""),)*)? $($((stringify!($item), ""),)*)?];
                        let since = concat!($("since ", $since)?);
                        let fields = page.fields(fields, types);
                        page.choice(&mut choices, $tag, (stringify!($variant), since), &fields);
                    )*
                    choices
                })
            }

            #[cfg(test)]
            fn sample(draw: &mut $crate::codec::sample::Draw) -> $name {
                let tags = [$($tag),*];
                match tags[draw.below(tags.len() as u64) as usize] {
                    $($tag => {
                        $($(let $field = $crate::codec::Wire::sample(draw);)*)?
                        $($(let $item = $crate::codec::Wire::sample(draw);)*)?
                        $name::$variant $({ $($field),* })? $(($($item),*))?
                    })*
                    _ => unreachable!("a tag of the list"),
                }
            }
        }
    };
}

/// Declares identifiers that are sent as the numbers in them.
macro_rules! identifiers {
    ($($name:ident)*) => {$(
        impl $crate::codec::Wire for $name {
            #[inline(always)]
            fn encode(&self, writer: &mut $crate::codec::Writer<'_>) {
                self.0.encode(writer);
            }

            #[inline(always)]
            fn decode(reader: &mut $crate::codec::Reader<'_>) -> $crate::codec::Result<$name> {
                $crate::codec::Wire::decode(reader).map($name)
            }

            fn describe(page: &mut $crate::codec::page::Page) -> String {
                page.add(stringify!($name), |page| {
                    $crate::codec::page::types_of(page, |value: &$name| Some((std::ptr::from_ref(&value.0),))).join("")
                })
            }

            #[cfg(test)]
            fn sample(draw: &mut $crate::codec::sample::Draw) -> $name {
                $name($crate::codec::Wire::sample(draw))
            }
        }
    )*};
}
