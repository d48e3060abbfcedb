-- toolcell rates 2. Takes one call from each allowance, or from none.
-- KEYS: the allowances. ARGV, of each: its interval, and the time ahead of the clock up to which it
-- may be spent, in nanoseconds. A value: the seconds and microseconds of the clock when it was
-- written, and the nanoseconds that were spent ahead of it then. A number of Lua is exact up to
-- 2^53: no difference of times here is larger, while the nanoseconds since 1970 would be.
-- Other versions count on the same keys. The three numbers keep their meaning, a later version
-- writes what else it wants behind them, and one that needs others takes keys of another version.
local clock = redis.call('TIME')
local now_s, now_us = tonumber(clock[1]), tonumber(clock[2])

local function keep(key, spent)
    local ttl_ms = math.floor(spent / 1e6) + 1
    redis.call('SET', key, string.format('%.0f %.0f %.0f', now_s, now_us, spent), 'PX', string.format('%.0f', ttl_ms))
end

local spent = {}
for place, key in ipairs(KEYS) do
    local interval, ahead = tonumber(ARGV[2 * place - 1]), tonumber(ARGV[2 * place])
    local s, us, used = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)%f[%D]')
    -- The whole allowance is as much as there may be, also where a manifest says less than before.
    used = math.min(tonumber(used or '0'), ahead + interval)
    local passed = s and (now_s - tonumber(s)) * 1e9 + (now_us - tonumber(us)) * 1e3 or 0
    if passed < 0 then
        -- The clock was set back. The allowance goes on from here, as if no time had passed: who
        -- is refused must not wait for the clock to come again to where it was.
        keep(key, used)
    else
        used = math.max(used - passed, 0)
    end
    if used > ahead then
        return {place, used - ahead}
    end
    spent[place] = used + interval
end
for place, key in ipairs(KEYS) do
    keep(key, spent[place])
end
return {0, 0}
