//! The table of client protocols. It generates one enum for each half of a protocol, dispatched by `match`. A
//! row names a protocol and its folder. The position of the row is the protocol's number, which the node uses
//! in its list of listeners and in the signal `OpenSession`.

use junctor_kernel::Buffer;
use junctor_signals::client_command::Login;
use junctor_sql::Session;
use junctor_sql::result::{Completion, Progress, ResultSink};

use crate::protocol::{
    CommandContext, Input, LinkContext, LinkOpening, ProtocolLink, ProtocolSession, Refusal, SessionTraits,
};
use crate::{mysql, native};

macro_rules! protocols {
    ($($(#[$doc:meta])* $name:ident = $folder:ident;)*) => {
        /// A client protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Protocol {
            $($(#[$doc])* $name,)*
        }

        impl Protocol {
            /// Every protocol, in the order of their numbers.
            pub const ALL: &[Protocol] = &[$(Protocol::$name,)*];

            pub(crate) fn encode_refused_connection(self, refusal: &Refusal, out: &mut Vec<u8>) {
                match self {
                    $(Protocol::$name => <$folder::Link as ProtocolLink>::encode_refused_connection(refusal, out),)*
                }
            }
        }

        /// A connection's protocol: the half that serves the socket.
        #[derive(Debug)]
        pub(crate) enum Link {
            $($name($folder::Link),)*
        }

        impl Link {
            pub fn open(protocol: Protocol, opening: &LinkOpening<'_>, out: &mut Vec<u8>) -> Link {
                match protocol {
                    $(Protocol::$name => Link::$name(ProtocolLink::open(opening, out)),)*
                }
            }

            pub const fn protocol(&self) -> Protocol {
                match self {
                    $(Link::$name(_) => Protocol::$name,)*
                }
            }

            pub fn awaits_login(&self) -> bool {
                match self {
                    $(Link::$name(link) => link.awaits_login(),)*
                }
            }

            pub fn is_within_message(&self) -> bool {
                match self {
                    $(Link::$name(link) => link.is_within_message(),)*
                }
            }

            #[inline]
            pub fn next_input(&mut self, bytes: &[u8], context: &mut LinkContext<'_>) -> (usize, Input) {
                match self {
                    $(Link::$name(link) => link.next_input(bytes, context),)*
                }
            }

            pub fn continue_login(&mut self, context: &mut LinkContext<'_>) -> Input {
                match self {
                    $(Link::$name(link) => link.continue_login(context),)*
                }
            }

            pub fn await_file(&mut self) {
                match self {
                    $(Link::$name(link) => link.await_file(),)*
                }
            }

            #[inline]
            pub fn finish_answer(&mut self, packets: &mut Buffer, is_unsolicited: bool) {
                match self {
                    $(Link::$name(link) => link.finish_answer(packets, is_unsolicited),)*
                }
            }
        }

        /// A session's protocol: the half that serves the session.
        #[derive(Debug)]
        pub(crate) enum SessionState {
            $($name($folder::SessionState),)*
        }

        impl SessionState {
            pub fn open(protocol: Protocol, login: &Login) -> (SessionState, SessionTraits) {
                match protocol {
                    $(Protocol::$name => {
                        let (state, traits) = ProtocolSession::open(login);
                        (SessionState::$name(state), traits)
                    })*
                }
            }

            #[inline]
            pub fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>, result_start: Option<usize>) -> AnswerSink<'a> {
                match self {
                    $(SessionState::$name(state) => AnswerSink::$name(state.sink(out, result_start)),)*
                }
            }

            pub fn encode_opened(&mut self, completion: &Completion, out: &mut Vec<u8>) {
                match self {
                    $(SessionState::$name(state) => state.encode_opened(completion, out),)*
                }
            }

            #[inline]
            pub fn begin_command(&mut self, payload: &[u8]) {
                match self {
                    $(SessionState::$name(state) => state.begin_command(payload),)*
                }
            }

            pub fn begin_unsolicited(&mut self) {
                match self {
                    $(SessionState::$name(state) => state.begin_unsolicited(),)*
                }
            }

            #[inline]
            pub fn execute(
                &mut self,
                payload: &[u8],
                answer: &mut Vec<u8>,
                context: CommandContext<'_, '_>,
            ) -> Progress {
                match self {
                    $(SessionState::$name(state) => state.execute(payload, answer, context),)*
                }
            }

            pub fn text_start(&self, payload: &[u8]) -> Option<usize> {
                match self {
                    $(SessionState::$name(state) => state.text_start(payload),)*
                }
            }

            pub fn query_text<'p>(&self, payload: &'p [u8]) -> Option<&'p [u8]> {
                match self {
                    $(SessionState::$name(state) => state.query_text(payload),)*
                }
            }

            pub fn describe<'p>(&self, payload: &'p [u8], session: &'p Session) -> (&'static str, Option<&'p [u8]>) {
                match self {
                    $(SessionState::$name(state) => state.describe(payload, session),)*
                }
            }
        }

        /// Encodes results into the output of one command.
        #[derive(Debug)]
        pub(crate) enum AnswerSink<'a> {
            $($name(<$folder::SessionState as ProtocolSession>::Sink<'a>),)*
        }

        impl<'a> AnswerSink<'a> {
            /// The sink as the trait object that the SQL engine takes.
            #[inline]
            pub fn as_result_sink(&mut self) -> &mut (dyn ResultSink + 'a) {
                match self {
                    $(AnswerSink::$name(sink) => sink,)*
                }
            }
        }
    };
}

protocols! {
    /// The protocol of MySQL clients.
    MySql = mysql;
    /// The protocol of crate `junctor-client`.
    Native = native;
}

/// The number of the listener for administrators: `extra_port`, with the protocol of MySQL clients.
pub const EXTRA_LISTENER: u16 = Protocol::ALL.len() as u16;

/// The number of the listener for the node's own connections in memory. It has no address.
pub const INTERNAL_LISTENER: u16 = EXTRA_LISTENER + 1;

impl Protocol {
    /// The protocol's position in the table.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The protocol with this number; `None` if the table has no such row.
    pub fn from_number(number: u16) -> Option<Protocol> {
        Protocol::ALL.get(usize::from(number)).copied()
    }

    /// The protocol of a listener, and whether it is the extra port. The listeners of the protocols come
    /// first.
    pub(crate) fn of_listener(number: u16) -> Option<(Protocol, bool)> {
        match number {
            EXTRA_LISTENER => Some((Protocol::MySql, true)),
            INTERNAL_LISTENER => Some((Protocol::Native, true)),
            _ => Protocol::from_number(number).map(|protocol| (protocol, false)),
        }
    }
}
