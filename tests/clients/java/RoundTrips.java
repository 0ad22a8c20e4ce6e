import com.mysql.cj.result.Field;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import org.mariadb.jdbc.client.Column;

/**
 * Round trips of every type by Connector/J and MariaDB Connector/J: what a driver reads of the table `original`, it
 * writes into `copy`, and both tables hold the same bytes. RoundTrips PORT METADATA; prints the types of the columns.
 * The drivers describe the columns as the file METADATA does.
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

    static void roundTrip(String name, String url, String table, String copy, String leftOut) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url, "root", ""); Statement statement = connection.createStatement()) {
            statement.execute("SET time_zone = '+00:00'");
            statement.execute("TRUNCATE TABLE " + copy);
            List<String> columns = new ArrayList<>();
            // SELECT * would describe the columns that the driver does not know.
            String listed = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'round_trips' AND TABLE_NAME = '"
                + table + "' ORDER BY ORDINAL_POSITION";
            try (ResultSet set = statement.executeQuery(listed)) {
                while (set.next()) {
                    if (!set.getString(1).matches(leftOut)) {
                        columns.add(set.getString(1));
                    }
                }
            }
            String names = String.join(", ", columns);
            try (PreparedStatement select = connection.prepareStatement("SELECT " + names + " FROM " + table + " WHERE id > ? ORDER BY id")) {
                select.setInt(1, 0);
                int rows = 0;
                try (ResultSet set = select.executeQuery()) {
                    ResultSetMetaData meta = set.getMetaData();
                    int count = meta.getColumnCount();
                    String[] types = new String[count + 1];
                    String insert = "INSERT INTO " + copy + " (" + names + ") VALUES (" + "?, ".repeat(count - 1) + "?)";
                    for (; set.next(); rows++) {
                        try (PreparedStatement write = connection.prepareStatement(insert)) {
                            for (int i = 1; i <= count; i++) {
                                Class<?> wanted = wanted(meta.getColumnTypeName(i));
                                Object value = wanted == null ? set.getObject(i) : set.getObject(i, wanted);
                                // The objects of the drivers for shapes do not have the reference system.
                                if (table.equals("shapes") && i > 1) {
                                    value = set.getBytes(i);
                                }
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
                String query = "SELECT o.id, LEFT(o.?, 80), LEFT(c.?, 80) FROM " + table + " o LEFT JOIN " + copy + " c USING (id) "
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

    /** Type, length, decimals, flags and, where the driver keeps it, collation of a column, as numbers of the protocol. */
    static String description(ResultSetMetaData meta, int column) throws Exception {
        if (meta instanceof com.mysql.cj.jdbc.result.ResultSetMetaData fields) {
            Field field = fields.getFields()[column - 1];
            return field.getMysqlTypeId() + "\t" + field.getLength() + "\t" + field.getDecimals() + "\t" + field.getFlags()
                + "\t" + field.getCollationIndex();
        }
        java.lang.reflect.Field packets = meta.getClass().getDeclaredField("fieldPackets");
        packets.setAccessible(true);
        Column packet = ((Column[]) packets.get(meta))[column - 1];
        return packet.getType().get() + "\t" + (packet.getColumnLength() & 0xFFFFFFFFL) + "\t" + packet.getDecimals() + "\t"
            + packet.getFlags();
    }

    /** The description that Connector/J makes of this one: with the digits of numbers, and flags of BLOB for other bytes. */
    static String keptByConnectorJ(String line) {
        String[] fields = line.split("\t");
        int type = Integer.parseInt(fields[2]);
        long length = Long.parseLong(fields[3]);
        int decimals = Integer.parseInt(fields[4]);
        int flags = Integer.parseInt(fields[5]);
        boolean isUnsigned = (flags & 32) != 0;
        switch (type) {
            case 1 -> length = 3;
            case 2 -> length = 5;
            case 9 -> length = isUnsigned ? 8 : 7;
            case 3 -> length = 10;
            case 8 -> length = isUnsigned ? 20 : 19;
            case 246 -> length -= (isUnsigned ? 0 : 1) + (decimals > 0 ? 1 : 0);
            case 4, 5 -> decimals = decimals == 31 ? 0 : decimals;
            case 16 -> flags |= length > 1 ? 16 | 128 : 0;
            case 253, 254 -> flags |= fields[6].equals("63") ? 16 : 0;
            default -> { }
        }
        return String.join("\t", fields[0], fields[1], fields[2], "" + length, "" + decimals, "" + flags, fields[6]);
    }

    static void checkDescriptions(String name, String url, String path) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(path));
        try (Connection connection = DriverManager.getConnection(url, "root", ""); Statement statement = connection.createStatement()) {
            statement.execute("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci");
            for (String table : new String[] {"original", "described"}) {
                StringBuilder expected = new StringBuilder();
                StringBuilder seen = new StringBuilder();
                try (ResultSet set = statement.executeQuery("SELECT * FROM " + table + " WHERE FALSE")) {
                    ResultSetMetaData meta = set.getMetaData();
                    for (int i = 1; i <= meta.getColumnCount(); i++) {
                        seen.append(table).append('\t').append(meta.getColumnName(i)).append('\t').append(description(meta, i)).append('\n');
                    }
                }
                boolean hasCollation = name.equals("Connector/J");
                for (String line : lines) {
                    if (line.startsWith(table + "\t")) {
                        expected.append(hasCollation ? keptByConnectorJ(line) : line.substring(0, line.lastIndexOf('\t'))).append('\n');
                    }
                }
                Client.expect("descriptions of " + table + " by " + name, seen, expected);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String place = "://127.0.0.1:" + arguments[0] + "/round_trips?yearIsDateType=false&tinyInt1isBit=false";
        checkDescriptions("Connector/J", "jdbc:mysql" + place, arguments[1]);
        checkDescriptions("MariaDB", "jdbc:mariadb" + place, arguments[1]);
        for (boolean prepared : new boolean[] {true, false}) {
            String way = prepared ? "prepared" : "text";
            String mysql = "jdbc:mysql" + place + "&connectionTimeZone=UTC&useServerPrepStmts=" + prepared;
            String mariadb = "jdbc:mariadb" + place + "&timezone=UTC&useServerPrepStmts=" + prepared;
            // Connector/J adds the hours of a negative binary time to its days instead of subtracting them.
            roundTrip("Connector/J " + way, mysql, "original", "copy", prepared ? "c_time.*" : "");
            // The driver reads a binary year as digits.
            roundTrip("MariaDB " + way, mariadb, "original", "copy", prepared ? "c_year" : "");
            // Connector/J does not know the type VECTOR in binary rows.
            roundTrip("Connector/J shapes " + way, mysql, "shapes", "shapes_copy", prepared ? "c_vector.*" : "");
            // MariaDB Connector/J does not know the type VECTOR at all.
            roundTrip("MariaDB shapes " + way, mariadb, "shapes", "shapes_copy", "c_vector.*");
        }
        // Rows by COM_STMT_FETCH, two at a time, while the same connection writes.
        String cursor = "jdbc:mysql" + place + "&connectionTimeZone=UTC&useServerPrepStmts=true&useCursorFetch=true&defaultFetchSize=2";
        roundTrip("Connector/J cursor", cursor, "original", "copy", "c_time.*");
        roundTrip("Connector/J shapes cursor", cursor, "shapes", "shapes_copy", "c_vector.*");
        // MariaDB Connector/J has no cursors: it reads the rows of an answer two at a time.
        String rows = "jdbc:mariadb" + place + "&timezone=UTC&useServerPrepStmts=true&defaultFetchSize=2";
        roundTrip("MariaDB row by row", rows, "original", "copy", "c_year");
    }
}
