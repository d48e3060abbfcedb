-- toolcell shelf_find 1. The body of a holder's resource of this address, if one origin has it.
-- KEYS: the last number given; all others begin as it does. ARGV: that beginning, the holder, the address.
local P, holder, uri = ARGV[1], ARGV[2], ARGV[3]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local found
for _, member in ipairs(redis.call('ZRANGE', P .. 'uri:' .. holder, '[' .. uri .. ':', '(' .. uri .. ';', 'BYLEX')) do
    local number = string.match(member, ':(%d+)$')
    local till = redis.call('ZSCORE', P .. 'all', number)
    if till and tonumber(till) > now then
        if found then
            return false
        end
        found = number
    end
end
return found and redis.call('HGET', P .. 'one:' .. found, 'body')
