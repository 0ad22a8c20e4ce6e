import jakarta.persistence.*;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.CreationTimestamp;
import org.hibernate.cfg.Configuration;

/** Hibernate creates a schema, finds that it is what it wants, extends it, and reads and writes objects. */
public class Hibernate {
    public enum Status { NEW, ACTIVE, GONE }

    @Entity(name = "Customer")
    @Table(name = "customer", indexes = @Index(name = "by_name", columnList = "name, born"))
    public static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(length = 80, nullable = false) String name;
        @Column(length = 120, unique = true) String email;
        @Enumerated(EnumType.STRING) Status status = Status.NEW;
        @Column(precision = 20, scale = 6, nullable = false) BigDecimal credit = BigDecimal.ZERO;
        Double score;
        LocalDate born;
        @CreationTimestamp LocalDateTime created;
        boolean active = true;
        @Lob byte[] photo;
        @Lob String notes;
        @Version int version;
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("number DESC")
        List<Invoice> invoices = new ArrayList<>();
        @ElementCollection Set<String> words = new HashSet<>();
    }

    @Entity(name = "Invoice")
    @Table(name = "invoice", uniqueConstraints = @UniqueConstraint(name = "one_number", columnNames = "number"))
    public static class Invoice {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Integer id;
        @Column(length = 20) String number;
        @Column(precision = 10, scale = 2) BigDecimal total;
        @ManyToOne(optional = false, fetch = FetchType.LAZY) Customer customer;
    }

    /** The table of customers after a change. */
    @Entity(name = "LaterCustomer")
    @Table(name = "customer", indexes = @Index(name = "by_phone", columnList = "phone"))
    public static class LaterCustomer {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(length = 30) String phone;
    }

    static void expect(String what, Object got, Object wanted) {
        Client.expect("Hibernate: " + what, got, wanted);
    }

    static SessionFactory factory(String port, String action, Class<?>... entities) {
        Configuration configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", "jdbc:mysql://127.0.0.1:" + port
            + "/client_hibernate?createDatabaseIfNotExist=true");
        configuration.setProperty("hibernate.connection.username", "root");
        configuration.setProperty("hibernate.connection.password", "");
        configuration.setProperty("hibernate.hbm2ddl.auto", action);
        configuration.setProperty("hibernate.jdbc.batch_size", "20");
        for (Class<?> entity : entities) {
            configuration.addAnnotatedClass(entity);
        }
        return configuration.buildSessionFactory();
    }

    static void objects(SessionFactory factory) {
        Long id = factory.fromTransaction(session -> {
            Customer zoe = new Customer();
            zoe.name = "Zo\u00eb \ud83d\ude00";
            zoe.email = "z@x";
            zoe.photo = new byte[] {0, -1};
            zoe.notes = "n".repeat(1000);
            zoe.born = LocalDate.of(2000, 2, 29);
            zoe.words.addAll(Set.of("a", "b"));
            for (int number = 1; number <= 3; number++) {
                Invoice invoice = new Invoice();
                invoice.number = "A" + number;
                invoice.total = new BigDecimal("12.50");
                invoice.customer = zoe;
                zoe.invoices.add(invoice);
            }
            session.persist(zoe);
            for (int number = 0; number < 50; number++) {
                Customer other = new Customer();
                other.name = "name " + number;
                other.score = number / 2.0;
                session.persist(other);
            }
            return zoe.id;
        });
        factory.inTransaction(session -> {
            Customer zoe = session.find(Customer.class, id);
            expect("customer", List.of(zoe.name, zoe.status, zoe.credit, zoe.born, zoe.active, zoe.photo.length, zoe.notes.length()),
                List.of("Zo\u00eb \ud83d\ude00", Status.NEW, new BigDecimal("0.000000"), LocalDate.of(2000, 2, 29), true, 2, 1000));
            expect("invoices", zoe.invoices.stream().map(invoice -> invoice.number).toList(), List.of("A3", "A2", "A1"));
            expect("words", zoe.words, new HashSet<>(Set.of("a", "b")));
            zoe.status = Status.ACTIVE;
            zoe.invoices.remove(0);
        });
        factory.inTransaction(session -> {
            Customer zoe = session.find(Customer.class, id, LockModeType.PESSIMISTIC_WRITE);
            expect("version", zoe.version, 1);
            Object[] sums = session.createSelectionQuery("select c.name, sum(i.total), count(distinct w) from Customer c join c.invoices i "
                + "left join c.words w where c.score is null group by c.id, c.name having count(*) > 1", Object[].class).getSingleResult();
            expect("sums", List.of(sums), List.of("Zo\u00eb \ud83d\ude00", new BigDecimal("50.00"), 2L));
            List<String> page = session.createSelectionQuery("select name from Customer where score between 2 and 20 and name like :like "
                + "order by score desc, id", String.class).setParameter("like", "name 1%").setFirstResult(1).setMaxResults(2).list();
            expect("page", page, List.of("name 18", "name 17"));
            expect("updated", session.createMutationQuery("update Customer set score = score + 1 where score < 1").executeUpdate(), 2);
            List<String> ranked = session.createSelectionQuery("select c.name from Customer c where exists (select 1 from Invoice i "
                + "where i.customer = c) or c.score = (select max(x.score) from Customer x) order by c.id", String.class).list();
            expect("subqueries", ranked, List.of("Zo\u00eb \ud83d\ude00", "name 49"));
        });
        boolean failed = false;
        try {
            factory.inTransaction(session -> {
                Customer twin = new Customer();
                twin.name = "twin";
                twin.email = "z@x";
                session.persist(twin);
            });
        } catch (org.hibernate.exception.ConstraintViolationException error) {
            failed = true;
            expect("constraint", error.getConstraintName(), "customer.UKdwk6cx0afu8bs9o4t536v1j5v");
        }
        expect("duplicate", failed, true);
        factory.inTransaction(session -> session.remove(session.find(Customer.class, id)));
        factory.inTransaction(session ->
            expect("left", session.createSelectionQuery("select count(*) from Invoice", Long.class).getSingleResult(), 0L));
    }

    public static void main(String[] arguments) throws SQLException {
        String port = arguments[0];
        try (Connection connection = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + port + "/", "root", "")) {
            connection.createStatement().execute("DROP DATABASE IF EXISTS client_hibernate");
        }
        java.util.logging.Logger.getLogger("org.hibernate").setLevel(java.util.logging.Level.OFF);
        try (SessionFactory factory = factory(port, "create", Customer.class, Invoice.class)) {
            objects(factory);
        }
        // The schema that it reads is the one that it wants, before and after an extension.
        factory(port, "validate", Customer.class, Invoice.class).close();
        factory(port, "update", LaterCustomer.class).close();
        factory(port, "validate", Customer.class, Invoice.class).close();
        factory(port, "validate", LaterCustomer.class).close();
        factory(port, "create-drop", Customer.class, Invoice.class).close();
        System.out.println("Hibernate: everything as expected");
    }
}
