import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import org.apache.ignite.Ignition;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.configuration.ClientConfiguration;

/**
 * The clients of a cluster, which do as the lines of the input say:
 *
 * fill FILE
 * load OPERATION key|sql CLIENTS MILLISECONDS
 * sums
 * service CLIENTS, until the next line
 *
 * Each answer is a line that begins with "done" or "failed".
 */
final class Client {
    static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    private static final PrintStream OUTPUT = System.out;

    private static final Table TABLE = new Table();

    /** Connects to all nodes; a key's operation goes to the node with its partition, which is the default. */
    static IgniteClient open(String[] addresses) {
        return Ignition.startClient(new ClientConfiguration().setAddresses(addresses));
    }

    static void print(String line) {
        synchronized (OUTPUT) {
            OUTPUT.println(line);
            OUTPUT.flush();
        }
    }

    public static void main(String[] addresses) throws IOException {
        for (String line = INPUT.readLine(); line != null; line = INPUT.readLine()) {
            try {
                print("done " + run(line.split(" "), addresses));
            } catch (Exception error) {
                error.printStackTrace();
                print("failed " + error.toString().replace('\n', ' '));
            }
        }
        System.exit(0);
    }

    private static String run(String[] words, String[] addresses) throws Exception {
        switch (words[0]) {
            case "load" -> {
                Load load = new Load(TABLE, addresses, words[1], words[2].equals("key"), Long.parseLong(words[4]));
                return load.run(Integer.parseInt(words[3]));
            }
            case "service" -> {
                return new Service(TABLE, addresses, Integer.parseInt(words[1])).run();
            }
            case "fill" -> {
                try (IgniteClient client = open(addresses)) {
                    TABLE.fill(client, Path.of(words[1]));
                }
                return String.valueOf(TABLE.rows());
            }
            case "sums" -> {
                try (IgniteClient client = open(addresses)) {
                    return Table.sums(client);
                }
            }
            default -> throw new IllegalArgumentException("there is no command " + words[0]);
        }
    }
}
