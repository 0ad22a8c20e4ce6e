-- The consistency conditions 1 to 12 of TPC-C, clause 3.3.2, for dbt2.lua. Rows are read table by table and compared here,
-- so that no error of a join hides a violation.

local common = require("dbt2_load")
local option, DISTRICTS = common.option, common.DISTRICTS
local connection

local function number(format, ...)
   return tonumber((connection:query_row(string.format(format, ...))))
end

-- All rows of a query, each a list of texts.
local function rows(format, ...)
   local result = connection:query(string.format(format, ...))
   local all = {}
   for place = 1, result.nrows do
      all[place] = result:fetch_row()
   end
   return all
end

local violations = 0
local verified = {}

local function verify(condition, is_good, ...)
   verified[condition] = (verified[condition] or 0) + 1
   if not is_good then
      violations = violations + 1
      if violations <= 20 then
         print(string.format("condition %d: ", condition) .. string.format(...))
      end
   end
end

-- Checks the orders of a district. Adds their delivered amounts to `delivered`, by customer. Returns the number of orders
-- that are not new.
local function check_orders(warehouse, district, delivered)
   local function at(prefix)
      return string.format("%sw_id = %d AND %sd_id = %d", prefix, warehouse, prefix, district)
   end
   local is_new, new_count, new_least, new_most = {}, 0, nil, nil
   for _, found in ipairs(rows("SELECT no_o_id FROM new_orders WHERE %s", at("no_"))) do
      local order = tonumber(found[1])
      is_new[order], new_count = true, new_count + 1
      new_least, new_most = math.min(new_least or order, order), math.max(new_most or order, order)
   end
   local lines, amounts, undelivered, line_count = {}, {}, {}, 0
   for _, found in ipairs(rows("SELECT ol_o_id, ol_amount, ol_delivery_d FROM order_line WHERE %s", at("ol_"))) do
      local order = tonumber(found[1])
      line_count = line_count + 1
      lines[order] = (lines[order] or 0) + 1
      if found[3] then
         amounts[order] = (amounts[order] or 0) + tonumber(found[2])
      else
         undelivered[order] = (undelivered[order] or 0) + 1
      end
   end
   local order_count, order_most, promised = 0, nil, 0
   for _, found in ipairs(rows("SELECT o_id, o_c_id, o_ol_cnt, o_carrier_id FROM orders WHERE %s", at("o_"))) do
      local order, customer, count, has_carrier = tonumber(found[1]), tonumber(found[2]), tonumber(found[3]), found[4] ~= nil
      local name = string.format("order %d of district %d of warehouse %d", order, district, warehouse)
      order_count, promised, order_most = order_count + 1, promised + count, math.max(order_most or order, order)
      verify(5, has_carrier ~= (is_new[order] or false), "%s: carrier %s", name, tostring(found[4]))
      verify(6, lines[order] == count, "%s: %s lines, not %d", name, tostring(lines[order]), count)
      verify(7, (undelivered[order] or 0) == (has_carrier and 0 or count), "%s: %d lines are not delivered, carrier %s", name,
         undelivered[order] or 0, tostring(found[4]))
      delivered[customer] = (delivered[customer] or 0) + (amounts[order] or 0)
      is_new[order], lines[order] = nil, nil
   end
   local name = string.format("district %d of warehouse %d", district, warehouse)
   verify(5, next(is_new) == nil, "%s: a new order without an order", name)
   verify(6, next(lines) == nil, "%s: lines without an order", name)
   local next_order = number("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", warehouse, district)
   verify(2, next_order - 1 == order_most, "%s: next order %d, last %s", name, next_order, tostring(order_most))
   verify(2, new_count == 0 or next_order - 1 == new_most, "%s: next order %d, last new one %s", name, next_order,
      tostring(new_most))
   verify(3, new_count == 0 or new_most - new_least + 1 == new_count, "%s: %d new orders from %s to %s", name, new_count,
      tostring(new_least), tostring(new_most))
   verify(4, promised == line_count, "%s: orders count %d lines, there are %d", name, promised, line_count)
   return order_count - new_count
end

local function check_customers(warehouse, district, delivered, paid, settled)
   local deliveries = 0
   for _, found in ipairs(rows("SELECT c_id, c_balance, c_ytd_payment, c_delivery_cnt FROM customer WHERE c_w_id = %d " ..
      "AND c_d_id = %d", warehouse, district)) do
      local customer, balance, payments = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
      local name = string.format("customer %d of district %d of warehouse %d", customer, district, warehouse)
      deliveries = deliveries + tonumber(found[4])
      local due, given = delivered[customer] or 0, paid[customer] or 0
      verify(10, balance == due - given, "%s: balance %d, delivered %d, paid %d", name, balance, due, given)
      verify(12, balance + payments == due, "%s: balance %d, payments %d, delivered %d", name, balance, payments, due)
   end
   -- Initially, 2,100 of 3,000 orders are delivered. Each later delivery is counted in its customer's row.
   verify(11, settled == common.delivered_at_first() + deliveries, "district %d of warehouse %d: %d orders are not new, %d deliveries",
      district, warehouse, settled, deliveries)
end

local function check_warehouse(warehouse)
   local paid_here, paid_by = {}, {}
   for _, found in ipairs(rows("SELECT h_d_id, h_amount FROM history WHERE h_w_id = %d", warehouse)) do
      local district = tonumber(found[1])
      paid_here[district] = (paid_here[district] or 0) + tonumber(found[2])
   end
   for _, found in ipairs(rows("SELECT h_c_d_id, h_c_id, h_amount FROM history WHERE h_c_w_id = %d", warehouse)) do
      local district, customer = tonumber(found[1]), tonumber(found[2])
      paid_by[district] = paid_by[district] or {}
      paid_by[district][customer] = (paid_by[district][customer] or 0) + tonumber(found[3])
   end
   local total, district_total = 0, 0
   for district = 1, DISTRICTS do
      local ytd = number("SELECT d_ytd FROM district WHERE d_w_id = %d AND d_id = %d", warehouse, district)
      verify(9, ytd == (paid_here[district] or 0), "district %d of warehouse %d: %d, history says %d", district, warehouse, ytd,
         paid_here[district] or 0)
      total, district_total = total + (paid_here[district] or 0), district_total + ytd
      local delivered = {}
      local settled = check_orders(warehouse, district, delivered)
      check_customers(warehouse, district, delivered, paid_by[district] or {}, settled)
   end
   local ytd = number("SELECT w_ytd FROM warehouse WHERE w_id = %d", warehouse)
   verify(1, ytd == district_total, "warehouse %d: %d, its districts %d", warehouse, ytd, district_total)
   verify(8, ytd == total, "warehouse %d: %d, history says %d", warehouse, ytd, total)
end

-- The command `check`.
local function check()
   connection = sysbench.sql.driver():connect()
   -- Reads one snapshot, so that the conditions hold even during a load.
   connection:query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
   connection:query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
   for warehouse = 1, option.warehouses do
      check_warehouse(warehouse)
   end
   connection:query("COMMIT")
   for condition = 1, 12 do
      print(string.format("condition %2d: verified %d times", condition, verified[condition] or 0))
   end
   if violations > 0 then
      error("check failed: " .. violations .. " violations of the consistency conditions")
   end
   print("all conditions hold")
end

return check
