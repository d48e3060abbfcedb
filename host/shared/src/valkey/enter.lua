-- toolcell enter 4. Takes a place for a time, unless all are taken or replicas that wait longer want them. One that asks
-- again has it for longer. Returns how many places are free then, and -1 if it got none.
-- KEYS: the places that are taken, by the time at which each ends; the replicas that wait, with the times since when
-- and at which they asked last. ARGV: who takes it, how many places there are, for how many milliseconds it is taken,
-- the replica if it waits, and for how many milliseconds a replica waits that does not ask again.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local now_ms, taken_ms = math.floor(now / 1000), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
-- No place is taken for longer: the clock was set back. These end as if they were taken now.
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now_ms + taken_ms), '+inf')) do
    redis.call('ZADD', KEYS[1], now_ms + taken_ms, holder)
end
local waits, free = ARGV[4] ~= '', 1
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    free = tonumber(ARGV[2]) - redis.call('ZCARD', KEYS[1])
    local known_us = tonumber(ARGV[5]) * 1000
    local replicas, since, mine = redis.call('HGETALL', KEYS[2]), {}, now
    for place = 1, #replicas, 2 do
        local began, asked = string.match(replicas[place + 1], '^(%d+) (%d+)$')
        if tonumber(asked) + known_us < now or tonumber(asked) > now then
            redis.call('HDEL', KEYS[2], replicas[place])
        elseif replicas[place] == ARGV[4] then
            mine = tonumber(began)
        else
            since[#since + 1] = tonumber(began)
        end
    end
    for _, began in ipairs(since) do
        if began <= mine then
            free = free - 1
        end
    end
    if free <= 0 then
        if waits then
            redis.call('HSET', KEYS[2], ARGV[4], string.format('%.0f %.0f', mine, now))
            redis.call('PEXPIRE', KEYS[2], ARGV[5])
        end
        return -1
    end
end
if waits then
    redis.call('HDEL', KEYS[2], ARGV[4])
end
redis.call('ZADD', KEYS[1], now_ms + taken_ms, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return free - 1
