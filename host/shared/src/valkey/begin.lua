-- toolcell begin 2. Begins a request, unless it began before. One that asks again gets its answer again.
-- KEYS: the request, all of its caller by their ends, the bytes of their answers. ARGV: the digest of what is asked, who
-- begins it, for how many milliseconds, its name, and how many requests and bytes of answers a caller has.
-- The first key holds a letter, r while the request runs and d once it is done, the digest, and who runs it or its
-- answer. Among all it is its name with the bytes of its answer.
local kept = redis.call('GET', KEYS[1])
local running = 'r' .. ARGV[1] .. ARGV[2]
if kept then
    if kept == running then
        return {'begun', ''}
    end
    if string.sub(kept, 2, 65) ~= ARGV[1] then
        return {'other', ''}
    end
    if string.sub(kept, 1, 1) == 'r' then
        return {'runs', ''}
    end
    return {'done', string.sub(kept, 66)}
end
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
-- Those that are over, a part at a time.
local bytes = 0
for _, over in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1000)) do
    bytes = bytes + tonumber(string.match(over, ' (%d+)$'))
    redis.call('ZREM', KEYS[2], over)
end
if bytes > 0 then
    redis.call('DECRBY', KEYS[3], bytes)
end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then
    return {'full', ''}
end
if tonumber(redis.call('GET', KEYS[3]) or '0') >= tonumber(ARGV[6]) then
    return {'full', ''}
end
redis.call('SET', KEYS[1], running, 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[4] .. ' 0')
-- The caller's two keys end together, with the last of the requests.
local time = math.max(redis.call('PTTL', KEYS[2]), tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[2], time)
redis.call('PEXPIRE', KEYS[3], time)
return {'begun', ''}
