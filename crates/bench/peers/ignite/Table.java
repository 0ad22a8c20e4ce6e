import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.ignite.binary.BinaryObject;
import org.apache.ignite.cache.query.SqlFieldsQuery;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.ClientTransaction;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.transactions.TransactionConcurrency;
import org.apache.ignite.transactions.TransactionIsolation;

/** The table of sysbench as a client sees it: a cache by keys, and a table of SQL. */
final class Table {
    static final String CACHE = "sbtest1";

    private static final String CREATE = "CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT, c VARCHAR, pad VARCHAR) "
        + "WITH \"TEMPLATE=PARTITIONED,BACKUPS=1,ATOMICITY=TRANSACTIONAL,WRITE_SYNCHRONIZATION_MODE=FULL_SYNC,"
        + "CACHE_NAME=sbtest1,VALUE_TYPE=Row\"";
    private static final int ROWS_PER_BATCH = 500;
    /** A deadlock ends after this time: Ignite looks for deadlocks of transactions that have a limit. */
    private static final long TRANSACTION_MS_MAX = 1000;

    /** The columns of each row that updates keep. The row with id 1 is at 0. */
    private final List<Integer> k = new ArrayList<>();
    private final List<String> pad = new ArrayList<>();

    int rows() {
        return k.size();
    }

    /** Creates the table, and fills it with the rows of a file: id, k, c and pad, separated by tabs. */
    void fill(IgniteClient client, Path file) throws IOException {
        query(client, CREATE);
        Map<Integer, BinaryObject> batch = new TreeMap<>();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t");
                k.add(Integer.valueOf(fields[1]));
                pad.add(fields[3]);
                int id = k.size();
                if (id != Integer.parseInt(fields[0])) {
                    throw new IOException("row " + fields[0] + " is in line " + id);
                }
                batch.put(id, row(client, id, fields[2]));
                if (batch.size() == ROWS_PER_BATCH) {
                    cache(client).putAll(batch);
                    batch.clear();
                }
            }
        }
        if (!batch.isEmpty()) {
            cache(client).putAll(batch);
        }
        query(client, "CREATE INDEX k_1 ON sbtest1(k)");
    }

    static ClientCache<Integer, BinaryObject> cache(IgniteClient client) {
        return client.<Integer, BinaryObject>cache(CACHE).withKeepBinary();
    }

    private BinaryObject row(IgniteClient client, int id, String c) {
        return client.binary().builder("Row").setField("K", k.get(id - 1)).setField("C", c)
            .setField("PAD", pad.get(id - 1)).build();
    }

    static List<List<?>> query(IgniteClient client, String text, Object... arguments) {
        return client.query(new SqlFieldsQuery(text).setArgs(arguments)).getAll();
    }

    /** The text of a row's column c; null if there is no such row. */
    static String select(IgniteClient client, boolean isByKey, int id) {
        if (isByKey) {
            BinaryObject row = cache(client).get(id);
            return row == null ? null : row.field("C");
        }
        List<List<?>> found = query(client, "SELECT c FROM sbtest1 WHERE id = ?", id);
        return found.size() == 1 ? (String) found.get(0).get(0) : null;
    }

    /** Sets column c of a row. By key this writes the whole row. */
    void update(IgniteClient client, boolean isByKey, int id, String c) {
        if (isByKey) {
            cache(client).put(id, row(client, id, c));
            return;
        }
        Object updated = query(client, "UPDATE sbtest1 SET c = ? WHERE id = ?", c, id).get(0).get(0);
        if (((Number) updated).longValue() != 1) {
            throw new IllegalStateException("UPDATE of row " + id + " updates " + updated + " rows");
        }
    }

    /** Updates rows by key in one transaction, which locks each row as it is written. */
    void updateAll(IgniteClient client, int[] ids, String c) {
        try (ClientTransaction transaction = client.transactions().txStart(
            TransactionConcurrency.PESSIMISTIC, TransactionIsolation.READ_COMMITTED, TRANSACTION_MS_MAX)) {
            for (int id : ids) {
                update(client, true, id, c);
            }
            transaction.commit();
        }
    }

    /** COUNT(*), SUM(id) and SUM(k), which no update changes. */
    static String sums(IgniteClient client) {
        List<?> row = query(client, "SELECT COUNT(*), SUM(id), SUM(k) FROM sbtest1").get(0);
        return row.get(0) + " " + row.get(1) + " " + row.get(2);
    }

    /** Column c of these rows. */
    static Map<Integer, String> texts(IgniteClient client, Set<Integer> ids) {
        Map<Integer, String> texts = new HashMap<>();
        cache(client).getAll(new TreeSet<>(ids)).forEach((id, row) -> texts.put(id, row.field("C")));
        return texts;
    }
}
