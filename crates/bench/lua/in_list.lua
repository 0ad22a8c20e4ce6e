-- Reads rows of sbtest1 with IN lists over the primary key. With --db-ps-mode=auto, sysbench sends a prepared statement with
-- parameters; with --db-ps-mode=disable, it writes the numbers into the text.

sysbench.cmdline.options = {
   table_size = {"Number of rows of sbtest1", 10000},
   keys = {"Keys of one IN list", 100}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   local marks = string.rep("?, ", sysbench.opt.keys - 1) .. "?"
   statement = connection:prepare("SELECT id, k, c, pad FROM sbtest1 WHERE id IN (" .. marks .. ")")
   parameters = {}
   for number = 1, sysbench.opt.keys do
      parameters[number] = statement:bind_create(sysbench.sql.type.INT)
   end
   statement:bind_param(unpack(parameters))
end

function event()
   for number = 1, sysbench.opt.keys do
      parameters[number]:set(sysbench.rand.uniform(1, sysbench.opt.table_size))
   end
   statement:execute()
end

function thread_done()
   statement:close()
   connection:disconnect()
end
