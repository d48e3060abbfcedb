-- toolcell shelf_list 1. Numbers and labels of a holder's resources behind a number, the oldest first: those whose
-- address one origin has.
-- KEYS: the last number given; all others begin as it does. ARGV: that beginning, the holder, the number, the most
-- resources, and the bytes of labels past which no more follow.
local P, holder, after, most, bytes_max = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local origins, addresses = {}, {}
for _, member in ipairs(redis.call('ZRANGE', P .. 'uri:' .. holder, 0, -1)) do
    local uri, number = string.match(member, '^(%x+):%x+:(%d+)$')
    local till = redis.call('ZSCORE', P .. 'all', number)
    if till and tonumber(till) > now then
        origins[uri] = (origins[uri] or 0) + 1
        addresses[number] = uri
    end
end
local found, bytes = {}, 0
for _, number in ipairs(redis.call('ZRANGE', P .. 'holder:' .. holder, '(' .. after, '+inf', 'BYSCORE')) do
    if #found >= 2 * most or bytes > bytes_max then
        break
    end
    local uri = addresses[number]
    local label = uri and origins[uri] == 1 and redis.call('HGET', P .. 'one:' .. number, 'label')
    if label then
        found[#found + 1] = number
        found[#found + 1] = label
        bytes = bytes + #label
    end
end
return found
