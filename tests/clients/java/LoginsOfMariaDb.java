import java.sql.*;
import java.util.Properties;

/**
 * Logins of MariaDB Connector/J by each method over TCP, TLS and the Unix socket, and refusals. Arguments: PORT
 * DIRECTORY, which has the server's socket and its folder `tls`.
 */
public class LoginsOfMariaDb {
    static final String PASSWORD = "a pass, word", NAME = "mariadb_java";

    static String login(String port, String options, String name, String password) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", name);
        properties.setProperty("password", password);
        String place = options.startsWith("localSocket") ? "localhost" : "127.0.0.1:" + port;
        try (Connection connection = DriverManager.getConnection("jdbc:mariadb://" + place + "/?" + options, properties);
             Statement statement = connection.createStatement()) {
            ResultSet version = statement.executeQuery("SHOW STATUS LIKE 'Ssl_version'");
            version.next();
            boolean isEncrypted = !version.getString(2).isEmpty();
            ResultSet user = statement.executeQuery("SELECT CURRENT_USER()");
            user.next();
            return user.getString(1) + " " + isEncrypted;
        } catch (SQLException error) {
            return String.valueOf(error.getErrorCode());
        }
    }

    static void account(String port, String method) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "root");
        try (Connection connection = DriverManager.getConnection("jdbc:mariadb://127.0.0.1:" + port + "/", properties);
             Statement statement = connection.createStatement()) {
            statement.execute("DROP USER IF EXISTS " + NAME);
            statement.execute("CREATE USER " + NAME + " IDENTIFIED WITH " + method + " BY '" + PASSWORD + "'");
        }
    }

    public static void main(String[] arguments) throws SQLException {
        String port = arguments[0], folder = arguments[1];
        String[] ways = {"sslMode=disable&allowPublicKeyRetrieval=true",
            "sslMode=verify-ca&serverSslCert=" + folder + "/tls/ca.pem", "localSocket=" + folder + "/mysql.sock"};
        for (String way : ways) {
            for (String method : new String[] {"mysql_native_password", "caching_sha2_password"}) {
                account(port, method);
                String expected = NAME + "@% " + way.contains("verify-ca");
                Client.expect(way + " " + method, login(port, way, NAME, PASSWORD + "?"), 1045);
                // The first login sends the password, the second proves that the driver has it.
                Client.expect(way + " " + method, login(port, way, NAME, PASSWORD), expected);
                Client.expect(way + " " + method, login(port, way, NAME, PASSWORD), expected);
                Client.expect(way + " " + method, login(port, way, NAME, ""), 1045);
            }
        }
        System.out.println("mariadb-java: logins as expected");
    }
}
