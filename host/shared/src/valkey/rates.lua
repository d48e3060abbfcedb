-- toolcell rates 1. Takes one call from each allowance, or from none.
-- KEYS: the allowances. ARGV, of each: its interval, and the time ahead of the clock up to which it
-- may be spent, in nanoseconds. A number of Lua is exact up to 2^53: no difference of times here is
-- larger, while the nanoseconds since 1970 would be.
local clock = redis.call('TIME')
local now_s, now_ns = tonumber(clock[1]), tonumber(clock[2]) * 1000
local spent = {}
for place, key in ipairs(KEYS) do
    local interval, ahead = tonumber(ARGV[2 * place - 1]), tonumber(ARGV[2 * place])
    local kept, used = redis.call('GET', key), 0
    if kept then
        local s, ns = string.match(kept, '^(%d+) (%d+)$')
        if s then
            used = (tonumber(s) - now_s) * 1e9 + tonumber(ns) - now_ns
        end
    end
    -- A clock that was set back must not make anybody wait longer than a whole allowance takes.
    used = math.min(math.max(used, 0), ahead + interval)
    if used > ahead then
        return {place, used - ahead}
    end
    spent[place] = used + interval
end
for place, key in ipairs(KEYS) do
    local ns = now_ns + spent[place]
    local until_s = now_s + math.floor(ns / 1e9)
    local ttl_ms = math.floor(spent[place] / 1e6) + 1
    redis.call('SET', key, string.format('%.0f %.0f', until_s, ns % 1e9), 'PX', string.format('%.0f', ttl_ms))
end
return {0, 0}
