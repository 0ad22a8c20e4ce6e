import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.ignite.client.ClientException;
import org.apache.ignite.client.IgniteClient;

/** Clients in a closed loop, each with a connection of its own, as those of junctor-bench cluster-cost. */
final class Load {
    /** Part of the time of a run that is not measured, at its start. */
    private static final int WARM_UP_PARTS = 4;
    private static final int MICROSECONDS_MAX = 1_000_000;
    private static final long DIGITS = 100_000_000_000L;

    private final Table table;
    private final String[] addresses;
    private final String operation;
    private final boolean isByKey;
    private final long nanoseconds;

    /** What a client counted. Latencies are counts by microseconds; longer ones count as the longest. */
    private static final class Report {
        final int[] latencies = new int[MICROSECONDS_MAX + 1];
        long operations;
        long conflicts;
    }

    Load(Table table, String[] addresses, String operation, boolean isByKey, long milliseconds) {
        this.table = table;
        this.addresses = addresses;
        this.operation = operation;
        this.isByKey = isByKey;
        this.nanoseconds = milliseconds * 1_000_000;
    }

    /** Runs the clients. Returns: measured operations, p50 and p99 in microseconds, all operations, conflicts. */
    String run(int clients) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(clients);
        try {
            CyclicBarrier opened = new CyclicBarrier(clients);
            List<Callable<Report>> tasks = new ArrayList<>();
            for (int client = 0; client < clients; client++) {
                tasks.add(() -> client(opened));
            }
            Report all = new Report();
            for (Future<Report> future : threads.invokeAll(tasks)) {
                Report report = future.get();
                all.operations += report.operations;
                all.conflicts += report.conflicts;
                for (int index = 0; index < report.latencies.length; index++) {
                    all.latencies[index] += report.latencies[index];
                }
            }
            long count = 0;
            for (int latency : all.latencies) {
                count += latency;
            }
            return count + " " + percentile(all.latencies, count, 50) + " " + percentile(all.latencies, count, 99)
                + " " + all.operations + " " + all.conflicts;
        } finally {
            threads.shutdown();
        }
    }

    /** The smallest latency that at least so many per cent do not exceed; 0 without latencies. */
    private static int percentile(int[] latencies, long count, int percent) {
        long left = (count * percent + 99) / 100;
        for (int index = 0; index < latencies.length && left > 0; index++) {
            left -= latencies[index];
            if (left <= 0) {
                return index;
            }
        }
        return 0;
    }

    private Report client(CyclicBarrier opened) throws Exception {
        SplittableRandom random = new SplittableRandom();
        try (IgniteClient client = Client.open(addresses)) {
            Report report = new Report();
            opened.await();
            long measuredFrom = System.nanoTime() + nanoseconds / WARM_UP_PARTS;
            long end = measuredFrom + nanoseconds;
            while (true) {
                long sent = System.nanoTime();
                if (sent - end >= 0) {
                    return report;
                }
                try {
                    run(client, random);
                } catch (ClientException error) {
                    if (!isConflict(error)) {
                        throw error;
                    }
                    report.conflicts++;
                    continue;
                }
                long answered = System.nanoTime();
                report.operations++;
                if (sent - measuredFrom >= 0 && answered - end <= 0) {
                    report.latencies[(int) Math.min((answered - sent) / 1000, MICROSECONDS_MAX)]++;
                }
            }
        }
    }

    private void run(IgniteClient client, SplittableRandom random) {
        int id = 1 + random.nextInt(table.rows());
        switch (operation) {
            case "select" -> {
                if (Table.select(client, isByKey, id) == null) {
                    throw new IllegalStateException("row " + id + " is missing");
                }
            }
            case "update" -> table.update(client, isByKey, id, text(random));
            case "transfer" -> table.updateAll(
                client, new int[] {id, 1 + random.nextInt(table.rows())}, text(random));
            default -> throw new IllegalArgumentException("there is no operation " + operation);
        }
    }

    /** Updates of the same row at the same time: SQL gives up, and so does a transaction whose time is over. */
    static boolean isConflict(ClientException error) {
        String text = String.valueOf(error.getMessage());
        return text.contains("modified concurrently") || text.contains("imeout") || text.contains("eadlock");
    }

    /** A new text for column c, of two groups of eleven digits. */
    static String text(SplittableRandom random) {
        long digits = random.nextLong(DIGITS);
        char[] text = new char[23];
        text[11] = '-';
        for (int index = 10; index >= 0; index--) {
            text[index] = (char) ('0' + digits % 10);
            text[index + 12] = text[index];
            digits /= 10;
        }
        return new String(text);
    }
}
