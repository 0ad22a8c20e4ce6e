-- IN lists of literals or of parameters over the primary key of sbtest1: sysbench sends the statement prepared with
-- --db-ps-mode=auto and writes the numbers into its text with --db-ps-mode=disable.

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
