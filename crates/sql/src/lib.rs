//! MySQL statements: parse, bind, plan, execute through the client.
