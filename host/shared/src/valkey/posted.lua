-- toolcell posted 1. The entries of a replicated set, each followed by the milliseconds for which it stays.
-- KEYS: the replicated set's entries, by the time at which each ends.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local found = redis.call('ZRANGE', KEYS[1], '(' .. string.format('%.0f', now), '+inf', 'BYSCORE', 'WITHSCORES')
for place = 2, #found, 2 do
    found[place] = string.format('%.0f', tonumber(found[place]) - now)
end
return found
