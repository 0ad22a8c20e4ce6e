SELECT ol_number, SUM(ol_quantity) AS sum_qty, SUM(ol_amount) AS sum_amount, AVG(ol_quantity) AS avg_qty,
    AVG(ol_amount) AS avg_amount, COUNT(*) AS count_order
FROM order_line
WHERE ol_delivery_d > UNIX_TIMESTAMP('2007-01-02')
GROUP BY ol_number
ORDER BY ol_number;
SELECT su_suppkey, su_name, n_name, i_id, i_name, su_address, su_phone, su_comment
FROM item, supplier, stock, nation, region,
    (SELECT s_i_id AS m_i_id, MIN(s_quantity) AS m_s_quantity
        FROM stock, supplier, nation, region
        WHERE MOD(s_w_id * s_i_id, 10000) = su_suppkey AND su_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name LIKE 'Europ%'
        GROUP BY s_i_id) AS m
WHERE i_id = s_i_id AND MOD(s_w_id * s_i_id, 10000) = su_suppkey AND su_nationkey = n_nationkey
    AND n_regionkey = r_regionkey AND i_data LIKE '%b' AND r_name LIKE 'Europ%' AND i_id = m_i_id
    AND s_quantity = m_s_quantity
ORDER BY n_name, su_name, i_id;
SELECT ol_o_id, ol_w_id, ol_d_id, SUM(ol_amount) AS revenue, o_entry_d
FROM customer, new_orders, orders, order_line
WHERE c_state LIKE 'A%' AND c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
    AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND o_entry_d > UNIX_TIMESTAMP('2007-01-02')
GROUP BY ol_o_id, ol_w_id, ol_d_id, o_entry_d
ORDER BY revenue DESC, o_entry_d;
SELECT o_ol_cnt, COUNT(*) AS order_count
FROM orders
WHERE o_entry_d >= UNIX_TIMESTAMP('2007-01-02') AND o_entry_d < UNIX_TIMESTAMP('2037-01-02')
    AND EXISTS (SELECT * FROM order_line
        WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id AND ol_delivery_d >= o_entry_d)
GROUP BY o_ol_cnt
ORDER BY o_ol_cnt;
SELECT n_name, SUM(ol_amount) AS revenue
FROM customer, orders, order_line, stock, supplier, nation, region
WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND ol_o_id = o_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_w_id = s_w_id AND ol_i_id = s_i_id
    AND MOD(s_w_id * s_i_id, 10000) = su_suppkey AND ASCII(SUBSTR(c_state, 1, 1)) = su_nationkey
    AND su_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'Europe'
    AND o_entry_d >= UNIX_TIMESTAMP('2007-01-02')
GROUP BY n_name
ORDER BY revenue DESC;
SELECT SUM(ol_amount) AS revenue
FROM order_line
WHERE ol_delivery_d >= UNIX_TIMESTAMP('1999-01-01') AND ol_delivery_d < UNIX_TIMESTAMP('2037-01-01')
    AND ol_quantity BETWEEN 1 AND 100000;
SELECT su_nationkey AS supp_nation, SUBSTR(c_state, 1, 1) AS cust_nation,
    EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d)) AS l_year, SUM(ol_amount) AS revenue
FROM supplier, stock, order_line, orders, customer, nation n1, nation n2
WHERE ol_supply_w_id = s_w_id AND ol_i_id = s_i_id AND MOD(s_w_id * s_i_id, 10000) = su_suppkey
    AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND su_nationkey = n1.n_nationkey AND ASCII(SUBSTR(c_state, 1, 1)) = n2.n_nationkey
    AND ((n1.n_name = 'Germany' AND n2.n_name = 'Cambodia') OR (n1.n_name = 'Cambodia' AND n2.n_name = 'Germany'))
    AND ol_delivery_d BETWEEN UNIX_TIMESTAMP('2007-01-02') AND UNIX_TIMESTAMP('2037-01-02')
GROUP BY su_nationkey, SUBSTR(c_state, 1, 1), EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d))
ORDER BY su_nationkey, cust_nation, l_year;
SELECT EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d)) AS l_year,
    SUM(CASE WHEN n2.n_name = 'Germany' THEN ol_amount ELSE 0 END) / SUM(ol_amount) AS mkt_share
FROM item, supplier, stock, order_line, orders, customer, nation n1, nation n2, region
WHERE i_id = s_i_id AND ol_i_id = s_i_id AND ol_supply_w_id = s_w_id
    AND MOD(s_w_id * s_i_id, 10000) = su_suppkey AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND n1.n_nationkey = ASCII(SUBSTR(c_state, 1, 1)) AND n1.n_regionkey = r_regionkey AND ol_i_id < 1000
    AND r_name = 'Europe' AND su_nationkey = n2.n_nationkey
    AND o_entry_d BETWEEN UNIX_TIMESTAMP('2007-01-02') AND UNIX_TIMESTAMP('2037-01-02')
    AND i_data LIKE '%b' AND i_id = ol_i_id
GROUP BY EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d))
ORDER BY l_year;
SELECT n_name, EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d)) AS l_year, SUM(ol_amount) AS sum_profit
FROM item, stock, supplier, order_line, orders, nation
WHERE ol_i_id = s_i_id AND ol_supply_w_id = s_w_id AND MOD(s_w_id * s_i_id, 10000) = su_suppkey
    AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_i_id = i_id
    AND su_nationkey = n_nationkey AND i_data LIKE '%BB'
GROUP BY n_name, EXTRACT(YEAR FROM FROM_UNIXTIME(o_entry_d))
ORDER BY n_name, l_year DESC;
SELECT c_id, c_last, SUM(ol_amount) AS revenue, c_city, c_phone, n_name
FROM customer, orders, order_line, nation
WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    AND o_entry_d >= UNIX_TIMESTAMP('2007-01-02') AND o_entry_d <= ol_delivery_d
    AND n_nationkey = ASCII(SUBSTR(c_state, 1, 1))
GROUP BY c_id, c_last, c_city, c_phone, n_name
ORDER BY revenue DESC;
SELECT s_i_id, SUM(s_order_cnt) AS ordercount
FROM stock, supplier, nation
WHERE MOD(s_w_id * s_i_id, 10000) = su_suppkey AND su_nationkey = n_nationkey AND n_name = 'Germany'
GROUP BY s_i_id
HAVING SUM(s_order_cnt) > (SELECT SUM(s_order_cnt) * .005
    FROM stock, supplier, nation
    WHERE MOD(s_w_id * s_i_id, 10000) = su_suppkey AND su_nationkey = n_nationkey AND n_name = 'Germany')
ORDER BY ordercount DESC;
SELECT o_ol_cnt, SUM(CASE WHEN o_carrier_id = 1 OR o_carrier_id = 2 THEN 1 ELSE 0 END) AS high_line_count,
    SUM(CASE WHEN o_carrier_id <> 1 AND o_carrier_id <> 2 THEN 1 ELSE 0 END) AS low_line_count
FROM orders, order_line
WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND o_entry_d <= ol_delivery_d
    AND ol_delivery_d < UNIX_TIMESTAMP('2037-01-01')
GROUP BY o_ol_cnt
ORDER BY o_ol_cnt;
SELECT c_count, COUNT(*) AS custdist
FROM (SELECT c_id, COUNT(o_id) AS c_count
    FROM customer LEFT OUTER JOIN orders
        ON c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id AND o_carrier_id > 8
    GROUP BY c_id) AS c_orders
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC;
SELECT 100.00 * SUM(CASE WHEN i_data LIKE 'PR%' THEN ol_amount ELSE 0 END) / (1 + SUM(ol_amount)) AS promo_revenue
FROM order_line, item
WHERE ol_i_id = i_id AND ol_delivery_d >= UNIX_TIMESTAMP('2007-01-02')
    AND ol_delivery_d < UNIX_TIMESTAMP('2037-01-02');
WITH revenue (supplier_no, total_revenue) AS (
    SELECT MOD(s_w_id * s_i_id, 10000), SUM(ol_amount)
    FROM order_line, stock
    WHERE ol_i_id = s_i_id AND ol_supply_w_id = s_w_id AND ol_delivery_d >= UNIX_TIMESTAMP('2007-01-02')
    GROUP BY MOD(s_w_id * s_i_id, 10000))
SELECT su_suppkey, su_name, su_address, su_phone, total_revenue
FROM supplier, revenue
WHERE su_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)
ORDER BY su_suppkey;
SELECT i_name, SUBSTR(i_data, 1, 3) AS brand, i_price, COUNT(DISTINCT MOD(s_w_id * s_i_id, 10000)) AS supplier_cnt
FROM stock, item
WHERE i_id = s_i_id AND i_data NOT LIKE 'zz%'
    AND MOD(s_w_id * s_i_id, 10000) NOT IN (SELECT su_suppkey FROM supplier WHERE su_comment LIKE '%bad%')
GROUP BY i_name, SUBSTR(i_data, 1, 3), i_price
ORDER BY supplier_cnt DESC;
SELECT SUM(ol_amount) / 2.0 AS avg_yearly
FROM order_line, (SELECT i_id, AVG(ol_quantity) AS a
    FROM item, order_line
    WHERE i_data LIKE '%b' AND ol_i_id = i_id
    GROUP BY i_id) AS t
WHERE ol_i_id = t.i_id AND ol_quantity < t.a;
SELECT c_last, c_id, o_id, o_entry_d, o_ol_cnt, SUM(ol_amount)
FROM customer, orders, order_line
WHERE c_id = o_c_id AND c_w_id = o_w_id AND c_d_id = o_d_id
    AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
GROUP BY o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt
HAVING SUM(ol_amount) > 20000
ORDER BY SUM(ol_amount) DESC, o_entry_d;
SELECT SUM(ol_amount) AS revenue
FROM order_line, item
WHERE (ol_i_id = i_id AND i_data LIKE '%a' AND ol_quantity >= 1 AND ol_quantity <= 10
        AND i_price BETWEEN 100 AND 40000000 AND ol_w_id IN (1, 2, 3))
    OR (ol_i_id = i_id AND i_data LIKE '%b' AND ol_quantity >= 1 AND ol_quantity <= 10
        AND i_price BETWEEN 100 AND 40000000 AND ol_w_id IN (1, 2, 4))
    OR (ol_i_id = i_id AND i_data LIKE '%c' AND ol_quantity >= 1 AND ol_quantity <= 10
        AND i_price BETWEEN 100 AND 40000000 AND ol_w_id IN (1, 5, 3));
SELECT su_name, su_address
FROM supplier, nation
WHERE su_suppkey IN (SELECT MOD(s_i_id * s_w_id, 10000)
        FROM stock, order_line
        WHERE s_i_id IN (SELECT i_id FROM item WHERE i_data LIKE 'co%')
            AND ol_i_id = s_i_id AND ol_delivery_d > UNIX_TIMESTAMP('2010-05-23 12:00:00')
        GROUP BY s_i_id, s_w_id, s_quantity
        HAVING 2 * s_quantity > SUM(ol_quantity))
    AND su_nationkey = n_nationkey AND n_name = 'Germany'
ORDER BY su_name;
SELECT su_name, COUNT(*) AS numwait
FROM supplier, order_line l1, orders, stock, nation
WHERE ol_o_id = o_id AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_w_id = s_w_id AND ol_i_id = s_i_id
    AND MOD(s_w_id * s_i_id, 10000) = su_suppkey AND l1.ol_delivery_d > o_entry_d
    AND NOT EXISTS (SELECT * FROM order_line l2
        WHERE l2.ol_o_id = l1.ol_o_id AND l2.ol_w_id = l1.ol_w_id AND l2.ol_d_id = l1.ol_d_id
            AND l2.ol_delivery_d > l1.ol_delivery_d)
    AND su_nationkey = n_nationkey AND n_name = 'Germany'
GROUP BY su_name
ORDER BY numwait DESC, su_name;
SELECT SUBSTR(c_state, 1, 1) AS country, COUNT(*) AS numcust, SUM(c_balance) AS totacctbal
FROM customer
WHERE SUBSTR(c_phone, 1, 1) IN ('1', '2', '3', '4', '5', '6', '7')
    AND c_balance > (SELECT AVG(c_balance) FROM customer
        WHERE c_balance > 0.00 AND SUBSTR(c_phone, 1, 1) IN ('1', '2', '3', '4', '5', '6', '7'))
    AND NOT EXISTS (SELECT * FROM orders WHERE o_c_id = c_id AND o_w_id = c_w_id AND o_d_id = c_d_id)
GROUP BY SUBSTR(c_state, 1, 1)
ORDER BY SUBSTR(c_state, 1, 1);
