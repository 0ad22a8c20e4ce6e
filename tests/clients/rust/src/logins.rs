use std::path::Path;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, SslOpts};
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::{ConnectOptions, Connection, Executor};

const PASSWORD: &str = "a pass, word";
const METHODS: [&str; 2] = ["mysql_native_password", "caching_sha2_password"];
const WAYS: [&str; 3] = ["tcp", "tls", "socket"];

fn socket(directory: &str) -> String {
    format!("{directory}/mysql.sock")
}

async fn account(directory: &str, name: &str, method: &str) {
    let options =
        MySqlConnectOptions::new().socket(socket(directory)).username("root").ssl_mode(MySqlSslMode::Disabled);
    let mut root = options.connect().await.expect("root over the socket");
    let texts =
        [format!("DROP USER IF EXISTS {name}"), format!("CREATE USER {name} IDENTIFIED WITH {method} BY '{PASSWORD}'")];
    for text in texts {
        root.execute(sqlx::AssertSqlSafe(text)).await.expect("an account");
    }
    root.close().await.expect("an end");
}

/// The account's name and whether the connection is encrypted, or the server's error number.
async fn login_mysql_async(port: u16, directory: &str, way: &str, password: &str) -> Result<(String, bool), u16> {
    let mut options = OptsBuilder::default().user(Some("mysql_async")).pass(Some(password)).prefer_socket(false);
    options = match way {
        "socket" => options.socket(Some(socket(directory))),
        _ => options.ip_or_hostname("127.0.0.1").tcp_port(port),
    };
    if way == "tls" {
        let authority = Path::new(directory).join("tls/ca.pem");
        options = options.ssl_opts(SslOpts::default().with_root_certs(vec![authority.into()]));
    }
    let number = |error: mysql_async::Error| match error {
        mysql_async::Error::Server(error) => error.code,
        other => panic!("{way}: {other}"),
    };
    let mut connection = Conn::new(options).await.map_err(number)?;
    let user: Option<String> = connection.query_first("SELECT CURRENT_USER()").await.map_err(number)?;
    let version: Option<(String, String)> =
        connection.query_first("SHOW STATUS LIKE 'Ssl_version'").await.map_err(number)?;
    connection.disconnect().await.map_err(number)?;
    Ok((user.expect("a name"), !version.expect("a status").1.is_empty()))
}

async fn login_sqlx(port: u16, directory: &str, way: &str, password: &str) -> Result<(String, bool), u16> {
    let mut options = MySqlConnectOptions::new().username("sqlx").password(password);
    options = match way {
        "socket" => options.socket(socket(directory)).ssl_mode(MySqlSslMode::Disabled),
        "tls" => options
            .host("127.0.0.1")
            .port(port)
            .ssl_mode(MySqlSslMode::VerifyCa)
            .ssl_ca(format!("{directory}/tls/ca.pem")),
        _ => options.host("127.0.0.1").port(port).ssl_mode(MySqlSslMode::Disabled),
    };
    let number = |error: sqlx::Error| match error.as_database_error() {
        Some(error) => error.downcast_ref::<sqlx::mysql::MySqlDatabaseError>().number(),
        None => panic!("{way}: {error}"),
    };
    let mut connection = options.connect().await.map_err(number)?;
    let user: String = sqlx::query_scalar("SELECT CURRENT_USER()").fetch_one(&mut connection).await.map_err(number)?;
    let version: (String, String) =
        sqlx::query_as("SHOW STATUS LIKE 'Ssl_version'").fetch_one(&mut connection).await.map_err(number)?;
    connection.close().await.map_err(number)?;
    Ok((user, !version.1.is_empty()))
}

macro_rules! check {
    ($name:ident, $login:ident) => {
        pub async fn $name(port: u16, directory: &str) {
            for method in METHODS {
                for way in WAYS {
                    let name = stringify!($name);
                    account(directory, name, method).await;
                    let expected = Ok((format!("{name}@%"), way == "tls"));
                    assert_eq!($login(port, directory, way, "wrong").await, Err(1045), "{name} {method} {way}");
                    // The first login sends the password, the second proves that the client has it.
                    for _ in 0..2 {
                        assert_eq!($login(port, directory, way, PASSWORD).await, expected, "{name} {method} {way}");
                    }
                    assert_eq!($login(port, directory, way, "wrong").await, Err(1045), "{name} {method} {way}");
                }
            }
        }
    };
}
check!(mysql_async, login_mysql_async);
check!(sqlx, login_sqlx);
