import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/**
 * Round trips of every type by Connector/J and MariaDB Connector/J: what a driver reads of the table `original`, it
 * writes into `copy`, and both tables hold the same bytes. RoundTrips PORT; prints the types of the columns.
 */
public class RoundTrips {
    /** A java.sql.Time has no sign and ends after a day, and a java.sql.Timestamp has the client's zone. */
    static Class<?> wanted(String type) {
        return switch (type) {
            case "TIME" -> String.class;
            case "DATETIME", "TIMESTAMP" -> LocalDateTime.class;
            default -> null;
        };
    }

    static void roundTrip(String name, String url, String leftOut) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url, "root", ""); Statement statement = connection.createStatement()) {
            statement.execute("SET time_zone = '+00:00'");
            statement.execute("TRUNCATE TABLE copy");
            List<String> columns = new ArrayList<>();
            try (ResultSet set = statement.executeQuery("SELECT * FROM original WHERE FALSE")) {
                ResultSetMetaData meta = set.getMetaData();
                for (int i = 1; i <= meta.getColumnCount(); i++) {
                    if (!meta.getColumnName(i).matches(leftOut)) {
                        columns.add(meta.getColumnName(i));
                    }
                }
            }
            String names = String.join(", ", columns);
            try (PreparedStatement select = connection.prepareStatement("SELECT " + names + " FROM original WHERE id > ? ORDER BY id")) {
                select.setInt(1, 0);
                int rows = 0;
                try (ResultSet set = select.executeQuery()) {
                    ResultSetMetaData meta = set.getMetaData();
                    int count = meta.getColumnCount();
                    String[] types = new String[count + 1];
                    String insert = "INSERT INTO copy (" + names + ") VALUES (" + "?, ".repeat(count - 1) + "?)";
                    for (; set.next(); rows++) {
                        try (PreparedStatement write = connection.prepareStatement(insert)) {
                            for (int i = 1; i <= count; i++) {
                                Class<?> wanted = wanted(meta.getColumnTypeName(i));
                                Object value = wanted == null ? set.getObject(i) : set.getObject(i, wanted);
                                // JSON refuses a binary string.
                                if (value instanceof byte[] bytes && meta.getColumnTypeName(i).equals("JSON")) {
                                    value = new String(bytes, StandardCharsets.UTF_8);
                                }
                                if (value != null) {
                                    types[i] = value.getClass().getTypeName();
                                }
                                // Connector/J sends a BigInteger as a signed number of 64 bits.
                                write.setObject(i, value instanceof BigInteger ? value.toString() : value);
                            }
                            write.executeUpdate();
                        }
                    }
                    for (int i = 1; i <= count; i++) {
                        System.out.println("java " + name + ": " + meta.getColumnName(i) + " " + meta.getColumnTypeName(i) + "("
                            + meta.getPrecision(i) + "," + meta.getScale(i) + ") " + types[i]);
                    }
                }
                Client.expect("rows", rows, 4);
            }
            for (String column : columns) {
                String query = "SELECT o.id, LEFT(o.?, 80), LEFT(c.?, 80) FROM original o LEFT JOIN copy c USING (id) "
                    + "WHERE c.id IS NULL OR NOT HEX(o.?) <=> HEX(c.?)";
                StringBuilder different = new StringBuilder();
                try (ResultSet set = statement.executeQuery(query.replace("?", column))) {
                    while (set.next()) {
                        different.append(set.getString(1)).append(": ").append(set.getString(2)).append(", ").append(set.getString(3)).append("; ");
                    }
                }
                Client.expect(name + " " + column, different, "");
            }
        }
    }

    public static void main(String[] arguments) throws SQLException {
        String place = "://127.0.0.1:" + arguments[0] + "/round_trips?yearIsDateType=false&tinyInt1isBit=false";
        for (boolean prepared : new boolean[] {true, false}) {
            String way = prepared ? "prepared" : "text";
            // Connector/J adds the hours of a negative binary time to its days instead of subtracting them.
            roundTrip("Connector/J " + way, "jdbc:mysql" + place + "&connectionTimeZone=UTC&useServerPrepStmts=" + prepared,
                prepared ? "c_time.*" : "");
            // The driver reads a binary year as digits.
            roundTrip("MariaDB " + way, "jdbc:mariadb" + place + "&timezone=UTC&useServerPrepStmts=" + prepared,
                prepared ? "c_year" : "");
        }
    }
}
