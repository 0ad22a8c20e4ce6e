import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.apache.ignite.client.ClientException;
import org.apache.ignite.client.IgniteClient;

/**
 * Clients that update rows of their own until the end, while nodes are killed. Those with an even number do so
 * by key, the others by SQL. They print "ack CLIENT" for each acknowledgement, and look at the end whether
 * every acknowledged update is there.
 */
final class Service {
    private static final long RETRY_PAUSE_MS = 2;

    private final Table table;
    private final String[] addresses;
    private final int clients;
    private volatile boolean isOver;

    /** What a client knows of its rows. */
    private final class Updates extends Thread {
        private final int number;
        /** The newest text of each row that was acknowledged, and later ones that may be there. */
        final Map<Integer, String> acknowledged = new HashMap<>();
        final Map<Integer, Set<String>> uncertain = new HashMap<>();
        Throwable failure;

        Updates(int number) {
            this.number = number;
        }

        @Override
        public void run() {
            SplittableRandom random = new SplittableRandom();
            int own = (table.rows() - number + clients - 1) / clients;
            try {
                while (!isOver) {
                    try (IgniteClient client = Client.open(addresses)) {
                        while (!isOver) {
                            update(client, 1 + number + clients * random.nextInt(own), Load.text(random));
                        }
                    } catch (ClientException error) {
                        Thread.sleep(RETRY_PAUSE_MS);
                    }
                }
            } catch (Throwable error) {
                failure = error;
            }
        }

        /** Fails if the client has to connect again. */
        private void update(IgniteClient client, int id, String text) {
            try {
                table.update(client, number % 2 == 0, id, text);
            } catch (ClientException error) {
                uncertain.computeIfAbsent(id, none -> new HashSet<>()).add(text);
                if (!Load.isConflict(error)) {
                    throw error;
                }
                return;
            }
            acknowledged.put(id, text);
            uncertain.remove(id);
            Client.print("ack " + number);
        }
    }

    Service(Table table, String[] addresses, int clients) {
        this.table = table;
        this.addresses = addresses;
        this.clients = clients;
    }

    private List<Updates> start() {
        List<Updates> threads = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            threads.add(new Updates(client));
        }
        threads.forEach(Thread::start);
        return threads;
    }

    /** Runs until there is a line to read. Returns the rows that were looked at, and those without their update. */
    String run() throws Exception {
        List<Updates> threads = start();
        try {
            Client.INPUT.readLine();
        } finally {
            isOver = true;
        }
        long checked = 0;
        long lost = 0;
        try (IgniteClient client = Client.open(addresses)) {
            for (Updates thread : threads) {
                thread.join();
                if (thread.failure != null) {
                    throw new IllegalStateException("client " + thread.number, thread.failure);
                }
                Map<Integer, String> found = Table.texts(client, thread.acknowledged.keySet());
                for (Map.Entry<Integer, String> row : thread.acknowledged.entrySet()) {
                    String text = found.get(row.getKey());
                    boolean isThere = row.getValue().equals(text)
                        || thread.uncertain.getOrDefault(row.getKey(), Set.of()).contains(text);
                    checked++;
                    lost += isThere ? 0 : 1;
                }
            }
        }
        return checked + " " + lost;
    }
}
