-- toolcell end 2. Keeps the answer to a request, or forgets that it began, if this is who runs it.
-- KEYS: the request, all of its caller by their ends, the bytes of their answers. ARGV: the digest of what is asked, who
-- runs it, for how many milliseconds the answer is kept, the answer, an empty one for none, and the request's name.
if redis.call('GET', KEYS[1]) ~= 'r' .. ARGV[1] .. ARGV[2] then
    return 1
end
redis.call('ZREM', KEYS[2], ARGV[5] .. ' 0')
if ARGV[4] == '' then
    redis.call('DEL', KEYS[1])
    return 1
end
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
redis.call('SET', KEYS[1], 'd' .. ARGV[1] .. ARGV[4], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[5] .. ' ' .. #ARGV[4])
redis.call('INCRBY', KEYS[3], #ARGV[4])
-- The caller's two keys end together, with the last of the requests.
local time = math.max(redis.call('PTTL', KEYS[2]), tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[2], time)
redis.call('PEXPIRE', KEYS[3], time)
return 1
