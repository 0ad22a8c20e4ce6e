import java.nio.file.*;
import java.security.KeyStore;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.*;
import java.security.spec.PKCS8EncodedKeySpec;
import java.sql.*;
import java.util.*;

/**
 * Logins of Connector/J by every method over TCP, TLS and the Unix socket, the modes of TLS, and refusals.
 * Arguments: PORT DIRECTORY PORT_WITHOUT_TLS. DIRECTORY has the server's socket and its folder `tls`.
 */
public class Logins {
    static final String PASSWORD = "a pass, word", NAME = "client_java";
    static String port, portWithoutTls, folder;
    static final String PLAIN = "sslMode=DISABLED", SOCKET = "socket";

    static String[] row(String way, String name, String password, String text) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", name);
        properties.setProperty("password", password);
        String host = "127.0.0.1:" + port, options = way;
        if (way.equals(SOCKET)) {
            options = "sslMode=DISABLED&socketFactory=org.newsclub.net.mysql.AFUNIXDatabaseSocketFactoryCJ";
            properties.setProperty("junixsocket.file", folder + "/mysql.sock");
        } else if (way.startsWith("without&")) {
            host = "127.0.0.1:" + portWithoutTls;
        }
        try (Connection connection = DriverManager.getConnection("jdbc:mysql://" + host + "/?" + options, properties);
             Statement statement = connection.createStatement();
             ResultSet row = statement.executeQuery(text)) {
            row.next();
            return new String[] {row.getString(1), row.getString(2)};
        }
    }

    static void admitted(String way, String password, boolean isEncrypted) throws SQLException {
        String user = row(way, NAME, password, "SELECT 1, CURRENT_USER()")[1];
        String version = row(way, NAME, password, "SHOW STATUS LIKE 'Ssl_version'")[1];
        if (!user.equals(NAME + "@%") || version.isEmpty() == isEncrypted) {
            throw new AssertionError(way + ": " + user + " with " + version);
        }
    }

    /** The login fails with this error of the server, or with an error of the client (0). */
    static void refused(int number, String way, String name, String password) {
        try {
            row(way, name, password, "SELECT 1, 2");
        } catch (SQLException error) {
            if (error.getErrorCode() != number) {
                throw new AssertionError(way + ": " + error.getErrorCode() + " in place of " + number, error);
            }
            return;
        }
        throw new AssertionError(way + ": logged in, where " + number + " was expected");
    }

    static void administrator(String... texts) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "root");
        try (Connection connection = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/", properties);
             Statement statement = connection.createStatement()) {
            for (String text : texts) {
                statement.execute(text);
            }
        }
    }

    /** A new account, whose password the server has not seen yet. */
    static void account(String method, String conditions) throws SQLException {
        administrator("DROP USER IF EXISTS " + NAME,
            "CREATE USER " + NAME + " IDENTIFIED WITH " + method + " BY '" + PASSWORD + "' " + conditions);
    }

    static void methods(String verified) throws SQLException {
        for (String way : new String[] {PLAIN + "&allowPublicKeyRetrieval=true", "sslMode=REQUIRED", verified, SOCKET}) {
            boolean isEncrypted = !way.equals(SOCKET) && !way.startsWith(PLAIN);
            for (String method : new String[] {"mysql_native_password", "caching_sha2_password"}) {
                account(method, "");
                // The driver does not know that a Unix socket is private: it sends no password over it, only proofs.
                if (way.equals(SOCKET) && method.equals("caching_sha2_password")) {
                    refused(0, way, NAME, PASSWORD);
                    admitted(verified, PASSWORD, true);
                }
                refused(1045, way.equals(SOCKET) ? verified : way, NAME, PASSWORD + "?");
                admitted(way, PASSWORD, isEncrypted);
                refused(1045, way, NAME, "");
            }
            refused(1045, way.equals(SOCKET) ? verified : way, "nobody_java", PASSWORD);
        }
        String system = System.getProperty("user.name");
        administrator("DROP USER " + NAME, "CREATE USER " + NAME + " IDENTIFIED WITH auth_socket AS '" + system + "'");
        admitted(SOCKET, "", false);
        refused(1045, PLAIN, NAME, "");
        refused(1045, verified, NAME, "");
        administrator("ALTER USER " + NAME + " IDENTIFIED WITH auth_socket AS 'nobody_" + system + "'");
        refused(1045, SOCKET, NAME, "");
    }

    /** A login that sends the password needs the server's RSA key; one that proves it does not. */
    static void keys() throws SQLException {
        String right = PLAIN + "&serverRSAPublicKeyFile=" + folder + "/tls/public_key.pem";
        String foreign = PLAIN + "&serverRSAPublicKeyFile=" + folder + "/foreign-public.pem";
        account("caching_sha2_password", "");
        refused(0, PLAIN, NAME, PASSWORD);
        refused(1045, foreign, NAME, PASSWORD);
        admitted(right, PASSWORD, false);
        admitted(PLAIN, PASSWORD, false);
        admitted(foreign, PASSWORD, false);
    }

    static void tlsModes(String authority, String certificate, String foreign, String stranger) throws SQLException {
        account("caching_sha2_password", "");
        for (String mode : new String[] {"sslMode=PREFERRED", "sslMode=REQUIRED", "sslMode=VERIFY_CA" + authority,
            "sslMode=VERIFY_IDENTITY" + authority, "sslMode=VERIFY_CA" + authority + certificate,
            "sslMode=REQUIRED&tlsVersions=TLSv1.2", "sslMode=REQUIRED&tlsVersions=TLSv1.3"}) {
            admitted(mode, PASSWORD, true);
        }
        admitted(PLAIN, PASSWORD, false);
        refused(0, "sslMode=VERIFY_CA" + foreign, NAME, PASSWORD);

        account("caching_sha2_password", "REQUIRE SSL");
        refused(1045, PLAIN + "&allowPublicKeyRetrieval=true", NAME, PASSWORD);
        admitted("sslMode=REQUIRED", PASSWORD, true);
        account("caching_sha2_password", "REQUIRE X509");
        refused(1045, "sslMode=REQUIRED", NAME, PASSWORD);
        admitted("sslMode=VERIFY_CA" + authority + certificate, PASSWORD, true);
        // The driver shows no certificate of an authority that the server has not named.
        refused(1045, "sslMode=VERIFY_CA" + authority + stranger, NAME, PASSWORD);

        account("caching_sha2_password", "");
        admitted("sslMode=REQUIRED", PASSWORD, true);
        administrator("SET GLOBAL require_secure_transport = ON");
        try {
            refused(3159, PLAIN, NAME, PASSWORD);
            admitted("sslMode=REQUIRED", PASSWORD, true);
            admitted(SOCKET, PASSWORD, false);
        } finally {
            administrator("SET GLOBAL require_secure_transport = OFF");
        }
        row("without&sslMode=PREFERRED", "root", "", "SELECT 1, 2");
        row("without&sslMode=DISABLED", "root", "", "SELECT 1, 2");
        refused(0, "without&sslMode=REQUIRED", "root", "");
    }

    /** Writes a store of Java with these PEM files, and returns the option that names it. */
    static String store(String option, String certificate, String key) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        Collection<? extends java.security.cert.Certificate> certificates;
        try (var input = Files.newInputStream(Path.of(folder, certificate))) {
            certificates = factory.generateCertificates(input);
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        if (key == null) {
            store.setCertificateEntry("authority", certificates.iterator().next());
        } else {
            String text = Files.readString(Path.of(folder, key)).replaceAll("-----[A-Z ]+-----|\\s", "");
            PKCS8EncodedKeySpec encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text));
            PrivateKey secret;
            try {
                secret = KeyFactory.getInstance("EC").generatePrivate(encoded);
            } catch (java.security.spec.InvalidKeySpecException error) {
                secret = KeyFactory.getInstance("RSA").generatePrivate(encoded);
            }
            store.setKeyEntry("client", secret, "secret".toCharArray(), certificates.toArray(new java.security.cert.Certificate[0]));
        }
        Path file = Files.createTempFile(Path.of(folder), "store", ".p12");
        try (var output = Files.newOutputStream(file)) {
            store.store(output, "secret".toCharArray());
        }
        return "&" + option + "Url=file:" + file + "&" + option + "Type=PKCS12&" + option + "Password=secret";
    }

    public static void main(String[] arguments) throws Exception {
        port = arguments[0];
        folder = arguments[1];
        portWithoutTls = arguments[2];
        String authority = store("trustCertificateKeyStore", "tls/ca.pem", null);
        String foreign = store("trustCertificateKeyStore", "foreign.pem", null);
        String certificate = store("clientCertificateKeyStore", "tls/client-cert.pem", "tls/client-key.pem");
        String stranger = store("clientCertificateKeyStore", "foreign.pem", "foreign-key.pem");
        methods("sslMode=VERIFY_IDENTITY" + authority);
        keys();
        tlsModes(authority, certificate, foreign, stranger);
        administrator("DROP USER " + NAME);
        System.out.println("jdbc: logins as expected");
    }
}
