//! Hot path: at most 35 instructions per query, 60 per execution; no copy, no allocation, no formatting.
//!
//! The commands of clients, named as in the protocol (`COM_STMT_PREPARE` is [`Command::StmtPrepare`]).

use super::capability::Capabilities;
use super::change_user::ChangeUser;
use super::error::ProtocolError;
use super::field::{FieldReader, put_u16, put_u32, put_zero_terminated};
use super::parameter::ParameterBlock;
use super::query_attributes::read_before_text;

/// A command of a client. It borrows from the payload from which it was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// Ends the connection. The server does not reply.
    Quit,
    /// Changes the default database.
    InitDb {
        /// Name of the database.
        database: &'a [u8],
    },
    /// Executes a statement; rows are returned in text form.
    Query {
        /// The statement's text, in the connection's character set.
        statement: &'a [u8],
    },
    /// Lists the columns of a table.
    FieldList {
        /// Name of the table.
        table: &'a [u8],
        /// Pattern for column names; empty for all.
        wildcard: &'a [u8],
    },
    /// Requests a line of text about the server.
    Statistics,
    /// Lists connections.
    ProcessInfo,
    /// Ends another connection.
    ProcessKill {
        /// Id of that connection.
        connection_id: u32,
    },
    /// Checks that the server is alive.
    Ping,
    /// Logs in again.
    ChangeUser(ChangeUser<'a>),
    /// Resets the session.
    ResetConnection,
    /// Allows or forbids several statements in one query.
    SetOption {
        /// Whether several statements are to be allowed.
        multi_statements: bool,
    },
    /// Prepares a statement.
    StmtPrepare {
        /// The statement's text, in the connection's character set.
        statement: &'a [u8],
    },
    /// Executes a prepared statement; rows are returned in binary form.
    StmtExecute(StmtExecute<'a>),
    /// Appends to the value of a parameter. The server does not reply.
    StmtSendLongData {
        /// Id of the statement.
        statement_id: u32,
        /// Position of the parameter, from 0.
        parameter: u16,
        /// The bytes to append.
        data: &'a [u8],
    },
    /// Closes a prepared statement. The server does not reply.
    StmtClose {
        /// Id of the statement.
        statement_id: u32,
    },
    /// Drops the long data of a statement and closes its cursor.
    StmtReset {
        /// Id of the statement.
        statement_id: u32,
    },
    /// Fetches rows of a cursor.
    StmtFetch {
        /// Id of the statement.
        statement_id: u32,
        /// Maximum number of rows.
        row_count: u32,
    },
    /// A command that this server does not know. The reply is error 1047. An empty payload is command 0.
    Unknown(u8),
}

/// An execution of a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StmtExecute<'a> {
    /// Id of the statement.
    pub statement_id: u32,
    /// The cursor that the client wants, if any.
    pub cursor: CursorKind,
    /// The parameters, not yet decoded; see [`super::parameter::decode_parameters`].
    pub parameters: ParameterBlock<'a>,
}

/// The kind of cursor that an execution requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CursorKind {
    /// All rows at once.
    #[default]
    None,
    /// Rows on demand, in forward direction.
    ReadOnly,
    /// A kind that MySQL defines but does not support: for update, or scrollable.
    Unsupported,
}

/// The first byte of each command.
pub(crate) mod code {
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const STATISTICS: u8 = 0x09;
    pub const PROCESS_INFO: u8 = 0x0a;
    pub const PROCESS_KILL: u8 = 0x0c;
    pub const PING: u8 = 0x0e;
    pub const CHANGE_USER: u8 = 0x11;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub const STMT_CLOSE: u8 = 0x19;
    pub const STMT_RESET: u8 = 0x1a;
    pub const SET_OPTION: u8 = 0x1b;
    pub const STMT_FETCH: u8 = 0x1c;
    pub const RESET_CONNECTION: u8 = 0x1f;
}

const OPTION_MULTI_STATEMENTS_ON: u16 = 0;
const OPTION_MULTI_STATEMENTS_OFF: u16 = 1;
const CURSOR_MASK: u8 = 0x07;

impl<'a> Command<'a> {
    /// Decodes a payload of a connection with `capabilities`. Ignores bytes after the last field, because
    /// clients of several generations send some.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if a field is truncated.
    #[inline]
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, ProtocolError> {
        let Some((&command, body)) = payload.split_first() else { return Ok(Self::Unknown(0)) };
        let mut fields = FieldReader::new(body);
        Ok(match command {
            code::QUERY => {
                if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
                    read_before_text(&mut fields, &mut |_, _| {})?;
                }
                Self::Query { statement: fields.rest() }
            }
            code::STMT_EXECUTE => Self::StmtExecute(StmtExecute::parse(fields, capabilities)?),
            code::STMT_PREPARE => Self::StmtPrepare { statement: body },
            code::STMT_CLOSE => Self::StmtClose { statement_id: fields.u32("statement_id")? },
            code::STMT_RESET => Self::StmtReset { statement_id: fields.u32("statement_id")? },
            code::STMT_SEND_LONG_DATA => Self::StmtSendLongData {
                statement_id: fields.u32("statement_id")?,
                parameter: fields.u16("parameter")?,
                data: fields.rest(),
            },
            code::STMT_FETCH => {
                Self::StmtFetch { statement_id: fields.u32("statement_id")?, row_count: fields.u32("row_count")? }
            }
            code::QUIT => Self::Quit,
            code::INIT_DB => Self::InitDb { database: body },
            code::FIELD_LIST => {
                Self::FieldList { table: fields.zero_terminated_or_rest(), wildcard: fields.zero_terminated_or_rest() }
            }
            code::STATISTICS => Self::Statistics,
            code::PROCESS_INFO => Self::ProcessInfo,
            code::PROCESS_KILL => Self::ProcessKill { connection_id: fields.u32("connection_id")? },
            code::PING => Self::Ping,
            code::CHANGE_USER => Self::ChangeUser(ChangeUser::parse(body, capabilities)?),
            code::RESET_CONNECTION => Self::ResetConnection,
            code::SET_OPTION => match fields.u16("option")? {
                OPTION_MULTI_STATEMENTS_ON => Self::SetOption { multi_statements: true },
                OPTION_MULTI_STATEMENTS_OFF => Self::SetOption { multi_statements: false },
                _ => Self::Unknown(command),
            },
            unknown => Self::Unknown(unknown),
        })
    }

    /// Appends the payload, as a client with `capabilities` does. Queries carry no attributes.
    pub fn encode(&self, capabilities: Capabilities, out: &mut Vec<u8>) {
        match *self {
            Self::Quit => out.push(code::QUIT),
            Self::InitDb { database } => encode_text(code::INIT_DB, database, out),
            Self::Query { statement } => {
                out.push(code::QUERY);
                if capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
                    out.extend_from_slice(&[0, 1]);
                }
                out.extend_from_slice(statement);
            }
            Self::FieldList { table, wildcard } => {
                out.push(code::FIELD_LIST);
                put_zero_terminated(out, table);
                out.extend_from_slice(wildcard);
            }
            Self::Statistics => out.push(code::STATISTICS),
            Self::ProcessInfo => out.push(code::PROCESS_INFO),
            Self::ProcessKill { connection_id } => encode_number(code::PROCESS_KILL, connection_id, out),
            Self::Ping => out.push(code::PING),
            Self::ChangeUser(change_user) => {
                out.push(code::CHANGE_USER);
                change_user.encode(capabilities, out);
            }
            Self::ResetConnection => out.push(code::RESET_CONNECTION),
            Self::SetOption { multi_statements } => {
                out.push(code::SET_OPTION);
                put_u16(out, if multi_statements { OPTION_MULTI_STATEMENTS_ON } else { OPTION_MULTI_STATEMENTS_OFF });
            }
            Self::StmtPrepare { statement } => encode_text(code::STMT_PREPARE, statement, out),
            Self::StmtExecute(execute) => execute.encode(out),
            Self::StmtSendLongData { statement_id, parameter, data } => {
                encode_number(code::STMT_SEND_LONG_DATA, statement_id, out);
                put_u16(out, parameter);
                out.extend_from_slice(data);
            }
            Self::StmtClose { statement_id } => encode_number(code::STMT_CLOSE, statement_id, out),
            Self::StmtReset { statement_id } => encode_number(code::STMT_RESET, statement_id, out),
            Self::StmtFetch { statement_id, row_count } => {
                encode_number(code::STMT_FETCH, statement_id, out);
                put_u32(out, row_count);
            }
            Self::Unknown(code) => out.push(code),
        }
    }
}

impl<'a> StmtExecute<'a> {
    /// Parses the payload behind the command byte.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if a field is truncated.
    #[inline]
    pub fn parse(mut fields: FieldReader<'a>, capabilities: Capabilities) -> Result<Self, ProtocolError> {
        let statement_id = fields.u32("statement_id")?;
        let flags = fields.u8("flags")?;
        fields.u32("iteration_count")?;
        let cursor = match flags & CURSOR_MASK {
            0 => CursorKind::None,
            1 => CursorKind::ReadOnly,
            _ => CursorKind::Unsupported,
        };
        let named = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
        let parameters = ParameterBlock { bytes: fields.rest(), named };
        Ok(Self { statement_id, cursor, parameters })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode_number(code::STMT_EXECUTE, self.statement_id, out);
        out.push(match self.cursor {
            CursorKind::None => 0,
            CursorKind::ReadOnly => 1,
            CursorKind::Unsupported => 2,
        });
        put_u32(out, 1);
        out.extend_from_slice(self.parameters.bytes);
    }
}

fn encode_text(code: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    out.extend_from_slice(text);
}

fn encode_number(code: u8, number: u32, out: &mut Vec<u8>) {
    out.push(code);
    put_u32(out, number);
}
