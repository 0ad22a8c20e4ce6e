import java.util.List;
import org.apache.ignite.Ignite;
import org.apache.ignite.IgniteCache;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.CachePeekMode;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.logger.java.JavaLogger;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;

/**
 * A server node on 127.0.0.1 that keeps its data in memory. Apart from addresses, memory and reports, its
 * settings are the defaults of Ignite.
 *
 * Node NAME FOLDER DISCOVERY_PORT COMMUNICATION_PORT CLIENT_PORT MEMBERS DISCOVERY_PORT_OF_EACH_NODE...
 *
 * It prints "ready: 127.0.0.1:CLIENT_PORT" once the cluster has so many members and the node has all rows.
 */
final class Node {
    private static final String HOST = "127.0.0.1";
    private static final long REGION_BYTES = 512L << 20;
    private static final long LOOK_INTERVAL_MS = 20;

    public static void main(String[] arguments) throws InterruptedException {
        String name = arguments[0];
        int clientPort = Integer.parseInt(arguments[4]);
        int members = Integer.parseInt(arguments[5]);
        List<String> known = List.of(arguments).subList(6, arguments.length).stream().map(p -> HOST + ":" + p).toList();

        TcpDiscoverySpi discovery = new TcpDiscoverySpi();
        discovery.setLocalPort(Integer.parseInt(arguments[2]));
        discovery.setLocalPortRange(0);
        discovery.setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(known));
        TcpCommunicationSpi communication = new TcpCommunicationSpi();
        communication.setLocalPort(Integer.parseInt(arguments[3]));
        communication.setLocalPortRange(0);
        ClientConnectorConfiguration clients = new ClientConnectorConfiguration();
        clients.setHost(HOST).setPort(clientPort).setPortRange(0).setJdbcEnabled(false).setOdbcEnabled(false);
        DataRegionConfiguration region = new DataRegionConfiguration();
        region.setName("rows").setInitialSize(REGION_BYTES).setMaxSize(REGION_BYTES);

        IgniteConfiguration configuration = new IgniteConfiguration();
        configuration.setIgniteInstanceName(name).setConsistentId(name).setWorkDirectory(arguments[1]);
        configuration.setLocalHost(HOST).setDiscoverySpi(discovery).setCommunicationSpi(communication);
        configuration.setClientConnectorConfiguration(clients).setConnectorConfiguration(null);
        configuration.setDataStorageConfiguration(
            new DataStorageConfiguration().setDefaultDataRegionConfiguration(region));
        configuration.setMetricsLogFrequency(0).setGridLogger(new JavaLogger());

        Ignite ignite = Ignition.start(configuration);
        while (ignite.cluster().forServers().nodes().size() < members || !hasAllRows(ignite)) {
            Thread.sleep(LOOK_INTERVAL_MS);
        }
        System.out.println("ready: " + HOST + ":" + clientPort);
        System.out.flush();
    }

    /** With two nodes and one backup, each node has every row. */
    private static boolean hasAllRows(Ignite ignite) {
        IgniteCache<?, ?> cache = ignite.cache(Table.CACHE);
        return cache == null
            || cache.localSizeLong(CachePeekMode.PRIMARY, CachePeekMode.BACKUP) == cache.sizeLong(CachePeekMode.PRIMARY);
    }
}
