-- toolcell shelf_forget 1. Forgets all resources of a holder: their time is over.
-- KEYS: the last number given; all others begin as it does. ARGV: that beginning, the holder.
local P, holder = ARGV[1], ARGV[2]
for _, number in ipairs(redis.call('ZRANGE', P .. 'holder:' .. holder, 0, -1)) do
    -- The next one that is kept takes them off the lists.
    redis.call('ZADD', P .. 'all', 0, number)
    redis.call('DEL', P .. 'one:' .. number)
end
return 1
